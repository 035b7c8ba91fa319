/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: check a private copy of a guest's events, and convert their times
 * to host time
 */
#ifndef HYPERTRACE_WALK_H
#define HYPERTRACE_WALK_H

#include "hypertrace/class.h"
#include "hypertrace/time-map.h"

typedef enum HtWalkStop {
    HT_WALK_END,                /* all bytes were checked */
    /* the next event is 2^24 ns or more later: a backend starts a packet */
    HT_WALK_CUT,
    HT_WALK_MOST,               /* HtWalk.most events were checked */
    HT_WALK_BAD_ID,             /* an event has an unknown class id */
    /* an event is longer than the remaining bytes */
    HT_WALK_BAD_LENGTH,
    HT_WALK_BAD_HEADER,         /* an event's class id exceeds HT_CLASSES_MAX */
} HtWalkStop;

/**
 * HtWalk: state of the check of a stream, from one call to the next
 * @clock: guest counter of the last event, or of the start of the packet
 * @ns: host time of the last event, opening or closing; never decreases
 * @cut: accept the next event even if its 24-bit clock cannot be compared with
 *       that of the previous event.  ht_walk() sets @cut when it returns
 *       HT_WALK_CUT; the caller sets it at the start and after skipped events
 * @most: maximum number of events in a call; 0 for no limit
 * @backward: number of events with a lower counter than the previous event;
 *            usually they get the time of that event, never an earlier one
 */
typedef struct HtWalk {
    uint64_t clock;
    uint64_t ns;
    bool cut;
    uint32_t most;
    uint64_t backward;
} HtWalk;

/**
 * HtWalkRun: result of one call of ht_walk()
 * @size: number of bytes walked
 * @events: number of events walked
 * @begin_ns: host time of the first event
 * @end_ns: host time of the last event; HtWalk.ns if no event was walked
 * @counter: guest counter of the first event
 */
typedef struct HtWalkRun {
    size_t size;
    uint32_t events;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t counter;
} HtWalkRun;

/**
 * ht_walk: check events, and replace their guest clocks by host time, in place
 * @w: state of the stream
 * @classes: the guest's classes; other threads may add some meanwhile
 * @time: map from guest to host time; must not change during the call
 * @buf: private copy of the events
 * @len: size of @buf in bytes
 * @run: filled in for the events before the stop
 *
 * Calls HtTimeMap.now if an event seems to be later than HtTimeMap.latest.
 * After HT_WALK_CUT, the caller must call this again from the event at
 * @run->size on, which is then accepted, and set HT_RUN_CUT in the run that
 * begins with this event.  The walk stops before a malformed event.
 *
 * Returns: the reason for the stop
 */
HtWalkStop ht_walk(HtWalk *w, const HtClassTable *classes,
                   const HtTimeMap *time, uint8_t *buf, size_t len,
                   HtWalkRun *run);

/**
 * ht_walk_stop_str: describe a stop, for messages
 * @stop: the stop
 */
const char *ht_walk_stop_str(HtWalkStop stop);

#endif /* HYPERTRACE_WALK_H */
