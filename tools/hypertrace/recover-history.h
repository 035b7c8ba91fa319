/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace recover: of what a guest's ftrace had before its module came
 */
#ifndef HYPERTRACE_TOOL_RECOVER_HISTORY_H
#define HYPERTRACE_TOOL_RECOVER_HISTORY_H

#include <glib.h>
#include <stdbool.h>

/**
 * ht_recover_history: make a recording of the pages in a device's CTF trace
 * @trace: the trace is here or below
 * @dir: the recording, to be made
 * @quiet: do not say how much it is
 * @error: why not
 */
bool ht_recover_history(const char *trace, const char *dir, bool quiet,
                        GError **error);

#endif /* HYPERTRACE_TOOL_RECOVER_HISTORY_H */
