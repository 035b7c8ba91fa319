/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: measure the cost of an emit without a virtual machine, and
 * compare it with simpler loops, LTTng-UST and USDT probes
 *
 * Each round measures all rows, because figures of different runs or machines
 * are not comparable.  Ratios to the row "limit" are computed within each
 * round; medians are shown.
 */
#include "hypertrace/base.h"
#include <getopt.h>
#include <sys/prctl.h>
#include "hypertrace/atomic.h"
#include "../unit/guest/loopback.h"
#include "bench-thread.h"
#include "emit-bench.h"

#define ROUNDS_MAX 101

/* How a consumer waits between two polls of the ring */
enum {
    /* sleep for 20 us after a poll that found events, else like ASLEEP */
    PACED,
    /* after a poll without events, sleep until a doorbell or a timeout */
    ASLEEP,
    /* do not wait; only the row emit-32-spun uses it */
    SPINNING,
    READERS,
};

typedef struct Bench {
    uint64_t events;
    /* stream whose ring is in overwrite mode and has no consumer */
    struct ht_stream overwrite;
    /* stream whose ring has no consumer, and is filled before the first row */
    struct ht_stream full;
    struct ht_stream read[READERS];
    struct ht_loopback *spinner;
    struct ht_stream noclock;
    /* stream that reads the clock for every 8th event */
    struct ht_stream stamps;
    uint8_t *window;
    uint64_t head;
    /*
     * processor time within a row that is not part of the row's result, in ns
     */
    uint64_t waited;
    /* enable bytes of the loopback device that has the stream @overwrite */
    const uint8_t *enable;
} Bench;

typedef struct Row {
    const char *name;
    const char *what;
    void (*run)(Bench *b, uint64_t n);
    /* the row emits Bench.events / @fewer events; 0 means 1 */
    unsigned fewer;
    /* if not NULL, called instead of @run: the row needs no struct Bench */
    void (*loop)(uint64_t n);
    bool skip;
    double ns[ROUNDS_MAX];
} Row;

/*
 * Size in bytes of the memory that run_limit() overwrites repeatedly from its
 * start to its end: the size of the rings
 */
#define WINDOW (1u << 20)

static void G_GNUC_PRINTF(1, 2) G_GNUC_NORETURN die(const char *fmt, ...)
{
    va_list ap;

    fputs("emit-bench: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static void run_rdtsc(Bench *b, uint64_t n)
{
    while (n--) {
        ht_clock();
    }
    b->head = 0;
}

/*
 * Row "limit", with which the other rows are compared: read the clock, store it
 * and 32 bytes of payload, and store the head with a release
 */
static void run_limit(Bench *b, uint64_t n)
{
    uint8_t *window = b->window;
    uint64_t i, pos = 0;

    for (i = 0; i < n; i++) {
        uint8_t *p = window + (pos & (WINDOW - 1));

        ht_put64(p, ht_clock());
        ht_put64(p + 8, i);
        ht_put64(p + 16, n);
        ht_put64(p + 24, i + 1);
        ht_put64(p + 32, n + 1);
        pos += 40;
        ht_store_release(&b->head, pos);
    }
}

/*
 * Define run_NAME(): emit events with bench_emit_NAME() into the ring in
 * overwrite mode.
 */
#define RUN_EMIT(what)                                  \
    static void run_##what(Bench *b, uint64_t n)        \
    {                                                   \
        bench_emit_##what(&b->overwrite, n);            \
    }
RUN_EMIT(32)
RUN_EMIT(8)
RUN_EMIT(0)
RUN_EMIT(text)
RUN_EMIT(64)
RUN_EMIT(256)
RUN_EMIT(1024)
RUN_EMIT(4096)

/*
 * ht_trace() of a class that is off: use the enable byte of class 0, which does
 * not exist and so is never on
 */
static void run_trace_host_off(Bench *b, uint64_t n)
{
    bench_trace_at(b->enable, n);
}

static void run_trace_on(Bench *b, uint64_t n)
{
    bench_trace_on(&b->overwrite, n);
}

static void run_noclock(Bench *b, uint64_t n)
{
    bench_emit_32_noclock(&b->noclock, n);
}

static void run_8_noclock(Bench *b, uint64_t n)
{
    bench_emit_8_noclock(&b->noclock, n);
}

static void run_32_stamps(Bench *b, uint64_t n)
{
    bench_emit_32(&b->stamps, n);
}

static void run_8_stamps(Bench *b, uint64_t n)
{
    bench_emit_8(&b->stamps, n);
}

static void run_discarded(Bench *b, uint64_t n)
{
    bench_emit_32(&b->full, n);
}

/*
 * Emit in pieces of 4000 events.  If more than half of the ring waits for the
 * consumer after a piece, wait for the consumer; Bench.waited excludes that
 * time from the result.
 */
static void emit_live(Bench *b, struct ht_stream *s, uint64_t n)
{
    const uint64_t piece = 4000;

    while (n) {
        uint64_t now = MIN(n, piece), begin;

        bench_emit_32(s, now);
        n -= now;
        begin = bench_cpu_ns();
        while (s->packet - ht_load_relaxed(&s->ring->host.tail) >
               s->packets_mask / 2) {
            sched_yield();
        }
        b->waited += bench_cpu_ns() - begin;
    }
}

static void run_live(Bench *b, uint64_t n)
{
    emit_live(b, &b->read[PACED], n);
}

static void run_asleep(Bench *b, uint64_t n)
{
    emit_live(b, &b->read[ASLEEP], n);
}

/*
 * Like emit_live(), but call @emit, a loop of emit-bench-limits.c, instead of
 * emitting events
 */
static void limit_live(Bench *b, void (*emit)(uint64_t n), uint64_t n)
{
    const uint64_t piece = 4000;

    for (; n; n -= MIN(n, piece)) {
        uint64_t begin;

        emit(MIN(n, piece));
        begin = bench_cpu_ns();
        while (bench_limits_behind()) {
            sched_yield();
        }
        b->waited += bench_cpu_ns() - begin;
    }
}

static void run_limit_live(Bench *b, uint64_t n)
{
    limit_live(b, bench_limit_live, n);
}

static void run_limit_ahead(Bench *b, uint64_t n)
{
    limit_live(b, bench_limit_live_prefetch, n);
}

static void run_lines(Bench *b, uint64_t n)
{
    limit_live(b, bench_lines_live, n);
}

static void run_lines_ahead(Bench *b, uint64_t n)
{
    limit_live(b, bench_lines_live_prefetch, n);
}

enum { SPIN_STARTING, SPIN_ON, SPIN_OFF };

static int spin_state;

static gpointer spin(gpointer lb)
{
    bench_pin(1);
    ht_atomic_set(&spin_state, SPIN_ON);
    while (ht_atomic_read(&spin_state) == SPIN_ON) {
        ht_loopback_step(lb);
    }
    ht_loopback_step(lb);
    return NULL;
}

/*
 * Row emit-32-spun: start and end the spinning consumer here, because it would
 * take processor 1 away from the consumers of the other rows.
 */
static void run_spun(Bench *b, uint64_t n)
{
    uint64_t begin = bench_cpu_ns();
    GThread *thread;

    spin_state = SPIN_STARTING;
    thread = g_thread_new("spin", spin, b->spinner);
    while (ht_atomic_read(&spin_state) == SPIN_STARTING) {
        sched_yield();
    }
    b->waited += bench_cpu_ns() - begin;
    emit_live(b, &b->read[SPINNING], n);
    begin = bench_cpu_ns();
    ht_atomic_set(&spin_state, SPIN_OFF);
    g_thread_join(thread);
    b->waited += bench_cpu_ns() - begin;
}

enum { ROW_EMPTY, ROW_OFF, ROW_HOST_OFF, ROW_LTTNG_OFF, ROW_USDT_OFF,
       ROW_RDTSC, ROW_LIMIT, ROW_STORES_32, ROW_32, ROW_ON, ROW_8, ROW_0,
       ROW_64, ROW_256, ROW_1024, ROW_4096, ROW_TEXT, ROW_32_STAMPS,
       ROW_8_STAMPS, ROW_NOCLOCK, ROW_8_NOCLOCK, ROW_STORES_8, ROW_DISCARDED,
       ROW_LIVE, ROW_LIMIT_LIVE, ROW_LIMIT_AHEAD, ROW_LINES, ROW_LINES_AHEAD,
       ROW_ASLEEP, ROW_SPUN, ROW_LTTNG, ROW_USDT };

static Row rows[] = {
    [ROW_EMPTY] = { "empty", "the loop alone", .loop = bench_empty },
    [ROW_OFF] = { "trace-off", "ht_trace() without a device",
                  .loop = bench_trace },
    [ROW_HOST_OFF] = { "trace-host-off", "ht_trace() that the host does not"
                       " want", run_trace_host_off },
    [ROW_LTTNG_OFF] = { "lttng-ust-off", "static tracepoint of 4 x u64, off",
                        .loop = bench_lttng_off },
    [ROW_USDT_OFF] = { "usdt-off", "USDT probe of 4 x u64, off",
                       .loop = bench_usdt_off },
    [ROW_RDTSC] = { "clock", "clock alone", run_rdtsc },
    [ROW_LIMIT] = { "limit", "clock + 40 bytes + release", run_limit },
    [ROW_STORES_32] = { "stores-32", "clock and the stores of emit-32",
                        .loop = bench_stores_32 },
    [ROW_32] = { "emit-32", "event of 4 x u64, flight recorder", run_32 },
    [ROW_ON] = { "trace-32", "ht_trace() of 4 x u64, flight recorder",
                 run_trace_on },
    [ROW_8] = { "emit-8", "event of 1 x u64, flight recorder", run_8 },
    [ROW_0] = { "emit-0", "event without fields, flight recorder", run_0 },
    [ROW_64] = { "emit-64", "event of 8 x u64 in memory", run_64 },
    [ROW_256] = { "emit-256", "event of 32 x u64 in memory", run_256 },
    [ROW_1024] = { "emit-1024", "event of 128 x u64 in memory", run_1024, 4 },
    [ROW_4096] = { "emit-4096", "event of 512 x u64 in memory", run_4096, 16 },
    [ROW_TEXT] = { "emit-text", "u32, u64, 18-byte text", run_text },
    [ROW_32_STAMPS] = { "emit-32-stamps", "4 x u64, clock for each 8th event",
                        run_32_stamps },
    [ROW_8_STAMPS] = { "emit-8-stamps", "1 x u64, clock for each 8th event",
                       run_8_stamps },
    [ROW_NOCLOCK] = { "emit-32-noclock", "4 x u64, no clock", run_noclock },
    [ROW_8_NOCLOCK] = { "emit-8-noclock", "1 x u64, no clock",
                        run_8_noclock },
    [ROW_STORES_8] = { "stores-8-noclock", "the stores of emit-8-noclock",
                       .loop = bench_stores_8 },
    [ROW_DISCARDED] = { "discarded", "ring full, event counted",
                        run_discarded },
    [ROW_LIVE] = { "emit-32-live", "4 x u64, consumer every 20 us",
                   run_live },
    [ROW_LIMIT_LIVE] = { "limit-live", "limit, copied every 20 us",
                         run_limit_live },
    [ROW_LIMIT_AHEAD] = { "limit-live-ahead", "the same, lines fetched ahead",
                          run_limit_ahead },
    [ROW_LINES] = { "lines-live", "limit-live without a clock", run_lines },
    [ROW_LINES_AHEAD] = { "lines-live-ahead", "the same, lines fetched ahead",
                          run_lines_ahead },
    [ROW_ASLEEP] = { "emit-32-asleep", "4 x u64, consumer sleeps",
                     run_asleep },
    [ROW_SPUN] = { "emit-32-spun", "4 x u64, consumer spins", run_spun },
    [ROW_LTTNG] = { "lttng-ust", "static tracepoint of 4 x u64, recording",
                    .loop = bench_lttng },
    [ROW_USDT] = { "usdt", "USDT probe of 4 x u64, recorded by the kernel",
                   .loop = bench_usdt, .fewer = 16 },
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(const double *v, unsigned n)
{
    double sorted[ROUNDS_MAX];

    memcpy(sorted, v, n * sizeof(*v));
    qsort(sorted, n, sizeof(*sorted), compare);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static double ratio(const Row *a, const Row *b, unsigned rounds)
{
    double v[ROUNDS_MAX];
    unsigned i;

    for (i = 0; i < rounds; i++) {
        v[i] = a->ns[i] / b->ns[i];
    }
    return median(v, rounds);
}

static void null_deliver(void *opaque, const HtRun *run)
{
    uint64_t *events = opaque;

    *events += run->events;
}

static struct ht_loopback *open_stream(struct ht_stream *s,
                                       struct ht_loopback_config cfg,
                                       int (*reg)(struct ht_device *),
                                       uint64_t *delivered)
{
    struct ht_loopback *lb;

    cfg.deliver = null_deliver;
    cfg.opaque = delivered;
    cfg.streams = 1;
    lb = ht_loopback_new(&cfg);
    if (!lb || reg(ht_loopback_device(lb)) < 0 ||
        ht_stream_open(ht_loopback_device(lb), s, NULL)) {
        die("cannot open a stream");
    }
    return lb;
}

static int bench_register_all(struct ht_device *dev)
{
    int r = bench_register(dev);

    if (r >= 0) {
        r = bench_register_trace(dev);
    }
    return r < 0 ? r : bench_register_sizes(dev);
}

static void run_row(const Row *r, Bench *b, uint64_t n)
{
    if (r->loop) {
        r->loop(n);
    } else {
        r->run(b, n);
    }
}

static void run_rounds(Bench *b, unsigned rounds)
{
    unsigned round, i;

    for (round = 0; round < rounds; round++) {
        for (i = 0; i < G_N_ELEMENTS(rows); i++) {
            Row *r = &rows[i];
            uint64_t n = b->events / MAX(r->fewer, 1), begin;

            if (r->skip) {
                continue;
            }
            /*
             * Run a sixteenth of the loop before the measurement, to warm
             * caches and branch predictors.
             */
            run_row(r, b, n / 16);
            b->waited = 0;
            begin = bench_cpu_ns();
            run_row(r, b, n);
            r->ns[round] = (double)(bench_cpu_ns() - begin - b->waited) / n;
        }
    }
}

static void print_text(unsigned rounds)
{
    unsigned i;

    printf("%-16s %8s %8s %8s %8s  %s\n", "", "median", "min", "max",
           "x limit", "");
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        Row *r = &rows[i];
        double sorted[ROUNDS_MAX];

        if (r->skip) {
            printf("%-16s %8s %8s %8s %8s  %s: not measured\n", r->name, "-",
                   "-", "-", "-", r->what);
            continue;
        }
        memcpy(sorted, r->ns, rounds * sizeof(double));
        qsort(sorted, rounds, sizeof(double), compare);
        printf("%-16s %8.2f %8.2f %8.2f %8.3f  %s\n", r->name,
               median(r->ns, rounds), sorted[0], sorted[rounds - 1],
               ratio(r, &rows[ROW_LIMIT], rounds), r->what);
    }
    puts("ns of the producer's processor an event; "
         "ratios are medians of the rounds' ratios");
    if (!rows[ROW_OFF].skip) {
        double empty = median(rows[ROW_EMPTY].ns, rounds);

        printf("off, ht_trace() costs %.2f ns, by the host %.2f ns\n",
               median(rows[ROW_OFF].ns, rounds) - empty,
               median(rows[ROW_HOST_OFF].ns, rounds) - empty);
    }
    if (!rows[ROW_LTTNG].skip) {
        printf("an LTTng-UST tracepoint costs %.1f times emit-32\n",
               ratio(&rows[ROW_LTTNG], &rows[ROW_32], rounds));
    }
}

static void print_json(const Bench *b, unsigned rounds)
{
    const char *comma = "";
    unsigned i, j;

    printf("{\n  \"events\": %" PRIu64 ",\n  \"rounds\": %u,\n  \"rows\": {",
           b->events, rounds);
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        Row *r = &rows[i];

        if (r->skip) {
            continue;
        }
        printf("%s\n    \"%s\": {\"ns\": %.3f, \"ratio\": %.4f, \"all\": [",
               comma, r->name, median(r->ns, rounds),
               ratio(r, &rows[ROW_LIMIT], rounds));
        for (j = 0; j < rounds; j++) {
            printf("%s%.3f", j ? ", " : "", r->ns[j]);
        }
        printf("]}");
        comma = ",";
    }
    printf("\n  }");
    if (!rows[ROW_LTTNG].skip) {
        printf(",\n  \"lttng_over_emit_32\": %.3f",
               ratio(&rows[ROW_LTTNG], &rows[ROW_32], rounds));
    }
    printf("\n}\n");
}

static uint64_t parse(const char *s, const char *what, uint64_t min,
                      uint64_t max)
{
    char *end;
    uint64_t v;

    errno = 0;
    v = strtoull(s, &end, 0);
    if (errno || end == s || *end || v < min || v > max) {
        die("%s: %s is not a number from %" PRIu64 " to %" PRIu64, what, s,
            min, max);
    }
    return v;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        { "events", required_argument, NULL, 'e' },
        { "rounds", required_argument, NULL, 'r' },
        { "help", no_argument, NULL, 'h' },
        { }
    };
    const struct ht_loopback_config overwrite = {
        .channel = HT_CHANNEL_SHM, .mode = HT_MODE_OVERWRITE,
        .host = HT_LOOPBACK_STEP,
    };
    const struct ht_loopback_config full = {
        .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_STEP,
    };
    const struct ht_loopback_config readers[READERS] = {
        [PACED] = {
            .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_THREAD,
            .pace_us = 20,
        },
        [ASLEEP] = {
            .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_THREAD,
        },
        [SPINNING] = {
            .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_STEP,
        },
    };
    uint64_t unread = 0, delivered[READERS] = { }, lost[READERS];
    struct ht_loopback *lb[4 + READERS];
    Bench b = { .events = 2000000 };
    unsigned rounds = 11, i;
    bool json = false;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'j':
            json = true;
            break;
        case 'e':
            b.events = parse(optarg, "--events", 1000, 1000000000);
            break;
        case 'r':
            rounds = parse(optarg, "--rounds", 1, ROUNDS_MAX);
            break;
        default:
            puts("usage: emit-bench [--json] [--events N] [--rounds N]");
            return c == 'h' ? 0 : 2;
        }
    }

    b.window = g_malloc0(WINDOW + 64);
    prctl(PR_SET_TIMERSLACK, 1000UL);
    /* The consumers' threads, which are created below, inherit processor 1. */
    bench_pin(1);
    for (i = 0; i < READERS; i++) {
        lb[4 + i] = open_stream(&b.read[i], readers[i], bench_register,
                                &delivered[i]);
    }
    bench_limits_start();
    b.spinner = lb[4 + SPINNING];
    bench_pin(0);
    lb[0] = open_stream(&b.overwrite, overwrite, bench_register_all, &unread);
    lb[1] = open_stream(&b.full, full, bench_register, &unread);
    lb[2] = open_stream(&b.noclock, overwrite, bench_register_noclock,
                        &unread);
    lb[3] = open_stream(&b.stamps, overwrite, bench_register, &unread);
    if (ht_stream_stamps(&b.stamps, 8)) {
        die("cannot do without the clock");
    }
    bench_emit_32(&b.full, (1 << 20) / 32);
    rows[ROW_OFF].skip = bench_trace_is_on();
    b.enable = ht_loopback_device(lb[0])->enable;
    rows[ROW_LTTNG_OFF].skip = !bench_lttng_is_off();
    rows[ROW_LTTNG].skip = !bench_lttng_recording();
    rows[ROW_USDT_OFF].skip = !bench_usdt_is_off();
    rows[ROW_USDT].skip = !bench_usdt_recording();
    run_rounds(&b, rounds);
    bench_limits_stop();

    if (b.full.lost < b.events * rounds) {
        die("events of the full ring were not discarded");
    }
    if (b.overwrite.lost || b.noclock.lost || b.stamps.lost) {
        die("a flight recorder discarded events");
    }
    for (i = 0; i < READERS; i++) {
        uint64_t sent = b.read[i].events;

        lost[i] = b.read[i].lost;
        if (ht_stream_close(&b.read[i]) || delivered[i] != sent) {
            die("%" PRIu64 " of %" PRIu64 " events arrived", delivered[i],
                sent);
        }
    }
    if (json) {
        print_json(&b, rounds);
    } else {
        print_text(rounds);
        for (i = 0; i < READERS; i++) {
            if (lost[i]) {
                printf("%s: %" PRIu64 " events found the ring full\n",
                       rows[ROW_LIVE + i].name, lost[i]);
            }
        }
    }
    ht_stream_close(&b.overwrite);
    ht_stream_close(&b.full);
    ht_stream_close(&b.noclock);
    ht_stream_close(&b.stamps);
    for (i = 0; i < G_N_ELEMENTS(lb); i++) {
        ht_loopback_free(lb[i]);
    }
    g_free(b.window);
    return 0;
}
