/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read the events of the guest's programs from a recording
 *
 * Commands such as `hypertrace record --programs` write them as a CTF trace
 * into a folder of the recording. Their times are those of the host's clock.
 */
#ifndef HYPERTRACE_TOOL_PROGRAMS_H
#define HYPERTRACE_TOOL_PROGRAMS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/json.h"

/**
 * HtProgramEvent: one event; valid until HtProgramOne returns
 * @ns: time by the host's CLOCK_MONOTONIC
 * @stream: index of the stream
 * @vcpu: the guest's processor to which the stream's producer is bound; -1: it
 *        is not bound to one
 * @source: name of the stream, from the name of its file in the trace; "" if
 *          that has none
 * @name: name of the event; "?" if unknown
 * @lost_before: number of events that the stream lost since its previous event.
 *               A loss of unknown size counts as one event
 * @payload: private
 */
typedef struct HtProgramEvent {
    uint64_t ns;
    int64_t stream;
    int64_t vcpu;
    const char *source;
    const char *name;
    uint64_t lost_before;
    const void *payload;
} HtProgramEvent;

/**
 * HtProgramOne: called for each event, in the order of time
 *
 * Returns: false if no more events are wanted
 */
typedef bool HtProgramOne(void *opaque, const HtProgramEvent *ev);

/**
 * ht_programs_path: get the path of the trace with events of programs
 * @dir: a recording
 *
 * Returns: newly allocated; NULL if the recording has no such trace
 */
char *ht_programs_path(const char *dir);

/**
 * ht_programs_read: read the events of programs
 * @dir: the recording
 * @one: called for each event
 * @opaque: first argument of @one
 * @lost: set to the number of events, of all streams together, that a stream
 *        lost after the last event for which @one was called
 * @errp: set on failure
 *
 * Returns: false on failure
 */
bool ht_programs_read(const char *dir, HtProgramOne *one, void *opaque,
                      uint64_t *lost, GError **errp);

/*
 * ht_programs_text: append " name=value" for the fields of an event, escaped
 * for a terminal; long values, and the end of a long text, are cut
 */
void ht_programs_text(const HtProgramEvent *ev, GString *out);

/*
 * ht_programs_json: append a member for each field of an event to a JSON
 * object
 */
void ht_programs_json(const HtProgramEvent *ev, HtJson *j);

#endif /* HYPERTRACE_TOOL_PROGRAMS_H */
