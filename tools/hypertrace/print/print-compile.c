/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: from a print format, as libtraceevent understands it, to a
 * program
 */
#include <event-parse.h>
#include <string.h>

#include "print/print-program.h"

#define NAMES_MAX       1024

typedef struct Compile {
    const HtFtEvent *event;
    unsigned depth;
} Compile;

static HtPrintNode *compile(Compile *c, const struct tep_print_arg *arg);

/* "\n" in a format are two characters. */
static char *unescape(const char *s)
{
    return g_strcompress(s ? s : "");
}

static bool number(const char *s, uint64_t *v)
{
    bool negative = *s == '-';
    char *end;

    s += negative;
    if (!g_ascii_isdigit(*s)) {
        return false;
    }
    *v = g_ascii_strtoull(s, &end, 0);
    *v = negative ? -*v : *v;
    return !*end || strspn(end, "uUlL") == strlen(end);
}

static HtPrintNode *field_node(Compile *c, HtPrintOp op, const char *name)
{
    HtPrintNode *n = ht_print_node_new(op);

    if (!name || !ht_print_set_field(n, c->event, name)) {
        ht_print_node_free(n);
        return NULL;
    }
    return n;
}

/* A field that is meant as where its bytes are */
static HtPrintNode *place(Compile *c, HtPrintOp op,
                          const struct tep_print_arg *arg)
{
    while (arg && arg->type == TEP_PRINT_TYPE) {
        arg = arg->typecast.item;
    }
    if (!arg) {
        return NULL;
    }
    switch (arg->type) {
    case TEP_PRINT_FIELD:
        return field_node(c, op, arg->field.name);
    case TEP_PRINT_DYNAMIC_ARRAY:
        return field_node(c, op, arg->dynarray.field->name);
    default:
        return NULL;
    }
}

static HtPrintNode *atom(const char *s)
{
    HtPrintNode *n = ht_print_node_new(HT_OP_CONSTANT);

    if (!number(s, &n->value)) {
        n->text = unescape(s);
    }
    return n;
}

static HtPrintNode *cast(Compile *c, const struct tep_print_arg *arg)
{
    static const struct {
        const char *name;
        unsigned bytes;
        bool is_signed;
    } types[] = {
        { "char", 1, true }, { "s8", 1, true }, { "u8", 1, false },
        { "__u8", 1, false }, { "unsigned char", 1, false },
        { "short", 2, true }, { "s16", 2, true }, { "u16", 2, false },
        { "__u16", 2, false }, { "unsigned short", 2, false },
        { "int", 4, true }, { "s32", 4, true }, { "u32", 4, false },
        { "__u32", 4, false }, { "unsigned", 4, false },
        { "unsigned int", 4, false },
    };
    HtPrintNode *n, *a = compile(c, arg->typecast.item);
    unsigned i;

    if (!a || strchr(arg->typecast.type, '*')) {
        return a;
    }
    for (i = 0; i < G_N_ELEMENTS(types); i++) {
        if (!strcmp(arg->typecast.type, types[i].name)) {
            n = ht_print_node_new(HT_OP_CAST);
            n->a = a;
            n->bytes = types[i].bytes;
            n->is_signed = types[i].is_signed;
            return n;
        }
    }
    /* all others are 64 bits wide, or as wide as what they have */
    return a;
}

static HtPrintNode *element(Compile *c, const struct tep_print_arg *array,
                            const struct tep_print_arg *index)
{
    HtPrintNode *n = place(c, HT_OP_ELEMENT, array);

    if (!n) {
        return NULL;
    }
    n->a = compile(c, index);
    /* the cast says what the elements are */
    while (array->type == TEP_PRINT_TYPE &&
           array->typecast.item->type == TEP_PRINT_TYPE) {
        array = array->typecast.item;
    }
    n->bytes = n->field.elem_size;
    n->is_signed = n->field.is_signed;
    if (!n->a || !n->bytes) {
        ht_print_node_free(n);
        return NULL;
    }
    return n;
}

static HtPrintNode *operation(Compile *c, const struct tep_print_arg *arg)
{
    const char *op = arg->op.op;
    HtPrintNode *n;

    if (!strcmp(op, "[")) {
        return element(c, arg->op.left, arg->op.right);
    }
    if (!strcmp(op, "?")) {
        const struct tep_print_arg *right = arg->op.right;

        if (!right || right->type != TEP_PRINT_OP ||
            strcmp(right->op.op, ":")) {
            return NULL;
        }
        n = ht_print_node_new(HT_OP_SELECT);
        n->a = compile(c, arg->op.left);
        n->b = compile(c, right->op.left);
        n->c = compile(c, right->op.right);
        if (n->a && n->b && n->c) {
            return n;
        }
    } else {
        bool unary = !arg->op.left || arg->op.left->type == TEP_PRINT_NULL;

        n = ht_print_node_new(unary ? HT_OP_UNARY : HT_OP_BINARY);
        n->value = op[1] ? HT_OP2(op[0], op[1]) : op[0];
        n->a = compile(c, unary ? arg->op.right : arg->op.left);
        n->b = unary ? NULL : compile(c, arg->op.right);
        if (n->a && (unary || n->b) &&
            strchr("+-*/%&|^<>=!~", op[0]) && strlen(op) <= 2) {
            return n;
        }
    }
    ht_print_node_free(n);
    return NULL;
}

static HtPrintNode *names(Compile *c, HtPrintOp op,
                          const struct tep_print_arg *field, const char *delim,
                          const struct tep_print_flag_sym *list)
{
    HtPrintNode *n = ht_print_node_new(op);

    n->text = unescape(delim);
    n->names = ht_print_names_new();
    n->a = compile(c, field);
    for (; n->a && list && n->names->len < NAMES_MAX; list = list->next) {
        HtPrintName name;

        if (!number(list->value, &name.value)) {
            ht_print_node_free(n);
            return NULL;
        }
        name.text = unescape(list->str);
        g_array_append_val(n->names, name);
    }
    if (!n->a) {
        ht_print_node_free(n);
        return NULL;
    }
    return n;
}

static HtPrintNode *bytes(Compile *c, HtPrintOp op,
                          const struct tep_print_arg *field,
                          const struct tep_print_arg *count,
                          const struct tep_print_arg *size, const char *delim)
{
    HtPrintNode *n = place(c, op, field);

    if (!n) {
        return NULL;
    }
    n->text = g_strdup(delim);
    n->a = compile(c, count);
    n->b = size ? compile(c, size) : NULL;
    if (!n->a || (size && !n->b)) {
        ht_print_node_free(n);
        return NULL;
    }
    return n;
}

static HtPrintNode *compile_arg(Compile *c, const struct tep_print_arg *arg)
{
    switch (arg->type) {
    case TEP_PRINT_ATOM:
        return atom(arg->atom.atom);
    case TEP_PRINT_FIELD:
        return field_node(c, HT_OP_FIELD, arg->field.name);
    case TEP_PRINT_STRING:
        return field_node(c, HT_OP_FIELD, arg->string.string);
    case TEP_PRINT_DYNAMIC_ARRAY:
        return field_node(c, HT_OP_FIELD, arg->dynarray.field->name);
    case TEP_PRINT_DYNAMIC_ARRAY_LEN:
        return field_node(c, HT_OP_LENGTH, arg->dynarray.field->name);
    case TEP_PRINT_TYPE:
        return cast(c, arg);
    case TEP_PRINT_OP:
        return operation(c, arg);
    case TEP_PRINT_FLAGS:
        return names(c, HT_OP_FLAGS, arg->flags.field, arg->flags.delim,
                     arg->flags.flags);
    case TEP_PRINT_SYMBOL:
        return names(c, HT_OP_SYMBOLIC, arg->symbol.field, NULL,
                     arg->symbol.symbols);
    case TEP_PRINT_HEX:
        return bytes(c, HT_OP_HEX, arg->hex.field, arg->hex.size, NULL, " ");
    case TEP_PRINT_HEX_STR:
        return bytes(c, HT_OP_HEX, arg->hex.field, arg->hex.size, NULL, "");
    case TEP_PRINT_INT_ARRAY:
        return bytes(c, HT_OP_ARRAY, arg->int_array.field,
                     arg->int_array.count, arg->int_array.el_size, ",");
    default:
        /* functions of the kernel, bitmasks: not understood */
        return NULL;
    }
}

static HtPrintNode *compile(Compile *c, const struct tep_print_arg *arg)
{
    HtPrintNode *n = NULL;

    if (arg && c->depth < HT_PRINT_DEPTH) {
        c->depth++;
        n = compile_arg(c, arg);
        c->depth--;
    }
    return n;
}

/* Takes the next argument; NULL if there is none or it is not understood. */
static HtPrintNode *take(Compile *c, const struct tep_print_arg **args)
{
    const struct tep_print_arg *arg = *args;

    if (!arg || arg->type == TEP_PRINT_NULL) {
        return NULL;
    }
    *args = arg->next;
    return compile(c, arg);
}

static bool amount(Compile *c, const char **s,
                   const struct tep_print_arg **args, int *n,
                   HtPrintNode **from)
{
    if (**s == '*') {
        (*s)++;
        *from = take(c, args);
        return *from != NULL;
    }
    for (*n = 0; g_ascii_isdigit(**s) && *n < 4096; (*s)++) {
        *n = *n * 10 + **s - '0';
    }
    return true;
}

/* What stands behind a '%' */
static bool conversion(Compile *c, const char **format,
                       const struct tep_print_arg **args, HtPrintPiece *p)
{
    const char *s = *format;
    unsigned n = 0;

    p->width = p->precision = -1;
    p->bytes = 4;
    for (; *s && strchr("-+ #0", *s); s++) {
        if (n < sizeof(p->flags) - 1) {
            p->flags[n++] = *s;
        }
    }
    if ((g_ascii_isdigit(*s) || *s == '*') &&
        !amount(c, &s, args, &p->width, &p->width_arg)) {
        return false;
    }
    if (*s == '.') {
        s++;
        if (!amount(c, &s, args, &p->precision, &p->precision_arg)) {
            return false;
        }
    }
    for (; *s && strchr("hlLqjzt", *s); s++) {
        p->bytes = *s == 'h' ? p->bytes / 2 : 8;
    }
    p->conversion = *s == 'i' ? 'd' : *s;
    if (!*s || !strchr("diuxXocsp", *s) || !p->bytes) {
        return false;
    }
    s++;
    if (p->conversion == 'p') {
        p->bytes = 8;
        if (*s && strchr("SFBsf", *s)) {
            p->symbol = strchr("sf", *s++) ? 's' : 'S';
        } else if (*s == 'x' || *s == 'K') {
            s++;
        } else if (g_ascii_isalnum(*s)) {
            return false;       /* addresses of a network, names of files */
        }
    }
    *format = s;
    p->arg = take(c, args);
    return p->arg != NULL;
}

static bool compile_format(Compile *c, const char *s,
                           const struct tep_print_arg *args, HtPrint *print)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (;;) {
        HtPrintPiece p = { 0 };
        bool ok = true;

        if (*s == '\\' && s[1]) {
            const char two[] = { s[0], s[1], 0 };
            g_autofree char *one = g_strcompress(two);

            g_string_append(text, one);
            s += 2;
            continue;
        }
        if (*s && (*s != '%' || s[1] == '%')) {
            g_string_append_c(text, *s);
            s += *s == '%' ? 2 : 1;
            continue;
        }
        if (*s) {
            s++;
            ok = conversion(c, &s, &args, &p);
        }
        p.text_len = text->len;
        p.text = g_strndup(text->str, text->len);
        g_string_truncate(text, 0);
        g_array_append_val(print->pieces, p);
        if (!ok) {
            return false;
        }
        if (!p.conversion) {
            return true;
        }
    }
}

HtPrint *ht_print_compile(const HtFtEvent *e)
{
    struct tep_handle *tep = tep_alloc();
    Compile c = { .event = e };
    HtPrint *print = NULL;
    struct tep_event *event;

    if (!tep) {
        return NULL;
    }
    tep_set_loglevel(TEP_LOG_NONE);
    tep_set_long_size(tep, 8);
    tep_set_file_bigendian(tep, TEP_LITTLE_ENDIAN);
    event = tep_parse_event(tep, e->text, e->text_size, e->system) == 0 ?
            tep_get_event(tep, 0) : NULL;
    if (event && !(event->flags & TEP_EVENT_FL_FAILED) &&
        event->print_fmt.format) {
        print = ht_print_empty();
        if (!compile_format(&c, event->print_fmt.format,
                            event->print_fmt.args, print)) {
            g_clear_pointer(&print, ht_print_free);
        }
    }
    tep_free(tep);
    return print;
}
