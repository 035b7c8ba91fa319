/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relate the guest's counter to the host's CLOCK_MONOTONIC
 *
 * If QEMU can compute the guest's counter, the host reads both clocks itself:
 * under TCG, QEMU makes the counter; under KVM it is the host's TSC plus an
 * offset that KVM reports.  Otherwise exchanges with the guest bracket the
 * host's clock.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "system/cpu-timers.h"
#include "system/kvm.h"
#include "system/runstate.h"
#include "clock.h"

/* Interval of readings, if the host can read the counter */
#define SAMPLE_INTERVAL_NS  (10 * SCALE_MS)
/*
 * How far ahead an error bound holds: at least until the next reading, and half
 * of the time within which readings share a segment of the map
 */
#define SAMPLE_AHEAD_NS     (25 * SCALE_MS)
#define BRACKET_AHEAD_NS    NANOSECONDS_PER_SECOND

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
 * Read the guest's counter, or the host's if @c is NULL.  Take the narrowest of
 * a few brackets, because an interrupt widens one.
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

/* Minimum duration of the measurement of the host counter's frequency */
#define MEASURE_NS (10 * SCALE_MS)

/* A reading at the start of QEMU, and the time suspended until then */
static Bracket start;
static int64_t start_suspended_ns;

/* Time that the host was suspended, in which the counter may run */
static int64_t suspended_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * NANOSECONDS_PER_SECOND + t.tv_nsec - get_clock();
}

static void start_measurement(void)
{
    start_suspended_ns = suspended_ns();
    start = bracket(NULL);
}

type_init(start_measurement)

/*
 * Measure the host counter's frequency, once, with its error.  The maps improve
 * it by their own readings.
 *
 * The measurement begins at the start of QEMU.  It therefore need not sleep,
 * with the BQL held, when a device is plugged into a running VM, unless the
 * host was suspended since.  Context: BQL
 */
static uint64_t host_hz(uint32_t *ppm)
{
    static uint64_t hz;
    static uint32_t error_ppm;

    if (!hz) {
        Bracket begin = start, end;
        uint64_t elapsed;

        if (llabs(suspended_ns() - start_suspended_ns) > MEASURE_NS) {
            begin = bracket(NULL);
        }
        for (;;) {
            end = bracket(NULL);
            elapsed = end.ns - begin.ns;
            error_ppm = MIN((double)(begin.width + end.width) / elapsed *
                            1000000 + 1, HT_TIME_PPM_MAX);
            /* Longer than 10 ms only if the readings were interrupted. */
            if (elapsed >= MEASURE_NS &&
                (error_ppm <= HT_TIME_NOMINAL_PPM / 4 ||
                 elapsed >= NANOSECONDS_PER_SECOND / 2)) {
                break;
            }
            g_usleep(MEASURE_NS / SCALE_US);
        }
        /* Floating point: if the host was stopped, this may be long. */
        hz = (double)(end.counter - begin.counter) * NANOSECONDS_PER_SECOND /
             elapsed;
        hz = MAX(hz, 1000);
    }
    *ppm = error_ppm + HT_TIME_WANDER_PPM;
    return hz;
}

static uint64_t now_ns(void)
{
    return get_clock();
}

bool ht_clock_init(HtClock *c, Error **errp)
{
    uint32_t ppm;
    uint64_t hz = host_hz(&ppm);

    memset(c, 0, sizeof(*c));
    if (!ht_clock_target(c, hz, ppm, errp)) {
        return false;
    }
    qemu_mutex_init(&c->lock);
    c->map.now = now_ns;
    c->version = 1;
    return true;
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

static uint64_t clock_bound(const HtClock *c)
{
    return ht_time_map_bound(&c->map, get_clock() +
                             (c->source == HT_CLOCK_BRACKET ?
                              BRACKET_AHEAD_NS : SAMPLE_AHEAD_NS));
}

uint64_t ht_clock_bound_ns(HtClock *c)
{
    if (runstate_is_running()) {
        ht_clock_sample(c, false);
    }
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
    Bracket b;

    QEMU_LOCK_GUARD(&c->lock);
    c->looked_ns = get_clock();
    if (c->source == HT_CLOCK_BRACKET) {
        return;
    }
    if (!now && c->map.count != 0 &&
        c->looked_ns - c->sampled_ns < SAMPLE_INTERVAL_NS) {
        return;
    }
    b = bracket(c);
    add_sample(c, b.counter, b.ns, b.width / 2 + 1);
}

/*
 * Begin an epoch of the map.  Values that the guest read before do not hold for
 * the counter now, so forget the exchange that would report them later.
 */
static void break_map(HtClock *c)
{
    ht_time_map_break(&c->map);
    c->exchange_ns = 0;
    c->version++;
}

void ht_clock_vm_change(HtClock *c, bool running)
{
    if (running) {
        QEMU_LOCK_GUARD(&c->lock);
        break_map(c);
    }
    ht_clock_sample(c, true);
}

/*
 * KVM does not report the fraction of a scaled TSC exactly enough to keep its
 * rounding small over months of ticks; exchanges are more precise.
 */
static void leave_kvm(HtClock *c, const HtKvmTsc *tsc)
{
    uint32_t ppm;
    uint64_t hz = host_hz(&ppm);

    if (c->scaled) {
        return;
    }
    if (tsc->khz > 0 && tsc->host_khz > 0) {
        hz = muldiv64(hz, tsc->khz, tsc->host_khz);
    }
    c->scaled = true;
    c->source = HT_CLOCK_BRACKET;
    ht_time_map_init(&c->map, CLAMP(hz, 1000, 100 * NANOSECONDS_PER_SECOND));
    ht_time_map_set_ppm(&c->map, HT_TIME_PPM_MAX);
    c->map.now = now_ns;
    c->version++;
}

void ht_clock_update_offset(HtClock *c)
{
    HtKvmTsc tsc;

    if (!kvm_enabled() || !ht_clock_kvm_tsc(&tsc)) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&c->lock) {
        if (tsc.khz <= 0 || tsc.khz != tsc.host_khz) {
            leave_kvm(c, &tsc);
            return;
        }
        if (c->source == HT_CLOCK_KVM && c->tsc_offset == tsc.offset) {
            return;
        }
        c->source = HT_CLOCK_KVM;
        c->tsc_offset = tsc.offset;
        break_map(c);
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
    map->latest = c->looked_ns;
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

            add_sample(c, before + width / 2, c->exchange_ns,
                       ht_time_scale(width / 2 + 1, c->map.fastest) + 1);
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
    c->sampled_ns = 0;
    c->version++;
    return true;
}
