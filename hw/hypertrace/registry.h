/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: traces by name, for the life of the QEMU process
 */
#ifndef HW_HYPERTRACE_REGISTRY_H
#define HW_HYPERTRACE_REGISTRY_H

#include "hypertrace/class.h"

/**
 * HtTrace: state keyed by device name that survives unplug
 * @name: key
 * @classes: ids stay what they were
 * @instances: stream instances so far
 * @used: a device has it
 */
typedef struct HtTrace {
    char *name;
    HtClassTable *classes;
    uint64_t instances;
    bool used;
} HtTrace;

/**
 * ht_trace_claim: find or make the trace with a name
 * @name: valid name, or NULL for the first free of "ht0", "ht1"...
 * @errp: set if the name is not valid or a device has it
 *
 * Context: BQL
 */
HtTrace *ht_trace_claim(const char *name, Error **errp);
/* ht_trace_release: another device may have it.  Context: BQL */
void ht_trace_release(HtTrace *trace);

#endif /* HW_HYPERTRACE_REGISTRY_H */
