/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: emit by USDT probes, with the payload of the row emit-32
 *
 * usdt.sh makes the kernel record the probe event_32, not the probe event_off.
 * While a probe is recorded, the kernel keeps its semaphore above 0. The
 * measured loops do not test the semaphore.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include "emit-bench.h"

__extension__ unsigned short emit_bench_event_32_semaphore
    __attribute__((section(".probes"), visibility("hidden")));
__extension__ unsigned short emit_bench_event_off_semaphore
    __attribute__((section(".probes"), visibility("hidden")));

static bool is_on(const unsigned short *semaphore)
{
    return __atomic_load_n(semaphore, __ATOMIC_RELAXED);
}

bool bench_usdt_recording(void)
{
    return is_on(&emit_bench_event_32_semaphore);
}

bool bench_usdt_is_off(void)
{
    return !is_on(&emit_bench_event_off_semaphore);
}

void bench_usdt(uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        DTRACE_PROBE4(emit_bench, event_32, i, n, i + 1, n + 1);
    }
}

void bench_usdt_off(uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        DTRACE_PROBE4(emit_bench, event_off, i, n, i + 1, n + 1);
        __asm__ volatile("" : : "r" (i) : "memory");
    }
}
