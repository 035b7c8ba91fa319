/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-bench: measure the cost of events in the guest, and emit events that
 * ht-verify can check on the host; see ht-bench(1)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hypertrace/port.h"
#include "ht-bench-core.h"

/*
 * With --lossless: approximate seconds after which a producer no longer waits
 * for room in a full ring
 */
#define PATIENCE_S      10

struct thread {
    struct ht_stream stream;
    struct ht_bench_result result;
    const struct ht_bench_params *params;
    pthread_barrier_t *start;
    pthread_t id;
    int cpu;                    /* CPU on which the thread must run; -1: any */
/* aligned so that two threads do not share a cache line */
} __attribute__((aligned(128)));

struct options {
    const char *device;
    const char *name;
    uint64_t rate;
    uint64_t seconds;
    uint32_t threads;
    bool bind;
    bool json;
    struct ht_bench_params params;
};

static uint64_t hz;

static void print(const char *text)
{
    fputs(text, stdout);
}

static void sleep_ns(uint64_t ns)
{
    struct timespec t = { ns / 1000000000, ns % 1000000000 };

    nanosleep(&t, NULL);
}

/*
 * Pause the producer. If @ticks is 0, the ring is full: yield in the first 100
 * calls of a wait, then sleep 50 us and later 1 ms in each call; false after
 * about PATIENCE_S seconds. Otherwise (--rate), sleep until 100 us before the
 * next event is due; the caller then polls the clock.
 */
static bool pause_hook(uint64_t ticks, uint64_t tries)
{
    if (ticks) {
        uint64_t us = ticks / (hz / 1000000 + 1);

        if (us > 100) {
            sleep_ns((us - 100) * 1000);
        }
        return true;
    }
    if (tries < 100) {
        sched_yield();
    } else {
        sleep_ns(tries < 1000 ? 50000 : 1000000);
    }
    return tries < 1000 + PATIENCE_S * 1000;
}

static const struct ht_bench_hooks hooks = {
    .print = print,
    .pause = pause_hook,
};

static uint64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Measure the clock's frequency in Hz; not every device reports it. */
static uint64_t measure_hz(void)
{
    uint64_t ns = clock_ns(), ticks = ht_clock();

    sleep_ns(100000000);
    ticks = ht_clock() - ticks;
    ns = clock_ns() - ns;
    return (uint64_t)((double)ticks * 1e9 / (double)ns);
}

static uint64_t *ticks_left;

/* SIGINT, SIGTERM: end the run early, as if the time of --seconds had passed */
static void on_signal(int nr)
{
    (void)nr;
    __atomic_store_n(ticks_left, 1, __ATOMIC_RELAXED);
}

static void usage(FILE *f)
{
    fputs("usage: ht-bench [-bjl] [-d device] [-e name] [-g group]\n"
          "                [-n events] [-p payload,...] [-r rate]\n"
          "                [-s seconds] [-t threads]\n"
          "\n"
          "  -b, --bind             bind each thread to a CPU\n"
          "  -d, --device=DEVICE    /dev/hypertraceN or a PCI address\n"
          "  -e, --name=NAME        name the streams NAME/0...; default bench\n"
          "  -g, --group=N          read the clock every N events\n"
          "  -j, --json             print one JSON object on a line\n"
          "  -l, --lossless         wait for room instead of discarding\n"
          "  -n, --events=N         events of each thread; default 1000000\n"
          "  -p, --payload=LIST     bytes: of 8, 32, 64, 256; or mix; default"
          " 32\n"
          "  -r, --rate=N           events/s of each thread; default maximum\n"
          "  -s, --seconds=N        stop after N seconds\n"
          "  -t, --threads=N        threads, each with a stream; default 1\n"
          "  -h, --help             show this help\n", f);
}

static void __attribute__((noreturn, format(printf, 1, 2)))
usage_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("ht-bench: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs("; see --help\n", stderr);
    va_end(ap);
    exit(2);
}

static uint64_t parse_u64(const char *what, const char *s, uint64_t min,
                          uint64_t max)
{
    char *end;
    uint64_t v;

    errno = 0;
    v = strtoull(s, &end, 10);
    if (*s < '0' || *s > '9' || *end || errno || v < min || v > max) {
        usage_error("%s '%s': give a number from %" PRIu64 " to %" PRIu64,
                    what, s, min, max);
    }
    return v;
}

static void parse_payload(struct ht_bench_params *params, const char *list)
{
    static const char * const names[HT_BENCH_KINDS] = {
        "8", "32", "64", "256",
    };
    const char *s = strcmp(list, "mix") ? list : "8,32,64,256";

    params->nr_kinds = 0;
    for (;;) {
        size_t len = strcspn(s, ",");
        unsigned k;

        for (k = 0; k < HT_BENCH_KINDS; k++) {
            if (strlen(names[k]) == len && !memcmp(names[k], s, len)) {
                break;
            }
        }
        if (k == HT_BENCH_KINDS || params->nr_kinds == HT_BENCH_KINDS) {
            usage_error("payload '%s': give mix, or up to %d of 8, 32, 64,"
                        " 256", list, HT_BENCH_KINDS);
        }
        params->kinds[params->nr_kinds++] = k;
        if (!s[len]) {
            return;
        }
        s += len + 1;
    }
}

static void parse_options(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        { "bind", no_argument, NULL, 'b' },
        { "device", required_argument, NULL, 'd' },
        { "name", required_argument, NULL, 'e' },
        { "group", required_argument, NULL, 'g' },
        { "help", no_argument, NULL, 'h' },
        { "json", no_argument, NULL, 'j' },
        { "lossless", no_argument, NULL, 'l' },
        { "events", required_argument, NULL, 'n' },
        { "payload", required_argument, NULL, 'p' },
        { "rate", required_argument, NULL, 'r' },
        { "seconds", required_argument, NULL, 's' },
        { "threads", required_argument, NULL, 't' },
        { }
    };
    int c;

    while ((c = getopt_long(argc, argv, "bd:e:g:hjln:p:r:s:t:", longs,
                            NULL)) != -1) {
        switch (c) {
        case 'b':
            o->bind = true;
            break;
        case 'd':
            o->device = optarg;
            break;
        case 'e':
            if (strlen(optarg) > HT_STREAM_NAME_MAX - 3) {
                usage_error("name: give at most %u bytes",
                            HT_STREAM_NAME_MAX - 3);
            }
            o->name = optarg;
            break;
        case 'g':
            o->params.group = parse_u64("group", optarg, 1, 65536);
            break;
        case 'h':
            usage(stdout);
            exit(0);
        case 'j':
            o->json = true;
            break;
        case 'l':
            o->params.lossless = true;
            break;
        case 'n':
            o->params.events = parse_u64("events", optarg, 1, 1ull << 40);
            break;
        case 'p':
            parse_payload(&o->params, optarg);
            break;
        case 'r':
            o->rate = parse_u64("rate", optarg, 1, 1000000000);
            break;
        case 's':
            o->seconds = parse_u64("seconds", optarg, 1, 86400);
            break;
        case 't':
            o->threads = parse_u64("threads", optarg, 1, HT_STREAMS_MAX);
            break;
        default:
            exit(2);
        }
    }
    if (optind < argc) {
        usage_error("unexpected argument '%s'", argv[optind]);
    }
}

static const char *open_hint(int r)
{
    switch (r) {
    case -ENODEV:
        return ": no such hypertrace device";
    case -EACCES:
        return ": only root may open it";
    case -EPROTO:
        return ": the device has another version";
    case -EBUSY:
        return ": the kernel module or another process uses it";
    default:
        return "";
    }
}

static bool fail(const char *what, int r)
{
    fprintf(stderr, "ht-bench: cannot %s: %s\n", what, strerror(-r));
    return false;
}

static void *thread_main(void *opaque)
{
    struct thread *t = opaque;

    pthread_barrier_wait(t->start);
    ht_bench_run(&t->stream, t->params, &t->result);
    return NULL;
}

static bool start_thread(struct thread *t)
{
    pthread_attr_t attr;
    cpu_set_t set;
    int r;

    pthread_attr_init(&attr);
    if (t->cpu >= 0) {
        CPU_ZERO(&set);
        CPU_SET(t->cpu, &set);
        pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
    }
    r = pthread_create(&t->id, &attr, thread_main, t);
    pthread_attr_destroy(&attr);
    return r ? fail("start a thread", -r) : true;
}

/*
 * Open a stream for each thread. Returns the number of streams that were
 * opened, also after an error; the caller must close them.
 */
static uint32_t open_streams(struct ht_device *dev, struct thread *threads,
                             const struct options *o, cpu_set_t *cpus)
{
    int cpu = -1;
    uint32_t i;

    for (i = 0; i < o->threads; i++) {
        char name[64];
        struct ht_stream_params params = {
            .stream = HT_STREAM_ANY,
            .vcpu = -1,
            .name = name,
        };
        int r;

        if (o->bind) {
            do {
                cpu = (cpu + 1) % CPU_SETSIZE;
            } while (!CPU_ISSET(cpu, cpus));
            params.vcpu = cpu;
        }
        threads[i].cpu = cpu;
        snprintf(name, sizeof(name), "%s/%" PRIu32, o->name, i);
        r = ht_stream_open(dev, &threads[i].stream, &params);
        if (r) {
            fail("open a stream", r);
            if (r == -EBUSY) {
                fprintf(stderr, "ht-bench: the device has %" PRIu32
                        " streams; %" PRIu32 " threads need one each\n",
                        dev->caps.streams, o->threads);
            }
            break;
        }
    }
    return i;
}

/*
 * Run all threads. If one thread cannot be started, exit the program: the other
 * threads would wait for it at the barrier for ever.
 */
static void run_threads(struct thread *threads, const struct options *o)
{
    pthread_barrier_t start;
    uint32_t i;

    pthread_barrier_init(&start, NULL, o->threads);
    for (i = 0; i < o->threads; i++) {
        threads[i].params = &o->params;
        threads[i].start = &start;
        if (!start_thread(&threads[i])) {
            exit(1);
        }
    }
    for (i = 0; i < o->threads; i++) {
        pthread_join(threads[i].id, NULL);
    }
    pthread_barrier_destroy(&start);
}

static bool bench(struct ht_device *dev, const struct options *o,
                  struct thread *threads, cpu_set_t *cpus)
{
    struct ht_bench_stream streams[HT_STREAMS_MAX] = { };
    struct ht_bench_result sum = { };
    struct ht_bench_report report = {
        .dev = dev,
        .params = &o->params,
        .sum = &sum,
        .streams = streams,
        .nr_streams = o->threads,
        .clock_hz = hz,
        .rate = o->rate,
    };
    uint32_t opened = open_streams(dev, threads, o, cpus), i;
    bool ok = opened == o->threads;

    if (ok) {
        run_threads(threads, o);
    }
    for (i = 0; i < opened; i++) {
        struct ht_stream *s = &threads[i].stream;
        int r = ht_stream_close(s);

        if (r) {
            ok = fail("close a stream", r);
        }
        streams[i].index = s->index;
        streams[i].instance = s->instance;
        streams[i].sent = threads[i].result.sent;
        streams[i].discarded = threads[i].result.discarded;
        streams[i].doorbells = s->doorbells;
        ht_bench_add(&sum, &threads[i].result);
    }
    if (opened < o->threads) {
        return false;
    }
    report.drain_ticks = ht_clock() - sum.end;
    if (o->json) {
        ht_bench_json(&report);
    } else {
        ht_bench_text(&report);
    }
    return ok && !sum.gave_up;
}

int main(int argc, char **argv)
{
    struct options o = {
        .name = "bench",
        .threads = 1,
        .params = {
            .hooks = &hooks,
            .kinds = { HT_BENCH_32 },
            .nr_kinds = 1,
            .events = 1000000,
        },
    };
    struct thread *threads;
    struct ht_device *dev;
    cpu_set_t cpus;
    bool ok = false;
    int r;

    parse_options(&o, argc, argv);
    if (o.bind && sched_getaffinity(0, sizeof(cpus), &cpus)) {
        fail("get the CPUs of this process", -errno);
        return 1;
    }
    r = ht_open(o.device, &dev);
    if (r) {
        fprintf(stderr, "ht-bench: cannot open %s: %s%s\n",
                o.device ? o.device : "a device", strerror(-r), open_hint(r));
        return 1;
    }
    hz = dev->caps.clock_hz ? dev->caps.clock_hz : measure_hz();
    o.params.ticks = o.seconds * hz;
    ticks_left = &o.params.ticks;
    sigaction(SIGINT, &(struct sigaction){ .sa_handler = on_signal }, NULL);
    sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_signal }, NULL);
    o.params.interval = o.rate ? (hz << 16) / o.rate : 0;
    if (!o.params.group) {
        o.params.group = dev->caps.channel == HT_CHANNEL_HYPERCALL &&
                         dev->caps.batch == 1 ? 1 : 32;
    }

    threads = aligned_alloc(128, sizeof(*threads) * o.threads);
    if (!threads) {
        fail("allocate memory", -ENOMEM);
    } else {
        memset(threads, 0, sizeof(*threads) * o.threads);
        r = ht_bench_register(dev, &o.params);
        ok = r < 0 ? fail("register an event class", r) :
                     bench(dev, &o, threads, &cpus);
    }
    free(threads);
    ht_close(dev);
    /* A full disk may be reported only by fflush(). */
    return ok && fflush(stdout) == 0 ? 0 : 1;
}
