/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find and read a guest's kernel in its memory
 *
 * Symbols and types come from the kernel's image.  The kernel's address and
 * slide (KASLR) are found in RAM and checked.  The kernel's data can then be
 * read by symbols and names of members, through the kernel's page tables.
 *
 * RAM may hold several kernels: those of earlier boots may survive a reset, and
 * kdump keeps another kernel in reserve.  A search finds the kernels of the
 * image's build.  It chooses a kernel that is proved to run (see
 * ht_guest_kernel_moves()), else the kernel with the latest clock.
 *
 * The guest may be hostile: lists may be circular, pointers may have any value.
 * The functions of this header bound their own work; a caller that follows
 * pointers must bound its number of steps.
 *
 * An HtGuestKernel is used by one thread at a time.
 */
#ifndef HYPERTRACE_GUEST_KERNEL_H
#define HYPERTRACE_GUEST_KERNEL_H

#include "hypertrace/guest-memory.h"
#include "hypertrace/kernel-image.h"

typedef struct HtGuestKernel HtGuestKernel;
typedef struct HtKernelSearch HtKernelSearch;

/**
 * ht_kernel_search_new: start a search for a kernel
 * @mem: the guest's memory; copied, but @mem->mem must stay valid.  If @mem has
 *       no ranges, the search finds those of the piece that holds the kernel.
 * @image: the kernel's image; a reference is taken
 *
 * Returns: the search, for ht_kernel_search_free()
 */
HtKernelSearch *ht_kernel_search_new(const HtGuestMem *mem,
                                     HtKernelImage *image);

/**
 * ht_kernel_search_free: free a search
 * @s: the search or NULL
 */
void ht_kernel_search_free(HtKernelSearch *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelSearch, ht_kernel_search_free)

/**
 * ht_kernel_search_step: continue a search
 * @s: the search
 * @budget: the search pauses when this is used up; NULL: no limit
 *
 * Each call tests at least one candidate.  Candidates in memory that
 * HtFtMem.next leaves out, or that cannot be read, are skipped.
 *
 * Returns: 1 if all memory was searched, or if the image lacks a symbol that
 * the search needs; 0 if the budget is used up; -ESRCH if the memory is read
 * from a process that has ended
 */
int ht_kernel_search_step(HtKernelSearch *s, const HtBudget *budget);

/**
 * ht_kernel_search_found: get the number of kernels found since the search was
 * started or restarted, without a kernel that ht_kernel_search_take() returned
 * @s: the search
 */
unsigned ht_kernel_search_found(const HtKernelSearch *s);

/**
 * ht_kernel_search_take: take the kernel that runs
 * @s: a search whose last step returned 1
 * @error: set if no kernel was found, or if several were found and the clock of
 *         none of them can be read
 *
 * A kernel that is proved to run (see ht_guest_kernel_moves()) is preferred.
 * If there is none, the kernel with the latest clock is taken.  If no clock can
 * be read, a kernel is taken if it is the only one.  These may be dead kernels.
 *
 * A kernel that has just started to boot is not found until it has relocated
 * itself and its page tables are complete.  If no kernel was found, call
 * ht_kernel_search_restart() and search again later.
 *
 * Returns: the kernel, for ht_guest_kernel_free(); or NULL
 */
HtGuestKernel *ht_kernel_search_take(HtKernelSearch *s, GError **error);

/**
 * ht_kernel_search_restart: restart a search
 * @s: the search
 *
 * The kernels found are dropped; the ticks that the last call of
 * ht_kernel_search_take() read are kept.  Call this after each reset of the
 * guest, and when the clocks of the kernel stop or the kernel is gone: see
 * ht_guest_kernel_check().
 */
void ht_kernel_search_restart(HtKernelSearch *s);

/**
 * ht_kernel_search_forget: forget the ticks of the kernels found so far
 * @s: the search
 *
 * Call this when the known kernel may have ended.  Its ticks advanced between
 * the last search and its end, which would count as a proof that it runs.
 */
void ht_kernel_search_forget(HtKernelSearch *s);

/**
 * ht_guest_kernel_find: run a whole search
 * @mem: as for ht_kernel_search_new()
 * @image: as for ht_kernel_search_new()
 * @error: set if the memory is read from a process that has ended, or as
 *         ht_kernel_search_take() sets it
 *
 * Returns: the kernel, for ht_guest_kernel_free(); or NULL
 */
HtGuestKernel *ht_guest_kernel_find(const HtGuestMem *mem,
                                    HtKernelImage *image, GError **error);

/**
 * ht_guest_kernel_free: free a kernel
 * @k: the kernel or NULL
 */
void ht_guest_kernel_free(HtGuestKernel *k);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtGuestKernel, ht_guest_kernel_free)

/**
 * ht_guest_kernel_check: prepare for a group of reads
 * @k: the kernel
 *
 * Reads values that change during boot (the address of the direct map) again,
 * drops cached translations, and checks that the kernel is still there and that
 * the guest has not booted again.  A boot of the same build at the same address
 * is noticed only if the kernel's stack canary is known.  Call this before each
 * group of reads, such as a poll.
 *
 * Returns: 0, -ESTALE if the kernel is no longer there or the guest has booted
 * again, or another -errno
 */
int ht_guest_kernel_check(HtGuestKernel *k);

/**
 * HtKernelClock: a kernel's clocks
 * @seconds: its wall clock, in seconds since 1970 (timekeeper.xtime_sec)
 * @jiffies: its tick count (jiffies_64); 0 if the symbol is missing
 */
typedef struct HtKernelClock {
    uint64_t seconds;
    uint64_t jiffies;
} HtKernelClock;

/**
 * ht_guest_kernel_clock: read a kernel's clocks
 * @k: the kernel
 * @clock: filled in
 *
 * The clocks of an idle kernel may stand still for seconds.
 *
 * Returns: 0, -ENOENT if the clock's address is not known (the image lacks BTF
 * or symbols of data), -ERANGE if the wall clock is later than a kernel allows,
 * which shows that its memory was overwritten, or another -errno
 */
int ht_guest_kernel_clock(HtGuestKernel *k, HtKernelClock *clock);

/**
 * ht_guest_kernel_moves: test whether a kernel is proved to run
 * @k: the kernel, from ht_kernel_search_take()
 *
 * Returns: true if its tick count had advanced, by a plausible number of ticks,
 * from the previous call of ht_kernel_search_take() for the same search to the
 * call that returned @k, without ht_kernel_search_forget() between these calls
 */
bool ht_guest_kernel_moves(const HtGuestKernel *k);

/**
 * ht_guest_kernel_same_boot: test whether two kernels can be the same boot of
 *                            the same kernel
 * @a: a kernel
 * @b: a kernel of the same image
 *
 * Returns: false if their physical addresses, their slides (KASLR) or the stack
 * canaries of their first tasks, which are random in each boot, differ.
 * Canaries are compared only if both are known.
 */
bool ht_guest_kernel_same_boot(const HtGuestKernel *a, const HtGuestKernel *b);

/**
 * ht_guest_kernel_image: get the kernel's image, with its symbols and types
 * @k: the kernel, which keeps its reference to the image
 */
HtKernelImage *ht_guest_kernel_image(const HtGuestKernel *k);

/**
 * ht_guest_kernel_memory: get the memory that holds the kernel, with its ranges
 * @k: the kernel
 */
const HtGuestMem *ht_guest_kernel_memory(const HtGuestKernel *k);

/**
 * ht_guest_kernel_slide: get KASLR's slide: running minus link address, in
 * bytes
 * @k: the kernel
 */
uint64_t ht_guest_kernel_slide(const HtGuestKernel *k);

/**
 * ht_guest_kernel_phys: get the physical address of the first byte (_text)
 * @k: the kernel
 */
uint64_t ht_guest_kernel_phys(const HtGuestKernel *k);

/**
 * ht_guest_kernel_page_size: get the page size in bytes: 4, 16 or 64 KiB
 * @k: the kernel
 */
unsigned ht_guest_kernel_page_size(const HtGuestKernel *k);

/**
 * ht_guest_kernel_levels: get the number of page table levels, 2 to 5
 * @k: the kernel
 */
unsigned ht_guest_kernel_levels(const HtGuestKernel *k);

/**
 * ht_guest_kernel_symbol: get the address of a symbol in this boot
 * @k: the kernel
 * @name: as in /proc/kallsyms; if it occurs several times, the first one counts
 * @addr: set to the address; for a per-CPU symbol, to the address before the
 *        kernel adds the CPU's element of __per_cpu_offset
 *
 * Returns: 0, or -ENOENT
 */
int ht_guest_kernel_symbol(const HtGuestKernel *k, const char *name,
                           uint64_t *addr);

/**
 * ht_guest_kernel_offset: translate a kernel address
 * @k: the kernel
 * @addr: a virtual address of this boot
 * @offset: set to the offset in the memory (HtFtMem)
 * @left: set to the number of contiguous bytes from there; or NULL
 *
 * Addresses in the image and in the direct map are computed.  For others the
 * kernel's page tables are read; the result is cached until the next
 * ht_guest_kernel_check().
 *
 * Returns: 0, -EFAULT if nothing is mapped there, -ENXIO if it is not RAM, or
 * the error of the reader
 */
int ht_guest_kernel_offset(HtGuestKernel *k, uint64_t addr, uint64_t *offset,
                           uint64_t *left);

/**
 * ht_guest_kernel_read: copy from a kernel address
 * @k: the kernel
 * @addr: a virtual address of this boot; any alignment
 * @buf: the destination
 * @len: number of bytes; the range may cross pages
 *
 * Returns: 0 or as ht_guest_kernel_offset()
 */
int ht_guest_kernel_read(HtGuestKernel *k, uint64_t addr, void *buf,
                         size_t len);

/**
 * ht_guest_kernel_value: read an unsigned integer
 * @k: the kernel
 * @addr: its address
 * @size: 1, 2, 4 or 8 bytes
 * @value: set
 *
 * Returns: 0, -EINVAL for another size, or as ht_guest_kernel_read()
 */
int ht_guest_kernel_value(HtGuestKernel *k, uint64_t addr, unsigned size,
                          uint64_t *value);

/**
 * ht_guest_kernel_cpus: get the number of CPU numbers in use (nr_cpu_ids)
 * @k: the kernel
 *
 * Returns: 1 or more, as the guest says (there is no upper limit); 1 if the
 * symbol is missing or cannot be read
 */
unsigned ht_guest_kernel_cpus(HtGuestKernel *k);

#endif
