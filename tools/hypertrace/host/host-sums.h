/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: sums of the vCPUs in the host's part of a recording
 *
 * A vCPU is a thread with events of KVM, or a thread that QEMU has named: "CPU
 * 0/KVM", "CPU 0/TCG" or "ALL CPUs/TCG". Times are nanoseconds.
 */
#ifndef HYPERTRACE_TOOL_HOST_SUMS_H
#define HYPERTRACE_TOOL_HOST_SUMS_H

#include "host/runstates.h"
#include "model/model.h"

/**
 * ht_host_sums: add up the events of a host
 * @x: new sums, with @from and @to set or not; filled in
 * @m: model of the host's part; read to its end, or to the first event after
 *     @x->to
 * @threads: from ht_host_threads()
 */
void ht_host_sums(HtRunstates *x, HtModel *m, GHashTable *threads);

#endif /* HYPERTRACE_TOOL_HOST_SUMS_H */
