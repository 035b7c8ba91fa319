/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a backend that hangs
 *
 * The log goes to a pipe, which nobody reads until the test says so: the
 * thread that writes the log is in write() meanwhile, and comes back after.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

/* What a wait for a hanging backend may take; see PATIENCE_NS */
#define PATIENCE_US (5 * G_USEC_PER_SEC)
#define LIMIT_US (20 * G_USEC_PER_SEC)

#define PACKET 4096u
#define PACKETS 8u

typedef struct Hang {
    QHt *h;
    QHtStream s;
    uint32_t id;
    char *dir;
    char *fifo;
    int fd;
    GString *text;              /* of the log, once it is read */
    bool reading;
    GThread *reader;
    char *props;
} Hang;

static void *read_log(void *opaque)
{
    Hang *g = opaque;
    char buf[4096];
    bool last;
    ssize_t n;

    /* what was there when told to end is read first */
    for (last = false; ; ) {
        n = read(g->fd, buf, sizeof(buf));
        if (n > 0) {
            g_string_append_len(g->text, buf, n);
        } else if (last) {
            return NULL;
        } else {
            last = !qatomic_read(&g->reading);
            g_usleep(1000);
        }
    }
}

/* The backend goes on, and everything that was written is read. */
static void go_on(Hang *g)
{
    g->reading = true;
    g->reader = g_thread_new("reader", read_log, g);
}

static const char *log_text(Hang *g)
{
    qatomic_set(&g->reading, false);
    g_thread_join(g->reader);
    return g->text->str;
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
                               "packets=%u", channel, PACKET, PACKETS);
    g->dir = g_dir_make_tmp("hypertrace-hang-XXXXXX", NULL);
    g_assert_nonnull(g->dir);
    g->fifo = g_strdup_printf("%s/log", g->dir);
    g->text = g_string_new(NULL);
    g_assert_cmpint(mkfifo(g->fifo, 0600), ==, 0);
    g->fd = open(g->fifo, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    g_assert_cmpint(g->fd, >=, 0);
    g_assert_cmpint(fcntl(g->fd, F_SETPIPE_SZ, 4096), >=, 0);

    backend = g_strdup_printf("log,file=%s", g->fifo);
    g->h = qht_boot("pc", backend, g->props, NULL);
    g->id = qht_register_number(g->h, "number");
    qht_stream_open(&g->s, g->h, 0);
}

static void teardown(Hang *g)
{
    qht_quit(g->h);
    close(g->fd);
    unlink(g->fifo);
    rmdir(g->dir);
    g_string_free(g->text, true);
    g_free(g->fifo);
    g_free(g->props);
    g_free(g->dir);
}

/* Told of so rarely that a virtqueue takes a ring's worth */
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
 * Emit until the backend hangs, then what fits a ring.  Neither stalls the
 * guest.
 */
static void hang(Hang *g)
{
    const unsigned events_a_packet = (PACKET - sizeof(struct ht_packet)) / 12;

    emit(g, (PACKETS - 1) * events_a_packet);
    /* all of it is text of some 60 bytes each: more than the pipe takes */
    g_assert_cmpuint(g->s.events * 60, >, 2 * 65536);
}

static void assert_everything(Hang *g, const char *text)
{
    g_autofree char *last = g_strdup_printf(" number n=%" PRIu64 "\n",
                                            g->s.events - 1);

    g_assert_cmpuint(count(text, " number n="), ==, g->s.events);
    g_assert_nonnull(strstr(text, last));
}

static bool exists(Hang *g, const char *path)
{
    QDict *rsp = qtest_qmp(g->h->qts, "{'execute': 'qom-list', 'arguments':"
                           " {'path': %s}}", path);
    bool found = qdict_haskey(rsp, "return");

    qobject_unref(rsp);
    return found;
}

/*
 * The device leaves the guest.  That it is deleted is said when its objects
 * can be, too.  Returns how long QEMU was busy with it.
 */
static gint64 unplug(Hang *g, const char *id, unsigned slot)
{
    g_autofree char *path = g_strdup_printf("/machine/peripheral/%s", id);
    gint64 begin = g_get_monotonic_time();

    qtest_qmp_device_del_send(g->h->qts, id);
    qtest_outl(g->h->qts, 0xae08, 1u << slot);
    g_assert_false(exists(g, path));
    return g_get_monotonic_time() - begin;
}

static void assert_object_del(Hang *g, const char *why_not)
{
    QDict *rsp = qtest_qmp(g->h->qts, "{'execute': 'object-del',"
                           " 'arguments': {'id': 'be'}}");

    if (why_not) {
        g_assert_nonnull(strstr(qdict_get_str(qdict_get_qdict(rsp, "error"),
                                              "desc"), why_not));
    } else {
        g_assert_true(qdict_haskey(rsp, "return"));
    }
    qobject_unref(rsp);
}

static void test_unplug(const void *channel)
{
    gint64 took;
    Hang g;

    setup(&g, channel);
    hang(&g);
    took = unplug(&g, "ht", QHT_SLOT);
    g_assert_cmpint(took, >=, PATIENCE_US - G_USEC_PER_SEC);
    g_assert_cmpint(took, <, LIMIT_US);
    /* nothing that the thread in the backend uses goes away under it */
    assert_object_del(&g, "in use");
    go_on(&g);
    qht_wait_deleted(g.h);
    assert_object_del(&g, NULL);
    assert_everything(&g, log_text(&g));
    g_assert_nonnull(strstr(g.text->str, "closed, 0 events discarded\n"));
    qht_stream_forget(&g.s);
    teardown(&g);
}

/* The name, the backend and an IOThread that hangs are used again. */
static void test_replug(void)
{
    static const char args[] =
        "{'backend': 'be', 'addr': '5', 'name': 'ht', 'channel': 'shm',"
        " 'iothread': 'io'}";
    unsigned i;
    QDict *rsp;
    Hang g;

    setup(&g, "shm");
    rsp = qtest_qmp(g.h->qts, "{'execute': 'object-add', 'arguments':"
                    " {'qom-type': 'iothread', 'id': 'io'}}");
    g_assert_true(qdict_haskey(rsp, "return"));
    qobject_unref(rsp);
    hang(&g);
    unplug(&g, "ht", QHT_SLOT);
    qht_stream_forget(&g.s);
    for (i = 0; i < 2; i++) {
        QHtStream s;
        QHt *x;

        qtest_qmp_device_add(g.h->qts, "hypertrace", "x", args);
        x = qht_attach(g.h, "x", 5);
        if (i == 1) {
            go_on(&g);
            qht_stream_open(&s, x, 0);
            qht_write_number(&s, qht_register_number(x, "number"), 4711);
            qht_stream_close(&s);
        } else {
            struct ht_msg_open m = { .stream = cpu_to_le32(HT_STREAM_ANY) };

            /* opening asks the backend, which hangs */
            stw_le_p(&m.h.type, HT_MSG_STREAM_OPEN);
            stl_le_p(&m.h.size, sizeof(m));
            g_assert_cmpuint(qht_exchange(x, &m, sizeof(m)), ==,
                             HT_STATUS_BUSY);
        }
        qht_quit(x);
        g_assert_cmpint(unplug(&g, "x", 5), <, LIMIT_US);
    }
    /* "ht", and "x" twice */
    for (i = 0; i < 3; i++) {
        qht_wait_deleted(g.h);
    }
    assert_object_del(&g, NULL);
    g_assert_cmpuint(count(log_text(&g), " number n=4711\n"), ==, 1);
    teardown(&g);
}

/*
 * Stopped, the VM can be continued; nothing is lost.  What the backend has not
 * taken would be if the VM were saved.
 */
static void test_stop(const void *channel)
{
    char *file = qht_temporary();
    gint64 begin, took;
    QHtTarget *t;
    Hang g;

    setup(&g, channel);
    hang(&g);
    begin = g_get_monotonic_time();
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'stop'}");
    took = g_get_monotonic_time() - begin;
    g_assert_cmpint(took, >=, PATIENCE_US - G_USEC_PER_SEC);
    g_assert_cmpint(took, <, LIMIT_US);
    /* known to hang: not waited for again */
    begin = g_get_monotonic_time();
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'cont'}");
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'stop'}");
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'cont'}");
    g_assert_cmpint(g_get_monotonic_time() - begin, <, PATIENCE_US / 2);
    begin = g_get_monotonic_time();
    g_assert_false(qht_save(g.h, file));
    g_assert_cmpint(g_get_monotonic_time() - begin, <, PATIENCE_US);
    go_on(&g);
    emit(&g, 100);
    qht_stream_close(&g.s);
    assert_everything(&g, log_text(&g));
    /* by a socket: QEMU leaks the name of a second file */
    t = qht_target("pc", "null", g.props, NULL);
    qht_migrate(g.h, t);
    qht_target_free(t);
    qht_unlink(file);
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
 * However often the guest has its queue fetched while nothing is consumed, the
 * device has as many copies as the queue is long, beside its pool.
 */
static void test_memory(void)
{
    const uint64_t most = (64 + HT_VQ_SIZE) * PACKET;
    g_autofree uint8_t *packet = g_malloc0(PACKET);
    uint64_t before, after, buffer;
    unsigned i, round;
    QHtStream other;
    Hang g;

    setup(&g, "virtio");
    qht_stream_open(&other, g.h, 1);
    hang(&g);
    buffer = guest_alloc(g.h->alloc, PACKET);
    before = resident(&g);
    for (round = 0; round < 200; round++) {
        QVirtQueue *vq = g.h->data[1];
        struct ht_msg_stream m = {
            .h.type = cpu_to_le16(HT_MSG_STREAM_FLUSH),
            .h.size = cpu_to_le32(sizeof(m)),
            .stream = cpu_to_le32(HT_STREAM_ANY),
        };

        for (i = 0; i < HT_VQ_SIZE / 2 && vq->num_free; i++) {
            qht_queue_kick(g.h, vq, qvirtqueue_add(g.h->qts, vq, buffer,
                                                   PACKET, false, false));
        }
        memcpy(packet, &m, sizeof(m));
        g_assert_cmpuint(qht_exchange(g.h, packet, sizeof(m)), ==,
                         HT_STATUS_BUSY);
        if (qtest_readw(g.h->qts, vq->used + 2) !=
            qtest_readw(g.h->qts, vq->avail + 2)) {
            break;              /* no more is taken */
        }
        qht_queue_wait(g.h, vq);
    }
    g_assert_cmpuint(round, >=, 1);
    g_assert_cmpuint(round, <=, (64 + HT_VQ_SIZE) / (HT_VQ_SIZE / 2));
    after = resident(&g);
    g_assert_cmpuint(after, <, before + most + 4 * 1024 * 1024);
    go_on(&g);
    qht_stream_close(&g.s);
    qht_stream_forget(&other);
    assert_everything(&g, log_text(&g));
    teardown(&g);
}

/* QEMU ends, whatever hangs. */
static void test_quit(const void *channel)
{
    gint64 begin;
    Hang g;

    setup(&g, channel);
    hang(&g);
    qht_stream_forget(&g.s);
    begin = g_get_monotonic_time();
    teardown(&g);
    g_assert_cmpint(g_get_monotonic_time() - begin, <, LIMIT_US);
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "unplug", test_unplug, QHT_CHANNELS },
        { "stop", test_stop, QHT_CHANNELS },
        { "quit", test_quit, QHT_CHANNELS },
    };

    g_test_init(&argc, &argv, NULL);
    qtest_add_func("hypertrace/hang/replug", test_replug);
    qtest_add_func("hypertrace/hang/memory", test_memory);
    qht_add_tests("hang", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
