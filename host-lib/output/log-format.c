/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: format events as lines of text
 */
#include "hypertrace/base.h"
#include "hypertrace/log-format.h"

#define NS_PER_SECOND UINT64_C(1000000000)

static const uint8_t *put_scalar(FILE *f, unsigned kind, bool hex,
                                 const uint8_t *p)
{
    unsigned size = ht_kind_size(kind);
    uint64_t v = ht_get_le(p, size, ht_kind_signed(kind) && !hex);
    uint32_t bits = v;
    float f32;
    double f64;

    if (kind == HT_FIELD_F32) {
        memcpy(&f32, &bits, sizeof(f32));
        fprintf(f, "%.9g", f32);
    } else if (kind == HT_FIELD_F64) {
        memcpy(&f64, &v, sizeof(f64));
        fprintf(f, "%.17g", f64);
    } else if (hex) {
        fprintf(f, "0x%" PRIx64, v);
    } else if (ht_kind_signed(kind)) {
        fprintf(f, "%" PRId64, (int64_t)v);
    } else {
        fprintf(f, "%" PRIu64, v);
    }
    return p + size;
}

static void put_text(FILE *f, const uint8_t *p, size_t left)
{
    fputc('"', f);
    while (left) {
        gunichar c = g_utf8_get_char_validated((const char *)p, left);
        size_t len = 1;

        if (c == (gunichar)-1 || c == (gunichar)-2 || !g_unichar_isprint(c)) {
            fprintf(f, "\\x%02x", *p);
        } else {
            len = g_utf8_skip[*p];
            if (c == '"' || c == '\\') {
                fputc('\\', f);
            }
            fwrite(p, 1, len, f);
        }
        p += len;
        left -= len;
    }
    fputc('"', f);
}

/*
 * Print a value by its labels, such as "run" or "read|write|0x8".  If no label
 * matches, print nothing and return false.
 */
static bool put_labels(FILE *f, const HtField *field, uint64_t v)
{
    const bool bits = field->flags & HT_FIELD_BITS;
    uint64_t left = v;
    unsigned i;

    for (i = 0; i < field->nr_labels; i++) {
        const HtLabel *l = &field->labels[i];
        const uint64_t value = l->value;

        if (v == value && !bits) {
            fputs(l->name, f);
            return true;
        }
        if (bits && value && (v & value) == value) {
            fprintf(f, "%s%s", left == v ? "" : "|", l->name);
            left &= ~value;
        }
    }
    if (left != v && left) {
        fprintf(f, "|0x%" PRIx64, left);
    }
    return left != v;
}

static const uint8_t *put_field(FILE *f, const HtField *field,
                                const uint8_t *p)
{
    bool hex = field->flags & HT_FIELD_HEX;
    unsigned i, count = field->count;

    switch (field->kind) {
    case HT_FIELD_TEXT:
        count = ht_get_le16(p);
        put_text(f, p + 2, count);
        return p + 2 + count;
    case HT_FIELD_SEQUENCE:
        count = ht_get_le16(p);
        p += 2;
        /* fall through */
    case HT_FIELD_ARRAY:
        if (field->flags & HT_FIELD_UTF8) {
            put_text(f, p, strnlen((const char *)p, count));
            return p + count;
        }
        fputc('[', f);
        for (i = 0; i < count; i++) {
            if (i) {
                fputc(' ', f);
            }
            p = put_scalar(f, field->elem, hex, p);
        }
        fputc(']', f);
        return p;
    default:
        if (field->nr_labels &&
            put_labels(f, field, ht_get_le(p, ht_kind_size(field->kind),
                                           ht_kind_signed(field->kind)))) {
            return p + ht_kind_size(field->kind);
        }
        return put_scalar(f, field->kind, hex, p);
    }
}

void ht_log_event(FILE *f, const char *device, const HtStreamInfo *stream,
                  const HtEvent *ev)
{
    const uint8_t *p = ev->payload;
    unsigned i;

    fprintf(f, "%" PRIu64 ".%09" PRIu64 " %s stream %" PRIu32 " vcpu %" PRId32
            " %s", ev->ns / NS_PER_SECOND, ev->ns % NS_PER_SECOND, device,
            stream->index, stream->vcpu, ev->cls->name);
    for (i = 0; i < ev->cls->nr_fields; i++) {
        fprintf(f, " %s=", ev->cls->fields[i].name);
        p = put_field(f, &ev->cls->fields[i], p);
    }
    fputc('\n', f);
}
