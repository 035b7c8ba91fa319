/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: handle requests for the QMP event HYPERTRACE_DRAINED
 *
 * The event is sent when the device's backends have taken all runs that were
 * posted before the request, or when the device is unplugged.  While requests
 * are pending, the sinks' threads call ht_drain_progress() when a backend has
 * taken a run from its queue.  No thread waits.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-events-hypertrace.h"
#include "qemu/main-loop.h"
#include "qemu/queue.h"
#include "drain.h"

#define PENDING_MAX 64

typedef struct HtDrain {
    uint64_t id;
    HtDispatch *sinks;
    char *path;
    /* by sink: position of its queue when the drain was requested */
    uint32_t posted[HT_QUEUES_MAX];
    QTAILQ_ENTRY(HtDrain) next;
} HtDrain;

/* Changed only with the BQL held */
static QTAILQ_HEAD(, HtDrain) pending = QTAILQ_HEAD_INITIALIZER(pending);
static unsigned nr_pending;
static QEMUBH *bh;

static void finish(HtDrain *d, bool complete)
{
    qapi_event_send_hypertrace_drained(d->path, d->id, complete);
    QTAILQ_REMOVE(&pending, d, next);
    nr_pending--;
    g_free(d->path);
    g_free(d);
}

static bool is_watched(HtDispatch *sinks)
{
    HtDrain *d;

    QTAILQ_FOREACH(d, &pending, next) {
        if (d->sinks == sinks) {
            return true;
        }
    }
    return false;
}

/*
 * Send QMP's event HYPERTRACE_DRAINED for each complete request.  Context: BH
 * in main loop, BQL
 */
static void look(void *opaque)
{
    HtDrain *d, *next;

    QTAILQ_FOREACH_SAFE(d, &pending, next, next) {
        HtDispatch *sinks = d->sinks;

        if (!ht_dispatch_behind(sinks, d->posted)) {
            finish(d, true);
            ht_dispatch_watch(sinks, is_watched(sinks));
        }
    }
}

void ht_drain_progress(void *opaque)
{
    qemu_bh_schedule(bh);
}

uint64_t ht_drain_begin(HtDispatch *sinks, const char *path, Error **errp)
{
    static uint64_t last;
    HtDrain *d;

    if (nr_pending == PENDING_MAX) {
        error_setg(errp, "%u requests are pending already; wait for the event"
                   " HYPERTRACE_DRAINED of one", nr_pending);
        return 0;
    }
    if (!bh) {
        bh = qemu_bh_new(look, NULL);
    }
    d = g_new0(HtDrain, 1);
    d->id = ++last;
    d->sinks = sinks;
    d->path = g_strdup(path);
    ht_dispatch_posted(sinks, d->posted);
    ht_dispatch_watch(sinks, true);
    QTAILQ_INSERT_TAIL(&pending, d, next);
    nr_pending++;
    /* Always use the BH: the event must come after the reply to the command. */
    qemu_bh_schedule(bh);
    return d->id;
}

void ht_drain_end(HtDispatch *sinks)
{
    HtDrain *d, *next;

    QTAILQ_FOREACH_SAFE(d, &pending, next, next) {
        if (d->sinks == sinks) {
            ht_dispatch_watch(sinks, false);
            finish(d, !ht_dispatch_behind(sinks, d->posted));
        }
    }
}
