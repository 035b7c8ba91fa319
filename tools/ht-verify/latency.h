/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: count times in a distribution, in constant memory
 */
#ifndef HT_VERIFY_LATENCY_H
#define HT_VERIFY_LATENCY_H

#include <stdint.h>

/*
 * Binary logarithm of the number of buckets for each power of two.  With 64
 * buckets, a time differs from the middle of its bucket by at most 0.8 %.
 */
#define LATENCY_SUB_BITS    6
#define LATENCY_BUCKETS     ((64 - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS)

/**
 * Latency: a distribution of times
 * @count: number of times in the distribution
 * @negative: number of negative times: by its two times, the event was recorded
 *            before the guest emitted it
 * @min_ns: least time; valid if @count is not 0
 * @max_ns: greatest time; valid if @count is not 0
 * @buckets: for each range of times that are not negative, the number of times
 *           in it
 */
typedef struct Latency {
    uint64_t count;
    uint64_t negative;
    int64_t min_ns;
    int64_t max_ns;
    uint32_t buckets[LATENCY_BUCKETS];
} Latency;

/**
 * latency_add: count a latency of @ns in a distribution
 */
void latency_add(Latency *l, int64_t ns);

/**
 * latency_percentile: get a percentile
 * @l: the distribution
 * @percent: 0 to 99
 *
 * Returns: nanoseconds, the middle of a bucket; 0 if the percentile is negative
 * or @l is empty
 */
uint64_t latency_percentile(const Latency *l, unsigned percent);

#endif /* HT_VERIFY_LATENCY_H */
