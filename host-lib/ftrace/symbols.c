/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a guest kernel's symbols, from the text of /proc/kallsyms
 */
#include "hypertrace/symbols.h"
#include "text.h"

/* Kernels' own limit is 512. */
#define NAME_MAX_BYTES  511

/* The least that a kernel is moved by */
#define SHIFT_STEP      0x10000u

typedef struct Symbol {
    uint64_t addr;
    uint32_t name;              /* offset in the text: the order, too */
} Symbol;

struct HtSymbols {
    char *text;                 /* ours, with each name terminated */
    GArray *symbols;            /* Symbol, sorted */
};

static bool hex(const char **p, const char *end, uint64_t *value)
{
    const char *begin = *p;

    for (*value = 0; *p < end && g_ascii_isxdigit(**p); (*p)++) {
        *value = *value << 4 | g_ascii_xdigit_value(**p);
    }
    return *p > begin && *p - begin <= 16;
}

/* Terminates the name where it ends, over the blank or the line's end. */
static bool parse_line(HtSymbols *s, char *line, char *end, Symbol *symbol)
{
    const char *p = line;
    size_t len;

    if (!hex(&p, end, &symbol->addr) || end - p < 4 || p[0] != ' ' ||
        p[2] != ' ' || !(symbol->addr >> 63)) {
        return false;
    }
    symbol->name = p + 3 - s->text;
    for (len = 0; p + 3 + len < end && g_ascii_isgraph(p[3 + len]); len++) {
        ;
    }
    s->text[symbol->name + len] = 0;
    return len && len <= NAME_MAX_BYTES;
}

static int compare(const void *a, const void *b)
{
    const Symbol *x = a, *y = b;

    return x->addr != y->addr ? (x->addr > y->addr) - (x->addr < y->addr) :
           (x->name > y->name) - (x->name < y->name);
}

HtSymbols *ht_symbols_parse(const char *text, size_t size, GError **error)
{
    char *p, *end, *nl, *copy;
    Symbol symbol;
    HtSymbols *s;

    copy = ht_text_copy(text, size, HT_SYMBOLS_MAX, "symbols", error);
    if (!copy) {
        return NULL;
    }
    s = g_new0(HtSymbols, 1);
    s->text = copy;
    s->text[size] = '\n';
    s->symbols = g_array_new(false, false, sizeof(Symbol));
    for (p = s->text, end = p + size; p < end; p = nl + 1) {
        nl = memchr(p, '\n', end + 1 - p);
        if (parse_line(s, p, nl, &symbol)) {
            g_array_append_val(s->symbols, symbol);
        }
    }
    if (!s->symbols->len) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "no kernel symbol in %zu bytes", size);
        ht_symbols_free(s);
        return NULL;
    }
    qsort(s->symbols->data, s->symbols->len, sizeof(Symbol), compare);
    return s;
}

void ht_symbols_free(HtSymbols *s)
{
    if (s) {
        g_array_free(s->symbols, true);
        g_free(s->text);
        g_free(s);
    }
}

/* Index of the first symbol at or behind @addr */
static unsigned first_from(const HtSymbols *s, uint64_t addr)
{
    const Symbol *t = (const Symbol *)s->symbols->data;
    unsigned low = 0, high = s->symbols->len;

    while (low < high) {
        unsigned mid = low + (high - low) / 2;

        if (t[mid].addr < addr) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

const char *ht_symbols_find(const HtSymbols *s, uint64_t addr,
                            uint64_t *offset)
{
    const Symbol *t = (const Symbol *)s->symbols->data;
    unsigned n = s->symbols->len, i;

    if (addr < t[0].addr || addr > t[n - 1].addr) {
        return NULL;
    }
    i = first_from(s, addr);
    if (i == n || t[i].addr != addr) {
        i = first_from(s, t[i - 1].addr);
    }
    *offset = addr - t[i].addr;
    return s->text + t[i].name;
}

bool ht_symbols_address(const HtSymbols *s, const char *name, uint64_t *addr)
{
    const Symbol *t = (const Symbol *)s->symbols->data, *first = NULL;
    unsigned i;

    for (i = 0; i < s->symbols->len; i++) {
        if (!strcmp(s->text + t[i].name, name) &&
            (!first || t[i].name < first->name)) {
            first = &t[i];
        }
    }
    if (first) {
        *addr = first->addr;
    }
    return first;
}

static bool all_there(const HtSymbols *s, const uint64_t *addrs, unsigned n,
                      uint64_t shift)
{
    const Symbol *t = (const Symbol *)s->symbols->data;
    unsigned i, at;

    for (i = 0; i < n; i++) {
        at = first_from(s, addrs[i] - shift);
        if (at == s->symbols->len || t[at].addr != addrs[i] - shift) {
            return false;
        }
    }
    return true;
}

bool ht_symbols_shift(const HtSymbols *s, const uint64_t *addrs, unsigned n,
                      uint64_t *shift)
{
    const Symbol *t = (const Symbol *)s->symbols->data;
    bool found = false;
    unsigned i;

    for (i = 0; n >= HT_SYMBOLS_SHIFT_MIN && i < s->symbols->len; i++) {
        uint64_t by = addrs[0] - t[i].addr;

        if (by % SHIFT_STEP || (found && by == *shift) ||
            !all_there(s, addrs, n, by)) {
            continue;
        }
        if (found) {
            return false;
        }
        *shift = by;
        found = true;
    }
    return found;
}

unsigned ht_symbols_count(const HtSymbols *s)
{
    return s->symbols->len;
}
