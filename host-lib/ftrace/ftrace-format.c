/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse the formats of a Linux guest's trace events
 */
#include "hypertrace/ftrace-format.h"
#include "text.h"

struct HtFtFormats {
    /* private copy of the parsed text; the events point into it */
    char *text;
    GStringChunk *names;
    /* array of HtFtEvent, in the order of the text */
    GArray *events;
    GPtrArray *fields;          /* the arrays that HtFtEvent.fields point to */
    unsigned skipped;
    /* by event id: index in @events plus 1; 0: there is no such event */
    uint32_t by_id[UINT16_MAX + 1];
    struct {
        const char *text;
        size_t size;
    } header[2];
};

static const char * const header_names[] = { "header_page", "header_event" };

typedef struct Span {
    const char *p;
    const char *end;
} Span;

static bool next_line(Span *text, Span *line)
{
    const char *nl;

    if (text->p == text->end) {
        return false;
    }
    nl = memchr(text->p, '\n', text->end - text->p);
    line->p = text->p;
    line->end = nl ? nl : text->end;
    text->p = nl ? nl + 1 : text->end;
    if (line->end > line->p && line->end[-1] == '\r') {
        line->end--;
    }
    return true;
}

static bool skip(Span *s, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len)) {
        return false;
    }
    s->p += len;
    return true;
}

static void skip_blanks(Span *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t')) {
        s->p++;
    }
}

/* Parse a decimal number of at most @max */
static bool number(Span *s, uint32_t max, uint32_t *value)
{
    uint32_t v = 0;
    const char *begin;

    skip_blanks(s);
    for (begin = s->p; s->p < s->end && g_ascii_isdigit(*s->p); s->p++) {
        v = v * 10 + (*s->p - '0');
        if (v > max) {
            return false;
        }
    }
    *value = v;
    return s->p > begin;
}

static bool is_word(char c)
{
    return g_ascii_isalnum(c) || c == '_';
}

/*
 * Copy a name; returns NULL if it is empty or too long, or if it has other
 * characters than letters, digits and "_-.:"
 */
static const char *name_of(HtFtFormats *f, Span s)
{
    const char *p;

    skip_blanks(&s);
    if (s.p == s.end || s.end - s.p > HT_FT_NAME_MAX) {
        return NULL;
    }
    for (p = s.p; p < s.end; p++) {
        if (!is_word(*p) && *p != '-' && *p != '.' && *p != ':') {
            return NULL;
        }
    }
    return g_string_chunk_insert_len(f->names, s.p, s.end - s.p);
}

/* Split a declaration "TYPE NAME", "TYPE NAME[N]" or "TYPE[] NAME" */
static bool split_declaration(Span d, Span *type, Span *name, Span *brackets)
{
    const char *p;

    for (p = d.p; p < d.end; p++) {
        if (!g_ascii_isprint(*p)) {
            return false;
        }
    }
    *brackets = (Span){ d.end, d.end };
    if (d.p < d.end && d.end[-1] == ']') {
        p = memchr(d.p, '[', d.end - d.p);
        if (!p) {
            return false;
        }
        *brackets = (Span){ p, d.end };
        d.end = p;
    }
    while (d.end > d.p && d.end[-1] == ' ') {
        d.end--;
    }
    for (p = d.end; p > d.p && is_word(p[-1]); p--) {
        ;
    }
    *name = (Span){ p, d.end };
    while (p > d.p && (p[-1] == ' ' || p[-1] == '\t')) {
        p--;
    }
    *type = (Span){ d.p, p };
    return name->p < name->end && !g_ascii_isdigit(*name->p) &&
           name->end - name->p <= HT_FT_NAME_MAX && type->p < type->end &&
           type->end - type->p <= HT_FT_NAME_MAX;
}

static bool ends_with(Span s, const char *what)
{
    size_t len = strlen(what);

    return (size_t)(s.end - s.p) >= len && !memcmp(s.end - len, what, len);
}

static bool contains(Span s, const char *what)
{
    return g_strstr_len(s.p, s.end - s.p, what);
}

/* Size of a type in bytes, by its name; 0 if the name is not known */
static unsigned known_size(Span type)
{
    static const struct {
        const char *name;
        unsigned size;
    } known[] = {
        { "char", 1 }, { "u8", 1 }, { "s8", 1 }, { "bool", 1 },
        { "uint8_t", 1 }, { "int8_t", 1 },
        { "u16", 2 }, { "s16", 2 }, { "short", 2 }, { "__le16", 2 },
        { "__be16", 2 }, { "uint16_t", 2 }, { "int16_t", 2 },
        { "u32", 4 }, { "s32", 4 }, { "int", 4 }, { "unsigned", 4 },
        { "__le32", 4 }, { "__be32", 4 }, { "uint32_t", 4 },
        { "int32_t", 4 },
        { "u64", 8 }, { "s64", 8 }, { "long", 8 }, { "*", 8 },
        { "__le64", 8 }, { "__be64", 8 }, { "uint64_t", 8 },
        { "int64_t", 8 }, { "dma_addr_t", 8 }, { "phys_addr_t", 8 },
        { "size_t", 8 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(known); i++) {
        Span before = type;

        if (!ends_with(type, known[i].name)) {
            continue;
        }
        before.end -= strlen(known[i].name);
        if (before.end == before.p || !is_word(before.end[-1]) ||
            ends_with(before, "__") || known[i].name[0] == '*') {
            return known[i].size;
        }
    }
    return 0;
}

static bool is_char(Span type)
{
    return ends_with(type, "char") && !contains(type, "unsigned");
}

static void classify(HtFtField *field, Span type, Span brackets)
{
    bool dynamic = skip(&type, "__data_loc ");
    uint32_t count = 0;
    unsigned elem;

    if (!dynamic && skip(&type, "__rel_loc ")) {
        dynamic = field->relative = true;
    }
    if (ends_with(type, "[]")) {
        type.end -= 2;
    }
    elem = known_size(type);
    field->elem_size = elem ? elem : 1;
    if (dynamic) {
        field->kind = is_char(type) ? HT_FT_DYN_STRING : HT_FT_DYN_ARRAY;
        if (field->size != 4) {
            field->kind = HT_FT_BYTES;
        }
        return;
    }
    if (brackets.p == brackets.end && field->size) {
        field->is_pointer = ends_with(type, "*");
        field->kind = field->size == 1 || field->size == 2 ||
                      field->size == 4 || field->size == 8 ?
                      HT_FT_INT : HT_FT_BYTES;
        field->elem_size = field->kind == HT_FT_INT ? field->size : 1;
        return;
    }
    if (is_char(type)) {
        field->kind = HT_FT_STRING;
        return;
    }
    /*
     * Compute an element's size from the field's size, which is more reliable
     * than the name of the type.
     */
    if (brackets.p < brackets.end) {
        brackets.p++;
        if (number(&brackets, UINT16_MAX, &count) && count &&
            field->size % count == 0) {
            elem = field->size / count;
        }
    }
    if (elem == 1 || elem == 2 || elem == 4 || elem == 8) {
        field->elem_size = elem;
        field->kind = HT_FT_ARRAY;
    } else {
        field->elem_size = 1;
        field->kind = HT_FT_BYTES;
    }
}

static bool attribute(Span *s, const char *name, uint32_t max,
                      uint32_t *value)
{
    skip_blanks(s);
    return skip(s, name) && number(s, max, value) && skip(s, ";");
}

/* Parse the line "field:DECLARATION; offset:N; size:N; signed:N;" */
static bool parse_field(HtFtFormats *f, Span line, HtFtField *field)
{
    uint32_t offset, size, is_signed;
    Span decl, type, name, brackets;
    g_autofree char *full = NULL;
    const char *semicolon;

    memset(field, 0, sizeof(*field));
    skip_blanks(&line);
    if (!skip(&line, "field:")) {
        return false;
    }
    semicolon = memchr(line.p, ';', line.end - line.p);
    if (!semicolon) {
        return false;
    }
    decl = (Span){ line.p, semicolon };
    line.p = semicolon + 1;
    if (!split_declaration(decl, &type, &name, &brackets) ||
        !attribute(&line, "offset:", UINT16_MAX, &offset) ||
        !attribute(&line, "size:", UINT16_MAX, &size) ||
        !attribute(&line, "signed:", 1, &is_signed) ||
        brackets.end - brackets.p > HT_FT_NAME_MAX) {
        return false;
    }
    field->offset = offset;
    field->size = size;
    field->is_signed = is_signed;
    field->name = g_string_chunk_insert_len(f->names, name.p,
                                            name.end - name.p);
    full = g_strdup_printf("%.*s%.*s", (int)(type.end - type.p), type.p,
                           (int)(brackets.end - brackets.p), brackets.p);
    field->type = g_string_chunk_insert_const(f->names, full);
    classify(field, type, brackets);
    return true;
}

/*
 * Test whether a common field has the offset and size that known kernels give
 * it; other fields pass
 */
static bool common_ok(const HtFtField *field)
{
    static const struct {
        const char *name;
        unsigned offset, size;
    } common[] = {
        { "common_type", 0, 2 }, { "common_flags", 2, 1 },
        { "common_preempt_count", 3, 1 }, { "common_pid", 4, 4 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(common); i++) {
        if (!strcmp(field->name, common[i].name)) {
            return field->offset == common[i].offset &&
                   field->size == common[i].size;
        }
    }
    return true;
}

static int by_offset(const void *a, const void *b)
{
    const HtFtField *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/*
 * Parse one event, from the line after "name:" to the next "name:", "system:"
 * or "header:"; returns false if the event is malformed, or if an earlier event
 * has its id.
 */
static bool parse_event(HtFtFormats *f, HtFtEvent *event, Span text)
{
    HtFtField fields[HT_FT_FIELDS_MAX], *copy;
    bool have_id = false;
    unsigned n = 0;
    uint32_t id;
    Span line;

    while (next_line(&text, &line)) {
        Span rest = line;

        skip_blanks(&rest);
        if (skip(&rest, "ID:")) {
            if (!number(&rest, UINT16_MAX, &id)) {
                return false;
            }
            event->id = id;
            have_id = true;
        } else if (skip(&rest, "print fmt:")) {
            break;
        } else if (skip(&rest, "field:")) {
            if (n == HT_FT_FIELDS_MAX || !parse_field(f, line, &fields[n]) ||
                !common_ok(&fields[n])) {
                return false;
            }
            n += !g_str_has_prefix(fields[n].name, "common_");
        }
    }
    if (!have_id || f->by_id[event->id]) {
        return false;
    }
    qsort(fields, n, sizeof(*fields), by_offset);
    copy = g_memdup2(fields, n * sizeof(*fields));
    g_ptr_array_add(f->fields, copy);
    event->fields = copy;
    event->nr_fields = n;
    return true;
}

static void add_event(HtFtFormats *f, const char *system, Span name,
                      const char *begin, Span text)
{
    HtFtEvent event = {
        .system = system,
        .name = name_of(f, name),
        .text = begin,
        .text_size = text.end - begin,
    };

    if (!system || !event.name || !parse_event(f, &event, text)) {
        f->skipped++;
        return;
    }
    g_array_append_val(f->events, event);
    f->by_id[event.id] = f->events->len;
}

/* Take the lines up to the next "name:", "system:" or "header:" */
static Span section(Span *text)
{
    Span s = *text, line, rest;
    const char *before = text->p;

    while (next_line(text, &line)) {
        rest = line;
        if (skip(&rest, "name:") || skip(&rest, "system:") ||
            skip(&rest, "header:")) {
            text->p = before;
            break;
        }
        before = text->p;
    }
    s.end = text->p;
    return s;
}

static void parse(HtFtFormats *f, Span text)
{
    const char *system = NULL, *begin = text.p;
    Span line, body;
    unsigned i;

    while (next_line(&text, &line)) {
        if (skip(&line, "system:")) {
            system = name_of(f, line);
        } else if (skip(&line, "header:")) {
            skip_blanks(&line);
            body = section(&text);
            for (i = 0; i < G_N_ELEMENTS(header_names); i++) {
                if (skip(&line, header_names[i]) && line.p == line.end) {
                    f->header[i].text = body.p;
                    f->header[i].size = body.end - body.p;
                    break;
                }
            }
        } else if (skip(&line, "name:")) {
            body = section(&text);
            add_event(f, system, line, begin, body);
        }
        begin = text.p;
    }
}

HtFtFormats *ht_ft_formats_parse(const char *text, size_t size,
                                 GError **error)
{
    HtFtFormats *f;
    char *copy = ht_text_copy(text, size, HT_FT_FORMATS_MAX, "event formats",
                              error);

    if (!copy) {
        return NULL;
    }
    f = g_new0(HtFtFormats, 1);
    f->text = copy;
    f->names = g_string_chunk_new(4096);
    f->events = g_array_new(false, false, sizeof(HtFtEvent));
    f->fields = g_ptr_array_new_with_free_func(g_free);
    parse(f, (Span){ f->text, f->text + size });
    if (!f->events->len) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "event formats without an event; %u were malformed",
                    f->skipped);
        ht_ft_formats_free(f);
        return NULL;
    }
    return f;
}

void ht_ft_formats_free(HtFtFormats *f)
{
    if (f) {
        g_ptr_array_free(f->fields, true);
        g_array_free(f->events, true);
        g_string_chunk_free(f->names);
        g_free(f->text);
        g_free(f);
    }
}

const HtFtEvent *ht_ft_formats_get(const HtFtFormats *f, uint16_t id)
{
    uint32_t n = f->by_id[id];

    return n ? &g_array_index(f->events, HtFtEvent, n - 1) : NULL;
}

unsigned ht_ft_formats_count(const HtFtFormats *f)
{
    return f->events->len;
}

const HtFtEvent *ht_ft_formats_nth(const HtFtFormats *f, unsigned n)
{
    return n < f->events->len ? &g_array_index(f->events, HtFtEvent, n) : NULL;
}

unsigned ht_ft_formats_skipped(const HtFtFormats *f)
{
    return f->skipped;
}

const char *ht_ft_formats_header(const HtFtFormats *f, const char *name,
                                 size_t *size)
{
    unsigned i;

    *size = 0;
    for (i = 0; i < G_N_ELEMENTS(header_names); i++) {
        if (!strcmp(name, header_names[i])) {
            *size = f->header[i].size;
            return f->header[i].text;
        }
    }
    return NULL;
}

const HtFtField *ht_ft_event_field(const HtFtEvent *e, const char *name)
{
    unsigned i;

    for (i = 0; i < e->nr_fields; i++) {
        if (!strcmp(e->fields[i].name, name)) {
            return &e->fields[i];
        }
    }
    return NULL;
}

const uint8_t *ht_ft_field_bytes(const HtFtField *field, const uint8_t *data,
                                 size_t size, size_t *len)
{
    size_t offset = field->offset, bytes = field->size;

    *len = 0;
    if (field->kind == HT_FT_DYN_STRING || field->kind == HT_FT_DYN_ARRAY) {
        uint32_t where;

        if (size < offset || size - offset < 4) {
            return NULL;
        }
        where = ht_get_le32(data + offset);
        offset = (where & 0xffff) + (field->relative ? offset + 4 : 0);
        bytes = where >> 16;
    } else if (!bytes) {
        bytes = SIZE_MAX;
    }
    if (offset > size) {
        return NULL;
    }
    *len = MIN(bytes, size - offset);
    return data + offset;
}

const char *ht_ft_field_str(const HtFtField *field, const uint8_t *data,
                            size_t size, size_t *len)
{
    const uint8_t *s, *nul;

    *len = 0;
    if (field->kind != HT_FT_STRING && field->kind != HT_FT_DYN_STRING) {
        return NULL;
    }
    s = ht_ft_field_bytes(field, data, size, len);
    nul = s ? memchr(s, 0, *len) : NULL;
    if (nul) {
        *len = nul - s;
    }
    return (const char *)s;
}
