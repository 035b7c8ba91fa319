/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find a kernel in memory without its image
 *
 * A kernel that is built for kdump keeps a page of text, VMCOREINFO, with the
 * kernel's version and address.  By this page the scan finds the kernel and
 * copies it out of RAM, with its symbols and types.  The scan may read all of
 * memory, so it runs in steps and reports its progress.
 */
#ifndef HYPERTRACE_KERNEL_SCAN_H
#define HYPERTRACE_KERNEL_SCAN_H

#include "hypertrace/guest-kernel.h"

/* Maximum number of bytes of a kernel that are copied out of RAM */
#define HT_SCAN_KERNEL_MAX (128u << 20)

typedef struct HtKernelScan HtKernelScan;

/**
 * ht_kernel_scan_new: start a scan
 * @mem: the guest's memory; copied, but @mem->mem must stay valid
 *
 * Returns: the scan, for ht_kernel_scan_free()
 */
HtKernelScan *ht_kernel_scan_new(const HtGuestMem *mem);

/**
 * ht_kernel_scan_free: end a scan
 * @s: the scan or NULL
 */
void ht_kernel_scan_free(HtKernelScan *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelScan, ht_kernel_scan_free)

/**
 * ht_kernel_scan_step: continue a scan
 * @s: the scan
 * @budget: the scan pauses when this is used up; NULL: no limit.  A call may
 *          take a second longer for each kernel that it copies and decodes.
 *
 * The scan does not read memory that HtFtMem.next leaves out.  Parts that
 * cannot be read are skipped.
 *
 * Returns: 1 at the end of the memory; 0 if the budget is used up; -ESRCH if
 * the memory is read from a process that has ended
 */
int ht_kernel_scan_step(HtKernelScan *s, const HtBudget *budget);

/**
 * ht_kernel_scan_progress: get the part of the memory that was read, 0 to 1
 * @s: the scan
 */
double ht_kernel_scan_progress(const HtKernelScan *s);

/**
 * ht_kernel_scan_take: take the kernel with the latest clock, or, if no clock
 * can be read, the first kernel found
 * @s: a scan whose last step returned 1
 * @error: set if no kernel was found whose memory and symbols can be read
 *
 * Returns: the kernel, with an image of its own, for ht_guest_kernel_free();
 * or NULL
 */
HtGuestKernel *ht_kernel_scan_take(HtKernelScan *s, GError **error);

#endif
