/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: add up a trace that xentrace wrote on a Xen host
 *
 * The file has no header.  A record "CPU change" names a physical CPU and the
 * length of the chunk of records that follows. Times are TSC cycles.
 */
#ifndef HYPERTRACE_TOOL_XENTRACE_H
#define HYPERTRACE_TOOL_XENTRACE_H

#include <stddef.h>

#include "host/runstates.h"

/**
 * ht_xentrace_read: add up the records of a trace
 * @x: new sums, with @from and @to set or not; filled in
 * @data: contents of the file; any bytes
 * @size: number of bytes
 * @errp: set if the data does not begin as a file of xentrace does
 *
 * The memory used is proportional to the size of the file, plus the tables of
 * @x, each of which has a limit. An interval whose end is not in the trace
 * counts only if the vCPU runs. Such an interval ends at @x->to if the trace
 * goes on after that time; otherwise, at the last record of the vCPU's CPU.
 *
 * Returns: false on error
 */
bool ht_xentrace_read(HtRunstates *x, const uint8_t *data, size_t size,
                      GError **errp);

#endif /* HYPERTRACE_TOOL_XENTRACE_H */
