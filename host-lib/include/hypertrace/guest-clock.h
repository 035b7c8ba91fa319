/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relate a guest's counter to the host's CLOCK_MONOTONIC
 *
 * If the host can read the counter, it reads both clocks.  Otherwise the
 * guest's TIME_SYNC exchanges bracket the host's clock.
 *
 * Context: any thread, for all functions unless stated otherwise.
 */
#ifndef HYPERTRACE_GUEST_CLOCK_H
#define HYPERTRACE_GUEST_CLOCK_H

#include "hypertrace/abi.h"
#include "hypertrace/thread.h"
#include "hypertrace/time-map.h"

/* HtCounter: read a counter; called with the clock's lock held */
typedef uint64_t HtCounter(void *opaque);

/* HtBracket: a counter, and the host's time within half of @width of it */
typedef struct HtBracket {
    uint64_t counter;
    uint64_t ns;
    uint64_t width;
} HtBracket;

/*
 * ht_bracket: read both clocks.  Takes the narrowest of a few brackets, because
 * an interrupt widens one.
 */
HtBracket ht_bracket(HtCounter *counter, void *opaque);

/* ht_wall_offset: read CLOCK_REALTIME - CLOCK_MONOTONIC in ns, by a bracket */
int64_t ht_wall_offset(void);

/* Accept dates later than the present, for tests with a counter of their own */
#define HT_GUEST_CLOCK_FUTURE   1u
/* Measure the rate of a counter that the host cannot read, by exchanges */
#define HT_GUEST_CLOCK_MEASURE  2u

/**
 * HtGuestClock: all members are private
 * @counter: reads the guest's counter; NULL: the host cannot.  With @lock
 * @offset: is added to what @counter returns
 * @opaque: argument of @counter
 * @flags: HT_GUEST_CLOCK_*
 * @ppm: maximum error of the configured rate
 * @lock: protects the members below, and @counter
 * @map: the relation
 * @version: number of changes of @map
 * @sampled_ns: time of the last reading in the map
 * @looked_ns: time of the last check
 * @exchange_ns: host time of the previous TIME_SYNC; 0: none
 * @exchange_cookie: its cookie
 * @rate_known: the rate was measured
 * @first_counter: reading that the rate is measured from
 * @first_ns: its host time
 * @first_width: width of its bracket in ns
 */
typedef struct HtGuestClock {
    HtCounter *counter;
    int64_t offset;
    void *opaque;
    unsigned flags;
    uint32_t ppm;
    HtMutex lock;
    HtTimeMap map;
    unsigned version;
    int64_t sampled_ns;
    int64_t looked_ns;
    uint64_t exchange_ns;
    uint32_t exchange_cookie;
    bool rate_known;
    uint64_t first_counter;
    uint64_t first_ns;
    uint64_t first_width;
} HtGuestClock;

/**
 * ht_guest_clock_init: make a clock without a reading
 * @c: the clock
 * @hz: approximate frequency of the counter in Hz, 1 kHz to 100 GHz
 * @ppm: maximum error of @hz
 * @flags: HT_GUEST_CLOCK_*
 */
void ht_guest_clock_init(HtGuestClock *c, uint64_t hz, uint32_t ppm,
                         unsigned flags);
void ht_guest_clock_destroy(HtGuestClock *c);

/**
 * ht_guest_clock_set_counter: say how the host reads the counter
 * @c: the clock
 * @counter: the function, or NULL
 * @opaque: its argument
 * @offset: is added to what it returns
 *
 * If this changes how the counter is read, earlier readings do not hold from
 * now on.
 */
void ht_guest_clock_set_counter(HtGuestClock *c, HtCounter *counter,
                                void *opaque, int64_t offset);

/* ht_guest_clock_restart: begin again with exchanges, and another rate */
void ht_guest_clock_restart(HtGuestClock *c, uint64_t hz, uint32_t ppm);

/* ht_guest_clock_break: the counter stopped or jumped: begin an epoch */
void ht_guest_clock_break(HtGuestClock *c);

/**
 * ht_guest_clock_sample: read both clocks, if the host can
 * @c: the clock
 * @now: also if the last reading is recent
 */
void ht_guest_clock_sample(HtGuestClock *c, bool now);

/**
 * ht_guest_clock_copy: get the map if it changed
 * @c: the clock
 * @map: updated.  No event is dated later than the last check
 * @version: of @map, updated; 0: none yet
 * @look: check now, and read both clocks if the last reading is old
 */
void ht_guest_clock_copy(HtGuestClock *c, HtTimeMap *map, unsigned *version,
                         bool look);

/* ht_guest_clock_sync: execute HT_MSG_TIME_SYNC */
void ht_guest_clock_sync(HtGuestClock *c, struct ht_msg_time *m);

/* ht_guest_clock_hz: get the counter's frequency in Hz */
uint64_t ht_guest_clock_hz(HtGuestClock *c);

/**
 * ht_guest_clock_bound: get the maximum error of dates
 *
 * If the host reads the counter itself, this covers events of the next 10 ms,
 * else of the next second, whenever they are consumed.
 *
 * Returns: the error in ns; UINT64_MAX if it is not known
 */
uint64_t ht_guest_clock_bound(HtGuestClock *c);

/**
 * ht_guest_clock_save: get the segments of the map
 * @c: the clock
 * @seg: HT_TIME_SEGMENTS elements
 *
 * Returns: the number of segments written
 */
unsigned ht_guest_clock_save(HtGuestClock *c, HtTimeSegment *seg);

/**
 * ht_guest_clock_load: continue another host's map
 * @c: the clock
 * @seg: the segments; not trusted
 * @count: number of segments
 * @shift_ns: added to their times
 * @keep: the host still knows how to read the counter
 *
 * Returns: false if the segments are not valid; nothing changes then
 */
bool ht_guest_clock_load(HtGuestClock *c, const HtTimeSegment *seg,
                         unsigned count, int64_t shift_ns, bool keep);

#endif /* HYPERTRACE_GUEST_CLOCK_H */
