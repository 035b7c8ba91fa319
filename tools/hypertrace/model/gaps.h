/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: where a recording has gaps
 */
#ifndef HYPERTRACE_TOOL_GAPS_H
#define HYPERTRACE_TOOL_GAPS_H

#include "model/model.h"

/* Any processor */
#define HT_GAPS_ANY     UINT32_MAX

typedef struct HtGaps HtGaps;

/**
 * ht_gaps_new: find all gaps
 * @m: model; is at its beginning afterwards
 *
 * Of very many, neighbours are taken for one.
 */
HtGaps *ht_gaps_new(HtModel *m);

/**
 * ht_gaps_free: forget them
 * @g: gaps or NULL
 */
void ht_gaps_free(HtGaps *g);

/**
 * ht_gaps_between: may an event be missing between two times?
 * @g: gaps
 * @ev: an event of the boot and segment that is meant
 * @cpu: of this processor, or HT_GAPS_ANY
 * @from: nanoseconds of the guest's clock
 * @to: likewise
 */
bool ht_gaps_between(const HtGaps *g, const HtModelEvent *ev, uint32_t cpu,
                     uint64_t from, uint64_t to);

#endif /* HYPERTRACE_TOOL_GAPS_H */
