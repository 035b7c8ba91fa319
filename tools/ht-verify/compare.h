/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: compare two traces of one run
 */
#ifndef HT_VERIFY_COMPARE_H
#define HT_VERIFY_COMPARE_H

#include "account.h"

/**
 * Difference: difference of one stream in two traces
 * @device: name of the device
 * @index: index of the stream in the device
 * @same: events that both traces have, in the same order
 * @only_a: events that only the first trace has
 * @only_b: events that only the second trace has
 */
typedef struct Difference {
    const char *device;
    uint32_t index;
    uint64_t same;
    uint64_t only_a;
    uint64_t only_b;
} Difference;

/**
 * compare_hash: compute a hash of the name of an event's class and of the
 * values of its fields, without the names of the fields
 * @ev: the event; fields for which workload_is_extra() returns true are left
 *      out
 */
uint64_t compare_hash(const TraceEvent *ev);

/**
 * compare: compare the events of two traces
 * @a: first trace, read with @keep
 * @b: second trace, read with @keep
 *
 * All instances of a stream count as one stream, because LTTng's traces do not
 * distinguish them. If a trace lacks more events than its reports of discarded
 * events explain, a message is appended to the problems of @b.
 *
 * Returns: an array with a Difference * for each stream, for
 * g_ptr_array_unref(); not valid after @a or @b is freed
 */
GPtrArray *compare(Account *a, Account *b);

#endif /* HT_VERIFY_COMPARE_H */
