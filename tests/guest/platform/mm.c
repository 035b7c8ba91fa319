/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: allocate memory from a heap that only grows, and map
 * memory above 4 GiB
 */
#include "boot.h"
#include "libc.h"
#include "mm.h"

#define PTE_USER        0x07u
#define PDE_USER_2M     0x87u
#define PTE_ADDRESS     0x000ffffffffff000u
#define SIZE_2M         (1ull << 21)
/*
 * End of the addresses that can be mapped. In a virtual address, the bits from
 * 48 on are copies of bit 47, so an address from 1 << 47 on could not be equal
 * to its physical address.
 */
#define MAP_END         (1ull << 47)

static uint64_t heap_next;
static uint64_t heap_end;

void mm_init(uint64_t mem_end)
{
    heap_next = (uintptr_t)payload_end;
    heap_end = mem_end;
}

void *mm_alloc(size_t size, size_t align)
{
    uint64_t p = (heap_next + align - 1) & ~(uint64_t)(align - 1);

    if (p > heap_end || size > heap_end - p) {
        return NULL;
    }
    heap_next = p + size;
    return memset((void *)p, 0, size);
}

/*
 * Get the page table to which entry @index of @table points. If the entry is
 * empty, make that page table; return NULL if there is no memory for it
 */
static uint64_t *next_table(uint64_t *table, unsigned index)
{
    if (!table[index]) {
        void *page = mm_alloc(4096, 4096);

        if (!page) {
            return NULL;
        }
        table[index] = (uintptr_t)page | PTE_USER;
    }
    return (uint64_t *)(table[index] & PTE_ADDRESS);
}

void *mm_map(uint64_t phys, uint64_t size)
{
    if (!size || phys >= MAP_END || size > MAP_END - phys) {
        return NULL;
    }
    /*
     * This loop changes entries only from absent to present, and processors do
     * not cache absent entries. So no TLB flush is needed, which is impossible
     * at CPL 3.
     */
    for (uint64_t a = phys & -SIZE_2M; a < phys + size; a += SIZE_2M) {
        uint64_t *pdpt = next_table(boot_pml4, a >> 39 & 511);
        uint64_t *pd = pdpt ? next_table(pdpt, a >> 30 & 511) : NULL;

        if (!pd) {
            return NULL;
        }
        if (!pd[a >> 21 & 511]) {
            pd[a >> 21 & 511] = a | PDE_USER_2M;
        }
    }
    return (void *)phys;
}
