/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: compute durations from times of a guest's clock
 *
 * Use these functions for the difference between two guest times. The guest's
 * clock may step back. The difference is then unknown or 0, but never wraps
 * around.
 */
#ifndef HYPERTRACE_TOOL_DURATION_H
#define HYPERTRACE_TOOL_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/**
 * HtDuration: a duration that may be unknown
 * @ns: nanoseconds; UINT64_MAX if the duration is not known
 */
typedef struct HtDuration {
    uint64_t ns;
} HtDuration;

#define HT_DURATION_UNKNOWN ((HtDuration) { UINT64_MAX })

/**
 * ht_duration: compute the time from one event to another
 * @from: nanoseconds of the guest's clock
 * @to: nanoseconds of the same segment of the guest's clock
 *
 * Returns: the duration; unknown if @to is before @from
 */
static inline HtDuration ht_duration(uint64_t from, uint64_t to)
{
    return (HtDuration) { to >= from ? to - from : UINT64_MAX };
}

static inline bool ht_duration_known(HtDuration d)
{
    return d.ns != UINT64_MAX;
}

/**
 * ht_duration_ns: get nanoseconds
 * @d: the duration
 *
 * Returns: nanoseconds, 0 if the duration is not known
 */
static inline uint64_t ht_duration_ns(HtDuration d)
{
    return ht_duration_known(d) ? d.ns : 0;
}

/* ht_elapsed() - get @to - @from; 0 if @to is before @from */
static inline uint64_t ht_elapsed(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

/**
 * ht_duration_longer: compare two durations, to sort the longest first
 *
 * Returns: -1 if @a is longer, 1 if @b is longer, or 0; an unknown duration
 * counts as the shortest
 */
static inline int ht_duration_longer(HtDuration a, HtDuration b)
{
    /* Adding 1 wraps "unknown" to 0, below all other durations. */
    uint64_t x = a.ns + 1, y = b.ns + 1;

    return x > y ? -1 : x < y;
}

#endif /* HYPERTRACE_TOOL_DURATION_H */
