/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: lost events are counted exactly
 */
#include "hypertrace/base.h"
#include "guest-testlib.h"

#define EVENTS 1000000

/* Assert that received and lost events add up to those sent. */
static void check_sum(const GtSink *sink, const struct ht_stream *s,
                      uint64_t sent, uint64_t refused)
{
    const GtReceived *got = &sink->stream[s->index];
    const HtConsumer *c = ht_loopback_consumer(sink->lb, s->index);

    g_assert_cmpuint(s->events, ==, sent - refused);
    g_assert_cmpuint(s->lost + s->lost_nested, ==, refused);
    g_assert_cmpuint(c->errors, ==, 0);
    g_assert_cmpuint(c->lost, ==, refused);
    g_assert_cmpuint(got->discarded, ==, c->lost + c->dropped);
    g_assert_cmpuint(got->events + got->discarded, ==, sent);
    g_assert_cmpuint(got->events + got->gaps, ==, got->next);
    g_assert_cmpuint(got->next, <=, sent);
}

typedef struct Case {
    const char *path;
    struct ht_loopback_config cfg;
    /*
     * number of events between two polls of the host; 0: the test never polls
     */
    unsigned step_every;
    bool must_refuse;
    bool must_drop;
} Case;

static void test_sum(gconstpointer opaque)
{
    const Case *c = opaque;
    const HtConsumer *consumer;
    uint64_t n, refused = 0;
    struct ht_device *dev;
    struct ht_stream s;
    GtSink sink;

    dev = gt_new(&sink, GT_NUMBERED, c->cfg);
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    for (n = 0; n < EVENTS; n++) {
        refused += !gt_emit(GT_NUMBERED, &s, n);
        if (c->step_every && n % c->step_every == 0) {
            ht_loopback_step(sink.lb);
        }
    }
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    check_sum(&sink, &s, EVENTS, refused);
    consumer = ht_loopback_consumer(sink.lb, s.index);
    g_assert_cmpint(refused > 0, ==, c->must_refuse);
    if (c->cfg.host != HT_LOOPBACK_THREAD) {
        g_assert_cmpint(consumer->dropped > 0, ==, c->must_drop);
    }
    gt_free(&sink);
}

#define RING .packet_size = 4096, .packets = 4
#define TINY .packet_size = 4096, .packets = 2
#define STEP .host = HT_LOOPBACK_STEP
#define THREAD .host = HT_LOOPBACK_THREAD
#define SHM .channel = HT_CHANNEL_SHM
#define VIRTIO .channel = HT_CHANNEL_VIRTIO
#define HYPERCALL .channel = HT_CHANNEL_HYPERCALL
#define OVERWRITE .mode = HT_MODE_OVERWRITE

static const Case cases[] = {
    { "discard/shm-never", { SHM, STEP, RING }, 0, true, false },
    { "discard/shm-seldom", { SHM, STEP, RING }, 1777, true, false },
    { "discard/shm-often", { SHM, STEP, RING }, 50, false, false },
    { "discard/virtio-never", { VIRTIO, STEP, RING }, 0, true, false },
    { "discard/virtio-seldom", { VIRTIO, STEP, RING }, 1777, true, false },
    { "discard/virtio-queue", { VIRTIO, STEP, RING, .queue = 1 }, 301,
      true, false },
    { "discard/hypercall-deaf", { HYPERCALL, STEP, RING }, 0, true, false },
    { "overwrite/shm-never", { SHM, STEP, OVERWRITE, RING }, 0, false, true },
    { "overwrite/shm-seldom", { SHM, STEP, OVERWRITE, RING }, 1777,
      false, true },
    { "overwrite/shm-often", { SHM, STEP, OVERWRITE, RING }, 50,
      false, false },
    { "overwrite/shm-tiny", { SHM, STEP, OVERWRITE, TINY }, 333,
      false, true },
    /*
     * the host runs in a thread: packets may be overwritten while it copies
     * them
     */
    { "overwrite/shm-thread", { SHM, THREAD, OVERWRITE, RING }, 0,
      false, true },
    { "overwrite/shm-thread-tiny", { SHM, THREAD, OVERWRITE, TINY,
      .eager = true }, 0, false, true },
    /* at each doorbell, the host consumes events before they are overwritten */
    { "overwrite/hypercall", { HYPERCALL, OVERWRITE, RING, .batch = 65536 },
      0, false, false },
    /*
     * the producer may not overwrite submitted buffers: while they fill the
     * ring, it discards new events, in mode=overwrite too
     */
    { "overwrite/virtio", { VIRTIO, STEP, OVERWRITE, RING }, 1777,
      true, false },
};

/*
 * In mode=overwrite, if the host does not poll before the flush, it gets the
 * newest events: at least those of three packets.
 */
static void test_newest(void)
{
    struct ht_loopback_config cfg = { SHM, STEP, OVERWRITE, RING };
    struct ht_device *dev;
    struct ht_stream s;
    GtReceived *got;
    GtSink sink;
    uint64_t n;

    dev = gt_new(&sink, GT_NUMBERED, cfg);
    got = &sink.stream[0];
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    for (n = 0; n < 100000; n++) {
        g_assert_true(gt_emit(GT_NUMBERED, &s, n));
    }
    g_assert_cmpint(ht_stream_flush(&s), ==, 0);
    g_assert_cmpuint(got->next, ==, n);
    g_assert_cmpuint(got->gaps, ==, n - got->events);
    /*
     * three whole packets of 4096 bytes arrive; no event has more than 150
     * bytes
     */
    g_assert_cmpuint(got->events, >=, 3 * (4096 - 64 - 150) / 150);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    check_sum(&sink, &s, n, 0);
    gt_free(&sink);
}

/*
 * A stream's next packet reports the events that the stream has counted as lost
 * (ht_stream.told then contains them), and the host counts them once.
 */
static void test_carried(gconstpointer opaque)
{
    const struct ht_loopback_config *cfg = opaque;
    struct ht_device *dev;
    struct ht_stream s;
    GtSink sink;

    dev = gt_new(&sink, GT_NUMBERED, *cfg);
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    s.lost = 5;
    s.lost_nested = 2;
    g_assert_cmpuint(s.told, ==, 0);
    g_assert_true(gt_emit(GT_NUMBERED, &s, 0));
    g_assert_cmpuint(s.told, ==, 7);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(sink.stream[0].discarded, ==, 7);
    gt_free(&sink);
}

/*
 * A device is unplugged while its ring is full: the driver then maps pages that
 * show a closed stream. ht_stream_room() must return true, so that no producer
 * waits for space, and the next emit must fail.
 */
static void test_full_closed(gconstpointer opaque)
{
    const struct ht_loopback_config *cfg = opaque;
    static const unsigned stamps[] = { 1, 8 };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(stamps); i++) {
        struct ht_stream_params params = {
            .stream = HT_STREAM_ANY, .vcpu = -1, .stamps = stamps[i],
        };
        struct ht_device *dev;
        struct ht_stream s;
        uint64_t n = 0;
        GtSink sink;

        dev = gt_new(&sink, GT_NUMBERED, *cfg);
        g_assert_cmpint(ht_stream_open(dev, &s, &params), ==, 0);
        while (gt_emit(GT_NUMBERED, &s, n)) {
            n++;
        }
        /* fill the ring until no packet is open */
        while (s.cur) {
            gt_emit(GT_NUMBERED, &s, n++);
        }
        g_assert_nonnull(s.slow);
        g_assert_false(ht_stream_room(&s, 160));
        memset(&s.ring->host, 0, sizeof(s.ring->host));
        g_assert_true(ht_stream_room(&s, 160));
        g_assert_false(gt_emit(GT_NUMBERED, &s, n));
        g_assert_null(s.slow);
        gt_free(&sink);
    }
}

/*
 * If a producer waits for ht_stream_room() before each event, no event is lost.
 * For a stream that is not open, ht_stream_room() returns true.
 */
static void test_room(gconstpointer opaque)
{
    const struct ht_loopback_config *cfg = opaque;
    uint64_t n, waits = 0;
    struct ht_device *dev;
    struct ht_stream s = {};
    GtSink sink;

    dev = gt_new(&sink, GT_NUMBERED, *cfg);
    g_assert_true(ht_stream_room(&s, 8));
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    for (n = 0; n < 20000; n++) {
        /* no event of this test needs more than 160 bytes */
        while (!ht_stream_room(&s, 160)) {
            waits++;
            ht_loopback_step(sink.lb);
        }
        g_assert_true(gt_emit(GT_NUMBERED, &s, n));
    }
    g_assert_cmpuint(waits, >, 0);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_true(ht_stream_room(&s, 160));
    check_sum(&sink, &s, n, 0);
    gt_free(&sink);
}

int main(int argc, char **argv)
{
    static const struct ht_loopback_config shm = { SHM, STEP, RING };
    static const struct ht_loopback_config virtio = { VIRTIO, STEP, RING };
    static const struct ht_loopback_config hypercall = {
        HYPERCALL, STEP, RING,
    };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/guest/loss/", cases[i].path,
                                            NULL);

        g_test_add_data_func(path, &cases[i], test_sum);
    }
    g_test_add_data_func("/guest/loss/room/shm", &shm, test_room);
    g_test_add_data_func("/guest/loss/room/virtio", &virtio, test_room);
    g_test_add_data_func("/guest/loss/full-closed/shm", &shm,
                         test_full_closed);
    g_test_add_data_func("/guest/loss/full-closed/virtio", &virtio,
                         test_full_closed);
    g_test_add_data_func("/guest/loss/full-closed/hypercall", &hypercall,
                         test_full_closed);
    g_test_add_data_func("/guest/loss/carried/shm", &shm, test_carried);
    g_test_add_data_func("/guest/loss/carried/virtio", &virtio, test_carried);
    g_test_add_func("/guest/loss/newest", test_newest);
    return g_test_run();
}
