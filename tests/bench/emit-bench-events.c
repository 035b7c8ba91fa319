/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: register and emit the measured events
 */
#include "hypertrace/event.h"
#include "emit-bench.h"

HT_EVENT(bench_32, (u64, a), (u64, b), (u64, c), (u64, d));
HT_EVENT(bench_8, (u64, a));
HT_EVENT(bench_0);
HT_EVENT(bench_text, (u32, a), (u64, b), (text, c));

void bench_emit_32(struct ht_stream *s, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        ht_emit_bench_32(s, i, n, i + 1, n + 1);
    }
}

void bench_emit_8(struct ht_stream *s, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        ht_emit_bench_8(s, i);
    }
}

void bench_emit_0(struct ht_stream *s, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        ht_emit_bench_0(s);
    }
}

void bench_emit_text(struct ht_stream *s, uint64_t n)
{
    static const char *volatile text = "eighteen bytes is.";
    uint64_t i;

    for (i = 0; i < n; i++) {
        ht_emit_bench_text(s, i, n, text);
    }
}

int bench_register(struct ht_device *dev)
{
    struct ht_class *const classes[] = {
        &ht_class_bench_32, &ht_class_bench_8, &ht_class_bench_0,
        &ht_class_bench_text,
    };
    unsigned i;
    int r = 0;

    for (i = 0; i < sizeof(classes) / sizeof(classes[0]) && r >= 0; i++) {
        r = ht_register(dev, classes[i]);
    }
    return r;
}
