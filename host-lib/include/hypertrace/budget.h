/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: bound the time of one poll
 *
 * A guest chooses the length of the lists, texts and rings that a poll reads.
 * A reader does at least one step of its work in each poll.  Then it stops as
 * soon as the budget is used up, and continues in the next poll.
 */
#ifndef HYPERTRACE_BUDGET_H
#define HYPERTRACE_BUDGET_H

#include "hypertrace/base.h"

/**
 * HtBudget: time at which a reader must stop
 * @clock: returns the time, which is not negative; ht_now_ns(), for example
 * @end: time of @clock, in its unit, from which on the budget is used up
 */
typedef struct HtBudget {
    int64_t (*clock)(void);
    uint64_t end;
} HtBudget;

/**
 * ht_budget_is_over: test whether a budget is used up
 * @b: the budget; NULL stands for no limit, and is not used up
 */
static inline bool ht_budget_is_over(const HtBudget *b)
{
    return b && (uint64_t)b->clock() >= b->end;
}

#endif /* HYPERTRACE_BUDGET_H */
