/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: producers on threads of their own, each with its stream
 *
 * Also built with the thread sanitizer.  Guest and host use the ring at the
 * same addresses, so the sanitizer reports an access that head and tail do not
 * order.
 */
#include "hypertrace/base.h"
#include <pthread.h>
#include "guest-testlib.h"
#include "guest-events.h"

#ifdef __SANITIZE_THREAD__
#define EVENTS 100000
#else
#define EVENTS 500000
#endif
#define PRODUCERS 3
#define REOPENS 3

typedef struct Producer {
    pthread_t thread;
    struct ht_device *dev;
    uint64_t refused;
    uint64_t flushes;
} Producer;

/*
 * REOPENS times, open a stream, emit, flush and close it, while other threads
 * do the same.
 */
static void *produce(void *opaque)
{
    Producer *p = opaque;
    struct ht_stream s;
    unsigned round;
    uint64_t n;

    for (round = 0; round < REOPENS; round++) {
        g_assert_cmpint(ht_stream_open(p->dev, &s, NULL), ==, 0);
        for (n = 0; n < EVENTS / REOPENS; n++) {
            while (!gt_emit(GT_MIXED, &s, n)) {
                p->refused++;
                sched_yield();
            }
            if (n % 9973 == 0) {
                g_assert_cmpint(ht_stream_flush(&s), ==, 0);
                p->flushes++;
            }
        }
        g_assert_cmpuint(s.events, ==, EVENTS / REOPENS);
        g_assert_cmpint(ht_stream_close(&s), ==, 0);
    }
    return NULL;
}

static void run(struct ht_loopback_config cfg)
{
    Producer p[PRODUCERS] = { };
    struct ht_device *dev;
    struct ht_stats stats;
    unsigned i, opened = 0;
    GtSink sink;

    cfg.streams = PRODUCERS;
    dev = gt_new(&sink, GT_MIXED, cfg);
    for (i = 0; i < PRODUCERS; i++) {
        p[i].dev = dev;
        g_assert_cmpint(pthread_create(&p[i].thread, NULL, produce, &p[i]),
                        ==, 0);
    }
    for (i = 0; i < PRODUCERS; i++) {
        pthread_join(p[i].thread, NULL);
    }
    /*
     * the host has received all events of the last instance of each stream that
     * was used
     */
    for (i = 0; i < PRODUCERS; i++) {
        const GtReceived *got = &sink.stream[i];

        g_assert_cmpuint(got->opened, ==, got->closed);
        opened += got->opened;
        if (got->opened) {
            g_assert_cmpuint(got->events, ==, EVENTS / REOPENS);
        }
        g_assert_cmpint(ht_get_stats(dev, i, &stats), ==, 0);
        g_assert_cmpuint(stats.errors, ==, 0);
        g_assert_cmpuint(stats.dropped, ==, 0);
    }
    g_assert_cmpuint(opened, ==, PRODUCERS * REOPENS);
    gt_free(&sink);
}

/*
 * Emit without waiting for room: an event that finds no room is counted as lost
 * (mode=discard), or overwrites older events, which the host counts.
 */
static void *produce_on(void *opaque)
{
    Producer *p = opaque;
    struct ht_stream s;
    uint64_t n;

    g_assert_cmpint(ht_stream_open(p->dev, &s, NULL), ==, 0);
    for (n = 0; n < EVENTS; n++) {
        p->refused += !gt_emit(GT_NUMBERED, &s, n);
    }
    g_assert_cmpuint(s.lost + s.lost_nested, ==, p->refused);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    return NULL;
}

static void run_on(struct ht_loopback_config cfg)
{
    Producer p[PRODUCERS] = { };
    uint64_t refused = 0, dropped = 0;
    struct ht_device *dev;
    unsigned i;
    GtSink sink;

    cfg.channel = HT_CHANNEL_SHM;
    cfg.host = HT_LOOPBACK_THREAD;
    cfg.streams = PRODUCERS;
    cfg.packet_size = 4096;
    cfg.packets = 2;
    dev = gt_new(&sink, GT_NUMBERED, cfg);
    for (i = 0; i < PRODUCERS; i++) {
        p[i].dev = dev;
        g_assert_cmpint(pthread_create(&p[i].thread, NULL, produce_on, &p[i]),
                        ==, 0);
    }
    for (i = 0; i < PRODUCERS; i++) {
        pthread_join(p[i].thread, NULL);
    }
    /*
     * threads may have used a stream one after the other: check the events of
     * the last of them
     */
    for (i = 0; i < PRODUCERS; i++) {
        const HtConsumer *c = ht_loopback_consumer(sink.lb, i);
        const GtReceived *got = &sink.stream[i];

        g_assert_cmpstr(c->why, ==, "");
        g_assert_cmpuint(got->discarded, ==, c->lost + c->dropped);
        g_assert_cmpuint(got->events + got->discarded, ==,
                         got->opened ? EVENTS : 0);
        refused += p[i].refused;
        dropped += c->dropped;
    }
    if (cfg.mode == HT_MODE_OVERWRITE) {
        g_assert_cmpuint(refused, ==, 0);
        g_assert_cmpuint(dropped, >, 0);
    } else {
        g_assert_cmpuint(refused, >, 0);
        g_assert_cmpuint(dropped, ==, 0);
    }
    gt_free(&sink);
}

static void test_discard(void)
{
    run_on((struct ht_loopback_config) { .pace_us = 100 });
}

static void test_overwrite(void)
{
    run_on((struct ht_loopback_config) {
               .mode = HT_MODE_OVERWRITE, .eager = true,
           });
}

static void test_hypercall(void)
{
    run((struct ht_loopback_config) {
            .channel = HT_CHANNEL_HYPERCALL, .batch = 16,
            .packet_size = 4096, .packets = 4,
        });
}

static void test_shm(void)
{
    run((struct ht_loopback_config) {
            .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_THREAD,
            .packet_size = 8192, .packets = 8,
        });
}

static void test_shm_eager(void)
{
    run((struct ht_loopback_config) {
            .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_THREAD,
            .packet_size = 4096, .packets = 2, .eager = true,
        });
}

static void test_virtio(void)
{
    run((struct ht_loopback_config) {
            .channel = HT_CHANNEL_VIRTIO, .host = HT_LOOPBACK_THREAD,
            .packet_size = 4096, .packets = 8, .queue = 4,
        });
}

/* Register a class again while another thread emits events of it. */
static void test_register(void)
{
    struct ht_loopback_config cfg = {
        .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_THREAD, .streams = 1,
    };
    Producer p = { };
    unsigned i;
    GtSink sink;

    p.dev = gt_new(&sink, GT_NUMBERED, cfg);
    g_assert_cmpint(pthread_create(&p.thread, NULL, produce_on, &p), ==, 0);
    for (i = 0; i < 1000; i++) {
        g_assert_cmpint(ht_register(p.dev, gt_class_tick), >, 0);
    }
    pthread_join(p.thread, NULL);
    g_assert_cmpstr(ht_loopback_consumer(sink.lb, 0)->why, ==, "");
    gt_free(&sink);
}

/*
 * State of the test in which a thread opens a stream while the flush of another
 * thread waits
 */
static struct {
    const struct ht_port_ops *ops;
    struct ht_stream stream;
    bool opened;
} other;

static void *open_other(void *dev)
{
    g_assert_cmpint(ht_stream_open(dev, &other.stream, NULL), ==, 0);
    return NULL;
}

static int slow_control(struct ht_device *dev, struct ht_msg *msg,
                        uint32_t room)
{
    struct timespec end;
    pthread_t thread;

    if (msg->type == HT_MSG_STREAM_FLUSH && !other.opened) {
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 60;
        g_assert_cmpint(pthread_create(&thread, NULL, open_other, dev), ==, 0);
        g_assert_cmpint(pthread_timedjoin_np(thread, NULL, &end), ==, 0);
        other.opened = true;
    }
    return other.ops->control(dev, msg, room);
}

static void test_slow_flush(void)
{
    struct ht_loopback_config cfg = { .channel = HT_CHANNEL_SHM, .streams = 2 };
    struct ht_device *dev;
    struct ht_port_ops ops;
    struct ht_stream s;
    GtSink sink;

    dev = gt_new(&sink, GT_NUMBERED, cfg);
    other.ops = dev->ops;
    ops = *dev->ops;
    ops.control = slow_control;
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    dev->ops = &ops;
    g_assert_cmpint(ht_stream_flush(&s), ==, 0);
    dev->ops = other.ops;
    g_assert_true(other.opened);
    g_assert_cmpint(ht_stream_close(&other.stream), ==, 0);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    gt_free(&sink);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/thread/hypercall", test_hypercall);
    g_test_add_func("/guest/thread/shm", test_shm);
    g_test_add_func("/guest/thread/shm-eager", test_shm_eager);
    g_test_add_func("/guest/thread/virtio", test_virtio);
    g_test_add_func("/guest/thread/discard", test_discard);
    g_test_add_func("/guest/thread/overwrite", test_overwrite);
    g_test_add_func("/guest/thread/register", test_register);
    g_test_add_func("/guest/thread/slow-flush", test_slow_flush);
    return g_test_run();
}
