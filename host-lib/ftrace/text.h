/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: copy a text for parsing
 */
#ifndef HYPERTRACE_TEXT_H
#define HYPERTRACE_TEXT_H

#include "hypertrace/base.h"

/**
 * ht_text_copy: copy an untrusted text
 * @text: the text; may contain any bytes
 * @size: size of @text in bytes
 * @max: maximum size in bytes
 * @what: kind of text, for the error message
 * @error: set if @size is larger than @max
 *
 * Returns: the copy, with room for one more byte, for g_free(); or NULL
 */
static inline char *ht_text_copy(const char *text, size_t size, size_t max,
                                 const char *what, GError **error)
{
    char *copy;

    if (size > max) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "%s of %zu bytes; at most %zu are read", what, size, max);
        return NULL;
    }
    copy = g_malloc(size + 1);
    memcpy(copy, text, size);
    return copy;
}

#endif /* HYPERTRACE_TEXT_H */
