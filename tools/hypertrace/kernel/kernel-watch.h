/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the kernel in a guest's memory
 *
 * A watch finds the kernel of a known image in a guest's memory, and detects a
 * new boot of the guest. It can also read the kernel's event formats. A poll
 * takes about 10 ms at most, and the last poll some seconds.
 */
#ifndef HYPERTRACE_KERNEL_WATCH_H
#define HYPERTRACE_KERNEL_WATCH_H

#include "hypertrace/guest-kernel.h"
#include "hypertrace/kernel-formats.h"

/* Results of a poll, combined by OR */
/* All formats of the kernel were read; returned once for each kernel found */
#define HT_WATCH_FOUND      1u
/*
 * The kernel no longer runs, or its memory cannot be read. Only HT_WATCH_MORE
 * is returned with this flag.
 */
#define HT_WATCH_GONE       2u
/* Formats are new or have changed; also returned with HT_WATCH_FOUND. */
#define HT_WATCH_FORMATS    4u
/* There is more to do: poll again soon. */
#define HT_WATCH_MORE       8u
/* A kernel was found: its memory can be read. */
#define HT_WATCH_KERNEL     16u

typedef struct HtKernelWatch HtKernelWatch;

/**
 * ht_kernel_watch_new() - start to search for a kernel
 * @mem: the guest's memory; must outlive the watch
 * @image: the kernel's image; the watch takes a reference
 * @formats: also read the kernel's event formats; if false, HT_WATCH_FOUND and
 *           HT_WATCH_FORMATS are never returned
 * @now: a clock in nanoseconds
 *
 * Return: the watch, for ht_kernel_watch_free()
 */
HtKernelWatch *ht_kernel_watch_new(const HtFtMem *mem, HtKernelImage *image,
                                   bool formats, int64_t (*now)(void));

/**
 * ht_kernel_watch_look() - poll for changes
 * @w: the watch
 * @last: this is the last call: search for up to 5 s; a kernel that is not
 *        proved to run is not rejected because of other kernels in the memory
 *
 * Return: HT_WATCH_ flags. After HT_WATCH_GONE, the caller must stop using the
 * kernel before its next call, which may free the kernel.
 */
unsigned ht_kernel_watch_look(HtKernelWatch *w, bool last);

/**
 * ht_kernel_watch_kernel() - get the kernel
 * @w: the watch
 *
 * Return: the kernel, from HT_WATCH_KERNEL until the poll after HT_WATCH_GONE;
 * else NULL
 */
HtGuestKernel *ht_kernel_watch_kernel(const HtKernelWatch *w);

/**
 * ht_kernel_watch_formats() - list the formats that were read
 * @w: a watch that has just returned HT_WATCH_FOUND or HT_WATCH_FORMATS
 *
 * Return: the list, for ht_kernel_formats_list_free(); another thread than that
 * of @w may use it
 */
HtKernelFormatsList *ht_kernel_watch_formats(const HtKernelWatch *w);

/**
 * ht_kernel_watch_why() - get the reason why no kernel was found, or why its
 *                         formats cannot be read; or NULL
 */
const char *ht_kernel_watch_why(const HtKernelWatch *w);

void ht_kernel_watch_free(HtKernelWatch *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelWatch, ht_kernel_watch_free)

#endif
