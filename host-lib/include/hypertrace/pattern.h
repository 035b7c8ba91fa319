/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: which events an operator wants, as a list of patterns
 */
#ifndef HYPERTRACE_PATTERN_H
#define HYPERTRACE_PATTERN_H

#include "hypertrace/base.h"

/**
 * HtPatterns: a list such as "sched_*,!sched_wakeup"
 *
 * Patterns are separated by ',' or ':' and consist of what names of classes
 * do, '*' for any text and '?' for any character.  The last one that matches a
 * name decides: wanted, or, if it begins with '!', not.  A name that none
 * matches is wanted if the first pattern begins with '!'.
 */
typedef struct HtPatterns HtPatterns;

/* Bytes of a list */
#define HT_PATTERNS_MAX 65536

/**
 * ht_patterns_new: check a list and take it apart
 * @text: the list
 * @why: set to what is wrong with it, to be freed
 *
 * Returns: the patterns or NULL
 */
HtPatterns *ht_patterns_new(const char *text, char **why);
void ht_patterns_free(HtPatterns *p);

/**
 * ht_patterns_match: whether a name is wanted
 * @p: the patterns; NULL: every name is
 * @name: of a class
 *
 * Takes at most the product of both lengths.
 */
bool ht_patterns_match(const HtPatterns *p, const char *name);

#endif /* HYPERTRACE_PATTERN_H */
