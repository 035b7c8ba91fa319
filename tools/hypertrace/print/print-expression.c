/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse expressions of print formats
 *
 * The arguments of a print format are expressions of C after preprocessing. The
 * text comes from a guest: nesting and number of nodes are bounded, and nothing
 * is read past the text's end.
 */
#include <string.h>

#include "hypertrace/base.h"
#include "print/print-parse.h"

/* Text for a value that cannot be computed */
#define NOT_KNOWN       "(not known)"

/* Precedence of ||, the lowest of all binary operators */
#define LOWEST          1

/*
 * A variable of a statement expression. The text of its value is parsed again
 * at each use. Each use thus has nodes of its own, and no node has two owners.
 */
typedef struct HtPrintVariable {
    struct HtPrintVariable *outer;
    const char *name;
    size_t len;
    PpType type;
    const char *p, *end;        /* text of the variable's value */
} HtPrintVariable;

static bool is_word(char c)
{
    return g_ascii_isalnum(c) || c == '_';
}

static void skip_blanks(HtPrintParse *p)
{
    while (p->p < p->end && g_ascii_isspace(*p->p)) {
        p->p++;
    }
}

bool ht_print_accept(HtPrintParse *p, const char *op)
{
    size_t len = strlen(op);

    skip_blanks(p);
    if ((size_t)(p->end - p->p) < len || memcmp(p->p, op, len)) {
        return false;
    }
    p->p += len;
    return true;
}

HtPrintNode *pp_fail(HtPrintParse *p, HtPrintNode *n, const char *format,
                         ...)
{
    va_list ap;

    if (!p->error) {
        va_start(ap, format);
        p->error = g_strdup_vprintf(format, ap);
        va_end(ap);
    }
    ht_print_node_free(n);
    return NULL;
}

bool pp_expect(HtPrintParse *p, const char *op)
{
    if (!ht_print_accept(p, op)) {
        pp_fail(p, NULL, "'%s' is missing before '%.*s'", op,
             (int)MIN(p->end - p->p, 20), p->p);
        return false;
    }
    return true;
}

/* Get the length of the next token if it is an identifier, else 0. */
static size_t peek_word(HtPrintParse *p)
{
    size_t len = 0;

    skip_blanks(p);
    if (p->p < p->end && g_ascii_isdigit(*p->p)) {
        return 0;
    }
    while (p->p + len < p->end && is_word(p->p[len])) {
        len++;
    }
    return len;
}

bool pp_accept_word(HtPrintParse *p, const char *word)
{
    size_t len = peek_word(p);

    if (len != strlen(word) || memcmp(p->p, word, len)) {
        return false;
    }
    p->p += len;
    return true;
}

char *pp_word(HtPrintParse *p)
{
    size_t len = peek_word(p);
    char *word = len ? g_strndup(p->p, len) : NULL;

    p->p += len;
    return word;
}

HtPrintNode *pp_node(HtPrintParse *p, HtPrintOp op)
{
    HtPrintNode *n;

    if (p->nodes++ >= HT_PRINT_NODES_MAX) {
        return pp_fail(p, NULL, "the format is too long");
    }
    n = g_new0(HtPrintNode, 1);
    n->op = op;
    n->bytes = 4;
    n->is_signed = true;
    return n;
}

HtPrintNode *pp_constant(HtPrintParse *p, uint64_t v, PpType t)
{
    HtPrintNode *n = pp_node(p, HT_OP_CONSTANT);

    if (n) {
        n->value = v;
        n->bytes = t.bytes;
        n->is_signed = t.is_signed;
    }
    return n;
}

/*
 * The node of a comparison or a logical operator has the type of the operands,
 * in which it is computed. The type of its value is int.
 */
PpType pp_type_of(const HtPrintNode *n)
{
    static const PpType integer = { 4, true, 0 };

    if ((n->op == HT_OP_UNARY && n->value == '!') ||
        (n->op == HT_OP_BINARY && strchr("<>=!&|", n->value & 0xff) &&
         n->value != '&' && n->value != '|' &&
         n->value != HT_OP2('<', '<') && n->value != HT_OP2('>', '>'))) {
        return integer;
    }
    return (PpType) { n->bytes, n->is_signed, n->pointee };
}

bool pp_is_constant(const HtPrintNode *n)
{
    return !n || (n->op == HT_OP_CONSTANT && !n->text);
}

/* Replace an expression by its value if all operands are numeric constants. */
static HtPrintNode *fold(HtPrintNode *n)
{
    PpType t = pp_type_of(n);
    bool unknown;
    uint64_t v;

    if (!pp_is_constant(n->a) || !pp_is_constant(n->b) ||
        !pp_is_constant(n->c)) {
        return n;
    }
    unknown = n->a->unknown || (n->b && n->b->unknown) ||
              (n->c && n->c->unknown);
    v = ht_print_value(n, NULL, 0);
    g_clear_pointer(&n->a, ht_print_node_free);
    g_clear_pointer(&n->b, ht_print_node_free);
    g_clear_pointer(&n->c, ht_print_node_free);
    n->op = HT_OP_CONSTANT;
    n->value = v;
    n->bytes = t.bytes;
    n->is_signed = t.is_signed;
    n->unknown = unknown;
    return n;
}

static HtPrintNode *cast(HtPrintParse *p, HtPrintNode *a, PpType t)
{
    HtPrintNode *n;
    bool same_bits;
    PpType from;

    if (!a || !t.bytes || a->op == HT_OP_CALL) {
        return a;
    }
    from = pp_type_of(a);
    /* the 64 bits that hold the value are the same after the cast */
    same_bits = t.bytes > from.bytes ?
                t.bytes == 8 || t.is_signed || !from.is_signed :
                t.bytes == from.bytes &&
                (t.bytes == 8 || t.is_signed == from.is_signed);
    if (same_bits && (a->op == HT_OP_CONSTANT || a->op == HT_OP_FIELD ||
                      (t.bytes == from.bytes &&
                       t.is_signed == from.is_signed))) {
        /*
         * Change the type of the node. A field is still read with the size that
         * it has in the record.
         */
        if (a->op == HT_OP_CONSTANT || a->op == HT_OP_FIELD) {
            a->bytes = t.bytes;
            a->is_signed = t.is_signed;
        }
        a->pointee = t.pointee ? t.pointee : a->pointee;
        return a;
    }
    n = pp_node(p, HT_OP_CAST);
    if (!n) {
        ht_print_node_free(a);
        return NULL;
    }
    n->a = a;
    n->bytes = t.bytes;
    n->is_signed = t.is_signed;
    n->pointee = t.pointee ? t.pointee : a->pointee;
    return fold(n);
}

/*
 * Get the type in which C computes a binary operator, by its usual arithmetic
 * conversions
 */
static PpType common_type(PpType a, PpType b)
{
    PpType t = { MAX(MAX(a.bytes, b.bytes), 4), true, 0 };

    t.is_signed = !((a.bytes == t.bytes && !a.is_signed) ||
                    (b.bytes == t.bytes && !b.is_signed));
    return t;
}

HtPrintNode *pp_binary(HtPrintParse *p, unsigned op, HtPrintNode *a,
                                HtPrintNode *b)
{
    bool shift = op == HT_OP2('<', '<') || op == HT_OP2('>', '>');
    PpType int_type = { 4, true, 0 }, t;
    HtPrintNode *n = a && b ? pp_node(p, HT_OP_BINARY) : NULL;

    if (!n) {
        ht_print_node_free(a);
        ht_print_node_free(b);
        return NULL;
    }
    t = common_type(pp_type_of(a), shift ? int_type : pp_type_of(b));
    if (op != HT_OP2('&', '&') && op != HT_OP2('|', '|')) {
        a = cast(p, a, t);
        b = shift ? b : cast(p, b, t);
    }
    /*
     * A name whose value the format does not define is unequal to every
     * value.
     */
    if ((op == HT_OP2('=', '=') || op == HT_OP2('!', '=')) && a && b &&
        (a->unknown || b->unknown)) {
        ht_print_node_free(a);
        ht_print_node_free(b);
        n->op = HT_OP_CONSTANT;
        n->value = op == HT_OP2('!', '=');
        return n;
    }
    n->a = a;
    n->b = b;
    n->value = op;
    n->bytes = t.bytes;
    n->is_signed = t.is_signed;
    if (!a || !b) {
        ht_print_node_free(n);
        return NULL;
    }
    return fold(n);
}

static bool skip_parentheses(HtPrintParse *p)
{
    unsigned depth = 0;

    skip_blanks(p);
    while (p->p < p->end) {
        char c = *p->p++;

        depth += c == '(' ? 1 : c == ')' && depth ? -1 : 0;
        if (!depth) {
            return c == ')';
        }
    }
    return false;
}

bool pp_type(HtPrintParse *p, PpType *t, bool *known)
{
    static const struct {
        const char *name;
        PpType type;
    } types[] = {
        { "bool", { 1, false, 0 } }, { "_Bool", { 1, false, 0 } },
        { "u8", { 1, false, 0 } }, { "s8", { 1, true, 0 } },
        { "u16", { 2, false, 0 } }, { "s16", { 2, true, 0 } },
        { "u32", { 4, false, 0 } }, { "s32", { 4, true, 0 } },
        { "u64", { 8, false, 0 } }, { "s64", { 8, true, 0 } },
        { "uint8_t", { 1, false, 0 } }, { "int8_t", { 1, true, 0 } },
        { "uint16_t", { 2, false, 0 } }, { "int16_t", { 2, true, 0 } },
        { "uint32_t", { 4, false, 0 } }, { "int32_t", { 4, true, 0 } },
        { "uint64_t", { 8, false, 0 } }, { "int64_t", { 8, true, 0 } },
        { "__le16", { 2, false, 0 } }, { "__be16", { 2, false, 0 } },
        { "__le32", { 4, false, 0 } }, { "__be32", { 4, false, 0 } },
        { "__le64", { 8, false, 0 } }, { "__be64", { 8, false, 0 } },
        { "gfp_t", { 4, false, 0 } }, { "pid_t", { 4, true, 0 } },
        { "dev_t", { 4, false, 0 } }, { "umode_t", { 2, false, 0 } },
        { "loff_t", { 8, true, 0 } }, { "sector_t", { 8, false, 0 } },
        { "blkcnt_t", { 8, false, 0 } }, { "ino_t", { 8, false, 0 } },
        { "ktime_t", { 8, true, 0 } }, { "dma_addr_t", { 8, false, 0 } },
        { "phys_addr_t", { 8, false, 0 } },
        { "resource_size_t", { 8, false, 0 } },
        { "size_t", { 8, false, 0 } }, { "ssize_t", { 8, true, 0 } },
        { "uintptr_t", { 8, false, 0 } }, { "pgoff_t", { 8, false, 0 } },
        { "void", { 1, false, 0 } },
    };
    bool is_unsigned = false, is_signed = false, any = false, tag = false;
    unsigned longs = 0, i;

    *t = (PpType) { 4, true, 0 };
    *known = false;
    for (;;) {
        const char *before = p->p;
        g_autofree char *word = pp_word(p);
        const char *name = word;

        if (!word) {
            break;
        }
        if (!strcmp(word, "const") || !strcmp(word, "volatile")) {
            continue;
        }
        if (tag) {
            tag = false;
            continue;
        }
        *known = true;
        if (!strcmp(word, "unsigned")) {
            is_unsigned = any = true;
        } else if (!strcmp(word, "signed")) {
            is_signed = any = true;
        } else if (!strcmp(word, "int")) {
            any = true;
        } else if (!strcmp(word, "long")) {
            longs++;
            any = true;
        } else if (!strcmp(word, "char")) {
            t->bytes = 1;
            any = true;
        } else if (!strcmp(word, "short")) {
            t->bytes = 2;
            any = true;
        } else if (!strcmp(word, "struct") || !strcmp(word, "union")) {
            t->bytes = 0;
            any = tag = true;
        } else if (!strcmp(word, "enum")) {
            any = tag = true;
        } else if (any) {
            p->p = before;
            break;
        } else {
            if (g_str_has_prefix(name, "__") && name[2] &&
                strchr("us", name[2])) {
                name += 2;      /* skip the "__" of names such as __u32 */
            }
            for (i = 0; i < G_N_ELEMENTS(types) &&
                        strcmp(types[i].name, name); i++) {
                ;
            }
            *known = i < G_N_ELEMENTS(types);
            *t = *known ? types[i].type : (PpType) { 0 };
            any = true;
            if (g_str_has_prefix(word, "typeof") ||
                !strcmp(word, "__typeof__")) {
                *known = skip_parentheses(p);
            }
            break;
        }
    }
    if (longs) {
        t->bytes = 8;
    }
    if (is_unsigned || is_signed) {
        t->is_signed = !is_unsigned;
    }
    while (any && ht_print_accept(p, "*")) {
        t->pointee = t->pointee ? 8 : t->bytes;
        t->bytes = 8;
        t->is_signed = false;
        *known = true;
        pp_accept_word(p, "const");
    }
    return any;
}

/* Consume "(TYPE)" and return true if it is a cast, else consume nothing. */
static bool accept_cast(HtPrintParse *p, PpType *t)
{
    const char *before = p->p;
    bool known;

    if (ht_print_accept(p, "(") && pp_type(p, t, &known) &&
        ht_print_accept(p, ")")) {
        skip_blanks(p);
        /*
         * "(name)" may be a type that is not known; it is a cast only if an
         * operand follows
         */
        if (known || (p->p < p->end && (is_word(*p->p) || *p->p == '('))) {
            return true;
        }
    }
    p->p = before;
    return false;
}

HtPrintNode *pp_field(HtPrintParse *p, HtPrintOp op,
                               const char *name)
{
    static const HtFtField common[] = {
        { .name = "common_type", .type = "unsigned short", .offset = 0,
          .size = 2, .kind = HT_FT_INT },
        { .name = "common_flags", .type = "unsigned char", .offset = 2,
          .size = 1, .kind = HT_FT_INT },
        { .name = "common_preempt_count", .type = "unsigned char", .offset = 3,
          .size = 1, .kind = HT_FT_INT },
        { .name = "common_pid", .type = "int", .offset = 4, .size = 4,
          .kind = HT_FT_INT, .is_signed = true },
    };
    const HtFtField *f = ht_ft_event_field(p->event, name);
    HtPrintNode *n;
    unsigned i;

    for (i = 0; !f && i < G_N_ELEMENTS(common); i++) {
        f = strcmp(name, common[i].name) ? NULL : &common[i];
    }
    if (!f) {
        return pp_fail(p, NULL, "there is no field '%s'", name);
    }
    n = pp_node(p, op);
    if (n) {
        n->field = *f;
        n->field.name = n->field.type = NULL;
        if (op == HT_OP_FIELD) {
            n->bytes = f->kind == HT_FT_INT ? f->size : 8;
            /*
             * A field of type char is unsigned, as on all architectures since
             * Linux 6.2.
             */
            n->is_signed = f->kind == HT_FT_INT && f->is_signed &&
                           strcmp(f->type, "char");
            n->field.is_signed = n->is_signed;
        }
    }
    return n;
}

/* Remove casts before the field, for example in (const u8 *)REC->data. */
HtPrintNode *pp_place(HtPrintParse *p, HtPrintOp op, HtPrintNode *n)
{
    while (n && n->op == HT_OP_CAST) {
        HtPrintNode *a = g_steal_pointer(&n->a);

        a->pointee = n->pointee ? n->pointee : a->pointee;
        ht_print_node_free(n);
        n = a;
    }
    if (!n || n->op != HT_OP_FIELD) {
        return pp_fail(p, n, "a pointer does not point to a field");
    }
    n->op = op;
    return n;
}

static HtPrintNode *element(HtPrintParse *p, HtPrintNode *array,
                            HtPrintNode *index)
{
    HtPrintNode *n = index ? pp_place(p, HT_OP_ELEMENT, array) : NULL;

    if (!n) {
        if (!index) {
            ht_print_node_free(array);
        }
        ht_print_node_free(index);
        return NULL;
    }
    n->a = index;
    n->is_signed = n->field.is_signed;
    n->bytes = n->pointee ? n->pointee :
               n->field.elem_size ? n->field.elem_size : 1;
    n->pointee = 0;
    return n;
}

static HtPrintNode *number(HtPrintParse *p)
{
    g_autofree char *text = NULL;
    bool is_unsigned = false;
    unsigned longs = 0;
    size_t len = 0;
    PpType t = { 0 };
    uint64_t v;
    char *end;

    while (p->p + len < p->end && is_word(p->p[len])) {
        len++;
    }
    text = g_strndup(p->p, len);
    v = g_ascii_strtoull(text, &end, 0);
    for (; *end && strchr("uUlL", *end); end++) {
        is_unsigned |= *end == 'u' || *end == 'U';
        longs += *end == 'l' || *end == 'L';
    }
    if (*end || end == text) {
        return pp_fail(p, NULL, "'%s' is not a number", text);
    }
    p->p += len;
    t.bytes = longs || v > (is_unsigned ? UINT32_MAX : INT32_MAX) ? 8 : 4;
    t.is_signed = !is_unsigned;
    /*
     * In C, an octal or hexadecimal constant is unsigned if it fits only in the
     * unsigned type of its size.
     */
    if (*text == '0' && !is_unsigned) {
        t.bytes = longs || v > UINT32_MAX ? 8 : 4;
        t.is_signed = v <= (t.bytes == 8 ? (uint64_t)INT64_MAX : INT32_MAX);
    }
    return pp_constant(p, v, t);
}

bool ht_print_string(HtPrintParse *p, char **out)
{
    g_autoptr(GString) all = NULL;

    for (skip_blanks(p); p->p < p->end && *p->p == '"'; skip_blanks(p)) {
        g_autofree char *raw = NULL, *text = NULL;
        const char *begin = ++p->p;

        while (p->p < p->end && *p->p != '"') {
            p->p += *p->p == '\\' && p->p + 1 < p->end ? 2 : 1;
        }
        if (p->p >= p->end) {
            pp_fail(p, NULL, "a string has no end");
            return false;
        }
        raw = g_strndup(begin, p->p++ - begin);
        text = g_strcompress(raw);
        all = all ? all : g_string_new(NULL);
        g_string_append(all, text);
    }
    *out = all ? g_string_free(g_steal_pointer(&all), false) : NULL;
    return *out != NULL;
}

static HtPrintNode *character(HtPrintParse *p)
{
    g_autofree char *raw = NULL, *text = NULL;
    const char *begin = ++p->p;

    while (p->p < p->end && *p->p != '\'') {
        p->p += *p->p == '\\' && p->p + 1 < p->end ? 2 : 1;
    }
    if (p->p >= p->end) {
        return pp_fail(p, NULL, "a character has no end");
    }
    raw = g_strndup(begin, p->p++ - begin);
    text = g_strcompress(raw);
    return pp_constant(p, (uint8_t)text[0], (PpType) { 4, true, 0 });
}

static HtPrintNode *variable(HtPrintParse *p, const HtPrintVariable *v)
{
    HtPrintParse inner = *p;
    HtPrintNode *n;

    inner.p = v->p;
    inner.end = v->end;
    inner.variables = v->outer;
    n = ht_print_expression(&inner);
    p->nodes = inner.nodes;
    p->calls = inner.calls;
    p->error = inner.error;
    return cast(p, n, v->type);
}

/*
 * Skip a declaration's value. Returns false if the value has a quote or does
 * not end with ';'.
 */
static bool skip_value(HtPrintParse *p)
{
    unsigned parens = 0;

    for (; p->p < p->end; p->p++) {
        if (*p->p == '"' || *p->p == '\'') {
            return false;
        }
        if (*p->p == ';' && !parens) {
            return true;
        }
        parens += *p->p == '(' ? 1 : *p->p == ')' && parens ? -1 : 0;
    }
    return false;
}

/*
 * Skip statements that are not understood, up to the "})" that ends them. The
 * text NOT_KNOWN is printed in their place; otherwise, they are treated as a
 * call of an unknown function.
 */
static HtPrintNode *unknown_statement(HtPrintParse *p)
{
    unsigned depth = 2;
    HtPrintNode *n;

    while (depth && p->p < p->end) {
        char c = *p->p++;

        while ((c == '"' || c == '\'') && p->p < p->end && *p->p != c) {
            p->p += *p->p == '\\' && p->p + 1 < p->end ? 2 : 1;
        }
        p->p += (c == '"' || c == '\'') && p->p < p->end;
        depth += c == '(' || c == '{' ? 1 : c == ')' || c == '}' ? -1 : 0;
    }
    n = depth ? pp_fail(p, NULL, "a statement has no end") :
        pp_node(p, HT_OP_CALL);
    if (n) {
        p->calls++;
        n->text = g_strdup(NOT_KNOWN);
        n->value = 1;
    }
    return n;
}

/* Parse a statement expression after "({": declarations and one expression. */
static HtPrintNode *statement(HtPrintParse *p)
{
    HtPrintVariable *outer = p->variables, *made;
    bool understood = true;
    HtPrintNode *n = NULL;

    for (;;) {
        const char *before = p->p;
        HtPrintVariable *v = g_new0(HtPrintVariable, 1);
        bool known;

        v->len = pp_type(p, &v->type, &known) ? peek_word(p) : 0;
        if (!v->len) {
            g_free(v);
            p->p = before;
            break;
        }
        v->name = p->p;
        p->p += v->len;
        v->outer = p->variables;
        p->variables = v;
        if (!ht_print_accept(p, "=")) {
            understood = false;
            break;
        }
        v->p = p->p;
        if (!skip_value(p)) {
            understood = false;
            p->p = v->p;
            break;
        }
        v->end = p->p++;
    }
    if (!understood) {
        n = unknown_statement(p);
    } else {
        n = ht_print_expression(p);
    }
    if (n && understood &&
        (!pp_expect(p, ";") || !pp_expect(p, "}") || !pp_expect(p, ")"))) {
        g_clear_pointer(&n, ht_print_node_free);
    }
    while (p->variables != outer) {
        made = p->variables;
        p->variables = made->outer;
        g_free(made);
    }
    return n;
}

static HtPrintNode *name(HtPrintParse *p)
{
    g_autofree char *word = pp_word(p);
    const HtPrintVariable *v;
    HtPrintNode *n;

    if (!strcmp(word, "REC")) {
        g_autofree char *field = NULL;

        /* In "(REC)->field", accept_record() has skipped only the "(". */
        ht_print_accept(p, ")");
        field = ht_print_accept(p, "->") ? pp_word(p) : NULL;
        if (field && !strcmp(field, "ent") && ht_print_accept(p, ".")) {
            /*
             * The header of each event, "REC->ent": its member "pid" is the
             * field "common_pid".
             */
            g_autofree char *member = pp_word(p);

            g_free(field);
            field = member ? g_strconcat("common_", member, NULL) : NULL;
        }
        return field ? pp_field(p, HT_OP_FIELD, field) :
               pp_fail(p, NULL, "a field is missing");
    }
    for (v = p->variables; v; v = v->outer) {
        if (v->len == strlen(word) && !memcmp(v->name, word, v->len)) {
            return variable(p, v);
        }
    }
    skip_blanks(p);
    if (p->p < p->end && *p->p == '(') {
        return pp_call(p, word);
    }
    if (!strcmp(word, "sizeof")) {
        return pp_sizeof(p);
    }
    n = pp_constant(p, !strcmp(word, "true"), (PpType) { 4, true, 0 });
    if (n) {
        n->unknown = strcmp(word, "true") && strcmp(word, "false") &&
                     strcmp(word, "NULL");
    }
    return n;
}

static bool accept_record(HtPrintParse *p)
{
    const char *before = p->p;

    if (ht_print_accept(p, "(") && pp_accept_word(p, "REC") &&
        ht_print_accept(p, ")")) {
        p->p = before;
        return ht_print_accept(p, "(");
    }
    p->p = before;
    return false;
}

static HtPrintNode *primary(HtPrintParse *p)
{
    HtPrintNode *n;
    char *text;

    skip_blanks(p);
    if (p->p >= p->end) {
        return pp_fail(p, NULL, "an argument is missing");
    }
    if (g_ascii_isdigit(*p->p)) {
        return number(p);
    }
    if (*p->p == '"') {
        if (!ht_print_string(p, &text)) {
            return NULL;
        }
        n = pp_node(p, HT_OP_CONSTANT);
        if (n) {
            n->text = text;
            n->bytes = 8;
        } else {
            g_free(text);
        }
        return n;
    }
    if (*p->p == '\'') {
        return character(p);
    }
    if (accept_record(p) || peek_word(p)) {
        return name(p);
    }
    if (ht_print_accept(p, "(")) {
        if (ht_print_accept(p, "{")) {
            return statement(p);
        }
        n = ht_print_expression(p);
        return n && pp_expect(p, ")") ? n : pp_fail(p, n, "')' is missing");
    }
    return pp_fail(p, NULL, "'%.*s' is not understood",
                (int)MIN(p->end - p->p, 20), p->p);
}

static HtPrintNode *postfix(HtPrintParse *p)
{
    HtPrintNode *n = primary(p);

    while (n && ht_print_accept(p, "[")) {
        n = element(p, n, ht_print_expression(p));
        if (n && !pp_expect(p, "]")) {
            g_clear_pointer(&n, ht_print_node_free);
        }
    }
    if (n && (ht_print_accept(p, "->") || ht_print_accept(p, "."))) {
        return pp_fail(p, n, "members of structures are not known");
    }
    return n;
}

/*
 * Get the address of a node. The address of an element of an array field with
 * a constant index is that field without the elements before the element.
 * Another node is returned unchanged.
 */
static HtPrintNode *address(HtPrintNode *n)
{
    HtFtField *f = &n->field;

    if (n->op == HT_OP_ELEMENT && f->kind == HT_FT_ARRAY &&
        pp_is_constant(n->a) && n->a->value < f->size / n->bytes) {
        n->op = HT_OP_FIELD;
        f->offset += n->a->value * n->bytes;
        f->size -= n->a->value * n->bytes;
        g_clear_pointer(&n->a, ht_print_node_free);
    }
    return n;
}

static HtPrintNode *operate(HtPrintParse *p, char op)
{
    HtPrintNode *a, *n;
    PpType t;

    p->p++;
    a = pp_unary(p);
    if (!a) {
        return NULL;
    }
    if (op == '*') {
        return element(p, a, pp_constant(p, 0, (PpType) { 4, true, 0 }));
    }
    if (op == '&' || op == '+') {
        return op == '&' ? address(a) : a;
    }
    t = common_type(pp_type_of(a), (PpType) { 4, true, 0 });
    a = op == '!' ? a : cast(p, a, t);
    n = a ? pp_node(p, HT_OP_UNARY) : NULL;
    if (!n) {
        ht_print_node_free(a);
        return NULL;
    }
    n->a = a;
    n->value = op;
    n->bytes = t.bytes;
    n->is_signed = t.is_signed;
    return fold(n);
}

HtPrintNode *pp_unary(HtPrintParse *p)
{
    HtPrintNode *n;
    PpType t;

    if (p->depth >= HT_PRINT_DEPTH) {
        return pp_fail(p, NULL, "an expression is too deep");
    }
    p->depth++;
    skip_blanks(p);
    if (accept_cast(p, &t)) {
        n = cast(p, pp_unary(p), t);
    } else if (p->p < p->end && strchr("!~-+*&", *p->p)) {
        n = operate(p, *p->p);
    } else {
        n = postfix(p);
    }
    p->depth--;
    return n;
}

/* Get the next binary operator; 0: none, or its precedence is below @lowest */
static unsigned peek_operator(HtPrintParse *p, unsigned lowest,
                              unsigned *precedence)
{
    static const struct {
        const char *text;
        unsigned precedence;
    } operators[] = {
        { "||", 1 }, { "&&", 2 }, { "==", 6 }, { "!=", 6 }, { "<<", 8 },
        { ">>", 8 }, { "<=", 7 }, { ">=", 7 }, { "|", 3 }, { "^", 4 },
        { "&", 5 }, { "<", 7 }, { ">", 7 }, { "+", 9 }, { "-", 9 },
        { "*", 10 }, { "/", 10 }, { "%", 10 },
    };
    unsigned i;

    skip_blanks(p);
    for (i = 0; i < G_N_ELEMENTS(operators); i++) {
        size_t len = strlen(operators[i].text);

        if ((size_t)(p->end - p->p) >= len &&
            !memcmp(p->p, operators[i].text, len)) {
            *precedence = operators[i].precedence;
            return *precedence < lowest ? 0 : len == 2 ?
                   HT_OP2(p->p[0], p->p[1]) : p->p[0];
        }
    }
    return 0;
}

static HtPrintNode *binary(HtPrintParse *p, unsigned lowest)
{
    HtPrintNode *n = pp_unary(p);
    unsigned op, precedence;

    while (n && (op = peek_operator(p, lowest, &precedence)) != 0) {
        p->p += op > 0xff ? 2 : 1;
        n = pp_binary(p, op, n, binary(p, precedence + 1));
    }
    return n;
}

static HtPrintNode *conditional(HtPrintParse *p)
{
    const char *begin = p->p, *after;
    HtPrintNode *a = binary(p, LOWEST), *n;
    PpType t;

    if (!a || !ht_print_accept(p, "?")) {
        return a;
    }
    n = pp_node(p, HT_OP_SELECT);
    if (!n) {
        ht_print_node_free(a);
        return NULL;
    }
    n->a = a;
    after = p->p;
    if (ht_print_accept(p, ":")) {
        /* "a ?: b" is "a ? a : b" */
        p->p = begin;
        n->b = binary(p, LOWEST);
        p->p = after;
    } else {
        n->b = ht_print_expression(p);
    }
    n->c = n->b && pp_expect(p, ":") ? ht_print_expression(p) : NULL;
    if (!n->c) {
        return pp_fail(p, n, "':' is missing");
    }
    t = common_type(pp_type_of(n->b), pp_type_of(n->c));
    n->bytes = t.bytes;
    n->is_signed = t.is_signed;
    return fold(n);
}

HtPrintNode *ht_print_expression(HtPrintParse *p)
{
    HtPrintNode *n;

    if (p->depth >= HT_PRINT_DEPTH) {
        return pp_fail(p, NULL, "an expression is too deep");
    }
    p->depth++;
    n = conditional(p);
    p->depth--;
    return n;
}
