/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: compile print formats
 */
#include <string.h>

#include "hypertrace/base.h"
#include "print/print-program.h"

#define WIDTH_MAX       4096

void ht_print_node_free(HtPrintNode *n)
{
    if (n) {
        ht_print_node_free(n->a);
        ht_print_node_free(n->b);
        ht_print_node_free(n->c);
        g_free(n->text);
        g_clear_pointer(&n->names, g_array_unref);
        g_free(n);
    }
}

static void clear_piece(gpointer data)
{
    HtPrintPiece *p = data;

    g_free(p->text);
    ht_print_node_free(p->width_arg);
    ht_print_node_free(p->precision_arg);
    ht_print_node_free(p->arg);
}

void ht_print_free(HtPrint *p)
{
    if (p) {
        g_array_unref(p->pieces);
        g_free(p);
    }
}

/*
 * Count the calls of unknown functions in @n that are printed: @n itself, its
 * arguments, and the second and third operand of "?:".
 */
static unsigned known_calls(const HtPrintNode *n)
{
    unsigned count = 0;

    if (n->op == HT_OP_SELECT) {
        return known_calls(n->b) + known_calls(n->c);
    }
    for (count = n->op == HT_OP_CALL; n && n->op == HT_OP_CALL; n = n->b) {
        count += n->a ? known_calls(n->a) : 0;
    }
    return count;
}

static HtPrintNode *take(HtPrintParse *p)
{
    HtPrintNode *n;

    if (ht_print_accept(p, ",")) {
        p->calls = 0;
        n = ht_print_expression(p);
        if (n && p->calls != known_calls(n)) {
            /*
             * The value of the expression depends on the result of an unknown
             * function.
             */
            ht_print_node_free(n);
            p->error = g_strdup("an expression depends on a function of the "
                                "kernel that is not known");
            return NULL;
        }
        return n;
    }
    if (!p->error) {
        p->error = g_strdup("there are fewer arguments than conversions");
    }
    return NULL;
}

/* Check that the argument that take() parsed last calls no unknown function. */
static bool check_number(HtPrintParse *p)
{
    if (p->calls) {
        p->error = g_strdup("a number depends on a function of the kernel that "
                            "is not known");
    }
    return !p->calls;
}

/* Parse a width or precision: digits, or an argument in place of '*'. */
static bool amount(HtPrintParse *p, const char **s, int *n,
                   HtPrintNode **from)
{
    if (**s == '*') {
        (*s)++;
        *from = take(p);
        return *from && check_number(p);
    }
    for (*n = 0; g_ascii_isdigit(**s) && *n < WIDTH_MAX; (*s)++) {
        *n = *n * 10 + **s - '0';
    }
    return true;
}

/*
 * Parse the letters after %p, by which the kernel prints an object, such as
 * "S".
 */
static void pointer_letters(const char **s, HtPrintPiece *p)
{
    static const struct {
        /* the conversion begins with exactly one of these letters */
        const char *first;
        /* after that letter, any number of these may follow */
        const char *more;
    } known[] = {
        { "SsFfB", "R" }, { "Mm", "RF" }, { "U", "bBlL" }, { "h", "CDN" },
        { "b", "l" },
    };
    const char *more = NULL;
    unsigned i, n = 0;

    if (**s == 'x' || **s == 'K') {
        (*s)++;
        return;
    }
    if ((**s == 'I' || **s == 'i') && (*s)[1] && strchr("46S", (*s)[1])) {
        p->pointer[n++] = *(*s)++;
        p->pointer[n++] = *(*s)++;
        more = p->pointer[1] == '6' ? "c" :
               p->pointer[1] == '4' ? "hnbl" : "pfschnbl";
    }
    for (i = 0; !more && **s && i < G_N_ELEMENTS(known); i++) {
        if (strchr(known[i].first, **s)) {
            p->pointer[n++] = *(*s)++;
            more = known[i].more;
        }
    }
    for (; more && **s && strchr(more, **s); (*s)++) {
        if (n < sizeof(p->pointer) - 1) {
            p->pointer[n++] = **s;
        }
    }
}

static bool conversion(HtPrintParse *parse, const char **format,
                       HtPrintPiece *p)
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
        !amount(parse, &s, &p->width, &p->width_arg)) {
        return false;
    }
    if (*s == '.') {
        s++;
        if (!amount(parse, &s, &p->precision, &p->precision_arg)) {
            return false;
        }
    }
    for (; *s && strchr("hlLqjztZ", *s); s++) {
        p->bytes = *s == 'h' ? p->bytes / 2 : 8;
    }
    p->conversion = *s == 'i' ? 'd' : *s;
    if (!*s || !strchr("diuxXocsp", *s) || !p->bytes) {
        parse->error = g_strdup_printf("the conversion '%%%s' is not known",
                                       *format);
        return false;
    }
    s++;
    if (p->conversion == 'p') {
        p->bytes = 8;
        pointer_letters(&s, p);
    }
    p->is_bare = !p->flags[0] && p->width < 0 && p->precision < 0 &&
                 !p->width_arg && !p->precision_arg;
    *format = s;
    p->arg = take(parse);
    if (p->arg && parse->calls && p->conversion != 's') {
        if (p->arg->op != HT_OP_CALL) {
            return check_number(parse);
        }
        p->conversion = 's';
    }
    return p->arg != NULL;
}

/* Compile the format string @s, which has no escapes of C. */
static bool pieces(HtPrintParse *parse, const char *s, HtPrint *print)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (;;) {
        HtPrintPiece p = { 0 };
        bool ok = true;

        if (*s && (*s != '%' || s[1] == '%')) {
            g_string_append_c(text, *s);
            s += *s == '%' ? 2 : 1;
            continue;
        }
        if (*s) {
            s++;
            ok = conversion(parse, &s, &p);
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

HtPrint *ht_print_new(const HtFtEvent *e, char **why)
{
    static const char key[] = "print fmt:";
    /*
     * Format for trace_printk()'s event "bprint". Its own format string is only
     * in the kernel's memory, so print the string's address.
     */
    static const char bprint[] = "\"%ps: (NO FORMAT FOUND at %llx)\n\","
                                 " (void *)REC->ip, REC->fmt";
    const char *begin = g_strstr_len(e->text, e->text_size, key);
    HtPrintParse parse = { .event = e, .end = e->text + e->text_size };
    g_autofree char *format = NULL;
    g_autoptr(HtPrint) print = g_new0(HtPrint, 1);
    bool ok = false;

    print->pieces = g_array_new(false, true, sizeof(HtPrintPiece));
    g_array_set_clear_func(print->pieces, clear_piece);
    parse.p = begin ? begin + strlen(key) : parse.end;
    if (!strcmp(e->system, "ftrace") && !strcmp(e->name, "bprint")) {
        parse.p = bprint;
        parse.end = bprint + strlen(bprint);
    }
    if (ht_print_string(&parse, &format)) {
        ok = pieces(&parse, format, print);
    } else if (!parse.error) {
        parse.error = g_strdup("there is no print format");
    }
    if (why) {
        *why = ok ? NULL : g_steal_pointer(&parse.error);
    }
    g_free(parse.error);
    return ok ? g_steal_pointer(&print) : NULL;
}
