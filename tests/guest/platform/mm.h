/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: memory; virtual and physical addresses are the same
 */
#ifndef PAYLOAD_MM_H
#define PAYLOAD_MM_H

#include <stddef.h>
#include <stdint.h>

/* @mem_end: first byte behind the RAM that begins at 1 MiB */
void mm_init(uint64_t mem_end);

/* Zeroed, for good; NULL: no room.  @align: a power of two */
void *mm_alloc(size_t size, size_t align);

/*
 * Have [phys, phys + size) mapped; all below 4 GiB is from the start.  NULL:
 * no memory for page tables, or not an address.
 */
void *mm_map(uint64_t phys, uint64_t size);

#endif /* PAYLOAD_MM_H */
