/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: statistics for QMP
 */
#include "qemu/osdep.h"
#include "qapi/util.h"
#include "device.h"
#include "stats.h"

static HypertraceCounters counters(const struct ht_stats *s)
{
    return (HypertraceCounters) {
        .events = s->events,
        .packets = s->packets,
        .bytes = s->bytes,
        .lost = s->lost,
        .dropped = s->dropped,
        .wakeups = s->wakeups,
        .errors = s->errors,
    };
}

static HypertraceStreamStats *stream_stats(HtStream *s)
{
    HypertraceStreamStats *stats = g_new0(HypertraceStreamStats, 1);
    struct ht_stats own;

    ht_stream_stats(s, &own);
    *qapi_HypertraceStreamStats_base(stats) = counters(&own);
    stats->stream = s->index;
    stats->instance = s->next.instance;
    stats->trace_instance = s->consumer.info.instance;
    stats->open = s->phase != HT_PHASE_FREE;
    stats->stopped = s->consumer.stopped;
    return stats;
}

static HypertraceBackendStats *sink_stats(HtDispatch *d, unsigned i)
{
    HypertraceBackendStats *stats = g_new0(HypertraceBackendStats, 1);
    HtSinkStats own;

    ht_dispatch_stats(d, i, &own);
    stats->backend = g_strdup(own.id);
    stats->events = own.events;
    stats->discarded = own.discarded;
    stats->queued = own.queued;
    stats->idle = own.idle;
    return stats;
}

HypertraceBackendStatsList *ht_backend_stats(HtDispatch *d)
{
    HypertraceBackendStatsList *list = NULL, **tail = &list;
    unsigned i;

    for (i = 0; d && i < ht_dispatch_count(d); i++) {
        QAPI_LIST_APPEND(tail, sink_stats(d, i));
    }
    return list;
}

void ht_fill_device_stats(HypertraceDevice *dev, HypertraceStats *stats)
{
    HypertraceStreamStatsList **streams = &stats->streams;
    struct ht_stats own;
    uint32_t i;

    ht_device_stats(dev, &own);
    *qapi_HypertraceStats_base(stats) = counters(&own);
    stats->clock_hz = ht_clock_hz(&dev->clock);
    stats->clock_bound_ns = ht_clock_bound_ns(&dev->clock);
    for (i = 0; i < dev->conf.streams; i++) {
        /* instances start at 1: the stream was used */
        if (dev->streams[i].next.instance) {
            QAPI_LIST_APPEND(streams, stream_stats(&dev->streams[i]));
        }
    }
    stats->backends = ht_backend_stats(dev->dispatch);
}
