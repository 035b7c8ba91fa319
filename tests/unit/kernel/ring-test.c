/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follow an ordinary ftrace ring while the guest writes to it
 *
 * Promise: each event that the guest writes after the first poll is delivered
 * once and in order, or lies in a reported gap. The polls come between stores
 * of the writer or of a reader in the guest, or the guest writes between two
 * reads of a poll.
 */
#include "list-guest.h"

/*
 * RESET_NS: ns by which the host's clock advances when the guest empties its
 * ring. POLL_NS: ns by which it advances before each poll
 */
#define RESET_NS UINT64_C(11000000)
#define POLL_NS  UINT64_C(1000000)

typedef struct Seen {
    /* lowest sequence number that the next event can have */
    uint64_t next;
    uint64_t events;
    uint64_t gaps;
    /* sum of the estimates of lost events that gaps have reported */
    uint64_t told;
    /* number of sequence numbers that did not arrive */
    uint64_t jumped;
    /* part of @jumped for which no gap was reported */
    uint64_t silent;
} Seen;

typedef struct Test {
    ListGuest g;
    HtFtFollow *f;
    Seen seen[LG_CPUS];
    /*
     * the test polls after a store of the guest with a chance of 1 in @odds; 0:
     * never
     */
    unsigned odds;
    bool looking;
    /*
     * used only with read_mem(): the writer writes events before a read of the
     * memory with a chance of 1 in this number; 0: never
     */
    unsigned between;
    /*
     * the guest empties the ring, before it writes events at a read, with a
     * chance of 1 in this number; 0: never
     */
    unsigned resets;
    uint64_t ns;                /* the host's clock */
} Test;

static void piece(void *opaque, const HtFtPiece *p)
{
    Test *t = opaque;
    Seen *s = &t->seen[p->cpu];
    bool lost = p->flags & HT_FT_PIECE_LOST;
    HtFtIter it;
    HtFtRecord r;

    if (lost) {
        s->gaps++;
        s->told += p->lost_estimate;
    }
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        uint64_t seq = lg_check(r.data, r.size);

        g_assert_cmpuint(r.ns, ==, 1000 * (seq + 1));
        g_assert_cmpuint(seq, >=, s->next);
        if (seq > s->next && !lost) {
            s->silent += seq - s->next;
        }
        s->jumped += seq - s->next;
        s->next = seq + 1;
        s->events++;
        lost = false;
    }
}

static uint64_t now(void *opaque)
{
    return ((Test *)opaque)->ns;
}

static const HtFtFollowOps ops = { .piece = piece, .now = now };

static void look(Test *t)
{
    if (!t->looking) {
        t->looking = true;
        t->ns += POLL_NS;
        g_assert_cmpint(ht_ft_follow_look(t->f), >=, 0);
        t->looking = false;
    }
}

static void event(Test *t, uint32_t cpu)
{
    LgCpu *c = &t->g.cpu[cpu];

    lg_event(&t->g, cpu, 1000 * (c->seq + 1), g_rand_int_range(t->g.rand, 0,
                                                               12));
}

static bool one_in(Test *t, unsigned n)
{
    return n && !g_rand_int_range(t->g.rand, 0, n);
}

/* Read the guest's memory. The guest may write events first. */
static int read_mem(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Test *t = opaque;

    if (one_in(t, t->between)) {
        unsigned n = g_rand_int_range(t->g.rand, 1, 30);

        if (one_in(t, t->resets)) {
            lg_reset(&t->g, 0);
            t->ns += RESET_NS;
        }
        while (n--) {
            event(t, 0);
        }
    }
    memcpy(buf, t->g.mem + offset, len);
    return 0;
}

static void step(void *opaque)
{
    Test *t = opaque;

    if (t->f && t->odds && !g_rand_int_range(t->g.rand, 0, t->odds)) {
        look(t);
    }
}

static void start(Test *t, uint32_t cpus, uint32_t nodes, uint32_t seed,
                  unsigned odds)
{
    memset(t, 0, sizeof(*t));
    lg_init(&t->g, cpus, nodes, seed);
    t->g.step = step;
    t->g.opaque = t;
    t->odds = odds;
    t->f = ht_kernel_ring_follow(&t->g.space, &t->g.layout, t->g.array, cpus,
                                 0, &ops, t);
}

static void settle(Test *t)
{
    unsigned i;

    t->odds = 0;
    for (i = 0; i < 80 || ht_ft_follow_more(t->f); i++) {
        g_assert_cmpuint(i, <, 10000);
        look(t);
    }
}

static void finish(Test *t)
{
    ht_ft_follow_free(t->f);
    lg_clear(&t->g);
}

/*
 * @read, @swap, @shrink, @grow: this action of the guest follows an event with
 * a chance of 1 in this number; 0: never. There is no more @swap and @grow when
 * half of the guest's memory is allocated.
 */
typedef struct Row {
    const char *name;
    uint32_t nodes;
    /* as Test.odds */
    unsigned odds;
    unsigned events;
    unsigned read, swap, shrink, grow;
    bool lossless;              /* the test fails if an event is missing */
} Row;

static const Row rows[] = {
    { "room", 200, 40, 8000, 0, 0, 0, 0, true },
    { "wraps", 8, 60, 20000, 0, 0, 0, 0, true },
    { "wraps-late", 8, 9000, 40000, 0, 0, 0, 0, false },
    { "smallest", 2, 30, 20000, 0, 0, 0, 0, false },
    { "smallest-late", 2, 3000, 20000, 0, 0, 0, 0, false },
    { "read", 16, 60, 20000, 300, 0, 0, 0, false },
    { "read-late", 16, 5000, 40000, 150, 0, 0, 0, false },
    { "read-all", 16, 100, 20000, 3, 0, 0, 0, false },
    { "swap", 16, 60, 20000, 0, 300, 0, 0, false },
    { "swap-late", 16, 5000, 20000, 0, 200, 0, 0, false },
    { "shrink", 64, 60, 20000, 0, 0, 900, 0, true },
    { "resize", 24, 200, 20000, 0, 0, 700, 800, true },
    { "everything", 24, 500, 30000, 300, 500, 2000, 2000, false },
};

static void test_row(gconstpointer data)
{
    const Row *row = data;
    uint32_t seed;

    for (seed = 1; seed <= 6; seed++) {
        uint32_t cpus = 1 + seed % 2, cpu;
        Test t;
        unsigned i;

        start(&t, cpus, row->nodes, seed, row->odds);
        look(&t);
        for (i = 0; i < row->events; i++) {
            cpu = g_rand_int_range(t.g.rand, 0, cpus);
            event(&t, cpu);
            if (one_in(&t, row->read)) {
                lg_read(&t.g, cpu, false);
            }
            if (one_in(&t, row->swap) && t.g.used < t.g.size / 2) {
                lg_read(&t.g, cpu, true);
            }
            if (one_in(&t, row->shrink)) {
                lg_shrink(&t.g, cpu);
            }
            if (one_in(&t, row->grow) && t.g.used < t.g.size / 2) {
                lg_grow(&t.g, cpu);
            }
        }
        settle(&t);
        for (cpu = 0; cpu < cpus; cpu++) {
            const Seen *s = &t.seen[cpu];
            HtFtStats stats = ht_ft_follow_stats(t.f, cpu);

            /* each event was delivered, or counted as lost */
            g_assert_cmpuint(s->events, ==, stats.events);
            g_assert_cmpuint(s->events + stats.lost, ==,
                             t.g.cpu[cpu].entries);
            g_assert_cmpuint(stats.bad, ==, 0);
            g_assert_cmpuint(s->silent, ==, 0);
            if (row->lossless) {
                g_assert_cmpuint(s->gaps + stats.lost, ==, 0);
            }
            if (s->jumped) {
                g_assert_cmpuint(s->gaps, >, 0);
            }
        }
        finish(&t);
    }
}

/*
 * A follower whose first poll comes after the ring has wrapped reads all that
 * the ring holds, and reports that it was late.  Nothing counts as lost.
 */
static void test_late(void)
{
    HtFtStats stats;
    Test t;
    unsigned i;

    start(&t, 1, 8, 5, 0);
    for (i = 0; i < 20000; i++) {
        event(&t, 0);
    }
    settle(&t);
    stats = ht_ft_follow_stats(t.f, 0);
    g_assert_cmpuint(stats.late, ==, 1);
    g_assert_cmpuint(stats.lost + stats.gaps, ==, 0);
    g_assert_cmpuint(t.seen[0].events, ==, t.g.cpu[0].entries -
                     t.g.cpu[0].overrun);
    g_assert_cmpuint(t.seen[0].next, ==, 20000);
    for (i = 0; i < 50; i++) {
        event(&t, 0);
    }
    settle(&t);
    g_assert_cmpuint(t.seen[0].next, ==, 20050);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, 0).lost, ==, 0);
    finish(&t);
}

/*
 * In about half of the polls, the guest writes events while the poll reads, and
 * with @resets also empties the ring. Between polls the writer may write more
 * than the ring holds. No event is missing without a gap, and none is delivered
 * twice.
 */
static void test_busy(gconstpointer resets)
{
    uint32_t seed;

    for (seed = 1; seed <= 40; seed++) {
        HtFtStats stats;
        unsigned i, n;
        Test t;

        start(&t, 1, 4 + seed % 13, seed, 0);
        t.g.ft.read = read_mem;
        t.g.ft.opaque = &t;
        t.g.ft.map = NULL;
        t.resets = GPOINTER_TO_UINT(resets);
        event(&t, 0);
        settle(&t);
        for (n = 0; n < 60; n++) {
            unsigned events = g_rand_int_range(t.g.rand, 0, 200 * (n % 8 + 1));

            for (i = 0; i < events; i++) {
                event(&t, 0);
            }
            t.between = one_in(&t, 2) ? g_rand_int_range(t.g.rand, 2, 60) : 0;
            look(&t);
            t.between = 0;
            for (i = 0; i < 5 && one_in(&t, 2); i++) {
                look(&t);
            }
        }
        settle(&t);
        event(&t, 0);
        settle(&t);
        stats = ht_ft_follow_stats(t.f, 0);
        g_assert_cmpuint(t.seen[0].silent, ==, 0);
        if (!resets) {
            g_assert_cmpuint(t.seen[0].events + stats.lost, ==,
                             t.g.cpu[0].entries);
        }
        g_assert_cmpuint(t.seen[0].next, ==, t.g.cpu[0].seq);
        finish(&t);
    }
}

/*
 * If "echo >trace" removes events that no poll has taken, these events lie in a
 * gap.
 */
static void test_emptied(void)
{
    uint32_t seed;

    for (seed = 1; seed <= 60; seed++) {
        /* the numbers differ, so that the last page is filled differently */
        unsigned first = 1 + seed * 7, gone = seed % 3, i;
        Test t;

        start(&t, 1, 8, seed, 0);
        for (i = 0; i < first; i++) {
            event(&t, 0);
        }
        settle(&t);
        for (i = 0; i < gone; i++) {
            event(&t, 0);
        }
        lg_reset(&t.g, 0);
        for (i = 0; i < 10; i++) {
            event(&t, 0);
        }
        settle(&t);
        g_assert_cmpuint(t.seen[0].events, ==, first + 10);
        g_assert_cmpuint(t.seen[0].jumped, ==, gone);
        g_assert_cmpuint(t.seen[0].silent, ==, 0);
        if (gone) {
            g_assert_cmpuint(t.seen[0].gaps, ==, 1);
        }
        finish(&t);
    }
}

/*
 * "echo >trace" after all events were delivered loses nothing: all later events
 * are delivered, and none is counted as lost.
 */
static void test_reset(void)
{
    uint32_t seed;

    for (seed = 1; seed <= 20; seed++) {
        unsigned i, n;
        uint64_t before;
        Test t;

        start(&t, 1, 8, seed, 0);
        for (n = 0; n < 5; n++) {
            for (i = 0; i < 300 * seed; i++) {
                event(&t, 0);
                if (i % 100 == 0) {
                    look(&t);
                }
            }
            settle(&t);
            before = t.seen[0].events;
            t.odds = 5;
            lg_reset(&t.g, 0);
            settle(&t);
            for (i = 0; i < 10; i++) {
                event(&t, 0);
            }
            settle(&t);
            g_assert_cmpuint(t.seen[0].events, ==, before + 10);
            g_assert_cmpuint(t.seen[0].jumped, ==, 0);
        }
        g_assert_cmpuint(ht_ft_follow_stats(t.f, 0).lost, ==, 0);
        finish(&t);
    }
}

/*
 * A poll copies at most HT_KERNEL_RING_READS pages; the next polls read the
 * rest. ht_ft_follow_polls() returns at least the number of polls that this
 * takes.
 */
static void test_bounded(void)
{
    Test t;
    unsigned i, looks = 0;

    start(&t, 1, 4000, 3, 0);
    for (i = 0; i < 150000; i++) {
        event(&t, 0);
    }
    do {
        look(&t);
        g_assert_cmpuint(ht_ft_follow_copied(t.f), <=, 4096u *
                         HT_KERNEL_RING_READS);
        looks++;
    } while (ht_ft_follow_more(t.f));
    g_assert_cmpuint(looks, >, 1);
    g_assert_cmpuint(looks, <=, ht_ft_follow_polls(t.f));
    g_assert_cmpuint(t.seen[0].events, ==, 150000);
    finish(&t);
}

/* The number of pages that a poll copies is bounded for LG_CPUS processors. */
static void test_many(void)
{
    unsigned i, cpu;
    Test t;

    start(&t, LG_CPUS, 64, 3, 0);
    for (cpu = 0; cpu < LG_CPUS; cpu++) {
        for (i = 0; i < 3000; i++) {
            event(&t, cpu);
        }
    }
    do {
        look(&t);
        /* A page takes at least 3 of the HT_KERNEL_RING_READS reads. */
        g_assert_cmpuint(ht_ft_follow_copied(t.f), <=, 4096u *
                         HT_KERNEL_RING_READS / 3);
    } while (ht_ft_follow_more(t.f));
    for (cpu = 0; cpu < LG_CPUS; cpu++) {
        g_assert_cmpuint(t.seen[cpu].events, ==, 3000);
    }
    finish(&t);
}

/*
 * Events of a node that could not be read at first are delivered later, and do
 * not count as written since: ht_ft_follow_alive() stays false.
 */
static void test_unreadable(void)
{
    uint64_t at, page;
    Test t;

    start(&t, 1, 8, 3, 0);
    event(&t, 0);
    at = t.g.cpu[0].tail + t.g.layout.node_page;
    page = lg_get(&t.g, at);
    lg_put(&t.g, at, page + 1);
    g_assert_cmpint(ht_ft_follow_look(t.f), <, 0);
    lg_put(&t.g, at, page);
    settle(&t);
    g_assert_cmpuint(t.seen[0].events, ==, 1);
    g_assert_false(ht_ft_follow_alive(t.f));
    event(&t, 0);
    settle(&t);
    g_assert_true(ht_ft_follow_alive(t.f));
    finish(&t);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name = g_strdup_printf("/kernel-ring/%s",
                                                rows[i].name);

        g_test_add_data_func(name, &rows[i], test_row);
    }
    g_test_add_func("/kernel-ring/late", test_late);
    g_test_add_data_func("/kernel-ring/busy", GUINT_TO_POINTER(0), test_busy);
    g_test_add_data_func("/kernel-ring/busy-resets", GUINT_TO_POINTER(4),
                         test_busy);
    g_test_add_func("/kernel-ring/emptied", test_emptied);
    g_test_add_func("/kernel-ring/reset", test_reset);
    g_test_add_func("/kernel-ring/bounded", test_bounded);
    g_test_add_func("/kernel-ring/many", test_many);
    g_test_add_func("/kernel-ring/unreadable", test_unreadable);
    return g_test_run();
}
