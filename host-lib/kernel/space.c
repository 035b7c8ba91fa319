/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a kernel's memory by virtual address
 */
#include "hypertrace/kernel-space.h"
#include "hypertrace/atomic.h"

/* Maximum number of bytes of a text that are read at once */
#define TEXT_CHUNK 256u

int ht_kernel_space_read(const HtKernelSpace *s, uint64_t addr, void *buf,
                         size_t len)
{
    uint8_t *to = buf;

    while (len) {
        uint64_t offset, left;
        int ret = s->translate(s->opaque, addr, &offset, &left);
        size_t n;

        if (ret || !left) {
            return ret ? ret : -EFAULT;
        }
        n = MIN(len, left);
        ret = ht_ft_mem_copy(s->mem, offset, to, n);
        if (ret) {
            return ret;
        }
        addr += n;
        to += n;
        len -= n;
    }
    /*
     * Order these loads before later ones.  Pairs with the order of the guest's
     * stores: an x86 guest's stores are all ordered; other guests' kernels have
     * barriers between a record, its commit and the next page's stores.
     */
    ht_fence_acquire();
    return 0;
}

int ht_kernel_space_u64(const HtKernelSpace *s, uint64_t addr,
                        uint64_t *value)
{
    uint64_t last = 0, v;
    unsigned i;
    int ret;

    for (i = 0; i < HT_POINTER_TRIES; i++) {
        ret = ht_kernel_space_read(s, addr, &v, sizeof(v));
        if (ret) {
            return ret;
        }
        /* A mapped, aligned word is loaded whole. */
        if ((i && v == last) || (s->mem->map && addr % 8 == 0)) {
            *value = ht_le64(v);
            return 0;
        }
        last = v;
    }
    return -EAGAIN;
}

int ht_kernel_space_u64_again(const HtKernelSpace *s, uint64_t addr,
                              uint64_t *value)
{
    uint64_t v;
    int ret = ht_kernel_space_read(s, addr, &v, sizeof(v));

    return ret || ht_le64(v) == *value ? ret :
           ht_kernel_space_u64(s, addr, value);
}

int ht_kernel_space_u32(const HtKernelSpace *s, uint64_t addr,
                        uint32_t *value)
{
    uint32_t v;
    int ret = ht_kernel_space_read(s, addr, &v, sizeof(v));

    if (!ret) {
        *value = ht_le32(v);
    }
    return ret;
}

int ht_kernel_space_string(const HtKernelSpace *s, uint64_t addr, size_t max,
                           GString *out)
{
    gsize before = out->len;
    char chunk[TEXT_CHUNK];

    while (max) {
        uint64_t offset, left;
        int ret = s->translate(s->opaque, addr, &offset, &left);
        /* Read no byte after these @left bytes: the text may end with them. */
        size_t n = ret ? 0 : MIN(MIN(max, sizeof(chunk)), left), len;

        ret = ret ? ret : !n ? -EFAULT :
              ht_ft_mem_copy(s->mem, offset, chunk, n);
        if (ret) {
            g_string_truncate(out, before);
            return ret;
        }
        len = strnlen(chunk, n);
        g_string_append_len(out, chunk, len);
        if (len < n) {
            break;
        }
        addr += n;
        max -= n;
    }
    return 0;
}
