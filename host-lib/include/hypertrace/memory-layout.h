/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: compute the layout of stream memory, and check the description of
 * the layout in page 0 of that memory
 *
 * BAR4 of the device and the memory of the memory-only transport have the same
 * layout:
 *
 *   0               struct ht_caps, or struct ht_memory: page 0
 *   enable_offset   enable bytes
 *   mailbox_offset  mailbox, and the reply area of the memory-only transport
 *   then            the host's directory (memory-directory.h)
 *   ring_offset     the rings
 *
 * Each part begins at a multiple of HT_MAP_ALIGN.
 */
#ifndef HYPERTRACE_MEMORY_LAYOUT_H
#define HYPERTRACE_MEMORY_LAYOUT_H

#include "hypertrace/abi.h"

/**
 * ht_layout: compute the offsets of the parts
 * @c: the caller has set packet_size and packets; magic, version, mailbox_size,
 *     enable_offset, mailbox_offset, ring_offset and ring_stride are filled in
 *
 * Returns: false if packet_size or packets is out of its range or no power of
 * two
 */
bool ht_layout(struct ht_caps *c);

/* ht_layout_directory: get the offset of the directory in bytes */
uint64_t ht_layout_directory(const struct ht_caps *c);

/* ht_layout_ring: get the address of a stream's ring in the memory at @base */
static inline struct ht_ring_control *ht_layout_ring(const struct ht_caps *c,
                                                     const uint8_t *base,
                                                     uint32_t stream)
{
    return (struct ht_ring_control *)(base + c->ring_offset +
                                      stream * c->ring_stride);
}

/*
 * ht_layout_size: get the size of the whole memory with @c->streams rings, in
 * bytes
 */
uint64_t ht_layout_size(const struct ht_caps *c);

/**
 * ht_layout_check: check capabilities from page 0
 * @c: private copy in the host's byte order; not trusted
 * @size: bytes of the memory
 *
 * Returns: NULL if @c is valid, else the reason why it is not
 */
const char *ht_layout_check(const struct ht_caps *c, uint64_t size);

#endif /* HYPERTRACE_MEMORY_LAYOUT_H */
