/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a guest's text made harmless for where it is shown
 *
 * A guest chooses the names of its tasks and files and what its console says.
 * None of it may move a terminal's cursor, end a tag or a string, or make a
 * document invalid.
 */
#ifndef HYPERTRACE_TOOL_ESCAPE_H
#define HYPERTRACE_TOOL_ESCAPE_H

#include <glib.h>

/**
 * HtEscape: where a text goes
 * @HT_ESCAPE_TERMINAL: one line of a terminal or of a text file
 * @HT_ESCAPE_XML: content or a quoted attribute of XML 1.0, hence SVG
 * @HT_ESCAPE_JSON: inside the quotes of a JSON string; safe in HTML, too
 * @HT_ESCAPE_UTF8: only made valid UTF-8 without NUL
 */
typedef enum HtEscape {
    HT_ESCAPE_TERMINAL,
    HT_ESCAPE_XML,
    HT_ESCAPE_JSON,
    HT_ESCAPE_UTF8,
} HtEscape;

/**
 * ht_escape: append a text that anybody may have written
 * @out: appended to
 * @how: where @out goes
 * @s: bytes of any value
 * @len: how many
 *
 * What cannot be shown becomes \xNN or \u{N} (terminal, XML) or U+FFFD, or an
 * escape of JSON's.  What is appended is at most six times as long as @len,
 * ten times for characters that are invisible or change the direction.
 */
void ht_escape(GString *out, HtEscape how, const char *s, gsize len);

/**
 * ht_escape_str: ht_escape() of a string
 * @out: appended to
 * @how: where @out goes
 * @s: ends with NUL
 */
void ht_escape_str(GString *out, HtEscape how, const char *s);

#endif /* HYPERTRACE_TOOL_ESCAPE_H */
