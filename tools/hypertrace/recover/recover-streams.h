/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace recover: of a device's stream RAM
 */
#ifndef HYPERTRACE_TOOL_RECOVER_STREAMS_H
#define HYPERTRACE_TOOL_RECOVER_STREAMS_H

#include <glib.h>
#include <stdbool.h>

/* ht_recover_is_index: whether a file is what the property recover= made */
bool ht_recover_is_index(const char *path);

/**
 * ht_recover_streams: make a CTF trace of what streams have, and show its end
 * @index: what the property recover= made
 * @memory: stream RAM, if it is not where the index says; or NULL
 * @dir: is made, and the trace in it
 * @lines: of each stream to show
 * @quiet: show nothing
 * @error: why not
 */
bool ht_recover_streams(const char *index, const char *memory,
                        const char *dir, unsigned lines, bool quiet,
                        GError **error);

#endif /* HYPERTRACE_TOOL_RECOVER_STREAMS_H */
