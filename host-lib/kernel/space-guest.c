/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: translate addresses of a guest's kernel for its readers
 */
#include "hypertrace/kernel-space.h"

static int translate_kernel(void *opaque, uint64_t addr, uint64_t *offset,
                            uint64_t *left)
{
    return ht_guest_kernel_offset(opaque, addr, offset, left);
}

HtKernelSpace ht_kernel_space_of(HtGuestKernel *k)
{
    return (HtKernelSpace) {
        .mem = ht_guest_kernel_memory(k)->mem,
        .translate = translate_kernel,
        .opaque = k,
    };
}
