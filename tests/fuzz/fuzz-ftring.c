/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target ftring: search memory that has a ring after up to 64 words were
 * overwritten. Each ring that is found lies within the memory, and the parts of
 * its processors do not overlap.
 */
#include "hypertrace/ftrace-ring.h"
#include "fuzz.h"
#include "ftrace-guest.h"

typedef struct Memory {
    uint8_t *bytes;
    FuzzInput in;
    uint64_t size;
} Memory;

static int memory_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Memory *m = opaque;

    g_assert_cmpuint(offset + len, <=, m->size);
    memcpy(buf, m->bytes + offset, len);
    return 0;
}

static void check(const HtFtMem *mem, const HtFtRing *ring)
{
    uint64_t end = ring->offset;
    uint32_t i;

    g_assert_cmpuint(ring->cpus, >, 0);
    g_assert_cmpuint(ring->offset + ring->size, <=, mem->size);
    for (i = 0; i < ring->cpus; i++) {
        const HtFtRingCpu *c = &ring->cpu[i];

        g_assert_cmpuint(c->meta, >=, end);
        g_assert_cmpuint(c->order, >, c->meta);
        g_assert_cmpuint(c->pages, >=, c->order + 4 * ring->subbufs);
        end = c->pages + (uint64_t)ring->subbufs * ring->subbuf_size;
        ht_ft_ring_text(mem, ring, i);
    }
    g_assert_cmpuint(end, ==, ring->offset + ring->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Memory m = { .in = fuzz_input(data, size) };
    uint8_t kind = fuzz_u8(&m.in);
    FtGuest g = {
        .layout = kind & 1 ? HT_FT_LAYOUT_6_15 : HT_FT_LAYOUT_6_11,
        .cpus = 1 + (kind >> 1 & 3),
        .nr = 3 + (kind >> 3 & 7),
        .subbuf = 4096,
        .line_size = kind & 64 ? 40 : 32,
        .offset = kind & 128 ? 8192 : 0,
    };
    HtFtMem mem = { .read = memory_read, .opaque = &m };
    HtFtSearch s;
    guint i, n;

    fg_init(&g);
    mem.size = m.size = g.size;
    m.bytes = g.mem;
    for (n = 0; n < 64 && fuzz_more(&m.in); n++) {
        FgCpu *c = &g.cpu[fuzz_u8(&m.in) % g.cpus];
        uint64_t at = g.offset;

        switch (fuzz_u8(&m.in) % 4) {
        case 0:
            at += fuzz_u8(&m.in) % 64;
            break;
        case 1:
            at = c->line - 24 + fuzz_u8(&m.in) % 64;
            break;
        case 2:
            at = c->order + 4 * (fuzz_u8(&m.in) % g.nr);
            break;
        default:
            at = fuzz_number(&m.in) % (g.size - 8);
        }
        if (fuzz_u8(&m.in) & 1) {
            fg_put32(&g, at & ~3, fuzz_number(&m.in));
        } else {
            fg_put(&g, at & ~7, fuzz_number(&m.in));
        }
    }
    ht_ft_search_init(&s, &mem, fuzz_u8(&m.in) & 1 ? 8192 : HT_FT_SEARCH_FULL);
    while (!s.done) {
        ht_ft_search_go(&s, 1 + fuzz_u8(&m.in), NULL);
    }
    for (i = 0; i < s.rings->len; i++) {
        check(&mem, s.rings->pdata[i]);
    }
    ht_ft_search_clear(&s);
    fg_clear(&g);
    return 0;
}
