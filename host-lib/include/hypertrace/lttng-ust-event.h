/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: event classes as LTTng-UST events, defined at run time
 */
#ifndef HYPERTRACE_LTTNG_UST_EVENT_H
#define HYPERTRACE_LTTNG_UST_EVENT_H

#include "hypertrace/run.h"

typedef struct HtUstEvent HtUstEvent;

/**
 * ht_ust_event_get: find or register an event
 * @provider: name of the provider, which no other device has meanwhile
 * @c: its class
 * @why: set to the reason of a failure; to be freed
 *
 * LTTng-UST cannot forget an event without ruining traces, so a registered
 * event stays for the life of the process.  A class that comes back finds it;
 * one that comes back with other fields gets a name with ".vN".
 *
 * Returns: the event or NULL
 *
 * Context: any thread that may wait: one mutex, and a round trip to each
 * session daemon with an active session, at most for LTTNG_UST_REGISTER_TIMEOUT
 */
HtUstEvent *ht_ust_event_get(const char *provider, const HtClass *c,
                             char **why);

/* Classes for one ht_ust_events_prepare() */
#define HT_UST_BATCH    64

/**
 * ht_ust_events_prepare: register events together, to be found afterwards
 * @provider: name of the provider
 * @classes: their classes
 * @count: how many, at most HT_UST_BATCH
 *
 * At each registration LTTng-UST looks at all events of the process, for each
 * active session.  Whether an event could be registered ht_ust_event_get()
 * says, and why not.
 *
 * Context: as ht_ust_event_get(); a round trip for each class
 */
void ht_ust_events_prepare(const char *provider, HtClass *const *classes,
                           unsigned count);

/**
 * ht_ust_event_name: the name it has in LTTng, without the provider
 * @e: the event
 */
const char *ht_ust_event_name(const HtUstEvent *e);

/**
 * ht_ust_deliver: record the events of a run in each session that wants them
 * @run: any run
 * @classes: that its ids are from
 * @events: by class id; where it is NULL, the events are left out
 *
 * Nothing is recorded any more after ht_ust_end() (lttng-ust-thread.h).
 *
 * Returns: events that a session or a trigger wanted; LTTng counts those of
 * them that it has no room for
 *
 * Context: any thread; one that is told to by LTTNG_UST_ALLOW_BLOCKING waits
 * for space
 */
uint64_t ht_ust_deliver(const HtRun *run, const HtClassTable *classes,
                        HtUstEvent *const *events);

/**
 * ht_ust_discarded_get: the event that says how many events a stream lost
 * @provider: name of the provider
 * @why: set to the reason of a failure; to be freed
 *
 * It is called "discarded", and its fields, besides those of all events, are
 * "events", discarded since the stream's last run, and "total", since it was
 * opened.  Got before any class, it has that name for itself.
 *
 * Returns, Context: as ht_ust_event_get()
 */
HtUstEvent *ht_ust_discarded_get(const char *provider, char **why);

/**
 * ht_ust_tell_discarded: record how many events were discarded before a run
 * @e: of ht_ust_discarded_get(); NULL: it cannot be told
 * @run: any run; told of before it is delivered
 * @told: of its stream: what was told so far; kept here
 *
 * Context: as ht_ust_deliver()
 */
void ht_ust_tell_discarded(const HtUstEvent *e, const HtRun *run,
                           uint64_t *told);

/**
 * ht_ust_event_enabled: whether a session or a trigger wants the event now
 * @e: the event
 *
 * Context: any thread, at any time
 */
bool ht_ust_event_enabled(const HtUstEvent *e);

/**
 * ht_ust_timed_out: whether a session daemon did not answer a registration
 *
 * LTTNG_UST_REGISTER_TIMEOUT says how long LTTng-UST waits (ms; default 3000).
 * The event in question and all later ones are never enabled then.
 */
bool ht_ust_timed_out(void);

#endif /* HYPERTRACE_LTTNG_UST_EVENT_H */
