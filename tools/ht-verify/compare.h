/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: do two traces of one run hold the same events?
 */
#ifndef HT_VERIFY_COMPARE_H
#define HT_VERIFY_COMPARE_H

#include "account.h"

/**
 * Difference: one stream in two traces
 * @device, @index: which
 * @same: events both have, in the same order
 * @only_a, @only_b: events only one of them has
 */
typedef struct Difference {
    const char *device;
    uint32_t index;
    uint64_t same;
    uint64_t only_a;
    uint64_t only_b;
} Difference;

/**
 * compare_hash: class and fields of an event as a number
 * @ev: an event; what the tracer added to it does not count
 */
uint64_t compare_hash(const TraceEvent *ev);

/**
 * compare: what two traces do not have in common
 * @a, @b: read with @keep; instances of a stream count as one stream, as
 *         LTTng's traces do not tell them apart
 *
 * What one lacks and says it has discarded is no problem; anything else is
 * noted with account_problem() in @b.
 *
 * Returns: Difference *, for each stream; to be freed
 */
GPtrArray *compare(Account *a, Account *b);

#endif /* HT_VERIFY_COMPARE_H */
