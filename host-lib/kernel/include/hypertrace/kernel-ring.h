/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: follow an ordinary ftrace ring in a kernel's memory
 *
 * The main trace buffer and the buffer of each instance have a ring for each
 * processor: a circular list of pages, and one more page for readers in the
 * guest.  The records have the same format as in a boot-mapped ring, and
 * HtFtFollow follows both kinds of rings: see ftrace-follow.h.
 *
 * The kernel counts the events that it writes.  The number of lost events is
 * therefore exact if the guest wrote nothing during the poll, and the host
 * keeps the order of stores (see ht_ft_follow_set_relaxed()).  If the guest
 * empties a ring, the number of events that are lost by this is not known.
 */
#ifndef HYPERTRACE_KERNEL_RING_H
#define HYPERTRACE_KERNEL_RING_H

#include "hypertrace/ftrace-follow.h"
#include "hypertrace/kernel-space.h"

/*
 * Maximum number of reads of the guest's memory in one poll.  A few reads for
 * each processor do not count, such as that of its ring's address.  A processor
 * may use its share, or 256 reads if that is more.  When fewer than 256 reads
 * are left, the poll stops; the next poll begins with the first processor that
 * was left out.
 */
#define HT_KERNEL_RING_READS 4096u

/**
 * HtKernelRingLayout: offsets of members in the kernel's structures, in bytes
 * @reader: ring_buffer_per_cpu.reader_page
 * @commit: ring_buffer_per_cpu.commit_page
 * @head: ring_buffer_per_cpu.head_page, which is only a hint
 * @pages: ring_buffer_per_cpu.pages, any node of the list
 * @entries: ring_buffer_per_cpu.entries: number of events committed since the
 *           ring was last reset
 * @overrun: ring_buffer_per_cpu.overrun: number of them overwritten
 * @read: ring_buffer_per_cpu.read: number of them read in the guest
 * @committing: ring_buffer_per_cpu.committing: depth of commits under way
 * @node_page: buffer_page.page; buffer_page.list has offset 0
 * @array_buffer: trace_array.array_buffer.buffer
 * @buffers: trace_buffer.buffers
 * @subbuf_size: trace_buffer.subbuf_size; UINT32_MAX in a kernel without this
 *               member, whose sub-buffers are pages
 * @page_size: page size of the kernel in bytes
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
    uint32_t subbuf_size;
    uint32_t page_size;
} HtKernelRingLayout;

/**
 * ht_kernel_ring_layout: get the offsets of the members
 * @btf: the kernel's types
 * @page_size: page size of the kernel in bytes
 * @layout: filled in
 * @error: set if a member is missing or has another size than expected, or if
 *         ftrace-page.h cannot decode pages of this layout
 *
 * Returns: true; or false with @error set
 */
bool ht_kernel_ring_layout(const HtBtf *btf, uint32_t page_size,
                           HtKernelRingLayout *layout, GError **error);

/**
 * ht_kernel_ring_follow: start to follow a ring
 * @space: the kernel's addresses; copied
 * @layout: offsets of members; copied
 * @array: address of the trace_array
 * @cpus: number of CPU numbers in use; at most HT_FT_CPUS_MAX are followed
 * @text: address of _text in this boot
 * @ops: the callbacks; must stay valid
 * @opaque: passed to @ops
 *
 * The buffer need not be allocated yet.  The size of its sub-buffers is read
 * only by this call; if it cannot be read, it is assumed to be a page.  A
 * follower sees one boot only (its epoch stays 0): the caller must free the
 * follower when the kernel is gone.
 *
 * Returns: the follower, for ht_ft_follow_free()
 */
HtFtFollow *ht_kernel_ring_follow(const HtKernelSpace *space,
                                  const HtKernelRingLayout *layout,
                                  uint64_t array, uint32_t cpus,
                                  uint64_t text, const HtFtFollowOps *ops,
                                  void *opaque);

/**
 * ht_kernel_ring_instance: find the trace_array of an instance
 * @k: the kernel
 * @name: name of the instance; NULL for the main buffer
 * @array: set to its address
 *
 * Returns: 0, -ENOENT if there is no such instance or symbol, or -errno
 */
int ht_kernel_ring_instance(HtGuestKernel *k, const char *name,
                            uint64_t *array);

#endif /* HYPERTRACE_KERNEL_RING_H */
