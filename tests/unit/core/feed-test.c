/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test how the consumer takes buffers that the guest submits (channel=virtio),
 * and bytes that the host reads before the guest submits them
 */
#include "hypertrace/base.h"
#include "core-testlib.h"

#define SIZE HT_PACKET_SIZE_MIN
#define EVENT 12u
#define HEADER ((uint32_t)sizeof(struct ht_packet))

typedef struct Fixture {
    CtRing ring;                /* the guest's packets */
    CtSink sink;
    HtConsumer consumer;
    /* stream position after the last byte that was submitted */
    uint64_t pos;
} Fixture;

static void setup(Fixture *f)
{
    memset(f, 0, sizeof(*f));
    ct_ring_init(&f->ring, SIZE, 64, false);
    ct_sink_init(&f->sink);
    ct_consumer_open(&f->consumer, &f->sink, &f->ring);
}

static void teardown(Fixture *f)
{
    ht_consumer_close(&f->consumer, 0, 0);
    ht_consumer_destroy(&f->consumer);
    ct_sink_destroy(&f->sink);
    ct_ring_destroy(&f->ring);
}

static void emit(Fixture *f, unsigned count)
{
    uint64_t n = f->ring.events;

    while (count--) {
        g_assert_true(ct_ring_emit(&f->ring, n++));
    }
}

/*
 * Submit @size bytes of the ring, from stream position @from on, with the
 * header @sub, which may be wrong. The consumer gets a copy of exactly @size
 * bytes, so that sanitizers detect reads beyond the copy.
 */
static void feed_as(Fixture *f, const struct ht_submit *sub, uint64_t from,
                    size_t size)
{
    uint8_t *data = g_malloc(size);
    uint64_t at = from % (64 * SIZE);

    if (size) {
        memcpy(data, f->ring.data + at, size);
    }
    ht_consumer_feed(&f->consumer, sub, data, size);
    g_free(data);
}

static void feed(Fixture *f, uint64_t from, uint64_t to)
{
    struct ht_submit sub = {
        .from = ht_le64(from),
        .to = ht_le64(to),
        .lost = ht_le64(f->ring.lost),
        .stream = ht_le32(f->ring.stream),
    };

    feed_as(f, &sub, from, to - from);
    f->pos = to;
}

/* Let the host read the bytes [from, to) before the guest submits them. */
static void fetch(Fixture *f, uint64_t from, uint64_t to)
{
    struct ht_submit sub = {
        .from = ht_le64(from),
        .to = ht_le64(to),
        .stream = ht_le32(f->ring.stream),
    };
    g_autofree uint8_t *data = g_memdup2(f->ring.data + from % (64 * SIZE),
                                         to - from);

    ht_consumer_fetched(&f->consumer, &sub, data, to - from);
}

static void assert_events(Fixture *f, uint64_t events)
{
    unsigned i;

    g_assert_cmpstr(f->consumer.why, ==, "");
    g_assert_cmpuint(f->sink.numbers->len, ==, events);
    for (i = 0; i < events; i++) {
        g_assert_cmpuint(ct_sink_number(&f->sink, i), ==, i);
    }
}

static void assert_stopped(Fixture *f, uint64_t events)
{
    g_assert_true(f->consumer.stopped);
    g_assert_cmpuint(f->consumer.errors, ==, 1);
    g_assert_cmpstr(f->consumer.why, !=, "");
    g_assert_cmpuint(f->sink.numbers->len, ==, events);
    /* after the stop, the consumer ignores a further buffer */
    feed(f, f->consumer.cursor, f->consumer.cursor + EVENT);
    g_assert_cmpuint(f->consumer.errors, ==, 1);
    g_assert_cmpuint(f->sink.numbers->len, ==, events);
}

/*
 * Promise: each event is delivered once if the guest submits whole packets,
 * parts of packets, a packet's header alone, or single events.
 */
static void test_parts(void)
{
    Fixture f;
    unsigned i;

    setup(&f);
    emit(&f, 336 * 3);
    feed(&f, 0, SIZE);
    assert_events(&f, 336);
    feed(&f, SIZE, SIZE + HEADER);
    assert_events(&f, 336);
    feed(&f, f.pos, f.pos + EVENT);
    feed(&f, f.pos, f.pos + 10 * EVENT);
    assert_events(&f, 336 + 11);
    feed(&f, f.pos, 2 * SIZE);
    assert_events(&f, 336 * 2);
    feed(&f, 2 * SIZE, 2 * SIZE + HEADER + EVENT);
    for (i = 1; i < 336; i++) {
        feed(&f, f.pos, f.pos + EVENT);
    }
    assert_events(&f, 336 * 3);
    g_assert_cmpuint(f.consumer.bytes, ==, 336 * 3 * EVENT);
    g_assert_cmpuint(f.consumer.cursor, ==, 3 * SIZE);
    teardown(&f);
}

/*
 * Promise: if the guest closes a packet before it is full, the stream goes on
 * with a buffer that begins at the start of the next packet.
 */
static void test_skip_rest(void)
{
    Fixture f;
    unsigned i;

    setup(&f);
    for (i = 0; i < 10; i++) {
        emit(&f, 5);
        feed(&f, f.ring.packet * SIZE, f.ring.packet * SIZE + f.ring.offset);
        ct_ring_close_packet(&f.ring);
    }
    assert_events(&f, 50);
    teardown(&f);
}

/*
 * The host reads bytes of the ring before the guest submits them. If a
 * submitted buffer contains such bytes, alone or followed by new ones, no event
 * is delivered twice.
 */
static void test_fetched(void)
{
    Fixture f;

    setup(&f);
    emit(&f, 336 * 4);
    feed(&f, 0, HEADER + 5 * EVENT);
    fetch(&f, f.pos, HEADER + 20 * EVENT);
    assert_events(&f, 20);
    feed(&f, f.pos, HEADER + 10 * EVENT);
    assert_events(&f, 20);
    feed(&f, f.pos, HEADER + 30 * EVENT);
    assert_events(&f, 30);
    fetch(&f, f.pos, SIZE);
    fetch(&f, SIZE, 2 * SIZE);
    fetch(&f, 2 * SIZE, 2 * SIZE + HEADER + EVENT);
    assert_events(&f, 2 * 336 + 1);
    feed(&f, f.pos, SIZE);
    feed(&f, SIZE, 2 * SIZE);
    assert_events(&f, 2 * 336 + 1);
    feed(&f, 2 * SIZE, 3 * SIZE);
    assert_events(&f, 3 * 336);
    fetch(&f, 3 * SIZE, 4 * SIZE);
    assert_events(&f, 4 * 336);
    /*
     * this buffer does not begin where the previous buffer ended: the stream
     * stops, although the host has already read these bytes
     */
    feed(&f, 3 * SIZE + HEADER, 4 * SIZE);
    assert_stopped(&f, 4 * 336);
    teardown(&f);

    setup(&f);
    emit(&f, 336);
    feed(&f, 0, HEADER + 5 * EVENT);
    fetch(&f, HEADER + 6 * EVENT, SIZE);
    assert_stopped(&f, 5);
    teardown(&f);
}

static void test_lost(void)
{
    Fixture f;

    setup(&f);
    emit(&f, 3);
    f.ring.lost = 4;
    feed(&f, 0, HEADER + EVENT);
    g_assert_cmpuint(f.consumer.lost, ==, 4);
    f.ring.lost = 2;
    feed(&f, f.pos, f.pos + EVENT);
    g_assert_cmpuint(f.consumer.lost, ==, 4);
    assert_events(&f, 2);
    teardown(&f);
    g_assert_cmpuint(f.sink.discarded, ==, 4);
}

typedef struct Bad {
    const char *what;
    uint64_t from;
    uint64_t to;
    /*
     * number of bytes by which the buffer is longer than the submit header
     * says; but the buffer has at most 2 * SIZE bytes
     */
    int64_t size;
    /* the submit header's stream index minus the correct index */
    uint32_t stream;
} Bad;

/*
 * Promise: a buffer with a wrong submit header, or which ends within an event,
 * stops the stream. The two events before this buffer are delivered.
 */
static void test_bad_submit(void)
{
    const uint64_t at = HEADER + 2 * EVENT;
    const Bad bad[] = {
        { "gap", at + EVENT, at + 2 * EVENT, 0, 0 },
        { "overlap", at - EVENT, at + EVENT, 0, 0 },
        { "again", 0, at, 0, 0 },
        { "nothing", at, at, 0, 0 },
        { "backwards", at, at - 1, 0, 0 },
        { "packet skipped", 2 * SIZE, 2 * SIZE + HEADER + EVENT, 0, 0 },
        { "middle of the next", SIZE + HEADER, SIZE + HEADER + EVENT, 0, 0 },
        { "across packets", at, SIZE + 1, 0, 0 },
        { "across packets from the next", SIZE, 2 * SIZE + 1, 0, 0 },
        { "short of a header", SIZE, SIZE + HEADER - 1, 0, 0 },
        { "one byte", SIZE, SIZE + 1, 0, 0 },
        { "too few bytes", at, at + EVENT, -1, 0 },
        { "too many bytes", at, at + EVENT, 1, 0 },
        { "no bytes", at, at + EVENT, -(int64_t)EVENT, 0 },
        { "other stream", at, at + EVENT, 0, 1 },
        { "all ones", UINT64_MAX, UINT64_MAX, 0, -1 },
        { "wraps", at, UINT64_MAX, EVENT + 1, 0 },
        { "part of an event", at, at + EVENT - 1, 0, 0 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct ht_submit sub = {
            .from = ht_le64(bad[i].from),
            .to = ht_le64(bad[i].to),
        };
        uint64_t size = bad[i].to - bad[i].from + bad[i].size;
        Fixture f;

        g_test_message("%s", bad[i].what);
        setup(&f);
        emit(&f, 336 * 4);
        feed(&f, 0, at);
        assert_events(&f, 2);
        sub.stream = ht_le32(f.ring.stream + bad[i].stream);
        feed_as(&f, &sub, bad[i].from, MIN(size, 2 * SIZE));
        assert_stopped(&f, 2);
        teardown(&f);
    }
}

/*
 * A changed bit in a packet's header, in a member before clock_begin, stops the
 * stream.
 */
static void test_bad_packet(void)
{
    unsigned i;

    for (i = 0; i < offsetof(struct ht_packet, clock_begin); i++) {
        Fixture f;

        setup(&f);
        emit(&f, 400);
        feed(&f, 0, SIZE);
        assert_events(&f, 336);
        ((uint8_t *)ct_ring_packet(&f.ring, 1))[i] ^= 0x40;
        feed(&f, SIZE, SIZE + HEADER + EVENT);
        assert_stopped(&f, 336);
        teardown(&f);
    }
}

static void test_closed(void)
{
    Fixture f;

    setup(&f);
    emit(&f, 10);
    feed(&f, 0, HEADER + EVENT);
    ht_consumer_close(&f.consumer, 0, 0);
    feed(&f, f.pos, f.pos + EVENT);
    g_assert_cmpuint(f.sink.numbers->len, ==, 1);
    g_assert_cmpuint(f.consumer.errors, ==, 0);
    ht_consumer_destroy(&f.consumer);
    ct_sink_destroy(&f.sink);
    ct_ring_destroy(&f.ring);
}

/*
 * Submit parts of packets; in some parts, a random bit of the submit header or
 * of the bytes is changed. Promise: the events of the parts before the first
 * change are delivered once, in order.
 */
static void test_random(void)
{
    unsigned i;

    for (i = 0; i < 4096; i++) {
        uint64_t honest = 0, to;
        bool changed = false;
        Fixture f;

        setup(&f);
        emit(&f, 336 * 4);
        while (f.pos < 4 * SIZE) {
            struct ht_submit sub = { .stream = ht_le32(f.ring.stream) };
            uint64_t at = f.pos % SIZE, from = f.pos;

            at = at ? at : HEADER;
            at += EVENT * g_test_rand_int_range(1, 200);
            to = MIN(from / SIZE * SIZE + at, (from / SIZE + 1) * SIZE);
            sub.from = ht_le64(from);
            sub.to = ht_le64(to);
            if (g_test_rand_int_range(0, 8) == 0) {
                uint8_t *p = g_test_rand_bit() ? (uint8_t *)&sub :
                             f.ring.data + from;

                p += g_test_rand_int_range(0, p == (uint8_t *)&sub ?
                                           sizeof(sub) : to - from);
                *p ^= 1 << g_test_rand_int_range(0, 8);
                changed = true;
            }
            feed_as(&f, &sub, from, to - from);
            f.pos = to;
            if (!changed) {
                honest = f.sink.numbers->len;
                g_assert_false(f.consumer.stopped);
            }
        }
        for (to = 0; to < honest; to++) {
            g_assert_cmpuint(ct_sink_number(&f.sink, to), ==, to);
        }
        g_assert_cmpuint(f.sink.numbers->len, >=, honest);
        g_assert_cmpuint(f.consumer.errors, ==, f.consumer.stopped);
        teardown(&f);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/feed/parts", test_parts);
    g_test_add_func("/feed/skip-rest", test_skip_rest);
    g_test_add_func("/feed/fetched", test_fetched);
    g_test_add_func("/feed/lost", test_lost);
    g_test_add_func("/feed/bad-submit", test_bad_submit);
    g_test_add_func("/feed/bad-packet", test_bad_packet);
    g_test_add_func("/feed/closed", test_closed);
    g_test_add_func("/feed/random", test_random);
    return g_test_run();
}
