/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the pauses between searches for a ring
 */
#include "hypertrace/base.h"
#include "record/search-pace.h"

/*
 * Pause in ns between searches: at least this long after a ring was found, at
 * most this long before. A guest may create another ring after a reset.
 */
#define AGAIN_NS        UINT64_C(1000000000)
/*
 * After a ring was found, the pause is also a multiple of the search's
 * duration. It is shorter (PAUSE_LATER) from QUIET_LEAST_NS to QUIET_NS after
 * the last new event: the guest may have been reset. Then 1 % of a processor is
 * used, else 0.05 %, whatever the size of the memory.
 */
#define PAUSE_FOUND     1999
#define QUIET_LEAST_NS  UINT64_C(1500000000)
#define QUIET_NS        UINT64_C(60000000000)
/*
 * After a search without a result, the pause is a multiple of its duration, up
 * to AGAIN_NS: short searches use 10 % of a processor for EAGER_NS, 1 % later.
 */
#define EAGER_NS        UINT64_C(10000000000)
#define PAUSE_EAGER     9
#define PAUSE_LATER     99

static bool is_quiet(const HtSearchPace *p, uint64_t now)
{
    return now - p->active >= QUIET_LEAST_NS && now - p->active <= QUIET_NS;
}

bool ht_search_pace_due(HtSearchPace *p, uint64_t now)
{
    bool quiet = is_quiet(p, now);

    if (quiet && !p->quiet) {
        p->next = now;
    }
    p->quiet = quiet;
    return now >= p->next;
}

void ht_search_pace_done(HtSearchPace *p, uint64_t begun, uint64_t now,
                         bool found)
{
    uint64_t took = now - begun;

    if (found) {
        p->next = now + MAX(took * (is_quiet(p, now) ? PAUSE_LATER :
                                    PAUSE_FOUND), AGAIN_NS);
    } else {
        p->next = now + MIN(took * (now - p->started < EAGER_NS ?
                                    PAUSE_EAGER : PAUSE_LATER), AGAIN_NS);
    }
}
