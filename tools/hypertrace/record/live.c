/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: what is followed, as events of LTTng-UST
 */
#include "cli/command.h"
#include "hypertrace/base.h"
#include "record/live.h"
#include "record/lttng-module.h"

/* Bytes that may wait for LTTng */
#define BACKLOG         ((size_t)128 << 20)
/* LTTng hangs if it takes nothing for so long, in us... */
#define HANG_US         (5 * G_TIME_SPAN_SECOND)
/* ...or has not sent what it took */
#define SEND_US         (60 * G_TIME_SPAN_SECOND)

struct HtLive {
    HtLiveOptions options;
    const HtLttngOps *ctl;      /* with options.url */
    HtFtFormats *formats;
    HtFtRuns runs;
    uint64_t instances;
    GThread *thread;
    bool started;               /* by ht_live_start() */

    const HtUstOps *ust;        /* the thread's */
    HtStreamInfo streams[HT_FT_STREAMS];
    uint64_t told[HT_FT_STREAMS];
    HtUstEvent *discarded;
    HtUstEvent *events[HT_CLASSES_MAX + 1];
    uint32_t learnt;
    bool timed_out;

    GMutex lock;                /* all below */
    GCond wake;                 /* the thread */
    GCond ended;                /* who waits for its end */
    HtPool pool;
    HtQueue queue;
    bool end;
    bool closed;                /* nothing is posted any more */
    bool drained;
    bool gone;                  /* the thread */
    uint64_t items;             /* taken so far */
    uint64_t handled;           /* events of them */
    HtLiveStats stats;
    char *why;
};

/* HtFtRunsOps.learn */
static void learn_later(void *opaque)
{
    /* with the next run */
}

/* HtFtRunsOps.post */
static void post(void *opaque, HtRun *run, HtBuffer **fill)
{
    HtLive *l = opaque;

    g_mutex_lock(&l->lock);
    if (!l->closed) {
        if (run->events) {
            uint8_t *p = ht_pool_reserve(&l->pool, fill, run->size);

            memcpy(p, run->data, run->size);
            run->data = p;
        }
        ht_queue_post(&l->queue, run, *fill);
        g_cond_signal(&l->wake);
    }
    g_mutex_unlock(&l->lock);
}

/* HtFtRunsOps.release */
static void release(void *opaque, HtBuffer **fill)
{
    HtLive *l = opaque;

    g_mutex_lock(&l->lock);
    ht_pool_unref(&l->pool, *fill);
    g_mutex_unlock(&l->lock);
    *fill = NULL;
}

static void note(HtLive *l, char *why)
{
    g_mutex_lock(&l->lock);
    g_free(l->why);
    l->why = why;
    g_mutex_unlock(&l->lock);
}

/* Context: the thread */
static void learn(HtLive *l, uint32_t count)
{
    while (l->learnt < count) {
        unsigned n = MIN(count - l->learnt, HT_UST_BATCH);

        l->ust->prepare(l->options.name,
                        &l->runs.classes->by_id[l->learnt + 1], n);
        while (n--) {
            const HtClass *c = l->runs.classes->by_id[++l->learnt];
            char *why = NULL;

            l->events[l->learnt] = l->ust->get(l->options.name, c, &why);
            if (why) {
                note(l, why);
            }
        }
    }
    if (!l->timed_out && l->ust->timed_out()) {
        l->timed_out = true;
        note(l, g_strdup("the session daemon did not answer in time: new "
                         "events cannot be enabled"));
    }
}

/* Events that LTTng-UST refused.  Context: the thread */
static uint64_t count_unknown(HtLive *l, const HtRun *run)
{
    uint64_t n = 0;
    HtRunIter it;
    HtEvent ev;

    ht_run_iter_init(&it, run, l->runs.classes);
    while (ht_run_next(&it, &ev)) {
        n += !l->events[ev.cls->id];
    }
    return n;
}

/* Context: the thread */
static void load(HtLive *l)
{
    g_autoptr(GError) error = NULL;
    char *why = NULL;

    l->ust = ht_lttng_module("ust", "ht_ust_ops", &error);
    if (!l->ust) {
        note(l, g_strdup(error->message));
        return;
    }
    l->discarded = l->ust->discarded(l->options.name, &why);
    if (why) {
        note(l, why);
    }
}

/* Context: the thread, no lock */
static void deliver(HtLive *l, HtQueued *item)
{
    HtRun *run = &item->run;
    uint64_t taken = 0, unknown;

    if (item->info) {
        l->streams[item->index] = *item->info;
    }
    run->stream = &l->streams[item->index];
    if (l->ust) {
        l->ust->tell(l->discarded, run, &l->told[item->index]);
    }
    if (!run->events) {
        return;
    }
    if (l->ust) {
        learn(l, run->classes);
        taken = l->ust->deliver(run, l->runs.classes, l->events);
    }
    unknown = l->ust ? count_unknown(l, run) : run->events;
    g_mutex_lock(&l->lock);
    l->stats.taken += taken;
    l->stats.lost += unknown;
    l->stats.unwanted += run->events - unknown - taken;
    l->handled += run->events;
    g_mutex_unlock(&l->lock);
}

/* LTTng was given what it had no room for, too.  Context: the thread */
static void end_session(HtLive *l)
{
    g_autoptr(GError) error = NULL;
    uint64_t lost = 0;

    if (!l->ctl) {
        return;
    }
    if (!l->ctl->end(l->options.name, &lost, &error)) {
        note(l, g_strdup(error->message));
    }
    g_mutex_lock(&l->lock);
    l->stats.taken -= MIN(lost, l->stats.taken);
    l->stats.lost += lost;
    g_mutex_unlock(&l->lock);
}

static void *live_thread(void *opaque)
{
    HtLive *l = opaque;
    HtQueued item;

    if (l->started) {
        load(l);                /* viewers see a trace before its first event */
    }
    g_mutex_lock(&l->lock);
    while (true) {
        if (ht_queue_take(&l->queue, &item)) {
            g_mutex_unlock(&l->lock);
            deliver(l, &item);
            g_mutex_lock(&l->lock);
            ht_queue_done(&l->queue, &item);
            l->items++;
        } else if (l->end) {
            break;
        } else {
            g_cond_wait(&l->wake, &l->lock);
        }
    }
    l->drained = true;
    g_mutex_unlock(&l->lock);
    end_session(l);
    g_mutex_lock(&l->lock);
    l->gone = true;
    g_cond_signal(&l->ended);
    g_mutex_unlock(&l->lock);
    return NULL;
}

static bool have_modules(HtLive *l, GError **error)
{
    if (!ht_lttng_module_find("ust", error)) {
        return false;
    }
    if (l->options.url) {
        l->ctl = ht_lttng_module("ctl", "ht_lttng_ops", error);
    }
    return !l->options.url || l->ctl;
}

static bool init_runs(HtLive *l, const HtKernel *kernel, GError **error)
{
    static const HtFtRunsOps ops = {
        .learn = learn_later,
        .post = post,
        .release = release,
    };

    if (kernel) {
        l->formats = ht_ft_formats_parse(kernel->formats, kernel->formats_size,
                                         error);
        if (!l->formats) {
            return false;
        }
    }
    l->runs.ops = &ops;
    l->runs.opaque = l;
    l->runs.classes = ht_class_table_new();
    l->runs.formats = l->formats;
    l->runs.instances = &l->instances;
    /* a table of no class yet has room for this one */
    return ht_ft_runs_init(&l->runs);
}

HtLive *ht_live_new(const HtLiveOptions *options, const HtKernel *kernel,
                    GError **error)
{
    HtLive *l = g_new0(HtLive, 1);

    l->options = *options;
    g_mutex_init(&l->lock);
    g_cond_init(&l->wake);
    g_cond_init(&l->ended);
    l->pool.size = HT_FT_RUN_MAX;
    ht_queue_init(&l->queue, &l->pool, 0, BACKLOG, HT_FT_STREAMS);
    if (!have_modules(l, error) || !init_runs(l, kernel, error) ||
        (l->ctl && !l->ctl->begin(options->name, options->url, options->live,
                                  error))) {
        ht_live_free(l);
        return NULL;
    }
    return l;
}

HtFtRuns *ht_live_runs(HtLive *l)
{
    return &l->runs;
}

void ht_live_start(HtLive *l)
{
    /* nobody but our thread waits for LTTng */
    g_setenv("LTTNG_UST_ALLOW_BLOCKING", "1", false);
    /* what is registered after that time can never be enabled */
    g_setenv("LTTNG_UST_REGISTER_TIMEOUT", "10000", false);
    l->started = true;
    l->thread = g_thread_new("hypertrace", live_thread, l);
}

/* As long as it gets on.  Context: lock held */
static void wait_gone(HtLive *l)
{
    uint64_t items = l->items;
    bool drained = l->drained;

    while (!l->gone) {
        gint64 end = g_get_monotonic_time() + (drained ? SEND_US : HANG_US);

        if (!g_cond_wait_until(&l->ended, &l->lock, end) && !l->gone &&
            items == l->items && drained == l->drained) {
            break;
        }
        items = l->items;
        drained = l->drained;
    }
}

bool ht_live_end(HtLive *l, HtLiveStats *stats)
{
    bool gone;

    if (!l->thread) {
        l->thread = g_thread_new("hypertrace", live_thread, l);
    }
    g_mutex_lock(&l->lock);
    l->closed = true;
    l->end = true;
    g_cond_signal(&l->wake);
    wait_gone(l);
    gone = l->gone;
    *stats = l->stats;
    stats->lost += l->queue.discarded + l->queue.posted - l->handled;
    stats->why = gone ? l->why : l->drained ?
                 "the session daemon does not end the session" :
                 "LTTng takes no more";
    g_mutex_unlock(&l->lock);
    return gone;
}

void ht_live_free(HtLive *l)
{
    if (!l) {
        return;
    }
    if (l->thread) {
        g_thread_join(l->thread);
    }
    ht_queue_destroy(&l->queue);
    ht_pool_destroy(&l->pool);
    g_clear_pointer(&l->runs.classes, ht_class_table_free);
    ht_ft_formats_free(l->formats);
    g_cond_clear(&l->ended);
    g_cond_clear(&l->wake);
    g_mutex_clear(&l->lock);
    g_free(l->why);
    g_free(l);
}
