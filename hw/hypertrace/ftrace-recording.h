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
 * HtFlightPlace: directory and common content of recordings
 * @dir: name of the directory that holds all recordings
 * @fd: that directory
 * @name: name of a recording; a number is appended
 * @formats: formats of the kernel's events, or NULL
 * @poll_ms: interval of polls of the ring
 * @number: number to try next; used by the writing thread only
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
 * ht_flight_new: prepare a recording of a ring's content
 * @w: the ring; not used after this
 * @why: the trigger
 *
 * Returns: the recording, for ht_flight_free(); NULL if the ring is gone
 *
 * Context: lock of the object held
 */
HtFlight *ht_flight_new(HtFtWatched *w, HypertraceTrigger why);
void ht_flight_free(HtFlight *f);

/* Size of the ring in bytes */
uint64_t ht_flight_size(const HtFlight *f);

/**
 * ht_flight_read: copy the ring's content, unless it was copied before
 * @f: the recording
 * @most: maximum number of bytes; up to one poll more may be copied
 * @end: time of ht_ftrace_cpu_ns() at which copying stops; 0: no limit
 *
 * Returns: number of bytes copied, including rejected copies
 *
 * Context: any thread that RCU knows; no lock is needed
 */
uint64_t ht_flight_read(HtFlight *f, uint64_t most, uint64_t end);

/**
 * ht_flight_write: write the recording to a new directory
 * @f: the recording, which was read
 * @place: the place
 *
 * Returns: the result
 *
 * Context: as ht_flight_read()
 */
HypertraceSnapshot *ht_flight_write(const HtFlight *f, HtFlightPlace *place);

#endif /* HW_HYPERTRACE_FTRACE_RECORDING_H */
