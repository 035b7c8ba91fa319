/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Convert a ring's times to the host's clock. Most tests simulate both clocks,
 * and compare the result with the host time at which each event was written.
 */
#include "hypertrace/ftrace-dates.h"
#include "ftrace-guest.h"

#define EVENTS      40000
#define MS          UINT64_C(1000000)

/* Time of one event, by the guest's and by the host's clock */
typedef struct Truth {
    uint64_t guest;
    uint64_t host;
} Truth;

typedef struct Check {
    FtGuest g;
    HtFtTime time;
    double host;                /* present value of the host's clock in ns */
    double guest;
    /* mean rate: ns of the guest's clock per ns of the host's */
    double rate;
    /* maximum difference of two momentary rates, as a fraction of @rate */
    double wander;
    /* by processor and sequence number: host time of the event in ns */
    uint64_t at[2][EVENTS];
    HtFtDates *dates;
    GArray *truths;
} Check;

/*
 * Let @ns pass on the host's clock. Choose the guest's rate at random: it
 * differs from @rate by at most half of @wander.
 */
static void go(Check *c, double ns)
{
    double now = 1 + c->wander * g_test_rand_double_range(-0.5, 0.5);

    c->host += ns;
    c->guest += ns * c->rate * now;
}

static uint64_t now(void *opaque)
{
    Check *c = opaque;

    go(c, 300);
    return c->host;
}

static void ahead(void *opaque, const HtFtPiece *p)
{
    Check *c = opaque;
    HtFtBounds bounds;

    if (ht_ft_time_bounds(p, &bounds)) {
        ht_ft_time_add(&c->time, &bounds);
    }
}

static void piece(void *opaque, const HtFtPiece *p)
{
    Check *c = opaque;
    uint64_t seq, ns, at;
    HtFtRecord r;
    HtFtIter it;

    ht_ft_dates_add(c->dates, p);
    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        g_assert_true(fg_check(r.data, r.size, &seq));
        ns = ht_ft_time_host(&c->time, p, r.ns);
        at = c->at[p->cpu][seq];
        g_assert_cmpuint(ns, <=, p->host_after);
        if (c->time.map.count) {
            /* two polls, each late by 100 ms */
            g_assert_cmpuint(MAX(ns, at) - MIN(ns, at), <, 200 * MS);
        }
        g_array_append_val(c->truths, ((Truth) { r.ns, at }));
    }
}

static const HtFtFollowOps ops = {
    .ahead = ahead, .piece = piece, .now = now,
};

static HtFtFollow *begin(Check *c, double ppm)
{
    HtFtMem mem;

    *c = (Check) {
        .g = {
            .subbuf = 4096, .nr = 64, .cpus = 2, .layout = HT_FT_LAYOUT_6_15,
        },
        .host = 1000 * MS,
        .guest = 5 * MS,
        .rate = 1 + ppm / 1e6,
        .wander = HT_FT_TIME_WANDER_PPM / 1e6,
    };
    c->dates = ht_ft_dates_new();
    c->truths = g_array_new(false, false, sizeof(Truth));
    fg_init(&c->g);
    ht_ft_time_reset(&c->time);
    mem = fg_mem(&c->g);
    return ht_ft_follow_new(&mem, ht_ft_ring_at(&mem, 0, NULL), &ops, c);
}

/*
 * Before each of @looks polls, write at most 49 events, by the host's clock
 * less than @gap + 500 ns apart.
 */
static void run(Check *c, HtFtFollow *f, unsigned looks, unsigned gap)
{
    unsigned i, n, cpu;

    for (i = 0; i < looks; i++) {
        for (n = g_test_rand_int_range(0, 50); n; n--) {
            cpu = g_test_rand_int_range(0, 2);
            go(c, g_test_rand_int_range(1, gap));
            g_assert_cmpuint(c->g.cpu[cpu].seq, <, EVENTS);
            c->at[cpu][c->g.cpu[cpu].seq] = c->host;
            fg_event(&c->g, cpu, c->guest, 0);
            go(c, g_test_rand_int_range(0, 500));
        }
        /* each tenth poll may be up to 100 ms late */
        go(c, g_test_rand_int_range(0, i % 10 ? 1 * MS : 100 * MS));
        g_assert_cmpint(ht_ft_follow_look(f), >=, 0);
    }
}

/*
 * Compute dates from all pieces that were recorded, and assert that they are
 * right within their error bounds.
 */
static void end(Check *c)
{
    uint64_t worst = 0, sum = 0;
    guint i;

    ht_ft_dates_fit(c->dates);
    for (i = 0; i < c->truths->len; i++) {
        const Truth *t = &g_array_index(c->truths, Truth, i);
        uint64_t ns, bound, error;

        g_assert_true(ht_ft_dates_get(c->dates, t->guest, &ns, &bound));
        error = ns > t->host ? ns - t->host : t->host - ns;
        g_assert_cmpuint(error, <=, bound + 4);
        worst = MAX(worst, error);
        sum += error;
    }
    g_test_message("%" PRIu64 " and %" PRIu64 " ns wrong, at most and on "
                   "average", worst, sum / c->truths->len);
    ht_ft_dates_free(c->dates);
    g_array_unref(c->truths);
    fg_clear(&c->g);
}

static void test_bound(gconstpointer ppm)
{
    g_autofree Check *c = g_new0(Check, 1);
    g_autoptr(HtFtFollow) f = begin(c, GPOINTER_TO_INT(ppm));

    run(c, f, 300, 40000);
    run(c, f, 20, 10 * MS);
    run(c, f, 300, 40000);
    g_assert_cmpuint(c->time.steps, ==, 0);
    end(c);
}

/*
 * The kernel corrects the frequency of its clock by 400 ppm: this must not
 * count as a step of the clock.
 */
static void test_refined(void)
{
    g_autofree Check *c = g_new0(Check, 1);
    g_autoptr(HtFtFollow) f = begin(c, 300);

    c->wander = 0;
    run(c, f, 300, 40000);
    c->rate -= 400 / 1e6;
    run(c, f, 300, 40000);
    g_assert_cmpuint(c->time.steps, ==, 0);
    end(c);
}

/*
 * The guest's clock steps forward by 300 ms: the step is counted, and a date is
 * known again within 20 polls.
 */
static void test_step(void)
{
    g_autofree Check *c = g_new0(Check, 1);
    g_autoptr(HtFtFollow) f = begin(c, 0);
    uint64_t steps = 0;
    unsigned i;

    run(c, f, 100, 40000);
    for (i = 0; i < 10; i++) {
        g_assert_cmpuint(c->time.steps, ==, steps);
        /* if @i is odd, step between two events that one poll reads */
        if (i % 2) {
            c->at[0][c->g.cpu[0].seq] = c->host;
            fg_event(&c->g, 0, c->guest, 0);
        }
        c->guest += 300.0 * MS;
        run(c, f, 20, 40000);
        g_assert_cmpuint(c->time.steps, >, steps);
        g_assert_cmpuint(c->time.map.count, >, 0);
        steps = c->time.steps;
    }
    end(c);
}

/* A piece may have any times: no date is later than the piece's host_after. */
static void test_forged(void)
{
    static const uint64_t times[] = {
        0, 1, INT64_MAX, UINT64_MAX, UINT64_C(1) << 62, UINT64_MAX / 4, 12345,
        INT64_MAX / 4, INT64_MAX / 4 - 1,
    };
    uint8_t data[2][20] = { { 4 | 1 << 5, 0, 0, 0, 17 } };
    HtFtTime t = { };
    HtFtBounds bounds;
    unsigned i, k;

    memcpy(data[1], data[0], sizeof(data[0]));
    ht_ft_time_reset(&t);
    for (i = 0; i < 100000; i++) {
        HtFtPiece p = {
            .data = data[0],
            .size = sizeof(data),
            .events = 2,
            .host_before = i % 3 ? 1000 * MS + i : 0,
            .host_after = 1000 * MS + i * (UINT64_C(1) << i % 20),
        };

        p.base_ns = times[g_test_rand_int_range(0, G_N_ELEMENTS(times))];
        p.begin_ns = p.base_ns;
        p.end_ns = times[g_test_rand_int_range(0, G_N_ELEMENTS(times))];
        if (ht_ft_time_bounds(&p, &bounds)) {
            ht_ft_time_add(&t, &bounds);
        }
        g_assert_cmpuint(t.at.lo, <=, t.at.hi);
        for (k = 0; k < G_N_ELEMENTS(times); k++) {
            g_assert_cmpuint(ht_ft_time_host(&t, &p, times[k]), <=,
                             p.host_after);
        }
        if (i % 1000 == 0) {
            ht_ft_time_reset(&t);
        }
    }
    g_assert_cmpuint(t.steps, >, 0);
}

/*
 * ht_ft_time_bounds() applies the lower bound host_before only to an event that
 * was certainly written after the previous poll began.
 */
static void test_later(void)
{
    static const struct {
        uint32_t delta;
        uint8_t flags;
        bool later;
    } events[] = {
        /* this event may have been under way when the previous poll began */
        { 100, 0, false },
        /* events of a hard and of a soft interrupt during the first event */
        { 100, 0x08, false },
        { 50, 0x10, false },
        /* an event of the task, with the same time as the previous event */
        { 0, 0, false },
        /* an event of an NMI */
        { 70, 0x40, false },
        { 30, 0, true },
        { 10, 0, true },
    };
    uint8_t data[G_N_ELEMENTS(events)][12] = { };
    HtFtPiece p = {
        .data = data[0], .base_ns = 1000, .host_before = MS,
        .host_after = 2 * MS,
    };
    HtFtBounds bounds;
    uint64_t ns = p.base_ns, later = 0;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(events); i++) {
        ht_put_le32(data[i], 2 | events[i].delta << 5);
        data[i][4 + 2] = events[i].flags;
        ns += events[i].delta;
        later = later || !events[i].later ? later : ns;
        p.events = i + 1;
        p.size = (i + 1) * sizeof(data[0]);
        p.end_ns = ns;
        g_assert_true(ht_ft_time_bounds(&p, &bounds));
        g_assert_cmpuint(bounds.high, ==, p.host_after);
        g_assert_cmpuint(bounds.high_ns, ==, ns);
        g_assert_cmpuint(bounds.low, ==, later ? p.host_before : 0);
        g_assert_cmpuint(bounds.low_ns, ==, later);
    }
}

/*
 * Add the pieces of 600,000 polls, 432 ms apart, to HtFtDates, then date
 * events. HtFtDates keeps the bounds of fewer pieces, so it merges neighbouring
 * bounds.
 */
static void test_many(void)
{
    uint8_t data[3][12] = { { 2 }, { 2 | 1 << 5 }, { 2 | 1 << 5 } };
    g_autoptr(HtFtDates) d = ht_ft_dates_new();
    uint64_t host, ns, bound, worst;
    unsigned i, k;

    /*
     * add the piece of each second poll, then the others: pieces of several
     * processors need not be in the order of time
     */
    for (k = 0; k < 2; k++) {
        for (i = k; i < 600000; i += 2) {
            HtFtPiece p = {
                .data = data[0], .size = sizeof(data), .events = 3,
                .base_ns = 432 * MS * i, .begin_ns = 432 * MS * i,
                .end_ns = 432 * MS * i + 2,
            };

            /* the host's clock is 1 s ahead at first, and 20 ppm faster */
            host = 1000 * MS + p.base_ns + p.base_ns / 50000;
            p.host_before = host - g_test_rand_int_range(100, 20000);
            p.host_after = host + g_test_rand_int_range(100, 20000);
            ht_ft_dates_add(d, &p);
        }
    }
    ht_ft_dates_fit(d);
    worst = ht_ft_dates_worst(d, 0);
    g_assert_cmpuint(worst, <, 5 * MS);
    for (i = 0; i < 100000; i++) {
        ns = 432 * MS * g_test_rand_int_range(0, 600000) +
             g_test_rand_int_range(0, MS);
        host = 1000 * MS + ns + ns / 50000;
        g_assert_true(ht_ft_dates_get(d, ns, &ns, &bound));
        g_assert_cmpuint(ns, <=, host + bound + 4);
        g_assert_cmpuint(ns + bound + 4, >=, host);
        g_assert_cmpuint(bound, <=, worst);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/ftrace-time/bound/same", GINT_TO_POINTER(0),
                         test_bound);
    g_test_add_data_func("/ftrace-time/bound/faster", GINT_TO_POINTER(9000),
                         test_bound);
    g_test_add_data_func("/ftrace-time/bound/slower", GINT_TO_POINTER(-9000),
                         test_bound);
    g_test_add_func("/ftrace-time/refined", test_refined);
    g_test_add_func("/ftrace-time/step", test_step);
    g_test_add_func("/ftrace-time/later", test_later);
    g_test_add_func("/ftrace-time/many", test_many);
    g_test_add_func("/ftrace-time/forged", test_forged);
    return g_test_run();
}
