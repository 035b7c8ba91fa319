/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: summarize the errors of many times
 *
 * A single time, as the first one of a boot, may have an error of minutes while
 * all others have errors of microseconds. So the maximum error alone says
 * little, and bounds for a part of the times are computed, too.
 */
#ifndef HYPERTRACE_TOOL_BOUNDS_H
#define HYPERTRACE_TOOL_BOUNDS_H

#include <glib.h>
#include <stdint.h>

/**
 * HtBounds: errors of times; all members must be 0 before the first
 * ht_bounds_add(). The index of @count and @max is the number of significant
 * bits of an error in nanoseconds.
 * @count: number of times that have an error with this number of bits
 * @max: the largest error with this number of bits, in nanoseconds
 * @all: number of all times
 */
typedef struct HtBounds {
    uint64_t count[65];
    uint64_t max[65];
    uint64_t all;
} HtBounds;

/**
 * ht_bounds_add: count a time whose error is @ns nanoseconds
 */
static inline void ht_bounds_add(HtBounds *b, uint64_t ns)
{
    unsigned i = ns ? 64 - __builtin_clzll(ns) : 0;

    b->count[i]++;
    b->max[i] = MAX(b->max[i], ns);
    b->all++;
}

/**
 * ht_bounds_of: get a bound that holds for a part of the times
 * @b: the errors
 * @percent: the part, 1 to 100
 *
 * Returns: nanoseconds; at least @percent % of the times have an error of at
 * most this; 0 if there are no times
 */
static inline uint64_t ht_bounds_of(const HtBounds *b, unsigned percent)
{
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < 64; i++) {
        sum += b->count[i];
        if ((double)sum >= (double)b->all * percent / 100) {
            break;
        }
    }
    return b->max[i];
}

#endif /* HYPERTRACE_TOOL_BOUNDS_H */
