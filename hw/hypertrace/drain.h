/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: requests for an event once backends have taken everything
 */
#ifndef HW_HYPERTRACE_DRAIN_H
#define HW_HYPERTRACE_DRAIN_H

#include "sink.h"

/**
 * ht_drain_begin: ask for the event HYPERTRACE_DRAINED
 * @sinks: of a device or object; NULL: it delivers nothing
 * @path: its QOM path
 * @errp: set if too many requests are pending
 *
 * Returns: the number of the request; 0 with @errp set
 *
 * Context: BQL
 */
uint64_t ht_drain_begin(HtDispatch *sinks, const char *path, Error **errp);

/**
 * ht_drain_progress: have requests looked at
 *
 * Context: any thread, under a lock; while a request is pending
 */
void ht_drain_progress(void);

/**
 * ht_drain_end: end the requests of sinks that are about to go
 * @sinks: any
 *
 * Context: BQL
 */
void ht_drain_end(HtDispatch *sinks);

#endif /* HW_HYPERTRACE_DRAIN_H */
