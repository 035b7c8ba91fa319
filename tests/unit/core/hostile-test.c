/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test rings of guests that break the rules: the host stops the stream with a
 * reason, or ignores the fault
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "core-testlib.h"

#define SIZE HT_PACKET_SIZE_MIN
#define PACKETS 4
#define A_PACKET ((SIZE - sizeof(struct ht_packet)) / 12)

typedef struct Fixture {
    CtRing ring;
    CtSink sink;
    HtConsumer consumer;
} Fixture;

static void setup(Fixture *f, bool overwrite)
{
    memset(f, 0, sizeof(*f));
    ct_ring_init(&f->ring, SIZE, PACKETS, overwrite);
    ct_sink_init(&f->sink);
    ct_consumer_open(&f->consumer, &f->sink, &f->ring);
}

static void teardown(Fixture *f)
{
    /* a stopped stream can still be closed */
    ht_consumer_close(&f->consumer, 0, 0);
    g_assert_cmpuint(f->sink.closed, ==, 1);
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

static size_t consume(Fixture *f)
{
    size_t done = ht_consumer_ring(&f->consumer, f->ring.control, f->ring.data,
                                   SIZE_MAX);

    ct_check_loadable(&f->consumer);
    return done;
}

/*
 * Assert that the stream stopped with one error, after exactly the events [0,
 * @events).
 */
static void assert_stopped(Fixture *f, uint64_t events)
{
    unsigned i;

    g_assert_true(f->consumer.stopped);
    g_assert_cmpuint(f->consumer.errors, ==, 1);
    g_assert_cmpstr(f->consumer.why, !=, "");
    g_assert_cmpuint(f->sink.numbers->len, ==, events);
    for (i = 0; i < events; i++) {
        g_assert_cmpuint(ct_sink_number(&f->sink, i), ==, i);
    }
    g_assert_cmpuint(consume(f), ==, 0);
    g_assert_false(ht_consumer_pending(&f->consumer, f->ring.control));
    g_assert_false(ht_consumer_arm(&f->consumer, f->ring.control, true));
    g_assert_cmpuint(f->consumer.errors, ==, 1);
    g_assert_cmpuint(f->sink.numbers->len, ==, events);
}

/*
 * Promise: an impossible head stops the stream. The open packet has 10 events,
 * of which the host has read 5.
 */
static void check_head(bool overwrite, uint64_t head)
{
    Fixture f;

    setup(&f, overwrite);
    emit(&f, 5);
    consume(&f);
    emit(&f, 5);
    f.ring.control->guest.head = ht_le64(head);
    g_assert_true(ht_consumer_pending(&f.consumer, f.ring.control));
    consume(&f);
    assert_stopped(&f, 5);
    teardown(&f);
}

static void test_head(void)
{
    const uint64_t five = sizeof(struct ht_packet) + 5 * 12;
    int mode;

    for (mode = 0; mode < 2; mode++) {
        check_head(mode, 0);
        check_head(mode, 1);
        check_head(mode, five - 1);
        check_head(mode, UINT64_MAX);
        check_head(mode, UINT64_C(1) << 63);
        /*
         * a head inside an event: after the first byte, and before the last
         * byte, of its payload
         */
        check_head(mode, five + 5);
        check_head(mode, five + 11);
    }
    check_head(false, PACKETS * SIZE + 1);
    check_head(false, (PACKETS + 1) * SIZE);
    check_head(false, UINT64_C(1) << 62);
}

/*
 * Promise: in mode overwrite, the stream stops if head is far ahead of the
 * host's position, which is allowed, but the ring does not have the closed
 * packets that such a head implies.
 */
static void test_head_far(void)
{
    Fixture f;

    setup(&f, true);
    emit(&f, 5);
    consume(&f);
    f.ring.control->guest.head = ht_le64(UINT64_C(1) << 62);
    consume(&f);
    assert_stopped(&f, 5);
    teardown(&f);
}

static void test_head_in_header(void)
{
    unsigned offset;

    for (offset = 1; offset < sizeof(struct ht_packet); offset++) {
        Fixture f;

        setup(&f, false);
        emit(&f, 1);
        f.ring.control->guest.head = ht_le64(offset);
        consume(&f);
        assert_stopped(&f, 0);
        teardown(&f);
    }
}

/*
 * Promise: in mode overwrite, the stream stops if ht_guest_line.opening is more
 * than PACKETS packets ahead of the packet of head.
 */
static void test_opening(void)
{
    static const uint64_t opening[] = {
        PACKETS + 2, 1000, UINT64_MAX / SIZE, UINT64_C(1) << 63, UINT64_MAX,
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(opening); i++) {
        Fixture f;

        setup(&f, true);
        emit(&f, 5);
        consume(&f);
        emit(&f, 5);
        f.ring.control->guest.opening = ht_le64(opening[i]);
        consume(&f);
        assert_stopped(&f, 5);
        teardown(&f);
    }
}

typedef void Corrupt(struct ht_packet *p);

static void bad_magic(struct ht_packet *p)
{
    p->magic ^= 1;
}

static void bad_stream(struct ht_packet *p)
{
    p->stream = ht_le32(ht_le32(p->stream) + 1);
}

static void bad_instance(struct ht_packet *p)
{
    p->instance = ht_le64(ht_le64(p->instance) - 1);
}

static void bad_seq(struct ht_packet *p)
{
    p->seq = ht_le64(ht_le64(p->seq) + PACKETS);
}

static void more_events(struct ht_packet *p)
{
    p->events = ht_le64(ht_le64(p->events) + 1);
}

static void fewer_events(struct ht_packet *p)
{
    p->events = ht_le64(ht_le64(p->events) - 1);
}

static void most_events(struct ht_packet *p)
{
    p->events = UINT64_MAX;
}

static void content_none(struct ht_packet *p)
{
    p->content = 0;
}

static void content_in_header(struct ht_packet *p)
{
    p->content = ht_le32(sizeof(*p) - 1);
}

static void content_too_big(struct ht_packet *p)
{
    p->content = ht_le32(SIZE + 1);
}

static void content_huge(struct ht_packet *p)
{
    p->content = UINT32_MAX;
}

static void test_packet_header(void)
{
    static Corrupt *const corrupt[] = {
        bad_magic, bad_stream, bad_instance, bad_seq,
        more_events, fewer_events, most_events,
        content_none, content_in_header, content_too_big, content_huge,
    };
    unsigned i, packet;
    int mode;

    for (mode = 0; mode < 2; mode++) {
        for (i = 0; i < G_N_ELEMENTS(corrupt); i++) {
            for (packet = 0; packet < 3; packet++) {
                Fixture f;

                setup(&f, mode);
                emit(&f, 3 * A_PACKET + 5);
                corrupt[i](ct_ring_packet(&f.ring, packet));
                consume(&f);
                assert_stopped(&f, packet * A_PACKET);
                teardown(&f);
            }
        }
    }
}

/*
 * Promise: the stream stops if the guest closes a packet with a size of content
 * that ends before the position up to which the host has read the packet.
 */
static void test_content_shrinks(void)
{
    Fixture f;

    setup(&f, false);
    emit(&f, 10);
    consume(&f);
    ct_ring_close_packet(&f.ring);
    ct_ring_packet(&f.ring, 0)->content =
        ht_le32(sizeof(struct ht_packet) + 9 * 12);
    consume(&f);
    assert_stopped(&f, 10);
    teardown(&f);
}

/*
 * Promise: if the guest overwrites the part of the open packet that the host
 * has read, the stream goes on with the later events.
 */
static void test_rewritten(void)
{
    Fixture f;

    setup(&f, false);
    emit(&f, 10);
    consume(&f);
    memset(ct_ring_packet(&f.ring, 0), 0xff,
           sizeof(struct ht_packet) + 10 * 12);
    emit(&f, 10);
    consume(&f);
    g_assert_false(f.consumer.stopped);
    g_assert_cmpuint(f.sink.numbers->len, ==, 20);
    teardown(&f);
}

static void test_bad_event(void)
{
    unsigned n;

    for (n = 0; n < 20; n++) {
        Fixture f;

        setup(&f, false);
        emit(&f, 20);
        ((uint8_t *)(ct_ring_packet(&f.ring, 0) + 1))[n * 12] = 0;
        consume(&f);
        assert_stopped(&f, n);
        teardown(&f);
    }
}

/* A count of lost events that decreases, or is UINT64_MAX, is ignored. */
static void test_lost(void)
{
    Fixture f;

    setup(&f, false);
    f.ring.control->guest.lost = ht_le64(7);
    emit(&f, 1);
    consume(&f);
    g_assert_cmpuint(f.consumer.lost, ==, 7);
    f.ring.control->guest.lost = ht_le64(3);
    emit(&f, 1);
    consume(&f);
    f.ring.control->guest.lost = UINT64_MAX;
    emit(&f, 1);
    consume(&f);
    g_assert_cmpuint(f.consumer.lost, ==, 7);
    g_assert_false(f.consumer.stopped);
    teardown(&f);
}

/*
 * In mode overwrite, a guest repeatedly claims that the host missed as many
 * events as the distance between two packets allows. Promise: the counter of
 * dropped events stays in the range that ht_consumer_load() accepts, so that
 * this counter does not prevent a migration.
 */
static void test_dropped(void)
{
    uint64_t packet = 0, events = 0, step = UINT64_C(1) << 44;
    Fixture f;
    unsigned i;

    setup(&f, true);
    for (i = 0; i < 64; i++) {
        uint64_t newest = packet + step;
        struct ht_packet *p;

        events += (step - PACKETS + 1) * (SIZE / HT_EVENT_HEADER);
        for (packet = newest - PACKETS + 1; packet <= newest; packet++) {
            p = (struct ht_packet *)(f.ring.data + packet % PACKETS * SIZE);
            *p = (struct ht_packet) {
                .magic = ht_le32(HT_PACKET_MAGIC),
                .stream = ht_le32(f.ring.stream),
                .instance = ht_le64(f.ring.instance),
                .seq = ht_le64(packet),
                .events = ht_le64(events),
                .content = ht_le32(sizeof(*p)),
            };
        }
        packet = newest;
        f.ring.control->guest.opening = ht_le64(newest);
        ht_atomic_store_release(&f.ring.control->guest.head,
                                ht_le64(newest * SIZE + sizeof(struct
                                                               ht_packet)));
        consume(&f);
        g_assert_cmpstr(f.consumer.why, ==, "");
    }
    g_assert_cmpuint(f.consumer.dropped, ==, HT_LOST_MAX - 1);
    teardown(&f);
}

/*
 * Change 1 to 4 random bits of an honest ring and its control page.  If all
 * changes are in packets, the events of the packets before the first change are
 * delivered.  Sanitizers check that nothing is read or written out of bounds.
 */
static void random_ring(bool overwrite)
{
    Fixture f;
    unsigned i, changes = g_test_rand_int_range(1, 5);
    uint64_t first = PACKETS, delivered;
    bool control = false;

    setup(&f, overwrite);
    emit(&f, g_test_rand_int_range(1, PACKETS * A_PACKET));
    delivered = f.ring.events;
    for (i = 0; i < changes; i++) {
        uint8_t *p;

        if (g_test_rand_int_range(0, 4) == 0) {
            /*
             * any byte of the control page, which has the guest's line, the
             * host's line and unused bytes
             */
            p = (uint8_t *)f.ring.control +
                g_test_rand_int_range(0, sizeof(*f.ring.control));
            control = true;
        } else {
            uint32_t at = g_test_rand_int_range(0, PACKETS * SIZE);

            if (g_test_rand_bit()) {
                at = at / SIZE * SIZE + at % sizeof(struct ht_packet);
            }
            p = f.ring.data + at;
            first = MIN(first, at / SIZE);
        }
        *p ^= 1 << g_test_rand_int_range(0, 8);
    }
    for (i = 0; i < 10; i++) {
        consume(&f);
        ht_consumer_arm(&f.consumer, f.ring.control, i & 1);
    }
    if (!control) {
        uint64_t honest = MIN(first * A_PACKET, delivered);

        g_assert_cmpuint(f.sink.numbers->len, >=, honest);
        for (i = 0; i < honest; i++) {
            g_assert_cmpuint(ct_sink_number(&f.sink, i), ==, i);
        }
    }
    g_assert_cmpuint(f.consumer.errors, ==, f.consumer.stopped);
    g_assert_true(f.consumer.stopped == (f.consumer.why[0] != '\0'));
    teardown(&f);
}

static void test_random_ring(void)
{
    unsigned i;

    for (i = 0; i < 4096; i++) {
        random_ring(i & 1);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hostile/head", test_head);
    g_test_add_func("/hostile/head-far", test_head_far);
    g_test_add_func("/hostile/head-in-header", test_head_in_header);
    g_test_add_func("/hostile/opening", test_opening);
    g_test_add_func("/hostile/packet-header", test_packet_header);
    g_test_add_func("/hostile/content-shrinks", test_content_shrinks);
    g_test_add_func("/hostile/rewritten", test_rewritten);
    g_test_add_func("/hostile/bad-event", test_bad_event);
    g_test_add_func("/hostile/lost", test_lost);
    g_test_add_func("/hostile/dropped", test_dropped);
    g_test_add_func("/hostile/random-ring", test_random_ring);
    return g_test_run();
}
