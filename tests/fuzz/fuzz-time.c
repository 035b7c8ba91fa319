/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target time: add readings to a time map, arbitrary ones or those of two
 * honest clocks
 *
 * A time of a map is at most HT_TIME_MAX_NS, and times are monotone within each
 * segment. For honest clocks, the map differs from the true time by at most its
 * bound, a tick of the counter and 4 ns.
 */
#include "hypertrace/base.h"
#include "hypertrace/time-map.h"
#include "fuzz.h"

static void check_map(const HtTimeMap *m, uint64_t hz, FuzzInput *in)
{
    uint64_t a = fuzz_number(in), b = fuzz_number(in), ns;
    unsigned i;

    g_assert_cmpuint(m->count, <=, HT_TIME_SEGMENTS);
    for (i = 0; i < m->count; i++) {
        const HtTimeSegment *s = &m->seg[i];

        if (i) {
            g_assert_cmpuint(s->counter, >=, s[-1].counter);
        }
        g_assert_cmpuint(ht_time_segment_to_ns(s, s->counter), ==, s->ns);
        /* times do not decrease within the segment */
        ns = ht_time_segment_to_ns(s, MIN(a, b));
        g_assert_cmpuint(ht_time_segment_to_ns(s, MAX(a, b)), >=, ns);
        /*
         * At the first counter of this segment, the map gives the segment's
         * time, unless the next segment begins at the same counter.
         */
        if (i + 1 == m->count || s->counter < s[1].counter) {
            g_assert_cmpuint(ht_time_map_to_ns(m, s->counter), ==, s->ns);
        }
    }
    g_assert_cmpuint(ht_time_map_to_ns(m, a), <=, HT_TIME_MAX_NS);
    if (m->count) {
        g_assert_cmpuint(ht_time_map_bound(m, m->seg[m->count - 1].ns), >=,
                         m->seg[m->count - 1].bound_ns);
    } else {
        g_assert_cmpuint(ht_time_map_to_ns(m, a), ==, 0);
        g_assert_cmpuint(ht_time_map_bound(m, a), ==, UINT64_MAX);
    }
    g_assert_cmpuint(m->slowest, <, m->fastest);
    /* Readings move the frequency by at most a 32nd of the nominal one, @hz. */
    g_assert_cmpuint(ht_time_map_hz(m), >=, hz - hz / 32);
    g_assert_cmpuint(ht_time_map_hz(m), <=, hz + hz / 32);
    g_assert_cmpuint(ht_time_map_bound(m, MIN(a, b)), <=,
                     ht_time_map_bound(m, MAX(a, b)));
}

/* Check that another map can load the segments of this map. */
static void check_loads(const HtTimeMap *m, uint64_t hz)
{
    HtTimeMap copy;

    ht_time_map_init(&copy, hz);
    g_assert_true(ht_time_map_load(&copy, m->seg, m->count, 0,
                                   HT_TIME_MAX_NS));
}

static void any(FuzzInput *in, uint64_t hz)
{
    HtTimeMap m;

    ht_time_map_init(&m, hz);
    check_map(&m, hz, in);
    while (fuzz_more(in)) {
        fuzz_sample(in, &m);
        g_assert_cmpuint(m.count, >, 0);
        check_map(&m, hz, in);
        check_loads(&m, hz);
    }
}

typedef struct Truth {
    uint64_t hz;                /* nominal frequency in Hz */
    int32_t ppm;                /* actual frequency minus @hz, in ppm of @hz */
    uint64_t ns;                /* present time of the simulated host in ns */
} Truth;

/* Value at host time @ns of the guest's counter, which was 0 at time 0 */
static uint64_t counter_at(const Truth *t, uint64_t ns)
{
    return (unsigned __int128)ns * t->hz * (1000000 + t->ppm) /
           1000000 / 1000000000;
}

static void check_truth(const Truth *t, const HtTimeMap *m, uint64_t ns,
                        uint64_t allowed)
{
    uint64_t got = ht_time_map_to_ns(m, counter_at(t, ns));
    uint64_t tick = 1000000000 / t->hz + 4;

    g_assert_cmpuint(got, <=, ns + allowed + tick);
    g_assert_cmpuint(got + allowed + tick, >=, ns);
}

/*
 * Return bound_ns of the segment that contains @counter; of the first segment,
 * if @counter is before it.
 */
static uint64_t bound_between(const HtTimeMap *m, uint64_t counter)
{
    unsigned i = m->count;

    while (i > 1 && counter < m->seg[i - 1].counter) {
        i--;
    }
    return m->seg[i - 1].bound_ns;
}

static void honest(FuzzInput *in, uint64_t hz)
{
    Truth t = { .hz = hz, .ppm = fuzz_u8(in) % 101 - 50, .ns = 1000000000 };
    uint64_t last = 0;
    HtTimeMap m;

    ht_time_map_init(&m, hz);
    while (fuzz_more(in)) {
        uint8_t how = fuzz_u8(in);
        uint64_t before = last, at, bound, off;

        /* readings are 4 us to 2.1 s apart */
        t.ns += ((uint64_t)(how & 15) + 1) << (12 + (how >> 4));
        /* the maximum error of a reading is longer than the counter's tick */
        bound = fuzz_bits(in, 2) % 20000 + 1 + 1000000000 / hz;
        off = fuzz_bits(in, 2) % (2 * bound + 1);
        ht_time_map_sample(&m, counter_at(&t, t.ns), t.ns - bound + off,
                           bound + 1 + 1000000000 / hz);
        check_map(&m, hz, in);
        check_loads(&m, hz);
        last = t.ns;
        if (before) {
            /* check a time between the last two readings, and a later time */
            at = before + fuzz_bits(in, 4) % (last - before + 1);
            if (counter_at(&t, at) >= m.seg[0].counter) {
                check_truth(&t, &m, at, bound_between(&m, counter_at(&t, at)));
            }
            at = last + fuzz_bits(in, 4);
            check_truth(&t, &m, at, ht_time_map_bound(&m, at));
        }
    }
    g_assert_cmpuint(m.epoch, ==, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t hz[] = {
        1000, 1000000, 1000000000, 2400000001, UINT64_C(100000000000),
    };
    FuzzInput in = fuzz_input(data, size);
    uint8_t how = fuzz_u8(&in);

    if (how & 0x80) {
        honest(&in, hz[1 + how % 4]);
    } else {
        any(&in, hz[how % G_N_ELEMENTS(hz)]);
    }
    return 0;
}
