/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: from the records of rings to runs of typed events
 *
 * A processor of a ring is a stream, for each boot of its kernel another one.
 * Classes are made of the kernel's formats when an event is first seen; times
 * are made the host's.  No lock and no thread: the caller has them.
 */
#ifndef HYPERTRACE_FTRACE_RUNS_H
#define HYPERTRACE_FTRACE_RUNS_H

#include "hypertrace/ftrace-class.h"
#include "hypertrace/ftrace-follow.h"
#include "hypertrace/ftrace-time.h"
#include "hypertrace/queue.h"
#include "hypertrace/run.h"

/* Processors of all rings that are followed at a time */
#define HT_FT_STREAMS   HT_FT_CPUS_MAX
/* Enough for any run of ours: one event, of 64 KiB, behind others */
#define HT_FT_RUN_MAX   (128 * 1024)

/**
 * HtFtRunsOps: where runs go
 * @learn: the class table has grown
 * @post: takes a run of at most HT_FT_RUN_MAX bytes, which may be changed and
 *        is valid during the call; @fill is the stream's own, NULL at first
 * @release: nothing more is posted with @fill
 */
typedef struct HtFtRunsOps {
    void (*learn)(void *opaque);
    void (*post)(void *opaque, HtRun *run, HtBuffer **fill);
    void (*release)(void *opaque, HtBuffer **fill);
} HtFtRunsOps;

/**
 * HtFtRunsCounts: what was done since the begin
 * @events: posted
 * @raw: of these, without a format
 * @gaps: times that the guest overwrote what was not read yet
 * @lost: events in them, estimated
 * @boots: kernels that were told apart, of all rings
 * @steps: of guests' clocks; see HtFtTime
 */
typedef struct HtFtRunsCounts {
    uint64_t events;
    uint64_t raw;
    uint64_t gaps;
    uint64_t lost;
    uint64_t boots;
    uint64_t steps;
} HtFtRunsCounts;

/**
 * HtFtRuns: of all rings of a guest
 * @ops, @opaque: where runs go
 * @classes: the trace's, grows
 * @formats: of the guest's kernel, or NULL
 * @instances: stream instances of the trace so far
 * @counts: read by the caller
 */
typedef struct HtFtRuns {
    const HtFtRunsOps *ops;
    void *opaque;
    HtClassTable *classes;
    const HtFtFormats *formats;
    uint64_t *instances;
    HtFtRunsCounts counts;
    /*< private >*/
    bool used[HT_FT_STREAMS];
    int64_t open_us;            /* streams opened so far are paid for by then */
    uint16_t class_of[1 << 16]; /* id by event type; 0: not seen yet */
    uint16_t raw_class;
} HtFtRuns;

/**
 * ht_ft_runs_init: have the class of events without a format
 * @r: with the members before @counts set, and all else 0
 *
 * Returns: false if the table has no room for it
 */
bool ht_ft_runs_init(HtFtRuns *r);

typedef struct HtFtStream HtFtStream;

/**
 * HtFtFeed: what comes from one ring
 * @runs: where it goes
 * @number: of the ring, in names of streams
 * @taken: it is a kernel's and no copy: ht_ft_feed_begin()
 * @worst_ns: how wrong any date was at most, where that was known
 * @time: of the newest epoch and segment, and of the one before
 */
typedef struct HtFtFeed {
    HtFtRuns *runs;
    unsigned number;
    bool taken;
    uint64_t worst_ns;
    HtFtTime time[2];
    /*< private >*/
    uint32_t epoch;
    uint32_t segment;
    uint32_t cpus;              /* @streams of these */
    HtFtStream *streams[HT_FT_CPUS_MAX];
} HtFtFeed;

/**
 * ht_ft_feed_init: nothing is known of a ring
 * @f: the feed
 * @r: may have any number of them
 * @number: see HtFtFeed
 */
void ht_ft_feed_init(HtFtFeed *f, HtFtRuns *r, unsigned number);

/**
 * ht_ft_feed_stream: which stream a processor's events are in
 * @f: the feed
 * @cpu: of the ring
 *
 * Return: its index, or -1 if none is open for it.
 */
int ht_ft_feed_stream(const HtFtFeed *f, uint32_t cpu);

/**
 * ht_ft_feed_begin: from here on pieces are delivered
 * @f: not taken; what comes next is of a new follower of its ring
 */
void ht_ft_feed_begin(HtFtFeed *f);

/**
 * ht_ft_feed_ahead: HtFtFollowOps.ahead
 * @f: the feed, taken or not
 * @p: the piece
 */
void ht_ft_feed_ahead(HtFtFeed *f, const HtFtPiece *p);

/**
 * ht_ft_feed_piece: HtFtFollowOps.piece
 * @f: the feed, taken
 * @p: the piece; ht_ft_feed_ahead() has seen it
 */
void ht_ft_feed_piece(HtFtFeed *f, const HtFtPiece *p);

/**
 * ht_ft_feed_flush: post what is left of a look
 * @f: the feed
 */
void ht_ft_feed_flush(HtFtFeed *f);

/**
 * ht_ft_feed_lose: something is missing behind what was posted
 * @f: the feed
 */
void ht_ft_feed_lose(HtFtFeed *f);

/**
 * ht_ft_feed_close: flush and close all streams
 * @f: the feed; can go on, or be forgotten
 */
void ht_ft_feed_close(HtFtFeed *f);

#endif /* HYPERTRACE_FTRACE_RUNS_H */
