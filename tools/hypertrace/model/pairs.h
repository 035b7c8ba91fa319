/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: two events that belong together
 *
 * From an event A to the next event B that has the same key: the same task,
 * processor, or values of fields.
 */
#ifndef HYPERTRACE_TOOL_PAIRS_H
#define HYPERTRACE_TOOL_PAIRS_H

#include "model/model.h"

/**
 * HtPair: a pair
 * @boot: of both, from 1
 * @from_ns: when A was
 * @to_ns: when B was
 * @from_cpu: where A was
 * @to_cpu: where B was
 * @pid: whom it is about: the key's task, else who was running at A
 * @task: what is known of that
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
 * HtPairsCounts: what became of events that are in no pair
 * @from_alone: A before no B: another A came first, or the end of the
 *              recording, or a boot or a step of the clock
 * @to_alone: B without A
 * @across_gaps: both are there, but events between them may be missing
 * @left_out: A that were not looked at: too many were waiting
 * @no_from: there is no A at all
 * @no_to: there is no B at all
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
 * ht_pairs_new: look for pairs
 * @m: model; is at its beginning afterwards
 * @from: list of events, for ht_names_new()
 * @to: likewise
 * @key: what both have in common: words "task", "cpu", "FIELD" or
 *       "FIELD=FIELD", with commas between; NULL for what is usual for them
 * @errp: what is wrong with @key
 */
HtPairs *ht_pairs_new(HtModel *m, const char *from, const char *to,
                      const char *key, GError **errp);

/**
 * ht_pairs_free: stop that
 * @p: pairs or NULL
 */
void ht_pairs_free(HtPairs *p);

/**
 * ht_pairs_key: the key that is used
 * @p: pairs
 */
const char *ht_pairs_key(const HtPairs *p);

/**
 * ht_pairs_event: the next event
 * @p: pairs
 * @ev: event
 * @pair: filled in if it ends one; @pair.task is valid until the next event
 * @errp: set if it has no such field
 *
 * Returns: whether it ends one
 */
bool ht_pairs_event(HtPairs *p, const HtModelEvent *ev, HtPair *pair,
                    GError **errp);

/**
 * ht_pairs_end: there are no more events
 * @p: pairs
 *
 * Returns: the counts
 */
HtPairsCounts ht_pairs_end(HtPairs *p);

#endif /* HYPERTRACE_TOOL_PAIRS_H */
