/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: convert an ftrace ring's time stamps to the host's clock
 *
 * The guest does not report how its trace clock relates to the host's clock.
 * Each poll of the ring bounds this relation:
 *  - An event that a poll finds was written before that poll ended.
 *  - An event that a task writes after an event that the previous poll did not
 *    find was written after the previous poll began, if that poll took all
 *    committed events.
 * A poll thus brackets a guest time between two host times.  A time map
 * (time-map.h) turns these brackets into dates with error bounds.
 */
#ifndef HYPERTRACE_FTRACE_TIME_H
#define HYPERTRACE_FTRACE_TIME_H

#include "hypertrace/ftrace-follow.h"
#include "hypertrace/time-map.h"

/*
 * Maximum error of the guest's nominal clock rate, in ppm.  Linux replaces its
 * first measurement of the TSC rate by a refined one if they differ by at most
 * 1 %.
 */
#define HT_FT_TIME_PPM 10000
/*
 * Maximum change of the rate while the guest runs, in ppm.  NTP on the host can
 * slew the host's clock by as much.  The rate also changes when a guest's Linux
 * replaces its first measurement, seconds after boot.
 */
#define HT_FT_TIME_WANDER_PPM 500

/**
 * HtFtTime: the relation between a guest's trace clock and the host's clock
 * @hz: nominal rate of the guest's clock in ticks per host second
 * @ppm: maximum error of @hz in ppm
 * @map: converts guest times to host times; empty until a guest time has both
 *       a lower and an upper bound
 * @counter: the newest guest time that a bound refers to
 * @at: bounds of the host time at @counter in ns; 0 and HT_TIME_MAX_NS mean
 *      that the bound is not known
 * @news: bounds were added since ht_ft_time_settle() was called last
 * @stepped: the guest's clock stepped within this poll
 * @wide: with @stepped: bounds of the host time at @counter that include both
 *        sides of the step
 * @steps: number of contradictions found so far: steps of the guest's clock, or
 *         a clock that does not count ns
 */
typedef struct HtFtTime {
    uint64_t hz;
    uint32_t ppm;
    HtTimeMap map;
    uint64_t counter;
    HtTimeInterval at;
    bool news;
    bool stepped;
    HtTimeInterval wide;
    uint64_t steps;
} HtFtTime;

/**
 * ht_ft_time_reset: forget the relation, for a new segment of the guest's clock
 * @t: the relation
 */
void ht_ft_time_reset(HtFtTime *t);

/**
 * ht_ft_time_expect: set the rate of the guest's clock, after a reset
 * @t: the relation
 * @hz: see HtFtTime; ht_ft_time_reset() sets 1 GHz, for a clock that counts ns
 * @ppm: see HtFtTime; ht_ft_time_reset() sets HT_FT_TIME_PPM
 */
void ht_ft_time_expect(HtFtTime *t, uint64_t hz, uint32_t ppm);

/**
 * HtFtBounds: bounds that one piece sets on the host's clock
 * @low_ns: the guest time that @low refers to
 * @low: lower bound of the host time at @low_ns in ns; 0 if not known
 * @high_ns: the guest time that @high refers to
 * @high: upper bound of the host time at @high_ns in ns; HT_TIME_MAX_NS if not
 *        known
 */
typedef struct HtFtBounds {
    uint64_t low_ns;
    uint64_t low;
    uint64_t high_ns;
    uint64_t high;
} HtFtBounds;

/**
 * ht_ft_time_bounds: get the bounds that a piece sets
 * @p: a piece of a follower that has HtFtFollowOps.now
 * @b: set to the bounds
 *
 * Returns: false if the piece sets no bound
 */
bool ht_ft_time_bounds(const HtFtPiece *p, HtFtBounds *b);

/**
 * ht_ft_time_add: narrow the relation by the bounds of a piece
 * @t: the relation, shared by all processors of a ring
 * @b: the bounds of a piece of any processor
 *
 * Add the bounds of all pieces of a poll before converting a time of that poll.
 */
void ht_ft_time_add(HtFtTime *t, const HtFtBounds *b);

/**
 * ht_ft_time_host: convert a guest time to the host's clock
 * @t: the relation
 * @p: the piece that contains the event
 * @ns: the guest time
 *
 * Returns: the host time in ns, at most @p->host_after
 */
uint64_t ht_ft_time_host(HtFtTime *t, const HtFtPiece *p, uint64_t ns);

/**
 * ht_ft_time_settle: add the bounds of this poll to @t->map as a sample, if
 * there are a lower and an upper one
 * @t: the relation
 */
void ht_ft_time_settle(HtFtTime *t);

#endif /* HYPERTRACE_FTRACE_TIME_H */
