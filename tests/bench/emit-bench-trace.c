/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: emit by ht_trace() as programs use it, with the event off and on
 *
 * Without a device, the library leaves all events off.  To measure events that
 * are on, this file sets its class's enable byte and the thread's stream, which
 * the library sets in programs that have a device.
 */
#include <hypertrace.h>
#include "emit-bench.h"

HT_EVENT(bench_trace, (u64, a), (u64, b), (u64, c), (u64, d));

static inline void loop_is_kept(uint64_t i)
{
    __asm__ volatile("" : : "r" (i) : "memory");
}

void bench_empty(uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        loop_is_kept(i);
    }
}

void bench_trace(uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        ht_trace(bench_trace, i, n, i + 1, n + 1);
        loop_is_kept(i);
    }
}

void bench_trace_at(const uint8_t *byte, uint64_t n)
{
    const uint8_t *was = ht_class_bench_trace.on;

    ht_class_bench_trace.on = byte;
    bench_trace(n);
    ht_class_bench_trace.on = was;
}

void bench_trace_on(struct ht_stream *s, uint64_t n)
{
    static const uint8_t on = 1;

    ht_thread_stream = s;
    bench_trace_at(&on, n);
    ht_thread_stream = NULL;
}

bool bench_trace_is_on(void)
{
    return ht_event_enabled(bench_trace);
}

int bench_register_trace(struct ht_device *dev)
{
    return ht_register(dev, &ht_class_bench_trace);
}
