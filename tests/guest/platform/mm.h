/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: allocate and map memory; virtual and physical
 * addresses are the same
 */
#ifndef PAYLOAD_MM_H
#define PAYLOAD_MM_H

#include <stddef.h>
#include <stdint.h>

/*
 * Initialize the heap.  @mem_end: address after the RAM that begins at 1 MiB
 */
void mm_init(uint64_t mem_end);

/*
 * Allocate zeroed memory, which is never freed; NULL: there is no room.
 * @align: a power of two
 */
void *mm_alloc(size_t size, size_t align);

/*
 * Map [phys, phys + size) at the same virtual address; everything below 4 GiB
 * is mapped from the start.  Returns NULL if there is no memory for page
 * tables, if @size is 0, or if the range ends above 1 << 47.
 */
void *mm_map(uint64_t phys, uint64_t size);

#endif /* PAYLOAD_MM_H */
