/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: interrupt ht_trace() after each of its instructions
 *
 * Promise: an event that does not arrive is counted as lost, although the
 * signal handler emits events itself, takes the stream's memory away, or leaves
 * the event by siglongjmp().  Only an event that siglongjmp() leaves may be
 * neither delivered nor counted.  With x86's trap flag, a signal handler runs
 * after each instruction.
 */
#define _GNU_SOURCE
#include "hypertrace/base.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include "node-program.h"

#ifdef __x86_64__
static sigjmp_buf out;
static volatile unsigned stop_at, steps;

static void handle(void (*handler)(int number))
{
    struct sigaction sa = { .sa_handler = handler };

    sigaction(SIGTRAP, &sa, NULL);
}

static void on_trap(int number)
{
    (void)number;
    if (++steps == stop_at) {
        siglongjmp(out, 1);
    }
}

/* Switch the processor's trap flag: if set, each instruction raises SIGTRAP. */
static void trap(bool on)
{
    if (on) {
        __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" : : :
                         "memory", "cc");
    } else {
        __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" : : :
                         "memory", "cc");
    }
}

/*
 * Emit an event, and call the handler of handle() after each instruction.
 * @n: number of instructions after which the handler acts
 *
 * Return: false if the event has fewer instructions, so the handler did not act
 */
static bool step_at(unsigned n)
{
    stop_at = n;
    steps = 0;
    trap(true);
    ht_trace(step, 1, 7);
    trap(false);
    return steps >= n;
}

/*
 * Emit an event as step_at() does.  The handler on_trap() leaves it by
 * siglongjmp() after @n instructions.
 *
 * Return: false if the event has fewer instructions, so it was not left
 */
static bool abandon_at(unsigned n)
{
    return sigsetjmp(out, 1) || step_at(n);
}

static void *abandon_all(void *opaque)
{
    unsigned i;

    (void)opaque;
    handle(on_trap);
    emit(1);
    for (i = 1; abandon_at(i); i++) {
        emit(200);
    }
    emit(1000);
    return NULL;
}

static void child_abandon(const char *value)
{
    (void)value;
    abandon_all(NULL);
    say_emitted();
}

/*
 * The device has two streams. This thread uses the first. The second thread
 * takes the last one, which therefore becomes the process's shared stream. The
 * second thread leaves some of its events by siglongjmp().
 */
static void child_abandon_shared(const char *value)
{
    pthread_t thread;

    (void)value;
    emit(1);
    g_assert_cmpint(pthread_create(&thread, NULL, abandon_all, NULL), ==, 0);
    pthread_join(thread, NULL);
    emit(1);
    say_emitted();
}

/*
 * A signal handler interrupts an event and emits many events itself.  When it
 * returns, the interrupted event continues.
 */
static void on_late(int number)
{
    (void)number;
    if (++steps == stop_at) {
        unsigned i;

        for (i = 0; i < 500; i++) {
            ht_trace(probe, i);
        }
    }
}

static void child_nested(const char *value)
{
    unsigned i;

    (void)value;
    handle(on_late);
    emit(1);
    for (i = 1; step_at(i); i++) {
        emitted += 1 + 500;
        emit(10);
    }
    emitted++;
    say_emitted();
}

/*
 * Take the stream's memory away after @stop_at instructions of an event: map
 * zeroes instead, which mean the state "closed", then let the host close the
 * stream.
 */
static void on_take(int number)
{
    struct ht_stream *s = ht_thread_stream;
    size_t size;
    char text[32];

    (void)number;
    if (++steps != stop_at || !s) {
        return;
    }
    size = s->packets - (uint8_t *)s->ring +
           (s->packets_mask + 1) * ((size_t)1 << s->packet_shift);
    g_assert_true(mmap(s->ring, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                  s->ring);
    snprintf(text, sizeof(text), "take-%u", s->index);
    node_command(text);
}

/*
 * @value: NULL: the ring has room for the interrupted events; "full": it has
 * none, so they are discarded
 */
static void child_take(const char *value)
{
    unsigned i = 0;

    handle(on_take);
    do {
        do {
            emit(value ? 17000 : 10);
            usleep(100);
        } while (!ht_thread_stream);
        emitted++;
    } while (step_at(++i));
    say_emitted();
}

static const NodeChild children[] = {
    { "abandon", child_abandon },
    { "abandon-shared", child_abandon_shared },
    { "nested", child_nested },
    { "take", child_take },
    { }
};

/*
 * Run the function @child in a traced process.  Return the number of events
 * that arrived or were counted as lost.
 */
static uint64_t run_child(NodeHost *h, const char *child, const char *value)
{
    unsigned arrived;

    g_assert_cmpint(node_host_run(h, child, value), ==, 0);
    arrived = steps_got(h) + node_host_got(h, "node.probe");
    g_test_message("%u of %" PRIu64 " events arrived, %" PRIu64 " were lost, "
                   "%u streams", arrived, h->emitted, h->lost + h->told,
                   h->streams);
    return arrived + h->lost + h->told;
}

/*
 * Events are left by siglongjmp(), each event one instruction later than the
 * event that was left before it. Of the events that are not left, more than
 * half arrive; the others are counted as lost.
 */
static void check_abandoned(const char *how, uint32_t streams)
{
    NodeHost h = {
        .plugged = true, .channel = HT_CHANNEL_SHM, .streams_max = streams,
    };
    const uint64_t all = run_child(&h, how, NULL);

    /*
     * NodeHost.emitted does not include the events that siglongjmp() left.
     * Such an event has arrived, was counted as lost, or neither.
     */
    g_assert_cmpuint(all, >=, h.emitted);
    g_assert_cmpuint(all, <=, h.emitted + 200);
    g_assert_cmpuint(steps_got(&h), >, h.emitted / 2);
    g_assert_cmpuint(h.streams, >, 10);
    node_host_free(&h);
}

static void test_abandon(void)
{
    check_abandoned("abandon", 8);
}

static void test_abandon_shared(void)
{
    check_abandoned("abandon-shared", 2);
}

/*
 * After any instruction of an event, take the stream's memory away: each event
 * arrives or is counted as lost.  An event that the host already has may be
 * counted as lost as well.
 */
static void check_take(bool full)
{
    NodeHost h = {
        .plugged = true, .channel = HT_CHANNEL_SHM, .busy = full,
    };
    const uint64_t all = run_child(&h, "take", full ? "full" : NULL);

    g_assert_cmpuint(all, >=, h.emitted);
    g_assert_cmpuint(all, <=, h.emitted + 2);
    g_assert_cmpuint(h.streams, >, 20);
    node_host_free(&h);
}

static void test_take(void)
{
    check_take(false);
    check_take(true);
}

/*
 * A signal handler interrupts an event and emits many events.  If the stream is
 * busy with the interrupted event, the library takes that event for abandoned,
 * and counts it as lost.
 */
static void test_nested(void)
{
    NodeHost h = { .plugged = true, .channel = HT_CHANNEL_SHM };
    const uint64_t all = run_child(&h, "nested", NULL);

    /*
     * an event that is interrupted after its commit arrives, but may be counted
     * as lost, too, if the stream is still busy with it
     */
    g_assert_cmpuint(all, >=, h.emitted);
    g_assert_cmpuint(all, <=, h.emitted + 5);
    g_assert_cmpuint(h.streams, >, 10);
    g_assert_cmpuint(node_host_got(&h, "node.probe"), >, h.emitted / 2);
    node_host_free(&h);
}

int main(int argc, char **argv)
{
    if (!strcmp(argv[0], "node")) {
        return node_child(argv, children);
    }
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/node-step/abandon", test_abandon);
    g_test_add_func("/guest/node-step/abandon-shared", test_abandon_shared);
    g_test_add_func("/guest/node-step/nested", test_nested);
    g_test_add_func("/guest/node-step/take", test_take);
    return g_test_run();
}
#else
int main(void)
{
    puts("1..0 # SKIP only x86 has this trap flag");
    return 0;
}
#endif
