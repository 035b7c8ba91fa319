/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: the port for firmware, unikernels and bare-metal payloads
 *
 * Brings PCI discovery, the register channels and a small virtio driver.  The
 * environment brings struct ht_bm_platform: PCI configuration accesses and
 * memory.  No interrupts are used, nothing sleeps, nothing is freed.
 */
#ifndef HT_BAREMETAL_H
#define HT_BAREMETAL_H

#include "hypertrace/hypertrace.h"
#include "hypertrace/port.h"
#include "wait.h"

#ifndef ENOMEM
#define ENOMEM          12              /* arch.h's others are Linux's, too */
#endif

/**
 * struct ht_bm_platform - what the environment brings
 * @pci_read: read 4 bytes of a function's configuration space; @bdf is
 *            bus << 8 | slot << 3 | function, @offset a multiple of 4;
 *            all ones where there is no function
 * @pci_write: write them
 * @map: make device memory accessible; stream RAM (@ram) wants write-back,
 *       registers whatever devices need.  NULL: not possible
 * @alloc: zeroed, physically contiguous memory, for good.  NULL: no room
 * @phys: the address by which devices reach memory of @alloc
 * @opaque: for the functions
 *
 * ht_bm_x86_pci_read() and ht_bm_x86_pci_write() do for the first two on a PC.
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
 * struct ht_bm_bar - a base address register as firmware set it
 * @base: 0: absent, I/O space, or not assigned
 * @size: bytes
 */
struct ht_bm_bar {
    uint64_t base;
    uint64_t size;
};

struct ht_bm_vq;

/**
 * struct ht_bm_device - an open device; the caller's memory
 * @dev: for the calls of hypertrace.h
 *
 * The rest is private.
 */
struct ht_bm_device {
    struct ht_device dev;
    const struct ht_bm_platform *platform;
    struct ht_bm_bar bar[6];
    uint16_t bdf;
    struct ht_bm_wait relax;

    /* hypercall, shm */
    uint8_t *regs;
    uint8_t *ram;

    /* virtio */
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
 * @index: 0 for the first one, in the order of the bus
 * @bdf: set on success
 *
 * Return: 0; -ENODEV: there are not so many.
 */
int ht_bm_find(const struct ht_bm_platform *platform, unsigned index,
               uint16_t *bdf);

/**
 * ht_bm_open() - take a device over
 * @d: set up; keep it as long as the device is used
 * @platform: the environment; kept
 * @bdf: from ht_bm_find()
 *
 * Streams that somebody (firmware before, a kernel before a reboot) left open
 * are closed by the host, after it took what they held.  The clocks are
 * related once; a program that runs for hours calls ht_time_sync() at times.
 *
 * Return: 0; -ENODEV: not a hypertrace device, or firmware left it without
 * addresses; -EPROTO: another version, or capabilities that contradict each
 * other or the BARs; -ENOMEM: no memory or mapping; -EIO: the device refuses.
 */
int ht_bm_open(struct ht_bm_device *d, const struct ht_bm_platform *platform,
               uint16_t bdf);

/**
 * ht_bm_update() - learn which classes the host wants now
 * @d: the device
 *
 * For ht_wanted(): without interrupts, somebody has to ask now and then.  Only
 * channel virtio needs it: a read of a register, and a message if something
 * changed.  Registering a class tells of that class.
 *
 * Return: 0; or as ht_control().
 */
int ht_bm_update(struct ht_bm_device *d);

/**
 * ht_bm_close() - hand a device back
 * @d: its streams must be closed; the device reads no memory afterwards
 */
void ht_bm_close(struct ht_bm_device *d);

/* Configuration mechanism #1 (ports 0xcf8 and 0xcfc); @opaque is not used */
uint32_t ht_bm_x86_pci_read(void *opaque, uint16_t bdf, unsigned offset);
void ht_bm_x86_pci_write(void *opaque, uint16_t bdf, unsigned offset,
                         uint32_t value);

#endif /* HT_BAREMETAL_H */
