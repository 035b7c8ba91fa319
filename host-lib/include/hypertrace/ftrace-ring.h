/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find a boot-mapped ftrace ring in a guest's memory
 *
 * A kernel that was started with "trace_instance=NAME@PLACE" keeps that
 * instance's ring, and a header about it, in memory that the host sees.
 * Everything there is the guest's: it is read once, checked, then used.
 */
#ifndef HYPERTRACE_FTRACE_RING_H
#define HYPERTRACE_FTRACE_RING_H

#include "hypertrace/base.h"

/* Of a header */
#define HT_FT_MAGIC 0x0badfeedu

/* Largest ring that is followed; a header that says more is none. */
#define HT_FT_CPUS_MAX 1024u
#define HT_FT_PAGES_MAX (1u << 22)      /* sub-buffers of all processors */

/* A piece of memory whose guest-physical address is not known */
#define HT_FT_PHYS_UNKNOWN UINT64_MAX

/**
 * HtFtMem: a guest's memory
 * @size: bytes that it spans, holes included
 * @map: all of it, mapped; or NULL
 * @read: without @map: copies @len bytes from @offset on to @buf; returns 0
 *        or -errno.  Must not allocate memory for the guest.
 * @next: or NULL: sets @out to the first offset, @offset or higher, where
 *        something may have been written; returns false if there is none.
 *        What it leaves out is never read.
 * @piece: or NULL, which means one piece: sets @offset and @size of the
 *         @index-th contiguous piece, and @phys to its guest-physical address
 *         or HT_FT_PHYS_UNKNOWN; returns false beyond the last piece
 * @opaque: passed to the callbacks
 *
 * Later calls read later: so it is for pread() and process_vm_readv() between
 * x86 processors, and fences are put between calls for others.  An aligned
 * unit of 8 bytes should be read at once; no architecture promises that of a
 * copy.  An address or a time stamp of which one half is older is taken for
 * another one: for a loss at worst.
 */
typedef struct HtFtMem {
    uint64_t size;
    const void *map;
    int (*read)(void *opaque, uint64_t offset, void *buf, size_t len);
    bool (*next)(void *opaque, uint64_t offset, uint64_t *out);
    bool (*piece)(void *opaque, unsigned index, uint64_t *offset,
                  uint64_t *size, uint64_t *phys);
    void *opaque;
} HtFtMem;

/**
 * ht_ft_mem_read: copy a guest's memory
 * @mem: the memory
 * @offset: where, a multiple of 4
 * @buf: to where
 * @len: bytes, a multiple of 4
 *
 * Returns: 0 or -errno; -ERANGE beyond the end, -EINVAL if unaligned
 */
int ht_ft_mem_read(const HtFtMem *mem, uint64_t offset, void *buf,
                   size_t len);

/**
 * HtFtLayout: how the header is laid out
 * @HT_FT_LAYOUT_6_11: 6.11 to 6.14: a header a processor
 * @HT_FT_LAYOUT_6_15: later, 7.x: one header, scratch, a line a processor
 * @HT_FT_LAYOUT_LIST: no header: an ordinary ring, whose pages lie anywhere in
 *                     the kernel's memory (see kernel-ring.h)
 */
typedef enum HtFtLayout {
    HT_FT_LAYOUT_6_11,
    HT_FT_LAYOUT_6_15,
    HT_FT_LAYOUT_LIST,
} HtFtLayout;

/**
 * ht_ft_layout_name: "6.12", "7" or "list"
 */
const char *ht_ft_layout_name(HtFtLayout layout);

/**
 * HtFtRingCpu: where one processor's part lies; offsets in the memory
 * @meta: first, head and commit page as guest addresses, 8 bytes each
 * @order: the array of sub-buffer numbers, 4 bytes each
 * @pages: the sub-buffers
 * @first: guest address of @pages when the ring was found
 * @text: see HtFtRing, of this processor's header (6.11)
 */
typedef struct HtFtRingCpu {
    uint64_t meta;
    uint64_t order;
    uint64_t pages;
    uint64_t first;
    uint64_t text;
} HtFtRingCpu;

/**
 * HtFtRing: a ring that was found
 * @offset: where in the memory
 * @size: bytes up to the end of the last processor's sub-buffers
 * @layout: of the header
 * @subbuf_size: bytes of a sub-buffer: 4, 16 or 64 KiB
 * @subbufs: sub-buffers of each processor, the reader's included
 * @cpus: processors that have a part
 * @cpu: an element for each
 * @text: a kernel address that tells KASLR's offset: of
 *        rb_meta_init_text_addr (6.11) or _text (6.15)
 * @clock: number of the trace clock in trace_clock's list, 0 is "local";
 *         0 also where the header does not tell (6.11)
 * @total: what the header says of @size (6.15), else 0
 * @first_part: offset in the ring of the first processor's part (6.15)
 * @line_size: bytes of a processor's part before the order (6.15)
 */
typedef struct HtFtRing {
    uint64_t offset;
    uint64_t size;
    HtFtLayout layout;
    uint32_t subbuf_size;
    uint32_t subbufs;
    uint32_t cpus;
    HtFtRingCpu *cpu;
    uint64_t text;
    uint32_t clock;
    uint64_t total;
    uint64_t first_part;
    uint32_t line_size;
} HtFtRing;

/**
 * ht_ft_ring_at: is there a ring?
 * @mem: the memory
 * @offset: where it would begin
 * @why: or NULL; set to why there is none: a constant, or NULL if not even
 *       the magic number is there
 *
 * Returns: the ring or NULL
 */
HtFtRing *ht_ft_ring_at(const HtFtMem *mem, uint64_t offset,
                        const char **why);

/**
 * ht_ft_ring_free: free it
 * @ring: the ring or NULL
 */
void ht_ft_ring_free(HtFtRing *ring);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtFtRing, ht_ft_ring_free)

/**
 * ht_ft_ring_grow: look for more processors
 * @mem: the memory
 * @ring: the ring
 *
 * A ring can be found while its kernel is still making it.
 *
 * Returns: whether there are
 */
bool ht_ft_ring_grow(const HtFtMem *mem, HtFtRing *ring);

/**
 * ht_ft_ring_text: read a ring's @text once more
 * @mem: the memory
 * @ring: the ring
 * @cpu: the processor whose header is read (6.11); ignored for 6.15
 *
 * Returns: the address, 0 if it cannot be read
 */
uint64_t ht_ft_ring_text(const HtFtMem *mem, const HtFtRing *ring,
                         uint32_t cpu);

/**
 * ht_ft_ring_magic: where a magic number is
 * @ring: the ring
 * @n: which, from 0
 *
 * A kernel that finds none of them makes the ring anew.
 *
 * Returns: offset of 4 bytes; UINT64_MAX if there are no more
 */
uint64_t ht_ft_ring_magic(const HtFtRing *ring, uint32_t n);

/**
 * ht_ft_ring_is_there: is it still the ring that was found?
 * @mem: the memory
 * @ring: the ring
 *
 * Another kernel may have made one of another size there, or use the memory
 * for other things.
 */
bool ht_ft_ring_is_there(const HtFtMem *mem, const HtFtRing *ring);

/* Where rings begin that reserve_mem=SIZE:2M:NAME places */
#define HT_FT_SEARCH_FAST (UINT64_C(2) << 20)
/* Where any ring begins */
#define HT_FT_SEARCH_FULL UINT64_C(4096)

/**
 * HtFtSearch: a search for rings
 * @mem: the memory
 * @step: HT_FT_SEARCH_FAST, from the top down; or HT_FT_SEARCH_FULL, from the
 *        bottom up
 * @at: where the next look is; private
 * @done: all of the memory was looked at
 * @rings: HtFtRing found so far; none lies within another
 * @why: why something with a ring's magic number was none; the last one, or
 *       NULL
 */
typedef struct HtFtSearch {
    const HtFtMem *mem;
    uint64_t step;
    uint64_t at;
    bool done;
    GPtrArray *rings;
    const char *why;
} HtFtSearch;

/**
 * ht_ft_search_init: begin a search
 * @s: the search
 * @mem: must stay until ht_ft_search_clear()
 * @step: HT_FT_SEARCH_FAST or HT_FT_SEARCH_FULL
 */
void ht_ft_search_init(HtFtSearch *s, const HtFtMem *mem, uint64_t step);

/**
 * ht_ft_search_clear: free what the search holds
 * @s: the search
 */
void ht_ft_search_clear(HtFtSearch *s);

/**
 * ht_ft_search_go: look further
 * @s: the search
 * @looks: at so many places at most
 *
 * A ring that is found may be a copy of one (in a page cache, or a nested
 * guest's memory): whether it is alive shows when it is followed.
 *
 * Returns: whether a ring was found in this call
 */
bool ht_ft_search_go(HtFtSearch *s, uint64_t looks);

/**
 * ht_ft_ring_covers: is an offset of the memory within the ring?
 * @r: the ring
 * @offset: maybe where a later processor's part begins, which alone looks like
 *          a ring as well
 */
static inline bool ht_ft_ring_covers(const HtFtRing *r, uint64_t offset)
{
    return offset >= r->offset && offset - r->offset < r->size;
}

#endif /* HYPERTRACE_FTRACE_RING_H */
