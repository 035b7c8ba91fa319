/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: run the recorder of a virtual machine
 */
#include "hypertrace/base.h"
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/number.h"
#include "record/record.h"
#include "watch/recorder.h"

/*
 * Usual period of polls in us.  It is longer than that of "hypertrace record",
 * because each poll takes CPU time of the host, even if the machine is idle.
 * Between two polls, the guest's ring keeps the newest events.
 */
#define POLL_US         250000
/*
 * Time in ns in which the first recorder, and each later one, of a machine must
 * find the guest's kernel and its events; it ends otherwise.  The first one
 * gets more time, because the machine may just have started.  Later ones get
 * less, because the search takes CPU time.
 */
#define WAIT_FIRST_NS   UINT64_C(30000000000)
#define WAIT_LATER_NS   UINT64_C(5000000000)
/*
 * Delay in us between a recorder's end and the next start. It doubles with each
 * failure in a row, up to DELAY_MAX.
 */
#define DELAY_MIN       (2 * G_USEC_PER_SEC)
#define DELAY_MAX       (30 * 60 * G_USEC_PER_SEC)
/*
 * If a recorder ran for this many us or longer, its end counts as the first
 * failure.
 */
#define GOOD_US         (5 * 60 * G_USEC_PER_SEC)
/* Begin of messages about recordings that were not made or were removed */
#define NO_RECORDING    "no recording"
#define REMOVED         "removed the recording "
/*
 * Limits for the messages of a recorder: length in bytes, and number of
 * different messages except those that a recording was made. On average, at
 * most one message is printed in LINE_US, and at most 30 at once.
 */
#define LINE_BYTES      4096
#define TOLD_MAX        64
#define LINE_US         (10 * G_USEC_PER_SEC)
#define CREDIT_US       (30 * LINE_US)

HtWatchRecorder *ht_watch_recorder_new(HtWatchVm *vm, const char *where)
{
    HtWatchRecorder *r = g_new0(HtWatchRecorder, 1);

    r->vm = vm;
    r->where = g_strdup(where);
    r->out = -1;
    r->line = g_string_new(NULL);
    r->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    r->credit = CREDIT_US;
    r->credited = g_get_monotonic_time();
    return r;
}

void ht_watch_recorder_free(HtWatchRecorder *r)
{
    if (r) {
        if (r->out >= 0) {
            close(r->out);
        }
        ht_watch_vm_free(r->vm);
        g_free(r->where);
        g_free(r->path);
        g_string_free(r->line, true);
        g_hash_table_destroy(r->told);
        g_free(r);
    }
}

/*
 * Become the machine's user, and drop all capabilities except CAP_SYS_PTRACE:
 * Yama may forbid users to read processes. CAP_SYS_PTRACE is only permitted;
 * functions such as ht_process_open() make it effective while they open a file.
 * If the kernel refuses it, the process goes on without capabilities.
 */
static bool become(const HtProcessOwner *owner)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct none[2] = { 0 }, data[2] = { 0 };

    data[0].permitted = 1u << CAP_SYS_PTRACE;
    if (owner->uid != geteuid() &&
        (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setgroups(0, NULL) ||
         setresgid(owner->gid, owner->gid, owner->gid) ||
         setresuid(owner->uid, owner->uid, owner->uid))) {
        ht_error("cannot become the user of the virtual machine: %s",
                 g_strerror(errno));
        return false;
    }
    return !syscall(SYS_capset, &header, data) ||
           !syscall(SYS_capset, &header, none);
}

static void redirect(int out)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
    }
    dup2(out, STDERR_FILENO);
}

static int record(const HtWatchRecorder *r, const HtWatchSettings *settings,
                  pid_t parent, int out)
{
    const HtWatchRule *rule = r->vm->rule;
    const int keep[] = { r->vm->process->pidfd, r->vm->process->dir };
    g_autofree char *title = g_strdup_printf("ht-%s", r->vm->name);
    HtRecord rec = {
        .plan_options.size = HT_RECORD_SIZE,
        .memory_fd = -1,
        .ready_fd = -1,
        .qmp_fd = -1,
        .pid = r->vm->process->pid,
        .process = r->vm->process,
        .memory_only = true,
        .dir = r->path,
        .flight = {
            .size = rule->size,
            .keep = settings->keep,
            .silence_ns = rule->silence_ns,
            .match = rule->match ? ht_match_new("match", rule->match, NULL) :
                     NULL,
        },
        .poll_us = POLL_US,
        .wait_ns = r->failures ? WAIT_LATER_NS : WAIT_FIRST_NS,
    };
    sigset_t none;
    int status;

    redirect(out);
    ht_process_close_others(keep, G_N_ELEMENTS(keep));
    ht_messages_of("record");
    umask(077);
    prctl(PR_SET_NAME, title);
    if (!become(&r->vm->owner)) {
        return HT_EXIT_ERROR;
    }
    /*
     * The change of the user would clear the parent-death signal: set it only
     * now.
     */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        return HT_EXIT_ERROR;
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    status = ht_record_process(&rec);
    ht_record_clear(&rec);
    return status;
}

static void set_due(HtWatchRecorder *r)
{
    int64_t now = g_get_monotonic_time();
    int64_t delay = DELAY_MIN << MIN(r->failures, 20);

    if (r->started && now - r->started >= GOOD_US) {
        r->failures = 0;
        delay = DELAY_MIN;
    }
    r->failures++;
    r->due = now + MIN(delay, DELAY_MAX);
}

bool ht_watch_recorder_start(HtWatchRecorder *r,
                             const HtWatchSettings *settings, GError **error)
{
    int fds[2] = { -1, -1 };
    pid_t parent = getpid(), child = -1;

    if (!r->path) {
        r->path = g_build_filename(settings->dir, r->where, NULL);
    }
    fflush(NULL);
    if (!pipe2(fds, O_CLOEXEC | O_NONBLOCK)) {
        child = fork();
    }
    if (child == 0) {
        int status;

        close(fds[0]);
        status = record(r, settings, parent, fds[1]);
        fflush(NULL);
        _exit(status);
    }
    if (child < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "cannot start a recorder: %s", g_strerror(errno));
        if (fds[0] >= 0) {
            close(fds[0]);
            close(fds[1]);
        }
        set_due(r);
        return false;
    }
    close(fds[1]);
    if (r->out >= 0) {
        close(r->out);
    }
    g_string_truncate(r->line, 0);
    r->out = fds[0];
    r->child = child;
    r->started = g_get_monotonic_time();
    return true;
}

/*
 * Check whether the recorder's credit allows a further message now; if so,
 * subtract the message's cost from it.
 */
static bool has_credit(HtWatchRecorder *r)
{
    int64_t now = g_get_monotonic_time();

    r->credit = MIN(r->credit + now - r->credited, CREDIT_US);
    r->credited = now;
    if (r->credit < LINE_US) {
        r->suppressed++;
        return false;
    }
    r->credit -= LINE_US;
    if (r->suppressed) {
        ht_notice("%s: %" PRIu64 " %s left out", r->where, r->suppressed,
                  ht_number_form(r->suppressed, "message was",
                                 "messages were"));
        r->suppressed = 0;
    }
    return true;
}

bool ht_watch_is_recording(const char *text, const char *path)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz-");

    if (!n || strncmp(text + n, ": ", 2) ||
        !g_str_has_prefix(text + n + 2, path)) {
        return false;
    }
    text += n + 2 + strlen(path);
    n = *text == '/' ? strspn(++text, "0123456789") : 0;
    return n && text[n] == '-';
}

/*
 * Print a line of the recorder's standard error, within the limits. Leave out a
 * text that was printed before, and, if the machine has ended, each line that
 * is not about a recording; both do not apply to a line that says that a
 * recording was made. Return: true for such a line, even if it is not printed
 */
static bool print_line(HtWatchRecorder *r)
{
    static const char prefix[] = "hypertrace record: ";
    const char *text = r->line->str;
    g_autoptr(GString) safe = g_string_new(NULL);
    bool made;

    if (g_str_has_prefix(text, prefix)) {
        text += strlen(prefix);
    }
    /*
     * If the machine has ended, print only messages about recordings. Other
     * messages may only say that the machine's memory cannot be read.
     */
    made = ht_watch_is_recording(text, r->path);
    if (!made && !g_str_has_prefix(text, NO_RECORDING) &&
        !g_str_has_prefix(text, REMOVED) && ht_process_ended(r->vm->process)) {
        return false;
    }
    if (!made && (g_hash_table_contains(r->told, text) ||
                  g_hash_table_size(r->told) >= TOLD_MAX)) {
        return false;
    }
    if (!made) {
        g_hash_table_add(r->told, g_strdup(text));
    }
    if (has_credit(r)) {
        ht_escape_str(safe, HT_ESCAPE_TERMINAL, text);
        ht_notice("%s: %s", r->where, safe->str);
    }
    return made;
}

bool ht_watch_recorder_read(HtWatchRecorder *r)
{
    bool made = false;
    char buf[4096];
    ssize_t n, i;

    while (r->out >= 0 && (n = read(r->out, buf, sizeof(buf))) != 0) {
        if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0) {
            return made;
        }
        for (i = 0; i < n; i++) {
            if (buf[i] != '\n') {
                if (r->line->len < LINE_BYTES) {
                    g_string_append_c(r->line, buf[i]);
                }
                continue;
            }
            made |= print_line(r);
            g_string_truncate(r->line, 0);
        }
    }
    if (r->out >= 0) {
        close(r->out);
        r->out = -1;
        g_string_truncate(r->line, 0);
    }
    return made;
}

void ht_watch_recorder_ended(HtWatchRecorder *r, int status)
{
    r->child = 0;
    set_due(r);
    if (WIFSIGNALED(status)) {
        ht_error("%s: the recorder was ended by signal %d (%s)", r->where,
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
}
