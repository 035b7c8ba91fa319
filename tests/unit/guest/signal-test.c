/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: signal handlers emit on the stream of the event that they
 * interrupt
 *
 * Promise: an event of the handler arrives or is counted as lost, and does not
 * damage the interrupted event. In the tests "storm", a timer's signal arrives
 * at random instructions. In the tests "step", each instruction raises SIGTRAP
 * (by x86's trap flag), and the handler emits at every n-th signal.
 */
#include "hypertrace/base.h"
#include <signal.h>
#include <sys/time.h>
#include "guest-testlib.h"
#include "guest-events.h"

/*
 * "outer": event of the interrupted producer; "inner": event of the signal
 * handler. @a and @b are their numbers, from 1.
 */
HT_EVENT(outer, (u64, a), (u64, check));
HT_EVENT(inner, (u64, b), (u64, check), (text, pad));

#define CHECK UINT64_C(0x5851f42d4c957f2d)

typedef struct Got {
    struct ht_loopback *lb;
    uint64_t outer;
    uint64_t inner;
    uint64_t last_outer;
    uint64_t last_inner;
    uint64_t discarded;
} Got;

static struct ht_stream stream;
static volatile sig_atomic_t enabled;
static uint64_t outer_sent, outer_refused;
static uint64_t inner_sent, inner_refused;
static unsigned inner_burst;

static void deliver(void *opaque, const HtRun *run)
{
    Got *got = opaque;
    HtRunIter it;
    HtEvent ev;

    got->discarded = run->discarded;
    ht_run_iter_init(&it, run, ht_loopback_classes(got->lb));
    while (ht_run_next(&it, &ev)) {
        const bool outer = !strcmp(ev.cls->name, "outer");
        uint64_t *last = outer ? &got->last_outer : &got->last_inner;
        uint64_t n = ht_get_le64(ev.payload);

        g_assert_cmpuint(n, >, *last);
        g_assert_cmphex(ht_get_le64(ev.payload + 8), ==, n * CHECK);
        if (!outer) {
            unsigned len = n % 40;

            g_assert_cmpuint(ev.size, ==, 8 + 8 + 2 + len);
            for (unsigned i = 0; i < len; i++) {
                g_assert_cmpuint(ev.payload[18 + i], ==, 'p');
            }
        }
        *last = n;
        (*(outer ? &got->outer : &got->inner))++;
    }
}

static void emit_inner(void)
{
    static const char pad[] = "pppppppppppppppppppppppppppppppppppppppp";
    unsigned i;

    for (i = 0; i < inner_burst; i++) {
        uint64_t n = ++inner_sent;

        if (!ht_emit_inner(&stream, n, n * CHECK, pad + 40 - n % 40)) {
            inner_refused++;
        }
    }
}

static void emit_outer(void)
{
    uint64_t n = ++outer_sent;

    if (!ht_emit_outer(&stream, n, n * CHECK)) {
        outer_refused++;
    }
}

static struct ht_device *start(Got *got, struct ht_loopback_config cfg)
{
    struct ht_device *dev;

    memset(got, 0, sizeof(*got));
    outer_sent = outer_refused = inner_sent = inner_refused = 0;
    cfg.deliver = deliver;
    cfg.opaque = got;
    cfg.packet_size = 4096;
    got->lb = ht_loopback_new(&cfg);
    g_assert_nonnull(got->lb);
    dev = ht_loopback_device(got->lb);
    g_assert_cmpint(ht_register(dev, &ht_class_outer), >, 0);
    g_assert_cmpint(ht_register(dev, &ht_class_inner), >, 0);
    g_assert_cmpint(ht_stream_open(dev, &stream, NULL), ==, 0);
    return dev;
}

static void finish(Got *got)
{
    uint64_t dropped;

    g_assert_cmpint(ht_stream_close(&stream), ==, 0);
    dropped = ht_loopback_consumer(got->lb, 0)->dropped;
    g_assert_cmpuint(ht_loopback_consumer(got->lb, 0)->errors, ==, 0);
    /*
     * no event is older than the event before it: an emit reads the clock
     * while the stream is busy, so a handler's event is discarded then
     */
    g_assert_cmpuint(ht_loopback_consumer(got->lb, 0)->walk.backward, ==, 0);
    g_assert_cmpuint(stream.lost + stream.lost_nested, ==,
                     outer_refused + inner_refused);
    g_assert_cmpuint(got->discarded, ==,
                     outer_refused + inner_refused + dropped);
    g_assert_cmpuint(got->outer + got->inner + got->discarded, ==,
                     outer_sent + inner_sent);
    ht_loopback_free(got->lb);
}

static void install(int sig, void (*handler)(int))
{
    struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

    g_assert_cmpint(sigaction(sig, &sa, NULL), ==, 0);
}

static volatile sig_atomic_t storming;

static void set_timer(unsigned us)
{
    struct itimerval t = { .it_value = { .tv_usec = us } };

    g_assert_cmpint(setitimer(ITIMER_REAL, &t, NULL), ==, 0);
}

/*
 * Emit while the producer emits, and start the timer again for one
 * signal. A periodic timer shorter than the handler would leave the producer no
 * time.
 */
static void on_timer(int sig)
{
    (void)sig;
    if (enabled) {
        emit_inner();
    }
    if (storming) {
        set_timer(5 + inner_sent % 16);
    }
}

static void storm(struct ht_loopback_config cfg, bool step)
{
    uint64_t begin = gt_ns();
    Got got;

    start(&got, cfg);
    inner_burst = 3;
    install(SIGALRM, on_timer);
    storming = 1;
    set_timer(10);
    /*
     * 0.5 s are usually enough for 1000 events of the handler; on a busy
     * machine, continue for up to 60 s.
     */
    while (gt_ns() - begin < 500000000 ||
           ((inner_sent <= 1000 || inner_sent == inner_refused) &&
            gt_ns() - begin < 60000000000)) {
        enabled = 1;
        for (unsigned i = 0; i < 200; i++) {
            volatile unsigned idle = 2000;

            emit_outer();
            /* give signals time to arrive while no event is being written */
            while (idle) {
                idle--;
            }
        }
        enabled = 0;
        if (step) {
            ht_loopback_step(got.lb);
        }
    }
    storming = 0;
    set_timer(0);
    install(SIGALRM, SIG_IGN);
    g_test_message("%" PRIu64 " outer, %" PRIu64 " of %" PRIu64
                   " inner refused (nested: %" PRIu64 ")", outer_sent,
                   inner_refused, inner_sent, stream.lost_nested);
    g_assert_cmpuint(inner_sent, >, 1000);
    g_assert_cmpuint(inner_sent, >, inner_refused);
    finish(&got);
}

static void test_storm_shm(void)
{
    storm((struct ht_loopback_config) { .channel = HT_CHANNEL_SHM,
                                        .host = HT_LOOPBACK_STEP }, true);
}

static void test_storm_overwrite(void)
{
    storm((struct ht_loopback_config) { .channel = HT_CHANNEL_SHM,
                                        .mode = HT_MODE_OVERWRITE,
                                        .packets = 2,
                                        .host = HT_LOOPBACK_STEP }, true);
}

static void test_storm_hypercall(void)
{
    storm((struct ht_loopback_config) { .channel = HT_CHANNEL_HYPERCALL },
          false);
}

static void test_storm_virtio(void)
{
    storm((struct ht_loopback_config) { .channel = HT_CHANNEL_VIRTIO },
          false);
}

#ifdef __x86_64__
#define TRAP_FLAG 0x100

static void trap_on(void)
{
    /* do not overwrite the red zone below the stack pointer */
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "pushfq\n\t"
                     "orl %0, (%%rsp)\n\t"
                     "popfq\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : : "i" (TRAP_FLAG) : "memory", "cc");
}

static void trap_off(void)
{
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "pushfq\n\t"
                     "andl %0, (%%rsp)\n\t"
                     "popfq\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : : "i" (~TRAP_FLAG) : "memory", "cc");
}

static unsigned trap_every, trap_count;

/*
 * Emit at every @trap_every-th instruction. The handler itself is not stepped,
 * because the kernel clears the trap flag while it runs.
 */
static void on_trap(int sig)
{
    (void)sig;
    if (++trap_count % trap_every == 0) {
        emit_inner();
    }
}

/*
 * Single-step the producer's emits and, if @push, pushes. The host consumes in
 * ht_loopback_step(), which is not stepped: it has too many instructions.
 */
static void step_through(struct ht_loopback_config cfg, bool push)
{
    unsigned i;
    Got got;

    start(&got, cfg);
    install(SIGTRAP, on_trap);
    trap_count = 0;
    for (i = 0; i < 400; i++) {
        /* let handlers emit at other instructions in each round */
        trap_every = 1 + i % 11;
        inner_burst = 1 + i % 3;
        trap_on();
        emit_outer();
        trap_off();
        /* push rarely: a push has many more instructions than an emit */
        if (push && i % 20 == 0) {
            int r;

            trap_on();
            r = ht_stream_push(&stream);
            trap_off();
            g_assert_cmpint(r, ==, 0);
        }
        if (i % 3 == 0) {
            ht_loopback_step(got.lb);
        }
    }
    install(SIGTRAP, SIG_DFL);
    g_test_message("%u instructions; %" PRIu64 " outer refused, %" PRIu64
                   " of %" PRIu64 " inner refused", trap_count, outer_refused,
                   inner_refused, inner_sent);
    /*
     * some events of handlers were refused because they interrupted an emit,
     * others arrived
     */
    g_assert_cmpuint(stream.lost_nested, >, 200);
    g_assert_cmpuint(got.inner, >, 200);
    finish(&got);
}

static void test_step_shm(void)
{
    step_through((struct ht_loopback_config) {
                    .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_STEP,
                 }, false);
}

static void test_step_overwrite(void)
{
    step_through((struct ht_loopback_config) {
                    .channel = HT_CHANNEL_SHM, .mode = HT_MODE_OVERWRITE,
                    .packets = 2, .host = HT_LOOPBACK_STEP,
                 }, true);
}

static void test_step_full(void)
{
    step_through((struct ht_loopback_config) {
                    .channel = HT_CHANNEL_SHM, .packets = 2,
                    .host = HT_LOOPBACK_STEP,
                 }, false);
}

static void test_step_hypercall(void)
{
    step_through((struct ht_loopback_config) {
                    .channel = HT_CHANNEL_HYPERCALL, .batch = 10,
                    .host = HT_LOOPBACK_STEP,
                 }, true);
}

static void test_step_virtio(void)
{
    step_through((struct ht_loopback_config) {
                    .channel = HT_CHANNEL_VIRTIO, .host = HT_LOOPBACK_STEP,
                 }, true);
}
#endif

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/signal/storm/shm", test_storm_shm);
    g_test_add_func("/guest/signal/storm/overwrite", test_storm_overwrite);
    g_test_add_func("/guest/signal/storm/hypercall", test_storm_hypercall);
    g_test_add_func("/guest/signal/storm/virtio", test_storm_virtio);
#ifdef __x86_64__
    g_test_add_func("/guest/signal/step/shm", test_step_shm);
    g_test_add_func("/guest/signal/step/overwrite", test_step_overwrite);
    g_test_add_func("/guest/signal/step/full", test_step_full);
    g_test_add_func("/guest/signal/step/hypercall", test_step_hypercall);
    g_test_add_func("/guest/signal/step/virtio", test_step_virtio);
#endif
    return g_test_run();
}
