/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: the QMP commands query-hypertrace and hypertrace-drain */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-hypertrace.h"
#include "qapi/util.h"
#include "device.h"
#include "drain.h"

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
    stats->open = ht_stream_phase(s) != HT_PHASE_FREE;
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

static HypertraceBackendStatsList *backend_stats(HtDispatch *d)
{
    HypertraceBackendStatsList *list = NULL, **tail = &list;
    unsigned i;

    for (i = 0; i < ht_dispatch_count(d); i++) {
        QAPI_LIST_APPEND(tail, sink_stats(d, i));
    }
    return list;
}

/* Fill in @stats, which the caller has zeroed, for a realized device */
static void fill_device_stats(HypertraceDevice *dev, HypertraceStats *stats)
{
    HypertraceStreamStatsList **streams = &stats->streams;
    struct ht_stats own;
    uint32_t i;

    ht_control_stats(&dev->messages, HT_STREAM_ANY, &own);
    *qapi_HypertraceStats_base(stats) = counters(&own);
    stats->clock_hz = ht_guest_clock_hz(&dev->clock.guest);
    stats->clock_bound_ns = ht_clock_bound_ns(&dev->clock);
    for (i = 0; i < dev->conf.streams; i++) {
        /* Instances start at 1; 0: the stream was never opened. */
        if (dev->streams.stream[i].next.instance) {
            QAPI_LIST_APPEND(streams, stream_stats(&dev->streams.stream[i]));
        }
    }
    stats->backends = backend_stats(dev->dispatch);
}

static HypertraceDevice *as_device(Object *obj)
{
    HypertraceDevice *dev;

    if (!object_dynamic_cast(obj, TYPE_HYPERTRACE_DEVICE)) {
        return NULL;
    }
    dev = HYPERTRACE_DEVICE(obj);
    return dev->trace ? dev : NULL;
}

/* Get the QOM path of a device's PCI proxy; to be freed with g_free() */
static char *path_of(HypertraceDevice *dev)
{
    return object_get_canonical_path(OBJECT(dev->proxy));
}

static HypertraceDevice *find(const char *path, Error **errp)
{
    Object *obj = object_resolve_path(path, NULL), *backend;
    HypertraceDevice *dev;

    backend = obj ? object_resolve_path_component(obj, "virtio-backend") : NULL;
    obj = backend ?: obj;
    dev = obj ? as_device(obj) : NULL;
    if (!dev) {
        error_setg(errp, "'%s' is not the id or QOM path of a hypertrace"
                   " device", path);
    }
    return dev;
}

static void add(HypertraceDevice *dev, HypertraceInfoList **list)
{
    HypertraceInfo *info = g_new0(HypertraceInfo, 1);

    info->object = path_of(dev);
    info->name = g_strdup(dev->trace->name);
    fill_device_stats(dev, qapi_HypertraceInfo_base(info));
    QAPI_LIST_PREPEND(*list, info);
}

/* object_child_foreach_recursive() callback: list @obj if it is a device */
static int add_any(Object *obj, void *opaque)
{
    HypertraceDevice *dev = as_device(obj);

    if (dev) {
        add(dev, opaque);
    }
    return 0;
}

HypertraceInfoList *qmp_query_hypertrace(const char *object, Error **errp)
{
    HypertraceInfoList *list = NULL;

    if (object) {
        HypertraceDevice *dev = find(object, errp);

        if (dev) {
            add(dev, &list);
        }
        return list;
    }
    object_child_foreach_recursive(object_get_root(), add_any, &list);
    return list;
}

HypertraceDrain *qmp_hypertrace_drain(const char *object, Error **errp)
{
    HypertraceDevice *dev = find(object, errp);
    g_autofree char *path = dev ? path_of(dev) : NULL;
    HypertraceDrain *drain;
    uint64_t id;

    if (!dev) {
        return NULL;
    }
    id = ht_drain_begin(dev->dispatch, path, errp);
    if (!id) {
        return NULL;
    }
    drain = g_new0(HypertraceDrain, 1);
    drain->id = id;
    return drain;
}
