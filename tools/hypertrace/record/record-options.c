/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: parse the options of the command
 */
#include "hypertrace/base.h"
#include <getopt.h>
#include <limits.h>

#include "cli/command.h"
#include "cli/number.h"
#include "cli/wrong-option.h"
#include "hypertrace/recording.h"
#include "qemu/vm.h"
#include "record/flight-dir.h"
#include "record/options.h"
#include "record/record.h"

#define POLL_US_DEFAULT     1000
/*
 * Default of --poll-us with --flight, in us. It is longer than the default
 * without --flight: the guest's ring keeps the events in the meantime.
 */
#define POLL_US_FLIGHT      10000
#define POLL_US_MAX         1000000

static void usage(void)
{
    printf(
"usage: hypertrace record [OPTIONS] -- qemu-system-x86_64 ARGS...\n"
"       hypertrace record [OPTIONS] --pid PID | --domain NAME\n\n"
"Run a virtual machine and record what its kernel traces, from its first\n"
"instant to its last, whatever becomes of it. Nothing is installed in the guest:\n"
"words on the kernel's command line make it keep a ring of events in its memory,\n"
"which is read from outside.\n\n"
"Events:\n"
"  -e, --event LIST    events and groups, as 'sched,irq,block:block_rq_issue'\n"
"                      (default: " HT_RECORD_EVENTS ");\n"
"                      always: " HT_RECORD_ALWAYS "\n"
"      --graph LIST    calls of the functions in LIST, with the calls inside\n"
"                      them, from the kernel's first initcalls on, as\n"
"                      'acpi_init,depth=4'\n"
"      --functions LIST\n"
"                      calls of the functions in LIST, without their returns\n"
"  -s, --size SIZE     size of the ring in the guest's memory (default: 16M, or\n"
"                      2M for each processor)\n"
"      --buffer WHICH  'boot': a ring in reserved memory (Linux 6.12 or later);\n"
"                      'main': the kernel's main trace buffer (5.10 or later, if\n"
"                      the kernel has BTF and KALLSYMS_ALL); default: the first\n"
"                      of the two that the kernel allows\n"
"      --programs[=SIZE] events of the guest's programs, too: QEMU gets a device\n"
"                      ivshmem-plain with SIZE of memory (default: 256M); the\n"
"                      guest needs the driver of hypertrace\n"
"      --host          what the host does with the guest's vCPUs, too; for root\n"
"      --tell-guest    with --host and --programs: let the guest read how much of\n"
"                      its vCPUs' time the host took, and what for\n"
"  -p, --pid PID       record a running virtual machine: the process of QEMU,\n"
"                      Cloud Hypervisor, crosvm, Firecracker or kvmtool\n"
"      --domain NAME   the same for the virtual machine with this name, as\n"
"                      libvirt calls its domains\n"
"      --wait TIME     with --pid: end with status 3 if the guest's kernel or its\n"
"                      events are not found after TIME, as 30s\n"
"      --for TIME      stop after TIME, as 10s, and end the QEMU that was\n"
"                      started\n"
"      --until EVENT   stop at an event, and end the QEMU that was started, as\n"
"                      sched:sched_process_exec or 'sched_process_exec where\n"
"                      filename ~ \"*login\"'; or at a line of the kernel's\n"
"                      log that matches a regular expression, as\n"
"                      'log:Kernel panic'\n"
"      --kernel FILE   the guest's kernel image, if a boot loader loads it\n"
"Output:\n"
"  -o, --output DIR    directory of the recording (default:\n"
"                      recording-DATE-TIME)\n"
"      --max-size SIZE end the recording at this size (default: 16G)\n"
"      --flight SIZE   a flight recorder: keep the newest events in SIZE bytes of\n"
"                      memory, and make a numbered recording in DIR (default:\n"
"                      flight-DATE-TIME) at a panic, reset, shutdown, I/O error,\n"
"                      at the watchdog, SIGUSR1 and 'hypertrace snapshot DIR'\n"
"      --silence TIME  with --flight: also make a recording if there are no\n"
"                      events for TIME, as 30s\n"
"      --match EVENT   with --flight: also make a recording at an event, given as\n"
"                      for --until\n"
"      --keep N        number of recordings that --flight keeps (default: %d)\n"
"      --lttng[=NAME]  also deliver events to LTTng, as this process's events\n"
"                      'NAME:*' (default: the guest's name); those of programs\n"
"                      are 'NAME-programs:*', and LTTng switches them on\n"
"      --net URL       also send events through LTTng to a relay daemon, as\n"
"                      net://localhost\n"
"      --live          with --net: clients can read the events live\n"
"Other options:\n"
"      --poll-us N     period of polls in microseconds (default: %d; with\n"
"                      --flight %d)\n"
"      --busybox FILE  a static busybox for the guest's architecture\n"
"      --print         only print QEMU's command and how it was changed\n"
"  -q, --quiet         print no status line and no summary\n\n"
"The exit status is that of QEMU if it is not 0; else 0, or 3 if the virtual\n"
"machine ended well but its recording is missing or not complete, or had no\n"
"event or line of --until.\n",
           HT_FLIGHT_KEEP_DEFAULT, POLL_US_DEFAULT, POLL_US_FLIGHT);
}

/* Add @more to the events of --event, which may be given several times. */
static void add_list(HtRecord *r, const char *more)
{
    char *all = r->events ? g_strconcat(r->events, ",", more, NULL) :
                g_strdup(more);

    g_free(r->events);
    r->plan_options.events = r->events = all;
}

static bool set_functions(HtRecord *r, const char *text, bool graph,
                          int *status)
{
    g_autoptr(GError) error = NULL;

    if (r->functions.names) {
        *status = ht_usage_error("give --functions or --graph, and only once: "
                                 "the kernel has only one tracer at a time");
        return false;
    }
    if (!ht_record_functions_parse(&r->functions, text, graph, &error)) {
        *status = ht_usage_error("%s", error->message);
        return false;
    }
    return true;
}

static bool set_flight(HtRecord *r, const char *text, int *status)
{
    uint64_t *size = &r->flight.size;

    if (!ht_number_size(text, 'M', size) || *size < HT_REC_QUEUE_MIN ||
        *size > HT_REC_QUEUE_MAX) {
        *status = ht_usage_error("--flight '%s': give 1M to 64G", text);
        return false;
    }
    return true;
}

static bool set_match(HtMatch **m, const char *option, const char *text,
                      int *status)
{
    g_autoptr(GError) error = NULL;

    if (*m) {
        *status = ht_usage_error("%s: give it once", option);
        return false;
    }
    *m = ht_match_new(option, text, &error);
    if (!*m) {
        *status = ht_usage_error("%s", error->message);
    }
    return *m;
}

/*
 * Unless --pid is given, record the events that the option --until or --match
 * needs, in addition to those of --event or of its default.
 */
static void add_events(HtRecord *r, const HtMatch *m)
{
    if (m && !r->pid && *ht_match_events(m)) {
        if (!r->events) {
            add_list(r, HT_RECORD_EVENTS);
        }
        add_list(r, ht_match_events(m));
    }
}

static bool check_options(HtRecord *r, int *status)
{
    const char *option = ht_record_functions_option(&r->functions);

    if (r->live_options.live && !r->live_options.url) {
        *status = ht_usage_error("--live needs the URL of a relay daemon: give "
                                 "--net URL");
        return false;
    }
    if (r->pid && r->plan_options.programs) {
        *status = ht_usage_error("--programs and --pid: a machine that runs "
                                 "already gets no device");
        return false;
    }
    if (r->pid && (r->plan_options.events || r->plan_options.size)) {
        *status = ht_usage_error("%s and --pid: the command line of a kernel "
                                 "that boots selects the events and the size "
                                 "of their ring: leave out one of them",
                                 r->plan_options.events ? "--event" :
                                 "--size");
        return false;
    }
    if (r->wait_ns && !r->pid) {
        *status = ht_usage_error("--wait needs --pid");
        return false;
    }
    if (r->functions.names && r->pid) {
        *status = ht_usage_error("%s: words on the command line of a kernel "
                                 "that boots start the tracer: leave out "
                                 "--pid", option);
        return false;
    }
    if (r->functions.names && r->buffer == HT_TRACE_BUFFER_BOOT) {
        *status = ht_usage_error("%s: only the main trace buffer has "
                                 "functions: leave out --buffer boot", option);
        return false;
    }
    if (!r->flight.size && (r->flight.keep || r->flight.silence_ns ||
                            r->flight.match)) {
        *status = ht_usage_error("--keep, --silence and --match need "
                                 "--flight");
        return false;
    }
    if (r->flight.size && r->until) {
        *status = ht_usage_error("--until: a flight recorder goes on after an "
                                 "event: give --match EVENT for a recording "
                                 "at the event");
        return false;
    }
    if (r->flight.size && r->lttng) {
        *status = ht_usage_error("--flight keeps events in memory, and --lttng "
                                 "and --net deliver them at once: leave out "
                                 "one of them");
        return false;
    }
    if (r->flight.size && r->plan_options.programs) {
        *status = ht_usage_error("--flight keeps events of the kernel only: "
                                 "give it or --programs");
        return false;
    }
    if (r->flight.size && r->host) {
        *status = ht_usage_error("--flight keeps events of the guest only: "
                                 "give it or --host");
        return false;
    }
    if (r->tell && !(r->host && r->plan_options.programs)) {
        *status = ht_usage_error("--tell-guest needs --host, which records the "
                                 "host, and --programs, whose memory the guest "
                                 "reads");
        return false;
    }
    add_events(r, r->until);
    add_events(r, r->flight.match);
    if (!r->poll_us) {
        r->poll_us = r->flight.size ? POLL_US_FLIGHT : POLL_US_DEFAULT;
    }
    return true;
}

static bool find_domain(HtRecord *r, const char *name, int *status)
{
    g_autoptr(GError) error = NULL;

    g_clear_pointer(&r->process, ht_process_free);
    r->process = ht_vm_find(name, &error);
    if (!r->process) {
        *status = ht_error("--domain '%s': %s", name, error->message);
        return false;
    }
    r->pid = r->process->pid;
    return true;
}

bool ht_record_parse(HtRecord *r, int argc, char **argv, int *status)
{
    enum {
        POLL = 256, MAX_SIZE, KERNEL, BUSYBOX, PRINT, LTTNG, NET, LIVE, FOR,
        BUFFER, PROGRAMS, FUNCTIONS, GRAPH, FLIGHT, KEEP, SILENCE, WAIT, HOST,
        DOMAIN, UNTIL, MATCH, TELL,
    };
    static const struct option longs[] = {
        { "event", required_argument, NULL, 'e' },
        { "output", required_argument, NULL, 'o' },
        { "pid", required_argument, NULL, 'p' },
        { "domain", required_argument, NULL, DOMAIN },
        { "size", required_argument, NULL, 's' },
        { "poll-us", required_argument, NULL, POLL },
        { "max-size", required_argument, NULL, MAX_SIZE },
        { "for", required_argument, NULL, FOR },
        { "until", required_argument, NULL, UNTIL },
        { "wait", required_argument, NULL, WAIT },
        { "flight", required_argument, NULL, FLIGHT },
        { "keep", required_argument, NULL, KEEP },
        { "silence", required_argument, NULL, SILENCE },
        { "match", required_argument, NULL, MATCH },
        { "buffer", required_argument, NULL, BUFFER },
        { "programs", optional_argument, NULL, PROGRAMS },
        { "host", no_argument, NULL, HOST },
        { "tell-guest", no_argument, NULL, TELL },
        { "functions", required_argument, NULL, FUNCTIONS },
        { "graph", required_argument, NULL, GRAPH },
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

    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:e:o:p:s:qh", longs, NULL)) != -1) {
        switch (c) {
        case 'e':
            add_list(r, optarg);
            break;
        case 'o':
            if (!strcmp(optarg, "-")) {
                *status = ht_usage_error("-o -: a recording is a directory");
                return false;
            }
            if (!*optarg) {
                *status = ht_usage_error("-o '': give the name of a "
                                         "directory");
                return false;
            }
            r->dir = optarg;
            break;
        case 's':
            if (!ht_number_size(optarg, 'M', &n) || n < HT_RECORD_SIZE_MIN ||
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
            if (r->process) {
                *status = ht_usage_error("--domain and --pid: give one of"
                                         " them");
                return false;
            }
            r->pid = n;
            break;
        case DOMAIN:
            if (r->pid && !r->process) {
                *status = ht_usage_error("--domain and --pid: give one of"
                                         " them");
                return false;
            }
            if (!find_domain(r, optarg, status)) {
                return false;
            }
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
            if (!ht_number_size(optarg, 'M', &n) || n < HT_RECORD_SIZE_MIN) {
                *status = ht_usage_error("--max-size '%s': give 1M or more, "
                                         "as 500M or 1T", optarg);
                return false;
            }
            r->max_bytes = n;
            break;
        case FOR:
            if (!ht_record_duration("--for", optarg, &r->for_ns, status)) {
                return false;
            }
            break;
        case UNTIL:
            if (!set_match(&r->until, "--until", optarg, status)) {
                return false;
            }
            break;
        case WAIT:
            if (!ht_record_duration("--wait", optarg, &r->wait_ns, status)) {
                return false;
            }
            break;
        case FLIGHT:
            if (!set_flight(r, optarg, status)) {
                return false;
            }
            break;
        case KEEP:
            if (!g_ascii_string_to_unsigned(optarg, 10, 1, HT_FLIGHT_KEEP_MAX,
                                            &n, NULL)) {
                *status = ht_usage_error("--keep '%s': give 1 to %d", optarg,
                                         HT_FLIGHT_KEEP_MAX);
                return false;
            }
            r->flight.keep = n;
            break;
        case SILENCE:
            if (!ht_record_duration("--silence", optarg,
                                    &r->flight.silence_ns, status)) {
                return false;
            }
            break;
        case MATCH:
            if (!set_match(&r->flight.match, "--match", optarg, status)) {
                return false;
            }
            break;
        case BUFFER:
            r->buffer = !strcmp(optarg, "boot") ? HT_TRACE_BUFFER_BOOT :
                        !strcmp(optarg, "main") ? HT_TRACE_BUFFER_MAIN :
                        HT_TRACE_BUFFER_ANY;
            if (!r->buffer) {
                *status = ht_usage_error("--buffer '%s': give 'boot' or "
                                         "'main'", optarg);
                return false;
            }
            break;
        case PROGRAMS:
            if (!ht_record_memory("--programs", optarg,
                                  &r->plan_options.programs, status)) {
                return false;
            }
            break;
        case FUNCTIONS:
        case GRAPH:
            if (!set_functions(r, optarg, c == GRAPH, status)) {
                return false;
            }
            break;
        case KERNEL:
            r->kernel_path = optarg;
            break;
        case BUSYBOX:
            r->busybox = optarg;
            break;
        case HOST:
            r->host = true;
            r->plan_options.thread_names = true;
            break;
        case TELL:
            r->tell = true;
            break;
        case LTTNG:
            if (!ht_record_lttng_name(optarg, &r->live_options.name, status)) {
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
            *status = ht_wrong_option(c, argv, longs);
            return false;
        }
    }
    if (!check_options(r, status)) {
        return false;
    }
    if (r->pid ? optind < argc : optind == argc) {
        *status = ht_usage_error(r->pid ?
                                 "a command and --pid: give one of them" :
                                 "give QEMU's command after '--', "
                                 "--pid PID, or --domain NAME");
        return false;
    }
    return true;
}
