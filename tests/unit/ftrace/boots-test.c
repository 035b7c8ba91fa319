/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test how the follower follows a ring over warm resets, after which the next
 * kernel may keep, clear or replace the ring: no event is delivered twice, each
 * has the right boot and guest time, and all boots are counted
 */
#include "hypertrace/ftrace-follow.h"
#include "ftrace-guest.h"

#define MS      UINT64_C(1000000)
#define CPUS    2
#define BOOTS   7
#define PAGES   9

#define OLD HT_FT_LAYOUT_6_11
#define NEW HT_FT_LAYOUT_6_15

typedef struct Kind {
    const char *name;
    HtFtLayout layout;
    /* effect of the reset on each processor's part of the ring */
    FgBoot boot[CPUS];
    /* number of events of each processor in a boot */
    uint32_t events;
    /* number of events between polls; 0: poll between the guest's stores */
    uint32_t poll;
    /*
     * maximum number of events that a processor writes between the last poll of
     * a boot and the reset
     */
    uint32_t unseen;
    bool nokaslr;
    /*
     * guest time in ns in which the first processor writes its events of the
     * first boot; 0: 20 s
     */
    uint64_t lasts;
    /*
     * factor by which a boot lasts longer than the previous one; 0: equally
     * long
     */
    uint32_t grows;
    bool relaxed;
    /* the ring wraps between polls, so events may be missing */
    bool loses;
} Kind;

/* An event that the guest wrote; its array index is its sequence number */
typedef struct Event {
    uint64_t ns;
    uint32_t boot;
} Event;

typedef struct Test {
    const Kind *kind;
    FtGuest g;
    HtFtMem mem;
    HtFtFollow *f;
    GArray *events[CPUS];
    uint64_t next[CPUS];
    uint64_t missing;
    uint32_t written;
} Test;

static void take(void *opaque, const HtFtPiece *p)
{
    Test *t = opaque;
    HtFtRecord r;
    HtFtIter it;

    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        const Event *e;
        uint64_t seq;

        g_assert_true(fg_check(r.data, r.size, &seq));
        g_assert_cmpuint(seq, <, t->events[p->cpu]->len);
        e = &g_array_index(t->events[p->cpu], Event, seq);
        g_assert_cmpuint(r.ns, ==, e->ns);
        g_assert_cmpuint(p->epoch, ==, e->boot);
        g_assert_cmpuint(seq, >=, t->next[p->cpu]);
        t->missing += seq - t->next[p->cpu];
        t->next[p->cpu] = seq + 1;
    }
}

static const HtFtFollowOps ops = { .piece = take };

static void look_at_step(void *opaque)
{
    Test *t = opaque;

    ht_ft_follow_look(t->f);
}

/*
 * Poll twice: if the host may reorder loads, the follower delivers events one
 * poll later.
 */
static void look(Test *t)
{
    ht_ft_follow_look(t->f);
    ht_ft_follow_look(t->f);
}

static void write_event(Test *t, uint32_t cpu, uint32_t boot, uint64_t ns,
                        bool seen)
{
    Event e = { ns, boot };

    /* append before fg_event(), which may poll before it returns */
    g_array_append_val(t->events[cpu], e);
    fg_event(&t->g, cpu, ns, ns / MS % 20);
    if (seen && t->kind->poll && ++t->written % t->kind->poll == 0) {
        ht_ft_follow_look(t->f);
    }
}

/*
 * Write the events of a boot, and poll. The second processor comes up after a
 * quarter of the first processor's events, and writes as many events as the
 * first.
 */
static void run_boot(Test *t, uint32_t boot)
{
    const Kind *k = t->kind;
    uint64_t ns = boot * 7 * MS, lasts = k->lasts ? k->lasts : 20000 * MS;
    uint32_t i, late = k->events / 4, unseen = k->unseen;

    for (i = 0; k->grows && i < boot; i++) {
        lasts *= k->grows;
    }
    for (i = 0; i < k->events + late; i++) {
        bool seen = i + unseen < k->events + late;

        ns += lasts / k->events;
        if (i < k->events) {
            write_event(t, 0, boot, ns, seen);
        }
        if (i == late) {
            fg_up(&t->g, 1);
        }
        if (i >= late) {
            write_event(t, 1, boot, ns + 1000, seen);
        }
        if (i + unseen + 1 == k->events + late) {
            look(t);
            t->g.step = NULL;
        }
    }
}

static void test_start(Test *t, const Kind *k)
{
    uint32_t n;

    *t = (Test) {
        .kind = k,
        .g = { .layout = k->layout, .cpus = CPUS, .nr = PAGES, .subbuf = 4096,
               .offset = 4096 },
    };
    fg_init(&t->g);
    t->g.opaque = t;
    t->mem = fg_mem(&t->g);
    for (n = 0; n < CPUS; n++) {
        t->events[n] = g_array_new(false, false, sizeof(Event));
    }
    t->f = ht_ft_follow_new(&t->mem, ht_ft_ring_at(&t->mem, 4096, NULL), &ops,
                            t);
    ht_ft_follow_set_relaxed(t->f, k->relaxed);
}

/* Assert that each processor's last event was delivered. */
static void test_end(Test *t)
{
    uint32_t n;

    for (n = 0; n < CPUS; n++) {
        g_assert_cmpuint(t->next[n], ==, t->events[n]->len);
        g_array_unref(t->events[n]);
    }
    ht_ft_follow_free(t->f);
    fg_clear(&t->g);
}

static void test_boots(gconstpointer opaque)
{
    const Kind *k = opaque;
    uint64_t va = UINT64_C(0xffff900000000000);
    uint32_t boot, n;
    HtFtStats stats;
    Test t;

    test_start(&t, k);
    for (boot = 0; boot < BOOTS; boot++) {
        t.g.step = k->poll ? NULL : look_at_step;
        for (n = 0; boot && n < CPUS; n++) {
            fg_take_over(&t.g, n, k->boot[n], k->nokaslr ? t.g.va :
                         va + boot * UINT64_C(0x40000000));
        }
        if (boot) {
            look(&t);
            fg_up(&t.g, 0);
        }
        run_boot(&t, boot);
        g_assert_cmpuint(ht_ft_follow_epoch(t.f), ==, boot);
    }
    look(&t);
    g_assert_cmpuint(ht_ft_follow_epoch(t.f), ==, BOOTS - 1);
    stats = ht_ft_follow_stats(t.f, -1);
    g_assert_cmpuint(stats.bad, ==, 0);
    g_assert_cmpuint(stats.errors, ==, 0);
    if (!k->loses && !k->nokaslr) {
        g_assert_cmpuint(stats.gaps, ==, 0);
    }
    /*
     * Only events that were written after the boot's last poll may be missing.
     */
    if (!k->loses) {
        g_assert_cmpuint(t.missing, <=, (BOOTS - 1) * CPUS * k->unseen);
    }
    test_end(&t);
}

/*
 * Promise: if a guest hangs early in its second boot, after it has written
 * events to one page only, these events are delivered after many polls. At
 * first, the follower cannot tell whether the new kernel wrote this page's
 * commit count.
 */
static void test_hangs(void)
{
    static const Kind kind = { .layout = OLD, .poll = 1 };
    uint32_t i;
    Test t;

    test_start(&t, &kind);
    for (i = 0; i < 10; i++) {
        write_event(&t, 0, 0, 5000 * MS + i, true);
    }
    fg_take_over(&t.g, 0, FG_KEPT, UINT64_C(0xffff900000000000));
    look(&t);
    for (i = 0; i < 10; i++) {
        write_event(&t, 0, 1, i, false);
    }
    for (i = 0; i < 1000; i++) {
        look(&t);
    }
    test_end(&t);
}

static const Kind kinds[] = {
    { "kept", OLD, { FG_KEPT, FG_KEPT }, .events = 300, .poll = 7 },
    { "kept-7", NEW, { FG_KEPT, FG_KEPT }, .events = 300, .poll = 7 },
    { "kept-steps", OLD, { FG_KEPT, FG_KEPT }, .events = 300 },
    { "kept-seldom", OLD, { FG_KEPT, FG_KEPT }, .events = 300, .poll = 100 },
    { "refused", OLD, { FG_REFUSED, FG_REFUSED }, .events = 300, .poll = 7 },
    { "refused-steps", OLD, { FG_REFUSED, FG_KEPT }, .events = 300 },
    { "anew", OLD, { FG_ANEW, FG_ANEW }, .events = 300, .poll = 7 },
    { "anew-first", OLD, { FG_ANEW, FG_KEPT }, .events = 300, .poll = 7 },
    { "anew-second", OLD, { FG_KEPT, FG_ANEW }, .events = 300, .poll = 7 },
    { "anew-steps", OLD, { FG_KEPT, FG_ANEW }, .events = 300 },
    { "mixed-steps", NEW, { FG_ANEW, FG_REFUSED }, .events = 300 },
    { "mixed", NEW, { FG_REFUSED, FG_ANEW }, .events = 300, .poll = 3 },
    { "short", OLD, { FG_KEPT, FG_KEPT }, .events = 250, .poll = 5,
      .lasts = 250 * MS },
    { "short-steps", OLD, { FG_KEPT, FG_ANEW }, .events = 250,
      .lasts = 250 * MS },
    { "longer", OLD, { FG_KEPT, FG_KEPT }, .events = 300, .poll = 7,
      .lasts = 40 * MS, .grows = 5 },
    { "longer-laps", OLD, { FG_KEPT, FG_KEPT }, .events = 9000, .poll = 1000,
      .lasts = 40 * MS, .grows = 20, .loses = true },
    { "longer-steps", OLD, { FG_KEPT, FG_ANEW }, .events = 300,
      .lasts = 40 * MS, .grows = 5 },
    { "unseen", OLD, { FG_KEPT, FG_KEPT }, .events = 300, .poll = 7,
      .unseen = 20 },
    { "unseen-steps", OLD, { FG_KEPT, FG_REFUSED }, .events = 300,
      .unseen = 90 },
    { "nokaslr", OLD, { FG_KEPT, FG_ANEW }, .events = 300, .poll = 7,
      .nokaslr = true },
    { "nokaslr-longer", OLD, { FG_KEPT, FG_KEPT }, .events = 300, .poll = 7,
      .nokaslr = true, .lasts = 2000 * MS, .grows = 5 },
    { "nokaslr-steps", OLD, { FG_KEPT, FG_KEPT }, .events = 300,
      .nokaslr = true },
    { "relaxed", OLD, { FG_KEPT, FG_ANEW }, .events = 300, .poll = 7,
      .relaxed = true },
    { "relaxed-steps", OLD, { FG_ANEW, FG_KEPT }, .events = 300,
      .relaxed = true },
    { "laps", OLD, { FG_KEPT, FG_ANEW }, .events = 9000, .poll = 1000,
      .loses = true },
    { "laps-kept", NEW, { FG_KEPT, FG_KEPT }, .events = 9000, .poll = 2500,
      .loses = true },
};

int main(int argc, char **argv)
{
    guint i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *path = g_strdup_printf("/boots/%s", kinds[i].name);

        g_test_add_data_func(path, &kinds[i], test_boots);
    }
    g_test_add_func("/boots/hangs", test_hangs);
    return g_test_run();
}
