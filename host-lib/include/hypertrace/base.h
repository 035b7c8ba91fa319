/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: common includes and helpers of host-lib
 *
 * host-lib includes no header of QEMU.  It depends on the C library and GLib;
 * output/lttng-ust-* also on LTTng-UST, and kernel/ on libraries that unpack
 * kernels.  The host tools, the unit tests and the fuzz targets use it, and
 * QEMU uses a part of it: see host-lib/meson.build.
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
 * HT_ROUND_UP() - round up to a multiple
 * @n: an unsigned integer
 * @d: the divisor; evaluated three times
 */
#define HT_ROUND_UP(n, d) (((n) + (d) - 1) / (d) * (d))

/* Test whether @v is a power of two, and in [@min, @max]; @min must not be 0 */
static inline bool ht_power_of_two(uint64_t v, uint64_t min, uint64_t max)
{
    return v >= min && v <= max && (v & (v - 1)) == 0;
}

/* Convert between little-endian and the host's byte order */
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

/* Load a little-endian integer from an unaligned address */
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

/*
 * Load a little-endian integer of @size bytes (1, 2, 4 or 8), sign-extended to
 * 64 bits if @is_signed.  Returns 0 for any other size.
 */
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

/* Store a little-endian integer at an unaligned address */
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
