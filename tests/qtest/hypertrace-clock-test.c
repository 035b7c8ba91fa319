/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test that an event's date is never wrong by more than the error
 * bound
 *
 * This program is the guest.  Its counter is the host's TSC, in one test plus
 * an offset that jumps.  It reads the host's clock before and after it dates an
 * event, so the true time of the event is known.  The device can get KVM's
 * offset only in a vCPU's thread, and here no vCPU accesses the device.  So the
 * device dates events by TIME_SYNC exchanges alone, some of which take tens of
 * milliseconds.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

#define EXCHANGES 60
#define EVENTS_EACH 8

typedef struct Truth {
    int64_t from;               /* earliest host time of the event in ns */
    int64_t to;                 /* latest host time of the event in ns */
    /* error bound of the device's dates then, in ns; UINT64_MAX: unknown */
    uint64_t bound;
} Truth;

typedef struct Guest {
    QHt *h;
    /* number that is added to the host's TSC to get the guest's counter */
    uint64_t jump;
    uint64_t before;            /* guest's counter before the last exchange */
    uint64_t after;             /* guest's counter after the last exchange */
    uint32_t prev;
    /* error bound in ns that the reply to the last exchange gave */
    uint64_t bound;
} Guest;

static uint64_t counter(const Guest *g)
{
    return cpu_get_host_ticks() + g->jump;
}

/*
 * Exchange times with the device.  @left_us, @right_us: delays before and after
 * the host reads its clock
 */
static void exchange(Guest *g, unsigned left_us, unsigned right_us)
{
    struct ht_msg_time m = {
        .before = cpu_to_le64(g->before),
        .after = cpu_to_le64(g->after),
        .prev = cpu_to_le32(g->prev),
    };

    g->before = counter(g);
    g_usleep(left_us);
    g_assert_cmpuint(qht_call(g->h, HT_MSG_TIME_SYNC, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
    g_usleep(right_us);
    g->after = counter(g);
    g->prev = le32_to_cpu(m.h.cookie);
    g->bound = le64_to_cpu(m.bound_ns);
}

static void emit(Guest *g, QHtStream *s, uint32_t id, GArray *truth)
{
    Truth t = { .bound = g->bound };

    t.from = get_clock();
    s->clock = counter(g);
    t.to = get_clock();
    qht_write_number(s, id, truth->len);
    /* put each event in a packet of its own, because the counter may jump */
    qht_close_packet(s);
    qht_commit(s);
    qht_stream_flush(s);
    g_array_append_val(truth, t);
}

/*
 * Check that each date in the log is at most the error bound away from the host
 * time of the event, unless the bound is unknown; returns the widest known
 * bound
 */
static uint64_t check(QHt *h, const GArray *truth)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    unsigned i, n = 0;
    uint64_t widest = 0;

    qht_settle(h);
    g_assert_true(g_file_get_contents(h->log, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (i = 0; lines[i]; i++) {
        const Truth *t = &g_array_index(truth, Truth, n);
        char *end;
        int64_t ns;

        if (!strstr(lines[i], " number n=")) {
            continue;
        }
        ns = g_ascii_strtoull(lines[i], &end, 10) * NANOSECONDS_PER_SECOND;
        g_assert_cmpint(*end, ==, '.');
        ns += g_ascii_strtoull(end + 1, NULL, 10);
        g_assert_cmpuint(n, <, truth->len);
        if (t->bound != UINT64_MAX) {
            if (ns < t->from - (int64_t)t->bound ||
                ns > t->to + (int64_t)t->bound) {
                g_error("event %u: %" PRId64 " ns after its earliest time,"
                        " bound %" PRIu64, n, ns - t->from, t->bound);
            }
            widest = MAX(widest, t->bound);
        }
        n++;
    }
    g_assert_cmpuint(n, ==, truth->len);
    return widest;
}

/*
 * Make a firmware that halts, so that only this program accesses the device;
 * returns its path
 */
static char *halting_bios(void)
{
    static const char name[] = "hypertrace-bios-XXXXXX";
    g_autofree char *code = g_malloc(64 * KiB);
    g_autoptr(GError) err = NULL;
    char *path;
    int fd = g_file_open_tmp(name, &path, &err);

    g_assert_no_error(err);
    memset(code, 0xf4, 64 * KiB);
    g_assert_cmpint(qemu_write_full(fd, code, 64 * KiB), ==, 64 * KiB);
    close(fd);
    return path;
}

static void test_brackets(const void *data)
{
    g_autofree char *bios = halting_bios();
    g_autofree char *extra = g_strdup_printf("-accel kvm -cpu host,"
                                             "arch-capabilities=off -bios %s",
                                             bios);
    g_autoptr(GArray) truth = g_array_new(false, false, sizeof(Truth));
    bool jumps = data != NULL;
    Guest g = { 0 };
    QHtStream s;
    uint32_t id;
    unsigned i, j;

    g.h = qht_boot("pc", "log", "channel=virtio,streams=1,packet-size=4096",
                   extra);
    id = qht_register_number(g.h, "number");
    qht_stream_open(&s, g.h, 0);
    exchange(&g, 0, 0);
    for (i = 0; i < EXCHANGES; i++) {
        if (!jumps || g_test_rand_int_range(0, 3) == 0) {
            exchange(&g, g_test_rand_int_range(0, 20000),
                     g_test_rand_int_range(0, 20000));
        } else {
            exchange(&g, 0, 0);
        }
        if (jumps && i % 20 == 10) {
            /*
             * An exchange reports the counter values of the previous exchange,
             * so only the second one reports values from after the jump.
             */
            g.jump += NANOSECONDS_PER_SECOND * g_test_rand_int_range(1, 1000);
            exchange(&g, 0, 0);
            exchange(&g, 0, 0);
        }
        for (j = 0; j < EVENTS_EACH; j++) {
            emit(&g, &s, id, truth);
        }
    }
    qht_stream_close(&s);
    /* check() accepts any date if the bound is huge: limit the last to 50 ms */
    g_assert_cmpuint(g.bound, <, 50000000);
    g_assert_cmpuint(check(g.h, truth), >, 0);
    qht_quit(g.h);
    unlink(bios);
}

/*
 * After a stop of the VM, the bound is unknown until an exchange from after the
 * stop is reported, because the counter may not have run during the stop.
 */
static void test_stop(void)
{
    g_autofree char *bios = halting_bios();
    g_autofree char *extra = g_strdup_printf("-accel kvm -cpu host,"
                                             "arch-capabilities=off -bios %s",
                                             bios);
    Guest g = { 0 };
    unsigned i;

    g.h = qht_boot("pc", "null", "channel=virtio,streams=1", extra);
    for (i = 0; i < 3; i++) {
        exchange(&g, 0, 0);
    }
    g_assert_cmpuint(g.bound, !=, UINT64_MAX);
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'stop'}");
    qtest_qmp_eventwait(g.h->qts, "STOP");
    qtest_qmp_assert_success(g.h->qts, "{'execute': 'cont'}");
    qtest_qmp_eventwait(g.h->qts, "RESUME");
    /* This exchange reports counter values from before the stop. */
    exchange(&g, 0, 0);
    g_assert_cmpuint(g.bound, ==, UINT64_MAX);
    exchange(&g, 0, 0);
    g_assert_cmpuint(g.bound, !=, UINT64_MAX);
    qht_quit(g.h);
    unlink(bios);
}

/* With -icount the counter counts instructions, so the device is refused. */
static void test_icount(void)
{
    QTestState *qts = qtest_init("-machine pc -nodefaults -S -accel tcg"
                                 " -icount shift=1"
                                 " -object hypertrace-backend-null,id=be");
    QDict *rsp = qtest_qmp(qts, "{'execute': 'device_add', 'arguments':"
                           " {'driver': 'hypertrace', 'backend': 'be'}}");

    g_assert_true(qdict_haskey(rsp, "error"));
    g_assert_nonnull(strstr(qdict_get_str(qdict_get_qdict(rsp, "error"),
                                          "desc"), "-icount"));
    qobject_unref(rsp);
    qtest_quit(qts);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!qtest_has_machine("pc")) {
        return g_test_run();
    }
    if (qtest_has_accel("tcg")) {
        qtest_add_func("hypertrace/clock/icount", test_icount);
    }
    if (!qtest_has_accel("kvm")) {
        g_test_message("no KVM here");
        return g_test_run();
    }
    qtest_add_data_func("hypertrace/clock/brackets", NULL, test_brackets);
    qtest_add_data_func("hypertrace/clock/jumps", "jumps", test_brackets);
    qtest_add_func("hypertrace/clock/stop", test_stop);
    return g_test_run();
}
