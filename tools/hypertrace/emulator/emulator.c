/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace as the emulator: if this program was started by a link named
 * qemu-system-ARCH, run QEMU and record its guest
 *
 * This process becomes QEMU by exec. The recorder is a grandchild of this
 * process, so that QEMU has no child that QEMU did not start. The recorder
 * reads QEMU's memory through /proc, unless QEMU's options share the memory
 * through a file, and ends with QEMU. With QEMU's option
 * -daemonize, this is different: see ht_emulator().
 */
#include "hypertrace/base.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "emulator/emulator.h"
#include "emulator/recordings.h"
#include "emulator/settings.h"
#include "memory/process.h"
#include "record/record.h"

#define PREFIX          "qemu-system-"
#define POLL_US         1000
/*
 * Environment variable, set to "no" in the process that records. To get the
 * formats of events, that process may start another QEMU by the same link. The
 * other QEMU must not be recorded.
 */
#define NO_RECORD       "HYPERTRACE_RECORD"
/* Exit status if no QEMU can be run: that of a shell that finds no command */
#define EXIT_NO_QEMU    127

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool ht_is_emulator(const char *argv0)
{
    return g_str_has_prefix(base_name(argv0), PREFIX);
}

/*
 * Check whether a path leads to this program, which must not be run as QEMU: it
 * would start itself for ever.
 */
static bool is_this_program(const char *path)
{
    struct stat self, st;

    return !stat("/proc/self/exe", &self) && !stat(path, &st) &&
           st.st_dev == self.st_dev && st.st_ino == self.st_ino;
}

static bool is_qemu(const char *path)
{
    return g_file_test(path, G_FILE_TEST_IS_REGULAR) && !access(path, X_OK) &&
           !is_this_program(path);
}

/*
 * Find QEMU: with @setting, that program or the program @name in that folder;
 * else the first program @name in PATH that is not this program. Returns NULL
 * on failure.
 */
static char *find_qemu(const char *setting, const char *name)
{
    const char *path = g_getenv("PATH");
    g_auto(GStrv) folders = NULL;
    unsigned i;

    if (setting) {
        char *program = g_file_test(setting, G_FILE_TEST_IS_DIR) ?
                        g_build_filename(setting, name, NULL) :
                        g_strdup(setting);

        if (!is_qemu(program)) {
            g_clear_pointer(&program, g_free);
        }
        return program;
    }
    folders = g_strsplit(path ? path : "/usr/local/bin:/usr/bin:/bin", ":", 0);
    for (i = 0; folders[i]; i++) {
        g_autofree char *program = g_build_filename(*folders[i] ? folders[i] :
                                                    ".", name, NULL);

        if (is_qemu(program)) {
            return g_steal_pointer(&program);
        }
    }
    return NULL;
}

static void leave_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fd;

    for (fd = 0; null >= 0 && fd < 3; fd++) {
        dup2(null, fd);
    }
    if (null > 2) {
        close(null);
    }
}

/*
 * Reset all signals. The program that started QEMU may have blocked or ignored
 * signals that must be able to end the recorder.
 */
static void reset_signals(void)
{
    sigset_t none;
    int sig;

    sigemptyset(&none);
    for (sig = 1; sig < NSIG; sig++) {
        signal(sig, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int record_prepared(HtRecord *r)
{
    int status = ht_record_prepared(r, r->plan->argv);

    /* rmdir() fails if the folder has a recording, which then stays */
    rmdir(r->dir);
    return status;
}

/*
 * Be the recorder of process @qemu, which is about to run QEMU by exec. First,
 * write the recorder's PID to the pipe @ready. Then read the pipe @started: its
 * end means that QEMU runs, and a byte means that QEMU could not be run.
 */
static int watch(HtRecord *r, pid_t qemu, int lock, int ready, int started)
{
    int keep[] = { lock, ready, started };
    pid_t self = getpid();
    char byte;
    bool told;

    /* Close QEMU's descriptors, which this process has inherited. */
    ht_process_close_others(keep, G_N_ELEMENTS(keep));
    leave_terminal();
    reset_signals();
    g_setenv(NO_RECORD, "no", true);
    r->process = ht_process_new(qemu, NULL);
    told = r->process && write(ready, &self, sizeof(self)) == sizeof(self);
    close(ready);
    if (!told || read(started, &byte, 1)) {
        rmdir(r->dir);
        return HT_EXIT_ERROR;
    }
    close(started);
    return record_prepared(r);
}

/*
 * Start a recorder for this process. Return: a descriptor that exec closes; if
 * QEMU cannot be run, the caller writes a byte to the descriptor. On failure,
 * return -1 and set *@why to the reason.
 */
static int start_recorder(HtRecord *r, int lock, const char **why)
{
    int started[2] = { -1, -1 }, ready[2] = { -1, -1 };
    pid_t qemu = getpid(), child, ended, recorder = 0;

    if (pipe2(started, O_CLOEXEC) || pipe2(ready, O_CLOEXEC)) {
        *why = g_strerror(errno);
        return -1;
    }
    child = fork();
    *why = child < 0 ? g_strerror(errno) : "it ended at once";
    if (child == 0) {
        close(started[1]);
        close(ready[0]);
        setsid();
        if (fork()) {
            _exit(0);
        }
        _exit(watch(r, qemu, lock, ready[1], started[0]));
    }
    close(started[0]);
    close(ready[1]);
    do {
        ended = child < 0 ? 0 : waitpid(child, NULL, 0);
    } while (ended < 0 && errno == EINTR);
    if (child < 0 || read(ready[0], &recorder, sizeof(recorder)) !=
        sizeof(recorder)) {
        close(started[1]);
        started[1] = -1;
    }
    close(ready[0]);
    if (recorder > 0) {
        /*
         * With Yama's kernel.yama.ptrace_scope=1, a process without
         * CAP_SYS_PTRACE may read QEMU's memory only if the process is an
         * ancestor of QEMU, is named here or descends from the process named
         * here.
         */
        prctl(PR_SET_PTRACER, recorder, 0, 0, 0);
    }
    return started[1];
}

static int run_qemu(char **argv)
{
    int code;

    execv(argv[0], argv);
    code = errno;
    fprintf(stderr, "%s: cannot run %s: %s\n", base_name(argv[0]), argv[0],
            g_strerror(code));
    return EXIT_NO_QEMU;
}

static void set_string(char **string, const char *value)
{
    g_free(*string);
    *string = g_strdup(value);
}

/*
 * Run QEMU and record its guest. If no recording can be prepared, run QEMU with
 * the arguments @unchanged. @argv[0] is the name of the link, @unchanged[0] the
 * path of QEMU.
 * Return: an exit status, only if this process did not become QEMU
 */
static int record(HtRecord *r, const HtSettings *s, char **argv,
                  char **unchanged)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = NULL;
    const char *why;
    int lock, started, status;

    /*
     * Plan with the link's name as argv[0]: the planning reads the architecture
     * from it, and the name of QEMU's program may lack it.  QEMU itself is run
     * by its path.
     */
    if (!ht_record_prepare(r, argv, &error)) {
        ht_error("%s", error->message);
        return run_qemu(unchanged);
    }
    if (r->plan->query) {
        return run_qemu(unchanged);
    }
    set_string(&r->plan->argv[0], unchanged[0]);
    set_string(&r->plan->program, unchanged[0]);
    dir = ht_recordings_new(s->recordings, r->plan->name, s->keep,
                            s->keep_bytes, &lock, &error);
    if (!dir) {
        ht_error("%s", error->message);
        return run_qemu(unchanged);
    }
    r->dir = dir;
    if (r->plan->daemonize) {
        g_setenv(NO_RECORD, "no", true);
        return record_prepared(r);
    }
    started = start_recorder(r, lock, &why);
    if (started < 0) {
        ht_error("cannot start a recorder: %s", why);
        rmdir(dir);
        return run_qemu(unchanged);
    }
    status = run_qemu(r->plan->argv);
    /*
     * QEMU could not be run: write a byte, at which the recorder ends.  If the
     * recorder has ended before, the write must fail without a signal.
     */
    signal(SIGPIPE, SIG_IGN);
    (void)!write(started, "", 1);
    return status;
}

int ht_emulator(int argc, char **argv)
{
    const char *name = base_name(argv[0]);
    g_autoptr(GError) error = NULL;
    HtSettings s = { 0 };
    HtRecord r = {
        .memory_fd = -1,
        .qmp_fd = -1,
        .ready_fd = -1,
        .poll_us = POLL_US,
        .quiet = true,
        .as_qemu = true,
    };
    g_autofree char *qemu = NULL;
    g_auto(GStrv) args = g_strdupv(argv);
    bool settings = ht_settings_read(&s, &error);
    int status;

    ht_errors_to_syslog();
    qemu = find_qemu(s.qemu, name);
    if (!qemu) {
        fprintf(stderr, "%s: this is a link to hypertrace, and %s%s%s: set "
                "HYPERTRACE_QEMU to the path of a QEMU\n", name,
                s.qemu ? "'" : "", s.qemu ? s.qemu :
                "PATH has no QEMU of this name",
                s.qemu ? "' is not a QEMU" : "");
        ht_settings_clear(&s);
        return EXIT_NO_QEMU;
    }
    set_string(&args[0], qemu);
    if (!settings) {
        ht_error("nothing is recorded: %s", error->message);
    }
    if (settings && s.record) {
        r.plan_options.events = s.events;
        r.plan_options.size = s.ring_bytes;
        r.plan_options.private = true;
        r.plan_options.words_only = true;
        r.max_bytes = s.max_bytes;
        status = record(&r, &s, argv, args);
    } else {
        status = run_qemu(args);
    }
    ht_record_clear(&r);
    ht_settings_clear(&s);
    return status;
}
