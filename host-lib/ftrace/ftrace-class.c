/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: make hypertrace's classes and payloads of Linux's trace events
 */
#include "hypertrace/ftrace-class.h"

/*
 * Number of fields of a class before those of the event's format: common_pid,
 * common_flags
 */
#define OWN_FIELDS      2

static unsigned scalar(unsigned size, bool is_signed)
{
    unsigned kind = size == 1 ? HT_FIELD_U8 : size == 2 ? HT_FIELD_U16 :
                    size == 4 ? HT_FIELD_U32 : HT_FIELD_U64;

    return is_signed ? kind - HT_FIELD_U8 + HT_FIELD_S8 : kind;
}

static HtField *add_field(HtClass *c, const char *name, unsigned kind)
{
    HtField *f = &c->fields[c->nr_fields];
    g_autofree char *own = g_strndup(name, HT_FIELD_NAME_MAX - 8);

    g_strcanon(own, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_", '_');
    while (g_ascii_isdigit(own[0]) || !own[0] ||
           !ht_class_field_free(c, own)) {
        g_autofree char *longer = g_strdup_printf("field_%s", own);

        longer[MIN(strlen(longer), HT_FIELD_NAME_MAX - 8)] = 0;
        if (!strcmp(longer, own)) {
            /*
             * Another prefix does not change the name, because it has the
             * maximum length.  Another field has this name: replace the name's
             * end by the field's number.
             */
            longer[HT_FIELD_NAME_MAX - 10] = 0;
            g_free(own);
            own = g_strdup_printf("%s%02u", longer, c->nr_fields);
            break;
        }
        g_free(own);
        own = g_steal_pointer(&longer);
    }
    f->name = g_steal_pointer(&own);
    f->kind = kind;
    c->nr_fields++;
    return f;
}

static void add_bytes(HtClass *c, const char *name)
{
    HtField *n = add_field(c, name, HT_FIELD_SEQUENCE);

    n->elem = HT_FIELD_U8;
    n->flags = HT_FIELD_HEX;
}

static void add_format_field(HtClass *c, const HtFtField *f)
{
    HtField *n;

    switch (f->kind) {
    case HT_FT_INT:
        n = add_field(c, f->name, scalar(f->size, f->is_signed));
        n->flags = f->is_pointer ? HT_FIELD_HEX : 0;
        break;
    case HT_FT_STRING:
    case HT_FT_DYN_STRING:
        n = add_field(c, f->name, HT_FIELD_TEXT);
        n->elem = HT_FIELD_U8;
        break;
    case HT_FT_ARRAY:
    case HT_FT_DYN_ARRAY:
        n = add_field(c, f->name, HT_FIELD_SEQUENCE);
        n->elem = scalar(f->elem_size, f->is_signed);
        n->flags = f->is_pointer ? HT_FIELD_HEX : 0;
        break;
    default:
        add_bytes(c, f->name);
        break;
    }
}

static unsigned own_fields(const HtFtEvent *e)
{
    return MIN(e->nr_fields, HT_FIELDS_MAX - OWN_FIELDS);
}

HtClass *ht_ft_class_new(const char *name, const HtFtEvent *e)
{
    HtClass *c = g_new0(HtClass, 1);
    unsigned i;

    c->name = g_strndup(name, HT_CLASS_NAME_MAX);
    g_strcanon(c->name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_.-", '_');
    c->loglevel = 6;            /* severity "info" */
    c->fields = g_new0(HtField, HT_FIELDS_MAX);
    add_field(c, "common_pid", HT_FIELD_S32);
    add_field(c, "common_flags", HT_FIELD_U8)->flags = HT_FIELD_HEX;
    if (e) {
        for (i = 0; i < own_fields(e); i++) {
            add_format_field(c, &e->fields[i]);
        }
    } else {
        add_field(c, "common_type", HT_FIELD_U16);
        add_bytes(c, "bytes");
    }
    return c;
}

static void put_counted(GByteArray *out, const void *p, size_t bytes,
                        size_t elem)
{
    size_t n = MIN(elem ? bytes / elem : 0, UINT16_MAX);
    uint8_t count[2];

    ht_put_le16(count, n);
    g_byte_array_append(out, count, sizeof(count));
    if (n) {
        g_byte_array_append(out, p, n * elem);
    }
}

void ht_ft_put_text(GByteArray *out, const char *s, size_t len)
{
    g_autofree char *valid = NULL;

    if (s && !g_utf8_validate_len(s, len, NULL)) {
        valid = g_utf8_make_valid(s, len);
        s = valid;
        len = strlen(valid);
        /* Do not cut a character in two. */
        while (len > UINT16_MAX) {
            len = g_utf8_find_prev_char(s, s + len) - s;
        }
    }
    put_counted(out, s, len, 1);
}

static void put_field(GByteArray *out, const HtFtField *f, const HtFtRecord *r)
{
    const uint8_t *p;
    const char *s;
    uint8_t value[8];
    size_t len;

    switch (f->kind) {
    case HT_FT_INT:
        ht_put_le64(value, ht_ft_field_uint(f, r->data, r->size));
        g_byte_array_append(out, value, f->size);
        break;
    case HT_FT_STRING:
    case HT_FT_DYN_STRING:
        s = ht_ft_field_str(f, r->data, r->size, &len);
        ht_ft_put_text(out, s, s ? len : 0);
        break;
    case HT_FT_ARRAY:
    case HT_FT_DYN_ARRAY:
        p = ht_ft_field_bytes(f, r->data, r->size, &len);
        put_counted(out, p, len, f->elem_size);
        break;
    default:
        p = ht_ft_field_bytes(f, r->data, r->size, &len);
        put_counted(out, p, len, 1);
        break;
    }
}

bool ht_ft_class_payload(GByteArray *out, const HtFtEvent *e,
                         const HtFtRecord *r, size_t max)
{
    guint begin = out->len;
    uint8_t own[7];
    unsigned i;

    ht_put_le32(own, ht_ft_event_pid(r->data));
    own[4] = ht_ft_event_flags(r->data);
    ht_put_le16(own + 5, ht_ft_event_type(r->data));
    g_byte_array_append(out, own, e ? 5 : 7);
    for (i = 0; e && i < own_fields(e) && out->len - begin <= max; i++) {
        put_field(out, &e->fields[i], r);
    }
    if (!e) {
        put_counted(out, r->data + HT_FT_EVENT_HEADER,
                    r->size - HT_FT_EVENT_HEADER, 1);
    }
    if (out->len - begin > max) {
        g_byte_array_set_size(out, begin);
        return false;
    }
    return true;
}
