/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: guest counter to host CLOCK_MONOTONIC
 */
#ifndef HYPERTRACE_TIME_MAP_H
#define HYPERTRACE_TIME_MAP_H

#include "hypertrace/base.h"

/**
 * HtTimeMap: a piecewise linear map from guest counter to host ns
 * @count: segments known; 0: nothing yet
 * @nominal: ns per tick, times 2^32, until it is measured
 * @first: the sample from which the slope is measured
 * @seg: oldest first
 * @restart: the segments are another host's: the next sample begins a line
 *
 * A plain value: whoever shares one between threads copies it under a lock.
 */
#define HT_TIME_SEGMENTS 8

/*
 * No time is later (146 years of uptime), whatever counter a guest forges:
 * trace readers give up a whole trace over one that overflows 63 bits once
 * the clock's offset to 1970 is added.
 */
#define HT_TIME_MAX_NS (UINT64_C(1) << 62)
#define HT_TIME_MULT_SHIFT 32

typedef struct HtTimeSegment {
    uint64_t counter;           /* first guest counter it holds for */
    uint64_t ns;                /* host time of that counter */
    uint64_t mult;              /* ns per tick, times 2^32 */
    uint64_t bound_ns;          /* error bound */
} HtTimeSegment;

typedef struct HtTimeMap {
    unsigned count;
    uint64_t nominal;
    HtTimeSegment first;
    HtTimeSegment seg[HT_TIME_SEGMENTS];
    bool restart;
} HtTimeMap;

/**
 * ht_time_map_init: start with a known counter frequency
 * @m: the map
 * @hz: ticks a second, 1 kHz to 100 GHz; used until two samples are known
 */
void ht_time_map_init(HtTimeMap *m, uint64_t hz);

/**
 * ht_time_map_sample: add a pair of readings
 * @m: the map
 * @counter: guest counter
 * @ns: host time at which the counter had that value
 * @bound_ns: how wrong @ns may be
 *
 * A counter below the last sample's begins a new epoch (reset, loadvm): older
 * segments are dropped.
 */
void ht_time_map_sample(HtTimeMap *m, uint64_t counter, uint64_t ns,
                        uint64_t bound_ns);

/**
 * ht_time_map_load: begin with what another host knew of the past
 * @m: the map, just initialised
 * @seg: segments, oldest first; anything
 * @count: how many
 * @shift: what to add to their times
 * @now_ns: this host's time; what seems later is not used
 *
 * The counter goes on, perhaps at another rate, from the next sample on; until
 * then the error is unknown.
 *
 * Returns: false if @seg is no map's
 */
bool ht_time_map_load(HtTimeMap *m, const HtTimeSegment *seg, unsigned count,
                      int64_t shift, uint64_t now_ns);

/**
 * ht_time_shift: a time of another host's clock as one of ours
 * @ns: the time
 * @shift: to add
 * @now_ns: our time, at most which it is
 */
uint64_t ht_time_shift(uint64_t ns, int64_t shift, uint64_t now_ns);

/**
 * ht_time_map_to_ns: convert
 * @m: the map
 * @counter: any value; counters outside the samples are extrapolated
 *
 * Returns: host ns; 0 if the map is empty
 */
uint64_t ht_time_map_to_ns(const HtTimeMap *m, uint64_t counter);

static inline uint64_t ht_time_scale(uint64_t ticks, uint64_t mult)
{
    unsigned __int128 ns = ((unsigned __int128)ticks * mult) >>
                           HT_TIME_MULT_SHIFT;

    return MIN(ns, HT_TIME_MAX_NS);
}

/**
 * ht_time_segment_to_ns: convert with one segment
 * @s: the segment
 * @counter: any value
 *
 * Returns: host ns
 */
static inline uint64_t ht_time_segment_to_ns(const HtTimeSegment *s,
                                             uint64_t counter)
{
    uint64_t ns;

    if (G_LIKELY(counter >= s->counter)) {
        ns = s->ns + ht_time_scale(counter - s->counter, s->mult);
        return MIN(ns, HT_TIME_MAX_NS);
    }
    /* before the first sample: never below 0 */
    ns = ht_time_scale(s->counter - counter, s->mult);
    return s->ns - MIN(s->ns, ns);
}

/**
 * ht_time_map_bound: error bound of the newest segment, UINT64_MAX if there is
 * no sample of this host
 * @m: the map
 */
uint64_t ht_time_map_bound(const HtTimeMap *m);

/**
 * ht_time_map_drift: how far the newest segment may be off besides its bound
 * @m: the map
 * @ns: after so long without a new sample
 *
 * Returns: ns; from what the samples that gave its slope were worth
 */
uint64_t ht_time_map_drift(const HtTimeMap *m, uint64_t ns);

/**
 * ht_time_map_hz: the measured frequency, the nominal one if empty
 * @m: the map
 */
uint64_t ht_time_map_hz(const HtTimeMap *m);

#endif /* HYPERTRACE_TIME_MAP_H */
