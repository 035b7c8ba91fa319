/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: run loops that do a part of the work of an emit, for comparison
 *
 * The loops store the fields of an event and publish a head, as an emit does.
 * Unlike an emit, they do not check whether a packet is full. Some of them read
 * the clock for each event.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/abi.h"
#include "hypertrace/arch.h"
#include "emit-bench.h"

/*
 * Size in bytes of the memory that the loops overwrite repeatedly from its
 * start to its end: that of emit-bench's rings, because the number of cache
 * misses depends on it
 */
#define WINDOW          (1u << 20)
#define LOOK_US         20
/* bytes that live() stores for an event: a timestamp and four words of 8 */
#define EVENT_32        40

/*
 * Distance of the producer's head and the consumer's tail in 8-byte words. It
 * is HT_HOST_LINE_OFFSET, 256 bytes, so that they are in different cache lines.
 */
#define APART           32

static struct {
    uint64_t head[APART];
    uint64_t tail[APART];
    bool quit;
} shared;

/* The producer's state, in the place of a struct ht_stream and a ring's head */
static struct {
    uint64_t pos;
    uint64_t busy;
    uint64_t events;
    uint64_t apart[APART];
    uint64_t head;
} own;

static uint8_t *window;
static GThread *reader;

static void *at(uint64_t pos)
{
    return window + (pos & (WINDOW - 1));
}

/*
 * Thread: the consumer, which copies the newly published events, and sleeps for
 * LOOK_US us before it looks again
 */
static gpointer read_lines(gpointer opaque)
{
    g_autofree uint8_t *copy = g_malloc0(WINDOW);
    uint64_t tail = 0;

    (void)opaque;
    while (!ht_atomic_read(&shared.quit)) {
        uint64_t head = ht_load_acquire(shared.head);

        while (tail < head) {
            uint64_t n = MIN(head - tail, WINDOW - (tail & (WINDOW - 1)));

            memcpy(copy, at(tail), n);
            tail += n;
        }
        ht_store_release(shared.tail, tail);
        g_usleep(LOOK_US);
    }
    return NULL;
}

void bench_limits_start(void)
{
    window = g_malloc0(WINDOW + 64);
    reader = g_thread_new("reader", read_lines, NULL);
}

void bench_limits_stop(void)
{
    ht_atomic_set(&shared.quit, true);
    g_thread_join(reader);
    g_free(window);
}

bool bench_limits_behind(void)
{
    return shared.head[0] - ht_load_acquire(shared.tail) > WINDOW / 2;
}

static inline void live(uint64_t n, bool clock, bool prefetch)
{
    uint64_t i, pos = shared.head[0];

    for (i = 0; i < n; i++) {
        uint8_t *p = at(pos);

        if (prefetch) {
            ht_prefetch_write(p + HT_PREFETCH_AHEAD);
        }
        ht_put64(p, clock ? ht_clock() : pos);
        ht_put64(p + 8, i);
        ht_put64(p + 16, n);
        ht_put64(p + 24, i + 1);
        ht_put64(p + 32, n + 1);
        pos += EVENT_32;
        ht_store_release(shared.head, pos);
    }
}

void bench_limit_live(uint64_t n)
{
    live(n, true, false);
}

void bench_limit_live_prefetch(uint64_t n)
{
    live(n, true, true);
}

/*
 * Like bench_limit_live(), but do not read the clock, to measure the transfer
 * of cache lines between producer and consumer
 */
void bench_lines_live(uint64_t n)
{
    live(n, false, false);
}

void bench_lines_live_prefetch(uint64_t n)
{
    live(n, false, true);
}

/*
 * Make the stores of an emit into the ring and into the stream's state, in the
 * same order, but do not check whether a packet is full. No consumer reads the
 * events.
 */
static inline void stores(uint64_t n, bool clock, unsigned words)
{
    uint64_t i;
    unsigned w;

    for (i = 0; i < n; i++) {
        uint8_t *p;

        ht_compiler_barrier();
        own.busy = 1;
        ht_compiler_barrier();
        p = at(own.pos);
        ht_prefetch_write(p + HT_PREFETCH_AHEAD);
        ht_put32(p, clock ? (uint32_t)ht_clock() << 8 : n);
        for (w = 0; w < words; w++) {
            ht_put64(p + HT_EVENT_HEADER + 8 * w, w % 2 ? n + w : i + w);
        }
        own.events++;
        own.pos += HT_EVENT_HEADER + 8 * words;
        ht_store_release(&own.head, own.pos);
        ht_compiler_barrier();
        own.busy = 0;
    }
}

void bench_stores_8(uint64_t n)
{
    stores(n, false, 1);
}

/* The clock and the stores of the row emit-32, without its checks */
void bench_stores_32(uint64_t n)
{
    stores(n, true, 4);
}
