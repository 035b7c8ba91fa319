/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: print an event as its kernel would
 */
#include <inttypes.h>
#include <string.h>

#include "cli/number.h"
#include "cli/text.h"
#include "hypertrace/base.h"
#include "print/print-parse.h"

/*
 * Limit for widths, and for precisions of numbers: the guest can choose both
 * by '*'
 */
#define PADDING_MAX     4096

typedef struct Run {
    const uint8_t *data;
    size_t size;
    const HtPrintSymbols *symbols;
} Run;

/* Convert a value to an integer type of C of @bytes bytes */
static uint64_t extend(uint64_t v, unsigned bytes, bool is_signed)
{
    switch (bytes) {
    case 1:
        return is_signed ? (uint64_t)(int8_t)v : (uint8_t)v;
    case 2:
        return is_signed ? (uint64_t)(int16_t)v : (uint16_t)v;
    case 4:
        return is_signed ? (uint64_t)(int32_t)v : (uint32_t)v;
    }
    return v;
}

/*
 * Divide, or compute the rest.  A division by zero gives 0 and does not trap.
 */
static uint64_t divide(const HtPrintNode *n, uint64_t a, uint64_t b)
{
    bool rest = n->value == '%';

    if (!b || (n->is_signed && b == UINT64_MAX)) {
        return b && !rest ? -a : 0;
    }
    if (n->is_signed) {
        return rest ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b;
    }
    return rest ? a % b : a / b;
}

/*
 * Shift @a by the low 6 bits of @b. In C, a shift by the width of the type or
 * more is undefined; as in libtraceevent, such a shift is computed in 64 bits.
 */
static uint64_t shift(const HtPrintNode *n, uint64_t a, uint64_t b)
{
    bool negative = n->is_signed && (int64_t)a < 0;
    bool wide = b >= n->bytes * 8;

    b &= 63;
    if (n->value == HT_OP2('<', '<')) {
        return wide ? a << b : extend(a << b, n->bytes, n->is_signed);
    }
    return negative ? ~(~a >> b) : a >> b;
}

static bool is_less(const HtPrintNode *n, uint64_t a, uint64_t b)
{
    return n->is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t binary(const HtPrintNode *n, uint64_t a, uint64_t b)
{
    switch (n->value) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
    case '%':
        return divide(n, a, b);
    case '&':
        return a & b;
    case '|':
        return a | b;
    case '^':
        return a ^ b;
    case '<':
        return is_less(n, a, b);
    case '>':
        return is_less(n, b, a);
    case HT_OP2('<', '<'):
    case HT_OP2('>', '>'):
        return shift(n, a, b);
    case HT_OP2('<', '='):
        return !is_less(n, b, a);
    case HT_OP2('>', '='):
        return !is_less(n, a, b);
    case HT_OP2('=', '='):
        return a == b;
    case HT_OP2('!', '='):
        return a != b;
    case HT_OP2('&', '&'):
        return a && b;
    case HT_OP2('|', '|'):
        return a || b;
    }
    return 0;
}

static uint64_t swap(uint64_t v, unsigned bytes)
{
    return __builtin_bswap64(v) >> (8 * (8 - bytes));
}

static uint64_t eval(const HtPrintNode *n, const Run *r);

static uint64_t eval_element(const HtPrintNode *n, const Run *r)
{
    size_t len;
    const uint8_t *p = ht_ft_field_bytes(&n->field, r->data, r->size, &len);
    uint64_t i = eval(n->a, r);

    return p && i < len / n->bytes ?
           ht_get_le(p + i * n->bytes, n->bytes, n->is_signed) : 0;
}

/* The recursion is bounded, because the parser bounds the number of nodes. */
static uint64_t eval(const HtPrintNode *n, const Run *r)
{
    size_t len;
    uint64_t v;

    switch (n->op) {
    case HT_OP_CONSTANT:
        return n->value;
    case HT_OP_FIELD:
        return ht_ft_field_uint(&n->field, r->data, r->size);
    case HT_OP_LENGTH:
        ht_ft_field_bytes(&n->field, r->data, r->size, &len);
        return len;
    case HT_OP_CAST:
        return extend(eval(n->a, r), n->bytes, n->is_signed);
    case HT_OP_UNARY:
        v = eval(n->a, r);
        return n->value == '!' ? !v :
               n->value == HT_OP_SWAP ? swap(v, n->bytes) :
               extend(n->value == '~' ? ~v : -v, n->bytes, n->is_signed);
    case HT_OP_BINARY:
        v = binary(n, eval(n->a, r), eval(n->b, r));
        return n->value == HT_OP2('<', '<') ? v :
               extend(v, n->bytes, n->is_signed);
    case HT_OP_SELECT:
        return eval(n->a, r) ? eval(n->b, r) : eval(n->c, r);
    case HT_OP_ELEMENT:
        return eval_element(n, r);
    default:
        return 0;
    }
}

uint64_t ht_print_value(const HtPrintNode *n, const uint8_t *data,
                        size_t size)
{
    const Run r = { .data = data, .size = size };

    return eval(n, &r);
}

/* Print in hexadecimal the bits of flags, or a value, that have no name. */
static void put_rest(const HtPrintNode *n, uint64_t v, GString *out)
{
    unsigned bytes = MAX(n->bytes, 4);

    if (v == extend(v, bytes, true)) {
        v = extend(v, bytes, false);
    }
    g_string_append_printf(out, "0x%" PRIx64, v);
}

static void put_flags(const HtPrintNode *n, const Run *r, GString *out)
{
    uint64_t v = eval(n->a, r);
    gsize start = out->len;
    unsigned i;

    for (i = 0; i < n->names->len; i++) {
        const HtPrintName *name = &g_array_index(n->names, HtPrintName, i);

        if (name->value && (v & name->value) == name->value) {
            if (out->len > start) {
                g_string_append(out, n->text);
            }
            g_string_append(out, name->text);
            v &= ~name->value;
        }
    }
    if (v) {
        if (out->len > start) {
            g_string_append(out, n->text);
        }
        put_rest(n, v, out);
    }
}

/*
 * Print the name of a value, or the text for values without a name. Returns
 * false if there is neither; a number is printed then.
 */
static bool put_symbolic(const HtPrintNode *n, const Run *r, GString *out)
{
    uint64_t v = eval(n->a, r);
    unsigned i;

    for (i = 0; i < n->names->len; i++) {
        const HtPrintName *name = &g_array_index(n->names, HtPrintName, i);

        if (name->value == v) {
            ht_text_append(out, name->text, strlen(name->text));
            return true;
        }
    }
    if (n->op == HT_OP_NAMED) {
        g_string_append(out, n->text);
        return true;
    }
    put_rest(n, v, out);
    return false;
}

static void put_hex(const HtPrintNode *n, const Run *r, GString *out)
{
    size_t i, len;
    const uint8_t *p = ht_ft_field_bytes(&n->field, r->data, r->size, &len);
    uint64_t count = eval(n->a, r);

    for (i = 0; i < len && i < count; i++) {
        g_string_append_printf(out, "%s%02x", i ? n->text : "", p[i]);
    }
}

static void put_array(const HtPrintNode *n, const Run *r, GString *out)
{
    size_t i, len;
    const uint8_t *p = ht_ft_field_bytes(&n->field, r->data, r->size, &len);
    uint64_t count = eval(n->a, r), bytes = eval(n->b, r);

    g_string_append_c(out, '{');
    for (i = 0; bytes && bytes <= 8 && i < len / bytes && i < count; i++) {
        g_string_append_printf(out, "%s0x%" PRIx64, i ? n->text : "",
                               ht_get_le(p + i * bytes, bytes, false));
    }
    g_string_append_c(out, '}');
}

static void put_mask(const HtPrintNode *n, const Run *r, GString *out)
{
    size_t len;
    const uint8_t *p = ht_ft_field_bytes(&n->field, r->data, r->size, &len);

    ht_print_mask(p, len, n->op == HT_OP_CPUMASK, out);
}

/* Print a string up to its NUL; without a NUL, up to the field's end. */
static void put_bytes(const HtPrintNode *n, const Run *r, GString *out)
{
    size_t len;
    const uint8_t *p = ht_ft_field_bytes(&n->field, r->data, r->size, &len);
    const uint8_t *nul = p ? memchr(p, 0, len) : NULL;

    ht_text_append(out, (const char *)p, nul ? (size_t)(nul - p) :
                                         p ? len : 0);
}

static void put_disk(const HtPrintNode *n, const Run *r, GString *out)
{
    gsize start = out->len;

    g_string_append(out, "disk=");
    put_bytes(n, r, out);
    if (out->len == start + strlen("disk=")) {
        g_string_truncate(out, start);
    } else {
        g_string_append(out, ", ");
    }
}

static bool put_text(const HtPrintNode *n, const Run *r, GString *out);

static void put_argument(const HtPrintNode *n, const Run *r, GString *out)
{
    size_t len, i;
    const uint8_t *p;

    if (n->op == HT_OP_SELECT) {
        put_argument(eval(n->a, r) ? n->b : n->c, r, out);
    } else if (n->op == HT_OP_FIELD && (n->field.kind == HT_FT_ARRAY ||
                                        n->field.kind == HT_FT_DYN_ARRAY)) {
        p = ht_ft_field_bytes(&n->field, r->data, r->size, &len);
        for (i = 0; p && i < len; i++) {
            g_string_append_printf(out, "%s%02x", i ? " " : "", p[i]);
        }
    } else if (n->text || n->op >= HT_OP_FLAGS ||
               (n->op == HT_OP_FIELD && n->field.kind != HT_FT_INT)) {
        put_text(n, r, out);
    } else {
        PpType t = pp_type_of(n);

        g_string_append_printf(out, t.is_signed ? "%" PRId64 : "0x%" PRIx64,
                               eval(n, r));
    }
}

static void put_call(const HtPrintNode *n, const Run *r, GString *out)
{
    const char *separator = "";

    if (n->value) {
        g_string_append(out, n->text);
        return;
    }
    g_string_append_printf(out, "%s(", n->text);
    for (; n; n = n->b) {
        if (n->a) {
            g_string_append(out, separator);
            put_argument(n->a, r, out);
            separator = ", ";
        }
    }
    g_string_append_c(out, ')');
}

/*
 * Print an argument of %s. Returns true if the text must be padded to the
 * width. As in libtraceevent, the number that is printed for an integer field
 * or a computed value, or for a value without a name, is not padded.
 */
static bool put_text(const HtPrintNode *n, const Run *r, GString *out)
{
    switch (n->op) {
    case HT_OP_CONSTANT:
        if (n->text) {
            g_string_append(out, n->text);
        } else {
            g_string_append_printf(out, "%" PRId64, (int64_t)n->value);
        }
        break;
    case HT_OP_FIELD:
        if (n->field.kind == HT_FT_INT) {
            g_string_append_printf(out, "%" PRIx64, eval(n, r));
            return false;
        } else {
            put_bytes(n, r, out);
        }
        break;
    case HT_OP_SELECT:
        return put_text(eval(n->a, r) ? n->b : n->c, r, out);
    case HT_OP_FLAGS:
        put_flags(n, r, out);
        break;
    case HT_OP_SYMBOLIC:
    case HT_OP_NAMED:
        return put_symbolic(n, r, out);
    case HT_OP_HEX:
        put_hex(n, r, out);
        break;
    case HT_OP_ARRAY:
        put_array(n, r, out);
        break;
    case HT_OP_BITMASK:
    case HT_OP_CPUMASK:
        put_mask(n, r, out);
        break;
    case HT_OP_DISK:
        put_disk(n, r, out);
        break;
    case HT_OP_CALL:
        put_call(n, r, out);
        break;
    default:
        g_string_append_printf(out, "%" PRIx64, eval(n, r));
        return false;
    }
    return true;
}

static void put_symbol(const Run *r, uint64_t addr, char how, GString *out)
{
    const HtPrintSymbols *s = r->symbols;
    const char *name = NULL;
    uint64_t offset;

    if (s && s->symbols) {
        name = ht_symbols_find(s->symbols, addr - s->shift, &offset);
    }
    if (!name) {
        g_string_append_printf(out, "0x%" PRIx64, addr);
        return;
    }
    g_string_append(out, name);
    if (how != 's' && how != 'f') {
        g_string_append_printf(out, "+0x%" PRIx64, offset);
    }
}

static void pad(GString *out, gsize start, int width, bool left)
{
    gsize len = out->len - start;

    for (; width > 0 && len < (gsize)MIN(width, PADDING_MAX); len++) {
        g_string_insert_c(out, left ? -1 : (gssize)start, ' ');
    }
}

static void put_number(const HtPrintPiece *p, uint64_t v, int width,
                       int precision, GString *out)
{
    bool is_signed = p->conversion == 'd';
    char format[32];

    v = extend(v, p->bytes, is_signed);
    if (p->is_bare && (is_signed || p->conversion == 'u')) {
        if (is_signed && (int64_t)v < 0) {
            g_string_append_c(out, '-');
            v = -v;
        }
        ht_number_decimal(out, v, 0, ' ');
        return;
    }
    g_snprintf(format, sizeof(format), "%%%s%s%sll%c", p->flags,
               width >= 0 ? "*" : "", precision >= 0 ? ".*" : "",
               p->conversion);
    width = MIN(width, PADDING_MAX);
    precision = MIN(precision, PADDING_MAX);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (width >= 0 && precision >= 0) {
        g_string_append_printf(out, format, width, precision, v);
    } else if (width >= 0) {
        g_string_append_printf(out, format, width, v);
    } else if (precision >= 0) {
        g_string_append_printf(out, format, precision, v);
    } else {
        g_string_append_printf(out, format, v);
    }
#pragma GCC diagnostic pop
}

static void put_pointer(const HtPrintPiece *p, const Run *r, int width,
                        GString *out)
{
    const HtPrintNode *n = p->arg;
    const uint8_t *bytes;
    uint64_t v;
    size_t len;

    if (strchr("SsFfB", p->pointer[0])) {
        v = eval(n, r);
        if (p->pointer[0]) {
            put_symbol(r, v, p->pointer[0], out);
        } else if (v) {
            g_string_append_printf(out, "0x%" PRIx64, v);
        } else {
            g_string_append(out, "(nil)");
        }
        return;
    }
    while (n->op == HT_OP_CAST) {
        n = n->a;
    }
    if (n->op != HT_OP_FIELD) {
        g_string_append_printf(out, "0x%" PRIx64, eval(n, r));
        return;
    }
    bytes = ht_ft_field_bytes(&n->field, r->data, r->size, &len);
    ht_print_pointer(p->pointer, bytes, len, width, out);
}

/*
 * Print an argument whose conversion has no flags, width or precision. For
 * other conversions than %s, %d and %u, print nothing and return false.
 */
static bool put_bare(const HtPrintPiece *p, const Run *r, GString *out)
{
    switch (p->conversion) {
    case 's':
        put_text(p->arg, r, out);
        return true;
    case 'd':
    case 'u':
        put_number(p, eval(p->arg, r), -1, -1, out);
        return true;
    }
    return false;
}

static void put_piece(const HtPrintPiece *p, const Run *r, GString *out)
{
    int width = p->width_arg ? (int)eval(p->width_arg, r) : p->width;
    int precision = p->precision_arg ? (int)eval(p->precision_arg, r) :
                    p->precision;
    bool left = strchr(p->flags, '-') || (p->width_arg && width < 0);
    gsize start = out->len;

    if (p->width_arg && width < 0) {
        width = width == INT_MIN ? -1 : -width;
    }
    switch (p->conversion) {
    case 's':
        if (!put_text(p->arg, r, out)) {
            break;
        }
        if (precision >= 0 && out->len - start > (gsize)precision) {
            g_string_truncate(out, start + precision);
        }
        pad(out, start, width, left);
        break;
    case 'c':
        g_string_append_c(out, eval(p->arg, r));
        pad(out, start, width, left);
        break;
    case 'p':
        put_pointer(p, r, width, out);
        /* The width of %*ph and %*pb is the size of the object: do not pad. */
        pad(out, start, p->pointer[0] && strchr("hb", p->pointer[0]) ?
            -1 : width, left);
        break;
    default:
        put_number(p, eval(p->arg, r), width, precision, out);
        break;
    }
}

void ht_print(const HtPrint *print, const uint8_t *data, size_t size,
              const HtPrintSymbols *symbols, GString *out)
{
    const Run r = { .data = data, .size = size, .symbols = symbols };
    unsigned i;

    for (i = 0; i < print->pieces->len; i++) {
        const HtPrintPiece *p = &g_array_index(print->pieces, HtPrintPiece, i);

        ht_text_append(out, p->text, p->text_len);
        if (p->conversion && !(p->is_bare && put_bare(p, &r, out))) {
            put_piece(p, &r, out);
        }
    }
}
