/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test the consumer of a ring with a producer that keeps the rules: each event
 * is delivered or counted
 */
#include "hypertrace/base.h"
#include <signal.h>
#include <sys/mman.h>
#include "hypertrace/atomic.h"
#include "core-testlib.h"

#define SIZE HT_PACKET_SIZE_MIN
/* Number of events of 12 bytes that fill a packet */
#define A_PACKET ((SIZE - sizeof(struct ht_packet)) / 12)

typedef struct Fixture {
    CtRing ring;
    CtSink sink;
    HtConsumer consumer;
    /* number of events that the producer emitted and did not discard */
    uint64_t n;
} Fixture;

static void setup(Fixture *f, uint32_t packets, bool overwrite)
{
    memset(f, 0, sizeof(*f));
    ct_ring_init(&f->ring, SIZE, packets, overwrite);
    ct_sink_init(&f->sink);
    ct_consumer_open(&f->consumer, &f->sink, &f->ring);
}

static void teardown(Fixture *f)
{
    ht_consumer_close(&f->consumer, f->ring.lost, 0);
    g_assert_cmpuint(f->sink.closed, ==, 1);
    g_assert_false(f->consumer.open);
    ht_consumer_destroy(&f->consumer);
    ct_sink_destroy(&f->sink);
    ct_ring_destroy(&f->ring);
}

static size_t consume(Fixture *f, size_t max)
{
    size_t n = ht_consumer_ring(&f->consumer, f->ring.control, f->ring.data,
                                max);

    g_assert_cmpstr(f->consumer.why, ==, "");
    g_assert_false(f->consumer.stopped);
    return n;
}

static void emit(Fixture *f, unsigned count)
{
    while (count--) {
        f->n += ct_ring_emit(&f->ring, f->n);
    }
}

/*
 * Assert that all events that the producer did not discard were delivered
 * once, in order.
 */
static void assert_all(Fixture *f)
{
    unsigned i;

    g_assert_cmpuint(f->sink.numbers->len, ==, f->n);
    for (i = 0; i < f->n; i++) {
        g_assert_cmpuint(ct_sink_number(&f->sink, i), ==, i);
    }
    g_assert_cmpuint(f->consumer.events, ==, f->n);
    g_assert_cmpuint(f->consumer.bytes, ==, f->n * 12);
    g_assert_cmpuint(f->consumer.dropped, ==, 0);
    g_assert_cmpuint(f->consumer.lost, ==, f->ring.lost);
    g_assert_cmpuint(f->consumer.errors, ==, 0);
    g_assert_false(ht_consumer_pending(&f->consumer, f->ring.control));
}

static uint64_t tail(Fixture *f)
{
    return ht_le64(ht_atomic_read(&f->ring.control->host.tail));
}

static void test_empty(void)
{
    Fixture f;

    setup(&f, 4, false);
    g_assert_false(ht_consumer_pending(&f.consumer, f.ring.control));
    g_assert_cmpuint(consume(&f, SIZE_MAX), ==, 0);
    assert_all(&f);
    teardown(&f);
    g_assert_cmpuint(f.sink.runs, ==, 0);
}

/* Events are delivered from a packet that is still open. */
static void test_partial(void)
{
    Fixture f;
    unsigned i;

    setup(&f, 4, false);
    for (i = 0; i < 3 * A_PACKET + 1; i++) {
        emit(&f, 1);
        g_assert_true(ht_consumer_pending(&f.consumer, f.ring.control));
        g_assert_cmpuint(consume(&f, SIZE_MAX), >=, 12);
        assert_all(&f);
        g_assert_cmpuint(tail(&f), ==, f.ring.packet);
    }
    /* The consumer has read all events of the last packet before its end. */
    ct_ring_close_packet(&f.ring);
    consume(&f, SIZE_MAX);
    g_assert_cmpuint(tail(&f), ==, f.ring.packet);
    assert_all(&f);
    teardown(&f);
}

/*
 * The producer discards new events while the ring is full, until the consumer
 * makes room.
 */
static void test_full(void)
{
    Fixture f;
    unsigned round;

    setup(&f, 2, false);
    for (round = 1; round < 20; round++) {
        emit(&f, 5 * A_PACKET);
        g_assert_cmpuint(f.ring.lost, >=, A_PACKET * round);
        consume(&f, SIZE_MAX);
        assert_all(&f);
    }
    g_assert_cmpuint(f.sink.discarded, <=, f.ring.lost);
    teardown(&f);
    g_assert_cmpuint(f.sink.discarded, ==, f.ring.lost);
}

/*
 * Promise: with a limit of 1 byte, a call consumes one packet at most; further
 * calls consume the rest.
 */
static void test_limit(void)
{
    Fixture f;
    unsigned calls = 0;

    setup(&f, 8, false);
    emit(&f, 6 * A_PACKET);
    while (consume(&f, 1)) {
        calls++;
        g_assert_cmpuint(f.sink.numbers->len, <=, calls * (A_PACKET + 1));
    }
    g_assert_cmpuint(calls, >=, 6);
    assert_all(&f);
    teardown(&f);
}

/*
 * Promise: the consumer takes a ring in pieces of whole events. A piece has at
 * most the configured number of events, and more than the configured number of
 * bytes only if its first event has more.
 */
static void test_pieces(void)
{
    static const struct {
        uint32_t piece;
        uint32_t events;
        /* maximum number of events that one call may deliver */
        uint32_t most;
    } cases[] = {
        { 0, 10, 10 }, { 120, 0, 10 }, { 131, 0, 10 }, { 600, 7, 7 },
        /* the byte limit is less than an event, or equals its size */
        { 1, 0, 1 }, { 11, 3, 1 }, { 12, 0, 1 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t events;
        Fixture f;

        setup(&f, 4, false);
        f.consumer.cfg.piece = cases[i].piece;
        f.consumer.cfg.piece_events = cases[i].events;
        f.consumer.walk.most = cases[i].events;
        emit(&f, 3 * A_PACKET);
        do {
            events = f.consumer.events;
            consume(&f, 1);
            g_assert_cmpuint(f.consumer.events - events, <=, cases[i].most);
        } while (f.consumer.events < f.n);
        g_assert_cmpuint(f.sink.runs, >=, f.n / cases[i].most);
        consume(&f, 1);
        assert_all(&f);
        emit(&f, A_PACKET);
        consume(&f, SIZE_MAX);
        assert_all(&f);
        teardown(&f);
    }
}

static void test_packet_sizes(void)
{
    uint32_t size;

    for (size = HT_PACKET_SIZE_MIN; size <= HT_PACKET_SIZE_MAX; size *= 2) {
        Fixture f;

        memset(&f, 0, sizeof(f));
        ct_ring_init(&f.ring, size, 2, false);
        ct_sink_init(&f.sink);
        ct_consumer_open(&f.consumer, &f.sink, &f.ring);
        emit(&f, 2 * size / 12 + 10);
        consume(&f, SIZE_MAX);
        emit(&f, 20);
        consume(&f, SIZE_MAX);
        assert_all(&f);
        teardown(&f);
    }
}

/*
 * If the producer overwrites packets before the consumer reads them, their
 * events count as dropped.
 */
static void test_overwrite(void)
{
    Fixture f;
    unsigned round, i, next;
    uint64_t seen;

    setup(&f, 4, true);
    for (round = 0; round < 50; round++) {
        emit(&f, g_test_rand_int_range(0, 12 * A_PACKET));
        while (consume(&f, SIZE_MAX)) {
            /* repeat until all events are read */
        }
        g_assert_cmpuint(f.ring.lost, ==, 0);
        g_assert_cmpuint(f.sink.numbers->len + f.consumer.dropped, ==, f.n);
        g_assert_cmpuint(f.consumer.expected, ==, f.n);
    }
    g_assert_cmpuint(f.consumer.dropped, >, 0);
    seen = f.sink.numbers->len;
    for (i = 0, next = 0; i < seen; i++) {
        g_assert_cmpuint(ct_sink_number(&f.sink, i), >=, next);
        next = ct_sink_number(&f.sink, i) + 1;
    }
    /* the newest event was delivered */
    g_assert_cmpuint(next, ==, f.n);
    teardown(&f);
    g_assert_cmpuint(f.sink.discarded, ==, f.consumer.dropped);
}

/*
 * The producer overwrites a packet of which the consumer has read a part: the
 * unread events count as dropped.
 */
static void test_overwrite_partial(void)
{
    Fixture f;

    setup(&f, 2, true);
    emit(&f, 10);
    consume(&f, SIZE_MAX);
    assert_all(&f);
    emit(&f, 5 * A_PACKET);
    while (consume(&f, SIZE_MAX)) {
        /* repeat until all events are read */
    }
    g_assert_cmpuint(f.sink.numbers->len + f.consumer.dropped, ==, f.n);
    g_assert_cmpuint(f.consumer.dropped, >, 0);
    g_assert_cmpuint(ct_sink_number(&f.sink, 9), ==, 9);
    g_assert_cmpuint(ct_sink_number(&f.sink, 10), ==,
                     10 + f.consumer.dropped);
    teardown(&f);
}

static void test_arm(void)
{
    Fixture f;
    struct ht_host_line *host;

    setup(&f, 4, false);
    host = &f.ring.control->host;
    /* with @eager, the next commit reaches the wake position */
    g_assert_false(ht_consumer_arm(&f.consumer, f.ring.control, true));
    emit(&f, 1);
    g_assert_cmpuint(ht_le64(f.ring.control->guest.head), >=,
                     ht_le64(host->wake));
    g_assert_true(ht_consumer_arm(&f.consumer, f.ring.control, true));
    /* without @eager, the wake position is the end of the packet */
    g_assert_false(ht_consumer_arm(&f.consumer, f.ring.control, false));
    g_assert_cmpuint(ht_le64(host->wake), ==, SIZE);
    emit(&f, A_PACKET);
    g_assert_true(ht_consumer_arm(&f.consumer, f.ring.control, false));
    consume(&f, SIZE_MAX);
    g_assert_false(ht_consumer_arm(&f.consumer, f.ring.control, false));
    g_assert_cmpuint(ht_le64(host->wake), ==, 2 * SIZE);
    ht_consumer_disarm(&f.consumer, f.ring.control);
    g_assert_cmpuint(ht_le64(host->wake), ==, HT_WAKE_NEVER);
    teardown(&f);
}

/*
 * Promise: after a close and a new opening, the consumer has no position and no
 * count of the stream's previous instance.
 */
static void test_reopen(void)
{
    HtStreamInfo info;
    Fixture f;

    setup(&f, 2, false);
    info = f.consumer.info;
    emit(&f, 5 * A_PACKET);
    consume(&f, SIZE_MAX);
    assert_all(&f);
    ht_consumer_close(&f.consumer, f.ring.lost, 0);
    g_assert_cmpuint(f.consumer.events, ==, f.n);
    g_assert_cmpuint(ht_consumer_ring(&f.consumer, f.ring.control,
                                      f.ring.data, SIZE_MAX), ==, 0);

    ct_ring_destroy(&f.ring);
    ct_ring_init(&f.ring, SIZE, 2, false);
    f.ring.instance = ++info.instance;
    ct_sink_destroy(&f.sink);
    ct_sink_init(&f.sink);
    f.consumer.cfg.classes = f.sink.classes;
    ht_consumer_open(&f.consumer, &info, 0);
    f.consumer.time = ct_time(1000);
    f.n = 0;
    emit(&f, 100);
    consume(&f, SIZE_MAX);
    assert_all(&f);
    g_assert_cmpuint(f.sink.opened, ==, 1);
    teardown(&f);
}

/*
 * A close uses the producer's final count of lost events, unless the ring has
 * already shown a higher count.
 */
static void test_close_lost(void)
{
    Fixture f;

    setup(&f, 2, false);
    f.ring.lost = 5;
    f.ring.control->guest.lost = ht_le64(5);
    emit(&f, 1);
    consume(&f, SIZE_MAX);
    g_assert_cmpuint(f.consumer.lost, ==, 5);
    ht_consumer_close(&f.consumer, 3, 0);
    g_assert_cmpuint(f.sink.discarded, ==, 5);
    f.consumer.open = true;
    ht_consumer_close(&f.consumer, 9, 0);
    g_assert_cmpuint(f.sink.discarded, ==, 9);
    /* the producer's final count of lost events is impossible: it is ignored */
    f.consumer.open = true;
    ht_consumer_close(&f.consumer, UINT64_MAX, 0);
    g_assert_cmpuint(f.sink.discarded, ==, 9);
    ht_consumer_destroy(&f.consumer);
    ct_sink_destroy(&f.sink);
    ct_ring_destroy(&f.ring);
}

/*
 * Let the producer overtake a copy: a page of the packet is unreadable, and
 * the handler of the fault makes the page readable and emits @events events
 * before the consumer's copy goes on.
 */
static struct {
    Fixture *f;
    uint8_t *page;
    unsigned events;
    unsigned faults;
} overtake;

static void on_fault(int sig, siginfo_t *info,
                     G_GNUC_UNUSED void *context)
{
    uint8_t *addr = info->si_addr;

    if (sig != SIGSEGV || addr < overtake.page ||
        addr >= overtake.page + HT_PAGE ||
        mprotect(overtake.page, HT_PAGE, PROT_READ | PROT_WRITE) < 0) {
        abort();
    }
    overtake.faults++;
    emit(overtake.f, overtake.events);
}

static void check_overtaken(unsigned page, unsigned events)
{
    const unsigned packet = (2 * HT_PAGE - sizeof(struct ht_packet)) / 12;
    struct sigaction sa = { .sa_flags = SA_SIGINFO }, old;
    uint64_t next = 0;
    Fixture f;
    unsigned i;

    sa.sa_sigaction = on_fault;
    memset(&f, 0, sizeof(f));
    ct_ring_init(&f.ring, 2 * HT_PAGE, 4, true);
    g_free(f.ring.data);
    f.ring.data = aligned_alloc(HT_PAGE, 8 * HT_PAGE);
    ct_sink_init(&f.sink);
    ct_consumer_open(&f.consumer, &f.sink, &f.ring);

    emit(&f, 3 * packet + 10);
    overtake.f = &f;
    overtake.page = f.ring.data + page * HT_PAGE;
    overtake.events = events;
    overtake.faults = 0;
    sigaction(SIGSEGV, &sa, &old);
    g_assert_cmpint(mprotect(overtake.page, HT_PAGE, PROT_NONE), ==, 0);
    while (consume(&f, SIZE_MAX)) {
        /* repeat until all events are read */
    }
    sigaction(SIGSEGV, &old, NULL);
    g_assert_cmpuint(overtake.faults, ==, 1);
    g_assert_cmpuint(f.sink.numbers->len + f.consumer.dropped, ==, f.n);
    for (i = 0; i < f.sink.numbers->len; i++) {
        g_assert_cmpuint(ct_sink_number(&f.sink, i), >=, next);
        next = ct_sink_number(&f.sink, i) + 1;
    }
    g_assert_cmpuint(next, ==, f.n);
    if (events > packet) {
        /* the events of the packet that was being copied count as dropped */
        g_assert_cmpuint(f.consumer.dropped, >=, packet);
        g_assert_cmpuint(ct_sink_number(&f.sink, 0), >=, packet);
    } else {
        g_assert_cmpuint(f.consumer.dropped, ==, 0);
    }
    teardown(&f);
}

static void test_overtaken(void)
{
    const unsigned packet = (2 * HT_PAGE - sizeof(struct ht_packet)) / 12;
    unsigned page;

    for (page = 0; page < 2; page++) {
        /*
         * numbers of events that continue the open packet, reuse the memory of
         * the packet that is being copied, or wrap the ring
         */
        check_overtaken(page, 5);
        check_overtaken(page, packet + 1);
        check_overtaken(page, 2 * packet - 10);
        check_overtaken(page, 4 * packet);
        check_overtaken(page, 9 * packet + 7);
    }
}

typedef struct Race {
    Fixture f;
    uint64_t events;
    bool done;
} Race;

static void *producer(void *opaque)
{
    Race *r = opaque;
    uint64_t i, n = 0;

    for (i = 0; i < r->events; i++) {
        /* the number of a discarded event is used for the next event */
        n += ct_ring_emit(&r->f.ring, n);
    }
    r->f.n = n;
    ht_atomic_store_release(&r->done, true);
    return NULL;
}

static void race(Race *r, uint32_t packets, bool overwrite)
{
    GThread *thread;
    bool done;

    setup(&r->f, packets, overwrite);
    r->events = g_test_quick() ? 3000000 : 30000000;
    r->done = false;
    thread = g_thread_new("producer", producer, r);
    do {
        done = ht_atomic_load_acquire(&r->done);
        while (consume(&r->f, SIZE_MAX)) {
            /* repeat while there are events to read */
        }
        g_thread_yield();
    } while (!done);
    g_thread_join(thread);
}

static void test_race_discard(void)
{
    Race r;

    race(&r, 4, false);
    g_assert_cmpuint(r.f.n + r.f.ring.lost, ==, r.events);
    assert_all(&r.f);
    teardown(&r.f);
}

/*
 * The consumer copies packets while the producer overwrites them: a torn copy
 * would show as a bad event or a wrong number.
 */
static void race_overwrite(uint32_t packets)
{
    Race r;
    uint64_t next = 0;
    unsigned i;

    race(&r, packets, true);
    g_assert_cmpuint(r.f.ring.lost, ==, 0);
    g_assert_cmpuint(r.f.n, ==, r.events);
    g_assert_cmpuint(r.f.sink.numbers->len + r.f.consumer.dropped, ==,
                     r.events);
    for (i = 0; i < r.f.sink.numbers->len; i++) {
        g_assert_cmpuint(ct_sink_number(&r.f.sink, i), >=, next);
        next = ct_sink_number(&r.f.sink, i) + 1;
    }
    g_assert_cmpuint(next, ==, r.events);
    g_test_message("%u of %" PRIu64 " events received",
                   r.f.sink.numbers->len, r.events);
    teardown(&r.f);
}

static void test_race_overwrite(void)
{
    race_overwrite(2);
    race_overwrite(4);
    race_overwrite(64);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ring/empty", test_empty);
    g_test_add_func("/ring/partial", test_partial);
    g_test_add_func("/ring/full", test_full);
    g_test_add_func("/ring/limit", test_limit);
    g_test_add_func("/ring/pieces", test_pieces);
    g_test_add_func("/ring/packet-sizes", test_packet_sizes);
    g_test_add_func("/ring/overwrite", test_overwrite);
    g_test_add_func("/ring/overwrite-partial", test_overwrite_partial);
    g_test_add_func("/ring/overtaken", test_overtaken);
    g_test_add_func("/ring/arm", test_arm);
    g_test_add_func("/ring/reopen", test_reopen);
    g_test_add_func("/ring/close-lost", test_close_lost);
    g_test_add_func("/ring/race-discard", test_race_discard);
    g_test_add_func("/ring/race-overwrite", test_race_overwrite);
    return g_test_run();
}
