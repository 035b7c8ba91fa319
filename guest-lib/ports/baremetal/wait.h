/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: waits that end
 *
 * Only time in which the guest runs counts: the virtual machine may be
 * stopped, or its host busy, while the clock goes on, and the device has had
 * no more time than the guest.  What waits itself between two looks, as an
 * exchange does that is repeated while the host is busy, counts but once.
 */
#ifndef HT_BM_WAIT_H
#define HT_BM_WAIT_H

#include "hypertrace/arch.h"

/**
 * struct ht_bm_wait - a wait in progress
 * @last: ht_clock() of the last look
 * @left: ticks until it is over
 * @step: ticks that count at most from one look to the next, 10 ms
 */
struct ht_bm_wait {
    uint64_t last;
    uint64_t left;
    uint64_t step;
};

/**
 * ht_bm_wait_start() - start to wait
 * @w: set
 * @hz: of ht_clock(); 0: unknown, and a fast counter is assumed, so that the
 *      wait is longer rather than shorter
 * @ms: how long, milliseconds
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
 * ht_bm_wait_over() - is it over?
 * @w: started; what is more than 10 ms since the last look does not count
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
