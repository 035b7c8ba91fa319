/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: follow an ftrace ring that a guest writes meanwhile
 *
 * Each look copies what was committed since the last one, a processor after
 * the other, and passes it on in pieces: runs of records of one sub-buffer.
 * Pieces of a processor come in the order of the ring.  What the guest
 * overwrote before it was copied is noticed, always; when it was is exact, how
 * many events it were is an estimate.
 *
 * Not seen: an event that was reserved but not committed, for instance by a
 * processor that died in an interrupt within an event.
 */
#ifndef HYPERTRACE_FTRACE_FOLLOW_H
#define HYPERTRACE_FTRACE_FOLLOW_H

#include "hypertrace/ftrace-page.h"
#include "hypertrace/ftrace-ring.h"

/* Bytes that one look copies at most; the rest is left to the next one. */
#define HT_FT_LOOK_MAX (64u << 20)

/* A step back by more than this is another boot of the guest. */
#define HT_FT_EPOCH_NS (UINT64_C(500) * 1000 * 1000)

/* Of HtFtPiece.flags */
/*
 * Events between the piece before and this one are missing.  Not told of what a
 * boot wrote after the look before its end: the next one writes over that.
 */
#define HT_FT_PIECE_LOST    1u
/* Begins with a sub-buffer's first record */
#define HT_FT_PIECE_BEGIN   2u
/* The first one, and events before it were overwritten before the first look */
#define HT_FT_PIECE_LATE    4u

/**
 * HtFtPiece: records that were copied
 * @cpu: the processor whose ring it is
 * @slot: number of the sub-buffer; with @stamp it tells which page it was
 * @from: offset of @data in the page's records
 * @size: bytes of @data, a multiple of 4; at most the sub-buffer's size less
 *        HT_FT_PAGE_HEADER
 * @data: whole records, checked: a walk over them ends with HT_FT_END
 * @stamp: the page's time stamp
 * @base_ns: the clock where @data begins, for ht_ft_iter_init()
 * @begin_ns: time of its first event; @base_ns if it has none
 * @end_ns: time where it ends
 * @events: how many events it has
 * @epoch: boots of the guest that were told apart so far, from 0
 * @segment: steps back of the clock within @epoch, from 0.  Times of
 *           different processors are comparable within one segment only.
 * @flags: HT_FT_PIECE_
 * @lost_from_ns: with HT_FT_PIECE_LOST: end of the last piece of this
 *                processor; the gap ends at @begin_ns
 * @lost_estimate: with HT_FT_PIECE_LOST: about how many events that were;
 *                 0 if nothing is known
 * @host_before: on the host's clock, ns: events of this piece but the first
 *               were committed after this; 0 if that is not known
 * @host_after: and before this; 0 without a clock
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
 * HtFtFollowOps: what a follower calls
 * @ahead: or NULL; sees all pieces of a look before the first is taken, for
 *         what one says of others
 * @piece: takes a piece; it and its data are valid during the call
 * @now: or NULL; the host's clock in ns
 */
typedef struct HtFtFollowOps {
    void (*ahead)(void *opaque, const HtFtPiece *p);
    void (*piece)(void *opaque, const HtFtPiece *p);
    uint64_t (*now)(void *opaque);
} HtFtFollowOps;

/**
 * HtFtStats: what was seen, of one processor or all
 * @events: passed on
 * @bytes: of records passed on
 * @lost: estimated, in all gaps
 * @gaps: times that something was lost, also behind the last piece
 * @late: processors whose first events were overwritten before the first look
 * @retries: copies that the guest changed meanwhile
 * @bad: copies that were no records, or headers that were no ring's
 * @discarded: records that the kernel took back
 * @errors: looks at a processor whose header could be read, but not a page
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
 * ht_ft_follow_new: begin to follow a ring
 * @mem: the memory, must stay until ht_ft_follow_free()
 * @ring: the ring, is taken over
 * @ops: must stay as well
 * @opaque: for @ops
 *
 * The first look passes on all that is in the ring.
 *
 * Context: a follower is used by one thread at a time
 */
HtFtFollow *ht_ft_follow_new(const HtFtMem *mem, HtFtRing *ring,
                             const HtFtFollowOps *ops, void *opaque);

/**
 * ht_ft_follow_free: end
 * @f: the follower or NULL
 */
void ht_ft_follow_free(HtFtFollow *f);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtFtFollow, ht_ft_follow_free)

/**
 * ht_ft_follow_look: take what is new
 * @f: the follower
 *
 * On a host that does not keep the order of stores, what one look sees is
 * passed on by the next: to have the last events of a guest that does not run
 * any more, look twice.
 *
 * Returns: bytes of records passed on, 0 if there was nothing new; -errno if
 * there was nothing and memory of a processor cannot be read.  Others are
 * followed nevertheless.
 */
int64_t ht_ft_follow_look(HtFtFollow *f);

/**
 * ht_ft_follow_more: did the last look leave something
 * @f: the follower
 *
 * Returns: true if it stopped at HT_FT_LOOK_MAX: look again at once
 */
bool ht_ft_follow_more(const HtFtFollow *f);

/**
 * ht_ft_follow_copied: what the last look copied
 * @f: the follower
 *
 * Returns: bytes, also of what came to nothing
 */
uint64_t ht_ft_follow_copied(const HtFtFollow *f);

/**
 * ht_ft_follow_covers: is something found in the memory part of the ring?
 * @f: the follower
 * @offset: where it begins; a later processor's part looks like a ring, too
 *
 * Processors' parts that are there by now are the ring's, whether or not a look
 * has met them.
 */
bool ht_ft_follow_covers(HtFtFollow *f, uint64_t offset);

/**
 * ht_ft_follow_ring: the ring
 * @f: the follower
 */
const HtFtRing *ht_ft_follow_ring(const HtFtFollow *f);

/**
 * ht_ft_follow_stats: count of all processors, or of one
 * @f: the follower
 * @cpu: the processor, or -1
 */
HtFtStats ht_ft_follow_stats(const HtFtFollow *f, int cpu);

/**
 * ht_ft_follow_alive: has the ring changed since the first look?
 * @f: the follower
 *
 * A copy of a ring, in a page cache or in the memory of a nested guest that
 * has ended, never does.
 */
bool ht_ft_follow_alive(const HtFtFollow *f);

/**
 * ht_ft_follow_epoch: boots that were told apart so far, from 0
 * @f: the follower
 */
uint32_t ht_ft_follow_epoch(const HtFtFollow *f);

/**
 * ht_ft_follow_text: HtFtRing.text of this epoch
 * @f: the follower
 *
 * Returns: the address; 0 if the ring was kept from an earlier boot, whose
 * address it has
 */
uint64_t ht_ft_follow_text(const HtFtFollow *f);

/**
 * ht_ft_follow_set_relaxed: the host does not keep the order of stores
 * @f: the follower
 * @relaxed: the default is what is so for this host
 */
void ht_ft_follow_set_relaxed(HtFtFollow *f, bool relaxed);

#endif /* HYPERTRACE_FTRACE_FOLLOW_H */
