/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test the streams of a device that does their work in a thread of its own, for
 * which work() stands here: the reply to a request is BUSY until the work is
 * done, and another device can load the saved state
 */
#include "hypertrace/base.h"
#include "hypertrace/streams.h"
#include "core-testlib.h"

#define SIZE HT_PACKET_SIZE_MIN
#define PACKETS 4
#define COUNT 3
#define STATE (COUNT * HT_STREAM_STATE_SIZE)

typedef struct Host {
    HtStreams streams;
    HtClassTable *classes;
    CtRing ring[COUNT];
    uint64_t instances;
    unsigned opens, closes, events, kicks, reads;
} Host;

static Host *host_of(HtStream *s)
{
    return s->all->cfg.opaque;
}

static void deliver(void *opaque, const HtRun *run)
{
    Host *h = host_of(opaque);

    h->opens += !!(run->flags & HT_RUN_OPEN);
    h->closes += !!(run->flags & HT_RUN_CLOSE);
    h->events += run->events;
}

static size_t consume(HtStream *s, bool force)
{
    return ht_stream_consume(s, 1, force);
}

static void set_clock(HtStream *s)
{
    s->consumer.time = ct_time(1000);
}

static void kick(void *opaque)
{
    Host *h = opaque;

    h->kicks++;
}

/* HtStreamsConfig.read: count the call, and fail */
static bool no_ram(void *opaque, uint64_t addr, void *to, size_t size)
{
    Host *h = opaque;

    (void)addr;
    (void)to;
    (void)size;
    h->reads++;
    return false;
}

static void memory_bad(HtStream *s)
{
    (void)s;
}

static Host *host_new(int64_t opening_ns)
{
    Host *h = g_new0(Host, 1);
    uint32_t i;

    h->classes = ct_classes();
    ht_streams_init(&h->streams, &(HtStreamsConfig){
        .count = COUNT,
        .consumer = {
            .classes = h->classes,
            .packet_size = SIZE,
            .packets = PACKETS,
            .deliver = deliver,
        },
        .opening_ns = opening_ns,
        .instances = &h->instances,
        .passes = PACKETS,
        .consume = consume,
        .clock = set_clock,
        .kick = kick,
        .read = no_ram,
        .memory_bad = memory_bad,
        .opaque = h,
    });
    for (i = 0; i < COUNT; i++) {
        ct_ring_init(&h->ring[i], SIZE, PACKETS, false);
        h->ring[i].stream = i;
        ht_stream_set_ring(&h->streams.stream[i], h->ring[i].control);
        h->streams.stream[i].packets = h->ring[i].data;
    }
    return h;
}

static void host_free(Host *h)
{
    uint32_t i;

    ht_streams_destroy(&h->streams);
    for (i = 0; i < COUNT; i++) {
        ct_ring_destroy(&h->ring[i]);
    }
    ht_class_table_free(h->classes);
    g_free(h);
}

static void work(Host *h)
{
    bool again;

    do {
        ht_streams_turn(&h->streams, &again);
    } while (again);
}

static enum ht_status send_open(Host *h, struct ht_msg_open *m)
{
    const HtStreamInfo info = { .name = "s", .vcpu = -1 };

    return ht_streams_open(&h->streams, m, &info);
}

/* Open a stream, give its instance to the producer, and return its index. */
static uint32_t open_stream(Host *h, uint32_t index)
{
    struct ht_msg_open m = { .stream = ht_le32(index) };

    g_assert_cmpint(send_open(h, &m), ==, HT_STATUS_BUSY);
    work(h);
    g_assert_cmpint(send_open(h, &m), ==, HT_STATUS_OK);
    index = ht_le32(m.stream);
    h->ring[index].instance = ht_le64(m.instance);
    return index;
}

static enum ht_status send_close(Host *h, uint32_t index, uint64_t lost)
{
    const struct ht_msg_stream m = {
        .stream = ht_le32(index),
        .instance = ht_le64(h->ring[index].instance),
        .lost = ht_le64(lost),
    };

    return ht_streams_close(&h->streams, &m);
}

/*
 * Promise: requests to open, flush and close a stream get the expected status
 * while the stream is opening, open and closing, before and after the device's
 * thread has done its work.
 */
static void test_phases(void)
{
    Host *h = host_new(0);
    struct ht_msg_open m = { .stream = ht_le32(HT_STREAM_ANY) }, again;
    struct ht_msg_stream f = { };
    struct ht_stats stats;
    unsigned i;

    /*
     * The stream is opening: the reply has the stream's index and instance. The
     * guest sends this message again to get the result.
     */
    g_assert_cmpint(send_open(h, &m), ==, HT_STATUS_BUSY);
    g_assert_cmpuint(h->kicks, ==, 1);
    again = m;
    g_assert_cmpint(send_open(h, &again), ==, HT_STATUS_BUSY);
    again.instance ^= ht_le64(2);
    g_assert_cmpint(send_open(h, &again), ==, HT_STATUS_NOENT);
    again = (struct ht_msg_open){ .stream = m.stream };
    g_assert_cmpint(send_open(h, &again), ==, HT_STATUS_EXIST);
    g_assert_cmpuint(h->opens, ==, 0);
    work(h);
    g_assert_cmpuint(h->opens, ==, 1);
    g_assert_cmpint(send_open(h, &m), ==, HT_STATUS_OK);
    h->ring[0].instance = ht_le64(m.instance);

    /* The stream is open: the reply to a flush has a ticket. */
    for (i = 0; i < 5; i++) {
        ct_ring_emit(&h->ring[0], i);
    }
    f.stream = m.stream;
    f.instance = m.instance;
    g_assert_cmpint(ht_streams_flush(&h->streams, &f), ==, HT_STATUS_BUSY);
    g_assert_cmpuint(f.ticket, !=, 0);
    g_assert_cmpint(ht_streams_flush(&h->streams, &f), ==, HT_STATUS_BUSY);
    work(h);
    g_assert_cmpint(ht_streams_flush(&h->streams, &f), ==, HT_STATUS_OK);
    g_assert_cmpuint(h->events, ==, 5);

    /*
     * The stream is open, and the guest sends a close: the host first consumes
     * the committed events. The message and the ring each have a count of
     * lost events; the host keeps the higher one.
     */
    ct_ring_emit(&h->ring[0], 5);
    g_assert_cmpint(send_close(h, 0, 7), ==, HT_STATUS_BUSY);
    again = (struct ht_msg_open){ .stream = m.stream };
    g_assert_cmpint(send_open(h, &again), ==, HT_STATUS_BUSY);
    work(h);
    g_assert_cmpint(send_close(h, 0, 7), ==, HT_STATUS_OK);
    g_assert_cmpuint(h->events, ==, 6);
    g_assert_cmpuint(h->closes, ==, 1);
    g_assert_cmpuint(ht_le32(h->ring[0].control->host.state), ==,
                     HT_STREAM_CLOSED);
    g_assert_cmpuint(h->ring[0].control->host.wake, ==, 0);
    ht_streams_stats(&h->streams, &stats);
    g_assert_cmpuint(stats.events, ==, 6);
    g_assert_cmpuint(stats.lost, ==, 7);

    /*
     * All streams are open: another opening fails. Events discarded without a
     * stream are in the statistics.
     */
    ht_streams_discarded(&h->streams, 3);
    for (i = 0; i < COUNT; i++) {
        g_assert_cmpuint(open_stream(h, HT_STREAM_ANY), ==, i);
    }
    ht_streams_stats(&h->streams, &stats);
    g_assert_cmpuint(stats.lost, ==, 10);
    again = (struct ht_msg_open){ .stream = ht_le32(HT_STREAM_ANY) };
    g_assert_cmpint(send_open(h, &again), ==, HT_STATUS_LIMIT);
    again.stream = ht_le32(COUNT);
    g_assert_cmpint(send_open(h, &again), ==, HT_STATUS_NOENT);
    ht_streams_want_close_all(&h->streams);
    work(h);
    g_assert_false(ht_streams_any_open(&h->streams));
    host_free(h);
}

/*
 * Promise: the host reads the memory that the guest gave for an instance of a
 * stream only until this instance is closed. In the next instance, the host
 * reads no memory of the stream until the guest gives some again.
 */
static void test_memory(void)
{
    Host *h = host_new(0);
    HtStream *s = &h->streams.stream[0];
    struct ht_msg_open m = { };

    open_stream(h, 0);
    s->memory = 4096;
    ht_stream_fetch(s);
    g_assert_cmpuint(h->reads, ==, 1);
    s->memory = 4096;
    g_assert_cmpint(send_close(h, 0, 0), ==, HT_STATUS_BUSY);
    work(h);
    ht_stream_fetch(s);
    g_assert_cmpint(send_open(h, &m), ==, HT_STATUS_BUSY);
    ht_stream_fetch(s);
    work(h);
    g_assert_cmpint(ht_stream_phase(s), ==, HT_PHASE_OPEN);
    ht_stream_fetch(s);
    g_assert_cmpuint(h->reads, ==, 1);
    host_free(h);
}

/*
 * Promise: after a burst of openings that uses up the budget, the reply to the
 * next opening is BUSY, and no stream is taken.
 */
static void test_budget(void)
{
    Host *h = host_new(INT64_C(3600000000000));
    int64_t burst = HT_OPENINGS_BURST(COUNT), i;
    struct ht_msg_open m = { .stream = ht_le32(HT_STREAM_ANY) };

    for (i = 0; i < burst; i++) {
        uint32_t index = open_stream(h, HT_STREAM_ANY);

        send_close(h, index, 0);
        work(h);
    }
    g_assert_cmpint(send_open(h, &m), ==, HT_STATUS_BUSY);
    g_assert_cmpuint(m.instance, ==, 0);
    g_assert_false(ht_streams_any_open(&h->streams));
    host_free(h);
}

/*
 * Promise: after a migration, events of an open stream are counted once, also
 * if the target host has already used the stream's instance number.
 */
static void test_move(void)
{
    Host *a = host_new(0), *b = host_new(0);
    uint8_t state[STATE];
    g_autofree char *why = NULL;
    struct ht_stats stats;
    uint64_t instance;
    uint32_t open, i;

    open_stream(a, 0);
    instance = a->ring[0].instance;
    for (i = 0; i < 40; i++) {
        ct_ring_emit(&a->ring[0], i);
    }
    work(a);
    ht_streams_save(&a->streams, state);
    *b->ring[0].control = *a->ring[0].control;
    memcpy(b->ring[0].data, a->ring[0].data, SIZE * PACKETS);

    /*
     * The stream's instance number is also the newest one that the target host
     * has used.
     */
    b->instances = instance;
    g_assert_true(ht_streams_load(&b->streams, state, a->instances, 0, &why));
    ht_streams_loaded(&b->streams, state);
    g_assert_true(ht_stream_is_suspended(&b->streams.stream[0]));
    b->ring[0].instance = instance;
    g_assert_cmpint(send_close(b, 0, 0), ==, HT_STATUS_BUSY);
    work(b);
    g_assert_cmpuint(b->opens, ==, 0);

    /*
     * ht_streams_unload() drops streams that are loaded and not resumed; it
     * fails if another stream is not free.
     */
    g_assert_true(ht_streams_unload(&b->streams, &open));
    g_assert_false(ht_streams_any_open(&b->streams));
    g_assert_true(ht_streams_load(&b->streams, state, a->instances, 0, &why));
    ht_streams_loaded(&b->streams, state);
    ht_streams_renumber(&b->streams, a->instances);
    ht_streams_resume(&b->streams);
    work(b);
    g_assert_cmpuint(b->opens, ==, 1);
    g_assert_cmpuint(b->streams.stream[0].next.instance, ==, instance);
    g_assert_cmpuint(b->streams.stream[0].consumer.info.instance, >, instance);
    g_assert_cmpuint(ht_le32(b->ring[0].control->host.state), ==,
                     HT_STREAM_OPENED);
    g_assert_false(ht_streams_unload(&b->streams, &open));
    g_assert_cmpuint(open, ==, 0);
    ht_streams_stats(&b->streams, &stats);
    g_assert_cmpuint(stats.events, ==, 40);
    host_free(a);
    host_free(b);
}

/*
 * Promise: a forged state is refused, or gives streams that can be saved and
 * closed.
 */
static void test_forged(void)
{
    Host *a = host_new(0), *b = host_new(0);
    uint8_t state[STATE], forged[STATE];
    unsigned refused = 0, accepted = 0, round;
    uint32_t i, open;

    for (i = 0; i < COUNT; i++) {
        open_stream(a, i);
        ct_ring_emit(&a->ring[i], i);
    }
    work(a);
    ht_streams_save(&a->streams, state);
    for (round = 0; round < 20000; round++) {
        g_autofree char *why = NULL;
        unsigned n = g_test_rand_int_range(1, 4);

        memcpy(forged, state, STATE);
        while (n--) {
            forged[g_test_rand_int_range(0, STATE)] ^=
                1 << g_test_rand_int_range(0, 8);
        }
        g_assert_true(ht_streams_unload(&b->streams, &open));
        if (ht_streams_load(&b->streams, forged, a->instances, 0, &why)) {
            g_assert_null(why);
            ht_streams_loaded(&b->streams, forged);
            ht_streams_save(&b->streams, forged);
            accepted++;
        } else {
            g_assert_nonnull(why);
            g_assert_false(ht_streams_any_open(&b->streams));
            refused++;
        }
    }
    g_assert_cmpuint(refused, >, 1000);
    g_assert_cmpuint(accepted, >, 1000);
    ht_streams_resume(&b->streams);
    ht_streams_want_close_all(&b->streams);
    work(b);
    g_assert_false(ht_streams_any_open(&b->streams));
    host_free(a);
    host_free(b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/streams/phases", test_phases);
    g_test_add_func("/engine/streams/memory", test_memory);
    g_test_add_func("/engine/streams/budget", test_budget);
    g_test_add_func("/engine/streams/move", test_move);
    g_test_add_func("/engine/streams/forged", test_forged);
    return g_test_run();
}
