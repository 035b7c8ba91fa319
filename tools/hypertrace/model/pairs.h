/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find pairs of events
 *
 * A pair is an event A and the next event B that has the same key: the same
 * task, processor, or values of fields. If another A with the same key comes
 * before the B, it replaces the first one; only calls of function_graph nest.
 */
#ifndef HYPERTRACE_TOOL_PAIRS_H
#define HYPERTRACE_TOOL_PAIRS_H

#include "model/model.h"

/**
 * HtPair: a pair of events A and B
 * @boot: boot of both, counted from 1
 * @from_ns: guest time of A in nanoseconds
 * @to_ns: guest time of B in nanoseconds
 * @from_cpu: processor of A
 * @to_cpu: processor of B
 * @pid: PID of the task in the key; if the key has no PID, of the task that ran
 *       at A
 * @task: that task; NULL if it is not known
 */
typedef struct HtPair {
    unsigned boot;
    uint64_t from_ns;
    uint64_t to_ns;
    uint32_t from_cpu;
    uint32_t to_cpu;
    int32_t pid;
    const HtTask *task;
} HtPair;

/**
 * HtPairsCounts: counts of events that are in no pair
 * @from_alone: events A without a B: another A with the same key, the end of
 *              the recording, a new boot or a step of the guest's clock came
 *              before the B; or A is a wakeup, and the task was switched out
 * @to_alone: events B without an A
 * @across_gaps: pairs left out because events between A and B may be missing
 * @left_out: events A left out because too many were waiting for their B
 * @no_from: the recording has no event A
 * @no_to: the recording has no event B
 */
typedef struct HtPairsCounts {
    uint64_t from_alone;
    uint64_t to_alone;
    uint64_t across_gaps;
    uint64_t left_out;
    bool no_from;
    bool no_to;
} HtPairsCounts;

typedef struct HtPairs HtPairs;

/**
 * ht_pairs_new: prepare to find pairs
 * @m: model; rewound
 * @from: list of events A, for ht_names_new()
 * @to: list of events B, for ht_names_new()
 * @key: values that A and B must have in common: words "task", "cpu", "FIELD"
 *       or "FIELD=FIELD", separated by commas; NULL for the default key of
 *       @from and @to
 * @errp: set if @key is not valid
 *
 * Returns: the search, or NULL
 */
HtPairs *ht_pairs_new(HtModel *m, const char *from, const char *to,
                      const char *key, GError **errp);

/**
 * ht_pairs_free: free a search
 * @p: the search or NULL
 */
void ht_pairs_free(HtPairs *p);

/**
 * ht_pairs_key: get the names of the key's fields, such as "task,cpu": the @key
 * of ht_pairs_new(), or the default key that it chose
 */
const char *ht_pairs_key(const HtPairs *p);

/**
 * ht_pairs_event: add the next event
 * @pair: filled in; valid only if true is returned; @pair.task is valid until
 *        the next event
 * @errp: set if the event lacks a field of the key
 *
 * Returns: true if the event completes a pair, and no events between A and B
 * may be missing
 */
bool ht_pairs_event(HtPairs *p, const HtModelEvent *ev, HtPair *pair,
                    GError **errp);

/**
 * ht_pairs_end: count the events without a pair, after the last event
 *
 * Returns: the counts
 */
HtPairsCounts ht_pairs_end(HtPairs *p);

#endif /* HYPERTRACE_TOOL_PAIRS_H */
