/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test what the follower of a ring reports about events: bounds of their host
 * time, their boot, and gaps between them
 */
#include "hypertrace/ftrace-follow.h"
#include "ftrace-guest.h"

#define SECOND UINT64_C(1000000000)
#define AT     4096

typedef struct Test {
    FtGuest g;
    HtFtMem mem;
    HtFtMem inner;              /* the guest's memory without injected faults */
    /* offset in the memory of a byte that cannot be read; 0: none */
    uint64_t bad_at;
    HtFtFollow *f;
    uint64_t clock;             /* the host's clock in ns */
    /* value of @clock when events were last committed; 0 if not set */
    uint64_t committed;
    /*
     * sequence number of the first event that may have a host_before; 0: do not
     * check host_before
     */
    uint64_t from;
    uint64_t events;
    uint64_t dated;             /* checked events that have a host_before */
    uint32_t flags;             /* HtFtPiece.flags of the first piece */
    uint32_t epoch;
    uint64_t text;
} Test;

/*
 * HtFtFollowOps.piece: if Test.from is set, assert for each event but the first
 * of a piece that host_before is 0 for an event before Test.from, and at most
 * Test.committed for a later event.
 */
static void take(void *opaque, const HtFtPiece *p)
{
    Test *t = opaque;
    HtFtRecord r;
    HtFtIter it;
    uint32_t n = 0;

    t->flags = t->events ? t->flags : p->flags;
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        uint64_t seq;

        g_assert_true(fg_check(r.data, r.size, &seq));
        if (n++ && t->from) {
            g_assert_cmpuint(p->host_before, <=,
                             seq >= t->from ? t->committed : 0);
            t->dated += p->host_before != 0;
        }
        t->events++;
    }
    g_assert_cmpuint(p->host_after, >=, t->committed);
    g_assert_cmpuint(p->from % 4, ==, 0);
    t->epoch = p->epoch;
}

static uint64_t host_clock(void *opaque)
{
    return ((Test *)opaque)->clock;
}

static const HtFtFollowOps ops = { .piece = take, .now = host_clock };

static int faulty_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Test *t = opaque;

    if (t->bad_at && offset <= t->bad_at && t->bad_at - offset < len) {
        return -EIO;
    }
    return t->inner.read(t->inner.opaque, offset, buf, len);
}

static void follow(Test *t)
{
    t->f = ht_ft_follow_new(&t->mem, ht_ft_ring_at(&t->mem, AT, NULL), &ops,
                            t);
    ht_ft_follow_set_relaxed(t->f, false);
}

static void test_start(Test *t, uint32_t cpus, uint32_t nr)
{
    *t = (Test) {
        .g = { .layout = HT_FT_LAYOUT_6_11, .cpus = cpus, .nr = nr,
               .subbuf = 4096, .offset = AT },
        .clock = SECOND,
    };
    fg_init(&t->g);
    t->inner = fg_mem_read(&t->g);
    t->mem = (HtFtMem) { .size = t->inner.size, .read = faulty_read,
                         .opaque = t };
    follow(t);
}

static void test_end(Test *t)
{
    ht_ft_follow_free(t->f);
    fg_clear(&t->g);
}

/* Write ten events 1 us apart, and return the time of the last one. */
static uint64_t write_ten(Test *t, uint64_t ns)
{
    uint32_t i;

    for (i = 0; i < 10; i++) {
        fg_event(&t->g, 0, ns += 1000, 3);
    }
    return ns;
}

/*
 * Advance the host's clock by 10 ms, then poll; returns the result of the poll
 */
static int64_t look(Test *t)
{
    t->clock += 10000000;
    return ht_ft_follow_look(t->f);
}

/*
 * Promise: if a poll stops at its limit and leaves events in the ring, its
 * start does not become the lower bound (host_before) of these events, which
 * may be older. Here they have no lower bound, because no earlier poll has read
 * everything.
 */
static void test_before_full(void)
{
    uint64_t ns = SECOND, looks = 0, bytes = 0;
    uint32_t i;
    Test t;

    /* write more bytes than one poll reads */
    test_start(&t, 1, HT_FT_LOOK_MAX / 3000);
    for (i = 0; bytes < (HT_FT_LOOK_MAX + HT_FT_LOOK_MAX / 64); i++) {
        fg_event(&t.g, 0, ns += 1000, 300);
        bytes += 1224;
    }
    t.from = t.g.cpu[0].seq;
    do {
        look(&t);
        looks++;
    } while (ht_ft_follow_more(t.f));
    g_assert_cmpuint(looks, >, 1);
    g_assert_cmpuint(t.events, ==, t.g.cpu[0].seq);
    /* the follower has read everything, so the next events have lower bounds */
    t.clock += SECOND;
    t.committed = t.clock;
    ns = write_ten(&t, ns);
    look(&t);
    g_assert_cmpuint(t.dated, >=, 5);
    test_end(&t);
}

/*
 * Promise: host_before is right also if the host may reorder loads. The
 * follower then delivers each event one poll later than otherwise.
 */
static void test_before_relaxed(void)
{
    uint64_t ns = SECOND;
    uint32_t i, k;
    Test t;

    test_start(&t, 1, 8);
    ht_ft_follow_set_relaxed(t.f, true);
    t.from = 1;
    fg_event(&t.g, 0, ns, 3);
    for (i = 0; i < 200; i++) {
        look(&t);
        look(&t);
        t.clock += 1000;
        t.committed = t.clock;
        for (k = 0; k < 30; k++) {
            fg_event(&t.g, 0, ns += 1000, 3);
        }
        t.clock += 1000;
    }
    look(&t);
    look(&t);
    g_assert_cmpuint(t.events, ==, 200 * 30 + 1);
    g_assert_cmpuint(t.dated, >, 200 * 25);
    test_end(&t);
}

/*
 * Promise: if a page of one processor cannot be read, the events of the other
 * processors are delivered. The events of this processor are delivered once the
 * page can be read, and do not count as written since: ht_ft_follow_alive()
 * stays false.
 */
static void test_unreadable(void)
{
    uint64_t ns = SECOND;
    uint32_t i;
    Test t;

    test_start(&t, 3, 8);
    for (i = 0; i < 30; i++) {
        fg_event(&t.g, i % 3, ns += 1000, 3);
    }
    t.bad_at = fg_page(&t.g, 1, 1) + 8;
    g_assert_cmpint(look(&t), >, 0);
    g_assert_cmpint(look(&t), ==, -EIO);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, 0).events, ==, 10);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, 1).events, ==, 0);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, 2).events, ==, 10);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).errors, ==, 2);
    t.bad_at = 0;
    look(&t);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, 1).events, ==, 10);
    g_assert_false(ht_ft_follow_alive(t.f));
    test_end(&t);
}

/* A vCPU that did not run commits an event 700 ms late; this is no new boot. */
static void test_late_commit(void)
{
    uint64_t ns = 50 * SECOND, late, text;
    uint32_t i;
    Test t;

    test_start(&t, 2, 8);
    for (i = 0; i < 10; i++) {
        fg_event(&t.g, i % 2, ns += 1000, 3);
    }
    look(&t);
    late = ns + 1000;
    for (i = 0; i < 700; i++) {
        fg_event(&t.g, 0, ns += 1000000, 3);
        look(&t);
    }
    text = ht_ft_follow_text(t.f);
    fg_event(&t.g, 1, late, 3);
    look(&t);
    g_assert_cmpuint(ht_ft_follow_epoch(t.f), ==, 0);
    g_assert_cmphex(ht_ft_follow_text(t.f), ==, text);
    g_assert_cmpuint(t.events, ==, 711);
    test_end(&t);
}

/*
 * After a reset, a kernel before Linux 6.15 that keeps the ring leaves the text
 * address of the previous kernel in the ring's header. Without KASLR, or after
 * a snapshot was loaded, the ring is mapped where it was, and
 * ht_ft_follow_text() returns this address. With KASLR the ring is mapped
 * elsewhere, and ht_ft_follow_text() returns 0.
 */
static void test_text(gconstpointer kaslr)
{
    uint64_t ns = 50 * SECOND, text;
    uint32_t i;
    Test t;

    test_start(&t, 2, 8);
    for (i = 0; i < 10; i++) {
        fg_event(&t.g, i % 2, ns += 1000, 3);
    }
    look(&t);
    text = ht_ft_follow_text(t.f);
    g_assert_cmphex(text, !=, 0);
    for (i = 0; i < 2; i++) {
        fg_boot(&t.g, i, true, t.g.va + (kaslr ? 0x40000000 : 0));
    }
    ns = 3 * SECOND;
    for (i = 0; i < 10; i++) {
        fg_event(&t.g, i % 2, ns += 1000, 3);
        look(&t);
    }
    g_assert_cmpuint(ht_ft_follow_epoch(t.f), ==, 1);
    g_assert_cmphex(ht_ft_follow_text(t.f), ==, kaslr ? 0 : text);
    test_end(&t);
}

/*
 * Promise: if a processor's part of the ring wraps before the first poll, the
 * processor counts in HtFtStats.late, its first piece has HT_FT_PIECE_LATE, and
 * no gap is counted.
 */
static void test_late(void)
{
    uint64_t ns = SECOND;
    Test t;

    test_start(&t, 2, 8);
    while (t.g.cpu[0].overrun == 0) {
        /* nothing has been overwritten yet: the first poll reads all events */
        ht_ft_follow_free(t.f);
        follow(&t);
        t.events = 0;
        look(&t);
        g_assert_cmpuint(t.flags & (HT_FT_PIECE_LATE | HT_FT_PIECE_LOST), ==,
                         0);
        g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).late, ==, 0);
        fg_event(&t.g, 0, ns += 1000, 100);
    }
    ht_ft_follow_free(t.f);
    follow(&t);
    t.events = 0;
    look(&t);
    g_assert_cmpuint(t.flags & HT_FT_PIECE_LATE, !=, 0);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).late, ==, 1);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).gaps, ==, 0);
    test_end(&t);
}

/*
 * Promise: if the last record in the ring is malformed, a gap is counted, even
 * if no event follows.
 */
static void test_lost_at_end(void)
{
    uint64_t ns = SECOND, page;
    uint32_t used;
    Test t;

    test_start(&t, 1, 8);
    page = fg_page(&t.g, 0, 1);
    ns = write_ten(&t, ns);
    look(&t);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).gaps, ==, 0);
    /* a committed record that is malformed: it is longer than the page */
    used = ht_get_le32(t.g.mem + page + 8);
    fg_put(&t.g, page + HT_FT_PAGE_HEADER + used, UINT64_C(0x7fff) << 32);
    fg_put(&t.g, page + 8, used + 8);
    look(&t);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).gaps, ==, 1);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).bad, >, 0);
    /*
     * The follower must skip the rest of a page with a malformed record. Here
     * the middle of the next event looks like a record.
     */
    fg_event(&t.g, 0, ns += 1000, 6);
    look(&t);
    g_assert_cmpuint(t.events, ==, 10);
    fg_event(&t.g, 0, ns += 1000, 1000);
    look(&t);
    g_assert_cmpuint(t.events, ==, 11);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).gaps, ==, 1);
    test_end(&t);
}

/* Promise: a commit count that is no multiple of 4 causes no unaligned read. */
static void test_unaligned(gconstpointer relaxed)
{
    uint64_t ns = SECOND, v;
    uint32_t i;
    Test t;

    test_start(&t, 1, 8);
    /*
     * reads of mapped memory must have an address and length that are
     * multiples of 4
     */
    t.mem = fg_mem(&t.g);
    ht_ft_follow_free(t.f);
    follow(&t);
    ht_ft_follow_set_relaxed(t.f, relaxed);
    g_assert_cmpint(ht_ft_mem_read(&t.mem, AT, &v, 7), ==, -EINVAL);
    g_assert_cmpint(ht_ft_mem_read(&t.mem, AT + 2, &v, 4), ==, -EINVAL);
    ns = write_ten(&t, ns);
    look(&t);
    look(&t);
    g_assert_cmpuint(t.events, ==, 10);
    for (i = 301; i < 4000; i++) {
        fg_put(&t.g, fg_page(&t.g, 0, 1) + 8, i);
        look(&t);
        look(&t);
    }
    g_assert_cmpuint(t.events, ==, 10);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).bad, >, 0);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).errors, ==, 0);
    test_end(&t);
}

/*
 * Promise: a poll ends soon after HT_FT_LOOK_MAX bytes, even if it found no
 * valid record in them.
 */
static void test_bounded(void)
{
    uint32_t i, pages = HT_FT_LOOK_MAX / 3000;
    uint64_t ns = SECOND;
    Test t;

    test_start(&t, 1, pages);
    for (i = 0; i < pages * 3; i++) {
        fg_event(&t.g, 0, ns += 1000, 300);
    }
    for (i = 0; i < pages; i++) {
        uint64_t page = fg_page(&t.g, 0, i);

        /* a record that is longer than the page */
        fg_put(&t.g, page + HT_FT_PAGE_HEADER, UINT64_C(0x7fff) << 32);
    }
    look(&t);
    g_assert_cmpuint(t.events, ==, 0);
    g_assert_true(ht_ft_follow_more(t.f));
    g_assert_cmpuint(ht_ft_follow_copied(t.f), >=, HT_FT_LOOK_MAX / 2);
    g_assert_cmpuint(ht_ft_follow_copied(t.f), <=, HT_FT_LOOK_MAX + (1 << 16));
    for (i = 0; ht_ft_follow_more(t.f); i++) {
        look(&t);
        g_assert_cmpuint(i, <, 16);
    }
    g_assert_cmpuint(ht_ft_follow_copied(t.f), <, HT_FT_LOOK_MAX);
    test_end(&t);
}

/* @next: by processor, number that its next event must have */
typedef struct Pieces {
    Test t;
    uint64_t next[2];
} Pieces;

/*
 * Assert that the events of a processor come once and in order, and that events
 * are missing only before a piece with HT_FT_PIECE_LOST.
 */
static void count_piece(void *opaque, const HtFtPiece *p)
{
    bool lost = p->flags & HT_FT_PIECE_LOST;
    Pieces *pieces = opaque;
    HtFtRecord r;
    HtFtIter it;

    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        uint64_t seq;

        g_assert_true(fg_check(r.data, r.size, &seq));
        if (lost) {
            g_assert_cmpuint(seq, >=, pieces->next[p->cpu]);
            pieces->next[p->cpu] = seq;
            lost = false;
        }
        g_assert_cmpuint(seq, ==, pieces->next[p->cpu]++);
    }
}

static void pieces_start(Pieces *p, uint32_t cpus, uint32_t pages)
{
    static const HtFtFollowOps counting = {
        .piece = count_piece,
    };

    *p = (Pieces) { 0 };
    test_start(&p->t, cpus, pages);
    ht_ft_follow_free(p->t.f);
    p->t.f = ht_ft_follow_new(&p->t.mem, ht_ft_ring_at(&p->t.mem, AT, NULL),
                              &counting, p);
    ht_ft_follow_set_relaxed(p->t.f, false);
}

/*
 * Promise: if each poll stops at its limit because the guest writes to one
 * processor's part all the time, the events of the others are still delivered.
 */
static void test_fair(gconstpointer busy)
{
    const uint32_t cpu = GPOINTER_TO_UINT(busy), other = !cpu;
    uint64_t ns = SECOND;
    unsigned looks;
    uint32_t i;
    Pieces p;

    pieces_start(&p, 2, HT_FT_LOOK_MAX / 3000);
    for (looks = 0; looks < 12; looks++) {
        /*
         * Write 3 events to each page, and to more pages than a poll may copy.
         */
        for (i = 0; i < HT_FT_LOOK_MAX / 6000 * 3; i++) {
            fg_event(&p.t.g, cpu, ns += 1000, 330);
        }
        fg_event(&p.t.g, other, ns += 1000, 3);
        look(&p.t);
        g_assert_true(ht_ft_follow_more(p.t.f));
        g_assert_cmpuint(p.next[other] + 3, >=, p.t.g.cpu[other].seq);
    }
    g_assert_cmpuint(p.next[cpu], >, 12 * 3);
    test_end(&p.t);
}

/*
 * The guest runs "echo > trace" while the kernel writes to the readers' page,
 * which is not full. Promise: the rest of that page does not count as a bad
 * record.
 */
static void test_reset_is_not_bad(void)
{
    uint64_t ns = SECOND;
    Test t;

    test_start(&t, 1, 8);
    ns = write_ten(&t, ns);
    g_assert_true(fg_read(&t.g, 0));
    fg_event(&t.g, 0, ns += 1000, 3);
    look(&t);
    fg_reset(&t.g, 0);
    fg_event(&t.g, 0, ns += 1000, 3);
    g_assert_true(fg_read(&t.g, 0));
    look(&t);
    look(&t);
    g_assert_cmpuint(t.events, ==, 12);
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).bad, ==, 0);
    test_end(&t);
}

/* After "echo > trace", no event of the cleared pages is delivered twice. */
static void test_reset_doubles_nothing(void)
{
    uint64_t ns = SECOND;
    uint32_t i, round;
    Test t;

    test_start(&t, 1, 8);
    for (round = 0; round < 50; round++) {
        for (i = 0; i < 1000 + round; i++) {
            fg_event(&t.g, 0, ns += 1000, 2);
            if (i % 20 == 0) {
                look(&t);
            }
        }
        look(&t);
        fg_reset(&t.g, 0);
        look(&t);
        look(&t);
        g_assert_cmpuint(t.events, ==, t.g.cpu[0].seq);
    }
    g_assert_cmpuint(ht_ft_follow_stats(t.f, -1).bad, ==, 0);
    test_end(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/claims/before/full", test_before_full);
    g_test_add_func("/claims/before/relaxed", test_before_relaxed);
    g_test_add_func("/claims/unreadable", test_unreadable);
    g_test_add_func("/claims/late-commit", test_late_commit);
    g_test_add_data_func("/claims/text/same", NULL, test_text);
    g_test_add_data_func("/claims/text/kaslr", GUINT_TO_POINTER(1),
                         test_text);
    g_test_add_func("/claims/late", test_late);
    g_test_add_func("/claims/lost-at-end", test_lost_at_end);
    g_test_add_data_func("/claims/unaligned/ordered", NULL, test_unaligned);
    g_test_add_data_func("/claims/unaligned/relaxed", GUINT_TO_POINTER(1),
                         test_unaligned);
    g_test_add_func("/claims/bounded", test_bounded);
    g_test_add_data_func("/claims/fair/0", GUINT_TO_POINTER(0), test_fair);
    g_test_add_data_func("/claims/fair/1", GUINT_TO_POINTER(1), test_fair);
    g_test_add_func("/claims/reset-is-not-bad", test_reset_is_not_bad);
    g_test_add_func("/claims/reset-doubles-nothing",
                    test_reset_doubles_nothing);
    return g_test_run();
}
