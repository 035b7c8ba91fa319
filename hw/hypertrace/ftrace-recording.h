/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: one recording of a flight recorder
 */
#ifndef HW_HYPERTRACE_FTRACE_RECORDING_H
#define HW_HYPERTRACE_FTRACE_RECORDING_H

#include "qapi/qapi-types-hypertrace.h"

typedef struct HtFlight HtFlight;
typedef struct HtFtWatched HtFtWatched;

/**
 * HtFlightPlace: where recordings are made, and what is in each
 * @dir: name of the directory that all are in
 * @fd: that directory
 * @name: theirs, a number is appended
 * @formats: of the kernel's events, or NULL
 * @poll_ms: how often the ring is looked at
 * @number: that is tried next; of the only thread that writes
 */
typedef struct HtFlightPlace {
    char *dir;
    int fd;
    char *name;
    char *formats;
    uint32_t poll_ms;
    unsigned number;
} HtFlightPlace;

/**
 * ht_flight_new: prepare a recording of what a ring has
 * @w: the ring; not used after this
 * @why: for what
 *
 * Returns: what ht_flight_free() frees; NULL if the ring is not there any more
 *
 * Context: lock of the object held
 */
HtFlight *ht_flight_new(HtFtWatched *w, HypertraceTrigger why);
void ht_flight_free(HtFlight *f);

/* Bytes of the ring */
uint64_t ht_flight_size(const HtFlight *f);

/**
 * ht_flight_read: copy all that is there; nothing if that was done
 * @f: the recording
 * @most: bytes; a look more may be copied
 * @end: time of ht_ftrace_cpu_ns() at which it stops copying; 0: none
 *
 * Returns: bytes copied, also of what came to nothing
 *
 * Context: any thread that RCU knows; no lock is needed
 */
uint64_t ht_flight_read(HtFlight *f, uint64_t most, uint64_t end);

/**
 * ht_flight_write: make the recording, in a directory that nobody else has
 * @f: was read
 * @place: where
 *
 * Returns: what became of it
 *
 * Context: as ht_flight_read()
 */
HypertraceSnapshot *ht_flight_write(const HtFlight *f, HtFlightPlace *place);

#endif /* HW_HYPERTRACE_FTRACE_RECORDING_H */
