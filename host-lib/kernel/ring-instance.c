/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find a trace buffer of a guest's kernel by its instance's name
 */
#include "hypertrace/kernel-ring.h"

/* Maximum number of instances searched, and of bytes of a name */
#define INSTANCES_MAX 256u
#define NAME_MAX_INSTANCE 256u

int ht_kernel_ring_instance(HtGuestKernel *k, const char *name,
                            uint64_t *array)
{
    const HtBtf *btf = ht_kernel_image_btf(ht_guest_kernel_image(k));
    HtKernelSpace space = ht_kernel_space_of(k);
    g_autoptr(GString) text = g_string_new(NULL);
    uint64_t head, at, member;
    uint32_t list, named;
    unsigned i;
    int ret;

    if (!name) {
        return ht_guest_kernel_symbol(k, "global_trace", array);
    }
    ret = !btf ? -ENOENT : ht_btf_offset(btf, "trace_array", "list", &list,
                                         NULL);
    ret = ret ? ret : ht_btf_offset(btf, "trace_array", "name", &named, NULL);
    ret = ret ? ret : ht_guest_kernel_symbol(k, "ftrace_trace_arrays", &head);
    ret = ret ? ret : ht_kernel_space_u64(&space, head, &at);
    for (i = 0; !ret && at != head && i < INSTANCES_MAX; i++) {
        *array = at - list;
        g_string_truncate(text, 0);
        ret = ht_kernel_space_u64(&space, *array + named, &member);
        if (!ret && member) {
            ret = ht_kernel_space_string(&space, member, NAME_MAX_INSTANCE,
                                         text);
        }
        if (!ret && !strcmp(text->str, name)) {
            return 0;
        }
        ret = ret ? ret : ht_kernel_space_u64(&space, at, &at);
    }
    return ret ? ret : -ENOENT;
}
