/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "latency.h"

static unsigned bucket_of(uint64_t v)
{
    unsigned shift;

    if (v < 1u << LATENCY_SUB_BITS) {
        return v;
    }
    shift = 63 - __builtin_clzll(v) - LATENCY_SUB_BITS;
    return (shift << LATENCY_SUB_BITS) + (v >> shift);
}

/* Get the middle of the range of times that a bucket counts, in ns. */
static uint64_t value_of(unsigned bucket)
{
    unsigned shift = bucket >> LATENCY_SUB_BITS;

    if (shift <= 1) {
        return bucket;
    }
    shift--;
    return ((uint64_t)(bucket - (shift << LATENCY_SUB_BITS)) << shift) +
           ((uint64_t)1 << shift) / 2;
}

void latency_add(Latency *l, int64_t ns)
{
    if (l->count == 0 || ns < l->min_ns) {
        l->min_ns = ns;
    }
    if (l->count == 0 || ns > l->max_ns) {
        l->max_ns = ns;
    }
    l->count++;
    if (ns < 0) {
        l->negative++;
    } else {
        l->buckets[bucket_of(ns)]++;
    }
}

uint64_t latency_percentile(const Latency *l, unsigned percent)
{
    uint64_t want = l->count * percent / 100, seen = l->negative;
    unsigned i;

    if (l->count == 0 || seen > want) {
        return 0;
    }
    for (i = 0; i < LATENCY_BUCKETS - 1; i++) {
        seen += l->buckets[i];
        if (seen > want) {
            break;
        }
    }
    return value_of(i);
}
