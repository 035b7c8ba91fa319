/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a ring's times on the host's clock
 *
 * Nobody tells how the guest's trace clock relates to the host's.  But what a
 * look finds was written before the look ended, and what was reserved after
 * an event that the look before did not find was written after that look
 * began.  Both bound the difference of the clocks; between looks the bounds
 * widen by as much as the clocks' rates may differ.
 */
#ifndef HYPERTRACE_FTRACE_TIME_H
#define HYPERTRACE_FTRACE_TIME_H

#include "hypertrace/ftrace-follow.h"

/* How much a guest's clock may be faster or slower: parts in a million */
#define HT_FT_TIME_PPM 500

/**
 * HtFtTime: the difference of the two clocks, host minus guest, in ns
 * @lowest: it is not less; INT64_MIN if nothing is known
 * @highest: nor more; INT64_MAX if nothing is known
 * @at_ns: the host's time when that was so
 * @steps: times that what was learnt contradicted it: a step of the guest's
 *         clock, or one that is not in ns
 */
typedef struct HtFtTime {
    int64_t lowest;
    int64_t highest;
    uint64_t at_ns;
    uint64_t steps;
} HtFtTime;

/* ht_ft_time_reset: nothing is known, as after a stop of the guest */
void ht_ft_time_reset(HtFtTime *t);

/**
 * ht_ft_time_learn: take a piece into account
 * @t: one for all processors of a ring; none of its pieces is left out
 * @p: a piece of a look with HtFtFollowOps.now
 */
void ht_ft_time_learn(HtFtTime *t, const HtFtPiece *p);

/**
 * ht_ft_time_host: a guest's time on the host's clock
 * @t: what is known
 * @p: the piece that the time is of
 * @ns: of the guest
 *
 * Returns: the host's time; not later than the look that found it
 */
uint64_t ht_ft_time_host(const HtFtTime *t, const HtFtPiece *p, uint64_t ns);

/**
 * ht_ft_time_bound: how wrong ht_ft_time_host() is at most, now
 * @t: what is known
 *
 * Of events that were written about when they were found; those of a first
 * look add HT_FT_TIME_PPM of their age.
 *
 * Returns: ns; UINT64_MAX if that is not known
 */
uint64_t ht_ft_time_bound(const HtFtTime *t);

#endif /* HYPERTRACE_FTRACE_TIME_H */
