/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a device's sinks, each one of its backends with queue and thread
 *
 * Lock order: HtSink.session, HtSinks.lock.  The session's lock is held while
 * its backend is called; who has HtSinks.lock only tries to take it.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/thread.h"
#include "qemu/units.h"
#include "qom/object_interfaces.h"
#include "system/system.h"
#include "sink.h"
#include "trace.h"

/* Size of a buffer, unless packets are larger */

/* How long to wait for a backend that is to end, or that QEMU's end needs */
#define END_MS 5000

/* How soon a backend is asked again for a class that it refused */
#define RETRY_NS NANOSECONDS_PER_SECOND

typedef struct HtSink {
    HtSinks *all;
    HypertraceBackend *backend;
    void *opaque;               /* the backend's session */
    char *id;
    bool direct;                /* the backend never blocks */
    QemuThread thread;
    QemuCond wake;              /* with HtSinks.lock: for its thread */

    HtQueue queue;              /* HtSinks.lock */
    bool end;                   /* HtSinks.lock: the thread is to end */
    bool ended;                 /* HtSinks.lock: and has called no more */
    bool left;                  /* HtSinks.lock: nobody waits for that */

    QemuMutex session;          /* all below */
    uint32_t learnt;            /* classes that the backend was told of */
    unsigned nr_unknown;        /* of them, not known to it */
    unsigned long *unknown;     /* bitmap by id */
    int64_t tried_ns;           /* when it was last asked for one again */
    HtStreamInfo *streams;      /* as the backend knows them */
    uint64_t *missing;          /* events a stream, of unknown classes */
    uint64_t nr_missing;        /* atomic */
} HtSink;

struct HtSinks {
    HtDeviceInfo info;          /* but what calls the device */
    HtSink *sink[HT_QUEUES_MAX];
    unsigned count;
    Notifier exit;

    QemuMutex lock;             /* all below */
    QemuCond idle;              /* a sink has delivered all, or ended */
    HtPool pool;
    unsigned users;             /* the device, and sinks */
    bool starved;               /* no sink had room when last asked */
    void (*room)(void *opaque); /* NULL: the device is gone */
    void *opaque;
};

/* Context: HtSink.session held */
static void learn(HtSink *sink, uint32_t id)
{
    const HtClass *c = ht_class_table_get(sink->all->info.classes, id);
    bool known = !test_bit(id, sink->unknown), ok;
    Error *err = NULL;

    ok = hypertrace_backend_add_class(sink->backend, sink->opaque, c, &err);
    trace_hypertrace_class(sink->all->info.name, id, c->name, ok);
    if (ok && !known) {
        clear_bit(id, sink->unknown);
        sink->nr_unknown--;
    } else if (!ok && known) {
        set_bit(id, sink->unknown);
        sink->nr_unknown++;
        error_prepend(&err, "hypertrace %s: backend '%s' discards events of"
                      " class %s: ", sink->all->info.name, sink->id, c->name);
        error_report_err(g_steal_pointer(&err));
    }
    error_free(err);
}

/* Context: HtSink.session held */
static void learn_up_to(HtSink *sink, uint32_t count)
{
    HtClass *const *classes = sink->all->info.classes->by_id;
    uint32_t first = sink->learnt + 1, id;

    for (id = first; id <= count; id++) {
        if ((id - first) % HYPERTRACE_EXPECT_MAX == 0) {
            hypertrace_backend_expect_classes(sink->backend, sink->opaque,
                                              &classes[id],
                                              MIN(count + 1 - id,
                                                  HYPERTRACE_EXPECT_MAX));
        }
        learn(sink, id);
    }
    /* read without the lock by ht_sinks_post(), which only must not see more */
    qatomic_set(&sink->learnt, MAX(sink->learnt, count));
}

/* Context: HtSink.session held */
static bool is_known(HtSink *sink, uint32_t id)
{
    if (likely(!test_bit(id, sink->unknown))) {
        return true;
    }
    if (get_clock() - sink->tried_ns > RETRY_NS) {
        sink->tried_ns = get_clock();
        learn(sink, id);
    }
    return !test_bit(id, sink->unknown);
}

static void deliver_part(HtSink *sink, HtRun *part, const uint8_t *end)
{
    if (part->events) {
        part->size = end - part->data;
        hypertrace_backend_deliver(sink->backend, sink->opaque, part);
        part->events = 0;
        part->flags = 0;
    }
}

/*
 * What is left of a run without events of classes that the backend does not
 * know, which are counted.  Context: HtSink.session held
 */
static void deliver_known(HtSink *sink, const HtRun *run)
{
    uint64_t *missing = &sink->missing[run->stream->index];
    HtRun part = *run;
    HtRunIter it;
    HtEvent ev;

    part.events = 0;
    ht_run_iter_init(&it, run, sink->all->info.classes);
    for (;;) {
        const uint8_t *begin = it.p;

        if (!ht_run_next(&it, &ev)) {
            deliver_part(sink, &part, begin);
            break;
        }
        if (!is_known(sink, ev.cls->id)) {
            deliver_part(sink, &part, begin);
            ++*missing;
            qatomic_set(&sink->nr_missing, sink->nr_missing + 1);
            /* 24 bits do not tell the time since an event that is not there */
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

/* Context: HtSink.session held; HtSinks.lock is not */
static void deliver(HtSink *sink, HtRun *run)
{
    uint32_t index = run->stream->index;

    trace_hypertrace_deliver(sink->all->info.name, sink->id, index, run->events,
                             run->discarded);
    learn_up_to(sink, run->classes);
    if (run->flags & HT_RUN_OPEN) {
        sink->streams[index] = *run->stream;
        sink->missing[index] = 0;
    }
    if (run->events && sink->nr_unknown) {
        deliver_known(sink, run);
        return;
    }
    run->discarded += sink->missing[index];
    hypertrace_backend_deliver(sink->backend, sink->opaque, run);
}

/* Context: HtSinks.lock held */
static bool any_room(HtSinks *k)
{
    unsigned i;

    for (i = 0; i < k->count; i++) {
        if (ht_queue_room(&k->sink[i]->queue)) {
            return true;
        }
    }
    return false;
}

/* Context: HtSinks.lock held, which this lets go; HtSink.session held */
static void deliver_item(HtSink *sink, HtQueued *item)
{
    HtSinks *k = sink->all;

    qemu_mutex_unlock(&k->lock);
    if (!item->info) {
        item->run.stream = &sink->streams[item->index];
    }
    deliver(sink, &item->run);
    qemu_mutex_lock(&k->lock);
    ht_queue_done(&sink->queue, item);
    if (k->starved && any_room(k)) {
        k->starved = false;
        if (k->room) {
            k->room(k->opaque);
        }
    }
}

static void sinks_unref(HtSinks *k)
{
    bool last;

    WITH_QEMU_LOCK_GUARD(&k->lock) {
        last = --k->users == 0;
    }
    if (last) {
        ht_pool_destroy(&k->pool);
        qemu_cond_destroy(&k->idle);
        qemu_mutex_destroy(&k->lock);
        g_free(k);
    }
}

/* Context: BQL; the thread calls no more */
static void sink_free(HtSink *sink)
{
    HtSinks *k = sink->all;

    qemu_thread_join(&sink->thread);
    hypertrace_backend_detach(sink->backend, sink->opaque);
    object_unref(OBJECT(sink->backend));
    WITH_QEMU_LOCK_GUARD(&k->lock) {
        ht_queue_destroy(&sink->queue);
    }
    qemu_mutex_destroy(&sink->session);
    qemu_cond_destroy(&sink->wake);
    g_free(sink->unknown);
    g_free(sink->streams);
    g_free(sink->missing);
    g_free(sink->id);
    g_free(sink);
    sinks_unref(k);
}

/* Context: BH in main loop, BQL */
static void sink_came_back(void *opaque)
{
    sink_free(opaque);
}

static void *sink_thread(void *opaque)
{
    HtSink *sink = opaque;
    HtSinks *k = sink->all;
    HtQueued item;
    uint32_t count;

    for (;;) {
        qemu_mutex_lock(&sink->session);
        learn_up_to(sink, ht_class_table_count(k->info.classes));
        qemu_mutex_lock(&k->lock);
        while (ht_queue_take(&sink->queue, &item)) {
            deliver_item(sink, &item);
        }
        qemu_mutex_unlock(&sink->session);
        qemu_cond_broadcast(&k->idle);
        count = ht_class_table_count(k->info.classes);
        if (ht_queue_empty(&sink->queue) && sink->learnt >= count) {
            if (sink->end) {
                break;
            }
            qemu_cond_wait(&sink->wake, &k->lock);
        }
        qemu_mutex_unlock(&k->lock);
    }
    sink->ended = true;
    if (sink->left) {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), sink_came_back, sink);
    }
    qemu_mutex_unlock(&k->lock);
    return NULL;
}

static bool sink_is_idle(HtSink *sink)
{
    return ht_queue_empty(&sink->queue) &&
           qatomic_read(&sink->learnt) >=
           ht_class_table_count(sink->all->info.classes);
}

/* When to give up what begins to wait now */
static int64_t end_ns(void)
{
    return get_clock() + END_MS * (int64_t)SCALE_MS;
}

/* Wait until @end of get_clock().  Context: HtSinks.lock held */
static bool wait_for(HtSinks *k, bool (*done)(HtSink *sink), int64_t end)
{
    unsigned i;

    for (i = 0; i < k->count; i++) {
        while (!done(k->sink[i])) {
            int64_t left = end - get_clock();

            if (left <= 0) {
                return false;
            }
            qemu_cond_timedwait(&k->idle, &k->lock,
                                DIV_ROUND_UP(left, SCALE_MS));
        }
    }
    return true;
}

void ht_sinks_posted(HtSinks *k, uint32_t *posted)
{
    unsigned i;

    QEMU_LOCK_GUARD(&k->lock);
    for (i = 0; i < k->count; i++) {
        posted[i] = ht_queue_posted(&k->sink[i]->queue);
    }
}

const char *ht_sinks_behind(HtSinks *k, const uint32_t *posted)
{
    unsigned i;

    QEMU_LOCK_GUARD(&k->lock);
    for (i = 0; i < k->count; i++) {
        if (!ht_queue_done_with(&k->sink[i]->queue, posted[i])) {
            return k->sink[i]->id;
        }
    }
    return NULL;
}

/*
 * QEMU does not unrealize devices when it ends.  However many of them hang,
 * they are all waited for together.
 */
static void sinks_exit(Notifier *n, void *data)
{
    HtSinks *k = container_of(n, HtSinks, exit);
    static int64_t end;

    if (!end) {
        end = end_ns();
    }
    QEMU_LOCK_GUARD(&k->lock);
    if (!wait_for(k, sink_is_idle, end)) {
        warn_report("hypertrace %s: QEMU ends while a backend hangs: what"
                    " it has not taken is not recorded", k->info.name);
    }
}

static void sink_new(HtSinks *k, HypertraceBackend *b, void *session,
                     size_t budget)
{
    HtSink *sink = g_new0(HtSink, 1);

    sink->all = k;
    sink->backend = b;
    sink->opaque = session;
    sink->id = g_strdup(object_get_canonical_path_component(OBJECT(b)));
    sink->direct = !hypertrace_backend_may_block(b);
    object_ref(OBJECT(b));
    qemu_mutex_init(&sink->session);
    qemu_cond_init(&sink->wake);
    sink->unknown = bitmap_new(HT_CLASSES_MAX + 1);
    sink->streams = g_new0(HtStreamInfo, k->info.streams);
    sink->missing = g_new0(uint64_t, k->info.streams);
    ht_queue_init(&sink->queue, &k->pool, k->count, budget, k->info.streams);
    k->sink[k->count++] = sink;
    k->users++;
    qemu_thread_create(&sink->thread, "hypertrace-sink", sink_thread, sink,
                       QEMU_THREAD_JOINABLE);
}

HtSinks *ht_sinks_new(const HtDeviceInfo *info, GPtrArray *backends,
                      size_t budget, size_t packet,
                      void (*room)(void *opaque), void *opaque, Error **errp)
{
    HtSinks *k = g_new0(HtSinks, 1);
    void *session[HT_QUEUES_MAX];
    unsigned i;

    assert(backends->len <= HT_QUEUES_MAX);
    k->info = *info;
    k->users = 1;
    k->room = room;
    k->opaque = opaque;
    k->pool.size = MAX(HT_SINK_BUFFER, packet);
    qemu_mutex_init(&k->lock);
    qemu_cond_init(&k->idle);
    for (i = 0; i < backends->len; i++) {
        session[i] = hypertrace_backend_attach(backends->pdata[i], info, errp);
        if (!session[i]) {
            while (i--) {
                hypertrace_backend_detach(backends->pdata[i], session[i]);
            }
            sinks_unref(k);
            return NULL;
        }
    }
    k->info.clock_bound_ns = NULL;
    for (i = 0; i < backends->len; i++) {
        sink_new(k, backends->pdata[i], session[i],
                 MAX(budget, 4 * k->pool.size));
    }
    k->exit.notify = sinks_exit;
    qemu_add_exit_notifier(&k->exit);
    return k;
}

static bool sink_has_ended(HtSink *sink)
{
    return sink->ended;
}

void ht_sinks_free(HtSinks *k)
{
    HtSink *ended[HT_QUEUES_MAX];
    unsigned i, n = 0;

    if (!k) {
        return;
    }
    qemu_remove_exit_notifier(&k->exit);
    qemu_mutex_lock(&k->lock);
    k->room = NULL;
    for (i = 0; i < k->count; i++) {
        k->sink[i]->end = true;
        qemu_cond_signal(&k->sink[i]->wake);
    }
    wait_for(k, sink_has_ended, end_ns());
    for (i = 0; i < k->count; i++) {
        if (k->sink[i]->ended) {
            ended[n++] = k->sink[i];
            continue;
        }
        warn_report("hypertrace %s: unplugged while backend '%s' hangs: what"
                    " it has not taken is recorded when it goes on",
                    k->info.name, k->sink[i]->id);
        k->sink[i]->left = true;
    }
    /* what is left is on its own from here */
    k->count = 0;
    qemu_mutex_unlock(&k->lock);
    while (n) {
        sink_free(ended[--n]);
    }
    sinks_unref(k);
}

bool ht_sinks_room(HtSinks *k)
{
    bool room;

    QEMU_LOCK_GUARD(&k->lock);
    room = any_room(k);
    k->starved |= !room;
    return room;
}

uint8_t *ht_sinks_reserve(HtSinks *k, HtBuffer **fill, size_t size)
{
    QEMU_LOCK_GUARD(&k->lock);
    return ht_pool_reserve(&k->pool, fill, size);
}

void ht_sinks_release(HtSinks *k, HtBuffer **fill)
{
    QEMU_LOCK_GUARD(&k->lock);
    ht_pool_unref(&k->pool, *fill);
    *fill = NULL;
}

/*
 * Whether who posts may deliver; HtSink.session is held then.  What the queue
 * had of the stream was put there under the stream's lock, which is held, and
 * delivered under the session's.  Context: HtSinks.lock held
 */
static bool begin_direct(HtSink *sink, const HtRun *run)
{
    if (!sink->direct || !ht_queue_empty(&sink->queue) ||
        qatomic_read(&sink->learnt) < run->classes ||
        qemu_mutex_trylock(&sink->session)) {
        return false;
    }
    return true;
}

void ht_sinks_post(HtSinks *k, const HtRun *run, HtBuffer *b, bool direct)
{
    HtSink *now[HT_QUEUES_MAX];
    HtRun passed[HT_QUEUES_MAX];
    unsigned i, n = 0;

    WITH_QEMU_LOCK_GUARD(&k->lock) {
        for (i = 0; i < k->count; i++) {
            HtSink *sink = k->sink[i];
            bool was_idle;

            if (direct && begin_direct(sink, run)) {
                now[n] = sink;
                passed[n] = *run;
                ht_queue_pass(&sink->queue, &passed[n++]);
                continue;
            }
            was_idle = ht_queue_empty(&sink->queue);
            ht_queue_post(&sink->queue, run, b);
            /* not for each run of a turn, but while there is plenty of room */
            if (direct ? was_idle : ht_queue_filling(&sink->queue)) {
                qemu_cond_signal(&sink->wake);
            }
        }
    }
    for (i = 0; i < n; i++) {
        deliver(now[i], &passed[i]);
        qemu_mutex_unlock(&now[i]->session);
    }
}

void ht_sinks_wake(HtSinks *k)
{
    unsigned i;

    QEMU_LOCK_GUARD(&k->lock);
    for (i = 0; i < k->count; i++) {
        if (!sink_is_idle(k->sink[i])) {
            qemu_cond_signal(&k->sink[i]->wake);
        }
    }
}

bool ht_sinks_want(HtSinks *k, const HtClass *c)
{
    unsigned i;

    for (i = 0; i < k->count; i++) {
        HtSink *sink = k->sink[i];

        if (qatomic_read(&sink->learnt) < c->id ||
            hypertrace_backend_wants(sink->backend, sink->opaque, c)) {
            return true;
        }
    }
    return false;
}

bool ht_sinks_choose(HtSinks *k)
{
    unsigned i;

    for (i = 0; i < k->count; i++) {
        if (!hypertrace_backend_chooses(k->sink[i]->backend)) {
            return false;       /* it wants everything */
        }
    }
    return true;
}

unsigned ht_sinks_count(const HtSinks *k)
{
    return k->count;
}

void ht_sinks_stats(HtSinks *k, unsigned i, HtSinkStats *stats)
{
    HtSink *sink = k->sink[i];
    uint64_t missing;

    QEMU_LOCK_GUARD(&k->lock);
    missing = qatomic_read(&sink->nr_missing);
    *stats = (HtSinkStats) {
        .id = sink->id,
        .events = sink->queue.posted - missing,
        .discarded = sink->queue.discarded + missing,
        .queued = sink->queue.held,
        .idle = sink_is_idle(sink),
    };
}
