/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a flight recorder, of the ring that a guest keeps anyway
 *
 * The guest overwrites its oldest events; nothing is taken out of its memory
 * until something happens.  Then all that is there becomes a recording, which
 * the command hypertrace reads, and "hypertrace last" shows on a page.
 *
 * Where the memory is about to go, or to be written by another kernel, it is
 * copied at once.  Files are written by a thread of their own.
 */
#ifndef HW_HYPERTRACE_FTRACE_FLIGHT_H
#define HW_HYPERTRACE_FTRACE_FLIGHT_H

#include "qapi/qapi-types-hypertrace.h"

typedef struct HtFlights HtFlights;
typedef struct HypertraceFtrace HypertraceFtrace;

/**
 * HtFlightOptions: what the user says about recordings
 * @dir: where they are made
 * @triggers: names of HypertraceTrigger with ':' between them, or NULL
 * @silence: of how many seconds; 0: none is too long
 * @limit: how many are made that nobody asked for
 */
typedef struct HtFlightOptions {
    char *dir;
    char *triggers;
    uint32_t silence;
    uint32_t limit;
} HtFlightOptions;

/**
 * ht_flights_new: get ready to make recordings
 * @ft: the object; its properties do not change any more
 * @errp: set if the options cannot be, or the directory cannot be made
 *
 * Context: BQL
 */
HtFlights *ht_flights_new(HypertraceFtrace *ft, Error **errp);

/**
 * ht_flights_free: end the recorder
 * @fl: or NULL
 *
 * Waits up to 5 s until all recordings are written.  If a disk hangs, the
 * thread writes the rest later.
 *
 * Context: BQL; the object's thread has ended
 */
void ht_flights_free(HtFlights *fl);

/**
 * ht_flights_stopped: the VM has stopped
 * @fl: or NULL
 * @state: its state now
 *
 * If a recording was asked for then, copies a bounded number of bytes.
 *
 * Context: BQL, lock of the object held; the VM does not run, and all rings
 *          were looked at since
 */
void ht_flights_stopped(HtFlights *fl, RunState state);

/**
 * ht_flights_reset: the VM is being reset
 * @fl: or NULL
 * @was_stopped: it did not run before, either
 *
 * Context: as ht_flights_stopped()
 */
void ht_flights_reset(HtFlights *fl, bool was_stopped);

/**
 * ht_flights_looked: notice that there is nothing new
 * @fl: or NULL
 * @all: all rings were looked at: else nothing new does not mean silence
 *
 * Context: the object's thread; lock of the object held
 */
void ht_flights_looked(HtFlights *fl, bool all);

/**
 * ht_flights_ask: make recordings now
 * @fl: the object's
 * @errp: set if there is no ring, or if too many recordings wait to be written
 *
 * Each recording is told by the event HYPERTRACE_SNAPSHOT.
 *
 * Returns: how many recordings will be made; 0 with @errp set
 *
 * Context: lock of the object held
 */
unsigned ht_flights_ask(HtFlights *fl, Error **errp);

/**
 * ht_flights_count: what was done so far
 * @fl: or NULL
 * @made: set to the recordings that were made
 * @skipped: set to those that were not, as there were too many
 *
 * Context: lock of the object held
 */
void ht_flights_count(HtFlights *fl, uint64_t *made, uint64_t *skipped);

#endif /* HW_HYPERTRACE_FTRACE_FLIGHT_H */
