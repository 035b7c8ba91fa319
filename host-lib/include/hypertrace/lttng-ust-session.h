/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: deliver the runs of one guest to LTTng-UST
 *
 * An HtUstSession serves one guest.  It is no tracing session of LTTng: all
 * tracing sessions that enable an event get this event.
 */
#ifndef HYPERTRACE_LTTNG_UST_SESSION_H
#define HYPERTRACE_LTTNG_UST_SESSION_H

#include "hypertrace/run.h"

typedef struct HtUstSession HtUstSession;

/**
 * HtUstSessionConfig: settings of an HtUstSession
 * @provider: name of the provider in LTTng; see ht_ust_event_get().  Copied
 * @classes: class table that runs refer to; must outlive the session
 * @streams: number of streams; HtStreamInfo.index is less
 * @warn: reports that the trace lacks the counts of discarded events, at most
 *        once in an HtUstSession; or that a session daemon did not answer in
 *        time, at most once in the process.  Called by ht_ust_session_expect()
 *        and ht_ust_session_learn()
 * @opaque: first argument of @warn
 */
typedef struct HtUstSessionConfig {
    const char *provider;
    const HtClassTable *classes;
    uint32_t streams;
    void (*warn)(void *opaque, const char *text);
    void *opaque;
} HtUstSessionConfig;

/**
 * ht_ust_session_new: make a session; calls no function of LTTng-UST
 * @cfg: copied
 */
HtUstSession *ht_ust_session_new(const HtUstSessionConfig *cfg);

/* ht_ust_session_free: free a session or NULL; events stay registered */
void ht_ust_session_free(HtUstSession *s);

/**
 * ht_ust_session_expect: register classes together, which saves time
 * @s: the session
 * @classes: classes that ht_ust_session_learn() is called for next
 * @count: number of @classes, 0 to HT_UST_BATCH
 *
 * The first call registers the event "discarded", too.
 *
 * Context: as ht_ust_event_get(); the session's thread
 */
void ht_ust_session_expect(HtUstSession *s, HtClass *const *classes,
                           unsigned count);

/**
 * ht_ust_session_learn: register a class, maybe again after a failure
 * @s: the session
 * @c: the class
 *
 * Returns: NULL, or the reason why the class has no event, for g_free()
 *
 * Context: as ht_ust_session_expect()
 */
char *ht_ust_session_learn(HtUstSession *s, const HtClass *c);

/**
 * ht_ust_session_wants: test whether LTTng has a class's event enabled
 * @s: the session
 * @c: the class
 * @unknown: the result if the class has no event in LTTng, because the class
 *           was not registered yet or was refused
 *
 * Context: any thread, at any time
 */
bool ht_ust_session_wants(const HtUstSession *s, const HtClass *c,
                          bool unknown);

/**
 * ht_ust_session_deliver: record the events of a run, and how many events were
 * discarded before it
 * @s: the session
 * @run: the run
 *
 * Returns: as ht_ust_deliver()
 *
 * Context: as ht_ust_deliver(); one thread at a time
 */
uint64_t ht_ust_session_deliver(HtUstSession *s, const HtRun *run);

#endif /* HYPERTRACE_LTTNG_UST_SESSION_H */
