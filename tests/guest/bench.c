/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: what an event costs over each channel
 *
 * One class, whose payload is an array of bytes; "mode=lossless" waits where
 * the ring is full, as long as it takes, "mode=flat" goes on and discards.
 */
#include "hypertrace/hypertrace.h"
#include "clock.h"
#include "cmdline.h"
#include "device.h"
#include "libc.h"
#include "mm.h"
#include "payload.h"

#define SAMPLES_MAX     65536
/* A sample of so many events has its share of packet switches and doorbells. */
#define CHUNK           1024

struct bench {
    struct ht_stream *s;
    uint32_t id;
    uint32_t payload;
    bool lossless;
    uint64_t events;
    uint64_t chunk;             /* events a sample */
    uint64_t *samples;          /* ticks an event, times 1000 */
    uint64_t nr_samples;
    uint64_t sent;
    uint64_t discarded;
    uint64_t waits;
    uint64_t ticks;
};

static void sort(uint64_t *v, uint64_t n)
{
    for (uint64_t gap = n / 2; gap; gap /= 2) {
        for (uint64_t i = gap; i < n; i++) {
            uint64_t x = v[i];
            uint64_t j = i;

            while (j >= gap && v[j - gap] > x) {
                v[j] = v[j - gap];
                j -= gap;
            }
            v[j] = x;
        }
    }
}

static inline bool emit(struct bench *b, uint64_t n)
{
    uint8_t *p = ht_get(b->s, b->id, b->payload);

    if (!p) {
        return false;
    }
    for (uint32_t i = 0; i + 8 <= b->payload; i += 8) {
        ht_put64(p + i, n);
    }
    for (uint32_t i = b->payload & ~7u; i < b->payload; i++) {
        p[i] = n;
    }
    ht_commit(b->s);
    return true;
}

/*
 * Wait until an event fits, without ht_get() discarding one and counting it
 * as lost: a packet is open and has room, or another one is free.
 */
static void wait_for_room(struct bench *b)
{
    struct ht_stream *s = b->s;
    uint64_t need = HT_EVENT_HEADER_EXT + b->payload;
    uint64_t next = s->packet + (s->cur != NULL);

    if ((s->cur && (uint64_t)(s->end - s->cur) >= need) || s->overwrite ||
        next - s->tail <= s->packets_mask) {
        return;
    }
    while (!s->ops->space(s, next)) {
        b->waits++;
        for (unsigned i = 0; i < 20; i++) {
            asm volatile("pause");
        }
    }
}

static void measure(struct bench *b)
{
    uint64_t n = 0;
    uint64_t begin = ht_clock();

    while (n < b->events) {
        uint64_t end = n + b->chunk < b->events ? n + b->chunk : b->events;
        uint64_t whole = end - n;
        uint64_t start = ht_clock();

        while (n < end) {
            if (b->lossless) {
                wait_for_room(b);
            }
            b->sent += emit(b, n++);
        }
        if (b->nr_samples < SAMPLES_MAX) {
            b->samples[b->nr_samples++] = (ht_clock() - start) * 1000 / whole;
        }
    }
    b->ticks = ht_clock() - begin;
}

/* The first touch of a page is an exit of another kind. */
static void touch(struct ht_stream *s, const struct ht_caps *caps)
{
    uint64_t size = (uint64_t)caps->packet_size * caps->packets;

    for (uint64_t i = 0; i < size; i += HT_PAGE) {
        *(volatile uint8_t *)(s->packets + i) = 0;
    }
}

static void check(int ret, const char *what)
{
    if (ret < 0) {
        payload_die(PAYLOAD_FAILED, what, errno_name(ret));
    }
}

static void bench_device(struct bench *b, struct ht_bm_device *d,
                         unsigned index, uint64_t batch)
{
    struct ht_field field = {
        .name = "data",
        .kind = HT_FIELD_ARRAY,
        .elem = HT_FIELD_U8,
        .count = b->payload,
    };
    struct ht_class class = {
        .name = "bench",
        .fields = &field,
        .nr_fields = b->payload ? 1 : 0,
        .loglevel = 14,
    };
    uint64_t hz = clock_hz(d->dev.caps.clock_hz);
    uint64_t doorbells;

    if (batch && d->dev.caps.channel == HT_CHANNEL_HYPERCALL) {
        d->dev.caps.batch = batch;
    }
    if (d->dev.caps.channel == HT_CHANNEL_HYPERCALL) {
        b->chunk = d->dev.caps.batch;
    }
    check(ht_register(&d->dev, &class), "cannot register the class");
    b->id = class.id;
    check(ht_stream_open(&d->dev, b->s, NULL), "cannot open a stream");
    touch(b->s, &d->dev.caps);
    memset(b->samples, 0, SAMPLES_MAX * sizeof(*b->samples));
    measure(b);
    doorbells = b->s->doorbells;
    b->discarded = b->s->lost;
    check(ht_stream_flush(b->s), "cannot flush the stream");

    sort(b->samples, b->nr_samples);
    json_begin(NULL);
    json_str("function", "bench");
    json_u64("device", index);
    json_str("channel", device_channel(d));
    json_str("mode", b->lossless ? "lossless" : "flat");
    json_u64("payload", b->payload);
    json_u64("events", b->events);
    json_u64("batch", d->dev.caps.batch);
    json_milli("mean_ns", clock_ps(b->ticks, hz) / b->events);
    json_milli("median_ns",
               clock_ps(b->samples[b->nr_samples / 2], hz) / 1000);
    json_milli("p99_ns",
               clock_ps(b->samples[b->nr_samples * 99 / 100], hz) / 1000);
    json_milli("max_ns", clock_ps(b->samples[b->nr_samples - 1], hz) / 1000);
    json_u64("sent", b->sent);
    json_u64("discarded", b->discarded);
    json_u64("waits", b->waits);
    json_u64("doorbells", doorbells);
    json_u64("clock_hz", hz);
    json_end();
    check(ht_stream_close(b->s), "cannot close the stream");
}

enum payload_exit payload_bench(void)
{
    const char *mode = cmdline_str("mode", "lossless");
    struct bench setting = {
        .lossless = !strcmp(mode, "lossless"),
        .payload = cmdline_u64("payload", 32, 0, 4000),
        .events = cmdline_u64("events", 100000, 1, 1ull << 40),
    };
    uint64_t batch = cmdline_u64("batch", 0, 0, HT_BATCH_MAX);
    unsigned devices = device_count();
    const char *channel = cmdline_str("channel", NULL);
    unsigned found = 0;

    if (!setting.lossless && strcmp(mode, "flat")) {
        payload_die(PAYLOAD_USAGE, "mode is lossless or flat", mode);
    }
    cmdline_done();
    setting.s = mm_alloc(sizeof(*setting.s), 64);
    setting.samples = mm_alloc(SAMPLES_MAX * sizeof(*setting.samples), 64);
    if (!setting.s || !setting.samples) {
        payload_die(PAYLOAD_USAGE, "not enough memory", NULL);
    }
    for (unsigned i = 0; i < devices; i++) {
        struct ht_bm_device *d = device_open(i);
        struct bench b = setting;

        if (!channel || !strcmp(channel, device_channel(d))) {
            found++;
            b.chunk = CHUNK;
            bench_device(&b, d, i, batch);
        }
        ht_bm_close(d);
    }
    if (!found) {
        payload_die(PAYLOAD_USAGE, "no such hypertrace device", channel);
    }
    return PAYLOAD_OK;
}
