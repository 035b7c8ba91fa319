/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a guest's kernel, found in its memory
 *
 * The kernel's image tells its symbols and types; its place and its slide
 * (KASLR) are found in RAM and checked.  After that, any of its data can be
 * read by symbol and by member's name, through the kernel's own page tables.
 *
 * Several kernels may lie in RAM: those of earlier boots survive a reset, and
 * kdump keeps one in reserve.  A search finds all of them and chooses the one
 * whose clock is the latest.
 *
 * Everything that is read is the guest's and may be hostile: lists may be
 * circles, pointers may point anywhere.  Functions of this header bound their
 * own work; a caller that follows pointers must bound its steps.
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
 * @mem: the guest's memory; copied, but @mem->mem must stay valid.  Without
 *       ranges, the search finds out where RAM is.
 * @image: the kernel's image; a reference is taken
 *
 * Returns: the search, for ht_kernel_search_free()
 */
HtKernelSearch *ht_kernel_search_new(const HtGuestMem *mem,
                                     HtKernelImage *image);

/**
 * ht_kernel_search_free: end a search
 * @s: the search or NULL
 */
void ht_kernel_search_free(HtKernelSearch *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelSearch, ht_kernel_search_free)

/**
 * ht_kernel_search_step: go on with a search
 * @s: the search
 * @budget: microseconds after which it pauses; 0 is no limit
 *
 * Memory that was never written is neither read nor allocated.
 *
 * Returns: 1 if all memory was searched; 0 if the budget is used up; -errno
 * if the memory cannot be read (-ESRCH: the process has ended)
 */
int ht_kernel_search_step(HtKernelSearch *s, int64_t budget);

/**
 * ht_kernel_search_progress: part of the memory that was searched, 0 to 1
 * @s: the search
 */
double ht_kernel_search_progress(const HtKernelSearch *s);

/**
 * ht_kernel_search_found: number of kernels found by now
 * @s: the search
 */
unsigned ht_kernel_search_found(const HtKernelSearch *s);

/**
 * ht_kernel_search_take: take the kernel whose clock is the latest
 * @s: a search whose last step returned 1
 * @error: set if no kernel was found, or if one of several cannot be chosen
 *
 * A kernel that has only begun to boot is not found: it has not relocated
 * itself, or its page tables are not complete.  Search again later, with
 * ht_kernel_search_restart().
 *
 * Returns: the kernel, for ht_guest_kernel_free(); or NULL
 */
HtGuestKernel *ht_kernel_search_take(HtKernelSearch *s, GError **error);

/**
 * ht_kernel_search_restart: search once more from the start
 * @s: the search
 *
 * To be called after each reset of the guest, and when the kernel that is
 * read stands still or vanished: see ht_guest_kernel_check().
 */
void ht_kernel_search_restart(HtKernelSearch *s);

/**
 * ht_guest_kernel_find: a whole search at once
 * @mem: as for ht_kernel_search_new()
 * @image: as for ht_kernel_search_new()
 * @error: set if no kernel was found
 *
 * Returns: the kernel, for ht_guest_kernel_free(); or NULL
 */
HtGuestKernel *ht_guest_kernel_find(const HtGuestMem *mem,
                                    HtKernelImage *image, GError **error);

/**
 * ht_guest_kernel_free: release a kernel
 * @k: the kernel or NULL
 */
void ht_guest_kernel_free(HtGuestKernel *k);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtGuestKernel, ht_guest_kernel_free)

/**
 * ht_guest_kernel_check: prepare for a group of reads
 * @k: the kernel
 *
 * Reads again what changes during boot (the direct map's address), drops
 * cached translations, and checks that the kernel is still there.  Call it
 * before each poll of the guest.
 *
 * Returns: 0, -ESTALE if the kernel is no longer there, or the error of the
 * reader
 */
int ht_guest_kernel_check(HtGuestKernel *k);

/**
 * HtKernelClock: a kernel's clocks
 * @seconds: its wall clock, in seconds since 1970 (timekeeper.xtime_sec)
 * @jiffies: its ticks (jiffies_64); 0 if the symbol is missing
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
 * The clocks of a kernel that runs move; those of a dead one do not.
 *
 * Returns: 0, -ENOENT without BTF or data symbols, or -errno of the reader
 */
int ht_guest_kernel_clock(HtGuestKernel *k, HtKernelClock *clock);

/**
 * ht_guest_kernel_image: the kernel's image
 * @k: the kernel
 */
HtKernelImage *ht_guest_kernel_image(const HtGuestKernel *k);

/**
 * ht_guest_kernel_memory: the memory that it lies in, with its ranges
 * @k: the kernel
 */
const HtGuestMem *ht_guest_kernel_memory(const HtGuestKernel *k);

/**
 * ht_guest_kernel_slide: running minus link address, in bytes
 * @k: the kernel
 */
uint64_t ht_guest_kernel_slide(const HtGuestKernel *k);

/**
 * ht_guest_kernel_phys: physical address of the kernel's first byte (_text)
 * @k: the kernel
 */
uint64_t ht_guest_kernel_phys(const HtGuestKernel *k);

/**
 * ht_guest_kernel_page_size: size of a page, in bytes: 4, 16 or 64 KiB
 * @k: the kernel
 */
unsigned ht_guest_kernel_page_size(const HtGuestKernel *k);

/**
 * ht_guest_kernel_levels: levels of the page tables, 2 to 5
 * @k: the kernel
 */
unsigned ht_guest_kernel_levels(const HtGuestKernel *k);

/**
 * ht_guest_kernel_symbol: address of a symbol in this boot
 * @k: the kernel
 * @name: as in /proc/kallsyms; the first of this name counts
 * @addr: set.  Per-CPU symbols: for ht_guest_kernel_percpu().
 *
 * Returns: 0, or -ENOENT
 */
int ht_guest_kernel_symbol(const HtGuestKernel *k, const char *name,
                           uint64_t *addr);

/**
 * ht_guest_kernel_name: symbol at or before an address of this boot
 * @k: the kernel
 * @addr: the address
 * @offset: set to the distance from the symbol to @addr, in bytes
 *
 * Returns: valid as long as the image; NULL outside the kernel's own text and
 * data (modules' symbols are not in the image)
 */
const char *ht_guest_kernel_name(const HtGuestKernel *k, uint64_t addr,
                                 uint64_t *offset);

/**
 * ht_guest_kernel_offset: translate a kernel address
 * @k: the kernel
 * @addr: a virtual address of this boot
 * @offset: set to the offset in the memory (HtFtMem)
 * @left: set to the bytes from there that are contiguous; or NULL
 *
 * Addresses of the image and of the direct map cost no read; others walk the
 * kernel's page tables.
 *
 * Returns: 0, -EFAULT if nothing is mapped there, -ENXIO if it is no RAM, or
 * the error of the reader
 */
int ht_guest_kernel_offset(HtGuestKernel *k, uint64_t addr, uint64_t *offset,
                           uint64_t *left);

/**
 * ht_guest_kernel_read: copy from a kernel address
 * @k: the kernel
 * @addr: a virtual address of this boot; any alignment
 * @buf: the destination
 * @len: bytes; the copy may cross pages
 *
 * Returns: 0 or as ht_guest_kernel_offset()
 */
int ht_guest_kernel_read(HtGuestKernel *k, uint64_t addr, void *buf,
                         size_t len);

/**
 * ht_guest_kernel_value: read an integer
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
 * ht_guest_kernel_pointer: read a pointer, whole
 * @k: the kernel
 * @addr: its address
 * @value: set
 *
 * A read of 8 bytes from another process may be torn.  The pointer is read
 * until two reads agree, at most HT_POINTER_TRIES times.
 *
 * Returns: 0, -EAGAIN if it kept changing, or as ht_guest_kernel_read()
 */
int ht_guest_kernel_pointer(HtGuestKernel *k, uint64_t addr, uint64_t *value);

/* Reads of a pointer until it is given up */
#define HT_POINTER_TRIES 4u

/**
 * ht_guest_kernel_string: read a text
 * @k: the kernel
 * @addr: its address
 * @buf: the destination; always terminated, also on failure
 * @size: size of @buf in bytes, at least 1; a longer text is cut off
 *
 * Returns: its length in bytes, or as ht_guest_kernel_read()
 */
ssize_t ht_guest_kernel_string(HtGuestKernel *k, uint64_t addr, char *buf,
                               size_t size);

/**
 * ht_guest_kernel_cpus: number of CPU numbers in use (nr_cpu_ids)
 * @k: the kernel
 *
 * Returns: 1 to HT_FT_CPUS_MAX; 1 if the symbol is missing
 */
unsigned ht_guest_kernel_cpus(HtGuestKernel *k);

/**
 * ht_guest_kernel_percpu: address of a CPU's copy of a per-CPU variable
 * @k: the kernel
 * @var: the variable's address from ht_guest_kernel_symbol(), or a __percpu
 *       pointer read from the guest
 * @cpu: number of the CPU, less than ht_guest_kernel_cpus()
 * @addr: set
 *
 * Returns: 0, -EINVAL if the number is too high, or as ht_guest_kernel_read()
 */
int ht_guest_kernel_percpu(HtGuestKernel *k, uint64_t var, unsigned cpu,
                           uint64_t *addr);

#endif
