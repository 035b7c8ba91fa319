/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the counter that guests of this target read
 *
 * The counter is that of the guest library's ht_clock(): the TSC on x86,
 * CNTVCT_EL0 on Arm.  This file is built for each target.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "system/kvm.h"
#include "system/qtest.h"
#include "system/tcg.h"
#include "hypertrace/compat.h"
#include "clock.h"
#if HT_QEMU_AT_LEAST(10, 1)
#include "exec/icount.h"
#else
#include "system/cpu-timers.h"
#endif
#ifdef CONFIG_KVM
#include <linux/kvm.h>
#endif

bool ht_clock_target(enum ht_counter *counter, uint64_t *hz, uint32_t *ppm,
                     bool *elapsed, Error **errp)
{
    *elapsed = false;
    if (icount_enabled()) {
        error_setg(errp, "hypertrace: with -icount the guest's counter counts"
                   " instructions: events cannot be dated");
        return false;
    }
#if defined(TARGET_I386)
    /*
     * QEMU computes the guest's TSC itself in two cases: TCG derives it from
     * the host's TSC, and with qtest there is no CPU, so the test programs read
     * the host's TSC.  For KVM see ht_clock_update_offset().
     */
    *counter = HT_COUNTER_TSC;
    *elapsed = tcg_enabled() || qtest_enabled();
    /*
     * It is not known how accelerators other than TCG and KVM derive the
     * guest's TSC from the host's, so assume the largest error.
     */
    if (!*elapsed && !kvm_enabled()) {
        *ppm = HT_TIME_PPM_MAX;
    }
    return true;
#elif defined(TARGET_ARM)
    Object *cpu = OBJECT(first_cpu);
    uint64_t guest_hz = cpu ? object_property_get_uint(cpu, "cntfrq", NULL) : 0;

    if (guest_hz < 1000 || guest_hz == UINT64_MAX) {
        error_setg(errp, "hypertrace: the CPU does not tell the frequency of"
                   " its virtual counter");
        return false;
    }
    *counter = HT_COUNTER_CNTVCT;
    *hz = guest_hz;
    *ppm = HT_TIME_PPM_MAX;
    return true;
#else
    error_setg(errp, "hypertrace: no counter is known that guests of this"
               " target can date events with (x86 and Arm have one)");
    return false;
#endif
}

/*
 * Ask only about the calling thread's own vCPU: the ioctl for another vCPU
 * would wait until that vCPU leaves the guest.
 */
bool ht_clock_kvm_tsc(HtKvmTsc *tsc)
{
#if defined(CONFIG_KVM) && defined(TARGET_I386) && defined(KVM_VCPU_TSC_CTRL)
    struct kvm_device_attr attr = {
        .group = KVM_VCPU_TSC_CTRL,
        .attr = KVM_VCPU_TSC_OFFSET,
        .addr = (uintptr_t)&tsc->offset,
    };

    if (!current_cpu || !kvm_enabled() ||
        kvm_vcpu_ioctl(current_cpu, KVM_GET_DEVICE_ATTR, &attr) != 0) {
        return false;
    }
    tsc->khz = kvm_vcpu_ioctl(current_cpu, KVM_GET_TSC_KHZ);
    /* The VM's default frequency: the host's unless QEMU has set another one */
    tsc->host_khz = kvm_vm_ioctl(kvm_state, KVM_GET_TSC_KHZ);
    return true;
#else
    return false;
#endif
}
