/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: event classes as LTTng-UST events, defined at run time
 */
#ifndef HYPERTRACE_LTTNG_UST_EVENT_H
#define HYPERTRACE_LTTNG_UST_EVENT_H

#include "hypertrace/class.h"

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
 * Context: any thread that may wait, outside of ht_ust_begin(): one mutex, and
 * a round trip to each session daemon with an active session, at most for
 * LTTNG_UST_REGISTER_TIMEOUT
 */
HtUstEvent *ht_ust_event_get(const char *provider, const HtClass *c,
                             char **why);

/**
 * ht_ust_event_name: the name it has in LTTng, without the provider
 * @e: the event
 */
const char *ht_ust_event_name(const HtUstEvent *e);

/**
 * ht_ust_event_emit: record an event in each session that wants it
 * @e: the event
 * @stream: stream index
 * @vcpu: the guest's vCPU or -1
 * @ns: time in the guest, as host CLOCK_MONOTONIC
 * @payload: the fields, byte-packed little-endian, checked
 * @size: bytes at @payload
 *
 * Context: any thread, between ht_ust_begin() and ht_ust_done()
 */
void ht_ust_event_emit(const HtUstEvent *e, uint32_t stream, int32_t vcpu,
                       uint64_t ns, const uint8_t *payload, size_t size);

/**
 * ht_ust_event_enabled: whether a session or a trigger wants the event now
 * @e: the event
 *
 * Context: any thread, at any time
 */
bool ht_ust_event_enabled(const HtUstEvent *e);

/**
 * ht_ust_begin: enter LTTng-UST, to emit some events
 *
 * Its read lock is held until ht_ust_done(), so keep to a few hundred events.
 *
 * Returns: false once ht_ust_end() (lttng-ust-thread.h) was called; then do not
 * call ht_ust_done()
 */
bool ht_ust_begin(void);
void ht_ust_done(void);

/**
 * ht_ust_timed_out: whether a session daemon did not answer a registration
 *
 * LTTNG_UST_REGISTER_TIMEOUT says how long LTTng-UST waits (ms; default 3000).
 * The event in question and all later ones are never enabled then.
 */
bool ht_ust_timed_out(void);

#endif /* HYPERTRACE_LTTNG_UST_EVENT_H */
