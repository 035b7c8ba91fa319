/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test that no event is lost between the guest, the main loop and a
 * worker
 *
 * Tested are virtqueues of maximum length that are full before a kick; buffers
 * submitted before a flush, close, reset, stop, takeover, unplug or migration;
 * the limits of work in an iteration of the main loop and in a doorbell; the
 * last count of lost events.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

#define PACKET 65536u
#define PROPS "streams=4,packet-size=65536,packets=4"
#define VIRTIO "channel=virtio," PROPS

/* Maximum number of entries that QEMU allows a virtqueue */
#define LONG 1024u
/*
 * Number of bytes reserved for a buffer: room for a submit header, a packet
 * header and an event
 */
#define BUFFER 128u

/* A stream, and its data queue of LONG entries */
typedef struct Flood {
    QHtStream s;
    QVirtQueue *vq;
    uint64_t mem;
    uint16_t avail;
} Flood;

static void flood_init(Flood *f, QHt *h, uint32_t index)
{
    memset(f, 0, sizeof(*f));
    f->s.index = index;
    f->vq = qht_queue_resize(h, index, LONG);
    f->mem = guest_alloc(h->alloc, LONG * BUFFER);
}

static uint16_t used(Flood *f)
{
    return qtest_readw(f->s.h->qts, f->vq->used + 2);
}

/*
 * Do as flood_put(), but do not write the index; the @n entries must not pass
 * the end of the ring of available buffers
 */
static void flood_put_some(Flood *f, uint32_t id, unsigned n)
{
    QTestState *qts = f->s.h->qts;
    g_autofree uint8_t *mem = g_malloc0(n * BUFFER);
    g_autofree struct vring_desc *desc = g_new0(struct vring_desc, n);
    g_autofree uint16_t *ring = g_new(uint16_t, n);
    unsigned first = f->avail % LONG, i;

    for (i = 0; i < n; i++) {
        uint8_t *b = mem + i * BUFFER;
        struct ht_submit *sub = (struct ht_submit *)b;
        uint32_t from = f->s.offset;

        /*
         * Leave room in each packet: if qht_write_number() filled a packet, it
         * would submit it.
         */
        if (PACKET - from < 2 * 12) {
            qht_close_packet(&f->s);
            from = 0;
        }
        sub->from = cpu_to_le64(f->s.submitted);
        sub->stream = cpu_to_le32(f->s.index);
        qht_write_number(&f->s, id, f->s.events);
        g_assert_cmpuint(f->s.offset, >, from);
        f->s.submitted = f->s.packet * PACKET + f->s.offset;
        sub->to = cpu_to_le64(f->s.submitted);
        memcpy(b + sizeof(*sub), f->s.image + from, f->s.offset - from);
        desc[i].addr = cpu_to_le64(f->mem + (first + i) * BUFFER);
        desc[i].len = cpu_to_le32(sizeof(*sub) + f->s.offset - from);
        ring[i] = cpu_to_le16(first + i);
    }
    qtest_memwrite(qts, f->mem + first * BUFFER, mem, n * BUFFER);
    qtest_memwrite(qts, f->vq->desc + first * sizeof(*desc), desc,
                   n * sizeof(*desc));
    qtest_memwrite(qts, f->vq->avail + 4 + first * sizeof(*ring), ring,
                   n * sizeof(*ring));
    f->avail += n;
}

/*
 * Make @n buffers of one event each available by one write of the index; do not
 * kick.  The queue must have room for the buffers.
 */
static void flood_put(Flood *f, uint32_t id, unsigned n)
{
    unsigned to_end = MIN(n, LONG - f->avail % LONG);

    flood_put_some(f, id, to_end);
    if (n > to_end) {
        flood_put_some(f, id, n - to_end);
    }
    qtest_writew(f->s.h->qts, f->vq->avail + 2, f->avail);
}

static void flood_kick(Flood *f)
{
    QVirtioDevice *vdev = &f->s.h->pci->vdev;

    vdev->bus->virtqueue_kick(vdev, f->vq);
}

static void flood_open(Flood *f, QHt *h, uint32_t index)
{
    flood_init(f, h, index);
    qht_stream_open(&f->s, h, index);
}

static void ask_flush(Flood *f)
{
    qht_stream_flush(&f->s);
}

static void ask_close(Flood *f)
{
    qht_stream_close(&f->s);
}

static void ask_reset(Flood *f)
{
    qtest_system_reset(f->s.h->qts);
}

static void ask_stop(Flood *f)
{
    qtest_qmp_assert_success(f->s.h->qts, "{'execute': 'stop'}");
}

static void ask_takeover(Flood *f)
{
    struct ht_msg m = { 0 };

    g_assert_cmpuint(qht_call(f->s.h, HT_MSG_TAKEOVER, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
    /* the streams may be closed after the reply to TAKEOVER */
    QHT_WAIT(!qht_stream_flag(f->s.h, 0, "open") &&
             !qht_stream_flag(f->s.h, 1, "open"));
}

static void ask_unplug(Flood *f)
{
    qht_unplug(f->s.h);
    qht_wait_deleted(f->s.h);
}

typedef struct Ask {
    const char *name;
    void (*ask)(Flood *f);
    /* the request is for all streams of the device, not only for that of @f */
    bool whole;
} Ask;

static const Ask asks[] = {
    { "flush", ask_flush },
    { "close", ask_close },
    { "reset", ask_reset, true },
    { "stop", ask_stop, true },
    { "takeover", ask_takeover, true },
    { "unplug", ask_unplug, true },
};

/*
 * Each request in asks[] makes the device consume all buffers that were
 * available before the request.
 */
static void test_full_queue(const void *opaque)
{
    static const unsigned counts[] = { 300, LONG };
    const Ask *ask = opaque;
    QHt *h = qht_boot("pc", "log", VIRTIO, NULL);
    uint32_t id = qht_register_number(h, "number");
    Flood f[G_N_ELEMENTS(counts)];
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(counts); i++) {
        flood_open(&f[i], h, i);
        flood_put(&f[i], id, counts[i]);
    }
    if (ask->whole) {
        ask->ask(&f[0]);
    } else {
        for (i = 0; i < G_N_ELEMENTS(counts); i++) {
            ask->ask(&f[i]);
            g_assert_cmpuint(qht_stream_stat(h, i, "events"), >=, counts[i]);
        }
    }
    if (ask->ask == ask_unplug) {
        QHT_WAIT(qht_file_count(h->log, "closed, 0 events") == 2);
    } else {
        g_assert_cmpuint(qht_stat(h, "events"), ==, counts[0] + counts[1]);
        g_assert_cmpuint(qht_stat(h, "dropped"), ==, 0);
        g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
        qht_settle(h);
    }
    for (i = 0; i < G_N_ELEMENTS(counts); i++) {
        qht_assert_numbers(h->log, i, 0, counts[i]);
        qht_stream_forget(&f[i].s);
    }
    qht_quit(h);
}

/*
 * Between the kicks of full queues and the use of their last buffer, the main
 * loop does other work: it lets this program read the used indices while some
 * buffers are used and some are not. On a busy machine this program may be too
 * slow for that, so it repeats the attempt.
 */
static void bounded_turns(bool open)
{
    QHt *h = qht_boot("pc", "null", VIRTIO, NULL);
    uint32_t id = qht_register_number(h, "number");
    /* if the streams are closed, use one queue only */
    const unsigned nr = open ? 4 : 1;
    unsigned i, tries, between = 0;
    Flood f[4];

    for (tries = 0; between == 0; tries++) {
        uint64_t all = 0, before;

        g_assert_cmpuint(tries, <, 1000);
        for (i = 0; i < nr; i++) {
            if (tries == 0) {
                flood_init(&f[i], h, i);
            }
            /*
             * The device does not read the content of buffers of a closed
             * stream, so one opening is enough for all tries.
             */
            if (open || tries == 0) {
                QHtStream *s = &f[i].s;

                qht_stream_open(s, h, i);
                if (!open) {
                    struct ht_msg_stream m = {
                        .stream = cpu_to_le32(i),
                        .instance = cpu_to_le64(s->instance),
                    };

                    g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_CLOSE, &m,
                                              sizeof(m)), ==, HT_STATUS_OK);
                }
            }
            flood_put(&f[i], id, LONG);
        }
        for (i = 0; i < nr; i++) {
            flood_kick(&f[i]);
        }
        QHT_WAIT(({
            do {
                before = all;
                for (all = 0, i = 0; i < nr; i++) {
                    all += (uint16_t)(used(&f[i]) - (f[i].avail - LONG));
                }
                between += all > 0 && all < LONG * nr;
            } while (all != before);
            all == LONG * nr;
        }));
        for (i = 0; i < nr; i++) {
            if (open) {
                qht_stream_close(&f[i].s);
            } else {
                f[i].s.offset = f[i].s.submitted = 0;
            }
        }
    }
    g_test_message("%u readings in between, %u tries", between, tries);
    g_assert_cmpuint(qht_stat(h, "errors"), ==,
                     open ? 0 : LONG * nr * tries);
    for (i = 0; i < nr; i++) {
        qht_stream_forget(&f[i].s);
    }
    qht_quit(h);
}

static void test_turns_open(void)
{
    bounded_turns(true);
}

static void test_turns_closed(void)
{
    bounded_turns(false);
}

/*
 * The queue of stream 0 is refilled whenever it is empty. The device uses a
 * buffer of stream 1 before the third refill.
 */
static void test_fair(void)
{
    QHt *h = qht_boot("pc", "null", VIRTIO, NULL);
    uint32_t id = qht_register_number(h, "number");
    unsigned round;
    Flood f[2];

    for (round = 0; round < 3; round++) {
        unsigned i, refills = 0;

        for (i = 0; i < 2; i++) {
            if (round == 0) {
                flood_init(&f[i], h, i);
            }
            qht_stream_open(&f[i].s, h, i);
        }
        flood_put(&f[0], id, LONG);
        flood_put(&f[1], id, 1);
        flood_kick(&f[0]);
        flood_kick(&f[1]);
        while (used(&f[1]) != f[1].avail) {
            if (used(&f[0]) == f[0].avail) {
                g_assert_cmpuint(refills, <, 2);
                refills++;
                flood_put(&f[0], id, LONG);
                flood_kick(&f[0]);
            }
        }
        for (i = 0; i < 2; i++) {
            qht_stream_close(&f[i].s);
        }
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

/*
 * While the backend hangs, events of stream 0 use up the sink's budget. Then
 * stream 1 submits a buffer. When the backend continues in small steps, the
 * device uses the buffer of stream 1, although this program keeps refilling the
 * queue of stream 0.
 */
static void test_fair_backend(void)
{
    QHtFifo *fifo = qht_fifo_new();
    g_autofree char *backend = g_strdup_printf("log,file=%s", fifo->path);
    unsigned still = 0, buffers = 0, i;
    uint32_t id;
    Flood f[2];
    QHt *h;

    h = qht_boot("pc", backend, "channel=virtio,streams=2,packet-size=65536,"
                 "packets=4,backlog=1M", NULL);
    id = qht_register_number(h, "number");
    for (i = 0; i < G_N_ELEMENTS(f); i++) {
        flood_open(&f[i], h, i);
    }
    /*
     * Refill the queue until the device has used no buffer for 200 ms: then the
     * sink's budget is used up. If 200 ms are too short, the test is weaker but
     * passes.
     */
    while (still < 200) {
        unsigned room = LONG - (uint16_t)(f[0].avail - used(&f[0]));

        if (room) {
            flood_put(&f[0], id, room);
            flood_kick(&f[0]);
            still = 0;
        } else {
            g_usleep(1000);
            still++;
        }
    }
    flood_put(&f[1], id, 1);
    flood_kick(&f[1]);
    QHT_WAIT(({
        unsigned room = LONG - (uint16_t)(f[0].avail - used(&f[0]));

        qht_fifo_read(fifo);
        g_assert_cmpuint(buffers, <, 16 * LONG);
        if (room >= LONG / 4) {
            flood_put(&f[0], id, room);
            flood_kick(&f[0]);
            buffers += room;
        }
        used(&f[1]) == f[1].avail;
    }));
    g_test_message("%u buffers of stream 0 before", buffers);
    for (i = 0; i < G_N_ELEMENTS(f); i++) {
        qht_stream_forget(&f[i].s);
    }
    qht_fifo_free(fifo);
    qht_quit(h);
}

/*
 * Return the number of events that QEMU's main thread @pid has consumed,
 * according to QEMU's trace log.
 */
static unsigned taken_by_main(const char *path, unsigned long pid)
{
    g_autofree char *log = NULL;
    g_auto(GStrv) lines = NULL;
    unsigned n = 0, events, i;
    unsigned long thread;

    g_assert_true(g_file_get_contents(path, &log, NULL, NULL));
    lines = g_strsplit(log, "\n", -1);
    for (i = 0; lines[i]; i++) {
        const char *run = strstr(lines[i], ":hypertrace_run ");

        if (run && sscanf(lines[i], "%lu@", &thread) == 1 && thread == pid) {
            g_assert_cmpint(sscanf(run, ":hypertrace_run %*s stream %*u"
                                   " events %u", &events), ==, 1);
            n += events;
        }
    }
    return n;
}

/*
 * The thread that handles a write to a doorbell consumes a limited number of
 * events or bytes: in a qtest, this is the main thread. The device's IOThread
 * consumes the rest in pieces.
 */
static void test_doorbell(const void *data)
{
    const bool empty = data != NULL;
    /*
     * A doorbell stops after 1,000 events, or after the event with which it has
     * consumed 8 KiB or more; events with a payload have 12 bytes each.
     */
    const unsigned most = empty ? 1000 : 8192 / 12 + 1;
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    char *path = qht_temporary();
    g_autofree char *extra = g_strdup_printf("-trace hypertrace_run -D %s"
                                             " -msg timestamp=on", path);
    QHt *h = qht_boot("pc", "null", "channel=hypercall," PROPS, extra);
    unsigned long pid = qtest_pid(h->qts);
    uint32_t id = qht_register_number(h, "number");
    uint64_t before;
    unsigned taken, i;
    QHtStream s;

    if (empty) {
        m->name_len = 5;
        memcpy(m->data, "empty", 5);
        g_assert_cmpuint(qht_call(h, HT_MSG_CLASS_REGISTER, m,
                                  sizeof(*m) + 5), ==, HT_STATUS_OK);
        id = ldl_le_p(&m->id);
    }
    qht_stream_open(&s, h, 0);
    before = qht_stream_stat(h, 0, "wakeups");
    for (i = 0; i < 8000; i++) {
        if (empty) {
            qht_write(&s, id, "", 0);
        } else {
            qht_write_number(&s, id, i);
        }
    }
    qht_doorbell(&s);
    QHT_WAIT(qht_stream_stat(h, 0, "events") == s.events);
    g_assert_cmpuint(qht_stream_stat(h, 0, "wakeups") - before, >=,
                     8000 / most);
    qht_quit(h);
    taken = taken_by_main(path, pid);
    g_assert_cmpuint(taken, >, 0);
    g_assert_cmpuint(taken, <=, most);
    qht_unlink(path);
}

/*
 * In a migration right after a kick, the source consumes all buffers that were
 * available before the kick.
 */
static void test_busy_move(void)
{
    QHt *h = qht_boot("pc", "log", VIRTIO, NULL);
    uint32_t id = qht_register_number(h, "number");
    uint64_t from = 0;
    unsigned round, i;
    Flood f[4];

    for (i = 0; i < G_N_ELEMENTS(f); i++) {
        flood_open(&f[i], h, i);
    }
    for (round = 0; round < 6; round++) {
        QHtTarget *t = qht_target("pc", "log", VIRTIO, NULL);
        char *file = qht_temporary(), *log;
        unsigned n = 200 + (round * 409) % 600;

        for (i = 0; i < G_N_ELEMENTS(f); i++) {
            flood_put(&f[i], id, n);
            flood_kick(&f[i]);
        }
        if (round & 1) {
            qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
        }
        g_assert_true(qht_save(h, file));
        g_assert_true(qht_load(t, file));
        qht_unlink(file);
        log = qht_move(h, t, false);
        qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
        for (i = 0; i < G_N_ELEMENTS(f); i++) {
            g_assert_false(qht_stream_flag(h, i, "stopped"));
            g_assert_cmpuint(used(&f[i]), ==, f[i].avail);
            qht_assert_numbers(log, i, from, f[i].s.events);
        }
        from = f[0].s.events;
        qht_unlink(log);
        qht_target_free(t);
    }
    for (i = 0; i < G_N_ELEMENTS(f); i++) {
        flood_put(&f[i], id, 1);
        qht_stream_close(&f[i].s);
    }
    qht_settle(h);
    for (i = 0; i < G_N_ELEMENTS(f); i++) {
        qht_assert_numbers(h->log, i, from, from + 1);
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

static void last_stop(QHt *h)
{
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
}

static void last_save(QHt *h)
{
    char *file = qht_temporary();

    g_assert_true(qht_save(h, file));
    qht_unlink(file);
}

static void last_reset(QHt *h)
{
    qtest_system_reset(h->qts);
}

static void last_unplug(QHt *h)
{
    qht_unplug(h);
    qht_wait_deleted(h);
}

/*
 * If the guest counts lost events after its last event, the trace has that
 * count after a stop or save of the VM, a reset, an unplug, or the end of QEMU.
 */
static void test_last_count(const void *channel)
{
    static void (*const ends[])(QHt *h) = {
        last_stop, last_save, last_reset, last_unplug, NULL,
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *props = g_strdup_printf("channel=%s," PROPS,
                                                 (const char *)channel);
        QHt *h = qht_boot("pc", "log", props, NULL);
        uint32_t id = qht_register_number(h, "number");
        char *log = g_steal_pointer(&h->log);
        QHtStream s;

        if (h->control) {
            qht_stream_announce(&s, h, 0);
        } else {
            qht_stream_open(&s, h, 0);
        }
        qht_write_number(&s, id, 0);
        qht_commit(&s);
        QHT_WAIT(qht_stream_stat(h, 0, "events") == 1);
        qht_stream_write_lost(&s, 5);
        if (ends[i]) {
            ends[i](h);
            QHT_WAIT(qht_file_count(log, ", 5 events discarded") > 0);
        }
        qht_stream_forget(&s);
        qht_quit(h);
        g_assert_cmpuint(qht_file_count(log, ", 5 events discarded"), >, 0);
        qht_unlink(log);
    }
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "last-count", test_last_count, QHT_CHANNELS },
    };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(asks); i++) {
        g_autofree char *path = g_strdup_printf(
            "hypertrace/seams/virtio/full-queue/%s", asks[i].name);

        qtest_add_data_func(path, &asks[i], test_full_queue);
    }
    qtest_add_func("hypertrace/seams/virtio/turns-open", test_turns_open);
    qtest_add_func("hypertrace/seams/virtio/turns-closed", test_turns_closed);
    qtest_add_func("hypertrace/seams/virtio/fair", test_fair);
    qtest_add_func("hypertrace/seams/virtio/fair-backend", test_fair_backend);
    qtest_add_func("hypertrace/seams/virtio/busy-move", test_busy_move);
    qtest_add_data_func("hypertrace/seams/hypercall/doorbell", NULL,
                        test_doorbell);
    qtest_add_data_func("hypertrace/seams/hypercall/doorbell-empty", "empty",
                        test_doorbell);
    qht_add_tests("seams", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
