/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: declarations shared by the port's files
 */
#ifndef HT_BM_INTERNAL_H
#define HT_BM_INTERNAL_H

#include "ht-baremetal.h"

typedef volatile uint8_t ht_bm_reg8_t;
typedef volatile uint16_t ht_bm_reg16_t;
typedef volatile uint32_t ht_bm_reg32_t;

static inline uint8_t ht_bm_read8(const uint8_t *p)
{
    return *(const ht_bm_reg8_t *)p;
}

static inline uint16_t ht_bm_read16(const uint8_t *p)
{
    return *(const ht_bm_reg16_t *)p;
}

static inline uint32_t ht_bm_read32(const uint8_t *p)
{
    return *(const ht_bm_reg32_t *)p;
}

static inline void ht_bm_write8(uint8_t *p, uint8_t v)
{
    *(ht_bm_reg8_t *)p = v;
}

static inline void ht_bm_write16(uint8_t *p, uint16_t v)
{
    *(ht_bm_reg16_t *)p = v;
}

static inline void ht_bm_write32(uint8_t *p, uint32_t v)
{
    *(ht_bm_reg32_t *)p = v;
}

static inline struct ht_bm_device *to_bm(struct ht_device *dev)
{
    /* @dev is the first member of struct ht_bm_device */
    return (struct ht_bm_device *)dev;
}

/* On x86-64 and Arm, hint to the processor that the caller polls */
static inline void ht_bm_pause(void)
{
#if defined(__x86_64__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The function relax() of struct ht_port_ops, for all channels */
int ht_bm_relax(struct ht_device *dev, unsigned tries);

#define HT_BM_PCI_COMMAND       0x04
#define HT_BM_PCI_CMD_MEMORY    0x0002u
#define HT_BM_PCI_CMD_MASTER    0x0004u
#define HT_BM_PCI_CMD_NO_INTX   0x0400u

/*
 * Store the addresses and sizes of the memory BARs in @d->bar.  During the call
 * the device does not decode these BARs.
 */
void ht_bm_pci_bars(struct ht_bm_device *d);

/*
 * Return the offset of the next PCI capability @id after that at offset @at, or
 * of the first if @at is 0.  Returns 0 if the device has no such capability.
 */
unsigned ht_bm_pci_cap(struct ht_bm_device *d, uint8_t id, unsigned at);

static inline uint32_t ht_bm_pci_read(struct ht_bm_device *d, unsigned offset)
{
    return d->platform->pci_read(d->platform->opaque, d->bdf, offset);
}

static inline void ht_bm_pci_write(struct ht_bm_device *d, unsigned offset,
                                   uint32_t value)
{
    d->platform->pci_write(d->platform->opaque, d->bdf, offset, value);
}

/*
 * ht_bm_regs_open() opens a device of channel hypercall or shm, and
 * ht_bm_virtio_open() one of channel virtio.  Both set the members of @d->dev
 * that ht_device_init() and the core need.  ht_bm_virtio_reset() resets a
 * device of channel virtio.  All return 0 or a negative errno.
 */

int ht_bm_regs_open(struct ht_bm_device *d);
int ht_bm_virtio_open(struct ht_bm_device *d);
int ht_bm_virtio_reset(struct ht_bm_device *d);

/* Read struct ht_caps from device memory by 4-byte accesses */
void ht_bm_read_caps(struct ht_caps *caps, const uint8_t *p);

#endif /* HT_BM_INTERNAL_H */
