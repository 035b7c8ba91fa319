/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: start to read the log of a guest's kernel
 */
#include "hypertrace/kernel-log.h"

HtKernelLog *ht_kernel_log_of(HtGuestKernel *k, GError **error)
{
    const HtBtf *btf = ht_kernel_image_btf(ht_guest_kernel_image(k));
    HtKernelSpace space = ht_kernel_space_of(k);
    HtKernelLogLayout layout;
    uint64_t prb;

    if (!btf || ht_guest_kernel_symbol(k, "prb", &prb)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel has no %s: its log cannot be read",
                    btf ? "symbol prb" : "types (CONFIG_DEBUG_INFO_BTF)");
        return NULL;
    }
    return ht_kernel_log_layout(btf, &layout, error) ?
           ht_kernel_log_new(&space, &layout, prb) : NULL;
}
