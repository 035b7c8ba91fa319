/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: names like one that was mistyped
 */
#ifndef HYPERTRACE_CLI_NEAR_H
#define HYPERTRACE_CLI_NEAR_H

#include <glib.h>

#define HT_NEAR_MAX 3

/**
 * struct HtNear - the names that are nearest to one
 * @name: the one
 * @best: the nearest names, newly allocated; NULL after the last one
 * @cost: how far they are
 */
typedef struct HtNear {
    const char *name;
    char *best[HT_NEAR_MAX + 1];
    unsigned cost[HT_NEAR_MAX];
} HtNear;

/**
 * ht_near_add() - consider a name
 * @n: @n->name is set; the rest is zero before the first call
 * @candidate: a name that exists
 */
void ht_near_add(HtNear *n, const char *candidate);

/**
 * ht_near_text() - append "; did you mean a, b or c?"
 * @n: appended to @out and emptied; nothing is appended if no name is near
 */
void ht_near_text(HtNear *n, GString *out);

#endif
