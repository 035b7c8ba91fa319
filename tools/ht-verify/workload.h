/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: what an event of ht-bench must carry; see ht-bench-payload.h
 */
#ifndef HT_VERIFY_WORKLOAD_H
#define HT_VERIFY_WORKLOAD_H

#include "hypertrace/abi.h"
#include "trace.h"

/**
 * WorkloadClass: how the payload of a class of a trace is checked
 * @known: one of ht-bench's; else there is nothing to check
 * @schema: its fields are what they should be
 * @index: which of ht-bench's classes
 * @members: where each of its fields is in the payload; [0] is seq
 */
typedef struct WorkloadClass {
    bool known;
    bool schema;
    unsigned index;
    uint64_t members[HT_FIELDS_MAX];
} WorkloadClass;

/**
 * workload_is_extra: whether a tracer put a field beside the class's own
 * @cls: of the event
 * @name: of a field: a length, or one of the prefix that LTTng's events have
 */
bool workload_is_extra(const TraceClass *cls, const char *name);

/**
 * workload_class: relate a class of a trace to the workload
 * @cls: of a trace
 * @w: filled in
 */
void workload_class(const TraceClass *cls, WorkloadClass *w);

/**
 * workload_seq: the sequence number of an event
 * @w: known, and its schema is right
 */
uint64_t workload_seq(const WorkloadClass *w, const bt_field *payload);

/**
 * workload_check: compare every field with what it should be
 * @w: known, and its schema is right
 * @tag: the stream's index
 * @payload: of the event
 *
 * Returns: NULL, or the name of the first field that differs
 */
const char *workload_check(const WorkloadClass *w, uint32_t tag,
                           const bt_field *payload);

#endif /* HT_VERIFY_WORKLOAD_H */
