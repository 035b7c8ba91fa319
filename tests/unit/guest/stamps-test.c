/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: streams for which the producer reads the clock at some events
 * only
 *
 * The tests set the clock.  Each event carries its number, by which the sink
 * finds the clock value that the event must have.
 */
#include "hypertrace/base.h"

static uint64_t fake_clock;
static uint64_t clock_reads;
#define HT_CLOCK (clock_reads++, fake_clock)

#include "hypertrace/event.h"
#include "hypertrace/time-map.h"
#include "loopback.h"

#define PACKET 4096u
#define HEADER sizeof(struct ht_packet)
#define EVENTS 50000

HT_EVENT(numbered, (u32, n), (bytes, pad));
HT_EVENT(wide, (u32, n));

static const uint8_t zeros[PACKET];

typedef struct Sink {
    struct ht_loopback *lb;
    /* by event number: clock value of the event; NULL: do not check dates */
    uint64_t *stamps;
    uint32_t next;
    uint64_t last_ns;
    uint64_t discarded;
} Sink;

static void deliver(void *opaque, const HtRun *run)
{
    Sink *sink = opaque;
    HtRunIter it;
    HtEvent ev;

    sink->discarded = run->discarded;
    ht_run_iter_init(&it, run, ht_loopback_classes(sink->lb));
    while (ht_run_next(&it, &ev)) {
        const HtTimeMap *m = &ht_loopback_consumer(sink->lb, 0)->time;
        uint32_t n = ht_get_le32(ev.payload);

        g_assert_cmpuint(n, ==, sink->next++);
        g_assert_cmpuint(ev.ns, >=, sink->last_ns);
        if (sink->stamps) {
            uint64_t stamp = ht_time_map_to_ns(m, sink->stamps[n]);

            g_assert_cmpuint(ev.ns, ==, MAX(stamp, sink->last_ns));
        }
        sink->last_ns = ev.ns;
    }
}

static void sink_open(Sink *sink, struct ht_stream *s, uint32_t stamps,
                      struct ht_loopback_config cfg)
{
    struct ht_stream_params params = { HT_STREAM_ANY, -1, NULL, stamps };
    const HtTimeMap *map;
    struct ht_device *dev;

    memset(sink, 0, sizeof(*sink));
    cfg.streams = 1;
    cfg.packet_size = PACKET;
    cfg.host = HT_LOOPBACK_STEP;
    cfg.deliver = deliver;
    cfg.opaque = sink;
    sink->lb = ht_loopback_new(&cfg);
    g_assert_nonnull(sink->lb);
    dev = ht_loopback_device(sink->lb);
    g_assert_cmpint(ht_register(dev, &ht_class_numbered), >, 0);
    g_assert_cmpint(ht_stream_open(dev, s, &params), ==, 0);
    /* begin 10 s after the opening, so that no date lies before the opening */
    ht_loopback_step(sink->lb);
    map = &ht_loopback_consumer(sink->lb, 0)->time;
    fake_clock = map->seg[map->count - 1].counter + 10 * ht_time_map_hz(map);
    clock_reads = 0;
}

static void sink_close(Sink *sink, struct ht_stream *s, uint32_t events)
{
    g_assert_cmpint(ht_stream_close(s), ==, 0);
    g_assert_cmpuint(sink->next, ==, events);
    g_assert_cmpuint(ht_loopback_consumer(sink->lb, 0)->errors, ==, 0);
    ht_loopback_free(sink->lb);
}

static uint64_t next_step(void)
{
    static const uint64_t far[] = {
        HT_CLOCK_MASK / 2, (HT_CLOCK_MASK + 1) / 2, HT_CLOCK_MASK,
        HT_CLOCK_MASK + 1, HT_CLOCK_MASK + 2, UINT64_C(1) << 40,
    };

    if (g_random_int_range(0, 500)) {
        return g_random_int_range(1, 100);
    }
    return far[g_random_int_range(0, G_N_ELEMENTS(far))];
}

/*
 * Emit events of random sizes at random times, with some pushes and flushes.
 * The producer reads the clock at least for every @stamps-th event (0: for
 * each), and each event has the date of the last reading.
 */
static void check_dates(uint32_t channel, uint32_t stamps)
{
    g_autofree uint64_t *dates = g_new(uint64_t, EVENTS);
    uint32_t n, since = 0, inherited = 0, filled = 0;
    bool forced = true;
    struct ht_stream s;
    Sink sink;

    sink_open(&sink, &s, stamps, (struct ht_loopback_config) {
        .channel = channel,
    });
    sink.stamps = dates;
    for (n = 0; n < EVENTS; n++) {
        const uint64_t packet = s.packet, reads = clock_reads;
        const bool open = s.cur;
        bool full, stamp;

        fake_clock += next_step();
        g_assert_true(ht_emit_numbered(&s, n, zeros,
                                       g_random_int_range(0, 60)));
        full = s.ring->guest.head % PACKET == 0;
        filled += full;
        stamp = forced || full || !open || s.packet != packet ||
                since + 1 >= stamps;
        g_assert_cmpuint(clock_reads - reads, ==, stamp);
        since = stamp ? 0 : since + 1;
        inherited += !stamp;
        dates[n] = stamp ? fake_clock : dates[n - 1];
        forced = false;
        if (g_random_int_range(0, 300) == 0) {
            g_assert_cmpint(g_random_boolean() ? ht_stream_push(&s) :
                                                 ht_stream_flush(&s), ==, 0);
            forced = true;
        }
        if (n % 50 == 0) {
            ht_loopback_step(sink.lb);
        }
    }
    g_assert_cmpuint(filled, >, 0);
    g_assert_cmpuint(stamps > 1, ==, inherited > 0);
    sink_close(&sink, &s, EVENTS);
}

static void test_dates(void)
{
    static const uint32_t stamps[] = { 0, 1, 2, 3, 8, HT_STAMPS_MAX };
    uint32_t channel, i;

    for (channel = 0; channel <= HT_CHANNEL_VIRTIO; channel++) {
        for (i = 0; i < G_N_ELEMENTS(stamps); i++) {
            check_dates(channel, stamps[i]);
        }
    }
}

/* Assert the bytes of events with headers of each kind. */
static void test_bytes(void)
{
    struct ht_loopback_config cfg = { .channel = HT_CHANNEL_SHM };
    struct ht_device *dev;
    struct ht_stream s;
    uint64_t stamp;
    uint8_t *e;
    unsigned i;
    Sink sink;

    sink_open(&sink, &s, 4, cfg);
    dev = ht_loopback_device(sink.lb);
    while (ht_class_wide.id < HT_ID_WIDE) {
        g_autofree char *name = g_strdup_printf("c%u", ht_class_wide.id);

        ht_class_wide.name = name;
        g_assert_cmpint(ht_register(dev, &ht_class_wide), >, 0);
    }
    ht_class_wide.name = "wide";
    e = s.packets + HEADER;
    stamp = fake_clock;

    /*
     * the first event reads the clock; two more, and one with a wide header,
     * have its date
     */
    for (i = 0; i < 3; i++, fake_clock += 100, e += 10) {
        g_assert_true(ht_emit_numbered(&s, i, zeros, 0));
        g_assert_cmphex(ht_get_le32(e), ==,
                        (uint32_t)stamp << 8 | ht_class_numbered.id);
    }
    g_assert_true(ht_emit_wide(&s, 3));
    g_assert_cmpuint(e[0], ==, HT_ID_WIDE);
    g_assert_cmpuint(ht_get_le16(e + 1), ==, ht_class_wide.id);
    g_assert_cmphex(ht_get_le32(e + 2) >> 8, ==, stamp & HT_CLOCK_MASK);
    e += HT_EVENT_HEADER_WIDE + 4;
    g_assert_cmpuint(clock_reads, ==, 1);

    /*
     * the clock advances too far for a compact header: the next event reads the
     * clock and has the extended header; the event after it has the same date
     */
    fake_clock += HT_CLOCK_MASK + 5;
    stamp = fake_clock;
    g_assert_true(ht_emit_numbered(&s, 4, zeros, 0));
    g_assert_cmpuint(e[0], ==, HT_ID_EXTENDED);
    g_assert_cmphex(ht_get_le64(e + 5), ==, stamp);
    e += HT_EVENT_HEADER_EXT + 6;
    fake_clock += 7;
    g_assert_true(ht_emit_numbered(&s, 5, zeros, 0));
    g_assert_cmphex(ht_get_le32(e), ==,
                    (uint32_t)stamp << 8 | ht_class_numbered.id);
    e += 10;
    g_assert_cmpuint(clock_reads, ==, 2);

    /* with stamps of 1, each event reads the clock; with 2, every other one */
    g_assert_cmpint(ht_stream_stamps(&s, 1), ==, 0);
    for (i = 6; i < 9; i++, fake_clock++, e += 10) {
        g_assert_true(ht_emit_numbered(&s, i, zeros, 0));
        g_assert_cmphex(ht_get_le32(e), ==,
                        (uint32_t)fake_clock << 8 | ht_class_numbered.id);
    }
    g_assert_cmpint(ht_stream_stamps(&s, 2), ==, 0);
    for (i = 9; i < 13; i++, fake_clock++, e += 10) {
        stamp = i % 2 ? fake_clock : stamp;
        g_assert_true(ht_emit_numbered(&s, i, zeros, 0));
        g_assert_cmphex(ht_get_le32(e), ==,
                        (uint32_t)stamp << 8 | ht_class_numbered.id);
    }
    g_assert_cmpuint(s.ring->guest.head, ==, e - s.packets);
    sink_close(&sink, &s, 13);
}

static void test_refused(void)
{
    struct ht_loopback_config cfg = { .channel = HT_CHANNEL_SHM };
    struct ht_stream_params params = { HT_STREAM_ANY, -1, NULL,
                                       HT_STAMPS_MAX + 1 };
    struct ht_stream s;
    Sink sink;

    sink_open(&sink, &s, HT_STAMPS_MAX, cfg);
    g_assert_cmpint(ht_stream_stamps(&s, 0), ==, -EINVAL);
    g_assert_cmpint(ht_stream_stamps(&s, HT_STAMPS_MAX + 1), ==, -EINVAL);
    g_assert_nonnull(ht_get(&s, ht_class_numbered.id, 6));
    g_assert_cmpint(ht_stream_stamps(&s, 2), ==, -EBUSY);
    ht_put32(s.next - 6, 0);
    ht_put16(s.next - 2, 0);
    ht_commit(&s);

    /* events with an invalid id or size are discarded and counted */
    g_assert_null(ht_get(&s, 0, 6));
    g_assert_null(ht_get(&s, HT_CLASSES_MAX + 1, 6));
    g_assert_null(ht_get(&s, ht_class_numbered.id, PACKET));
    g_assert_null(ht_get(&s, ht_class_numbered.id, UINT32_MAX));
    g_assert_cmpuint(s.lost, ==, 4);
    sink_close(&sink, &s, 1);
    g_assert_cmpint(ht_stream_stamps(&s, 2), ==, -EIO);
    g_assert_false(ht_emit_numbered(&s, 1, zeros, 0));

    sink.lb = ht_loopback_new(&cfg);
    g_assert_cmpint(ht_stream_open(ht_loopback_device(sink.lb), &s, &params),
                    ==, -EINVAL);
    ht_loopback_free(sink.lb);
}

/*
 * While the ring is full, events are discarded without a reading of the clock.
 * The first event that is accepted afterwards reads the clock.
 */
static void test_full(void)
{
    uint32_t n = 0, discarded = 0;
    struct ht_stream s;
    uint64_t reads;
    Sink sink;

    sink_open(&sink, &s, 8, (struct ht_loopback_config) {
        .channel = HT_CHANNEL_SHM, .packets = 2,
    });
    while (ht_emit_numbered(&s, n, zeros, 1000)) {
        n++;
    }
    reads = clock_reads;
    for (discarded = 1; discarded < 100; discarded++) {
        g_assert_false(ht_emit_numbered(&s, n, zeros, 1000));
    }
    g_assert_cmpuint(clock_reads, ==, reads);
    ht_loopback_step(sink.lb);
    g_assert_true(ht_emit_numbered(&s, n++, zeros, 0));
    g_assert_cmpuint(clock_reads, ==, reads + 1);
    ht_loopback_step(sink.lb);
    g_assert_cmpuint(sink.discarded, ==, discarded);
    sink_close(&sink, &s, n);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/stamps/dates", test_dates);
    g_test_add_func("/guest/stamps/bytes", test_bytes);
    g_test_add_func("/guest/stamps/refused", test_refused);
    g_test_add_func("/guest/stamps/full", test_full);
    return g_test_run();
}
