/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse and evaluate conditions on the fields of events
 */
#include <errno.h>
#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#include "cli/near.h"
#include "hypertrace/pattern.h"
#include "model/fields.h"
#include "model/where.h"

#define DEPTH_MAX 64

typedef enum Op {
    OP_OR, OP_AND, OP_NOT, OP_TRUE, OP_EQ, OP_NE, OP_LE, OP_LT, OP_GE, OP_GT,
    OP_BITS, OP_LIKE, OP_UNLIKE,
} Op;

/*
 * A node of the expression. OR and AND have @left and @right, NOT has @left.
 * TRUE tests @field alone. All other operators compare @field with @number if
 * both are numbers, else with @text; LIKE and UNLIKE always use @text.
 */
typedef struct Node Node;
struct Node {
    Op op;
    Node *left, *right;
    char *field;
    char *text;
    bool is_number;
    int64_t number;
};

struct HtWhere {
    Node *root;
    GString *text;
};

typedef struct Parser {
    const char *text, *p;
    unsigned depth;
    GError **error;
} Parser;

static void free_node(Node *n)
{
    if (n) {
        free_node(n->left);
        free_node(n->right);
        g_free(n->field);
        g_free(n->text);
        g_free(n);
    }
}

static Node *fail(Parser *s, const char *expected)
{
    g_set_error(s->error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "expected %s at %s%s%s; a condition looks like "
                "'prev_state != 0 && next_comm ~ \"kworker*\"'", expected,
                *s->p ? "'" : "", *s->p ? s->p : "the end", *s->p ? "'" : "");
    return NULL;
}

static bool take(Parser *s, const char *token)
{
    while (g_ascii_isspace(*s->p)) {
        s->p++;
    }
    if (!g_str_has_prefix(s->p, token)) {
        return false;
    }
    s->p += strlen(token);
    return true;
}

static Node *new_node(Op op, Node *left, Node *right)
{
    Node *n = g_new0(Node, 1);

    n->op = op;
    n->left = left;
    n->right = right;
    return n;
}

static bool is_word(char c)
{
    return g_ascii_isalnum(c) || (c && strchr("_.-*?/:", c));
}

static bool take_value(Parser *s, Node *n)
{
    const char *begin = s->p;
    char *end = NULL, quote = 0;

    if (take(s, "\"")) {
        quote = '"';
    } else if (take(s, "'")) {
        quote = '\'';
    }
    begin = s->p;
    if (quote) {
        end = strchr(begin, quote);
        if (!end) {
            s->p = begin;
            return false;
        }
        n->text = g_strndup(begin, end - begin);
        s->p = end + 1;
    } else {
        while (is_word(*s->p)) {
            s->p++;
        }
        if (s->p == begin) {
            return false;
        }
        n->text = g_strndup(begin, s->p - begin);
    }
    errno = 0;
    n->number = g_ascii_strtoll(n->text, &end, 0);
    if (n->number == INT64_MAX) {
        errno = 0;
        n->number = g_ascii_strtoull(n->text, &end, 0);
    }
    /* A value that is no number of at most 64 bits is treated as text only. */
    n->is_number = *n->text && !*end && !errno;
    return true;
}

static Node *parse_comparison(Parser *s)
{
    static const struct {
        const char *token;
        Op op;
    } ops[] = {
        { "==", OP_EQ }, { "!=", OP_NE }, { "<=", OP_LE }, { ">=", OP_GE },
        { "=~", OP_LIKE }, { "!~", OP_UNLIKE }, { "<", OP_LT }, { ">", OP_GT },
        { "~", OP_LIKE }, { "=", OP_EQ },
    };
    const char *begin = s->p;
    Node *n;
    unsigned i;

    while (g_ascii_isalnum(*s->p) || *s->p == '_') {
        s->p++;
    }
    if (s->p == begin || g_ascii_isdigit(*begin)) {
        return fail(s, "the name of a field");
    }
    n = new_node(OP_TRUE, NULL, NULL);
    n->field = g_strndup(begin, s->p - begin);
    for (i = 0; i < G_N_ELEMENTS(ops) && n->op == OP_TRUE; i++) {
        if (take(s, ops[i].token)) {
            n->op = ops[i].op;
        }
    }
    if (n->op == OP_TRUE && s->p[0] == '&' && s->p[1] != '&') {
        s->p++;
        n->op = OP_BITS;
    }
    while (g_ascii_isspace(*s->p)) {
        s->p++;
    }
    if (n->op != OP_TRUE && !take_value(s, n)) {
        free_node(n);
        return fail(s, s->p > s->text && strchr("\"'", s->p[-1]) ?
                    "a quotation mark after the text" : "a number or a text");
    }
    if ((n->op == OP_BITS || (n->op >= OP_LE && n->op <= OP_GT)) &&
        !n->is_number) {
        free_node(n);
        return fail(s, "a number of 64 bits before this");
    }
    return n;
}

static Node *parse_or(Parser *s);

static Node *parse_unary(Parser *s)
{
    Node *n;

    if (take(s, "!")) {
        n = ++s->depth > DEPTH_MAX ? fail(s, "a simpler condition") :
            parse_unary(s);
        s->depth--;
        return n ? new_node(OP_NOT, n, NULL) : NULL;
    }
    if (!take(s, "(")) {
        return parse_comparison(s);
    }
    n = ++s->depth > DEPTH_MAX ? fail(s, "a simpler condition") : parse_or(s);
    s->depth--;
    if (n && !take(s, ")")) {
        free_node(n);
        return fail(s, "')'");
    }
    return n;
}

static Node *parse_list(Parser *s, const char *token, Op op,
                        Node *(*parse)(Parser *s))
{
    Node *n = parse(s), *more;

    while (n && take(s, token)) {
        more = parse(s);
        if (!more) {
            free_node(n);
            return NULL;
        }
        n = new_node(op, n, more);
    }
    return n;
}

static Node *parse_and(Parser *s)
{
    return parse_list(s, "&&", OP_AND, parse_unary);
}

static Node *parse_or(Parser *s)
{
    return parse_list(s, "||", OP_OR, parse_and);
}

HtWhere *ht_where_new(const char *text, GError **error)
{
    Parser s = { .text = text, .p = text, .error = error };
    Node *n = parse_or(&s);
    HtWhere *w;

    if (n && (take(&s, " ") || *s.p)) {
        free_node(n);
        n = fail(&s, "&&, || or the end");
    }
    if (!n) {
        return NULL;
    }
    w = g_new0(HtWhere, 1);
    w->root = n;
    w->text = g_string_new(NULL);
    return w;
}

void ht_where_free(HtWhere *w)
{
    if (w) {
        free_node(w->root);
        g_string_free(w->text, true);
        g_free(w);
    }
}

static bool is_common(const char *field)
{
    static const char * const names[] = {
        "cpu", "pid", "common_pid", "comm", NULL
    };

    return field && g_strv_contains(names, field);
}

/* Check whether a node may compare a field that is a number with its value. */
static bool may_be_number(const Node *n)
{
    return n->op == OP_TRUE || n->is_number ||
           ((n->op == OP_LIKE || n->op == OP_UNLIKE) && *n->text &&
            strspn(n->text, "0123456789abcdefx-*?") == strlen(n->text));
}

static bool check_node(const Node *n, const HtFtFormats *formats,
                       const HtNames *events, GError **error)
{
    unsigned count = ht_ft_formats_count(formats), i, j;
    bool found = is_common(n->field), text = !g_strcmp0(n->field, "comm");
    g_autoptr(GString) hint = NULL;
    HtNear near = { .name = n->field };

    if (!n->field) {
        return check_node(n->left, formats, events, error) &&
               (!n->right || check_node(n->right, formats, events, error));
    }
    for (i = 0; i < count; i++) {
        const HtFtEvent *e = ht_ft_formats_nth(formats, i);
        const HtFtField *f = ht_ft_event_field(e, n->field);

        if (events && !ht_names_match(events, e->system, e->name)) {
            continue;
        }
        if (f) {
            found = true;
            text |= f->kind != HT_FT_INT;
        }
        for (j = 0; j < e->nr_fields; j++) {
            ht_near_add(&near, e->fields[j].name);
        }
    }
    if (found && (text || may_be_number(n))) {
        return true;
    }
    if (found) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "'%s' is a number, which never has the value '%s'",
                    n->field, n->text);
        return false;
    }
    hint = g_string_new(NULL);
    ht_near_text(&near, hint);
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "%s has a field '%s'%s", events ? "none of these events" :
                "no event", n->field, hint->str);
    return false;
}

bool ht_where_check(const HtWhere *w, const HtFtFormats *formats,
                    const HtNames *events, GError **error)
{
    return check_node(w->root, formats, events, error);
}

static bool uses(const Node *n, const char *field)
{
    return n && (!g_strcmp0(n->field, field) || uses(n->left, field) ||
                 uses(n->right, field));
}

bool ht_where_uses(const HtWhere *w, const char *field)
{
    return uses(w->root, field);
}

static bool compare_number(const Node *n, const HtFtField *f, int64_t v)
{
    bool less = f && !f->is_signed ? (uint64_t)v < (uint64_t)n->number :
                v < n->number;

    switch (n->op) {
    case OP_TRUE:
        return v;
    case OP_EQ:
        return v == n->number;
    case OP_NE:
        return v != n->number;
    case OP_LT:
        return less;
    case OP_LE:
        return less || v == n->number;
    case OP_GT:
        return !less && v != n->number;
    case OP_GE:
        return !less;
    default:
        return v & n->number;
    }
}

static bool compare_text(const Node *n, const char *text)
{
    switch (n->op) {
    case OP_TRUE:
        return *text;
    case OP_EQ:
        return !strcmp(text, n->text);
    case OP_NE:
        return strcmp(text, n->text);
    case OP_LIKE:
        return ht_pattern_match(n->text, text);
    case OP_UNLIKE:
        return !ht_pattern_match(n->text, text);
    default:
        return false;
    }
}

/* Get a number that every event has: its processor, or its task's PID. */
static int64_t common_number(const char *field, const HtModelEvent *ev)
{
    return !strcmp(field, "cpu") ? (int64_t)ev->rec.cpu : ev->rec.pid;
}

static bool compare(const Node *n, const HtModelEvent *ev, GString *text)
{
    const HtFtField *f = ev->class->format ?
        ht_ft_event_field(ev->class->format, n->field) : NULL;

    if (!f && !is_common(n->field)) {
        return false;
    }
    if (!f && !strcmp(n->field, "comm")) {
        return compare_text(n, ev->task->comm);
    }
    if ((!f || f->kind == HT_FT_INT) && n->op < OP_LIKE &&
        (n->is_number || n->op == OP_TRUE)) {
        return compare_number(n, f, f ? (int64_t)ht_ft_field_uint(
                                  f, ev->rec.data, ev->rec.size) :
                              common_number(n->field, ev));
    }
    g_string_truncate(text, 0);
    if (f) {
        ht_fields_value(f, ev, text);
    } else {
        g_string_printf(text, "%" PRId64, common_number(n->field, ev));
    }
    return compare_text(n, text->str);
}

static bool is_true(const Node *n, const HtModelEvent *ev, GString *text)
{
    switch (n->op) {
    case OP_OR:
        return is_true(n->left, ev, text) || is_true(n->right, ev, text);
    case OP_AND:
        return is_true(n->left, ev, text) && is_true(n->right, ev, text);
    case OP_NOT:
        return !is_true(n->left, ev, text);
    default:
        return compare(n, ev, text);
    }
}

bool ht_where_is_true(const HtWhere *w, const HtModelEvent *ev)
{
    return is_true(w->root, ev, w->text);
}
