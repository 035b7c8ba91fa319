/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: recordings of an ftrace ring, made on command or by a trigger
 *
 * This program writes the ring, as the guest's kernel would; see
 * hypertrace-ftrace.h.  It reads recordings with hypertrace/recording.h, as
 * the command hypertrace does.
 */
#include "qemu/osdep.h"
#include <dirent.h>
#include <glib/gstdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
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
    fl->dir = fl->dir ?: g_dir_make_tmp("hypertrace-flight-XXXXXX", NULL);
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

static void end(Flight *fl)
{
    qft_end(&fl->vm);
    qft_remove_dir(fl->dir);
    g_free(fl->dir);
    g_free(fl->options);
}

/*
 * Check that a recording has consecutive events of each processor: it starts
 * at @from or earlier, and ends with @to - 1.
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
    /* each piece has two host times, in order, and none is in the future */
    ht_rec_rewind(r);
    while (ht_rec_next_piece(r, 0, &p)) {
        g_assert_cmpuint(p.host_before, <=, p.host_after);
        g_assert_cmpuint(p.host_after, <=, g_get_monotonic_time() * 1000 +
                                           1000);
    }
}

static unsigned ask(Flight *fl)
{
    QDict *rsp = qtest_qmp_assert_success_ref(
        fl->vm.h.qts, "{'execute': 'hypertrace-snapshot',"
        " 'arguments': {'object': 'ft'}}");
    unsigned count = qdict_get_int(rsp, "count");

    qobject_unref(rsp);
    return count;
}

static char *take(Flight *fl, uint64_t *events)
{
    QDict *rsp, *s;
    char *dir;

    g_assert_cmpuint(ask(fl), ==, 1);
    rsp = qtest_qmp_eventwait_ref(fl->vm.h.qts, "HYPERTRACE_SNAPSHOT");
    s = qdict_get_qdict(qdict_get_qdict(rsp, "data"), "snapshot");
    g_assert_cmpstr(qdict_get_str(s, "trigger"), ==, "command");
    g_assert_false(qdict_haskey(s, "error"));
    *events = qdict_get_int(s, "events");
    dir = g_strdup(qdict_get_str(s, "directory"));
    qobject_unref(rsp);
    return dir;
}

static char *wait_for(Flight *fl, const char *trigger)
{
    return qft_wait_recording(&fl->vm, trigger);
}

/*
 * Each recording has all events of the ring, also those of an earlier
 * recording.  Without a backend nothing is delivered.
 */
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

/* With a backend, events are delivered and can also be recorded. */
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

static QDict *snapshot(const char *of)
{
    QDict *args = qdict_new();

    qdict_put_str(args, "object", of);
    return args;
}

/*
 * Find a thread by name in a QEMU with debug-threads=on; returns 0 if there is
 * no such thread, or if it has not run yet: a thread sets its own name.
 */
static pid_t find_thread(QTestState *qts, const char *name)
{
    g_autofree char *tasks = g_strdup_printf("/proc/%d/task",
                                             (int)qtest_pid(qts));
    DIR *d = opendir(tasks);
    struct dirent *e;
    pid_t found = 0;

    g_assert_nonnull(d);
    while ((e = readdir(d))) {
        g_autofree char *file = g_strdup_printf("%s/%s/comm", tasks,
                                                e->d_name);
        g_autofree char *comm = NULL;

        if (g_file_get_contents(file, &comm, NULL, NULL) &&
            g_str_equal(g_strstrip(comm), name)) {
            found = atoi(e->d_name);
        }
    }
    closedir(d);
    return found;
}

/*
 * Stop the thread that writes recordings, as if it wrote to a disk that hangs.
 * Returns 0, and skips the test, if ptrace is not permitted.
 */
static pid_t hold_writer(Flight *fl)
{
    pid_t tid = 0;

    QHT_WAIT((tid = find_thread(fl->vm.h.qts, "ht-flight")));
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
        g_test_skip("a thread of QEMU cannot be stopped");
        return 0;
    }
    g_assert_cmpint(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), ==, 0);
    g_assert_cmpint(waitpid(tid, NULL, __WALL), ==, tid);
    return tid;
}

/*
 * The thread that writes recordings hangs.  Promise that only this test proves:
 * neither the ring nor the guest nor a monitor waits for it, and requests are
 * refused when enough recordings wait in memory.
 */
static void test_disk_hangs(void)
{
    g_autofree char *first = NULL, *second = NULL, *third = NULL;
    Flight fl = { };
    unsigned i;
    pid_t tid;

    start(&fl, ",backend=be", "-name vm,debug-threads=on");
    boot(&fl);
    tid = hold_writer(&fl);
    if (tid) {
        qtest_system_reset(fl.vm.h.qts);
        boot(&fl);
        qft_write(&fl.vm, 10);
        QHT_WAIT(qft_count(&fl.vm, 10) == QFT_CPUS);
        /* the thread has the recording of the reset, or that one waits too */
        for (i = 0; i < 3; i++) {
            g_assert_cmpuint(ask(&fl), ==, 1);
        }
        third = g_strdup_printf("ft: 4 recordings wait to be written to"
                                " '%s/new'; wait for the event"
                                " HYPERTRACE_SNAPSHOT and try again", fl.dir);
        refused(&fl.vm, "hypertrace-snapshot", snapshot("ft"), third);
        g_assert_cmpuint(qht_stat(&fl.vm.h, "recordings"), ==, 0);

        g_assert_cmpint(ptrace(PTRACE_DETACH, tid, NULL, NULL), ==, 0);
        first = wait_for(&fl, "reset");
        check_recording(first, 0, 1, "reset");
        for (i = 0; i < 3; i++) {
            g_free(second);
            second = wait_for(&fl, "command");
            check_recording(second, 0, 11, "hypertrace-snapshot");
        }
    }
    end(&fl);
}

/* Reap the traced thread; until then, QEMU's end cannot be waited for. */
static gpointer see_end(gpointer tid)
{
    g_assert_cmpint(waitpid(GPOINTER_TO_INT(tid), NULL, __WALL), >, 0);
    return NULL;
}

/* QEMU ends although the writer hangs and a requested recording waits. */
static void test_disk_hangs_ends(void)
{
    GThread *thread = NULL;
    Flight fl = { };
    gint64 begin;
    pid_t tid;

    start(&fl, NULL, "-name vm,debug-threads=on");
    boot(&fl);
    tid = hold_writer(&fl);
    if (tid) {
        g_assert_cmpuint(ask(&fl), ==, 1);
        thread = g_thread_new(NULL, see_end, GINT_TO_POINTER(tid));
    }
    begin = g_get_monotonic_time();
    end(&fl);
    g_assert_cmpint(g_get_monotonic_time() - begin, <, 60 * G_USEC_PER_SEC);
    if (thread) {
        g_thread_join(thread);
    }
}

/*
 * object-del while the writer hangs.  Promise that only this test proves: the
 * command returns without waiting for the disk, and the recording is written
 * when the disk responds.
 */
static void test_disk_hangs_delete(void)
{
    g_autofree char *dir = NULL;
    Flight fl = { };
    gint64 begin;
    pid_t tid;

    start(&fl, NULL, "-name vm,debug-threads=on");
    boot(&fl);
    qft_write(&fl.vm, 10);
    tid = hold_writer(&fl);
    if (tid) {
        g_assert_cmpuint(ask(&fl), ==, 1);
        begin = g_get_monotonic_time();
        qtest_qmp_assert_success(fl.vm.h.qts, "{'execute': 'object-del',"
                                 " 'arguments': {'id': 'ft'}}");
        g_assert_cmpint(g_get_monotonic_time() - begin, <,
                        60 * G_USEC_PER_SEC);
        g_assert_cmpint(ptrace(PTRACE_DETACH, tid, NULL, NULL), ==, 0);
        dir = wait_for(&fl, "command");
        check_recording(dir, 0, 11, "hypertrace-snapshot");
    }
    end(&fl);
}

/*
 * Promise that only this test proves: recordings go to the directory that was
 * opened at the start, although QEMU can no longer see its name.
 */
static void test_chroot(void)
{
    g_autofree char *root = g_dir_make_tmp("hypertrace-root-XXXXXX", NULL);
    g_autofree char *extra = g_strdup_printf("-run-with chroot=%s", root);
    g_autofree char *dir = NULL;
    Flight fl = { };
    uint64_t events;

    if (geteuid()) {
        g_test_skip("only root may change the root directory");
    } else {
        start(&fl, NULL, extra);
        boot(&fl);
        qft_write(&fl.vm, 10);
        dir = take(&fl, &events);
        check_recording(dir, 0, 11, "hypertrace-snapshot");
        end(&fl);
    }
    g_assert_cmpint(rmdir(root), ==, 0);
}

/* Objects with the same id in two QEMUs can share a directory. */
static void test_shared(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                       g_free, NULL);
    Flight vms[2] = { };
    unsigned i, k;

    start(&vms[0], NULL, NULL);
    vms[1].dir = g_strdup(vms[0].dir);
    start(&vms[1], NULL, NULL);
    for (k = 0; k < 4; k++) {
        for (i = 0; i < 2; i++) {
            boot(&vms[i]);
            qft_write(&vms[i].vm, 10 + i);
        }
        for (i = 0; i < 2; i++) {
            qtest_system_reset_nowait(vms[i].vm.h.qts);
        }
        for (i = 0; i < 2; i++) {
            char *dir = wait_for(&vms[i], "reset");

            check_recording(dir, 0, 11 + i, "reset");
            g_assert_true(g_hash_table_add(seen, dir));
            QHT_WAIT(qft_is_erased(&vms[i].vm));
        }
    }
    qft_end(&vms[0].vm);
    g_free(vms[0].dir);
    g_free(vms[0].options);
    end(&vms[1]);
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

    /* recordings=2 limits the disk space: the third one is skipped */
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
    /* the guest has not run since the panic, so a reset adds no recording */
    qtest_system_reset(fl.vm.h.qts);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "recordings"), ==, 1);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "resets"), ==, 1);
    end(&fl);
}

/* If a panic ends QEMU, the recording is written first. */
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

/* Check that the last second before a recording's end has no piece */
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

/* Each time without events gives one recording. */
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
    /* the guest's clock steps back, as a kernel's can while it boots */
    fl.vm.ns -= 15000;
    qft_write(&fl.vm, 1);
    second = wait_for(&fl, "silence");
    check_recording(second, 0, 22, "no events");
    check_silent(second);
    g_assert_cmpuint(qht_stat(&fl.vm.h, "recordings"), ==, 2);
    end(&fl);
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
    /* the event of a recording that cannot be written has the error */
    text = g_strdup_printf("%s/new", fl.dir);
    qft_remove_dir(text);
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
    qtest_add_func("hypertrace/flight/disk-hangs", test_disk_hangs);
    qtest_add_func("hypertrace/flight/disk-hangs-ends", test_disk_hangs_ends);
    qtest_add_func("hypertrace/flight/disk-hangs-delete",
                   test_disk_hangs_delete);
    qtest_add_func("hypertrace/flight/chroot", test_chroot);
    qtest_add_func("hypertrace/flight/shared", test_shared);
    return g_test_run();
}
