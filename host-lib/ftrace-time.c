/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a ring's times on the host's clock
 *
 * All times of the guest may be forged: whatever they are, the bounds stay
 * ordered and far from where they overflow.
 */
#include "hypertrace/ftrace-time.h"

/* No clock is further from the other: 73 years */
#define FAR (INT64_MAX / 4)

void ht_ft_time_reset(HtFtTime *t)
{
    t->lowest = INT64_MIN;
    t->highest = INT64_MAX;
}

/* False if this is no clock */
static bool difference(uint64_t host, uint64_t guest, int64_t *d)
{
    if (host > FAR || guest > FAR) {
        return false;
    }
    *d = (int64_t)host - (int64_t)guest;
    return true;
}

/* What was known earlier, and how rates may differ */
static void grow_old(HtFtTime *t, uint64_t now)
{
    uint64_t age = now > t->at_ns ? MIN(now - t->at_ns, FAR / 4) : 0;
    int64_t drift = age / 1000000 * HT_FT_TIME_PPM +
                    age % 1000000 * HT_FT_TIME_PPM / 1000000;

    if (t->lowest != INT64_MIN) {
        t->lowest = MAX(t->lowest, -FAR) - drift;
    }
    if (t->highest != INT64_MAX) {
        t->highest = MIN(t->highest, FAR) + drift;
    }
    t->at_ns = MAX(t->at_ns, now);
}

/*
 * When the second event was reserved, the first was committed: which the look
 * before did not see.  Not so in an interrupt, which may be within the first.
 */
static bool second_event(const HtFtPiece *p, uint64_t *ns)
{
    HtFtRecord r;
    HtFtIter it;

    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    if (ht_ft_iter_next(&it, &r) != HT_FT_EVENT ||
        ht_ft_iter_next(&it, &r) != HT_FT_EVENT) {
        return false;
    }
    *ns = r.ns;
    return !(ht_ft_event_flags(r.data) & HT_FT_IN_INTERRUPT);
}

void ht_ft_time_learn(HtFtTime *t, const HtFtPiece *p)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    uint64_t ns;

    if (!p->host_after || !p->events) {
        return;
    }
    grow_old(t, p->host_after);
    if (p->host_before && second_event(p, &ns) &&
        !difference(p->host_before, ns, &low)) {
        low = INT64_MIN;
    }
    if (!difference(p->host_after, p->end_ns, &high)) {
        high = INT64_MAX;
    }
    if (MAX(low, t->lowest) <= MIN(high, t->highest)) {
        t->lowest = MAX(low, t->lowest);
        t->highest = MIN(high, t->highest);
        return;
    }
    t->steps++;
    if (low <= high && (low == INT64_MIN || high == INT64_MAX)) {
        /* only one side is known of where the clock is now */
        t->lowest = low;
        t->highest = high;
    } else {
        t->lowest = MIN(low, high);
        t->highest = MAX(low, high);
    }
}

uint64_t ht_ft_time_host(const HtFtTime *t, const HtFtPiece *p, uint64_t ns)
{
    int64_t d, sum;

    if (t->lowest != INT64_MIN && t->highest != INT64_MAX) {
        d = t->lowest + (t->highest - t->lowest) / 2;
    } else if (t->highest != INT64_MAX) {
        d = t->highest;
    } else if (t->lowest != INT64_MIN) {
        d = t->lowest;
    } else {
        return p->host_after;
    }
    if (ns > FAR || __builtin_add_overflow((int64_t)ns, d, &sum)) {
        return p->host_after;
    }
    return MIN((uint64_t)MAX(sum, 0), p->host_after);
}

uint64_t ht_ft_time_bound(const HtFtTime *t)
{
    if (t->lowest == INT64_MIN || t->highest == INT64_MAX) {
        return UINT64_MAX;
    }
    return ((uint64_t)t->highest - (uint64_t)t->lowest) / 2 + 1;
}
