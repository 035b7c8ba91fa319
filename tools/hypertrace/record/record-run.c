/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: run QEMU or use a running one, and poll its memory
 *
 * If the guest's memory is a memfd or a shared file, this process holds it, so
 * that it outlives QEMU. Private memory is read while its process runs. SIGINT,
 * SIGTERM, SIGHUP and SIGQUIT are passed on to a QEMU that this process
 * started; without such a QEMU, they end the recording.
 */
#include "hypertrace/base.h"
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/command.h"
#include "cli/number.h"
#include "hypertrace/thread.h"
#include "record/record-run.h"

#define STATUS_NS       UINT64_C(500000000)
/*
 * HT_RECORD_SHARED and HT_RECORD_NODE: if no ring is found in this time in ns
 * after the start, the rest of QEMU's memory (HtRecordRun.rest) is searched,
 * too
 */
#define ELSEWHERE_NS    UINT64_C(3000000000)
#define RESCAN_NS       UINT64_C(200000000)
/*
 * If no ring is found in this time in ns after the start, the likely reasons
 * are printed, unless the option --quiet is used.
 */
#define REASONS_NS      UINT64_C(30000000000)
/*
 * While neither a kernel nor a ring is found: minimum time in us to wait after
 * a poll that has left no work. With --host, each wake-up of this process is
 * recorded, too.
 */
#define SEARCH_US       5000
/*
 * If at least this many events were read since the last wait, the next wait is
 * 1/BUSY_PART of --poll-us.
 */
#define BUSY_EVENTS     2000
#define BUSY_PART       8
/*
 * If a flight recorder has read fewer events than this since the last wait, and
 * it did not start QEMU, it waits for twice the time of --poll-us.
 */
#define IDLE_EVENTS     50
/*
 * While no ring is found: the search for the kernel may go on for this many
 * times the time of --wait, unless it fails before with a reason.
 */
#define LONG            20
/*
 * With --flight and --wait, a kernel's image that was not found at the start is
 * searched again later: the times in ns after the start of the first and the
 * last search. Each search begins at least twice as long after the start as the
 * previous one.
 */
#define IMAGE_NS        UINT64_C(5000000000)
#define IMAGE_LAST_NS   UINT64_C(640000000000)

static volatile sig_atomic_t got_signal;
static volatile sig_atomic_t got_request;

static void on_signal(int sig)
{
    got_signal = sig;
}

static void on_request(int sig)
{
    got_request = sig;
}

/*
 * Close the source in @slot, put @source there, and search it for @what, which
 * is HT_SESSION_* flags. @source may be NULL.
 */
static void set_source(HtRecordRun *run, HtSource **slot, HtSource *source,
                       unsigned what)
{
    if (*slot) {
        ht_session_remove(run->session, &(*slot)->mem);
        ht_source_free(*slot);
    }
    *slot = source;
    if (source) {
        ht_session_add(run->session, &source->mem, what);
    }
}

/*
 * Get the HT_SESSION_* flags for the memfd and for run->rest. If the memfd is a
 * NUMA node, search only for rings there: the kernel may be in any node, and is
 * searched in run->whole.
 */
static unsigned searched_for(const HtRecordRun *run)
{
    return run->r->plan->memory == HT_RECORD_NODE ? HT_SESSION_RINGS :
           HT_SESSION_ALL;
}

/*
 * Add the memfd of this process to the session; it is all of the guest's memory
 * or a NUMA node of it. QEMU's options have its path already: /proc/self/fd/N
 * if QEMU inherits the descriptor, else /proc/PID/fd/N.
 */
static bool add_memory(HtRecordRun *run, GError **error)
{
    HtSource *source = ht_source_file(run->r->memory_fd, "the guest's memory",
                                      error);

    g_ptr_array_set_size(run->sources, 1);
    set_source(run, (HtSource **)&run->sources->pdata[0], source,
               searched_for(run));
    return source;
}

/*
 * True if a file is longer now than when it was opened, for example because
 * QEMU has set its size
 */
static bool has_grown(const HtSource *s)
{
    struct stat st;

    return !fstat(s->fd, &st) && st.st_size > 0 &&
           (uint64_t)st.st_size > s->mem.size;
}

/*
 * Open the RAM files that QEMU's options name: each file as soon as it exists,
 * and again when it has grown.
 */
static void open_files(HtRecordRun *run)
{
    const GPtrArray *files = run->r->plan->files;
    unsigned i;

    g_ptr_array_set_size(run->sources, files->len);
    for (i = 0; i < files->len; i++) {
        HtSource **s = (HtSource **)&run->sources->pdata[i];

        if (!*s || has_grown(*s)) {
            set_source(run, s, ht_source_open(files->pdata[i], NULL),
                       HT_SESSION_ALL);
        }
    }
}

/*
 * Find the process with the guest's memory: the descendant of this process with
 * the most memory that may be RAM. This QEMU may be the child of a script or of
 * sudo. A QEMU that went to the background is a child of this process, which is
 * a subreaper. Returns NULL if no descendant qualifies, or if this process did
 * not start QEMU.
 */
static HtProcess *find_guest(const HtRecordRun *run)
{
    g_autoptr(GArray) pids = NULL;
    HtProcess *best = NULL;
    uint64_t best_size = 0;
    unsigned i;

    if (!run->child) {
        return NULL;
    }
    pids = ht_process_children();
    for (i = 0; i < pids->len; i++) {
        pid_t pid = g_array_index(pids, pid_t, i);
        HtProcess *p = ht_flight_is_writer(run->flight, pid) ? NULL :
                       ht_process_new(pid, NULL);
        uint64_t size = p ? ht_source_process_size(p) : 0;

        if (size > best_size) {
            ht_process_free(best);
            best = g_steal_pointer(&p);
            best_size = size;
        }
        ht_process_free(p);
    }
    return best;
}

static void set_process(HtRecordRun *run, HtProcess *process)
{
    if (process) {
        ht_process_free(run->process);
        run->process = process;
    }
}

/*
 * Put @source into @slot, unless the source there is of the same process and
 * has the same ranges: another source would restart all searches.
 */
static void scan(HtRecordRun *run, HtSource **slot, HtSource *source,
                 unsigned what)
{
    if (source && *slot && run->scanned_pid == run->process->pid &&
        ht_source_same(*slot, source)) {
        ht_source_free(source);
    } else {
        set_source(run, slot, source, what);
    }
}

/*
 * From time to time, find the process with the guest's memory again and, if
 * @rest or @whole is true, its mappings for run->rest or run->whole: QEMU may
 * start late, and maps its RAM after its start.
 */
static void scan_process(HtRecordRun *run, bool rest, bool whole)
{
    uint64_t t = ht_now_ns();

    if (t - run->scanned < MAX(RESCAN_NS, (t - run->started) / 4)) {
        return;
    }
    run->scanned = t;
    if (!rest && !whole && !(run->host && ht_process_wrapped())) {
        return;
    }
    set_process(run, find_guest(run));
    if (!run->process || (!rest && !whole)) {
        return;
    }
    if (rest) {
        scan(run, &run->rest, ht_source_process(run->process, run->sources,
                                                NULL), searched_for(run));
    }
    if (whole) {
        scan(run, &run->whole,
             ht_source_process_nodes(run->process, run->r->plan->low,
                                     run->sources->pdata[0], NULL),
             HT_SESSION_KERNEL);
    }
    run->scanned_pid = run->process->pid;
}

/*
 * Test whether the session reads the log of a kernel in a source. Such a source
 * must not be replaced: in a new source, the same kernel would count as another
 * boot. If the kernel's memory is gone, a later poll of the session notices.
 */
static bool is_followed(const HtRecordRun *run, const HtSource *source)
{
    return source && ht_session_has_kernel(run->session, &source->mem);
}

/*
 * While no ring is found, open RAM files that did not exist before or have
 * grown, and search run->rest: from the start for HT_RECORD_PROCESS, after
 * ELSEWHERE_NS for shared files and a NUMA node. If the memfd is a NUMA node,
 * also search both nodes for the kernel.
 */
static void find_sources(HtRecordRun *run)
{
    const HtRecordPlan *p = run->r->plan;
    HtSessionStats n;
    bool late;

    if (!p) {
        return;
    }
    n = ht_session_stats(run->session);
    late = ht_now_ns() - run->started > ELSEWHERE_NS;
    if (!n.found && p->memory == HT_RECORD_SHARED) {
        open_files(run);
    }
    scan_process(run, !n.found && !is_followed(run, run->rest) &&
                 (p->memory == HT_RECORD_PROCESS ||
                  (p->memory != HT_RECORD_MEMFD && late)),
                 !is_followed(run, run->whole) && run->r->image &&
                 p->memory == HT_RECORD_NODE);
}

static bool start(HtRecordRun *run, char **argv, GError **error)
{
    GPid pid;
    bool ok;

    ok = g_spawn_async(NULL, argv, NULL,
                       G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD |
                       G_SPAWN_LEAVE_DESCRIPTORS_OPEN |
                       G_SPAWN_CHILD_INHERITS_STDIN, NULL, NULL, &pid, error);
    run->pid = ok ? pid : 0;
    run->process = ok ? ht_process_new(pid, NULL) : NULL;
    return ok;
}

static void show_status(const HtRecordRun *run, uint64_t ns)
{
    static HtSessionStats last;
    HtSessionStats now = ht_session_stats(run->session);
    double seconds = ns / 1e9;

    if (!now.found) {
        fputs("\r\033[Kno ring yet", stderr);
    } else {
        fprintf(stderr, "\r\033[K%" PRIu64 " event%s, %.0f/s, %.2f MB/s, "
                "%" PRIu64 " gap%s", now.events, ht_number_s(now.events),
                (now.events - last.events) / seconds,
                (now.bytes - last.bytes) / seconds / 1e6, now.gaps,
                ht_number_s(now.gaps));
    }
    fflush(stderr);
    last = now;
}

/*
 * With -daemonize: redirect standard input, output and error to /dev/null, and
 * send QEMU's exit status to the process that waits in go_to_background().
 */
static void report_status(const HtRecordRun *run, int status)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    unsigned char byte = status;
    int fd;

    for (fd = 0; null >= 0 && fd < 3; fd++) {
        dup2(null, fd);
    }
    if (write(run->r->ready_fd, &byte, 1) != 1) {
        /* The process that waits for the status has ended. */
        return;
    }
}

/*
 * Check whether a virtual machine goes on after the child has exited: a QEMU in
 * the background, or a QEMU that a script has started. If so, record it further
 * and, with -daemonize, report the child's exit status.
 */
static bool goes_on(HtRecordRun *run, int status)
{
    HtProcess *guest = WIFEXITED(status) ? find_guest(run) : NULL;

    if (!guest) {
        return false;
    }
    set_process(run, guest);
    run->pid = guest->pid;
    if (run->r->ready_fd >= 0) {
        report_status(run, WEXITSTATUS(status));
        ht_errors_to_syslog();
    }
    return true;
}

/*
 * Check whether QEMU has ended. If so, @status is set to that of waitpid(), or
 * to 0 if QEMU is not a child of this process.
 */
static bool has_ended(HtRecordRun *run, int *status)
{
    pid_t pid;

    if (!run->child) {
        *status = 0;
        return ht_process_ended(run->process);
    }
    pid = waitpid(run->pid, status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR)) {
        return false;
    }
    if (pid < 0) {
        *status = 0;
        return !run->process || ht_process_ended(run->process);
    }
    return !goes_on(run, *status);
}

/* Poll once. If that fails, the recording ends, but QEMU continues. */
static void poll_session(HtRecordRun *run)
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

static void explain(HtRecordRun *run, uint64_t t)
{
    if (!run->explained && !run->stopped && t - run->started >= REASONS_NS) {
        run->explained = true;
        if (!run->r->quiet && !ht_session_stats(run->session).found) {
            ht_run_print_reasons(run);
        }
    }
}

/*
 * Send SIGTERM to a QEMU that this process started. Returns false if QEMU goes
 * on: this process did not start it, or may not signal it.
 */
static bool end_child(const HtRecordRun *run)
{
    if (!run->child) {
        return false;
    }
    if (!kill(run->pid, SIGTERM) || errno == ESRCH) {
        return true;
    }
    ht_error("the virtual machine goes on: process %d cannot be ended: %s",
             run->pid, g_strerror(errno));
    return false;
}

/*
 * Check whether the recording ends now: for --for or --until, or because
 * nothing can match --until after the recording has stopped. If so, end a QEMU
 * that this process started. Returns true if the loop must end, because QEMU
 * goes on.
 */
static bool ends_now(HtRecordRun *run, uint64_t t)
{
    if (ht_run_is_over(run)) {
        return false;
    }
    run->matched = ht_match_count(run->r->until);
    run->too_late = !run->matched && run->stopped && run->r->until;
    run->timed_out = !run->matched && !run->too_late && run->r->for_ns &&
                     t - run->started >= run->r->for_ns;
    return ht_run_is_over(run) && !end_child(run);
}

static void find_image(HtJob *job, void *opaque)
{
    HtRecordRun *run = opaque;

    run->image = ht_record_scan_image(run->r, job, NULL);
}

/*
 * If a flight recorder began without the kernel's image, for example before the
 * guest had booted, search the guest's memory for the image. The search takes
 * up to seconds, so a job does it while this thread polls. If the image is
 * found, the recording begins again, with symbols and formats.
 */
static void look_for_image(HtRecordRun *run, uint64_t t)
{
    uint64_t age = t - run->started;

    if (run->image_job) {
        if (ht_job_is_done(run->image_job)) {
            g_clear_pointer(&run->image_job, ht_job_end);
            run->r->found = g_steal_pointer(&run->image);
        }
        return;
    }
    if (!run->flight || run->r->image || run->r->kernel ||
        run->r->lacking || age > IMAGE_LAST_NS ||
        age < MAX(run->next_image, IMAGE_NS)) {
        return;
    }
    run->next_image = 2 * age;
    run->image_job = ht_job_start("ht-image", find_image, run);
}

static void end_image_job(HtRecordRun *run)
{
    if (run->image_job) {
        ht_job_stop(run->image_job);
        g_clear_pointer(&run->image_job, ht_job_end);
        g_clear_pointer(&run->image, ht_kernel_image_unref);
    }
}

/*
 * With --wait: check whether no ring was found in that time after the start, or
 * whether a known kernel has been missing for that time: the guest may have
 * booted another kernel. Returns true also if look_for_image() has found an
 * image, with which the recording begins again.
 */
static bool gives_up(HtRecordRun *run, uint64_t t)
{
    uint64_t wait = run->r->wait_ns, age = t - run->started;
    HtSessionStats n;

    if (!wait) {
        return false;
    }
    n = ht_session_stats(run->session);
    if (n.kernel_boot) {
        run->kernel_seen = t;
    }
    look_for_image(run, t);
    if (n.found) {
        run->gave_up = run->kernel_seen && t - run->kernel_seen >= wait;
    } else {
        /*
         * In a large memory, a single search for the kernel can take longer
         * than --wait: let it take up to LONG times that time.
         */
        run->gave_up = age >= wait && (!run->r->image || age / LONG >= wait ||
                                       ht_session_why(run->session));
    }
    return run->gave_up || run->r->found;
}

/*
 * Wait until the next poll; less long if there were many events, and at least
 * SEARCH_US while neither a ring nor a kernel is found. A flight recorder that
 * did not start QEMU waits twice as long if there were few events.
 */
static void wait_for_poll(HtRecordRun *run)
{
    HtSessionStats s = ht_session_stats(run->session);
    uint64_t n = s.events - run->events;
    uint32_t us = !s.found && !s.kernel_boot ?
                  MAX(run->r->poll_us, SEARCH_US) :
                  n >= BUSY_EVENTS ? MAX(run->r->poll_us / BUSY_PART, 1) :
                  n < IDLE_EVENTS && run->flight && !run->child ?
                  2 * run->r->poll_us : run->r->poll_us;
    const struct timespec pause = { us / 1000000, us % 1000000 * 1000 };

    run->events = s.events;
    if (run->flight) {
        ht_flight_wait(run->flight, run->stopped ? NULL : run->session,
                       run->child ? -1 : run->process->pidfd, us);
    } else {
        nanosleep(&pause, NULL);
    }
}

static void follow(HtRecordRun *run, int *status)
{
    uint64_t shown = ht_now_ns();
    pid_t pid;

    while (!has_ended(run, status)) {
        uint64_t t = ht_now_ns();

        if ((got_signal && !run->child) || ends_now(run, t) ||
            gives_up(run, t)) {
            break;
        } else if (got_signal) {
            int sig = got_signal;

            got_signal = 0;
            kill(run->pid, sig);
        }
        if (got_request) {
            got_request = 0;
            ht_notice("SIGUSR1 has no effect without --flight");
        }
        if (!run->stopped) {
            poll_session(run);
        }
        if (run->flight) {
            ht_flight_poll(run->flight, run->session, run->image_job);
        }
        pid = run->process ? run->process->pid : run->pid;
        ht_session_process(run->session, pid);
        ht_host_record_poll(run->host, pid);
        ht_programs_process(run->r->programs, pid);
        explain(run, t);
        if (run->tty && !run->stopped && t - shown >= STATUS_NS) {
            show_status(run, t - shown);
            shown = t;
        }
        if (run->stopped || !ht_session_more(run->session)) {
            wait_for_poll(run);
        }
    }
    if (run->tty) {
        fputs("\r\033[K", stderr);
    }
}

static void end_live(HtRecordRun *run)
{
    const HtRecord *r = run->r;
    HtLttngStats n;

    if (!r->live) {
        return;
    }
    run->hangs |= !ht_live_end(r->live, &n);
    if (n.why) {
        ht_error("LTTng: %s", n.why);
    }
    if (!r->quiet) {
        ht_lttng_summary(r->live_options.name, &n);
    }
}

static void end_programs(HtRecordRun *run)
{
    HtProgramsStats *n = &run->programs;

    if (!run->r->programs) {
        return;
    }
    ht_programs_end(run->r->programs, n);
    run->r->programs = NULL;
    run->hangs |= n->hangs;
    if (n->why) {
        ht_error("--programs: %s", n->why);
    }
    if (run->r->quiet) {
        return;
    }
    ht_programs_summary(run->r->dir, n);
}

/* With --host: record the host, too. If this fails, still record the guest. */
static void start_host(HtRecordRun *run, const HtSessionInfo *info)
{
    g_autoptr(GError) error = NULL;

    if (!run->r->host) {
        return;
    }
    run->host = ht_host_record_new(info->dir, info->command, info->max_bytes,
                                   &error);
    if (error) {
        ht_error("--host: only the guest is recorded: %s", error->message);
    }
}

static void end_host(HtRecordRun *run, const char *why)
{
    g_autofree char *lost = NULL;
    g_autoptr(GError) error = NULL;
    HtHostStats n;

    if (!run->host) {
        return;
    }
    if (!ht_host_record_end(run->host, why, &n, &error)) {
        ht_error("--host: %s", error->message);
    }
    run->host = NULL;
    if (!run->r->quiet) {
        lost = n.gaps ? g_strdup_printf("about %" PRIu64 " lost in %" PRIu64
                                        " gap%s", n.lost, n.gaps,
                                        ht_number_s(n.gaps)) : NULL;
        ht_notice("%" PRIu64 " event%s of the host, %.1f MB; %s", n.events,
                  ht_number_s(n.events), n.bytes / 1e6,
                  lost ? lost : "none lost");
    }
}

/*
 * End the flight recorder. It writes the last events if this process started
 * QEMU, or if the process of the machine has ended.
 */
static void end_flight(HtRecordRun *run, const char *why)
{
    bool ended = run->child || ht_process_ended(run->process);

    if (run->flight && !ht_flight_end(run->flight, run->session,
                                      ended ? why : NULL)) {
        run->stopped = true;
    }
}

static void catch_signals(const HtRecordRun *run)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction sa = { .sa_handler = on_signal };
    struct sigaction request = { .sa_handler = on_request };
    unsigned i;

    /*
     * Restore the default: if SIGCHLD is ignored, the status of children is
     * lost.
     */
    signal(SIGCHLD, SIG_DFL);
    /* This process becomes the parent of a QEMU that goes to the background. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);

    for (i = 0; i < G_N_ELEMENTS(signals); i++) {
        sigaction(signals[i], &sa, NULL);
    }
    /* With --flight, ht_flight_new() has set the handler of SIGUSR1. */
    if (!run->flight) {
        sigaction(SIGUSR1, &request, NULL);
    }
}

static bool is_empty(const HtRecordRun *run)
{
    HtSessionStats n = ht_session_stats(run->session);

    return !n.found && !n.logged && !run->programs.events;
}

static int record_all(HtRecordRun *run)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *end = NULL;
    int status = 0;

    if (run->r->live) {
        ht_live_start(run->r->live);
    }
    if (run->r->programs) {
        ht_programs_start(run->r->programs);
    }
#ifdef __GLIBC__
    /*
     * Return free memory to the system: parsing the kernel's image took much
     * memory, and a recorder may run for weeks.
     */
    malloc_trim(0);
#endif
    follow(run, &status);
    if (run->image_job) {
        ht_job_stop(run->image_job);
    }
    end_programs(run);
    end = ht_run_describe_end(run, status, got_signal);
    end_host(run, end);
    if (!run->stopped && !ht_session_finish(run->session, end, &error)) {
        ht_error("%s", error->message);
        ht_session_stop(run->session, error->message);
        run->stopped = true;
    }
    end_image_job(run);
    end_flight(run, end);
    ht_run_print_summary(run, status);
    ht_run_print_end(run, end);
    if (is_empty(run)) {
        ht_session_discard(run->session);
    }
    return ht_run_exit_status(run, status);
}

static void free_source(void *source)
{
    ht_source_free(source);
}

static HtFlight *new_flight(const HtRecord *r, const HtSessionInfo *info,
                            GError **error)
{
    HtFlight *f = r->flight.size ?
                  ht_flight_new(&r->flight, info->dir, r->quiet, error) : NULL;

    if (f && r->qmp_fd >= 0) {
        ht_flight_monitor(f, fcntl(r->qmp_fd, F_DUPFD_CLOEXEC, 0));
    }
    return f;
}

int ht_record_run(HtRecord *r, const HtSessionInfo *info)
{
    g_autoptr(GError) error = NULL;
    HtRecordRun run = {
        .r = r,
        .process = r->process,
        .child = !r->process,
        .tty = !r->quiet && isatty(STDERR_FILENO) &&
               !(r->plan && r->plan->uses_terminal),
        .started = ht_now_ns(),
    };
    int status = HT_EXIT_ERROR;

    run.sources = g_ptr_array_new_with_free_func(free_source);
    run.flight = new_flight(r, info, &error);
    run.session = error ? NULL : ht_session_new(info, &error);
    if (run.session) {
        start_host(&run, info);
    }
    if (run.session && r->plan && r->process) {
        catch_signals(&run);
        status = record_all(&run);
    } else if (run.session && r->plan) {
        catch_signals(&run);
        if ((r->memory_fd < 0 || add_memory(&run, &error)) &&
            start(&run, r->plan->argv, &error)) {
            status = record_all(&run);
        } else {
            ht_session_discard(run.session);
        }
    } else if (run.session) {
        catch_signals(&run);
        set_source(&run, &run.rest,
                   ht_source_process(r->process, NULL, &error),
                   HT_SESSION_ALL);
        if (run.rest) {
            status = record_all(&run);
        } else {
            ht_session_discard(run.session);
        }
    }
    if (error) {
        ht_error("%s", error->message);
    }
    end_live(&run);
    end_host(&run, "QEMU did not start");
    /* Free the session first, because it reads the sources. */
    ht_session_free(run.session);
    ht_flight_free(run.flight);
    g_ptr_array_free(run.sources, true);
    ht_source_free(run.rest);
    ht_source_free(run.whole);
    ht_programs_stats_clear(&run.programs);
    if (run.child) {
        ht_process_free(run.process);
    }
    if (run.hangs) {
        /*
         * Use _exit(): exit() would run LTTng-UST's destructor, which waits for
         * the thread that hangs.
         */
        fflush(NULL);
        _exit(status);
    }
    return status;
}
