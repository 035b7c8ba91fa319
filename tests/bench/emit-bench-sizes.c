/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: emit events whose payload is a block of the producer's memory
 */
#include "hypertrace/event.h"
#include "emit-bench.h"

HT_EVENT(bench_64, (array, u64, block, 8));
HT_EVENT(bench_256, (array, u64, block, 32));
HT_EVENT(bench_1024, (array, u64, block, 128));
HT_EVENT(bench_4096, (array, u64, block, 512));

/* Memory of the payloads: each emit copies the first 8 to 512 words */
static uint64_t block[512];

void bench_emit_64(struct ht_stream *s, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        block[0] = i;
        ht_emit_bench_64(s, block);
    }
}

void bench_emit_256(struct ht_stream *s, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        block[0] = i;
        ht_emit_bench_256(s, block);
    }
}

void bench_emit_1024(struct ht_stream *s, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        block[0] = i;
        ht_emit_bench_1024(s, block);
    }
}

void bench_emit_4096(struct ht_stream *s, uint64_t n)
{
    uint64_t i;

    for (i = 0; i < n; i++) {
        block[0] = i;
        ht_emit_bench_4096(s, block);
    }
}

int bench_register_sizes(struct ht_device *dev)
{
    struct ht_class *const classes[] = {
        &ht_class_bench_64, &ht_class_bench_256, &ht_class_bench_1024,
        &ht_class_bench_4096,
    };
    unsigned i;
    int r = 0;

    for (i = 0; i < sizeof(classes) / sizeof(classes[0]) && r >= 0; i++) {
        r = ht_register(dev, classes[i]);
    }
    return r;
}
