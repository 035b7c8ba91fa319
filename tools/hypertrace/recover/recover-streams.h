/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace recover: events in the stream RAM of a device
 */
#ifndef HYPERTRACE_TOOL_RECOVER_STREAMS_H
#define HYPERTRACE_TOOL_RECOVER_STREAMS_H

#include <glib.h>
#include <stdbool.h>

/**
 * ht_recover_is_index: whether a file is the index of a device
 * @path: the file
 *
 * The device writes the index to the file that its property recover= names.
 */
bool ht_recover_is_index(const char *path);

/**
 * ht_recover_streams: write the events of a device's streams to a CTF trace,
 * and show the end of each stream
 * @index: the device's index file
 * @memory: stream RAM, if it is not at the path that the index has; or NULL
 * @dir: directory in which the trace is created; created if needed
 * @lines: number of events to show of each stream
 * @quiet: show nothing
 * @error: set on failure
 *
 * Returns: true on success
 */
bool ht_recover_streams(const char *index, const char *memory,
                        const char *dir, unsigned lines, bool quiet,
                        GError **error);

#endif /* HYPERTRACE_TOOL_RECOVER_STREAMS_H */
