/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: follow an ftrace ring while the guest writes it
 *
 * Each poll copies what was committed since the previous poll, one processor
 * after another, and passes it on in pieces: sequences of records of one
 * sub-buffer.  The pieces of a processor are in the order of the ring.  If
 * events were overwritten before they were copied, the next piece of the
 * processor has HT_FT_PIECE_LOST or HT_FT_PIECE_LATE; HT_FT_PIECE_LOST names an
 * exception.  In a boot-mapped ring the number of lost events is an estimate.
 * In an ordinary ring the kernel's counters give it, unless they are in doubt
 * (see kernel-ring.h).
 *
 * An event that was reserved but never committed is not seen, for example if
 * the processor stopped in an interrupt within the event.
 */
#ifndef HYPERTRACE_FTRACE_FOLLOW_H
#define HYPERTRACE_FTRACE_FOLLOW_H

#include "hypertrace/ftrace-page.h"
#include "hypertrace/ftrace-ring.h"

/*
 * Number of bytes after which a poll copies no further page of the processor
 * that it has reached, and leaves out the processors after it.  The next poll
 * begins with the first of these; each processor is continued at the page at
 * which it was interrupted.  The limit is tested only between two pages of a
 * processor, so a poll can exceed it by a few pages for each processor.
 * Each piece counts as HT_FT_LOOK_PIECE bytes in
 * addition to its own: if the guest's clock steps back in each record, each
 * record becomes a piece.  Each sub-buffer counts as HT_FT_LOOK_SLOT bytes
 * whenever the order of the sub-buffers is read.
 */
#ifndef HT_FT_LOOK_MAX          /* fuzz targets define a smaller limit */
#define HT_FT_LOOK_MAX (16u << 20)
#endif
#define HT_FT_LOOK_PIECE 2048u
#define HT_FT_LOOK_SLOT 16u

/*
 * If the guest's clock steps back by more than this many ns in a boot-mapped
 * ring, the follower assumes that the guest has rebooted.
 */
#define HT_FT_EPOCH_NS (UINT64_C(500) * 1000 * 1000)

/* HtFtPiece.flags */
/*
 * Events between the processor's previous piece and this one are missing, or
 * the follower cannot exclude it.  If the guest has rebooted between these
 * pieces, events that the old boot wrote after the last poll may be missing
 * although the flag is not set: the new boot can overwrite them.
 */
#define HT_FT_PIECE_LOST    1u
/* The piece begins with the first record of a sub-buffer. */
#define HT_FT_PIECE_BEGIN   2u
/*
 * This is the processor's first piece, and earlier events are missing: before
 * the first poll, they were overwritten or, in an ordinary ring, read in the
 * guest.  In a recording, the flag can also mean that the recorder removed the
 * processor's earlier pieces.
 */
#define HT_FT_PIECE_LATE    4u

/**
 * HtFtPiece: copied records
 * @cpu: number of the processor
 * @slot: number of the sub-buffer; @slot and @stamp identify the page
 * @from: offset of @data in the page's records
 * @size: size of @data in bytes, a multiple of 4; at most the sub-buffer's size
 *        less HT_FT_PAGE_HEADER
 * @data: the records; whole and checked, so that an iterator ends with
 *        HT_FT_END
 * @stamp: the page's time stamp
 * @base_ns: the clock at the start of @data, for ht_ft_iter_init()
 * @begin_ns: time of the first event; @base_ns if there is no event
 * @end_ns: the clock at the end of @data
 * @events: number of events
 * @epoch: number of reboots of the guest that were seen before the piece
 * @segment: number of steps back of the clock that were seen before the piece
 *           within @epoch.  Times of different processors are comparable within
 *           one segment only.
 * @flags: HT_FT_PIECE_* bits
 * @lost_from_ns: with HT_FT_PIECE_LOST: end of the processor's previous piece;
 *                the gap ends at @begin_ns
 * @lost_estimate: with HT_FT_PIECE_LOST: number of lost events, estimated if
 *                 the ring does not count them; 0 if not known
 * @host_before: host clock in ns; the events of the piece were committed after
 *               this time.  The first event, and events of interrupts, may have
 *               an earlier time stamp.  0 if not known.
 * @host_after: host clock in ns; all events were committed before this time.
 *              0 without a clock.
 */
typedef struct HtFtPiece {
    uint32_t cpu;
    uint32_t slot;
    uint32_t from;
    uint32_t size;
    const uint8_t *data;
    uint64_t stamp;
    uint64_t base_ns;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t events;
    uint32_t epoch;
    uint32_t segment;
    uint32_t flags;
    uint64_t lost_from_ns;
    uint64_t lost_estimate;
    uint64_t host_before;
    uint64_t host_after;
} HtFtPiece;

/**
 * HtFtFollowOps: callbacks of a follower
 * @ahead: or NULL; called for all pieces of a poll before @piece is called for
 *         the first, because a piece may determine the times of others
 * @piece: takes a piece; the piece and its data are valid during the call only
 * @now: or NULL; returns the host's clock in ns
 */
typedef struct HtFtFollowOps {
    void (*ahead)(void *opaque, const HtFtPiece *p);
    void (*piece)(void *opaque, const HtFtPiece *p);
    uint64_t (*now)(void *opaque);
} HtFtFollowOps;

/**
 * HtFtStats: counters of one processor, or the sum of all
 * @events: events passed on
 * @bytes: bytes of records passed on
 * @lost: number of lost events: the sum of HtFtPiece.lost_estimate, and events
 *        that an ordinary ring counts in no piece
 * @gaps: number of gaps, including a known one after the last piece
 * @late: number of processors that have a piece with HT_FT_PIECE_LATE
 * @retries: copies that were rejected because the guest changed the page
 * @bad: copies or headers that were not valid
 * @discarded: records that the kernel discarded
 * @errors: polls in which a page of a processor could not be read
 */
typedef struct HtFtStats {
    uint64_t events;
    uint64_t bytes;
    uint64_t lost;
    uint64_t gaps;
    uint64_t late;
    uint64_t retries;
    uint64_t bad;
    uint64_t discarded;
    uint64_t errors;
} HtFtStats;

typedef struct HtFtFollow HtFtFollow;

/**
 * ht_ft_follow_new: start to follow a ring
 * @mem: the memory; copied.  The objects to which it points must stay valid
 *       until ht_ft_follow_free()
 * @ring: the ring; the follower takes ownership
 * @ops: the callbacks; must stay valid as well
 * @opaque: passed to @ops
 *
 * The first polls pass on what is already in the ring.
 *
 * Returns: the follower, for ht_ft_follow_free()
 *
 * Context: the caller serializes all calls for a follower
 */
HtFtFollow *ht_ft_follow_new(const HtFtMem *mem, HtFtRing *ring,
                             const HtFtFollowOps *ops, void *opaque);

/**
 * ht_ft_follow_free: stop following the ring
 * @f: the follower or NULL
 */
void ht_ft_follow_free(HtFtFollow *f);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtFtFollow, ht_ft_follow_free)

/**
 * ht_ft_follow_look: poll the ring
 * @f: the follower
 *
 * On a host with weak memory ordering, a poll passes on only what the previous
 * poll saw.  To get the last events of a guest that no longer runs, poll until
 * ht_ft_follow_more() returns false, and then a second time until it returns
 * false.
 *
 * Returns: the number of bytes of records passed on; -errno if no record was
 * passed on and the memory of a processor cannot be read.  The other processors
 * are followed in any case.  After 0, further polls may pass on records, see
 * above.
 */
int64_t ht_ft_follow_look(HtFtFollow *f);

/**
 * ht_ft_follow_more: test whether to poll again at once
 * @f: the follower
 *
 * Returns: true if the last poll stopped early, for example at HT_FT_LOOK_MAX,
 * and may have left committed records
 */
bool ht_ft_follow_more(const HtFtFollow *f);

/**
 * ht_ft_follow_polls: estimate the number of polls that read a whole ring
 * @f: the follower
 *
 * Returns: a number that usually suffices if the guest writes nothing meanwhile
 */
uint64_t ht_ft_follow_polls(const HtFtFollow *f);

/**
 * ht_ft_follow_copied: get the number of bytes that the last poll copied
 * @f: the follower
 *
 * Returns: the number, including copies that were rejected and HT_FT_LOOK_SLOT
 * for each sub-buffer whenever the order was read
 */
uint64_t ht_ft_follow_copied(const HtFtFollow *f);

/**
 * ht_ft_follow_covers: test whether an offset is within the ring
 * @f: the follower
 * @offset: an offset in the memory, for example of a later processor's header,
 *          which looks like the start of a ring
 *
 * This first adds processors that have appeared since the last poll.
 */
bool ht_ft_follow_covers(HtFtFollow *f, uint64_t offset);

/**
 * ht_ft_follow_ring: get the ring
 * @f: the follower
 */
const HtFtRing *ht_ft_follow_ring(const HtFtFollow *f);

/**
 * ht_ft_follow_stats: get the counters
 * @f: the follower
 * @cpu: number of the processor, or -1 for the sum of all
 */
HtFtStats ht_ft_follow_stats(const HtFtFollow *f, int cpu);

/**
 * ht_ft_follow_alive: test whether the guest wrote to the ring since the first
 * poll that took everything
 * @f: the follower
 *
 * No kernel writes to a copy of a ring, for example in a page cache or in the
 * memory of a nested guest that has ended.
 */
bool ht_ft_follow_alive(const HtFtFollow *f);

/**
 * ht_ft_follow_epoch: get the number of reboots seen so far
 * @f: the follower
 */
uint32_t ht_ft_follow_epoch(const HtFtFollow *f);

/**
 * ht_ft_follow_text: get HtFtRing.text of the present epoch
 * @f: the follower
 *
 * Returns: the address; 0 if it is not known.  A kernel before 6.15 that takes
 * the ring over from an earlier boot leaves that boot's address in the header.
 */
uint64_t ht_ft_follow_text(const HtFtFollow *f);

/**
 * ht_ft_follow_set_relaxed: select whether the host has weak memory ordering
 * @f: the follower
 * @relaxed: true if the host may see a guest's stores in another order; the
 *           default depends on the host's architecture
 */
void ht_ft_follow_set_relaxed(HtFtFollow *f, bool relaxed);

#endif /* HYPERTRACE_FTRACE_FOLLOW_H */
