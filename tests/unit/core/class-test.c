/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event classes: which messages the host accepts and which it refuses, and how
 * it recognizes a class that is registered again
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "core-testlib.h"

static enum ht_status add(HtClassTable *t, const CtMessage *m)
{
    HtClass *c;
    bool added;
    enum ht_status status = ct_add(t, m, &added, &c);

    g_assert_true((status == HT_STATUS_OK) == (c != NULL));
    g_assert_true(status == HT_STATUS_OK || !added);
    return status;
}

/* Assert that a new table refuses a class's message and stays empty. */
static void assert_refused(const CtMessage *m)
{
    HtClassTable *t = ht_class_table_new();

    g_assert_cmpint(add(t, m), ==, HT_STATUS_INVAL);
    g_assert_cmpuint(ht_class_table_count(t), ==, 0);
    ht_class_table_free(t);
}

static void assert_accepted(const CtMessage *m)
{
    HtClassTable *t = ht_class_table_new();

    g_assert_cmpint(add(t, m), ==, HT_STATUS_OK);
    g_assert_cmpuint(ht_class_table_count(t), ==, 1);
    ht_class_table_free(t);
}

static void test_kinds(void)
{
    static const unsigned size[] = { 1, 2, 4, 8, 1, 2, 4, 8, 4, 8 };
    HtClassTable *t = ht_class_table_new();
    CtMessage m;
    unsigned kind;

    for (kind = 0; kind < 256; kind++) {
        g_autofree char *name = g_strdup_printf("k%u", kind);
        bool scalar = kind >= HT_FIELD_U8 && kind <= HT_FIELD_F64;
        HtClass *c;
        bool added;

        g_assert_cmpuint(ht_kind_size(kind), ==, scalar ? size[kind - 1] : 0);
        ct_class(&m, name);
        ct_field(&m, "x", kind, 0, 0);
        if (scalar) {
            g_assert_cmpint(ct_add(t, &m, &added, &c), ==, HT_STATUS_OK);
            g_assert_true(added);
            g_assert_cmpuint(c->fixed, ==, size[kind - 1]);
            g_assert_cmpuint(c->nr_vars, ==, 0);
            g_assert_cmpuint(c->fields[0].kind, ==, kind);
        } else if (kind == HT_FIELD_TEXT) {
            g_assert_cmpint(ct_add(t, &m, &added, &c), ==, HT_STATUS_OK);
            g_assert_cmpuint(c->nr_vars, ==, 1);
            g_assert_cmpuint(c->vars[0].elem, ==, 1);
        } else {
            g_assert_cmpint(add(t, &m), ==, HT_STATUS_INVAL);
        }
    }
    ht_class_table_free(t);
}

static void test_elements(void)
{
    HtClassTable *t = ht_class_table_new();
    CtMessage m;
    unsigned elem;

    for (elem = 0; elem < 256; elem++) {
        bool integer = elem >= HT_FIELD_U8 && elem <= HT_FIELD_S64;
        enum ht_status want = integer ? HT_STATUS_OK : HT_STATUS_INVAL;
        g_autofree char *s = g_strdup_printf("s%u", elem);
        g_autofree char *a = g_strdup_printf("a%u", elem);

        ct_class(&m, s);
        ct_field(&m, "x", HT_FIELD_SEQUENCE, elem, 0);
        g_assert_cmpint(add(t, &m), ==, want);
        ct_class(&m, a);
        ct_field(&m, "x", HT_FIELD_ARRAY, elem, 7);
        g_assert_cmpint(add(t, &m), ==, want);
        if (integer) {
            HtClass *c = ht_class_table_get(t, ht_class_table_count(t));

            g_assert_cmpuint(c->fixed, ==, 7 * ht_kind_size(elem));
        }
    }
    ht_class_table_free(t);
}

static void test_counts(void)
{
    static const struct {
        unsigned kind, elem, count;
        bool ok;
    } fields[] = {
        { HT_FIELD_ARRAY, HT_FIELD_U64, 0, false },
        { HT_FIELD_ARRAY, HT_FIELD_U64, 1, true },
        { HT_FIELD_ARRAY, HT_FIELD_U64, 4096, true },
        { HT_FIELD_ARRAY, HT_FIELD_U64, 4097, false },
        { HT_FIELD_ARRAY, HT_FIELD_U64, 65535, false },
        { HT_FIELD_SEQUENCE, HT_FIELD_U8, 1, false },
        { HT_FIELD_TEXT, 0, 1, false },
        { HT_FIELD_TEXT, HT_FIELD_U8, 0, false },
        { HT_FIELD_U32, 0, 1, false },
        { HT_FIELD_U32, HT_FIELD_U32, 0, false },
    };
    CtMessage m;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(fields); i++) {
        ct_class(&m, "c");
        ct_field(&m, "x", fields[i].kind, fields[i].elem, fields[i].count);
        if (fields[i].ok) {
            assert_accepted(&m);
        } else {
            assert_refused(&m);
        }
    }

    ct_class(&m, "many");
    for (i = 0; i < HT_FIELDS_MAX; i++) {
        g_autofree char *name = g_strdup_printf("f%u", i);

        ct_field(&m, name, HT_FIELD_SEQUENCE, HT_FIELD_U64, 0);
    }
    assert_accepted(&m);
    ct_field(&m, "one_more", HT_FIELD_U8, 0, 0);
    assert_refused(&m);

    /* the message has one field, and declares two or none */
    ct_class(&m, "c");
    ct_field(&m, "x", HT_FIELD_U8, 0, 0);
    ct_message(&m)->nr_fields = 2;
    assert_refused(&m);
    ct_message(&m)->nr_fields = 0;
    assert_refused(&m);

    ct_class(&m, "c");
    ct_message(&m)->loglevel = 14;
    assert_accepted(&m);
    ct_message(&m)->loglevel = 15;
    assert_refused(&m);
}

static void test_flags(void)
{
    struct ht_msg_field f = { .kind = HT_FIELD_U64, .name_len = 1 };
    CtMessage m;
    unsigned flags;

    for (flags = 0; flags < 256; flags++) {
        f.flags = flags;
        ct_class(&m, "c");
        ct_field_bytes(&m, &f, "x", 1);
        if (flags & ~HT_FIELD_HEX) {
            assert_refused(&m);
        } else {
            assert_accepted(&m);
        }
    }
}

/*
 * Make a message with one field of kind @kind, which declares @count labels but
 * contains @given labels.
 */
static void labelled(CtMessage *m, unsigned kind, unsigned flags,
                     unsigned count, unsigned given, const char *label)
{
    struct ht_msg_field f = {
        .kind = kind, .flags = flags, .name_len = 1, .count = ht_le16(count),
    };
    unsigned i;

    ct_class(m, "c");
    ct_field_bytes(m, &f, "x", 1);
    for (i = 0; i < given; i++) {
        ht_put_le64(m->data + m->size, (int64_t)i - 2);
        m->data[m->size + 8] = strlen(label);
        memcpy(m->data + m->size + HT_LABEL_HEADER, label, strlen(label));
        m->size += HT_LABEL_HEADER + strlen(label);
    }
    ct_message(m)->h.size = m->size;
}

/*
 * Promise: only integers may have labels.  A message must contain as many
 * labels for a field as the field declares, from 1 to HT_LABELS_MAX.  A label's
 * text may have up to HT_LABEL_MAX characters: printable ones of ASCII except
 * the double quote and the backslash.
 */
static void test_labels(void)
{
    const unsigned labels = HT_FIELD_LABELS;
    char text[HT_LABEL_MAX + 2];
    CtMessage m;
    HtClass *c, *other;
    HtClassTable *t;
    unsigned i;
    bool added;

    for (i = 0; i < 256; i++) {
        labelled(&m, i, labels, 2, 2, "on");
        if (i >= HT_FIELD_U8 && i <= HT_FIELD_S64) {
            assert_accepted(&m);
        } else {
            assert_refused(&m);
        }
        labelled(&m, HT_FIELD_U8, labels | i, 2, 2, "on");
        if (i & ~(labels | HT_FIELD_BITS | HT_FIELD_HEX)) {
            assert_refused(&m);
        } else {
            assert_accepted(&m);
        }
        text[0] = i;
        text[1] = '\0';
        labelled(&m, HT_FIELD_S32, labels, 1, 1, text);
        if (i >= ' ' && i <= '~' && i != '"' && i != '\\') {
            assert_accepted(&m);
        } else {
            assert_refused(&m);
        }
    }
    for (i = 0; i <= HT_LABELS_MAX + 1; i++) {
        labelled(&m, HT_FIELD_U8, labels, i, i, "on");
        if (i == 0 || i > HT_LABELS_MAX) {
            assert_refused(&m);
            continue;
        }
        assert_accepted(&m);
        labelled(&m, HT_FIELD_U8, labels, i, i - 1, "on");
        assert_refused(&m);
        labelled(&m, HT_FIELD_U8, labels, i, i + 1, "on");
        assert_refused(&m);
    }
    for (i = HT_LABEL_MAX; i <= HT_LABEL_MAX + 1; i++) {
        memset(text, 'a', i);
        text[i] = '\0';
        labelled(&m, HT_FIELD_U8, labels, 1, 1, text);
        if (i > HT_LABEL_MAX) {
            assert_refused(&m);
        } else {
            assert_accepted(&m);
        }
    }

    /*
     * A message with other labels than the class of this name registers a new
     * version. ht_class_encode() gives the labels that the guest sent.
     */
    t = ht_class_table_new();
    labelled(&m, HT_FIELD_S16, labels, 3, 3, "on");
    g_assert_cmpint(ct_add(t, &m, &added, &c), ==, HT_STATUS_OK);
    g_assert_cmpuint(c->fields[0].nr_labels, ==, 3);
    g_assert_cmpint(c->fields[0].labels[0].value, ==, -2);
    g_assert_cmpstr(c->fields[0].labels[2].name, ==, "on");
    g_assert_cmpuint(c->fixed, ==, 2);
    labelled(&m, HT_FIELD_S16, labels, 3, 3, "off");
    g_assert_cmpint(ct_add(t, &m, &added, &other), ==, HT_STATUS_OK);
    g_assert_cmpstr(other->name, ==, "c.v2");
    m.size = ht_class_encode(c, ct_message(&m));
    ct_message(&m)->h.size = m.size;
    g_assert_cmpint(ct_add(t, &m, &added, &other), ==, HT_STATUS_OK);
    g_assert_true(other == c && !added);
    ht_class_table_free(t);
}

static void test_class_names(void)
{
    static const char *const bad[] = {
        "", "a b", "a:b", "a/b", "a\n", "a*", "\xc3\xa4", "a\x7f",
    };
    char name[HT_CLASS_NAME_MAX + 2];
    CtMessage m;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        ct_class(&m, bad[i]);
        assert_refused(&m);
    }
    ct_class_bytes(&m, "a\0b", 3);
    assert_refused(&m);
    ct_class_bytes(&m, "a\0", 2);
    assert_refused(&m);
    ct_class(&m, "Az09_.-");
    assert_accepted(&m);

    memset(name, 'n', sizeof(name));
    ct_class_bytes(&m, name, HT_CLASS_NAME_MAX);
    assert_accepted(&m);
    ct_class_bytes(&m, name, HT_CLASS_NAME_MAX + 1);
    assert_refused(&m);
}

static void test_field_names(void)
{
    static const char *const bad[] = {
        "", "0a", "a.b", "a-b", "a b", "a:", "\xc3\xa4",
        /* names of fields that the LTTng backend adds to each event */
        "stream", "vcpu", "guest_ns",
    };
    static const char *const good[] = {
        "a", "_", "A9_", "int", "event", "string", "streams", "Stream",
    };
    struct ht_msg_field f = { .kind = HT_FIELD_U8 };
    char name[HT_FIELD_NAME_MAX + 1];
    CtMessage m;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        ct_class(&m, "c");
        ct_field(&m, bad[i], HT_FIELD_U8, 0, 0);
        assert_refused(&m);
    }
    for (i = 0; i < G_N_ELEMENTS(good); i++) {
        ct_class(&m, "c");
        ct_field(&m, good[i], HT_FIELD_U8, 0, 0);
        assert_accepted(&m);
    }
    f.name_len = 3;
    ct_class(&m, "c");
    ct_field_bytes(&m, &f, "a\0b", 3);
    assert_refused(&m);

    memset(name, 'n', sizeof(name));
    f.name_len = HT_FIELD_NAME_MAX;
    ct_class(&m, "c");
    ct_field_bytes(&m, &f, name, f.name_len);
    assert_accepted(&m);
    f.name_len++;
    ct_class(&m, "c");
    ct_field_bytes(&m, &f, name, f.name_len);
    assert_refused(&m);
}

static void two_fields(CtMessage *m, const char *a, unsigned a_kind,
                       const char *b, unsigned b_kind)
{
    ct_class(m, "c");
    ct_field(m, a, a_kind, 0, 0);
    ct_field(m, b, b_kind, 0, 0);
}

static void test_unique(void)
{
    CtMessage m;

    two_fields(&m, "x", HT_FIELD_U8, "x", HT_FIELD_U8);
    assert_refused(&m);
    two_fields(&m, "x", HT_FIELD_U8, "x", HT_FIELD_TEXT);
    assert_refused(&m);
    two_fields(&m, "x", HT_FIELD_U8, "X", HT_FIELD_U8);
    assert_accepted(&m);
    /* In a trace, a field "_x_length" has the length of the text "x". */
    two_fields(&m, "x", HT_FIELD_TEXT, "_x_length", HT_FIELD_U8);
    assert_refused(&m);
    two_fields(&m, "_x_length", HT_FIELD_U8, "x", HT_FIELD_TEXT);
    assert_refused(&m);
    two_fields(&m, "_x_length", HT_FIELD_TEXT, "x", HT_FIELD_TEXT);
    assert_refused(&m);
    two_fields(&m, "_x_length", HT_FIELD_U8, "x", HT_FIELD_U8);
    assert_accepted(&m);
    two_fields(&m, "_y_length", HT_FIELD_U8, "x", HT_FIELD_TEXT);
    assert_accepted(&m);
    /*
     * trace readers drop one leading '_' of a name, so a field's name must
     * not be '_' and the name of another field
     */
    two_fields(&m, "_x", HT_FIELD_U8, "x", HT_FIELD_U8);
    assert_refused(&m);
    two_fields(&m, "x", HT_FIELD_U8, "__x", HT_FIELD_U8);
    assert_accepted(&m);
    two_fields(&m, "x", HT_FIELD_TEXT, "x_length", HT_FIELD_U8);
    assert_refused(&m);
    two_fields(&m, "x", HT_FIELD_TEXT, "__x_length", HT_FIELD_U8);
    assert_refused(&m);
    /* such names are refused in either order of the fields */
    two_fields(&m, "_x", HT_FIELD_U8, "x", HT_FIELD_U8);
    assert_refused(&m);
    two_fields(&m, "x", HT_FIELD_U8, "_x", HT_FIELD_U8);
    assert_refused(&m);
    two_fields(&m, "x", HT_FIELD_TEXT, "x_length", HT_FIELD_U8);
    assert_refused(&m);
    two_fields(&m, "__x_length", HT_FIELD_U8, "x", HT_FIELD_TEXT);
    assert_refused(&m);
    two_fields(&m, "__x", HT_FIELD_U8, "x", HT_FIELD_U8);
    assert_accepted(&m);
}

/* Make the message of a class with scalars, a text, a sequence and an array */
static void full_message(CtMessage *m)
{
    ct_class(m, "full.class-1");
    ct_field(m, "a", HT_FIELD_U16, 0, 0);
    ct_field(m, "text", HT_FIELD_TEXT, 0, 0);
    ct_field(m, "d", HT_FIELD_F64, 0, 0);
    ct_field(m, "seq", HT_FIELD_SEQUENCE, HT_FIELD_S32, 0);
    ct_field(m, "arr", HT_FIELD_ARRAY, HT_FIELD_U16, 5);
}

static void test_truncated(void)
{
    CtMessage m;
    size_t size;

    full_message(&m);
    assert_accepted(&m);
    size = m.size;
    for (m.size = 0; m.size < size; m.size++) {
        assert_refused(&m);
    }
    m.size = size + 1;
    assert_refused(&m);
}

static void test_payload(void)
{
    HtClassTable *t = ht_class_table_new();
    CtMessage m;
    HtClass *c;
    uint8_t *p;
    /* sizes of the fields: 2, 2 + 3, 8, 2 + 2 * 4, 10 */
    const size_t size = 2 + 2 + 3 + 8 + 2 + 8 + 10;
    size_t avail;

    full_message(&m);
    c = ht_class_table_get(t, ct_register(t, &m));
    g_assert_cmpuint(c->nr_vars, ==, 2);
    for (avail = 0; avail <= size + 1; avail++) {
        uint8_t whole[64] = { 0 };

        ht_put_le16(whole + 2, 3);
        ht_put_le16(whole + 2 + 2 + 3 + 8, 2);
        p = g_memdup2(whole, avail);
        g_assert_cmpint(ht_class_payload(c, p, avail), ==,
                        avail < size ? -1 : (ssize_t)size);
        g_free(p);
    }
    /* both variable fields have a length of 65535, beyond the payload's end */
    p = g_malloc(64);
    memset(p, 0xff, 64);
    g_assert_cmpint(ht_class_payload(c, p, 64), ==, -1);
    g_free(p);
    ht_class_table_free(t);
}

static HtClass *add_kind(HtClassTable *t, const char *name, unsigned kind,
                         bool *added)
{
    CtMessage m;
    HtClass *c;

    ct_class(&m, name);
    ct_field(&m, "x", kind, 0, 0);
    g_assert_cmpint(ct_add(t, &m, added, &c), ==, HT_STATUS_OK);
    return c;
}

static void test_versions(void)
{
    HtClassTable *t = ht_class_table_new();
    char name[HT_CLASS_NAME_MAX + 1] = "";
    HtClass *a, *b, *c, *v2;
    bool added;
    CtMessage m;

    a = add_kind(t, "a", HT_FIELD_U8, &added);
    g_assert_true(added);
    g_assert_true(add_kind(t, "a", HT_FIELD_U8, &added) == a);
    g_assert_false(added);
    b = add_kind(t, "a", HT_FIELD_U16, &added);
    g_assert_true(added);
    g_assert_cmpstr(b->name, ==, "a.v2");
    c = add_kind(t, "a", HT_FIELD_U32, &added);
    g_assert_cmpstr(c->name, ==, "a.v3");
    /*
     * a message with equal fields gives the existing class, also if the message
     * has the name of a version
     */
    g_assert_true(add_kind(t, "a", HT_FIELD_U16, &added) == b);
    g_assert_true(add_kind(t, "a", HT_FIELD_U32, &added) == c);
    g_assert_true(add_kind(t, "a", HT_FIELD_U8, &added) == a);
    g_assert_true(add_kind(t, "a.v2", HT_FIELD_U16, &added) == b);
    g_assert_false(added);
    /*
     * if a guest has registered a class "z.v2", no version of "z" with other
     * fields gets this name
     */
    v2 = add_kind(t, "z.v2", HT_FIELD_U64, &added);
    add_kind(t, "z", HT_FIELD_U8, &added);
    g_assert_true(add_kind(t, "z", HT_FIELD_U64, &added) == v2);
    g_assert_cmpstr(add_kind(t, "z", HT_FIELD_S8, &added)->name, ==, "z.v3");
    /* a message that differs only in its log level gives the existing class */
    ct_class(&m, "a");
    ct_field(&m, "x", HT_FIELD_U8, 0, 0);
    ct_message(&m)->loglevel = 3;
    g_assert_cmpint(ct_add(t, &m, &added, &c), ==, HT_STATUS_OK);
    g_assert_true(c == a && !added);

    /* a name of maximum length has no room for ".v2" */
    memset(name, 'n', HT_CLASS_NAME_MAX);
    add_kind(t, name, HT_FIELD_U8, &added);
    ct_class(&m, name);
    g_assert_cmpint(add(t, &m), ==, HT_STATUS_LIMIT);
    ht_class_table_free(t);
}

/*
 * Promise: a program and the kernel never share a class, in whatever order they
 * register classes with the same name and fields. A saved table keeps the
 * origins. Programs of different users share a class.
 */
static void test_origin(void)
{
    static const struct {
        const char *name;
        uint32_t origin;
        uint32_t id;
        const char *shown;
    } steps[] = {
        { "a", HT_ORIGIN_KERNEL, 1, "a" },
        { "a", 1000, 2, "a.v2" },
        { "a", 0, 2, "a.v2" },
        { "a", HT_ORIGIN_KERNEL - 1, 2, "a.v2" },
        { "a", HT_ORIGIN_KERNEL, 1, "a" },
        /* a guest may also register a name that the host has made */
        { "a.v2", 1000, 2, "a.v2" },
        { "a.v2", HT_ORIGIN_KERNEL, 3, "a.v2.v2" },
        { "b", 0, 4, "b" },
        { "b", HT_ORIGIN_KERNEL, 5, "b.v2" },
        { "b", 1000, 4, "b" },
    };
    HtClassTable *t = ht_class_table_new(), *to = ht_class_table_new();
    g_autoptr(GByteArray) saved = NULL;
    g_autofree char *why = NULL;
    unsigned i, k;
    CtMessage m;

    for (i = 0; i < G_N_ELEMENTS(steps); i++) {
        ct_class(&m, steps[i].name);
        ct_field(&m, "x", HT_FIELD_U8, 0, 0);
        ht_put_le32(&ct_message(&m)->origin, steps[i].origin);
        g_assert_cmpuint(ct_register(t, &m), ==, steps[i].id);
        g_assert_cmpstr(ht_class_table_get(t, steps[i].id)->name, ==,
                        steps[i].shown);
    }
    saved = ht_class_table_save(t);
    g_assert_true(ht_class_table_load(to, saved->data, saved->len, &why));
    for (k = 1; k <= ht_class_table_count(t); k++) {
        g_assert_cmpuint(ht_class_table_get(to, k)->origin, ==,
                         ht_class_table_get(t, k)->origin);
    }
    ht_class_table_free(to);

    /*
     * refuse to load if the existing class belongs to a program and the saved
     * one to the kernel
     */
    to = ht_class_table_new();
    ct_class(&m, "a");
    ct_field(&m, "x", HT_FIELD_U8, 0, 0);
    ct_register(to, &m);
    g_assert_false(ht_class_table_load(to, saved->data, saved->len, &why));
    g_assert_nonnull(strstr(why, "origin"));
    ht_class_table_free(to);
    ht_class_table_free(t);
}

static void test_limit(void)
{
    HtClassTable *t = ht_class_table_new();
    CtMessage m;
    uint32_t i;

    g_assert_null(ht_class_table_get(t, 0));
    g_assert_null(ht_class_table_get(t, 1));
    for (i = 1; i <= HT_CLASSES_MAX; i++) {
        g_autofree char *name = g_strdup_printf("c%u", i);

        ct_class(&m, name);
        g_assert_cmpint(add(t, &m), ==, HT_STATUS_OK);
        g_assert_cmpuint(ht_class_table_count(t), ==, i);
        g_assert_cmpuint(ht_class_table_get(t, i)->id, ==, i);
        g_assert_null(ht_class_table_get(t, i + 1));
    }
    ct_class(&m, "one-more");
    g_assert_cmpint(add(t, &m), ==, HT_STATUS_LIMIT);
    ct_class(&m, "c1000");
    g_assert_cmpint(add(t, &m), ==, HT_STATUS_OK);
    g_assert_cmpuint(ht_class_table_count(t), ==, HT_CLASSES_MAX);
    g_assert_null(ht_class_table_get(t, 0));
    g_assert_null(ht_class_table_get(t, UINT32_MAX));
    ht_class_table_free(t);
}

/*
 * Promise: ht_class_table_size() includes labels. A class is refused if the
 * message that encodes it, with its version in the name, would be longer than
 * HT_MESSAGE_MAX, the size of the buffers for it.
 */
static void test_longest(void)
{
    const size_t header = sizeof(struct ht_msg_field);
    unsigned missing, i;

    for (missing = 0; missing <= 4; missing++) {
        HtClassTable *t = ht_class_table_new(), *to = ht_class_table_new();
        g_autoptr(GByteArray) saved = NULL;
        g_autofree char *why = NULL, *fill = g_strnfill(40, 'f');
        char label[HT_LABEL_MAX + 1], name[HT_FIELD_NAME_MAX + 1];

        memset(label, 'l', HT_LABEL_MAX);
        label[HT_LABEL_MAX] = '\0';
        for (i = 0; i < 2; i++) {
            enum ht_status status;
            CtMessage m;
            size_t len;

            label[0] = 'a' + i;
            labelled(&m, HT_FIELD_U8, HT_FIELD_LABELS, 55, 55, label);
            ct_field(&m, fill, HT_FIELD_U8, 0, 0);
            len = HT_MESSAGE_MAX - missing - m.size - header;
            g_assert_cmpuint(len, <=, HT_FIELD_NAME_MAX);
            memset(name, 'n', len);
            name[len] = '\0';
            ct_field(&m, name, HT_FIELD_U8, 0, 0);
            ct_message(&m)->h.size = m.size;
            g_assert_cmpuint(m.size, ==, HT_MESSAGE_MAX - missing);
            status = add(t, &m);
            /*
             * the second class gets the name c.v2, which is 3 bytes longer than
             * c
             */
            g_assert_cmpint(status, ==, i && missing < 3 ? HT_STATUS_LIMIT :
                                                           HT_STATUS_OK);
        }
        saved = ht_class_table_save(t);
        g_assert_cmpuint(saved->len, ==, ht_class_table_size(t));
        g_assert_true(ht_class_table_load(to, saved->data, saved->len, &why));
        g_assert_cmpuint(ht_class_table_count(to), ==, missing < 3 ? 1 : 2);
        ht_class_table_free(t);
        ht_class_table_free(to);
    }
}

/*
 * The guest chooses how many classes of which size there are, and a migration
 * sends them while the VM is stopped.  Promise: the saved table never exceeds
 * its limit: a class for which too few bytes are left is refused, and a smaller
 * class that fits is still accepted.
 */
static void test_limit_bytes(void)
{
    static const size_t limits[] = { 4096, 4097, 65536, 1024 * 1024 };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(limits); i++) {
        HtClassTable *t = ht_class_table_new(), *to = ht_class_table_new();
        g_autoptr(GByteArray) saved = NULL;
        g_autofree char *why = NULL;
        enum ht_status status;
        uint32_t n = 0, f;
        size_t before;
        CtMessage m;

        ht_class_table_set_limit(t, limits[i]);
        do {
            g_autofree char *name = g_strdup_printf("c%u", ++n);

            before = ht_class_table_size(t);
            ct_class(&m, name);
            for (f = 0; f < HT_FIELDS_MAX; f++) {
                g_autofree char *field = g_strdup_printf("%060u_%u", 0, f);

                field[0] = 'f';
                ct_field(&m, field, HT_FIELD_U8, 0, 0);
            }
            status = add(t, &m);
        } while (status == HT_STATUS_OK);
        g_assert_cmpint(status, ==, HT_STATUS_LIMIT);
        g_assert_cmpuint(ht_class_table_size(t), ==, before);
        g_assert_cmpuint(before + 4 + m.size, >, limits[i]);
        ct_class(&m, "small");
        g_assert_cmpint(add(t, &m), ==,
                        before + 4 + m.size > limits[i] ? HT_STATUS_LIMIT :
                                                          HT_STATUS_OK);
        saved = ht_class_table_save(t);
        g_assert_cmpuint(saved->len, ==, ht_class_table_size(t));
        g_assert_cmpuint(saved->len, <=, limits[i]);

        /* a saved table is refused if it exceeds the loading table's limit */
        ht_class_table_set_limit(to, saved->len - 1);
        g_assert_false(ht_class_table_load(to, saved->data, saved->len, &why));
        g_assert_nonnull(strstr(why, "limit"));
        g_assert_cmpuint(ht_class_table_count(to), ==, 0);
        ht_class_table_set_limit(to, saved->len);
        g_clear_pointer(&why, g_free);
        g_assert_true(ht_class_table_load(to, saved->data, saved->len, &why));
        g_assert_cmpuint(ht_class_table_size(to), ==, saved->len);
        ht_class_table_free(t);
        ht_class_table_free(to);
    }
}

/*
 * A table accepts at most HT_CLASS_VERSIONS_MAX classes with one name and
 * different fields, because a registration may compare itself with all of them.
 */
static void test_versions_limit(void)
{
    HtClassTable *t = ht_class_table_new();
    CtMessage m;
    uint32_t i;

    for (i = 1; i <= HT_CLASS_VERSIONS_MAX + 1; i++) {
        ct_class(&m, "x");
        ct_field(&m, "f", HT_FIELD_ARRAY, HT_FIELD_U8, i);
        g_assert_cmpint(add(t, &m), ==, i <= HT_CLASS_VERSIONS_MAX ?
                        HT_STATUS_OK : HT_STATUS_LIMIT);
    }
    ct_class(&m, "x");
    ct_field(&m, "f", HT_FIELD_ARRAY, HT_FIELD_U8, HT_CLASS_VERSIONS_MAX);
    g_assert_cmpuint(ct_register(t, &m), ==, HT_CLASS_VERSIONS_MAX);
    ht_class_table_free(t);
}

/*
 * Assert that the message that encodes @c registers an equal class in another
 * table.
 */
static void assert_round_trip(const HtClass *c)
{
    HtClassTable *other = ht_class_table_new();
    CtMessage m = { .size = 0 }, n = { .size = 0 };
    HtClass *d;
    bool added;

    m.size = ht_class_encode(c, ct_message(&m));
    g_assert_cmpuint(m.size, <=, HT_MESSAGE_MAX);
    g_assert_cmpuint(ht_get_le32(&ct_message(&m)->id), ==, c->id);
    g_assert_cmpint(ct_add(other, &m, &added, &d), ==, HT_STATUS_OK);
    g_assert_cmpuint(d->fixed, ==, c->fixed);
    g_assert_cmpuint(d->nr_vars, ==, c->nr_vars);
    n.size = ht_class_encode(d, ct_message(&n));
    ht_put_le32(&ct_message(&n)->id, c->id);
    g_assert_cmpmem(m.data, m.size, n.data, n.size);
    ht_class_table_free(other);
}

static void test_encode(void)
{
    HtClassTable *t = ht_class_table_new();
    char name[HT_FIELD_NAME_MAX + 1] = "";
    CtMessage m;
    unsigned i;

    full_message(&m);
    assert_round_trip(ht_class_table_get(t, ct_register(t, &m)));
    /* names of maximum length, of the class and of each field */
    memset(name, 'f', HT_FIELD_NAME_MAX);
    {
        g_autofree char *cls = g_strnfill(HT_CLASS_NAME_MAX, 'c');

        ct_class(&m, cls);
    }
    for (i = 0; i < HT_FIELDS_MAX; i++) {
        name[0] = 'A' + i / 26;
        name[1] = 'A' + i % 26;
        ct_field(&m, name, HT_FIELD_TEXT, 0, 0);
    }
    assert_round_trip(ht_class_table_get(t, ct_register(t, &m)));
    ht_class_table_free(t);
}

static void *reader(void *opaque)
{
    HtClassTable *t = opaque;
    uint32_t seen = 0;

    while (seen < HT_CLASSES_MAX) {
        uint32_t count = ht_class_table_count(t), id;

        g_assert_cmpuint(count, >=, seen);
        for (id = seen + 1; id <= count; id++) {
            HtClass *c = ht_class_table_get(t, id);
            g_autofree char *name = g_strdup_printf("c%u", id);
            HtClass *walked = ht_atomic_load_acquire(&t->by_id[id]);

            g_assert_cmpuint(c->id, ==, id);
            g_assert_cmpstr(c->name, ==, name);
            g_assert_cmpuint(c->fixed, ==, 8);
            g_assert_true(walked == c);
        }
        seen = count;
    }
    return NULL;
}

static void test_readers(void)
{
    HtClassTable *t = ht_class_table_new();
    GThread *threads[3];
    CtMessage m;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(threads); i++) {
        threads[i] = g_thread_new("reader", reader, t);
    }
    for (i = 1; i <= HT_CLASSES_MAX; i++) {
        g_autofree char *name = g_strdup_printf("c%u", i);

        ct_class(&m, name);
        ct_field(&m, "x", HT_FIELD_U64, 0, 0);
        ct_register(t, &m);
    }
    for (i = 0; i < G_N_ELEMENTS(threads); i++) {
        g_thread_join(threads[i]);
    }
    ht_class_table_free(t);
}

/*
 * Change random bytes of a message: each class that the table accepts can be
 * encoded and registered in another table.
 */
static void test_random(void)
{
    HtClassTable *t = ht_class_table_new();
    unsigned i, j, accepted = 0;

    for (i = 0; i < 100000; i++) {
        CtMessage m;
        HtClass *c;
        bool added;

        full_message(&m);
        for (j = g_test_rand_int_range(1, 4); j; j--) {
            m.data[g_test_rand_int_range(sizeof(struct ht_msg), m.size)] =
                g_test_rand_int_range(0, 256);
        }
        if (g_test_rand_bit()) {
            m.size = g_test_rand_int_range(0, m.size);
        }
        switch (ct_add(t, &m, &added, &c)) {
        case HT_STATUS_OK:
            accepted++;
            assert_round_trip(c);
            break;
        case HT_STATUS_LIMIT:
            ht_class_table_free(t);
            t = ht_class_table_new();
            break;
        case HT_STATUS_INVAL:
            break;
        default:
            g_assert_not_reached();
        }
    }
    g_assert_cmpuint(accepted, >, 0);
    ht_class_table_free(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/class/kinds", test_kinds);
    g_test_add_func("/class/elements", test_elements);
    g_test_add_func("/class/counts", test_counts);
    g_test_add_func("/class/flags", test_flags);
    g_test_add_func("/class/labels", test_labels);
    g_test_add_func("/class/class-names", test_class_names);
    g_test_add_func("/class/field-names", test_field_names);
    g_test_add_func("/class/unique", test_unique);
    g_test_add_func("/class/truncated", test_truncated);
    g_test_add_func("/class/payload", test_payload);
    g_test_add_func("/class/versions", test_versions);
    g_test_add_func("/class/versions-limit", test_versions_limit);
    g_test_add_func("/class/origin", test_origin);
    g_test_add_func("/class/limit", test_limit);
    g_test_add_func("/class/limit-bytes", test_limit_bytes);
    g_test_add_func("/class/longest", test_longest);
    g_test_add_func("/class/encode", test_encode);
    g_test_add_func("/class/readers", test_readers);
    g_test_add_func("/class/random", test_random);
    return g_test_run();
}
