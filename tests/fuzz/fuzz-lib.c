/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that the fuzz targets share: take numbers, events and clock readings
 * from the input, make classes and sinks, and check a consumer's counters
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "fuzz.h"

void (*fuzz_guest)(void);

uint64_t fuzz_bits(FuzzInput *in, unsigned bytes)
{
    uint64_t v = 0;
    unsigned i;

    for (i = 0; i < bytes; i++) {
        v |= (uint64_t)fuzz_u8(in) << (8 * i);
    }
    return v;
}

uint64_t fuzz_number(FuzzInput *in)
{
    uint8_t how = fuzz_u8(in);

    if (how < 0x80) {
        return how;
    }
    if (how < 0xc0) {
        return (UINT64_C(1) << (how & 63)) + (int8_t)fuzz_u8(in);
    }
    if (how & 8) {
        return -fuzz_bits(in, (how & 7) + 1);
    }
    return fuzz_bits(in, (how & 7) + 1);
}

FuzzInput fuzz_slice(FuzzInput *in, size_t size)
{
    FuzzInput slice = fuzz_input(in->p, MIN(size, (size_t)(in->end - in->p)));

    in->p = slice.end;
    return slice;
}

void *fuzz_copy(const void *bytes, size_t size)
{
    /* malloc() instead of g_malloc(), which returns NULL for a size of 0 */
    void *copy = malloc(size);

    if (size) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

static void add_many(HtClassTable *t)
{
    CtMessage m;
    unsigned kind;

    ct_class(&m, "many");
    for (kind = HT_FIELD_U8; kind <= HT_FIELD_F64; kind++) {
        g_autofree char *name = g_strdup_printf("f%u", kind);

        ct_field(&m, name, kind, 0, 0);
        if (kind % 4 == 1) {
            name[0] = 't';
            ct_field(&m, name, HT_FIELD_TEXT, 0, 0);
        }
        if (kind <= HT_FIELD_S64) {
            name[0] = 's';
            ct_field(&m, name, HT_FIELD_SEQUENCE, kind, 0);
        }
    }
    ct_field(&m, "a", HT_FIELD_ARRAY, HT_FIELD_U16, 3);
    g_assert_cmpuint(ct_register(t, &m), ==, FUZZ_MANY);
}

static void add_huge(HtClassTable *t)
{
    CtMessage m;
    unsigned i;

    ct_class(&m, "huge");
    for (i = 0; i < HT_FIELDS_MAX; i++) {
        g_autofree char *name = g_strdup_printf("a%u", i);

        ct_field(&m, name, HT_FIELD_ARRAY, HT_FIELD_U64, 4096);
    }
    g_assert_cmpuint(ct_register(t, &m), ==, FUZZ_HUGE);
}

HtClassTable *fuzz_classes(void)
{
    static HtClassTable *t;

    if (!t) {
        t = ct_classes();
        add_many(t);
        add_huge(t);
    }
    return t;
}

ssize_t fuzz_payload(const HtClass *c, const uint8_t *p, size_t avail)
{
    size_t pos = 0;
    unsigned i;

    for (i = 0; i < c->nr_fields; i++) {
        const HtField *f = &c->fields[i];
        size_t count = 1, size = ht_kind_size(f->kind);

        if (f->kind == HT_FIELD_ARRAY) {
            count = f->count;
            size = ht_kind_size(f->elem);
        /* the field is a text or a sequence, whose size varies */
        } else if (size == 0) {
            if (avail - pos < 2) {
                return -1;
            }
            count = p[pos] + 256 * p[pos + 1];
            size = ht_kind_size(f->elem);
            pos += 2;
        }
        if (avail - pos < count * size) {
            return -1;
        }
        pos += count * size;
    }
    return pos;
}

static void put_bytes(FuzzInput *in, GByteArray *out, size_t size)
{
    while (size--) {
        uint8_t byte = fuzz_u8(in);

        g_byte_array_append(out, &byte, 1);
    }
}

static void put_payload(FuzzInput *in, GByteArray *out, const HtClass *c)
{
    unsigned i;

    for (i = 0; i < c->nr_fields; i++) {
        const HtField *f = &c->fields[i];
        unsigned count = fuzz_u8(in) % 16;
        uint8_t le[2] = { count };

        switch (f->kind) {
        case HT_FIELD_TEXT:
        case HT_FIELD_SEQUENCE:
            g_byte_array_append(out, le, 2);
            put_bytes(in, out, count * ht_kind_size(f->elem));
            break;
        case HT_FIELD_ARRAY:
            put_bytes(in, out, f->count * ht_kind_size(f->elem));
            break;
        default:
            put_bytes(in, out, ht_kind_size(f->kind));
        }
    }
}

void fuzz_event(FuzzInput *in, GByteArray *out, uint64_t *clock)
{
    static const uint32_t ids[] = {
        CT_NUMBER, CT_TEXT, CT_SEQUENCE, CT_EMPTY,
        CT_EMPTY + 2, HT_ID_WIDE, CT_FAR, FUZZ_MANY,
    };
    uint8_t how = fuzz_u8(in);
    uint32_t id = ids[how % G_N_ELEMENTS(ids)];
    uint64_t gap = how & 0x40 ? fuzz_number(in) : fuzz_u8(in);
    g_autoptr(GByteArray) payload = g_byte_array_new();

    *clock += gap;
    put_payload(in, payload, ht_class_table_get(fuzz_classes(), id));
    if (gap > HT_CLOCK_MASK / 2 || (how & 0x80)) {
        ct_put_extended(out, id, *clock, payload->data, payload->len);
    } else {
        ct_put_compact(out, id, *clock, payload->data, payload->len);
    }
}

CtSink fuzz_sink(void)
{
    return (CtSink) {
        .classes = fuzz_classes(),
        .numbers = g_array_new(false, false, sizeof(uint64_t)),
    };
}

void fuzz_sample(FuzzInput *in, HtTimeMap *m)
{
    uint64_t counter = fuzz_number(in), ns = fuzz_number(in);
    uint64_t bound = fuzz_number(in);

    if (m->count && !(fuzz_u8(in) & 1)) {
        const HtTimeSegment *last = &m->seg[m->count - 1];

        ns = last->ns + ht_time_scale(counter, m->nominal) + (int8_t)ns;
        counter += last->counter;
    }
    /*
     * Limit the reading's host time, because the host's own clock never exceeds
     * HT_TIME_MAX_NS.
     */
    ht_time_map_sample(m, counter, MIN(ns, HT_TIME_MAX_NS), bound);
}

void fuzz_check_consumer(const HtConsumer *c, const CtSink *s)
{
    g_assert_cmpuint(c->events, ==, s->numbers->len + s->other);
    g_assert_cmpuint(c->packets, ==, s->runs);
    g_assert_cmpuint(c->bytes, ==, s->bytes);
    g_assert_cmpuint(c->walk.ns, ==, s->ns);
    g_assert_cmpuint(c->errors, ==, c->stopped);
    g_assert_true(c->stopped == (c->why[0] != '\0'));
    ct_check_loadable(c);
}
