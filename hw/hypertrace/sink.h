/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: find the backends of this QEMU, and deliver runs to them */
#ifndef HW_HYPERTRACE_SINK_H
#define HW_HYPERTRACE_SINK_H

#include "hypertrace/backend.h"
#include "hypertrace/dispatch.h"

/* HtSinks: the backends that a device is attached to */
typedef struct HtSinks HtSinks;

/**
 * ht_backends_find: find the backends to attach to
 * @owner: if @ids is NULL: parent of the backend object that is made; see
 *         ht_backends_drop()
 * @name: name of the trace
 * @ids: ids of backends, separated by ':'; NULL: make an LTTng backend, or a
 *       null backend if this QEMU has no LTTng
 * @errp: set if a backend does not exist, cannot be made or is named twice, or
 *        if @ids has no id or too many
 *
 * Returns: an array of 1 to HT_QUEUES_MAX HypertraceBackend *, or NULL
 *
 * Context: BQL
 */
GPtrArray *ht_backends_find(Object *owner, const char *name, const char *ids,
                            Error **errp);
/*
 * ht_backends_drop: drop the backend that ht_backends_find() made, if any.
 * Call this after ht_sinks_free().  Context: BQL
 */
void ht_backends_drop(Object *owner);

/**
 * ht_sinks_new: attach to backends, and start a thread for each
 * @info: the device
 * @backends: at most HT_QUEUES_MAX HypertraceBackend *
 * @budget: see HtDispatchConfig
 * @packet: largest size for ht_dispatch_reserve()
 * @room: see HtDispatchConfig
 * @opaque: for @room
 * @errp: set if a backend refuses
 *
 * Context: BQL
 */
HtSinks *ht_sinks_new(const HtDeviceInfo *info, GPtrArray *backends,
                      size_t budget, size_t packet,
                      void (*room)(void *opaque), void *opaque, Error **errp);

/**
 * ht_sinks_free: deliver the posted runs, and detach from the backends
 * @k: the sinks; all streams must be closed
 *
 * Waits 5 s at most.  If a backend hangs longer, its session is freed after the
 * backend has returned and has taken the remaining runs.
 *
 * Context: BQL
 */
void ht_sinks_free(HtSinks *k);

/* ht_sinks_dispatch: get the dispatcher to post to; valid as long as @k */
HtDispatch *ht_sinks_dispatch(HtSinks *k);

#endif /* HW_HYPERTRACE_SINK_H */
