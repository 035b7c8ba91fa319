/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: add up what the vCPUs in the host's part of a recording did
 *
 * A vCPU is a thread that has an entry to the guest or an exit (kvm_entry,
 * kvm_exit) with the vCPU's number, or a thread that QEMU has named, for
 * example "CPU 0/KVM", "CPU 0/TCG" or "ALL CPUs/TCG". Times are nanoseconds.
 */
#ifndef HYPERTRACE_TOOL_HOST_SUMS_H
#define HYPERTRACE_TOOL_HOST_SUMS_H

#include "host/runstates.h"
#include "model/model.h"

/**
 * ht_host_sums_threads: read the names of the host's threads
 * @m: model of the host's part
 * @errp: set if the file cannot be read, or NULL
 *
 * Returns: the result of ht_host_threads(), without entries on failure
 */
GHashTable *ht_host_sums_threads(HtModel *m, GError **errp);

/**
 * ht_host_sums: add up the events of a host
 * @x: new sums; the caller may have set @from and @to; filled in
 * @m: model of the host's part; read to its end, or to the first event after
 *     @x->to
 * @threads: from ht_host_threads()
 */
void ht_host_sums(HtRunstates *x, HtModel *m, GHashTable *threads);

typedef struct HtHostSums HtHostSums;

/**
 * ht_host_sums_new: begin to add up the events of a host that is being recorded
 * @x: new sums; must outlive the result
 * @m: model of the host's part; must outlive the result
 * @threads: from ht_host_threads(); threads that it does not have are looked up
 *           in this host's /proc, and added; threads that end are removed
 *
 * Returns: the state, for ht_host_sums_free()
 */
HtHostSums *ht_host_sums_new(HtRunstates *x, HtModel *m, GHashTable *threads);

/**
 * ht_host_sums_more: add the events that the model has now
 * @stop: another thread sets it to end the call early (atomic), or NULL
 *
 * The present state of each vCPU that is not offline is counted up to the last
 * event, and in the next call from there on. One state can so count as several
 * intervals, and one wait as several waits.
 *
 * Returns: false if the call ended early because of @stop
 */
bool ht_host_sums_more(HtHostSums *s, const uint32_t *stop);

/**
 * ht_host_sums_free: free the state, but not the sums that it has filled
 */
void ht_host_sums_free(HtHostSums *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtHostSums, ht_host_sums_free)

/**
 * ht_host_sums_emulated: whether a vCPU is emulated (TCG)
 *
 * Returns: true if the vCPU's thread has a name of TCG, and no event of KVM has
 * shown the vCPU in the guest's code or in an exit. QEMU then executes the
 * guest's code in that thread, so the time without a mode is QEMU's. The name
 * is necessary: a vCPU of KVM may have no events either, because it ran the
 * guest all the time or the events were not recorded.
 */
bool ht_host_sums_emulated(const HtVcpuSums *v);

#endif /* HYPERTRACE_TOOL_HOST_SUMS_H */
