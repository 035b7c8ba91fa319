/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: append to a GString faster than GLib does
 *
 * g_string_append_len() is slower because it allows text that is part of the
 * string itself. The inline functions below do not allow that.
 */
#ifndef HYPERTRACE_TOOL_TEXT_H
#define HYPERTRACE_TOOL_TEXT_H

#include <glib.h>
#include <string.h>

/**
 * ht_text_room() - make room at the end of a string
 * @out: string
 * @len: maximum number of bytes that the caller will write
 *
 * The caller writes to the returned address and calls ht_text_end().
 *
 * Return: the end of the string
 */
static inline char *ht_text_room(GString *out, gsize len)
{
    if (G_UNLIKELY(out->allocated_len - out->len <= len)) {
        gsize before = out->len;

        g_string_set_size(out, before + len);
        out->len = before;
    }
    return out->str + out->len;
}

/**
 * ht_text_end() - set the new end of a string
 * @out: string
 * @end: the byte after the last one that was written
 */
static inline void ht_text_end(GString *out, char *end)
{
    *end = 0;
    out->len = end - out->str;
}

/**
 * ht_text_append() - append bytes
 * @out: string
 * @s: the bytes; must not be part of @out
 * @len: their number
 */
static inline void ht_text_append(GString *out, const char *s, gsize len)
{
    char *p = ht_text_room(out, len);

    if (len) {
        memcpy(p, s, len);
    }
    ht_text_end(out, p + len);
}

/**
 * ht_text_fill() - append a byte several times
 * @out: string
 * @c: the byte
 * @n: number of times
 */
static inline void ht_text_fill(GString *out, char c, gsize n)
{
    char *p = ht_text_room(out, n);

    memset(p, c, n);
    ht_text_end(out, p + n);
}

#endif /* HYPERTRACE_TOOL_TEXT_H */
