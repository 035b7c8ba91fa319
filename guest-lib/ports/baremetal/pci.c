/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: find the device on PCI
 *
 * Firmware must have numbered the buses and assigned the addresses.
 */
#include "internal.h"

#define PCI_ID                  0x00
/* bits 16 to 23 of the word at this offset: the header type */
#define PCI_HEADER_TYPE         0x0c
#define PCI_HEADER_MULTI        0x80u
#define PCI_HEADER_BRIDGE       0x01u
#define PCI_BAR0                0x10
/* bits 8 to 15 of the word at this offset: the secondary bus number */
#define PCI_SECONDARY_BUS       0x18
#define PCI_CAP_POINTER         0x34
/* maximum number of capabilities: one every 4 bytes from 0x40 to 0xff */
#define PCI_CAPS_MAX            48

#define BAR_IO                  0x01u
#define BAR_TYPE                0x06u
#define BAR_TYPE_64             0x04u
#define BAR_FLAGS               0x0fu

#define BUS_DEPTH_MAX           16

static uint16_t bdf_of(unsigned bus, unsigned devfn)
{
    return (uint16_t)(bus << 8 | devfn);
}

/*
 * Search a bus, and the buses below its bridges to BUS_DEPTH_MAX, for the
 * hypertrace device with number *@index, from 0.  Returns 1 and sets *@bdf if
 * the device is there.  Otherwise returns 0 and subtracts the number of devices
 * found from *@index.
 */
static int scan_bus(const struct ht_bm_platform *p, unsigned bus,
                    unsigned depth, unsigned *index, uint16_t *bdf)
{
    unsigned step;

    for (unsigned devfn = 0; devfn < 256; devfn += step) {
        uint16_t at = bdf_of(bus, devfn);
        uint32_t id = p->pci_read(p->opaque, at, PCI_ID);
        uint32_t header;

        /* Unless function 0 has the bit MULTI, skip the slot's functions. */
        step = devfn % 8 ? 1 : 8;
        if ((uint16_t)id == 0xffff) {
            continue;
        }
        header = p->pci_read(p->opaque, at, PCI_HEADER_TYPE) >> 16;
        if (header & PCI_HEADER_MULTI) {
            step = 1;
        }
        if (id == (HT_PCI_VENDOR_ID | (uint32_t)HT_PCI_DEVICE_ID << 16)) {
            if (*index == 0) {
                *bdf = at;
                return 1;
            }
            --*index;
        }
        if ((header & 0x7f) == PCI_HEADER_BRIDGE && depth < BUS_DEPTH_MAX) {
            unsigned below = p->pci_read(p->opaque, at,
                                         PCI_SECONDARY_BUS) >> 8 & 0xff;

            /*
             * Bus number 0 means that firmware set none; with a number up to
             * @bus, the search could loop.
             */
            if (below > bus && scan_bus(p, below, depth + 1, index, bdf)) {
                return 1;
            }
        }
    }
    return 0;
}

int ht_bm_find(const struct ht_bm_platform *platform, unsigned index,
               uint16_t *bdf)
{
    return scan_bus(platform, 0, 0, &index, bdf) ? 0 : -ENODEV;
}

static uint64_t bar_size(uint64_t mask)
{
    return mask & -mask;
}

void ht_bm_pci_bars(struct ht_bm_device *d)
{
    uint32_t command = ht_bm_pci_read(d, HT_BM_PCI_COMMAND) & 0xffff;

    ht_bm_pci_write(d, HT_BM_PCI_COMMAND, command & ~HT_BM_PCI_CMD_MEMORY);
    for (unsigned i = 0; i < 6; i++) {
        unsigned at = PCI_BAR0 + 4 * i;
        struct ht_bm_bar *bar = &d->bar[i];
        uint32_t low = ht_bm_pci_read(d, at);
        uint64_t mask;

        bar->base = 0;
        bar->size = 0;
        if (low & BAR_IO) {
            continue;
        }
        ht_bm_pci_write(d, at, 0xffffffffu);
        mask = ht_bm_pci_read(d, at) & ~BAR_FLAGS;
        ht_bm_pci_write(d, at, low);
        bar->base = low & ~BAR_FLAGS;
        if ((low & BAR_TYPE) == BAR_TYPE_64 && i < 5) {
            uint32_t high = ht_bm_pci_read(d, at + 4);

            ht_bm_pci_write(d, at + 4, 0xffffffffu);
            mask |= (uint64_t)ht_bm_pci_read(d, at + 4) << 32;
            ht_bm_pci_write(d, at + 4, high);
            bar->base |= (uint64_t)high << 32;
            i++;                        /* skip the upper half of the BAR */
            d->bar[i].base = 0;
            d->bar[i].size = 0;
        }
        bar->size = bar->base ? bar_size(mask) : 0;
    }
    /*
     * The upper half of the command word is the status register, in which a 0
     * clears no bit.
     */
    ht_bm_pci_write(d, HT_BM_PCI_COMMAND, command);
}

unsigned ht_bm_pci_cap(struct ht_bm_device *d, uint8_t id, unsigned at)
{
    unsigned next = at ? ht_bm_pci_read(d, at) >> 8
                       : ht_bm_pci_read(d, PCI_CAP_POINTER);

    /* Limit the number of steps, since the linked list may form a loop. */
    for (unsigned i = 0; i < PCI_CAPS_MAX; i++) {
        uint32_t cap;

        next &= 0xfc;
        if (next < 0x40) {
            break;
        }
        cap = ht_bm_pci_read(d, next);
        if ((uint8_t)cap == id) {
            return next;
        }
        next = cap >> 8;
    }
    return 0;
}
