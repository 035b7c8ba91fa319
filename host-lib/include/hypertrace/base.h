/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what every file of host-lib starts from
 *
 * The C library, GLib, and the few things that neither has.  No header of
 * QEMU: the same sources are part of QEMU, of the host tools, of the unit
 * tests and of the fuzz targets.
 */
#ifndef HYPERTRACE_BASE_H
#define HYPERTRACE_BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <glib.h>

/**
 * HT_ROUND_UP() - the next multiple
 * @n: an unsigned integer
 * @d: of what; evaluated twice
 */
#define HT_ROUND_UP(n, d) (((n) + (d) - 1) / (d) * (d))

/* Little-endian to the host's order, or back */
static inline uint16_t ht_le16(uint16_t v)
{
    return GUINT16_FROM_LE(v);
}

static inline uint32_t ht_le32(uint32_t v)
{
    return GUINT32_FROM_LE(v);
}

static inline uint64_t ht_le64(uint64_t v)
{
    return GUINT64_FROM_LE(v);
}

/* A little-endian integer at any address */
static inline uint16_t ht_get_le16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return ht_le16(v);
}

static inline uint32_t ht_get_le32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return ht_le32(v);
}

static inline uint64_t ht_get_le64(const void *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return ht_le64(v);
}

/* One of 1, 2, 4 or 8 bytes; a signed one with its sign in all upper bits */
static inline uint64_t ht_get_le(const void *p, unsigned size, bool is_signed)
{
    unsigned shift = 64 - 8 * size;
    uint64_t v;

    switch (size) {
    case 1:
        v = *(const uint8_t *)p;
        break;
    case 2:
        v = ht_get_le16(p);
        break;
    case 4:
        v = ht_get_le32(p);
        break;
    case 8:
        return ht_get_le64(p);
    default:
        return 0;
    }
    return is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v;
}

static inline void ht_put_le16(void *p, uint16_t v)
{
    v = ht_le16(v);
    memcpy(p, &v, sizeof(v));
}

static inline void ht_put_le32(void *p, uint32_t v)
{
    v = ht_le32(v);
    memcpy(p, &v, sizeof(v));
}

static inline void ht_put_le64(void *p, uint64_t v)
{
    v = ht_le64(v);
    memcpy(p, &v, sizeof(v));
}

#endif /* HYPERTRACE_BASE_H */
