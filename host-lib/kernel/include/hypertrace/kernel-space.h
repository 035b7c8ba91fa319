/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a kernel's memory by virtual address
 *
 * The readers of rings, event formats and the log follow pointers of a kernel.
 *
 * The guest controls everything that is read.  These functions bound their own
 * work; a caller that follows pointers must bound its number of steps.
 */
#ifndef HYPERTRACE_KERNEL_SPACE_H
#define HYPERTRACE_KERNEL_SPACE_H

#include "hypertrace/ftrace-ring.h"
#include "hypertrace/guest-kernel.h"

/**
 * HtKernelSpace: mapping of a kernel's addresses to a memory
 * @mem: the memory by offset; must stay valid
 * @translate: sets @offset to the offset of address @addr in @mem, and @left to
 *             the number of contiguous bytes from there, at least 1; returns 0
 *             or -errno
 * @opaque: passed to @translate
 */
typedef struct HtKernelSpace {
    const HtFtMem *mem;
    int (*translate)(void *opaque, uint64_t addr, uint64_t *offset,
                     uint64_t *left);
    void *opaque;
} HtKernelSpace;

/**
 * ht_kernel_space_of: get the address space of a guest's kernel
 * @k: the kernel; must stay valid as long as the space is used
 */
HtKernelSpace ht_kernel_space_of(HtGuestKernel *k);

/**
 * ht_kernel_space_read: copy from a kernel address
 * @s: the space
 * @addr: the address; any alignment
 * @buf: the destination
 * @len: number of bytes; the range may cross pages
 *
 * The read has acquire semantics: a later read of the guest's memory returns
 * data that is at least as new.
 *
 * Returns: 0 or -errno
 */
int ht_kernel_space_read(const HtKernelSpace *s, uint64_t addr, void *buf,
                         size_t len);

/* Maximum number of reads by ht_kernel_space_u64() */
#define HT_POINTER_TRIES 4u

/**
 * ht_kernel_space_u64: read an aligned 8-byte integer atomically
 * @s: the space
 * @addr: the address
 * @value: set
 *
 * A read of 8 bytes from another process may be torn.  If the memory is not
 * mapped (HtFtMem.map), the value is therefore read until two successive reads
 * agree, at most HT_POINTER_TRIES times.
 *
 * Returns: 0, -EAGAIN if no two successive reads agreed, or another -errno
 */
int ht_kernel_space_u64(const HtKernelSpace *s, uint64_t addr,
                        uint64_t *value);

/**
 * ht_kernel_space_u64_again: read an 8-byte integer that was read before
 * @s: the space
 * @addr: the address
 * @value: the value that was read before; set
 *
 * As ht_kernel_space_u64(), but reads an unchanged value only once.  If the
 * value is changing and a torn read equals the old value, the next call shows
 * the change.
 */
int ht_kernel_space_u64_again(const HtKernelSpace *s, uint64_t addr,
                              uint64_t *value);

/**
 * ht_kernel_space_u32: read a 4-byte integer
 * @s: the space
 * @addr: the address
 * @value: set
 *
 * Returns: 0 or -errno
 */
int ht_kernel_space_u32(const HtKernelSpace *s, uint64_t addr,
                        uint32_t *value);

/**
 * ht_kernel_space_string: read a text
 * @s: the space
 * @addr: the address
 * @max: maximum number of bytes; a longer text is truncated
 * @out: the text is appended to this
 *
 * Returns: 0, or -errno with @out unchanged
 */
int ht_kernel_space_string(const HtKernelSpace *s, uint64_t addr, size_t max,
                           GString *out);

typedef struct HtKernelCache HtKernelCache;

/**
 * ht_kernel_cache_new: create a cache of a kernel's pages
 * @s: the space; must stay valid
 *
 * A read from a process is a system call, and takes longer than the copy of a
 * page.  The cache therefore reads whole pages.  It is for a reader of many
 * small structures and texts.
 */
HtKernelCache *ht_kernel_cache_new(const HtKernelSpace *s);

/**
 * ht_kernel_cache_free: free the cache
 * @c: the cache or NULL
 */
void ht_kernel_cache_free(HtKernelCache *c);

/**
 * ht_kernel_cache_clear: drop all pages, because the guest may have changed
 *                        them
 * @c: the cache
 */
void ht_kernel_cache_clear(HtKernelCache *c);

/**
 * ht_kernel_cache_reads: get the number of reads of memory so far; it may wrap
 * @c: the cache
 */
unsigned ht_kernel_cache_reads(const HtKernelCache *c);

/**
 * ht_kernel_cache_read: do as ht_kernel_space_read(), but bytes may have been
 *                       read at any time since the last ht_kernel_cache_clear()
 */
int ht_kernel_cache_read(HtKernelCache *c, uint64_t addr, void *buf,
                         size_t len);

/**
 * ht_kernel_cache_string: do as ht_kernel_space_string(), but the text may be
 *                         old: see ht_kernel_cache_read()
 */
int ht_kernel_cache_string(HtKernelCache *c, uint64_t addr, size_t max,
                           GString *out);

#endif /* HYPERTRACE_KERNEL_SPACE_H */
