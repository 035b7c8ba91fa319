/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: JSON, written as it comes
 *
 * A report may have millions of lines: nothing is kept but the text that has
 * not been written yet.  Names are the program's own, values are anybody's.
 */
#ifndef HYPERTRACE_TOOL_JSON_H
#define HYPERTRACE_TOOL_JSON_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * HtJson: a document in the making
 * @out: appended to; may be emptied at any time
 * @comma: whether a comma has to come before the next member
 */
typedef struct HtJson {
    GString *out;
    bool comma;
} HtJson;

/**
 * ht_json_open: begin an object or array
 * @j: document
 * @name: of this member, or NULL in an array and at the top
 * @bracket: '{' or '['
 */
void ht_json_open(HtJson *j, const char *name, char bracket);

/**
 * ht_json_close: end an object or array
 * @j: document
 * @bracket: '}' or ']'
 */
void ht_json_close(HtJson *j, char bracket);

/**
 * ht_json_text: a member or element that is text
 * @j: document
 * @name: of this member, or NULL in an array
 * @s: bytes of any value, or NULL for null
 * @len: how many
 */
void ht_json_text(HtJson *j, const char *name, const char *s, gsize len);

/**
 * ht_json_str: ht_json_text() of a string that ends with NUL
 */
void ht_json_str(HtJson *j, const char *name, const char *s);

/**
 * ht_json_made: an element that is JSON already
 */
void ht_json_made(HtJson *j, const GString *json);

/**
 * ht_json_int: a member or element that is a signed number
 */
void ht_json_int(HtJson *j, const char *name, int64_t v);

/**
 * ht_json_uint: a member or element that is an unsigned number
 */
void ht_json_uint(HtJson *j, const char *name, uint64_t v);

/**
 * ht_json_real: a member or element that is a real number
 * @j: document
 * @name: of this member, or NULL in an array
 * @v: null in JSON if it is no number or infinite
 * @single: it is of single precision, and needs fewer digits
 */
void ht_json_real(HtJson *j, const char *name, double v, bool single);

/**
 * ht_json_bool: a member or element that is true or false
 */
void ht_json_bool(HtJson *j, const char *name, bool v);

#endif /* HYPERTRACE_TOOL_JSON_H */
