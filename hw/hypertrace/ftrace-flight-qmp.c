/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the command that asks for a recording
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-hypertrace.h"
#include "ftrace.h"

HypertraceSnapshots *qmp_hypertrace_snapshot(const char *object, Error **errp)
{
    Object *obj = object_resolve_path(object, NULL);
    HypertraceSnapshots *snapshots;
    HypertraceFtrace *ft;
    unsigned count;

    if (!obj || !object_dynamic_cast(obj, TYPE_HYPERTRACE_FTRACE) ||
        !HYPERTRACE_FTRACE(obj)->flights) {
        error_setg(errp, "'%s' is not the id of a " TYPE_HYPERTRACE_FTRACE
                   " object with the property flight", object);
        return NULL;
    }
    if (ht_ftrace_is_elsewhere()) {
        error_setg(errp, "the guest's memory is in another QEMU");
        return NULL;
    }
    ft = HYPERTRACE_FTRACE(obj);
    ht_ftrace_lock(ft);
    count = ht_flights_ask(ft->flights, errp);
    qemu_mutex_unlock(&ft->lock);
    if (!count) {
        return NULL;
    }
    snapshots = g_new0(HypertraceSnapshots, 1);
    snapshots->count = count;
    return snapshots;
}
