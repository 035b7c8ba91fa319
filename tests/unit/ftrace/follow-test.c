/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follow a ring: no event is delivered twice or out of order, and if events are
 * missing between two delivered events, the next piece has HT_FT_PIECE_LOST
 */
#include "hypertrace/ftrace-follow.h"
#include "ftrace-guest.h"

#define SECOND UINT64_C(1000000000)

/* What was delivered of one processor */
typedef struct Seen {
    /* lowest sequence number that the next event may have */
    uint64_t next;
    uint64_t events;
    /* number of sequence numbers below @next that were not delivered */
    uint64_t missing;
    /* number of pieces with HT_FT_PIECE_LOST before which nothing is missing */
    uint64_t empty_gaps;
    uint64_t last_ns;
    uint32_t epoch, segment;
    uint64_t estimate;
} Seen;

typedef struct Test {
    FtGuest g;
    HtFtMem mem;
    HtFtFollow *f;
    Seen seen[8];
    uint64_t clock;
} Test;

static void take(void *opaque, const HtFtPiece *p)
{
    Test *t = opaque;
    Seen *s = &t->seen[p->cpu];
    /*
     * Events may be missing before this piece.  HT_FT_PIECE_LOST does not tell
     * whether events are missing before a processor's first event: the ring may
     * have wrapped before the first poll.
     */
    bool gap = p->flags & HT_FT_PIECE_LOST || s->events == 0;
    uint32_t events = 0;
    HtFtRecord r;
    HtFtIter it;
    HtFtStep step;

    g_assert_cmpuint(p->size, >, 0);
    g_assert_true(!(p->flags & HT_FT_PIECE_BEGIN) == (p->from != 0));
    g_assert_true(p->epoch > s->epoch ||
                  (p->epoch == s->epoch && p->segment >= s->segment));
    if (p->epoch != s->epoch || p->segment != s->segment) {
        s->last_ns = 0;
    }
    s->epoch = p->epoch;
    s->segment = p->segment;
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while ((step = ht_ft_iter_next(&it, &r)) == HT_FT_EVENT) {
        uint64_t seq;

        g_assert_true(fg_check(r.data, r.size, &seq));
        g_assert_cmpint(ht_ft_event_pid(r.data), ==, 1000 + p->cpu);
        g_assert_cmpuint(seq, >=, s->next);
        g_assert_true(gap || seq == s->next);
        if (gap) {
            s->missing += seq - s->next;
            s->empty_gaps += seq == s->next && s->events;
            s->estimate += p->lost_estimate;
        }
        gap = false;
        s->next = seq + 1;
        g_assert_cmpuint(r.ns, >=, s->last_ns);
        g_assert_cmpuint(r.ns, >=, p->begin_ns);
        g_assert_cmpuint(r.ns, <=, p->end_ns);
        s->last_ns = r.ns;
        events++;
    }
    g_assert_cmpint(step, ==, HT_FT_END);
    g_assert_cmpuint(events, ==, p->events);
    s->events += events;
}

static uint64_t test_clock(void *opaque)
{
    Test *t = opaque;

    return ++t->clock;
}

static const HtFtFollowOps ops = { .piece = take, .now = test_clock };

static void test_start(Test *t, HtFtLayout layout, uint32_t cpus, uint32_t nr,
                       uint32_t subbuf)
{
    HtFtRing *ring;

    *t = (Test) {
        .g = { .layout = layout, .cpus = cpus, .nr = nr, .subbuf = subbuf,
               .offset = 4096 },
    };
    fg_init(&t->g);
    t->mem = fg_mem(&t->g);
    ring = ht_ft_ring_at(&t->mem, 4096, NULL);
    g_assert_nonnull(ring);
    g_assert_cmpuint(ring->cpus, ==, cpus);
    t->f = ht_ft_follow_new(&t->mem, ring, &ops, t);
    ht_ft_follow_set_relaxed(t->f, false);
}

static void test_end(Test *t)
{
    ht_ft_follow_free(t->f);
    fg_clear(&t->g);
}

/*
 * Assert that the delivered and the missing events add up to the events that
 * the guest wrote on @cpu, and that the follower's statistics count the
 * delivered events and no invalid copy.
 */
static void check_all(Test *t, uint32_t cpu)
{
    HtFtStats stats = ht_ft_follow_stats(t->f, cpu);

    g_assert_cmpuint(t->seen[cpu].events + t->seen[cpu].missing, ==,
                     t->g.cpu[cpu].seq);
    g_assert_cmpuint(stats.events, ==, t->seen[cpu].events);
    g_assert_cmpuint(stats.bad, ==, 0);
}

static const struct {
    HtFtLayout layout;
    uint32_t subbuf;
} kinds[] = {
    { HT_FT_LAYOUT_6_11, 4096 },
    { HT_FT_LAYOUT_6_15, 4096 },
    { HT_FT_LAYOUT_6_15, 65536 },
    { HT_FT_LAYOUT_6_11, 16384 },
};

/*
 * If polls are frequent, each event is delivered, although the ring wraps and
 * the guest discards records and pauses.
 */
static void test_all(gconstpointer p)
{
    guint k = GPOINTER_TO_UINT(p), i;
    GRand *rand = g_rand_new_with_seed(k);
    uint64_t ns = 0;
    Test t;

    test_start(&t, kinds[k].layout, 3, 5, kinds[k].subbuf);
    for (i = 0; i < 60000; i++) {
        uint32_t cpu = g_rand_int_range(rand, 0, 2);

        ns += g_rand_int_range(rand, 0, 100) ? 100 : SECOND / 4;
        if (g_rand_int_range(rand, 0, 50) == 0) {
            fg_discard(&t.g, cpu, ns);
        }
        fg_event(&t.g, cpu, ns, g_rand_int_range(rand, 0, 40));
        if (g_rand_int_range(rand, 0, 20) == 0) {
            ht_ft_follow_look(t.f);
        }
    }
    ht_ft_follow_look(t.f);
    g_assert_cmpint(ht_ft_follow_look(t.f), ==, 0);
    for (i = 0; i < 3; i++) {
        check_all(&t, i);
        g_assert_cmpuint(t.seen[i].missing, ==, 0);
        g_assert_cmpuint(t.seen[i].empty_gaps, ==, 0);
    }
    g_assert_cmpuint(t.seen[2].events, ==, 0);
    g_assert_cmpuint(t.g.cpu[0].overrun, >, 10000);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).discarded, >, 500);
    g_assert_cmpuint(ht_ft_follow_epoch(t.f), ==, 0);
    test_end(&t);
    g_rand_free(rand);
}

/*
 * If the guest writes more between two polls than the ring holds, the second
 * poll delivers the ring's content, with a gap before it.
 */
static void test_laps(void)
{
    GRand *rand = g_rand_new_with_seed(5);
    uint64_t ns = SECOND, real, estimate;
    Test t;
    guint i, k;

    test_start(&t, HT_FT_LAYOUT_6_11, 1, 20, 4096);
    for (i = 0; i < 200; i++) {
        for (k = g_rand_int_range(rand, 0, 6000); k; k--) {
            ns += 1000;
            fg_event(&t.g, 0, ns, 2);
        }
        t.clock = ns;
        ht_ft_follow_look(t.f);
    }
    check_all(&t, 0);
    real = t.seen[0].missing;
    estimate = t.seen[0].estimate;
    g_assert_cmpuint(real, >, 100000);
    g_assert_cmpuint(t.seen[0].empty_gaps, ==, 0);
    /* at this steady rate, the sum of the estimates is right within 2 % */
    g_assert_cmpuint(estimate, >, real * 98 / 100);
    g_assert_cmpuint(estimate, <, real * 102 / 100);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, 0).lost, ==, estimate);
    g_assert_cmpuint(t.seen[0].events, >, 150000);
    test_end(&t);
    g_rand_free(rand);
}

/*
 * The guest empties the ring, as "echo > trace" does, and then writes nothing
 * for a second. The estimate of lost events must not count this second as time
 * in which the guest wrote events.
 */
static void test_pauses(void)
{
    uint64_t ns = SECOND, seen;
    guint round, i;
    Test t;

    test_start(&t, HT_FT_LAYOUT_6_11, 1, 20, 4096);
    for (round = 0; round < 40; round++) {
        for (i = 0; i < 1000; i++) {
            fg_event(&t.g, 0, ns += 1000, 2);
            if (i % 100 == 99 && i < 900) {
                t.clock = ns;
                ht_ft_follow_look(t.f);
            }
        }
        fg_reset(&t.g, 0);
        t.clock = ns;
        seen = t.seen[0].events;
        ht_ft_follow_look(t.f);
        g_assert_cmpuint(t.seen[0].events, ==, seen);
        ns += SECOND;
    }
    fg_event(&t.g, 0, ns, 2);
    t.clock = ns;
    ht_ft_follow_look(t.f);
    check_all(&t, 0);
    /*
     * each round loses 100 events; if its pause counted, the estimate would be
     * higher by a million
     */
    g_assert_cmpuint(t.seen[0].estimate, >, 39 * 50);
    g_assert_cmpuint(t.seen[0].estimate, <, 39 * 200);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, 0).gaps, ==, 40);
    test_end(&t);
}

/*
 * The first two polls lose nothing even if the ring wraps for the first time
 * between them, provided that the guest writes less between them than the ring
 * holds.
 */
static void test_first_lap(void)
{
    guint first, second, i;

    for (first = 100; first < 4000; first += 300) {
        for (second = 100; second < 4000; second += 290) {
            uint64_t ns = SECOND;
            Test t;

            test_start(&t, HT_FT_LAYOUT_6_11, 1, 40, 4096);
            for (i = 0; i < first; i++) {
                fg_event(&t.g, 0, ns += 1000, 2);
            }
            ht_ft_follow_look(t.f);
            for (i = 0; i < second; i++) {
                fg_event(&t.g, 0, ns += 1000, 2);
            }
            ht_ft_follow_look(t.f);
            check_all(&t, 0);
            g_assert_cmpuint(t.seen[0].missing, ==, 0);
            g_assert_cmpuint(ht_ft_follow_stats(t.f, 0).gaps, ==, 0);
            test_end(&t);
        }
    }
}

/*
 * Readers in the guest take pages out of the ring while it is followed. If
 * polls are frequent, each event is still delivered.
 */
static void test_readers(gconstpointer p)
{
    guint seldom = GPOINTER_TO_UINT(p), i;
    GRand *rand = g_rand_new_with_seed(seldom);
    uint64_t ns = SECOND;
    Test t;

    test_start(&t, HT_FT_LAYOUT_6_15, 1, 12, 4096);
    for (i = 0; i < 100000; i++) {
        ns += 1000;
        fg_event(&t.g, 0, ns, g_rand_int_range(rand, 0, 10));
        if (g_rand_int_range(rand, 0, 10) < (gint32)(i / 10000 % 3)) {
            fg_read(&t.g, 0);
        }
        if (g_rand_int_range(rand, 0, seldom) == 0) {
            ht_ft_follow_look(t.f);
        }
    }
    ht_ft_follow_look(t.f);
    check_all(&t, 0);
    g_assert_cmpuint(t.g.cpu[0].consumed, >, 10000);
    g_assert_cmpuint(t.g.cpu[0].overrun, >, 10000);
    if (seldom < 100) {
        g_assert_cmpuint(t.seen[0].missing, ==, 0);
    }
    test_end(&t);
    g_rand_free(rand);
}

/*
 * The guest runs "echo > trace" repeatedly: the follower misses only events
 * that were written after the last poll before such a command.
 */
static void test_reset(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    uint64_t ns = SECOND;
    Test t;
    guint i;

    test_start(&t, HT_FT_LAYOUT_6_11, 1, 9, 4096);
    for (i = 0; i < 100000; i++) {
        ns += 1000;
        fg_event(&t.g, 0, ns, 3);
        if (i % 1500 == 1499) {
            fg_reset(&t.g, 0);
        }
        if (g_rand_int_range(rand, 0, 60) == 0) {
            ht_ft_follow_look(t.f);
        }
    }
    ht_ft_follow_look(t.f);
    check_all(&t, 0);
    /* fewer than 1,000 of the 1,500 events before each of the 66 commands */
    g_assert_cmpuint(t.seen[0].missing, <, 66 * 1000);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, 0).gaps, >=, 60);
    test_end(&t);
    g_rand_free(rand);
}

/*
 * For test_steps(): poll at each third step of the writer. The follower must
 * not deliver an event that is not committed yet, and must miss no event.
 */
static void look_at_step(void *opaque)
{
    Test *t = opaque;
    static unsigned n;

    if (++n % 3 == 0) {
        ht_ft_follow_look(t->f);
    }
}

static void test_steps(gconstpointer relaxed)
{
    uint64_t ns = SECOND;
    Test t;
    guint i;

    test_start(&t, HT_FT_LAYOUT_6_15, 1, 4, 4096);
    ht_ft_follow_set_relaxed(t.f, relaxed);
    t.g.step = look_at_step;
    t.g.opaque = &t;
    for (i = 0; i < 20000; i++) {
        ns += 1000;
        fg_event(&t.g, 0, ns, i % 50);
        if (i % 40 == 0) {
            fg_read(&t.g, 0);
        }
    }
    t.g.step = NULL;
    ht_ft_follow_look(t.f);
    ht_ft_follow_look(t.f);
    check_all(&t, 0);
    g_assert_cmpuint(t.seen[0].missing, ==, 0);
    g_assert_cmpuint(t.seen[0].empty_gaps, ==, 0);
    test_end(&t);
}

/* A guest that writes events between two reads of its memory by the follower */
typedef struct Busy {
    Test *t;
    GRand *rand;
    uint64_t ns;
    uint32_t most;
    bool inside;
} Busy;

static void write_at_read(void *opaque)
{
    Busy *b = opaque;
    uint32_t n;

    if (b->inside || g_rand_int_range(b->rand, 0, 3)) {
        return;
    }
    b->inside = true;
    for (n = g_rand_int_range(b->rand, 0, b->most); n; n--) {
        b->ns += 1000;
        fg_event(&b->t->g, 0, b->ns, g_rand_int_range(b->rand, 0, 60));
        if (g_rand_int_range(b->rand, 0, 30) == 0) {
            fg_read(&b->t->g, 0);
        }
    }
    b->inside = false;
}

static void test_busy(gconstpointer p)
{
    Test t;
    Busy b = { &t, g_rand_new_with_seed(9), SECOND, GPOINTER_TO_UINT(p),
               false };
    guint i;

    test_start(&t, HT_FT_LAYOUT_6_11, 1, 6, 4096);
    ht_ft_follow_free(t.f);
    t.mem = fg_mem_read(&t.g);
    t.f = ht_ft_follow_new(&t.mem, ht_ft_ring_at(&t.mem, 4096, NULL), &ops,
                           &t);
    ht_ft_follow_set_relaxed(t.f, b.most % 2);
    t.g.step = write_at_read;
    t.g.opaque = &b;
    for (i = 0; i < 20000; i++) {
        ht_ft_follow_look(t.f);
    }
    b.inside = true;
    ht_ft_follow_look(t.f);
    ht_ft_follow_look(t.f);
    check_all(&t, 0);
    g_test_message("%" PRIu64 " events, %" PRIu64 " missing, %" PRIu64
                   " gaps without", t.seen[0].events, t.seen[0].missing,
                   t.seen[0].empty_gaps);
    g_assert_cmpuint(t.seen[0].events, >, 1000);
    test_end(&t);
    g_rand_free(b.rand);
}

/* The guest writes in another thread. */
typedef struct Writer {
    FtGuest *g;
    uint32_t events;
    int done;
} Writer;

static gpointer writer_run(gpointer opaque)
{
    Writer *w = opaque;
    uint64_t ns = SECOND;
    uint32_t i;

    for (i = 0; i < w->events; i++) {
        ns += 1000;
        fg_event(w->g, 0, ns, i % 23);
        if (i % 64 == 0) {
            g_thread_yield();
        }
    }
    __atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void test_thread(void)
{
    Test t;
    Writer w = { &t.g, 1000000, 0 };
    GThread *thread;

    test_start(&t, HT_FT_LAYOUT_6_11, 1, 16, 4096);
    thread = g_thread_new("guest", writer_run, &w);
    while (!__atomic_load_n(&w.done, __ATOMIC_ACQUIRE)) {
        ht_ft_follow_look(t.f);
    }
    g_thread_join(thread);
    ht_ft_follow_look(t.f);
    check_all(&t, 0);
    g_test_message("%" PRIu64 " events, %" PRIu64 " missing",
                   t.seen[0].events, t.seen[0].missing);
    test_end(&t);
}

/*
 * At each warm reset, the new kernel makes one processor's part of the ring
 * anew, and keeps the other processor's part. The follower counts each reset
 * as one epoch, and no event is missing.
 */
static void test_boots(void)
{
    uint64_t ns = 50 * SECOND;
    Test t;
    guint boot, i;

    test_start(&t, HT_FT_LAYOUT_6_11, 2, 9, 4096);
    for (boot = 0; boot < 5; boot++) {
        for (i = 0; i < 400; i++) {
            ns += 1000000;
            fg_event(&t.g, i % 2, ns, 3);
            if (i % 20 == 19) {
                ht_ft_follow_look(t.f);
            }
        }
        for (i = 0; i < 2; i++) {
            check_all(&t, i);
            g_assert_cmpuint(t.seen[i].epoch, ==, boot);
            g_assert_cmpuint(t.seen[i].segment, ==, 0);
            g_assert_cmpuint(t.seen[i].last_ns, >=, ns - 1000000);
        }
        g_assert_cmpuint(ht_ft_follow_epoch(t.f), ==, boot);
        g_assert_cmphex(ht_ft_follow_text(t.f), !=, 0);
        fg_boot(&t.g, boot % 2, false,
                UINT64_C(0xffff900000000000) + boot * 0x1000000);
        fg_boot(&t.g, 1 - boot % 2, true, t.g.va);
        ns = boot * SECOND / 10;
    }
    g_assert_cmpuint(t.seen[0].missing + t.seen[1].missing, ==, 0);
    test_end(&t);
}

/*
 * If the guest's clock goes back by less than HT_FT_EPOCH_NS, a new segment
 * begins for all processors, also for one that writes its first event later.
 */
static void test_segments(void)
{
    uint64_t ns = SECOND;
    Test t;
    guint i;

    test_start(&t, HT_FT_LAYOUT_6_15, 2, 9, 4096);
    for (i = 0; i < 300; i++) {
        ns += 1000000;
        if (i == 100) {
            ns -= 33000000;
        }
        fg_event(&t.g, 0, ns, 3);
        if (i > 150) {
            fg_event(&t.g, 1, ns, 3);
        }
        if (i > 90 && i < 200) {
            ht_ft_follow_look(t.f);
        }
    }
    ht_ft_follow_look(t.f);
    check_all(&t, 0);
    check_all(&t, 1);
    g_assert_cmpuint(ht_ft_follow_epoch(t.f), ==, 0);
    for (i = 0; i < 2; i++) {
        g_assert_cmpuint(t.seen[i].epoch, ==, 0);
        g_assert_cmpuint(t.seen[i].segment, ==, 1);
        g_assert_cmpuint(t.seen[i].missing, ==, 0);
    }
    test_end(&t);
}

/*
 * A ring that does not change between polls may be a copy: its events are read,
 * but ht_ft_follow_alive() is false until the ring changes.
 */
static void test_alive(void)
{
    uint64_t ns = SECOND;
    Test t;
    guint i;

    test_start(&t, HT_FT_LAYOUT_6_11, 1, 9, 4096);
    for (i = 0; i < 3000; i++) {
        fg_event(&t.g, 0, ++ns, 0);
    }
    for (i = 0; i < 10; i++) {
        ht_ft_follow_look(t.f);
        g_assert_false(ht_ft_follow_alive(t.f));
    }
    g_assert_cmpuint(t.seen[0].events, >, 1000);
    fg_event(&t.g, 0, ++ns, 0);
    ht_ft_follow_look(t.f);
    g_assert_true(ht_ft_follow_alive(t.f));
    test_end(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/follow/all/6.11", GUINT_TO_POINTER(0), test_all);
    g_test_add_data_func("/follow/all/6.15", GUINT_TO_POINTER(1), test_all);
    g_test_add_data_func("/follow/all/64k", GUINT_TO_POINTER(2), test_all);
    g_test_add_data_func("/follow/all/16k", GUINT_TO_POINTER(3), test_all);
    g_test_add_func("/follow/laps", test_laps);
    g_test_add_func("/follow/pauses", test_pauses);
    g_test_add_func("/follow/first-lap", test_first_lap);
    g_test_add_data_func("/follow/readers/often", GUINT_TO_POINTER(10),
                         test_readers);
    g_test_add_data_func("/follow/readers/seldom", GUINT_TO_POINTER(2000),
                         test_readers);
    g_test_add_func("/follow/reset", test_reset);
    g_test_add_data_func("/follow/steps/ordered", NULL, test_steps);
    g_test_add_data_func("/follow/steps/relaxed", GUINT_TO_POINTER(1),
                         test_steps);
    g_test_add_data_func("/follow/busy/some", GUINT_TO_POINTER(4), test_busy);
    g_test_add_data_func("/follow/busy/relaxed", GUINT_TO_POINTER(3),
                         test_busy);
    g_test_add_data_func("/follow/busy/much", GUINT_TO_POINTER(40),
                         test_busy);
    g_test_add_data_func("/follow/busy/relaxed-much", GUINT_TO_POINTER(41),
                         test_busy);
    g_test_add_func("/follow/thread", test_thread);
    g_test_add_func("/follow/boots", test_boots);
    g_test_add_func("/follow/segments", test_segments);
    g_test_add_func("/follow/alive", test_alive);
    return g_test_run();
}
