/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-bench: emit the events of the workload, and print the report
 */
#include "hypertrace/port.h"
#include "ht-bench-core.h"
#include "ht-bench-payload.h"
#include "ht-channel.h"

static const struct ht_field fields8[] = {
    { "seq", HT_FIELD_U64, 0, 0, 0, NULL },
};

static const struct ht_field fields32[] = {
    { "seq", HT_FIELD_U64, 0, 0, 0, NULL },
    { "a", HT_FIELD_U64, 0, 0, 0, NULL },
    { "b", HT_FIELD_U64, 0, 0, 0, NULL },
    { "c", HT_FIELD_U64, 0, 0, 0, NULL },
};

static const struct ht_field fields64[] = {
    { "seq", HT_FIELD_U64, 0, 0, 0, NULL },
    { "hash", HT_FIELD_U64, 0, HT_FIELD_HEX, 0, NULL },
    { "delta", HT_FIELD_S64, 0, 0, 0, NULL },
    { "count", HT_FIELD_U32, 0, 0, 0, NULL },
    { "diff", HT_FIELD_S32, 0, 0, 0, NULL },
    { "port", HT_FIELD_U16, 0, 0, 0, NULL },
    { "heat", HT_FIELD_S16, 0, 0, 0, NULL },
    { "flags", HT_FIELD_U8, 0, 0, 0, NULL },
    { "level", HT_FIELD_S8, 0, 0, 0, NULL },
    { "ratio", HT_FIELD_F64, 0, 0, 0, NULL },
    { "share", HT_FIELD_F32, 0, 0, 0, NULL },
    { "raw", HT_FIELD_ARRAY, HT_FIELD_U8, 0, HT_BENCH_RAW, NULL },
};

static const struct ht_field fields256[] = {
    { "seq", HT_FIELD_U64, 0, 0, 0, NULL },
    { "hash", HT_FIELD_U64, 0, HT_FIELD_HEX, 0, NULL },
    { "message", HT_FIELD_TEXT, 0, 0, 0, NULL },
    { "numbers", HT_FIELD_SEQUENCE, HT_FIELD_U32, 0, 0, NULL },
};

#define CLASS(n) { .name = "bench.e" #n, .fields = fields##n,       \
                   .nr_fields = sizeof(fields##n) / sizeof(fields##n[0]), \
                   .loglevel = 14 }

static struct ht_class classes[HT_BENCH_KINDS] = {
    [HT_BENCH_8] = CLASS(8),
    [HT_BENCH_32] = CLASS(32),
    [HT_BENCH_64] = CLASS(64),
    [HT_BENCH_256] = CLASS(256),
};

uint32_t ht_bench_payload(enum ht_bench_kind kind)
{
    static const uint16_t sizes[HT_BENCH_KINDS] = { 8, 32, 64, 256 };

    return sizes[kind];
}

int ht_bench_register(struct ht_device *dev,
                      const struct ht_bench_params *params)
{
    uint32_t i;
    int r;

    for (i = 0; i < params->nr_kinds; i++) {
        r = ht_register(dev, &classes[params->kinds[i]]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static inline bool emit(struct ht_stream *s, enum ht_bench_kind kind,
                        uint64_t seq)
{
    uint8_t *p = ht_get(s, classes[kind].id, ht_bench_payload(kind));

    if (ht_unlikely(!p)) {
        return false;
    }
    switch (kind) {
    case HT_BENCH_8:
        ht_bench_fill8(p, s->index, seq);
        break;
    case HT_BENCH_32:
        ht_bench_fill32(p, s->index, seq);
        break;
    case HT_BENCH_64:
        ht_bench_fill64(p, s->index, seq);
        break;
    default:
        ht_bench_fill256(p, s->index, seq);
        break;
    }
    ht_commit(s);
    return true;
}

static bool wait_for_room(struct ht_stream *s, uint32_t size,
                          const struct ht_bench_params *params,
                          struct ht_bench_result *result)
{
    uint64_t tries = 0;

    while (!ht_stream_room(s, size)) {
        result->waits++;
        if (!params->hooks->pause(0, tries++)) {
            result->gave_up = true;
            return false;
        }
    }
    return true;
}

static bool wait_until(uint64_t due, const struct ht_bench_params *params,
                       struct ht_bench_result *result)
{
    uint64_t now, tries = 0;

    while ((int64_t)(due - (now = ht_clock())) > 0) {
        if (!params->hooks->pause(due - now, tries++)) {
            result->gave_up = true;
            return false;
        }
    }
    return true;
}

static unsigned bucket_of(uint64_t v)
{
    unsigned exponent, b;

    if (v < 1u << HT_BENCH_SUB_BITS) {
        return v;
    }
    exponent = 63 - __builtin_clzll(v) - HT_BENCH_SUB_BITS;
    b = (exponent << HT_BENCH_SUB_BITS) + (v >> exponent);
    return b < HT_BENCH_BUCKETS ? b : HT_BENCH_BUCKETS - 1;
}

/* Get the middle of a bucket's range, in sixteenths of a tick. */
static uint64_t value_of(unsigned bucket)
{
    unsigned exponent = bucket >> HT_BENCH_SUB_BITS;
    uint64_t low;

    if (exponent <= 1) {
        return bucket;
    }
    exponent--;
    low = (uint64_t)(bucket - (exponent << HT_BENCH_SUB_BITS)) << exponent;
    return low + ((uint64_t)1 << (exponent - 1));
}

static void record(struct ht_bench_result *result, uint64_t ticks,
                   uint32_t events)
{
    uint64_t v = ticks * 16 / events;

    result->groups++;
    result->histogram[bucket_of(v)]++;
    if (v > result->slowest) {
        result->slowest = v;
    }
}

void ht_bench_run(struct ht_stream *s, const struct ht_bench_params *params,
                  struct ht_bench_result *result)
{
    const uint32_t group = params->interval ? 1 : params->group;
    uint64_t seq = 0, due = 0, begin, before, after;
    uint32_t kind = 0;

    ht_zero(result, sizeof(*result));
    begin = ht_clock();
    after = begin;
    result->begin = begin;
    while (seq < params->events && !result->gave_up) {
        uint64_t left = params->events - seq;
        uint32_t n = left < group ? left : group, i;
        uint64_t most = __atomic_load_n(&params->ticks, __ATOMIC_RELAXED);

        if (most && after - begin >= most) {
            break;
        }
        if (params->interval) {
            due += params->interval;
            if (!wait_until(begin + (due >> 16), params, result)) {
                break;
            }
        }
        before = ht_clock();
        for (i = 0; i < n; i++) {
            const enum ht_bench_kind k = params->kinds[kind];
            const uint32_t size = ht_bench_payload(k);

            if (params->lossless && !wait_for_room(s, size, params, result)) {
                break;
            }
            if (emit(s, k, params->first + seq++)) {
                result->sent++;
                result->bytes += size;
            } else {
                result->discarded++;
            }
            if (++kind == params->nr_kinds) {
                kind = 0;
            }
        }
        after = ht_clock();
        if (i) {
            record(result, after - before, i);
        }
    }
    result->end = ht_clock();
}

void ht_bench_add(struct ht_bench_result *sum,
                  const struct ht_bench_result *one)
{
    uint32_t i;

    if (!sum->groups || one->begin < sum->begin) {
        sum->begin = one->begin;
    }
    if (one->end > sum->end) {
        sum->end = one->end;
    }
    sum->sent += one->sent;
    sum->discarded += one->discarded;
    sum->bytes += one->bytes;
    sum->waits += one->waits;
    sum->gave_up |= one->gave_up;
    sum->groups += one->groups;
    if (one->slowest > sum->slowest) {
        sum->slowest = one->slowest;
    }
    for (i = 0; i < HT_BENCH_BUCKETS; i++) {
        sum->histogram[i] += one->histogram[i];
    }
}

static void print_u64(const struct ht_bench_hooks *h, uint64_t v)
{
    char buf[24], *p = buf + sizeof(buf) - 1;

    *p = '\0';
    do {
        *--p = '0' + v % 10;
        v /= 10;
    } while (v);
    h->print(p);
}

static void print_hundredths(const struct ht_bench_hooks *h, uint64_t v)
{
    char buf[4] = { '.', '0' + v / 10 % 10, '0' + v % 10, '\0' };

    print_u64(h, v / 100);
    h->print(buf);
}

/*
 * Compute a * b / c without 128-bit division, for results below 2^64. Returns 0
 * if c is 0.
 */
static uint64_t muldiv(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t r = 0;
    unsigned bit;

    if (!c) {
        return 0;
    }
    r = a / c * b;
    a %= c;
    /*
     * Now a < c, so that a * b / c can be computed bit by bit: double the
     * quotient and the rest for each bit of b, from the highest bit on.
     */
    {
        uint64_t q = 0, rest = 0;

        for (bit = 0; bit < 64; bit++) {
            uint64_t carry = rest >> 63;

            q <<= 1;
            rest <<= 1;
            if (carry || rest >= c) {
                rest -= c;
                q++;
            }
            if (b >> (63 - bit) & 1) {
                rest += a;
                if (rest < a || rest >= c) {
                    rest -= c;
                    q++;
                }
            }
        }
        r += q;
    }
    return r;
}

static uint64_t ticks_ns(const struct ht_bench_report *r, uint64_t ticks)
{
    return muldiv(ticks, 1000000000, r->clock_hz);
}

/* Convert sixteenths of a tick to hundredths of a nanosecond. */
static uint64_t sixteenths_ns(const struct ht_bench_report *r, uint64_t v)
{
    return muldiv(v, 100000000000 / 16, r->clock_hz);
}

static uint64_t percentile(const struct ht_bench_report *r, unsigned percent)
{
    uint64_t want = r->sum->groups * percent / 100, seen = 0;
    unsigned i;

    for (i = 0; i < HT_BENCH_BUCKETS - 1; i++) {
        seen += r->sum->histogram[i];
        if (seen > want) {
            break;
        }
    }
    return sixteenths_ns(r, value_of(i));
}

/*
 * Get the mean time per event of one producer over the whole run, in hundredths
 * of a nanosecond.
 */
static uint64_t mean(const struct ht_bench_report *r)
{
    uint64_t all = r->sum->sent + r->sum->discarded;

    return all ? muldiv(ticks_ns(r, r->sum->end - r->sum->begin),
                        100 * r->nr_streams, all) : 0;
}

static uint64_t per_second(const struct ht_bench_report *r)
{
    return muldiv(r->sum->sent, r->clock_hz, r->sum->end - r->sum->begin);
}

static uint64_t doorbells(const struct ht_bench_report *r)
{
    uint64_t n = 0;
    uint32_t i;

    for (i = 0; i < r->nr_streams; i++) {
        n += r->streams[i].doorbells;
    }
    return n;
}

static void json_key(const struct ht_bench_hooks *h, const char *key)
{
    h->print(", \"");
    h->print(key);
    h->print("\": ");
}

static void json_str(const struct ht_bench_hooks *h, const char *key,
                     const char *value)
{
    json_key(h, key);
    h->print("\"");
    h->print(value);
    h->print("\"");
}

static void json_u64(const struct ht_bench_hooks *h, const char *key,
                     uint64_t value)
{
    json_key(h, key);
    print_u64(h, value);
}

static void json_hundredths(const struct ht_bench_hooks *h, const char *key,
                            uint64_t value)
{
    json_key(h, key);
    print_hundredths(h, value);
}

static void print_kinds(const struct ht_bench_hooks *h,
                        const struct ht_bench_params *params,
                        const char *between)
{
    uint32_t i;

    for (i = 0; i < params->nr_kinds; i++) {
        if (i) {
            h->print(between);
        }
        print_u64(h, ht_bench_payload(params->kinds[i]));
    }
}

void ht_bench_json(const struct ht_bench_report *r)
{
    const struct ht_bench_hooks *h = r->params->hooks;
    const struct ht_caps *caps = &r->dev->caps;
    uint32_t i;

    h->print("{\"tool\": \"ht-bench\"");
    json_str(h, "channel", ht_channel_name(r->dev->caps.channel));
    json_str(h, "mapping", r->dev->mapping);
    json_str(h, "mode", caps->mode == HT_MODE_OVERWRITE ? "overwrite" :
                                                          "discard");
    json_u64(h, "packet_size", caps->packet_size);
    json_u64(h, "packets", caps->packets);
    json_u64(h, "batch", caps->batch);
    json_key(h, "payload");
    h->print("[");
    print_kinds(h, r->params, ", ");
    h->print("]");
    json_u64(h, "threads", r->nr_streams);
    json_key(h, "lossless");
    h->print(r->params->lossless ? "true" : "false");
    json_u64(h, "rate", r->rate);
    json_u64(h, "group", r->params->interval ? 1 : r->params->group);
    json_u64(h, "sent", r->sum->sent);
    json_u64(h, "discarded", r->sum->discarded);
    json_u64(h, "waits", r->sum->waits);
    json_key(h, "gave_up");
    h->print(r->sum->gave_up ? "true" : "false");
    json_u64(h, "payload_bytes", r->sum->bytes);
    json_hundredths(h, "ns_mean", mean(r));
    json_hundredths(h, "ns_median", percentile(r, 50));
    json_hundredths(h, "ns_p99", percentile(r, 99));
    json_hundredths(h, "ns_max", sixteenths_ns(r, r->sum->slowest));
    json_u64(h, "events_per_s", per_second(r));
    json_u64(h, "doorbells", doorbells(r));
    json_u64(h, "duration_ns", ticks_ns(r, r->sum->end - r->sum->begin));
    json_u64(h, "drain_ns", ticks_ns(r, r->drain_ticks));
    json_u64(h, "clock_hz", r->clock_hz);
    json_u64(h, "counter_begin", r->sum->begin);
    json_u64(h, "counter_end", r->sum->end);
    json_key(h, "streams");
    h->print("[");
    for (i = 0; i < r->nr_streams; i++) {
        const struct ht_bench_stream *s = &r->streams[i];

        h->print(i ? ", {\"stream\": " : "{\"stream\": ");
        print_u64(h, s->index);
        json_u64(h, "instance", s->instance);
        json_u64(h, "sent", s->sent);
        json_u64(h, "discarded", s->discarded);
        json_u64(h, "doorbells", s->doorbells);
        h->print("}");
    }
    h->print("]}\n");
}

void ht_bench_text(const struct ht_bench_report *r)
{
    const struct ht_bench_hooks *h = r->params->hooks;

    h->print(ht_channel_name(r->dev->caps.channel));
    h->print(" (");
    h->print(r->dev->mapping);
    h->print("), ");
    print_kinds(h, r->params, "+");
    h->print(" bytes, ");
    print_u64(h, r->nr_streams);
    h->print(r->nr_streams == 1 ? " thread: " : " threads: ");
    print_u64(h, r->sum->sent);
    h->print(" sent, ");
    print_u64(h, r->sum->discarded);
    h->print(" discarded, ");
    print_u64(h, doorbells(r));
    h->print(" doorbells\n    ");
    print_hundredths(h, percentile(r, 50));
    h->print(" ns an event (median; mean ");
    print_hundredths(h, mean(r));
    h->print(", 99% ");
    print_hundredths(h, percentile(r, 99));
    h->print("), ");
    print_u64(h, per_second(r));
    h->print(" events/s, all delivered after another ");
    print_hundredths(h, ticks_ns(r, r->drain_ticks) / 10000);
    h->print(" ms\n");
    if (r->sum->gave_up) {
        h->print("    gave up: the host made no room\n");
    }
}
