/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find CTF traces in a folder
 */
#ifndef HYPERTRACE_TOOL_TRACES_H
#define HYPERTRACE_TOOL_TRACES_H

#include <glib.h>
#include <stdbool.h>

/**
 * HtTracesOne: handle a trace
 * @opaque: argument of ht_traces_each()
 * @dir: folder of the trace
 * @errp: set on failure
 *
 * Returns: false on failure, which ends ht_traces_each()
 */
typedef bool HtTracesOne(void *opaque, const char *dir, GError **errp);

/**
 * ht_traces_each: call a function for each CTF trace in a folder
 * @dir: folder with traces, at any depth
 * @one: called for each trace
 * @opaque: argument of @one
 * @errp: set on failure; also if there is no trace
 *
 * Returns: false on failure
 */
bool ht_traces_each(const char *dir, HtTracesOne *one, void *opaque,
                    GError **errp);

#endif /* HYPERTRACE_TOOL_TRACES_H */
