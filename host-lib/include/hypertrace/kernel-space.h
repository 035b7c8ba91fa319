/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a kernel's address space, as its readers see it
 *
 * The readers of rings, event formats and the log follow pointers of a kernel.
 * HtKernelSpace separates them from how a kernel is found and how its page
 * tables are walked: a guest's kernel is one space (ht_kernel_space_of()), a
 * test's array is another.
 *
 * All that is read is the guest's.  These functions bound their own work; a
 * caller that follows pointers must bound its steps.
 */
#ifndef HYPERTRACE_KERNEL_SPACE_H
#define HYPERTRACE_KERNEL_SPACE_H

#include "hypertrace/ftrace-ring.h"
#include "hypertrace/guest-kernel.h"

/**
 * HtKernelSpace: where a kernel's addresses are in memory
 * @mem: the memory by offset; must stay valid
 * @translate: sets @offset to the offset in @mem of address @addr, and @left
 *             to the bytes from there that are contiguous, at least 1;
 *             returns 0 or -errno
 * @opaque: for @translate
 */
typedef struct HtKernelSpace {
    const HtFtMem *mem;
    int (*translate)(void *opaque, uint64_t addr, uint64_t *offset,
                     uint64_t *left);
    void *opaque;
} HtKernelSpace;

/**
 * ht_kernel_space_of: the address space of a guest's kernel
 * @k: the kernel; must stay as long as the space is used
 */
HtKernelSpace ht_kernel_space_of(HtGuestKernel *k);

/**
 * ht_kernel_space_read: copy from a kernel address
 * @s: the space
 * @addr: the address; any alignment
 * @buf: the destination
 * @len: bytes; the copy may cross pages
 *
 * What is read by the next call was written later, or at the same time
 * (acquire).
 *
 * Returns: 0 or -errno
 */
int ht_kernel_space_read(const HtKernelSpace *s, uint64_t addr, void *buf,
                         size_t len);

/**
 * ht_kernel_space_u64: read an aligned integer of 8 bytes, whole
 * @s: the space
 * @addr: the address
 * @value: set
 *
 * A read from another process may be torn: the value is read until two reads
 * agree, at most HT_POINTER_TRIES times.
 *
 * Returns: 0, -EAGAIN if it kept changing, or -errno
 */
int ht_kernel_space_u64(const HtKernelSpace *s, uint64_t addr,
                        uint64_t *value);

/**
 * ht_kernel_space_u32: read an integer of 4 bytes
 * @s: the space
 * @addr: the address
 * @value: set
 *
 * Returns: 0 or -errno
 */
int ht_kernel_space_u32(const HtKernelSpace *s, uint64_t addr,
                        uint32_t *value);

/**
 * ht_kernel_space_string: append a text
 * @s: the space
 * @addr: the address
 * @max: bytes after which it is cut off
 * @out: appended to
 *
 * Returns: 0 or -errno; @out is as before then
 */
int ht_kernel_space_string(const HtKernelSpace *s, uint64_t addr, size_t max,
                           GString *out);

#endif /* HYPERTRACE_KERNEL_SPACE_H */
