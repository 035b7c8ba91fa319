/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: define event classes as LTTng-UST events at run time
 */
#ifndef HYPERTRACE_LTTNG_UST_EVENT_H
#define HYPERTRACE_LTTNG_UST_EVENT_H

#include "hypertrace/run.h"

typedef struct HtUstEvent HtUstEvent;

/**
 * ht_ust_event_get: find or register an event
 * @provider: name of the provider; no other device may use it at the same time
 * @c: class of the event
 * @why: set to the reason of a failure; free with g_free()
 *
 * Removing an event from LTTng-UST would ruin traces, so a registered event
 * stays for the life of the process.  A class that is registered again gets the
 * same event; if its fields or its log level differ, it gets an event whose
 * name ends in ".vN".
 *
 * Returns: the event or NULL
 *
 * Context: any thread that may block: takes one mutex, and waits for each
 * session daemon with an active session, see ht_ust_timed_out()
 */
HtUstEvent *ht_ust_event_get(const char *provider, const HtClass *c,
                             char **why);

/* Maximum number of classes for one ht_ust_events_prepare() */
#define HT_UST_BATCH    64

/**
 * ht_ust_events_prepare: register several events at once
 * @provider: name of the provider
 * @classes: classes of the events
 * @count: number of @classes, at most HT_UST_BATCH
 *
 * Each registration makes LTTng-UST go through all events of the process, for
 * each active session; one registration for all classes saves time.  To get the
 * events, or the reasons of failures, call ht_ust_event_get().
 *
 * Context: as ht_ust_event_get(), but this function may wait for a session
 * daemon once for each new class
 */
void ht_ust_events_prepare(const char *provider, HtClass *const *classes,
                           unsigned count);

/**
 * ht_ust_event_name: get the event's name in LTTng, without the provider
 * @e: the event
 */
const char *ht_ust_event_name(const HtUstEvent *e);

/**
 * ht_ust_deliver: record the events of a run in each session that wants them
 * @run: the run
 * @classes: table that the run's class ids refer to
 * @events: events by class id; a class whose entry is NULL is skipped
 *
 * A call after ht_ust_end() (lttng-ust-thread.h) records nothing.
 *
 * Returns: the number of events that a session or a trigger has enabled,
 * including events that a filter rejects or for which LTTng's buffers are full.
 * LTTng counts the latter.
 *
 * Context: any thread; waits for space in the buffers if the environment
 * variable LTTNG_UST_ALLOW_BLOCKING allows this and the channel requests it
 */
uint64_t ht_ust_deliver(const HtRun *run, const HtClassTable *classes,
                        HtUstEvent *const *events);

/**
 * ht_ust_discarded_get: get the event that reports lost events of a stream
 * @provider: name of the provider
 * @why: set to the reason of a failure; free with g_free()
 *
 * The event's name is "discarded".  After the three fields that every event has
 * (stream, vcpu, guest_ns) it has "events", the number of events discarded
 * between the stream's previous run and this one, and "total", which is
 * HtRun.discarded.  Call this before registering any class, so that no class
 * takes the name.
 *
 * Returns, Context: as ht_ust_event_get()
 */
HtUstEvent *ht_ust_discarded_get(const char *provider, char **why);

/**
 * ht_ust_tell_discarded: record the number of events discarded before a run
 * @e: the event from ht_ust_discarded_get(); NULL: record nothing
 * @run: the run; call this before ht_ust_deliver()
 * @told: HtRun.discarded of the stream's previous run; updated, even if nothing
 *        is recorded
 *
 * Context: as ht_ust_deliver()
 */
void ht_ust_tell_discarded(const HtUstEvent *e, const HtRun *run,
                           uint64_t *told);

/**
 * ht_ust_event_enabled: test whether a session or a trigger has the event
 * enabled now
 * @e: the event
 *
 * Context: any thread, at any time
 */
bool ht_ust_event_enabled(const HtUstEvent *e);

/**
 * ht_ust_timed_out: test whether a session daemon failed to answer in time,
 * judged by the time that each registration took
 *
 * The environment variable LTTNG_UST_REGISTER_TIMEOUT sets how long LTTng-UST
 * waits for an answer (in ms; default 3000; negative: without a limit).  A
 * daemon that has timed out never enables the event being registered and the
 * events that are registered later.
 */
bool ht_ust_timed_out(void);

#endif /* HYPERTRACE_LTTNG_UST_EVENT_H */
