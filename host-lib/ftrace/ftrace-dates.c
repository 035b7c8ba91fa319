/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: date the events of a recorded ftrace ring on the host's clock
 *
 * Bounds are sorted by the guest's time and added to a time map.  A segment
 * that the map drops is final and is kept in HtFtDates.segments.
 */
#include "hypertrace/ftrace-dates.h"

/* Maximum number of HtFtBounds that are kept; their size is 10 MiB */
#define BOUNDS_MAX (1u << 18)

struct HtFtDates {
    /* HtFtBounds; ht_ft_dates_fit() turns them into @segments */
    GArray *bounds;
    /* HtTimeSegment, in the order of guest times */
    GArray *segments;
    /*
     * @mult: mean rate in host ns per ns of the guest, times 2^32, for times
     * before the first segment.  @spread: uncertainty of that rate, for times
     * before the first segment and after the start of the last one
     */
    uint64_t mult;
    uint64_t spread;
};

HtFtDates *ht_ft_dates_new(void)
{
    HtFtDates *d = g_new0(HtFtDates, 1);

    d->bounds = g_array_new(false, false, sizeof(HtFtBounds));
    d->segments = g_array_new(false, false, sizeof(HtTimeSegment));
    return d;
}

void ht_ft_dates_free(HtFtDates *d)
{
    if (d) {
        g_array_unref(d->bounds);
        g_array_unref(d->segments);
        g_free(d);
    }
}

static gint by_time(gconstpointer a, gconstpointer b)
{
    const HtFtBounds *x = a, *y = b;

    return x->high_ns < y->high_ns ? -1 : x->high_ns > y->high_ns;
}

/* Merge two bounds: keep the tighter limit of each side */
static HtFtBounds best(const HtFtBounds *a, const HtFtBounds *b)
{
    HtFtBounds c = *b;

    if (a->low && (!b->low || (int64_t)(a->low - a->low_ns) >
                              (int64_t)(b->low - b->low_ns))) {
        c.low = a->low;
        c.low_ns = a->low_ns;
    }
    if ((int64_t)(a->high - a->high_ns) < (int64_t)(b->high - b->high_ns)) {
        c.high = a->high;
        c.high_ns = a->high_ns;
    }
    return c;
}

/* Halve the number of bounds by merging neighbours */
static void thin_out(HtFtDates *d)
{
    HtFtBounds *b = (HtFtBounds *)d->bounds->data;
    guint i;

    g_array_sort(d->bounds, by_time);
    for (i = 0; i < d->bounds->len / 2; i++) {
        b[i] = best(&b[2 * i], &b[2 * i + 1]);
    }
    g_array_set_size(d->bounds, d->bounds->len / 2);
}

void ht_ft_dates_add(HtFtDates *d, const HtFtPiece *p)
{
    HtFtBounds b;

    if (ht_ft_time_bounds(p, &b)) {
        if (d->bounds->len == BOUNDS_MAX) {
            thin_out(d);
        }
        g_array_append_val(d->bounds, b);
    }
}

/* Keep the oldest @count segments of a map, which later bounds cannot change */
static void keep(HtFtDates *d, const HtTimeMap *m, unsigned count)
{
    g_array_append_vals(d->segments, m->seg, count);
}

/*
 * Keep all segments of a map, before a step of the guest's clock or at the end
 */
static void keep_all(HtFtDates *d, const HtTimeMap *m)
{
    if (!d->mult && m->count) {
        d->mult = m->mean;
        d->spread = m->fastest - m->slowest;
    }
    keep(d, m, m->count);
}

/*
 * The guest's clock stepped after the last segment that was kept: the error
 * bound of this segment must cover both sides of the step.
 */
static void keep_step(HtFtDates *d, const HtFtTime *t)
{
    HtTimeSegment *last = &g_array_index(d->segments, HtTimeSegment,
                                         d->segments->len - 1);

    last->bound_ns = MAX(last->bound_ns, t->wide.hi - t->wide.lo);
}

/* Make segments of all bounds; @t holds the expected rate. */
static void make_segments(HtFtDates *d, HtFtTime *t)
{
    HtTimeMap before;
    uint64_t steps;
    guint i;

    g_array_set_size(d->segments, 0);
    d->mult = 0;
    for (i = 0; i < d->bounds->len; i++) {
        before = t->map;
        steps = t->steps;
        ht_ft_time_add(t, &g_array_index(d->bounds, HtFtBounds, i));
        if (t->steps != steps) {
            keep_all(d, &before);
            if (d->segments->len) {
                keep_step(d, t);
            }
        }
        before = t->map;
        ht_ft_time_settle(t);
        if (before.count == HT_TIME_SEGMENTS &&
            t->map.seg[0].counter != before.seg[0].counter) {
            keep(d, &before, 1);
        }
    }
    keep_all(d, &t->map);
}

/*
 * Fit once more, with the rate that the first pass found: if polls are rare,
 * the first pass gives the first segments wide error bounds.  Returns false if
 * the rate contradicts the bounds.
 */
static bool make_again(HtFtDates *d, const HtTimeMap *m)
{
    uint64_t off = MAX(m->fastest - m->mean, m->mean - m->slowest);
    HtFtTime t = { 0 };

    ht_ft_time_reset(&t);
    ht_ft_time_expect(&t, ht_time_map_hz(m), off / (m->mean / 1000000) + 2);
    make_segments(d, &t);
    return t.steps == 0;
}

void ht_ft_dates_fit(HtFtDates *d)
{
    HtFtTime t = { 0 };

    g_array_sort(d->bounds, by_time);
    ht_ft_time_reset(&t);
    make_segments(d, &t);
    if (t.map.count && t.steps == 0 && !make_again(d, &t.map)) {
        ht_ft_time_reset(&t);
        make_segments(d, &t);
    }
    g_array_set_size(d->bounds, 0);
}

bool ht_ft_dates_get(const HtFtDates *d, uint64_t ns, uint64_t *host_ns,
                     uint64_t *bound_ns)
{
    const HtTimeSegment *s = (const HtTimeSegment *)d->segments->data;
    guint low = 0, high = d->segments->len, i;
    uint64_t age;

    if (!high) {
        return false;
    }
    if (ns < s->counter) {
        age = s->counter - ns;
        *host_ns = s->ns - MIN(s->ns, ht_time_scale(age, d->mult));
        *bound_ns = MIN(s->bound_ns + ht_time_scale(age, d->spread),
                        HT_TIME_MAX_NS);
        return true;
    }
    while (high - low > 1) {
        i = low + (high - low) / 2;
        if (s[i].counter <= ns) {
            low = i;
        } else {
            high = i;
        }
    }
    *host_ns = ht_time_segment_to_ns(&s[low], ns);
    age = low + 1 == d->segments->len ? ns - s[low].counter : 0;
    *bound_ns = MIN(s[low].bound_ns + ht_time_scale(age, d->spread),
                    HT_TIME_MAX_NS);
    return true;
}

uint64_t ht_ft_dates_worst(const HtFtDates *d, uint64_t from_ns)
{
    uint64_t ns, worst = UINT64_MAX;
    guint i;

    if (ht_ft_dates_get(d, from_ns, &ns, &worst)) {
        for (i = 0; i < d->segments->len; i++) {
            const HtTimeSegment *s = &g_array_index(d->segments,
                                                    HtTimeSegment, i);

            worst = s->counter > from_ns ? MAX(worst, s->bound_ns) : worst;
        }
    }
    return worst;
}
