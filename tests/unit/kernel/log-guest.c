/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "log-guest.h"

#define COUNT_BITS  4u
#define COUNT       (1u << COUNT_BITS)
#define ID_MASK     (UINT64_MAX >> 2)

enum {
    RING = 128, DESCS = 512, INFOS = 2048, DATA = 8192,
    DESC_SIZE = 24, INFO_SIZE = 88,
    R_COUNT_BITS = 0, R_DESCS = 8, R_INFOS = 16, R_HEAD = 24, R_TAIL = 32,
    R_SIZE_BITS = 48, R_DATA = 56,
    I_SEQ = 0, I_NS = 8, I_LEN = 16, I_FACILITY = 18, I_LEVEL = 19,
    I_CALLER = 20,
};

static int translate(void *opaque G_GNUC_UNUSED, uint64_t addr,
                     uint64_t *offset, uint64_t *left)
{
    if (addr < PG_BASE || addr - PG_BASE >= PG_MEMORY) {
        return -EFAULT;
    }
    *offset = addr - PG_BASE;
    *left = 256 - *offset % 256;
    return 0;
}

static void put(LogGuest *g, uint64_t at, uint64_t v)
{
    ht_put_le64(g->mem + at, v);
    if (g->step) {
        g->step(g->opaque);
    }
}

static uint64_t desc_at(uint64_t id)
{
    return DESCS + (id & (COUNT - 1)) * DESC_SIZE;
}

void pg_init(LogGuest *g)
{
    unsigned i;

    memset(g, 0, sizeof(*g));
    g->ft = (HtFtMem) { .size = PG_MEMORY, .map = g->mem };
    g->space = (HtKernelSpace) { &g->ft, translate, g };
    g->layout = (HtKernelLogLayout) {
        .count_bits = R_COUNT_BITS, .descs = R_DESCS, .infos = R_INFOS,
        .head = R_HEAD, .tail = R_TAIL, .size_bits = R_SIZE_BITS,
        .data = R_DATA, .desc_size = DESC_SIZE, .state = 0, .begin = 8,
        .next = 16, .info_size = INFO_SIZE, .seq = I_SEQ, .ns = I_NS,
        .len = I_LEN, .facility = I_FACILITY, .caller = I_CALLER,
        .level = { .offset = I_LEVEL, .size = 1, .bit = 5, .bits = 3,
                   .count = 1, .element = 1 },
    };
    put(g, PG_PRB - PG_BASE, PG_BASE + RING);
    ht_put_le32(g->mem + RING + R_COUNT_BITS, COUNT_BITS);
    ht_put_le32(g->mem + RING + R_SIZE_BITS, PG_SIZE_BITS);
    put(g, RING + R_DESCS, PG_BASE + DESCS);
    put(g, RING + R_INFOS, PG_BASE + INFOS);
    put(g, RING + R_DATA, PG_BASE + DATA);
    /*
     * At the start, there is no record: all descriptors are reusable, and head
     * and tail are the id before that of the first record
     */
    g->head = g->tail = (-(uint64_t)COUNT) & ID_MASK;
    for (i = 0; i < COUNT; i++) {
        put(g, DESCS + i * DESC_SIZE, 3ull << 62 | g->head);
    }
    put(g, RING + R_HEAD, g->head);
    put(g, RING + R_TAIL, g->tail);
    g->head_lpos = g->tail_lpos = (-(uint64_t)PG_SIZE) & ~7ull;
}

/* Drop the oldest record to make room for a new one. */
static void drop_tail(LogGuest *g)
{
    uint64_t at = desc_at(g->tail), next = ht_get_le64(g->mem + at + 16);

    if (!(ht_get_le64(g->mem + at + 8) & 1)) {
        g->tail_lpos = next;
    }
    put(g, at, 3ull << 62 | g->tail);
    g->tail = (g->tail + 1) & ID_MASK;
    put(g, RING + R_TAIL, g->tail);
}

void pg_text(uint64_t seq, char *text, unsigned len)
{
    unsigned i;

    for (i = 0; i < len; i++) {
        text[i] = 'a' + (seq * 7 + i) % 26;
    }
}

void pg_print(LogGuest *g, unsigned len, bool cut)
{
    uint64_t id = (g->head + 1) & ID_MASK, at = desc_at(id), begin, next, pos;
    uint64_t info = INFOS + (id & (COUNT - 1)) * INFO_SIZE;
    unsigned need = HT_ROUND_UP(8 + len, 8);

    if (((id - g->tail) & ID_MASK) >= COUNT) {
        drop_tail(g);
    }
    put(g, RING + R_HEAD, id);
    g->head = id;
    put(g, at, id);             /* the state of the descriptor is "reserved" */
    begin = g->head_lpos;
    next = begin + need;
    pos = begin & (PG_SIZE - 1);
    if (begin >> PG_SIZE_BITS != next >> PG_SIZE_BITS && next & (PG_SIZE - 1)) {
        next = (next & ~(uint64_t)(PG_SIZE - 1)) + need;
        pos = 0;
    }
    while (len && next - g->tail_lpos > PG_SIZE && g->tail != id) {
        drop_tail(g);
    }
    put(g, at + 8, len ? begin : 3);
    put(g, at + 16, len ? next : 3);
    if (len) {
        g->head_lpos = next;
        put(g, DATA + pos, id);
        pg_text(g->seq, (char *)g->mem + DATA + pos + 8, len);
    }
    put(g, info + I_SEQ, g->seq);
    put(g, info + I_NS, 1000 * g->seq);
    ht_put_le16(g->mem + info + I_LEN, len);
    g->mem[info + I_FACILITY] = g->seq % 24;
    g->mem[info + I_LEVEL] = (g->seq % 8) << 5;
    ht_put_le32(g->mem + info + I_CALLER,
                g->seq % 2 ? 17 : HT_LOG_CALLER_CPU | 3);
    g->seq++;
    if (!cut) {
        put(g, at, 2ull << 62 | id);
    }
}
