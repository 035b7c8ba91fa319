/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: emit events without reading the clock
 */
#define HT_CLOCK 0
#include "hypertrace/event.h"
#include "emit-bench.h"

HT_EVENT(bench_noclock, (u64, a), (u64, b), (u64, c), (u64, d));
HT_EVENT(bench_noclock_8, (u64, a));

void bench_emit_32_noclock(struct ht_stream *s, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        ht_emit_bench_noclock(s, i, n, i + 1, n + 1);
    }
}

void bench_emit_8_noclock(struct ht_stream *s, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        ht_emit_bench_noclock_8(s, i);
    }
}

int bench_register_noclock(struct ht_device *dev)
{
    int r = ht_register(dev, &ht_class_bench_noclock);

    return r < 0 ? r : ht_register(dev, &ht_class_bench_noclock_8);
}
