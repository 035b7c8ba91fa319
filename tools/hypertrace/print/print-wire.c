/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a program that prints, as bytes
 *
 * Nodes stand behind those that they use, each of which is used once: no bytes
 * make a loop.
 */
#include <string.h>

#include "hypertrace/base.h"
#include "print/print-program.h"

#define NAMES           "a(tay)"
/* op, a, b, c, value, text, bytes, is_signed, field, names */
#define NODE            "(yiiitmayubu" NAMES ")"
/* text, conversion, symbol, bytes, flags, width, precision, and their nodes */
#define PIECE           "(ayyyuayiiiii)"
#define PROGRAM         "(a" NODE "a" PIECE ")"

#define NO_NODE         (-1)

typedef struct Encode {
    GVariantBuilder nodes;
    int32_t count;
} Encode;

static GVariant *encode_names(const GArray *names)
{
    GVariantBuilder b;
    guint i;

    g_variant_builder_init(&b, G_VARIANT_TYPE(NAMES));
    for (i = 0; names && i < names->len; i++) {
        const HtPrintName *name = &g_array_index(names, HtPrintName, i);

        g_variant_builder_add(&b, "(t^ay)", name->value, name->text);
    }
    return g_variant_builder_end(&b);
}

/* Returns its number */
static int32_t encode_node(Encode *e, const HtPrintNode *n)
{
    int32_t a, b, c;

    if (!n) {
        return NO_NODE;
    }
    a = encode_node(e, n->a);
    b = encode_node(e, n->b);
    c = encode_node(e, n->c);
    g_variant_builder_add(&e->nodes, "(yiiitm^ayubu@" NAMES ")", (guchar)n->op,
                          a, b, c, n->value, n->text, n->bytes, n->is_signed,
                          n->field_nr, encode_names(n->names));
    return e->count++;
}

GBytes *ht_print_encode(const HtPrint *print)
{
    g_autoptr(GVariant) program = NULL;
    GVariantBuilder pieces;
    Encode e = { 0 };
    guint i;

    g_variant_builder_init(&e.nodes, G_VARIANT_TYPE("a" NODE));
    g_variant_builder_init(&pieces, G_VARIANT_TYPE("a" PIECE));
    for (i = 0; i < print->pieces->len; i++) {
        const HtPrintPiece *p = &g_array_index(print->pieces, HtPrintPiece, i);
        int32_t width = encode_node(&e, p->width_arg);
        int32_t precision = encode_node(&e, p->precision_arg);
        int32_t arg = encode_node(&e, p->arg);

        g_variant_builder_add(&pieces, "(^ayyyu^ayiiiii)", p->text,
                              (guchar)p->conversion, (guchar)p->symbol,
                              p->bytes, p->flags, p->width, p->precision,
                              width, precision, arg);
    }
    program = g_variant_ref_sink(g_variant_new(PROGRAM, &e.nodes, &pieces));
    return g_variant_get_data_as_bytes(program);
}

/* A node that nobody uses yet, and how deep it is */
typedef struct Free {
    HtPrintNode *node;
    unsigned depth;
} Free;

typedef struct Decode {
    const HtFtEvent *event;
    GArray *nodes;              /* of Free */
} Decode;

static void clear_free(gpointer data)
{
    ht_print_node_free(((Free *)data)->node);
}

/* Take a node, if @i is one; false if it is nonsense */
static bool take(Decode *d, int32_t i, HtPrintNode **n, unsigned *depth)
{
    Free *from;

    if (i == NO_NODE) {
        return true;
    }
    if (i < 0 || (guint)i >= d->nodes->len) {
        return false;
    }
    from = &g_array_index(d->nodes, Free, i);
    *n = g_steal_pointer(&from->node);
    *depth = MAX(*depth, from->depth);
    return *n != NULL;
}

/* Does it have what eval() and put_text() use without looking? */
static bool complete(const HtPrintNode *n)
{
    static const struct {
        unsigned nodes;
        bool field, text, names;
    } need[] = {
        [HT_OP_CONSTANT] = { 0 },
        [HT_OP_FIELD] = { .field = true },
        [HT_OP_LENGTH] = { .field = true },
        [HT_OP_CAST] = { .nodes = 1 },
        [HT_OP_UNARY] = { .nodes = 1 },
        [HT_OP_BINARY] = { .nodes = 2 },
        [HT_OP_SELECT] = { .nodes = 3 },
        [HT_OP_ELEMENT] = { .nodes = 1, .field = true },
        [HT_OP_FLAGS] = { .nodes = 1, .text = true, .names = true },
        [HT_OP_SYMBOLIC] = { .nodes = 1, .names = true },
        [HT_OP_HEX] = { .nodes = 1, .field = true, .text = true },
        [HT_OP_ARRAY] = { .nodes = 2, .field = true, .text = true },
    };

    if (n->op >= G_N_ELEMENTS(need) ||
        (n->op == HT_OP_ELEMENT &&
         (!n->bytes || n->bytes != n->field.elem_size))) {
        return false;
    }
    return (need[n->op].nodes < 1 || n->a) && (need[n->op].nodes < 2 || n->b) &&
           (need[n->op].nodes < 3 || n->c) && (!need[n->op].text || n->text) &&
           (!need[n->op].names || n->names) &&
           (!need[n->op].field || n->field_nr != HT_PRINT_NO_FIELD);
}

static void decode_names(HtPrintNode *n, GVariant *names)
{
    HtPrintName name;
    GVariantIter iter;

    n->names = ht_print_names_new();
    g_variant_iter_init(&iter, names);
    while (g_variant_iter_next(&iter, "(t^ay)", &name.value, &name.text)) {
        g_array_append_val(n->names, name);
    }
}

static bool decode_node(Decode *d, GVariant *v)
{
    g_autoptr(GVariant) names = NULL;
    Free new = { 0 };
    HtPrintNode *n;
    int32_t a, b, c;
    gboolean is_signed;
    uint32_t field;
    guchar op;
    bool ok;

    n = new.node = ht_print_node_new(HT_OP_CONSTANT);
    g_variant_get(v, "(yiiitm^ayubu@" NAMES ")", &op, &a, &b, &c, &n->value,
                  &n->text, &n->bytes, &is_signed, &field, &names);
    n->op = op;
    n->is_signed = is_signed;
    decode_names(n, names);
    ok = take(d, a, &n->a, &new.depth) && take(d, b, &n->b, &new.depth) &&
         take(d, c, &n->c, &new.depth) && new.depth++ < HT_PRINT_DEPTH &&
         (field == HT_PRINT_NO_FIELD ||
          ht_print_set_field_nr(n, d->event, field)) && complete(n);
    g_array_append_val(d->nodes, new);
    return ok;
}

static bool known(char c, const char *chars)
{
    return c && strchr(chars, c);
}

static bool decode_piece(Decode *d, GVariant *v, HtPrint *print)
{
    g_autofree char *flags = NULL;
    int32_t width, precision, arg;
    HtPrintPiece p = { 0 };
    guchar conversion, symbol;
    unsigned depth = 0;
    bool ok;

    g_variant_get(v, "(^ayyyu^ayiiiii)", &p.text, &conversion, &symbol,
                  &p.bytes, &flags, &p.width, &p.precision, &width,
                  &precision, &arg);
    p.text_len = strlen(p.text);
    p.conversion = conversion;
    p.symbol = symbol;
    ok = g_strlcpy(p.flags, flags, sizeof(p.flags)) < sizeof(p.flags) &&
         strspn(flags, "-+ #0") == strlen(flags) &&
         take(d, width, &p.width_arg, &depth) &&
         take(d, precision, &p.precision_arg, &depth) &&
         take(d, arg, &p.arg, &depth) && p.width >= -1 && p.precision >= -1 &&
         (!p.conversion || (known(p.conversion, "duxXocsp") && p.arg)) &&
         (!p.symbol || known(p.symbol, "sS"));
    g_array_append_val(print->pieces, p);
    return ok;
}

HtPrint *ht_print_decode(GBytes *bytes, const HtFtEvent *event)
{
    g_autoptr(GVariant) program = g_variant_ref_sink(
        g_variant_new_from_bytes(G_VARIANT_TYPE(PROGRAM), bytes, false));
    g_autoptr(GVariant) nodes = g_variant_get_child_value(program, 0);
    g_autoptr(GVariant) pieces = g_variant_get_child_value(program, 1);
    g_autoptr(HtPrint) print = ht_print_empty();
    g_autoptr(GArray) unused = g_array_new(false, false, sizeof(Free));
    Decode d = { .event = event, .nodes = unused };
    gsize i, count = g_variant_n_children(nodes);
    bool ok = g_variant_n_children(pieces) > 0;

    g_array_set_clear_func(unused, clear_free);
    for (i = 0; ok && i < count; i++) {
        g_autoptr(GVariant) v = g_variant_get_child_value(nodes, i);

        ok = decode_node(&d, v);
    }
    count = g_variant_n_children(pieces);
    for (i = 0; ok && i < count; i++) {
        g_autoptr(GVariant) v = g_variant_get_child_value(pieces, i);

        ok = decode_piece(&d, v, print);
    }
    return ok ? g_steal_pointer(&print) : NULL;
}
