/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test the device's rings as a flight recorder (property unread)
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include "hypertrace/dead-streams.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "qemu/timer.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

#define DEVICE "channel=shm,mode=overwrite,streams=2,packet-size=4096,packets=4"

static void set_unread(QHt *h, bool unread)
{
    qtest_qmp_assert_success(h->qts, "{'execute': 'qom-set', 'arguments':"
                             " {'path': %s, 'property': 'unread',"
                             " 'value': %i}}", h->path, unread);
}

static void produce(QHtStream *s, uint32_t id, unsigned n)
{
    while (n--) {
        if (!s->offset || s->offset + HT_EVENT_HEADER + 8 >
                          s->h->caps.packet_size) {
            qht_ring_writeq(s->h, s->index, QHT_GUEST(opening),
                            s->packet + (s->offset != 0));
        }
        qht_write_number(s, id, s->events);
        qht_doorbell(s);
    }
}

/*
 * Check that some events, at least about as many as fit into three packets,
 * were consumed, and that all others are counted as dropped
 */
static void check_taken(QHt *h, QHtStream *s)
{
    uint64_t taken = qht_stat(h, "events");

    g_assert_cmpuint(taken, <, s->events);
    g_assert_cmpuint(taken, >, 3 * 4096 / (HT_EVENT_HEADER + 8) - 20);
    g_assert_cmpuint(taken + qht_stat(h, "dropped"), ==, s->events);
}

/*
 * With unread=on, the device consumes a ring when the VM stops, on a flush or a
 * close of the stream, and when unread is set to off, but not on a doorbell,
 * nor when another stream is closed.
 */
static void test_unread(void)
{
    QHt *h = qht_boot("pc", "log", DEVICE ",unread=on", NULL);
    uint32_t id = qht_register_number(h, "number");
    g_autofree char *newest = NULL;
    QHtStream s, other;

    qht_stream_open(&s, h, HT_STREAM_ANY);
    produce(&s, id, 3000);
    /*
     * The close of @other runs the device's worker, which must not read the
     * ring of @s.
     */
    qht_stream_open(&other, h, HT_STREAM_ANY);
    qht_stream_close(&other);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 0);

    /* The newest event is in the log after a stop. */
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    check_taken(h, &s);
    newest = g_strdup_printf(" n=%" PRIu64, s.events - 1);
    g_assert_cmpuint(qht_log_count(h, newest), ==, 1);
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");

    produce(&s, id, 10);
    qht_stream_open(&other, h, HT_STREAM_ANY);
    qht_stream_close(&other);
    check_taken(h, &(QHtStream) { .events = s.events - 10 });
    set_unread(h, false);
    QHT_WAIT(qht_stat(h, "events") + qht_stat(h, "dropped") == s.events);
    set_unread(h, true);
    produce(&s, id, 5);
    qht_stream_flush(&s);
    QHT_WAIT(qht_stat(h, "events") + qht_stat(h, "dropped") == s.events);
    produce(&s, id, 5);
    qht_stream_close(&s);
    QHT_WAIT(qht_stat(h, "events") + qht_stat(h, "dropped") == 3020);
    qht_quit(h);
}

static void test_unread_reset(void)
{
    QHt *h = qht_boot("pc", "log", DEVICE ",unread=on", NULL);
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;

    qht_stream_open(&s, h, HT_STREAM_ANY);
    produce(&s, id, 3000);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 0);
    qtest_system_reset(h->qts);
    QHT_WAIT(qht_stat(h, "events") + qht_stat(h, "dropped") == s.events);
    check_taken(h, &s);
    qht_stream_forget(&s);
    qht_quit(h);
}

static void test_unread_refused(void)
{
    QHt *h = qht_boot("pc", "log", "channel=shm", NULL);
    QDict *rsp = qtest_qmp(h->qts, "{'execute': 'qom-set', 'arguments':"
                           " {'path': %s, 'property': 'unread',"
                           " 'value': true}}", h->path);

    g_assert_cmpstr(qdict_get_str(qdict_get_qdict(rsp, "error"), "desc"), ==,
                    "unread needs channel=shm and mode=overwrite: other guests"
                    " discard, or ring, when a ring is full");
    qobject_unref(rsp);
    set_unread(h, false);
    qht_quit(h);
}

#define MEMORY  (2 * MiB)

typedef struct Left {
    /* path of the file that holds the stream memory */
    char *memory;
    char *extra;
    HtDead *d;
    const char *name;
    /* number that the next recovered event must have; 0: any */
    uint64_t next;
    /* limits of the times of all recovered events, in ns of CLOCK_MONOTONIC */
    uint64_t begin_ns;
    uint64_t end_ns;
} Left;

static void left_init(Left *l)
{
    l->memory = qht_temporary();
    l->extra = g_strdup_printf("-object memory-backend-file,id=m,share=on,"
                               "size=%u,mem-path=%s", (unsigned)MEMORY,
                               l->memory);
}

static void left_free(Left *l)
{
    qht_unlink(l->memory);
    g_free(l->extra);
}

static void kill_qemu(QTestState *qts)
{
    g_assert_cmpint(kill(qtest_pid(qts), SIGKILL), ==, 0);
    QHT_WAIT(!qtest_probe_child(qts));
}

/*
 * HtDeliver: check that the events have the expected class, that their numbers
 * increase by one, and that their times are between begin_ns and end_ns
 */
static void check_run(void *opaque, const HtRun *run)
{
    Left *l = opaque;
    HtRunIter it;
    HtEvent ev;

    if (!run->events) {
        return;
    }
    ht_run_iter_init(&it, run, l->d->classes);
    while (ht_run_next(&it, &ev)) {
        uint64_t n = ht_get_le64(ev.payload);

        g_assert_cmpstr(ev.cls->name, ==, l->name);
        g_assert_cmpuint(ev.ns, >, l->begin_ns);
        g_assert_cmpuint(ev.ns, <, l->end_ns);
        g_assert_true(n == l->next || !l->next);
        l->next = n + 1;
    }
}

/*
 * Check that a stream's newest events are recovered: the last number is
 * @sent - 1, and about three packets of events, or all @sent, are there
 */
static void check_left(Left *l, uint8_t *ram, unsigned stream, const char *name,
                       uint64_t sent)
{
    HtDeadResult r;

    l->name = name;
    l->next = 0;
    g_assert_true(ht_dead_read(l->d, stream, ram, 0, check_run, l, &r));
    g_assert_cmpstr(r.why, ==, "");
    g_assert_cmpuint(l->next, ==, sent);
    g_assert_cmpuint(r.before + r.events, ==, sent);
    g_assert_cmpuint(r.events, >, MIN(sent, 3 * 4096 / (HT_EVENT_HEADER + 8)) -
                                  20);
}

/*
 * After QEMU was killed, a reader of the stream memory's file recovers the
 * newest events of each stream, with their classes and times.
 */
static void kill_after(unsigned events)
{
    Left l = { };
    g_autoptr(GError) err = NULL;
    g_autofree uint8_t *ram = NULL;
    QHtStream s, other;
    uint32_t id, late;
    gsize size;
    QHt *h;

    left_init(&l);
    l.begin_ns = get_clock();
    h = qht_boot("pc", "null", DEVICE ",unread=on,memdev=m", l.extra);
    id = qht_register_number(h, "number");
    qht_stream_open(&s, h, 0);
    produce(&s, id, events);
    late = qht_register_number(h, "late");
    qht_stream_open(&other, h, 1);
    produce(&other, late, 30);
    produce(&s, id, events);
    kill_qemu(h->qts);
    l.end_ns = get_clock();

    g_assert_true(g_file_get_contents(l.memory, (char **)&ram, &size, NULL));
    l.d = ht_dead_new(ram, size, &err);
    g_assert_no_error(err);
    g_assert_cmpuint(l.d->invalid, ==, 0);
    g_assert_cmpuint(l.d->caps.channel, ==, HT_CHANNEL_SHM);
    check_left(&l, ram, 0, "number", 2 * events);
    check_left(&l, ram, 1, "late", 30);
    ht_dead_free(l.d);
    qht_stream_forget(&s);
    qht_stream_forget(&other);
    left_free(&l);
}

static void test_killed(void)
{
    unsigned i, rounds = g_test_slow() ? 60 : 5;

    for (i = 0; i < rounds; i++) {
        kill_after(25 + i * 133);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("hypertrace/unread/stop", test_unread);
    qtest_add_func("hypertrace/unread/reset", test_unread_reset);
    qtest_add_func("hypertrace/unread/refused", test_unread_refused);
    qtest_add_func("hypertrace/unread/killed", test_killed);
    return g_test_run();
}
