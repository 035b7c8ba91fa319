/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the device's rings as a flight recorder
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
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

/* What was delivered and what was overwritten is all that was written. */
static void check_taken(QHt *h, QHtStream *s)
{
    uint64_t taken = qht_stat(h, "events");

    g_assert_cmpuint(taken, <, s->events);
    g_assert_cmpuint(taken, >, 3 * 4096 / (HT_EVENT_HEADER + 8) - 20);
    g_assert_cmpuint(taken + qht_stat(h, "dropped"), ==, s->events);
}

/* Nobody reads a ring until the VM stops, or somebody wants to. */
static void test_unread(void)
{
    QHt *h = qht_boot("pc", "log", DEVICE ",unread=on", NULL);
    uint32_t id = qht_register_number(h, "number");
    g_autofree char *newest = NULL;
    QHtStream s, other;

    qht_stream_open(&s, h, HT_STREAM_ANY);
    produce(&s, id, 3000);
    /* another stream's end is a turn of the worker */
    qht_stream_open(&other, h, HT_STREAM_ANY);
    qht_stream_close(&other);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 0);

    /* as by a panic or a watchdog */
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("hypertrace/unread/stop", test_unread);
    qtest_add_func("hypertrace/unread/reset", test_unread_reset);
    qtest_add_func("hypertrace/unread/refused", test_unread_refused);
    return g_test_run();
}
