/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: select events by a list of name patterns
 */
#include "hypertrace/pattern.h"

struct HtPatterns {
    char **items;
};

static bool item_valid(const char *item)
{
    const char *p = item + (*item == '!');

    if (!*p) {
        return false;
    }
    for (; *p; p++) {
        if (!g_ascii_isalnum(*p) && !strchr("_.-*?", *p)) {
            return false;
        }
    }
    return true;
}

HtPatterns *ht_patterns_new(const char *text, char **why)
{
    HtPatterns *p;
    unsigned i;

    if (strlen(text) > HT_PATTERNS_MAX) {
        *why = g_strdup_printf("a list of patterns has at most %d bytes",
                               HT_PATTERNS_MAX);
        return NULL;
    }
    p = g_new0(HtPatterns, 1);
    p->items = g_strsplit_set(text, ",:", -1);
    for (i = 0; p->items[i]; i++) {
        if (!item_valid(p->items[i])) {
            break;
        }
    }
    if (i == 0 || p->items[i]) {
        *why = g_strdup_printf("'%s' is not a pattern: characters of"
                               " [A-Za-z0-9_.*?-], or a '!' and these; '!*' is"
                               " no event at all", i ? p->items[i] : text);
        ht_patterns_free(p);
        return NULL;
    }
    return p;
}

void ht_patterns_free(HtPatterns *p)
{
    if (p) {
        g_strfreev(p->items);
        g_free(p);
    }
}

/* Go to the next character; continuation bytes of UTF-8 begin no character. */
static const char *next_character(const char *s)
{
    do {
        s++;
    } while ((*s & 0xc0) == 0x80);
    return s;
}

/*
 * Test whether a pattern matches a name.  After a mismatch, let only the last
 * '*' so far match one more byte: the text of an earlier '*' need not change.
 */
bool ht_pattern_match(const char *pattern, const char *name)
{
    const char *star = NULL, *again = NULL;

    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            again = name;
        } else if (*pattern == '?') {
            pattern++;
            name = next_character(name);
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return !*pattern;
}

bool ht_patterns_match(const HtPatterns *p, const char *name)
{
    bool wanted;
    unsigned i;

    if (!p) {
        return true;
    }
    wanted = p->items[0][0] == '!';
    for (i = 0; p->items[i]; i++) {
        const bool not = p->items[i][0] == '!';

        if (ht_pattern_match(p->items[i] + not, name)) {
            wanted = !not;
        }
    }
    return wanted;
}
