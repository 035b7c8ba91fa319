/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: times, added up without keeping each
 */
#ifndef HT_VERIFY_LATENCY_H
#define HT_VERIFY_LATENCY_H

#include <stdint.h>

#define LATENCY_SUB_BITS    6   /* 64 buckets to a doubling: 0.8 % wrong */
#define LATENCY_BUCKETS     ((64 - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS)

/**
 * Latency: a distribution of times
 * @count: all of them
 * @negative: recorded before they were emitted, as the clocks have it
 * @min_ns, @max_ns: valid if @count is not 0
 * @buckets: of those that are not negative
 */
typedef struct Latency {
    uint64_t count;
    uint64_t negative;
    int64_t min_ns;
    int64_t max_ns;
    uint32_t buckets[LATENCY_BUCKETS];
} Latency;

/**
 * latency_add: add a time
 */
void latency_add(Latency *l, int64_t ns);

/**
 * latency_percentile: a time that so many of 100 do not exceed
 *
 * Returns: ns; negative times count as 0, and so does an empty distribution
 */
uint64_t latency_percentile(const Latency *l, unsigned percent);

#endif /* HT_VERIFY_LATENCY_H */
