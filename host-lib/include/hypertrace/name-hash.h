/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: hash names that a guest chose
 *
 * g_str_hash() has no key, so a guest can choose a million names with the same
 * hash; each search would then compare all of them.
 */
#ifndef HYPERTRACE_NAME_HASH_H
#define HYPERTRACE_NAME_HASH_H

#include "hypertrace/base.h"

/**
 * ht_name_hash: hash a name, as GHashFunc
 * @name: a text that ends with NUL
 *
 * The hash is a polynomial modulo the prime 2^31 - 1 at a random point.  Two
 * names of up to 511 bytes have the same hash with a probability of at most
 * 2^-22.  In each process, each source file chooses its own point: a table must
 * be used in one source file only.
 */
static inline guint ht_name_hash(gconstpointer name)
{
    const uint64_t prime = 0x7fffffff;
    static gsize point;
    const uint8_t *p;
    uint64_t h = 0;

    if (g_once_init_enter(&point)) {
        g_once_init_leave(&point, g_random_int_range(1 << 16, 0x7fffffff));
    }
    for (p = name; *p; p++) {
        h = h * point + *p + 1;
        h = (h & prime) + (h >> 31);
        h = h >= prime ? h - prime : h;
    }
    return h;
}

#endif /* HYPERTRACE_NAME_HASH_H */
