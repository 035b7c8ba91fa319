/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find a time in a list of changes
 */
#ifndef HYPERTRACE_TOOL_CHANGES_H
#define HYPERTRACE_TOOL_CHANGES_H

#include <glib.h>
#include <stdint.h>

/**
 * ht_changes_until: count the changes up to a time
 * @changes: structures that begin with a time, a uint64_t, in the order of
 *           time; NULL: no changes
 * @ns: the time
 *
 * Returns: the number of changes whose time is at most @ns
 */
static inline unsigned ht_changes_until(const GArray *changes, uint64_t ns)
{
    unsigned low = 0, high = changes ? changes->len : 0;
    /* Cast: the parameter of g_array_get_element_size() is not const. */
    guint size = changes ? g_array_get_element_size((GArray *)changes) : 0;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (*(const uint64_t *)(changes->data + (size_t)middle * size) <= ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

#endif /* HYPERTRACE_TOOL_CHANGES_H */
