/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relate a guest's counter to the host's CLOCK_MONOTONIC
 *
 * If the host can read the counter, it reads the counter and its own clock.
 * Otherwise the guest sends TIME_SYNC messages: the guest reads the counter
 * before and after the host reads CLOCK_MONOTONIC.
 *
 * Context: any thread, for all functions unless stated otherwise.
 */
#ifndef HYPERTRACE_GUEST_CLOCK_H
#define HYPERTRACE_GUEST_CLOCK_H

#include "hypertrace/abi.h"
#include "hypertrace/thread.h"
#include "hypertrace/time-map.h"

/*
 * HtCounter: callback that reads a counter.  A clock calls its own counter with
 * HtGuestClock.lock held.
 */
typedef uint64_t HtCounter(void *opaque);

/*
 * HtBracket: a value of the counter, and the host's time @ns of that value,
 * with a maximum error of @width / 2 + 1 ns
 */
typedef struct HtBracket {
    uint64_t counter;
    uint64_t ns;
    uint64_t width;
} HtBracket;

/*
 * ht_bracket: read the counter and the host's clock.  Tries four times and
 * returns the narrowest bracket, because an interrupt widens a bracket.
 */
HtBracket ht_bracket(HtCounter *counter, void *opaque);

/* ht_wall_offset: measure CLOCK_REALTIME minus CLOCK_MONOTONIC, in ns */
int64_t ht_wall_offset(void);

/*
 * Accept dates that are later than now; for tests that make up their own
 * counter
 */
#define HT_GUEST_CLOCK_FUTURE   1u
/*
 * If the host cannot read the counter, measure its rate from the exchanges with
 * the guest
 */
#define HT_GUEST_CLOCK_MEASURE  2u

/**
 * HtGuestClock: all members are private
 * @counter: function that reads the guest's counter; NULL: the host cannot read
 *           it.  Protected by @lock
 * @offset: value to add to the result of @counter
 * @opaque: argument of @counter
 * @flags: HT_GUEST_CLOCK_*
 * @ppm: maximum error of the rate passed to ht_guest_clock_init(), in ppm
 * @lock: protects the members below, @counter, @offset and @opaque
 * @map: map from the counter to host time
 * @version: number of changes of @map
 * @sampled_ns: host time at which the last reading was added to the map, in ns
 * @looked_ns: host time of the last check whether a reading was due, in ns
 * @exchange_ns: host time of the previous TIME_SYNC; 0: none
 * @exchange_cookie: cookie of that TIME_SYNC
 * @rate_known: the rate was measured
 * @first_counter: reading that the rate is measured from
 * @first_ns: host time of that reading
 * @first_width: width of that reading's bracket in ns
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
 * @ppm: maximum error of @hz in ppm, as for ht_time_map_set_ppm()
 * @flags: HT_GUEST_CLOCK_*, or 0
 */
void ht_guest_clock_init(HtGuestClock *c, uint64_t hz, uint32_t ppm,
                         unsigned flags);
void ht_guest_clock_destroy(HtGuestClock *c);

/**
 * ht_guest_clock_set_counter: set how the host reads the counter
 * @c: the clock
 * @counter: the function, or NULL
 * @opaque: its argument
 * @offset: value to add to its result
 *
 * If @counter or @offset changes, the next reading begins a new epoch of the
 * map; the function makes this reading itself unless @counter is NULL.
 */
void ht_guest_clock_set_counter(HtGuestClock *c, HtCounter *counter,
                                void *opaque, int64_t offset);

/*
 * ht_guest_clock_restart: drop all readings; from now on use another rate, and
 * exchanges with the guest instead of the function that reads the counter
 */
void ht_guest_clock_restart(HtGuestClock *c, uint64_t hz, uint32_t ppm);

/*
 * ht_guest_clock_break: begin a new epoch, because the counter stopped or
 * jumped
 */
void ht_guest_clock_break(HtGuestClock *c);

/**
 * ht_guest_clock_sample: read the counter and the host's clock, if the host can
 * read the counter
 * @c: the clock
 * @now: read even if the last reading is less than 10 ms old
 */
void ht_guest_clock_sample(HtGuestClock *c, bool now);

/**
 * ht_guest_clock_copy: copy the map, if it changed since the last copy
 * @c: the clock
 * @map: the caller's copy, updated; without HT_GUEST_CLOCK_FUTURE,
 *       HtTimeMap.latest is set to HtGuestClock.looked_ns even if the map did
 *       not change
 * @version: version of the caller's copy, updated; 0: no copy yet
 * @look: first call ht_guest_clock_sample() without @now
 */
void ht_guest_clock_copy(HtGuestClock *c, HtTimeMap *map, unsigned *version,
                         bool look);

/* ht_guest_clock_sync: execute HT_MSG_TIME_SYNC; the reply is written to @m */
void ht_guest_clock_sync(HtGuestClock *c, struct ht_msg_time *m);

/* ht_guest_clock_hz: get the counter's frequency in Hz, as last measured */
uint64_t ht_guest_clock_hz(HtGuestClock *c);

/**
 * ht_guest_clock_bound: get the maximum error of dates
 * @c: the clock
 *
 * If the host reads the counter itself, the result is valid for events of the
 * next 25 ms, else of the next second.  These events may be consumed later.
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
 * @shift_ns: value to add to the times of the segments
 * @keep: keep the function that reads the counter; else the host no longer
 *        knows how to read it
 *
 * Returns: false if the segments are not valid; nothing changes then
 */
bool ht_guest_clock_load(HtGuestClock *c, const HtTimeSegment *seg,
                         unsigned count, int64_t shift_ns, bool keep);

#endif /* HYPERTRACE_GUEST_CLOCK_H */
