/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write JSON as a stream
 *
 * A document may have millions of lines. The functions append to a buffer that
 * the caller may write and empty at any time, so that the document need not be
 * in memory as a whole. The functions escape names and strings, except the text
 * of ht_json_made().
 */
#ifndef HYPERTRACE_TOOL_JSON_H
#define HYPERTRACE_TOOL_JSON_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * HtJson: a JSON document
 * @out: appended to; the caller may empty it between two calls
 * @comma: the next member or element needs a comma before it
 */
typedef struct HtJson {
    GString *out;
    bool comma;
} HtJson;

/**
 * ht_json_open: begin an object or array
 * @name: name of the member; NULL in an array and at the top
 * @bracket: '{' or '['
 */
void ht_json_open(HtJson *j, const char *name, char bracket);

/*
 * Version of the objects that views print. Raise it if a member is removed or
 * its meaning changes, not if a member is added.
 */
#define HT_JSON_VERSION 1

/**
 * ht_json_begin: begin the object that a command prints, with the member
 * "version"
 */
void ht_json_begin(HtJson *j);

/**
 * ht_json_close: end an object or array
 * @bracket: '}' or ']'
 */
void ht_json_close(HtJson *j, char bracket);

/**
 * ht_json_text: append a string
 * @name: name of the member; NULL in an array
 * @s: text, which may have any bytes; if it is NULL, null is appended
 * @len: length of @s in bytes
 */
void ht_json_text(HtJson *j, const char *name, const char *s, gsize len);

/**
 * ht_json_str: append a string that ends with NUL; if @s is NULL, append null
 */
void ht_json_str(HtJson *j, const char *name, const char *s);

/**
 * ht_json_made: append JSON text, unchanged, as an element of an array
 */
void ht_json_made(HtJson *j, const GString *json);

/** ht_json_int: append a signed number */
void ht_json_int(HtJson *j, const char *name, int64_t v);

/** ht_json_uint: append an unsigned number */
void ht_json_uint(HtJson *j, const char *name, uint64_t v);

/**
 * ht_json_real: append a floating-point number
 * @name: name of the member; NULL in an array
 * @v: the number; NaN and infinity become null
 * @single: @v has single precision, so that 9 digits suffice
 */
void ht_json_real(HtJson *j, const char *name, double v, bool single);

/** ht_json_bool: append true or false */
void ht_json_bool(HtJson *j, const char *name, bool v);

#endif /* HYPERTRACE_TOOL_JSON_H */
