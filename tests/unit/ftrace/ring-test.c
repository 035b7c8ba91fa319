/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adjacent rings in a guest's memory
 */
#include "hypertrace/base.h"
#include "ftrace-guest.h"

/*
 * Two adjacent rings are told apart.  Before Linux 6.15, only guest addresses
 * show where the first ring ends.
 */
static void test_adjacent(const void *opaque)
{
    FtGuest one = {
        .layout = GPOINTER_TO_UINT(opaque) ? HT_FT_LAYOUT_6_15 :
                                             HT_FT_LAYOUT_6_11,
        .subbuf = 4096, .nr = 7, .cpus = 2,
        .mem = aligned_alloc(4096, 2 << 20),
    };
    FtGuest two = one;
    HtFtMem mem = { .size = 2 << 20, .map = one.mem };
    HtFtRing *first, *second;

    memset(one.mem, 0, 2 << 20);
    fg_init(&one);
    two.offset = one.size;
    /* the kernel leaves an unmapped page between the two virtual mappings */
    two.va = one.va + one.size + 4096;
    two.cpus = 3;
    fg_init(&two);

    first = ht_ft_ring_at(&mem, 0, NULL);
    g_assert_nonnull(first);
    g_assert_cmpuint(first->cpus, ==, 2);
    g_assert_cmpuint(first->size, ==, one.size);
    g_assert_false(ht_ft_ring_grow(&mem, first));
    g_assert_false(ht_ft_ring_covers(first, two.offset));
    second = ht_ft_ring_at(&mem, two.offset, NULL);
    g_assert_nonnull(second);
    g_assert_cmpuint(second->cpus, ==, 3);
    g_assert_cmpuint(second->size, ==, two.size - two.offset);

    ht_ft_ring_free(first);
    ht_ft_ring_free(second);
    fg_clear(&one);
    fg_clear(&two);
    free(one.mem);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/ring/adjacent/6.11", GUINT_TO_POINTER(0),
                         test_adjacent);
    g_test_add_data_func("/ring/adjacent/6.15", GUINT_TO_POINTER(1),
                         test_adjacent);
    return g_test_run();
}
