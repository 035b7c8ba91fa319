/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: emit by static LTTng-UST tracepoints, with the payload of the row
 * emit-32
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "emit-bench-lttng.h"
#include "emit-bench.h"

bool bench_lttng_recording(void)
{
    return lttng_ust_tracepoint_enabled(emit_bench, event_32);
}

void bench_lttng(uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        lttng_ust_tracepoint(emit_bench, event_32, i, n, i + 1, n + 1);
    }
}

bool bench_lttng_is_off(void)
{
    return !lttng_ust_tracepoint_enabled(emit_bench, event_off);
}

void bench_lttng_off(uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        lttng_ust_tracepoint(emit_bench, event_off, i, n, i + 1, n + 1);
        __asm__ volatile("" : : "r" (i) : "memory");
    }
}
