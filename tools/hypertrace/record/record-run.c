/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: run QEMU or use a running one, and poll its memory
 *
 * If the guest's memory is a memfd or a shared file, this process holds it, so
 * that it outlives QEMU. Private memory is read while its process runs. Both
 * processes get the terminal's signals. SIGINT, SIGTERM, SIGHUP and SIGQUIT are
 * passed on to a QEMU that this process started.
 */
#include "hypertrace/base.h"
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/command.h"
#include "cli/number.h"
#include "host/host-record.h"
#include "hypertrace/thread.h"
#include "record/record.h"
#include "record/search-pace.h"

#define STATUS_NS       UINT64_C(500000000)
/* If no ring is found for this time in ns, search Run.rest, too. */
#define ELSEWHERE_NS    UINT64_C(3000000000)
#define RESCAN_NS       UINT64_C(200000000)
/* If no ring is found for this time in ns, print the likely reasons. */
#define REASONS_NS      UINT64_C(30000000000)
/* If a poll reads at least this many events, the next pause is shorter. */
#define BUSY_EVENTS     2000
#define BUSY_PART       8
/* A guest counts as idle if a poll reads fewer events than this. */
#define IDLE_EVENTS     50
/* The first search for the kernel may take this many times --wait. */
#define LONG            20
/*
 * With --flight and --wait, times in ns after the start at which a missing
 * image is searched: the first and the last one; each is at least twice as late
 * as the previous one.
 */
#define IMAGE_NS        UINT64_C(5000000000)
#define IMAGE_LAST_NS   UINT64_C(640000000000)

/*
 * State of a recording. @sources has the memory that this process holds, or one
 * entry for each RAM file of the user; an entry is NULL until QEMU has created
 * the file.
 */
typedef struct Run {
    HtRecord *r;
    HtSession *session;
    HtFlight *flight;
    HtHostRecord *host;
    HtProgramsStats programs;   /* result of ht_programs_end() */
    bool hangs;                 /* LTTng hangs */
    GPtrArray *sources;
    /* part of the process's memory that is not in @sources */
    HtSource *rest;
    /* the guest's RAM in both NUMA nodes, to search for the kernel */
    HtSource *whole;
    /*
     * PID of the process whose memory @rest and @whole read, if they are not
     * NULL
     */
    pid_t scanned_pid;
    HtProcess *process;
    pid_t pid;
    bool child;
    bool tty;
    /* the recording has ended, although QEMU may run on */
    bool stopped;
    /* the recording has run for the time of --for */
    bool timed_out;
    /* the recording has ended because of an event or line of --until */
    bool matched;
    /* nothing can match any longer: see describe_end() */
    bool too_late;
    /* for the time of --wait there was no ring, or no kernel in the memory */
    bool gave_up;
    /* time in ns of the last poll at which the kernel was known */
    uint64_t kernel_seen;
    uint64_t events;
    /*
     * time in ns after @started at which to search for the kernel's image
     * again
     */
    uint64_t next_image;
    /* REASONS_NS have passed, and the likely reasons were printed */
    bool explained;
    uint64_t started;
    uint64_t scanned;
} Run;

static volatile sig_atomic_t got_signal;

static void on_signal(int sig)
{
    got_signal = sig;
}

/* Close the source in @slot, put @source there, and search it for @what. */
static void set_source(Run *run, HtSource **slot, HtSource *source,
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
 * Get the HT_SESSION_* flags for the recorder's memory. The recorder's NUMA
 * node holds the ring, but the kernel may be in any node.
 */
static unsigned searched_for(const Run *run)
{
    return run->r->plan->memory == HT_RECORD_NODE ? HT_SESSION_RINGS :
           HT_SESSION_ALL;
}

/*
 * Add the guest's memory to the session: a memfd of this process. QEMU's
 * options have its path already: /proc/self/fd/N if QEMU inherits the
 * descriptor, else /proc/PID/fd/N.
 */
static bool add_memory(Run *run, GError **error)
{
    HtSource *source = ht_source_file(run->r->memory_fd, "the guest's memory",
                                      error);

    g_ptr_array_set_size(run->sources, 1);
    set_source(run, (HtSource **)&run->sources->pdata[0], source,
               searched_for(run));
    return source;
}

/*
 * True if a file is longer now than when it was opened, because QEMU has set
 * its size
 */
static bool has_grown(const HtSource *s)
{
    struct stat st;

    return !fstat(s->fd, &st) && st.st_size > 0 &&
           (uint64_t)st.st_size > s->mem.size;
}

/*
 * Open RAM files of the user as soon as QEMU has created them, and again when
 * they have grown.
 */
static void open_files(Run *run)
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
 * Find the process with the guest's memory: QEMU, or a descendant if a script
 * or sudo was started. A QEMU that went to the background is our child, because
 * this process is a subreaper.
 */
static HtProcess *find_guest(const Run *run)
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

static void set_process(Run *run, HtProcess *process)
{
    if (process) {
        ht_process_free(run->process);
        run->process = process;
    }
}

/*
 * Put a source into @slot. A new source restarts all searches, so an equal
 * source is not replaced.
 */
static void scan(Run *run, HtSource **slot, HtSource *source, unsigned what)
{
    if (source && *slot && run->scanned_pid == run->process->pid &&
        ht_source_same(*slot, source)) {
        ht_source_free(source);
    } else {
        set_source(run, slot, source, what);
    }
}

/* Repeat the scan: QEMU may start late, and maps its RAM after its start. */
static void scan_process(Run *run, bool rest, bool whole)
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
    if (!run->process) {
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
 * Open files of RAM that did not exist at the start. If no ring or kernel was
 * found, search memory of the process, too.
 */
static void find_sources(Run *run)
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
    scan_process(run, !n.found && (p->memory == HT_RECORD_PROCESS ||
                                   (p->memory != HT_RECORD_MEMFD && late)),
                 !n.kernel_boot && run->r->image &&
                 p->memory == HT_RECORD_NODE);
}

static bool start(Run *run, char **argv, GError **error)
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

static void show_status(const Run *run, uint64_t ns)
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

/* With -daemonize: leave the terminal, and send QEMU's status to the caller. */
static void report_status(const Run *run, int status)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    unsigned char byte = status;
    int fd;

    for (fd = 0; null >= 0 && fd < 3; fd++) {
        dup2(null, fd);
    }
    if (write(run->r->ready_fd, &byte, 1) != 1) {
        /* The caller has ended and does not read the status. */
        return;
    }
}

/*
 * Check whether a virtual machine goes on after the child has ended: a QEMU in
 * the background, or one that a script has started.
 */
static bool goes_on(Run *run, int status)
{
    HtProcess *guest = WIFEXITED(status) ? find_guest(run) : NULL;

    if (!guest) {
        return false;
    }
    set_process(run, guest);
    run->pid = guest->pid;
    if (run->r->ready_fd >= 0) {
        report_status(run, WEXITSTATUS(status));
        if (run->flight) {
            ht_errors_to_syslog();
        }
    }
    return true;
}

/*
 * Check whether QEMU has ended. @status is set to that of waitpid(), or to 0 if
 * QEMU is not a child.
 */
static bool has_ended(Run *run, int *status)
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
static void poll_session(Run *run)
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

/*
 * Print why the main buffer was not found: it needs the kernel itself, but no
 * words on the kernel's command line.
 */
static void print_kernel_reasons(const Run *run)
{
    const char *why = ht_session_why(run->session);

    fputs("hypertrace record: the guest's kernel was not found in its memory "
          "after 30 s. Likely reasons:\n"
          "- the guest boots another kernel than the image that was read: "
          "give it with --kernel FILE\n", stderr);
    if (why) {
        fprintf(stderr, "- %s\n", why);
    }
}

static void print_ring_reasons(const Run *run)
{
    const HtRecordPlan *p = run->r->plan;

    fputs("hypertrace record: no ring of events after 30 s. Likely reasons:\n",
          stderr);
    if (!p || p->given == HT_RECORD_WORDS_NONE) {
        fputs("- the kernel's command line has no words for a ring\n", stderr);
    } else if (p->given == HT_RECORD_WORDS_LOADER) {
        fprintf(stderr, "- the boot loader did not give the kernel these "
                "words: %s\n", p->words);
    }
    if (p && p->given == HT_RECORD_WORDS_SMBIOS) {
        fputs("- the stub of the unified kernel image is older than systemd "
              "254\n", stderr);
    }
    if (!run->r->kernel) {
        fputs("- the kernel is older than 6.12, or built without "
              "CONFIG_TRACING\n", stderr);
    }
    fputs("- the kernel is locked down (lockdown=confidentiality)\n", stderr);
}

static void print_reasons(const Run *run)
{
    const HtRecordPlan *p = run->r->plan;

    if (run->r->buffer == HT_TRACE_BUFFER_MAIN) {
        print_kernel_reasons(run);
    } else {
        print_ring_reasons(run);
    }
    if (p && p->memory == HT_RECORD_PROCESS && !run->rest) {
        fputs("- no process was found whose memory can be read: sudo and "
              "containers need 'sudo hypertrace record'\n", stderr);
    }
    fputs("- the guest is still in its firmware or boot loader, or it does "
          "not run Linux\n", stderr);
}

static void explain(Run *run, uint64_t t)
{
    if (!run->explained && !run->stopped && t - run->started >= REASONS_NS) {
        run->explained = true;
        if (!run->r->quiet && !ht_session_stats(run->session).found) {
            print_reasons(run);
        }
    }
}

static bool is_over(const Run *run)
{
    return run->timed_out || run->matched || run->too_late;
}

/* End a QEMU that this process started. Returns false if it goes on. */
static bool end_child(const Run *run)
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
 * Check whether --for or --until ends the recording now. If so, end a QEMU that
 * this process started. Returns true if the loop must end, because QEMU goes
 * on.
 */
static bool ends_now(Run *run, uint64_t t)
{
    if (is_over(run)) {
        return false;
    }
    run->matched = ht_match_count(run->r->until);
    run->too_late = !run->matched && run->stopped && run->r->until;
    run->timed_out = !run->matched && !run->too_late && run->r->for_ns &&
                     t - run->started >= run->r->for_ns;
    return is_over(run) && !end_child(run);
}

/*
 * Search the guest's memory for the kernel's image, if the guest had not booted
 * when the flight recorder began. If it is found, the recording begins again,
 * with symbols and formats: the guest's ring still has its events.
 */
static void look_for_image(Run *run, uint64_t t)
{
    g_autoptr(HtKernelImage) image = NULL;
    uint64_t age = t - run->started;

    if (!run->flight || run->r->image || run->r->kernel ||
        run->r->lacking || age > IMAGE_LAST_NS ||
        age < MAX(run->next_image, IMAGE_NS)) {
        return;
    }
    run->next_image = 2 * age;
    image = ht_record_scan_image(run->r, NULL);
    run->r->again = image;
}

/*
 * Check whether the time of --wait is over, at the start or since the kernel
 * was last seen: the guest may have booted another one. Returns true also if
 * the recording begins again because the image was found.
 */
static bool gives_up(Run *run, uint64_t t)
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
         * In a large memory, a single search can take longer than --wait: let
         * it go on for a multiple of that time.
         */
        run->gave_up = age >= wait && (!run->r->image || age / LONG >= wait ||
                                       ht_session_why(run->session));
    }
    return run->gave_up || run->r->again;
}

/*
 * Wait until the next poll; less long if there were many events, and at least
 * HT_SEARCH_PACE_US while neither a ring nor a kernel is found. A flight
 * recorder that did not start QEMU waits twice as long if the guest is idle.
 */
static void wait_for_poll(Run *run)
{
    HtSessionStats s = ht_session_stats(run->session);
    uint64_t n = s.events - run->events;
    uint32_t us = !s.found && !s.kernel_boot ?
                  MAX(run->r->poll_us, HT_SEARCH_PACE_US) :
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

static void follow(Run *run, int *status)
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
        if (!run->stopped) {
            poll_session(run);
        }
        if (run->flight) {
            ht_flight_poll(run->flight, run->session);
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

static void print_losses(const HtSessionStats *n, bool stopped)
{
    const char *next = "";

    if (n->gaps) {
        g_autofree char *lost = g_strdup_printf("about %" PRIu64, n->lost);

        fprintf(stderr, "%s lost in %" PRIu64 " gap%s: try a larger --size or "
                "fewer events", n->lost ? lost : "an unknown number", n->gaps,
                ht_number_s(n->gaps));
        next = "; ";
    }
    if (n->late) {
        fprintf(stderr, "%sthe first ones of %" PRIu64 " processor%s were "
                "overwritten before they could be read", next, n->late,
                ht_number_s(n->late));
        next = "; ";
    }
    if (n->errors) {
        fprintf(stderr, "%sthe memory could not be read %" PRIu64 " time%s",
                next, n->errors, ht_number_s(n->errors));
        next = "; ";
    }
    if (n->cut) {
        fprintf(stderr, "%sevents of some processors are missing: at most %u "
                "processors are recorded, and rings of 16 GiB", next,
                HT_FT_CPUS_MAX);
        next = "; ";
    }
    if (stopped) {
        fprintf(stderr, "%sthe rest is missing\n", next);
    } else {
        fputs(*next ? "\n" : "none lost\n", stderr);
    }
}

static bool ended_well(const Run *run, int status)
{
    return is_over(run) || (WIFEXITED(status) && !WEXITSTATUS(status));
}

static void summary(const Run *run, int status)
{
    HtSessionStats n = ht_session_stats(run->session);
    const HtRecordPlan *p = run->r->plan;

    if (run->r->again) {
        return;
    }
    if (n.found && !n.events) {
        ht_error("a ring was found in the guest's memory, but it stayed empty. "
                 "Likely reasons: the kernel is locked down "
                 "(lockdown=confidentiality), or no event is switched on, or "
                 "tracing is off (tracing_on is 0)");
    } else if (n.found && !run->r->quiet) {
        fprintf(stderr, "hypertrace record: %" PRIu64 " event%s", n.events,
                ht_number_s(n.events));
        if (!run->flight) {
            fprintf(stderr, ", %.1f MB in %s", n.bytes / 1e6, run->r->dir);
        }
        fputs("; ", stderr);
        print_losses(&n, run->stopped);
    } else if (!n.found && n.logged) {
        ht_error("no ring of events was found in the guest's memory: only the "
                 "kernel's log was recorded, %" PRIu64 " lines in %s",
                 n.logged, run->r->dir);
    } else if (!n.found && !ended_well(run, status)) {
        /* QEMU itself has printed why it ended. */
        ht_error("QEMU ended before the guest's kernel traced anything; "
                 "nothing was recorded");
    } else if (!n.found && run->r->buffer == HT_TRACE_BUFFER_MAIN) {
        const char *why = ht_session_why(run->session);

        ht_error("the guest's kernel was not found in its memory, so nothing "
                 "was recorded%s%s", why ? ": " : "", why ? why : "");
    } else if (!n.found) {
        ht_error("no ring of events was found in the guest's memory, so "
                 "nothing was recorded: %s%s",
                 !p || p->given == HT_RECORD_WORDS_NONE ?
                 "the kernel's command line needs words for a ring; see "
                 "hypertrace-record(1)" :
                 p->given == HT_RECORD_WORDS_LOADER ?
                 "the boot loader must give the kernel " :
                 "the guest must boot Linux 6.12 or later, or a kernel "
                 "with BTF and KALLSYMS_ALL whose image is given",
                 p && p->given == HT_RECORD_WORDS_LOADER ? p->words : "");
    }
}

static void print_no_match(const HtMatch *until, const char *end)
{
    uint64_t skipped = ht_match_skipped(until);

    if (skipped) {
        ht_error("--until: there was no such event: %s; events before the "
                 "formats of events were found: %" PRIu64, end, skipped);
    } else {
        ht_error("--until: there was no such %s: %s",
                 ht_match_is_log(until) ? "line" : "event", end);
    }
}

static void print_end(const Run *run, const char *end)
{
    if (run->r->again) {
        return;
    }
    if (run->r->until && !ht_match_count(run->r->until)) {
        print_no_match(run->r->until, end);
    } else if (run->r->until && !run->matched && !run->r->quiet) {
        /*
         * Print this also if the event of --until was found only after QEMU's
         * end, by the last polls.
         */
        fprintf(stderr, "hypertrace record: the recording ended: %s, after "
                "--until: %s\n", end, ht_match_text(run->r->until));
    } else if (is_over(run) && !run->r->quiet) {
        fprintf(stderr, "hypertrace record: the recording ended: %s\n", end);
    }
}

static void end_live(Run *run)
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
        ht_lttng_summary("record", r->live_options.name, &n);
    }
}

static void end_programs(Run *run)
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
    ht_programs_summary("record", run->r->dir, n);
}

/* Begin the host's part. Without it, the guest is recorded all the same. */
static void start_host(Run *run, const HtSessionInfo *info)
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

static void end_host(Run *run, const char *why)
{
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
        fprintf(stderr, "hypertrace record: %" PRIu64 " event%s of the host, "
                "%.1f MB; ", n.events, ht_number_s(n.events), n.bytes / 1e6);
        if (n.gaps) {
            fprintf(stderr, "about %" PRIu64 " lost in %" PRIu64 " gap%s\n",
                    n.lost, n.gaps, ht_number_s(n.gaps));
        } else {
            fputs("none lost\n", stderr);
        }
    }
}

static char *describe_end(const Run *run, int status)
{
    if (run->matched) {
        return g_strdup_printf("--until: %s", ht_match_text(run->r->until));
    }
    if (run->too_late) {
        return g_strdup("the recording was full or failed before it");
    }
    if (run->timed_out) {
        return g_strdup("the time of --for was over");
    }
    if (!run->child) {
        return g_strdup(got_signal || run->gave_up || run->r->again ?
                        "the recorder was stopped" : "QEMU ended");
    }
    if (WIFSIGNALED(status)) {
        return g_strdup_printf("QEMU was killed by signal %d (%s)",
                               WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return g_strdup_printf("QEMU ended with status %d", WEXITSTATUS(status));
}

/* End the flight recorder; it writes the last events if the machine ended. */
static void end_flight(Run *run, const char *why)
{
    bool ended = run->child || ht_process_ended(run->process);

    if (run->flight && !ht_flight_end(run->flight, run->session,
                                      ended ? why : NULL)) {
        run->stopped = true;
    }
}

static void catch_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction sa = { .sa_handler = on_signal };
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
}

/* Choose the exit status, as in the table in hypertrace-record(1). */
static int exit_status(const Run *run, int status)
{
    HtSessionStats n = ht_session_stats(run->session);
    bool complete = (n.events || run->programs.events) && !run->stopped &&
                    !n.cut && !run->programs.why &&
                    (!run->r->until || ht_match_count(run->r->until));

    if (!ended_well(run, status)) {
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
               WEXITSTATUS(status);
    }
    return complete || run->r->as_qemu ? HT_EXIT_OK : HT_EXIT_NOTHING;
}

static bool is_empty(const Run *run)
{
    HtSessionStats n = ht_session_stats(run->session);

    return !n.found && !n.logged && !run->programs.events;
}

static int record_all(Run *run)
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
     * Return free memory to the system: the kernel's image took some 80 MiB,
     * and a recorder may run for weeks.
     */
    malloc_trim(0);
#endif
    follow(run, &status);
    end_programs(run);
    end = describe_end(run, status);
    end_host(run, end);
    if (!run->stopped && !ht_session_finish(run->session, end, &error)) {
        ht_error("%s", error->message);
        ht_session_stop(run->session, error->message);
        run->stopped = true;
    }
    end_flight(run, end);
    summary(run, status);
    print_end(run, end);
    if (is_empty(run)) {
        ht_session_discard(run->session);
    }
    return exit_status(run, status);
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
    Run run = {
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
        catch_signals();
        status = record_all(&run);
    } else if (run.session && r->plan) {
        catch_signals();
        if ((r->memory_fd < 0 || add_memory(&run, &error)) &&
            start(&run, r->plan->argv, &error)) {
            status = record_all(&run);
        } else {
            ht_session_discard(run.session);
        }
    } else if (run.session) {
        catch_signals();
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
         * Use _exit(), which skips LTTng-UST's destructor: it would wait for
         * the hanging thread.
         */
        fflush(NULL);
        _exit(status);
    }
    return status;
}
