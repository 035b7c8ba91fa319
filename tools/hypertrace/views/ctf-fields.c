/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "cli/escape.h"
#include "ctf-read.h"
#include "views/ctf-fields.h"

/* Limits of fields that are printed as text, not of JSON */
#define TEXT_MAX        1024    /* bytes of a string that are printed */
/* length of a line in bytes from which on no field or element is appended */
#define EVENT_MAX       8192

static bool is(const bt_field *f, bt_field_class_type type)
{
    return bt_field_class_type_is(bt_field_get_class_type(f), type);
}

/*
 * Get the first member of @f from index @i on, without members that only hold
 * the length of the next member; NULL after the last one. Set @i to the index
 * after the member, and @empty to whether its length member is 0.
 */
static const bt_field *next_member(const bt_field *f, uint64_t *i,
                                   const char **name, bool *empty)
{
    const bt_field_class *c = bt_field_borrow_class_const(f);
    uint64_t n = bt_field_class_structure_get_member_count(c);

    *empty = false;
    for (; *i < n; ++*i) {
        const bt_field *m =
            bt_field_structure_borrow_member_field_by_index_const(f, *i);

        if (!ht_ctf_is_length(c, *i)) {
            *name = ht_ctf_member(c, (*i)++);
            return m;
        }
        *empty = !bt_field_integer_unsigned_get_value(m);
    }
    return NULL;
}

static void put_value(GString *out, const bt_field *f, bool empty);

static void put_text(GString *out, const bt_field *f, bool empty)
{
    uint64_t len = empty ? 0 : bt_field_string_get_length(f);

    g_string_append_c(out, '"');
    ht_escape(out, HT_ESCAPE_TERMINAL, bt_field_string_get_value(f),
              MIN(len, TEXT_MAX));
    g_string_append(out, len > TEXT_MAX ? "\"..." : "\"");
}

static void put_elements(GString *out, const bt_field *f)
{
    uint64_t i, n = bt_field_array_get_length(f);

    g_string_append_c(out, '[');
    for (i = 0; i < n && out->len < EVENT_MAX; i++) {
        g_string_append(out, i ? " " : "");
        put_value(out,
                  bt_field_array_borrow_element_field_by_index_const(f, i),
                  false);
    }
    g_string_append(out, i < n ? "...]" : "]");
}

static void put_value(GString *out, const bt_field *f, bool empty)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    if (is(f, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        bool hex = bt_field_class_integer_get_preferred_display_base(
            bt_field_borrow_class_const(f)) ==
            BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL;

        g_string_append_printf(out, hex ? "0x%" PRIx64 : "%" PRIu64,
                               bt_field_integer_unsigned_get_value(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
        g_string_append_printf(out, "%" PRId64,
                               bt_field_integer_signed_get_value(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_STRING)) {
        put_text(out, f, empty);
    } else if (is(f, BT_FIELD_CLASS_TYPE_ARRAY)) {
        put_elements(out, f);
    } else if (is(f, BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL)) {
        g_string_append(out, g_ascii_formatd(
            number, sizeof(number), "%.9g",
            bt_field_real_single_precision_get_value(f)));
    } else if (is(f, BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL)) {
        g_string_append(out, g_ascii_formatd(
            number, sizeof(number), "%.17g",
            bt_field_real_double_precision_get_value(f)));
    } else {
        /* hypertrace writes no event classes with other types of fields */
        g_string_append_c(out, '?');
    }
}

void ht_ctf_put_fields(GString *out, const bt_field *f)
{
    const bt_field *m;
    const char *name;
    uint64_t i = 0;
    bool empty;

    while ((m = next_member(f, &i, &name, &empty))) {
        if (out->len >= EVENT_MAX) {
            g_string_append(out, " ...");
            return;
        }
        g_string_append_c(out, ' ');
        ht_escape_str(out, HT_ESCAPE_TERMINAL, name);
        g_string_append_c(out, '=');
        put_value(out, m, empty);
    }
}

static void json_value(HtJson *j, const char *name, const bt_field *f,
                       bool empty)
{
    uint64_t i, n;

    if (is(f, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        ht_json_uint(j, name, bt_field_integer_unsigned_get_value(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
        ht_json_int(j, name, bt_field_integer_signed_get_value(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_STRING)) {
        ht_json_text(j, name, bt_field_string_get_value(f),
                     empty ? 0 : bt_field_string_get_length(f));
    } else if (is(f, BT_FIELD_CLASS_TYPE_ARRAY)) {
        ht_json_open(j, name, '[');
        n = bt_field_array_get_length(f);
        for (i = 0; i < n; i++) {
            json_value(j, NULL,
                       bt_field_array_borrow_element_field_by_index_const(f,
                                                                          i),
                       false);
        }
        ht_json_close(j, ']');
    } else if (is(f, BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL)) {
        ht_json_real(j, name, bt_field_real_single_precision_get_value(f),
                     true);
    } else if (is(f, BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL)) {
        ht_json_real(j, name, bt_field_real_double_precision_get_value(f),
                     false);
    } else {
        /* hypertrace writes no event classes with other types of fields */
        ht_json_str(j, name, NULL);
    }
}

void ht_ctf_json_fields(HtJson *j, const bt_field *f)
{
    const bt_field *m;
    const char *name;
    uint64_t i = 0;
    bool empty;

    while ((m = next_member(f, &i, &name, &empty))) {
        json_value(j, name, m, empty);
    }
}
