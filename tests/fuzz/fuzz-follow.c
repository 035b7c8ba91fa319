/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target follow: follow a guest's ring that changes during polls, before
 * every third read of the follower
 *
 * The guest acts as a kernel does until it first overwrites something: a
 * header, an order of pages, a time stamp, a count or a record.  Also after
 * that, the follower delivers only whole records, (epoch, segment) of a
 * processor never decreases, and a poll has a limited number of reads and of
 * delivered bytes.
 */
#include "hypertrace/ftrace-follow.h"
#include "fuzz.h"
#include "ftrace-guest.h"

#define AT 4096u

typedef struct Hostile {
    FtGuest g;
    FuzzInput in;
    HtFtFollow *f;
    uint64_t ns;
    uint64_t reads;
    uint32_t epoch[8], segment[8];
    uint64_t bytes;
    bool honest;
} Hostile;

static void overwrite(Hostile *h)
{
    FuzzInput *in = &h->in;
    FtGuest *g = &h->g;
    FgCpu *c = &g->cpu[fuzz_u8(in) % g->cpus];
    uint64_t page = c->pages + fuzz_u8(in) % g->nr * g->subbuf;

    h->honest = false;
    switch (fuzz_u8(in) % 7) {
    case 0:
        fg_put(g, c->line + fuzz_u8(in) % 4 * 8, fuzz_number(in));
        break;
    case 1:
        fg_put(g, c->line + fuzz_u8(in) % 3 * 8,
               g->va + page - g->offset);
        break;
    case 2:
        fg_put32(g, c->order + fuzz_u8(in) % g->nr * 4,
                 fuzz_u8(in) % (g->nr + 1));
        break;
    case 3:
        fg_put(g, page, fuzz_number(in));
        break;
    case 4:
        fg_put(g, page + 8, fuzz_bits(in, 2) & ~3);
        break;
    case 5:
        fg_put32(g, page + 16 + fuzz_bits(in, 2) % (g->subbuf - 16) / 4 * 4,
                 fuzz_bits(in, 4));
        break;
    default:
        fg_put32(g, g->offset + fuzz_u8(in) / 4 * 4, fuzz_bits(in, 4));
    }
}

/* Let the guest execute the next action that the input chooses */
static void guest(Hostile *h)
{
    FuzzInput *in = &h->in;
    FtGuest *g = &h->g;
    uint8_t what = fuzz_u8(in);
    uint32_t cpu = what / 16 % g->cpus, n;

    switch (what % 16) {
    case 0:
        overwrite(h);
        break;
    case 1:
        if (h->honest) {
            fg_read(g, cpu);
        }
        break;
    case 2:
        if (h->honest) {
            fg_reset(g, cpu);
        }
        break;
    case 3:
        if (h->honest) {
            fg_boot(g, cpu, fuzz_u8(in) & 1,
                    UINT64_C(0xffff900000000000) + ((uint64_t)what << 21));
            h->ns = fuzz_number(in) % (UINT64_C(1) << 60);
        }
        break;
    case 4:
        h->ns += fuzz_number(in) % (UINT64_C(1) << 40);
        break;
    case 5:
    case 6:
        if (h->honest) {
            for (n = fuzz_u8(in); n; n--) {
                h->ns += 1000;
                fg_event(g, cpu, h->ns, n % 64);
            }
        }
        break;
    default:
        if (h->honest) {
            fg_event(g, cpu, h->ns += what, what);
        }
    }
}

static int hostile_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Hostile *h = opaque;

    if (++h->reads % 3 == 0 && fuzz_more(&h->in)) {
        guest(h);
    }
    g_assert_cmpuint(offset + len, <=, h->g.size);
    memcpy(buf, h->g.mem + offset, len);
    return 0;
}

static void piece(void *opaque, const HtFtPiece *p)
{
    Hostile *h = opaque;
    g_autofree uint8_t *copy = fuzz_copy(p->data, p->size);
    uint32_t events = 0;
    HtFtStep step;
    HtFtRecord r;
    HtFtIter it;

    g_assert_cmpuint(p->cpu, <, 8);
    g_assert_cmpuint(p->size, >, 0);
    g_assert_cmpuint(p->from + p->size, <=,
                     h->g.subbuf - HT_FT_PAGE_HEADER);
    g_assert_true(p->epoch > h->epoch[p->cpu] ||
                  (p->epoch == h->epoch[p->cpu] &&
                   p->segment >= h->segment[p->cpu]));
    h->epoch[p->cpu] = p->epoch;
    h->segment[p->cpu] = p->segment;
    ht_ft_iter_init(&it, copy, p->size, 0, p->base_ns);
    while ((step = ht_ft_iter_next(&it, &r)) == HT_FT_EVENT) {
        events++;
    }
    g_assert_cmpint(step, ==, HT_FT_END);
    g_assert_cmpuint(events, ==, p->events);
    h->bytes += p->size;
}

static const HtFtFollowOps ops = { .piece = piece };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Hostile h = { .in = fuzz_input(data, size), .honest = true, .ns = 1000 };
    uint8_t kind = fuzz_u8(&h.in);
    HtFtMem mem = { .read = hostile_read, .opaque = &h };
    HtFtRing *ring;
    unsigned n;

    h.g.layout = kind & 1 ? HT_FT_LAYOUT_6_15 : HT_FT_LAYOUT_6_11;
    h.g.cpus = 1 + (kind >> 1 & 1);
    h.g.nr = 3 + (kind >> 2 & 7);
    h.g.subbuf = 4096;
    h.g.line_size = kind & 32 ? 40 : 32;
    h.g.offset = AT;
    fg_init(&h.g);
    mem.size = h.g.size;
    ring = ht_ft_ring_at(&mem, AT, NULL);
    if (ring) {
        h.f = ht_ft_follow_new(&mem, ring, &ops, &h);
        ht_ft_follow_set_relaxed(h.f, kind & 64);
        for (n = 0; n < 200 && fuzz_more(&h.in); n++) {
            h.reads = h.bytes = 0;
            ht_ft_follow_look(h.f);
            /* limits of a poll: number of reads, and of delivered bytes */
            g_assert_cmpuint(h.reads, <, 100 * h.g.nr * 8);
            g_assert_cmpuint(h.bytes, <=, 16 * h.g.size);
        }
        ht_ft_follow_free(h.f);
    }
    fg_clear(&h.g);
    return 0;
}
