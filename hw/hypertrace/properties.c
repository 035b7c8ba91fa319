/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: property types, and the statistics as a property
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/qdev-properties.h"
#include "properties.h"

static const QEnumLookup channel_lookup = {
    .array = (const char *const[]) {
        [HT_CHANNEL_HYPERCALL] = "hypercall",
        [HT_CHANNEL_SHM] = "shm",
        [HT_CHANNEL_VIRTIO] = "virtio",
    },
    .size = 3,
};

static const QEnumLookup mode_lookup = {
    .array = (const char *const[]) {
        [HT_MODE_DISCARD] = "discard",
        [HT_MODE_OVERWRITE] = "overwrite",
    },
    .size = 2,
};

static void enum_get(Object *obj, Visitor *v, const char *name, void *opaque,
                     Error **errp)
{
    const Property *prop = opaque;
    int *ptr = object_field_prop_ptr(obj, prop);

    visit_type_enum(v, name, ptr, prop->info->enum_table, errp);
}

static void enum_set(Object *obj, Visitor *v, const char *name, void *opaque,
                     Error **errp)
{
    const Property *prop = opaque;
    const QEnumLookup *lookup = prop->info->enum_table;
    int *ptr = object_field_prop_ptr(obj, prop);
    g_autofree char *value = NULL;
    int i;

    if (!visit_type_str(v, name, &value, errp)) {
        return;
    }
    for (i = 0; i < lookup->size; i++) {
        if (!strcmp(lookup->array[i], value)) {
            *ptr = i;
            return;
        }
    }
    error_setg(errp, "%s '%s' is not one of %s, %s%s%s", name, value,
               lookup->array[0], lookup->array[1],
               lookup->size > 2 ? ", " : "",
               lookup->size > 2 ? lookup->array[2] : "");
}

static void enum_set_default(ObjectProperty *op, const Property *prop)
{
    object_property_set_default_str(op,
                                    prop->info->enum_table->array[prop->
                                                                  defval.i]);
}

const PropertyInfo ht_prop_channel = {
    .type = "HypertraceChannel",
    .description = "hypercall, shm or virtio",
    .enum_table = &channel_lookup,
    .get = enum_get,
    .set = enum_set,
    .set_default_value = enum_set_default,
};

const PropertyInfo ht_prop_mode = {
    .type = "HypertraceMode",
    .description = "discard or overwrite",
    .enum_table = &mode_lookup,
    .get = enum_get,
    .set = enum_set,
    .set_default_value = enum_set_default,
};

static void events_get(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    char *events = HYPERTRACE_DEVICE(obj)->enable.events;

    if (!events) {
        events = (char *)"*";
    }
    visit_type_str(v, name, &events, errp);
}

static void events_set(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    g_autofree char *events = NULL;

    if (visit_type_str(v, name, &events, errp)) {
        ht_enable_set_events(HYPERTRACE_DEVICE(obj), events, errp);
    }
}

const PropertyInfo ht_prop_events = {
    .type = "str",
    .description = "patterns of the classes that are on, as 'sched_*,!irq'",
    .realized_set_allowed = true,
    .get = events_get,
    .set = events_set,
};

static bool visit_counters(Visitor *v, struct ht_stats *s, Error **errp)
{
    return visit_type_uint64(v, "events", &s->events, errp) &&
           visit_type_uint64(v, "packets", &s->packets, errp) &&
           visit_type_uint64(v, "bytes", &s->bytes, errp) &&
           visit_type_uint64(v, "lost", &s->lost, errp) &&
           visit_type_uint64(v, "dropped", &s->dropped, errp) &&
           visit_type_uint64(v, "wakeups", &s->wakeups, errp) &&
           visit_type_uint64(v, "errors", &s->errors, errp);
}

static bool visit_sink(Visitor *v, HtSinks *k, unsigned i,
                       Error **errp)
{
    HtSinkStats stats;
    char *id;
    bool ok;

    ht_sinks_stats(k, i, &stats);
    id = (char *)stats.id;
    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = visit_type_str(v, "backend", &id, errp) &&
         visit_type_uint64(v, "events", &stats.events, errp) &&
         visit_type_uint64(v, "discarded", &stats.discarded, errp) &&
         visit_type_uint64(v, "queued", &stats.queued, errp) &&
         visit_type_bool(v, "idle", &stats.idle, errp) &&
         visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

bool ht_sinks_visit(Visitor *v, HtSinks *k, Error **errp)
{
    bool ok = true;
    unsigned i;

    if (!visit_start_list(v, "backends", NULL, 0, errp)) {
        return false;
    }
    for (i = 0; ok && k && i < ht_sinks_count(k); i++) {
        ok = visit_sink(v, k, i, errp);
    }
    visit_end_list(v, NULL);
    return ok;
}

static bool visit_stream(Visitor *v, HtStream *s, Error **errp)
{
    uint64_t index = s->index, traced = s->consumer.info.instance;
    struct ht_stats stats;
    bool open = s->phase != HT_PHASE_FREE, ok;

    ht_stream_stats(s, &stats);
    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = visit_type_uint64(v, "stream", &index, errp) &&
         visit_type_uint64(v, "instance", &s->next.instance, errp) &&
         visit_type_uint64(v, "trace-instance", &traced, errp) &&
         visit_type_bool(v, "open", &open, errp) &&
         visit_type_bool(v, "stopped", &s->consumer.stopped, errp) &&
         visit_counters(v, &stats, errp) && visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

void ht_stats_get(Object *obj, Visitor *v, const char *name, void *opaque,
                  Error **errp)
{
    HypertraceDevice *dev = opaque;
    struct ht_stats stats = { };
    uint64_t hz = 0, bound = UINT64_MAX;
    uint32_t i;

    if (dev->streams) {
        ht_device_stats(dev, &stats);
        hz = ht_clock_hz(&dev->clock);
        bound = ht_clock_bound_ns(&dev->clock);
    }
    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    if (!visit_counters(v, &stats, errp) ||
        !visit_type_uint64(v, "clock-hz", &hz, errp) ||
        !visit_type_uint64(v, "clock-bound-ns", &bound, errp) ||
        !visit_start_list(v, "streams", NULL, 0, errp)) {
        goto out;
    }
    for (i = 0; dev->streams && i < dev->conf.streams; i++) {
        /* instances start at 1: the stream was used */
        if (dev->streams[i].next.instance &&
            !visit_stream(v, &dev->streams[i], errp)) {
            break;
        }
    }
    visit_end_list(v, NULL);
    if (ht_sinks_visit(v, dev->sinks, errp)) {
        visit_check_struct(v, errp);
    }
out:
    visit_end_struct(v, NULL);
}
