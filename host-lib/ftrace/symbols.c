/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: keep a guest kernel's symbols, and search them by address or name
 *
 * The symbols are added one by one, or parsed from the text of /proc/kallsyms.
 */
#include "hypertrace/name-hash.h"
#include "hypertrace/symbols.h"
#include "text.h"

/* Maximum length of a name, as in Linux 6.1 and later */
#define NAME_MAX_BYTES  511

/* KASLR's shift is a multiple of this number of bytes. */
#define SHIFT_STEP      0x10000u

typedef struct Symbol {
    uint64_t addr;
    /* offset of the symbol's name in @text; rises in the order of the input */
    uint32_t name;
} Symbol;

struct HtSymbols {
    /* for each symbol: the letter of its type, its name, a NUL */
    GByteArray *text;
    GArray *symbols;            /* array of Symbol, sorted by address */
    /* index in @symbols of the first address whose bit 63 is set */
    unsigned high;
    /* hash table of names: index in @symbols plus 1; 0: free */
    uint32_t *slots;
    /* number of elements of @slots, a power of two, minus 1 */
    uint32_t mask;
};

static const Symbol *all(const HtSymbols *s)
{
    return (const Symbol *)s->symbols->data;
}

static const char *name_of(const HtSymbols *s, const Symbol *t)
{
    return (const char *)s->text->data + t->name;
}

static bool hex(const char **p, const char *end, uint64_t *value)
{
    const char *begin = *p;

    for (*value = 0; *p < end && g_ascii_isxdigit(**p); (*p)++) {
        *value = *value << 4 | g_ascii_xdigit_value(**p);
    }
    return *p > begin && *p - begin <= 16;
}

static int compare(const void *a, const void *b)
{
    const Symbol *x = a, *y = b;

    return x->addr != y->addr ? (x->addr > y->addr) - (x->addr < y->addr) :
           (x->name > y->name) - (x->name < y->name);
}

/* Find the slot of a name: the symbol's, or a free one */
static uint32_t *slot_of(const HtSymbols *s, const char *name)
{
    uint32_t at = ht_name_hash(name) & s->mask;

    while (s->slots[at] &&
           strcmp(name_of(s, &all(s)[s->slots[at] - 1]), name)) {
        at = (at + 1) & s->mask;
    }
    return &s->slots[at];
}

/* Index the names; of equal names, the first one of the text counts. */
static void index_names(HtSymbols *s)
{
    uint32_t size = 16, i;

    while (size < s->symbols->len * 2) {
        size *= 2;
    }
    s->mask = size - 1;
    s->slots = g_new0(uint32_t, size);
    for (i = 0; i < s->symbols->len; i++) {
        const Symbol *t = &all(s)[i];
        uint32_t *slot = slot_of(s, name_of(s, t));

        if (!*slot || t->name < all(s)[*slot - 1].name) {
            *slot = i + 1;
        }
    }
}

HtSymbols *ht_symbols_new(void)
{
    HtSymbols *s = g_new0(HtSymbols, 1);

    s->text = g_byte_array_new();
    s->symbols = g_array_new(false, false, sizeof(Symbol));
    return s;
}

bool ht_symbols_add(HtSymbols *s, uint64_t addr, char type, const char *name,
                    size_t len)
{
    Symbol symbol = { .addr = addr, .name = s->text->len + 1 };

    if (!len || len > NAME_MAX_BYTES ||
        s->text->len > HT_SYMBOLS_MAX - len - 2) {
        return false;
    }
    g_byte_array_append(s->text, (const uint8_t *)&type, 1);
    g_byte_array_append(s->text, (const uint8_t *)name, len);
    g_byte_array_append(s->text, (const uint8_t *)"", 1);
    g_array_append_val(s->symbols, symbol);
    return true;
}

HtSymbols *ht_symbols_end(HtSymbols *s)
{
    if (!s->symbols->len) {
        ht_symbols_free(s);
        return NULL;
    }
    qsort(s->symbols->data, s->symbols->len, sizeof(Symbol), compare);
    while (s->high < s->symbols->len && !(all(s)[s->high].addr >> 63)) {
        s->high++;
    }
    index_names(s);
    return s;
}

static void parse_line(HtSymbols *s, const char *line, const char *end)
{
    const char *p = line;
    uint64_t addr;
    size_t len;

    if (!hex(&p, end, &addr) || end - p < 4 || p[0] != ' ' || p[2] != ' ' ||
        !(addr >> 63)) {
        return;
    }
    for (len = 0; p + 3 + len < end && g_ascii_isgraph(p[3 + len]); len++) {
        ;
    }
    ht_symbols_add(s, addr, p[1], p + 3, len);
}

HtSymbols *ht_symbols_parse(const char *text, size_t size, GError **error)
{
    g_autofree char *copy = ht_text_copy(text, size, HT_SYMBOLS_MAX, "symbols",
                                         error);
    char *p, *end, *nl;
    HtSymbols *s;

    if (!copy) {
        return NULL;
    }
    s = ht_symbols_new();
    copy[size] = '\n';
    for (p = copy, end = p + size; p < end; p = nl + 1) {
        nl = memchr(p, '\n', end + 1 - p);
        parse_line(s, p, nl);
    }
    s = ht_symbols_end(s);
    if (!s) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "no kernel symbol in %zu bytes", size);
    }
    return s;
}

void ht_symbols_free(HtSymbols *s)
{
    if (s) {
        g_array_free(s->symbols, true);
        g_byte_array_unref(s->text);
        g_free(s->slots);
        g_free(s);
    }
}

/* Index of the first symbol at or after @addr whose address has bit 63 set */
static unsigned first_from(const HtSymbols *s, uint64_t addr)
{
    const Symbol *t = all(s);
    unsigned low = s->high, high = s->symbols->len;

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
    const Symbol *t = all(s);
    unsigned n = s->symbols->len, i;

    if (s->high == n || addr < t[s->high].addr || addr > t[n - 1].addr) {
        return NULL;
    }
    i = first_from(s, addr);
    if (i == n || t[i].addr != addr) {
        i = first_from(s, t[i - 1].addr);
    }
    *offset = addr - t[i].addr;
    return name_of(s, &t[i]);
}

bool ht_symbols_address(const HtSymbols *s, const char *name, uint64_t *addr)
{
    uint32_t index = *slot_of(s, name);

    if (index) {
        *addr = all(s)[index - 1].addr;
    }
    return index;
}

const char *ht_symbols_get(const HtSymbols *s, unsigned index, uint64_t *addr,
                           char *type)
{
    const char *name;

    if (index >= s->symbols->len) {
        return NULL;
    }
    *addr = all(s)[index].addr;
    name = name_of(s, &all(s)[index]);
    *type = name[-1];
    return name;
}

static bool all_there(const HtSymbols *s, const uint64_t *addrs, unsigned n,
                      uint64_t shift)
{
    const Symbol *t = all(s);
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
    const Symbol *t = all(s);
    bool found = false;
    unsigned i;

    for (i = s->high; n >= HT_SYMBOLS_SHIFT_MIN && i < s->symbols->len; i++) {
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
