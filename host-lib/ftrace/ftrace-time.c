/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: convert an ftrace ring's time stamps to the host's clock
 *
 * The guest may forge all of its times.  The code keeps each lower bound at or
 * below its upper bound, and all values far from an overflow.
 */
#include "hypertrace/ftrace-time.h"

#define NS_PER_SECOND UINT64_C(1000000000)

/* Limit of valid times: 73 years in ns */
#define FAR (INT64_MAX / 4)

/*
 * Samples within this time, in ns, share a segment of the map; a poll usually
 * takes less
 */
#define STEP_NS 2000000

static void begin(HtFtTime *t)
{
    ht_time_map_init(&t->map, t->hz);
    ht_time_map_set_ppm(&t->map, t->ppm);
    ht_time_map_set_wander(&t->map, HT_FT_TIME_WANDER_PPM, STEP_NS);
    t->at = (HtTimeInterval) { 0, HT_TIME_MAX_NS };
    t->news = t->stepped = false;
}

void ht_ft_time_expect(HtFtTime *t, uint64_t hz, uint32_t ppm)
{
    t->hz = hz;
    t->ppm = ppm;
    begin(t);
}

void ht_ft_time_reset(HtFtTime *t)
{
    t->counter = 0;
    ht_ft_time_expect(t, NS_PER_SECOND, HT_FT_TIME_PPM);
}

/*
 * Find the first event that was certainly written after the previous poll
 * began: an event of a task, with a later time stamp than the event before it
 * in the piece.  When a task reserves an event, all earlier events of the
 * processor are committed, but the first event of the piece was not committed
 * at the previous poll.
 * Events of interrupts do not count: an interrupt can come while an event is
 * not committed yet, and if it comes while an event is being reserved, the
 * kernel gives its event the earlier time.
 */
static bool later_event(const HtFtPiece *p, uint64_t *ns)
{
    HtFtRecord r;
    uint64_t last;
    HtFtIter it;

    ht_ft_iter_init(&it, p->data, p->size, 0, p->base_ns);
    if (ht_ft_iter_next(&it, &r) != HT_FT_EVENT) {
        return false;
    }
    for (last = r.ns; ht_ft_iter_next(&it, &r) == HT_FT_EVENT; last = r.ns) {
        if (r.ns > last &&
            !(ht_ft_event_flags(r.data) & HT_FT_IN_INTERRUPT)) {
            *ns = r.ns;
            return true;
        }
    }
    return false;
}

bool ht_ft_time_bounds(const HtFtPiece *p, HtFtBounds *b)
{
    *b = (HtFtBounds) {
        .high_ns = p->end_ns,
        .high = p->host_after,
    };
    if (!p->host_after || p->host_after > FAR || !p->events ||
        p->end_ns > FAR) {
        return false;
    }
    if (p->host_before && p->host_before <= p->host_after &&
        later_event(p, &b->low_ns) && b->low_ns <= p->end_ns) {
        b->low = p->host_before;
    }
    return true;
}

/* Move known bounds forward by @ticks; unknown bounds stay unknown */
static void carry(const HtTimeMap *m, uint64_t ticks, HtTimeInterval *t)
{
    if (t->lo) {
        t->lo = MIN(t->lo + ht_time_scale(ticks, m->slowest), HT_TIME_MAX_NS);
    }
    t->hi = MIN(t->hi + ht_time_scale(ticks, m->fastest) + 1, HT_TIME_MAX_NS);
}

/*
 * Restart the relation at a step of the guest's clock.  Events from both sides
 * of the step are in the same poll, perhaps in the same piece, so the error
 * bound of this poll's dates must cover the step.
 */
static void step(HtFtTime *t, const HtTimeInterval *new)
{
    HtTimeInterval wide = {
        MIN(MIN(t->at.lo, new->lo), new->hi),
        MAX(MAX(t->at.hi, new->lo), new->hi),
    };

    if (t->stepped) {
        wide.lo = MIN(wide.lo, t->wide.lo);
        wide.hi = MAX(wide.hi, t->wide.hi);
    }
    begin(t);
    t->at.lo = MIN(new->lo, new->hi);
    t->at.hi = MAX(new->lo, new->hi);
    t->wide = wide;
    t->stepped = true;
    t->steps++;
}

void ht_ft_time_add(HtFtTime *t, const HtFtBounds *b)
{
    uint64_t counter = MAX(t->counter, MAX(b->low_ns, b->high_ns));
    HtTimeInterval low = { b->low, HT_TIME_MAX_NS }, new = { 0, b->high };

    carry(&t->map, counter - b->low_ns, &low);
    carry(&t->map, counter - b->high_ns, &new);
    new.lo = low.lo;
    carry(&t->map, counter - t->counter, &t->at);
    carry(&t->map, counter - t->counter, &t->wide);
    t->counter = counter;
    t->news = true;
    if (MAX(new.lo, t->at.lo) > MIN(new.hi, t->at.hi)) {
        step(t, &new);
    } else {
        t->at.lo = MAX(new.lo, t->at.lo);
        t->at.hi = MIN(new.hi, t->at.hi);
    }
}

void ht_ft_time_settle(HtFtTime *t)
{
    const HtTimeInterval *at = t->stepped ? &t->wide : &t->at;
    uint64_t half = (at->hi - at->lo) / 2;

    if (t->news && at->lo && at->hi < HT_TIME_MAX_NS) {
        ht_time_map_sample(&t->map, t->counter, at->lo + half, half + 1);
    }
    t->news = t->stepped = false;
}

uint64_t ht_ft_time_host(HtFtTime *t, const HtFtPiece *p, uint64_t ns)
{
    uint64_t known = t->at.lo ? t->at.lo : t->at.hi, age;

    ht_ft_time_settle(t);
    if (t->map.count) {
        return MIN(ht_time_map_to_ns(&t->map, ns), p->host_after);
    }
    age = t->counter - MIN(t->counter, ns);
    return MIN(known - MIN(known, age), p->host_after);
}
