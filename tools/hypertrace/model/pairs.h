/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find pairs of events
 *
 * A pair is an event A and the next event B that has the same key: the same
 * task, processor or values of fields, or several of these. If another A with
 * the same key comes before the B, the earlier A is dropped. With their default
 * key, calls of function_graph nest instead: the earlier A then belongs to a
 * later B.
 */
#ifndef HYPERTRACE_TOOL_PAIRS_H
#define HYPERTRACE_TOOL_PAIRS_H

#include "model/model.h"

/**
 * HtPair: a pair of events A and B
 * @boot: boot of both, counted from 1
 * @from_ns: guest time of A in nanoseconds
 * @to_ns: guest time of B in nanoseconds, or @from_ns if B's time is less
 * @from_cpu: processor of A
 * @to_cpu: processor of B
 * @pid: first PID in the key of A; if the key has no PID, PID of the task that
 *       ran at A
 * @task: task with that PID; NULL if it is not known
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
 * @no_from: ht_pairs_event() got no event A
 * @no_to: ht_pairs_event() got no event B
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
 * @m: model; read to find its gaps, and rewound
 * @from: list of events A, for ht_names_new()
 * @to: list of events B, for ht_names_new()
 * @key: values that A and B must have in common: 1 to 4 words separated by
 *       commas, each "task", "cpu", "FIELD", or "FIELD=FIELD" for a field of A
 *       and a field of B; NULL for the default key of @from and @to
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
 * ht_pairs_key: get the key, such as "task,cpu": the @key of ht_pairs_new(), or
 * the default key that ht_pairs_new() chose
 */
const char *ht_pairs_key(const HtPairs *p);

/**
 * ht_pairs_event: add the next event
 * @pair: filled in; valid only if true is returned; @pair.task is valid until
 *        the next event
 * @errp: set if the event lacks a field of the key
 *
 * Returns: true if the event completes a pair, and no gap of the recording lies
 * between A and B; if the key has "cpu", gaps of other processors do not matter
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
