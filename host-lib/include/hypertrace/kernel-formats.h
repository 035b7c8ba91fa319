/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a kernel's event formats, read from its memory
 *
 * The kernel keeps the ids, fields and print formats of its events in the list
 * ftrace_events.  Events are added while it runs: by modules, kprobes and
 * synthetic events.  Their text is what tracefs shows as events/.../format,
 * in the form that ht_ft_formats_parse() takes.
 *
 * All functions bound their work; a list may be a circle.
 */
#ifndef HYPERTRACE_KERNEL_FORMATS_H
#define HYPERTRACE_KERNEL_FORMATS_H

#include "hypertrace/kernel-space.h"

/* Limits: events, and fields of one event */
#define HT_KERNEL_EVENTS_MAX    16384u
#define HT_KERNEL_FIELDS_MAX    128u

/**
 * HtKernelFormatsAt: where the kernel has what is read
 * @events: address of ftrace_events
 * @common: address of ftrace_common_fields
 * @enter_fields: address of syscall_get_enter_fields(), or 0
 */
typedef struct HtKernelFormatsAt {
    uint64_t events;
    uint64_t common;
    uint64_t enter_fields;
} HtKernelFormatsAt;

typedef struct HtKernelFormats HtKernelFormats;

/**
 * ht_kernel_formats_new: start to read formats
 * @space: the kernel's addresses; copied
 * @btf: the kernel's types
 * @at: where the lists are; copied
 * @page_size: bytes of a page of the kernel
 * @error: set if a type is missing
 *
 * Returns: for ht_kernel_formats_free(); or NULL
 */
HtKernelFormats *ht_kernel_formats_new(const HtKernelSpace *space,
                                       const HtBtf *btf,
                                       const HtKernelFormatsAt *at,
                                       uint32_t page_size, GError **error);

/**
 * ht_kernel_formats_of: the same for a guest's kernel
 * @k: the kernel; must stay
 * @error: set if a type or a symbol is missing
 */
HtKernelFormats *ht_kernel_formats_of(HtGuestKernel *k, GError **error);

/**
 * ht_kernel_formats_free: release it
 * @f: the reader or NULL
 */
void ht_kernel_formats_free(HtKernelFormats *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelFormats, ht_kernel_formats_free)

/**
 * ht_kernel_formats_step: go on with a pass over all events
 * @f: the reader
 * @events: number of events after which it pauses
 *
 * A new pass begins by itself after one that has ended.
 *
 * Returns: 1 if a pass has ended, 0 if it has not, or -errno; the next call
 * begins anew then
 */
int ht_kernel_formats_step(HtKernelFormats *f, unsigned events);

/**
 * ht_kernel_formats_changed: were events added since the last pass began?
 * @f: the reader
 *
 * One or two reads.  Texts that change in place are not noticed: the kernel
 * replaces names of enumerators by numbers when it has booted.
 */
bool ht_kernel_formats_changed(HtKernelFormats *f);

/**
 * ht_kernel_formats_serial: a number that changes with the text
 * @f: the reader
 */
unsigned ht_kernel_formats_serial(const HtKernelFormats *f);

/**
 * ht_kernel_formats_count: number of events known
 * @f: the reader
 */
unsigned ht_kernel_formats_count(const HtKernelFormats *f);

/**
 * ht_kernel_formats_text: make the text
 * @f: the reader
 *
 * Events that are gone are kept, since their records may still come.  If an
 * id was used again, nobody knows which of the two a record is of: the event
 * is then named "unsure_ID" and has no fields of its own.
 *
 * Returns: the text, to be freed by the caller
 */
GString *ht_kernel_formats_text(const HtKernelFormats *f);

#endif /* HYPERTRACE_KERNEL_FORMATS_H */
