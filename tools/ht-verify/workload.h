/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: check payloads of ht-bench; see ht-bench-payload.h
 */
#ifndef HT_VERIFY_WORKLOAD_H
#define HT_VERIFY_WORKLOAD_H

#include "hypertrace/abi.h"
#include "trace.h"

/**
 * WorkloadClass: information to check the payload of a class of a trace
 * @known: the class has a name of ht-bench; other classes are not checked
 * @schema: the fields of the class are those of ht-bench
 * @index: with @known: index of the class in the table of ht-bench's classes
 * @members: with @schema: index of each field in the payload; [0] is seq
 */
typedef struct WorkloadClass {
    bool known;
    bool schema;
    unsigned index;
    uint64_t members[HT_FIELDS_MAX];
} WorkloadClass;

/**
 * workload_is_extra: check by a field's name whether the tracer added the field
 * to those of the guest
 * @cls: class of the event
 * @name: name of the field
 */
bool workload_is_extra(const TraceClass *cls, const char *name);

/**
 * workload_class: find the class of ht-bench for a class of a trace
 * @cls: class of a trace
 * @w: filled in
 */
void workload_class(const TraceClass *cls, WorkloadClass *w);

/**
 * workload_seq: get the sequence number of an event
 * @w: class with @known and @schema
 * @payload: payload of the event
 */
uint64_t workload_seq(const WorkloadClass *w, const bt_field *payload);

/**
 * workload_check: compare the fields with their expected values
 * @w: class with @known and @schema
 * @tag: index of the stream
 * @payload: payload of the event
 *
 * Returns: NULL, or the name of the first field that differs
 */
const char *workload_check(const WorkloadClass *w, uint32_t tag,
                           const bt_field *payload);

#endif /* HT_VERIFY_WORKLOAD_H */
