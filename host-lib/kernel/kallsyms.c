/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: decode a kernel's symbols from the tables in its image
 *
 * The kernel's scripts/kallsyms.c writes these tables, each aligned to 8 bytes:
 *   to 6.3:   offsets, relative_base, num_syms, names, markers,
 *             [seqs_of_names,] token_table, token_index
 *   from 6.4: num_syms, names, markers, token_table, token_index, offsets,
 *             relative_base, seqs_of_names
 *   7.x:      as 6.4 without relative_base: an offset is relative to its own
 *             address
 * token_table holds 256 texts, the tokens; token_index holds their offsets.
 * The token of a digit is the digit.  A name is a length (one byte; two if the
 * first byte's top bit is set), and then as many numbers of tokens as the
 * length says.  The tokens, joined, are the letter of the symbol's type and its
 * name.  A marker is the offset of each 256th name.
 */
#include "hypertrace/base.h"
#include "hypertrace/kallsyms.h"

#define TOKENS          256u
/* number of the token of the character '0' */
#define DIGIT_ZERO      48u
#define TOKEN_MAX       512u        /* maximum bytes of a token, with the NUL */
#define NAME_MAX_BYTES  511u
#define PER_MARKER      256u
/* Minimum number of markers of a kernel; a marker covers 256 symbols */
#define MARKERS_MIN     8u
/*
 * Maximum size in bytes of seqs_of_names, which may be between markers and
 * tokens
 */
#define SEQS_MAX        (3 * HT_KALLSYMS_MAX)
/* Maximum number of steps of the search for the tables, over all attempts */
#define STEPS_MAX       (16u << 20)

/*
 * Address of _text to assume if neither the segments nor the tables have it;
 * Linux 6.6 has this address on arm64 with 48-bit addresses
 */
#define TEXT_UNKNOWN    UINT64_C(0xffff800080000000)

typedef struct Tables {
    const uint8_t *p;
    uint64_t size;
    uint64_t steps;
    uint64_t tokens;                /* offset in @p of token_table */
    uint64_t after;                 /* offset in @p of the end of token_index */
    const char *token[TOKENS];
    uint16_t token_len[TOKENS];
    uint64_t num_syms;              /* offset in @p of num_syms */
    uint64_t names;                 /* offset in @p of names */
    uint32_t n;
    /* index of the symbol _text among the symbols */
    uint32_t text_index;
} Tables;

static bool step(Tables *t)
{
    return ++t->steps <= STEPS_MAX;
}

/*
 * Read the tokens at @start; set @places to their offsets from @start, and @end
 * to the offset after them
 */
static bool read_tokens(Tables *t, uint64_t start, uint16_t places[TOKENS],
                        uint64_t *end)
{
    uint64_t at = start;
    unsigned i;

    for (i = 0; i < TOKENS && step(t); i++) {
        const uint8_t *nul;

        if (at >= t->size || at - start > UINT16_MAX) {
            return false;
        }
        nul = memchr(t->p + at, 0, MIN(t->size - at, TOKEN_MAX));
        if (!nul) {
            return false;
        }
        places[i] = at - start;
        t->token[i] = (const char *)t->p + at;
        t->token_len[i] = nul - (t->p + at);
        at = nul - t->p + 1;
    }
    *end = at;
    return i == TOKENS;
}

/*
 * Test whether token_index begins at @end, rounded up to a multiple of 4 or 8,
 * and holds the offsets @places; if so, set Tables.after
 */
static bool index_follows(Tables *t, uint64_t end,
                          const uint16_t places[TOKENS])
{
    uint64_t at, align;

    for (align = 4; align <= 8; align *= 2) {
        unsigned i;

        at = HT_ROUND_UP(end, align);
        for (i = 0; i < TOKENS && at + 2 * TOKENS <= t->size &&
             ht_get_le16(t->p + at + 2 * i) == places[i]; i++) {
            ;
        }
        if (i == TOKENS) {
            t->after = at + 2 * TOKENS;
            return true;
        }
    }
    return false;
}

/* Try to parse a token_table that contains the digits' tokens at @digits */
static bool tokens_at(Tables *t, uint64_t digits)
{
    uint64_t start = digits, end, align;
    uint16_t places[TOKENS];
    unsigned i;

    for (i = 0; i < DIGIT_ZERO; i++) {
        uint64_t len = 0;

        if (start == 0 || t->p[start - 1]) {
            return false;
        }
        start--;
        while (start && t->p[start - 1] && len < TOKEN_MAX && step(t)) {
            start--;
            len++;
        }
    }
    /*
     * Padding before an aligned table looks like empty tokens: try each
     * alignment.
     */
    for (align = 1; align <= 8; align *= 2) {
        t->tokens = HT_ROUND_UP(start, align);
        if (t->tokens <= digits && read_tokens(t, t->tokens, places, &end) &&
            (uint64_t)((const uint8_t *)t->token[DIGIT_ZERO] - t->p) ==
            digits && index_follows(t, end, places)) {
            return true;
        }
    }
    return false;
}

/* Read the length of a name at *@at; advance *@at to its tokens */
static bool name_length(const Tables *t, uint64_t *at, unsigned *len)
{
    if (*at >= t->size) {
        return false;
    }
    *len = t->p[(*at)++];
    if (*len & 0x80) {
        if (*at >= t->size) {
            return false;
        }
        *len = (*len & 0x7f) | (unsigned)t->p[(*at)++] << 7;
    }
    return *len && *len <= NAME_MAX_BYTES && *len <= t->size - *at;
}

/* Test whether the @n names at @names begin where the markers say */
static bool names_agree(Tables *t, uint64_t names, uint32_t n,
                        const uint8_t *markers)
{
    uint64_t at = names;
    uint32_t i;

    for (i = 0; i < n && step(t); i++) {
        unsigned len;

        if (i % PER_MARKER == 0 &&
            at - names != ht_get_le32(markers + i / PER_MARKER * 4)) {
            return false;
        }
        if (!name_length(t, &at, &len)) {
            return false;
        }
        at += len;
    }
    return i == n;
}

static bool names_before(Tables *t, uint64_t markers, unsigned n_markers)
{
    const uint8_t *m = t->p + markers;
    /* Each name of the last group may take up to 2 + NAME_MAX_BYTES bytes. */
    uint64_t last = ht_get_le32(m + 4 * (n_markers - 1));
    uint64_t far = last + PER_MARKER * (NAME_MAX_BYTES + 2) + 16;
    uint64_t at = markers > far ? (markers - far) & ~UINT64_C(3) : 0;
    uint64_t to = markers > last ? markers - last : 0;

    for (; at + 8 <= to && step(t); at += 4) {
        uint32_t n = ht_get_le32(t->p + at);
        unsigned gap;

        if (n > HT_KALLSYMS_MAX || (n + PER_MARKER - 1) / PER_MARKER !=
            n_markers) {
            continue;
        }
        for (gap = 4; gap <= 8; gap += 4) {
            if (names_agree(t, at + gap, n, m)) {
                t->num_syms = at;
                t->names = at + gap;
                t->n = n;
                return true;
            }
        }
    }
    return false;
}

/*
 * Find the markers, which end at @end or at padding before @end, and the names
 * before the markers.
 */
static bool markers_end(Tables *t, uint64_t end)
{
    uint64_t at = end, first;
    uint32_t last = 0, v;
    unsigned n = 0;

    /* Skip padding: a marker of 0 can only be the first one. */
    while (at >= 4 && end - at < 8 && !ht_get_le32(t->p + at - 4)) {
        at -= 4;
    }
    for (first = at; first >= 4 && step(t); first -= 4, n++) {
        v = ht_get_le32(t->p + first - 4);
        if (n && (v >= last ||
                  last - v > PER_MARKER * (NAME_MAX_BYTES + 2))) {
            return false;
        }
        last = v;
        if (!v) {
            return n + 1 >= MARKERS_MIN && names_before(t, first - 4, n + 1);
        }
    }
    return false;
}

static bool find_names(Tables *t)
{
    uint64_t end = t->tokens & ~UINT64_C(3);
    uint64_t least = end > SEQS_MAX ? end - SEQS_MAX : 0;

    for (; end > least && step(t); end -= 4) {
        if (markers_end(t, end)) {
            return true;
        }
    }
    return false;
}

/* Expand a name of @len tokens; its first character is the type */
static bool expand(const Tables *t, uint64_t at, unsigned len,
                   char name[NAME_MAX_BYTES + 2], unsigned *size)
{
    unsigned i, n = 0;

    for (i = 0; i < len; i++) {
        unsigned token = t->p[at + i];

        if (t->token_len[token] > NAME_MAX_BYTES + 1 - n) {
            return false;
        }
        memcpy(name + n, t->token[token], t->token_len[token]);
        n += t->token_len[token];
    }
    *size = n;
    return n >= 2;
}

static bool find_text(Tables *t)
{
    uint64_t at = t->names;
    uint32_t i;

    for (i = 0; i < t->n && step(t); i++) {
        char name[NAME_MAX_BYTES + 2];
        unsigned len, size;

        /* names_agree() has checked the length */
        name_length(t, &at, &len);
        if (!expand(t, at, len, name, &size)) {
            return false;
        }
        if (size == 6 && !memcmp(name + 1, "_text", 5)) {
            t->text_index = i;
            return true;
        }
        at += len;
    }
    return false;
}

/* How to convert the offsets of a table to addresses */
typedef struct Offsets {
    uint64_t at;                /* offset in Tables.p of kallsyms_offsets */
    uint64_t base;
    /* an offset is relative to the place of the offset itself */
    bool to_place;
    /* an offset of 0 or more is an absolute address of a per-CPU symbol */
    bool percpu;
} Offsets;

static uint64_t address(const Tables *t, const Offsets *o, uint32_t i)
{
    int32_t v = ht_get_le32(t->p + o->at + 4ull * i);

    if (o->to_place) {
        return o->base + 4ull * i + (int64_t)v;
    }
    if (o->percpu) {
        return v >= 0 ? (uint64_t)v : o->base - 1 - (int64_t)v;
    }
    return o->base + (uint32_t)v;
}

/*
 * Test whether the addresses are plausible.  They must not decrease, because
 * the kernel uses a binary search.  More than a quarter must differ from the
 * previous address, and more than half must lie in the 1 GiB from @text on.
 */
static bool plausible(Tables *t, const Offsets *o, uint64_t text)
{
    uint64_t last = 0, a;
    uint32_t i, good = 0, differ = 0;

    for (i = 0; i < t->n && step(t); i++, last = a) {
        a = address(t, o, i);
        if (a < last) {
            return false;
        }
        differ += a > last;
        good += a >= text && a - text < (UINT64_C(1) << 30);
    }
    return i == t->n && good > t->n / 2 && differ > t->n / 4;
}

/* Return the virtual address of a file offset; 0 if it is in no segment */
static uint64_t place_address(uint64_t offset, const HtKernelSegment *segments,
                              unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        if (offset >= segments[i].offset &&
            offset - segments[i].offset < segments[i].size) {
            return segments[i].addr + (offset - segments[i].offset);
        }
    }
    return 0;
}

/*
 * Test whether a table of offsets is at @at; set @o to the table's form, and
 * @text to the address of _text
 */
static bool offsets_at(Tables *t, uint64_t at, const HtKernelSegment *segments,
                       unsigned n, Offsets *o, uint64_t *text)
{
    uint64_t place = place_address(at, segments, n), base_at;
    bool known = segments[0].addr;
    uint64_t first = known ? segments[0].addr : TEXT_UNKNOWN;
    uint64_t negative = 0;
    uint32_t i;

    if (at % 4 || at > t->size || 4ull * t->n > t->size - at) {
        return false;
    }
    *o = (Offsets) { .at = at, .base = place, .to_place = true };
    if ((place || !known) &&
        address(t, o, t->text_index) == segments[0].addr) {
        o->base += first - segments[0].addr;
        *text = first;
        return plausible(t, o, first);
    }
    o->to_place = false;
    base_at = HT_ROUND_UP(at + 4ull * t->n, 8);
    if (base_at > t->size - 8) {
        return false;
    }
    o->base = ht_get_le64(t->p + base_at);
    for (i = 0; i < t->n && step(t); i++) {
        negative += (int32_t)ht_get_le32(t->p + at + 4ull * i) < 0;
    }
    o->percpu = negative > t->n / 2;
    *text = address(t, o, t->text_index);
    if (o->base == 0) {
        /* On arm64, the file may have 0 here: a relocation sets the base. */
        o->base = first - *text;
        *text = first;
    }
    return *text >> 63 && *text % 4096 == 0 &&
           (!known || *text == first) && plausible(t, o, *text);
}

static bool find_offsets(Tables *t, const HtKernelSegment *segments,
                         unsigned n, Offsets *o, uint64_t *text)
{
    uint64_t before = (4ull * t->n + 7) / 8 * 8 + 8, i;

    /* Linux 6.4 and later: the table of offsets follows token_index. */
    for (i = 0; i <= 8; i += 4) {
        if (offsets_at(t, HT_ROUND_UP(t->after, 4) + i, segments, n, o,
                       text)) {
            return true;
        }
    }
    /*
     * Before Linux 6.4: the table of offsets, relative_base and padding precede
     * num_syms.
     */
    for (i = 0; i <= 16; i += 4) {
        if (before + i - 4 <= t->num_syms &&
            offsets_at(t, t->num_syms - before - i + 4, segments, n, o,
                       text)) {
            return true;
        }
    }
    return false;
}

static HtSymbols *decode(Tables *t, const Offsets *o)
{
    HtSymbols *s = ht_symbols_new();
    uint64_t at = t->names;
    uint32_t i;

    for (i = 0; i < t->n; i++) {
        char name[NAME_MAX_BYTES + 2];
        unsigned len, size;

        name_length(t, &at, &len);
        if (expand(t, at, len, name, &size)) {
            ht_symbols_add(s, address(t, o, i), name[0], name + 1, size - 1);
        }
        at += len;
    }
    return ht_symbols_end(s);
}

HtSymbols *ht_kallsyms_decode(const void *data, size_t size,
                              const HtKernelSegment *segments, unsigned n,
                              uint64_t *text, GError **error)
{
    static const char digits[] = "0\0" "1\0" "2\0" "3\0" "4\0" "5\0" "6\0"
                                 "7\0" "8\0" "9";
    const char *reason = "no token table";
    const uint8_t *from = data, *found;
    HtSymbols *s = NULL;
    uint64_t steps = 0, of_text;
    Offsets o;

    while (n && !s && steps < STEPS_MAX &&
           (found = memmem(from, size - (from - (const uint8_t *)data),
                           digits, sizeof(digits)))) {
        Tables t = { .p = data, .size = size, .steps = steps };

        from = found + 1;
        if (!tokens_at(&t, found - (const uint8_t *)data)) {
            steps = t.steps + 1;
            continue;
        }
        if (!find_names(&t) || !find_text(&t)) {
            reason = "no names";
        } else if (!find_offsets(&t, segments, n, &o, &of_text)) {
            reason = "no offsets";
        } else {
            s = decode(&t, &o);
        }
        steps = t.steps + 1;
    }
    if (!s) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "the kernel has no symbols that can be read: %s%s (it "
                    "must be built with CONFIG_KALLSYMS)", reason,
                    steps >= STEPS_MAX ? " within bounds" : "");
        return NULL;
    }
    if (text) {
        *text = of_text;
    }
    return s;
}
