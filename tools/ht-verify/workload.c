/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-verify: check payloads of ht-bench
 *
 * ht-bench's own code computes the expected payload from the stream's index and
 * the event's sequence number. The payload is compared field by field with the
 * event that libbabeltrace2 decoded.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../ht-bench-payload.h"
#include "workload.h"

#define PAYLOAD_MAX 256

typedef struct Field {
    const char *name;
    uint8_t kind;
    uint8_t elem;
    uint16_t count;
} Field;

typedef struct Known {
    const char *name;
    void (*fill)(uint8_t *p, uint32_t tag, uint64_t seq);
    Field fields[HT_FIELDS_MAX];
} Known;

static const Known known[] = {
    {
        "bench.e8", ht_bench_fill8, {
            { "seq", HT_FIELD_U64, 0, 0 },
        },
    },
    {
        "bench.e32", ht_bench_fill32, {
            { "seq", HT_FIELD_U64, 0, 0 },
            { "a", HT_FIELD_U64, 0, 0 },
            { "b", HT_FIELD_U64, 0, 0 },
            { "c", HT_FIELD_U64, 0, 0 },
        },
    },
    {
        "bench.e64", ht_bench_fill64, {
            { "seq", HT_FIELD_U64, 0, 0 },
            { "hash", HT_FIELD_U64, 0, 0 },
            { "delta", HT_FIELD_S64, 0, 0 },
            { "count", HT_FIELD_U32, 0, 0 },
            { "diff", HT_FIELD_S32, 0, 0 },
            { "port", HT_FIELD_U16, 0, 0 },
            { "heat", HT_FIELD_S16, 0, 0 },
            { "flags", HT_FIELD_U8, 0, 0 },
            { "level", HT_FIELD_S8, 0, 0 },
            { "ratio", HT_FIELD_F64, 0, 0 },
            { "share", HT_FIELD_F32, 0, 0 },
            { "raw", HT_FIELD_ARRAY, HT_FIELD_U8, HT_BENCH_RAW },
        },
    },
    {
        "bench.e256", ht_bench_fill256, {
            { "seq", HT_FIELD_U64, 0, 0 },
            { "hash", HT_FIELD_U64, 0, 0 },
            { "message", HT_FIELD_TEXT, 0, 0 },
            { "numbers", HT_FIELD_SEQUENCE, HT_FIELD_U32, 0 },
        },
    },
};

static bool is_type(const bt_field_class *c, bt_field_class_type type)
{
    return bt_field_class_type_is(bt_field_class_get_type(c), type);
}

static bool integer_is(const bt_field_class *c, unsigned kind)
{
    static const uint8_t bits[] = { 8, 16, 32, 64 };
    bool is_signed = kind >= HT_FIELD_S8;

    return is_type(c, is_signed ? BT_FIELD_CLASS_TYPE_SIGNED_INTEGER :
                                  BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER) &&
           bt_field_class_integer_get_field_value_range(c) ==
           bits[(kind - HT_FIELD_U8) % 4];
}

static bool class_is(const bt_field_class *c, const Field *f)
{
    switch (f->kind) {
    case HT_FIELD_F32:
        return is_type(c, BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL);
    case HT_FIELD_F64:
        return is_type(c, BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL);
    case HT_FIELD_TEXT:
        return is_type(c, BT_FIELD_CLASS_TYPE_STRING);
    case HT_FIELD_SEQUENCE:
        return is_type(c, BT_FIELD_CLASS_TYPE_DYNAMIC_ARRAY) &&
               integer_is(
                   bt_field_class_array_borrow_element_field_class_const(c),
                   f->elem);
    case HT_FIELD_ARRAY:
        return is_type(c, BT_FIELD_CLASS_TYPE_STATIC_ARRAY) &&
               bt_field_class_array_static_get_length(c) == f->count &&
               integer_is(
                   bt_field_class_array_borrow_element_field_class_const(c),
                   f->elem);
    default:
        return integer_is(c, f->kind);
    }
}

bool workload_is_extra(const TraceClass *cls, const char *name)
{
    return (name[0] == '_' && g_str_has_suffix(name, "_length")) ||
           (cls->kind == TRACE_LTTNG &&
            (!strcmp(name, "stream") || !strcmp(name, "vcpu") ||
             !strcmp(name, "guest_ns")));
}

/*
 * Find the index in a class of each field of @f, a table whose last entry has
 * no name. Returns false unless the class has exactly these fields in this
 * order. Fields that the tracer added (workload_is_extra()) are skipped.
 */
static bool find_members(const TraceClass *cls, const Field *f,
                         uint64_t *members)
{
    uint64_t i, n;

    if (!cls->fields) {
        return false;
    }
    n = bt_field_class_structure_get_member_count(cls->fields);
    for (i = 0; i < n; i++) {
        const bt_field_class_structure_member *m =
            bt_field_class_structure_borrow_member_by_index_const(
                cls->fields, i);
        const char *name = bt_field_class_structure_member_get_name(m);

        if (workload_is_extra(cls, name)) {
            continue;
        }
        if (!f->name || strcmp(name, f->name) ||
            !class_is(bt_field_class_structure_member_borrow_field_class_const(
                          m), f)) {
            return false;
        }
        *members++ = i;
        f++;
    }
    return !f->name;
}

void workload_class(const TraceClass *cls, WorkloadClass *w)
{
    unsigned i;

    memset(w, 0, sizeof(*w));
    for (i = 0; i < G_N_ELEMENTS(known); i++) {
        if (!strcmp(cls->name, known[i].name)) {
            w->known = true;
            w->index = i;
            w->schema = find_members(cls, known[i].fields, w->members);
        }
    }
}

static uint64_t get_le(const uint8_t *p, unsigned size)
{
    uint64_t v = 0;

    while (size--) {
        v = v << 8 | p[size];
    }
    return v;
}

static unsigned kind_size(unsigned kind)
{
    static const uint8_t sizes[] = { 0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8 };

    return sizes[kind];
}

/*
 * Get the bits of a field that holds a single value. If the kind has fewer than
 * 64 bits, the upper bits are 0.
 */
static uint64_t scalar(const bt_field *f, unsigned kind)
{
    uint32_t v32;
    uint64_t v;
    float f32;
    double f64;

    switch (kind) {
    case HT_FIELD_F32:
        f32 = bt_field_real_single_precision_get_value(f);
        memcpy(&v32, &f32, 4);
        return v32;
    case HT_FIELD_F64:
        f64 = bt_field_real_double_precision_get_value(f);
        memcpy(&v, &f64, 8);
        return v;
    default:
        v = kind >= HT_FIELD_S8 ?
            (uint64_t)bt_field_integer_signed_get_value(f) :
            bt_field_integer_unsigned_get_value(f);
        return kind_size(kind) == 8 ? v :
               v & ((UINT64_C(1) << 8 * kind_size(kind)) - 1);
    }
}

static bool elements_are(const bt_field *f, unsigned elem, uint64_t count,
                         const uint8_t *p)
{
    const unsigned size = kind_size(elem);
    uint64_t i;

    if (bt_field_array_get_length(f) != count) {
        return false;
    }
    for (i = 0; i < count; i++) {
        if (scalar(bt_field_array_borrow_element_field_by_index_const(f, i),
                   elem) != get_le(p + i * size, size)) {
            return false;
        }
    }
    return true;
}

uint64_t workload_seq(const WorkloadClass *w, const bt_field *payload)
{
    return bt_field_integer_unsigned_get_value(
        bt_field_structure_borrow_member_field_by_index_const(
            payload, w->members[0]));
}

const char *workload_check(const WorkloadClass *w, uint32_t tag,
                           const bt_field *payload)
{
    const Field *f = known[w->index].fields;
    uint8_t expected[PAYLOAD_MAX];
    const uint8_t *p = expected;
    unsigned i, count;

    known[w->index].fill(expected, tag, workload_seq(w, payload));
    for (i = 0; f->name; i++, f++) {
        const bt_field *field =
            bt_field_structure_borrow_member_field_by_index_const(
                payload, w->members[i]);
        bool same;

        switch (f->kind) {
        case HT_FIELD_TEXT:
            count = get_le(p, 2);
            same = bt_field_string_get_length(field) == count &&
                   !memcmp(bt_field_string_get_value(field), p + 2, count);
            p += 2 + count;
            break;
        case HT_FIELD_SEQUENCE:
            count = get_le(p, 2);
            same = elements_are(field, f->elem, count, p + 2);
            p += 2 + count * kind_size(f->elem);
            break;
        case HT_FIELD_ARRAY:
            same = elements_are(field, f->elem, f->count, p);
            p += f->count * kind_size(f->elem);
            break;
        default:
            same = scalar(field, f->kind) == get_le(p, kind_size(f->kind));
            p += kind_size(f->kind);
            break;
        }
        if (!same) {
            return f->name;
        }
    }
    return NULL;
}
