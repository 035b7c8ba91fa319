/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relate the guest's counter to the host's CLOCK_MONOTONIC
 */
#ifndef HW_HYPERTRACE_CLOCK_H
#define HW_HYPERTRACE_CLOCK_H

#include "hypertrace/abi.h"
#include "hypertrace/guest-clock.h"

/**
 * HtClock: clock of a device
 * @guest: the relation
 * @counter: the guest's counter
 * @scaled: KVM scales the TSC: only exchanges relate the clocks; BQL
 */
typedef struct HtClock {
    HtGuestClock guest;
    enum ht_counter counter;
    bool scaled;
} HtClock;

/* Returns false if the guest's counter is not known.  BQL, after CPUs exist */
bool ht_clock_init(HtClock *c, Error **errp);
/* ht_guest_clock_bound(), after a reading if the VM runs.  Any thread */
uint64_t ht_clock_bound_ns(HtClock *c);
/* Note that the VM stopped or runs again: the counter may stop.  BQL */
void ht_clock_vm_change(HtClock *c, bool running);
/* Ask KVM for the TSC's offset, if this is a vCPU's thread.  BQL */
void ht_clock_update_offset(HtClock *c);
/* Continue another host's map; add @shift to its times.  BQL */
bool ht_clock_load(HtClock *c, const HtTimeSegment *seg, unsigned count,
                   int64_t shift);

/* clock-target.c */

/* A vCPU's TSC: (the host's, scaled by khz / host_khz) + offset */
typedef struct HtKvmTsc {
    int64_t offset;
    int khz;
    int host_khz;
} HtKvmTsc;

/**
 * ht_clock_target: find the counter of guests of this target
 * @counter: set to it
 * @hz: frequency of the host's counter; set to the guest's
 * @ppm: its error, likewise
 * @elapsed: set to whether QEMU makes the counter (TCG on x86, qtest)
 */
bool ht_clock_target(enum ht_counter *counter, uint64_t *hz, uint32_t *ppm,
                     bool *elapsed, Error **errp);
/* Returns false if KVM does not report it, or outside of a vCPU's thread */
bool ht_clock_kvm_tsc(HtKvmTsc *tsc);

#endif /* HW_HYPERTRACE_CLOCK_H */
