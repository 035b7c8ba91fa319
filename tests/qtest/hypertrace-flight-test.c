/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: recordings that are made when something happens
 *
 * The kernel is this program; see hypertrace-ftrace.h.  The recordings are read
 * with what the command hypertrace reads them with.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "hypertrace/base.h"
#include "hypertrace/recording.h"
#include "qemu/timer.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "libqtest.h"
#include "hypertrace-ftrace.h"

#define PVPANIC_PORT    0x505
#define IB700_PORT      0x443

typedef struct Flight {
    QFt vm;
    char *dir;
    char *options;
} Flight;

static void start(Flight *fl, const char *options, const char *extra)
{
    fl->dir = g_dir_make_tmp("hypertrace-flight-XXXXXX", NULL);
    g_assert_nonnull(fl->dir);
    fl->options = g_strdup_printf("poll-ms=1,flight=%s/new%s", fl->dir,
                                  options ?: "");
    fl->vm.options = fl->options;
    qft_start(&fl->vm, true, extra);
}

static void boot(Flight *fl)
{
    qft_boot(&fl->vm, HT_FT_LAYOUT_6_11);
    qft_wait_found(&fl->vm);
}

static void remove_dir(const char *path)
{
    GDir *d = g_dir_open(path, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *inner = g_build_filename(path, name, NULL);

        if (g_file_test(inner, G_FILE_TEST_IS_DIR)) {
            remove_dir(inner);
        } else {
            g_assert_cmpint(g_unlink(inner), ==, 0);
        }
    }
    if (d) {
        g_dir_close(d);
        g_assert_cmpint(g_rmdir(path), ==, 0);
    }
}

static void end(Flight *fl)
{
    qft_end(&fl->vm);
    remove_dir(fl->dir);
    g_free(fl->dir);
    g_free(fl->options);
}

/*
 * A recording has the newest events of each processor, up to @to - 1, and
 * before these all from @from on.
 */
static void check_recording(const char *dir, uint64_t from, uint64_t to,
                            const char *why)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(HtRecording) r = ht_rec_open(dir, &err);
    uint64_t next[QFT_CPUS] = { };
    g_autofree char *text = NULL;
    HtRecEvent ev;
    HtFtPiece p;
    unsigned i;

    g_assert_no_error(err);
    text = g_key_file_get_string(ht_rec_info(r)->keys, "recording", "end",
                                 NULL);
    g_assert_nonnull(strstr(text, why));
    g_assert_nonnull(strstr(ht_rec_info(r)->formats, "name: counted"));
    while (ht_rec_next(r, &ev)) {
        uint64_t n = ht_get_le64(ev.data + HT_FT_EVENT_HEADER);

        g_assert_cmpuint(ev.cpu, <, QFT_CPUS);
        g_assert_cmpuint(ev.size, >=, HT_FT_EVENT_HEADER + 8);
        if (next[ev.cpu]) {
            g_assert_cmpuint(n, ==, next[ev.cpu]);
        } else {
            g_assert_cmpuint(n, <=, from);
        }
        next[ev.cpu] = n + 1;
    }
    for (i = 0; i < QFT_CPUS; i++) {
        g_assert_cmpuint(next[i], ==, to);
    }
    /* the host's clock was there before the events, and is by now */
    ht_rec_rewind(r);
    while (ht_rec_next_piece(r, 0, &p)) {
        g_assert_cmpuint(p.host_before, <=, p.host_after);
        g_assert_cmpuint(p.host_after, <=, g_get_monotonic_time() * 1000 +
                                           1000);
    }
}

static char *take(Flight *fl, uint64_t *events)
{
    QDict *rsp = qtest_qmp(fl->vm.h.qts, "{'execute': 'hypertrace-snapshot',"
                           " 'arguments': {'object': 'ft',"
                           " 'timeout': 60000}}");
    QList *list = qdict_get_qlist(rsp, "return");
    QDict *s;
    char *dir;

    g_assert_nonnull(list);
    g_assert_cmpuint(qlist_size(list), ==, 1);
    s = qobject_to(QDict, qlist_entry_obj(qlist_first(list)));
    g_assert_cmpstr(qdict_get_str(s, "trigger"), ==, "command");
    g_assert_false(qdict_haskey(s, "error"));
    *events = qdict_get_int(s, "events");
    dir = g_strdup(qdict_get_str(s, "directory"));
    qobject_unref(rsp);
    return dir;
}

/* The next one that nobody asked for */
static char *wait_for(Flight *fl, const char *trigger)
{
    QDict *rsp = qtest_qmp_eventwait_ref(fl->vm.h.qts, "HYPERTRACE_SNAPSHOT");
    QDict *data = qdict_get_qdict(rsp, "data");
    QDict *s = qdict_get_qdict(data, "snapshot");
    char *dir;

    g_assert_cmpstr(qdict_get_str(data, "object"), ==, "/objects/ft");
    g_assert_cmpstr(qdict_get_str(s, "trigger"), ==, trigger);
    g_assert_false(qdict_haskey(s, "error"));
    dir = g_strdup(qdict_get_str(s, "directory"));
    qobject_unref(rsp);
    return dir;
}

/* Each has what is there, whether it was in another; nothing is delivered. */
static void test_command(void)
{
    g_autofree char *first = NULL, *second = NULL;
    Flight fl = { };
    uint64_t events;

    start(&fl, NULL, NULL);
    boot(&fl);
    qft_write(&fl.vm, 50);
    first = take(&fl, &events);
    g_assert_cmpuint(events, ==, 51 * QFT_CPUS);
    check_recording(first, 0, 51, "hypertrace-snapshot");
    qft_write(&fl.vm, 5000);
    second = take(&fl, &events);
    g_assert_cmpstr(first, !=, second);
    g_assert_cmpuint(events, >, 51 * QFT_CPUS);
    check_recording(second, 5000, 5051, "hypertrace-snapshot");
    check_recording(first, 0, 51, "hypertrace-snapshot");
    g_assert_cmpuint(qht_stat(&fl.vm.h, "events"), ==, 0);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "recordings"), ==, 2);
    end(&fl);
}

/* With a backend the ring is followed as well. */
static void test_both(void)
{
    g_autofree char *dir = NULL;
    Flight fl = { };
    uint64_t events;

    start(&fl, ",backend=be", NULL);
    boot(&fl);
    qft_write(&fl.vm, 10);
    QHT_WAIT(qht_stat(&fl.vm.h, "events") == 11 * QFT_CPUS);
    dir = take(&fl, &events);
    check_recording(dir, 0, 11, "hypertrace-snapshot");
    g_assert_cmpuint(qft_count(&fl.vm, 10), ==, QFT_CPUS);
    end(&fl);
}

static void test_reset(void)
{
    g_autofree char *first = NULL, *second = NULL;
    Flight fl = { };

    start(&fl, ",recordings=2", NULL);
    boot(&fl);
    qft_write(&fl.vm, 20);
    qtest_system_reset_nowait(fl.vm.h.qts);
    first = wait_for(&fl, "reset");
    check_recording(first, 0, 21, "reset");
    QHT_WAIT(qft_is_erased(&fl.vm));

    boot(&fl);
    qtest_system_reset_nowait(fl.vm.h.qts);
    second = wait_for(&fl, "reset");
    check_recording(second, 0, 1, "reset");

    /* it does not fill the disk */
    boot(&fl);
    qtest_system_reset(fl.vm.h.qts);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "recordings"), ==, 2);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "skipped-recordings"), ==, 1);
    end(&fl);
}

static void test_panic(void)
{
    g_autofree char *dir = NULL;
    Flight fl = { };

    start(&fl, NULL, "-device pvpanic -action panic=pause");
    boot(&fl);
    qft_write(&fl.vm, 20);
    qtest_outb(fl.vm.h.qts, PVPANIC_PORT, 1);
    dir = wait_for(&fl, "panic");
    check_recording(dir, 0, 21, "panic");
    /* nothing has run since */
    qtest_system_reset(fl.vm.h.qts);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "recordings"), ==, 1);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "resets"), ==, 1);
    end(&fl);
}

/* QEMU ends by the panic, but not before the recording is there. */
static void test_panic_ends(void)
{
    g_autofree char *dir = NULL;
    Flight fl = { };

    start(&fl, NULL, "-device pvpanic -action panic=shutdown"
          " -action shutdown=poweroff");
    boot(&fl);
    qft_write(&fl.vm, 20);
    qtest_outb(fl.vm.h.qts, PVPANIC_PORT, 1);
    qtest_wait_qemu(fl.vm.h.qts);
    dir = g_strdup_printf("%s/new/ft-0", fl.dir);
    check_recording(dir, 0, 21, "panic");
    end(&fl);
}

static void test_watchdog(void)
{
    g_autofree char *dir = NULL;
    Flight fl = { };

    start(&fl, ",triggers=watchdog", "-device ib700 -action watchdog=pause");
    boot(&fl);
    qtest_system_reset(fl.vm.h.qts);
    boot(&fl);
    qtest_outb(fl.vm.h.qts, IB700_PORT, 0);
    qtest_clock_step(fl.vm.h.qts, 60 * NANOSECONDS_PER_SECOND);
    dir = wait_for(&fl, "watchdog");
    check_recording(dir, 0, 1, "watchdog");
    g_assert_cmpuint(qht_stat(&fl.vm.h, "recordings"), ==, 1);
    end(&fl);
}

/* No piece of a recording was written in its last second. */
static void check_silent(const char *dir)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(HtRecording) r = ht_rec_open(dir, &err);
    uint64_t ended;
    unsigned cpu, n = 0;
    HtFtPiece p;

    g_assert_no_error(err);
    ended = g_key_file_get_uint64(ht_rec_info(r)->keys, "recording",
                                  "ended-monotonic", NULL);
    for (cpu = 0; cpu < QFT_CPUS; cpu++) {
        for (; ht_rec_next_piece(r, cpu, &p); n++) {
            g_assert_cmpuint(p.host_after + 9 * NANOSECONDS_PER_SECOND / 10,
                             <, ended);
        }
    }
    g_assert_cmpuint(n, >=, QFT_CPUS);
}

/* Once for each silence */
static void test_silence(void)
{
    g_autofree char *first = NULL, *second = NULL;
    Flight fl = { };

    start(&fl, ",silence=1", NULL);
    boot(&fl);
    qft_write(&fl.vm, 20);
    first = wait_for(&fl, "silence");
    check_recording(first, 0, 21, "no events");
    check_silent(first);
    /* its clock steps back, as a kernel's can when it boots */
    fl.vm.ns -= 15000;
    qft_write(&fl.vm, 1);
    second = wait_for(&fl, "silence");
    check_recording(second, 0, 22, "no events");
    check_silent(second);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "recordings"), ==, 2);
    end(&fl);
}

static void refused(QFt *vm, const char *command, QDict *args,
                    const char *why)
{
    QDict *rsp = qtest_qmp(vm->h.qts, "{'execute': %s, 'arguments': %p}",
                           command, args);

    g_assert_true(qdict_haskey(rsp, "error"));
    g_assert_cmpstr(qdict_get_str(qdict_get_qdict(rsp, "error"), "desc"), ==,
                    why);
    qobject_unref(rsp);
}

static QDict *object(const char *flight, const char *triggers)
{
    QDict *args = qdict_new();

    qdict_put_str(args, "qom-type", "hypertrace-ftrace");
    qdict_put_str(args, "id", "other");
    qdict_put_str(args, "flight", flight);
    qdict_put_str(args, "triggers", triggers);
    return args;
}

static QDict *snapshot(const char *of)
{
    QDict *args = qdict_new();

    qdict_put_str(args, "object", of);
    return args;
}

static void test_refused(void)
{
    g_autofree char *text = NULL;
    Flight fl = { };
    QDict *rsp, *s;

    start(&fl, NULL, NULL);
    refused(&fl.vm, "object-add", object(fl.dir, "panic:fire"),
            "triggers=panic:fire: there is no 'fire'; possible are panic,"
            " reset, watchdog, error and shutdown");
    refused(&fl.vm, "object-add", object("/dev/null/no", "panic"),
            "flight=/dev/null/no cannot be made: Not a directory");
    refused(&fl.vm, "hypertrace-snapshot", snapshot("be"),
            "'be' is not the id of a hypertrace-ftrace object with the"
            " property flight");
    refused(&fl.vm, "hypertrace-snapshot", snapshot("ft"),
            "ft: no ring that changes was found in the guest's memory");
    boot(&fl);
    /* what cannot be written is told */
    text = g_strdup_printf("%s/new", fl.dir);
    remove_dir(text);
    g_assert_true(g_file_set_contents(text, "", 0, NULL));
    qtest_system_reset_nowait(fl.vm.h.qts);
    rsp = qtest_qmp_eventwait_ref(fl.vm.h.qts, "HYPERTRACE_SNAPSHOT");
    s = qdict_get_qdict(qdict_get_qdict(rsp, "data"), "snapshot");
    g_assert_nonnull(strstr(qdict_get_str(s, "error"), "Not a directory"));
    qobject_unref(rsp);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "recordings"), ==, 0);
    g_assert_cmpint(g_unlink(text), ==, 0);
    end(&fl);
}

/* The device's rings ------------------------------------------------------ */

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
    qtest_add_func("hypertrace/flight/command", test_command);
    qtest_add_func("hypertrace/flight/both", test_both);
    qtest_add_func("hypertrace/flight/reset", test_reset);
    qtest_add_func("hypertrace/flight/panic", test_panic);
    qtest_add_func("hypertrace/flight/panic-ends", test_panic_ends);
    qtest_add_func("hypertrace/flight/watchdog", test_watchdog);
    qtest_add_func("hypertrace/flight/silence", test_silence);
    qtest_add_func("hypertrace/flight/refused", test_refused);
    qtest_add_func("hypertrace/flight/unread", test_unread);
    qtest_add_func("hypertrace/flight/unread-reset", test_unread_reset);
    qtest_add_func("hypertrace/flight/unread-refused", test_unread_refused);
    return g_test_run();
}
