/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: decompress a kernel, in each format that Linux's build offers
 */
#ifndef HYPERTRACE_KERNEL_UNPACK_H
#define HYPERTRACE_KERNEL_UNPACK_H

#include "hypertrace/base.h"

/**
 * ht_unpack: decompress data with a known signature
 * @data: gzip, xz, lzma, bzip2, lz4 (legacy format), lzo (lzop) or zstd
 * @size: size of @data in bytes.  Bytes after the end of the compressed data
 *        are ignored.  In lz4, which has no mark of its end, they must not look
 *        like a further block.
 * @max: maximum size of the result in bytes
 * @error: set if the signature is unknown, the data is damaged, the result is
 *         too large, or this build lacks the library
 *
 * Returns: the result, or NULL
 */
GBytes *ht_unpack(const void *data, size_t size, size_t max, GError **error);

/**
 * ht_unpack_format: get the name of a format by the signature
 * @data: the data
 * @size: size of @data in bytes
 *
 * Returns: the name, for example "zstd"; NULL if the signature is unknown
 */
const char *ht_unpack_format(const void *data, size_t size);

#endif
