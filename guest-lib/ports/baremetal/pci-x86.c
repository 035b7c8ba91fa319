/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: access PCI configuration space on a PC
 */
#include "ht-baremetal.h"

#define CONFIG_ADDRESS  0xcf8
#define CONFIG_DATA     0xcfc
#define CONFIG_ENABLE   0x80000000u

static void select(uint16_t bdf, unsigned offset)
{
    uint32_t address = CONFIG_ENABLE | (uint32_t)bdf << 8 | (offset & 0xfc);

    __asm__ volatile("outl %0, %1" : : "a" (address),
                     "Nd" ((uint16_t)CONFIG_ADDRESS));
}

uint32_t ht_bm_x86_pci_read(void *opaque, uint16_t bdf, unsigned offset)
{
    uint32_t value;

    (void)opaque;
    select(bdf, offset);
    __asm__ volatile("inl %1, %0" : "=a" (value)
                     : "Nd" ((uint16_t)CONFIG_DATA));
    return value;
}

void ht_bm_x86_pci_write(void *opaque, uint16_t bdf, unsigned offset,
                         uint32_t value)
{
    (void)opaque;
    select(bdf, offset);
    __asm__ volatile("outl %0, %1" : : "a" (value),
                     "Nd" ((uint16_t)CONFIG_DATA));
}
