/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: declarations shared by the files that follow an ordinary ftrace
 * ring
 */
#ifndef HYPERTRACE_KERNEL_RING_PRIVATE_H
#define HYPERTRACE_KERNEL_RING_PRIVATE_H

#include "../ftrace/ftrace-cpu.h"
#include "hypertrace/kernel-ring.h"

/**
 * HtListNode: a buffer_page of the list
 * @addr: address of the node
 * @next: address of the next node, with the kernel's flags in the lowest 2 bits
 * @prev: address of the previous node
 * @page: address of the page of records
 */
typedef struct HtListNode {
    uint64_t addr;
    uint64_t next;
    uint64_t prev;
    uint64_t page;
} HtListNode;

/* The address in a next pointer, without its flags */
#define HT_LIST_ADDR(next) ((next) & ~UINT64_C(3))

/**
 * HtListHeader: a copy of a ring_buffer_per_cpu
 *
 * HtKernelRingLayout describes the members.
 */
typedef struct HtListHeader {
    uint64_t reader;
    uint64_t commit;
    uint64_t head;
    uint64_t pages;
    uint64_t entries;
    uint64_t overrun;
    uint64_t read;
    uint64_t committing;
} HtListHeader;

/**
 * HtListCursor: a position in a processor's ring
 * @node: address of the node; 0 if there is no position
 * @page: address of the node's page
 * @stamp: time stamp of the page
 * @apart: the node is the readers' page, which is not in the list
 */
typedef struct HtListCursor {
    uint64_t node;
    uint64_t page;
    uint64_t stamp;
    bool apart;
} HtListCursor;

/*
 * Size of HtListCpu.tail in bytes: a record's time since the previous one, its
 * type, task and first values
 */
#define HT_LIST_TAIL 24u

/**
 * HtListCpu: state of one processor
 * @space: the kernel's address space
 * @layout: offsets of the members
 * @subbuf_size: size of a page in bytes
 * @va: address of the ring_buffer_per_cpu; 0 if it is not allocated yet
 * @h: the header that the last poll used
 * @at: the cursor; HtFtCpu.pos is the offset in its page
 * @own: @at when the cursor was last lost; its node is 0 if there is none
 * @placed: @last is valid
 * @last: time stamp of the newest page taken
 * @restart: the ring was emptied, and nothing was taken since: its clock may
 *           have gone back
 * @doubt: events may be missing before the next piece, for example because the
 *         cursor was lost
 * @proved: @before is known
 * @before: number of events that were written before the cursor's page
 * @tail: the bytes after the last event taken; the next events overwrite them
 * @tail_known: @tail is valid
 * @emptied: the ring was emptied, perhaps of events that were not taken
 * @scan: node at which the search for the head continues; 0: it restarts
 * @reads: number of reads left in this poll
 * @followed: events taken since the ring was reset, without this poll's
 * @begin: HtFtStats.events when this poll began
 * @placed_at: HtFtStats.events when the cursor was last set by ht_list_place()
 * @base: missing events that do not count as lost: those that were missing when
 *        @based was set
 * @based: @base is known
 * @lost: events lost since the ring was reset
 * @lost_before: events lost before the ring was reset
 * @gone: events overwritten or read in the guest, at the last poll that set
 *        @settled
 * @sure: events missing at that poll, or later where @before was known
 * @overrun: HtListHeader.overrun at the last poll that took everything
 * @settled: the last poll took everything, and the kernel's counters show
 *           exactly how many events are missing
 * @spoiled: the cursor's page has an invalid record: the rest of the page is
 *           skipped
 * @uncounted: a gap was reported whose number of events is not known yet
 * @writer: with HtFtCpu.relaxed: the writer's position at the previous poll
 * @writer_size: number of bytes committed to the page of @writer at that poll
 * @lag: with HtFtCpu.relaxed: the header that the last poll read, for the next
 *       poll to use
 * @lag_begin: with HtFtCpu.relaxed: HtFtCpu.look_begin of that poll
 */
typedef struct HtListCpu {
    const HtKernelSpace *space;
    const HtKernelRingLayout *layout;
    uint32_t subbuf_size;
    uint64_t va;
    HtListHeader h;
    HtListCursor at;
    HtListCursor own;
    bool placed;
    uint64_t last;
    bool restart;
    bool doubt;
    bool proved;
    uint64_t before;
    uint8_t tail[HT_LIST_TAIL];
    bool tail_known;
    bool emptied;
    uint64_t scan;
    uint32_t reads;
    uint64_t followed;
    uint64_t begin;
    uint64_t placed_at;
    uint64_t base;
    bool based;
    uint64_t lost;
    uint64_t lost_before;
    uint64_t gone;
    uint64_t sure;
    uint64_t overrun;
    bool settled;
    bool spoiled;
    bool uncounted;
    HtListCursor writer;
    uint32_t writer_size;
    HtListHeader lag;
    uint64_t lag_begin;
} HtListCpu;

/* Result of a step along a processor's list of pages */
typedef enum HtListWalk {
    /* success; of a walk over several pages: nothing more can be taken now */
    HT_LIST_DONE,
    /* continue in the next poll, for example because no reads are left */
    HT_LIST_MORE,
    /* the page was overwritten or taken by a reader: set the cursor again */
    HT_LIST_LOST,
    HT_LIST_ERROR,      /* the memory cannot be read or is not a list */
} HtListWalk;

/**
 * ht_list_layout_ok: test whether one read of a limited size is enough for the
 * members of a ring_buffer_per_cpu, and one for those of a buffer_page
 * @p: the layout
 */
bool ht_list_layout_ok(const HtKernelRingLayout *p);

/**
 * ht_list_header: read the ring_buffer_per_cpu
 * @l: the processor; HtListCpu.reads is decremented
 * @h: filled in
 *
 * Returns: 0; -EAGAIN if no reads are left in this poll; or another -errno
 */
int ht_list_header(HtListCpu *l, HtListHeader *h);

/**
 * ht_list_node: read a node
 * @l: the processor; HtListCpu.reads is decremented
 * @addr: address of the node
 * @n: filled in
 *
 * Returns: as ht_list_header(); -EINVAL if @addr is 0, or if @addr or the
 * address of the page is not a multiple of 8
 */
int ht_list_node(HtListCpu *l, uint64_t addr, HtListNode *n);

/**
 * ht_list_page: read the header of a page
 * @l: the processor; HtListCpu.reads is decremented
 * @page: address of the page
 * @stamp: set to its time stamp
 * @size: set to the number of bytes committed, limited to the page
 *
 * Returns: as ht_list_header()
 */
int ht_list_page(HtListCpu *l, uint64_t page, uint64_t *stamp,
                 uint32_t *size);

/**
 * ht_list_emptied: test whether the ring was emptied between two copies of its
 * header
 * @before: the first copy
 * @after: the second copy
 *
 * Returns: true if a count has decreased; false also if the ring was emptied
 * and each count has reached its old value again
 */
static inline bool ht_list_emptied(const HtListHeader *before,
                                   const HtListHeader *after)
{
    return after->entries < before->entries ||
           after->overrun < before->overrun || after->read < before->read;
}

/**
 * ht_list_place: set the cursor to the next page to take
 * @l: the processor; sets HtListCpu.at
 *
 * The next page is the oldest page that is newer than the last page taken.  If
 * no page was taken, it is the oldest page of all.
 *
 * Returns: HT_LIST_DONE; HtListCpu.at.node is 0 if there is nothing to take
 * yet.  HT_LIST_MORE if the next poll must try again: no reads are left, the
 * guest changed the list during each attempt, or it emptied the ring during
 * this poll.  HT_LIST_ERROR if the memory cannot be read or is not a list.
 */
HtListWalk ht_list_place(HtListCpu *l);

/**
 * ht_list_collect: queue everything new of a processor
 * @c: the processor's state that all kinds of rings have
 * @l: the processor's state of this kind
 * @look: the poll; the pieces are appended to @look->taken
 *
 * Returns: 0 or -errno
 */
int ht_list_collect(HtFtCpu *c, HtListCpu *l, HtFtLook *look);

#endif
