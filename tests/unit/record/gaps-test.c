/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find out whether a recording has a gap between two times
 *
 * Promise: no gap is missed, however many there are. The test adds more gaps
 * than the list stores: all in one segment of the clock, each in a segment of
 * its own, or each in an epoch of its own. The list then merges further gaps or
 * takes the rest of the recording for one gap.
 */
#include "hypertrace/base.h"

#include "model/gaps.h"

#define GAPS    400000u

static bool between(const HtGaps *g, uint32_t cpu, uint32_t epoch,
                    uint32_t segment, uint64_t from, uint64_t to)
{
    HtModelEvent ev = { .rec = { .epoch = epoch, .segment = segment } };

    return ht_gaps_between(g, &ev, cpu, from, to);
}

static void test_few(void)
{
    HtGaps *g = ht_gaps_make(2);

    ht_gaps_add(g, 1, 0, 0, 100, 200);
    ht_gaps_add(g, 1, 0, 1, 10, 20);
    g_assert_true(between(g, HT_GAPS_ANY, 0, 0, 150, 160));
    g_assert_true(between(g, 1, 0, 0, 0, 101));
    g_assert_false(between(g, 1, 0, 0, 0, 100));
    g_assert_false(between(g, 1, 0, 0, 200, 300));
    g_assert_false(between(g, 0, 0, 0, 0, 300));
    g_assert_true(between(g, 1, 0, 1, 0, 15));
    g_assert_false(between(g, 1, 1, 1, 0, 15));
    ht_gaps_free(g);
}

static void test_many(void)
{
    unsigned form, i;

    for (form = 0; form < 3; form++) {
        HtGaps *g = ht_gaps_make(1);

        for (i = 0; i < GAPS; i++) {
            ht_gaps_add(g, 0, form == 2 ? i : 0, form == 1 ? i : 0,
                        i * 100, i * 100 + 10);
        }
        for (i = 0; i < GAPS; i++) {
            g_assert_true(between(g, 0, form == 2 ? i : 0, form == 1 ? i : 0,
                                  i * 100 + 2, i * 100 + 3));
        }
        /* The first 65,536 gaps are not merged: none is from 10 to 100. */
        g_assert_false(between(g, 0, 0, 0, 10, 100));
        ht_gaps_free(g);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gaps/few", test_few);
    g_test_add_func("/gaps/many", test_many);
    return g_test_run();
}
