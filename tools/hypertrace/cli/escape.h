/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: escape text of a guest for the place where it is shown
 *
 * A guest chooses the names of its tasks and files and the text on its console.
 * Such a text must not move a terminal's cursor, end a tag or a string, or make
 * a document invalid.
 */
#ifndef HYPERTRACE_TOOL_ESCAPE_H
#define HYPERTRACE_TOOL_ESCAPE_H

#include <glib.h>

/**
 * HtEscape: destination of a text
 * @HT_ESCAPE_TERMINAL: one line of a terminal or of a text file
 * @HT_ESCAPE_XML: content or a quoted attribute of XML 1.0, such as SVG
 * @HT_ESCAPE_JSON: inside the quotes of a JSON string; also safe if the JSON is
 *                  in an element <script> of HTML
 * @HT_ESCAPE_UTF8: text that only has to be valid UTF-8 without NUL
 */
typedef enum HtEscape {
    HT_ESCAPE_TERMINAL,
    HT_ESCAPE_XML,
    HT_ESCAPE_JSON,
    HT_ESCAPE_UTF8,
} HtEscape;

/**
 * ht_escape: append a text that is not trusted, with escapes
 * @out: appended to
 * @how: destination of @out
 * @s: any bytes
 * @len: number of bytes
 *
 * For a terminal or XML, control characters of ASCII and bytes that are not
 * valid UTF-8 become \xNN, and most other characters that are invisible or
 * change how text is shown become \u{N}. For XML, characters of XML's syntax
 * become entities. For JSON, characters that need an escape, and these
 * invisible characters, get an escape of JSON. For JSON and UTF-8, bytes that
 * are not valid UTF-8 become U+FFFD; for UTF-8, NUL does, too. At most 6 * @len
 * bytes are appended.
 */
void ht_escape(GString *out, HtEscape how, const char *s, gsize len);

/**
 * ht_escape_str: ht_escape() of a string
 * @out: appended to
 * @how: destination of @out
 * @s: string that ends with NUL
 */
void ht_escape_str(GString *out, HtEscape how, const char *s);

/**
 * ht_escape_file_name: make a name for a file
 * @text: a text that is not trusted
 *
 * Returns: a new string: the first 64 bytes of @text, where '_' replaces all
 * except ASCII letters, digits, '_', '.' and '-'.  If this is empty or begins
 * with '.', a '_' is put before it.
 */
char *ht_escape_file_name(const char *text);

#endif /* HYPERTRACE_TOOL_ESCAPE_H */
