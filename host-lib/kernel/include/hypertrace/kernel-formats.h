/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a kernel's event formats from its memory
 *
 * The kernel keeps the ids, fields and print formats of its events in the list
 * ftrace_events.  Modules, kprobes and synthetic events add events at run time.
 * ht_kernel_formats_list_text() makes a text in the form that
 * ht_ft_formats_parse() takes; an event in it usually has the text of its file
 * events/.../format in tracefs.
 *
 * All functions bound their work; a list of a hostile guest may be circular.
 */
#ifndef HYPERTRACE_KERNEL_FORMATS_H
#define HYPERTRACE_KERNEL_FORMATS_H

#include "hypertrace/kernel-space.h"

/* Maximum number of events, and of fields of an event */
#define HT_KERNEL_EVENTS_MAX    16384u
#define HT_KERNEL_FIELDS_MAX    128u

/**
 * HtKernelFormatsAt: addresses in the kernel
 * @events: address of ftrace_events
 * @common: address of ftrace_common_fields
 * @enter_fields: address of syscall_get_enter_fields(); 0 if it is not known
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
 * @btf: the kernel's types, used during this call only
 * @at: addresses of the lists; copied
 * @page_size: page size of the kernel in bytes
 * @error: set if a type is missing
 *
 * Returns: the reader, for ht_kernel_formats_free(); or NULL
 */
HtKernelFormats *ht_kernel_formats_new(const HtKernelSpace *space,
                                       const HtBtf *btf,
                                       const HtKernelFormatsAt *at,
                                       uint32_t page_size, GError **error);

/**
 * ht_kernel_formats_of: start to read the formats of a guest's kernel
 * @k: the kernel; must stay valid
 * @error: set if a type or a symbol is missing
 *
 * Returns: as ht_kernel_formats_new()
 */
HtKernelFormats *ht_kernel_formats_of(HtGuestKernel *k, GError **error);

/**
 * ht_kernel_formats_free: free the reader
 * @f: the reader or NULL
 */
void ht_kernel_formats_free(HtKernelFormats *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelFormats, ht_kernel_formats_free)

/**
 * ht_kernel_formats_step: continue a pass over all events
 * @f: the reader
 * @reads: number of reads of memory after which the pass pauses.  A copy from a
 *         page that this call has already read counts as 1/16 of a read.  The
 *         call finishes the event at which it pauses, which may need about
 *         1,800 reads more.
 *
 * The first call, and a call after the end of a pass, starts a pass.
 *
 * Returns: 1 at the end of a pass; 0 if the pass has paused; -errno, after
 * which the next call starts a new pass
 */
int ht_kernel_formats_step(HtKernelFormats *f, unsigned reads);

/**
 * ht_kernel_formats_changed: test for changes since the last pass
 * @f: the reader
 * @texts: also test one of the print formats that may change in place, the next
 *         one in each call.  During its boot the kernel replaces names of
 *         enumerators in them by numbers.
 *
 * The test compares the newest event, usually by one or two reads of memory.
 * So it finds events that were added, but not the removal of an older event.
 * @texts takes some reads more.
 *
 * Returns: true if there was a change; false also while a pass is under way, or
 * if the memory cannot be read
 */
bool ht_kernel_formats_changed(HtKernelFormats *f, bool texts);

/**
 * ht_kernel_formats_serial: get a number that changes whenever an event is
 * added or one of its texts changes
 * @f: the reader
 */
unsigned ht_kernel_formats_serial(const HtKernelFormats *f);

/**
 * ht_kernel_formats_bytes: get the size in bytes of the copies of all events,
 * at most 16 MiB
 * @f: the reader
 */
uint64_t ht_kernel_formats_bytes(const HtKernelFormats *f);

/**
 * ht_kernel_formats_count: get the number of events found so far
 * @f: the reader
 */
unsigned ht_kernel_formats_count(const HtKernelFormats *f);

typedef struct HtKernelFormatsList HtKernelFormatsList;

/**
 * ht_kernel_formats_list: list all events
 * @f: the reader
 *
 * This is fast, because the texts are not copied.  The text of the list takes
 * longer: the events are sorted, and up to 16 MiB are copied.
 *
 * Returns: the list, for ht_kernel_formats_list_free(); later steps of @f do
 * not change it
 *
 * Context: the list may be used by another thread than @f
 */
HtKernelFormatsList *ht_kernel_formats_list(const HtKernelFormats *f);

/**
 * ht_kernel_formats_list_free: free a list
 * @list: the list or NULL
 */
void ht_kernel_formats_list_free(HtKernelFormatsList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtKernelFormatsList, ht_kernel_formats_list_free)

/**
 * ht_kernel_formats_list_text: make a text with the formats of all events
 * @list: the list, which is sorted
 *
 * Events that the kernel has removed are kept, since records of them may still
 * arrive.  If two events had the same id, a record may be of either: such an
 * event is named "unsure_ID" and has no fields of its own.
 *
 * Returns: the text, to be freed by the caller
 */
GString *ht_kernel_formats_list_text(HtKernelFormatsList *list);

#endif /* HYPERTRACE_KERNEL_FORMATS_H */
