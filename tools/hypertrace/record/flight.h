/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: a flight recorder
 *
 * The session keeps the newest events in memory.  Each cause, as a panic of the
 * guest, writes them to a numbered recording; then the session goes on.
 */
#ifndef HYPERTRACE_FLIGHT_H
#define HYPERTRACE_FLIGHT_H

#include <sys/types.h>

#include "record/record-session.h"

/**
 * struct HtFlightOptions - options of a flight recorder
 * @size: bytes of memory for events; 0: no flight recorder
 * @keep: maximum number of recordings in the folder; 0: the default
 * @silence_ns: time without events that is a cause; 0: never
 */
typedef struct HtFlightOptions {
    uint64_t size;
    unsigned keep;
    uint64_t silence_ns;
} HtFlightOptions;

typedef struct HtFlight HtFlight;

/**
 * ht_flight_new() - start a flight recorder
 * @options: options of the recorder
 * @dir: folder of the recordings
 * @quiet: print errors only
 * @error: set if the folder cannot be used
 *
 * From now on SIGUSR1 is a cause.
 */
HtFlight *ht_flight_new(const HtFlightOptions *options, const char *dir,
                        bool quiet, GError **error);
void ht_flight_free(HtFlight *f);

/**
 * ht_flight_monitor() - take QEMU's events as causes
 * @fd: a socket of QEMU's monitor; taken over
 */
void ht_flight_monitor(HtFlight *f, int fd);

/**
 * ht_flight_poll() - look for causes, and write a recording if there is one
 * @session: was polled just now
 *
 * Does not wait: another process writes, one recording at a time.
 */
void ht_flight_poll(HtFlight *f, HtSession *session);

/**
 * ht_flight_is_writer() - is it the process that writes?
 * @pid: a child of this process
 */
bool ht_flight_is_writer(const HtFlight *f, pid_t pid);

/**
 * ht_flight_end() - the machine has ended, or is no longer recorded
 * @session: has taken what was left
 * @why: how the machine ended, for people; NULL: it goes on
 *
 * Waits until all recordings are written, or until a signal is caught.
 *
 * Return: false if a recording could not be written
 */
bool ht_flight_end(HtFlight *f, HtSession *session, const char *why);

#endif
