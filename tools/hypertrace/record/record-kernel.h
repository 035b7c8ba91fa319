/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the kernel in a guest's memory
 *
 * Finds the kernel of an image in one memory, reads its event formats, and
 * notices when the guest booted another time.  Each call does a bounded
 * amount of work.
 */
#ifndef HYPERTRACE_RECORD_KERNEL_H
#define HYPERTRACE_RECORD_KERNEL_H

#include "hypertrace/guest-kernel.h"
#include "hypertrace/kernel-formats.h"

/* Results of a poll, combined by OR */
/* The formats of a kernel that was found are known. */
#define HT_WATCH_FOUND      1u
/* The kernel is no longer there; alone or with HT_WATCH_MORE. */
#define HT_WATCH_GONE       2u
/* The formats have changed. */
#define HT_WATCH_FORMATS    4u
/* There is more to do: look again soon. */
#define HT_WATCH_MORE       8u
/* A kernel was found: its memory can be read. */
#define HT_WATCH_KERNEL     16u

typedef struct HtKernelWatch HtKernelWatch;

/**
 * ht_kernel_watch_new() - start to look for a kernel
 * @mem: the guest's memory; must stay
 * @image: the kernel's image; a reference is taken
 * @formats: read its formats, too; else HT_WATCH_FOUND never comes
 * @now: a clock in ns
 */
HtKernelWatch *ht_kernel_watch_new(const HtFtMem *mem, HtKernelImage *image,
                                   bool formats, uint64_t (*now)(void));

/**
 * ht_kernel_watch_look() - see what is new
 * @last: the guest does not run any more: search all of its memory at once
 *
 * Return: HT_WATCH_ flags; after HT_WATCH_GONE the caller ends what reads the
 * kernel before it calls again
 */
unsigned ht_kernel_watch_look(HtKernelWatch *w, bool last);

/**
 * ht_kernel_watch_kernel() - the kernel, from HT_WATCH_KERNEL to the look after
 * HT_WATCH_GONE; else NULL
 */
HtGuestKernel *ht_kernel_watch_kernel(const HtKernelWatch *w);

/** ht_kernel_watch_formats() - the text of its formats, for g_string_free() */
GString *ht_kernel_watch_formats(const HtKernelWatch *w);

/** ht_kernel_watch_why() - why no kernel is found; NULL if that is not known */
const char *ht_kernel_watch_why(const HtKernelWatch *w);

void ht_kernel_watch_free(HtKernelWatch *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelWatch, ht_kernel_watch_free)

#endif
