/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find rings in a guest's memory: adjacent ones, one with too many processors,
 * and one after many false copies of its header
 */
#include "hypertrace/base.h"
#include "ftrace-guest.h"

/*
 * Search memory from its end downwards, one candidate at a time, for two rings
 * as Linux 6.11 makes them. Assert that the search finds all of a ring when it
 * reaches the last processor's part of that ring.
 */
static void search_parts(const HtFtMem *mem, const HtFtRing *one,
                         const HtFtRing *two)
{
    HtFtSearch s;

    ht_ft_search_init(&s, mem, 8 * 4096);
    while (!s.done) {
        const HtFtRing *whole = s.at > two->offset ? two : one;

        if (ht_ft_search_go(&s, 1, NULL)) {
            const HtFtRing *found = s.rings->pdata[s.rings->len - 1];

            g_assert_cmpuint(found->offset, ==, whole->offset);
            g_assert_cmpuint(found->size, ==, whole->size);
        }
    }
    g_assert_cmpuint(s.rings->len, ==, 2);
    ht_ft_search_clear(&s);
}

/*
 * Two adjacent rings are told apart. Before Linux 6.15, no header gives the
 * size of a ring: guest addresses show where the first ring ends.
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
    if (one.layout == HT_FT_LAYOUT_6_11) {
        search_parts(&mem, first, second);
    }

    ht_ft_ring_free(first);
    ht_ft_ring_free(second);
    fg_clear(&one);
    fg_clear(&two);
    free(one.mem);
}

/*
 * Promise: if a ring has more than HT_FT_CPUS_MAX processors, HtFtRing holds
 * the first HT_FT_CPUS_MAX of them, and HtFtRing.cut is set.
 */
static void test_processors(const void *opaque)
{
    const uint32_t cpus = HT_FT_CPUS_MAX + GPOINTER_TO_INT(opaque);
    const uint64_t size = (cpus + 1) * UINT64_C(5) * 4096;
    uint8_t *memory = g_malloc0(size);
    HtFtMem mem = { .size = size, .map = memory };
    uint64_t offset = 0;
    HtFtRing *ring;
    uint32_t i;

    /* Before Linux 6.15, each processor's part has a header of its own. */
    for (i = 0; i < cpus; i++) {
        FtGuest part = {
            .layout = HT_FT_LAYOUT_6_11, .subbuf = 4096, .nr = 3, .cpus = 1,
            .mem = memory, .offset = offset,
            .va = UINT64_C(0xffff888000000000) + offset,
        };

        fg_init(&part);
        offset = part.size;
        fg_clear(&part);
    }
    ring = ht_ft_ring_at(&mem, 0, NULL);
    g_assert_nonnull(ring);
    g_assert_cmpuint(ring->cpus, ==, MIN(cpus, HT_FT_CPUS_MAX));
    g_assert_cmpint(ring->cut, ==, cpus > HT_FT_CPUS_MAX);
    ht_ft_ring_free(ring);
    g_free(memory);
}

#define MIB     (1u << 20)

static uint64_t bytes_read;

static int count_bytes(void *opaque, uint64_t offset, void *buf, size_t len)
{
    bytes_read += len;
    memcpy(buf, (uint8_t *)opaque + offset, len);
    return 0;
}

static int64_t byte_clock(void)
{
    return bytes_read;
}

/*
 * A guest has copies of a large ring's header at many addresses, with an error
 * only at the end of the order of sub-buffers. Promise: a call of
 * ht_ft_search_go() reads little more than its budget, and the search finds the
 * real ring after the copies.
 */
static void test_search_bound(void)
{
    FtGuest g = {
        .layout = HT_FT_LAYOUT_6_11, .subbuf = 4096, .nr = 8192, .cpus = 1,
        .mem = g_malloc0(96 * MIB), .offset = 60 * MIB,
    };
    const uint64_t head = 56 + 4 * 8192;
    HtFtMem mem = { .size = 96 * MIB, .read = count_bytes, .opaque = g.mem };
    const HtBudget budget = { .clock = byte_clock, .end = 4 * MIB };
    unsigned i, steps = 0;
    HtFtSearch s;

    fg_init(&g);
    for (i = 0; i < 512; i++) {
        uint8_t *fake = g.mem + i * 65536;

        memcpy(fake, g.mem + g.offset, head);
        memset(fake + head - 4, 0, 4);
    }
    ht_ft_search_init(&s, &mem, HT_FT_SEARCH_FULL);
    while (!s.done) {
        bytes_read = 0;
        ht_ft_search_go(&s, UINT64_MAX, &budget);
        g_assert_cmpuint(bytes_read, <, 5 * MIB);
        steps++;
    }
    g_assert_cmpuint(steps, >=, 4);
    g_assert_cmpuint(s.rings->len, ==, 1);
    ht_ft_search_clear(&s);
    fg_clear(&g);
    g_free(g.mem);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/ring/adjacent/6.11", GUINT_TO_POINTER(0),
                         test_adjacent);
    g_test_add_data_func("/ring/adjacent/6.15", GUINT_TO_POINTER(1),
                         test_adjacent);
    g_test_add_func("/ring/search-bound", test_search_bound);
    g_test_add_data_func("/ring/processors/all", GINT_TO_POINTER(0),
                         test_processors);
    g_test_add_data_func("/ring/processors/more", GINT_TO_POINTER(1),
                         test_processors);
    return g_test_run();
}
