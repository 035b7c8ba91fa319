/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: guest counter to host CLOCK_MONOTONIC
 */
#ifndef HYPERTRACE_TIME_MAP_H
#define HYPERTRACE_TIME_MAP_H

#include "hypertrace/base.h"

#ifndef __SIZEOF_INT128__
#error "hypertrace needs a host of 64 bits"
#endif

#define HT_TIME_SEGMENTS 8

/*
 * No time is later (146 years of uptime), whatever counter a guest forges:
 * trace readers give up a whole trace over one that overflows 63 bits once
 * the clock's offset to 1970 is added.
 */
#define HT_TIME_MAX_NS (UINT64_C(1) << 62)
#define HT_TIME_MULT_SHIFT 32

/*
 * By how much a counter's rate, in host time, may change: temperature, and
 * what NTP does to CLOCK_MONOTONIC once it has settled.  All bounds rest on
 * this.
 */
#define HT_TIME_WANDER_PPM 50
/* How wrong a measured frequency is taken to be, wander included */
#define HT_TIME_NOMINAL_PPM 100
/* How wrong one may be that was only assumed */
#define HT_TIME_PPM_MAX 20000

typedef struct HtTimeSegment {
    uint64_t counter;           /* first guest counter it holds for */
    uint64_t ns;                /* host time of that counter */
    uint64_t mult;              /* ns per tick, times 2^32 */
    uint64_t bound_ns;          /* error bound; of the newest: at @counter */
} HtTimeSegment;

/* The host times, first and last, that a reading and the others leave it */
typedef struct HtTimeInterval {
    uint64_t lo;
    uint64_t hi;
} HtTimeInterval;

/**
 * HtTimeMap: a piecewise linear map from guest counter to host ns
 * @count: segments known; 0: nothing yet
 * @epoch: the first segment whose readings do not contradict the newest
 * @nominal: ns per tick, times 2^32, as assumed or measured beforehand
 * @ppm: how wrong @nominal may be
 * @wander: by how much the present rate may differ from the mean, in ppm
 * @step_ns: readings closer than this share a segment
 * @slowest: least ns per tick, times 2^32, by @ppm and the readings...
 * @fastest: ...and most
 * @mean: that of the epoch so far
 * @first: counter of the first reading of the epoch...
 * @first_at: ...and when that was
 * @seg: oldest first; each begins with a reading
 * @at: when those readings were
 * @restart: the counter is not what it was: the next reading begins an epoch
 * @now: tells the host's time; NULL: nobody knows
 * @latest: what @now told last
 *
 * A plain value: whoever shares one between threads copies it under a lock.
 */
typedef struct HtTimeMap {
    unsigned count;
    unsigned epoch;
    uint64_t nominal;
    uint32_t ppm;
    uint32_t wander;
    uint64_t step_ns;
    uint64_t slowest;
    uint64_t fastest;
    uint64_t mean;
    uint64_t first;
    HtTimeInterval first_at;
    HtTimeSegment seg[HT_TIME_SEGMENTS];
    HtTimeInterval at[HT_TIME_SEGMENTS];
    bool restart;
    uint64_t (*now)(void);
    uint64_t latest;
} HtTimeMap;

/**
 * ht_time_map_init: start with a counter's frequency
 * @m: the map
 * @hz: ticks a second, 1 kHz to 100 GHz, within HT_TIME_NOMINAL_PPM
 */
void ht_time_map_init(HtTimeMap *m, uint64_t hz);

/**
 * ht_time_map_set_ppm: say how wrong the frequency may be
 * @m: a map without readings
 * @ppm: HtTimeMap.wander to HT_TIME_PPM_MAX; others are taken for these
 */
void ht_time_map_set_ppm(HtTimeMap *m, uint32_t ppm);

/**
 * ht_time_map_set_wander: say what is different with this counter
 * @m: a map without readings
 * @ppm: HtTimeMap.wander, else HT_TIME_WANDER_PPM
 * @step_ns: HtTimeMap.step_ns, else 50 ms
 */
void ht_time_map_set_wander(HtTimeMap *m, uint32_t ppm, uint64_t step_ns);

/**
 * ht_time_map_sample: add a reading
 * @m: the map
 * @counter: guest counter
 * @ns: host time at which the counter had that value
 * @bound_ns: how wrong @ns may be; UINT64_MAX: a guess
 *
 * All readings that agree are used, the wide ones too.  One that contradicts
 * them begins an epoch, as does a counter below the last one's (reset, loadvm);
 * then older segments are dropped as well.
 */
void ht_time_map_sample(HtTimeMap *m, uint64_t counter, uint64_t ns,
                        uint64_t bound_ns);

/**
 * ht_time_map_break: the counter stood still or jumped just now
 * @m: the map
 *
 * Readings from now on do not belong to those before, even if they would agree.
 * Dates of the past stay; until the next reading the error is unknown.
 */
void ht_time_map_break(HtTimeMap *m);

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
 * ht_time_map_bound: how wrong the dates may be
 * @m: the map
 * @ns: of events until then that came after the newest reading, also if they
 * are dated when there are newer ones
 *
 * Returns: ns, growing with @ns; UINT64_MAX if there is no reading of this
 * host, or of the time since ht_time_map_break()
 */
uint64_t ht_time_map_bound(const HtTimeMap *m, uint64_t ns);

/**
 * ht_time_map_hz: the counter's frequency as far as is known
 * @m: the map
 */
uint64_t ht_time_map_hz(const HtTimeMap *m);

#endif /* HYPERTRACE_TIME_MAP_H */
