/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Convert the guest's counter to the host's time: slope, stops, resets, drift
 */
#include "hypertrace/base.h"
#include "core-testlib.h"

#define SECOND UINT64_C(1000000000)

/* Assert that two numbers differ by at most 16, which rounding can cause. */
static void near(uint64_t a, uint64_t b)
{
    g_assert_cmpuint(a, <=, b + 16);
    g_assert_cmpuint(a + 16, >=, b);
}

static void test_empty(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, 2600000000);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 12345), ==, 0);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), ==, UINT64_MAX);
    g_assert_cmpuint(ht_time_map_hz(&m), >=, 2599999990);
    g_assert_cmpuint(ht_time_map_hz(&m), <=, 2600000010);
}

/* With one sample, dates before and after it have the nominal slope. */
static void test_one_sample(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, 2 * SECOND);
    ht_time_map_sample(&m, 1000000, 7 * SECOND, 42);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 1000000), ==, 7 * SECOND);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 1000000 + 2 * SECOND), ==,
                     8 * SECOND);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 0), ==, 7 * SECOND - 500000);
    g_assert_cmpuint(ht_time_map_bound(&m, 7 * SECOND), ==, 42);
    /* no date is before the origin of the host's clock */
    ht_time_map_init(&m, 1000);
    ht_time_map_sample(&m, 1000000, 7 * SECOND, 42);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 0), ==, 0);
}

/*
 * Dates between two samples lie on the line through the samples. Later dates
 * continue the line, at a rate near its slope.
 */
static void test_slope(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 0, SECOND, 1);
    /* the counter runs 80 ppm too slowly */
    ht_time_map_sample(&m, SECOND, 2 * SECOND + 80000, 1);
    g_assert_cmpuint(m.count, ==, 2);
    g_assert_cmpuint(ht_time_map_to_ns(&m, SECOND / 2), >=,
                     SECOND * 3 / 2 + 39998);
    g_assert_cmpuint(ht_time_map_to_ns(&m, SECOND / 2), <=,
                     SECOND * 3 / 2 + 40002);
    /*
     * later, the map may assume that the counter is 30 to 100 ppm too slow (80
     * ppm are measured)
     */
    g_assert_cmpuint(ht_time_map_to_ns(&m, 2 * SECOND), >=,
                     3 * SECOND + 110000);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 2 * SECOND), <=,
                     3 * SECOND + 180000);
}

/* The bound of a date's error grows with the time since the last sample. */
static void test_drift(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), ==, UINT64_MAX);
    ht_time_map_sample(&m, 0, SECOND, 10);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), ==, 10);
    g_assert_cmpuint(ht_time_map_bound(&m, 2 * SECOND), >=, 200000);
    g_assert_cmpuint(ht_time_map_bound(&m, 2 * SECOND), <=, 200050);
    /* an imprecise reading does not enlarge the bound at its time */
    ht_time_map_sample(&m, 1000, SECOND + 50000, 1000000);
    g_assert_cmpuint(ht_time_map_bound(&m, SECOND + 1000), <=, 12);
    /*
     * after 10 s of samples, the bound grows by at most twice
     * HT_TIME_WANDER_PPM, before by twice HT_TIME_NOMINAL_PPM
     */
    ht_time_map_sample(&m, 10 * SECOND, 11 * SECOND, 10);
    g_assert_cmpuint(ht_time_map_bound(&m, 12 * SECOND), <=, 100050);
}

/* Two readings of one counter value: the date lies in both brackets. */
static void test_repeated(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 2000, SECOND, 1000);
    ht_time_map_sample(&m, 2000, SECOND + 1500, 1000);
    g_assert_cmpuint(m.count, ==, 1);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 2000), ==, SECOND + 750);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), <=, 251);
}

/*
 * Take a reading with a host time that is 19 ms too late and has a bound of 20
 * ms, then readings with a bound of 300 us.
 */
static void test_brackets(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 0, SECOND + 19000000, 20000000);
    ht_time_map_sample(&m, SECOND / 10, SECOND * 11 / 10 - 300000, 300000);
    /* the second reading also improves the date of the first one */
    g_assert_cmpuint(ht_time_map_to_ns(&m, 0), >=, SECOND - 640000);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 0), <=, SECOND);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), <=, 300100);
    ht_time_map_sample(&m, SECOND, 2 * SECOND + 250000, 300000);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), <=, 80000);
}

/*
 * Promise: if the VM and its counter stop for an hour, events before the stop
 * keep their dates, dates after the stop are an hour later, and the slope stays
 * correct.
 */
static void test_stop(void)
{
    const uint64_t hour = 3600 * SECOND;
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 0, SECOND, 1);
    ht_time_map_sample(&m, SECOND, 2 * SECOND, 1);
    /*
     * the VM stopped at 1.5 s of the counter; the map gets a sample at 1.6 s of
     * the counter
     */
    ht_time_map_sample(&m, SECOND * 16 / 10, hour + SECOND * 26 / 10, 1);
    near(ht_time_map_to_ns(&m, SECOND / 2), SECOND * 15 / 10);
    near(ht_time_map_to_ns(&m, SECOND * 14 / 10), SECOND * 24 / 10);
    near(ht_time_map_to_ns(&m, SECOND * 16 / 10), hour + SECOND * 26 / 10);
    near(ht_time_map_to_ns(&m, SECOND * 2), hour + SECOND * 3);
    ht_time_map_sample(&m, SECOND * 3, hour + SECOND * 4, 1);
    near(ht_time_map_hz(&m), SECOND);
    near(ht_time_map_to_ns(&m, SECOND * 4), hour + SECOND * 5);
}

/*
 * A short stop can look like a change of rate: the caller must report the stop
 * by ht_time_map_break().
 */
static void test_break(void)
{
    const uint64_t stop = 150000000;
    HtTimeMap m;
    unsigned i;

    ht_time_map_init(&m, SECOND);
    ht_time_map_set_ppm(&m, HT_TIME_PPM_MAX);
    ht_time_map_break(&m);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), ==, UINT64_MAX);
    ht_time_map_sample(&m, 0, SECOND, 10000);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), >=, 10000);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), <=, 10500);
    ht_time_map_break(&m);
    g_assert_cmpuint(ht_time_map_bound(&m, SECOND), ==, UINT64_MAX);
    near(ht_time_map_to_ns(&m, SECOND), 2 * SECOND);
    ht_time_map_sample(&m, 10 * SECOND, 11 * SECOND + stop, 10000);
    g_assert_cmpuint(m.count, ==, 2);
    near(ht_time_map_to_ns(&m, SECOND), 2 * SECOND);
    for (i = 0; i < 5; i++) {
        uint64_t got = ht_time_map_to_ns(&m, (10 + i) * SECOND);
        uint64_t truth = (11 + i) * SECOND + stop;

        g_assert_cmpuint(ABS((int64_t)(got - truth)), <=,
                         ht_time_map_bound(&m, truth));
    }
}

/*
 * Promise: the bound is right if the counter's frequency is 2 % below the
 * nominal frequency. Its period is then 2.04 % above the nominal period.
 */
static void test_frequency(void)
{
    HtTimeMap m;
    uint64_t got, bound;

    ht_time_map_init(&m, SECOND);
    ht_time_map_set_ppm(&m, HT_TIME_PPM_MAX);
    ht_time_map_sample(&m, 0, SECOND, 1);
    /* the counter is 2 % too slow: after 100 s it shows 98 s */
    got = ht_time_map_to_ns(&m, 98 * SECOND);
    bound = ht_time_map_bound(&m, 101 * SECOND);
    g_assert_cmpuint(got + bound, >=, 101 * SECOND);
    ht_time_map_sample(&m, 98 * SECOND, 101 * SECOND, 1000);
    g_assert_cmpuint(m.epoch, ==, 0);
    near(ht_time_map_hz(&m), SECOND / 100 * 98);
}

/* Assert that ht_time_map_load() accepts the map, as after a snapshot. */
static void check_loads(const HtTimeMap *m)
{
    HtTimeMap copy;

    ht_time_map_init(&copy, SECOND);
    g_assert_true(ht_time_map_load(&copy, m->seg, m->count, 0,
                                   HT_TIME_MAX_NS));
}

/* Readings that contradict each other still give a map that can be loaded. */
static void test_loadable(void)
{
    HtTimeMap m;

    /*
     * the second reading has a bound of 20 s; the third has a bound of 10 ns,
     * and is about 10 s earlier than the nominal rate gives
     */
    ht_time_map_init(&m, 3 * SECOND);
    ht_time_map_set_ppm(&m, HT_TIME_PPM_MAX);
    ht_time_map_sample(&m, 1000, 100 * SECOND, 100);
    ht_time_map_sample(&m, 1000 + 30 * SECOND, 100 * SECOND + 5, 20 * SECOND);
    check_loads(&m);
    ht_time_map_sample(&m, 1000 + 31 * SECOND, 100 * SECOND + 100, 10);
    check_loads(&m);
    /*
     * two counter values at one date; then a rate of 101.9 GHz, above
     * HT_TIME_HZ_MAX
     */
    ht_time_map_init(&m, 100 * SECOND);
    ht_time_map_set_ppm(&m, HT_TIME_PPM_MAX);
    ht_time_map_sample(&m, 1000, SECOND, 0);
    ht_time_map_sample(&m, 1001, SECOND, 0);
    check_loads(&m);
    ht_time_map_sample(&m, 101900 * SECOND, 1001 * SECOND, 1000);
    check_loads(&m);
}

/*
 * The first reading has a wide bound, so any rate is possible. The rate then
 * rises by ten times HT_TIME_WANDER_PPM, and contradicts the bounds of the
 * readings before. Promise: no bound is smaller than the real error.
 */
static void test_rate_changes(void)
{
    const unsigned n = HT_TIME_SEGMENTS + 4;
    uint64_t truth[HT_TIME_SEGMENTS + 4];
    uint64_t counter = 0, ns = SECOND;
    HtTimeMap m;
    unsigned i;

    ht_time_map_init(&m, SECOND);
    ht_time_map_set_ppm(&m, HT_TIME_PPM_MAX);
    for (i = 0; i < n; i++) {
        uint64_t bound = i ? 5000 : 250000;

        truth[i] = ns;
        ht_time_map_sample(&m, counter, ns - bound + 50, bound);
        counter += i == n - 2 ? 100 * SECOND : 60000000;
        ns += i == n - 2 ? 100 * SECOND + 50000000 : 60000000;
    }
    check_loads(&m);
    g_assert_cmpuint(m.epoch, ==, 0);
    g_assert_cmpuint(m.count, ==, HT_TIME_SEGMENTS);
    for (i = 0; i < m.count; i++) {
        int64_t error = m.seg[i].ns - truth[n - m.count + i];

        g_assert_cmpuint(ABS(error), <=, m.seg[i].bound_ns);
    }
}

/*
 * Promise: if the counter jumps forward, for example because the guest writes
 * its TSC, dates after the jump follow the first reading after it.
 */
static void test_jump(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 0, SECOND, 1);
    ht_time_map_sample(&m, SECOND, 2 * SECOND, 1);
    ht_time_map_sample(&m, 1000 * SECOND, 3 * SECOND, 1);
    near(ht_time_map_to_ns(&m, 1000 * SECOND), 3 * SECOND);
    near(ht_time_map_to_ns(&m, 1001 * SECOND), 4 * SECOND);
    near(ht_time_map_hz(&m), SECOND);
}

/* A reset of the counter begins an epoch that uses no older sample. */
static void test_reset(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 100 * SECOND, 101 * SECOND, 1);
    ht_time_map_sample(&m, 110 * SECOND, 111 * SECOND, 1);
    ht_time_map_sample(&m, 1, 112 * SECOND, 9);
    g_assert_cmpuint(m.count, ==, 1);
    g_assert_cmpuint(ht_time_map_bound(&m, 0), ==, 9);
    near(ht_time_map_to_ns(&m, 1 + SECOND), 113 * SECOND);
    ht_time_map_sample(&m, 1 + SECOND, 113 * SECOND, 1);
    near(ht_time_map_hz(&m), SECOND);
}

/*
 * Only the HT_TIME_SEGMENTS newest segments are kept; the oldest of these also
 * dates older counter values.
 */
static void test_forget(void)
{
    HtTimeMap m;
    uint64_t i;

    ht_time_map_init(&m, SECOND);
    for (i = 0; i < 3 * HT_TIME_SEGMENTS; i++) {
        ht_time_map_sample(&m, i * SECOND, (i + 5) * SECOND, 1);
    }
    g_assert_cmpuint(m.count, ==, HT_TIME_SEGMENTS);
    for (i = 0; i < 4 * HT_TIME_SEGMENTS; i++) {
        near(ht_time_map_to_ns(&m, i * SECOND), (i + 5) * SECOND);
    }
}

/*
 * Take a sample every 100 ms for a minute. Each is wrong by up to 20 ns, and
 * the nominal frequency by 52 ppm. Promise: dates after the first second are
 * wrong by at most 100 ns.
 */
static void test_measure(void)
{
    const uint64_t hz = 2596134182, nominal = 2596000000;
    const uint64_t base = 98765 * SECOND;
    HtTimeMap m;
    unsigned i;

    ht_time_map_init(&m, nominal);
    for (i = 0; i < 600; i++) {
        uint64_t counter = 555 + hz * i / 10;

        if (i > 10) {
            /* check the date that the map gives before it gets this sample */
            uint64_t ns = ht_time_map_to_ns(&m, counter);
            int64_t wrong = ns - (base + i * SECOND / 10);

            g_assert_cmpint(ABS(wrong), <=, 100);
        }
        ht_time_map_sample(&m, counter, base + i * SECOND / 10 +
                           g_test_rand_int_range(-20, 21), 20);
    }
    /* an error of 40 ns in 60 s is below 0.001 ppm of the frequency */
    near(ht_time_map_hz(&m), hz);
}

/*
 * If brackets are so wide that any rate fits, the slope still differs from the
 * nominal one by at most 1/63.
 */
static void test_bend(void)
{
    HtTimeMap m;
    unsigned i;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 0, SECOND, 1);
    for (i = 1; i < 100; i++) {
        ht_time_map_sample(&m, i * SECOND, SECOND + i * 10000000,
                           i * SECOND);
        g_assert_cmpuint(ht_time_map_hz(&m), >=, SECOND / 64 * 63);
        g_assert_cmpuint(ht_time_map_hz(&m), <=, SECOND / 63 * 64);
    }
}

/*
 * Promise: for any counter that a hostile guest sends, the date is at most
 * HT_TIME_MAX_NS; a larger counter has no earlier date.
 */
static void test_extremes(void)
{
    static const uint64_t hz[] = { 1000, 1000000, SECOND, 100 * SECOND };
    unsigned i, j;

    for (i = 0; i < G_N_ELEMENTS(hz); i++) {
        HtTimeMap m;

        ht_time_map_init(&m, hz[i]);
        ht_time_map_sample(&m, SECOND, 3 * SECOND, 1);
        g_assert_cmpuint(ht_time_map_to_ns(&m, UINT64_MAX), <=,
                         HT_TIME_MAX_NS);
        g_assert_cmpuint(ht_time_map_to_ns(&m, UINT64_MAX), >=, 3 * SECOND);
        for (j = 0; j < 10000; j++) {
            uint64_t a = (uint64_t)g_test_rand_int() << 32 | g_test_rand_int();
            uint64_t b = a + g_test_rand_int();
            uint64_t x = ht_time_map_to_ns(&m, a);

            g_assert_cmpuint(x, <=, HT_TIME_MAX_NS);
            if (b > a) {
                g_assert_cmpuint(ht_time_map_to_ns(&m, b), >=, x);
            }
        }
    }
}

/*
 * Promise: random samples in any order give a map that ht_time_map_load()
 * accepts; the date of the last sample's counter is at most HT_TIME_MAX_NS.
 */
static void test_random(void)
{
    unsigned i, j;

    for (i = 0; i < 2000; i++) {
        HtTimeMap m;

        ht_time_map_init(&m, g_test_rand_int_range(1000, G_MAXINT32));
        for (j = 0; j < 50; j++) {
            uint64_t counter = (uint64_t)g_test_rand_int() <<
                               g_test_rand_int_range(0, 33);
            uint64_t ns = (uint64_t)g_test_rand_int() <<
                          g_test_rand_int_range(0, 30);

            ht_time_map_sample(&m, counter, ns, g_test_rand_int());
            g_assert_cmpuint(m.count, >=, 1);
            g_assert_cmpuint(m.count, <=, HT_TIME_SEGMENTS);
            g_assert_cmpuint(ht_time_map_to_ns(&m, counter), <=,
                             HT_TIME_MAX_NS);
            g_assert_cmpuint(ht_time_map_hz(&m), >, 0);
            check_loads(&m);
            if (g_test_rand_int_range(0, 10) == 0) {
                ht_time_map_break(&m);
            }
        }
    }
}

/*
 * An event that is dated only after later samples: host time and counter of the
 * event, and the bound that the map gave at that time, in ns. The late date
 * must be within this bound.
 */
typedef struct Late {
    double ns;
    double counter;
    double bound;
} Late;

#define LATE 8

typedef struct Truth {
    double ns;                  /* the simulated host's present time in ns */
    double counter;
    double rate;                /* mean rate of the counter in ticks per ns */
    double wander;              /* present rate divided by @rate, minus 1 */
    Late late[LATE];
    unsigned nr_late;
} Truth;

static void truth_go(Truth *t, double ns)
{
    if (g_test_rand_int_range(0, 4) == 0) {
        t->wander = g_test_rand_double_range(-0.5, 0.5) *
                    HT_TIME_WANDER_PPM / 1e6;
    }
    t->ns += ns;
    t->counter += ns * t->rate * (1 + t->wander);
}

static void check_date(const HtTimeMap *m, const Truth *t, const char *when)
{
    double got = ht_time_map_to_ns(m, t->counter);
    double bound = ht_time_map_bound(m, t->ns);

    if (ABS(got - t->ns) > bound + 4) {
        g_test_message("%s: %.0f ns off, bound %.0f", when, got - t->ns,
                       bound);
        g_test_fail();
    }
}

/* Date the events of Truth.late, check the dates, and drop the events. */
static void check_late(const HtTimeMap *m, Truth *t)
{
    while (t->nr_late) {
        const Late *l = &t->late[--t->nr_late];
        double got = ht_time_map_to_ns(m, l->counter);

        if (ABS(got - l->ns) > l->bound + 4) {
            g_test_message("late: %.0f ns off, bound %.0f", got - l->ns,
                           l->bound);
            g_test_fail();
        }
    }
}

static void add_late(const HtTimeMap *m, Truth *t)
{
    if (t->nr_late < LATE) {
        t->late[t->nr_late++] = (Late) {
            t->ns, t->counter, ht_time_map_bound(m, t->ns),
        };
    }
}

/*
 * Simulate a counter and the host's clock, and check that dates are within
 * their bounds.  Two readings of the counter, up to 4.5 us or up to 60 ms
 * apart, bracket each reading of the host's clock, which is not in the middle.
 * The rate differs from its mean by up to half of HT_TIME_WANDER_PPM.  In some
 * rounds the VM stops, or the counter jumps or restarts.
 */
static void play(unsigned ppm)
{
    double rate = g_test_rand_double_range(0.5, 4);
    Truth t = { .ns = 1e12, .counter = 1e9, .rate = rate };
    HtTimeMap m;
    unsigned i, j;

    ht_time_map_init(&m, rate * 1e9 *
                     (1 + g_test_rand_double_range(-1, 1) *
                          (ppm - HT_TIME_WANDER_PPM) * 0.95 / 1e6));
    ht_time_map_set_ppm(&m, ppm);
    for (i = 0; i < 200; i++) {
        double before, width, counter;

        /* @before: the host reads its clock at some point in the bracket */
        width = g_test_rand_int_range(0, 3) ?
                g_test_rand_double_range(200, 3000) :
                g_test_rand_double_range(5e5, 4e7);
        counter = t.counter;
        truth_go(&t, width * g_test_rand_double_range(0, 0.5));
        truth_go(&t, width * g_test_rand_double_range(0, 0.5));
        before = t.ns;
        truth_go(&t, g_test_rand_double_range(0, width / 2));
        width = t.counter - counter;
        ht_time_map_sample(&m, counter + width / 2, before,
                           ht_time_scale(width / 2 + 2, m.fastest) + 1);
        check_date(&m, &t, "after a bracket");
        check_loads(&m);
        check_late(&m, &t);
        for (j = 0; j < 4; j++) {
            truth_go(&t, g_test_rand_double_range(0, 5e8));
            check_date(&m, &t, "later");
            add_late(&m, &t);
        }
        switch (g_test_rand_int_range(0, 20)) {
        case 0:
            /*
             * the VM stops, often so briefly that it looks like a change of
             * rate
             */
            t.nr_late = 0;
            t.ns += UINT64_C(10000) << g_test_rand_int_range(0, 27);
            ht_time_map_break(&m);
            if (g_test_rand_bit()) {
                /* the map gets no reading until the next bracket */
                break;
            }
            ht_time_map_sample(&m, t.counter, t.ns, 1000);
            check_date(&m, &t, "after a stop");
            break;
        case 1:
            t.nr_late = 0;
            /* the counter jumps forward */
            t.counter += g_test_rand_double_range(1e9, 1e13);
            ht_time_map_sample(&m, t.counter, t.ns, 1000);
            check_date(&m, &t, "after a jump");
            break;
        case 2:
            t.nr_late = 0;
            /* the counter is reset */
            t.counter = g_test_rand_double_range(1, 1e6);
            ht_time_map_sample(&m, t.counter, t.ns, 1000);
            check_date(&m, &t, "after a reset");
            break;
        }
        check_loads(&m);
    }
}

static void test_truth(void)
{
    unsigned i;

    for (i = 0; i < 300; i++) {
        play(HT_TIME_NOMINAL_PPM);
        play(HT_TIME_PPM_MAX);
    }
}

/*
 * The counter jumps between two samples. An event before the jump is dated by
 * the sample before the jump, an event after the jump by the sample after it.
 */
static void test_late_jump(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 0, SECOND, 1000);
    ht_time_map_sample(&m, SECOND, 2 * SECOND, 1000);
    /* the counter jumps by 100 s, half-way between two samples 1 s apart */
    ht_time_map_sample(&m, 102 * SECOND, 3 * SECOND, 1000);
    g_assert_cmpuint((ht_time_map_to_ns(&m, SECOND * 14 / 10) + 100000) /
                     1000000, ==, 2400);
    g_assert_cmpuint((ht_time_map_to_ns(&m, SECOND * 1016 / 10) + 100000) /
                     1000000, ==, 2600);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/time/empty", test_empty);
    g_test_add_func("/time/one-sample", test_one_sample);
    g_test_add_func("/time/slope", test_slope);
    g_test_add_func("/time/drift", test_drift);
    g_test_add_func("/time/repeated", test_repeated);
    g_test_add_func("/time/stop", test_stop);
    g_test_add_func("/time/break", test_break);
    g_test_add_func("/time/frequency", test_frequency);
    g_test_add_func("/time/loadable", test_loadable);
    g_test_add_func("/time/rate-changes", test_rate_changes);
    g_test_add_func("/time/jump", test_jump);
    g_test_add_func("/time/reset", test_reset);
    g_test_add_func("/time/forget", test_forget);
    g_test_add_func("/time/measure", test_measure);
    g_test_add_func("/time/bend", test_bend);
    g_test_add_func("/time/brackets", test_brackets);
    g_test_add_func("/time/late-jump", test_late_jump);
    g_test_add_func("/time/truth", test_truth);
    g_test_add_func("/time/extremes", test_extremes);
    g_test_add_func("/time/random", test_random);
    return g_test_run();
}
