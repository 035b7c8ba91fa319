/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "cli/near.h"

/*
 * Maximum length in bytes of names that are compared. A longer name has no
 * similar names, and is never suggested.
 */
#define LENGTH_MAX 63

/*
 * Compute the edit distance: how often a byte must at least be inserted,
 * removed or replaced, or two adjacent bytes swapped, to turn @a into @b. Both
 * have at most LENGTH_MAX bytes.
 */
static unsigned distance(const char *a, const char *b)
{
    unsigned rows[3][LENGTH_MAX + 2];
    size_t la = strlen(a), lb = strlen(b), i, j;

    for (j = 0; j <= lb; j++) {
        rows[0][j] = j;
    }
    for (i = 1; i <= la; i++) {
        unsigned *now = rows[i % 3], *last = rows[(i - 1) % 3];
        const unsigned *before = rows[(i + 1) % 3];

        now[0] = i;
        for (j = 1; j <= lb; j++) {
            unsigned cost = last[j - 1] + (a[i - 1] != b[j - 1]);

            cost = MIN(cost, MIN(now[j - 1], last[j]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1]) {
                cost = MIN(cost, before[j - 2] + 1);
            }
            now[j] = cost;
        }
    }
    return rows[la % 3][lb];
}

void ht_near_add(HtNear *n, const char *candidate)
{
    g_autofree char *name = g_ascii_strdown(n->name, -1);
    g_autofree char *other = g_ascii_strdown(candidate, -1);
    size_t length = strlen(n->name);
    unsigned cost, i;

    if (length > LENGTH_MAX || strlen(candidate) > LENGTH_MAX) {
        return;
    }
    cost = distance(name, other);
    if (length >= 3 && strstr(candidate, n->name)) {
        cost = MIN(cost, 1);
    }
    if (cost > MAX(length / 3, 1)) {
        return;
    }
    for (i = 0; i < HT_NEAR_MAX && n->best[i]; i++) {
        if (!strcmp(n->best[i], candidate)) {
            return;
        }
    }
    for (i = 0; i < HT_NEAR_MAX && n->best[i] && n->cost[i] <= cost; i++) {
        ;
    }
    if (i == HT_NEAR_MAX) {
        return;
    }
    g_free(n->best[HT_NEAR_MAX - 1]);
    memmove(n->best + i + 1, n->best + i,
            (HT_NEAR_MAX - 1 - i) * sizeof(n->best[0]));
    memmove(n->cost + i + 1, n->cost + i,
            (HT_NEAR_MAX - 1 - i) * sizeof(n->cost[0]));
    n->best[i] = g_strdup(candidate);
    n->cost[i] = cost;
}

void ht_near_text(HtNear *n, GString *out)
{
    unsigned i;

    for (i = 0; i < HT_NEAR_MAX && n->best[i]; i++) {
        g_string_append_printf(out, "%s%s", !i ? "; did you mean " :
                               n->best[i + 1] ? ", " : " or ", n->best[i]);
    }
    if (i) {
        g_string_append_c(out, '?');
    }
    for (i = 0; i < HT_NEAR_MAX; i++) {
        g_clear_pointer(&n->best[i], g_free);
    }
}
