/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: match names against patterns
 */
#ifndef HYPERTRACE_PATTERN_H
#define HYPERTRACE_PATTERN_H

#include "hypertrace/base.h"

/**
 * ht_pattern_match: match a text against one pattern
 * @pattern: '*' stands for any text, '?' for one character in UTF-8
 * @name: the text, NUL-terminated; need not be valid UTF-8.  (GLib's functions
 *        for patterns are not used, because they may read and write outside of
 *        a text that is not valid UTF-8.)
 *
 * The time is at most proportional to the product of both lengths.
 *
 * Returns: true if the pattern matches the whole text
 */
bool ht_pattern_match(const char *pattern, const char *name);

/**
 * HtPatterns: a list such as "sched_*,!sched_wakeup"
 *
 * Patterns are separated by ',' or ':'.  A pattern consists of the characters
 * of class names, '*' for any text, and '?' for any character; '!' may precede
 * it.  The last pattern that matches a name decides: the name is selected, or
 * deselected if '!' precedes the pattern.  A name that no pattern matches is
 * selected if '!' precedes the first pattern.
 */
typedef struct HtPatterns HtPatterns;

/* Maximum length of a list in bytes */
#define HT_PATTERNS_MAX 65536

/**
 * ht_patterns_new: parse a list of patterns
 * @text: the list, at most HT_PATTERNS_MAX bytes
 * @why: set to a description of the error; free with g_free()
 *
 * Returns: the patterns, for ht_patterns_free(); NULL if the list is invalid
 */
HtPatterns *ht_patterns_new(const char *text, char **why);
void ht_patterns_free(HtPatterns *p);

/**
 * ht_patterns_match: test whether a name is selected
 * @p: the patterns; NULL selects every name
 * @name: the name of a class
 *
 * The time is at most proportional to the length of the list times that of the
 * name.
 *
 * Returns: true if the name is selected
 */
bool ht_patterns_match(const HtPatterns *p, const char *name);

#endif /* HYPERTRACE_PATTERN_H */
