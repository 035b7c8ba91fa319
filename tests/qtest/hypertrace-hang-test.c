/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test the device while a backend hangs
 *
 * The log is a FIFO that the test does not read at first.  When the FIFO is
 * full, the sink's thread blocks in write() until the test reads.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

/*
 * Time limit for QEMU in us: far more than QEMU waits for a backend that hangs
 */
#define LIMIT_US (60 * G_USEC_PER_SEC)

#define PACKET 4096u
#define PACKETS 8u
#define EVENTS_A_PACKET ((PACKET - sizeof(struct ht_packet)) / 12)

typedef struct Hang {
    QHt *h;
    /*
     * the device with which the test started, if another device has replaced
     * it in @h; else NULL
     */
    QHt *first;
    QHtStream s;
    uint32_t id;
    QHtFifo *fifo;
    char *props;
} Hang;

static const char *log_text(Hang *g)
{
    qht_fifo_hang(g->fifo);
    return g->fifo->text->str;
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (; (text = strstr(text, what)); text++) {
        n++;
    }
    return n;
}

static void setup(Hang *g, const char *channel)
{
    g_autofree char *backend = NULL;

    memset(g, 0, sizeof(*g));
    g->props = g_strdup_printf("channel=%s,streams=2,packet-size=%u,"
                               "packets=%u,backlog=1M", channel, PACKET,
                               PACKETS);
    g->fifo = qht_fifo_new();
    backend = g_strdup_printf("log,file=%s", g->fifo->path);
    g->h = qht_boot("pc", backend, g->props, NULL);
    g->id = qht_register_number(g->h, "number");
    qht_stream_open(&g->s, g->h, 0);
    g->s.late = true;
}

static void teardown(Hang *g)
{
    qht_quit(g->h);
    qht_fifo_free(g->fifo);
    g_free(g->props);
}

/*
 * Emit @n events, 40 or fewer with each commit.  With virtio, each commit takes
 * an entry of the virtqueue, and the entries must suffice for a full ring.
 */
static void emit(Hang *g, unsigned n)
{
    for (; n; n--) {
        qht_write_number(&g->s, g->id, g->s.events);
        if (n % 40 == 1) {
            qht_commit(&g->s);
        }
    }
}

/*
 * Emit enough events to fill the FIFO, so that the backend hangs. The ring
 * has room for all of these events, so none is lost.
 */
static void hang(Hang *g)
{
    emit(g, (PACKETS - 1) * EVENTS_A_PACKET);
    /*
     * An event's text has about 60 bytes.  The text of all events has more than
     * 128 KiB, much more than the FIFO can hold.
     */
    g_assert_cmpuint(g->s.events * 60, >, 2 * 65536);
}

static void assert_everything(Hang *g, const char *text)
{
    g_autofree char *last = g_strdup_printf(" number n=%" PRIu64 "\n",
                                            g->s.events - 1);

    g_assert_cmpuint(count(text, " number n="), ==, g->s.events);
    g_assert_nonnull(strstr(text, last));
}

/* Unplug the device; returns the time that QEMU needed, in us */
static gint64 unplug(QHt *h)
{
    gint64 begin = g_get_monotonic_time();

    qht_unplug(h);
    return g_get_monotonic_time() - begin;
}

/* Plug in the device "x" and use it instead of the first one */
static void replace(Hang *g, const void *channel, const char *backend)
{
    qtest_qmp_device_add(g->h->qts, "hypertrace", "x",
                         "{'backend': %s, 'addr': '5', 'channel': %s,"
                         " 'streams': 2, 'packet-size': %u, 'packets': %u,"
                         " 'backlog': 1048576}", backend,
                         (const char *)channel, PACKET, PACKETS);
    g->first = g->h;
    g->h = qht_attach(g->first, "x", 5);
    g->id = qht_register_number(g->h, "number");
    qht_stream_open(&g->s, g->h, 0);
    g->s.late = true;
}

static void test_unplug(const void *channel)
{
    gint64 took;
    Hang g;

    setup(&g, channel);
    hang(&g);
    took = unplug(g.h);
    g_assert_cmpint(took, <, LIMIT_US);
    /* A thread still uses the backend, so QEMU must refuse to delete it. */
    qht_wait_deleted(g.h);
    g_assert_false(qht_object_del(g.h->qts, "be"));
    qht_fifo_go_on(g.fifo);
    QHT_WAIT(qht_object_del(g.h->qts, "be"));
    assert_everything(&g, log_text(&g));
    g_assert_nonnull(strstr(g.fifo->text->str, "closed, 0 events discarded\n"));
    qht_stream_forget(&g.s);
    teardown(&g);
}

/*
 * After a device is unplugged while its backend hangs, another device can have
 * its name and its backend.
 */
static void test_replug(const void *channel)
{
    unsigned i;
    Hang g;

    setup(&g, channel);
    hang(&g);
    unplug(g.h);
    qht_stream_forget(&g.s);
    qht_wait_deleted(g.h);
    for (i = 0; i < 2; i++) {
        QHtStream s;
        QHt *x;

        qtest_qmp_device_add(g.h->qts, "hypertrace", "x",
                             "{'backend': 'be', 'addr': '5', 'name': 'ht',"
                             " 'channel': %s}", (const char *)channel);
        x = qht_attach(g.h, "x", 5);
        if (i == 1) {
            qht_fifo_go_on(g.fifo);
        }
        qht_stream_open(&s, x, 0);
        qht_write_number(&s, qht_register_number(x, "number"), 4711 + i);
        qht_commit(&s);
        qht_stream_close(&s);
        g_assert_cmpint(unplug(x), <, LIMIT_US);
        qht_wait_deleted(x);
        qht_quit(x);
    }
    QHT_WAIT(qht_object_del(g.h->qts, "be"));
    log_text(&g);
    g_assert_cmpuint(count(g.fifo->text->str, " number n=4711\n"), ==, 1);
    g_assert_cmpuint(count(g.fifo->text->str, " number n=4712\n"), ==, 1);
    teardown(&g);
}

/*
 * Flush, close, stop and migration do not wait for a backend that hangs. When
 * the backend continues, it records all events, because they fit into the
 * backlog.
 */
static void test_no_wait(const void *channel)
{
    char *file = qht_temporary();
    QHtStream other;
    QHtTarget *t;
    Hang g;

    setup(&g, channel);
    qht_stream_open(&other, g.h, 1);
    hang(&g);
    qht_stream_flush(&g.s);
    qht_stream_close(&other);
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'stop'}");
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'cont'}");
    emit(&g, 100);
    g_assert_true(qht_save(g.h, file));
    qht_fifo_go_on(g.fifo);
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'cont'}");
    emit(&g, 100);
    qht_stream_close(&g.s);
    qht_settle(g.h);
    assert_everything(&g, log_text(&g));
    /*
     * Migrate by a socket: in a second migration to a file QEMU leaks memory.
     */
    t = qht_target("pc", "null", g.props, NULL);
    qht_migrate(g.h, t);
    qht_target_free(t);
    qht_unlink(file);
    teardown(&g);
}

/*
 * Promise: hypertrace-drain does not wait.  The QMP event HYPERTRACE_DRAINED
 * follows when the backends have taken the trace events that were posted before
 * the command.  If the device is unplugged while a backend hangs, the QMP event
 * for a pending request says "complete": false.
 */
static void test_drain(const void *channel)
{
    uint64_t first, second, other;
    QDict *rsp;
    Hang g;

    setup(&g, channel);
    g_assert_true(qht_wait_drained(g.h, qht_drain(g.h)));
    hang(&g);
    qht_stream_flush(&g.s);
    first = qht_drain(g.h);
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'query-status'}");
    second = qht_drain(g.h);
    g_assert_cmpuint(second, !=, first);
    g_assert_null(qtest_qmp_event_ref(g.h->qts, "HYPERTRACE_DRAINED"));
    rsp = qtest_qmp(g.h->qts, "{'execute': 'hypertrace-drain', 'arguments':"
                    " {'object': 'be'}}");
    g_assert_cmpstr(qdict_get_str(qdict_get_qdict(rsp, "error"), "desc"), ==,
                    "'be' is not the id or QOM path of a hypertrace device");
    qobject_unref(rsp);
    qht_fifo_go_on(g.fifo);
    g_assert_true(qht_wait_drained(g.h, first));
    g_assert_true(qht_wait_drained(g.h, second));
    assert_everything(&g, log_text(&g));

    hang(&g);
    qht_stream_flush(&g.s);
    other = qht_drain(g.h);
    qht_stream_forget(&g.s);
    unplug(g.h);
    g_assert_false(qht_wait_drained(g.h, other));
    qht_wait_deleted(g.h);
    qht_fifo_go_on(g.fifo);
    QHT_WAIT(qht_object_del(g.h->qts, "be"));
    teardown(&g);
}

/*
 * At most 64 requests of hypertrace-drain can be pending in a QEMU: the next
 * request fails, and the monitor still works.
 */
static void test_drain_many(const void *channel)
{
    unsigned n = 0;
    QDict *rsp;
    Hang g;

    setup(&g, channel);
    hang(&g);
    qht_stream_flush(&g.s);
    for (;;) {
        rsp = qtest_qmp(g.h->qts, "{'execute': 'hypertrace-drain',"
                        " 'arguments': {'object': 'ht'}}");
        if (qdict_haskey(rsp, "error")) {
            break;
        }
        n++;
        qobject_unref(rsp);
    }
    qobject_unref(rsp);
    g_assert_cmpuint(n, ==, 64);
    qht_fifo_go_on(g.fifo);
    while (n--) {
        rsp = qtest_qmp_eventwait_ref(g.h->qts, "HYPERTRACE_DRAINED");
        qobject_unref(rsp);
    }
    g_assert_true(qht_wait_drained(g.h, qht_drain(g.h)));
    qht_stream_close(&g.s);
    teardown(&g);
}

static uint64_t resident(Hang *g)
{
    g_autofree char *file = g_strdup_printf("/proc/%d/statm",
                                            (int)qtest_pid(g->h->qts));
    g_autofree char *text = NULL;
    unsigned long pages;

    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_assert_cmpint(sscanf(text, "%*u %lu", &pages), ==, 1);
    return pages * 4096ull;
}

/*
 * While a backend hangs, its sink discards events over its budget, and QEMU's
 * memory grows by less than 8 MiB. After the backend has continued, its trace
 * has the count of discarded events. Another backend of the device gets all
 * events.
 */
static void test_budget(const void *channel)
{
    const unsigned rounds = 120;
    uint64_t discarded, before;
    g_autofree char *what = NULL;
    unsigned i;
    Hang g;

    setup(&g, channel);
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'object-add', 'arguments':"
                             " {'qom-type': 'hypertrace-backend-null',"
                             " 'id': 'other'}}");
    qht_stream_close(&g.s);
    unplug(g.h);
    qht_wait_deleted(g.h);
    replace(&g, channel, "be:other");
    hang(&g);
    before = resident(&g);
    for (i = 0; i < rounds; i++) {
        emit(&g, (PACKETS / 2) * EVENTS_A_PACKET);
        qht_stream_flush(&g.s);
    }
    if (!g.h->control) {
        /*
         * Do not check this with virtio: the guest uses more and more of its
         * RAM for buffers, so QEMU's memory grows.
         */
        g_assert_cmpuint(resident(&g), <, before + 8 * 1024 * 1024);
    }
    g_assert_cmpuint(qht_stat(g.h, "events"), ==, g.s.events);
    g_assert_cmpuint(qht_stat(g.h, "dropped"), ==, 0);
    g_assert_cmpuint(qht_backend_stat(g.h, 1, "events"), ==, g.s.events);
    g_assert_cmpuint(qht_backend_stat(g.h, 1, "discarded"), ==, 0);
    discarded = qht_backend_stat(g.h, 0, "discarded");
    g_assert_cmpuint(discarded, >, 0);
    g_assert_cmpuint(qht_backend_stat(g.h, 0, "events") + discarded, ==,
                     g.s.events);
    qht_fifo_go_on(g.fifo);
    qht_settle(g.h);
    discarded = qht_backend_stat(g.h, 0, "discarded");
    qht_stream_close(&g.s);
    qht_settle(g.h);
    log_text(&g);
    what = g_strdup_printf("closed, %" PRIu64 " events discarded\n", discarded);
    g_assert_nonnull(strstr(g.fifo->text->str, what));
    g_assert_cmpuint(count(g.fifo->text->str, " number n=") + discarded, ==,
                     g.s.events);
    qht_quit(g.h);
    g.h = g.first;
    teardown(&g);
}

/*
 * Promise for virtio: a reset by the driver consumes the buffers on the queues,
 * although no backend has room.  The counters of a backend have each event as
 * queued or as discarded.
 */
static void test_reset(const void *channel)
{
    uint64_t emitted;
    Hang g;

    setup(&g, channel);
    hang(&g);
    do {
        emit(&g, 2 * EVENTS_A_PACKET);
        qht_stream_flush(&g.s);
        /* reuse the descriptors, which must suffice for the last emit */
        qht_queue_wait(g.h, g.h->data[0]);
    } while (!qht_backend_stat(g.h, 0, "discarded"));
    emit(&g, 2 * EVENTS_A_PACKET);
    qht_commit(&g.s);
    emitted = g.s.events;
    g_assert_cmpuint(qht_stat(g.h, "events"), <, emitted);
    qht_stream_forget(&g.s);
    qht_restart(g.h);
    g_assert_cmpuint(qht_stat(g.h, "events"), ==, emitted);
    g_assert_cmpuint(qht_backend_stat(g.h, 0, "events") +
                     qht_backend_stat(g.h, 0, "discarded"), ==, emitted);
    qht_fifo_go_on(g.fifo);
    teardown(&g);
}

/*
 * QEMU ends in time although the backend of many devices hangs.  With 14
 * devices (all channels but virtio), QEMU would need longer than LIMIT_US if it
 * waited 5 s for each device in turn.
 */
static void test_quit(const void *channel)
{
    QHt *more[13];
    unsigned i, n;
    gint64 begin;
    Hang g;

    setup(&g, channel);
    hang(&g);
    qht_stream_forget(&g.s);
    /* With virtio, add one device only: setting up virtqueues is slow. */
    n = g.h->control ? 1 : G_N_ELEMENTS(more);
    for (i = 0; i < n; i++) {
        g_autofree char *id = g_strdup_printf("x%u", i);
        g_autofree char *slot = g_strdup_printf("%x", 5 + i);
        QHtStream s;

        qtest_qmp_device_add(g.h->qts, "hypertrace", id,
                             "{'backend': 'be', 'addr': %s, 'channel': %s}",
                             slot, (const char *)channel);
        more[i] = qht_attach(g.h, id, 5 + i);
        qht_stream_open(&s, more[i], 0);
        qht_stream_forget(&s);
    }
    for (i = 0; i < n; i++) {
        qht_quit(more[i]);
    }
    /* a pending drain request does not delay QEMU's end */
    qht_drain(g.h);
    begin = g_get_monotonic_time();
    teardown(&g);
    g_assert_cmpint(g_get_monotonic_time() - begin, <, LIMIT_US);
}

/*
 * Return the channels of a test in which QEMU waits its 5 s for a backend that
 * hangs: all channels in a long run, only @channel in a short run, because the
 * wait does not depend on the channel. For each channel, at least one test
 * unplugs a device while its backend hangs.
 */
static unsigned waits(unsigned channel)
{
    return qht_long() ? QHT_CHANNELS : channel;
}

int main(int argc, char **argv)
{
    const QHtTest tests[] = {
        { "unplug", test_unplug, waits(QHT_VIRTIO) },
        { "replug", test_replug, waits(QHT_SHM) },
        { "no-wait", test_no_wait, QHT_CHANNELS },
        { "drain", test_drain, waits(QHT_HYPERCALL) },
        { "drain-many", test_drain_many, QHT_CHANNELS },
        { "budget", test_budget, QHT_CHANNELS },
        { "reset", test_reset, QHT_VIRTIO },
        { "quit", test_quit, waits(QHT_SHM) },
    };

    g_test_init(&argc, &argv, NULL);
    qht_add_tests("hang", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
