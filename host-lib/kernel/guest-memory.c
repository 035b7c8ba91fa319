/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a guest's memory by physical address
 */
#include "hypertrace/guest-memory.h"

/* Granularity of ranges in bytes: the smallest page */
#define GRANULE 4096u

void ht_guest_mem_init(HtGuestMem *g, const HtFtMem *mem)
{
    uint64_t offset, size, phys;
    unsigned i;

    g->mem = mem;
    g->n = 0;
    g->n_pieces = 0;
    for (i = 0; mem->piece && i < HT_GUEST_RANGES_MAX &&
         mem->piece(mem->opaque, i, &offset, &size, &phys); i++) {
        size -= size % GRANULE;
        /*
         * These calls fail, and so leave the piece out, if its start is not
         * aligned or it exceeds the memory.  A piece with a known physical
         * address is also left out if it overlaps an earlier one.
         */
        if (phys != HT_FT_PHYS_UNKNOWN) {
            ht_guest_mem_add(g, phys, size, offset);
        } else {
            ht_guest_mem_piece(g, offset, size);
        }
    }
}

static bool overlap(uint64_t a, uint64_t b, uint64_t a_size, uint64_t b_size)
{
    return a < b ? b - a < a_size : a - b < b_size;
}

int ht_guest_mem_add(HtGuestMem *g, uint64_t phys, uint64_t size,
                     uint64_t offset)
{
    unsigned i;

    if (!size || phys % GRANULE || size % GRANULE || offset % GRANULE ||
        size > UINT64_MAX - phys) {
        return -EINVAL;
    }
    if (size > g->mem->size || offset > g->mem->size - size) {
        return -ERANGE;
    }
    for (i = 0; i < g->n; i++) {
        const HtGuestRange *r = &g->ranges[i];

        if (overlap(r->phys, phys, r->size, size) ||
            overlap(r->offset, offset, r->size, size)) {
            return -EINVAL;
        }
    }
    if (g->n == HT_GUEST_RANGES_MAX) {
        return -ENOSPC;
    }
    g->ranges[g->n++] = (HtGuestRange) {
        .phys = phys, .size = size, .offset = offset,
    };
    return 0;
}

int ht_guest_mem_piece(HtGuestMem *g, uint64_t offset, uint64_t size)
{
    if (!size || size % GRANULE || offset % GRANULE) {
        return -EINVAL;
    }
    if (size > g->mem->size || offset > g->mem->size - size) {
        return -ERANGE;
    }
    if (g->n_pieces == HT_GUEST_RANGES_MAX) {
        return -ENOSPC;
    }
    g->pieces[g->n_pieces++] = (HtGuestRange) {
        .size = size, .offset = offset,
    };
    return 0;
}

int ht_guest_mem_offset(const HtGuestMem *g, uint64_t phys, uint64_t *offset,
                        uint64_t *left)
{
    unsigned i;

    for (i = 0; i < g->n; i++) {
        const HtGuestRange *r = &g->ranges[i];

        if (phys >= r->phys && phys - r->phys < r->size) {
            *offset = r->offset + (phys - r->phys);
            if (left) {
                *left = r->size - (phys - r->phys);
            }
            return 0;
        }
    }
    return -ENXIO;
}

int ht_guest_mem_phys(const HtGuestMem *g, uint64_t offset, uint64_t *phys)
{
    unsigned i;

    for (i = 0; i < g->n; i++) {
        const HtGuestRange *r = &g->ranges[i];

        if (offset >= r->offset && offset - r->offset < r->size) {
            *phys = r->phys + (offset - r->offset);
            return 0;
        }
    }
    return -ENXIO;
}

int ht_guest_mem_read(const HtGuestMem *g, uint64_t phys, void *buf,
                      size_t len)
{
    uint8_t *to = buf;

    while (len) {
        uint64_t offset, left;
        int ret = ht_guest_mem_offset(g, phys, &offset, &left);
        size_t n;

        if (ret) {
            return ret;
        }
        n = MIN(len, left);
        ret = ht_ft_mem_copy(g->mem, offset, to, n);
        if (ret) {
            return ret;
        }
        phys += n;
        to += n;
        len -= n;
    }
    return 0;
}

/* Copy less than 8 bytes out of one aligned unit of 8 bytes */
static int copy_part(const HtFtMem *mem, uint64_t offset, void *buf,
                     size_t len)
{
    uint64_t begin = offset & ~UINT64_C(7);
    size_t unit = MIN(8, mem->size - begin);
    uint8_t whole[8];
    int ret;

    /*
     * ht_ft_mem_read() reads multiples of 4 bytes only; the size of the memory
     * need not be a multiple of 4.
     */
    if (unit % 4) {
        return mem->map ?
            (memcpy(buf, (const uint8_t *)mem->map + offset, len), 0) :
            mem->read(mem->opaque, offset, buf, len);
    }
    ret = ht_ft_mem_read(mem, begin, whole, unit);
    if (!ret) {
        memcpy(buf, whole + (offset - begin), len);
    }
    return ret;
}

int ht_ft_mem_copy(const HtFtMem *mem, uint64_t offset, void *buf, size_t len)
{
    uint8_t *to = buf;
    size_t n;
    int ret;

    if (len > mem->size || offset > mem->size - len) {
        return -ERANGE;
    }
    if (!mem->map) {
        return mem->read(mem->opaque, offset, buf, len);
    }
    n = MIN(len, (8 - offset % 8) % 8);
    if (n) {
        ret = copy_part(mem, offset, to, n);
        if (ret) {
            return ret;
        }
    }
    offset += n;
    to += n;
    len -= n;
    n = len & ~(size_t)7;
    ret = n ? ht_ft_mem_read(mem, offset, to, n) : 0;
    if (!ret && len > n) {
        ret = copy_part(mem, offset + n, to + n, len - n);
    }
    return ret;
}
