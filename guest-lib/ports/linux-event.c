/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: make event classes at run time, and emit
 * their events
 *
 * For programs in languages that cannot use the macros of event.h.
 */
#include <stdlib.h>
#include <string.h>

#include "linux-sys.h"
#include "linux-trace.h"

/**
 * struct made - a class and the memory that the class refers to
 * @cls: the class
 * @labels: where the next label goes
 * @fields: the fields
 * @text: where the next NUL-terminated name goes
 */
struct made {
    struct ht_class cls;
    struct ht_label *labels;
    struct ht_field *fields;
    char *text;
};

static const char *add_text(struct made *m, const char *text, size_t len)
{
    char *p = m->text;

    memcpy(p, text, len);
    p[len] = '\0';
    m->text = p + len + 1;
    return p;
}

static struct made *made_new(const char *text)
{
    const size_t size = strlen(text);
    /* A label has at least three characters: "a=1" */
    const size_t nr_labels = size / 3 + 1;
    struct made *m = calloc(1, sizeof(*m) + nr_labels * sizeof(*m->labels) +
                               HT_FIELDS_MAX * sizeof(*m->fields) +
                               2 * size + 1);

    if (m) {
        m->labels = (struct ht_label *)(m + 1);
        m->fields = (struct ht_field *)(m->labels + nr_labels);
        m->text = (char *)(m->fields + HT_FIELDS_MAX);
        m->cls.fields = m->fields;
    }
    return m;
}

bool ht_event_is_on(const struct ht_class *cls)
{
    return __atomic_load_n(__atomic_load_n(&cls->on, __ATOMIC_ACQUIRE),
                           __ATOMIC_RELAXED) == HT_ENABLE_ON;
}

static const char *skip_spaces(const char *s)
{
    while (*s == ' ' || *s == '\t' || *s == '\n') {
        s++;
    }
    return s;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= '0' && c <= '9');
}

static size_t word(const char *s)
{
    size_t n = 0;

    while (is_word(s[n])) {
        n++;
    }
    return n;
}

static bool is(const char *s, size_t len, const char *name)
{
    return strlen(name) == len && !memcmp(s, name, len);
}

static int parse_level(const char *s, size_t len)
{
    static const char *const names[] = {
        "emerg", "alert", "crit", "err", "warning", "notice", "info",
        "debug_system", "debug_program", "debug_process", "debug_module",
        "debug_unit", "debug_function", "debug_line", "debug",
    };
    unsigned i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (is(s, len, names[i])) {
            return i;
        }
    }
    return -1;
}

static bool parse_kind(struct ht_field *f, const char *s, size_t len)
{
    static const struct {
        const char *name;
        uint8_t kind, elem, flags;
    } kinds[] = {
        { "u8", HT_FIELD_U8, 0, 0 }, { "u16", HT_FIELD_U16, 0, 0 },
        { "u32", HT_FIELD_U32, 0, 0 }, { "u64", HT_FIELD_U64, 0, 0 },
        { "s8", HT_FIELD_S8, 0, 0 }, { "s16", HT_FIELD_S16, 0, 0 },
        { "s32", HT_FIELD_S32, 0, 0 }, { "s64", HT_FIELD_S64, 0, 0 },
        { "x8", HT_FIELD_U8, 0, HT_FIELD_HEX },
        { "x16", HT_FIELD_U16, 0, HT_FIELD_HEX },
        { "x32", HT_FIELD_U32, 0, HT_FIELD_HEX },
        { "x64", HT_FIELD_U64, 0, HT_FIELD_HEX },
        { "ptr", HT_FIELD_U64, 0, HT_FIELD_HEX },
        { "f32", HT_FIELD_F32, 0, 0 }, { "f64", HT_FIELD_F64, 0, 0 },
        { "text", HT_FIELD_TEXT, 0, 0 },
        { "bytes", HT_FIELD_SEQUENCE, HT_FIELD_U8, HT_FIELD_HEX },
        { "chars", HT_FIELD_U8, 0, HT_FIELD_UTF8 },
    };
    unsigned i;

    if (is(s, len, "bool")) {
        f->kind = HT_FIELD_U8;
        f->flags = HT_FIELD_LABELS;
        f->labels = ht_labels_bool;
        f->count = 2;
        return true;
    }
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (is(s, len, kinds[i].name)) {
            f->kind = kinds[i].kind;
            f->elem = kinds[i].elem;
            f->flags = kinds[i].flags;
            return true;
        }
    }
    return false;
}

/* Parse "[]" or "[6]" after the kind of the elements */
static const char *parse_count(struct ht_field *f, const char *s)
{
    unsigned long n;
    char *end;

    f->elem = f->kind;
    f->kind = HT_FIELD_SEQUENCE;
    if (s[1] != ']') {
        n = strtoul(s + 1, &end, 10);
        if (end == s + 1 || *end != ']' || n < 1 || n > UINT16_MAX) {
            return NULL;
        }
        f->kind = HT_FIELD_ARRAY;
        f->count = n;
        s = end - 1;
    }
    return s + 2;
}

/* Parse labels: "{idle=0, run=1}" for values, "{read=1 | write=2}" for bits */
static const char *parse_labels(struct made *m, struct ht_field *f,
                                const char *s)
{
    char *end, separator = 0;
    size_t len;

    f->flags |= HT_FIELD_LABELS;
    f->labels = m->labels;
    do {
        s = skip_spaces(s + 1);
        len = word(s);
        if (!len) {
            return NULL;
        }
        m->labels->name = add_text(m, s, len);
        s = skip_spaces(s + len);
        if (*s++ != '=') {
            return NULL;
        }
        m->labels->value = *skip_spaces(s) == '-' ? strtoll(s, &end, 0) :
                           (long long)strtoull(s, &end, 0);
        if (end == s) {
            return NULL;
        }
        s = skip_spaces(end);
        m->labels++;
        f->count++;
        if (*s == '}') {
            f->flags |= separator == '|' ? HT_FIELD_BITS : 0;
            return s + 1;
        }
        separator = separator ? separator : *s;
    } while (*s == separator && (*s == ',' || *s == '|'));
    return NULL;
}

static const char *parse_field(struct made *m, struct ht_field *f,
                               const char *s)
{
    size_t len = word(s);

    if (!parse_kind(f, s, len)) {
        return NULL;
    }
    s = skip_spaces(s + len);
    if (*s == '[') {
        s = parse_count(f, s);
    } else if (*s == '{') {
        s = parse_labels(m, f, s);
    }
    if (!s || (f->flags & HT_FIELD_UTF8 && f->kind != HT_FIELD_ARRAY)) {
        return NULL;
    }
    s = skip_spaces(s);
    len = word(s);
    if (!len) {
        return NULL;
    }
    f->name = add_text(m, s, len);
    return skip_spaces(s + len);
}

struct ht_class *ht_event_parse(const char *text)
{
    struct made *m = made_new(text);
    const char *s = skip_spaces(text), *name = s;
    int level = HT_LEVEL_DEBUG;

    if (!m) {
        return NULL;
    }
    while (is_word(*s) || *s == '.' || *s == '-') {
        s++;
    }
    m->cls.name = add_text(m, name, s - name);
    if (*s == ':') {
        level = parse_level(s + 1, word(s + 1));
        s += 1 + word(s + 1);
    }
    s = skip_spaces(s);
    while (s && *s && m->cls.nr_fields < HT_FIELDS_MAX) {
        s = parse_field(m, &m->fields[m->cls.nr_fields], s);
        m->cls.nr_fields++;
        if (s && *s == ';') {
            s = skip_spaces(s + 1);
        } else if (s && *s) {
            s = NULL;
        }
    }
    m->cls.loglevel = level;
    if (!s || *s || level < 0 || !ht_class_valid(&m->cls) ||
        !ht_trace_add_class(&m->cls)) {
        free(m);
        return NULL;
    }
    return &m->cls;
}

/* This thread's own stream, or NULL */
static __thread struct ht_stream *slot HT_TLS_MODEL;

static unsigned kind_bytes(unsigned kind)
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
    default:
        return 8;
    }
}

static bool integer_fits(unsigned kind, const struct ht_value *v)
{
    const unsigned bits = 8 * kind_bytes(kind);
    const bool is_signed = kind >= HT_FIELD_S8;

    if (v->type == HT_VALUE_UNSIGNED) {
        return !(bits - is_signed < 64 && v->u >> (bits - is_signed));
    }
    /* A signed kind: all bits from the kind's sign bit on must be equal. */
    return v->type == HT_VALUE_SIGNED && (is_signed || v->s >= 0) &&
           (bits == 64 || (is_signed ? v->s >> (bits - 1) == 0 ||
                                       v->s >> (bits - 1) == -1 :
                                       v->u >> bits == 0));
}

static unsigned elem_bytes(const struct ht_field *f)
{
    return f->kind == HT_FIELD_TEXT ? 1 : kind_bytes(f->elem);
}

static bool memory_fits(const struct ht_field *f, const struct ht_value *v)
{
    return v->type == HT_VALUE_MEMORY && (v->p || !v->size) &&
           v->size % elem_bytes(f) == 0;
}

/* Return the size of a field in an event; 0 if the value does not fit */
static uint32_t value_bytes(const struct ht_field *f, const struct ht_value *v)
{
    switch (f->kind) {
    case HT_FIELD_TEXT:
    case HT_FIELD_SEQUENCE:
        return memory_fits(f, v) && v->size / elem_bytes(f) <= UINT16_MAX ?
               2 + v->size : 0;
    case HT_FIELD_ARRAY:
        return memory_fits(f, v) && v->size / elem_bytes(f) == f->count ?
               v->size : 0;
    case HT_FIELD_F32:
    case HT_FIELD_F64:
        return v->type == HT_VALUE_FLOAT ? kind_bytes(f->kind) : 0;
    default:
        return integer_fits(f->kind, v) ? kind_bytes(f->kind) : 0;
    }
}

static uint8_t *put_value(uint8_t *p, const struct ht_field *f,
                          const struct ht_value *v)
{
    float single;

    switch (f->kind) {
    case HT_FIELD_TEXT:
    case HT_FIELD_SEQUENCE:
        return ht_put_seq(p, v->p, v->size / elem_bytes(f), elem_bytes(f));
    case HT_FIELD_ARRAY:
        ht_copy(p, v->p, v->size);
        return p + v->size;
    case HT_FIELD_F32:
        single = v->f;
        ht_copy(p, &single, 4);
        return p + 4;
    default:
        /* Copy the low bytes of an integer, or all 8 bytes of a double. */
        ht_copy(p, &v->u, kind_bytes(f->kind));
        return p + kind_bytes(f->kind);
    }
}

static bool emit_values(const struct ht_class *cls,
                        const struct ht_value *values, uint32_t size)
{
    struct ht_stream *s = slot;
    bool own = s, done = false;
    unsigned i;
    uint8_t *p;

    if (!ht_event_is_on(cls)) {
        return false;
    }
    if (!own) {
        s = ht_trace_runtime.begin(&slot, cls);
    }
    while (s) {
        p = ht_get(s, cls->id, size);
        if (p) {
            for (i = 0; i < cls->nr_fields; i++) {
                p = put_value(p, &cls->fields[i], &values[i]);
            }
            ht_commit(s);
            done = true;
        }
        if (own && done) {
            break;
        }
        own = false;
        s = ht_trace_runtime.end(&slot, s, cls, done);
    }
    return done;
}

int ht_event_values(const struct ht_class *cls, const struct ht_value *values,
                    unsigned n)
{
    uint32_t size = 0, bytes;
    unsigned i;

    if (n != cls->nr_fields) {
        return -EINVAL;
    }
    for (i = 0; i < n; i++) {
        bytes = value_bytes(&cls->fields[i], &values[i]);
        if (!bytes) {
            return -EINVAL;
        }
        size += bytes;
    }
    return emit_values(cls, values, size);
}
