/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: relate the guest's counter to the host's CLOCK_MONOTONIC
 *
 * On x86, QEMU can compute the guest's counter: under TCG from its own ticks;
 * under KVM, unless KVM scales the TSC, from the host's TSC and an offset that
 * KVM reports. The host then reads both clocks itself. Otherwise the guest
 * reads its counter before and after the host reads its clock
 * (HT_MSG_TIME_SYNC).
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "system/cpu-timers.h"
#include "system/kvm.h"
#include "system/runstate.h"
#include "clock.h"

static uint64_t elapsed_ticks(void *opaque)
{
    return cpus_get_elapsed_ticks();
}

static uint64_t host_ticks(void *opaque)
{
    return cpu_get_host_ticks();
}

/* Minimum duration of the measurement of the host counter's frequency */
#define MEASURE_NS (10 * SCALE_MS)

/*
 * Readings of the host's counter and clock at the start of QEMU, and the result
 * of suspended_ns() at that time
 */
static HtBracket start;
static int64_t start_suspended_ns;

/*
 * Time for which the host was suspended since its boot.  CLOCK_MONOTONIC stands
 * still meanwhile, and the counter may run.
 */
static int64_t suspended_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * NANOSECONDS_PER_SECOND + t.tv_nsec - get_clock();
}

static void start_measurement(void)
{
    start_suspended_ns = suspended_ns();
    start = ht_bracket(host_ticks, NULL);
}

type_init(start_measurement)

/*
 * Measure the host counter's frequency, once, with its error.  The time maps
 * improve this value by their own readings.
 *
 * The measurement begins at the start of QEMU, or in this call if the host was
 * suspended since then.  It therefore rarely sleeps, with the BQL held, when a
 * device is plugged into a running VM.  Context: BQL
 */
static uint64_t host_hz(uint32_t *ppm)
{
    static uint64_t hz;
    static uint32_t error_ppm;

    if (!hz) {
        HtBracket begin = start, end;
        uint64_t elapsed;

        if (llabs(suspended_ns() - start_suspended_ns) > MEASURE_NS) {
            begin = ht_bracket(host_ticks, NULL);
        }
        for (;;) {
            end = ht_bracket(host_ticks, NULL);
            elapsed = end.ns - begin.ns;
            error_ppm = MIN((double)(begin.width + end.width) / elapsed *
                            1000000 + 1, HT_TIME_PPM_MAX);
            /* After 10 ms, go on for up to 0.5 s if readings took long. */
            if (elapsed >= MEASURE_NS &&
                (error_ppm <= HT_TIME_NOMINAL_PPM / 4 ||
                 elapsed >= NANOSECONDS_PER_SECOND / 2)) {
                break;
            }
            g_usleep(MEASURE_NS / SCALE_US);
        }
        /*
         * Use floating point: some seconds after the start of QEMU, the product
         * exceeds 64 bits.
         */
        hz = (double)(end.counter - begin.counter) * NANOSECONDS_PER_SECOND /
             elapsed;
        hz = MAX(hz, 1000);
    }
    *ppm = error_ppm + HT_TIME_WANDER_PPM;
    return hz;
}

bool ht_clock_init(HtClock *c, Error **errp)
{
    uint32_t ppm;
    uint64_t hz = host_hz(&ppm);
    bool elapsed;

    memset(c, 0, sizeof(*c));
    if (!ht_clock_target(&c->counter, &hz, &ppm, &elapsed, errp)) {
        return false;
    }
    ht_guest_clock_init(&c->guest, hz, ppm, 0);
    if (elapsed) {
        ht_guest_clock_set_counter(&c->guest, elapsed_ticks, NULL, 0);
    }
    return true;
}

uint64_t ht_clock_bound_ns(void *opaque)
{
    HtClock *c = opaque;

    if (runstate_is_running()) {
        ht_guest_clock_sample(&c->guest, false);
    }
    return ht_guest_clock_bound(&c->guest);
}

void ht_clock_vm_change(HtClock *c, bool running)
{
    if (running) {
        ht_guest_clock_break(&c->guest);
    }
    ht_guest_clock_sample(&c->guest, true);
}

/*
 * Stop computing the counter from KVM's offset: from now on, only exchanges
 * with the guest relate the clocks.  Called if KVM scales the TSC or does not
 * report its frequency.
 *
 * KVM reports the scale only as frequencies in kHz: the error of a counter that
 * is computed from them would grow with time.
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
    ht_guest_clock_restart(&c->guest, hz, HT_TIME_PPM_MAX);
}

void ht_clock_update_offset(HtClock *c)
{
    HtKvmTsc tsc;

    if (!kvm_enabled() || !ht_clock_kvm_tsc(&tsc)) {
        return;
    }
    if (tsc.khz <= 0 || tsc.khz != tsc.host_khz) {
        leave_kvm(c, &tsc);
    } else {
        ht_guest_clock_set_counter(&c->guest, host_ticks, NULL, tsc.offset);
    }
}
