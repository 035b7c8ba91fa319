/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: from the records of a ring to the sinks
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/timer.h"
#include "ftrace.h"
#include "trace.h"

/* HtFtRunsOps.learn */
static void learn(void *opaque)
{
    HypertraceFtrace *ft = opaque;

    if (ft->sinks) {
        ht_dispatch_wake(ft->dispatch);
    }
}

static void trace_run(const HypertraceFtrace *ft, const HtRun *run)
{
    const HtStreamInfo *s = run->stream;

    if (run->flags & HT_RUN_OPEN) {
        trace_hypertrace_stream_open(ft->trace->name, s->index, s->instance);
    } else if (run->flags & HT_RUN_CLOSE) {
        trace_hypertrace_stream_close(ft->trace->name, s->index, s->instance);
    }
}

/* HtFtRunsOps.post */
static void post(void *opaque, HtRun *run, HtBuffer **fill)
{
    HypertraceFtrace *ft = opaque;

    trace_run(ft, run);
    if (run->events) {
        uint8_t *p = ht_dispatch_reserve(ft->dispatch, fill, run->size);

        memcpy(p, run->data, run->size);
        run->data = p;
    }
    ht_dispatch_post(ft->dispatch, run, *fill, true);
}

/* HtFtRunsOps.release */
static void release(void *opaque, HtBuffer **fill)
{
    HypertraceFtrace *ft = opaque;

    ht_dispatch_release(ft->dispatch, fill);
}

bool ht_ftrace_runs_init(HypertraceFtrace *ft, Error **errp)
{
    static const HtFtRunsOps ops = {
        .learn = learn,
        .post = post,
        .release = release,
    };

    ft->runs.ops = &ops;
    ft->runs.opaque = ft;
    ft->runs.classes = ft->trace->classes;
    ft->runs.formats = ft->formats;
    ft->runs.instances = &ft->trace->instances;
    if (!ht_ft_runs_init(&ft->runs)) {
        error_setg(errp, "'%s' has %u event classes already, which is as many"
                   " as are possible", ft->trace->name, HT_CLASSES_MAX);
        return false;
    }
    return true;
}

/* HtFtFollowOps.ahead */
static void ahead(void *opaque, const HtFtPiece *p)
{
    HtFtWatched *w = opaque;

    ht_ft_feed_ahead(&w->feed, p);
}

/* HtFtFollowOps.piece */
static void piece(void *opaque, const HtFtPiece *p)
{
    HtFtWatched *w = opaque;

    if (w->feed.taken && w->ft->sinks) {
        ht_ft_feed_piece(&w->feed, p);
    }
}

/* HtFtFollowOps.now */
static uint64_t now(void *opaque)
{
    return get_clock();
}

const HtFtFollowOps ht_ftrace_follow_ops = {
    .ahead = ahead,
    .piece = piece,
    .now = now,
};
