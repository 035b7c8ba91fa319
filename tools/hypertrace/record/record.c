/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: record what the kernel of a virtual machine traces
 */
#include "hypertrace/base.h"
#include <getopt.h>
#include <limits.h>

#include "cli/command.h"
#include "record/record.h"

#define POLL_US_DEFAULT     1000
#define POLL_US_MAX         1000000
/* A class's name follows it, in at most 255 bytes. */
#define NAME_MAX_LTTNG      64
#define MAX_SIZE_DEFAULT    (UINT64_C(16) << 30)

static void usage(void)
{
    printf(
"usage: hypertrace record [OPTIONS] -- qemu-system-x86_64 ARGS...\n"
"       hypertrace record [OPTIONS] --pid PID\n\n"
"Run a virtual machine and record what its kernel (6.12 or later) traces, from\n"
"its first instant to its last, whatever becomes of it. Nothing is installed in\n"
"the guest: the kernel is told by its command line to keep a ring of events in\n"
"its memory, which is read from outside.\n\n"
"  -e, --events LIST   events and groups, as 'sched,irq,block:block_rq_issue'\n"
"                      (default: " HT_RECORD_EVENTS ");\n"
"                      always: " HT_RECORD_ALWAYS "\n"
"  -o, --output DIR    the recording (default: recording-DATE-TIME)\n"
"  -s, --size SIZE     of the ring in the guest's memory (default: 16M)\n"
"  -p, --pid PID       a QEMU that runs already\n"
"      --poll-us N     microseconds between two looks (default: %d)\n"
"      --max-size SIZE the recording ends when it is so large (default: 16G)\n"
"      --kernel FILE   the guest's kernel, if its boot loader finds it\n"
"      --busybox FILE  a static busybox for the guest's architecture\n"
"      --lttng[=NAME]  to LTTng, too: as events of this process, 'NAME:*'\n"
"                      (default: the guest's name)\n"
"      --net URL       and from there to a relay daemon, as net://localhost\n"
"      --live          where they can be read meanwhile\n"
"      --print         only show QEMU's command, and what was changed\n"
"  -q, --quiet         no status line, no summary\n\n"
"The exit status is QEMU's.\n", POLL_US_DEFAULT);
}

static bool set_lttng_name(HtRecord *r, const char *name)
{
    static const char chars[] = G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_.-";

    g_free(r->live_options.name);
    r->live_options.name = g_strdup(name);
    return *name && strlen(name) <= NAME_MAX_LTTNG &&
           strspn(name, chars) == strlen(name);
}

static bool parse_options(HtRecord *r, int argc, char **argv, int *status)
{
    enum { POLL = 256, MAX_SIZE, KERNEL, BUSYBOX, PRINT, LTTNG, NET, LIVE };
    static const struct option longs[] = {
        { "events", required_argument, NULL, 'e' },
        { "output", required_argument, NULL, 'o' },
        { "pid", required_argument, NULL, 'p' },
        { "size", required_argument, NULL, 's' },
        { "poll-us", required_argument, NULL, POLL },
        { "max-size", required_argument, NULL, MAX_SIZE },
        { "kernel", required_argument, NULL, KERNEL },
        { "busybox", required_argument, NULL, BUSYBOX },
        { "lttng", optional_argument, NULL, LTTNG },
        { "net", required_argument, NULL, NET },
        { "live", no_argument, NULL, LIVE },
        { "print", no_argument, NULL, PRINT },
        { "quiet", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },
        { }
    };
    uint64_t n;
    int c;

    while ((c = getopt_long(argc, argv, "+e:o:p:s:qh", longs, NULL)) != -1) {
        switch (c) {
        case 'e':
            r->plan_options.events = optarg;
            break;
        case 'o':
            r->dir = optarg;
            break;
        case 's':
            if (!ht_record_size(optarg, 'M', &n) || n < HT_RECORD_SIZE_MIN ||
                n > HT_RECORD_SIZE_MAX || n % HT_RECORD_SIZE_MIN) {
                *status = ht_usage_error("--size '%s': give whole MiB, 1M to "
                                         "1G", optarg);
                return false;
            }
            r->plan_options.size = n;
            break;
        case 'p':
            if (!g_ascii_string_to_unsigned(optarg, 10, 1, INT_MAX, &n,
                                            NULL)) {
                *status = ht_usage_error("--pid '%s': give the number of a "
                                         "process", optarg);
                return false;
            }
            r->pid = n;
            break;
        case POLL:
            if (!g_ascii_string_to_unsigned(optarg, 10, 1, POLL_US_MAX, &n,
                                            NULL)) {
                *status = ht_usage_error("--poll-us '%s': give 1 to %d",
                                         optarg, POLL_US_MAX);
                return false;
            }
            r->poll_us = n;
            break;
        case MAX_SIZE:
            if (!ht_record_size(optarg, 'M', &n) || n < HT_RECORD_SIZE_MIN) {
                *status = ht_usage_error("--max-size '%s': give 1M or more, "
                                         "as 500M or 1T", optarg);
                return false;
            }
            r->max_bytes = n;
            break;
        case KERNEL:
            r->kernel_path = optarg;
            break;
        case BUSYBOX:
            r->busybox = optarg;
            break;
        case LTTNG:
            if (optarg && !set_lttng_name(r, optarg)) {
                *status = ht_usage_error("--lttng='%s': give a name of 1 to %d "
                                         "letters, digits, '_', '.' or '-'",
                                         optarg, NAME_MAX_LTTNG);
                return false;
            }
            r->lttng = true;
            break;
        case NET:
            r->lttng = true;
            r->live_options.url = optarg;
            break;
        case LIVE:
            r->live_options.live = true;
            break;
        case PRINT:
            r->print = true;
            break;
        case 'q':
            r->quiet = true;
            break;
        case 'h':
            usage();
            *status = HT_EXIT_OK;
            return false;
        default:
            *status = HT_EXIT_USAGE;
            return false;
        }
    }
    if (r->live_options.live && !r->live_options.url) {
        *status = ht_usage_error("--live: to which relay daemon? give --net");
        return false;
    }
    if (r->pid ? optind < argc : optind == argc) {
        *status = ht_usage_error(r->pid ?
                                 "a command and --pid: give one of them" :
                                 "which machine? give QEMU's command behind "
                                 "'--', or --pid");
        return false;
    }
    return true;
}

static void print_plan(const HtRecordPlan *p)
{
    unsigned i;

    for (i = 0; p->argv[i]; i++) {
        g_autofree char *word = g_shell_quote(p->argv[i]);
        bool plain = p->argv[i][0] &&
                     !strpbrk(p->argv[i], " \t\n'\"\\$`*?[]&;|<>()#~!{}");

        printf("%s%s", i ? " " : "", plain ? p->argv[i] : word);
    }
    printf("\n# memory: %s%s%s%s\n", ht_record_memory_name(p->memory),
           p->why ? " (" : "", p->why ? p->why : "", p->why ? ")" : "");
    if (p->memory == HT_RECORD_NODE || p->memory == HT_RECORD_MEMFD) {
        printf("# descriptor %d: %" PRIu64 " MiB that hypertrace holds\n",
               p->fd, p->bytes >> 20);
    }
    if (!p->words) {
        puts("# the kernel's command line has a ring already");
    } else if (!p->kernel) {
        printf("# the boot loader has to give the kernel: %s\n", p->words);
    }
}

static char *default_dir(void)
{
    g_autoptr(GDateTime) t = g_date_time_new_now_local();

    return g_date_time_format(t, "recording-%Y%m%d-%H%M%S");
}

/* What the process was started with, separated by NULs in /proc */
static char **process_args(const HtProcess *process, GError **error)
{
    size_t size, at;
    g_autofree char *text = ht_process_read(process, "cmdline", &size, error);
    GPtrArray *args;

    if (!text) {
        return NULL;
    }
    args = g_ptr_array_new();
    for (at = 0; at < size; at += strlen(text + at) + 1) {
        g_ptr_array_add(args, g_strdup(text + at));
    }
    g_ptr_array_add(args, NULL);
    return (char **)g_ptr_array_free(args, false);
}

/* Where the process means by a path */
static char *process_path(const HtProcess *process, const char *path)
{
    return g_path_is_absolute(path) ? g_strdup(path) :
           g_strdup_printf("/proc/self/fd/%d/cwd/%s", process->dir, path);
}

static const char *argument_of(char **argv, const char *option)
{
    const char *value = NULL;
    unsigned i;

    for (i = 1; argv[0] && argv[i] && argv[i + 1]; i++) {
        if (!strcmp(argv[i], option) ||
            (argv[i][0] == '-' && !strcmp(argv[i] + 1, option))) {
            value = argv[i + 1];
        }
    }
    return value;
}

static bool get_kernel(HtRecord *r, const char *image, const char *qemu,
                       GError **error)
{
    if (!image) {
        fputs("hypertrace record: events will have numbers for names: "
              "--kernel FILE says which kernel the guest boots\n", stderr);
        return true;
    }
    r->kernel = ht_kernel_get(image, qemu, r->busybox, error);
    return r->kernel;
}

/* Of the guest, else of the recording; what LTTng allows */
static char *lttng_name(const HtRecord *r, char **argv)
{
    const char *value = argument_of(argv, "-name");
    g_autofree char *guest = value ? ht_record_opt(value, "guest") : NULL;
    g_autofree char *plain = value ? ht_record_opt(value, "") : NULL;
    char *name = guest ? g_steal_pointer(&guest) :
                 plain ? g_steal_pointer(&plain) : g_path_get_basename(r->dir);

    name[MIN(strlen(name), NAME_MAX_LTTNG)] = 0;
    return g_strcanon(name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_.-",
                      '_');
}

static bool start_live(HtRecord *r, char **argv, HtSessionInfo *info)
{
    g_autoptr(GError) error = NULL;

    if (!r->lttng) {
        return true;
    }
    if (!r->live_options.name) {
        r->live_options.name = lttng_name(r, argv);
    }
    r->live = ht_live_new(&r->live_options, r->kernel, &error);
    if (!r->live) {
        ht_error("%s", error->message);
        return false;
    }
    info->runs = ht_live_runs(r->live);
    return true;
}

static int run(HtRecord *r, char **argv, const char *source)
{
    g_autofree char *command = g_strjoinv(" ", argv);
    g_autofree char *dir = default_dir();
    HtSessionInfo info = {
        .command = command,
        .source = source,
        .words = r->plan ? r->plan->words : NULL,
        .poll_us = r->poll_us,
        .kernel = r->kernel,
        .max_bytes = r->max_bytes,
        .ring_at = r->plan ? r->plan->ring_at : 0,
    };

    if (!r->dir) {
        r->dir = dir;
    }
    info.dir = r->dir;
    return start_live(r, argv, &info) ? ht_record_run(r, &info) :
           HT_EXIT_ERROR;
}

static int record_process(HtRecord *r)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) argv = NULL;
    g_autofree char *image = NULL;
    const char *kernel;

    r->process = ht_process_new(r->pid, &error);
    argv = r->process ? process_args(r->process, &error) : NULL;
    if (!argv) {
        return ht_error("--pid: %s", error->message);
    }
    /* Root must not open whatever a user's process names, nor run it. */
    kernel = ht_process_is_ours(r->process) ? argument_of(argv, "-kernel") :
             NULL;
    image = r->kernel_path ? g_strdup(r->kernel_path) :
            kernel ? process_path(r->process, kernel) : NULL;
    if (!get_kernel(r, image, NULL, &error)) {
        return ht_error("%s", error->message);
    }
    return run(r, argv, ht_record_memory_name(HT_RECORD_PROCESS));
}

static int record_command(HtRecord *r, char **argv)
{
    g_autoptr(GError) error = NULL;

    r->plan = ht_record_plan(argv, &r->plan_options, &error);
    if (!r->plan) {
        return ht_error("%s", error->message);
    }
    if (r->print) {
        print_plan(r->plan);
        return HT_EXIT_OK;
    }
    if (!get_kernel(r, r->kernel_path ? r->kernel_path : r->plan->kernel,
                    argv[0], &error)) {
        return ht_error("%s", error->message);
    }
    return run(r, argv, ht_record_memory_name(r->plan->memory));
}

int ht_record(int argc, char **argv)
{
    HtRecord r = {
        .plan_options.size = HT_RECORD_SIZE,
        .poll_us = POLL_US_DEFAULT,
        .max_bytes = MAX_SIZE_DEFAULT,
    };
    int status;

    if (parse_options(&r, argc, argv, &status)) {
        status = r.pid ? record_process(&r) :
                 record_command(&r, argv + optind);
    }
    ht_live_free(r.live);
    g_free(r.live_options.name);
    ht_process_free(r.process);
    ht_record_plan_free(r.plan);
    ht_kernel_free(r.kernel);
    return status;
}
