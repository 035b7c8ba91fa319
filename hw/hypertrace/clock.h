/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: relate the guest's counter to the host's CLOCK_MONOTONIC */
#ifndef HW_HYPERTRACE_CLOCK_H
#define HW_HYPERTRACE_CLOCK_H

#include "hypertrace/abi.h"
#include "hypertrace/guest-clock.h"

/**
 * HtClock: clock of a device
 * @guest: map from the guest's counter to the host's clock
 * @counter: which counter the guest reads
 * @scaled: leave_kvm() was called: only exchanges with the guest relate the
 *          clocks; BQL
 */
typedef struct HtClock {
    HtGuestClock guest;
    enum ht_counter counter;
    bool scaled;
} HtClock;

/*
 * Initialize a device's clock.  Returns false with @errp set if no counter of
 * this target, or not its frequency, is known, or if QEMU runs with -icount.
 * Context: BQL; CPUs exist
 */
bool ht_clock_init(HtClock *c, Error **errp);
/*
 * Get ht_guest_clock_bound() of a HtClock; if the VM runs and the last reading
 * is old, read the clocks first.  Context: any thread
 */
uint64_t ht_clock_bound_ns(void *c);
/*
 * Note that the VM stopped or continues: the counter may have stood still or
 * jumped while the VM was stopped.  Context: BQL
 */
void ht_clock_vm_change(HtClock *c, bool running);
/*
 * With KVM, in a vCPU's thread: ask KVM for the TSC's offset, and compute the
 * counter with it unless KVM scales the TSC.  Context: BQL
 */
void ht_clock_update_offset(HtClock *c);

/* Functions of clock-target.c */

/* How KVM derives a vCPU's TSC: host's TSC * khz / host_khz + offset */
typedef struct HtKvmTsc {
    int64_t offset;
    int khz;
    int host_khz;
} HtKvmTsc;

/**
 * ht_clock_target: find the counter of guests of this target
 * @counter: set to the counter
 * @hz: in: frequency of the host's counter; out: of the guest's, in Hz
 * @ppm: in and out: error of @hz in parts per million
 * @elapsed: set to true if QEMU can compute the counter (x86 with TCG or qtest)
 * @errp: set if false is returned: no counter or frequency known, or -icount
 */
bool ht_clock_target(enum ht_counter *counter, uint64_t *hz, uint32_t *ppm,
                     bool *elapsed, Error **errp);
/*
 * Ask KVM how it derives the TSC of the vCPU whose thread calls this.  Returns
 * false if KVM does not report that, or in another thread
 */
bool ht_clock_kvm_tsc(HtKvmTsc *tsc);

#endif /* HW_HYPERTRACE_CLOCK_H */
