/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: convert a guest's counter to the host's CLOCK_MONOTONIC
 */
#ifndef HYPERTRACE_TIME_MAP_H
#define HYPERTRACE_TIME_MAP_H

#include "hypertrace/base.h"

#ifndef __SIZEOF_INT128__
#error "hypertrace needs a host of 64 bits"
#endif

#define HT_TIME_SEGMENTS 8

/*
 * Maximum of all converted times, in ns: 146 years.  A guest can forge any
 * counter.  If a time plus the clock's offset to 1970 overflowed 63 bits, trace
 * readers would reject the whole trace.
 */
#define HT_TIME_MAX_NS (UINT64_C(1) << 62)
#define HT_TIME_MULT_SHIFT 32

/* Limits of a counter's frequency, in ticks per second */
#define HT_TIME_HZ_MIN UINT64_C(1000)
#define HT_TIME_HZ_MAX UINT64_C(100000000000)

/*
 * Default of HtTimeMap.wander: maximum change of a counter's rate, measured by
 * the host's clock, in ppm.  Temperature changes the rate, and so does NTP,
 * which adjusts CLOCK_MONOTONIC.  A larger change makes error bounds wrong.
 */
#define HT_TIME_WANDER_PPM 50
/*
 * Default of HtTimeMap.ppm: maximum error of a measured frequency in ppm,
 * including later changes of the rate
 */
#define HT_TIME_NOMINAL_PPM 100
/* Upper limit of HtTimeMap.ppm, for a frequency that was not measured */
#define HT_TIME_PPM_MAX 20000

typedef struct HtTimeSegment {
    uint64_t counter;           /* guest counter at the segment's start */
    uint64_t ns;                /* host time at @counter, in ns */
    /* host ns per tick of the counter, times 2^32 */
    uint64_t mult;
    /* maximum error of a date in ns; in the newest segment: at @counter only */
    uint64_t bound_ns;
} HtTimeSegment;

/* Earliest and latest possible host time of a counter value, in ns */
typedef struct HtTimeInterval {
    uint64_t lo;
    uint64_t hi;
} HtTimeInterval;

/**
 * HtTimeMap: a piecewise linear map from guest counter to host ns
 * @count: number of segments; 0 if there was no reading yet
 * @epoch: index of the first segment of the present epoch: all readings from
 *         there on agree
 * @nominal: ns per tick, times 2^32, from the configured frequency
 * @ppm: maximum error of @nominal in ppm
 * @wander: maximum difference of the present rate from the mean, in ppm
 * @step_ns: a new reading replaces the previous reading of the epoch if the
 *           last two distances between readings are shorter than this, in ns
 * @slowest: minimum of ns per tick that @ppm and the readings allow, times 2^32
 * @fastest: maximum of ns per tick that @ppm and the readings allow, times 2^32
 * @mean: mean ns per tick in the epoch so far, times 2^32
 * @first: counter at which the present epoch begins
 * @first_at: earliest and latest host time of @first
 * @seg: the segments, oldest first; each begins at a reading, or at a counter
 *       where an epoch is assumed to begin
 * @at: earliest and latest host times of the starts of the segments
 * @restart: the counter was interrupted, or the map was loaded: the next
 *           reading begins an epoch
 * @now: returns the host's time in ns; NULL: dates after the present are
 *       accepted
 * @latest: host time up to which dates are accepted without a call of @now
 *
 * The map has no lock: threads that share it must copy it under a lock of their
 * own.
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
    int64_t (*now)(void);
    uint64_t latest;
} HtTimeMap;

/**
 * ht_time_map_init: initialize a map by a counter's frequency
 * @m: the map
 * @hz: HT_TIME_HZ_MIN to HT_TIME_HZ_MAX, with an error of at most
 *      HT_TIME_NOMINAL_PPM, unless ht_time_map_set_ppm() is called next
 */
void ht_time_map_init(HtTimeMap *m, uint64_t hz);

/**
 * ht_time_map_set_ppm: set the maximum error of the frequency
 * @m: a map without readings
 * @ppm: HtTimeMap.wander to HT_TIME_PPM_MAX; clamped to this range
 */
void ht_time_map_set_ppm(HtTimeMap *m, uint32_t ppm);

/**
 * ht_time_map_set_wander: set how much the counter's rate may change
 * @m: a map without readings
 * @ppm: HtTimeMap.wander; the default is HT_TIME_WANDER_PPM
 * @step_ns: HtTimeMap.step_ns; the default is 50 ms
 */
void ht_time_map_set_wander(HtTimeMap *m, uint32_t ppm, uint64_t step_ns);

/**
 * ht_time_map_sample: add a reading
 * @m: the map
 * @counter: guest counter
 * @ns: host time at which the counter had that value
 * @bound_ns: maximum error of @ns; UINT64_MAX if @ns is a guess
 *
 * All readings that agree with each other are used, even those with wide
 * bounds.  A reading that contradicts the earlier ones begins an epoch.  A
 * counter below the last one (reset, loadvm) begins an epoch, too, and drops
 * all earlier segments.
 */
void ht_time_map_sample(HtTimeMap *m, uint64_t counter, uint64_t ns,
                        uint64_t bound_ns);

/**
 * ht_time_map_break: note that the counter stood still or jumped just now
 * @m: the map
 *
 * The next reading begins an epoch even if it agrees with earlier ones.  Dates
 * of the past stay valid; until the next reading the error is unknown.
 */
void ht_time_map_break(HtTimeMap *m);

/**
 * ht_time_map_load: load segments that another host has saved
 * @m: the map, just initialized
 * @seg: segments, oldest first; not trusted
 * @count: number of @seg
 * @shift: value to add to the times of the segments, in ns
 * @now_ns: this host's time; a segment that seems later gets this time
 *
 * A segment that would begin at or before time 0 is dropped.  The error is
 * unknown until the next sample, which may show another rate of the counter.
 *
 * Returns: false if @seg is not valid
 */
bool ht_time_map_load(HtTimeMap *m, const HtTimeSegment *seg, unsigned count,
                      int64_t shift, uint64_t now_ns);

/**
 * ht_time_shift: convert a time of another host's clock to this host's
 * @ns: the time
 * @shift: value to add, in ns
 * @now_ns: this host's present time; the result is not later
 */
uint64_t ht_time_shift(uint64_t ns, int64_t shift, uint64_t now_ns);

/**
 * ht_time_map_to_ns: convert a counter to host time
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
 * ht_time_segment_to_ns: convert a counter by one segment
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
    /* The counter is before the segment: extrapolate backwards. */
    ns = ht_time_scale(s->counter - counter, s->mult);
    return s->ns - MIN(s->ns, ns);
}

/**
 * ht_time_map_bound: get the maximum error of recent dates
 * @m: the map
 * @ns: host time; the result is valid for events up to this time, even if they
 *      are dated when later readings have changed the map
 *
 * Returns: the error in ns, which grows with @ns; UINT64_MAX if there is no
 * reading of this host, no reading since ht_time_map_break(), or only a guess
 */
uint64_t ht_time_map_bound(const HtTimeMap *m, uint64_t ns);

/**
 * ht_time_map_hz: get the counter's frequency in Hz, as last measured; before
 * the first reading, the frequency passed to ht_time_map_init()
 * @m: the map
 */
uint64_t ht_time_map_hz(const HtTimeMap *m);

#endif /* HYPERTRACE_TIME_MAP_H */
