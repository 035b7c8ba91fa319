/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: the port for firmware, unikernels and bare-metal payloads
 *
 * The port finds the device on PCI, and has drivers for the channels hypercall,
 * shm and virtio.  The environment provides PCI configuration accesses and
 * memory by struct ht_bm_platform.  The port uses no interrupts, never sleeps
 * and frees no memory.
 */
#ifndef HT_BAREMETAL_H
#define HT_BAREMETAL_H

#include "hypertrace/hypertrace.h"
#include "hypertrace/port.h"
#include "wait.h"

#ifndef ENOMEM
#define ENOMEM          12      /* as in Linux, like the numbers in arch.h */
#endif

/**
 * struct ht_bm_platform - functions of the environment
 * @pci_read: read 4 bytes of a function's configuration space; @bdf is
 *            bus << 8 | slot << 3 | function, @offset a multiple of 4;
 *            returns all ones if there is no function
 * @pci_write: write 4 bytes of a function's configuration space
 * @map: map memory of the device: stream RAM as write-back memory if @ram is
 *       true, else registers as device memory.  Returns NULL on failure
 * @alloc: allocate zeroed, physically contiguous memory at a multiple of
 *         @align; the port does not free it.  Returns NULL if there is no room
 * @phys: get the address by which devices access memory from @alloc
 * @opaque: passed to the functions
 *
 * On a PC, @pci_read and @pci_write can be ht_bm_x86_pci_read() and
 * ht_bm_x86_pci_write().
 */
struct ht_bm_platform {
    uint32_t (*pci_read)(void *opaque, uint16_t bdf, unsigned offset);
    void (*pci_write)(void *opaque, uint16_t bdf, unsigned offset,
                      uint32_t value);
    void *(*map)(void *opaque, uint64_t phys, uint64_t size, int ram);
    void *(*alloc)(void *opaque, uint64_t size, uint64_t align);
    uint64_t (*phys)(void *opaque, const void *p);
    void *opaque;
};

/**
 * struct ht_bm_bar - a base address register (BAR), as set by firmware
 * @base: physical address; 0 if the BAR is absent, in I/O space, the upper half
 *        of a 64-bit BAR, or has no address yet
 * @size: size in bytes; 0 if @base is 0
 */
struct ht_bm_bar {
    uint64_t base;
    uint64_t size;
};

struct ht_bm_vq;

/**
 * struct ht_bm_device - an open device; the caller provides this memory
 * @dev: for the functions of hypertrace.h
 *
 * The other members are private.
 */
struct ht_bm_device {
    struct ht_device dev;
    const struct ht_bm_platform *platform;
    struct ht_bm_bar bar[6];
    uint16_t bdf;
    struct ht_bm_wait relax;

    /* members of the channels hypercall and shm */
    uint8_t *regs;
    uint8_t *doorbells;         /* where to ring the doorbell of stream 0 */
    int tcg;                    /* QEMU's TCG emulates the processor */
    uint8_t *ram;

    /* members of channel virtio */
    uint8_t *common;
    uint8_t *config;
    uint8_t *notify;
    uint64_t notify_size;
    uint32_t notify_multiplier;
    struct ht_bm_vq *control;
    struct ht_bm_vq *data[HT_STREAMS_MAX];
    uint8_t *control_buf;
    uint8_t *rings[HT_STREAMS_MAX];
};

/**
 * ht_bm_find() - find a device
 * @platform: the environment
 * @index: 0 for the first device that the search finds
 * @bdf: set on success
 *
 * Searches bus 0 and the buses below its bridges.  Does not find memory-only
 * devices.
 *
 * Return: 0; -ENODEV: there are not more than @index devices.
 */
int ht_bm_find(const struct ht_bm_platform *platform, unsigned index,
               uint16_t *bdf);

/**
 * ht_bm_open() - open a device and take it over
 * @d: initialized by this function; must stay valid while the device is used
 * @platform: the environment; must stay valid as well
 * @bdf: from ht_bm_find()
 *
 * If an earlier owner (firmware, or a kernel before a reboot) left streams
 * open, the host consumes their events and closes them.  With virtio, events
 * that were not submitted are lost, unless that owner's driver negotiated
 * HT_F_MEMORY.  The clocks are related once; a program that runs for hours
 * should call ht_time_sync() from time to time.
 *
 * Return: 0; -ENODEV: not a hypertrace device, firmware left it without
 * addresses, or an area of virtio's registers is missing or cannot be mapped;
 * -EPROTO: another version, a missing feature of virtio, or capabilities that
 * are inconsistent or do not fit the BARs; -ENOMEM: no memory or mapping; -EIO:
 * the device does not finish a reset, or a reply is an error; -ETIMEDOUT: the
 * device does not answer, or answers only that it is busy; or another error of
 * ht_time_sync().
 */
int ht_bm_open(struct ht_bm_device *d, const struct ht_bm_platform *platform,
               uint16_t bdf);

/**
 * ht_bm_update() - update which classes the host wants
 * @d: the device
 *
 * With channel virtio, a program must call this function from time to time,
 * because the port uses no interrupts; ht_wanted() then returns the updated
 * values.  The call reads a register, and sends messages if the register has
 * changed.  With other channels the call does nothing.
 *
 * Return: 0; or a negative errno of ht_control().
 */
int ht_bm_update(struct ht_bm_device *d);

/**
 * ht_bm_close() - close a device
 * @d: its streams must be closed
 *
 * A virtio device is reset, so that it accesses no memory of the guest
 * afterwards.  With other channels the call does nothing.
 */
void ht_bm_close(struct ht_bm_device *d);

/* Use configuration mechanism #1 (ports 0xcf8, 0xcfc); @opaque is ignored */
uint32_t ht_bm_x86_pci_read(void *opaque, uint16_t bdf, unsigned offset);
void ht_bm_x86_pci_write(void *opaque, uint16_t bdf, unsigned offset,
                         uint32_t value);

#endif /* HT_BAREMETAL_H */
