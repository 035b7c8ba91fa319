/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: emitted events arrive byte for byte over the channels
 * hypercall, shm and virtio
 */
#include "hypertrace/base.h"
#include "guest-testlib.h"
#include "guest-events.h"

#define EVENTS 1000000
#define BURST 1000

typedef struct Case {
    const char *path;
    struct ht_loopback_config cfg;
} Case;

/*
 * Emit EVENTS events, each until the stream accepts it. Return the number of
 * refused emits. @step: let the host consume after each refusal and every BURST
 * events; otherwise the host consumes by itself
 */
static uint64_t emit_all(GtSink *sink, struct ht_stream *s, bool step)
{
    uint64_t n, refused = 0;

    for (n = 0; n < EVENTS; n++) {
        while (!gt_emit(GT_MIXED, s, n)) {
            refused++;
            if (step) {
                ht_loopback_step(sink->lb);
            } else {
                sched_yield();
            }
        }
        if (step && n % BURST == 0) {
            ht_loopback_step(sink->lb);
        }
    }
    return refused;
}

static void test_all(gconstpointer opaque)
{
    const Case *c = opaque;
    struct ht_loopback_config cfg = c->cfg;
    uint64_t refused, begin = gt_ns();
    struct ht_stream_params params = { HT_STREAM_ANY, 3, "worker 0", 0 };
    struct ht_stats stats;
    struct ht_stream s;
    struct ht_device *dev;
    GtReceived *got;
    GtSink sink;

    dev = gt_new(&sink, GT_MIXED, cfg);
    got = &sink.stream[0];
    g_assert_cmpint(ht_stream_open(dev, &s, &params), ==, 0);
    refused = emit_all(&sink, &s, cfg.host == HT_LOOPBACK_STEP);

    g_assert_cmpint(ht_stream_flush(&s), ==, 0);
    g_assert_cmpuint(got->events, ==, EVENTS);
    g_assert_cmpuint(s.events, ==, EVENTS);
    g_assert_cmpint(ht_get_stats(dev, s.index, &stats), ==, 0);
    g_assert_cmpuint(stats.events, ==, EVENTS);
    g_assert_cmpuint(stats.lost, ==, refused);
    g_assert_cmpuint(stats.errors, ==, 0);

    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(got->events, ==, EVENTS);
    g_assert_cmpuint(got->discarded, ==, refused);
    g_assert_cmpuint(got->opened, ==, 1);
    g_assert_cmpuint(got->closed, ==, 1);
    g_assert_cmpstr(got->name, ==, "worker 0");
    g_assert_cmpint(got->vcpu, ==, 3);
    g_assert_cmpuint(got->last_ns, >=, begin);
    g_assert_cmpuint(got->last_ns, <=, gt_ns() + 1000000);
    gt_free(&sink);
}

#define HYPERCALL .channel = HT_CHANNEL_HYPERCALL
#define SHM .channel = HT_CHANNEL_SHM
#define VIRTIO .channel = HT_CHANNEL_VIRTIO
#define SMALL .packet_size = 4096, .packets = 2
#define STEP .host = HT_LOOPBACK_STEP
#define THREAD .host = HT_LOOPBACK_THREAD

static const Case cases[] = {
    { "hypercall/each", { HYPERCALL } },
    { "hypercall/batch", { HYPERCALL, .batch = 64, SMALL } },
    { "hypercall/batch-beyond-ring", { HYPERCALL, .batch = 65536, SMALL } },
    { "shm/step", { SHM, STEP } },
    { "shm/step-small", { SHM, STEP, SMALL } },
    { "shm/thread", { SHM, THREAD } },
    { "shm/thread-small", { SHM, THREAD, SMALL } },
    { "shm/thread-eager", { SHM, THREAD, .eager = true } },
    { "virtio/now", { VIRTIO } },
    { "virtio/now-small", { VIRTIO, SMALL } },
    { "virtio/step", { VIRTIO, STEP } },
    { "virtio/step-few-descriptors", { VIRTIO, STEP, .queue = 2 } },
    { "virtio/thread", { VIRTIO, THREAD } },
    { "virtio/thread-small", { VIRTIO, THREAD, SMALL, .queue = 1 } },
};

/*
 * Open and close all streams of a device repeatedly: each opening gets a
 * higher instance number.
 */
static void test_streams(void)
{
    struct ht_loopback_config cfg = { .channel = HT_CHANNEL_SHM, .streams = 3 };
    struct ht_stream s[3], more;
    uint64_t instance = 0, n;
    struct ht_device *dev;
    unsigned round, i;
    GtSink sink;

    dev = gt_new(&sink, GT_MIXED, cfg);
    for (round = 0; round < 3; round++) {
        for (i = 0; i < 3; i++) {
            g_assert_cmpint(ht_stream_open(dev, &s[i], NULL), ==, 0);
            g_assert_cmpuint(s[i].index, ==, i);
            g_assert_cmpuint(s[i].instance, >, instance);
            instance = s[i].instance;
        }
        g_assert_cmpint(ht_stream_open(dev, &more, NULL), ==, -EBUSY);
        for (n = 0; n < 100 + round; n++) {
            for (i = 0; i < 3; i++) {
                g_assert_true(gt_emit(GT_MIXED, &s[i], n));
            }
        }
        for (i = 0; i < 3; i++) {
            g_assert_cmpint(ht_stream_close(&s[i]), ==, 0);
            g_assert_cmpuint(sink.stream[i].events, ==, 100 + round);
            g_assert_cmpuint(sink.stream[i].closed, ==, round + 1);
            g_assert_cmpint(sink.stream[i].vcpu, ==, -1);
            /* a closed stream refuses events without a crash */
            g_assert_false(gt_emit(GT_MIXED, &s[i], 0));
            g_assert_cmpint(ht_stream_flush(&s[i]), ==, -EIO);
            g_assert_cmpint(ht_stream_close(&s[i]), ==, -EIO);
        }
    }
    gt_free(&sink);
}

/*
 * On channel=virtio, ht_stream_push() submits the events of the open packet. If
 * the host consumes at each submission, it has delivered them when the call
 * returns. Between ht_get() and ht_commit(), the call fails with EBUSY.
 */
static void test_push(void)
{
    struct ht_loopback_config cfg = { .channel = HT_CHANNEL_VIRTIO };
    struct ht_stream s;
    struct ht_device *dev;
    GtSink sink;
    uint64_t n;

    dev = gt_new(&sink, GT_MIXED, cfg);
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    for (n = 0; n < 100000; n++) {
        g_assert_true(gt_emit(GT_MIXED, &s, n));
        if (n % 7 == 0) {
            g_assert_cmpint(ht_stream_push(&s), ==, 0);
            g_assert_cmpuint(sink.stream[0].events, ==, n + 1);
        }
    }
    g_assert_nonnull(ht_get(&s, gt_class_tick->id, 8));
    g_assert_cmpint(ht_stream_push(&s), ==, -EBUSY);
    g_assert_cmpint(ht_stream_flush(&s), ==, -EBUSY);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(sink.stream[0].events, ==, n);
    gt_free(&sink);
}

/*
 * While the host has not consumed a pushed buffer, the producer fills and
 * closes further packets: all of their events arrive.
 */
static void test_push_deferred(void)
{
    struct ht_loopback_config cfg = {
        .channel = HT_CHANNEL_VIRTIO, .host = HT_LOOPBACK_STEP,
        .packet_size = 4096,
    };
    struct ht_stream s;
    struct ht_device *dev;
    GtSink sink;
    uint64_t n;

    dev = gt_new(&sink, GT_MIXED, cfg);
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    for (n = 0; n < 100000; n++) {
        g_assert_true(gt_emit(GT_MIXED, &s, n));
        if (n % 37 == 0) {
            g_assert_cmpint(ht_stream_push(&s), ==, 0);
        }
        if (n % 211 == 0) {
            ht_loopback_step(sink.lb);
        }
    }
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(sink.stream[0].events, ==, n);
    gt_free(&sink);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/guest/emit/", cases[i].path,
                                            NULL);

        g_test_add_data_func(path, &cases[i], test_all);
    }
    g_test_add_func("/guest/emit/streams", test_streams);
    g_test_add_func("/guest/emit/push", test_push);
    g_test_add_func("/guest/emit/push-deferred", test_push_deferred);
    return g_test_run();
}
