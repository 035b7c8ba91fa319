/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: keep the state of traces by name, as long as QEMU runs */
#ifndef HW_HYPERTRACE_REGISTRY_H
#define HW_HYPERTRACE_REGISTRY_H

#include "hypertrace/class.h"

/**
 * HtTrace: the state of a device name, kept when the device is unplugged
 * @name: the name
 * @classes: event classes; their ids never change
 * @instances: number of the newest stream instance in the trace
 * @used: a device has claimed the trace
 */
typedef struct HtTrace {
    char *name;
    HtClassTable *classes;
    uint64_t instances;
    bool used;
} HtTrace;

/**
 * ht_trace_claim: find or make the trace with a name, and mark it as used
 * @name: a name, or NULL for the first free one of "ht0", "ht1"...
 * @errp: set if the name is invalid or in use
 *
 * Context: BQL
 */
HtTrace *ht_trace_claim(const char *name, Error **errp);
/* ht_trace_release: let another device use the trace.  Context: BQL */
void ht_trace_release(HtTrace *trace);

#endif /* HW_HYPERTRACE_REGISTRY_H */
