/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace recover: recover events from stream memory
 */
#ifndef HYPERTRACE_TOOL_RECOVER_STREAMS_H
#define HYPERTRACE_TOOL_RECOVER_STREAMS_H

#include <glib.h>
#include <stdbool.h>

/* ht_recover_is_streams: test a file for the magic number of streams */
bool ht_recover_is_streams(const char *path);

/**
 * ht_recover_streams: write the events in stream memory to a CTF trace, and
 * show the end of each stream
 * @path: file of the memory; the trace is named after it
 * @dir: directory in which the trace is created; created if needed
 * @lines: number of events to show of each stream
 * @quiet: show nothing
 * @error: set on failure; also if the streams have no events
 *
 * Returns: true on success
 */
bool ht_recover_streams(const char *path, const char *dir, unsigned lines,
                        bool quiet, GError **error);

#endif /* HYPERTRACE_TOOL_RECOVER_STREAMS_H */
