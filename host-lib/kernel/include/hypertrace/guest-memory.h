/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a guest's memory by physical address
 *
 * A RAM file, a process or a core is read through HtFtMem, by offset.  The
 * guest's page tables hold physical addresses.  HtGuestMem maps physical
 * addresses to offsets: on a PC, for example, RAM continues at 4 GiB after the
 * PCI hole, and on arm64's virt machine RAM begins at 1 GiB.
 *
 * The functions use only their arguments, and take no lock.
 */
#ifndef HYPERTRACE_GUEST_MEMORY_H
#define HYPERTRACE_GUEST_MEMORY_H

#include "hypertrace/ftrace-ring.h"

/*
 * Maximum number of pieces of RAM (NUMA nodes, hot-plugged modules), and of
 * pieces that may be RAM (mappings of a process)
 */
#define HT_GUEST_RANGES_MAX 256u

/**
 * HtGuestRange: a piece of RAM
 * @phys: its guest-physical address, in bytes
 * @size: its size, in bytes
 * @offset: its offset in the memory, in bytes
 */
typedef struct HtGuestRange {
    uint64_t phys;
    uint64_t size;
    uint64_t offset;
} HtGuestRange;

/**
 * HtGuestMem: a guest's memory by physical address
 * @mem: the memory by offset; the caller keeps it valid
 * @n: number of @ranges in use
 * @ranges: the pieces of RAM; they overlap neither in @phys nor in @offset
 * @n_pieces: number of @pieces in use
 * @pieces: contiguous parts of @mem with an unknown physical address; their
 *          @phys is 0.  A piece may be the last part of an earlier piece, for
 *          the case that RAM begins within the earlier piece
 */
typedef struct HtGuestMem {
    const HtFtMem *mem;
    unsigned n;
    HtGuestRange ranges[HT_GUEST_RANGES_MAX];
    unsigned n_pieces;
    HtGuestRange pieces[HT_GUEST_RANGES_MAX];
} HtGuestMem;

/**
 * ht_guest_mem_init: initialize with the pieces of a memory
 * @g: filled in
 * @mem: the memory by offset; must stay valid as long as @g is used
 *
 * The pieces of a core file have physical addresses (@mem->piece): they become
 * ranges.  A caller that knows the layout of RAM may add ranges.  Without
 * ranges, the search for the kernel finds the physical address of the piece
 * that holds the kernel (see guest-kernel.h): a file of RAM is one piece; a
 * process has one for each mapping.
 */
void ht_guest_mem_init(HtGuestMem *g, const HtFtMem *mem);

/**
 * ht_guest_mem_add: add a piece of RAM
 * @g: the memory
 * @phys: its physical address, a multiple of 4 KiB
 * @size: its size in bytes, a multiple of 4 KiB
 * @offset: its offset in @g->mem, a multiple of 4 KiB
 *
 * Returns: 0, -EINVAL for an unaligned, empty or overlapping range, -ERANGE
 * if it exceeds @g->mem, -ENOSPC if there are HT_GUEST_RANGES_MAX already
 */
int ht_guest_mem_add(HtGuestMem *g, uint64_t phys, uint64_t size,
                     uint64_t offset);

/**
 * ht_guest_mem_piece: add a part of the memory that may be RAM
 * @g: the memory; its pieces are used only while it has no ranges
 * @offset: offset of the part in @g->mem, a multiple of 4 KiB
 * @size: its size in bytes, a multiple of 4 KiB
 *
 * Returns: 0, -EINVAL for an unaligned or empty piece, -ERANGE if it exceeds
 * @g->mem, -ENOSPC if there are HT_GUEST_RANGES_MAX already
 */
int ht_guest_mem_piece(HtGuestMem *g, uint64_t offset, uint64_t size);

/**
 * ht_guest_mem_offset: translate a physical address
 * @g: the memory
 * @phys: the physical address
 * @offset: set to the offset in @g->mem
 * @left: set to the number of bytes from there to the end of the range; or NULL
 *
 * Returns: 0, or -ENXIO if no RAM is there
 */
int ht_guest_mem_offset(const HtGuestMem *g, uint64_t phys, uint64_t *offset,
                        uint64_t *left);

/**
 * ht_guest_mem_phys: translate an offset to a physical address
 * @g: the memory
 * @offset: the offset in @g->mem
 * @phys: set to the physical address
 *
 * Returns: 0, or -ENXIO if the offset belongs to no range
 */
int ht_guest_mem_phys(const HtGuestMem *g, uint64_t offset, uint64_t *phys);

/**
 * ht_guest_mem_read: copy from a physical address
 * @g: the memory
 * @phys: the physical address; any alignment
 * @buf: the destination
 * @len: number of bytes; they may be in several ranges
 *
 * An aligned unit of 8 bytes is loaded atomically if @g->mem is mapped
 * (HtFtMem.map).  Otherwise it may be torn: see HtFtMem.
 *
 * Returns: 0, -ENXIO if a part is not RAM, or the error of the reader
 */
int ht_guest_mem_read(const HtGuestMem *g, uint64_t phys, void *buf,
                      size_t len);

/**
 * ht_ft_mem_copy: copy a guest's memory, at any alignment
 * @mem: the memory by offset
 * @offset: the offset
 * @buf: the destination
 * @len: number of bytes
 *
 * Unlike ht_ft_mem_read(), @offset and @len need not be multiples of 4.
 *
 * Returns: 0 or -errno; -ERANGE beyond the end
 */
int ht_ft_mem_copy(const HtFtMem *mem, uint64_t offset, void *buf, size_t len);

#endif
