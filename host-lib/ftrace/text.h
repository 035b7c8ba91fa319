/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a text that is going to be parsed
 */
#ifndef HYPERTRACE_TEXT_H
#define HYPERTRACE_TEXT_H

#include "hypertrace/base.h"

/**
 * ht_text_copy: copy a text that is not trusted
 * @text: any bytes
 * @size: of @text
 * @max: bytes that are read at most
 * @what: it is, for the error
 * @error: set if it is larger
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
