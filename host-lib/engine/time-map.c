/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: convert a guest's counter to the host's CLOCK_MONOTONIC
 *
 * A reading gives two host times between which the counter had a value.  The
 * map also assumes a minimum and a maximum rate of the counter.  Each reading,
 * carried along at the slowest and the fastest rate, bounds the time of other
 * counters of its epoch.  The intersection of these bounds is the interval in
 * which the time of a reading must lie: the date is its middle, and the error
 * bound is half its width, unless dates would decrease.  A reading for which
 * the intersection is empty contradicts the earlier ones: the counter or the VM
 * stood still, or the counter jumped.  Such a reading begins a new epoch.
 */
#include "hypertrace/base.h"
#include "hypertrace/time-map.h"

#define NS_PER_SECOND UINT64_C(1000000000)

/* Default of HtTimeMap.step_ns: 50 ms */
#define STEP_NS 50000000

/*
 * Limits of HtTimeSegment.mult: counters of 100 GHz and 1 kHz, see
 * ht_time_map_init(), plus a margin of more than HT_TIME_PPM_MAX
 */
#define MULT_MIN ((UINT64_C(1) << HT_TIME_MULT_SHIFT) / 128)
#define MULT_MAX ((UINT64_C(1) << 20) << HT_TIME_MULT_SHIFT)

static uint64_t muldiv(uint64_t a, uint64_t b, uint64_t c)
{
    return MIN((unsigned __int128)a * b / c, UINT64_MAX);
}

/* Add two times; the result is at most HT_TIME_MAX_NS, unless @ns is larger */
static uint64_t plus(uint64_t ns, uint64_t more)
{
    return ns + MIN(more, HT_TIME_MAX_NS - MIN(ns, HT_TIME_MAX_NS));
}

static uint64_t minus(uint64_t ns, uint64_t less)
{
    return ns - MIN(ns, less);
}

static uint64_t slope(uint64_t ns, uint64_t ticks)
{
    return MIN(((unsigned __int128)ns << HT_TIME_MULT_SHIFT) / ticks,
               UINT64_MAX);
}

void ht_time_map_init(HtTimeMap *m, uint64_t hz)
{
    memset(m, 0, sizeof(*m));
    m->nominal = slope(NS_PER_SECOND, hz);
    m->latest = UINT64_MAX;
    m->wander = HT_TIME_WANDER_PPM;
    m->step_ns = STEP_NS;
    ht_time_map_set_ppm(m, HT_TIME_NOMINAL_PPM);
}

void ht_time_map_set_wander(HtTimeMap *m, uint32_t ppm, uint64_t step_ns)
{
    m->wander = MIN(ppm, HT_TIME_PPM_MAX);
    m->step_ns = step_ns;
    ht_time_map_set_ppm(m, m->ppm);
}

void ht_time_map_set_ppm(HtTimeMap *m, uint32_t ppm)
{
    m->mean = m->nominal;
    m->ppm = CLAMP(ppm, m->wander, HT_TIME_PPM_MAX);
    /*
     * @ppm is an error of the frequency.  The limits of ns per tick, its
     * inverse, are not symmetric.
     */
    m->slowest = muldiv(m->nominal, 1000000, 1000000 + m->ppm) - 1;
    m->fastest = muldiv(m->nominal, 1000000, 1000000 - m->ppm) + 2;
}

static void append(HtTimeMap *m, const HtTimeSegment *s,
                   const HtTimeInterval *t)
{
    if (m->count == HT_TIME_SEGMENTS) {
        memmove(&m->seg[0], &m->seg[1],
                (HT_TIME_SEGMENTS - 1) * sizeof(m->seg[0]));
        memmove(&m->at[0], &m->at[1],
                (HT_TIME_SEGMENTS - 1) * sizeof(m->at[0]));
        m->count--;
        m->epoch -= MIN(m->epoch, 1);
    }
    m->seg[m->count] = *s;
    m->at[m->count++] = *t;
}

/*
 * Limit each date to the next one: dates must not decrease.  ht_time_map_load()
 * refuses a saved map if its dates decrease.  The true times do not decrease
 * either, so the true time of a lowered date is at most the next date plus its
 * error.
 */
static void cut_dates(HtTimeMap *m)
{
    unsigned i;

    for (i = m->count - 1; i-- > 0;) {
        HtTimeSegment *s = &m->seg[i];

        if (s->ns > s[1].ns) {
            s->ns = s[1].ns;
            s->bound_ns = MAX(s->bound_ns, s[1].bound_ns);
        }
    }
}

static void begin_epoch(HtTimeMap *m, uint64_t counter, uint64_t ns,
                        const HtTimeInterval *t)
{
    HtTimeSegment s = {
        .counter = counter,
        .ns = ns,
        .mult = m->nominal,
        .bound_ns = MAX(t->hi - ns, ns - t->lo),
    };

    ht_time_map_set_ppm(m, m->ppm);
    append(m, &s, t);
    m->epoch = m->count - 1;
    m->first = counter;
    m->first_at = *t;
    cut_dates(m);
}

/*
 * Move the bounds @t forward by @ticks and intersect @now with them; return
 * false if the intersection is empty
 */
static bool carry(const HtTimeMap *m, const HtTimeInterval *t, uint64_t ticks,
                  HtTimeInterval *now)
{
    uint64_t lo = plus(t->lo, ht_time_scale(ticks, m->slowest));
    uint64_t hi = plus(t->hi, ht_time_scale(ticks, m->fastest) + 1);

    now->lo = MAX(now->lo, lo);
    now->hi = MIN(now->hi, hi);
    return now->lo <= now->hi;
}

/*
 * Move the bounds @now back by @ticks and intersect the bounds @t with them; if
 * the intersection is empty, keep @t
 */
static void carry_back(const HtTimeMap *m, const HtTimeInterval *now,
                       uint64_t ticks, HtTimeInterval *t)
{
    uint64_t lo = minus(now->lo, ht_time_scale(ticks, m->fastest) + 1);
    uint64_t hi = minus(now->hi, ht_time_scale(ticks, m->slowest));

    /*
     * The intersection can be empty by rounding, or if the rate between two
     * earlier readings is outside the limits that later readings gave.
     */
    lo = MAX(lo, t->lo);
    hi = MIN(hi, t->hi);
    if (lo <= hi) {
        *t = (HtTimeInterval) { lo, hi };
    }
}

/*
 * Compute the mean rate of the epoch from its start and its newest reading, if
 * the result is more precise than the present limits of the rate.  Narrow these
 * limits to those of the mean, widened by HtTimeMap.wander.
 */
static void learn_rate(HtTimeMap *m, uint64_t counter,
                       const HtTimeInterval *now)
{
    uint64_t ticks = counter - m->first, lo, hi;

    if (ticks == 0) {
        return;
    }
    lo = slope(minus(now->lo, m->first_at.hi), ticks);
    hi = slope(minus(now->hi, m->first_at.lo), ticks);
    hi = CLAMP(hi, lo, MAX(lo, MULT_MAX));
    if (hi - lo < m->fastest - m->slowest) {
        m->mean = lo + (hi - lo) / 2;
    }
    lo -= muldiv(lo, m->wander, 1000000);
    hi = muldiv(hi, 1000000, 1000000 - m->wander) + 2;
    lo = MAX(lo, m->slowest);
    hi = MIN(hi, m->fastest);
    if (lo < hi) {
        m->slowest = lo;
        m->fastest = hi;
    }
}

/*
 * Date all readings of the epoch in the middle of their bounds, or at another
 * time if dates would decrease otherwise
 */
static void redate(HtTimeMap *m)
{
    unsigned last = m->count - 1, i;
    uint64_t spread = (m->fastest - m->slowest) / 2 + 1;

    for (i = last; i-- > m->epoch;) {
        carry_back(m, &m->at[i + 1],
                   m->seg[i + 1].counter - m->seg[i].counter, &m->at[i]);
    }
    for (i = m->epoch; i <= last; i++) {
        const HtTimeInterval *t = &m->at[i];
        uint64_t ns = t->lo + (t->hi - t->lo) / 2;

        if (i && ns < m->seg[i - 1].ns) {
            /* Do not let the date decrease, except to its upper bound. */
            ns = MIN(m->seg[i - 1].ns, t->hi);
        }
        m->seg[i].ns = ns;
        m->seg[i].bound_ns = MAX(t->hi - ns, ns - t->lo);
    }
    cut_dates(m);
    for (i = m->epoch; i < last; i++) {
        uint64_t ticks = m->seg[i + 1].counter - m->seg[i].counter;

        m->seg[i].mult = ticks ?
            slope(minus(m->seg[i + 1].ns, m->seg[i].ns), ticks) : m->nominal;
        /*
         * If there are only a few ticks between two readings, rounding can give
         * any slope: limit the slope.
         */
        m->seg[i].mult = CLAMP(m->seg[i].mult, MULT_MIN, MULT_MAX);
        /* The error is largest about half way between two readings. */
        m->seg[i].bound_ns = MAX(m->seg[i].bound_ns, m->seg[i + 1].bound_ns) +
                             ht_time_scale(ticks / 2 + 1, spread) + 1;
    }
    m->seg[last].mult = CLAMP(m->mean, m->slowest, m->fastest);
}

/*
 * Find the counter at which the epoch of a contradicting reading begins.  If
 * the counter stood still, the epoch begins at this reading.  If the counter
 * jumped forward, assume that it jumped at the last reading and has run at its
 * nominal rate since.
 */
static uint64_t epoch_begin(const HtTimeMap *m, uint64_t counter, uint64_t ns,
                            const HtTimeInterval *now)
{
    const HtTimeSegment *last = &m->seg[m->count - 1];
    uint64_t ticks = counter - last->counter;
    uint64_t since = slope(minus(ns, last->ns), m->nominal);

    if (now->lo > plus(m->at[m->count - 1].hi,
                       ht_time_scale(ticks, m->fastest))) {
        return counter;
    }
    return counter - MIN(since, ticks);
}

void ht_time_map_sample(HtTimeMap *m, uint64_t counter, uint64_t ns,
                        uint64_t bound_ns)
{
    HtTimeInterval now, known, before = { 0, HT_TIME_MAX_NS };
    const HtTimeSegment *last;
    uint64_t begin;

    ns = MIN(ns, HT_TIME_MAX_NS);
    now.lo = minus(ns, bound_ns);
    now.hi = plus(ns, bound_ns);
    known = now;
    if (m->count && counter < m->seg[m->count - 1].counter) {
        m->count = 0;                           /* the counter went back */
    }
    if (m->count == 0 || m->restart) {
        m->restart = false;
        begin_epoch(m, counter, ns, &now);
        if (bound_ns == UINT64_MAX) {
            m->seg[m->count - 1].bound_ns = UINT64_MAX;
        }
        return;
    }
    last = &m->seg[m->count - 1];
    if (!carry(m, &m->at[m->count - 1], counter - last->counter, &known)) {
        begin = epoch_begin(m, counter, ns, &now);
        carry_back(m, &now, counter - begin, &before);
        begin_epoch(m, begin, before.lo + (before.hi - before.lo) / 2,
                    &before);
        last = &m->seg[m->count - 1];
        known = now;
        carry(m, &before, counter - begin, &known);
    }
    carry_back(m, &known, counter - m->first, &m->first_at);
    learn_rate(m, counter, &known);
    if (m->count - 1 > m->epoch &&
        minus(last->ns, m->seg[m->count - 2].ns) < m->step_ns &&
        minus(ns, last->ns) < m->step_ns) {
        /* the new reading replaces the last one */
        m->count--;
    }
    if (m->count - 1 == m->epoch && counter == last->counter) {
        /*
         * The counter is that at which the epoch begins: narrow the bounds of
         * this segment instead of adding one.
         */
        m->at[m->epoch] = known;
    } else {
        append(m, &(HtTimeSegment) { .counter = counter }, &known);
    }
    redate(m);
}

void ht_time_map_break(HtTimeMap *m)
{
    m->restart = m->count > 0;
}

uint64_t ht_time_shift(uint64_t ns, int64_t shift, uint64_t now_ns)
{
    uint64_t by = shift < 0 ? -(uint64_t)shift : (uint64_t)shift;

    if (shift < 0) {
        return MIN(ns - MIN(ns, by), now_ns);
    }
    return ns > now_ns || by > now_ns - ns ? now_ns : ns + by;
}

bool ht_time_map_load(HtTimeMap *m, const HtTimeSegment *seg, unsigned count,
                      int64_t shift, uint64_t now_ns)
{
    unsigned i;

    if (count > HT_TIME_SEGMENTS) {
        return false;
    }
    for (i = 0; i < count; i++) {
        if (seg[i].ns > HT_TIME_MAX_NS || seg[i].mult < MULT_MIN ||
            seg[i].mult > MULT_MAX ||
            (i && (seg[i].counter < seg[i - 1].counter ||
                   seg[i].ns < seg[i - 1].ns))) {
            return false;
        }
    }
    m->count = 0;
    for (i = 0; i < count; i++) {
        HtTimeSegment s = seg[i];

        s.ns = ht_time_shift(s.ns, shift, now_ns);
        if (s.ns == 0) {
            /* the segment would begin at time 0 of the host or before */
            continue;
        }
        append(m, &s, &(HtTimeInterval) { s.ns, s.ns });
        m->restart = true;
    }
    return true;
}

uint64_t ht_time_map_to_ns(const HtTimeMap *m, uint64_t counter)
{
    unsigned i = m->count;

    if (i == 0) {
        return 0;
    }
    while (i > 1 && counter < m->seg[i - 1].counter) {
        i--;
    }
    return ht_time_segment_to_ns(&m->seg[i - 1], counter);
}

uint64_t ht_time_map_bound(const HtTimeMap *m, uint64_t ns)
{
    const HtTimeSegment *last;
    uint64_t drift;

    if (m->count == 0 || m->restart) {
        return UINT64_MAX;
    }
    last = &m->seg[m->count - 1];
    /*
     * Assume the worst: the counter runs at one limit of its rate, and the next
     * reading dates events by the other limit; the last reading is older than
     * its date by its error.
     */
    drift = MIN(minus(ns, last->ns), HT_TIME_MAX_NS) +
            MIN(last->bound_ns, HT_TIME_MAX_NS);
    drift = muldiv(drift, m->fastest - m->slowest, m->slowest);
    return last->bound_ns > UINT64_MAX - drift ? UINT64_MAX :
           last->bound_ns + drift;
}

uint64_t ht_time_map_hz(const HtTimeMap *m)
{
    uint64_t mult = m->count ? m->seg[m->count - 1].mult : m->nominal;

    return slope(NS_PER_SECOND, mult);
}
