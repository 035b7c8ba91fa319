/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "console.h"
#include "device.h"
#include "mm.h"

static void *platform_map(void *opaque, uint64_t phys, uint64_t size, int ram)
{
    (void)opaque;
    /*
     * Ignore @ram: accesses to registers cause exits, also if their mapping is
     * cacheable.
     */
    (void)ram;
    return mm_map(phys, size);
}

static void *platform_alloc(void *opaque, uint64_t size, uint64_t align)
{
    (void)opaque;
    return mm_alloc(size, align);
}

static uint64_t platform_phys(void *opaque, const void *p)
{
    (void)opaque;
    return (uintptr_t)p;
}

static const struct ht_bm_platform platform = {
    .pci_read = ht_bm_x86_pci_read,
    .pci_write = ht_bm_x86_pci_write,
    .map = platform_map,
    .alloc = platform_alloc,
    .phys = platform_phys,
};

const struct ht_bm_platform *device_platform(void)
{
    return &platform;
}

const char *errno_name(int err)
{
    switch (err < 0 ? -err : err) {
    case 0:
        return "OK";
    case ENOENT:
        return "ENOENT";
    case EIO:
        return "EIO";
    case EAGAIN:
        return "EAGAIN";
    case ENOMEM:
        return "ENOMEM";
    case EBUSY:
        return "EBUSY";
    case EEXIST:
        return "EEXIST";
    case ENODEV:
        return "ENODEV";
    case EINVAL:
        return "EINVAL";
    case ENOSPC:
        return "ENOSPC";
    case EPROTO:
        return "EPROTO";
    case ETIMEDOUT:
        return "ETIMEDOUT";
    default:
        return "another error";
    }
}

unsigned device_count(void)
{
    unsigned n = 0;
    uint16_t bdf;

    while (!ht_bm_find(&platform, n, &bdf)) {
        n++;
    }
    return n;
}

struct ht_bm_device *device_open(unsigned index)
{
    struct ht_bm_device *d = mm_alloc(sizeof(*d), 64);
    uint16_t bdf;
    int ret;

    if (!d) {
        payload_die(PAYLOAD_USAGE, "not enough memory", NULL);
    }
    ret = ht_bm_find(&platform, index, &bdf);
    if (ret) {
        payload_die(PAYLOAD_USAGE, "no such hypertrace device", NULL);
    }
    ret = ht_bm_open(d, &platform, bdf);
    if (ret) {
        payload_die(PAYLOAD_FAILED, "cannot open the device",
                    errno_name(ret));
    }
    return d;
}

const char *device_channel(const struct ht_bm_device *d)
{
    switch (d->dev.caps.channel) {
    case HT_CHANNEL_HYPERCALL:
        return "hypercall";
    case HT_CHANNEL_SHM:
        return "shm";
    case HT_CHANNEL_VIRTIO:
        return "virtio";
    default:
        return "unknown";
    }
}
