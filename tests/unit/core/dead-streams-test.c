/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stream memory after its host's end: the events in a ring are read, oldest
 * first, and memory with an invalid description is refused
 */
#include "hypertrace/base.h"
#include "hypertrace/dead-streams.h"
#include "hypertrace/memory-layout.h"
#include "core-memory.h"

#define SIZE    HT_PACKET_SIZE_MIN
#define PACKETS 4u
#define STREAMS 2u

typedef struct Fixture {
    CtMemory m;
    CtSink sink;
    CtRing ring;
} Fixture;

static void setup(Fixture *f, bool overwrite)
{
    const HtTimeSegment clock = {
        .counter = 1000,
        .ns = 5000,
        .mult = UINT64_C(2) << HT_TIME_MULT_SHIFT,
    };

    memset(f, 0, sizeof(*f));
    ct_sink_init(&f->sink);
    ct_ring_init(&f->ring, SIZE, PACKETS, overwrite);
    f->ring.stream = 1;
    ct_memory_init(&f->m, STREAMS, SIZE, PACKETS, f->sink.classes);
    ht_directory_set_clock(&f->m.directory, &clock);
}

static void teardown(Fixture *f)
{
    ct_ring_destroy(&f->ring);
    ct_sink_destroy(&f->sink);
    ct_memory_destroy(&f->m);
}

/* Copy the ring to the memory, as if the host ended now. */
static void die(Fixture *f)
{
    ct_memory_put(&f->m, &f->ring, "main", 3);
}

static HtDead *parse(const Fixture *f, GError **error)
{
    return ht_dead_new(f->m.ram, f->m.size, error);
}

static void read_dead(Fixture *f, HtDeadResult *r)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(HtDead) d = parse(f, &err);

    g_assert_no_error(err);
    g_assert_cmpuint(d->invalid, ==, 0);
    g_assert_cmpstr(d->streams[1].name, ==, "main");
    g_assert_cmpint(d->streams[1].vcpu, ==, 3);
    g_assert_false(ht_dead_read(d, 0, f->m.ram, 0, ct_sink_deliver, &f->sink,
                                r));
    g_assert_true(ht_dead_read(d, 1, f->m.ram, 0, ct_sink_deliver, &f->sink,
                               r));
    g_assert_cmpuint(f->sink.opened, ==, 1);
    g_assert_cmpuint(f->sink.closed, ==, 1);
}

static void test_all(void)
{
    HtDeadResult r;
    Fixture f;
    unsigned i;

    setup(&f, true);
    f.ring.clock = 2000;
    for (i = 0; i < 10; i++) {
        g_assert_true(ct_ring_emit(&f.ring, i));
    }
    die(&f);
    read_dead(&f, &r);
    g_assert_cmpstr(r.why, ==, "");
    g_assert_cmpuint(r.events, ==, 10);
    g_assert_cmpuint(r.before, ==, 0);
    g_assert_cmpuint(r.begin_ns, >=, 5000 + 2 * 1000);
    g_assert_cmpuint(r.end_ns, ==, 5000 + 2 * (f.ring.clock - 1000));
    for (i = 0; i < 10; i++) {
        g_assert_cmpuint(ct_sink_number(&f.sink, i), ==, i);
    }
    teardown(&f);
}

/*
 * Events that the producer has overwritten are counted; all later events are
 * read.
 */
static void test_overwritten(void)
{
    uint64_t n, sent = 10000;
    HtDeadResult r;
    Fixture f;

    setup(&f, true);
    for (n = 0; n < sent; n++) {
        g_assert_true(ct_ring_emit(&f.ring, n));
    }
    die(&f);
    read_dead(&f, &r);
    g_assert_cmpstr(r.why, ==, "");
    g_assert_cmpuint(r.events, >, (PACKETS - 1) * (SIZE / 12 - 20));
    g_assert_cmpuint(r.before + r.events, ==, sent);
    g_assert_cmpuint(ct_sink_number(&f.sink, r.events - 1), ==, sent - 1);
    teardown(&f);
}

/* A full ring in mode discard keeps its oldest events: all of them are read. */
static void test_discarding(void)
{
    uint64_t n, sent = 0;
    HtDeadResult r;
    Fixture f;

    setup(&f, false);
    for (n = 0; n < 5000; n++) {
        sent += ct_ring_emit(&f.ring, sent);
    }
    die(&f);
    read_dead(&f, &r);
    g_assert_cmpstr(r.why, ==, "");
    g_assert_cmpuint(r.events, ==, sent);
    g_assert_cmpuint(r.lost, ==, 5000 - sent);
    teardown(&f);
}

/*
 * If the directory lacks a class, because the host was killed before it added
 * the class, reading stops at the first event of that class.
 */
static void test_cut(void)
{
    HtDeadResult r;
    Fixture f;

    setup(&f, true);
    g_assert_true(ct_ring_emit(&f.ring, 0));
    ht_directory_clear(&f.m.directory, 0);
    die(&f);
    read_dead(&f, &r);
    g_assert_cmpuint(r.events, ==, 0);
    g_assert_nonnull(strstr(r.why, "unknown class"));
    teardown(&f);
}

static void test_stale(void)
{
    HtDeadResult r;
    Fixture f;

    setup(&f, true);
    g_assert_true(ct_ring_emit(&f.ring, 0));
    f.ring.instance++;
    die(&f);
    read_dead(&f, &r);
    g_assert_cmpuint(r.events, ==, 0);
    g_assert_nonnull(strstr(r.why, "wrong header"));
    teardown(&f);
}

/*
 * A stream that the host has closed is not read: its events were already
 * delivered.
 */
static void test_closed(void)
{
    g_autoptr(HtDead) d = NULL;
    HtDeadResult r;
    Fixture f;

    setup(&f, true);
    g_assert_true(ct_ring_emit(&f.ring, 0));
    die(&f);
    ct_memory_ring(&f.m, 1)->host.state = ht_le32(HT_STREAM_CLOSED);
    d = parse(&f, NULL);
    g_assert_false(ht_dead_read(d, 1, f.m.ram, 0, ct_sink_deliver, &f.sink,
                                &r));
    teardown(&f);
}

/* Check that the memory is refused for a reason that contains @why */
static void refused(Fixture *f, size_t size, const char *why)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(HtDead) d = ht_dead_new(f->m.ram, size, &err);

    g_assert_null(d);
    g_assert_nonnull(strstr(err->message, why));
}

static void test_refused(void)
{
    /*
     * Members of struct ht_caps: the memory is refused if one of them
     * contradicts the others or the memory's size
     */
    static const size_t fixed[] = {
        offsetof(struct ht_caps, ring_offset),
        offsetof(struct ht_caps, packet_size),
        offsetof(struct ht_caps, packets),
        offsetof(struct ht_caps, ring_stride),
        offsetof(struct ht_caps, mailbox_offset),
        offsetof(struct ht_caps, mailbox_size),
        offsetof(struct ht_caps, enable_offset),
    };
    HtTimeSegment clock = { .ns = HT_TIME_MAX_NS + 1 };
    g_autoptr(HtDead) d = NULL;
    struct ht_caps *caps;
    Fixture f;
    guint i;

    setup(&f, true);
    die(&f);
    caps = (struct ht_caps *)f.m.ram;
    refused(&f, 0, "not made by hypertrace");
    refused(&f, sizeof(*caps), "contradicts itself");
    refused(&f, f.m.size - 1, "contradicts itself");
    for (i = 0; i < G_N_ELEMENTS(fixed); i++) {
        f.m.ram[fixed[i]] ^= 0xff;
        refused(&f, f.m.size, "contradicts itself");
        f.m.ram[fixed[i]] ^= 0xff;
    }
    for (i = 0; i < 5; i++) {
        const uint32_t streams[] = { 0, STREAMS + 1, HT_STREAMS_MAX,
                                     HT_STREAMS_MAX + 1, UINT32_MAX };

        caps->streams = ht_le32(streams[i]);
        refused(&f, f.m.size, "contradicts itself");
    }
    caps->streams = ht_le32(STREAMS);
    caps->version = ht_le32(HT_VERSION + 1);
    refused(&f, f.m.size, "another version");
    caps->version = ht_le32(HT_VERSION);

    /* An open stream without a valid description is counted. */
    ct_memory_ring(&f.m, 0)->host.state = ht_le32(HT_STREAM_OPENED);
    d = parse(&f, NULL);
    g_assert_cmpuint(d->invalid, ==, 1);
    g_assert_cmpuint(d->streams[0].instance, ==, 0);
    g_assert_cmpuint(d->streams[1].instance, ==, f.ring.instance);

    ht_directory_set_clock(&f.m.directory, &clock);
    refused(&f, f.m.size, "clock");
    f.m.ram[ht_layout_directory(&f.m.caps) + HT_DIRECTORY_HEAD] ^= 0xff;
    refused(&f, f.m.size, "classes");
    teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/dead-streams/all", test_all);
    g_test_add_func("/dead-streams/overwritten", test_overwritten);
    g_test_add_func("/dead-streams/discarding", test_discarding);
    g_test_add_func("/dead-streams/cut", test_cut);
    g_test_add_func("/dead-streams/stale", test_stale);
    g_test_add_func("/dead-streams/closed", test_closed);
    g_test_add_func("/dead-streams/refused", test_refused);
    return g_test_run();
}
