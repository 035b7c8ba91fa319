/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: what is followed, as events of LTTng-UST
 *
 * The session posts runs, which never waits; a thread delivers them.  What
 * LTTng does not take in time is lost for LTTng alone.
 */
#ifndef HYPERTRACE_LIVE_H
#define HYPERTRACE_LIVE_H

#include "hypertrace/ftrace-runs.h"
#include "kernel/kernel.h"

/**
 * struct HtLiveOptions - where events go
 * @name: of their provider, in [A-Za-z0-9_.-]
 * @url: of a relay daemon, which a session of that name sends them to; NULL:
 *       to whatever sessions there are
 * @live: the session can be read while it is made
 */
typedef struct HtLiveOptions {
    char *name;
    const char *url;
    bool live;
} HtLiveOptions;

/**
 * struct HtLiveStats - what became of the events
 * @taken: some session wanted them, and they are LTTng's
 * @unwanted: no session did
 * @lost: LTTng hung, was too slow, or had no room
 * @why: the last thing that went wrong, or NULL
 */
typedef struct HtLiveStats {
    uint64_t taken;
    uint64_t unwanted;
    uint64_t lost;
    const char *why;
} HtLiveStats;

typedef struct HtLive HtLive;

/**
 * ht_live_new() - make ready
 * @options: @name must stay
 * @kernel: whose events they are, or NULL; must stay
 * @error: set if LTTng cannot be used, or the session not be made
 */
HtLive *ht_live_new(const HtLiveOptions *options, const HtKernel *kernel,
                    GError **error);

/**
 * ht_live_start() - begin to deliver
 * @l: not started
 *
 * Not before other programs were started that are not to inherit what
 * LTTng-UST opens and needs in the environment.
 */
void ht_live_start(HtLive *l);

/** ht_live_runs() - where rings of the guest go; nothing after ht_live_end() */
HtFtRuns *ht_live_runs(HtLive *l);

/**
 * ht_live_end() - deliver the rest, and end the session
 * @l: started or not
 * @stats: set
 *
 * Return: false if LTTng hangs: it is left alone, and the process has to end
 * by _exit()
 */
bool ht_live_end(HtLive *l, HtLiveStats *stats);

/**
 * ht_live_free() - forget it
 * @l: ht_live_end() was true; or NULL
 */
void ht_live_free(HtLive *l);

#endif
