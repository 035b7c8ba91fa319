/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a recording when the user asks for one
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-hypertrace.h"
#include "qemu/coroutine.h"
#include "qemu/timer.h"
#include "ending.h"
#include "ftrace.h"

#define TIMEOUT_MS 5000

/* How soon to look again, as the thread should not have to tell */
#define LOOK_NS SCALE_MS

/* Context: as the command */
static bool coroutine_fn wait_for(HypertraceFtrace *ft, uint64_t number,
                                  int64_t end, HypertraceSnapshotList **list)
{
    bool done;

    for (;;) {
        done = ht_flights_answer(ft->flights, number, list);
        if (done || get_clock() >= end || ht_qemu_ends()) {
            return done;
        }
        qemu_co_sleep_ns(QEMU_CLOCK_REALTIME, LOOK_NS);
    }
}

HypertraceSnapshotList * coroutine_fn
qmp_hypertrace_snapshot(const char *object, bool has_timeout, uint32_t timeout,
                        Error **errp)
{
    Object *obj = object_resolve_path(object, NULL);
    HypertraceSnapshotList *list = NULL;
    HypertraceFtrace *ft;
    uint64_t number;

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
    if (!has_timeout) {
        timeout = TIMEOUT_MS;
    }
    ft = HYPERTRACE_FTRACE(obj);
    object_ref(obj);
    ht_ftrace_lock(ft);
    number = ht_flights_ask(ft->flights);
    qemu_mutex_unlock(&ft->lock);
    if (!wait_for(ft, number, get_clock() + timeout * (int64_t)SCALE_MS,
                  &list)) {
        if (ht_qemu_ends()) {
            error_setg(errp, "%s: the recording is not written yet, and QEMU"
                       " ends", object);
        } else {
            error_setg(errp, "%s: the recording is not written yet after %"
                       PRIu32 " ms", object, timeout);
        }
    } else if (!list) {
        error_setg(errp, "%s: no ring that changes was found in the guest's"
                   " memory", object);
    }
    object_unref(obj);
    return list;
}
