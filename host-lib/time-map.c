/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: guest counter to host CLOCK_MONOTONIC
 *
 * Between two samples the map is the line through them; behind the last one
 * it goes on with the slope measured over all samples of the epoch, which is
 * the more exact the longer the epoch.  A nominal frequency is not good
 * enough: 50 ppm is 3 ms a minute.
 */
#include "hypertrace/base.h"
#include "hypertrace/time-map.h"

/* Over a shorter time the samples' own error makes the slope worse. */
#define INTERVAL_MIN_NS 5000000

/* How wrong the frequency may be that a map begins with */
#define NOMINAL_PPM 50

/* What two readings of the clocks may differ by beside their bounds */
#define TOLERANCE_NS 1000

/* Of counters of 100 GHz and 1 kHz, see ht_time_map_init() */
#define MULT_MIN ((UINT64_C(1) << HT_TIME_MULT_SHIFT) / 100)
#define MULT_MAX (UINT64_C(1000000) << HT_TIME_MULT_SHIFT)

static uint64_t muldiv(uint64_t a, uint64_t b, uint64_t c)
{
    return (unsigned __int128)a * b / c;
}

static uint64_t slope(uint64_t ns, uint64_t ticks)
{
    return ((unsigned __int128)ns << HT_TIME_MULT_SHIFT) / ticks;
}

void ht_time_map_init(HtTimeMap *m, uint64_t hz)
{
    memset(m, 0, sizeof(*m));
    m->nominal = ((unsigned __int128)1000000000 << HT_TIME_MULT_SHIFT) / hz;
}

/*
 * No counter is 1.6 % off its nominal frequency; the readings of a guest that
 * makes its own are.
 */
static bool plausible(const HtTimeMap *m, uint64_t mult)
{
    return mult >= m->nominal - m->nominal / 64 &&
           mult <= m->nominal + m->nominal / 64;
}

static void append(HtTimeMap *m, const HtTimeSegment *s)
{
    if (m->count == HT_TIME_SEGMENTS) {
        memmove(&m->seg[0], &m->seg[1],
                (HT_TIME_SEGMENTS - 1) * sizeof(m->seg[0]));
        m->count--;
    }
    m->seg[m->count++] = *s;
}

void ht_time_map_sample(HtTimeMap *m, uint64_t counter, uint64_t ns,
                        uint64_t bound_ns)
{
    HtTimeSegment s = {
        .counter = counter,
        .ns = ns,
        .mult = m->nominal,
        .bound_ns = bound_ns,
    };
    uint64_t ticks, elapsed, expected, off, mult;
    HtTimeSegment *last;

    if (m->count && (counter < m->seg[m->count - 1].counter ||
                     (m->restart && ns < m->seg[m->count - 1].ns))) {
        m->count = 0;                           /* reset */
    }
    if (m->count == 0 || m->restart) {
        m->restart = false;
        m->first = s;
        append(m, &s);
        return;
    }
    last = &m->seg[m->count - 1];
    if (ns <= last->ns) {
        return;
    }
    ticks = counter - last->counter;
    elapsed = ns - last->ns;
    expected = ht_time_scale(ticks, last->mult);
    off = expected > elapsed ? expected - elapsed : elapsed - expected;
    if (off > last->bound_ns + bound_ns + TOLERANCE_NS + elapsed / 1024) {
        /*
         * The counter stood still for a while (VM stopped) or jumped forward.
         * The line starts over here, so that the gap lies between the last
         * event before and the first one after it.
         */
        m->first = s;
    } else if (ticks == 0 ||
               (elapsed < INTERVAL_MIN_NS && bound_ns >= last->bound_ns)) {
        return;                                 /* nothing new */
    } else {
        if (elapsed >= INTERVAL_MIN_NS) {
            mult = slope(elapsed, ticks);
            last->mult = plausible(m, mult) ? mult : last->mult;
        }
        s.mult = last->mult;
        /* also soon after a worse sample, as ht_time_map_drift() relies on */
        if (ns - m->first.ns >= INTERVAL_MIN_NS) {
            mult = slope(ns - m->first.ns, counter - m->first.counter);
            s.mult = plausible(m, mult) ? mult : last->mult;
        }
    }
    append(m, &s);
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
            continue;               /* before this host's clock began */
        }
        append(m, &s);
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

uint64_t ht_time_map_bound(const HtTimeMap *m)
{
    return m->count && !m->restart ? m->seg[m->count - 1].bound_ns :
                                     UINT64_MAX;
}

uint64_t ht_time_map_drift(const HtTimeMap *m, uint64_t ns)
{
    const HtTimeSegment *last;
    uint64_t elapsed;

    if (m->count == 0 || m->restart) {
        return 0;
    }
    last = &m->seg[m->count - 1];
    elapsed = last->ns - m->first.ns;
    if (elapsed < INTERVAL_MIN_NS) {
        return muldiv(ns, NOMINAL_PPM, 1000000);
    }
    return muldiv(ns, MIN(m->first.bound_ns, UINT32_MAX) +
                      MIN(last->bound_ns, UINT32_MAX), elapsed);
}

uint64_t ht_time_map_hz(const HtTimeMap *m)
{
    uint64_t mult = m->count ? m->seg[m->count - 1].mult : m->nominal;

    return ((unsigned __int128)1000000000 << HT_TIME_MULT_SHIFT) / mult;
}
