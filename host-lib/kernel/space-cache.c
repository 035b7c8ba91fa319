/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a kernel's memory through a cache of its pages
 */
#include "hypertrace/kernel-space.h"

/* Size in bytes of a piece that is read at once: the smallest page */
#define PIECE   4096u
/*
 * Number of places for pieces in the cache; a piece's address determines its
 * place
 */
#define PIECES  64u

struct HtKernelCache {
    const HtKernelSpace *space;
    unsigned reads;
    /* by place: the piece's address plus 1; 0: none */
    uint64_t tag[PIECES];
    uint8_t data[PIECES][PIECE];
};

HtKernelCache *ht_kernel_cache_new(const HtKernelSpace *s)
{
    HtKernelCache *c = g_new0(HtKernelCache, 1);

    c->space = s;
    return c;
}

void ht_kernel_cache_free(HtKernelCache *c)
{
    g_free(c);
}

void ht_kernel_cache_clear(HtKernelCache *c)
{
    memset(c->tag, 0, sizeof(c->tag));
}

unsigned ht_kernel_cache_reads(const HtKernelCache *c)
{
    return c->reads;
}

/*
 * Get the piece that contains an address.  Returns NULL if not all of the piece
 * can be read.
 */
static const uint8_t *piece_at(HtKernelCache *c, uint64_t addr)
{
    uint64_t begin = addr & ~(uint64_t)(PIECE - 1);
    unsigned place = begin / PIECE % PIECES;

    if (c->tag[place] != begin + 1) {
        c->tag[place] = 0;
        c->reads++;
        if (ht_kernel_space_read(c->space, begin, c->data[place], PIECE)) {
            return NULL;
        }
        c->tag[place] = begin + 1;
    }
    return c->data[place];
}

int ht_kernel_cache_read(HtKernelCache *c, uint64_t addr, void *buf,
                         size_t len)
{
    uint8_t *to = buf;

    while (len) {
        size_t at = addr % PIECE, n = MIN(len, PIECE - at);
        const uint8_t *piece = piece_at(c, addr);

        if (!piece) {
            c->reads++;
            return ht_kernel_space_read(c->space, addr, to, len);
        }
        memcpy(to, piece + at, n);
        addr += n;
        to += n;
        len -= n;
    }
    return 0;
}

int ht_kernel_cache_string(HtKernelCache *c, uint64_t addr, size_t max,
                           GString *out)
{
    gsize before = out->len;

    while (max) {
        size_t at = addr % PIECE, n = MIN(max, PIECE - at), len;
        const uint8_t *piece = piece_at(c, addr);

        if (!piece) {
            int ret;

            c->reads++;
            ret = ht_kernel_space_string(c->space, addr, max, out);
            if (ret) {
                g_string_truncate(out, before);
            }
            return ret;
        }
        len = strnlen((const char *)piece + at, n);
        g_string_append_len(out, (const char *)piece + at, len);
        if (len < n) {
            break;
        }
        addr += n;
        max -= n;
    }
    return 0;
}
