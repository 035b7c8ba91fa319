/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: QMP commands
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-hypertrace.h"
#include "qapi/util.h"
#include "device.h"
#include "drain.h"
#include "ftrace.h"
#include "stats.h"

/* A realized device or complete object */
typedef struct Found {
    char *path;                 /* QOM path; for a device, of its PCI proxy */
    const HtTrace *trace;
    HtDispatch *dispatch;       /* NULL: it delivers nothing */
} Found;

/* Returns false if @obj is neither; otherwise the caller frees f->path */
static bool look_at(Object *obj, Found *f)
{
    if (object_dynamic_cast(obj, TYPE_HYPERTRACE_DEVICE)) {
        HypertraceDevice *dev = HYPERTRACE_DEVICE(obj);

        if (!dev->prepared) {
            return false;
        }
        *f = (Found) { object_get_canonical_path(obj->parent), dev->trace,
                       dev->dispatch };
        return true;
    }
    if (object_dynamic_cast(obj, TYPE_HYPERTRACE_FTRACE)) {
        HypertraceFtrace *ft = HYPERTRACE_FTRACE(obj);

        if (!ft->complete) {
            return false;
        }
        *f = (Found) { object_get_canonical_path(obj), ft->trace,
                       ft->dispatch };
        return true;
    }
    return false;
}

/* Find a device or object by its id or QOM path; NULL with @errp set */
static Object *find(const char *path, Found *f, Error **errp)
{
    Object *obj = object_resolve_path(path, NULL), *device;

    device = obj ? object_resolve_path_component(obj, "virtio-backend") : NULL;
    obj = device ?: obj;
    if (!obj || !look_at(obj, f)) {
        error_setg(errp, "'%s' is not the id or QOM path of a hypertrace device"
                   " or hypertrace-ftrace object", path);
        return NULL;
    }
    return obj;
}

static void add(Object *obj, const Found *f, HypertraceInfoList **list)
{
    HypertraceInfo *info = g_new0(HypertraceInfo, 1);

    info->object = g_strdup(f->path);
    info->name = g_strdup(f->trace->name);
    if (object_dynamic_cast(obj, TYPE_HYPERTRACE_DEVICE)) {
        info->kind = HYPERTRACE_KIND_DEVICE;
        ht_fill_device_stats(HYPERTRACE_DEVICE(obj), &info->u.device);
    } else {
        info->kind = HYPERTRACE_KIND_FTRACE;
        ht_ftrace_stats(HYPERTRACE_FTRACE(obj), &info->u.ftrace);
    }
    QAPI_LIST_PREPEND(*list, info);
}

/* object_child_foreach_recursive() */
static int add_any(Object *obj, void *opaque)
{
    Found f;

    if (look_at(obj, &f)) {
        add(obj, &f, opaque);
        g_free(f.path);
    }
    return 0;
}

HypertraceInfoList *qmp_query_hypertrace(const char *object, Error **errp)
{
    HypertraceInfoList *list = NULL;

    if (object) {
        Found f;
        Object *obj = find(object, &f, errp);

        if (obj) {
            add(obj, &f, &list);
            g_free(f.path);
        }
        return list;
    }
    object_child_foreach_recursive(object_get_root(), add_any, &list);
    return list;
}

HypertraceDrain *qmp_hypertrace_drain(const char *object, Error **errp)
{
    HypertraceDrain *drain;
    uint64_t id;
    Found f;

    if (!find(object, &f, errp)) {
        return NULL;
    }
    id = ht_drain_begin(f.dispatch, f.path, errp);
    g_free(f.path);
    if (!id) {
        return NULL;
    }
    drain = g_new0(HypertraceDrain, 1);
    drain->id = id;
    return drain;
}
