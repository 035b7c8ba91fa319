/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: suggest names that are similar to a mistyped one
 */
#ifndef HYPERTRACE_CLI_NEAR_H
#define HYPERTRACE_CLI_NEAR_H

#include <glib.h>

#define HT_NEAR_MAX 3

/**
 * struct HtNear - the names that are most similar to a name
 * @name: the mistyped name
 * @best: the most similar names first, newly allocated; NULL after the last one
 * @cost: their edit distances from @name; at most 1 for a name that contains
 *        @name, if @name has three letters or more
 */
typedef struct HtNear {
    const char *name;
    char *best[HT_NEAR_MAX + 1];
    unsigned cost[HT_NEAR_MAX];
} HtNear;

/**
 * ht_near_add() - add a candidate
 * @n: before the first call, all members except @n->name must be zero
 * @candidate: a name that exists
 */
void ht_near_add(HtNear *n, const char *candidate);

/**
 * ht_near_text() - append "; did you mean a, b or c?"
 * @n: names to append; emptied
 * @out: appended to; nothing is appended if no name is similar
 */
void ht_near_text(HtNear *n, GString *out);

#endif
