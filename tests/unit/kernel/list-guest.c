/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "list-guest.h"
#include "hypertrace/ftrace-page.h"

#define HEAD    1u
#define MOVING  2u
#define CAPACITY (LG_PAGE - HT_FT_PAGE_HEADER)

/* Offsets of members, and sizes, of an invented kernel's structures, bytes */
enum {
    CPU_PAGES = 40, CPU_HEAD = 48, CPU_COMMIT = 64, CPU_READER = 72,
    CPU_ENTRIES = 104, CPU_OVERRUN = 112, CPU_COMMITTING = 120,
    CPU_READ = 176, CPU_SIZE = 256,
    NODE_PAGE = 56, NODE_SIZE = 64,
    ARRAY_BUFFER = 24, BUFFER_BUFFERS = 48,
};

static uint64_t *at(const ListGuest *g, uint64_t addr)
{
    g_assert_cmpuint(addr - LG_BASE, <, g->size);
    return (uint64_t *)(g->mem + (addr - LG_BASE));
}

uint64_t lg_get(const ListGuest *g, uint64_t addr)
{
    return GUINT64_FROM_LE(*at(g, addr));
}

static void step(ListGuest *g)
{
    if (g->step) {
        g->step(g->opaque);
    }
}

void lg_put(ListGuest *g, uint64_t addr, uint64_t v)
{
    *at(g, addr) = GUINT64_TO_LE(v);
    step(g);
}

uint64_t lg_alloc(ListGuest *g, uint64_t size, uint64_t align)
{
    g->used = HT_ROUND_UP(g->used, align) + g_rand_int_range(g->rand, 0, 4) *
              align;
    g_assert_cmpuint(g->used + size, <=, g->size);
    g->used += size;
    return LG_BASE + g->used - size;
}

static int translate(void *opaque, uint64_t addr, uint64_t *offset,
                     uint64_t *left)
{
    const ListGuest *g = opaque;

    if (addr < LG_BASE || addr - LG_BASE >= g->size) {
        return -EFAULT;
    }
    *offset = addr - LG_BASE;
    /* a translation is valid up to the end of its page */
    *left = LG_PAGE - *offset % LG_PAGE;
    return 0;
}

static uint64_t new_node(ListGuest *g)
{
    uint64_t node = lg_alloc(g, NODE_SIZE, 64);

    lg_put(g, node + NODE_PAGE, lg_alloc(g, LG_PAGE, LG_PAGE));
    return node;
}

static uint64_t page_of(const ListGuest *g, uint64_t node)
{
    return lg_get(g, node + NODE_PAGE);
}

static uint64_t next_of(const ListGuest *g, uint64_t node)
{
    return lg_get(g, node) & ~UINT64_C(3);
}

static void link_nodes(ListGuest *g, uint64_t a, uint64_t b)
{
    lg_put(g, a, b);
    lg_put(g, b + 8, a);
}

static void init_cpu(ListGuest *g, LgCpu *c)
{
    uint64_t first = new_node(g), last = first;
    uint32_t i;

    c->at = lg_alloc(g, CPU_SIZE, 64);
    for (i = 1; i < g->nodes; i++) {
        uint64_t node = new_node(g);

        link_nodes(g, last, node);
        last = node;
    }
    link_nodes(g, last, first);
    lg_put(g, last, first | HEAD);
    c->tail = c->head = first;
    c->reader = new_node(g);
    link_nodes(g, c->reader, c->reader);
    lg_put(g, c->at + CPU_PAGES, first);
    lg_put(g, c->at + CPU_HEAD, first);
    lg_put(g, c->at + CPU_COMMIT, first);
    lg_put(g, c->at + CPU_READER, c->reader);
}

void lg_init(ListGuest *g, uint32_t cpus, uint32_t nodes, uint32_t seed)
{
    uint64_t buffer, buffers;
    uint32_t i;

    memset(g, 0, sizeof(*g));
    g->size = (uint64_t)(cpus + 1) * (nodes + 260) * 4 * LG_PAGE + (1 << 20);
    g->mem = g_malloc0(g->size);
    g->rand = g_rand_new_with_seed(seed);
    g->cpus = cpus;
    g->nodes = nodes;
    g->count = g_hash_table_new(NULL, NULL);
    g->ft = (HtFtMem) { .size = g->size, .map = g->mem };
    g->space = (HtKernelSpace) { &g->ft, translate, g };
    g->layout = (HtKernelRingLayout) {
        .reader = CPU_READER, .commit = CPU_COMMIT, .head = CPU_HEAD,
        .pages = CPU_PAGES, .entries = CPU_ENTRIES, .overrun = CPU_OVERRUN,
        .read = CPU_READ, .committing = CPU_COMMITTING,
        .node_page = NODE_PAGE,
        .array_buffer = ARRAY_BUFFER, .buffers = BUFFER_BUFFERS,
        .subbuf_size = UINT32_MAX, .page_size = LG_PAGE,
    };
    g->used = 64;
    g->array = lg_alloc(g, 64, 64);
    buffer = lg_alloc(g, 64, 64);
    buffers = lg_alloc(g, 8 * cpus, 64);
    for (i = 0; i < cpus; i++) {
        init_cpu(g, &g->cpu[i]);
        lg_put(g, buffers + 8 * i, g->cpu[i].at);
    }
    lg_put(g, buffer + BUFFER_BUFFERS, buffers);
    lg_put(g, g->array + ARRAY_BUFFER, buffer);
}

void lg_clear(ListGuest *g)
{
    g_hash_table_destroy(g->count);
    g_rand_free(g->rand);
    g_free(g->mem);
}

static uint32_t events_of(const ListGuest *g, uint64_t node)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(
        g->count, (gpointer)(uintptr_t)node));
}

static void set_events(ListGuest *g, uint64_t node, uint32_t n)
{
    g_hash_table_insert(g->count, (gpointer)(uintptr_t)node,
                        GUINT_TO_POINTER(n));
}

/*
 * The writer needs the page of the head: count the page's events as
 * overwritten, and make the next page the head.
 */
static void move_head(ListGuest *g, LgCpu *c)
{
    uint64_t head = c->head, prev = lg_get(g, head + 8);
    uint64_t next = next_of(g, head);

    lg_put(g, prev, head | MOVING);
    c->overrun += events_of(g, head);
    lg_put(g, c->at + CPU_OVERRUN, c->overrun);
    lg_put(g, head, next | HEAD);
    c->head = next;
    lg_put(g, prev, head);
}

static void next_page(ListGuest *g, LgCpu *c, uint64_t *next)
{
    *next = next_of(g, c->tail);
    if (lg_get(g, c->tail) & HEAD) {
        move_head(g, c);
    }
    set_events(g, *next, 0);
    lg_put(g, page_of(g, *next) + 8, 0);
}

void lg_event(ListGuest *g, uint32_t cpu, uint64_t ns, uint32_t filling)
{
    LgCpu *c = &g->cpu[cpu];
    uint32_t size = 8 + 8 + 4 * filling, i, full = 0;
    uint64_t before = c->tail, page;
    uint8_t *p;

    lg_put(g, c->at + CPU_COMMITTING, 1);
    if (c->write + 4 + size > CAPACITY) {
        uint64_t next;

        page = page_of(g, c->tail);
        if (c->write < CAPACITY) {
            ht_put_le32(g->mem + (page + HT_FT_PAGE_HEADER + c->write -
                                  LG_BASE), 29);
            step(g);
        }
        full = CAPACITY;
        next_page(g, c, &next);
        c->tail = next;
        c->write = 0;
    }
    page = page_of(g, c->tail);
    p = g->mem + (page + HT_FT_PAGE_HEADER + c->write - LG_BASE);
    ht_put_le32(p, size / 4 |
                (uint32_t)(c->write ? ns - c->ns : 0) << 5);
    step(g);
    if (!c->write) {
        lg_put(g, page, ns);
    }
    ht_put_le64(p + 4, 7);
    ht_put_le64(p + 12, c->seq);
    step(g);
    for (i = 0; i < filling; i++) {
        ht_put_le32(p + 20 + 4 * i, (uint32_t)c->seq * 2654435761u + i);
    }
    c->ns = ns;
    c->seq++;
    c->write += 4 + size;
    set_events(g, c->tail, events_of(g, c->tail) + 1);
    /* the kernel counts an event before it commits the event */
    lg_put(g, c->at + CPU_ENTRIES, ++c->entries);
    if (full) {
        lg_put(g, page_of(g, before) + 8, full);
        lg_put(g, c->at + CPU_COMMIT, c->tail);
    }
    lg_put(g, page + 8, c->write);
    lg_put(g, c->at + CPU_COMMITTING, 0);
}

uint64_t lg_check(const uint8_t *data, uint32_t size)
{
    uint64_t seq = ht_get_le64(data + 8);
    uint32_t i;

    g_assert_cmpuint(ht_get_le64(data), ==, 7);
    g_assert_cmpuint(size, >=, 16);
    for (i = 0; i < (size - 16) / 4; i++) {
        g_assert_cmpuint(ht_get_le32(data + 16 + 4 * i), ==,
                         (uint32_t)seq * 2654435761u + i);
    }
    return seq;
}

static void swap_page(ListGuest *g, LgCpu *c)
{
    uint64_t old = page_of(g, c->reader);
    uint64_t spare = lg_alloc(g, LG_PAGE, LG_PAGE);

    lg_put(g, spare + 8, 0);
    lg_put(g, c->reader + NODE_PAGE, spare);
    /* the old page keeps its content: lg_alloc() does not reuse memory */
    (void)old;
}

bool lg_read(ListGuest *g, uint32_t cpu, bool swap)
{
    LgCpu *c = &g->cpu[cpu];
    uint64_t node = c->head, old = c->reader, prev, next;

    if (c->tail == c->reader || (node == c->tail && !c->write)) {
        return false;
    }
    prev = lg_get(g, node + 8);
    next = next_of(g, node);
    /*
     * count as read the events that the writer added to the readers' page after
     * the page was taken
     */
    c->read += events_of(g, old) - c->consumed;
    lg_put(g, c->at + CPU_READ, c->read);
    set_events(g, old, 0);
    lg_put(g, page_of(g, old) + 8, 0);
    lg_put(g, old, next | HEAD);
    lg_put(g, old + 8, prev);
    lg_put(g, prev, old);
    lg_put(g, next + 8, old);
    c->head = next;
    lg_put(g, c->at + CPU_HEAD, next);
    c->reader = node;
    lg_put(g, c->at + CPU_READER, node);
    c->consumed = events_of(g, node);
    c->read += c->consumed;
    lg_put(g, c->at + CPU_READ, c->read);
    if (swap && node != c->tail) {
        swap_page(g, c);
    }
    return true;
}

void lg_reset(ListGuest *g, uint32_t cpu)
{
    LgCpu *c = &g->cpu[cpu];
    uint64_t node = c->head, first = node;

    do {
        lg_put(g, page_of(g, node) + 8, 0);
        set_events(g, node, 0);
        node = next_of(g, node);
    } while (node != first);
    lg_put(g, page_of(g, c->reader) + 8, 0);
    c->tail = c->head;
    c->write = 0;
    lg_put(g, c->at + CPU_COMMIT, c->tail);
    set_events(g, c->reader, 0);
    c->entries = c->overrun = c->read = c->consumed = 0;
    lg_put(g, c->at + CPU_ENTRIES, 0);
    lg_put(g, c->at + CPU_OVERRUN, 0);
    lg_put(g, c->at + CPU_READ, 0);
}

void lg_shrink(ListGuest *g, uint32_t cpu)
{
    LgCpu *c = &g->cpu[cpu];
    uint64_t node = c->head, prev = lg_get(g, node + 8);
    uint64_t next = next_of(g, node);

    if (node == c->tail || next == c->tail || c->tail == c->reader ||
        next_of(g, next) == node) {
        return;
    }
    c->head = next;
    lg_put(g, next + 8, prev);
    lg_put(g, prev, next | HEAD);
    lg_put(g, c->at + CPU_HEAD, next);
    lg_put(g, c->at + CPU_PAGES, next);
    c->overrun += events_of(g, node);
    lg_put(g, c->at + CPU_OVERRUN, c->overrun);
    /* The kernel frees the page, so other data may overwrite it. */
    memset(g->mem + (page_of(g, node) - LG_BASE), 0xa5, LG_PAGE);
    lg_put(g, node + NODE_PAGE, UINT64_C(0x5a5a5a5a5a5a5a5a));
}

void lg_grow(ListGuest *g, uint32_t cpu)
{
    LgCpu *c = &g->cpu[cpu];
    uint64_t node = new_node(g), prev = lg_get(g, c->head + 8);

    lg_put(g, node + 8, prev);
    lg_put(g, node, c->head | HEAD);
    lg_put(g, c->head + 8, node);
    lg_put(g, prev, node);
}
