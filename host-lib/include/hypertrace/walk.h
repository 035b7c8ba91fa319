/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the checked walk over a private copy of a guest's events
 */
#ifndef HYPERTRACE_WALK_H
#define HYPERTRACE_WALK_H

#include "hypertrace/class.h"
#include "hypertrace/time-map.h"

typedef enum HtWalkStop {
    HT_WALK_END,                /* all bytes were walked */
    HT_WALK_CUT,                /* the next event needs a packet of its own */
    HT_WALK_MOST,               /* HtWalk.most events were walked */
    HT_WALK_BAD_ID,             /* no such class */
    HT_WALK_BAD_LENGTH,         /* an event reaches past the end */
    HT_WALK_BAD_HEADER,         /* a long header that is no event's */
} HtWalkStop;

/**
 * HtWalk: a stream's parser state
 * @clock: guest counter of the last event (or of the packet's begin)
 * @ns: its host time; never decreases
 * @cut: the next event passes even if its 24-bit clock does not follow from
 *       the event before; set at the start and by HT_WALK_CUT
 * @most: events of a call at most; 0: no limit
 * @backward: events whose counter went back (their time is the one before)
 */
typedef struct HtWalk {
    uint64_t clock;
    uint64_t ns;
    bool cut;
    uint32_t most;
    uint64_t backward;
} HtWalk;

/**
 * HtWalkRun: what one call of ht_walk() covered
 */
typedef struct HtWalkRun {
    size_t size;                /* bytes walked */
    uint32_t events;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t counter;           /* of the first event */
} HtWalkRun;

/**
 * ht_walk: check events and rewrite their clocks, in place
 * @w: parser state
 * @classes: event classes
 * @time: clock segments; constant during the call
 * @buf: private copy of the events
 * @len: bytes at @buf
 * @run: filled in for the events before the stop
 *
 * A pure function of its arguments: no other memory is touched.  Where the
 * stop is HT_WALK_CUT, the next call begins with the event at @run->size, its
 * run is to be marked HT_RUN_CUT, and that event always passes.  A malformed
 * event stops the walk before it.
 *
 * Returns: why it stopped
 */
HtWalkStop ht_walk(HtWalk *w, const HtClassTable *classes,
                   const HtTimeMap *time, uint8_t *buf, size_t len,
                   HtWalkRun *run);

/**
 * ht_walk_stop_str: a stop for people
 */
const char *ht_walk_stop_str(HtWalkStop stop);

#endif /* HYPERTRACE_WALK_H */
