/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: define property types, and get the property "classes" */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-hypertrace.h"
#include "qapi/util.h"
#include "qapi/visitor.h"
#include "hw/qdev-properties.h"
#include "properties.h"

QEMU_BUILD_BUG_ON((int)HYPERTRACE_CHANNEL_HYPERCALL != HT_CHANNEL_HYPERCALL);
QEMU_BUILD_BUG_ON((int)HYPERTRACE_CHANNEL_SHM != HT_CHANNEL_SHM);
QEMU_BUILD_BUG_ON((int)HYPERTRACE_CHANNEL_VIRTIO != HT_CHANNEL_VIRTIO);
QEMU_BUILD_BUG_ON((int)HYPERTRACE_MODE_DISCARD != HT_MODE_DISCARD);
QEMU_BUILD_BUG_ON((int)HYPERTRACE_MODE_OVERWRITE != HT_MODE_OVERWRITE);

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
    i = qapi_enum_parse(lookup, value, -1, NULL);
    if (i >= 0) {
        *ptr = i;
        return;
    }
    error_setg(errp, "%s '%s' is not one of %s", name, value,
               prop->info->description);
}

static void enum_set_default(ObjectProperty *op, const Property *prop)
{
    object_property_set_default_str(op, qapi_enum_lookup(prop->info->enum_table,
                                                         prop->defval.i));
}

const PropertyInfo ht_prop_channel = {
    .type = "HypertraceChannel",
    .description = "hypercall, shm or virtio",
    .enum_table = &HypertraceChannel_lookup,
    .get = enum_get,
    .set = enum_set,
    .set_default_value = enum_set_default,
};

const PropertyInfo ht_prop_mode = {
    .type = "HypertraceMode",
    .description = "discard or overwrite",
    .enum_table = &HypertraceMode_lookup,
    .get = enum_get,
    .set = enum_set,
    .set_default_value = enum_set_default,
};

static void events_get(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    char *events = HYPERTRACE_DEVICE(obj)->enable.events ?: (char *)"*";

    visit_type_str(v, name, &events, errp);
}

static void events_set(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(obj);
    g_autofree char *events = NULL, *why = NULL;

    if (!visit_type_str(v, name, &events, errp)) {
        return;
    }
    if (!ht_enable_set_events(&dev->enable, events, &why)) {
        error_setg(errp, "events: %s", why);
    } else if (dev->poll.running) {
        ht_enable_decide(&dev->enable);
        ht_device_enable_watch(dev);
    }
}

const PropertyInfo ht_prop_events = {
    .type = "str",
    .description = "patterns of the classes that are on, as 'sched_*,!irq'",
    .realized_set_allowed = true,
    .get = events_get,
    .set = events_set,
};

static void settings_get(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    char *settings = HYPERTRACE_DEVICE(obj)->enable.settings ?: (char *)"";

    visit_type_str(v, name, &settings, errp);
}

static void settings_set(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(obj);
    g_autofree char *settings = NULL, *why = NULL;

    if (!visit_type_str(v, name, &settings, errp)) {
        return;
    }
    if (!ht_enable_set_settings(&dev->enable, settings, &why)) {
        error_setg(errp, "settings: %s", why);
    } else if (dev->poll.running) {
        ht_enable_tell(&dev->enable);
    }
}

const PropertyInfo ht_prop_settings = {
    .type = "str",
    .description = "for those who emit in the guest, as"
                   " 'functions=entry:vfs_*'",
    .realized_set_allowed = true,
    .get = settings_get,
    .set = settings_set,
};

static void unread_get(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    bool unread = HYPERTRACE_DEVICE(obj)->worker.unread;

    visit_type_bool(v, name, &unread, errp);
}

static void unread_set(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(obj);
    bool unread;

    if (visit_type_bool(v, name, &unread, errp) &&
        (!dev->trace || ht_check_unread(dev, unread, errp))) {
        ht_worker_set_unread(dev, unread);
    }
}

const PropertyInfo ht_prop_unread = {
    .type = "bool",
    .description = "leave rings to the guest until the VM stops or is reset",
    .realized_set_allowed = true,
    .get = unread_get,
    .set = unread_set,
};

void ht_classes_get(Object *obj, Visitor *v, const char *name, void *opaque,
                    Error **errp)
{
    HypertraceDevice *dev = opaque;
    const HtEnable *e = &dev->enable;
    g_autoptr(HypertraceClasses) all = g_new0(HypertraceClasses, 1);
    HypertraceClassList **tail = &all->classes;
    uint32_t n, id;

    if (!dev->trace) {
        error_setg(errp, "the device is not realized");
        return;
    }
    n = ht_class_table_count(dev->trace->classes);
    for (id = 1; id <= n; id++) {
        HypertraceClass *c = g_new0(HypertraceClass, 1);

        c->id = id;
        c->name = g_strdup(ht_class_table_get(dev->trace->classes, id)->name);
        c->on = id <= e->count && e->on[id];
        QAPI_LIST_APPEND(tail, c);
    }
    visit_type_HypertraceClasses(v, name, &all, errp);
}
