/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library, bare metal: duration of waits, with a clock set by the tests
 */
#include "hypertrace/base.h"

static uint64_t fake_clock;
#define HT_CLOCK fake_clock

#include "wait.h"

/* Number of ticks in 1 ms of a clock with 1 GHz */
#define MS 1000000ull

/*
 * Advance the clock by @step ticks and poll, until the wait is over. Return the
 * ticks that have passed.
 */
static uint64_t looks(struct ht_bm_wait *w, uint64_t step)
{
    uint64_t start = fake_clock;

    do {
        fake_clock += step;
    } while (!ht_bm_wait_over(w));
    return fake_clock - start;
}

static void test_length(void)
{
    struct ht_bm_wait w;

    fake_clock = -3 * MS;       /* the counter wraps during the wait */
    ht_bm_wait_start(&w, 1000 * MS, 5000);
    g_assert_cmpuint(looks(&w, MS), ==, 5000 * MS);
    g_assert_true(ht_bm_wait_over(&w));
    ht_bm_wait_start(&w, 1000 * MS, 1);
    g_assert_false(ht_bm_wait_over(&w));
    g_assert_cmpuint(looks(&w, 100), ==, MS);
}

/* A wait counts at most 10 ms between two polls, whatever the clock did. */
static void test_stood_still(void)
{
    struct ht_bm_wait w;

    /* the guest does not run for an hour: the wait counts 10 ms */
    ht_bm_wait_start(&w, 1000 * MS, 5000);
    fake_clock += 3600 * 1000 * MS;
    g_assert_false(ht_bm_wait_over(&w));
    g_assert_cmpuint(looks(&w, MS), ==, 4990 * MS);
    /* the clock goes back by 500 ms: the wait counts 10 ms */
    ht_bm_wait_start(&w, 1000 * MS, 5000);
    fake_clock -= 500 * MS;
    g_assert_false(ht_bm_wait_over(&w));
    g_assert_cmpuint(looks(&w, MS), ==, 4990 * MS);
    /* the guest stands still for 1 s before each poll: the wait still ends */
    ht_bm_wait_start(&w, 1000 * MS, 5000);
    g_assert_cmpuint(looks(&w, 1000 * MS), ==, 500 * 1000 * MS);
}

static void test_unknown_clock(void)
{
    struct ht_bm_wait w;

    ht_bm_wait_start(&w, 0, 100);
    g_assert_cmpuint(looks(&w, MS), ==, 500 * MS);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/wait/length", test_length);
    g_test_add_func("/guest/wait/stood-still", test_stood_still);
    g_test_add_func("/guest/wait/unknown-clock", test_unknown_clock);
    return g_test_run();
}
