/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write fields of a CTF trace as Perfetto's DebugAnnotations
 *
 * The trace is not trusted: the size and the nesting of the written fields are
 * bounded.
 */
#include <string.h>

#include "export/perfetto-field.h"
#include "export/protobuf.h"

/*
 * Once pf_fields() has appended this many bytes for a payload or context, it
 * leaves out further fields.
 */
#define BYTES_MAX       65536
/* Maximum nesting of structures and arrays; also of options and variants */
#define DEPTH_MAX       8

typedef struct Writer {
    GString *b;
    gsize end;
    bool cut;
} Writer;

static void put_field(Writer *w, unsigned number, const char *name,
                      const bt_field *f, bool empty, unsigned depth);

static void put_members(Writer *w, unsigned number, const bt_field *f,
                        const bool *skip, unsigned depth)
{
    const bt_field_class *c = bt_field_borrow_class_const(f);
    uint64_t i, n = bt_field_class_structure_get_member_count(c);
    bool empty = false;

    for (i = 0; i < n; i++) {
        const char *name = bt_field_class_structure_member_get_name(
            bt_field_class_structure_borrow_member_by_index_const(c, i));
        const bt_field *m =
            bt_field_structure_borrow_member_field_by_index_const(f, i);

        if (skip && skip[i]) {
            empty = !bt_field_integer_unsigned_get_value(m);
        } else {
            put_field(w, number, name, m, empty, depth);
            empty = false;
        }
    }
}

static void put_elements(Writer *w, const bt_field *f, unsigned depth)
{
    uint64_t i, n = bt_field_array_get_length(f);

    for (i = 0; i < n && !w->cut; i++) {
        put_field(w, PF_ANNOTATION_ARRAY, NULL,
                  bt_field_array_borrow_element_field_by_index_const(f, i),
                  false, depth);
    }
}

/*
 * Append a text field. If @empty, append "": for an empty string,
 * libbabeltrace2 may return the length and bytes of the previous string.
 */
static void put_string(Writer *w, const bt_field *f, bool empty)
{
    uint64_t len = empty ? 0 : bt_field_string_get_length(f);
    gsize room = w->end - MIN(w->b->len, w->end);

    w->cut |= len > room;
    ht_pb_guest(w->b, PF_ANNOTATION_STRING, bt_field_string_get_value(f),
                MIN(len, room));
}

static bool is(const bt_field *f, bt_field_class_type type)
{
    return bt_field_class_type_is(bt_field_get_class_type(f), type);
}

static void put_value(Writer *w, const bt_field *f, bool empty,
                      unsigned depth)
{
    if (is(f, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        ht_pb_uint(w->b, PF_ANNOTATION_UINT,
                   bt_field_integer_unsigned_get_value(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
        ht_pb_uint(w->b, PF_ANNOTATION_INT,
                   bt_field_integer_signed_get_value(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_STRING)) {
        put_string(w, f, empty);
    } else if (is(f, BT_FIELD_CLASS_TYPE_BOOL)) {
        ht_pb_uint(w->b, PF_ANNOTATION_BOOL, bt_field_bool_get_value(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_BIT_ARRAY)) {
        ht_pb_uint(w->b, PF_ANNOTATION_UINT,
                   bt_field_bit_array_get_value_as_integer(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL)) {
        ht_pb_double(w->b, PF_ANNOTATION_DOUBLE,
                     bt_field_real_single_precision_get_value(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL)) {
        ht_pb_double(w->b, PF_ANNOTATION_DOUBLE,
                     bt_field_real_double_precision_get_value(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_STRUCTURE)) {
        put_members(w, PF_ANNOTATION_DICT, f, NULL, depth + 1);
    } else if (is(f, BT_FIELD_CLASS_TYPE_ARRAY)) {
        put_elements(w, f, depth + 1);
    }
}

/*
 * Get the field inside nested options and variants; NULL if an option holds no
 * field, or if the nesting is too deep.
 */
static const bt_field *inner(const bt_field *f)
{
    unsigned depth;

    for (depth = 0; f && depth < DEPTH_MAX; depth++) {
        if (is(f, BT_FIELD_CLASS_TYPE_OPTION)) {
            f = bt_field_option_borrow_field_const(f);
        } else if (is(f, BT_FIELD_CLASS_TYPE_VARIANT)) {
            f = bt_field_variant_borrow_selected_option_field_const(f);
        } else {
            return f;
        }
    }
    return NULL;
}

static void put_field(Writer *w, unsigned number, const char *name,
                      const bt_field *f, bool empty, unsigned depth)
{
    gsize at;

    f = inner(f);
    if (!f) {
        return;
    }
    if (w->b->len >= w->end || depth > DEPTH_MAX) {
        w->cut = true;
        return;
    }
    at = ht_pb_begin(w->b, number);
    if (name) {
        ht_pb_guest(w->b, PF_ANNOTATION_NAME, name, strlen(name));
    }
    put_value(w, f, empty, depth);
    ht_pb_end(w->b, at);
}

void pf_annotation(GString *b, const char *name, uint64_t value)
{
    gsize at = ht_pb_begin(b, PF_TRACK_EVENT_ANNOTATIONS);

    ht_pb_str(b, PF_ANNOTATION_NAME, name);
    ht_pb_uint(b, PF_ANNOTATION_UINT, value);
    ht_pb_end(b, at);
}

void pf_fields(GString *b, const bt_field *structure, const bool *skip)
{
    Writer w = { b, b->len + BYTES_MAX, false };

    put_members(&w, PF_TRACK_EVENT_ANNOTATIONS, structure, skip, 0);
    if (w.cut) {
        pf_annotation(b, "hypertrace.cut", 1);
    }
}
