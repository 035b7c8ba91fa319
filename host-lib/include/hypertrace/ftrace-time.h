/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a ring's times on the host's clock
 *
 * Nobody tells how the guest's trace clock relates to the host's.  But what a
 * look finds was written before the look ended, and what was reserved after
 * an event that the look before did not find was written after that look
 * began.  So each look brackets a time of the guest, as a reading does for
 * time-map.h, which makes dates and bounds of these.
 */
#ifndef HYPERTRACE_FTRACE_TIME_H
#define HYPERTRACE_FTRACE_TIME_H

#include "hypertrace/ftrace-follow.h"
#include "hypertrace/time-map.h"

/*
 * How wrong a guest's clock may be: Linux takes a better measurement of its
 * TSC for one if it is within 1 % of the first...
 */
#define HT_FT_TIME_PPM 10000
/*
 * ...and once it does so, seconds after it booted, the rate changes by as much
 * as the first was wrong.  NTP on the host may make as much of it.
 */
#define HT_FT_TIME_WANDER_PPM 500

/**
 * HtFtTime: the relation of the two clocks
 * @hz: of the guest's clock, by the host's...
 * @ppm: ...and how wrong that may be
 * @map: from the guest's to the host's; empty until a time of the guest has
 *       both a lower and an upper bound
 * @counter: a time of the guest, the newest that is known...
 * @at: ...and the host's then: 0 and HT_TIME_MAX_NS are no bounds
 * @from: the guest's time from which on all this holds
 * @since: the first time that the last look had
 * @news: @map does not know @at yet
 * @stepped: the guest's clock stepped within this look...
 * @wide: ...in which the host's then was between these
 * @steps: times that what was learnt contradicted it: a step of the guest's
 *         clock, or one that is not in ns
 */
typedef struct HtFtTime {
    uint64_t hz;
    uint32_t ppm;
    HtTimeMap map;
    uint64_t counter;
    HtTimeInterval at;
    uint64_t from;
    uint64_t since;
    bool news;
    bool stepped;
    HtTimeInterval wide;
    uint64_t steps;
} HtFtTime;

/* ht_ft_time_reset: nothing is known, as after a stop of the guest */
void ht_ft_time_reset(HtFtTime *t);

/**
 * ht_ft_time_expect: say what is known of the guest's clock, after a reset
 * @t: the relation
 * @hz: HtFtTime.hz, else 1 GHz: it counts nanoseconds
 * @ppm: HtFtTime.ppm, else HT_FT_TIME_PPM
 */
void ht_ft_time_expect(HtFtTime *t, uint64_t hz, uint32_t ppm);

/**
 * HtFtBounds: what a piece says of the host's clock
 * @begin_ns: its first time, the guest's
 * @low_ns: a time of the guest...
 * @low: ...before which the host's was this; 0: nothing is known
 * @high_ns: a time of the guest...
 * @high: ...after which the host's was this; HT_TIME_MAX_NS: nothing is known
 */
typedef struct HtFtBounds {
    uint64_t begin_ns;
    uint64_t low_ns;
    uint64_t low;
    uint64_t high_ns;
    uint64_t high;
} HtFtBounds;

/**
 * ht_ft_time_bounds: read a piece
 * @p: a piece of a look with HtFtFollowOps.now
 * @b: set to what it says
 *
 * Returns: false if it says nothing
 */
bool ht_ft_time_bounds(const HtFtPiece *p, HtFtBounds *b);

/**
 * ht_ft_time_add: take bounds into account
 * @t: one for all processors of a ring
 * @b: of a piece, of any of them
 *
 * Those of a look are added before a time of it is asked for.
 */
void ht_ft_time_add(HtFtTime *t, const HtFtBounds *b);

/**
 * ht_ft_time_host: a guest's time on the host's clock
 * @t: what is known
 * @p: the piece that the time is of
 * @ns: of the guest
 *
 * Returns: the host's time; not later than the look that found it
 */
uint64_t ht_ft_time_host(HtFtTime *t, const HtFtPiece *p, uint64_t ns);

/**
 * ht_ft_time_bound: how wrong the dates of the last look are at most
 * @t: what is known
 *
 * Returns: ns; UINT64_MAX if that is not known
 */
uint64_t ht_ft_time_bound(HtFtTime *t);

/**
 * ht_ft_time_bracket: between which times of the host a piece was written
 * @t: what is known
 * @p: of another follower, whose look found much at once: its host_before and
 *     host_after are narrowed to what @t says
 */
void ht_ft_time_bracket(const HtFtTime *t, HtFtPiece *p);

/**
 * ht_ft_time_settle: have @t.map know what was added
 * @t: what is known
 */
void ht_ft_time_settle(HtFtTime *t);

#endif /* HYPERTRACE_FTRACE_TIME_H */
