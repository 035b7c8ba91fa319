/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: follow one processor's part of an ftrace ring
 */
#ifndef HYPERTRACE_FTRACE_CPU_H
#define HYPERTRACE_FTRACE_CPU_H

#include "hypertrace/ftrace-follow.h"

#define HT_FT_NO_SLOT UINT32_MAX

/**
 * HtFtStepBack: how a piece's clock follows on the piece before
 */
typedef enum HtFtStepBack {
    HT_FT_STEP_NONE,
    HT_FT_STEP_SEGMENT,         /* a step back */
    HT_FT_STEP_EPOCH,           /* another boot of the guest */
} HtFtStepBack;

/**
 * HtFtTaken: a piece that waits for the end of the look
 * @p: the piece, but for its data
 * @at: where its data are in HtFtLook.bytes
 * @step: how its clock follows on the piece before
 * @gap_ns: what is lost before it was written in so long a time at most, by
 *          the host's clock; 0 if that is not known
 * @counted: the kernel's own counters tell how many events are lost before it
 * @lost: with @counted: how many
 */
typedef struct HtFtTaken {
    HtFtPiece p;
    size_t at;
    HtFtStepBack step;
    uint64_t gap_ns;
    bool counted;
    uint64_t lost;
} HtFtTaken;

/**
 * HtFtLook: what one look took, of all processors
 * @bytes: the records
 * @taken: HtFtTaken in the order of the processors' rings
 * @copied: bytes of pages, also what came to nothing
 * @full: stopped at HT_FT_LOOK_MAX
 * @more: a processor used up its share of the work; the others went on
 * @page: a page that was fetched, and not taken yet
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
 * HtFtWitness: a page that the writer overwrites before it overwrites what was
 *              not taken
 * @slot: which one
 * @at: its place in the order
 * @stamp: its time stamp
 * @full: what is behind the last page may have been written, and not taken by
 *        readers: they can change the order there
 */
typedef struct HtFtWitness {
    uint32_t slot;
    uint32_t at;
    uint64_t stamp;
    bool full;
} HtFtWitness;

/**
 * HtFtCpu: one processor
 * @mem: the memory
 * @ring: the ring
 * @opaque: of the ring's HtFtWay
 * @one_boot: all that is in the ring is of one boot: a step back of the clock,
 *            however large, begins a segment
 * @geo: where this processor's part is
 * @number: of the processor
 * @relaxed: the host does not keep the order of stores
 * @first: guest address of the sub-buffers, of the last look
 * @synced: @last is the page that was taken last
 * @lost: something is missing before the next piece
 * @lapped: so it is, unless the next walk comes by the page that was taken last
 * @gap_ns: it was written in so long a time at most; 0 if that is not known
 * @cut: something is missing behind the page that was taken last
 * @late: nothing was taken yet, and something is missing before it
 * @last: slot of that page
 * @pos: how much of it was taken
 * @spoiled: it had what is no records: when those behind are from is not known
 * @ns: the clock there
 * @at: its place in the order; the one before the head while it is the
 *      readers' page
 * @page: for each slot the stamp of the page that was taken of it
 * @used: and how much of it, 0 if none was
 * @order: the slots in the order of the ring, the readers' page first
 * @place: for each slot where it is in @order
 * @new_order: where another order is read to
 * @new_place: likewise
 * @witness: tells whether the writer has come around
 * @behind: left something in the last look
 * @moved: the guest's address of the sub-buffers has changed: another boot took
 *         them over, and nothing that it wrote was taken yet
 * @moved_looks: in so many looks before this one
 * @fresh: nothing is left of what was written before that
 * @held: the page whose count may be that of the boot before
 * @held_stamp: its time stamp
 * @held_commit: the count
 * @held_times: that it was not taken for that
 * @holds: it was not in this look
 * @changed: something has been taken since the first look
 * @looked: the first look was made
 * @lag_slot: @relaxed: where the look before saw the writer
 * @lag_stamp: of that page
 * @lag_size: how much of it was committed then; 0 if it was not begun
 * @lag_begin: the host's clock at the begin of that look
 * @epoch: of the last piece; less than the ring's: nothing was taken since that
 *         began
 * @segment: of the last piece, likewise
 * @newest_ns: end of the last piece that was passed on
 * @rate_events: events of the recent past
 * @rate_ns: in this time
 * @before: the host's clock when all that was committed has been taken since;
 *          0 if that never was so
 * @look_begin: at the begin of this look
 * @stats: what was seen
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
 * @slot: of the page
 * @stamp: of the page
 * @from: the first one's offset
 * @to: where they end
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
 * HtFtCopy: what came of copying from a page
 */
typedef enum HtFtCopy {
    HT_FT_COPIED,       /* there are records */
    HT_FT_SAME,         /* nothing new in it */
    HT_FT_CLEARED,      /* the same page, with less in it than before */
    HT_FT_OTHER,        /* another page than the one asked for */
    HT_FT_RETRY,        /* it changed all the time */
    HT_FT_HELD,         /* another boot begins there, and may not have yet */
    HT_FT_GARBAGE,      /* no records */
    HT_FT_ERROR,        /* the memory cannot be read */
} HtFtCopy;

/**
 * HtFtWant: what to copy of a page
 * @slot: the page's
 * @resume: what is new in the page that was taken last; else all of a page
 *          that was not taken before
 * @limit: do not take more than this of it
 * @stamp: what @limit is of: the page's time stamp, or 0 for any
 * @writers: the writer is there
 * @cleared: it was read in the guest and marked empty: its records are still
 *           there and end where the page does
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
 * ht_ft_cpu_load: read 8 bytes of the guest
 * @c: the processor
 * @offset: where
 * @value: set to what is there
 *
 * What is read later was written later, or at the same time (acquire).
 *
 * Returns: false if the memory cannot be read
 */
bool ht_ft_cpu_load(const HtFtCpu *c, uint64_t offset, uint64_t *value);

/**
 * ht_ft_cpu_page: where a page is
 * @c: the processor
 * @slot: the page's
 */
static inline uint64_t ht_ft_cpu_page(const HtFtCpu *c, uint32_t slot)
{
    return c->geo.pages + (uint64_t)slot * c->ring->subbuf_size;
}

/* Bytes that a page has for records */
static inline uint32_t ht_ft_cpu_capacity(const HtFtCpu *c)
{
    return c->ring->subbuf_size - HT_FT_PAGE_HEADER;
}

/**
 * ht_ft_cpu_fetch: copy records of a page
 * @c: the processor
 * @look: its @page is overwritten
 * @want: which ones
 * @got: set for HT_FT_COPIED; for HT_FT_GARBAGE, what was no records
 */
HtFtCopy ht_ft_cpu_fetch(HtFtCpu *c, HtFtLook *look, const HtFtWant *want,
                         HtFtFetched *got);

/**
 * ht_ft_cpu_use: make pieces of records, or pass what is none
 * @c: the processor; the page is the last one from now on
 * @look: where the pieces go
 * @result: of ht_ft_cpu_fetch()
 * @got: what was fetched
 *
 * Returns: false if @result is neither HT_FT_COPIED nor HT_FT_GARBAGE
 */
bool ht_ft_cpu_use(HtFtCpu *c, HtFtLook *look, HtFtCopy result,
                   const HtFtFetched *got);

/**
 * ht_ft_cpu_take: make pieces of records
 * @c: the processor; the records follow on what was taken of it before
 * @look: where the pieces go
 * @got: which records @look->page has
 */
void ht_ft_cpu_take(HtFtCpu *c, HtFtLook *look, const HtFtFetched *got);

/**
 * ht_ft_records_ok: are these whole records, up to the end?
 * @data: a copy of the records
 * @got: which they are
 */
bool ht_ft_records_ok(const uint8_t *data, const HtFtFetched *got);

/**
 * ht_ft_cpu_note: remember where the writer is, for the next look
 * @c: the processor
 * @slot: of its page
 */
void ht_ft_cpu_note(HtFtCpu *c, uint32_t slot);

/**
 * ht_ft_cpu_collect: take all that is new of a processor
 * @c: the processor
 * @look: where it goes
 *
 * Returns: 0 or -errno
 */
int ht_ft_cpu_collect(HtFtCpu *c, HtFtLook *look);

/**
 * HtFtWay: how a kind of ring is read
 * @one_boot: of HtFtCpu
 * @grow: look for more processors: raises @ring->cpus, for which @ring->cpu
 *        has elements; returns whether there are.  Called at the start of a
 *        look: often for a young ring, then rarely.
 * @begin: called at the start of each look; or NULL
 * @collect: as ht_ft_cpu_collect()
 * @free: release @opaque; or NULL
 */
typedef struct HtFtWay {
    bool one_boot;
    bool (*grow)(void *opaque, const HtFtMem *mem, HtFtRing *ring);
    void (*begin)(void *opaque);
    int (*collect)(HtFtCpu *c, HtFtLook *look);
    void (*free)(void *opaque);
} HtFtWay;

/**
 * ht_ft_follow_new_way: follow a ring of any kind
 * @mem: as for ht_ft_follow_new()
 * @ring: likewise; without the members that the way has no use for
 * @way: how it is read; must stay
 * @way_opaque: for @way; is taken over
 * @ops: as for ht_ft_follow_new()
 * @opaque: for @ops
 */
HtFtFollow *ht_ft_follow_new_way(const HtFtMem *mem, HtFtRing *ring,
                                 const HtFtWay *way, void *way_opaque,
                                 const HtFtFollowOps *ops, void *opaque);

#endif /* HYPERTRACE_FTRACE_CPU_H */
