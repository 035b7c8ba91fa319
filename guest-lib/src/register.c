/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: register event classes with the host
 *
 * The host also checks the classes.  By the library's checks, a caller with an
 * invalid class gets an error code that does not depend on the host.
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

static bool label_valid(const char *s, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\') {
            return false;
        }
    }
    return len >= 1 && len <= HT_LABEL_MAX;
}

static bool labels_valid(const struct ht_field *f)
{
    unsigned i;

    for (i = 0; i < f->count; i++) {
        if (!f->labels || !f->labels[i].name ||
            !label_valid(f->labels[i].name, ht_strlen(f->labels[i].name))) {
            return false;
        }
    }
    return f->kind >= HT_FIELD_U8 && f->kind <= HT_FIELD_S64 && f->elem == 0 &&
           f->count >= 1 && f->count <= HT_LABELS_MAX;
}

static bool field_type_valid(const struct ht_field *f)
{
    const bool integer = f->elem >= HT_FIELD_U8 && f->elem <= HT_FIELD_S64;

    if (f->flags & HT_FIELD_LABELS) {
        return !(f->flags & ~(HT_FIELD_HEX | HT_FIELD_LABELS |
                              HT_FIELD_BITS)) && labels_valid(f);
    }
    if (f->flags & ~(HT_FIELD_HEX | HT_FIELD_UTF8) ||
        (f->flags & HT_FIELD_UTF8 &&
         (f->flags != HT_FIELD_UTF8 || f->kind != HT_FIELD_ARRAY ||
          f->elem != HT_FIELD_U8))) {
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

static unsigned labels_of(const struct ht_field *f)
{
    return f->flags & HT_FIELD_LABELS ? f->count : 0;
}

static uint32_t message_size(const struct ht_class *c)
{
    uint32_t size = sizeof(struct ht_msg_class) + ht_strlen(c->name);
    unsigned i, j;

    for (i = 0; i < c->nr_fields; i++) {
        const struct ht_field *f = &c->fields[i];

        size += sizeof(struct ht_msg_field) + ht_strlen(f->name);
        for (j = 0; j < labels_of(f); j++) {
            size += HT_LABEL_HEADER + ht_strlen(f->labels[j].name);
        }
    }
    return size;
}

static uint8_t *encode_labels(uint8_t *p, const struct ht_field *f)
{
    unsigned i;

    for (i = 0; i < labels_of(f); i++) {
        const uint8_t len = ht_strlen(f->labels[i].name);

        ht_put64(p, (uint64_t)f->labels[i].value);
        p[8] = len;
        ht_copy(p + HT_LABEL_HEADER, f->labels[i].name, len);
        p += HT_LABEL_HEADER + len;
    }
    return p;
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
        p = encode_labels(p + w.name_len, f);
    }
}

bool ht_class_valid(const struct ht_class *c)
{
    return c->name && class_name_valid(c->name, ht_strlen(c->name)) &&
           c->nr_fields <= HT_FIELDS_MAX && c->loglevel <= 14 &&
           (!c->nr_fields || c->fields) && fields_valid(c);
}

/* Return the size of a class's message, or 0 with the error in *@why */
static uint32_t class_bytes(const struct ht_device *dev,
                            const struct ht_class *c, int *why)
{
    uint32_t size;

    *why = -EINVAL;
    if (!ht_class_valid(c)) {
        return 0;
    }
    *why = -ENOSPC;
    size = message_size(c);
    return size > HT_MESSAGE_MAX || size > dev->caps.max_message ? 0 : size;
}

static uint32_t aligned(uint32_t pos)
{
    return (pos + HT_MESSAGE_ALIGN - 1) & ~(HT_MESSAGE_ALIGN - 1);
}

/*
 * Maximum number of classes in one exchange.  The host may have time for fewer:
 * it answers the others with BUSY, and the next exchange sends them again.
 */
#define CLASSES_MAX 16

/*
 * Encode as many classes from *@next on as fit into one exchange, except those
 * for which class_bytes() returns 0.  Set *@next to the first class that does
 * not fit, or to @n.  Returns the size of the messages, which may be 0.
 */
static uint32_t encode_some(struct ht_device *dev,
                            struct ht_class *const *classes, unsigned n,
                            unsigned *next)
{
    const uint32_t room = dev->caps.mailbox_size < sizeof(dev->msg) ?
                          dev->caps.mailbox_size : sizeof(dev->msg);
    uint32_t pos = 0, end = 0, size;
    unsigned i, count = 0;
    int why;

    for (i = *next; i < n; i++) {
        struct ht_msg_class *m;

        size = classes[i] ? class_bytes(dev, classes[i], &why) : 0;
        if (!size) {
            continue;
        }
        if (size > room - pos || count++ == CLASSES_MAX) {
            break;
        }
        m = (struct ht_msg_class *)(dev->msg.bytes + pos);
        ht_zero(m, aligned(size) < room - pos ? aligned(size) : size);
        m->h.type = HT_MSG_CLASS_REGISTER;
        m->h.size = size;
        m->h.status = HT_STATUS_IO;     /* status if the host writes none */
        m->h.cookie = i;
        encode(m, classes[i]);
        end = pos + size;
        pos = aligned(end);
        if (pos > room) {
            pos = room;
        }
    }
    *next = i;
    return end;
}

/*
 * Read the reply for class number @i.  Returns 0 and sets *@id; or
 * HT_STATUS_BUSY; or a negative errno
 */
static int read_reply(struct ht_device *dev, const struct ht_msg_class *m,
                      uint32_t i, uint32_t *id)
{
    int r;

    if (m->h.type != HT_MSG_CLASS_REGISTER || m->h.cookie != i) {
        return -EIO;                    /* a reply to another message */
    }
    if (m->h.status == HT_STATUS_BUSY) {
        return HT_STATUS_BUSY;
    }
    r = ht_status_errno(m->h.status);
    if (r) {
        return r == -EINVAL || r == -ENOSPC ? r : -EIO;
    }
    *id = m->id;
    if (*id < 1 || *id > HT_CLASSES_MAX) {
        return -EIO;
    }
    if (dev->enable_copy) {
        *(volatile uint8_t *)&dev->enable_copy[*id] = m->on;
    }
    return 0;
}

/*
 * Read the replies in dev->msg for the classes *@begin to @next - 1, and set
 * the ids; the id after an error is 0.  Set *@begin to the first class that the
 * host answered with BUSY, or to @next.  Returns the first error of a class, or
 * 0.
 */
static int read_replies(struct ht_device *dev, struct ht_class *const *classes,
                        unsigned *begin, unsigned next)
{
    uint32_t pos = 0, id = 0, size;
    int first = 0, r;
    unsigned i;

    for (i = *begin; i < next; i++) {
        if (!classes[i]) {
            continue;
        }
        size = class_bytes(dev, classes[i], &r);
        if (size) {
            r = read_reply(dev, (struct ht_msg_class *)(dev->msg.bytes + pos),
                           i, &id);
            if (r == HT_STATUS_BUSY) {
                break;
            }
            pos = aligned(pos + size);
        }
        /* An atomic store, since a thread may emit an event of the class. */
        ht_store_relaxed32(&classes[i]->id, r ? 0 : id);
        if (!first) {
            first = r;
        }
    }
    *begin = i;
    return first;
}

int ht_register_all(struct ht_device *dev, struct ht_class *const *classes,
                    unsigned n)
{
    unsigned begin = 0, next, before, tries = 0;
    int first = 0, r, why;
    uint32_t size;

    if (dev->ops->lock) {
        dev->ops->lock(dev);
    }
    while (begin < n) {
        next = before = begin;
        size = encode_some(dev, classes, n, &next);
        r = size ? dev->ops->control(dev, &dev->msg.h, size) : 0;
        if (!r) {
            why = read_replies(dev, classes, &begin, next);
            first = first ? first : why;
            if (begin == before) {
                r = dev->ops->relax(dev, tries++);
            } else {
                tries = 0;
            }
        }
        if (r) {
            /* The transport failed, or the device stayed busy: send no more. */
            first = r;
            break;
        }
    }
    for (; begin < n; begin++) {
        if (classes[begin]) {
            ht_store_relaxed32(&classes[begin]->id, 0);
        }
    }
    if (dev->ops->unlock) {
        dev->ops->unlock(dev);
    }
    return first;
}

int ht_register(struct ht_device *dev, struct ht_class *cls)
{
    int r = ht_register_all(dev, &cls, 1);

    return r ? r : (int)cls->id;
}
