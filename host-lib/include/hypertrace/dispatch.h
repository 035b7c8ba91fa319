/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: deliver the runs of a guest's streams to sinks
 *
 * A sink consists of a session of a backend, a queue with a budget in bytes,
 * and a thread.  Posting a run never waits for a backend.  If a run exceeds the
 * budget of a sink, that sink discards the events of the run and counts them;
 * the other sinks still get them.
 *
 * Only the sink's own thread may wait for its backend.  If the backend cannot
 * block and the sink has delivered all earlier runs, the thread that posts a
 * run may deliver it.
 *
 * Each session has a lock, and so has the dispatcher; both are private.  Lock
 * order: the lock of a stream, the session's lock, the dispatcher's lock.  A
 * thread that holds the dispatcher's lock takes a session's lock by trylock
 * only.
 */
#ifndef HYPERTRACE_DISPATCH_H
#define HYPERTRACE_DISPATCH_H

#include "hypertrace/queue.h"

/* Minimum size of a buffer for a stream's events, in bytes */
#define HT_DISPATCH_BUFFER      (64 * 1024)

/* Maximum number of classes in one call of HtSinkOps.expect */
#define HT_DISPATCH_EXPECT_MAX  64

/*
 * Attempts to register the refused classes again: minimum interval in ns
 * between two attempts, and number of refusals after which an attempt ends
 */
#define HT_DISPATCH_RETRY_NS        INT64_C(1000000000)
#define HT_DISPATCH_RETRY_FAILURES  16

/* Minimum interval in ns between a sink's reports of refused classes */
#define HT_DISPATCH_REPORT_NS       INT64_C(1000000000)

typedef struct HtDispatch HtDispatch;

/**
 * HtSinkOps: callbacks of a session
 * @begin: or NULL; first call on the sink's thread
 * @expect: or NULL; announces the classes that @learn is called for next
 * @learn: or NULL if classes need no registration; registers a class before any
 *         run uses it.  Returns NULL, or the reason of a failure, for g_free().
 *         After a failure, the sink discards events of the class; when such
 *         events arrive, it calls @learn again, see HT_DISPATCH_RETRY_NS
 * @wants: or NULL if all events are always wanted; returns whether events of a
 *         class are of use now.  Must not block.  ht_dispatch_wants() calls it,
 *         even while the session is in another call on another thread, and for
 *         a class that was refused
 * @deliver: takes a run
 * @end: or NULL; last call on the sink's thread, after all runs were delivered
 * @gone: frees the session, which gets no further call.  Called by
 *        ht_dispatch_free(), or later through HtDispatchConfig.later
 *
 * The sink's thread makes all calls except those of @wants and @gone.  If the
 * session cannot block, a thread that posts may also call @deliver.
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
 * HtSinkConfig: description of a sink
 * @ops: callbacks of its session
 * @session: first argument of the callbacks
 * @id: name of the sink, for messages and statistics; copied
 * @may_block: @ops->deliver can sleep: only the sink's thread may call it
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
 * @classes: class table of the trace; must stay valid as long as a sink exists
 * @streams: number of streams; HtStreamInfo.index is less
 * @budget: maximum number of bytes queued for each sink; raised to four buffers
 *          if it is less.  Half of it is reserved for runs that are posted
 *          although ht_dispatch_room() returned false
 * @buffer: size of a buffer in bytes, at least the largest size passed to
 *          ht_dispatch_reserve(); raised to HT_DISPATCH_BUFFER if it is less
 * @now: or NULL for ht_now_ns(); returns the time in ns, for the intervals of
 *       retries and reports
 * @room: or NULL; called when a sink has room again after ht_dispatch_room()
 *        returned false.  A sink's thread calls it, with the dispatcher's lock
 *        held: it may wake a thread and must do nothing else
 * @progress: or NULL; while ht_dispatch_watch() is on, called after each item
 *            that a sink has delivered from its queue; context as for @room
 * @report: or NULL; shows the user that a sink refuses a class: one call for
 *          each sink in HT_DISPATCH_REPORT_NS at most.  Called on the sink's
 *          thread, also after ht_dispatch_free()
 * @later: or NULL; schedules a call of @fn(@arg) in the thread that calls
 *         ht_dispatch_free().  It is used to free a sink whose thread ended
 *         after ht_dispatch_free(); without @later such a sink is leaked
 * @opaque: argument of @room and @progress
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
 * @id: name of the sink
 * @events: number of events delivered to the backend or queued for it
 * @discarded: number of events discarded because the queue was full or the
 *             backend refused their class.  An event of a refused class is
 *             counted in @events until it leaves the queue
 * @queued: number of bytes of the budget in use
 * @items: number of items delivered from the queue so far; a sink that hangs
 *         does not increase it
 * @idle: the queue is empty, none of its items is being delivered, and all
 *        classes were passed to HtSinkOps.learn
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
 * ht_dispatch_new: create a dispatcher and its sinks
 * @cfg: the settings; copied.  @cfg->opaque is not used after
 *       ht_dispatch_free() has begun
 * @sinks: descriptions of the sinks
 * @count: number of @sinks, 1 to HT_QUEUES_MAX
 *
 * Runs can be posted immediately, but are delivered only after
 * ht_dispatch_start().
 */
HtDispatch *ht_dispatch_new(const HtDispatchConfig *cfg,
                            const HtSinkConfig *sinks, unsigned count);

/* ht_dispatch_start: start the sinks' threads; call this once */
void ht_dispatch_start(HtDispatch *d);

/**
 * ht_dispatch_end: deliver everything that was posted, then end the threads
 * @d: the dispatcher, after ht_dispatch_start()
 * @end_ns: time of ht_now_ns() until which to wait, in ns
 *
 * The caller must post nothing from here on.  If a thread has not ended in
 * time, call this again to wait longer.
 *
 * Returns: NULL, or the name of a sink whose thread has not ended
 */
const char *ht_dispatch_end(HtDispatch *d, int64_t end_ns);

/**
 * ht_dispatch_free: free the dispatcher and its sinks
 * @d: the dispatcher, after ht_dispatch_end() or never started; or NULL
 *
 * A sink whose thread has not ended stays allocated.  HtDispatchConfig.later
 * frees it when its thread ends.
 */
void ht_dispatch_free(HtDispatch *d);

/**
 * ht_dispatch_wait_idle: wait until everything that was posted is delivered,
 * and all classes of the table were passed to HtSinkOps.learn
 * @d: the dispatcher, after ht_dispatch_start()
 * @end_ns: time of ht_now_ns() until which to wait, in ns
 *
 * Returns: false if a sink was not idle in time
 *
 * Context: any thread
 */
bool ht_dispatch_wait_idle(HtDispatch *d, int64_t end_ns);

/**
 * ht_dispatch_posted: get the position after the last item posted, for each
 * sink
 * @d: the dispatcher
 * @posted: array of HT_QUEUES_MAX positions; filled in
 *
 * Context: any thread
 */
void ht_dispatch_posted(HtDispatch *d, uint32_t *posted);

/**
 * ht_dispatch_behind: find a sink that has not delivered all items before a
 * position
 * @d: the dispatcher
 * @posted: positions from ht_dispatch_posted(), less than 2^31 items ago
 *
 * Returns: the name of the sink, valid as long as @d; NULL if all sinks have
 * delivered these items
 *
 * Context: any thread
 */
const char *ht_dispatch_behind(HtDispatch *d, const uint32_t *posted);

/*
 * ht_dispatch_watch: switch calls of HtDispatchConfig.progress on or off.
 * Context: any thread
 */
void ht_dispatch_watch(HtDispatch *d, bool on);

/**
 * ht_dispatch_room: test whether at least one sink has room for a buffer
 * @d: the dispatcher
 *
 * If this returns false, HtDispatchConfig.room is called once when a sink has
 * room again.
 *
 * Context: any thread
 */
bool ht_dispatch_room(HtDispatch *d);

/**
 * ht_dispatch_reserve: get memory for events to be posted
 * @d: the dispatcher
 * @fill: the stream's buffer, or NULL if it has none; updated
 * @size: number of bytes, at most the size of a buffer
 *
 * Returns: the address of @size bytes
 *
 * Context: the stream's lock is held
 */
uint8_t *ht_dispatch_reserve(HtDispatch *d, HtBuffer **fill, size_t size);
/* ht_dispatch_release: drop a stream's reference to its buffer, if any */
void ht_dispatch_release(HtDispatch *d, HtBuffer **fill);

/**
 * ht_dispatch_post: post a run to all sinks
 * @d: the dispatcher
 * @run: the run
 * @b: the buffer that holds the run's events
 * @direct: the calling thread may deliver the run.  If this is false, the
 *          caller must call ht_dispatch_wake() after its last run
 *
 * Context: the stream's lock is held
 */
void ht_dispatch_post(HtDispatch *d, const HtRun *run, HtBuffer *b,
                      bool direct);

/**
 * ht_dispatch_wake: wake the threads of sinks that have runs to deliver or
 * classes to register
 * @d: the dispatcher
 *
 * Context: any thread
 */
void ht_dispatch_wake(HtDispatch *d);

/**
 * ht_dispatch_wants: test whether any backend wants events of a class
 * @d: the dispatcher
 * @c: the class
 *
 * Returns: true if a backend wants events of the class, or if a sink has not
 * passed the class to HtSinkOps.learn yet
 *
 * Context: the thread that calls ht_dispatch_free()
 */
bool ht_dispatch_wants(HtDispatch *d, const HtClass *c);
/*
 * ht_dispatch_chooses: test whether ht_dispatch_wants() can return false for a
 * class that all sinks know.  Context: the thread that calls ht_dispatch_free()
 */
bool ht_dispatch_chooses(const HtDispatch *d);

unsigned ht_dispatch_count(const HtDispatch *d);
/* ht_dispatch_stats: get the counters of a sink.  Context: any thread */
void ht_dispatch_stats(HtDispatch *d, unsigned sink, HtSinkStats *stats);

#endif /* HYPERTRACE_DISPATCH_H */
