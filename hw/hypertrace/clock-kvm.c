/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the offset of a vCPU's TSC, from KVM
 */
#include "qemu/osdep.h"
#include "hw/core/cpu.h"
#include "system/kvm.h"
#include "device.h"
#ifdef CONFIG_KVM
#include <linux/kvm.h>
#endif

/*
 * Only on the thread of a vCPU: elsewhere the ioctl would wait until that
 * vCPU leaves the guest.
 */
bool ht_clock_kvm_offset(int64_t *offset)
{
#if defined(CONFIG_KVM) && defined(KVM_VCPU_TSC_CTRL)
    struct kvm_device_attr attr = {
        .group = KVM_VCPU_TSC_CTRL,
        .attr = KVM_VCPU_TSC_OFFSET,
        .addr = (uintptr_t)offset,
    };

    return current_cpu && kvm_enabled() &&
           kvm_vcpu_ioctl(current_cpu, KVM_GET_DEVICE_ATTR, &attr) == 0;
#else
    return false;
#endif
}
