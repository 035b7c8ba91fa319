/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the gaps of a recording: times in which events of a
 * processor were lost
 */
#ifndef HYPERTRACE_TOOL_GAPS_H
#define HYPERTRACE_TOOL_GAPS_H

#include "model/model.h"

#define HT_GAPS_ANY     UINT32_MAX      /* value of @cpu for any processor */

typedef struct HtGaps HtGaps;

/**
 * ht_gaps_new: find all gaps of a recording
 * @m: model of the recording; read and rewound
 *
 * Memory is bounded: if a processor has more than 65,536 gaps, each further gap
 * is merged with the gap before it, if both are in the same segment of the
 * clock. If more than 131,072 gaps of a processor remain, the rest of the
 * recording counts as one gap of that processor.
 */
HtGaps *ht_gaps_new(HtModel *m);

/**
 * ht_gaps_make: create an empty list of gaps
 * @cpus: number of processors
 */
HtGaps *ht_gaps_make(uint32_t cpus);

/**
 * ht_gaps_add: add a gap, which is after all others of its processor
 * @cpu: the processor, less than the number of processors
 * @epoch: boot of the gap, counted from 0
 * @segment: segment of the guest's clock in that boot
 * @from: begin of the gap, in nanoseconds of the guest's clock
 * @to: end of the gap, in nanoseconds of the guest's clock
 */
void ht_gaps_add(HtGaps *g, uint32_t cpu, uint32_t epoch, uint32_t segment,
                 uint64_t from, uint64_t to);

/**
 * ht_gaps_free: free the gaps
 * @g: gaps or NULL
 */
void ht_gaps_free(HtGaps *g);

/**
 * ht_gaps_between: whether a gap overlaps a range of time, so that events there
 *                  may be missing
 * @ev: an event of the boot and segment to which the range belongs
 * @cpu: processor, or HT_GAPS_ANY
 * @from: begin of the range, in nanoseconds of the guest's clock
 * @to: end of the range, in nanoseconds of the guest's clock
 */
bool ht_gaps_between(const HtGaps *g, const HtModelEvent *ev, uint32_t cpu,
                     uint64_t from, uint64_t to);

#endif /* HYPERTRACE_TOOL_GAPS_H */
