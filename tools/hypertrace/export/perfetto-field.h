/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: fields of a CTF trace as Perfetto's DebugAnnotations
 */
#ifndef HYPERTRACE_TOOL_PERFETTO_FIELD_H
#define HYPERTRACE_TOOL_PERFETTO_FIELD_H

#include <babeltrace2/babeltrace.h>

#include "export/perfetto.h"

/**
 * pf_fields: append a structure's members
 * @b: a TrackEvent
 * @structure: an event's payload or context
 * @skip: by number, those that are the next one's length; or NULL
 *
 * What would take too much room is left out, and the annotation hypertrace.cut
 * says so.
 */
void pf_fields(GByteArray *b, const bt_field *structure, const bool *skip);

/**
 * pf_annotation: append a number
 * @b: a TrackEvent
 * @name: its name
 * @value: the number
 */
void pf_annotation(GByteArray *b, const char *name, uint64_t value);

#endif /* HYPERTRACE_TOOL_PERFETTO_FIELD_H */
