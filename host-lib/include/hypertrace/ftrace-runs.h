/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: convert the records of ftrace rings to runs of typed events
 *
 * Each processor of a ring is a stream.  A reboot of the guest starts new
 * streams, unless too many were opened in a short time.  When the first event
 * of a type arrives, a class is made from the kernel's format of the type.  If
 * there is no format, or no room for the class, the event has the class
 * ftrace.raw.  Time stamps are converted to the host's clock.
 *
 * Context: no locking; the caller serializes all calls for an HtFtRuns.
 */
#ifndef HYPERTRACE_FTRACE_RUNS_H
#define HYPERTRACE_FTRACE_RUNS_H

#include "hypertrace/ftrace-class.h"
#include "hypertrace/ftrace-follow.h"
#include "hypertrace/ftrace-time.h"
#include "hypertrace/queue.h"
#include "hypertrace/run.h"

/*
 * Maximum number of streams that are open at the same time, of all rings of an
 * HtFtRuns
 */
#define HT_FT_STREAMS   HT_FT_CPUS_MAX
/*
 * Maximum size of a run in bytes: a run has up to 48 KiB of events, and one
 * more event of up to 64 KiB
 */
#define HT_FT_RUN_MAX   (128 * 1024)

/**
 * HtFtRunsOps: callbacks that receive the runs
 * @learn: called after a class was added to HtFtRuns.classes
 * @post: takes a run of at most HT_FT_RUN_MAX bytes.  The callback may change
 *        the run, which is valid during the call only.  @fill belongs to the
 *        stream and is NULL at first.
 * @release: called when a stream closes: drops the reference in @fill
 */
typedef struct HtFtRunsOps {
    void (*learn)(void *opaque);
    void (*post)(void *opaque, HtRun *run, HtBuffer **fill);
    void (*release)(void *opaque, HtBuffer **fill);
} HtFtRunsOps;

/**
 * HtFtRuns: the converter for all rings of a guest
 * @ops: receives the runs
 * @opaque: passed to @ops
 * @classes: class table of the trace; classes are added to it
 * @formats: event formats of the guest's kernel, or NULL
 * @instances: number of stream instances of the trace so far; incremented for
 *             each stream that is opened
 * @dropped: number of events that had no stream, with estimates of lost ones,
 *           because too many streams are open or were opened in a short time
 */
typedef struct HtFtRuns {
    const HtFtRunsOps *ops;
    void *opaque;
    HtClassTable *classes;
    const HtFtFormats *formats;
    uint64_t *instances;
    uint64_t dropped;
    /*< private >*/
    bool used[HT_FT_STREAMS];
    /* time in us up to which new streams have used the budget: see OPEN_US */
    int64_t open_us;
    /*
     * by the kernel's event type: id of the class; 0: no event of this type has
     * arrived yet
     */
    uint16_t class_of[1 << 16];
    uint16_t raw_class;
} HtFtRuns;

/**
 * ht_ft_runs_init: initialize a converter, with the class of events without a
 * format
 * @r: the converter, with its public members set and all others 0
 *
 * Returns: false if the class table is full
 */
bool ht_ft_runs_init(HtFtRuns *r);

typedef struct HtFtStream HtFtStream;

/**
 * HtFtFeed: the state of one ring
 * @runs: the converter
 * @number: number of the ring, used in names of streams
 * @time: relations of the guest's clock to the host's: of the newest segment,
 *        and of the previous one
 */
typedef struct HtFtFeed {
    HtFtRuns *runs;
    unsigned number;
    HtFtTime time[2];
    /*< private >*/
    uint32_t epoch;
    uint32_t segment;
    uint32_t cpus;              /* number of elements of @streams in use */
    HtFtStream *streams[HT_FT_CPUS_MAX];
} HtFtFeed;

/**
 * ht_ft_feed_init: initialize the state of a ring
 * @f: the state
 * @r: the converter; it serves any number of rings
 * @number: number of the ring, used in names of streams
 */
void ht_ft_feed_init(HtFtFeed *f, HtFtRuns *r, unsigned number);

/**
 * ht_ft_feed_begin: start to deliver pieces of a new follower of the ring
 * @f: the ring
 *
 * The new follower counts epochs and segments from 0.
 */
void ht_ft_feed_begin(HtFtFeed *f);

/**
 * ht_ft_feed_ahead: use a piece's bounds on the clock; called by
 * HtFtFollowOps.ahead
 * @f: the ring; ht_ft_feed_begin() need not have been called
 * @p: the piece
 */
void ht_ft_feed_ahead(HtFtFeed *f, const HtFtPiece *p);

/**
 * ht_ft_feed_piece: convert and post a piece; called by HtFtFollowOps.piece
 * @f: the ring; ht_ft_feed_begin() was called
 * @p: the piece; ht_ft_feed_ahead() was called for it before
 */
void ht_ft_feed_piece(HtFtFeed *f, const HtFtPiece *p);

/**
 * ht_ft_feed_flush: post the events that wait in partly filled runs
 * @f: the ring
 */
void ht_ft_feed_flush(HtFtFeed *f);

/**
 * ht_ft_feed_close: flush and close all streams
 * @f: the ring; may be used further, and holds no memory after the call
 */
void ht_ft_feed_close(HtFtFeed *f);

#endif /* HYPERTRACE_FTRACE_RUNS_H */
