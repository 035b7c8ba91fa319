/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "formats-make.h"

void fm_types(BtfMake *m, uint32_t u32, uint32_t u64)
{
    uint32_t list, event;

    list = bm_struct(m, "list_head", 16);
    bm_member(m, "next", u64, 0);
    bm_member(m, "prev", u64, 8);
    event = bm_struct(m, "trace_event", 16);
    bm_member(m, "type", u32, FM_CALL_ID - FM_CALL_EVENT);
    bm_struct(m, "trace_event_call", FM_CALL_SIZE);
    bm_member(m, "list", list, 0);
    bm_member(m, "class", u64, FM_CALL_CLASS);
    bm_member(m, "name", u64, FM_CALL_NAME);
    bm_member(m, "tp", u64, FM_CALL_NAME);
    bm_member(m, "event", event, FM_CALL_EVENT);
    bm_member(m, "print_fmt", u64, FM_CALL_PRINT);
    bm_member(m, "flags", u32, FM_CALL_FLAGS);
    bm_member(m, "data", u64, FM_CALL_DATA);
    bm_struct(m, "trace_event_class", FM_CLASS_SIZE);
    bm_member(m, "system", u64, 0);
    bm_member(m, "fields", list, FM_CLASS_FIELDS);
    bm_member(m, "get_fields", u64, FM_CLASS_GET);
    bm_struct(m, "tracepoint", 8);
    bm_member(m, "name", u64, 0);
    bm_struct(m, "syscall_metadata", FM_META_SIZE);
    bm_member(m, "enter_fields", list, FM_META_FIELDS);
    bm_struct(m, "ftrace_event_field", FM_FIELD_SIZE);
    bm_member(m, "link", list, 0);
    bm_member(m, "name", u64, FM_FIELD_NAME);
    bm_member(m, "type", u64, FM_FIELD_TYPE);
    bm_member(m, "offset", u32, FM_FIELD_OFFSET);
    bm_member(m, "size", u32, FM_FIELD_BYTES);
    bm_member(m, "is_signed", u32, FM_FIELD_SIGNED);
}

HtBtf *fm_btf(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = NULL;
    uint32_t u32, u64;
    HtBtf *btf;
    BtfMake m;

    bm_init(&m);
    u32 = bm_int(&m, "unsigned int", 4, false);
    u64 = bm_int(&m, "long unsigned int", 8, false);
    fm_types(&m, u32, u64);
    bytes = bm_finish(&m);
    btf = ht_btf_parse(g_bytes_get_data(bytes, NULL),
                       g_bytes_get_size(bytes), &error);
    g_assert_no_error(error);
    return btf;
}

static int translate(void *opaque, uint64_t addr, uint64_t *offset,
                     uint64_t *left)
{
    const FormatsGuest *g = opaque;

    if (addr < FM_BASE || addr - FM_BASE >= g->size) {
        return -EFAULT;
    }
    *offset = addr - FM_BASE;
    *left = MIN(4096 - *offset % 4096, g->size - *offset);
    return 0;
}

void fm_put(FormatsGuest *g, uint64_t addr, uint64_t v)
{
    ht_put_le64(g->mem + (addr - FM_BASE), v);
}

uint64_t fm_get(const FormatsGuest *g, uint64_t addr)
{
    return ht_get_le64(g->mem + (addr - FM_BASE));
}

static uint64_t alloc(FormatsGuest *g, uint64_t size)
{
    uint64_t at = g->used;

    g->used = HT_ROUND_UP(g->used + size, 8);
    g_assert_cmpuint(g->used, <=, g->size);
    return FM_BASE + at;
}

static void init_list(FormatsGuest *g, uint64_t head)
{
    fm_put(g, head, head);
    fm_put(g, head + 8, head);
}

/* Insert @node between two neighbours of a list. */
static void insert(FormatsGuest *g, uint64_t node, uint64_t prev,
                   uint64_t next)
{
    fm_put(g, node, next);
    fm_put(g, node + 8, prev);
    fm_put(g, prev, node);
    fm_put(g, next + 8, node);
}

void fm_init(FormatsGuest *g, uint64_t size)
{
    *g = (FormatsGuest) {
        .mem = g_malloc0(size),
        .size = size,
        .used = 256,
        .at = { FM_EVENTS, FM_COMMON, FM_ENTER },
    };
    g->ft = (HtFtMem) { .size = size, .map = g->mem };
    g->space = (HtKernelSpace) { &g->ft, translate, g };
    init_list(g, FM_EVENTS);
    init_list(g, FM_COMMON);
}

void fm_clear(FormatsGuest *g)
{
    g_free(g->mem);
}

uint64_t fm_text(FormatsGuest *g, const char *text)
{
    uint64_t at = alloc(g, strlen(text) + 1);

    memcpy(g->mem + (at - FM_BASE), text, strlen(text) + 1);
    return at;
}

void fm_field(FormatsGuest *g, uint64_t head, const char *type,
              const char *name, uint32_t offset, uint32_t bytes)
{
    uint64_t at = alloc(g, FM_FIELD_SIZE);

    fm_put(g, at + FM_FIELD_NAME, fm_text(g, name));
    fm_put(g, at + FM_FIELD_TYPE, fm_text(g, type));
    fm_put(g, at + FM_FIELD_OFFSET, offset | (uint64_t)bytes << 32);
    insert(g, at, head, fm_get(g, head));
}

uint64_t fm_event(FormatsGuest *g, uint32_t id, const char *system,
                  const char *name, const char *print)
{
    uint64_t class = alloc(g, FM_CLASS_SIZE), call = alloc(g, FM_CALL_SIZE);

    fm_put(g, class, fm_text(g, system));
    init_list(g, class + FM_CLASS_FIELDS);
    fm_put(g, call + FM_CALL_CLASS, class);
    fm_put(g, call + FM_CALL_NAME, fm_text(g, name));
    fm_put(g, call + FM_CALL_ID, id);
    fm_put(g, call + FM_CALL_PRINT, fm_text(g, print));
    insert(g, call, FM_EVENTS, fm_get(g, FM_EVENTS));
    return class + FM_CLASS_FIELDS;
}

void fm_remove(FormatsGuest *g)
{
    uint64_t next = fm_get(g, fm_get(g, FM_EVENTS));

    fm_put(g, FM_EVENTS, next);
    fm_put(g, next + 8, FM_EVENTS);
}
