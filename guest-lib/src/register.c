/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: telling the host of event classes
 *
 * The host checks all of this again.  It is checked here too, so that a
 * mistake is reported where it was made, whatever the host.
 */
#include "core.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool class_name_valid(const char *s, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (!is_letter(s[i]) && !is_digit(s[i]) && s[i] != '.' &&
            s[i] != '-') {
            return false;
        }
    }
    return len >= 1 && len <= HT_CLASS_NAME_MAX;
}

static bool field_name_valid(const char *s, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (!is_letter(s[i]) && (i == 0 || !is_digit(s[i]))) {
            return false;
        }
    }
    return len >= 1 && len <= HT_FIELD_NAME_MAX;
}

static bool field_type_valid(const struct ht_field *f)
{
    const bool integer = f->elem >= HT_FIELD_U8 && f->elem <= HT_FIELD_S64;

    if (f->flags & ~HT_FIELD_HEX) {
        return false;
    }
    switch (f->kind) {
    case HT_FIELD_SEQUENCE:
        return integer && f->count == 0;
    case HT_FIELD_ARRAY:
        return integer && f->count >= 1 && f->count <= 4096;
    default:
        return ((f->kind >= HT_FIELD_U8 && f->kind <= HT_FIELD_F64) ||
                f->kind == HT_FIELD_TEXT) && f->elem == 0 && f->count == 0;
    }
}

static bool same_name(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static bool fields_valid(const struct ht_class *c)
{
    unsigned i, j;

    for (i = 0; i < c->nr_fields; i++) {
        const struct ht_field *f = &c->fields[i];

        if (!f->name || !field_name_valid(f->name, ht_strlen(f->name)) ||
            !field_type_valid(f)) {
            return false;
        }
        for (j = 0; j < i; j++) {
            if (same_name(f->name, c->fields[j].name)) {
                return false;
            }
        }
    }
    return true;
}

static uint32_t message_size(const struct ht_class *c)
{
    uint32_t size = sizeof(struct ht_msg_class) + ht_strlen(c->name);
    unsigned i;

    for (i = 0; i < c->nr_fields; i++) {
        size += sizeof(struct ht_msg_field) + ht_strlen(c->fields[i].name);
    }
    return size;
}

static void encode(struct ht_msg_class *m, const struct ht_class *c)
{
    uint8_t *p = m->data;
    unsigned i;

    m->nr_fields = c->nr_fields;
    m->name_len = ht_strlen(c->name);
    m->loglevel = c->loglevel;
    ht_copy(p, c->name, m->name_len);
    p += m->name_len;
    for (i = 0; i < c->nr_fields; i++) {
        const struct ht_field *f = &c->fields[i];
        const struct ht_msg_field w = {
            .kind = f->kind,
            .elem = f->elem,
            .flags = f->flags,
            .name_len = ht_strlen(f->name),
            .count = f->count,
        };

        ht_copy(p, &w, sizeof(w));
        p += sizeof(w);
        ht_copy(p, f->name, w.name_len);
        p += w.name_len;
    }
}

int ht_register(struct ht_device *dev, struct ht_class *cls)
{
    struct ht_msg_class *m;
    uint32_t size, id;
    uint8_t on;
    int r;

    if (!cls->name || !class_name_valid(cls->name, ht_strlen(cls->name)) ||
        cls->nr_fields > HT_FIELDS_MAX || cls->loglevel > 14 ||
        (cls->nr_fields && !cls->fields) || !fields_valid(cls)) {
        return -EINVAL;
    }
    size = message_size(cls);
    if (size > HT_MESSAGE_MAX || size > dev->caps.max_message) {
        return -ENOSPC;
    }

    m = (struct ht_msg_class *)ht_control_begin(dev, HT_MSG_CLASS_REGISTER,
                                                size);
    encode(m, cls);
    r = ht_control(dev, &m->h);
    id = m->id;
    on = m->on;
    ht_control_end(dev);
    if (r) {
        return r == -ENOENT || r == -EEXIST ? -EIO : r;
    }
    if (id < 1 || id > HT_CLASSES_MAX) {
        return -EIO;
    }
    if (dev->enable_copy) {
        *(volatile uint8_t *)&dev->enable_copy[id] = on;
    }
    cls->id = id;
    return id;
}
