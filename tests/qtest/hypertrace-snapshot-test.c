/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test the loading of snapshots, and stream memory in a memdev
 *
 * This program is the guest, whose state loadvm does not restore.  So the test
 * copies and restores the state of the producers.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

static char *props(const void *channel)
{
    return g_strdup_printf("channel=%s,packet-size=4096,packets=4,streams=3,"
                           "flush-ms=1000", (const char *)channel);
}

/* Copy a producer's state, to restore it when a snapshot is loaded */
static QHtStream remember(const QHtStream *s)
{
    QHtStream copy = *s;

    copy.image = g_memdup2(s->image, s->h->caps.packet_size);
    return copy;
}

static void write_all(QHtStream *s, uint32_t id, uint64_t from, uint64_t to)
{
    qht_write_numbers(s, id, from, to);
    qht_commit(s);
    qht_stream_flush(s);
}

/*
 * Return the log of a stream as a text: the numbers in order, "(" for an
 * opening and ")" for a close.
 */
static char *logged(QHt *h, uint32_t stream)
{
    g_autofree char *text = NULL;
    g_autofree char *prefix = g_strdup_printf("ht stream %" PRIu32 " ",
                                              stream);
    g_auto(GStrv) lines = NULL;
    GString *out = g_string_new("");
    unsigned i;

    qht_settle(h);
    g_assert_true(g_file_get_contents(h->log, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (i = 0; lines[i]; i++) {
        const char *p = strstr(lines[i], prefix), *n;

        if (!p) {
            continue;
        }
        n = strstr(p, "number n=");
        g_string_append_printf(out, "%s ", n ? n + strlen("number n=") :
                               strstr(p, "opened") ? "(" : ")");
    }
    return g_string_free(out, false);
}

static uint64_t trace_instance(QHt *h, uint32_t stream)
{
    return qht_stream_stat(h, stream, "trace-instance");
}

/*
 * After loadvm the guest repeats events. The trace has the repeated events in a
 * new instance. The guest can still use its streams and classes, and can open
 * and close streams.
 */
static void test_rewind(const void *channel)
{
    g_autofree char *all = props(channel);
    QHt *h = qht_boot("pc", "log", all, NULL);
    char *disk = qht_add_disk(h->qts);
    uint32_t id = qht_register_number(h, "number"), late;
    uint64_t epoch = h->caps.epoch, seen;
    QHtStream s[3], saved[2];
    unsigned i, round;

    for (i = 0; i < 2; i++) {
        qht_stream_open(&s[i], h, i);
        write_all(&s[i], id, 0, 5);
    }
    qht_snapshot(h->qts, false, "a");
    saved[0] = remember(&s[0]);
    saved[1] = remember(&s[1]);
    /*
     * loadvm sets the guest back to the time before these events; the trace
     * must keep the events.
     */
    write_all(&s[0], id, 5, 9);
    qht_stream_close(&s[1]);
    qht_stream_open(&s[2], h, 2);
    write_all(&s[2], id, 0, 3);
    late = qht_register_number(h, "late");
    seen = s[2].instance;

    for (round = 0; round < 3; round++) {
        qht_stream_forget(&s[0]);
        qht_stream_forget(&s[2]);
        qht_snapshot(h->qts, true, "a");
        s[0] = remember(&saved[0]);
        s[1] = remember(&saved[1]);
        /*
         * loadvm has restored the virtqueues of the snapshot: set them up
         * again.
         */
        qht_restart(h);
        g_assert_cmpuint(h->caps.epoch, ==, epoch);
        QHT_WAIT(qht_stream_flag(h, 0, "open"));
        g_assert_cmpuint(qht_stream_stat(h, 0, "events"), ==, 5);
        g_assert_cmpuint(qht_stat(h, "events"), ==, 10);
        for (i = 0; i < 2; i++) {
            g_assert_cmpuint(qht_stream_stat(h, i, "instance"), ==,
                             s[i].instance);
            g_assert_cmpuint(trace_instance(h, i), >, seen);
        }
        seen = MAX(trace_instance(h, 0), trace_instance(h, 1));
        write_all(&s[0], id, 5, 7);
        write_all(&s[1], id, 5, 6);
        qht_stream_close(&s[1]);
        g_assert_cmpuint(qht_register_number(h, "number"), ==, id);
        g_assert_cmpuint(qht_register_number(h, "late"), ==, late);
        qht_stream_open(&s[2], h, 2);
        g_assert_cmpuint(s[2].instance, >, seen);
        seen = s[2].instance;
        write_all(&s[2], late, 0, 1);
    }
    qht_stream_close(&s[0]);
    {
        g_autofree char *a = logged(h, 0), *b = logged(h, 1);

        g_assert_cmpstr(a, ==, "( 0 1 2 3 4 5 6 7 8 ) ( 5 6 ) ( 5 6 ) ( 5 6"
                        " ) ");
        g_assert_cmpstr(b, ==, "( 0 1 2 3 4 ) ( 5 ) ( 5 ) ( 5 ) ");
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    for (i = 0; i < 2; i++) {
        qht_stream_forget(&saved[i]);
    }
    qht_stream_close(&s[2]);
    qht_unlink(disk);
    qht_quit(h);
}

/*
 * Save and load snapshots while committed events are not consumed yet: the
 * trace has each event once.
 */
static void test_waiting(const void *channel)
{
    g_autofree char *all = props(channel);
    g_autofree char *text = NULL;
    QHt *h = qht_boot("pc", "log", all, NULL);
    char *disk = qht_add_disk(h->qts);
    uint32_t id = qht_register_number(h, "number");
    unsigned i;
    QHtStream s;

    qht_stream_open(&s, h, 0);
    write_all(&s, id, 0, 5);
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    qht_snapshot(h->qts, false, "a");
    qht_snapshot(h->qts, true, "a");
    qht_write_numbers(&s, id, 5, 9);
    qht_commit(&s);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 5);
    qht_snapshot(h->qts, false, "b");
    for (i = 0; i < 2; i++) {
        qht_snapshot(h->qts, true, "b");
    }
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
    write_all(&s, id, 9, 12);
    qht_stream_close(&s);
    text = logged(h, 0);
    g_assert_cmpstr(text, ==, "( 0 1 2 3 4 ) ( 5 6 7 8 9 10 11 ) ");
    g_assert_cmpuint(qht_stat(h, "events"), ==, 12);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_unlink(disk);
    qht_quit(h);
}

/* On savevm, the device consumes the events that were committed before. */
static void test_untaken(const void *channel)
{
    g_autofree char *all = props(channel);
    QHt *h = qht_boot("pc", "log", all, NULL);
    char *disk = qht_add_disk(h->qts);
    uint32_t id = qht_register_number(h, "number");
    QHtStream s, saved;

    qht_stream_open(&s, h, 0);
    qht_write_numbers(&s, id, 0, 5);
    qht_snapshot(h->qts, false, "a");
    g_assert_cmpuint(qht_stat(h, "events"), ==, 5);
    saved = remember(&s);
    write_all(&s, id, 5, 7);
    qht_stream_forget(&s);
    qht_snapshot(h->qts, true, "a");
    s = saved;
    write_all(&s, id, 5, 8);
    qht_stream_close(&s);
    {
        g_autofree char *a = logged(h, 0);

        g_assert_cmpstr(a, ==, "( 0 1 2 3 4 5 6 ) ( 5 6 7 ) ");
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_unlink(disk);
    qht_quit(h);
}

/* Migration works if source and target have stream memory in files. */
static void test_memdev(const void *channel)
{
    g_autofree char *all = g_strdup_printf(
        "channel=%s,packet-size=4096,packets=4,streams=3,memdev=m",
        (const char *)channel);
    const char *format = "-object memory-backend-file,id=m,share=on,size=2M,"
                         "mem-path=%s";
    char *rings[] = { qht_temporary(), qht_temporary() };
    g_autofree char *here = g_strdup_printf(format, rings[0]);
    g_autofree char *there = g_strdup_printf(format, rings[1]);
    QHt *h = qht_boot("pc", "log", all, here);
    uint32_t id = qht_register_number(h, "number");
    QHtTarget *t = qht_target("pc", "log", all, there);
    QHtStream s;
    char *log;
    unsigned i;

    qht_stream_open(&s, h, 1);
    qht_write_numbers(&s, id, 0, 400);
    qht_migrate(h, t);
    log = qht_move(h, t, true);
    qht_target_free(t);
    for (i = 400; i < 2400; i += 100) {
        write_all(&s, id, i, i + 100);
    }
    qht_stream_close(&s);
    qht_assert_numbers(log, 1, 0, 400);
    qht_settle(h);
    qht_assert_numbers(h->log, 1, 400, 2400);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_unlink(log);
    qht_unlink(rings[0]);
    qht_unlink(rings[1]);
    qht_quit(h);
}

/* A device that was replaced under the same id can be migrated. */
static void test_replugged(const void *channel)
{
    g_autofree char *all = props(channel);
    QHt *h = qht_boot("pc", "log", all, NULL);
    uint32_t id = qht_register_number(h, "number");
    QHtTarget *t;
    QHtStream s;
    unsigned i;

    for (i = 0; i < 5; i++) {
        qtest_qmp_device_del_send(h->qts, "ht");
        /* A reset completes the unplug; a guest would eject the device. */
        qtest_system_reset(h->qts);
        qht_wait_deleted(h);
        qtest_qmp_assert_success(h->qts, "{'execute': 'device_add',"
                                 " 'arguments': {'driver': 'hypertrace',"
                                 "  'id': 'ht', 'addr': '4', 'backend': 'be',"
                                 "  'channel': %s, 'packet-size': 4096,"
                                 "  'packets': 4, 'streams': 3,"
                                 "  'flush-ms': 1000}}",
                                 (const char *)channel);
    }
    qht_restart(h);
    g_assert_cmpuint(qht_register_number(h, "number"), ==, id);
    qht_stream_open(&s, h, 0);
    write_all(&s, id, 0, 10);
    t = qht_target("pc", "log", all, NULL);
    qht_migrate(h, t);
    qht_unlink(qht_move(h, t, true));
    qht_target_free(t);
    write_all(&s, id, 10, 400);
    qht_stream_close(&s);
    qht_settle(h);
    qht_assert_numbers(h->log, 0, 10, 400);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "rewind", test_rewind, QHT_CHANNELS },
        { "waiting", test_waiting, QHT_CHANNELS },
        { "untaken", test_untaken, QHT_RINGS },
        { "memdev", test_memdev, QHT_RINGS },
        { "replugged", test_replugged, QHT_CHANNELS },
    };

    g_test_init(&argc, &argv, NULL);
    qht_add_tests("snapshot", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
