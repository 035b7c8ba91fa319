/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest counter to host time: slope, stops, resets, drift
 */
#include "hypertrace/base.h"
#include "core-testlib.h"

#define SECOND UINT64_C(1000000000)

static void test_empty(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, 2600000000);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 12345), ==, 0);
    g_assert_cmpuint(ht_time_map_bound(&m), ==, UINT64_MAX);
    g_assert_cmpuint(ht_time_map_hz(&m), >=, 2599999990);
    g_assert_cmpuint(ht_time_map_hz(&m), <=, 2600000010);
}

/* One sample: the nominal slope, both ways. */
static void test_one_sample(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, 2 * SECOND);
    ht_time_map_sample(&m, 1000000, 7 * SECOND, 42);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 1000000), ==, 7 * SECOND);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 1000000 + 2 * SECOND), ==,
                     8 * SECOND);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 0), ==, 7 * SECOND - 500000);
    g_assert_cmpuint(ht_time_map_bound(&m), ==, 42);
    /* never before the host's clock began */
    ht_time_map_init(&m, 1000);
    ht_time_map_sample(&m, 1000000, 7 * SECOND, 42);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 0), ==, 0);
}

/* Between samples the line goes through them; behind them it goes on. */
static void test_slope(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 0, SECOND, 1);
    ht_time_map_sample(&m, 10000000, SECOND + 10001000, 1);     /* 100 ppm */
    ht_time_map_sample(&m, 20000000, SECOND + 20000000, 1);
    g_assert_cmpuint(m.count, ==, 3);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 5000000), >=, SECOND + 5000499);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 5000000), <=, SECOND + 5000500);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 10000000), ==, SECOND + 10001000);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 15000000), >=, SECOND + 15000499);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 15000000), <=, SECOND + 15000500);
    /* extrapolated with the slope over all of it */
    g_assert_cmpuint(ht_time_map_to_ns(&m, 30000000), >=, SECOND + 29999999);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 30000000), <=, SECOND + 30000001);
}

/* What a slope may be off grows with the time and shrinks with the samples. */
static void test_drift(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    g_assert_cmpuint(ht_time_map_drift(&m, SECOND), ==, 0);
    ht_time_map_sample(&m, 0, SECOND, 10);
    g_assert_cmpuint(ht_time_map_drift(&m, SECOND), ==, 50000);
    ht_time_map_sample(&m, SECOND / 10, SECOND + SECOND / 10, 30);
    g_assert_cmpuint(ht_time_map_drift(&m, SECOND), ==, 400);
    g_assert_cmpuint(ht_time_map_drift(&m, SECOND / 10), ==, 40);
    ht_time_map_sample(&m, 10 * SECOND, 11 * SECOND, 10);
    g_assert_cmpuint(ht_time_map_drift(&m, SECOND), ==, 2);
}

/* Samples that say nothing new are no samples. */
static void test_repeated(void)
{
    HtTimeMap m, before;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 2000, SECOND + 1000, 1);
    before = m;
    ht_time_map_sample(&m, 2000, SECOND + 1900, 1);
    ht_time_map_sample(&m, 3000, SECOND + 1000, 1);
    ht_time_map_sample(&m, 3000, SECOND, 1);
    /* of no counter can it be said how fast it goes */
    ht_time_map_sample(&m, 2000, 2 * SECOND, 2 * SECOND);
    g_assert_cmpmem(&m, sizeof(m), &before, sizeof(before));
}

/*
 * The VM stops for an hour.  Events before keep their times, events after
 * have the new ones, and the slope is not spoilt.
 */
static void test_stop(void)
{
    const uint64_t hour = 3600 * SECOND;
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 0, SECOND, 1);
    ht_time_map_sample(&m, SECOND, 2 * SECOND, 1);
    /* resumed at counter 1.5 s, seen at 1.6 s */
    ht_time_map_sample(&m, SECOND * 16 / 10, hour + SECOND * 26 / 10, 1);
    g_assert_cmpuint(ht_time_map_to_ns(&m, SECOND / 2), ==, SECOND * 15 / 10);
    g_assert_cmpuint(ht_time_map_to_ns(&m, SECOND * 14 / 10), ==,
                     SECOND * 24 / 10);
    g_assert_cmpuint(ht_time_map_to_ns(&m, SECOND * 16 / 10), ==,
                     hour + SECOND * 26 / 10);
    g_assert_cmpuint(ht_time_map_to_ns(&m, SECOND * 2), ==, hour + SECOND * 3);
    g_assert_cmpuint(ht_time_map_hz(&m), ==, SECOND);
    ht_time_map_sample(&m, SECOND * 3, hour + SECOND * 4, 1);
    g_assert_cmpuint(ht_time_map_hz(&m), ==, SECOND);
    g_assert_cmpuint(ht_time_map_to_ns(&m, SECOND * 4), ==, hour + SECOND * 5);
}

/* The counter jumps forward (a guest that writes its TSC). */
static void test_jump(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 0, SECOND, 1);
    ht_time_map_sample(&m, SECOND, 2 * SECOND, 1);
    ht_time_map_sample(&m, 1000 * SECOND, 3 * SECOND, 1);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 1000 * SECOND), ==, 3 * SECOND);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 1001 * SECOND), ==, 4 * SECOND);
    g_assert_cmpuint(ht_time_map_hz(&m), ==, SECOND);
}

/* A reset of the counter is a new epoch: nothing of the old one is used. */
static void test_reset(void)
{
    HtTimeMap m;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, 100 * SECOND, 101 * SECOND, 1);
    ht_time_map_sample(&m, 110 * SECOND, 111 * SECOND, 1);
    ht_time_map_sample(&m, 1, 112 * SECOND, 9);
    g_assert_cmpuint(m.count, ==, 1);
    g_assert_cmpuint(ht_time_map_bound(&m), ==, 9);
    g_assert_cmpuint(ht_time_map_to_ns(&m, 1 + SECOND), ==, 113 * SECOND);
    ht_time_map_sample(&m, 1 + SECOND, 113 * SECOND, 1);
    g_assert_cmpuint(ht_time_map_hz(&m), ==, SECOND);
}

/* Only the newest segments are kept; the oldest kept goes on backwards. */
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
        g_assert_cmpuint(ht_time_map_to_ns(&m, i * SECOND), ==,
                         (i + 5) * SECOND);
    }
}

/*
 * A minute of samples as the device takes them: each 100 ms, each wrong by up
 * to 20 ns, the nominal frequency wrong by 52 ppm.
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
            /* what the device would tell an event of this moment */
            uint64_t ns = ht_time_map_to_ns(&m, counter);
            int64_t wrong = ns - (base + i * SECOND / 10);

            g_assert_cmpint(ABS(wrong), <=, 100);
        }
        ht_time_map_sample(&m, counter, base + i * SECOND / 10 +
                           g_test_rand_int_range(-20, 21), 20);
    }
    /* 40 ns of 60 s: below 0.001 ppm; the format of the slope adds a little */
    g_assert_cmpuint(ht_time_map_hz(&m), >=, hz - 5);
    g_assert_cmpuint(ht_time_map_hz(&m), <=, hz + 5);
}

/* Brackets so wide that they fit anything must not bend the slope. */
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

/* The counters of a hostile guest: no time beyond what readers can hold. */
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

/* Whatever is sampled, in whatever order. */
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
        }
    }
}

/*
 * A good reading soon after a poor one: the bound and drift that come with it
 * hold for the slope, too.
 */
static void test_better(void)
{
    const uint64_t first = SECOND, poor = first + 6000000, good = poor + 4000;
    const uint64_t later = good + SECOND, poor_by = 17000;
    HtTimeMap m;
    uint64_t got, off;

    ht_time_map_init(&m, SECOND);
    ht_time_map_sample(&m, first, first, 1);
    ht_time_map_sample(&m, poor, poor - poor_by, poor_by);
    g_assert_cmpuint(ht_time_map_hz(&m), !=, SECOND);
    ht_time_map_sample(&m, good, good, 1);
    g_assert_cmpuint(ht_time_map_bound(&m), ==, 1);
    got = ht_time_map_to_ns(&m, later);
    off = got > later ? got - later : later - got;
    g_assert_cmpuint(off, <=, 1 + ht_time_map_drift(&m, SECOND));
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
    g_test_add_func("/time/jump", test_jump);
    g_test_add_func("/time/reset", test_reset);
    g_test_add_func("/time/forget", test_forget);
    g_test_add_func("/time/measure", test_measure);
    g_test_add_func("/time/bend", test_bend);
    g_test_add_func("/time/better", test_better);
    g_test_add_func("/time/extremes", test_extremes);
    g_test_add_func("/time/random", test_random);
    return g_test_run();
}
