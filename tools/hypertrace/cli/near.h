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
 * @best: similar names, newly allocated, the most similar first; NULL after the
 *        last one
 * @cost: for each name in @best, its edit distance from @name, where upper and
 *        lower case are equal. If @name has three bytes or more, and a name
 *        contains it in the same case, the distance counts as 1 at most.
 */
typedef struct HtNear {
    const char *name;
    char *best[HT_NEAR_MAX + 1];
    unsigned cost[HT_NEAR_MAX];
} HtNear;

/**
 * ht_near_add() - add a candidate if it is similar to the name, and among the
 *                 HT_NEAR_MAX most similar candidates so far
 * @n: before the first call, all members except @n->name must be zero
 * @candidate: a valid name
 */
void ht_near_add(HtNear *n, const char *candidate);

/**
 * ht_near_text() - append "; did you mean a, b or c?"
 * @n: has the names to append; they are freed
 * @out: appended to; nothing is appended if no name is similar
 */
void ht_near_text(HtNear *n, GString *out);

#endif
