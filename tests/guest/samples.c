/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "clock.h"
#include "console.h"
#include "samples.h"

static void sift_down(uint32_t *v, uint32_t root, uint32_t end)
{
    uint32_t child;

    while ((child = 2 * root + 1) < end) {
        uint32_t swap;

        if (child + 1 < end && v[child] < v[child + 1]) {
            child++;
        }
        if (v[root] >= v[child]) {
            return;
        }
        swap = v[root];
        v[root] = v[child];
        v[child] = swap;
        root = child;
    }
}

static void heap_sort(uint32_t *v, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;) {
        sift_down(v, i, n);
    }
    while (n > 1) {
        uint32_t last = v[--n];

        v[n] = v[0];
        v[0] = last;
        sift_down(v, 0, n);
    }
}

void samples_json(struct samples *s, uint64_t hz)
{
    /* @at: rank of the percentile in thousandths, such as 990 for p99 */
    static const struct {
        const char *name;
        uint32_t at;
    } points[] = {
        { "min_ns", 0 }, { "p10_ns", 100 }, { "p25_ns", 250 },
        { "p50_ns", 500 }, { "p75_ns", 750 }, { "p90_ns", 900 },
        { "p99_ns", 990 }, { "p999_ns", 999 }, { "max_ns", 1000 },
    };

    json_u64("groups", s->nr);
    if (!s->nr) {
        return;
    }
    heap_sort(s->ticks, s->nr);
    for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        uint32_t ticks = s->ticks[(uint64_t)(s->nr - 1) * points[i].at / 1000];

        json_milli(points[i].name, clock_ps(ticks, hz) >> 6);
    }
}
