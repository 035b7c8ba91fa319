/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write fields of a CTF trace as Perfetto's DebugAnnotations
 */
#ifndef HYPERTRACE_TOOL_PERFETTO_FIELD_H
#define HYPERTRACE_TOOL_PERFETTO_FIELD_H

#include <babeltrace2/babeltrace.h>

#include "export/perfetto.h"

/**
 * pf_fields: append the members of a structure
 * @b: a TrackEvent message, to which each member is appended as an annotation
 * @structure: an event's payload or context
 * @skip: by index: true if the member is the length of the next one, and is
 *        left out; or NULL
 *
 * The size and the nesting are bounded. If the function leaves out or cuts
 * members because of the size, or of the nesting of structures and arrays, it
 * adds the annotation hypertrace.cut.
 */
void pf_fields(GString *b, const bt_field *structure, const bool *skip);

/**
 * pf_annotation: append a DebugAnnotation with a number
 * @b: a TrackEvent message
 * @name: name of the annotation
 * @value: the number
 */
void pf_annotation(GString *b, const char *name, uint64_t value);

#endif /* HYPERTRACE_TOOL_PERFETTO_FIELD_H */
