/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace attach: record the events of the programs in a virtual machine.
 * Another program starts the machine.
 */
#include "hypertrace/base.h"
#include <getopt.h>
#include <signal.h>
#include <time.h>

#include "cli/command.h"
#include "cli/number.h"
#include "cli/wrong-option.h"
#include "host/host-record.h"
#include "hypertrace/ctf-writer.h"
#include "hypertrace/memory.h"
#include "hypertrace/recording.h"
#include "record/options.h"
#include "record/programs-link.h"
#include "record/programs.h"
#include "record/record-session.h"

/*
 * Maximum time in us for which --tell-guest waits until REC, a recording
 * that another recorder makes, has the machine's process ID and the host's part
 */
#define PROCESS_US          INT64_C(10000000)
#define PROCESS_POLL_US     50000

typedef struct Attach {
    const char *file;
    /* path of the link to the trace, see ht_programs_link() */
    char *link;
    char *dir;
    bool lttng;
    /* name of the guest in LTTng; only with @lttng */
    char *lttng_name;
    const char *tell;
    /* process ID of the virtual machine; only with @tell */
    pid_t pid;
    bool create;
    bool quiet;
    uint64_t size;
    uint64_t max_bytes;
    uint64_t for_ns;
} Attach;

static void usage(void)
{
    printf(
"usage: hypertrace attach [OPTIONS] FILE\n\n"
"Record the events of the programs of a virtual machine that another program\n"
"starts. The machine needs a device ivshmem-plain whose memory is FILE. The\n"
"recorder can end at any time, and a new recorder can continue.\n\n"
"      --create[=SIZE] create FILE before the virtual machine starts; SIZE is\n"
"                      a power of two (default: 256M)\n"
"      --for TIME      stop after TIME, as 10s (default: at SIGINT or SIGTERM)\n"
"      --lttng[=NAME]  also deliver events to LTTng, as this process's events\n"
"                      'NAME-programs:*' (default: FILE's name), and let LTTng\n"
"                      switch each event on and off in the guest\n"
"      --max-size SIZE end the recording at this size (default: 16G)\n"
"  -o, --output DIR    write to DIR (default: recording-DATE-TIME)\n"
"  -q, --quiet         print no summary\n"
"      --tell-guest=REC let the guest read how much of its vCPUs' time the host\n"
"                      took, and what for; 'hypertrace record --host --pid'\n"
"                      makes REC at the same time\n\n"
"The exit status is 3 if the recording is empty or not complete.\n");
}

static bool parse_options(Attach *a, int argc, char **argv, int *status)
{
    enum { CREATE = 256, FOR, LTTNG, MAX_SIZE, TELL };
    static const struct option longs[] = {
        { "create", optional_argument, NULL, CREATE },
        { "for", required_argument, NULL, FOR },
        { "lttng", optional_argument, NULL, LTTNG },
        { "max-size", required_argument, NULL, MAX_SIZE },
        { "output", required_argument, NULL, 'o' },
        { "tell-guest", required_argument, NULL, TELL },
        { "quiet", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },
        { }
    };
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, ":o:qh", longs, NULL)) != -1) {
        switch (c) {
        case CREATE:
            a->create = true;
            if (!ht_record_memory("--create", optarg, &a->size, status)) {
                return false;
            }
            break;
        case FOR:
            if (!ht_record_duration("--for", optarg, &a->for_ns, status)) {
                return false;
            }
            break;
        case LTTNG:
            a->lttng = true;
            if (!ht_record_lttng_name(optarg, &a->lttng_name, status)) {
                return false;
            }
            break;
        case MAX_SIZE:
            if (!ht_number_size(optarg, 'M', &a->max_bytes) || !a->max_bytes) {
                *status = ht_usage_error("--max-size '%s': give a size, as "
                                         "500M or 1T", optarg);
                return false;
            }
            break;
        case 'o':
            g_free(a->dir);
            a->dir = g_strdup(optarg);
            break;
        case TELL:
            a->tell = optarg;
            break;
        case 'q':
            a->quiet = true;
            break;
        case 'h':
            usage();
            *status = HT_EXIT_OK;
            return false;
        default:
            *status = ht_wrong_option(c, argv, longs);
            return false;
        }
    }
    if (argc != optind + 1) {
        *status = ht_usage_error("give the FILE of one virtual machine's "
                                 "memory");
        return false;
    }
    a->file = argv[optind];
    return true;
}

/*
 * Refuse a recording if its info file says that it has ended, or that it was
 * made on another host or in another boot of this host.
 */
static bool is_recorded_now(const Attach *a, GKeyFile *info, GError **error)
{
    g_autofree char *boot = ht_host_boot();
    g_autofree char *other = g_key_file_get_string(info, "recording",
                                                   "host-boot", NULL);
    const char *why = NULL;

    if (g_key_file_has_key(info, "recording", "end", NULL)) {
        why = "has ended";
    } else if (boot && other && strcmp(boot, other)) {
        why = "is of another host, or from before this host booted";
    }
    if (why) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "--tell-guest: "
                    "the recording '%s' %s: give one that is being made",
                    a->tell, why);
    }
    return !why;
}

/*
 * Read the machine's process ID from the recording of --tell-guest. Returns
 * false with @error if is_recorded_now() refuses that recording or its host's
 * part, or if it has a process ID but no folder for the host's part. Returns
 * false without @error if the recording, the host's part or the process ID
 * cannot be read yet.
 */
static bool read_process(Attach *a, GError **error)
{
    g_autofree char *part = g_build_filename(a->tell, HT_HOST_FOLDER, NULL);
    g_autoptr(HtRecording) rec = ht_rec_open(a->tell, NULL);
    g_autoptr(HtRecording) host = ht_rec_open(part, NULL);

    if (!rec || !is_recorded_now(a, ht_rec_info(rec)->keys, error)) {
        return false;
    }
    a->pid = g_key_file_get_integer(ht_rec_info(rec)->keys, "recording",
                                    "process", NULL);
    if (a->pid > 0 && !g_file_test(part, G_FILE_TEST_EXISTS)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "--tell-guest: "
                    "the recording '%s' has no part of the host: record with "
                    "--host", a->tell);
        return false;
    }
    return a->pid > 0 && host &&
           is_recorded_now(a, ht_rec_info(host)->keys, error);
}

/*
 * With --tell-guest, find the machine's process in the recording REC. Wait, as
 * the recorder that makes REC may just have been started.
 */
static bool find_process(Attach *a, GError **error)
{
    const int64_t end = g_get_monotonic_time() + PROCESS_US;

    while (a->tell && !read_process(a, error)) {
        if (*error) {
            return false;
        }
        if (g_get_monotonic_time() >= end) {
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                        "--tell-guest: '%s' does not name the process of a "
                        "virtual machine: give a recording of 'hypertrace "
                        "record --host'", a->tell);
            return false;
        }
        g_usleep(PROCESS_POLL_US);
    }
    return true;
}

static HtPrograms *open_memory(const Attach *a, GError **error)
{
    const HtProgramsOptions options = {
        .dir = a->dir,
        .max_bytes = a->max_bytes,
        .link = a->link,
        .lttng = a->lttng_name,
        .tell = a->tell,
    };
    HtPrograms *p = NULL;
    int fd = a->create ? ht_memory_make_file(a->file, a->size, error) :
                         open(a->file, O_RDWR | O_CLOEXEC);

    if (fd < 0 && !a->create) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
                    "cannot open '%s': %s%s", a->file, g_strerror(errno),
                    errno == ENOENT ? "; --create makes it" : "");
    }
    if (fd >= 0 && a->create) {
        /* remove a link that belongs to an earlier memory of the same name */
        ht_programs_link_remove(a->link);
    }
    if (fd >= 0) {
        p = ht_programs_new(fd, a->create, &options, error);
        close(fd);
    }
    if (fd >= 0 && !p && a->create) {
        unlink(a->file);
    }
    return p;
}

static void tell_arguments(const Attach *a)
{
    fprintf(stderr, "hypertrace attach: start the virtual machine with\n"
            "  -object memory-backend-file,id=ht-programs,share=on,"
            "size=%" PRIu64 "M,mem-path=%s\n"
            "  -device ivshmem-plain,memdev=ht-programs\n",
            a->size >> 20, a->file);
}

/*
 * Wait for a signal, for the end of the time of --for, or for a failure. The
 * signals must be blocked, also in the threads that were started. Return: which
 * of these came
 */
static const char *wait_end(const Attach *a, const sigset_t *signals,
                            const HtPrograms *p)
{
    const uint64_t start = g_get_monotonic_time();
    const struct timespec tick = { .tv_nsec = 100000000 };

    while (sigtimedwait(signals, NULL, &tick) < 0) {
        if (a->for_ns &&
            (g_get_monotonic_time() - start) * 1000 >= a->for_ns) {
            return "the time of --for was over";
        }
        if (ht_programs_failed(p)) {
            return "the memory was truncated";
        }
    }
    return "the recorder was stopped";
}

static int summary(const Attach *a, const HtProgramsStats *n)
{
    if (n->why) {
        ht_error("%s", n->why);
    }
    if (!a->quiet) {
        ht_programs_summary(a->dir, n);
    }
    return n->events && !n->why ? HT_EXIT_OK : HT_EXIT_NOTHING;
}

/*
 * End the process although the thread that delivers to LTTng hangs. exit()
 * would run LTTng-UST's destructor, which waits for that thread.
 */
static void exit_hanging(int status)
{
    fflush(NULL);
    _exit(status);
}

static int record(const Attach *a, GError **error)
{
    g_autofree char *command = g_strdup_printf("attach %s", a->file);
    const HtSessionInfo info = {
        .dir = a->dir,
        .command = command,
        .source = "memory of a device ivshmem-plain",
        .max_bytes = a->max_bytes,
    };
    g_autoptr(HtSession) session = NULL;
    HtPrograms *p = open_memory(a, error);
    HtProgramsStats stats;
    sigset_t signals;
    const char *end;
    int status;

    if (!p) {
        return HT_EXIT_ERROR;
    }
    session = ht_session_new(&info, error);
    if (!session) {
        ht_programs_end(p, &stats);
        ht_programs_stats_clear(&stats);
        if (a->create) {
            unlink(a->file);
        }
        return HT_EXIT_ERROR;
    }
    if (a->create && !a->quiet) {
        tell_arguments(a);
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    ht_programs_start(p);
    ht_programs_process(p, a->pid);
    end = wait_end(a, &signals, p);
    ht_programs_end(p, &stats);
    if (!ht_session_finish(session, end, error) || !stats.streams) {
        ht_session_discard(session);
    }
    status = summary(a, &stats);
    if (stats.hangs) {
        exit_hanging(status);
    }
    ht_programs_stats_clear(&stats);
    return status;
}

int ht_attach(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    Attach a = { .max_bytes = HT_RECORD_MAX_SIZE };
    bool own_dir;
    int status;

    if (parse_options(&a, argc, argv, &status)) {
        a.link = ht_programs_link(a.file);
        if (a.lttng && !a.lttng_name) {
            g_autofree char *name = g_path_get_basename(a.file);

            a.lttng_name = ht_record_lttng_default(name);
        }
        own_dir = !a.dir;
        if (own_dir) {
            a.dir = ht_record_default_dir(false);
        }
        status = find_process(&a, &error) ? record(&a, &error) :
                 HT_EXIT_ERROR;
        if (error) {
            status = ht_error("%s", error->message);
        }
        if (own_dir) {
            /* rmdir() fails if something was recorded: the folder then stays */
            rmdir(a.dir);
        }
    }
    g_free(a.link);
    g_free(a.lttng_name);
    g_free(a.dir);
    return status;
}
