/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: requests for a QMP event once backends have taken all earlier
 * runs
 */
#ifndef HW_HYPERTRACE_DRAIN_H
#define HW_HYPERTRACE_DRAIN_H

#include "sink.h"

/**
 * ht_drain_begin: ask for the event HYPERTRACE_DRAINED
 * @sinks: dispatcher of a device or object; NULL: the device or object has
 *         none, and the event is sent at once
 * @path: QOM path of the device or object
 * @errp: set if too many requests are pending
 *
 * Returns: the number of the request; 0 with @errp set
 *
 * Context: BQL
 */
uint64_t ht_drain_begin(HtDispatch *sinks, const char *path, Error **errp);

/**
 * ht_drain_progress: schedule a check of the pending requests
 *
 * Call this while a request is pending, when a backend has taken a run.
 *
 * Context: any thread; a lock may be held
 */
void ht_drain_progress(void);

/**
 * ht_drain_end: end the requests of a dispatcher before it is freed
 * @sinks: the dispatcher
 *
 * Context: BQL
 */
void ht_drain_end(HtDispatch *sinks);

#endif /* HW_HYPERTRACE_DRAIN_H */
