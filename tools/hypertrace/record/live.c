/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: deliver recorded events to LTTng-UST
 */
#include "cli/command.h"
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/dispatch.h"
#include "hypertrace/thread.h"
#include "record/live.h"
#include "record/lttng-module.h"

/* Limit for bytes queued for LTTng */
#define BACKLOG         ((size_t)128 << 20)
/* Time without progress after which LTTng counts as hanging */
#define HANG_NS         (INT64_C(5) * 1000000000)
/* Time for LTTng to send the events that it has taken */
#define SEND_NS         (INT64_C(60) * 1000000000)

struct HtLive {
    HtLiveOptions options;
    const HtLttngOps *ctl;      /* with options.url */
    HtFtFormats *formats;
    HtFtRuns runs;
    uint64_t instances;
    HtDispatch *d;
    bool started;               /* by ht_live_start() */
    bool closed;                /* no more runs are posted */
    bool drained;               /* all runs were delivered; atomic */

    /* Used by the sink's thread only */
    const HtUstOps *ust;
    uint64_t told[HT_FT_STREAMS];
    HtUstEvent *discarded;
    HtUstEvent *events[HT_CLASSES_MAX + 1];
    bool timed_out;

    GMutex lock;                /* protects the members below */
    uint64_t handled;           /* events delivered so far */
    HtLiveStats stats;
    char *why;
};

/* HtFtRunsOps.learn */
static void learn_later(void *opaque)
{
    /* The dispatcher learns classes with the next run. */
}

/* HtFtRunsOps.post */
static void post(void *opaque, HtRun *run, HtBuffer **fill)
{
    HtLive *l = opaque;

    if (l->closed) {
        return;
    }
    if (run->events) {
        uint8_t *p = ht_dispatch_reserve(l->d, fill, run->size);

        memcpy(p, run->data, run->size);
        run->data = p;
    }
    ht_dispatch_post(l->d, run, *fill, true);
}

/* HtFtRunsOps.release */
static void release(void *opaque, HtBuffer **fill)
{
    HtLive *l = opaque;

    ht_dispatch_release(l->d, fill);
}

static void note(HtLive *l, char *why)
{
    g_mutex_lock(&l->lock);
    g_free(l->why);
    l->why = why;
    g_mutex_unlock(&l->lock);
}

/* HtSinkOps.expect */
static void expect(void *opaque, HtClass *const *classes, unsigned count)
{
    HtLive *l = opaque;

    if (l->ust) {
        l->ust->prepare(l->options.name, classes, count);
    }
}

/* HtSinkOps.learn */
static char *learn(void *opaque, const HtClass *c)
{
    HtLive *l = opaque;
    char *why = NULL;

    if (!l->ust) {
        return g_strdup("LTTng-UST is not loaded");
    }
    l->events[c->id] = l->ust->get(l->options.name, c, &why);
    if (why) {
        note(l, g_strdup(why));
    }
    if (l->events[c->id]) {
        g_clear_pointer(&why, g_free);
    } else if (!why) {
        why = g_strdup("LTTng-UST refuses it");
    }
    return why;
}

/* HtSinkOps.begin */
static void begin(void *opaque)
{
    g_autoptr(GError) error = NULL;
    HtLive *l = opaque;
    char *why = NULL;

    if (!l->started) {
        return;                 /* nothing was recorded */
    }
    /* Load LTTng now, so that viewers see the trace before its first event. */
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

/* HtSinkOps.deliver */
static void deliver(void *opaque, const HtRun *run)
{
    HtLive *l = opaque;
    uint64_t taken;

    if (!l->ust) {
        return;
    }
    l->ust->tell(l->discarded, run, &l->told[run->stream->index]);
    if (!l->timed_out && l->ust->timed_out()) {
        l->timed_out = true;
        note(l, g_strdup("the session daemon did not answer in time: new "
                         "events cannot be enabled"));
    }
    if (!run->events) {
        return;
    }
    taken = l->ust->deliver(run, l->runs.classes, l->events);
    g_mutex_lock(&l->lock);
    l->stats.taken += taken;
    l->stats.unwanted += run->events - taken;
    l->handled += run->events;
    g_mutex_unlock(&l->lock);
}

/*
 * HtSinkOps.end: end the session, and subtract the events for which LTTng had
 * no room
 */
static void end_session(void *opaque)
{
    g_autoptr(GError) error = NULL;
    HtLive *l = opaque;
    uint64_t lost = 0;

    ht_atomic_set(&l->drained, true);
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

/* HtSinkOps.gone */
static void gone(void *opaque)
{
    /* ht_live_free() frees the session. */
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
    /* The class table is still empty, so it has room for the first class. */
    return ht_ft_runs_init(&l->runs);
}

static void new_dispatch(HtLive *l)
{
    static const HtSinkOps ops = {
        .begin = begin,
        .expect = expect,
        .learn = learn,
        .deliver = deliver,
        .end = end_session,
        .gone = gone,
    };
    const HtSinkConfig sink = {
        .ops = &ops,
        .session = l,
        .id = "lttng",
        .may_block = true,
    };
    const HtDispatchConfig cfg = {
        .name = l->options.name,
        .classes = l->runs.classes,
        .streams = HT_FT_STREAMS,
        .budget = BACKLOG,
        .buffer = HT_FT_RUN_MAX,
    };

    l->d = ht_dispatch_new(&cfg, &sink, 1);
}

HtLive *ht_live_new(const HtLiveOptions *options, const HtKernel *kernel,
                    GError **error)
{
    HtLive *l = g_new0(HtLive, 1);

    l->options = *options;
    g_mutex_init(&l->lock);
    if (!have_modules(l, error) || !init_runs(l, kernel, error) ||
        (l->ctl && !l->ctl->begin(options->name, options->url, options->live,
                                  error))) {
        ht_live_free(l);
        return NULL;
    }
    new_dispatch(l);
    return l;
}

HtFtRuns *ht_live_runs(HtLive *l)
{
    return &l->runs;
}

void ht_live_start(HtLive *l)
{
    /* Only the sink's thread may block in LTTng. */
    g_setenv("LTTNG_UST_ALLOW_BLOCKING", "1", false);
    /* An event that is not registered within this time cannot be enabled. */
    g_setenv("LTTNG_UST_REGISTER_TIMEOUT", "10000", false);
    l->started = true;
    ht_dispatch_start(l->d);
}

/* Wait for the sink's end, as long as it makes progress. False: it hangs. */
static bool wait_gone(HtLive *l)
{
    HtSinkStats before, after;
    bool drained;

    ht_dispatch_stats(l->d, 0, &after);
    do {
        before = after;
        drained = ht_atomic_read(&l->drained);
        if (!ht_dispatch_end(l->d, ht_now_ns() +
                             (drained ? SEND_NS : HANG_NS))) {
            return true;
        }
        ht_dispatch_stats(l->d, 0, &after);
    } while (before.items != after.items ||
             drained != ht_atomic_read(&l->drained));
    return false;
}

bool ht_live_end(HtLive *l, HtLiveStats *stats)
{
    HtSinkStats sink;
    bool ended;

    if (!l->started) {
        ht_dispatch_start(l->d);
    }
    l->closed = true;
    ended = wait_gone(l);
    ht_dispatch_stats(l->d, 0, &sink);
    g_mutex_lock(&l->lock);
    *stats = l->stats;
    stats->lost += sink.discarded + sink.events - l->handled;
    stats->why = ended ? l->why : ht_atomic_read(&l->drained) ?
                 "the session daemon does not end the session" :
                 "LTTng does not accept events";
    g_mutex_unlock(&l->lock);
    return ended;
}

void ht_live_free(HtLive *l)
{
    if (!l) {
        return;
    }
    ht_dispatch_free(l->d);
    g_clear_pointer(&l->runs.classes, ht_class_table_free);
    ht_ft_formats_free(l->formats);
    g_mutex_clear(&l->lock);
    g_free(l->why);
    g_free(l);
}
