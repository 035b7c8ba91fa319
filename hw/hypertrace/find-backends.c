/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: finding the backends that events go to
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "qom/object_interfaces.h"
#include "sink.h"

#define DEFAULT_BACKEND "default-backend"

/*
 * Without backend=, events go to LTTng if this QEMU can, and are only counted
 * otherwise.  object_new() of a type whose module is missing ends QEMU, so ask
 * first.
 */
static HypertraceBackend *default_backend(Object *owner, const char *name,
                                          Error **errp)
{
    const char *type = TYPE_HYPERTRACE_BACKEND_LTTNG;
    Object *obj;

    if (!module_object_class_by_name(type)) {
        type = TYPE_HYPERTRACE_BACKEND_NULL;
        warn_report("hypertrace: this QEMU has no LTTng backend: events of '%s'"
                    " are counted, not recorded; use backend=ID",
                    name);
    }
    obj = object_new(type);
    if (!user_creatable_complete(USER_CREATABLE(obj), errp)) {
        object_unref(obj);
        return NULL;
    }
    object_property_add_child(owner, DEFAULT_BACKEND, obj);
    object_unref(obj);
    return HYPERTRACE_BACKEND(obj);
}

void ht_backends_drop(Object *owner)
{
    Object *obj = object_resolve_path_component(owner, DEFAULT_BACKEND);

    if (obj) {
        object_unparent(obj);
    }
}

GPtrArray *ht_backends_find(Object *owner, const char *name,
                            const char *ids, Error **errp)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    g_auto(GStrv) id = NULL;
    unsigned i;

    if (!ids) {
        HypertraceBackend *b = default_backend(owner, name, errp);

        if (!b) {
            return NULL;
        }
        g_ptr_array_add(found, b);
        return g_steal_pointer(&found);
    }
    id = g_strsplit(ids, ":", -1);
    for (i = 0; id[i]; i++) {
        Object *obj = object_resolve_path_component(object_get_objects_root(),
                                                    id[i]);

        if (!object_dynamic_cast(obj, TYPE_HYPERTRACE_BACKEND)) {
            error_setg(errp, "backend=%s: there is no hypertrace backend '%s'",
                       ids, id[i]);
            return NULL;
        }
        if (g_ptr_array_find(found, obj, NULL)) {
            error_setg(errp, "backend=%s: '%s' is there twice",
                       ids, id[i]);
            return NULL;
        }
        g_ptr_array_add(found, obj);
    }
    if (found->len < 1 || found->len > HT_QUEUES_MAX) {
        error_setg(errp, "backend=%s names %u backends; 1 to %u are possible",
                   ids, found->len, HT_QUEUES_MAX);
        return NULL;
    }
    return g_steal_pointer(&found);
}

