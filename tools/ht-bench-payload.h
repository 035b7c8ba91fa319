/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-bench: fill the payloads of its events
 *
 * A payload depends only on the stream's tag (its index in the device) and the
 * event's sequence number, so that a reader of the trace can check each byte.
 * The sequence number of a discarded event is not used again, so it is missing
 * in the trace. A field holds the lowest bits of its value.
 *
 *     w(k)     = (seq + (tag << 40)) * 0x9e3779b97f4a7c15
 *                + (k + 1) * 0xd1342543de82ef95, modulo 2^64
 *     letter(i) = character i % 64 of "A..Za..z0..9-_"
 *
 *     bench.e8    u64 seq
 *     bench.e32   u64 seq, u64 a = w(0), u64 b = w(1), u64 c = w(2)
 *     bench.e64   u64 seq, x64 hash = w(0), s64 delta = w(1),
 *                 u32 count = w(2) >> 32, s32 diff = w(2),
 *                 u16 port = w(3) >> 48, s16 heat = w(3) >> 32,
 *                 u8 flags = w(3) >> 24, s8 level = w(3) >> 16,
 *                 f64 ratio: the bits 0x3ff << 52 | w(1) >> 12,
 *                 f32 share: the bits 0x7f << 23 | w(2) >> 41,
 *                 array u8 raw[14]: w(0), then w(1) up to its sixth byte,
 *                 the lowest byte first
 *     bench.e256  u64 seq, x64 hash = w(0),
 *                 text message: 236 - 4 n letters, letter(seq + tag) first,
 *                 sequence u32 numbers[n], n = seq % 16:
 *                 numbers[i] = (w(0) >> i) + i
 */
#ifndef HT_BENCH_PAYLOAD_H
#define HT_BENCH_PAYLOAD_H

#include "hypertrace/arch.h"

#define HT_BENCH_RAW            14
/*
 * Bytes of the letters of "message" and the elements of "numbers" together in
 * an event of the class bench.e256, without the two lengths of 2 bytes each
 */
#define HT_BENCH_VARIABLE       236

static inline uint64_t ht_bench_word(uint32_t tag, uint64_t seq, uint32_t k)
{
    return (seq + ((uint64_t)tag << 40)) * UINT64_C(0x9e3779b97f4a7c15) +
           (k + 1) * UINT64_C(0xd1342543de82ef95);
}

static inline void ht_bench_fill8(uint8_t *p, uint32_t tag, uint64_t seq)
{
    (void)tag;
    ht_put64(p, seq);
}

static inline void ht_bench_fill32(uint8_t *p, uint32_t tag, uint64_t seq)
{
    ht_put64(p, seq);
    ht_put64(p + 8, ht_bench_word(tag, seq, 0));
    ht_put64(p + 16, ht_bench_word(tag, seq, 1));
    ht_put64(p + 24, ht_bench_word(tag, seq, 2));
}

static inline void ht_bench_fill64(uint8_t *p, uint32_t tag, uint64_t seq)
{
    const uint64_t w0 = ht_bench_word(tag, seq, 0);
    const uint64_t w1 = ht_bench_word(tag, seq, 1);
    const uint64_t w2 = ht_bench_word(tag, seq, 2);
    const uint64_t w3 = ht_bench_word(tag, seq, 3);

    ht_put64(p, seq);
    ht_put64(p + 8, w0);
    ht_put64(p + 16, w1);
    ht_put32(p + 24, w2 >> 32);
    ht_put32(p + 28, w2);
    ht_put16(p + 32, w3 >> 48);
    ht_put16(p + 34, w3 >> 32);
    ht_put8(p + 36, w3 >> 24);
    ht_put8(p + 37, w3 >> 16);
    ht_put64(p + 38, UINT64_C(0x3ff) << 52 | w1 >> 12);
    ht_put32(p + 46, 0x7fu << 23 | w2 >> 41);
    ht_put64(p + 50, w0);
    ht_put32(p + 58, w1);
    ht_put16(p + 62, w1 >> 32);
}

static inline void ht_bench_fill256(uint8_t *p, uint32_t tag, uint64_t seq)
{
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" \
                "0123456789-_"
    static const char letters[] = LETTERS LETTERS LETTERS LETTERS LETTERS;
#undef LETTERS
    const uint64_t w0 = ht_bench_word(tag, seq, 0);
    const uint32_t n = seq % 16, text = HT_BENCH_VARIABLE - 4 * n;
    uint32_t i;

    ht_put64(p, seq);
    ht_put64(p + 8, w0);
    ht_put16(p + 16, text);
    ht_copy(p + 18, letters + (seq + tag) % 64, text);
    p += 18 + text;
    ht_put16(p, n);
    for (i = 0; i < n; i++) {
        ht_put32(p + 2 + 4 * i, (uint32_t)(w0 >> i) + i);
    }
}

#endif /* HT_BENCH_PAYLOAD_H */
