/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: a device through the kernel module
 */
#include <string.h>

#include "../../guest-linux/uapi/linux/hypertrace.h"
#include "linux-sys.h"
#include "linux-user.h"

static size_t ring_size(const struct ht_device *dev)
{
    return HT_PACKETS_OFFSET +
           (size_t)dev->caps.packets * dev->caps.packet_size;
}

static int device_control(struct ht_device *dev, struct ht_msg *msg,
                          uint32_t size)
{
    struct ht_ioc_control ioc = {
        .msg = (uintptr_t)msg,
        .size = size,
    };
    int r;

    /* A child of fork() has the file, but the streams are its parent's. */
    if (to_linux(dev)->pid != ht_sys_getpid()) {
        return -ENODEV;
    }
    r = ht_sys_ioctl(to_linux(dev)->fd, HT_IOC_CONTROL, &ioc);
    /* It was ours: the driver closed it when the machine was suspended. */
    return r == -EPERM ? -EIO : r;
}

static void device_unmap(struct ht_device *dev, uint32_t stream)
{
    struct ht_linux *l = to_linux(dev);

    if (l->rings[stream]) {
        ht_sys_unmap(l->rings[stream], ring_size(dev));
        l->rings[stream] = NULL;
    }
    if (l->doorbells[stream]) {
        ht_sys_unmap((void *)l->doorbells[stream], HT_PAGE);
        l->doorbells[stream] = NULL;
    }
}

static int device_map(struct ht_device *dev, uint32_t stream,
                      struct ht_ring_control **ring, uint8_t **packets)
{
    struct ht_linux *l = to_linux(dev);
    int error;

    l->rings[stream] = ht_sys_map(ring_size(dev), MAP_SHARED, l->fd,
                                  HT_MMAP_RING(stream), &error);
    if (!error && dev->caps.channel != HT_CHANNEL_VIRTIO) {
        l->doorbells[stream] = ht_sys_map(HT_PAGE, MAP_SHARED, l->fd,
                                          HT_MMAP_DOORBELL(stream), &error);
    }
    if (error) {
        device_unmap(dev, stream);
        return error;
    }
    *ring = l->rings[stream];
    *packets = (uint8_t *)l->rings[stream] + HT_PACKETS_OFFSET;
    return 0;
}

static int device_submit(struct ht_device *dev, struct ht_stream *s,
                         uint64_t from, uint64_t to)
{
    struct ht_ioc_submit ioc = {
        .stream = s->index,
        .instance = s->instance,
    };
    int r = ht_sys_ioctl(to_linux(dev)->fd, HT_IOC_SUBMIT, &ioc);

    (void)from;                 /* the driver knows it from head */
    (void)to;
    if (r == 0) {
        s->doorbells = ioc.kicks;
    }
    return r;
}

static void device_reap(struct ht_device *dev, struct ht_stream *s)
{
    /* Gone or not ours any more: then nothing is freed, and events are lost. */
    (void)device_submit(dev, s, 0, 0);
}

static const struct ht_port_ops device_ops = {
    .control = device_control,
    .map = device_map,
    .unmap = device_unmap,
    .doorbell = ht_linux_doorbell,
    .submit = device_submit,
    .reap = device_reap,
    .relax = ht_linux_relax,
    .lock = ht_linux_lock,
    .unlock = ht_linux_unlock,
};

static const char *mapping_name(uint32_t mapping)
{
    switch (mapping) {
    case HT_MAPPING_WRITE_BACK:
        return "write-back";
    case HT_MAPPING_WRITE_COMBINING:
        return "write-combining";
    case HT_MAPPING_GUEST_RAM:
        return "guest RAM";
    default:
        return "uncached";
    }
}

static void device_close(struct ht_linux *l)
{
    uint32_t i;

    for (i = 0; i < HT_STREAMS_MAX; i++) {
        device_unmap(&l->dev, i);
    }
    ht_sys_unmap(l->enable, HT_ENABLE_SIZE);
    ht_sys_close(l->fd);
}

int ht_linux_open_device(struct ht_linux *l, const char *path)
{
    struct ht_ioc_info info;
    int r;

    l->fd = ht_sys_open(path, O_RDWR | O_CLOEXEC);
    if (l->fd < 0) {
        return l->fd == -ENOENT || l->fd == -ENXIO ? -ENODEV : l->fd;
    }
    l->pid = ht_sys_getpid();
    l->close = device_close;
    l->dev.ops = &device_ops;
    r = ht_sys_ioctl(l->fd, HT_IOC_GET_INFO, &info);
    if (r) {
        r = r == -ENOTTY ? -ENODEV : r;
        goto fail;
    }
    memcpy(&l->dev.caps, info.caps, sizeof(l->dev.caps));
    l->dev.mapping = mapping_name(info.mapping);
    r = ht_device_init(&l->dev);
    if (r) {
        goto fail;
    }
    l->enable = ht_sys_map_at(NULL, HT_ENABLE_SIZE, PROT_READ, MAP_SHARED,
                              l->fd, HT_MMAP_ENABLE, &r);
    if (r) {
        goto fail;
    }
    l->dev.enable = l->enable;
    return 0;

fail:
    ht_sys_close(l->fd);
    return r;
}
