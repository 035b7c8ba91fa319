/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: the bytes of packets, with a clock set by the tests
 */
#include "hypertrace/base.h"

static uint64_t fake_clock;
#define HT_CLOCK fake_clock

#include "guest-testlib.h"
#include "guest-events.h"

#define PACKET 4096u
#define HEADER sizeof(struct ht_packet)

HT_EVENT(raw, (bytes, data));

static const uint8_t zeros[1 << 17];

/*
 * State of a deliver function that only counts, for events that gt_emit() does
 * not send
 */
typedef struct Count {
    struct ht_loopback *lb;
    uint64_t events;
    uint64_t discarded;
    /* HtRun.counter of the last run */
    uint64_t counter;
} Count;

static void count_deliver(void *opaque, const HtRun *run)
{
    Count *c = opaque;

    c->events += run->events;
    c->discarded = run->discarded;
    c->counter = run->counter;
}

static struct ht_device *count_new(Count *c, struct ht_loopback_config cfg)
{
    struct ht_device *dev;

    memset(c, 0, sizeof(*c));
    cfg.deliver = count_deliver;
    cfg.opaque = c;
    cfg.packet_size = cfg.packet_size ?: PACKET;
    cfg.packets = cfg.packets ?: 2;
    c->lb = ht_loopback_new(&cfg);
    g_assert_nonnull(c->lb);
    dev = ht_loopback_device(c->lb);
    g_assert_cmpint(ht_register(dev, &ht_class_zero), >, 0);
    g_assert_cmpint(ht_register(dev, &ht_class_tick), >, 0);
    g_assert_cmpint(ht_register(dev, &ht_class_raw), >, 0);
    return dev;
}

static const struct ht_loopback_config shm_step = {
    .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_STEP,
};

static void open_any(struct ht_device *dev, struct ht_stream *s)
{
    g_assert_cmpint(ht_stream_open(dev, s, NULL), ==, 0);
}

static struct ht_packet *packet(struct ht_stream *s, unsigned slot)
{
    return (struct ht_packet *)(s->packets + slot * PACKET);
}

/*
 * Assert the bytes of two events, and members of the headers of their packet
 * and of the next packet.
 */
static void test_bytes(void)
{
    static const uint8_t seq[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };
    struct ht_device *dev;
    struct ht_packet *p;
    struct ht_stream s;
    uint8_t *e;
    Count c;

    dev = count_new(&c, shm_step);
    open_any(dev, &s);
    g_assert_cmpuint(s.ring->guest.head, ==, 0);

    fake_clock = UINT64_C(0x1122334455667788);
    g_assert_true(ht_emit_zero(&s));
    p = packet(&s, 0);
    e = (uint8_t *)(p + 1);
    g_assert_cmpuint(s.ring->guest.head, ==, HEADER + 4);
    g_assert_cmphex(p->magic, ==, HT_PACKET_MAGIC);
    g_assert_cmpuint(p->stream, ==, s.index);
    g_assert_cmpuint(p->instance, ==, s.instance);
    g_assert_cmpuint(p->seq, ==, 0);
    g_assert_cmphex(p->clock_begin, ==, fake_clock);
    g_assert_cmpuint(p->events, ==, 0);
    g_assert_cmpuint(p->lost, ==, 0);
    g_assert_cmphex(ht_get_le32(e), ==, 0x66778800 | ht_class_zero.id);

    fake_clock += 0x10;
    g_assert_true(ht_emit_tick(&s, UINT64_C(0x0102030405060708)));
    g_assert_cmpuint(s.ring->guest.head, ==, HEADER + 4 + 12);
    g_assert_cmphex(ht_get_le32(e + 4), ==, 0x66779800 | ht_class_tick.id);
    g_assert_cmpmem(e + 8, 8, seq, 8);

    /*
     * the packet has no room for this event: the emit closes the packet and
     * opens the next one
     */
    fake_clock += 5;
    g_assert_true(ht_emit_raw(&s, zeros, PACKET - HEADER - 6));
    g_assert_cmpuint(p->content, ==, HEADER + 16);
    g_assert_cmphex(p->clock_end, ==, fake_clock);
    p = packet(&s, 1);
    g_assert_cmphex(p->magic, ==, HT_PACKET_MAGIC);
    g_assert_cmpuint(p->seq, ==, 1);
    g_assert_cmphex(p->clock_begin, ==, fake_clock);
    g_assert_cmpuint(p->events, ==, 2);
    /* the event fills the next packet to the last byte: the commit closes it */
    g_assert_cmpuint(s.ring->guest.head, ==, 2 * PACKET);
    g_assert_cmpuint(p->content, ==, PACKET);
    g_assert_cmphex(p->clock_end, ==, fake_clock);

    ht_loopback_step(c.lb);
    g_assert_cmpuint(c.events, ==, 3);
    g_assert_cmpuint(s.ring->host.tail, ==, 2);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    ht_loopback_free(c.lb);
}

static uint64_t position(const struct ht_stream *s)
{
    return s->ring->guest.head;
}

/*
 * Emit an event without payload, of class @id, after @gap ticks. Return the
 * size of its header in bytes.
 */
static uint64_t header_after(struct ht_stream *s, uint32_t id, uint64_t gap)
{
    uint64_t head = position(s);

    fake_clock += gap;
    g_assert_nonnull(ht_get(s, id, 0));
    ht_commit(s);
    return position(s) - head;
}

static void test_extended(void)
{
    struct ht_loopback_config cfg = shm_step;
    const uint64_t step_back = -(uint64_t)1;
    struct ht_device *dev;
    struct ht_stream s;
    uint8_t *e;
    unsigned i;
    Count c;

    cfg.max_gap = 1000;
    dev = count_new(&c, cfg);
    /* enough classes for ids on both sides of 254 */
    for (i = 1; i < 300; i++) {
        g_autofree char *name = g_strdup_printf("class%u", i);
        struct ht_class cls = { .name = name };

        g_assert_cmpint(ht_register(dev, &cls), ==, 3 + i);
    }
    open_any(dev, &s);
    fake_clock = 1 << 30;
    header_after(&s, 1, 0);
    g_assert_cmpuint(header_after(&s, 1, 0), ==, 4);
    g_assert_cmpuint(header_after(&s, 1, 999), ==, 4);
    g_assert_cmpuint(header_after(&s, 1, 1000), ==, 13);
    g_assert_cmpuint(header_after(&s, 1, 0), ==, 4);
    g_assert_cmpuint(header_after(&s, 1, step_back), ==, 13);
    /*
     * the gap counts from the last event that ht_slow.get() wrote, here one
     * with an extended header; the events since then, even if one of them is
     * older than its predecessor, do not change that
     */
    g_assert_cmpuint(header_after(&s, 1, 700), ==, 4);
    g_assert_cmpuint(header_after(&s, 1, step_back), ==, 4);
    g_assert_cmpuint(header_after(&s, 1, 300), ==, 4);
    g_assert_cmpuint(header_after(&s, 1, 1), ==, 13);
    g_assert_cmpuint(header_after(&s, 1, UINT64_C(1) << 40), ==, 13);
    g_assert_cmpuint(header_after(&s, 253, 1), ==, 4);
    g_assert_cmpuint(header_after(&s, 254, 1), ==, 6);
    g_assert_cmpuint(header_after(&s, 302, 999), ==, 6);
    e = s.cur - 6;
    g_assert_cmpuint(e[0], ==, HT_ID_WIDE);
    g_assert_cmpuint(ht_get_le16(e + 1), ==, 302);
    g_assert_cmphex(ht_get_le32(e + 2) >> 8, ==, fake_clock & HT_CLOCK_MASK);
    g_assert_cmpuint(header_after(&s, 302, 1000), ==, 13);
    e = s.cur - 13;
    g_assert_cmpuint(e[0], ==, HT_ID_EXTENDED);
    g_assert_cmpuint(ht_get_le32(e + 1), ==, 302);
    g_assert_cmphex(ht_get_le64(e + 5), ==, fake_clock);
    ht_loopback_step(c.lb);
    g_assert_cmpuint(c.events, ==, 15);

    /* the first event of a packet has no extended header, whatever the gap */
    g_assert_true(ht_emit_raw(&s, zeros, PACKET - 400));
    g_assert_true(ht_emit_raw(&s, zeros, 800));
    g_assert_cmpuint(position(&s), ==, 1 * PACKET + HEADER + 4 + 2 + 800);
    ht_loopback_step(c.lb);
    fake_clock += UINT64_C(1) << 50;
    g_assert_true(ht_emit_raw(&s, zeros, PACKET - 800));
    g_assert_cmpuint(position(&s), ==,
                     2 * PACKET + HEADER + 4 + 2 + PACKET - 800);
    fake_clock -= 77;
    g_assert_cmpuint(header_after(&s, 1, 0), ==, 13);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(c.events, ==, 19);
    g_assert_cmpuint(ht_loopback_consumer(c.lb, s.index)->walk.backward, ==,
                     3);
    ht_loopback_free(c.lb);
}

/*
 * An event leaves @left bytes of its packet. The next event, of @size bytes of
 * data, goes into this packet if it fits, else into a new one. Test all values
 * of @left and @size from 0 to 40.
 */
static void test_end_of_packet(void)
{
    struct ht_loopback_config cfg = shm_step;
    struct ht_device *dev;
    struct ht_stream s;
    uint64_t sent = 0;
    unsigned left, size, gap;
    Count c;

    cfg.packets = 4;
    dev = count_new(&c, cfg);
    open_any(dev, &s);
    for (left = 0; left <= 40; left++) {
        for (size = 0; size <= 40; size++) {
            for (gap = 0; gap < 2; gap++) {
                uint32_t first = PACKET - HEADER - left - HT_EVENT_HEADER - 2;
                bool fits = size + (gap ? 13 : 4) + 2 <= left;
                uint64_t before;

                g_assert_true(ht_emit_raw(&s, zeros, 200));
                /*
                 * at least 200 bytes of the current packet are used, so an
                 * event with @first bytes of data begins a new packet
                 */
                g_assert_true(ht_emit_raw(&s, zeros, first));
                g_assert_cmpuint(s.ring->guest.head % PACKET, ==,
                                 left ? PACKET - left : 0);
                before = s.packet;
                fake_clock += gap ? s.max_gap : 1;
                g_assert_true(ht_emit_raw(&s, zeros, size));
                g_assert_cmpuint(s.packet, ==, fits ? before : before + 1);
                sent += 3;
                ht_loopback_step(c.lb);
                g_assert_cmpuint(c.events, ==, sent);
            }
        }
    }
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(c.events, ==, sent);
    g_assert_cmpuint(c.discarded, ==, 0);
    ht_loopback_free(c.lb);
}

static void test_too_large(void)
{
    const uint32_t most = PACKET - HEADER - HT_EVENT_HEADER;
    struct ht_device *dev;
    struct ht_stream s;
    uint64_t head;
    Count c;

    dev = count_new(&c, shm_step);
    open_any(dev, &s);
    g_assert_true(ht_emit_tick(&s, 1));
    head = s.ring->guest.head;

    /*
     * an event that is too large, or has an invalid class id, is refused and
     * counted; the packet is unchanged
     */
    g_assert_null(ht_get(&s, ht_class_raw.id, most + 1));
    g_assert_cmpuint(s.ring->guest.lost, ==, 1);
    g_assert_null(ht_get(&s, ht_class_raw.id, UINT32_MAX));
    g_assert_null(ht_get(&s, ht_class_raw.id, UINT32_MAX - 3));
    g_assert_null(ht_get(&s, 255, most));
    g_assert_null(ht_get(&s, 255, most - 1));
    g_assert_null(ht_get(&s, 0, 8));
    g_assert_null(ht_get(&s, HT_CLASSES_MAX + 1, 8));
    g_assert_null(ht_get(&s, UINT32_MAX, 8));
    g_assert_false(ht_emit_raw(&s, zeros, most - 1));
    g_assert_cmpuint(s.ring->guest.lost, ==, 9);
    g_assert_cmpuint(s.ring->guest.head, ==, head);
    g_assert_cmpuint(s.packet, ==, 0);
    g_assert_cmpuint(s.busy, ==, 0);

    g_assert_true(ht_emit_raw(&s, zeros, most - 2));
    g_assert_cmpuint(packet(&s, 1)->lost, ==, 9);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(c.events, ==, 2);
    g_assert_cmpuint(c.discarded, ==, 9);
    ht_loopback_free(c.lb);
}

/* Return @count; hide its value from the compiler, which would warn. */
static size_t unknown(size_t count)
{
    volatile size_t v = count;

    return v;
}

/*
 * The length of a text or sequence has 16 bits: an event with a longer text or
 * sequence is refused, even if the packet has room.
 */
static void test_too_long(void)
{
    g_autofree char *text = g_strnfill(65536, 'x');
    struct ht_loopback_config cfg = shm_step;
    struct ht_device *dev;
    struct ht_stream s;
    Count c;

    cfg.packet_size = 1 << 20;
    dev = count_new(&c, cfg);
    g_assert_cmpint(ht_register(dev, &ht_class_note), >, 0);
    g_assert_cmpint(ht_register(dev, &ht_class_blob), >, 0);
    open_any(dev, &s);
    g_assert_false(ht_emit_note(&s, 0, text));
    g_assert_false(ht_emit_raw(&s, zeros, unknown(65536)));
    g_assert_false(ht_emit_raw(&s, zeros, unknown(UINT64_C(1) << 32)));
    g_assert_false(ht_emit_blob(&s, 0, (const uint32_t *)zeros,
                                unknown(65536), zeros, 1));
    g_assert_false(ht_emit_blob(&s, 0, (const uint32_t *)zeros, 1, zeros,
                                unknown(SIZE_MAX)));
    g_assert_cmpuint(s.lost, ==, 5);
    text[65535] = '\0';
    g_assert_true(ht_emit_note(&s, 1, text));
    g_assert_true(ht_emit_raw(&s, zeros, 65535));
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(c.events, ==, 2);
    g_assert_cmpuint(c.discarded, ==, 5);
    ht_loopback_free(c.lb);
}

/*
 * The producer rings the doorbell when its position reaches the wake word, and
 * not again until the host sets a new wake word.
 */
static void test_wake(void)
{
    struct ht_device *dev;
    struct ht_stream s;
    unsigned i;
    Count c;

    dev = count_new(&c, shm_step);
    open_any(dev, &s);
    for (i = 0; i < 10; i++) {
        g_assert_true(ht_emit_zero(&s));
    }
    g_assert_cmpuint(s.doorbells, ==, 0);

    /* the wake word is reached by a commit inside a packet */
    s.ring->host.wake = position(&s) + 5;
    g_assert_true(ht_emit_zero(&s));
    g_assert_cmpuint(s.doorbells, ==, 0);
    for (i = 0; i < 10; i++) {
        g_assert_true(ht_emit_zero(&s));
        g_assert_cmpuint(s.doorbells, ==, 1);
    }
    s.ring->host.wake = position(&s) + 1;
    g_assert_true(ht_emit_zero(&s));
    g_assert_cmpuint(s.doorbells, ==, 2);

    /* the wake word is the end of a packet: closing the packet reaches it */
    s.ring->host.wake = PACKET;
    g_assert_true(ht_emit_raw(&s, zeros, PACKET - 400));
    g_assert_cmpuint(s.doorbells, ==, 2);
    g_assert_nonnull(ht_get(&s, ht_class_raw.id, 800));
    g_assert_cmpuint(s.doorbells, ==, 3);
    g_assert_cmpuint(s.ring->guest.head, ==, PACKET);
    ht_put16(s.cur + 4, 798);
    ht_commit(&s);
    g_assert_cmpuint(s.doorbells, ==, 3);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    ht_loopback_free(c.lb);
}

static void test_batch(void)
{
    struct ht_loopback_config cfg = { .channel = HT_CHANNEL_HYPERCALL };
    static const unsigned batches[] = { 1, 2, 10, 1000 };
    struct ht_device *dev;
    struct ht_stream s;
    unsigned i, j;
    Count c;

    cfg.packets = 16;
    for (i = 0; i < G_N_ELEMENTS(batches); i++) {
        cfg.batch = batches[i];
        dev = count_new(&c, cfg);
        open_any(dev, &s);
        for (j = 0; j < 2500; j++) {
            g_assert_true(ht_emit_zero(&s));
            g_assert_cmpuint(s.doorbells, ==, (j + 1) / batches[i]);
            g_assert_cmpuint(c.events, ==, (j + 1) / batches[i] * batches[i]);
        }
        g_assert_cmpint(ht_stream_push(&s), ==, 0);
        g_assert_cmpuint(c.events, ==, 2500);
        g_assert_cmpint(ht_stream_push(&s), ==, 0);
        g_assert_cmpuint(s.doorbells, ==, (2500 + batches[i] - 1) / batches[i]);
        g_assert_cmpint(ht_stream_close(&s), ==, 0);
        ht_loopback_free(c.lb);
    }
}

/*
 * The producer passes the ring's end several times, each time between two
 * doorbells. No event is lost, because the host consumes at each doorbell.
 */
static void test_batch_wrap(void)
{
    struct ht_loopback_config cfg = {
        .channel = HT_CHANNEL_HYPERCALL, .packets = 4, .batch = 10,
    };
    struct ht_stream s;
    unsigned i;
    Count c;

    open_any(count_new(&c, cfg), &s);
    for (i = 1; i <= 20000; i++) {
        g_assert_true(ht_emit_zero(&s));
        g_assert_cmpuint(s.doorbells, ==, i / 10);
    }
    g_assert_cmpuint(s.packet, >, 4 * 4);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    ht_loopback_free(c.lb);
}

/*
 * In mode=overwrite the producer publishes the opening of a packet; in
 * mode=discard it never does.
 */
static void test_opening(void)
{
    struct ht_loopback_config cfg = shm_step;
    struct ht_device *dev;
    struct ht_stream s;
    unsigned mode, i;
    Count c;

    for (mode = 0; mode < 2; mode++) {
        cfg.mode = mode;
        dev = count_new(&c, cfg);
        open_any(dev, &s);
        for (i = 0; i < 5; i++) {
            bool room = mode == HT_MODE_OVERWRITE || i < 2;

            g_assert_true(ht_emit_raw(&s, zeros, PACKET / 2) == room);
            g_assert_cmpuint(s.ring->guest.opening, ==,
                             mode == HT_MODE_OVERWRITE ? i : 0);
            g_assert_cmpuint(s.ring->guest.lost, ==, room ? 0 : i - 1);
        }
        g_assert_cmpint(ht_stream_close(&s), ==, 0);
        g_assert_cmpuint(c.events, ==, 2);
        g_assert_cmpuint(c.discarded, ==, 3);
        ht_loopback_free(c.lb);
    }
}

/*
 * The host closes a stream: the producer writes nothing more into the ring. It
 * counts the events that it discards from then on in ht_stream.lost.
 */
static void test_taken_away(void)
{
    struct ht_device *dev;
    struct ht_stream s, other;
    unsigned i;
    Count c;

    dev = count_new(&c, shm_step);
    open_any(dev, &s);
    g_assert_true(ht_emit_raw(&s, zeros, PACKET / 2));
    ht_loopback_close(c.lb, s.index);
    g_assert_false(ht_emit_raw(&s, zeros, PACKET / 2));
    g_assert_cmpuint(s.lost, ==, 1);
    g_assert_cmpuint(s.told, ==, 0);
    g_assert_cmpuint(s.ring->guest.lost, ==, 0);
    g_assert_cmpint(ht_stream_flush(&s), ==, -EIO);

    /* @other gets the ring; @s must no longer write to it */
    open_any(dev, &other);
    g_assert_cmpuint(other.index, ==, s.index);
    g_assert_false(ht_emit_raw(&s, zeros, PACKET / 2));
    g_assert_cmpuint(s.lost, ==, 2);
    g_assert_cmpuint(other.ring->guest.lost, ==, 0);
    for (i = 0; i < 1000; i++) {
        g_assert_true(ht_emit_zero(&other));
        ht_loopback_step(c.lb);
    }
    g_assert_cmpint(ht_stream_close(&s), ==, -EIO);
    g_assert_cmpint(ht_stream_close(&other), ==, 0);
    g_assert_cmpuint(c.events, ==, 1 + 1000);
    ht_loopback_free(c.lb);
}

/*
 * The number of lost events is published by a flush, and by a refused emit that
 * does not interrupt another emit, even if no later event is emitted.
 */
static void test_lost_told(void)
{
    struct ht_device *dev;
    struct ht_stats stats;
    struct ht_stream s;
    uint8_t *p;
    Count c;

    dev = count_new(&c, shm_step);
    open_any(dev, &s);
    p = ht_get(&s, ht_class_tick.id, 8);
    g_assert_nonnull(p);
    g_assert_false(ht_emit_tick(&s, 7));
    g_assert_false(ht_emit_tick(&s, 8));
    ht_put64(p, 0);
    ht_commit(&s);
    g_assert_cmpuint(s.lost_nested, ==, 2);
    g_assert_cmpuint(s.lost, ==, 0);
    g_assert_cmpint(ht_stream_flush(&s), ==, 0);
    g_assert_cmpuint(s.ring->guest.lost, ==, 2);
    g_assert_cmpint(ht_get_stats(dev, HT_STREAM_ANY, &stats), ==, 0);
    g_assert_cmpuint(stats.lost, ==, 2);
    g_assert_cmpuint(stats.events, ==, 1);

    g_assert_null(ht_get(&s, 0, 0));
    g_assert_cmpuint(s.ring->guest.lost, ==, 3);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(c.discarded, ==, 3);
    ht_loopback_free(c.lb);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/packet/bytes", test_bytes);
    g_test_add_func("/guest/packet/extended", test_extended);
    g_test_add_func("/guest/packet/end", test_end_of_packet);
    g_test_add_func("/guest/packet/too-large", test_too_large);
    g_test_add_func("/guest/packet/too-long", test_too_long);
    g_test_add_func("/guest/packet/wake", test_wake);
    g_test_add_func("/guest/packet/batch", test_batch);
    g_test_add_func("/guest/packet/batch-wrap", test_batch_wrap);
    g_test_add_func("/guest/packet/opening", test_opening);
    g_test_add_func("/guest/packet/taken-away", test_taken_away);
    g_test_add_func("/guest/packet/lost-told", test_lost_told);
    return g_test_run();
}
