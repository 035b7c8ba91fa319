/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ftrace-guest.h"

#define HEADER 16u

static void step(FtGuest *g)
{
    if (g->step) {
        g->step(g->opaque);
    }
}

static uint64_t address(const FtGuest *g, uint32_t cpu, uint32_t slot)
{
    return g->va + fg_page(g, cpu, slot) - g->offset;
}

static void put_head(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];

    fg_put(g, c->line + 8, address(g, cpu, fg_order(g, cpu, c->head)));
}

static void put_commit(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];

    fg_put(g, c->line + 16, address(g, cpu, fg_order(g, cpu, c->at)));
}

static void begin_at(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];

    c->at = c->head = 1;
    c->write = c->full = c->read = 0;
    c->begun = false;
    memset(c->entries, 0, g->nr * sizeof(c->entries[0]));
    put_head(g, cpu);
    put_commit(g, cpu);
}

static void make_anew(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];
    uint32_t i;

    for (i = 0; i < 3; i++) {
        fg_put(g, c->line + 8 * i, 0);
        step(g);
    }
    memset(g->mem + c->pages, 0, (size_t)g->nr * g->subbuf);
    for (i = 0; i < g->nr; i++) {
        fg_put32(g, c->order + 4 * i, i);
    }
    fg_put32(g, c->line + 24, g->subbuf);
    fg_put32(g, c->line + 28, g->nr);
    fg_put(g, c->line, address(g, cpu, 0));
    step(g);
}

void fg_init(FtGuest *g)
{
    uint64_t at, line;
    uint32_t i;

    g->line_size = g->line_size ? g->line_size : 32;
    g->va = g->va ? g->va : UINT64_C(0xffff888012300000);
    line = g->layout == HT_FT_LAYOUT_6_11 ? 56 : g->line_size;
    at = g->offset + (g->layout == HT_FT_LAYOUT_6_11 ? 0 : 4096);
    for (i = 0; i < g->cpus; i++) {
        FgCpu *c = &g->cpu[i];

        c->line = g->layout == HT_FT_LAYOUT_6_11 ? at + 24 : at;
        c->order = at + line;
        c->pages = g->offset + HT_ROUND_UP(c->order + 4 * g->nr - g->offset,
                                           g->subbuf);
        at = c->pages + (uint64_t)g->nr * g->subbuf;
        c->entries = g_new0(uint32_t, g->nr);
    }
    g->size = MAX(g->size, at);
    if (!g->mem) {
        g->mem = aligned_alloc(4096, HT_ROUND_UP(g->size, 4096));
        memset(g->mem, 0, g->size);
        g->own_mem = true;
    }
    if (g->layout == HT_FT_LAYOUT_6_15) {
        fg_put32(g, g->offset, FG_MAGIC);
        fg_put32(g, g->offset + 4, g->line_size | 24u << 16);
        fg_put(g, g->offset + 8, at - g->offset);
        fg_put(g, g->offset + 16, 4096);
        fg_put(g, g->offset + 24, 0);
        fg_put(g, g->offset + 32, UINT64_C(0xffffffff81000000));
    }
    for (i = 0; i < g->cpus; i++) {
        if (g->layout == HT_FT_LAYOUT_6_11) {
            fg_put32(g, g->cpu[i].line - 24, FG_MAGIC);
            fg_put32(g, g->cpu[i].line - 20, 56);
            fg_put(g, g->cpu[i].line - 16, UINT64_C(0xffffffff81234560));
        }
        make_anew(g, i);
        begin_at(g, i);
    }
}

void fg_clear(FtGuest *g)
{
    uint32_t i;

    for (i = 0; i < g->cpus; i++) {
        g_free(g->cpu[i].entries);
    }
    if (g->own_mem) {
        free(g->mem);
    }
}

HtFtMem fg_mem(const FtGuest *g)
{
    return (HtFtMem) { .size = g->size, .map = g->mem };
}

static int read_mem(void *opaque, uint64_t offset, void *buf, size_t len)
{
    FtGuest *g = opaque;

    step(g);
    memcpy(buf, g->mem + offset, len);
    return 0;
}

HtFtMem fg_mem_read(FtGuest *g)
{
    return (HtFtMem) { .size = g->size, .read = read_mem, .opaque = g };
}

static uint32_t next_at(const FtGuest *g, uint32_t at)
{
    return at + 1 < g->nr ? at + 1 : 1;
}

/*
 * If the tail has left a full page, commit the rest of that page, and move the
 * commit pointer to the next page.
 */
static void commit_full(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];

    if (c->full) {
        fg_put(g, fg_page(g, cpu, c->full_slot) + 8, c->full);
        c->full = 0;
        step(g);
        put_commit(g, cpu);
        step(g);
    }
}

/*
 * Mark the rest of the full page as padding, and move the tail to the next
 * page. Commit the full page, except for each fourth event: then commit() does
 * so after the event, as if the event had interrupted another write.
 */
static void move_tail(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];
    uint32_t slot = fg_order(g, cpu, c->at), capacity = g->subbuf - HEADER;
    uint64_t end = fg_page(g, cpu, slot) + HEADER + c->write;
    uint32_t next;

    if (c->write + 8 > capacity) {
        if (c->write < capacity) {
            fg_put32(g, end, 29);
        }
        c->full = c->write;
    } else {
        fg_put32(g, end + 4, capacity - c->write - 4);
        fg_put32(g, end, 29 | 1 << 5);
        c->full = capacity;
    }
    c->full_slot = slot;
    next = c->at ? next_at(g, c->at) : c->after;
    slot = fg_order(g, cpu, next);
    if (next == c->head) {
        c->overrun += c->entries[slot];
        c->head = next_at(g, next);
        put_head(g, cpu);
        step(g);
    }
    c->entries[slot] = 0;
    fg_put(g, fg_page(g, cpu, slot) + 8, 0);
    /* here the kernel changes the tail by cmpxchg */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    step(g);
    c->at = next;
    c->write = 0;
    if (c->seq % 4) {
        commit_full(g, cpu);
    }
}

static void put_bytes(FtGuest *g, uint64_t at, const uint32_t *words,
                      uint32_t n)
{
    while (n--) {
        fg_put32(g, at, ht_le32(*words++));
        at += 4;
    }
}

static void commit(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];
    uint32_t slot = fg_order(g, cpu, c->at);

    commit_full(g, cpu);
    fg_put(g, fg_page(g, cpu, slot) + 8, c->write);
    step(g);
}

/*
 * Write and commit a record with @words words of data. Write a time extension
 * before it if its time does not fit into the record.
 */
static void record(FtGuest *g, uint32_t cpu, uint64_t ns, uint32_t type,
                   const uint32_t *data, uint32_t words)
{
    FgCpu *c = &g->cpu[cpu];
    uint32_t out[1200], n, slot, extend;
    uint64_t delta, at;
    bool back = c->begun && ns < c->ns;

    for (;;) {
        n = 0;
        delta = c->write ? ns - c->ns : 0;
        extend = c->write && (back || delta >> 27) ? 2 : 0;
        if (c->write + 4 * (words + 2 + extend) <= g->subbuf - HEADER) {
            break;
        }
        move_tail(g, cpu);
    }
    if (extend) {
        /*
         * the absolute time if the guest's clock went back, else the time since
         * the previous record
         */
        uint64_t v = back ? ns : delta;

        out[n++] = ht_le32((back ? 31 : 30) | (uint32_t)v << 5);
        out[n++] = ht_le32(v >> 27);
        delta = 0;
    }
    if (type == 0 && words <= 28) {
        out[n++] = ht_le32(words | (uint32_t)delta << 5);
    } else {
        out[n++] = ht_le32(type | MAX((uint32_t)delta, type ? 1 : 0) << 5);
        out[n++] = ht_le32(4 * words + 4);
    }
    memcpy(out + n, data, 4 * words);
    n += words;
    slot = fg_order(g, cpu, c->at);
    at = fg_page(g, cpu, slot) + HEADER + c->write;
    put_bytes(g, at, out, 1);
    step(g);
    if (c->write == 0) {
        fg_put(g, fg_page(g, cpu, slot), ns);
        step(g);
    }
    put_bytes(g, at + 4, out + 1, n - 1);
    step(g);
    c->write += 4 * n;
    c->ns = ns;
    c->begun = true;
    c->entries[slot] += type == 0;
    commit(g, cpu);
}

void fg_event(FtGuest *g, uint32_t cpu, uint64_t ns, uint32_t filling)
{
    FgCpu *c = &g->cpu[cpu];
    uint32_t words[1100] = {
        ht_le32(17 | cpu << 24), ht_le32(1000 + cpu),
        ht_le32(c->seq), ht_le32(c->seq >> 32),
    };
    uint32_t i;

    g_assert_cmpuint(filling, <=, 1000);
    for (i = 0; i < filling; i++) {
        words[4 + i] = ht_le32((uint32_t)c->seq * 2654435761u + i);
    }
    c->seq++;
    record(g, cpu, ns, 0, words, 4 + filling);
}

void fg_discard(FtGuest *g, uint32_t cpu, uint64_t ns)
{
    uint32_t words[4] = { 0 };

    record(g, cpu, ns, 29, words, 4);
}

bool fg_check(const uint8_t *data, uint32_t size, uint64_t *seq)
{
    uint32_t i;

    if (size < 16 || ht_get_le16(data) != 17) {
        return false;
    }
    *seq = ht_get_le64(data + 8);
    for (i = 16; i < size; i += 4) {
        if (ht_get_le32(data + i) !=
            (uint32_t)*seq * 2654435761u + (i - 16) / 4) {
            return false;
        }
    }
    return true;
}

bool fg_read(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];
    uint32_t reader = fg_order(g, cpu, 0), head;

    if (c->read < c->entries[reader]) {
        c->consumed += c->entries[reader] - c->read;
        c->read = c->entries[reader];
        return true;
    }
    if (c->at == 0 || (c->head == c->at && c->entries[fg_order(g, cpu,
                                                     c->at)] == 0)) {
        return false;
    }
    head = fg_order(g, cpu, c->head);
    fg_put(g, fg_page(g, cpu, reader) + 8, 0);
    step(g);
    fg_put32(g, c->order, head);
    step(g);
    fg_put32(g, c->order + 4 * c->head, reader);
    step(g);
    c->entries[reader] = 0;
    if (c->at == c->head) {
        c->at = 0;
        c->after = next_at(g, c->head);
    }
    c->head = next_at(g, c->head);
    put_head(g, cpu);
    step(g);
    c->consumed += c->entries[head];
    c->read = c->entries[head];
    return true;
}

void fg_reset(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];
    uint32_t i;

    for (i = 0; i < g->nr; i++) {
        fg_put(g, fg_page(g, cpu, i) + 8, 0);
        c->entries[i] = 0;
        step(g);
    }
    c->at = c->head = 1 + c->seq % (g->nr - 1);
    c->write = c->full = c->read = 0;
    put_head(g, cpu);
    put_commit(g, cpu);
}

void fg_take_over(FtGuest *g, uint32_t cpu, FgBoot boot, uint64_t va)
{
    FgCpu *c = &g->cpu[cpu];

    g->va = va;
    c->boot = boot;
    if (boot == FG_ANEW) {
        make_anew(g, cpu);
        if (g->layout == HT_FT_LAYOUT_6_11) {
            fg_put(g, c->line - 16, UINT64_C(0xffffffff81234560) + va);
        }
        return;
    }
    fg_put(g, c->line, address(g, cpu, 0));
    step(g);
    put_head(g, cpu);
    step(g);
    put_commit(g, cpu);
    step(g);
    /* The new kernel writes its first event at the start of the tail page. */
    c->write = c->full = 0;
    c->entries[fg_order(g, cpu, c->at)] = 0;
}

void fg_up(FtGuest *g, uint32_t cpu)
{
    FgCpu *c = &g->cpu[cpu];
    uint32_t i;

    if (c->boot == FG_REFUSED) {
        fg_put(g, c->line + 8, 0);
        step(g);
        fg_put(g, c->line + 16, 0);
        for (i = 0; i < g->nr; i++) {
            step(g);
            fg_put(g, fg_page(g, cpu, fg_order(g, cpu, i)) + 8, 0);
        }
    }
    if (c->boot != FG_KEPT) {
        begin_at(g, cpu);
        step(g);
    }
}

void fg_boot(FtGuest *g, uint32_t cpu, bool keep, uint64_t va)
{
    fg_take_over(g, cpu, keep ? FG_KEPT : FG_ANEW, va);
    fg_up(g, cpu);
}
