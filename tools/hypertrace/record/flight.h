/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record --flight: look for causes, and write recordings
 *
 * The session keeps the newest events in memory. A cause, such as a panic of
 * the guest, writes them to a numbered recording. The session then continues.
 */
#ifndef HYPERTRACE_FLIGHT_H
#define HYPERTRACE_FLIGHT_H

#include <sys/types.h>

#include "kernel/job.h"
#include "record/record-session.h"

/**
 * struct HtFlightOptions - options of a flight recorder
 * @size: bytes of memory for events; 0: no flight recorder
 * @keep: maximum number of recordings in the folder; 0: the default
 * @silence_ns: nanoseconds without events that are a cause; 0: never a cause
 * @match: events or lines of the kernel's log that are a cause; or NULL. Must
 *         outlive the recorder
 */
typedef struct HtFlightOptions {
    uint64_t size;
    unsigned keep;
    uint64_t silence_ns;
    HtMatch *match;
} HtFlightOptions;

typedef struct HtFlight HtFlight;

/**
 * ht_flight_new() - start a flight recorder
 * @options: options of the recorder
 * @dir: folder of the recordings
 * @quiet: print errors only
 * @error: set if the folder cannot be used, or its socket cannot be created
 *
 * After this call the signal SIGUSR1 is a cause.
 *
 * Return: the recorder, for ht_flight_free(); NULL on failure
 */
HtFlight *ht_flight_new(const HtFlightOptions *options, const char *dir,
                        bool quiet, GError **error);
void ht_flight_free(HtFlight *f);

/**
 * ht_flight_monitor() - take QEMU's events as causes
 * @f: the recorder
 * @fd: a socket of QEMU's monitor, which the recorder closes
 */
void ht_flight_monitor(HtFlight *f, int fd);

/**
 * ht_flight_poll() - check for causes, and write a recording if one is due
 * @f: the recorder
 * @session: the session, right after a poll
 * @job: a job of the caller that runs meanwhile, or NULL. It is paused for the
 *       fork(); if it does not pause within 2 s, it runs on
 *
 * A child process writes the recording, so that this function does not wait for
 * the disk. Only one such process runs at a time. Before the fork(), this
 * function may wait until the session's thread has parsed formats of events.
 */
void ht_flight_poll(HtFlight *f, HtSession *session, HtJob *job);

/**
 * ht_flight_wait() - wait until the next poll
 * @f: the recorder
 * @session: the session; NULL: new lines do not stop the wait
 * @pidfd: the process whose end stops the wait; or -1
 * @us: maximum time in microseconds
 *
 * A request of hypertrace snapshot, a signal and new lines in the kernel's log
 * stop the wait, too.
 */
void ht_flight_wait(HtFlight *f, const HtSession *session, int pidfd,
                    uint32_t us);

/**
 * ht_flight_is_writer() - test for the process that writes a recording
 * @f: the recorder, or NULL
 * @pid: a child of this process
 */
bool ht_flight_is_writer(const HtFlight *f, pid_t pid);

/**
 * ht_flight_end() - end the flight recorder
 * @f: the recorder
 * @session: the session, after it has read the last events and all jobs have
 *           ended
 * @why: description of the machine's end; NULL if the machine goes on
 *
 * Waits until all recordings are written, or until a signal is caught.
 *
 * Return: false if any recording since ht_flight_new() could not be written, or
 * if a signal ended the wait
 */
bool ht_flight_end(HtFlight *f, HtSession *session, const char *why);

#endif
