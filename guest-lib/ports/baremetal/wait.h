/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: bounded waits
 *
 * Only time in which the guest runs is counted.  The virtual machine may be
 * stopped, or its host busy, while the clock runs; the device has had no more
 * time than the guest then.  At most 10 ms are counted between two checks.  So
 * an exchange between two checks, which has a wait of its own, counts as 10 ms
 * at most.
 */
#ifndef HT_BM_WAIT_H
#define HT_BM_WAIT_H

#include "hypertrace/arch.h"

/**
 * struct ht_bm_wait - a wait in progress
 * @last: ht_clock() at the last check
 * @left: ticks left
 * @step: maximum number of ticks counted between two checks: 10 ms
 */
struct ht_bm_wait {
    uint64_t last;
    uint64_t left;
    uint64_t step;
};

/**
 * ht_bm_wait_start() - start a wait
 * @w: initialized by this
 * @hz: frequency of ht_clock(); 0 if unknown: a fast counter is assumed, so
 *      that the wait is longer rather than shorter
 * @ms: duration in ms
 */
static inline void ht_bm_wait_start(struct ht_bm_wait *w, uint64_t hz,
                                    unsigned ms)
{
    if (!hz) {
        hz = 5000000000u;
    }
    w->last = ht_clock();
    w->left = hz / 1000 * ms;
    w->step = hz / 100;
}

/**
 * ht_bm_wait_over() - check whether a wait is over
 * @w: a started wait
 */
static inline int ht_bm_wait_over(struct ht_bm_wait *w)
{
    uint64_t now = ht_clock();
    uint64_t passed = now - w->last;

    if (passed > w->step) {
        passed = w->step;
    }
    w->last = now;
    if (passed >= w->left) {
        w->left = 0;
        return 1;
    }
    w->left -= passed;
    return 0;
}

#endif /* HT_BM_WAIT_H */
