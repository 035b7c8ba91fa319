/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target ftpage: walk any bytes as a page of an ftrace ring. The events
 * lie within the page without overlap, and a walk in two parts finds as many
 * events as a walk in one part.
 */
#include "hypertrace/ftrace-page.h"
#include "fuzz.h"

/*
 * Walk a page's records. After the first event that ends at or after @stop
 * bytes, continue with a new iterator. Returns the number of events; @end
 * receives the last result of ht_ft_iter_next().
 */
static uint32_t walk(const uint8_t *data, uint32_t size, uint64_t ns,
                     uint32_t stop, HtFtStep *end)
{
    uint32_t events = 0, behind = 0;
    HtFtRecord r;
    HtFtIter it;

    ht_ft_iter_init(&it, data, size, 0, ns);
    while ((*end = ht_ft_iter_next(&it, &r)) == HT_FT_EVENT) {
        uint32_t at = r.data - data;

        g_assert_cmpuint(r.size, >=, HT_FT_EVENT_HEADER);
        g_assert_cmpuint(r.size % 4, ==, 0);
        g_assert_cmpuint(at, >=, behind + 4);
        g_assert_cmpuint(at + r.size, ==, it.pos);
        g_assert_cmpuint(it.pos, <=, size);
        g_assert_cmpuint(r.ns, ==, it.ns);
        behind = it.pos;
        events++;
        if (it.pos >= stop) {
            ht_ft_iter_init(&it, data, size, it.pos, it.ns);
            stop = UINT32_MAX;
        }
    }
    g_assert_cmpuint(it.pos, <=, size);
    if (*end == HT_FT_END) {
        g_assert_cmpuint(it.pos, ==, size);
    }
    return events;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    uint32_t stop = fuzz_bits(&in, 2);
    uint64_t ns = fuzz_number(&in);
    size_t left = in.end - in.p;
    g_autofree uint8_t *page = fuzz_copy(in.p, left);
    HtFtStep a, b;
    HtFtPage head;

    g_assert_cmpuint(walk(page, left, ns, UINT32_MAX, &a), ==,
                     walk(page, left, ns, stop, &b));
    g_assert_cmpint(a, ==, b);
    if (ht_ft_page_parse(page, left, &head)) {
        g_assert_cmpuint(head.size, <=, left - HT_FT_PAGE_HEADER);
        walk(page + HT_FT_PAGE_HEADER, head.size, head.stamp, stop, &a);
    }
    return 0;
}
