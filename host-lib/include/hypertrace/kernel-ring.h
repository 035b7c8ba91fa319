/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: follow an ordinary ftrace ring in a kernel's memory
 *
 * Each kernel has a ring for each processor of its main trace buffer and of
 * each instance: a circular list of pages, and one page apart for readers in
 * the guest.  Their pages hold the same records as a boot-mapped ring's, and
 * are followed by the same HtFtFollow: see ftrace-follow.h.
 *
 * The kernel counts the events that it wrote.  So the number of lost events
 * is exact wherever the guest was quiet for the length of a look.
 */
#ifndef HYPERTRACE_KERNEL_RING_H
#define HYPERTRACE_KERNEL_RING_H

#include "hypertrace/ftrace-follow.h"
#include "hypertrace/kernel-space.h"

/*
 * Reads of the guest's memory in one look, of all processors together: less
 * than 10 ms if a read through another process takes 2 us.
 */
#define HT_KERNEL_RING_READS 4096u

/**
 * HtKernelRingLayout: where members lie, in bytes
 * @reader: of ring_buffer_per_cpu: reader_page
 * @commit: commit_page
 * @head: head_page, which is only a hint
 * @pages: pages, any node of the list
 * @entries: counter of all events ever committed
 * @overrun: counter of those that were overwritten
 * @read: counter of those that readers in the guest took
 * @committing: depth of commits that are under way
 * @node_page: of buffer_page: page; its list comes first
 * @array_buffer: of trace_array: array_buffer.buffer
 * @buffers: of trace_buffer: buffers
 * @cpus: of trace_buffer: cpus; UINT32_MAX: nr_cpu_ids counts
 * @subbuf_size: of trace_buffer: subbuf_size; UINT32_MAX: a page
 * @page_size: bytes of a page
 */
typedef struct HtKernelRingLayout {
    uint32_t reader;
    uint32_t commit;
    uint32_t head;
    uint32_t pages;
    uint32_t entries;
    uint32_t overrun;
    uint32_t read;
    uint32_t committing;
    uint32_t node_page;
    uint32_t array_buffer;
    uint32_t buffers;
    uint32_t cpus;
    uint32_t subbuf_size;
    uint32_t page_size;
} HtKernelRingLayout;

/**
 * ht_kernel_ring_layout: find the members
 * @btf: the kernel's types
 * @page_size: bytes of a page of the kernel
 * @layout: filled in
 * @error: set if a member is missing, or a page is not laid out as records
 *         are decoded
 */
bool ht_kernel_ring_layout(const HtBtf *btf, uint32_t page_size,
                           HtKernelRingLayout *layout, GError **error);

/**
 * ht_kernel_ring_follow: begin to follow a ring
 * @space: the kernel's addresses; copied
 * @layout: copied
 * @array: address of the trace_array
 * @cpus: number of CPU numbers in use, 1 to HT_FT_CPUS_MAX
 * @text: address of _text in this boot
 * @ops: must stay
 * @opaque: for @ops
 *
 * The buffer need not be allocated yet.  The caller stops when the kernel is
 * no longer there: a follower sees one boot only (its epoch stays 0).
 *
 * Returns: for ht_ft_follow_free()
 */
HtFtFollow *ht_kernel_ring_follow(const HtKernelSpace *space,
                                  const HtKernelRingLayout *layout,
                                  uint64_t array, uint32_t cpus,
                                  uint64_t text, const HtFtFollowOps *ops,
                                  void *opaque);

/**
 * ht_kernel_ring_instance: find the trace_array of an instance
 * @k: the kernel
 * @name: of the instance; NULL for the main buffer
 * @array: set to its address
 *
 * Returns: 0, -ENOENT if there is no such instance or symbol, or -errno
 */
int ht_kernel_ring_instance(HtGuestKernel *k, const char *name,
                            uint64_t *array);

#endif /* HYPERTRACE_KERNEL_RING_H */
