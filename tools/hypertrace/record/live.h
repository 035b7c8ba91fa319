/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: deliver recorded events to LTTng-UST
 *
 * The session posts runs of events without waiting. A thread delivers them. If
 * LTTng does not take an event in time, it is lost for LTTng, but is still in
 * the recording.
 */
#ifndef HYPERTRACE_LIVE_H
#define HYPERTRACE_LIVE_H

#include "hypertrace/ftrace-runs.h"
#include "kernel/kernel.h"

/**
 * struct HtLiveOptions - destination of the events
 * @name: name of the provider; characters are [A-Za-z0-9_.-]
 * @url: URL of a relay daemon: a session with the name @name is created, which
 *       sends the events there. NULL: the user's sessions record them
 * @live: the session can be read while it is recorded
 */
typedef struct HtLiveOptions {
    char *name;
    const char *url;
    bool live;
} HtLiveOptions;

/**
 * struct HtLiveStats - counts of events
 * @taken: events that LTTng recorded for a session
 * @unwanted: events that no session had enabled
 * @lost: events lost because LTTng hung, was too slow, or had no room
 * @why: message about the last failure, or NULL
 */
typedef struct HtLiveStats {
    uint64_t taken;
    uint64_t unwanted;
    uint64_t lost;
    const char *why;
} HtLiveStats;

typedef struct HtLive HtLive;

/**
 * ht_live_new() - load LTTng, and create the session
 * @options: copied; @name must outlive the result
 * @kernel: the guest's kernel, or NULL; must outlive the result
 * @error: set if LTTng cannot be used or the session cannot be created
 *
 * Return: the result, for ht_live_free(); NULL on failure
 */
HtLive *ht_live_new(const HtLiveOptions *options, const HtKernel *kernel,
                    GError **error);

/**
 * ht_live_start() - begin to deliver events
 * @l: not started
 *
 * Start QEMU first: otherwise it would inherit the descriptors and the
 * environment variables of LTTng-UST.
 */
void ht_live_start(HtLive *l);

/** ht_live_runs() - get the receiver of runs; not used after ht_live_end() */
HtFtRuns *ht_live_runs(HtLive *l);

/**
 * ht_live_end() - deliver the remaining events, and end the session
 * @l: started or not
 * @stats: filled in
 *
 * Return: false if LTTng hangs. Its thread still runs then, so that the process
 * must end by _exit().
 */
bool ht_live_end(HtLive *l, HtLiveStats *stats);

/**
 * ht_live_free() - free the result of ht_live_new()
 * @l: after ht_live_end() has returned true; or NULL
 */
void ht_live_free(HtLive *l);

#endif
