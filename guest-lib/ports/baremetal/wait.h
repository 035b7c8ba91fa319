/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: bounded waits
 *
 * A wait counts at most 10 ms between two checks.  While the virtual machine is
 * stopped or its host is busy, the clock may run although the device cannot
 * work.  Because of the limit, this time shortens a wait by at most 10 ms.
 */
#ifndef HT_BM_WAIT_H
#define HT_BM_WAIT_H

#include "hypertrace/arch.h"

/**
 * struct ht_bm_wait - a wait in progress
 * @last: ht_clock() at the last check
 * @left: ticks left
 * @step: 10 ms in ticks, the most that is counted between two checks
 */
struct ht_bm_wait {
    uint64_t last;
    uint64_t left;
    uint64_t step;
};

/**
 * ht_bm_wait_start() - start a wait
 * @w: initialized by this function
 * @hz: frequency of ht_clock(); 0: unknown, then 5 GHz is assumed, so that the
 *      wait is not too short
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
