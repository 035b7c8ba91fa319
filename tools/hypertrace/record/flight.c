/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record --flight: look for causes, and write recordings
 *
 * A child process writes each recording. The child has a copy of the events at
 * the time of the fork, so a slow disk does not delay the next poll.
 */
#include "hypertrace/base.h"
#include <signal.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/number.h"
#include "hypertrace/thread.h"
#include "qemu/qmp-events.h"
#include "qemu/qmp.h"
#include "record/flight.h"
#include "record/flight-boots.h"
#include "record/flight-control.h"
#include "record/flight-dir.h"

/*
 * Maximum wait in ns for the guest's other processors, which may write events
 * after a cause. The recording starts as soon as a poll reads no new event.
 */
#define STILL_NS    UINT64_C(200000000)
/*
 * Period in ns at which ht_flight_wait() looks for new lines in the kernel's
 * log. After a panic, a guest may boot again at once and overwrite the log.
 */
#define LOG_NS      UINT64_C(100000000)
/*
 * Minimum time in ns from a recording of matching events to the next one that
 * has matches as its cause: the guest may have any number of them
 */
#define MATCH_NS    INT64_C(10000000000)
/*
 * A guest can cause BURST recordings at once, and then one in each PERIOD_NS.
 * Without this limit, a guest that resets all the time would keep the disk
 * busy, and would replace the recordings of earlier causes.
 */
#define BURST       16
#define PERIOD_NS   INT64_C(5000000000)
/*
 * Maximum time in ns for which polls put off a recording because
 * ht_job_pause() returns false; then the recording is written nevertheless. A
 * job takes longer to notice the pause for example if it parses an image that a
 * hostile guest has made.
 */
#define PAUSE_NS    INT64_C(2000000000)

/* Texts about the causes; NULL: use f->why, or a description of the matches */
static const char *const texts[HT_CAUSES] = {
    [HT_CAUSE_COMMAND] = "recorded when hypertrace snapshot asked",
    [HT_CAUSE_SIGNAL] = "recorded at SIGUSR1",
    [HT_CAUSE_EVENT] = NULL,
    [HT_CAUSE_SILENCE] = "recorded when there were no events",
    [HT_CAUSE_RESET] = "recorded when the machine was reset",
    [HT_CAUSE_END] = NULL,
    [HT_CAUSE_SHUTDOWN] = "recorded when the machine shut down",
    [HT_CAUSE_IO_ERROR] = "recorded when an I/O error paused the machine",
    [HT_CAUSE_ERROR] = "recorded when an internal error paused the machine",
    [HT_CAUSE_WATCHDOG] = "recorded when the watchdog fired",
    [HT_CAUSE_PANIC] = "recorded when the guest panicked",
};

struct HtFlight {
    HtFlightDir *dir;
    HtFlightControl *control;
    HtQmpEvents *qmp;           /* connection to QEMU's monitor; NULL: none */
    bool quiet;
    const char *why;            /* description of the machine's end */
    /* most important cause that has no recording yet */
    HtCause pending;
    uint64_t since;             /* time in ns at which @pending rose last */
    bool asked;                 /* a user has requested a recording */
    /*
     * time in ns of the first try to pause a job for the next recording; 0
     * before that try
     */
    int64_t pausing;
    /*
     * time in ns up to which the guest's share is used: each recording that no
     * user has requested adds PERIOD_NS, see BURST
     */
    int64_t used_until;
    uint64_t polled_events;     /* HtSessionStats.events at the last poll */
    /* PID of the child process that writes a recording; 0: none runs */
    pid_t writer;
    bool failed;                /* a recording could not be written */
    HtCause written;            /* cause of the last recording */
    /* HtSessionStats.events and .boots when the last recording began */
    uint64_t written_events;
    uint32_t written_boots;
    /* length of a time without events that is a cause, in ns; 0: no cause */
    uint64_t silence_ns;
    /* time in ns at which the present time without events began */
    uint64_t heard;
    bool silent;                /* the present silence has been a cause */
    bool paused;
    bool suspended;
    /* events or lines of the log that are a cause; or NULL */
    HtMatch *match;
    /* earliest time in ns at which matches are a cause again */
    int64_t next_match;
    /* an event or line that is still in memory has matched, see note_match() */
    bool matched;
    /*
     * with @matched: HtSessionStats.events at the poll before the one that
     * found the first match
     */
    uint64_t before_match;
    uint64_t missed;            /* number of matches in calls of miss_match() */
    HtFlightBoots boots;
};

static volatile sig_atomic_t got_signal;

static void on_signal(int sig)
{
    got_signal = sig;
}

static void raise_cause(HtFlight *f, HtCause cause)
{
    if (cause > f->pending) {
        f->since = ht_now_ns();
        f->pending = cause;
    }
}

static void raise_death(HtFlight *f, HtFlightDeath death)
{
    if (death != HT_FLIGHT_NO_DEATH) {
        raise_cause(f, death == HT_FLIGHT_PANIC ? HT_CAUSE_PANIC :
                       HT_CAUSE_RESET);
    }
}

static HtCause cause_of_state(const char *state)
{
    return !strcmp(state, "guest-panicked") ? HT_CAUSE_PANIC :
           !strcmp(state, "watchdog") ? HT_CAUSE_WATCHDOG :
           !strcmp(state, "internal-error") ? HT_CAUSE_ERROR :
           !strcmp(state, "io-error") ? HT_CAUSE_IO_ERROR : HT_CAUSE_NONE;
}

static HtCause cause_of_shutdown(const char *reason)
{
    return !strcmp(reason, "guest-panic") ? HT_CAUSE_PANIC :
           !strcmp(reason, "guest-reset") ? HT_CAUSE_RESET : HT_CAUSE_SHUTDOWN;
}

static HtCause cause_of(const char *event, JsonObject *data)
{
    const char *action = ht_qmp_text(data, "action");

    if (!strcmp(event, "GUEST_PANICKED") ||
        !strcmp(event, "GUEST_CRASHLOADED")) {
        return HT_CAUSE_PANIC;
    }
    if (!strcmp(event, "WATCHDOG")) {
        return strcmp(action, "none") ? HT_CAUSE_WATCHDOG : HT_CAUSE_NONE;
    }
    if (!strcmp(event, "BLOCK_IO_ERROR")) {
        return strcmp(action, "stop") ? HT_CAUSE_NONE : HT_CAUSE_IO_ERROR;
    }
    if (!strcmp(event, "query-status")) {
        return cause_of_state(ht_qmp_text(data, "status"));
    }
    if (!strcmp(event, "SHUTDOWN")) {
        return cause_of_shutdown(ht_qmp_text(data, "reason"));
    }
    return HT_CAUSE_NONE;
}

/*
 * Note whether the machine runs.  A paused or suspended machine has no events,
 * but that is no silence.
 */
static void note_state(HtFlight *f, const char *event)
{
    if (!strcmp(event, "STOP") || !strcmp(event, "RESUME")) {
        f->paused = *event == 'S';
    } else if (g_str_has_prefix(event, "SUSPEND")) {
        f->suspended = true;
    } else if (!strcmp(event, "WAKEUP") || !strcmp(event, "RESET")) {
        f->suspended = false;
    }
}

static void read_monitor(HtFlight *f, const HtSessionStats *n)
{
    JsonNode *node;

    while (f->qmp && (node = ht_qmp_events_next(f->qmp))) {
        JsonObject *o = json_node_get_object(node);
        JsonNode *member = json_object_get_member(o, "data");
        JsonObject *data = member && JSON_NODE_HOLDS_OBJECT(member) ?
                           json_object_ref(json_node_get_object(member)) :
                           json_object_new();
        const char *event = ht_qmp_text(o, "event");
        HtCause cause = cause_of(event, data);

        note_state(f, event);
        if (cause == HT_CAUSE_PANIC) {
            raise_death(f, ht_flight_boots_panic(&f->boots));
        } else if (!strcmp(event, "RESET")) {
            raise_death(f, ht_flight_boots_reset(&f->boots, n));
        } else if (cause) {
            raise_cause(f, cause);
        }
        json_object_unref(data);
        json_node_unref(node);
    }
}

static void note_silence(HtFlight *f, const HtSessionStats *n)
{
    if (n->events != f->polled_events || !n->found || f->paused ||
        f->suspended) {
        f->heard = ht_now_ns();
        f->silent = false;
    } else if (f->silence_ns && !f->silent &&
               ht_now_ns() - f->heard >= f->silence_ns) {
        f->silent = true;
        raise_cause(f, HT_CAUSE_SILENCE);
    }
}

/*
 * Forget the matches: newer events have replaced the first of them in memory.
 */
static void miss_match(HtFlight *f)
{
    f->missed += ht_match_count(f->match);
    ht_match_forget(f->match);
    f->matched = false;
    if (f->pending == HT_CAUSE_EVENT) {
        f->pending = f->asked ? HT_CAUSE_COMMAND : HT_CAUSE_NONE;
    }
}

/*
 * All matches since the last recording are one cause. If newer events have
 * replaced the first match in memory, the matches are no cause any longer.
 */
static void note_match(HtFlight *f, const HtSessionStats *n)
{
    if (ht_match_count(f->match) && !f->matched) {
        f->matched = true;
        f->before_match = f->polled_events;
    }
    if (f->matched && n->events - n->held > f->before_match) {
        miss_match(f);
    } else if (f->matched && ht_now_ns() >= f->next_match) {
        raise_cause(f, HT_CAUSE_EVENT);
    }
}

static void reply_error(HtFlight *f, const char *why)
{
    g_autoptr(GString) line = g_string_new(NULL);
    HtJson j = { .out = line };

    ht_json_open(&j, NULL, '{');
    ht_json_str(&j, "error", why);
    ht_json_close(&j, '}');
    ht_flight_control_reply(f->control, line->str);
}

static void reply(HtFlight *f, const char *path, uint64_t events)
{
    g_autoptr(GString) line = g_string_new(NULL);
    HtJson j = { .out = line };

    ht_json_open(&j, NULL, '{');
    ht_json_str(&j, "directory", path);
    ht_json_uint(&j, "events", events);
    ht_json_str(&j, "cause", ht_cause_name(f->pending));
    ht_json_close(&j, '}');
    ht_flight_control_reply(f->control, line->str);
}

static char *text_of(const HtFlight *f)
{
    return f->pending == HT_CAUSE_EVENT ?
           g_strdup_printf("recorded at the %s %s",
                           ht_match_is_log(f->match) ? "line" : "event",
                           ht_match_text(f->match)) :
           g_strdup(f->pending == HT_CAUSE_END ? f->why :
                    texts[f->pending]);
}

static char *write_once(HtFlight *f, HtSession *session, GError **error)
{
    HtRecWriter *w = ht_flight_dir_begin(f->dir, error);
    g_autofree char *text = text_of(f);
    char *path = NULL;
    bool ok;

    ok = w && ht_session_save(session, w, ht_cause_name(f->pending), text,
                              error);
    ht_rec_writer_free(w);
    if (ok) {
        path = ht_flight_dir_commit(f->dir, f->pending, error);
    }
    if (!path) {
        ht_flight_dir_abort(f->dir);
    }
    return path;
}

/*
 * Write a recording. If the disk is full, remove the oldest recordings in the
 * folder to make room. Return: the recording's path; NULL on failure
 */
static char *write_recording(HtFlight *f, HtSession *session, GError **error)
{
    for (;;) {
        g_autoptr(GError) local = NULL;
        char *path = write_once(f, session, &local);
        g_autofree char *removed = NULL;

        if (path) {
            return path;
        }
        removed = g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOSPC) ?
                  ht_flight_dir_remove_oldest(f->dir) : NULL;
        if (!removed) {
            g_propagate_error(error, g_steal_pointer(&local));
            return NULL;
        }
        ht_notice("removed the recording %s: the file system is full",
                  removed);
    }
}

/*
 * Print one line: the cause, the recording, its number of events, and a summary
 * of the guest's end.
 */
static void print_line(const HtFlight *f, const char *path, uint64_t events)
{
    g_autoptr(GString) last = g_string_new(NULL);

    ht_last_brief(path, last);
    ht_notice("%s: %s, %" PRIu64 " event%s%s%s", ht_cause_name(f->pending),
              path, events, ht_number_s(events), last->len ? "; " : "",
              last->str);
}

/* Write the recording and reply; runs in the child process. */
static int write_all(HtFlight *f, HtSession *session)
{
    uint64_t events = ht_session_stats(session).held;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = write_recording(f, session, &error);

    if (!path) {
        reply_error(f, error->message);
        return ht_error("no recording (%s): %s", ht_cause_name(f->pending),
                        error->message);
    }
    reply(f, path, events);
    if (!f->quiet) {
        print_line(f, path, events);
    }
    return HT_EXIT_OK;
}

static void start_writer(HtFlight *f, HtSession *session,
                         const HtSessionStats *n)
{
    pid_t pid;

    ht_session_write_formats(session);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int status = write_all(f, session);

        fflush(NULL);
        _exit(status);
    }
    if (pid < 0) {
        const char *why = g_strerror(errno);

        f->failed = true;
        ht_error("no recording (%s): cannot start a process: %s",
                 ht_cause_name(f->pending), why);
        reply_error(f, why);
    } else {
        f->writer = pid;
        ht_flight_control_reply(f->control, NULL);
    }
    f->dir->number++;
    if (f->match && ht_match_count(f->match)) {
        f->next_match = ht_now_ns() + MATCH_NS;
        ht_match_forget(f->match);
        f->matched = false;
    }
    if (!f->asked) {
        f->used_until = MAX(f->used_until, ht_now_ns()) + PERIOD_NS;
    }
    f->written = f->pending;
    f->written_events = n->events;
    f->written_boots = n->boots;
    f->pending = HT_CAUSE_NONE;
    f->asked = false;
}

static void note_end(HtFlight *f, pid_t pid, int status)
{
    if (pid == f->writer || (pid < 0 && errno == ECHILD)) {
        f->failed |= pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status);
        f->writer = 0;
    }
}

static void reap(HtFlight *f)
{
    int status;
    pid_t pid;

    if (f->writer) {
        pid = waitpid(f->writer, &status, WNOHANG);
        note_end(f, pid, status);
    }
}

/*
 * Wait for the process that writes.  Return: false if a signal interrupts the
 * wait
 */
static bool wait_writer(HtFlight *f)
{
    int status;
    pid_t pid;

    while (f->writer) {
        pid = waitpid(f->writer, &status, 0);
        if (pid < 0 && errno == EINTR) {
            return false;
        }
        note_end(f, pid, status);
    }
    return true;
}

/*
 * Test whether a cause needs no recording of its own, for example a shutdown
 * after a panic: no user has asked, the boot is that of the last recording and
 * has no new events, and the cause is not more important than that recording's.
 */
static bool is_known(const HtFlight *f, const HtSessionStats *n)
{
    return !f->asked && n->boots == f->written_boots &&
           n->events == f->written_events && f->pending <= f->written;
}

static void drop(HtFlight *f, const char *why)
{
    if (f->asked) {
        ht_error("no recording (%s): %s", ht_cause_name(f->pending), why);
    }
    reply_error(f, why);
    /*
     * The monitor may have reported a panic of a boot that no poll has found
     * yet. Lower boots.panicked, so that a panic in this boot's log is a cause.
     */
    f->boots.panicked = MIN(f->boots.panicked, f->boots.boots);
    f->pending = HT_CAUSE_NONE;
    f->asked = false;
}

static void write_pending(HtFlight *f, HtSession *session,
                          const HtSessionStats *n)
{
    if (!n->found && !n->logged) {
        drop(f, "no ring of events and no kernel's log was found yet");
    } else if (is_known(f, n)) {
        f->pending = HT_CAUSE_NONE;
    } else {
        start_writer(f, session, n);
    }
}

static void look_for_causes(HtFlight *f, const HtSessionStats *n)
{
    read_monitor(f, n);
    raise_death(f, ht_flight_boots_note(&f->boots, n, ht_now_ns()));
    note_silence(f, n);
    note_match(f, n);
    if (got_signal) {
        got_signal = 0;
        f->asked = true;
        raise_cause(f, HT_CAUSE_SIGNAL);
    }
    if (ht_flight_control_poll(f->control)) {
        f->asked = true;
        raise_cause(f, HT_CAUSE_COMMAND);
    }
}

/*
 * Test whether the recording can be written now.  After a cause more important
 * than silence, wait until the guest writes no more events, at most STILL_NS.
 * If the guest's share of recordings is used up, see BURST, wait until a user
 * asks or the share allows one recording, which is then for all causes so far.
 * @polled: the guest's memory was polled after the cause came
 */
static bool is_ready(const HtFlight *f, const HtSessionStats *n, bool polled)
{
    int64_t now = ht_now_ns();

    if (!f->asked && f->used_until > now + (BURST - 1) * PERIOD_NS) {
        return false;
    }
    return f->pending <= HT_CAUSE_SILENCE ||
           (polled && n->events == f->polled_events) ||
           (uint64_t)now - f->since >= STILL_NS;
}

/*
 * Pause a job before fork(). Returns false while the job's thread may hold a
 * lock: the child would wait for it forever. After PAUSE_NS, returns true
 * nevertheless.
 */
static bool pause_job(HtFlight *f, HtJob *job)
{
    int64_t now = ht_now_ns();

    if (!job || ht_job_pause(job)) {
        return true;
    }
    f->pausing = f->pausing ? f->pausing : now;
    return now - f->pausing >= PAUSE_NS;
}

static void resume_job(HtFlight *f, HtJob *job)
{
    f->pausing = 0;
    if (job) {
        ht_job_resume(job);
    }
}

void ht_flight_poll(HtFlight *f, HtSession *session, HtJob *job)
{
    HtSessionStats n = ht_session_stats(session);
    HtCause before = f->pending;

    reap(f);
    look_for_causes(f, &n);
    if (!f->pending || f->writer || !is_ready(f, &n, f->pending == before)) {
        resume_job(f, job);
    } else if (pause_job(f, job)) {
        write_pending(f, session, &n);
        resume_job(f, job);
    }
    f->polled_events = n.events;
}

void ht_flight_wait(HtFlight *f, const HtSession *session, int pidfd,
                    uint32_t us)
{
    uint64_t now = ht_now_ns(), end = now + us * UINT64_C(1000);
    HtKernelLogHint hint;
    bool logs = session && ht_session_log_hint(session, &hint);

    while (now < end) {
        /*
         * If a log is read, wait only up to the next time that is a multiple of
         * LOG_NS before @end, to check the log then.
         */
        uint64_t ns = logs ? (end - now - 1) % LOG_NS + 1 : end - now;

        if (!ht_flight_control_wait(f->control, pidfd, ns)) {
            return;
        }
        now = ht_now_ns();
        /* At @end the caller polls, which also reads the log. */
        if (logs && now < end && ht_kernel_log_grew(&hint)) {
            return;
        }
    }
}

bool ht_flight_end(HtFlight *f, HtSession *session, const char *why)
{
    HtSessionStats n = ht_session_stats(session);

    f->why = why;
    look_for_causes(f, &n);
    if (why) {
        raise_cause(f, HT_CAUSE_END);
    }
    if (!wait_writer(f)) {
        return false;
    }
    if (f->pending) {
        write_pending(f, session, &n);
    }
    if (f->missed && !f->quiet) {
        ht_notice("--match: %" PRIu64 " event%s replaced in memory before a "
                  "recording", f->missed, f->missed == 1 ? " was" : "s were");
    }
    return wait_writer(f) && !f->failed;
}

bool ht_flight_is_writer(const HtFlight *f, pid_t pid)
{
    return f && f->writer && f->writer == pid;
}

HtFlight *ht_flight_new(const HtFlightOptions *options, const char *dir,
                        bool quiet, GError **error)
{
    struct sigaction sa = { .sa_handler = on_signal };
    HtFlight *f = g_new0(HtFlight, 1);

    f->quiet = quiet;
    f->silence_ns = options->silence_ns;
    f->match = options->match;
    f->dir = ht_flight_dir_open(dir, options->keep ? options->keep :
                                HT_FLIGHT_KEEP_DEFAULT, error);
    f->control = f->dir ? ht_flight_control_new(f->dir->fd, error) : NULL;
    if (!f->control) {
        ht_flight_free(f);
        return NULL;
    }
    sigaction(SIGUSR1, &sa, NULL);
    return f;
}

void ht_flight_free(HtFlight *f)
{
    if (f) {
        ht_qmp_events_free(f->qmp);
        ht_flight_control_free(f->control);
        ht_flight_dir_close(f->dir);
        g_free(f);
    }
}

void ht_flight_monitor(HtFlight *f, int fd)
{
    f->qmp = ht_qmp_events_new(fd);
}
