/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: follow one processor's part of an ftrace ring
 */
#ifndef HYPERTRACE_FTRACE_CPU_H
#define HYPERTRACE_FTRACE_CPU_H

#include "hypertrace/ftrace-follow.h"

#define HT_FT_NO_SLOT UINT32_MAX

/**
 * HtFtStepBack: kind of change between a piece and the processor's previous one
 */
typedef enum HtFtStepBack {
    HT_FT_STEP_NONE,
    HT_FT_STEP_SEGMENT,         /* the guest's clock stepped back */
    HT_FT_STEP_EPOCH,           /* the guest seems to have rebooted */
} HtFtStepBack;

/**
 * HtFtTaken: a piece that is queued until the end of the poll
 * @p: the piece; its data is set when the piece is passed on
 * @at: offset of the piece's data in HtFtLook.bytes
 * @step: see HtFtStepBack
 * @gap_ns: with HT_FT_PIECE_LOST: maximum host time in ns during which the lost
 *          events were written; 0 if not known
 * @counted: in an ordinary ring: the kernel's counters give @lost, at the end
 *           of the processor's poll.  If this is false, @lost is not used, and
 *           the number of lost events is estimated
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
 * @copied: bytes of records copied, including rejected copies, and
 *          HT_FT_LOOK_SLOT for each sub-buffer whenever the order is read
 * @full: the poll has reached HT_FT_LOOK_MAX bytes, or another limit that all
 *        processors share: the remaining processors wait for the next poll
 * @more: in an ordinary ring: the poll left a processor's part unfinished, and
 *        went on to other processors
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
 * @look: the poll; @full is set to the result
 *
 * A poll must stop when @copied, plus HT_FT_LOOK_PIECE for each piece, is
 * HT_FT_LOOK_MAX or more.
 */
bool ht_ft_look_full(HtFtLook *look);

/**
 * HtFtWitness: a page that the writer must overwrite before it can overwrite
 *              pages that were not taken
 * @slot: number of the sub-buffer
 * @at: index of the sub-buffer in HtFtCpu.order
 * @stamp: time stamp of the page
 * @full: the witness does not suffice: a page to be taken must also still be at
 *        its place, because a reader in the guest can take it from there
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
 * @synced: @at is valid: the next poll can go on after the page taken last
 * @lost: events are missing before the next piece, or may be
 * @lapped: as @lost, unless the next walk passes the page taken last
 * @gap_ns: with @lapped: maximum host time in ns during which the missing
 *          events were written; 0 if not known
 * @cut: events may be missing between the page taken last and the next page:
 *       this sets @lost when the next page is taken
 * @late: events were overwritten before the walk began; in an ordinary ring:
 *        overwritten, or read in the guest, before the first poll.  Then the
 *        processor's first piece has HT_FT_PIECE_LATE
 * @last: slot of the page taken last
 * @pos: number of bytes taken of that page
 * @spoiled: the page taken last had an invalid record, so the times of later
 *           records in it are not known
 * @ns: the guest's trace clock at @pos
 * @at: place of @last in the order; if @last is the readers' page, the place
 *      before the head
 * @page: for each slot: time stamp of the page taken from it
 * @used: for each slot: number of bytes taken or skipped of that page; 0: none
 * @order: the slots in the order of the ring, the readers' page first
 * @place: for each slot: its index in @order
 * @new_order: buffer for reading a changed order
 * @new_place: buffer, as @new_order
 * @witness: shows whether the writer may have overwritten untaken pages
 * @paused: the last poll interrupted a search for untaken pages that had found
 *          none: the next poll goes on at the place @paused_at.  @witness is
 *          the page before that place
 * @paused_at: see @paused
 * @behind: the last poll may have left committed records
 * @moved: the guest address of the sub-buffers has changed: another boot took
 *         the ring over, and no piece is known to be of that boot yet
 * @moved_looks: number of polls that began since @moved was set
 * @fresh: the next record is the first of the boot that @moved means
 * @held: slot of a page whose commit count may be that of the previous boot
 * @held_stamp: time stamp of that page
 * @held_commit: commit count of that page
 * @held_times: number of polls that left that page for this reason
 * @holds: this poll did not take the page @held
 * @changed: something was taken after @looked was set
 * @looked: a poll has read the ring and ended with @behind false
 * @lag_slot: with @relaxed: the writer's slot at the previous poll
 * @lag_stamp: time stamp of that page; 0 if it was not started
 * @lag_size: committed bytes of that page then; 0 if it was not started
 * @lag_begin: the host's clock at the start of that poll
 * @epoch: epoch of the processor's last piece; other processors may already
 *         have pieces of a later one
 * @segment: segment of that piece within @epoch
 * @newest_ns: time of the last event taken, by the guest's clock
 * @rate_events: number of recent events, for HtFtPiece.lost_estimate
 * @rate_ns: time in which these events were written, in ns
 * @before: host time in ns before which all committed records have been taken:
 *          the start of a poll; 0 if not known
 * @look_begin: the host's clock at the start of this poll
 * @stats: counters
 *
 * A slot is the number of a sub-buffer.  A place is an index in @order.  The
 * readers' page is the sub-buffer that readers in the guest have taken out of
 * the ring.  A walk goes from page to page, and takes the new records.
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
    /* the page has fewer records than were taken of it */
    HT_FT_CLEARED,
    /* the sub-buffer holds another page than the requested one */
    HT_FT_OTHER,
    HT_FT_RETRY,        /* the guest changed the page during each attempt */
    /* the commit count may still be that of the previous boot */
    HT_FT_HELD,
    /* the page has invalid records, or an invalid commit count */
    HT_FT_GARBAGE,
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
 * @cleared: a reader in the guest has read the page and marked it empty.  The
 *           records are still there, but their size is not known: read up to
 *           the end of the page
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
 * If the guest orders its stores, a later load returns memory that is at least
 * as new as @value.
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
 * @got: not set for HT_FT_OTHER and HT_FT_ERROR; for HT_FT_GARBAGE, set to the
 *       range that is not valid
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
 * ht_ft_cpu_note: record the writer's position, with HtFtCpu.relaxed, for the
 * next poll
 * @c: the processor
 * @slot: slot of the writer's page
 */
void ht_ft_cpu_note(HtFtCpu *c, uint32_t slot);

/**
 * ht_ft_cpu_collect: queue the new records of a processor, up to the limits of
 * the poll
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
