/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: record what the kernel of a virtual machine traces
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/folder.h"
#include "hypertrace/memory.h"
#include "hypertrace/recording.h"
#include "kernel/kernel-watch.h"
#include "model/patterns.h"
#include "qemu/qmp-events.h"
#include "qemu/redact.h"
#include "record/flight-dir.h"
#include "record/options.h"
#include "record/plan-words.h"
#include "record/record.h"

/*
 * Searches for the image of a running guest before the recording: minimum pause
 * between them in us; part of the time of --wait in which they begin
 * (1/SCAN_PART)
 */
#define SCAN_US_MIN         200000
#define SCAN_PART           6

static void print_plan(const HtRecordPlan *p)
{
    unsigned i;

    for (i = 0; p->argv[i]; i++) {
        g_autofree char *word = g_shell_quote(p->argv[i]);
        bool plain = p->argv[i][0] &&
                     !strpbrk(p->argv[i], " \t\n'\"\\$`*?[]&;|<>()#~!{}");

        printf("%s%s", i ? " " : "", plain ? p->argv[i] : word);
    }
    if (p->query) {
        puts("\n# QEMU runs no guest: nothing is recorded");
        return;
    }
    printf("\n# memory: %s%s%s%s\n", ht_record_memory_name(p->memory),
           p->why ? " (" : "", p->why ? p->why : "", p->why ? ")" : "");
    if (p->bytes) {
        printf("# descriptor %d: %" PRIu64 " MiB that hypertrace holds\n",
               p->fd, p->bytes >> 20);
    }
    if (p->programs_fd >= 0) {
        printf("# descriptor %d: memory for the guest's programs that "
               "hypertrace holds\n", p->programs_fd);
    }
    switch (p->given) {
    case HT_RECORD_WORDS_THERE:
        puts("# the kernel's command line has a ring already");
        break;
    case HT_RECORD_WORDS_LOADER:
        printf("# the boot loader must give the kernel: %s\n", p->words);
        break;
    case HT_RECORD_WORDS_NONE:
        printf("# the kernel's command line is not changed: %s\n",
               p->words_why);
        break;
    default:
        break;
    }
}

char *ht_record_default_dir(bool flight)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    char *dir = g_date_time_format(now, flight ? "flight-%Y%m%d-%H%M%S" :
                                   "recording-%Y%m%d-%H%M%S");
    g_autofree char *base = g_strdup(dir);
    unsigned i;

    for (i = 2; g_mkdir(dir, 0700) && errno == EEXIST; i++) {
        g_free(dir);
        dir = g_strdup_printf("%s-%u", base, i);
    }
    return dir;
}

/*
 * Get a path by which this process can open @path, which may be relative to the
 * working directory of @process.
 */
static char *process_path(const HtProcess *process, const char *path)
{
    return g_path_is_absolute(path) ? g_strdup(path) :
           g_strdup_printf("/proc/self/fd/%d/cwd/%s", process->dir, path);
}

/* Check by symbols whether the kernel supports a ring in reserved memory. */
static bool has_boot_ring(const HtKernelImage *image)
{
    const HtSymbols *s = ht_kernel_image_symbols(image);
    uint64_t addr;

    return ht_symbols_address(s, "reserve_mem_find_by_name", &addr) &&
           ht_symbols_address(s, "__ring_buffer_alloc_range", &addr);
}

/* Get the reason why the main buffer of a kernel cannot be read; or NULL. */
static const char *main_buffer_lacks(const HtKernelImage *image)
{
    return !ht_kernel_image_btf(image) ?
           "its image has no types (CONFIG_DEBUG_INFO_BTF)" :
           !ht_kernel_image_has_data_symbols(image) ?
           "its image has no symbols of data (CONFIG_KALLSYMS_ALL)" : NULL;
}

char *ht_record_lacks(const HtKernelImage *image, HtTraceBuffer buffer)
{
    const char *lacks = main_buffer_lacks(image);
    bool none = buffer == HT_TRACE_BUFFER_ANY && lacks;

    if (has_boot_ring(image) || (buffer != HT_TRACE_BUFFER_BOOT && !none)) {
        return NULL;
    }
    return g_strdup_printf("Linux %s has no ring in reserved memory, as Linux "
                           "6.12 and later have with CONFIG_TRACING%s%s",
                           ht_kernel_image_release(image), none ?
                           ", and its main trace buffer cannot be read: " :
                           ": leave out --buffer boot", none ? lacks : "");
}

/*
 * Drop the kernel's image if it lacks types or symbols of data. Reading the
 * kernel's memory needs both.
 */
static void check_image(HtRecord *r, GError **error)
{
    const char *lacks = r->image ? main_buffer_lacks(r->image) : NULL;

    r->lacking = lacks;
    if (lacks) {
        g_clear_pointer(&r->image, ht_kernel_image_unref);
        g_set_error_literal(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, lacks);
    }
}

HtKernelImage *ht_record_scan_image(const HtRecord *r, HtJob *job,
                                    GError **error)
{
    g_autoptr(HtSource) source = ht_source_process(r->process, NULL, error);

    return source ? ht_kernel_image_in(&source->mem, r->quiet || job, job,
                                       error) : NULL;
}

/*
 * Take @r->found, which a flight recorder has found while it recorded, or find
 * the image of a running guest in its memory: no file of the image is known.
 * With --wait, the guest may still boot: search several times in 1/SCAN_PART of
 * that time, with pauses that are nine times as long as the search, but at
 * least SCAN_US_MIN. Without a flight recorder, --until needs the image, so
 * search for all of the time of --wait.
 */
static void scan_image(HtRecord *r, GError **error)
{
    bool all = r->until && !r->flight.size;
    int64_t end = g_get_monotonic_time() +
                  r->wait_ns / 1000 / (all ? 1 : SCAN_PART);
    int64_t begun, now;

    r->image = g_steal_pointer(&r->found);
    while (!r->image) {
        g_clear_error(error);
        begun = g_get_monotonic_time();
        r->image = ht_record_scan_image(r, NULL, error);
        now = g_get_monotonic_time();
        if (r->image || now >= end || ht_process_ended(r->process)) {
            break;
        }
        g_usleep(MIN(MAX((now - begun) * 9, SCAN_US_MIN), end - now));
    }
    if (r->image && !r->quiet) {
        fprintf(stderr, "hypertrace record: the guest's kernel is Linux %s\n",
                ht_kernel_image_release(r->image));
    }
}

/* Get the match of --until or --match, which exclude each other; or NULL. */
static HtMatch *match_of(const HtRecord *r)
{
    return r->until ? r->until : r->flight.match;
}

static bool matches_events(const HtRecord *r)
{
    return match_of(r) && !ht_match_is_log(match_of(r));
}

/*
 * Check whether the formats of events are needed before the recording starts:
 * LTTng needs them, and so do --until and --match for an event; without --pid,
 * the names of --event are checked.
 */
static bool needs_formats(const HtRecord *r)
{
    return r->lttng || matches_events(r) || (!r->pid && r->plan_options.events);
}

/*
 * Check whether get_kernel() needs the image at @path for the formats of its
 * events. Unless LTTng needs them, the formats of a running guest are read from
 * its memory.
 */
static bool boots_image(const HtRecord *r, const char *path)
{
    return path && needs_formats(r) && (r->lttng || !r->pid);
}

/*
 * Choose the buffer to read, and set @r->image if the kernel's own data can be
 * read. @path is the kernel's image or NULL. @has_ring: the kernel's command
 * line has a ring.
 */
static bool choose_buffer(HtRecord *r, const char *path, bool has_ring,
                          GError **error)
{
    g_autoptr(GError) lacks = NULL;
    const char *option;

    if (path) {
        r->image = ht_kernel_image_open(path, &lacks);
    } else if (r->pid) {
        scan_image(r, &lacks);
        if (lacks) {
            g_autoptr(HtSource) source = ht_source_process(r->process, NULL,
                                                           error);

            if (!source) {
                return false;
            }
            ht_error("%s", lacks->message);
        }
    }
    if (r->functions.names) {
        r->buffer = HT_TRACE_BUFFER_MAIN;
    }
    if (r->image && !r->pid && !has_ring) {
        g_autofree char *why = ht_record_lacks(r->image, r->buffer);

        if (why) {
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: %s", path,
                        why);
            return false;
        }
    }
    check_image(r, &lacks);
    if (r->buffer == HT_TRACE_BUFFER_ANY) {
        r->buffer = !r->image || has_ring ||
                    (has_boot_ring(r->image) && !r->pid &&
                     !ht_plan_has_syscalls(r->plan_options.events)) ?
                    HT_TRACE_BUFFER_BOOT : HT_TRACE_BUFFER_MAIN;
    }
    /*
     * The image has symbols, but no formats. If boots_image() is true,
     * get_kernel() gets both from the cache or boots the kernel for them.
     */
    if (r->image && !boots_image(r, path)) {
        r->kernel = ht_kernel_of_image(r->image);
    }
    if (r->image && !r->functions.names) {
        ht_kernel_image_shrink(r->image);
    }
    if (r->buffer == HT_TRACE_BUFFER_BOOT) {
        return true;
    }
    option = r->functions.names ? ht_record_functions_option(&r->functions) :
             "--buffer main";
    if (!path && !r->image) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: the kernel "
                    "that the guest boots is not known: give --kernel FILE%s%s",
                    option, lacks ? ": " : "", lacks ? lacks->message : "");
        return false;
    }
    if (!r->image) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: the "
                    "kernel's own data cannot be read: %s", option,
                    lacks->message);
        return false;
    }
    return !r->functions.names ||
           ht_record_functions_check(&r->functions, r->image, error);
}

/* Read the formats of a running guest's events from its memory. */
static HtFtFormats *guest_formats(const HtRecord *r, GError **error)
{
    g_autoptr(HtSource) source = ht_source_process(r->process, NULL, error);
    g_autoptr(HtKernelFormatsList) list = NULL;
    g_autoptr(HtKernelWatch) watch = NULL;
    g_autoptr(GString) text = NULL;
    const char *why;

    if (!source) {
        return NULL;
    }
    watch = ht_kernel_watch_new(&source->mem, r->image, true, ht_now_ns);
    if (!(ht_kernel_watch_look(watch, true) & HT_WATCH_FOUND)) {
        why = ht_kernel_watch_why(watch);
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "the guest's "
                    "memory has no formats of events%s%s", why ? ": " : "",
                    why ? why : "");
        return NULL;
    }
    list = ht_kernel_watch_formats(watch);
    text = ht_kernel_formats_list_text(list);
    return ht_ft_formats_parse(text->str, text->len, error);
}

/*
 * Get the kernel's symbols, and its formats if they are needed now. Only report
 * a failure: the guest must start nevertheless.
 */
static void get_kernel(HtRecord *r, const char *image, const char *qemu)
{
    g_autoptr(GError) error = NULL;

    if (!r->kernel && !image) {
        ht_error("events will have numbers instead of names: give the kernel "
                 "that the guest boots with --kernel FILE");
        return;
    }
    if (!r->kernel) {
        r->kernel = ht_kernel_get(image, qemu, r->busybox, &error);
    }
    if (!r->kernel && !r->image) {
        ht_error("events will have numbers instead of names: %s",
                 error->message);
        return;
    }
    if (r->kernel && needs_formats(r)) {
        r->formats = r->kernel->formats ?
                     ht_ft_formats_parse(r->kernel->formats,
                                         r->kernel->formats_size, &error) :
                     guest_formats(r, &error);
    }
    if (error) {
        ht_error("%s: %s", r->lttng ? "LTTng gets events without fields" :
                 "the names of events are not checked", error->message);
    }
    if (!r->kernel) {
        r->kernel = ht_kernel_of_image(r->image);
    }
}

/*
 * Name the guest in LTTng after itself or, if it has no name, after the
 * recording's folder.
 */
static char *lttng_name(const HtRecord *r, const char *guest)
{
    g_autofree char *dir = g_path_get_basename(r->dir);

    return ht_record_lttng_default(guest ? guest : dir);
}

static bool start_live(HtRecord *r, HtSessionInfo *info)
{
    g_autoptr(GError) error = NULL;

    if (!r->lttng) {
        return true;
    }
    r->live = ht_live_new(&r->live_options, r->formats, &error);
    if (!r->live) {
        ht_error("%s", error->message);
        return false;
    }
    info->runs = ht_live_runs(r->live);
    return true;
}

/*
 * Let QEMU inherit *@fd as descriptor @number; set *@fd to a descriptor of the
 * same file that QEMU does not inherit, with a number that @plan does not use.
 *
 * Return: false with errno set on failure
 */
static bool give(const HtRecordPlan *plan, int *fd, int number)
{
    int own;

    if (*fd != number) {
        return dup2(*fd, number) >= 0;
    }
    /* For equal numbers, dup2() would leave FD_CLOEXEC set. */
    own = fcntl(number, F_DUPFD_CLOEXEC, MAX(plan->fd, plan->programs_fd) + 1);
    if (own < 0) {
        return false;
    }
    *fd = own;
    return fcntl(number, F_SETFD, 0) == 0;
}

/*
 * Make the memory that programs emit into. Its descriptor gets the number
 * @plan->programs_fd, which QEMU's options have already.
 */
static bool make_programs(HtRecord *r, GError **error)
{
    const HtProgramsOptions options = {
        .dir = r->dir,
        .guest = r->plan->name,
        .max_bytes = r->max_bytes,
        .lttng = r->lttng ? r->live_options.name : NULL,
        .tell = r->tell ? r->dir : NULL,
    };
    int fd = ht_memory_memfd(r->plan_options.programs, error);

    if (fd < 0) {
        return false;
    }
    if (!give(r->plan, &fd, r->plan->programs_fd)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "cannot use descriptor %d: %s", r->plan->programs_fd,
                    g_strerror(errno));
    } else {
        r->programs = ht_programs_new(fd, true, &options, error);
    }
    close(fd);
    return r->programs;
}

/*
 * Check whether root records another user's machine: the recording then belongs
 * to that user. The process is then read only as long as it keeps its user and
 * program, so that the user gets only memory that this user could read anyway.
 * A flight recorder's recordings stay root's, and so does a recording with
 * events of the host, because it has what all users do.
 */
static bool is_for_owner(const HtRecord *r, HtProcessOwner *owner)
{
    return !r->plan && r->process && !r->flight.size && !r->host &&
           !geteuid() && ht_process_owner(r->process, owner) && owner->uid;
}

/*
 * Create a folder, which must be new. It stays open until its owner changes,
 * because its path may be in a folder where the new owner can replace it.
 * Return: a descriptor; -1 on failure
 */
static int make_folder(const char *path)
{
    g_autofree char *parent = g_path_get_dirname(path);

    if (g_mkdir_with_parents(parent, 0700) || mkdir(path, 0700)) {
        return -1;
    }
    return ht_folder_open(AT_FDCWD, path);
}

static int run(HtRecord *r, char **argv, const char *guest,
               const char *source)
{
    g_autofree char *command = ht_redact(argv);
    g_autofree char *dir = r->dir ? NULL :
                           ht_record_default_dir(r->flight.size);
    HtProcessOwner owner;
    g_autoptr(GError) error = NULL;
    HtSessionInfo info = {
        .command = command,
        .source = source,
        .words = r->plan ? r->plan->words : NULL,
        .poll_us = r->poll_us,
        .kernel = r->kernel,
        .max_bytes = r->max_bytes,
        .memory = r->flight.size,
        .image = r->image,
        .main_buffer = r->buffer == HT_TRACE_BUFFER_MAIN,
        .ring_at = r->plan ? r->plan->ring_at : 0,
        .matches = { r->until, r->flight.match },
        .running = !r->plan,
    };
    int status, folder = -1;

    if (!r->dir) {
        r->dir = dir;
    }
    if (is_for_owner(r, &owner)) {
        folder = make_folder(r->dir);
    }
    if (folder >= 0) {
        r->process->owner = &owner;
    }
    info.dir = r->dir;
    if (r->lttng && !r->live_options.name) {
        r->live_options.name = lttng_name(r, guest);
    }
    if (r->plan && r->plan->programs_fd >= 0 && !make_programs(r, &error)) {
        status = ht_error("--programs: %s", error->message);
    } else {
        status = start_live(r, &info) ? ht_record_run(r, &info) :
                 HT_EXIT_ERROR;
    }
    if (folder >= 0) {
        r->process->owner = NULL;
        if (!ht_folder_give(folder, owner.uid, owner.gid)) {
            ht_error("%s belongs to root, not to the user of the virtual "
                     "machine: %s", r->dir, g_strerror(errno));
        }
        close(folder);
    }
    if (dir || folder >= 0) {
        /* rmdir() fails if something was recorded: the folder then stays */
        rmdir(r->dir);
    }
    if (dir) {
        /*
         * ht_record_process() may call this function again, which then needs
         * another folder.
         */
        r->dir = NULL;
    }
    return status;
}

/*
 * Find the kernel's image by the process's command line. Returns NULL on
 * failure, or if the process is another user's.
 */
static char *process_kernel(HtRecord *r, char **argv)
{
    g_autofree char *kernel = NULL, *path = NULL;

    /*
     * Root must not open or boot a file because a process of another user
     * names it.
     */
    if (!ht_process_is_ours(r->process)) {
        return NULL;
    }
    kernel = ht_record_kernel(argv);
    if (!kernel) {
        return NULL;
    }
    path = process_path(r->process, kernel);
    if (access(path, R_OK)) {
        g_autoptr(GString) text = g_string_new(NULL);

        ht_escape_str(text, HT_ESCAPE_TERMINAL, kernel);
        fprintf(stderr, "hypertrace record: the kernel '%s' of the process's "
                "command line cannot be read: give --kernel FILE\n",
                text->str);
        return NULL;
    }
    return g_steal_pointer(&path);
}

/* Check whether a flight recorder searches for the image of a running guest. */
static bool searches_image(const HtRecord *r)
{
    return r->flight.size && !r->plan && !r->kernel && !r->lacking;
}

/*
 * Check --match or --until and, if formats are known, --event, before the
 * recording starts.
 */
static bool check_events(const HtRecord *r, GError **error)
{
    const char *option = r->until ? "--until" : "--match";
    const HtMatch *m = match_of(r);

    if (m && !r->image && (ht_match_is_log(m) || !r->formats)) {
        const char *what = ht_match_is_log(m) ? "line" : "event";

        if (searches_image(r)) {
            fprintf(stderr, "hypertrace record: %s: no %s matches before the "
                    "kernel is found in the guest's memory\n", option, what);
            return true;
        }
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: no %s can "
                    "match, because %s%s", option, what, r->lacking ?
                    "the image of the kernel lacks types or symbols of data" :
                    ht_match_is_log(m) ? "the guest's kernel is not known" :
                    "the formats of the kernel's events are not known",
                    r->memory_only || r->lacking ? "" :
                    ": give --kernel FILE");
        return false;
    }
    if (m && r->formats && !ht_match_check(m, r->formats, error)) {
        g_prefix_error(error, "Linux %s: ", r->kernel->release);
        return false;
    }
    if (!r->plan_options.events || !r->formats ||
        ht_names_check(r->plan_options.events, r->formats, error)) {
        return true;
    }
    g_prefix_error(error, "Linux %s: --event: ", r->kernel->release);
    return false;
}

int ht_record_process(HtRecord *r)
{
    g_autoptr(GError) error = NULL;
    g_autofree char **argv = NULL;
    g_autofree char *image = NULL;
    HtTraceBuffer buffer;
    int status;

    if (!r->process) {
        r->process = ht_process_new(r->pid, &error);
    }
    argv = r->process ? ht_process_args(r->process, &error) : NULL;
    if (!argv) {
        return ht_error("--pid: %s", error->message);
    }
    image = r->kernel_path ? g_strdup(r->kernel_path) :
            r->memory_only ? NULL : process_kernel(r, argv);
    buffer = r->buffer;
    do {
        r->buffer = buffer;
        g_clear_pointer(&r->kernel, ht_kernel_free);
        g_clear_pointer(&r->formats, ht_ft_formats_free);
        if (!choose_buffer(r, image, ht_record_has_ring(argv, !r->memory_only),
                           &error)) {
            return ht_error("%s", error->message);
        }
        g_clear_pointer(&r->found, ht_kernel_image_unref);
        get_kernel(r, image, NULL);
        if (!check_events(r, &error)) {
            status = ht_error("%s", error->message);
            if (!r->memory_only) {
                return r->wait_ns && !image && !r->image && !r->lacking ?
                       HT_EXIT_NOTHING : status;
            }
            /*
             * With @memory_only, as for "hypertrace watch", record the machine
             * although nothing can match.
             */
            g_clear_error(&error);
        }
        status = run(r, argv, NULL,
                     ht_record_memory_name(HT_RECORD_PROCESS));
    } while (r->found);
    return status;
}

/*
 * Create a memfd for the guest's memory or for a NUMA node of it, with the
 * descriptor number @plan->fd in this process.
 */
static bool make_memory(HtRecord *r)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
    int fd = memfd_create("hypertrace", MFD_CLOEXEC);
    bool ok;

    /*
     * Ignore SIGXFSZ, so that ftruncate() returns an error if it exceeds the
     * limit on file sizes.
     */
    sigaction(SIGXFSZ, &ignore, &before);
    ok = fd >= 0 && !ftruncate(fd, r->plan->bytes) &&
         give(r->plan, &fd, r->plan->fd);
    sigaction(SIGXFSZ, &before, NULL);
    if (!ok) {
        fprintf(stderr, "hypertrace record: cannot make memory of %" PRIu64
                " MiB for the guest: %s; QEMU's process is read instead\n",
                r->plan->bytes >> 20, g_strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    r->memory_fd = fd;
    return true;
}

static bool has_tracer(const HtRecord *r, GError **error)
{
    if (!r->functions.names || r->plan->given != HT_RECORD_WORDS_NONE) {
        return true;
    }
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: the kernel's "
                "command line cannot be changed: %s",
                ht_record_functions_option(&r->functions),
                r->plan->words_why);
    return false;
}

/*
 * Plan the recording.  If the kernel's main buffer is chosen, plan again, as
 * that needs other words.
 */
bool ht_record_prepare(HtRecord *r, char **argv, GError **error)
{
    const char *path;

    r->plan = ht_record_plan(argv, &r->plan_options, error);
    if (!r->plan || r->plan->query) {
        return r->plan;
    }
    path = r->kernel_path ? r->kernel_path : r->plan->kernel;
    if (!choose_buffer(r, path, r->plan->given == HT_RECORD_WORDS_THERE,
                       error)) {
        return false;
    }
    if (r->buffer == HT_TRACE_BUFFER_MAIN) {
        r->plan_options.main_buffer = true;
        if (r->functions.names) {
            r->tracer = ht_record_functions_words(&r->functions);
            r->plan_options.tracer = r->tracer;
        }
        ht_record_plan_free(r->plan);
        r->plan = ht_record_plan(argv, &r->plan_options, error);
    }
    return r->plan && has_tracer(r, error);
}

static bool make_plan(HtRecord *r, char **argv, GError **error)
{
    if (!ht_record_prepare(r, argv, error)) {
        return false;
    }
    if (r->plan && r->plan->bytes && !r->print && !make_memory(r)) {
        r->plan_options.private = true;
        ht_record_plan_free(r->plan);
        r->plan = ht_record_plan(argv, &r->plan_options, error);
    }
    return r->plan;
}

/*
 * With -daemonize, record in a new process in the background. Return: true in
 * that process; false in the calling process, after QEMU has gone to the
 * background or the new process has ended or was not made, with the exit status
 * in @status
 */
static bool go_to_background(HtRecord *r, int *status)
{
    unsigned char byte;
    int fds[2], wait_status;
    pid_t pid = pipe2(fds, O_CLOEXEC) ? -1 : fork();

    if (pid < 0) {
        *status = ht_error("cannot go to the background: %s",
                           g_strerror(errno));
        return false;
    }
    if (pid == 0) {
        close(fds[0]);
        setsid();
        r->ready_fd = fds[1];
        return true;
    }
    close(fds[1]);
    if (read(fds[0], &byte, 1) == 1) {
        *status = byte;
    } else {
        waitpid(pid, &wait_status, 0);
        *status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) :
                  HT_EXIT_ERROR;
    }
    close(fds[0]);
    return false;
}

/* Print what the user has to do or know before the guest starts. */
static void announce(const HtRecord *r)
{
    const HtRecordPlan *p = r->plan;

    if (r->buffer == HT_TRACE_BUFFER_BOOT &&
        ht_plan_has_syscalls(r->plan_options.events)) {
        fputs("hypertrace record: no system calls will be recorded: a kernel "
              "has none in a ring in reserved memory; add --buffer main\n",
              stderr);
    }
    if (r->print) {
        return;
    }
    if (p->given == HT_RECORD_WORDS_LOADER) {
        fprintf(stderr, "hypertrace record: the guest's boot loader must give "
                "the kernel these words%s:\n%s\n", p->words_why ? "" :
                " (they are in an SMBIOS string, too)", p->words);
    } else if (p->given == HT_RECORD_WORDS_NONE) {
        fprintf(stderr, "hypertrace record: the kernel's command line is not "
                "changed: %s\n", p->words_why);
    }
}

int ht_record_prepared(HtRecord *r, char **argv)
{
    g_autoptr(GError) error = NULL;
    int status;

    get_kernel(r, r->kernel_path ? r->kernel_path : r->plan->kernel,
               r->plan->program);
    if (!check_events(r, &error)) {
        status = ht_error("%s", error->message);
        if (!r->as_qemu) {
            return status;
        }
    }
    if (r->plan->daemonize && !go_to_background(r, &status)) {
        return status;
    }
    return run(r, argv, r->plan->name,
               ht_record_memory_name(r->plan->memory));
}

static int record_command(HtRecord *r, char **argv)
{
    g_autoptr(GError) error = NULL;

    if (r->flight.size && !r->print &&
        !ht_qmp_events_offer(&r->qmp_fd, &r->plan_options.config_fd, &error)) {
        return ht_error("%s", error->message);
    }
    if (!make_plan(r, argv, &error)) {
        return error->domain == G_OPTION_ERROR ?
               ht_usage_error("%s", error->message) :
               ht_error("%s", error->message);
    }
    if (r->plan->query && !r->print) {
        execvp(argv[0], argv);
        return ht_error("%s: %s", argv[0], g_strerror(errno));
    }
    if (!r->quiet) {
        announce(r);
    }
    if (r->print) {
        print_plan(r->plan);
        return HT_EXIT_OK;
    }
    return ht_record_prepared(r, argv);
}

void ht_record_clear(HtRecord *r)
{
    HtProgramsStats stats;

    ht_programs_end(r->programs, &stats);
    ht_programs_stats_clear(&stats);
    ht_live_free(r->live);
    g_free(r->live_options.name);
    ht_process_free(r->process);
    ht_record_plan_free(r->plan);
    ht_kernel_image_unref(r->image);
    ht_kernel_image_unref(r->found);
    ht_record_functions_clear(&r->functions);
    g_free(r->tracer);
    g_free(r->events);
    ht_match_free(r->until);
    ht_match_free(r->flight.match);
    ht_kernel_free(r->kernel);
    ht_ft_formats_free(r->formats);
}

int ht_record(int argc, char **argv)
{
    HtRecord r = {
        .memory_fd = -1,
        .ready_fd = -1,
        .qmp_fd = -1,
        .max_bytes = HT_RECORD_MAX_SIZE,
    };
    int status;

    if (ht_record_parse(&r, argc, argv, &status)) {
        status = r.pid ? ht_record_process(&r) :
                 record_command(&r, argv + optind);
    }
    ht_record_clear(&r);
    return status;
}
