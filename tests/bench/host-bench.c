/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host-bench: without a virtual machine, measure the host's cost of an event,
 * and the latency until its delivery
 *
 * Each run of the program prints one round of figures.  scripts/bench/native.py
 * runs emit-bench and host-bench in turns.
 */
#include "hypertrace/base.h"
#include <sys/prctl.h>
#include "hypertrace/atomic.h"
#include "../unit/guest/loopback.h"
#include "backend-testlib.h"
#include "hypertrace/ctf-writer.h"
#include "bench-thread.h"
#include "emit-bench.h"
#include "host-bench.h"

#define STEPS           64
/* number of events of a step: all of them fit in the ring, which has 1 MiB */
#define STEP_EVENTS     25000
#define LATENCY_EVENTS  2000
#define LATENCY_GAP_NS  50000

static double ticks_per_ns;

static void G_GNUC_NORETURN die(const char *what)
{
    fprintf(stderr, "host-bench: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static void calibrate(void)
{
    uint64_t ns = now_ns(), ticks = ht_clock();

    while (now_ns() - ns < 50000000) {
        /* 50 ms */
    }
    ticks_per_ns = (double)(ht_clock() - ticks) / (now_ns() - ns);
}

static struct ht_loopback *start(const struct ht_loopback_config *cfg)
{
    struct ht_loopback *lb = ht_loopback_new(cfg);

    if (!lb || bench_register(ht_loopback_device(lb)) < 0) {
        die("cannot register a class");
    }
    return lb;
}

static void open_stream(struct ht_loopback *lb, struct ht_stream *s)
{
    if (ht_stream_open(ht_loopback_device(lb), s, NULL)) {
        die("cannot open a stream");
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void count(void *opaque, const HtRun *run)
{
    *(uint64_t *)opaque += run->events;
}

/*
 * Measure the consumer: return the median processor time in ns in which it
 * consumes STEP_EVENTS events
 */
static uint64_t steps(struct ht_loopback *lb, struct ht_stream *s)
{
    uint64_t took[STEPS];
    unsigned i;

    for (i = 0; i < STEPS; i++) {
        bench_emit_32(s, STEP_EVENTS);
        took[i] = bench_cpu_ns();
        ht_loopback_step(lb);
        took[i] = bench_cpu_ns() - took[i];
    }
    if (s->lost) {
        die("a ring was not consumed");
    }
    qsort(took, STEPS, sizeof(took[0]), compare);
    return took[STEPS / 2];
}

static void copy_and_walk(void)
{
    uint64_t delivered = 0, took;
    const struct ht_loopback_config cfg = {
        .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_STEP, .streams = 1,
        .deliver = count, .opaque = &delivered,
    };
    struct ht_stream s;
    struct ht_loopback *lb = start(&cfg);

    open_stream(lb, &s);
    took = steps(lb, &s);
    if (delivered != (uint64_t)STEPS * STEP_EVENTS) {
        die("events are missing");
    }
    printf("\"copy and walk\": {\"p50_ns\": %.3f, \"events_per_s\": %.0f}",
           (double)took / STEP_EVENTS, STEP_EVENTS * 1e9 / took);
    ht_stream_close(&s);
    ht_loopback_free(lb);
}

/*
 * Cost of a backend that takes single events: copy, walk, and iterate over the
 * events
 */

typedef struct Found {
    struct ht_loopback *lb;
    uint64_t events;
    uint64_t ns;
} Found;

static void find(void *opaque, const HtRun *run)
{
    Found *f = opaque;
    HtRunIter it;
    HtEvent ev;

    ht_run_iter_init(&it, run, ht_loopback_classes(f->lb));
    while (ht_run_next(&it, &ev)) {
        f->events++;
        f->ns += ev.ns;
    }
}

static void copy_walk_and_find(void)
{
    Found f = { };
    const struct ht_loopback_config cfg = {
        .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_STEP, .streams = 1,
        .deliver = find, .opaque = &f,
    };
    struct ht_stream s;
    uint64_t took;

    f.lb = start(&cfg);
    open_stream(f.lb, &s);
    took = steps(f.lb, &s);
    if (f.events != (uint64_t)STEPS * STEP_EVENTS) {
        die("events were not found");
    }
    printf(", \"copy, walk and find\": {\"p50_ns\": %.3f, "
           "\"events_per_s\": %.0f}",
           (double)took / STEP_EVENTS, STEP_EVENTS * 1e9 / took);
    ht_stream_close(&s);
    ht_loopback_free(f.lb);
}

static void write_ctf(void *opaque, const HtRun *run)
{
    if (ht_ctf_writer_run(*(HtCtfWriter **)opaque, run)) {
        die("cannot write a trace");
    }
}

static void ctf_backend(void)
{
    static const HtCtfInfo info = {
        .vm_name = "host-bench", .device = "ht0", .channel = "shm",
    };
    char *dir = g_strdup("/dev/shm/host-bench-XXXXXX");
    HtCtfWriter *w = NULL;
    const struct ht_loopback_config cfg = {
        .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_STEP, .streams = 1,
        .deliver = write_ctf, .opaque = &w,
    };
    struct ht_loopback *lb = start(&cfg);
    const HtClassTable *classes = ht_loopback_classes(lb);
    struct ht_stream s;
    uint64_t took;
    uint32_t id;

    if (!g_mkdtemp(dir)) {
        /* If /dev/shm cannot have a folder for the trace, omit this row. */
        ht_loopback_free(lb);
        g_free(dir);
        return;
    }
    if (ht_ctf_writer_new(dir, "ht0", &info, 1, &w)) {
        die("cannot begin a trace");
    }
    for (id = 1; id <= ht_class_table_count(classes); id++) {
        if (ht_ctf_writer_class(w, ht_class_table_get(classes, id))) {
            die("cannot write a class");
        }
    }
    open_stream(lb, &s);
    took = steps(lb, &s);
    ht_stream_close(&s);
    if (ht_ctf_writer_dropped(w)) {
        die("the writer dropped events");
    }
    printf(", \"ctf backend\": {\"p50_ns\": %.3f, \"gb_per_s\": %.4f}",
           (double)took / STEP_EVENTS,
           (double)STEP_EVENTS * (HT_EVENT_HEADER + 32) / took);
    ht_ctf_writer_free(w);
    ht_loopback_free(lb);
    tl_rmdir(dir);
}

static void write_lttng(void *opaque, const HtRun *run)
{
    struct ht_loopback **lb = opaque;

    if (run->events) {
        host_lttng_run(run, ht_loopback_classes(*lb));
    }
}

/*
 * If an event takes less than this time in ns, assume that no LTTng session
 * records the event, and omit the rows of LTTng.
 */
#define RECORDED_NS     20

static void lttng_backend(void)
{
    static const uint8_t payload[32];
    struct ht_loopback *lb = NULL;
    const struct ht_loopback_config cfg = {
        .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_STEP, .streams = 1,
        .deliver = write_lttng, .opaque = &lb,
    };
    uint64_t took[STEPS], backend, bare;
    struct ht_stream s;
    /* id of the class bench_32, which bench_register() registers first */
    uint32_t id, bench_32 = 1;
    unsigned i;

    lb = start(&cfg);
    for (id = 1; id <= ht_class_table_count(ht_loopback_classes(lb)); id++) {
        if (!host_lttng_class(ht_class_table_get(ht_loopback_classes(lb),
                                                 id))) {
            ht_loopback_free(lb);
            return;
        }
    }
    open_stream(lb, &s);
    for (i = 0; i < STEPS; i++) {
        took[i] = bench_cpu_ns();
        host_lttng_bare(ht_loopback_classes(lb), bench_32, payload,
                        sizeof(payload), STEP_EVENTS);
        took[i] = bench_cpu_ns() - took[i];
    }
    backend = steps(lb, &s);
    qsort(took, STEPS, sizeof(took[0]), compare);
    bare = took[STEPS / 2];
    ht_stream_close(&s);
    ht_loopback_free(lb);
    if (bare < RECORDED_NS * STEP_EVENTS) {
        return;
    }
    printf(", \"lttng backend\": {\"p50_ns\": %.3f, \"events_per_s\": %.0f}"
           ", \"lttng, bare run-time event\": {\"p50_ns\": %.3f, "
           "\"events_per_s\": %.0f}",
           (double)backend / STEP_EVENTS, STEP_EVENTS * 1e9 / backend,
           (double)bare / STEP_EVENTS, STEP_EVENTS * 1e9 / bare);
}

typedef struct Latency {
    uint64_t ticks[LATENCY_EVENTS];
    unsigned nr;
} Latency;

static void stamp(void *opaque, const HtRun *run)
{
    Latency *l = opaque;
    uint64_t now = ht_clock();

    /*
     * Count one latency for a run, that of its first event, which usually is
     * its only event. The timestamp of the first event is run->counter.
     */
    if (run->events && l->nr < LATENCY_EVENTS) {
        l->ticks[l->nr++] = now - run->counter;
    }
}

static int quit;

static gpointer spin(gpointer lb)
{
    bench_pin(1);
    while (!ht_atomic_read(&quit)) {
        ht_loopback_step(lb);
    }
    return NULL;
}

static void latency(const char *name, bool polling)
{
    static Latency l;
    const struct ht_loopback_config cfg = {
        .channel = HT_CHANNEL_SHM, .streams = 1, .eager = true,
        .host = polling ? HT_LOOPBACK_STEP : HT_LOOPBACK_THREAD,
        .deliver = stamp, .opaque = &l,
    };
    GThread *thread = NULL;
    struct ht_loopback *lb;
    struct ht_stream s;
    unsigned i;

    l.nr = 0;
    quit = 0;
    /*
     * The consumer's thread, which start() or g_thread_new() creates, inherits
     * this processor.
     */
    bench_pin(1);
    lb = start(&cfg);
    open_stream(lb, &s);
    if (polling) {
        thread = g_thread_new("spin", spin, lb);
    }
    bench_pin(0);
    for (i = 0; i < LATENCY_EVENTS; i++) {
        uint64_t due = now_ns() + LATENCY_GAP_NS;

        bench_emit_32(&s, 1);
        while (now_ns() < due) {
            /*
             * Spin until the next event is due; a real producer would do other
             * work here.
             */
        }
    }
    ht_atomic_set(&quit, 1);
    if (thread) {
        g_thread_join(thread);
    }
    ht_stream_close(&s);
    ht_loopback_free(lb);
    if (!l.nr) {
        die("no run was delivered");
    }
    qsort(l.ticks, l.nr, sizeof(l.ticks[0]), compare);
    printf(", \"latency, %s\": {\"p50_ns\": %.0f, \"p99_ns\": %.0f, "
           "\"max_ns\": %.0f, \"runs\": %u}", name,
           l.ticks[l.nr / 2] / ticks_per_ns,
           l.ticks[l.nr * 99 / 100] / ticks_per_ns,
           l.ticks[l.nr - 1] / ticks_per_ns, l.nr);
}

int main(int argc, char **argv)
{
    if (argc != 2 || strcmp(argv[1], "--json")) {
        puts("usage: host-bench --json");
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1000UL);
    calibrate();
    bench_pin(0);
    printf("{\"rows\": {");
    copy_and_walk();
    copy_walk_and_find();
    ctf_backend();
    lttng_backend();
    latency("polling", true);
    latency("asleep", false);
    printf("}}\n");
    return 0;
}
