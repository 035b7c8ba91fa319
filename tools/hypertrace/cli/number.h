/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: format and parse numbers, times and sizes
 */
#ifndef HYPERTRACE_TOOL_NUMBER_H
#define HYPERTRACE_TOOL_NUMBER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * ht_number_decimal: append a decimal number without the cost of printf()
 * @out: appended to
 * @v: number
 * @width: minimum number of characters; values above 64 count as 64
 * @pad: character that fills up to @width, before the digits
 */
void ht_number_decimal(GString *out, uint64_t v, unsigned width, char pad);

/**
 * ht_number_s: get the ending of a noun after a number
 * @n: number
 *
 * Returns: "" for 1, else "s"
 */
const char *ht_number_s(uint64_t n);

/**
 * ht_number_form: choose the form of words after a number
 * @n: number
 * @one: form for 1: "record was"
 * @more: form for all other numbers: "records were"
 *
 * Returns: @one or @more
 */
const char *ht_number_form(uint64_t n, const char *one, const char *more);

/**
 * ht_number_seconds: append a time as seconds with nine decimals
 * @out: appended to
 * @ns: nanoseconds
 * @width: minimum number of characters before the point; spaces come first
 */
void ht_number_seconds(GString *out, uint64_t ns, unsigned width);

/**
 * ht_number_duration: append a duration, rounded to three digits, and its unit:
 *                     "7 ns", "1.23 ms"; from 1000 s on, whole seconds
 * @out: appended to
 * @ns: nanoseconds
 * @width: minimum number of characters; spaces come first
 */
void ht_number_duration(GString *out, uint64_t ns, unsigned width);

/**
 * ht_number_time: parse a time of the clock of a recording's events, or a
 * duration
 * @option: name of the option, for the message
 * @s: "1.5", "1.5s", "20ms", "300us", "7ns", "5min" or "5m", "2h"; "-20ms" is a
 *     time before the end of the recording
 * @ns: set to the time in nanoseconds, without its sign
 * @from_end: set to true if @s begins with '-', else to false
 * @errp: set on failure; the message has the accepted forms
 *
 * Returns: false if @s has another form, or is above the limit of 285 years
 */
bool ht_number_time(const char *option, const char *s, uint64_t *ns,
                    bool *from_end, GError **errp);

/**
 * ht_number_size: parse a size as in QEMU's options, but without the units P
 *                 and E
 * @text: a number, which may have a fraction, and one of B, K, M, G, T or none;
 *        K is 1024 bytes, and so on. Lower case is accepted, too.
 * @suffix: unit in upper case, used if @text has none
 * @bytes: set to the size
 *
 * Returns: false if @text is not a whole number of bytes from 1 to less than 1
 * EiB
 */
bool ht_number_size(const char *text, char suffix, uint64_t *bytes);

#endif /* HYPERTRACE_TOOL_NUMBER_H */
