/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relating the guest's counter to host CLOCK_MONOTONIC
 *
 * Where QEMU knows the guest's counter (it makes it under TCG; under KVM it is
 * the host's TSC plus an offset that can be asked for), the host samples both
 * clocks itself.  Elsewhere the guest's exchanges bracket the host's clock.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "qemu/bswap.h"
#include "qemu/timer.h"
#include "system/cpu-timers.h"
#include "system/kvm.h"
#include "device.h"

/* How long a sample may be extrapolated from */
#define SAMPLE_INTERVAL_NS  (100 * SCALE_MS)
/* How soon to try again, and how long a bad sample is worse than an old one */
#define RETRY_INTERVAL_NS   (1 * SCALE_MS)
#define SAMPLE_LIFE_NS      (500 * SCALE_MS)
/* How long the best bracket stays the best */
#define BRACKET_LIFE_NS     (10 * NANOSECONDS_PER_SECOND)

static uint64_t guest_counter(const HtClock *c)
{
    return c->source == HT_CLOCK_KVM ?
           cpu_get_host_ticks() + c->tsc_offset : cpus_get_elapsed_ticks();
}

/* A counter, and the host's time within half of @width of it */
typedef struct Bracket {
    uint64_t counter;
    uint64_t ns;
    uint64_t width;
} Bracket;

/*
 * The guest's counter, or the host's if @c is NULL: the narrowest of a few
 * brackets, since an interrupt widens one.
 */
static Bracket bracket(const HtClock *c)
{
    Bracket b = { .width = UINT64_MAX };

    for (unsigned i = 0; i < 4; i++) {
        uint64_t before = get_clock();
        uint64_t value = c ? guest_counter(c) : cpu_get_host_ticks();
        uint64_t after = get_clock();

        if (after - before < b.width) {
            b.width = after - before;
            b.counter = value;
            b.ns = before + b.width / 2;
        }
    }
    return b;
}

/*
 * The host counter's frequency, measured once: 10 ms are enough for a start,
 * the maps measure their own slope.  Context: BQL
 */
static uint64_t host_hz(void)
{
    static uint64_t hz;

    if (!hz) {
        Bracket begin = bracket(NULL), end;

        g_usleep(10000);
        end = bracket(NULL);
        /* in floating point: a host that stood still may have taken long */
        hz = (double)(end.counter - begin.counter) * NANOSECONDS_PER_SECOND /
             (end.ns - begin.ns);
        hz = MAX(hz, 1000);
    }
    return hz;
}

void ht_clock_init(HtClock *c)
{
    memset(c, 0, sizeof(*c));
    qemu_mutex_init(&c->lock);
    c->source = kvm_enabled() ? HT_CLOCK_BRACKET : HT_CLOCK_ELAPSED;
    ht_time_map_init(&c->map, host_hz());
    c->version = 1;
}

void ht_clock_destroy(HtClock *c)
{
    qemu_mutex_destroy(&c->lock);
}

uint64_t ht_clock_hz(HtClock *c)
{
    QEMU_LOCK_GUARD(&c->lock);
    return ht_time_map_hz(&c->map);
}

/* Just before the next sample, when it is worst */
static uint64_t clock_bound(const HtClock *c)
{
    uint64_t bound = ht_time_map_bound(&c->map);
    uint64_t drift = ht_time_map_drift(&c->map, SAMPLE_INTERVAL_NS);

    return bound > UINT64_MAX - drift ? UINT64_MAX : bound + drift;
}

uint64_t ht_clock_bound_ns(HtClock *c)
{
    QEMU_LOCK_GUARD(&c->lock);
    return clock_bound(c);
}

static void add_sample(HtClock *c, uint64_t counter, uint64_t ns,
                       uint64_t bound_ns)
{
    ht_time_map_sample(&c->map, counter, ns, bound_ns);
    c->sampled_ns = get_clock();
    c->version++;
}

void ht_clock_sample(HtClock *c, bool now)
{
    int64_t age;
    Bracket b;

    QEMU_LOCK_GUARD(&c->lock);
    if (c->source == HT_CLOCK_BRACKET) {
        return;
    }
    age = get_clock() - c->sampled_ns;
    now |= c->map.count == 0;
    if (!now && (age < SAMPLE_INTERVAL_NS ||
                 get_clock() - c->tried_ns < RETRY_INTERVAL_NS)) {
        return;
    }
    c->tried_ns = get_clock();
    b = bracket(c);
    /* All were interrupted?  Then the last sample is worth more, for a while */
    if (!now && age < SAMPLE_LIFE_NS &&
        b.width / 2 > 4 * ht_time_map_bound(&c->map) + 100) {
        return;
    }
    add_sample(c, b.counter, b.ns, b.width / 2 + 1);
}

void ht_clock_update_offset(HtClock *c)
{
    int64_t offset;

    if (!kvm_enabled() || !ht_clock_kvm_offset(&offset)) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&c->lock) {
        if (c->source == HT_CLOCK_KVM && c->tsc_offset == offset) {
            return;
        }
        c->source = HT_CLOCK_KVM;
        c->tsc_offset = offset;
    }
    ht_clock_sample(c, true);
}

void ht_clock_copy(HtClock *c, HtTimeMap *map, unsigned *version)
{
    QEMU_LOCK_GUARD(&c->lock);
    if (*version != c->version) {
        *map = c->map;
        *version = c->version;
    }
}

void ht_clock_exchange(HtClock *c, struct ht_msg_time *m)
{
    uint64_t before = ldq_le_p(&m->before), after = ldq_le_p(&m->after);
    int64_t now = get_clock();

    ht_clock_update_offset(c);
    ht_clock_sample(c, true);
    WITH_QEMU_LOCK_GUARD(&c->lock) {
        if (c->source == HT_CLOCK_BRACKET && c->exchange_ns &&
            ldl_le_p(&m->prev) == c->exchange_cookie && after > before) {
            uint64_t width = after - before;

            if (c->best_ns == 0 || width <= c->best_width ||
                now - c->best_ns > BRACKET_LIFE_NS) {
                uint64_t hz = ht_time_map_hz(&c->map);

                c->best_width = width;
                c->best_ns = now;
                /* muldiv64() divides by 32 bits; counters exceed 4.2 GHz */
                add_sample(c, before + width / 2, c->exchange_ns,
                           (MIN(width, UINT32_MAX) / 2 + 1) *
                           NANOSECONDS_PER_SECOND / hz);
            }
        }
        c->exchange_ns = now;
        c->exchange_cookie = ldl_le_p(&m->h.cookie);
        stq_le_p(&m->host_ns, now);
        stq_le_p(&m->bound_ns, clock_bound(c));
    }
}

unsigned ht_clock_save(HtClock *c, HtTimeSegment *seg)
{
    QEMU_LOCK_GUARD(&c->lock);
    memcpy(seg, c->map.seg, c->map.count * sizeof(*seg));
    return c->map.count;
}

bool ht_clock_load(HtClock *c, const HtTimeSegment *seg, unsigned count,
                   int64_t shift)
{
    QEMU_LOCK_GUARD(&c->lock);
    if (!ht_time_map_load(&c->map, seg, count, shift, get_clock())) {
        return false;
    }
    if (c->source == HT_CLOCK_KVM) {
        c->source = HT_CLOCK_BRACKET;       /* until its offset is known */
    }
    c->exchange_ns = 0;
    c->best_ns = 0;
    c->sampled_ns = 0;
    c->version++;
    return true;
}
