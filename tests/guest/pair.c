/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "clock.h"
#include "emit-bench.h"
#include "libc.h"
#include "mm.h"
#include "pair.h"
#include "samples.h"
#include "smp.h"

#define GROUP           64

struct producer {
    struct ht_stream *s;
    uint64_t events;
    uint64_t begin;
    uint64_t end;
    struct samples samples;
    /*
     * counter that all producers share: number of producers that are not ready
     * to emit yet
     */
    uint32_t *gate;
};

static struct producer producers[PAIR_MAX];

/* When all producers are ready, emit groups of events, and time each group. */
static void produce(void *arg)
{
    struct producer *p = arg;

    p->samples.nr = 0;
    __atomic_sub_fetch(p->gate, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(p->gate, __ATOMIC_ACQUIRE)) {
        asm volatile("pause");
    }
    p->begin = ht_clock();
    for (uint64_t i = 0; i < p->events; i += GROUP) {
        uint64_t before = ht_clock();

        bench_emit_32(p->s, GROUP);
        samples_add(&p->samples, ht_clock() - before, GROUP);
    }
    p->end = ht_clock();
}

void pair_run(struct ht_stream *const *streams, unsigned n, uint64_t events,
              uint64_t hz)
{
    static uint32_t gate;

    gate = n;
    for (unsigned i = 0; i < n; i++) {
        producers[i].s = streams[i];
        producers[i].events = events;
        producers[i].gate = &gate;
    }
    if (n > 1) {
        smp_run(produce, &producers[1]);
    }
    produce(&producers[0]);
    if (n > 1) {
        smp_wait();
    }
    json_begin(NULL);
    json_str("function", "pair");
    json_u64("producers", n);
    for (unsigned i = 0; i < n; i++) {
        json_begin(i ? "second" : "first");
        json_u64("sent", streams[i]->events);
        json_u64("discarded", streams[i]->lost);
        json_u64("duration_ns", clock_ps(producers[i].end -
                                         producers[i].begin, hz) / 1000);
        samples_json(&producers[i].samples, hz);
        json_end();
    }
    json_end();
}
