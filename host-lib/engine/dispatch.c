/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: deliver the runs of a guest's streams to the sinks of its trace
 *
 * tests/model/sink.pml models the queue, the delivery by the posting thread,
 * and the end.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/dispatch.h"
#include "hypertrace/thread.h"

typedef struct HtSink {
    HtDispatch *all;
    const HtSinkOps *ops;
    void *session;
    char *id;
    /*
     * the session's deliver() cannot block, so a thread that posts may call it
     */
    bool direct;
    HtThread thread;
    HtCond wake;

    /* HtDispatch.lock protects the members from @queue to @left */
    HtQueue queue;
    /* number of items that @thread has delivered */
    uint64_t items;
    bool end;                   /* asks @thread to end */
    /* @thread makes no more calls of the session */
    bool ended;
    /*
     * ht_dispatch_free() did not free the sink: when @thread ends, it schedules
     * sink_free() by HtDispatchConfig.later
     */
    bool left;

    /* the session's lock; protects the following members */
    HtMutex lock;
    /* learn() was called for the classes up to this id; atomic */
    uint32_t learnt;
    /* number of classes that the session refuses now; written atomically */
    unsigned nr_refused;
    /* bitmap, by class id, of the classes that the session refuses now */
    uint64_t refused[HT_CLASSES_MAX / 64 + 1];
    /* class id that the last retry of refused classes has reached */
    uint32_t next_try;
    /* time at which the last retry of refused classes began */
    int64_t tried_ns;
    /* time of the last report of a refused class */
    int64_t reported_ns;
    /* number of classes refused since @reported_ns */
    unsigned unreported;
    /*
     * by stream: description of the instance opened last, to which runs from
     * the queue refer
     */
    HtStreamInfo *streams;
    /*
     * by stream: number of events of the instance opened last that were
     * discarded because their class was refused
     */
    uint64_t *missing;
    /*
     * number of events of all instances that were discarded because their class
     * was refused; written atomically
     */
    uint64_t nr_missing;
} HtSink;

struct HtDispatch {
    HtDispatchConfig cfg;
    char *name;
    HtSink *sink[HT_QUEUES_MAX];
    unsigned count;
    bool started;

    HtMutex lock;               /* protects the following members */
    /*
     * signalled when a sink's thread has emptied the queue, or has ended
     */
    HtCond idle;
    HtPool pool;
    /* reference count: 1 until ht_dispatch_free(), and 1 for each sink */
    unsigned users;
    /* ht_dispatch_room() returned false: call HtDispatchConfig.room later */
    bool starved;
    bool watched;
    /* ht_dispatch_free() was called: do not use HtDispatchConfig.opaque */
    bool freed;
};

static int64_t now(const HtDispatch *d)
{
    return d->cfg.now ? d->cfg.now() : ht_now_ns();
}

static bool is_refused(const HtSink *sink, uint32_t id)
{
    return sink->refused[id / 64] >> id % 64 & 1;
}

/* Classes ------------------------------------------------------------------ */

/*
 * Report a class that a sink refuses, at most once in HT_DISPATCH_REPORT_NS for
 * each sink, because the guest chooses the number of classes.  Context: the
 * session's lock is held
 */
static void report_refused(HtSink *sink, const HtClass *c, const char *why)
{
    g_autofree char *text = NULL, *more = NULL;
    int64_t ns = now(sink->all);

    if (sink->reported_ns && ns - sink->reported_ns < HT_DISPATCH_REPORT_NS) {
        sink->unreported++;
        return;
    }
    if (sink->unreported) {
        more = g_strdup_printf("; %u more classes were refused before",
                               sink->unreported);
    }
    text = g_strdup_printf("events of class %s are discarded: %s%s", c->name,
                           why, more ? more : "");
    if (sink->all->cfg.report) {
        sink->all->cfg.report(sink->all->name, sink->id, text);
    }
    sink->unreported = 0;
    sink->reported_ns = MAX(ns, 1);
}

/*
 * Register a class with the session.  Returns false if the session refuses it.
 * Context: the sink's thread, the session's lock is held
 */
static bool learn(HtSink *sink, uint32_t id)
{
    const HtClass *c = ht_class_table_get(sink->all->cfg.classes, id);
    g_autofree char *why = sink->ops->learn ?
                           sink->ops->learn(sink->session, c) : NULL;

    if (!why == !is_refused(sink, id)) {
        return !why;
    }
    sink->refused[id / 64] ^= UINT64_C(1) << id % 64;
    ht_atomic_set(&sink->nr_refused, sink->nr_refused + (why ? 1 : -1));
    if (why) {
        report_refused(sink, c, why);
    }
    return !why;
}

/*
 * Call learn() for each class up to the id @count for which it was not called
 * yet.  Context: as learn(); any thread if there is no such class
 */
static void learn_up_to(HtSink *sink, uint32_t count)
{
    HtClass *const *classes = sink->all->cfg.classes->by_id;
    uint32_t first = sink->learnt + 1, id;

    for (id = first; id <= count; id++) {
        if ((id - first) % HT_DISPATCH_EXPECT_MAX == 0 && sink->ops->expect) {
            sink->ops->expect(sink->session, &classes[id],
                              MIN(count + 1 - id, HT_DISPATCH_EXPECT_MAX));
        }
        learn(sink, id);
    }
    /*
     * Other threads read @learnt without the lock.  With an old value they may
     * queue a run that they could deliver, or leave a class on that no sink
     * wants.
     */
    ht_atomic_set(&sink->learnt, MAX(sink->learnt, count));
}

/*
 * Try again to register the classes that the session refuses.  A call stops
 * after HT_DISPATCH_RETRY_FAILURES refusals, because a session may never accept
 * them.  The next call continues with the next class.  Context: as learn()
 */
static void learn_again(HtSink *sink)
{
    unsigned left = sink->nr_refused, failures = 0;
    uint32_t id = sink->next_try;

    while (left && failures < HT_DISPATCH_RETRY_FAILURES) {
        id = id >= sink->learnt ? 1 : id + 1;
        if (is_refused(sink, id)) {
            left--;
            failures += !learn(sink, id);
        }
    }
    sink->next_try = id;
}

/*
 * Test whether the session has accepted the class @id.  If the class is
 * refused, and the last retry is at least HT_DISPATCH_RETRY_NS ago, call
 * learn_again() before the test.
 * Context: as learn()
 */
static bool is_known(HtSink *sink, uint32_t id)
{
    if (G_LIKELY(!is_refused(sink, id))) {
        return true;
    }
    if (now(sink->all) - sink->tried_ns >= HT_DISPATCH_RETRY_NS) {
        sink->tried_ns = now(sink->all);
        learn_again(sink);
    }
    return !is_refused(sink, id);
}

/* Delivery ----------------------------------------------------------------- */

static void deliver_part(HtSink *sink, HtRun *part, const uint8_t *end)
{
    if (part->events) {
        part->size = end - part->data;
        sink->ops->deliver(sink->session, part);
        part->events = 0;
        part->flags = 0;
    }
}

/*
 * Deliver a run without the events of refused classes, which count as
 * discarded.
 *
 * Context: as learn()
 */
static void deliver_known(HtSink *sink, const HtRun *run)
{
    uint64_t *missing = &sink->missing[run->stream->index];
    HtRun part = *run;
    HtRunIter it;
    HtEvent ev;

    part.events = 0;
    ht_run_iter_init(&it, run, sink->all->cfg.classes);
    for (;;) {
        const uint8_t *begin = it.p;

        if (!ht_run_next(&it, &ev)) {
            deliver_part(sink, &part, begin);
            break;
        }
        if (!is_known(sink, ev.cls->id)) {
            deliver_part(sink, &part, begin);
            ++*missing;
            ht_atomic_set(&sink->nr_missing, sink->nr_missing + 1);
            /*
             * Without the refused event, the next event may be 2^24 ns or more
             * later than the last one delivered: mark the next part as cut.
             */
            part.flags |= HT_RUN_CUT;
            continue;
        }
        if (part.events++ == 0) {
            part.data = begin;
            part.begin_ns = ev.ns;
            part.discarded = run->discarded + *missing;
        }
        part.end_ns = ev.ns;
    }
}

/* Context: the session's lock is held, the dispatcher's is not */
static void deliver(HtSink *sink, HtRun *run)
{
    uint32_t index = run->stream->index;

    learn_up_to(sink, run->classes);
    if (run->flags & HT_RUN_OPEN) {
        sink->streams[index] = *run->stream;
        sink->missing[index] = 0;
    }
    if (run->events && sink->nr_refused) {
        deliver_known(sink, run);
        return;
    }
    run->discarded += sink->missing[index];
    sink->ops->deliver(sink->session, run);
}

/* Test whether any sink has room.  Context: the dispatcher's lock is held */
static bool any_room(HtDispatch *d)
{
    unsigned i;

    for (i = 0; i < d->count; i++) {
        if (ht_queue_room(&d->sink[i]->queue)) {
            return true;
        }
    }
    return false;
}

/*
 * After an item was delivered, call HtDispatchConfig.progress and .room if they
 * are due.  Context: the dispatcher's lock is held
 */
static void notify(HtDispatch *d)
{
    if (d->freed) {
        return;
    }
    if (d->watched && d->cfg.progress) {
        d->cfg.progress(d->cfg.opaque);
    }
    if (d->starved && any_room(d)) {
        d->starved = false;
        if (d->cfg.room) {
            d->cfg.room(d->cfg.opaque);
        }
    }
}

/*
 * Deliver an item from the queue.  Context: the session's lock and the
 * dispatcher's are held; the dispatcher's is released during the delivery
 */
static void deliver_item(HtSink *sink, HtQueued *item)
{
    HtDispatch *d = sink->all;

    ht_mutex_unlock(&d->lock);
    if (!item->info) {
        item->run.stream = &sink->streams[item->index];
    }
    deliver(sink, &item->run);
    ht_mutex_lock(&d->lock);
    ht_queue_done(&sink->queue, item);
    sink->items++;
    notify(d);
}

static bool sink_is_idle(HtSink *sink)
{
    return ht_queue_empty(&sink->queue) &&
           ht_atomic_read(&sink->learnt) >=
           ht_class_table_count(sink->all->cfg.classes);
}

static void dispatch_unref(HtDispatch *d)
{
    bool last;

    ht_mutex_lock(&d->lock);
    last = --d->users == 0;
    ht_mutex_unlock(&d->lock);
    if (last) {
        ht_pool_destroy(&d->pool);
        ht_cond_destroy(&d->idle);
        ht_mutex_destroy(&d->lock);
        g_free(d->name);
        g_free(d);
    }
}

/*
 * Free a sink whose thread has ended or was never started.  Context: the thread
 * that calls ht_dispatch_free()
 */
static void sink_free(void *opaque)
{
    HtSink *sink = opaque;
    HtDispatch *d = sink->all;

    if (d->started) {
        ht_thread_join(&sink->thread);
    }
    sink->ops->gone(sink->session);
    ht_mutex_lock(&d->lock);
    ht_queue_destroy(&sink->queue);
    ht_mutex_unlock(&d->lock);
    ht_mutex_destroy(&sink->lock);
    ht_cond_destroy(&sink->wake);
    g_free(sink->streams);
    g_free(sink->missing);
    g_free(sink->id);
    g_free(sink);
    dispatch_unref(d);
}

static void *sink_thread(void *opaque)
{
    HtSink *sink = opaque;
    HtDispatch *d = sink->all;
    HtQueued item;

    if (sink->ops->begin) {
        sink->ops->begin(sink->session);
    }
    for (;;) {
        ht_mutex_lock(&sink->lock);
        learn_up_to(sink, ht_class_table_count(d->cfg.classes));
        ht_mutex_lock(&d->lock);
        while (ht_queue_take(&sink->queue, &item)) {
            deliver_item(sink, &item);
        }
        ht_mutex_unlock(&sink->lock);
        ht_cond_broadcast(&d->idle);
        if (sink_is_idle(sink)) {
            if (sink->end) {
                break;
            }
            ht_cond_wait(&sink->wake, &d->lock);
        }
        ht_mutex_unlock(&d->lock);
    }
    if (sink->ops->end) {
        ht_mutex_unlock(&d->lock);
        sink->ops->end(sink->session);
        ht_mutex_lock(&d->lock);
    }
    sink->ended = true;
    ht_cond_broadcast(&d->idle);
    if (sink->left && d->cfg.later) {
        d->cfg.later(sink_free, sink);
    }
    ht_mutex_unlock(&d->lock);
    return NULL;
}

/* The sinks ---------------------------------------------------------------- */

static void sink_new(HtDispatch *d, const HtSinkConfig *cfg)
{
    HtSink *sink = g_new0(HtSink, 1);

    sink->all = d;
    sink->ops = cfg->ops;
    sink->session = cfg->session;
    sink->id = g_strdup(cfg->id);
    sink->direct = !cfg->may_block;
    /* a time long ago: the first event of a refused class causes a retry */
    sink->tried_ns = INT64_MIN / 2;
    ht_mutex_init(&sink->lock);
    ht_cond_init(&sink->wake);
    sink->streams = g_new0(HtStreamInfo, d->cfg.streams);
    sink->missing = g_new0(uint64_t, d->cfg.streams);
    ht_queue_init(&sink->queue, &d->pool, d->count, d->cfg.budget,
                  d->cfg.streams);
    d->sink[d->count++] = sink;
    d->users++;
}

HtDispatch *ht_dispatch_new(const HtDispatchConfig *cfg,
                            const HtSinkConfig *sinks, unsigned count)
{
    HtDispatch *d = g_new0(HtDispatch, 1);
    unsigned i;

    g_assert(count >= 1 && count <= HT_QUEUES_MAX);
    d->cfg = *cfg;
    d->name = g_strdup(cfg->name);
    d->cfg.buffer = MAX(HT_DISPATCH_BUFFER, cfg->buffer);
    d->cfg.budget = MAX(cfg->budget, 4 * d->cfg.buffer);
    d->users = 1;
    d->pool.size = d->cfg.buffer;
    ht_mutex_init(&d->lock);
    ht_cond_init(&d->idle);
    for (i = 0; i < count; i++) {
        sink_new(d, &sinks[i]);
    }
    return d;
}

void ht_dispatch_start(HtDispatch *d)
{
    unsigned i;

    d->started = true;
    for (i = 0; i < d->count; i++) {
        ht_thread_start(&d->sink[i]->thread, "hypertrace-sink", sink_thread,
                        d->sink[i]);
    }
}

static bool sink_has_ended(HtSink *sink)
{
    return sink->ended;
}

/*
 * Wait for one sink after the other until @done returns true for it, or until
 * @end_ns.  Returns NULL, or the sink for which @done is false at @end_ns.
 * Context: the dispatcher's lock is held
 */
static HtSink *wait_for(HtDispatch *d, bool (*done)(HtSink *sink),
                        int64_t end_ns)
{
    unsigned i;

    for (i = 0; i < d->count; i++) {
        while (!done(d->sink[i])) {
            if (!ht_cond_wait_until(&d->idle, &d->lock, end_ns) &&
                !done(d->sink[i])) {
                return d->sink[i];
            }
        }
    }
    return NULL;
}

const char *ht_dispatch_end(HtDispatch *d, int64_t end_ns)
{
    const HtSink *behind;
    unsigned i;

    ht_mutex_lock(&d->lock);
    for (i = 0; i < d->count; i++) {
        d->sink[i]->end = true;
        ht_cond_signal(&d->sink[i]->wake);
    }
    behind = wait_for(d, sink_has_ended, end_ns);
    ht_mutex_unlock(&d->lock);
    return behind ? behind->id : NULL;
}

void ht_dispatch_free(HtDispatch *d)
{
    HtSink *ended[HT_QUEUES_MAX];
    unsigned i, n = 0;

    if (!d) {
        return;
    }
    ht_mutex_lock(&d->lock);
    d->freed = true;
    for (i = 0; i < d->count; i++) {
        if (d->sink[i]->ended || !d->started) {
            ended[n++] = d->sink[i];
        } else {
            d->sink[i]->left = true;
        }
    }
    /*
     * Do not access sinks with @left from here on: their threads schedule
     * sink_free().
     */
    d->count = 0;
    ht_mutex_unlock(&d->lock);
    while (n) {
        sink_free(ended[--n]);
    }
    dispatch_unref(d);
}

bool ht_dispatch_wait_idle(HtDispatch *d, int64_t end_ns)
{
    bool idle;

    ht_mutex_lock(&d->lock);
    idle = !wait_for(d, sink_is_idle, end_ns);
    ht_mutex_unlock(&d->lock);
    return idle;
}

void ht_dispatch_posted(HtDispatch *d, uint32_t *posted)
{
    unsigned i;

    ht_mutex_lock(&d->lock);
    for (i = 0; i < d->count; i++) {
        posted[i] = ht_queue_posted(&d->sink[i]->queue);
    }
    ht_mutex_unlock(&d->lock);
}

const char *ht_dispatch_behind(HtDispatch *d, const uint32_t *posted)
{
    const char *behind = NULL;
    unsigned i;

    ht_mutex_lock(&d->lock);
    for (i = 0; i < d->count && !behind; i++) {
        if (!ht_queue_done_with(&d->sink[i]->queue, posted[i])) {
            behind = d->sink[i]->id;
        }
    }
    ht_mutex_unlock(&d->lock);
    return behind;
}

void ht_dispatch_watch(HtDispatch *d, bool on)
{
    ht_mutex_lock(&d->lock);
    d->watched = on;
    ht_mutex_unlock(&d->lock);
}

bool ht_dispatch_room(HtDispatch *d)
{
    bool room;

    ht_mutex_lock(&d->lock);
    room = any_room(d);
    d->starved |= !room;
    ht_mutex_unlock(&d->lock);
    return room;
}

uint8_t *ht_dispatch_reserve(HtDispatch *d, HtBuffer **fill, size_t size)
{
    uint8_t *p;

    ht_mutex_lock(&d->lock);
    p = ht_pool_reserve(&d->pool, fill, size);
    ht_mutex_unlock(&d->lock);
    return p;
}

void ht_dispatch_release(HtDispatch *d, HtBuffer **fill)
{
    ht_mutex_lock(&d->lock);
    ht_pool_unref(&d->pool, *fill);
    *fill = NULL;
    ht_mutex_unlock(&d->lock);
}

/*
 * Test whether this thread may deliver a run itself; if so, return with the
 * session's lock held.  Runs of a stream stay in order: the caller holds the
 * stream's lock, and the sink's queue is empty.  The run must be queued until
 * the sink's thread has called learn() for all classes of the run, and also
 * while the session refuses any class.
 *
 * Context: the dispatcher's lock is held
 */
static bool begin_direct(HtSink *sink, const HtRun *run)
{
    return sink->direct && sink->all->started &&
           ht_queue_empty(&sink->queue) &&
           ht_atomic_read(&sink->learnt) >= run->classes &&
           !ht_atomic_read(&sink->nr_refused) && ht_mutex_trylock(&sink->lock);
}

void ht_dispatch_post(HtDispatch *d, const HtRun *run, HtBuffer *b, bool direct)
{
    HtSink *begun[HT_QUEUES_MAX];
    HtRun passed[HT_QUEUES_MAX];
    unsigned i, n = 0;

    ht_mutex_lock(&d->lock);
    for (i = 0; i < d->count; i++) {
        HtSink *sink = d->sink[i];
        bool was_idle;

        if (direct && begin_direct(sink, run)) {
            begun[n] = sink;
            passed[n] = *run;
            ht_queue_pass(&sink->queue, &passed[n++]);
            continue;
        }
        was_idle = ht_queue_empty(&sink->queue);
        ht_queue_post(&sink->queue, run, b);
        /*
         * Without @direct, the caller calls ht_dispatch_wake() after its last
         * run.  Until then, wake the thread only if more than a quarter of the
         * queue is in use.
         */
        if (direct ? was_idle : ht_queue_filling(&sink->queue)) {
            ht_cond_signal(&sink->wake);
        }
    }
    ht_mutex_unlock(&d->lock);
    for (i = 0; i < n; i++) {
        deliver(begun[i], &passed[i]);
        ht_mutex_unlock(&begun[i]->lock);
    }
}

void ht_dispatch_wake(HtDispatch *d)
{
    unsigned i;

    ht_mutex_lock(&d->lock);
    for (i = 0; i < d->count; i++) {
        if (!sink_is_idle(d->sink[i])) {
            ht_cond_signal(&d->sink[i]->wake);
        }
    }
    ht_mutex_unlock(&d->lock);
}

bool ht_dispatch_wants(HtDispatch *d, const HtClass *c)
{
    unsigned i;

    for (i = 0; i < d->count; i++) {
        const HtSink *sink = d->sink[i];

        if (ht_atomic_read(&sink->learnt) < c->id || !sink->ops->wants ||
            sink->ops->wants(sink->session, c)) {
            return true;
        }
    }
    return false;
}

bool ht_dispatch_chooses(const HtDispatch *d)
{
    unsigned i;

    for (i = 0; i < d->count; i++) {
        if (!d->sink[i]->ops->wants) {
            return false;       /* the sink wants all classes */
        }
    }
    return true;
}

unsigned ht_dispatch_count(const HtDispatch *d)
{
    return d->count;
}

void ht_dispatch_stats(HtDispatch *d, unsigned i, HtSinkStats *stats)
{
    HtSink *sink = d->sink[i];
    uint64_t missing;

    ht_mutex_lock(&d->lock);
    missing = ht_atomic_read(&sink->nr_missing);
    *stats = (HtSinkStats) {
        .id = sink->id,
        .events = sink->queue.posted - missing,
        .discarded = sink->queue.discarded + missing,
        .queued = sink->queue.held,
        .items = sink->items,
        .idle = sink_is_idle(sink),
    };
    ht_mutex_unlock(&d->lock);
}
