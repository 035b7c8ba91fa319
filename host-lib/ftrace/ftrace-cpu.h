/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: follow one processor's part of an ftrace ring
 */
#ifndef HYPERTRACE_FTRACE_CPU_H
#define HYPERTRACE_FTRACE_CPU_H

#include "hypertrace/ftrace-follow.h"

#define HT_FT_NO_SLOT UINT32_MAX

/**
 * HtFtStepBack: how the clock of a piece continues that of the previous piece
 */
typedef enum HtFtStepBack {
    HT_FT_STEP_NONE,
    HT_FT_STEP_SEGMENT,         /* the guest's clock stepped back */
    HT_FT_STEP_EPOCH,           /* the guest rebooted */
} HtFtStepBack;

/**
 * HtFtTaken: a piece that is queued until the end of the poll
 * @p: the piece, except its data
 * @at: offset of the piece's data in HtFtLook.bytes
 * @step: how the piece's clock continues that of the previous piece
 * @gap_ns: with HT_FT_PIECE_LOST: maximum host time in ns during which the lost
 *          events were written; 0 if not known
 * @counted: @lost is the number that the kernel's own counters give (it is set
 *           at the end of the processor's poll); otherwise it is estimated
 * @proved: with @counted: @lost is final already
 * @lost: number of events lost before the piece
 */
typedef struct HtFtTaken {
    HtFtPiece p;
    size_t at;
    HtFtStepBack step;
    uint64_t gap_ns;
    bool counted;
    bool proved;
    uint64_t lost;
} HtFtTaken;

/**
 * HtFtLook: result of one poll, of all processors
 * @bytes: the records
 * @taken: array of HtFtTaken: processor by processor, and those of a processor
 *         in the order of its ring
 * @copied: bytes of pages copied, including rejected copies, and
 *          HT_FT_LOOK_SLOT for each sub-buffer whenever the order is read
 * @full: the poll stopped early: at HT_FT_LOOK_MAX bytes, or at another limit
 *        that all processors share
 * @more: the poll left a processor's part unfinished, and went on to the others
 * @page: buffer for a page that was fetched and not taken yet
 */
typedef struct HtFtLook {
    GByteArray *bytes;
    GArray *taken;
    uint64_t copied;
    bool full;
    bool more;
    uint8_t *page;
} HtFtLook;

/**
 * ht_ft_look_full: test whether a poll must stop
 * @look: the poll; @full is set
 *
 * A poll stops when the pages copied and the pieces taken count as
 * HT_FT_LOOK_MAX bytes.
 */
bool ht_ft_look_full(HtFtLook *look);

/**
 * HtFtWitness: a page that the writer must overwrite before it can overwrite
 *              pages that were not taken
 * @slot: number of the sub-buffer
 * @at: its place in the order
 * @stamp: its time stamp
 * @full: a reader in the guest can still take pages after the page taken last,
 *        which changes the order of these pages
 */
typedef struct HtFtWitness {
    uint32_t slot;
    uint32_t at;
    uint64_t stamp;
    bool full;
} HtFtWitness;

/**
 * HtFtCpu: state of one processor
 * @mem: the memory
 * @ring: the ring
 * @opaque: argument of HtFtWay's callbacks
 * @one_boot: the whole ring is of one boot: a step of the clock back, however
 *            large, starts a segment, not an epoch
 * @geo: location of this processor's part
 * @number: number of the processor
 * @relaxed: the host has weak memory ordering
 * @first: guest address of the sub-buffers at the last poll
 * @synced: @last is the page taken last, and @at is its place
 * @lost: events are missing before the next piece
 * @lapped: events are missing before the next piece, unless the next walk
 *          passes the page taken last
 * @gap_ns: with @lapped: maximum host time in ns during which the missing
 *          events were written; 0 if not known
 * @cut: events are missing after the page taken last
 * @late: events were overwritten before the first poll; used only until the
 *        first piece is taken
 * @last: slot of the page taken last
 * @pos: number of bytes taken of that page
 * @spoiled: the page taken last had an invalid record, so the times of later
 *           records in it are not known
 * @ns: the guest's trace clock at @pos
 * @at: place of @last in the order; if @last is the readers' page, the place
 *      before the head
 * @page: for each slot: time stamp of the page taken from it
 * @used: for each slot: number of bytes taken of that page; 0 if none was taken
 * @order: the slots in the order of the ring, the readers' page first
 * @place: for each slot: its index in @order
 * @new_order: buffer for reading a changed order
 * @new_place: buffer, as @new_order
 * @witness: shows whether the writer has come around
 * @paused: a walk that searches for untaken pages, and has found none yet, goes
 *          on at the place @paused_at; @witness is the page before it
 * @paused_at: see @paused
 * @behind: the last poll may have left committed records
 * @moved: the guest address of the sub-buffers has changed: another boot took
 *         the ring over, and nothing that it wrote was taken yet
 * @moved_looks: number of polls that began since @moved was set
 * @fresh: all records written before @moved was set have been taken
 * @held: slot of a page whose commit count may be that of the previous boot
 * @held_stamp: time stamp of that page
 * @held_commit: commit count of that page
 * @held_times: number of polls that left that page for this reason
 * @holds: this poll did not take the page @held
 * @changed: something was taken after the first complete poll
 * @looked: a poll has taken everything that was committed
 * @lag_slot: with @relaxed: the writer's slot at the previous poll
 * @lag_stamp: time stamp of that page
 * @lag_size: committed bytes of that page then; 0 if it was not started
 * @lag_begin: the host's clock at the start of that poll
 * @epoch: epoch of the last piece; less than the ring's epoch if nothing was
 *         taken since the latter began
 * @segment: segment of the last piece within @epoch; less than the ring's
 *           segment if nothing was taken since the latter began
 * @newest_ns: time of the last event taken
 * @rate_events: number of recent events, for HtFtPiece.lost_estimate
 * @rate_ns: time in which these events were written, in ns
 * @before: the host's clock at the start of the last poll that took everything
 *          that was committed; 0 if no poll did
 * @look_begin: the host's clock at the start of this poll
 * @stats: counters
 */
typedef struct HtFtCpu {
    const HtFtMem *mem;
    const HtFtRing *ring;
    void *opaque;
    bool one_boot;
    HtFtRingCpu geo;
    uint32_t number;
    bool relaxed;
    uint64_t first;
    bool synced;
    bool lost;
    bool lapped;
    uint64_t gap_ns;
    bool cut;
    bool late;
    uint32_t last;
    uint32_t pos;
    bool spoiled;
    uint64_t ns;
    uint32_t at;
    uint64_t *page;
    uint32_t *used;
    uint32_t *order;
    uint32_t *place;
    uint32_t *new_order;
    uint32_t *new_place;
    HtFtWitness witness;
    bool paused;
    uint32_t paused_at;
    bool behind;
    bool moved;
    uint32_t moved_looks;
    bool fresh;
    uint32_t held;
    uint64_t held_stamp;
    uint64_t held_commit;
    uint32_t held_times;
    bool holds;
    bool changed;
    bool looked;
    uint32_t lag_slot;
    uint64_t lag_stamp;
    uint32_t lag_size;
    uint64_t lag_begin;
    uint32_t epoch;
    uint32_t segment;
    uint64_t newest_ns;
    uint64_t rate_events;
    uint64_t rate_ns;
    uint64_t before;
    uint64_t look_begin;
    HtFtStats stats;
} HtFtCpu;

/**
 * HtFtFetched: a copy of records
 * @slot: slot of the page
 * @stamp: time stamp of the page
 * @from: offset of the first record
 * @to: offset of the end of the records
 * @ns: the clock at @from
 */
typedef struct HtFtFetched {
    uint32_t slot;
    uint64_t stamp;
    uint32_t from;
    uint32_t to;
    uint64_t ns;
} HtFtFetched;

/**
 * HtFtCopy: result of copying from a page
 */
typedef enum HtFtCopy {
    HT_FT_COPIED,       /* valid records were copied */
    HT_FT_SAME,         /* the page has no new records */
    /* the page has fewer records than at the previous poll */
    HT_FT_CLEARED,
    /* the sub-buffer holds another page than the requested one */
    HT_FT_OTHER,
    HT_FT_RETRY,        /* the guest changed the page during each attempt */
    /* the commit count may still be that of the previous boot */
    HT_FT_HELD,
    HT_FT_GARBAGE,      /* the page has invalid records */
    HT_FT_ERROR,        /* the guest's memory cannot be read */
} HtFtCopy;

/**
 * HtFtWant: request to copy from a page
 * @slot: slot of the page
 * @resume: copy what is new in the page taken last; otherwise copy a page that
 *          was not taken before, from its start
 * @limit: maximum number of bytes of the page to take
 * @stamp: time stamp that the page must have; 0 for any
 * @writers: the writer is in this page
 * @cleared: a reader in the guest has read the page and marked it empty; its
 *           records are still there and end at the end of the page
 */
typedef struct HtFtWant {
    uint32_t slot;
    bool resume;
    uint32_t limit;
    uint64_t stamp;
    bool writers;
    bool cleared;
} HtFtWant;

/**
 * ht_ft_cpu_load: load 8 bytes of the guest's memory, with acquire semantics
 * @c: the processor
 * @offset: offset in the memory
 * @value: set to the value
 *
 * A later load returns a value that is at least as new.
 *
 * Returns: false if the memory cannot be read
 */
bool ht_ft_cpu_load(const HtFtCpu *c, uint64_t offset, uint64_t *value);

/**
 * ht_ft_cpu_page: get the offset of a page in the memory
 * @c: the processor
 * @slot: slot of the page
 */
static inline uint64_t ht_ft_cpu_page(const HtFtCpu *c, uint32_t slot)
{
    return c->geo.pages + (uint64_t)slot * c->ring->subbuf_size;
}

/* Maximum size of a page's records in bytes */
static inline uint32_t ht_ft_cpu_capacity(const HtFtCpu *c)
{
    return c->ring->subbuf_size - HT_FT_PAGE_HEADER;
}

/**
 * ht_ft_cpu_fetch: copy records of a page to @look->page
 * @c: the processor
 * @look: the poll
 * @want: the request
 * @got: set for HT_FT_COPIED; for HT_FT_GARBAGE, set to the invalid range
 */
HtFtCopy ht_ft_cpu_fetch(HtFtCpu *c, HtFtLook *look, const HtFtWant *want,
                         HtFtFetched *got);

/**
 * ht_ft_cpu_use: queue fetched records, or skip invalid ones
 * @c: the processor; the fetched page becomes @c->last
 * @look: the poll; the pieces are appended to @look->taken
 * @result: result of ht_ft_cpu_fetch()
 * @got: the fetched range
 *
 * Returns: false if @result is neither HT_FT_COPIED nor HT_FT_GARBAGE
 */
bool ht_ft_cpu_use(HtFtCpu *c, HtFtLook *look, HtFtCopy result,
                   const HtFtFetched *got);

/**
 * ht_ft_cpu_take: make pieces of fetched records and queue them
 * @c: the processor; the records continue those taken before
 * @look: the poll; @look->page holds the records
 * @got: the fetched range
 */
void ht_ft_cpu_take(HtFtCpu *c, HtFtLook *look, const HtFtFetched *got);

/**
 * ht_ft_records_ok: test whether a range consists of whole records
 * @data: a copy of the records
 * @got: the range
 */
bool ht_ft_records_ok(const uint8_t *data, const HtFtFetched *got);

/**
 * ht_ft_cpu_note: record the writer's position for the next poll
 * @c: the processor
 * @slot: slot of the writer's page
 */
void ht_ft_cpu_note(HtFtCpu *c, uint32_t slot);

/**
 * ht_ft_cpu_collect: queue everything new of a processor
 * @c: the processor
 * @look: the poll; the pieces are appended to @look->taken
 *
 * Returns: 0 or -errno; -EIO if the memory cannot be read
 */
int ht_ft_cpu_collect(HtFtCpu *c, HtFtLook *look);

/**
 * HtFtWay: callbacks for one kind of ring
 * @one_boot: see HtFtCpu
 * @grow: add processors that have appeared: increase @ring->cpus and extend
 *        @ring->cpu; return true if there are any.  Called at the start of each
 *        of the first 1024 polls, later of every 1024th poll, and by
 *        ht_ft_follow_covers().
 * @begin: called at the start of each poll; or NULL
 * @collect: as ht_ft_cpu_collect()
 * @polls: as ht_ft_follow_polls()
 * @free: frees @opaque; or NULL
 */
typedef struct HtFtWay {
    bool one_boot;
    bool (*grow)(void *opaque, const HtFtMem *mem, HtFtRing *ring);
    void (*begin)(void *opaque);
    int (*collect)(HtFtCpu *c, HtFtLook *look);
    uint64_t (*polls)(void *opaque, const HtFtMem *mem, const HtFtRing *ring);
    void (*free)(void *opaque);
} HtFtWay;

/**
 * ht_ft_follow_new_way: start to follow a ring of any kind
 * @mem: as for ht_ft_follow_new()
 * @ring: as for ht_ft_follow_new(); members that @way does not use may be unset
 * @way: the callbacks; must stay valid
 * @way_opaque: passed to @way; the follower takes ownership
 * @ops: as for ht_ft_follow_new()
 * @opaque: passed to @ops
 */
HtFtFollow *ht_ft_follow_new_way(const HtFtMem *mem, HtFtRing *ring,
                                 const HtFtWay *way, void *way_opaque,
                                 const HtFtFollowOps *ops, void *opaque);

#endif /* HYPERTRACE_FTRACE_CPU_H */
