/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"
#include "lttng/live.h"

struct HtLive {
    /*
     * module that creates and ends the session; NULL without
     * HtLttngOptions.url
     */
    const HtLttngOps *ctl;
    HtFtRuns runs;
    uint64_t instances;
    HtLttngSink *sink;
};

/*
 * HtFtRunsOps.learn: do nothing. The sink's thread registers new classes before
 * it delivers the next run
 */
static void learn_later(void *opaque)
{
}

static void post(void *opaque, HtRun *run, HtBuffer **fill)
{
    HtLive *l = opaque;

    ht_lttng_sink_post(l->sink, run, fill);
}

static void release(void *opaque, HtBuffer **fill)
{
    HtLive *l = opaque;

    ht_lttng_sink_release(l->sink, fill);
}

static bool init_runs(HtLive *l, const HtFtFormats *formats)
{
    static const HtFtRunsOps ops = {
        .learn = learn_later,
        .post = post,
        .release = release,
    };

    l->runs.ops = &ops;
    l->runs.opaque = l;
    l->runs.classes = ht_class_table_new();
    l->runs.formats = formats;
    l->runs.instances = &l->instances;
    /* This cannot fail: the class table is new, so it has room. */
    return ht_ft_runs_init(&l->runs);
}

static bool begin_session(HtLive *l, const HtLttngOptions *o, GError **error)
{
    l->ctl = ht_lttng_module("ctl", "ht_lttng_ops", error);
    return l->ctl && l->ctl->begin(o->name, o->url, o->live, error);
}

HtLive *ht_live_new(const HtLttngOptions *options, const HtFtFormats *formats,
                    GError **error)
{
    HtLive *l = g_new0(HtLive, 1);
    HtLttngSinkConfig cfg = {
        .provider = options->name,
        .streams = HT_FT_STREAMS,
        .run_max = HT_FT_RUN_MAX,
        .session = options->name,
    };

    if (!ht_lttng_module_find("ust", error) || !init_runs(l, formats) ||
        (options->url && !begin_session(l, options, error))) {
        ht_live_free(l);
        return NULL;
    }
    cfg.classes = l->runs.classes;
    cfg.ctl = l->ctl;
    l->sink = ht_lttng_sink_new(&cfg);
    return l;
}

HtFtRuns *ht_live_runs(HtLive *l)
{
    return &l->runs;
}

void ht_live_start(HtLive *l)
{
    ht_lttng_sink_start(l->sink);
}

bool ht_live_end(HtLive *l, HtLttngStats *stats)
{
    bool ended = ht_lttng_sink_end(l->sink, stats);

    stats->lost += l->runs.dropped;
    return ended;
}

void ht_live_free(HtLive *l)
{
    if (!l) {
        return;
    }
    ht_lttng_sink_free(l->sink);
    g_clear_pointer(&l->runs.classes, ht_class_table_free);
    g_free(l);
}
