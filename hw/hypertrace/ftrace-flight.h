/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: flight recorder of a guest's ftrace ring
 *
 * The guest overwrites its oldest events; nothing is removed from its memory
 * until a trigger fires.  The content of the ring then becomes a recording,
 * which the command hypertrace reads; "hypertrace last" summarizes it.
 *
 * If the memory is about to be freed or written by another kernel, it is copied
 * at once.  A thread of the recorder writes the files.
 */
#ifndef HW_HYPERTRACE_FTRACE_FLIGHT_H
#define HW_HYPERTRACE_FTRACE_FLIGHT_H

#include "qapi/qapi-types-hypertrace.h"

typedef struct HtFlights HtFlights;
typedef struct HypertraceFtrace HypertraceFtrace;

/**
 * HtFlightOptions: the user's options for recordings
 * @dir: directory of the recordings
 * @triggers: names of HypertraceTrigger, separated by ':', or NULL
 * @silence: seconds without events that are a trigger; 0: never
 * @limit: maximum number of recordings by triggers
 */
typedef struct HtFlightOptions {
    char *dir;
    char *triggers;
    uint32_t silence;
    uint32_t limit;
} HtFlightOptions;

/**
 * ht_flights_new: start a flight recorder
 * @ft: the object; its properties no longer change
 * @errp: set if an option is invalid, or the directory cannot be made
 *
 * Context: BQL
 */
HtFlights *ht_flights_new(HypertraceFtrace *ft, Error **errp);

/**
 * ht_flights_free: end the recorder
 * @fl: the recorder or NULL
 *
 * Waits up to 5 s until all recordings are written.  If a disk hangs, the
 * thread writes the rest later.
 *
 * Context: BQL; the object's thread has ended
 */
void ht_flights_free(HtFlights *fl);

/**
 * ht_flights_stopped: handle a stop of the VM
 * @fl: the recorder or NULL
 * @state: its present state
 *
 * If this is a trigger, copies a bounded number of bytes.
 *
 * Context: BQL, lock of the object held; the VM does not run, and all rings
 *          were looked at since
 */
void ht_flights_stopped(HtFlights *fl, RunState state);

/**
 * ht_flights_reset: handle a reset of the VM
 * @fl: the recorder or NULL
 * @was_stopped: the VM did not run before the reset
 *
 * Context: as ht_flights_stopped()
 */
void ht_flights_reset(HtFlights *fl, bool was_stopped);

/**
 * ht_flights_looked: check for silence after a poll
 * @fl: the recorder or NULL
 * @all: all rings were polled; otherwise no conclusion is possible
 *
 * Context: the object's thread; lock of the object held
 */
void ht_flights_looked(HtFlights *fl, bool all);

/**
 * ht_flights_ask: make recordings now
 * @fl: the recorder
 * @errp: set if there is no ring, or if too many recordings wait to be written
 *
 * The event HYPERTRACE_SNAPSHOT reports each recording.
 *
 * Returns: the number of recordings that will be made; 0 with @errp set
 *
 * Context: lock of the object held
 */
unsigned ht_flights_ask(HtFlights *fl, Error **errp);

/**
 * ht_flights_count: get the number of recordings
 * @fl: the recorder or NULL
 * @made: set to the number of recordings made
 * @skipped: set to the number of recordings not made because of the limits
 *
 * Context: lock of the object held
 */
void ht_flights_count(HtFlights *fl, uint64_t *made, uint64_t *skipped);

#endif /* HW_HYPERTRACE_FTRACE_FLIGHT_H */
