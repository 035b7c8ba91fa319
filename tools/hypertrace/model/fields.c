/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "cli/number.h"
#include "hypertrace/base.h"
#include "model/fields.h"

/*
 * Lowest address of the kernel's half of the address space of x86 with 5-level
 * paging. With fewer levels, kernel addresses are higher.
 */
#define KERNEL_BEGIN    UINT64_C(0xff00000000000000)

static const char digits[] = "0123456789abcdef";

static void put_hex(GString *out, uint64_t v)
{
    char buf[18], *end = buf + sizeof(buf), *p = end;

    do {
        *--p = digits[v & 15];
        v >>= 4;
    } while (v);
    *--p = 'x';
    *--p = '0';
    g_string_append_len(out, p, end - p);
}

static void put_bytes(GString *out, const uint8_t *p, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        g_string_append_c(out, digits[p[i] >> 4]);
        g_string_append_c(out, digits[p[i] & 15]);
    }
}

/*
 * Check whether to print a number as an address, in hexadecimal. A field that
 * is not a pointer may have an address, too: if the field is unsigned, its
 * value decides.
 */
static bool is_address(const HtFtField *f, uint64_t v)
{
    return f->is_pointer || (!f->is_signed && v >= KERNEL_BEGIN &&
                             v != UINT64_MAX);
}

static void put_number(const HtFtField *f, uint64_t v, GString *out)
{
    if (is_address(f, v)) {
        put_hex(out, v);
    } else if (f->is_signed && (int64_t)v < 0) {
        g_string_append_c(out, '-');
        ht_number_decimal(out, -v, 0, ' ');
    } else {
        ht_number_decimal(out, v, 0, ' ');
    }
}

void ht_fields_value(const HtFtField *f, const HtModelEvent *ev, GString *out)
{
    const uint8_t *p;
    const char *s;
    size_t len;

    switch (f->kind) {
    case HT_FT_INT:
        put_number(f, ht_ft_field_uint(f, ev->rec.data, ev->rec.size), out);
        break;
    case HT_FT_STRING:
    case HT_FT_DYN_STRING:
        s = ht_ft_field_str(f, ev->rec.data, ev->rec.size, &len);
        g_string_append_len(out, s ? s : "", len);
        break;
    case HT_FT_ARRAY:
    case HT_FT_DYN_ARRAY:
        p = ht_ft_field_bytes(f, ev->rec.data, ev->rec.size, &len);
        g_string_append_c(out, '{');
        for (; f->elem_size && len >= f->elem_size; len -= f->elem_size) {
            put_number(f, ht_ft_elem_uint(f, p), out);
            p += f->elem_size;
            if (len >= 2u * f->elem_size) {
                g_string_append_c(out, ',');
            }
        }
        g_string_append_c(out, '}');
        break;
    default:
        p = ht_ft_field_bytes(f, ev->rec.data, ev->rec.size, &len);
        put_bytes(out, p, len);
        break;
    }
}

void ht_fields_text(const HtModelEvent *ev, GString *out)
{
    const HtFtEvent *format = ev->class->format;
    unsigned i;

    if (!format) {
        put_bytes(out, ev->rec.data + HT_FT_EVENT_HEADER,
                  ev->rec.size - HT_FT_EVENT_HEADER);
        return;
    }
    for (i = 0; i < format->nr_fields; i++) {
        if (i) {
            g_string_append_c(out, ' ');
        }
        g_string_append(out, format->fields[i].name);
        g_string_append_c(out, '=');
        ht_fields_value(&format->fields[i], ev, out);
    }
}

static void json_number(const HtFtField *f, const char *name, uint64_t v,
                        HtJson *j)
{
    if (f->is_signed) {
        ht_json_int(j, name, v);
    } else {
        ht_json_uint(j, name, v);
    }
}

static void json_field(const HtFtField *f, const HtModelEvent *ev, HtJson *j)
{
    g_autoptr(GString) hex = NULL;
    const uint8_t *p;
    const char *s;
    size_t len;

    switch (f->kind) {
    case HT_FT_INT:
        json_number(f, f->name,
                    ht_ft_field_uint(f, ev->rec.data, ev->rec.size), j);
        break;
    case HT_FT_STRING:
    case HT_FT_DYN_STRING:
        s = ht_ft_field_str(f, ev->rec.data, ev->rec.size, &len);
        ht_json_text(j, f->name, s ? s : "", len);
        break;
    case HT_FT_ARRAY:
    case HT_FT_DYN_ARRAY:
        p = ht_ft_field_bytes(f, ev->rec.data, ev->rec.size, &len);
        ht_json_open(j, f->name, '[');
        for (; f->elem_size && len >= f->elem_size; len -= f->elem_size) {
            json_number(f, NULL, ht_ft_elem_uint(f, p), j);
            p += f->elem_size;
        }
        ht_json_close(j, ']');
        break;
    default:
        hex = g_string_new(NULL);
        p = ht_ft_field_bytes(f, ev->rec.data, ev->rec.size, &len);
        put_bytes(hex, p, len);
        ht_json_text(j, f->name, hex->str, hex->len);
        break;
    }
}

void ht_fields_json(const HtModelEvent *ev, HtJson *j)
{
    const HtFtEvent *format = ev->class->format;
    unsigned i;

    if (!format) {
        g_autoptr(GString) hex = g_string_new(NULL);

        put_bytes(hex, ev->rec.data + HT_FT_EVENT_HEADER,
                  ev->rec.size - HT_FT_EVENT_HEADER);
        ht_json_text(j, "bytes", hex->str, hex->len);
        return;
    }
    for (i = 0; i < format->nr_fields; i++) {
        json_field(&format->fields[i], ev, j);
    }
}
