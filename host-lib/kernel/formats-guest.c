/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: start to read the event formats of a guest's kernel
 */
#include "hypertrace/kernel-formats.h"

HtKernelFormats *ht_kernel_formats_of(HtGuestKernel *k, GError **error)
{
    const HtBtf *btf = ht_kernel_image_btf(ht_guest_kernel_image(k));
    HtKernelSpace space = ht_kernel_space_of(k);
    HtKernelFormatsAt at = { 0 };

    if (!btf || ht_guest_kernel_symbol(k, "ftrace_events", &at.events) ||
        ht_guest_kernel_symbol(k, "ftrace_common_fields", &at.common)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel has no %s: its event formats cannot be read",
                    btf ? "symbols of its data (CONFIG_KALLSYMS_ALL)" :
                    "types (CONFIG_DEBUG_INFO_BTF)");
        return NULL;
    }
    ht_guest_kernel_symbol(k, "syscall_get_enter_fields", &at.enter_fields);
    return ht_kernel_formats_new(&space, btf, &at,
                                 ht_guest_kernel_page_size(k), error);
}
