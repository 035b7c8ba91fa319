/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: one processor's part of an ordinary ftrace ring
 */
#ifndef HYPERTRACE_KERNEL_RING_PRIVATE_H
#define HYPERTRACE_KERNEL_RING_PRIVATE_H

#include "../ftrace/ftrace-cpu.h"
#include "hypertrace/kernel-ring.h"

/**
 * HtListNode: a buffer_page of the list
 * @addr: its address
 * @next: of the node after it, with the kernel's two flags in the lowest bits
 * @prev: of the node before it
 * @page: address of its page of records
 */
typedef struct HtListNode {
    uint64_t addr;
    uint64_t next;
    uint64_t prev;
    uint64_t page;
} HtListNode;

/* The address in a pointer of the list */
#define HT_LIST_ADDR(next) ((next) & ~UINT64_C(3))

/**
 * HtListHeader: what was read of a ring_buffer_per_cpu
 * The members are those of HtKernelRingLayout.
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
 * HtListCursor: how far a processor's ring was taken
 * @node: address of the node; 0: nowhere
 * @page: address of its page
 * @stamp: the page's time stamp
 * @apart: the node is the readers' page: not in the list
 */
typedef struct HtListCursor {
    uint64_t node;
    uint64_t page;
    uint64_t stamp;
    bool apart;
} HtListCursor;

/**
 * HtListCpu: one processor
 * @space: the kernel's addresses
 * @layout: where members lie
 * @subbuf_size: bytes of a page
 * @va: address of the ring_buffer_per_cpu; 0: there is none yet
 * @h: of the last look
 * @at: the cursor; HtFtCpu.pos is the offset in its page
 * @placed: @last is valid
 * @last: the stamp of the newest page that was taken
 * @doubt: the cursor was lost: events may be missing before the next piece
 * @scan: node where the search for the head goes on; 0: it starts anew
 * @reads: reads left in this look
 * @followed: events taken since the ring was reset
 * @base: events that were gone before the first look
 * @based: @base is known
 * @lost: events lost since the ring was reset
 * @lost_before: events lost before that
 * @gone: events overwritten or read when the look last took all there is
 * @sure: events that were missing then
 * @overrun: HtListHeader.overrun of the look that last took all there is
 * @settled: the last look took all that the counters say there is
 * @spoiled: the page has what is no records: the rest of it is skipped
 * @uncounted: a gap was reported whose number of events is not known yet
 * @writer: the page that the writer is on...
 * @writer_size: ...and the bytes committed to it; on hosts that do not keep
 *               the order of stores, both as the look before saw them
 * @lag: likewise the header
 * @lag_begin: likewise the time when that look began
 */
typedef struct HtListCpu {
    const HtKernelSpace *space;
    const HtKernelRingLayout *layout;
    uint32_t subbuf_size;
    uint64_t va;
    HtListHeader h;
    HtListCursor at;
    bool placed;
    uint64_t last;
    bool doubt;
    uint64_t scan;
    uint32_t reads;
    uint64_t followed;
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

/* What a step along the list came to */
typedef enum HtListWalk {
    HT_LIST_DONE,       /* up to the writer */
    HT_LIST_MORE,       /* the share of work is used up */
    HT_LIST_LOST,       /* the cursor's page is gone: place it again */
    HT_LIST_ERROR,      /* the memory cannot be read, or is no list */
} HtListWalk;

/**
 * ht_list_layout_ok: are the members near enough to each other to be read?
 * @p: the layout
 */
bool ht_list_layout_ok(const HtKernelRingLayout *p);

/**
 * ht_list_header: read a ring_buffer_per_cpu
 * @l: the processor; HtListCpu.reads decreases
 * @h: filled in
 *
 * Returns: 0 or -errno
 */
int ht_list_header(HtListCpu *l, HtListHeader *h);

/**
 * ht_list_node: read a node
 * @l: the processor
 * @addr: its address
 * @n: filled in
 *
 * Returns: 0 or -errno; -EINVAL if @addr cannot be a node's address
 */
int ht_list_node(HtListCpu *l, uint64_t addr, HtListNode *n);

/**
 * ht_list_page: read the header of a page
 * @l: the processor
 * @page: its address
 * @stamp: set to its time stamp
 * @size: set to the bytes committed, clipped to the page
 *
 * Returns: 0 or -errno
 */
int ht_list_page(HtListCpu *l, uint64_t page, uint64_t *stamp,
                 uint32_t *size);

/**
 * ht_list_place: find where to go on, or where to start
 * @l: the processor; HtListCpu.at is set on success
 *
 * If the cursor is lost, that is the oldest page that is newer than the last
 * page that was taken.
 *
 * Returns: HT_LIST_DONE also if there is nothing to take yet, with
 * HtListCpu.at.node 0
 */
HtListWalk ht_list_place(HtListCpu *l);

/**
 * ht_list_collect: take all that is new of a processor
 * @c: the processor, as all kinds of rings have it
 * @l: the processor
 * @look: where it goes
 *
 * Returns: 0 or -errno
 */
int ht_list_collect(HtFtCpu *c, HtListCpu *l, HtFtLook *look);

#endif
