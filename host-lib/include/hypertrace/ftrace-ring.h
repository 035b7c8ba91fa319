/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find a boot-mapped ftrace ring in a guest's memory
 *
 * A kernel that was started with "trace_instance=NAME@PLACE" keeps the ring of
 * that instance, and a header that describes it, in memory that the host can
 * read.  The guest may change this memory at any time: a value that was read is
 * checked before it is used, and checked again if it is read again.
 */
#ifndef HYPERTRACE_FTRACE_RING_H
#define HYPERTRACE_FTRACE_RING_H

#include "hypertrace/base.h"
#include "hypertrace/budget.h"

/* Magic number of the ring's header */
#define HT_FT_MAGIC 0x0badfeedu

/* Limits of a boot-mapped ring; processors beyond them are left out */
#define HT_FT_CPUS_MAX 1024u
/*
 * maximum number of sub-buffers of all processors together; a poll may read the
 * order of all of them
 */
#define HT_FT_SUBBUFS_MAX (1u << 18)
/*
 * ordinary ring: maximum number of pages that a poll visits to search the list
 * of one processor
 */
#define HT_FT_PAGES_MAX (1u << 22)

/* HtFtMem.piece sets this if the guest-physical address is not known */
#define HT_FT_PHYS_UNKNOWN UINT64_MAX

/**
 * HtFtMem: a guest's memory
 * @size: size in bytes, holes included
 * @map: the whole memory, mapped; or NULL
 * @read: used if @map is NULL: copies @len bytes at @offset to @buf and returns
 *        0 or -errno.  Must not allocate memory for the guest.
 * @next: or NULL: sets @out to the first offset, at or after @offset, that the
 *        guest may have written; returns false if nothing follows.  Searches
 *        do not read the memory that @next skips.
 * @piece: or NULL, which means one piece: sets @offset and @size of the
 *         @index-th contiguous piece, and @phys to its guest-physical address
 *         or HT_FT_PHYS_UNKNOWN; returns false after the last piece
 * @opaque: passed to the callbacks
 *
 * Reads must take effect in the order of the calls: pread() and
 * process_vm_readv() on x86 do so, and callers put fences between calls for
 * other architectures.  @read should load an aligned unit of 8 bytes at once,
 * although no architecture promises that for a copy.  A torn address or time
 * stamp is taken for another value; at worst, events are counted as lost.
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
 * ht_ft_mem_read: copy a range of a guest's memory
 * @mem: the memory
 * @offset: start of the range, a multiple of 4
 * @buf: the destination
 * @len: size in bytes, a multiple of 4
 *
 * Returns: 0 or -errno; -ERANGE outside the memory, -EINVAL if unaligned
 */
int ht_ft_mem_read(const HtFtMem *mem, uint64_t offset, void *buf,
                   size_t len);

/**
 * HtFtLayout: layout of a ring's header
 * @HT_FT_LAYOUT_6_11: Linux 6.11 to 6.14: one header for each processor
 * @HT_FT_LAYOUT_6_15: Linux 6.15 and later, also 7.x: one header and a scratch
 *                     area, then a part for each processor
 * @HT_FT_LAYOUT_LIST: no header: an ordinary ring, whose pages are anywhere in
 *                     the kernel's memory (see kernel-ring.h)
 */
typedef enum HtFtLayout {
    HT_FT_LAYOUT_6_11,
    HT_FT_LAYOUT_6_15,
    HT_FT_LAYOUT_LIST,
} HtFtLayout;

/**
 * ht_ft_layout_name: get the name of a layout: "6.12", "7" or "list"
 * @layout: the layout
 */
const char *ht_ft_layout_name(HtFtLayout layout);

/**
 * HtFtRingCpu: location of one processor's part; offsets are in the memory
 * @meta: offset of the first, head and commit page's addresses, 8 bytes each
 * @order: offset of the array of sub-buffer numbers, 4 bytes each
 * @pages: offset of the sub-buffers
 * @first: guest address of @pages when the ring was found
 * @text: see HtFtRing, from this processor's header (6.11)
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
 * @offset: offset in the memory
 * @size: size in bytes, up to the end of the last processor's sub-buffers
 * @layout: layout of the header
 * @subbuf_size: size of a sub-buffer in bytes: 4, 16 or 64 KiB; in an ordinary
 *               ring a power of two from the kernel's page size to 64 KiB
 * @subbufs: number of sub-buffers of each processor, including the readers'
 *           page; 0 in an ordinary ring
 * @cpus: number of processors, up to the last that has a part
 * @cut: the ring has more processors than HT_FT_CPUS_MAX, or more sub-buffers
 *       than HT_FT_SUBBUFS_MAX: the rest is not followed
 * @cpu: array of @cpus elements
 * @text: a kernel address that reveals KASLR's offset: that of
 *        rb_meta_init_text_addr (6.11) or _text (6.15)
 * @clock: number of the trace clock in the kernel's trace_clocks[], 0 is
 *         "local"; also 0 if the header does not contain it (6.11)
 * @total: size of the ring according to its header (6.15), else 0
 * @first_part: offset of the first processor's part in the ring (6.15)
 * @line_size: size in bytes of a processor's part before its order (6.15)
 * @checked: number of sub-buffers in the orders tested so far; private
 * @rest: number of next calls of ht_ft_ring_grow() that do nothing; private
 */
typedef struct HtFtRing {
    uint64_t offset;
    uint64_t size;
    HtFtLayout layout;
    uint32_t subbuf_size;
    uint32_t subbufs;
    uint32_t cpus;
    bool cut;
    HtFtRingCpu *cpu;
    uint64_t text;
    uint32_t clock;
    uint64_t total;
    uint64_t first_part;
    uint32_t line_size;
    uint64_t checked;
    uint32_t rest;
} HtFtRing;

/**
 * ht_ft_ring_at: parse the ring at an offset
 * @mem: the memory
 * @offset: offset of the ring's header
 * @why: or NULL; on failure set to the reason, a constant string, or to NULL if
 *       the magic number is not there or cannot be read
 *
 * Returns: the ring, for ht_ft_ring_free(); or NULL
 */
HtFtRing *ht_ft_ring_at(const HtFtMem *mem, uint64_t offset,
                        const char **why);

/**
 * ht_ft_ring_free: free a ring
 * @ring: the ring or NULL
 */
void ht_ft_ring_free(HtFtRing *ring);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtFtRing, ht_ft_ring_free)

/**
 * ht_ft_ring_grow: add the processors that are new since the last call
 * @mem: the memory
 * @ring: a boot-mapped ring
 *
 * A ring can be found while its kernel is still initializing it.  After a long
 * test without success, some calls do nothing.
 *
 * Returns: true if a processor was added
 */
bool ht_ft_ring_grow(const HtFtMem *mem, HtFtRing *ring);

/**
 * ht_ft_ring_text: read HtFtRing.text again
 * @mem: the memory
 * @ring: the ring
 * @cpu: the processor whose header is read (6.11); ignored for 6.15
 *
 * Returns: the address; 0 if it cannot be read
 */
uint64_t ht_ft_ring_text(const HtFtMem *mem, const HtFtRing *ring,
                         uint32_t cpu);

/**
 * ht_ft_ring_is_there: test whether the memory still has this ring's header
 * @mem: the memory
 * @ring: the ring
 *
 * Another kernel may have made a ring of another size there, or use the memory
 * for something else.  Rings of the same size are not told apart.
 */
bool ht_ft_ring_is_there(const HtFtMem *mem, const HtFtRing *ring);

/*
 * Alignment in bytes of rings that the kernel places by
 * reserve_mem=SIZE:2M:NAME
 */
#define HT_FT_SEARCH_FAST (UINT64_C(2) << 20)
/* Alignment in bytes that every ring has */
#define HT_FT_SEARCH_FULL UINT64_C(4096)

/**
 * HtFtSearch: a search for rings
 * @mem: the memory
 * @step: HT_FT_SEARCH_FAST, from the top down; or HT_FT_SEARCH_FULL, from the
 *        bottom up
 * @at: offset of the next candidate; private
 * @done: all of the memory was searched
 * @rings: array of HtFtRing found so far; no ring is within another
 * @why: reason why the last candidate with a ring's magic number was rejected,
 *       or NULL
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
 * ht_ft_search_init: start a search
 * @s: the search
 * @mem: the memory; must stay valid until ht_ft_search_clear()
 * @step: distance of candidates in bytes: HT_FT_SEARCH_FULL goes up from the
 *        first; a larger multiple, like HT_FT_SEARCH_FAST, down from the last
 */
void ht_ft_search_init(HtFtSearch *s, const HtFtMem *mem, uint64_t step);

/**
 * ht_ft_search_clear: free the results of a search
 * @s: the search
 */
void ht_ft_search_clear(HtFtSearch *s);

/**
 * ht_ft_search_go: continue a search
 * @s: the search
 * @looks: maximum number of candidates to test
 * @budget: the call ends earlier once this is used up: a guest could have the
 *          header of a huge ring at each candidate; NULL: no limit
 *
 * A ring that is found may be a copy, for example in a page cache or in the
 * memory of a nested guest.  Following it shows whether a kernel still writes
 * it: see ht_ft_follow_alive().
 *
 * Returns: true if this call found a ring
 */
bool ht_ft_search_go(HtFtSearch *s, uint64_t looks, const HtBudget *budget);

/**
 * ht_ft_ring_covers: test whether an offset is within the ring
 * @r: the ring
 * @offset: an offset in the memory, for example of a later processor's header,
 *          which looks like the start of a ring
 */
static inline bool ht_ft_ring_covers(const HtFtRing *r, uint64_t offset)
{
    return offset >= r->offset && offset - r->offset < r->size;
}

#endif /* HYPERTRACE_FTRACE_RING_H */
