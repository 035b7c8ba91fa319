/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: run QEMU, or watch one that runs
 *
 * This process holds the guest's memory, so that it outlives QEMU, however
 * that ends.  QEMU has the terminal: signals from there reach both, others are
 * passed on.
 */
#include "hypertrace/base.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/command.h"
#include "record/record.h"

#define STATUS_NS       UINT64_C(500000000)
/* So long a kernel may take until it has a ring where it was meant to be. */
#define ELSEWHERE_NS    UINT64_C(3000000000)
#define RESCAN_NS       UINT64_C(200000000)

/*
 * What is being recorded.  @sources has the memory that we hold, or of each of
 * the user's files what there is, NULL before QEMU has made it.
 */
typedef struct Run {
    const HtRecord *r;
    HtSession *session;
    bool hangs;                 /* LTTng */
    GPtrArray *sources;
    HtSource *rest;             /* other memory of the process, or NULL */
    HtProcess *process;
    pid_t pid;
    bool child;
    bool tty;
    bool stopped;               /* the recording, not QEMU */
    uint64_t started;
    uint64_t scanned;
} Run;

static volatile sig_atomic_t got_signal;

static void on_signal(int sig)
{
    got_signal = sig;
}

static uint64_t now_ns(void)
{
    return g_get_monotonic_time() * UINT64_C(1000);
}

/* Look at @source, in place of what was in @slot */
static void set_source(Run *run, HtSource **slot, HtSource *source)
{
    if (*slot) {
        ht_session_remove(run->session, &(*slot)->mem);
        ht_source_free(*slot);
    }
    *slot = source;
    if (source) {
        ht_session_add(run->session, &source->mem);
    }
}

/* Memory that outlives QEMU; QEMU inherits the descriptor. */
static bool make_memory(Run *run, uint64_t bytes, GError **error)
{
    int fd = memfd_create("hypertrace", MFD_CLOEXEC);
    HtSource *source;

    if (fd < 0 || ftruncate(fd, bytes) || dup2(fd, run->r->plan->fd) < 0) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "cannot make memory of %" PRIu64 " MiB for the guest: %s",
                    bytes >> 20, g_strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    source = ht_source_file(fd, "the guest's memory", error);
    g_ptr_array_set_size(run->sources, 1);
    set_source(run, (HtSource **)&run->sources->pdata[0], source);
    return source;
}

/* It was opened before QEMU gave it its size. */
static bool has_grown(const HtSource *s)
{
    struct stat st;

    return !fstat(s->fd, &st) && st.st_size > 0 &&
           (uint64_t)st.st_size > s->mem.size;
}

/* The user's files are there once QEMU has made them. */
static void open_files(Run *run)
{
    const GPtrArray *files = run->r->plan->files;
    unsigned i;

    g_ptr_array_set_size(run->sources, files->len);
    for (i = 0; i < files->len; i++) {
        HtSource **s = (HtSource **)&run->sources->pdata[i];

        if (!*s || has_grown(*s)) {
            set_source(run, s, ht_source_open(files->pdata[i], NULL));
        }
    }
}

/* Again and again: a QEMU that has just begun has no guest's memory yet. */
static void scan_process(Run *run)
{
    uint64_t t = now_ns();

    if (run->process &&
        t - run->scanned >= MAX(RESCAN_NS, (t - run->started) / 4)) {
        run->scanned = t;
        set_source(run, &run->rest,
                   ht_source_process(run->process, run->sources, NULL));
    }
}

/* What is not there from the begin, or not where it should be */
static void find_sources(Run *run)
{
    const HtRecordPlan *p = run->r->plan;

    if (!p || ht_session_stats(run->session).found) {
        return;
    }
    if (p->memory == HT_RECORD_SHARED) {
        open_files(run);
    }
    if (p->memory == HT_RECORD_PROCESS ||
        (p->memory != HT_RECORD_MEMFD &&
         now_ns() - run->started > ELSEWHERE_NS)) {
        scan_process(run);
    }
}

static bool start(Run *run, char **argv, GError **error)
{
    GPid pid;
    bool ok;

    ok = g_spawn_async(NULL, argv, NULL,
                       G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD |
                       G_SPAWN_LEAVE_DESCRIPTORS_OPEN |
                       G_SPAWN_CHILD_INHERITS_STDIN, NULL, NULL, &pid, error);
    if (run->r->plan->bytes) {
        close(run->r->plan->fd);
    }
    run->pid = ok ? pid : 0;
    run->process = ok ? ht_process_new(pid, NULL) : NULL;
    return ok;
}

static void show_status(const Run *run, uint64_t ns)
{
    static HtSessionStats last;
    HtSessionStats now = ht_session_stats(run->session);
    double seconds = ns / 1e9;

    if (!now.found) {
        fputs("\r\033[Kno ring yet", stderr);
    } else {
        fprintf(stderr, "\r\033[K%" PRIu64 " events, %.0f/s, %.2f MB/s, "
                "%" PRIu64 " gap%s", now.events,
                (now.events - last.events) / seconds,
                (now.bytes - last.bytes) / seconds / 1e6, now.gaps,
                now.gaps == 1 ? "" : "s");
    }
    fflush(stderr);
    last = now;
}

/* Has QEMU ended?  @status is waitpid()'s, 0 for a process not of ours. */
static bool has_ended(Run *run, int *status)
{
    *status = 0;
    if (run->child) {
        pid_t pid = waitpid(run->pid, status, WNOHANG);

        return pid == run->pid || (pid < 0 && errno != EINTR);
    }
    return ht_process_ended(run->process);
}

/* One look; whatever comes of it, QEMU goes on. */
static void look(Run *run)
{
    g_autoptr(GError) error = NULL;

    find_sources(run);
    if (!ht_session_look(run->session, &error)) {
        if (run->tty) {
            fputs("\r\033[K", stderr);
        }
        ht_error("%s", error->message);
        ht_session_stop(run->session, error->message);
        run->stopped = true;
    }
}

static void follow(Run *run, int *status)
{
    uint32_t us = run->r->poll_us;
    struct timespec pause = { us / 1000000, us % 1000000 * 1000 };
    uint64_t shown = now_ns();

    while (!has_ended(run, status)) {
        uint64_t t = now_ns();

        if (got_signal && !run->child) {
            break;
        } else if (got_signal) {
            int sig = got_signal;

            got_signal = 0;
            kill(run->pid, sig);
        }
        if (!run->stopped) {
            look(run);
        }
        if (run->tty && !run->stopped && t - shown >= STATUS_NS) {
            show_status(run, t - shown);
            shown = t;
        }
        if (run->stopped || !ht_session_more(run->session)) {
            nanosleep(&pause, NULL);
        }
    }
    if (run->tty) {
        fputs("\r\033[K", stderr);
    }
}

static void tell_losses(const HtSessionStats *n, bool stopped)
{
    const char *next = "";

    if (n->gaps) {
        fprintf(stderr, "about %" PRIu64 " lost in %" PRIu64 " gap%s: try a "
                "larger --size or fewer --events", n->lost, n->gaps,
                n->gaps == 1 ? "" : "s");
        next = "; ";
    }
    if (n->late) {
        fprintf(stderr, "%sthe first ones of %" PRIu64 " processor%s were "
                "overwritten before they could be read", next, n->late,
                n->late == 1 ? "" : "s");
        next = "; ";
    }
    if (n->errors) {
        fprintf(stderr, "%sthe memory could not be read %" PRIu64 " time%s",
                next, n->errors, n->errors == 1 ? "" : "s");
        next = "; ";
    }
    if (stopped) {
        fprintf(stderr, "%sthe rest is missing", next);
    } else if (!*next) {
        fputs("none lost", stderr);
    }
    fputc('\n', stderr);
}

static void summary(const Run *run)
{
    HtSessionStats n = ht_session_stats(run->session);
    const HtRecordPlan *p = run->r->plan;
    const char *words = p && !p->kernel ? p->words : NULL;

    if (!n.found) {
        ht_error("no ring of events was found in the guest's memory: the "
                 "kernel has to be 6.12 or later, and its command line needs "
                 "a ring%s%s", words ? ": have its boot loader give it " : "",
                 words ? words : "");
    } else if (!run->r->quiet) {
        fprintf(stderr, "hypertrace record: %" PRIu64 " events, %.1f MB in "
                "%s; ", n.events, n.bytes / 1e6, run->r->dir);
        tell_losses(&n, run->stopped);
    }
}

/* LTTng gets the rest. */
static void end_live(Run *run)
{
    const HtRecord *r = run->r;
    HtLiveStats n;

    if (!r->live) {
        return;
    }
    run->hangs = !ht_live_end(r->live, &n);
    if (n.why) {
        ht_error("LTTng: %s", n.why);
    }
    if (!r->quiet) {
        fprintf(stderr, "hypertrace record: %" PRIu64 " of them are LTTng's, "
                "as '%s:*'; ", n.taken,
                r->live_options.name);
        if (n.unwanted) {
            fprintf(stderr, "no session wanted %" PRIu64 "; ", n.unwanted);
        }
        if (n.lost) {
            fprintf(stderr, "%" PRIu64 " lost\n", n.lost);
        } else {
            fputs("none lost\n", stderr);
        }
    }
}

static char *describe_end(const Run *run, int status)
{
    if (!run->child) {
        return g_strdup(got_signal ? "the recorder was stopped" :
                        "QEMU ended");
    }
    if (WIFSIGNALED(status)) {
        return g_strdup_printf("QEMU was killed by signal %d (%s)",
                               WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return g_strdup_printf("QEMU ended with status %d", WEXITSTATUS(status));
}

static void catch_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction sa = { .sa_handler = on_signal };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(signals); i++) {
        sigaction(signals[i], &sa, NULL);
    }
}

static int exit_status(const Run *run, int status)
{
    if (!run->child) {
        return ht_session_stats(run->session).found ? HT_EXIT_OK :
               HT_EXIT_ERROR;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int record_all(Run *run)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *end = NULL;
    int status;

    if (run->r->live) {
        ht_live_start(run->r->live);
    }
    follow(run, &status);
    end = describe_end(run, status);
    if (!run->stopped && !ht_session_finish(run->session, end, &error)) {
        ht_error("%s", error->message);
        ht_session_stop(run->session, error->message);
        run->stopped = true;
    }
    summary(run);
    return exit_status(run, status);
}

static void free_source(void *source)
{
    ht_source_free(source);
}

int ht_record_run(const HtRecord *r, const HtSessionInfo *info)
{
    g_autoptr(GError) error = NULL;
    Run run = {
        .r = r,
        .process = r->process,
        .child = r->plan,
        .tty = !r->quiet && isatty(STDERR_FILENO) &&
               !(r->plan && r->plan->uses_terminal),
        .started = now_ns(),
    };
    int status = HT_EXIT_ERROR;

    run.sources = g_ptr_array_new_with_free_func(free_source);
    run.session = ht_session_new(info, &error);
    if (run.session && r->plan) {
        catch_signals();
        if ((!r->plan->bytes || make_memory(&run, r->plan->bytes, &error)) &&
            start(&run, r->plan->argv, &error)) {
            status = record_all(&run);
        }
    } else if (run.session) {
        catch_signals();
        set_source(&run, &run.rest,
                   ht_source_process(r->process, NULL, &error));
        if (run.rest) {
            status = record_all(&run);
        }
    }
    if (error) {
        ht_error("%s", error->message);
    }
    end_live(&run);
    /* the session reads the sources */
    ht_session_free(run.session);
    g_ptr_array_free(run.sources, true);
    ht_source_free(run.rest);
    if (r->plan) {
        ht_process_free(run.process);
    }
    if (run.hangs) {
        /* LTTng-UST's destructor would wait for the thread that hangs */
        fflush(NULL);
        _exit(status);
    }
    return status;
}
