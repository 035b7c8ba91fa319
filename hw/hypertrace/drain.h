/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: requests for an event once backends have taken everything
 */
#ifndef HW_HYPERTRACE_DRAIN_H
#define HW_HYPERTRACE_DRAIN_H

#include "sink.h"

/**
 * ht_drain_begin: ask for the event HYPERTRACE_DRAINED
 * @sinks: dispatcher of a device or object; NULL: it delivers nothing
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
 * Context: any thread, under a lock; while a request is pending
 */
void ht_drain_progress(void);

/**
 * ht_drain_end: end the requests of a dispatcher that is about to go
 * @sinks: the dispatcher
 *
 * Context: BQL
 */
void ht_drain_end(HtDispatch *sinks);

#endif /* HW_HYPERTRACE_DRAIN_H */
