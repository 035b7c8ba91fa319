/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: from the streams of a guest to its sinks
 *
 * A sink has a session of a backend, a queue with a budget, and a thread.
 * Posting a run never waits for a backend.  A sink that has no budget for a
 * run discards it for itself, and counts it.  Only a sink's own thread waits
 * for its backend; a backend that cannot block may also be called by the thread
 * that posts, if the sink has delivered everything that was posted before.
 *
 * The locks are private.  Lock order: the lock of a stream, the session's lock,
 * then the dispatcher's; a thread that has the dispatcher's lock only tries to
 * take a session's.
 */
#ifndef HYPERTRACE_DISPATCH_H
#define HYPERTRACE_DISPATCH_H

#include "hypertrace/queue.h"

/* Bytes of a stream's buffer, unless packets are larger */
#define HT_DISPATCH_BUFFER      (64 * 1024)

/* Classes that HtSinkOps.expect announces at a time, at most */
#define HT_DISPATCH_EXPECT_MAX  64

/*
 * How soon a backend is asked again for the classes that it refused, and how
 * many it may refuse then before the attempt ends
 */
#define HT_DISPATCH_RETRY_NS        INT64_C(1000000000)
#define HT_DISPATCH_RETRY_FAILURES  16

/* Interval of reports about classes that a backend refuses */
#define HT_DISPATCH_REPORT_NS       INT64_C(1000000000)

typedef struct HtDispatch HtDispatch;

/**
 * HtSinkOps: calls of a session
 * @begin: first call on the sink's thread; may be NULL
 * @expect: announce classes that @learn is called for next; may be NULL
 * @learn: learn a class before any run uses it.  Returns NULL, or a reason to
 *         be freed: then the session's events of the class are discarded, and
 *         it is asked again later.  NULL: there is nothing to learn
 * @wants: return whether events of a class are of any use now.  Any thread,
 *         also while the session is in another call, and for a class that was
 *         refused.  Must not block.  NULL: all are, always
 * @deliver: take a run
 * @end: last call on the sink's thread, after everything was delivered; may be
 *       NULL
 * @gone: free the session, which is no longer used.  Called by
 *        ht_dispatch_free(), or later through HtDispatchConfig.later
 *
 * A session is in one call at a time, on the sink's own thread.  @wants is an
 * exception; @deliver also runs on a thread that posts, if the session cannot
 * block.
 */
typedef struct HtSinkOps {
    void (*begin)(void *session);
    void (*expect)(void *session, HtClass *const *classes, unsigned count);
    char *(*learn)(void *session, const HtClass *c);
    bool (*wants)(void *session, const HtClass *c);
    void (*deliver)(void *session, const HtRun *run);
    void (*end)(void *session);
    void (*gone)(void *session);
} HtSinkOps;

/**
 * HtSinkConfig: a sink
 * @ops: its calls
 * @session: their argument
 * @id: name for messages and statistics; copied
 * @may_block: @ops->deliver can sleep
 */
typedef struct HtSinkConfig {
    const HtSinkOps *ops;
    void *session;
    const char *id;
    bool may_block;
} HtSinkConfig;

/**
 * HtDispatchConfig: settings of a dispatcher
 * @name: name of the trace, for @report; copied
 * @classes: classes of the trace; the table outlives all sinks
 * @streams: streams have an index below this
 * @budget: bytes that may wait for each sink, committed and not yet delivered;
 *          half of them for runs that are posted although ht_dispatch_room()
 *          says no.  At least four buffers are used
 * @buffer: bytes of a buffer, at least of the largest ht_dispatch_reserve()
 * @now: current time in ns, for retries and reports; NULL: ht_now_ns()
 * @room: called when a sink got room after ht_dispatch_room() found none, with
 *        a lock held: it may wake a thread, and no more.  Any thread.  NULL:
 *        nobody asks
 * @progress: called after each item that a sink delivered, likewise, while
 *            ht_dispatch_watch() is on
 * @report: tell people about a class that a sink refuses: at most one call for
 *          a sink in HT_DISPATCH_REPORT_NS.  The sink's thread, also after
 *          ht_dispatch_free().  May be NULL
 * @later: run a function where ht_dispatch_free() is called from; for sinks
 *         that hang when the dispatcher is freed.  NULL: those are leaked
 * @opaque: for @room and @progress
 */
typedef struct HtDispatchConfig {
    const char *name;
    const HtClassTable *classes;
    uint32_t streams;
    size_t budget;
    size_t buffer;
    int64_t (*now)(void);
    void (*room)(void *opaque);
    void (*progress)(void *opaque);
    void (*report)(const char *name, const char *id, const char *text);
    void (*later)(void (*fn)(void *arg), void *arg);
    void *opaque;
} HtDispatchConfig;

/**
 * HtSinkStats: counters of a sink
 * @id: its name
 * @events: given to the backend, or queued for it
 * @discarded: all other events: the queue was full, or the backend refused
 *             their class, which is found out when they leave the queue
 * @queued: bytes of the budget in use
 * @items: runs and marks delivered so far: does a sink get on?
 * @idle: nothing is queued, nor being delivered
 */
typedef struct HtSinkStats {
    const char *id;
    uint64_t events;
    uint64_t discarded;
    uint64_t queued;
    uint64_t items;
    bool idle;
} HtSinkStats;

/**
 * ht_dispatch_new: prepare sinks
 * @cfg: copied; @opaque is not used after ht_dispatch_free() began
 * @sinks: the sinks
 * @count: 1 to HT_QUEUES_MAX
 *
 * Runs can be posted; nothing is delivered before ht_dispatch_start().
 */
HtDispatch *ht_dispatch_new(const HtDispatchConfig *cfg,
                            const HtSinkConfig *sinks, unsigned count);

/* ht_dispatch_start: start the sinks' threads; once */
void ht_dispatch_start(HtDispatch *d);

/**
 * ht_dispatch_end: deliver what was posted, and end the threads
 * @d: was started
 * @end_ns: until when to wait, of ht_now_ns()
 *
 * Nothing may be posted any more.  May be called again, to wait longer.
 *
 * Returns: NULL, or the name of a sink that has not ended
 */
const char *ht_dispatch_end(HtDispatch *d, int64_t end_ns);

/**
 * ht_dispatch_free: free sinks
 * @d: ht_dispatch_end() was called, or ht_dispatch_start() was not; or NULL
 *
 * A sink that has not ended is left alone, and freed when it comes back.
 */
void ht_dispatch_free(HtDispatch *d);

/**
 * ht_dispatch_wait_idle: wait until everything posted was delivered
 * @d: was started
 * @end_ns: until when, of ht_now_ns()
 *
 * Returns: false if it was not
 *
 * Context: any thread
 */
bool ht_dispatch_wait_idle(HtDispatch *d, int64_t end_ns);

/**
 * ht_dispatch_posted: note what was posted so far
 * @d: the dispatcher
 * @posted: HT_QUEUES_MAX; filled in
 *
 * Context: any thread
 */
void ht_dispatch_posted(HtDispatch *d, uint32_t *posted);

/**
 * ht_dispatch_behind: find a sink that has not taken all of that
 * @d: the dispatcher
 * @posted: of ht_dispatch_posted(), less than 2^31 items ago
 *
 * Returns: its name, valid as long as @d, or NULL
 *
 * Context: any thread
 */
const char *ht_dispatch_behind(HtDispatch *d, const uint32_t *posted);

/* ht_dispatch_watch: switch HtDispatchConfig.progress.  Context: any thread */
void ht_dispatch_watch(HtDispatch *d, bool on);

/**
 * ht_dispatch_room: return whether a sink has budget for a buffer
 *
 * If not, HtDispatchConfig.room will be called.  Context: any thread
 */
bool ht_dispatch_room(HtDispatch *d);

/**
 * ht_dispatch_reserve: get memory for events to be posted
 * @d: the dispatcher
 * @fill: a stream's buffer, or NULL; updated
 * @size: bytes, at most those of a buffer
 *
 * Context: the stream's lock is held
 */
uint8_t *ht_dispatch_reserve(HtDispatch *d, HtBuffer **fill, size_t size);
/* ht_dispatch_release: give up a stream's buffer, or NULL */
void ht_dispatch_release(HtDispatch *d, HtBuffer **fill);

/**
 * ht_dispatch_post: give a run to all sinks
 * @d: the dispatcher
 * @run: any run
 * @b: the buffer that its events are in
 * @direct: the caller may deliver.  If not, it calls ht_dispatch_wake() when it
 *          has posted everything
 *
 * Context: the stream's lock is held
 */
void ht_dispatch_post(HtDispatch *d, const HtRun *run, HtBuffer *b,
                      bool direct);

/**
 * ht_dispatch_wake: have what was posted delivered, and new classes learnt
 * @d: the dispatcher
 *
 * Context: any thread
 */
void ht_dispatch_wake(HtDispatch *d);

/**
 * ht_dispatch_wants: return whether a backend wants events of a class
 * @d: the dispatcher
 * @c: the class
 *
 * Also true while a sink has not learnt the class, and so cannot say.
 *
 * Context: where ht_dispatch_free() is called
 */
bool ht_dispatch_wants(HtDispatch *d, const HtClass *c);
/* ht_dispatch_chooses: return whether that may change with time.  Likewise */
bool ht_dispatch_chooses(const HtDispatch *d);

unsigned ht_dispatch_count(const HtDispatch *d);
/* ht_dispatch_stats: get what a sink did.  Context: any thread */
void ht_dispatch_stats(HtDispatch *d, unsigned sink, HtSinkStats *stats);

#endif /* HYPERTRACE_DISPATCH_H */
