/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: property types, and the statistics as a property
 */
#ifndef HW_HYPERTRACE_PROPERTIES_H
#define HW_HYPERTRACE_PROPERTIES_H

#include "qapi/qapi-types-hypertrace.h"
#include "device.h"

extern const PropertyInfo ht_prop_channel;
extern const PropertyInfo ht_prop_mode;
extern const PropertyInfo ht_prop_events;

/**
 * ht_sinks_qapi_stats: what sinks did
 * @k: sinks, or NULL
 *
 * Returns: a list, to be freed
 *
 * Context: BQL
 */
HypertraceBackendStatsList *ht_sinks_qapi_stats(HtSinks *k);

/**
 * ht_stats_get: getter of the "stats" property
 *
 * A struct with the device's counters and a list of its streams'.
 *
 * Context: BQL
 */
void ht_stats_get(Object *obj, Visitor *v, const char *name, void *opaque,
                  Error **errp);

#endif /* HW_HYPERTRACE_PROPERTIES_H */
