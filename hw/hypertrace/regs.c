/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: BAR0, the registers of the hypercall and shm channels
 *
 *   0x00000  struct ht_caps, then HT_REG_*
 *   0x10000  doorbells
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/main-loop.h"
#include "device.h"

QEMU_BUILD_BUG_ON(sizeof(struct ht_caps) > HT_REG_MAILBOX_GO);

uint64_t ht_regs_size(const HypertraceDevice *dev)
{
    uint64_t bells = dev->caps.doorbell_stride ?
        (uint64_t)dev->caps.doorbell_stride * dev->conf.streams : HT_MAP_ALIGN;

    return pow2ceil(HT_REGS_DOORBELL + bells);
}

/* Context: vCPU thread */
static uint64_t ht_regs_read(void *opaque, hwaddr addr, unsigned size)
{
    HypertraceDevice *dev = opaque;
    struct ht_caps caps;

    BQL_LOCK_GUARD();
    if (addr + size <= sizeof(caps)) {
        ht_caps_swap(&caps, &dev->caps);
        return ldn_le_p((uint8_t *)&caps + addr, size);
    }
    return 0;
}

/*
 * Copy the mailbox once and execute the copy: the guest can write to the
 * mailbox meanwhile.  Context: BQL
 */
static void mailbox_go(HypertraceDevice *dev, uint64_t size)
{
    uint8_t *mailbox = dev->ring_ram + dev->caps.mailbox_offset;

    if (!dev->ring_mr) {
        return;                         /* the device is unplugged */
    }
    /*
     * If the size exceeds the mailbox's, pass a size that is 1 larger than the
     * mailbox's: ht_control_exchange() refuses such a request as malformed.
     */
    size = MIN(size, sizeof(dev->mailbox) + 1);
    memcpy(dev->mailbox, mailbox, MIN(size, sizeof(dev->mailbox)));
    size = ht_control_exchange(&dev->messages, dev->mailbox, size);
    memcpy(mailbox, dev->mailbox, size);
    memory_region_set_dirty(dev->ring_mr, dev->caps.mailbox_offset, size);
}

/*
 * Context: vCPU thread; before QEMU 10.2 with the BQL, from 10.2 on without.
 * Registers need the BQL.  Doorbells do not: the array of streams is constant
 * until finalize.  A doorbell may take its stream's lock, and the locks that
 * follow it in the lock order of device.h.
 */
static void ht_regs_write(void *opaque, hwaddr addr, uint64_t val,
                          unsigned size)
{
    HypertraceDevice *dev = opaque;

    if (addr >= HT_REGS_DOORBELL) {
        uint32_t stride = dev->caps.doorbell_stride;
        uint32_t i = stride ? (addr - HT_REGS_DOORBELL) / stride : 0;

        if (i < dev->conf.streams) {
            dev->channel->doorbell(&dev->streams.stream[i]);
        } else {
            ht_guest_error(dev, "doorbell at 0x%" HWADDR_PRIx, addr);
        }
        return;
    }
    BQL_LOCK_GUARD();
    switch (addr) {
    case HT_REG_MAILBOX_GO:
        mailbox_go(dev, val);
        break;
    case HT_REG_TAKEOVER:
        if (val == HT_MAGIC) {
            ht_control_takeover(dev);
            break;
        }
        /* fall through */
    default:
        if (addr < sizeof(struct ht_caps)) {
            /* the capabilities are read-only: ignore the write */
            break;
        }
        ht_guest_error(dev, "write of 0x%" PRIx64 " to register 0x%"
                       HWADDR_PRIx, val, addr);
    }
}

const MemoryRegionOps ht_regs_ops = {
    .read = ht_regs_read,
    .write = ht_regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = {
        .min_access_size = 1,
        .max_access_size = 8,
    },
    .impl = {
        .min_access_size = 1,
        .max_access_size = 8,
    },
};
