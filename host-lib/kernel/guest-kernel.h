/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: declarations shared by the files that find a guest's kernel in
 * its memory, translate its addresses and read it
 */
#ifndef HYPERTRACE_KERNEL_GUEST_KERNEL_H
#define HYPERTRACE_KERNEL_GUEST_KERNEL_H

#include "hypertrace/guest-kernel.h"

/* Number of elements of HtGuestKernel.cache; a power of two */
#define HT_PAGE_CACHE 64u

#define HT_X86_LOW_N 4u

/**
 * ht_x86_low: usual sizes in bytes of a PC's RAM below the PCI hole
 *
 * They apply to a PC that also has RAM above 4 GiB.  QEMU's machine pc has
 * 3 GiB, its types up to 1.7 have 3.5 GiB.  The machine q35 has 2 GiB, its
 * types up to 1.7 have 2.75 GiB.  The option max-ram-below-4g may change that.
 */
extern const uint64_t ht_x86_low[HT_X86_LOW_N];

/**
 * HtPageTables: layout of a kernel's page tables
 * @machine: the architecture
 * @root: physical address of the top table
 * @shift: binary logarithm of the page size: 12, 14 or 16
 * @levels: number of levels, 2 to 5
 * @va_bits: number of significant bits of a kernel address; the higher bits
 *           are 1
 */
typedef struct HtPageTables {
    HtMachine machine;
    uint64_t root;
    unsigned shift;
    unsigned levels;
    unsigned va_bits;
} HtPageTables;

/**
 * ht_pages_walk: translate an address by the kernel's page tables
 * @mem: the guest's memory
 * @pt: the tables
 * @addr: the virtual address
 * @phys: set to the physical address
 * @left: set to the number of bytes from @phys to the end of the page (which
 *        may be a large page)
 *
 * Reads at most @pt->levels entries.
 *
 * Returns: 0, -EFAULT if @addr is no kernel address or nothing is mapped there,
 * or as ht_guest_mem_read()
 */
int ht_pages_walk(const HtGuestMem *mem, const HtPageTables *pt, uint64_t addr,
                  uint64_t *phys, uint64_t *left);

/* Translation of one page of the kernel's address space */
typedef struct HtPageCache {
    /* virtual address of the page, plus 1; 0: the entry is unused */
    uint64_t page;
    uint64_t offset;            /* offset of the page in the guest's memory */
} HtPageCache;

struct HtGuestKernel {
    HtGuestMem mem;
    HtKernelImage *image;
    HtPageTables pages;
    uint64_t slide;
    uint64_t text;              /* address of _text in this boot */
    uint64_t end;               /* address of _end in this boot */
    uint64_t phys;              /* physical address of _text */
    uint64_t offset;            /* offset of _text in the guest's memory */
    /* virtual address at which the direct map begins */
    uint64_t direct;
    /* physical address to which @direct is mapped */
    uint64_t direct_phys;
    /* size of the direct map in bytes; 0: not known */
    uint64_t direct_size;
    /* virtual address of timekeeper.xtime_sec, or 0 */
    uint64_t time_at;
    uint64_t jiffies_at;        /* virtual address of jiffies_64, or 0 */
    uint64_t state_at;          /* virtual address of system_state, or 0 */
    /* virtual address of init_task.stack_canary, or 0 */
    uint64_t canary_at;
    /* stack canary of init_task, random in each boot; 0: not known */
    uint64_t canary;
    bool moves;                 /* see ht_guest_kernel_moves() */
    HtPageCache cache[HT_PAGE_CACHE];
};

/**
 * ht_guest_kernel_try: test whether the image's kernel begins at an offset
 * @mem: the guest's memory, with or without ranges
 * @image: the kernel's image
 * @offset: offset in the memory of the kernel's first byte (_text)
 * @early: set to true if the image's version line is there, but no running
 *         kernel: the kernel has not initialized itself yet, or this is a copy
 *         of its image; else not changed; or NULL
 *
 * Returns: the kernel, for ht_guest_kernel_free(); NULL if this kernel is not
 * there, or if it has not initialized itself yet
 */
HtGuestKernel *ht_guest_kernel_try(const HtGuestMem *mem, HtKernelImage *image,
                                   uint64_t offset, bool *early);

/**
 * ht_guest_kernel_newest: choose the kernel that runs
 * @found: elements: HtGuestKernel
 * @alive: set to the number of kernels, except those with an impossible wall
 *         clock (ht_guest_kernel_clock() returns -ERANGE)
 * @with_clock: set to the number of kernels with a clock that can be read
 *
 * Returns: the index of the kernel with the latest clock among the kernels for
 * which ht_guest_kernel_moves() is true or, if there are none, among all.  If
 * no clock can be read: the index of the first kernel that counts as alive; 0
 * if @alive is 0.
 */
unsigned ht_guest_kernel_newest(const GPtrArray *found, unsigned *alive,
                                unsigned *with_clock);

/**
 * ht_guest_kernel_canary: read the stack canary of the first task
 * @k: the kernel
 * @canary: set; 0 if the kernel has no canary or may still choose it, or if
 *          its address is not known
 *
 * Returns: 0 or -errno
 */
int ht_guest_kernel_canary(HtGuestKernel *k, uint64_t *canary);

/**
 * ht_guest_kernel_direct_map: find the direct map
 * @k: the kernel
 *
 * If the direct map is not found, addresses in it are translated by the page
 * tables.
 */
void ht_guest_kernel_direct_map(HtGuestKernel *k);

#endif
