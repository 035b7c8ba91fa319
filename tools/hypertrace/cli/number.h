/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: times and durations for people
 */
#ifndef HYPERTRACE_TOOL_NUMBER_H
#define HYPERTRACE_TOOL_NUMBER_H

#include <glib.h>
#include <stdint.h>

/**
 * ht_number_decimal: append a decimal number without the cost of printf()
 * @out: appended to
 * @v: number
 * @width: least number of characters, at most 64
 * @pad: character that fills up to @width, before the digits
 */
void ht_number_decimal(GString *out, uint64_t v, unsigned width, char pad);

/**
 * ht_number_seconds: append a time as seconds with nine decimals
 * @out: appended to
 * @ns: nanoseconds
 * @width: at least so many places before the point
 */
void ht_number_seconds(GString *out, uint64_t ns, unsigned width);

/**
 * ht_number_duration: append a duration with three digits and a unit
 * @out: appended to
 * @ns: nanoseconds
 * @width: at least so many characters; spaces come first
 */
void ht_number_duration(GString *out, uint64_t ns, unsigned width);

#endif /* HYPERTRACE_TOOL_NUMBER_H */
