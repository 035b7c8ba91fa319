/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: CTF traces where a recording could be
 */
#ifndef HYPERTRACE_TOOL_TRACES_H
#define HYPERTRACE_TOOL_TRACES_H

#include <glib.h>
#include <stdbool.h>

/**
 * HtTracesOne: called for each trace
 * @opaque: as given to ht_traces_each()
 * @dir: the trace
 * @errp: why not
 *
 * Returns: false on failure; no more traces are looked at then
 */
typedef bool HtTracesOne(void *opaque, const char *dir, GError **errp);

/**
 * ht_traces_each: look for traces, of which there has to be one
 * @dir: they are here or below
 * @one: called for each
 * @opaque: for @one
 * @errp: why not
 *
 * Returns: false on failure
 */
bool ht_traces_each(const char *dir, HtTracesOne *one, void *opaque,
                    GError **errp);

#endif /* HYPERTRACE_TOOL_TRACES_H */
