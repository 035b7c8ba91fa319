/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: QMP commands
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-hypertrace.h"
#include "qemu/coroutine.h"
#include "device.h"
#include "ending.h"
#include "ftrace.h"

#define TIMEOUT_MS 5000

/* How soon to look again, as nobody who delivers should have to tell */
#define LOOK_NS SCALE_MS

/* The device behind a PCI proxy, or an object that has sinks, too */
static Object *find(const char *path)
{
    Object *obj = object_resolve_path(path, NULL), *device;

    device = obj ? object_resolve_path_component(obj, "virtio-backend") : NULL;
    return device ?: obj;
}

/* NULL if it has none, or has none any more */
static HtSinks *sinks_of(Object *obj)
{
    if (obj && object_dynamic_cast(obj, TYPE_HYPERTRACE_DEVICE)) {
        return HYPERTRACE_DEVICE(obj)->sinks;
    }
    if (obj && object_dynamic_cast(obj, TYPE_HYPERTRACE_FTRACE)) {
        return HYPERTRACE_FTRACE(obj)->sinks;
    }
    return NULL;
}

void coroutine_fn qmp_hypertrace_wait(const char *device, bool has_timeout,
                                      uint32_t timeout, Error **errp)
{
    Object *obj = find(device);
    HtSinks *sinks = sinks_of(obj);
    uint32_t posted[HT_QUEUES_MAX];
    const char *behind;
    int64_t end;

    if (!sinks) {
        error_setg(errp, "'%s' is not the id of a hypertrace device", device);
        return;
    }
    if (!has_timeout) {
        timeout = TIMEOUT_MS;
    }
    end = get_clock() + timeout * (int64_t)SCALE_MS;
    object_ref(obj);
    ht_sinks_posted(sinks, posted);
    while ((behind = ht_sinks_behind(sinks, posted))) {
        if (get_clock() >= end) {
            error_setg(errp, "%s: backend '%s' has not taken all events"
                       " within %" PRIu32 " ms", device, behind, timeout);
            break;
        }
        if (ht_qemu_ends()) {
            error_setg(errp, "%s: backend '%s' has not taken all events, and"
                       " QEMU ends", device, behind);
            break;
        }
        qemu_co_sleep_ns(QEMU_CLOCK_REALTIME, LOOK_NS);
        if (!sinks_of(obj)) {
            error_setg(errp, "'%s' was unplugged meanwhile", device);
            break;
        }
    }
    object_unref(obj);
}
