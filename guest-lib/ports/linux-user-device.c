/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: use a device through the kernel module
 */
#include <string.h>

#include "linux-sys.h"
#include "linux-user.h"

static int device_control(struct ht_device *dev, struct ht_msg *msg,
                          uint32_t size)
{
    int r;

    /* Refuse calls in a child of fork(), whose parent owns the streams. */
    if (to_linux(dev)->pid != ht_sys_getpid()) {
        return -ENODEV;
    }
    r = ht_node_control(to_linux(dev)->fd, msg, size);
    /*
     * EPERM: this process no longer has the stream, for example because the
     * driver closed it when the machine was suspended.
     */
    return r == -EPERM ? -EIO : r;
}

static void device_unmap(struct ht_device *dev, uint32_t stream)
{
    struct ht_linux *l = to_linux(dev);

    ht_node_unmap(&l->maps[stream]);
    l->doorbells[stream] = NULL;
}

static int device_map(struct ht_device *dev, uint32_t stream,
                      struct ht_ring_control **ring, uint8_t **packets)
{
    struct ht_linux *l = to_linux(dev);
    int r;

    l->maps[stream].ring_offset = l->ring_offset;
    r = ht_node_map(l->fd, dev, stream, &l->maps[stream], ring, packets);
    if (r == 0) {
        l->doorbells[stream] = l->maps[stream].doorbell;
    }
    return r;
}

static void device_doorbell(struct ht_device *dev, uint32_t stream)
{
    /* Order stores to the ring before the doorbell, at which the host reads. */
    ht_store_fence();
    *to_linux(dev)->doorbells[stream] = stream;
}

/*
 * The driver reads guest.head itself, so @from and @to are not used.  If all
 * buffers are in use, a later call or the driver's timer submits the packet.
 */
static int device_submit(struct ht_device *dev, struct ht_stream *s,
                         uint64_t from, uint64_t to)
{
    struct ht_linux *l = to_linux(dev);
    struct ht_node_map *map = &l->maps[s->index];
    int r;

    (void)from;
    (void)to;
    if (s->submitted == map->refused && !ht_node_may_reap(map)) {
        return -EAGAIN;
    }
    r = ht_node_submit(l->fd, dev, map, s);
    map->refused = r == -EAGAIN ? s->submitted : HT_WAKE_NEVER;
    return r;
}

/* If the device was removed, no buffer is freed, so events are discarded. */
static void device_reap(struct ht_device *dev, struct ht_stream *s)
{
    struct ht_linux *l = to_linux(dev);

    if (ht_node_may_reap(&l->maps[s->index])) {
        (void)ht_node_submit(l->fd, dev, &l->maps[s->index], s);
    }
}

static const struct ht_port_ops device_ops = {
    .control = device_control,
    .map = device_map,
    .unmap = device_unmap,
    .doorbell = device_doorbell,
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

    l->fd = ht_node_open(path, &info);
    if (l->fd < 0) {
        return l->fd == -ENOENT || l->fd == -ENXIO || l->fd == -ENOTTY ?
               -ENODEV : l->fd;
    }
    l->pid = ht_sys_getpid();
    l->close = device_close;
    l->dev.ops = &device_ops;
    memcpy(&l->dev.caps, info.caps, sizeof(l->dev.caps));
    l->dev.mapping = mapping_name(info.mapping);
    l->ring_offset = info.ring_offset;
    r = ht_device_init(&l->dev);
    if (r) {
        goto fail;
    }
    r = ht_node_map_enable(l->fd, NULL, &l->enable);
    if (r) {
        goto fail;
    }
    l->dev.enable = l->enable;
    return 0;

fail:
    ht_sys_close(l->fd);
    return r;
}
