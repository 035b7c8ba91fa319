/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: check, keep, save and load the event classes of a guest
 *
 * This code parses private copies of messages from a hostile guest, and saved
 * tables, which may be forged.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/class.h"

unsigned ht_kind_size(unsigned kind)
{
    switch (kind) {
    case HT_FIELD_U8:
    case HT_FIELD_S8:
        return 1;
    case HT_FIELD_U16:
    case HT_FIELD_S16:
        return 2;
    case HT_FIELD_U32:
    case HT_FIELD_S32:
    case HT_FIELD_F32:
        return 4;
    case HT_FIELD_U64:
    case HT_FIELD_S64:
    case HT_FIELD_F64:
        return 8;
    default:
        return 0;
    }
}

bool ht_kind_signed(unsigned kind)
{
    return kind >= HT_FIELD_S8 && kind <= HT_FIELD_S64;
}

static bool kind_is_integer(unsigned kind)
{
    return kind >= HT_FIELD_U8 && kind <= HT_FIELD_S64;
}

static bool class_name_valid(const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (!g_ascii_isalnum(name[i]) && !strchr("_.-", name[i])) {
            return false;
        }
    }
    return len > 0 && len <= HT_CLASS_NAME_MAX &&
           memchr(name, 0, len) == NULL;
}

/* Test whether backends add a field of this name to each event themselves */
static bool field_name_reserved(const char *name)
{
    return !strcmp(name, "stream") || !strcmp(name, "vcpu") ||
           !strcmp(name, "guest_ns");
}

static bool field_name_valid(const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (!g_ascii_isalpha(name[i]) && name[i] != '_' &&
            (i == 0 || !g_ascii_isdigit(name[i]))) {
            return false;
        }
    }
    return len > 0 && len <= HT_FIELD_NAME_MAX;
}

static bool label_valid(const char *s, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\') {
            return false;
        }
    }
    return len > 0 && len <= HT_LABEL_MAX;
}

static bool field_valid(const struct ht_msg_field *f)
{
    if (f->flags & HT_FIELD_LABELS) {
        return !(f->flags & ~(HT_FIELD_HEX | HT_FIELD_LABELS |
                              HT_FIELD_BITS)) &&
               kind_is_integer(f->kind) && f->elem == 0 &&
               ht_get_le16(&f->count) > 0 &&
               ht_get_le16(&f->count) <= HT_LABELS_MAX;
    }
    if (f->flags & ~(HT_FIELD_HEX | HT_FIELD_UTF8) ||
        (f->flags & HT_FIELD_UTF8 &&
         (f->flags != HT_FIELD_UTF8 || f->kind != HT_FIELD_ARRAY ||
          f->elem != HT_FIELD_U8))) {
        return false;
    }
    switch (f->kind) {
    case HT_FIELD_TEXT:
        return f->elem == 0 && ht_get_le16(&f->count) == 0;
    case HT_FIELD_SEQUENCE:
        return kind_is_integer(f->elem) && ht_get_le16(&f->count) == 0;
    case HT_FIELD_ARRAY:
        return kind_is_integer(f->elem) && ht_get_le16(&f->count) > 0 &&
               ht_get_le16(&f->count) <= 4096;
    default:
        return ht_kind_size(f->kind) && f->elem == 0 &&
               ht_get_le16(&f->count) == 0;
    }
}

static bool field_is_variable(const HtField *f)
{
    return f->kind == HT_FIELD_TEXT || f->kind == HT_FIELD_SEQUENCE;
}

/*
 * CTF traces have a '_' in front of each field's name, which readers drop.  If
 * a class has fields _x and x, babeltrace2 mistakes one for the other and
 * refuses the whole trace.
 */
static bool names_clash(const char *a, const char *b)
{
    return !strcmp(a, b) || (a[0] == '_' && !strcmp(a + 1, b)) ||
           (b[0] == '_' && !strcmp(a, b + 1));
}

/*
 * For a text or sequence x, CTF traces have another field, _x_length, before x.
 * This name must not clash with the name of a field of the class.
 */
static bool field_names_unique(const HtClass *c)
{
    unsigned i, j;

    for (i = 0; i < c->nr_fields; i++) {
        g_autofree char *length = field_is_variable(&c->fields[i]) ?
            g_strdup_printf("_%s_length", c->fields[i].name) : NULL;

        for (j = 0; j < c->nr_fields; j++) {
            if (i != j && names_clash(c->fields[i].name, c->fields[j].name)) {
                return false;
            }
            if (length && names_clash(length, c->fields[j].name)) {
                return false;
            }
        }
    }
    return true;
}

bool ht_class_field_free(const HtClass *c, const char *name)
{
    g_autofree char *length = g_strdup_printf("_%s_length", name);
    unsigned i;

    for (i = 0; i < c->nr_fields; i++) {
        const char *other = c->fields[i].name;
        g_autofree char *others = g_strdup_printf("_%s_length", other);

        if (names_clash(other, name) || names_clash(others, name) ||
            names_clash(length, other)) {
            return false;
        }
    }
    return !field_name_reserved(name);
}

void ht_class_free(HtClass *c)
{
    unsigned i;

    if (!c) {
        return;
    }
    for (i = 0; i < c->nr_fields; i++) {
        HtField *f = &c->fields[i];

        while (f->nr_labels) {
            g_free(f->labels[--f->nr_labels].name);
        }
        g_free(f->labels);
        g_free(f->name);
    }
    g_free(c->fields);
    g_free(c->name);
    g_free(c);
}

/*
 * Set @fixed and @vars, from which ht_class_payload() computes the size of an
 * event's payload
 */
static void class_layout(HtClass *c)
{
    unsigned i;

    for (i = 0; i < c->nr_fields; i++) {
        const HtField *f = &c->fields[i];

        if (field_is_variable(f)) {
            c->vars[c->nr_vars].before = c->fixed;
            c->vars[c->nr_vars].elem = ht_kind_size(f->elem);
            c->nr_vars++;
            c->fixed = 0;
        } else if (f->kind == HT_FIELD_ARRAY) {
            c->fixed += f->count * ht_kind_size(f->elem);
        } else {
            c->fixed += ht_kind_size(f->kind);
        }
    }
}

/*
 * Parse the labels of a field.  Returns the address after them; NULL if they
 * are malformed
 */
static const uint8_t *labels_parse(HtField *f, unsigned count,
                                   const uint8_t *p, const uint8_t *end)
{
    f->labels = g_new0(HtLabel, count);
    while (f->nr_labels < count) {
        HtLabel *l = &f->labels[f->nr_labels];
        unsigned len;

        if (end - p < HT_LABEL_HEADER || end - p - HT_LABEL_HEADER < p[8] ||
            !label_valid((const char *)p + HT_LABEL_HEADER, p[8])) {
            return NULL;
        }
        len = p[8];
        l->value = ht_get_le64(p);
        l->name = g_strndup((const char *)p + HT_LABEL_HEADER, len);
        f->nr_labels++;
        p += HT_LABEL_HEADER + len;
    }
    return p;
}

/* Make a class from a message; returns NULL if the message is malformed */
static HtClass *class_parse(const void *msg, size_t size)
{
    const struct ht_msg_class *m = msg;
    const uint8_t *p, *end;
    HtClass *c;
    unsigned i;

    if (size < sizeof(*m) || m->nr_fields > HT_FIELDS_MAX ||
        m->loglevel > 14 || size - sizeof(*m) < m->name_len ||
        !class_name_valid((const char *)m->data, m->name_len)) {
        return NULL;
    }
    p = m->data + m->name_len;
    end = (const uint8_t *)msg + size;

    c = g_new0(HtClass, 1);
    c->name = g_strndup((const char *)m->data, m->name_len);
    c->loglevel = m->loglevel;
    c->origin = ht_get_le32(&m->origin);
    c->fields = g_new0(HtField, m->nr_fields);
    for (i = 0; i < m->nr_fields; i++) {
        struct ht_msg_field w;
        HtField *f = &c->fields[i];

        if ((size_t)(end - p) < sizeof(w)) {
            goto bad;
        }
        memcpy(&w, p, sizeof(w));
        p += sizeof(w);
        if (!field_valid(&w) || end - p < w.name_len ||
            !field_name_valid((const char *)p, w.name_len)) {
            goto bad;
        }
        f->name = g_strndup((const char *)p, w.name_len);
        p += w.name_len;
        c->nr_fields++;
        f->kind = w.kind;
        f->elem = w.kind == HT_FIELD_TEXT ? HT_FIELD_U8 : w.elem;
        f->flags = w.flags;
        f->count = ht_get_le16(&w.count);
        if (f->flags & HT_FIELD_LABELS) {
            f->count = 0;
            p = labels_parse(f, ht_get_le16(&w.count), p, end);
            if (!p) {
                goto bad;
            }
        }
        if (field_name_reserved(f->name)) {
            goto bad;
        }
    }
    if (p != end || !field_names_unique(c)) {
        goto bad;
    }
    class_layout(c);
    return c;

bad:
    ht_class_free(c);
    return NULL;
}

static bool same_labels(const HtField *a, const HtField *b)
{
    unsigned i;

    for (i = 0; i < a->nr_labels && i < b->nr_labels; i++) {
        if (a->labels[i].value != b->labels[i].value ||
            strcmp(a->labels[i].name, b->labels[i].name)) {
            return false;
        }
    }
    return a->nr_labels == b->nr_labels;
}

/*
 * Test whether two classes of the same name have equal fields, and both or
 * neither are the kernel's.  Log levels and users of programs may differ.
 */
static bool class_same(const HtClass *a, const HtClass *b)
{
    unsigned i;

    if ((a->origin == HT_ORIGIN_KERNEL) != (b->origin == HT_ORIGIN_KERNEL) ||
        a->nr_fields != b->nr_fields) {
        return false;
    }
    for (i = 0; i < a->nr_fields; i++) {
        const HtField *f = &a->fields[i], *g = &b->fields[i];

        if (strcmp(f->name, g->name) || f->kind != g->kind ||
            f->elem != g->elem || f->flags != g->flags ||
            f->count != g->count || !same_labels(f, g)) {
            return false;
        }
    }
    return true;
}

HtClassTable *ht_class_table_new(void)
{
    HtClassTable *t = g_new0(HtClassTable, 1);

    g_mutex_init(&t->lock);
    t->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    t->limit = HT_CLASSES_SAVED_MAX;
    return t;
}

void ht_class_table_set_limit(HtClassTable *t, size_t limit)
{
    g_mutex_lock(&t->lock);
    t->limit = limit;
    g_mutex_unlock(&t->lock);
}

size_t ht_class_table_size(HtClassTable *t)
{
    size_t size;

    g_mutex_lock(&t->lock);
    size = t->size;
    g_mutex_unlock(&t->lock);
    return size;
}

/* Number of bytes that a class takes in the result of ht_class_table_save() */
static size_t class_saved_size(const HtClass *c)
{
    size_t size = 4 + sizeof(struct ht_msg_class) + strlen(c->name);
    unsigned i;

    for (i = 0; i < c->nr_fields; i++) {
        const HtField *f = &c->fields[i];
        unsigned j;

        size += sizeof(struct ht_msg_field) + strlen(f->name);
        for (j = 0; j < f->nr_labels; j++) {
            size += HT_LABEL_HEADER + strlen(f->labels[j].name);
        }
    }
    return size;
}

/* Context: HtClassTable.lock held */
static void table_append(HtClassTable *t, HtClass *c)
{
    c->id = t->count + 1;
    t->size += class_saved_size(c);
    g_hash_table_insert(t->by_name, c->name, c);
    /* Pairs with the load-acquire in ht_walk(). */
    ht_atomic_store_release(&t->by_id[c->id], c);
    /* Pairs with the load-acquire in ht_class_table_count(). */
    ht_atomic_store_release(&t->count, c->id);
}

void ht_class_table_free(HtClassTable *t)
{
    uint32_t id;

    g_hash_table_destroy(t->by_name);
    for (id = 1; id <= t->count; id++) {
        ht_class_free(t->by_id[id]);
    }
    g_mutex_clear(&t->lock);
    g_free(t);
}

enum ht_status ht_class_table_add(HtClassTable *t, const void *msg,
                                  size_t size, bool *added, HtClass **cls)
{
    HtClass *c = class_parse(msg, size), *old;
    g_autofree char *name = NULL;
    unsigned version = 1;

    *added = false;
    *cls = NULL;
    if (!c) {
        return HT_STATUS_INVAL;
    }

    g_mutex_lock(&t->lock);
    name = g_strdup(c->name);
    /*
     * A class of the same name with other fields, or from the kernel instead of
     * a program or the other way round, is a different class: name it NAME.v2,
     * NAME.v3 and so on.
     */
    while ((old = g_hash_table_lookup(t->by_name, c->name)) &&
           !class_same(old, c) && version < HT_CLASS_VERSIONS_MAX) {
        g_free(c->name);
        c->name = g_strdup_printf("%s.v%u", name, ++version);
    }
    if (old && class_same(old, c)) {
        ht_class_free(c);
        *cls = old;
    } else if (old || t->count == HT_CLASSES_MAX ||
               strlen(c->name) > HT_CLASS_NAME_MAX ||
               /*
                * refuse a class whose message exceeds HT_MESSAGE_MAX because
                * ".vN" was appended to its name
                */
               class_saved_size(c) > 4 + HT_MESSAGE_MAX ||
               t->size + class_saved_size(c) > t->limit) {
        ht_class_free(c);
        g_mutex_unlock(&t->lock);
        return HT_STATUS_LIMIT;
    } else {
        table_append(t, c);
        *cls = c;
        *added = true;
    }
    g_mutex_unlock(&t->lock);
    return HT_STATUS_OK;
}

HtClass *ht_class_table_get(const HtClassTable *t, uint32_t id)
{
    return id >= 1 && id <= ht_class_table_count(t) ? t->by_id[id] : NULL;
}

uint32_t ht_class_table_count(const HtClassTable *t)
{
    return ht_atomic_load_acquire(&t->count);
}

size_t ht_class_encode(const HtClass *c, struct ht_msg_class *msg)
{
    uint8_t *p = msg->data;
    size_t len = strlen(c->name);
    unsigned i;

    msg->nr_fields = c->nr_fields;
    msg->name_len = len;
    msg->loglevel = c->loglevel;
    ht_put_le32(&msg->origin, c->origin);
    memcpy(p, c->name, len);
    p += len;
    for (i = 0; i < c->nr_fields; i++) {
        const HtField *f = &c->fields[i];
        struct ht_msg_field w = {
            .kind = f->kind,
            .elem = f->kind == HT_FIELD_TEXT ? 0 : f->elem,
            .flags = f->flags,
            .name_len = strlen(f->name),
            .count = ht_le16(f->nr_labels ? f->nr_labels : f->count),
        };
        unsigned j;

        memcpy(p, &w, sizeof(w));
        p += sizeof(w);
        memcpy(p, f->name, w.name_len);
        p += w.name_len;
        for (j = 0; j < f->nr_labels; j++) {
            ht_put_le64(p, f->labels[j].value);
            p[8] = strlen(f->labels[j].name);
            memcpy(p + HT_LABEL_HEADER, f->labels[j].name, p[8]);
            p += HT_LABEL_HEADER + p[8];
        }
    }
    ht_put_le32(&msg->id, c->id);
    return p - (uint8_t *)msg;
}

GByteArray *ht_class_table_save(const HtClassTable *t)
{
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    GByteArray *out = g_byte_array_new();
    uint32_t id;

    for (id = 1; id <= ht_class_table_count(t); id++) {
        uint32_t size = ht_class_encode(t->by_id[id], m);
        uint32_t le = ht_le32(size);

        g_byte_array_append(out, (uint8_t *)&le, sizeof(le));
        g_byte_array_append(out, (uint8_t *)m, size);
    }
    return out;
}

/* Parse a saved table; returns a new table, or NULL with @why set */
static HtClassTable *table_parse(const uint8_t *p, size_t size, char **why)
{
    g_autofree struct ht_msg_class *m = g_malloc(HT_MESSAGE_MAX);
    HtClassTable *t = ht_class_table_new();
    uint32_t length, id = 0;
    enum ht_status status;
    HtClass *c;
    bool added;

    while (size) {
        id++;
        length = size < 4 ? UINT32_MAX : ht_get_le32(p);
        if (length > HT_MESSAGE_MAX || length > size - 4) {
            *why = g_strdup_printf("class %" PRIu32 " is cut off", id);
            goto bad;
        }
        memcpy(m, p + 4, length);
        status = ht_class_table_add(t, m, length, &added, &c);
        /*
         * ht_class_table_save() writes no name twice.  If the name is longer
         * now, ht_class_table_add() has appended ".vN", because an earlier
         * class of the saved table has the name: refuse the table.
         */
        if (status != HT_STATUS_OK || !added ||
            strlen(c->name) != m->name_len) {
            *why = g_strdup_printf("class %" PRIu32 " is %s", id,
                                   status == HT_STATUS_INVAL ? "malformed" :
                                   status == HT_STATUS_OK ? "there twice" :
                                   "one too many");
            goto bad;
        }
        p += 4 + length;
        size -= 4 + length;
    }
    return t;

bad:
    ht_class_table_free(t);
    return NULL;
}

bool ht_class_table_load(HtClassTable *t, const void *data, size_t size,
                         char **why)
{
    HtClassTable *saved = table_parse(data, size, why);
    uint32_t id;

    if (!saved) {
        return false;
    }
    g_mutex_lock(&t->lock);
    if (size > t->limit) {
        *why = g_strdup_printf("its classes need %zu bytes, the limit here is"
                               " %zu", size, t->limit);
        g_mutex_unlock(&t->lock);
        ht_class_table_free(saved);
        return false;
    }
    for (id = 1; id <= MIN(saved->count, t->count); id++) {
        const HtClass *a = t->by_id[id], *b = saved->by_id[id];

        if (strcmp(a->name, b->name) || !class_same(a, b)) {
            *why = g_strdup_printf("class %" PRIu32 " is '%s' with other"
                                   " fields or another origin than '%s' here",
                                   id, b->name, a->name);
            g_mutex_unlock(&t->lock);
            ht_class_table_free(saved);
            return false;
        }
    }
    for (id = t->count + 1; id <= saved->count; id++) {
        table_append(t, g_steal_pointer(&saved->by_id[id]));
    }
    g_mutex_unlock(&t->lock);
    ht_class_table_free(saved);
    return true;
}
