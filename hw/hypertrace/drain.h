/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: handle requests for the QMP event HYPERTRACE_DRAINED */
#ifndef HW_HYPERTRACE_DRAIN_H
#define HW_HYPERTRACE_DRAIN_H

#include "sink.h"

/**
 * ht_drain_begin: ask for the event HYPERTRACE_DRAINED
 * @sinks: dispatcher of a device
 * @path: QOM path of the device
 * @errp: set if too many requests are pending
 *
 * Returns: the number of the request; 0 with @errp set
 *
 * Context: BQL
 */
uint64_t ht_drain_begin(HtDispatch *sinks, const char *path, Error **errp);

/*
 * ht_drain_progress: HtDispatchConfig.progress: schedule a check of the pending
 * requests.  Context: any thread; a lock may be held
 */
void ht_drain_progress(void *opaque);

/**
 * ht_drain_end: end the requests of a dispatcher before it is freed
 * @sinks: the dispatcher
 *
 * Context: BQL
 */
void ht_drain_end(HtDispatch *sinks);

#endif /* HW_HYPERTRACE_DRAIN_H */
