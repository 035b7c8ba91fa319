/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test that after a migration the traces of source and target form
 * one sequence
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

#define MEMORY (2 * MiB)
#define PROPS "packet-size=4096,packets=4,streams=3,flush-ms=1000"

static char *props(const void *channel, const char *more)
{
    return g_strdup_printf("channel=%s," PROPS "%s", (const char *)channel,
                           more);
}

/*
 * Migrate @h by a file if @by_file, else by a socket, to a new QEMU with
 * @backend; returns the log of the source
 */
static char *move(QHt *h, const char *backend, const char *all,
                  const char *extra, bool by_file)
{
    QHtTarget *t = qht_target("pc", backend, all, extra);
    char *log;

    if (by_file) {
        char *file = qht_temporary();

        g_assert_true(qht_save(h, file));
        g_assert_true(qht_load(t, file));
        qht_unlink(file);
    } else {
        qht_migrate(h, t);
    }
    log = qht_move(h, t, true);
    qht_target_free(t);
    return log;
}

/*
 * Events in open packets, events for which no doorbell was rung, and events of
 * a closed stream: each is in exactly one of the logs of source and target. The
 * target continues the source's statistics, which count each event, and each
 * lost event, once.
 */
static void moves(const char *channel, bool by_file)
{
    g_autofree char *all = props(channel, "");
    QHt *h = qht_boot("pc", "log", all, NULL);
    uint32_t id = qht_register_number(h, "number"), other;
    struct ht_caps caps = h->caps;
    QHtStream s[3];
    char *log;
    unsigned i;

    other = qht_register_number(h, "other");
    for (i = 0; i < 3; i++) {
        qht_stream_open(&s[i], h, i);
    }
    /* the events extend into a second packet */
    qht_write_numbers(&s[0], id, 0, 500);
    s[0].lost = 7;
    if (h->control) {
        qht_commit(&s[0]);
    } else {
        qht_ring_writeq(h, 0, QHT_GUEST(lost), 7);
    }
    qht_write_numbers(&s[1], id, 0, 20);
    qht_close_packet(&s[1]);
    qht_write_numbers(&s[2], id, 0, 5);
    qht_commit(&s[2]);
    qht_stream_close(&s[2]);

    log = move(h, "log", all, NULL, by_file);
    qht_assert_numbers(log, 0, 0, 500);
    qht_assert_numbers(log, 1, 0, 20);
    qht_assert_numbers(log, 2, 0, 5);
    g_assert_cmpuint(qht_log_count(h, "number"), ==, 0);
    qht_unlink(log);

    /* the target has the statistics and the classes of the source */
    g_assert_cmpuint(qht_stat(h, "events"), ==, 525);
    g_assert_cmpuint(qht_stream_stat(h, 1, "events"), ==, 20);
    g_assert_cmpuint(qht_stream_stat(h, 2, "events"), ==, 5);
    g_assert_false(qht_stream_flag(h, 2, "open"));
    g_assert_cmpuint(qht_register_number(h, "other"), ==, other);
    g_assert_cmpuint(qht_register_number(h, "number"), ==, id);
    g_assert_cmpuint(qht_register_number(h, "third"), ==, other + 1);

    qht_write_numbers(&s[0], id, 500, 1200);
    qht_commit(&s[0]);
    qht_write_numbers(&s[1], id, 20, 30);
    qht_commit(&s[1]);
    qht_stream_open(&s[2], h, HT_STREAM_ANY);
    g_assert_cmpuint(s[2].instance, >, 3);
    qht_write_number(&s[2], id, 5);
    qht_commit(&s[2]);
    for (i = 0; i < 3; i++) {
        qht_stream_flush(&s[i]);
        qht_stream_close(&s[i]);
    }
    qht_settle(h);
    qht_assert_numbers(h->log, 0, 500, 1200);
    qht_assert_numbers(h->log, 1, 20, 30);
    qht_assert_numbers(h->log, 2, 5, 6);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 525 + 711);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 7);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    caps.clock_hz = 0;
    qht_restart(h);
    h->caps.clock_hz = 0;
    g_assert_cmpmem(&h->caps, sizeof(caps), &caps, sizeof(caps));
    qht_quit(h);
}

static void test_socket(const void *channel)
{
    moves(channel, false);
}

static void test_file(const void *channel)
{
    moves(channel, true);
}

/* Several migrations in a row, each with committed events to consume */
static void test_chain(const void *channel)
{
    g_autofree char *all = props(channel, "");
    QHt *h = qht_boot("pc", "log", all, NULL);
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;
    unsigned i;

    qht_stream_open(&s, h, 1);
    for (i = 0; i < 4; i++) {
        char *log;

        qht_write_numbers(&s, id, i * 300, i * 300 + 300);
        if (h->control) {
            qht_commit(&s);
        }
        log = move(h, "log", all, NULL, i & 1);
        qht_assert_numbers(log, 1, i * 300, i * 300 + 300);
        qht_unlink(log);
    }
    g_assert_cmpuint(qht_stat(h, "events"), ==, 1200);
    qht_stream_close(&s);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

/*
 * A message DISCARDED reports discarded events without a stream. A count that
 * is not in the source's trace yet migrates to the target.
 */
static void test_discarded(const void *channel)
{
    struct ht_msg_discarded m = { .count = cpu_to_le64(7) };
    g_autofree char *all = props(channel, "");
    QHt *h = qht_boot("pc", "log", all, NULL);
    QHtStream s;

    g_assert_cmpuint(qht_call(h, HT_MSG_DISCARDED, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
    qht_unlink(move(h, "log", all, NULL, true));
    qht_stream_open(&s, h, 0);
    qht_stream_flush(&s);
    m = (struct ht_msg_discarded) { .count = cpu_to_le64(5) };
    g_assert_cmpuint(qht_call(h, HT_MSG_DISCARDED, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
    qht_stream_flush(&s);
    /* The source's trace has all counts, so the target's trace has none. */
    qht_unlink(move(h, "log", all, NULL, true));
    qht_stream_close(&s);
    g_assert_cmpuint(qht_log_count(h, "closed, 0 events discarded"), ==, 1);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 12);
    qht_quit(h);
}

/*
 * Continue the VM, write events with the numbers 10 to 399 to @s, and check
 * that the log of @h has the numbers @from to 399 of this stream
 */
static void go_on(QHt *h, QHtStream *s, uint32_t id, unsigned from)
{
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
    qht_write_numbers(s, id, 10, 400);
    qht_commit(s);
    qht_stream_close(s);
    qht_settle(h);
    qht_assert_numbers(h->log, s->index, from, 400);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 400);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

/*
 * Boot, write 10 events to stream 1 (with virtio, submit them), and stop the VM
 */
static QHt *boot_paused(const char *all, QHtStream *s, uint32_t *id)
{
    QHt *h = qht_boot("pc", "log", all, NULL);

    *id = qht_register_number(h, "number");
    qht_stream_open(s, h, 1);
    qht_write_numbers(s, *id, 0, 10);
    if (h->control) {
        qht_commit(s);
    }
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    return h;
}

/* Migrate a stopped VM by a file; returns the log of the source's backend */
static char *move_paused(QHt *h, const char *all)
{
    QHtTarget *t = qht_target("pc", "log", all, NULL);
    char *file = qht_temporary(), *log;

    g_assert_true(qht_save(h, file));
    g_assert_true(qht_load(t, file));
    qht_unlink(file);
    log = qht_move(h, t, false);
    qht_target_free(t);
    return log;
}

/* A VM that is loaded is migrated again before it runs, and loses no event. */
static void test_paused(const void *channel)
{
    g_autofree char *all = props(channel, "");
    uint32_t id;
    QHtStream s;
    QHt *h = boot_paused(all, &s, &id);
    unsigned i;

    for (i = 0; i < 3; i++) {
        char *log = move_paused(h, all);

        /* only the first QEMU ran, so only its log has events */
        qht_assert_numbers(log, 1, 0, i == 0 ? 10 : 0);
        g_assert_cmpuint(qht_file_count(log, "opened"), ==, i == 0);
        qht_unlink(log);
        g_assert_cmpuint(qht_stat(h, "events"), ==, 10);
    }
    go_on(h, &s, id, 10);
}

/* After a migration to a file, the source continues and loses no event. */
static void test_continued(const void *channel)
{
    g_autofree char *all = props(channel, "");
    QHt *h = qht_boot("pc", "log", all, NULL);
    uint32_t id = qht_register_number(h, "number");
    char *file = qht_temporary();
    QHtStream s;

    qht_stream_open(&s, h, 0);
    qht_write_numbers(&s, id, 0, 10);
    g_assert_true(qht_save(h, file));
    qht_unlink(file);
    go_on(h, &s, id, 0);
}

/*
 * A reset of a VM that was loaded and has not run yet loses no event. A ring
 * survives the reset. It is consumed when the VM runs, on this target of a
 * migration or on a later target. Virtqueues do not survive the reset, so the
 * reset consumes their buffers at once.
 */
static void reset_loaded(const void *channel, unsigned until)
{
    g_autofree char *all = props(channel, "");
    uint32_t id;
    QHtStream s;
    QHt *h = boot_paused(all, &s, &id);
    QHtTarget *t;
    char *log;

    qht_unlink(move_paused(h, all));
    qht_write_numbers(&s, id, 10, until);
    if (h->control && until > 10) {
        qht_commit(&s);
    }
    g_assert_cmpuint(qht_stat(h, "events"), ==, 10);
    qtest_system_reset(h->qts);
    g_assert_cmpuint(qht_stat(h, "events"), ==, h->control ? until : 10);
    log = move_paused(h, all);
    g_assert_cmpuint(qht_file_count(log, "closed"), ==, h->control ? 1 : 0);
    qht_assert_numbers(log, 1, 10, h->control ? until : 10);
    qht_unlink(log);
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
    if (!h->control) {
        QHT_WAIT(qht_log_count(h, "closed") == 1);
        qht_assert_numbers(h->log, 1, 10, until);
    }
    g_assert_cmpuint(qht_stat(h, "events"), ==, until);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    /*
     * Migrate by a socket: in a second migration to a file QEMU leaks memory.
     */
    t = qht_target("pc", "log", all, NULL);
    qht_migrate(h, t);
    qht_unlink(qht_move(h, t, true));
    qht_target_free(t);
    qht_stream_forget(&s);
    qht_quit(h);
}

static void test_reset_loaded(const void *channel)
{
    reset_loaded(channel, 10);
    reset_loaded(channel, 100);
}

/*
 * If a device is unplugged after its state was loaded and before the VM runs,
 * QEMU warns that events of its streams are not recorded.
 */
static void test_unplug_loaded(const void *channel)
{
    g_autofree char *all = props(channel, "");
    g_autofree char *messages = NULL;
    uint32_t id;
    QHtStream s;
    QHt *h = boot_paused(all, &s, &id);
    QHtTarget *t = qht_target("pc", "log", all, NULL);
    char *file = qht_temporary();

    g_assert_true(qht_save(h, file));
    g_assert_true(qht_load(t, file));
    qht_unlink(qht_move(h, t, false));
    qht_unplug(h);
    qht_wait_deleted(h);
    g_assert_true(g_file_get_contents(t->messages, &messages, NULL, NULL));
    g_assert_nonnull(strstr(messages, "their events are not recorded"));
    qht_unlink(file);
    qht_target_free(t);
    qht_stream_forget(&s);
    qht_quit(h);
}

/* A stream that was stopped as corrupt is also stopped on the target. */
static void test_stopped(const void *channel)
{
    g_autofree char *all = props(channel, "");
    QHt *h = qht_boot("pc", "log", all, NULL);
    uint32_t id = qht_register_number(h, "number");
    struct ht_msg_stream m = { .stream = 0 };
    QHtStream s[2];
    unsigned i;

    for (i = 0; i < 2; i++) {
        qht_stream_open(&s[i], h, i);
        qht_write_numbers(&s[i], id, 0, 10);
    }
    qht_write_number(&s[0], 77, 0);
    for (i = 0; i < 2; i++) {
        qht_commit(&s[i]);
    }
    QHT_WAIT(qht_stream_flag(h, 0, "stopped"));
    qht_unlink(move(h, "log", all, NULL, true));
    g_assert_true(qht_stream_flag(h, 0, "stopped"));
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 1);
    if (!h->control) {
        QHT_WAIT(qht_ring_state(h, 0) == HT_STREAM_STOPPED);
    }
    m.instance = cpu_to_le64(s[0].instance);
    g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_FLUSH, &m, sizeof(m)), ==,
                     HT_STATUS_STOPPED);
    qht_write_numbers(&s[1], id, 10, 20);
    qht_commit(&s[1]);
    qht_stream_close(&s[0]);
    qht_stream_close(&s[1]);
    qht_settle(h);
    qht_assert_numbers(h->log, 0, 0, 0);
    qht_assert_numbers(h->log, 1, 10, 20);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 1);
    qht_quit(h);
}

/* After a migration, a reset ends the streams; the guest can start again. */
static void test_reset(const void *channel)
{
    g_autofree char *all = props(channel, "");
    QHt *h = qht_boot("pc", "log", all, NULL);
    uint32_t id = qht_register_number(h, "number");
    uint64_t epoch = h->caps.epoch;
    QHtStream s[2];
    unsigned i;

    for (i = 0; i < 2; i++) {
        qht_stream_open(&s[i], h, i);
        qht_write_numbers(&s[i], id, 0, 10);
    }
    qht_unlink(move(h, "log", all, NULL, false));
    for (i = 0; i < 2; i++) {
        qht_write_numbers(&s[i], id, 10, 20);
        if (h->control) {
            qht_commit(&s[i]);
        }
    }
    qtest_system_reset(h->qts);
    for (i = 0; i < 2; i++) {
        QHT_WAIT(!qht_stream_flag(h, i, "open"));
        qht_settle(h);
        qht_assert_numbers(h->log, i, h->control ? 0 : 10, 20);
        qht_stream_forget(&s[i]);
    }
    g_assert_cmpuint(qht_log_count(h, "closed"), ==, 2);
    qht_restart(h);
    g_assert_cmpuint(h->caps.epoch, >, epoch);
    g_assert_cmpuint(qht_register_number(h, "number"), ==, id);
    qht_stream_open(&s[0], h, 0);
    qht_write_numbers(&s[0], id, 20, 30);
    qht_commit(&s[0]);
    qht_stream_close(&s[0]);
    qht_settle(h);
    qht_assert_numbers(h->log, 0, h->control ? 0 : 10, 30);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

/*
 * The target's backend refuses all classes, because its directory was removed.
 * The device still consumes their events, and counts them as discarded for this
 * backend.
 */
static void test_refused(const void *channel)
{
    g_autofree char *dir = g_dir_make_tmp("hypertrace-gone-XXXXXX", NULL);
    g_autofree char *backend = g_strdup_printf("ctf,dir=%s/trace", dir);
    g_autofree char *rm = g_strdup_printf("rm -r %s", dir);
    g_autofree char *all = props(channel, "");
    QHt *h = qht_boot("pc", "null", all, NULL);
    uint32_t id = qht_register_number(h, "number");
    QHtTarget *t = qht_target("pc", backend, all, NULL);
    QHtStream s;

    qht_stream_open(&s, h, 0);
    qht_write_numbers(&s, id, 0, 100);
    qht_commit(&s);
    g_assert_cmpint(system(rm), ==, 0);
    qht_migrate(h, t);
    g_assert_null(qht_move(h, t, true));
    qht_target_free(t);
    qht_write_numbers(&s, id, 100, 400);
    qht_commit(&s);
    qht_stream_flush(&s);
    g_assert_false(qht_stream_flag(h, 0, "stopped"));
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    g_assert_cmpuint(qht_stat(h, "dropped"), ==, 0);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 400);
    qht_stream_close(&s);
    qht_settle(h);
    g_assert_cmpuint(qht_backend_stat(h, 0, "events"), ==, 0);
    g_assert_cmpuint(qht_backend_stat(h, 0, "discarded"), >=, 300);
    qht_quit(h);
}

static char *memory_args(const char *file)
{
    return g_strdup_printf("-object memory-backend-file,id=m,share=on,"
                           "size=%u,mem-path=%s", (unsigned)MEMORY, file);
}

static QDict *query_migrate(QTestState *qts)
{
    return qtest_qmp_assert_success_ref(qts, "{'execute': 'query-migrate'}");
}

static bool running(QTestState *qts)
{
    QDict *rsp = qtest_qmp_assert_success_ref(qts,
                                              "{'execute': 'query-status'}");
    bool is = qdict_get_bool(rsp, "running");

    qobject_unref(rsp);
    return is;
}

static int64_t syncs(QTestState *qts)
{
    QDict *rsp = query_migrate(qts), *ram = qdict_get_qdict(rsp, "ram");
    int64_t n = ram ? qdict_get_int(ram, "dirty-sync-count") : 0;

    qobject_unref(rsp);
    return n;
}

static bool completed(QTestState *qts)
{
    QDict *rsp = query_migrate(qts);
    bool is = !g_strcmp0(qdict_get_try_str(rsp, "status"), "completed");

    qobject_unref(rsp);
    return is;
}

/*
 * Write to the ring after migration has sent its pages, without marking them
 * dirty. With TCG, this can happen to the guest's last stores before the VM
 * stops. The test writes to the file of the ring's memory instead, which QEMU
 * does not notice. Promise: the source's log has these events, and the target
 * continues after them.
 *
 * Returns: false if the VM stopped before the write had ended, so that the test
 * proves nothing
 */
static bool move_unnoticed(const char *channel)
{
    char *here = qht_temporary(), *there = qht_temporary();
    char *state = qht_temporary();
    g_autofree char *all = props(channel, ",memdev=m");
    g_autofree char *uri = g_strdup_printf("file:%s", state);
    g_autofree char *here_args = memory_args(here);
    g_autofree char *there_args = memory_args(there);
    QHt *h = qht_boot("pc", "log", all, here_args);
    QHtTarget *t = qht_target("pc", "log", all, there_args);
    uint32_t id = qht_register_number(h, "number");
    g_autofree void *newer = NULL;
    g_autofree char *log = NULL;
    int fd = open(here, O_RDWR);
    void *map = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool in_time;
    QHtStream s;

    g_assert_true(map != MAP_FAILED);
    qht_stream_open(&s, h, 0);
    qht_write_numbers(&s, id, 0, 20);
    newer = g_memdup2(map, MEMORY);
    qht_ring_writeq(h, 0, QHT_GUEST(head), 0);
    qtest_qmp_assert_success(h->qts, "{'execute': 'migrate-set-parameters',"
                             " 'arguments': {'max-bandwidth': 4000000,"
                             " 'downtime-limit': 1}}");
    qtest_qmp_assert_success(h->qts, "{'execute': 'migrate', 'arguments':"
                             " {'uri': %s}}", uri);
    /*
     * Write to guest RAM, so that migration needs further passes, until QEMU
     * has looked for dirty pages at least three times.
     */
    QHT_WAIT(({
        qtest_memset(h->qts, 16 * MiB, g_random_int(), MiB);
        syncs(h->qts) >= 3;
    }));
    memcpy(map, newer, MEMORY);
    in_time = running(h->qts);
    qtest_qmp_assert_success(h->qts, "{'execute': 'migrate-set-parameters',"
                             " 'arguments': {'max-bandwidth': 0,"
                             " 'downtime-limit': 10000}}");
    QHT_WAIT(completed(h->qts));
    g_assert_true(qht_load(t, state));
    log = qht_move(h, t, true);
    qht_target_free(t);
    if (in_time) {
        qht_assert_numbers(log, 0, 0, 20);
        qht_write_numbers(&s, id, 20, 30);
        qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
        qht_settle(h);
        g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
        qht_assert_numbers(h->log, 0, 20, 30);
    }
    qht_stream_forget(&s);
    qht_quit(h);
    munmap(map, MEMORY);
    close(fd);
    unlink(log);
    qht_unlink(here);
    qht_unlink(there);
    qht_unlink(state);
    return in_time;
}

static void test_unnoticed(const void *channel)
{
    unsigned tries = 0;

    while (!move_unnoticed(channel)) {
        g_assert_cmpuint(++tries, <, 20);
    }
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "socket", test_socket, QHT_CHANNELS },
        { "file", test_file, QHT_CHANNELS },
        { "chain", test_chain, QHT_CHANNELS },
        { "discarded", test_discarded, QHT_CHANNELS },
        { "paused", test_paused, QHT_CHANNELS },
        { "continued", test_continued, QHT_CHANNELS },
        { "reset-loaded", test_reset_loaded, QHT_CHANNELS },
        { "unplug-loaded", test_unplug_loaded, QHT_CHANNELS },
        { "stopped", test_stopped, QHT_CHANNELS },
        { "reset", test_reset, QHT_CHANNELS },
        { "refused", test_refused, QHT_CHANNELS },
        { "unnoticed", test_unnoticed, QHT_HYPERCALL },
    };

    g_test_init(&argc, &argv, NULL);
    qht_add_tests("migration", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
