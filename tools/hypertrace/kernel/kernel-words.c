/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: parse and extend the command line of a Linux kernel
 */
#include <glib.h>
#include <string.h>

#include "kernel/kernel-words.h"

/*
 * A word: @begin and @end are its place in the text. @name and @value are
 * without the quotation marks around them; @name has '_' instead of '-'; @value
 * is NULL for a word without '='.
 */
typedef struct Word {
    const char *begin, *end;
    char *name, *value;
    /* a quotation mark in the word has no partner */
    bool open;
    /* the word is "--": the words after it are for init, not for the kernel */
    bool init;
} Word;

/*
 * If a text begins with a quotation mark, remove this mark, and a quotation
 * mark at the end. Do not change another text.
 */
static void strip_quotes(char *text)
{
    size_t len = strlen(text);

    if (text[0] == '"') {
        memmove(text, text + 1, len);
        if (len > 1 && text[len - 2] == '"') {
            text[len - 2] = 0;
        }
    }
}

static bool next_word(const char **p, Word *w)
{
    const char *equals = NULL, *q;
    bool quoted = false;

    g_clear_pointer(&w->name, g_free);
    g_clear_pointer(&w->value, g_free);
    while (g_ascii_isspace(**p)) {
        (*p)++;
    }
    if (!**p) {
        return false;
    }
    for (q = *p; *q && (quoted || !g_ascii_isspace(*q)); q++) {
        quoted ^= *q == '"';
        if (*q == '=' && !equals) {
            equals = q;
        }
    }
    w->begin = *p;
    w->end = *p = q;
    w->open = quoted;
    if (equals) {
        w->name = g_strndup(w->begin, equals - w->begin);
        w->value = g_strndup(equals + 1, q - equals - 1);
        /* A quotation mark before the name quotes the whole word. */
        if (w->name[0] == '"' && g_str_has_suffix(w->value, "\"")) {
            w->value[strlen(w->value) - 1] = 0;
        }
        strip_quotes(w->value);
    } else {
        w->name = g_strndup(w->begin, q - w->begin);
    }
    strip_quotes(w->name);
    w->init = !w->value && !strcmp(w->name, "--");
    g_strdelimit(w->name, "-", '_');
    return true;
}

static void clear_word(Word *w)
{
    g_free(w->name);
    g_free(w->value);
}

bool ht_kernel_words_ring(const char *text, uint64_t *at)
{
    bool found = false;
    Word w = { 0 };

    while (!found && next_word(&text, &w) && !w.init) {
        const char *place;

        if (w.value && !strcmp(w.name, "trace_instance")) {
            w.value[strcspn(w.value, ",")] = 0;
            place = strchr(w.value, '@');
            found = place;
            *at = place && g_ascii_isdigit(place[1]) ?
                g_ascii_strtoull(place + 1, NULL, 0) : 0;
        }
    }
    clear_word(&w);
    return found;
}

bool ht_kernel_words_label(const char *text, const char *label)
{
    bool found = false;
    Word w = { 0 };

    while (!found && next_word(&text, &w) && !w.init) {
        const char *last = w.value ? strrchr(w.value, ':') : NULL;

        found = last && !strcmp(w.name, "reserve_mem") &&
                !strcmp(last + 1, label);
    }
    clear_word(&w);
    return found;
}

char *ht_kernel_words_values(const char *text, const char *name)
{
    GString *values = g_string_new(NULL);
    Word w = { 0 };

    while (next_word(&text, &w) && !w.init) {
        if (w.value && !strcmp(w.name, name)) {
            g_string_append_printf(values, "%s,", w.value);
        }
    }
    clear_word(&w);
    return g_string_free(values, false);
}

char *ht_kernel_words_merge(const char *text, const char *words)
{
    const char *p = text, *end = text + strlen(text);
    g_autofree char *before = NULL;
    bool open = false;
    Word w = { 0 };

    while (next_word(&p, &w)) {
        if (w.init) {
            end = w.begin;
            break;
        }
        open = w.open;
    }
    clear_word(&w);
    if (open) {
        return g_strconcat(words, " ", text, NULL);
    }
    before = g_strndup(text, end - text);
    return g_strconcat(before, before[0] && !g_ascii_isspace(end[-1]) ? " " :
                       "", words, *end ? " " : "", end, NULL);
}
