/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: statistics for QMP
 */
#ifndef HW_HYPERTRACE_STATS_H
#define HW_HYPERTRACE_STATS_H

#include "qapi/qapi-types-hypertrace.h"
#include "sink.h"

typedef struct HypertraceDevice HypertraceDevice;

/**
 * ht_backend_stats: statistics of sinks
 * @d: of a device or object, or NULL
 *
 * Returns: a list that the caller frees
 *
 * Context: BQL
 */
HypertraceBackendStatsList *ht_backend_stats(HtDispatch *d);

/**
 * ht_fill_device_stats: fill in the statistics of a device
 * @dev: a realized device
 * @stats: zeroed; the lists in it are the caller's to free
 *
 * Context: BQL
 */
void ht_fill_device_stats(HypertraceDevice *dev, HypertraceStats *stats);

#endif /* HW_HYPERTRACE_STATS_H */
