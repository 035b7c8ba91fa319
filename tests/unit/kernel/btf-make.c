/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "btf-make.h"

static void put(GByteArray *a, uint32_t v)
{
    uint8_t bytes[4];

    ht_put_le32(bytes, v);
    g_byte_array_append(a, bytes, 4);
}

void bm_init(BtfMake *m)
{
    m->types = g_byte_array_new();
    m->names = g_byte_array_new();
    m->n = 0;
    m->last = 0;
    g_byte_array_append(m->names, (const uint8_t *)"", 1);
}

GBytes *bm_finish(BtfMake *m)
{
    GByteArray *all = g_byte_array_new();

    put(all, 0xeb9f | 1 << 16);
    put(all, 24);
    put(all, 0);
    put(all, m->types->len);
    put(all, m->types->len);
    put(all, m->names->len);
    g_byte_array_append(all, m->types->data, m->types->len);
    g_byte_array_append(all, m->names->data, m->names->len);
    g_byte_array_unref(m->types);
    g_byte_array_unref(m->names);
    return g_byte_array_free_to_bytes(all);
}

uint32_t bm_name(BtfMake *m, const char *name)
{
    uint32_t at = m->names->len;

    if (!name || !*name) {
        return 0;
    }
    g_byte_array_append(m->names, (const uint8_t *)name, strlen(name) + 1);
    return at;
}

void bm_u32(BtfMake *m, uint32_t v)
{
    put(m->types, v);
}

uint32_t bm_type(BtfMake *m, const char *name, unsigned kind, unsigned vlen,
                 bool flag, uint32_t size)
{
    uint32_t n = bm_name(m, name);

    m->last = m->types->len;
    put(m->types, n);
    put(m->types, kind << 24 | vlen | (uint32_t)flag << 31);
    put(m->types, size);
    return ++m->n;
}

uint32_t bm_int(BtfMake *m, const char *name, unsigned size, bool is_signed)
{
    uint32_t id = bm_type(m, name, BM_INT, 0, false, size);

    put(m->types, (uint32_t)is_signed << 24 | size * 8);
    return id;
}

uint32_t bm_ptr(BtfMake *m, uint32_t to)
{
    return bm_type(m, NULL, BM_PTR, 0, false, to);
}

uint32_t bm_array(BtfMake *m, uint32_t of, uint32_t n)
{
    uint32_t id = bm_type(m, NULL, BM_ARRAY, 0, false, 0);

    put(m->types, of);
    put(m->types, of);
    put(m->types, n);
    return id;
}

uint32_t bm_struct(BtfMake *m, const char *name, uint32_t size)
{
    return bm_type(m, name, BM_STRUCT, 0, true, size);
}

uint32_t bm_union(BtfMake *m, const char *name, uint32_t size)
{
    return bm_type(m, name, BM_UNION, 0, true, size);
}

/* Add 1 to the number of members or values of the type that was made last. */
static void count(BtfMake *m)
{
    uint8_t *info = m->types->data + m->last + 4;

    ht_put_le32(info, ht_get_le32(info) + 1);
}

void bm_bits(BtfMake *m, const char *name, uint32_t type, uint32_t bit,
             unsigned bits)
{
    uint32_t n = bm_name(m, name);

    count(m);
    put(m->types, n);
    put(m->types, type);
    put(m->types, bits << 24 | bit);
}

void bm_member(BtfMake *m, const char *name, uint32_t type, uint32_t offset)
{
    bm_bits(m, name, type, offset * 8, 0);
}

uint32_t bm_enum(BtfMake *m, const char *name)
{
    return bm_type(m, name, BM_ENUM, 0, true, 4);
}

uint32_t bm_enum64(BtfMake *m, const char *name)
{
    return bm_type(m, name, BM_ENUM64, 0, true, 8);
}

void bm_value(BtfMake *m, const char *name, int64_t value)
{
    uint32_t n = bm_name(m, name);
    bool wide = (ht_get_le32(m->types->data + m->last + 4) >> 24 & 31) ==
                BM_ENUM64;

    count(m);
    put(m->types, n);
    put(m->types, value);
    if (wide) {
        put(m->types, (uint64_t)value >> 32);
    }
}
