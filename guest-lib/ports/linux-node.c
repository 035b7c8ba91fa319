/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: use the module's node, /dev/hypertraceN
 */
#define _GNU_SOURCE
#include "linux-node.h"
#include "linux-sys.h"

int ht_node_open(const char *path, struct ht_ioc_info *info)
{
    int fd = ht_sys_open(path, O_RDWR | O_CLOEXEC), r;

    if (fd >= 0) {
        r = ht_sys_ioctl(fd, HT_IOC_GET_INFO, info);
        if (r) {
            ht_sys_close(fd);
            fd = r;
        }
    }
    return fd;
}

int ht_node_control(int fd, struct ht_msg *msg, uint32_t size)
{
    struct ht_ioc_control ioc = { .msg = (uintptr_t)msg, .size = size };

    return ht_sys_ioctl(fd, HT_IOC_CONTROL, &ioc);
}

int ht_node_map(int fd, const struct ht_device *dev, uint32_t stream,
                struct ht_node_map *map, struct ht_ring_control **ring,
                uint8_t **packets)
{
    int error;

    map->doorbell = NULL;
    map->pause = 0;
    map->refused = HT_WAKE_NEVER;
    map->size = map->ring_offset + HT_PACKETS_OFFSET +
                (size_t)dev->caps.packets * dev->caps.packet_size;
    map->ring = ht_sys_map(map->size, MAP_SHARED, fd, HT_MMAP_RING(stream),
                           &error);
    if (!error && dev->caps.channel <= HT_CHANNEL_SHM) {
        map->doorbell = ht_sys_map(HT_PAGE, MAP_SHARED, fd,
                                   HT_MMAP_DOORBELL(stream), &error);
    }
    if (error) {
        ht_node_unmap(map);
        return error;
    }
    *ring = (void *)((uint8_t *)map->ring + map->ring_offset);
    *packets = (uint8_t *)*ring + HT_PACKETS_OFFSET;
    return 0;
}

void ht_node_unmap(struct ht_node_map *map)
{
    if (map->ring) {
        ht_sys_unmap(map->ring, map->size);
        map->ring = NULL;
    }
    if (map->doorbell) {
        ht_sys_unmap(map->doorbell, HT_PAGE);
        map->doorbell = NULL;
    }
}

static bool map_private(void *at, size_t size)
{
    int error = 0;

    if (at) {
        ht_sys_map_at(at, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0, &error);
    }
    return !error;
}

bool ht_node_map_private(const struct ht_node_map *map)
{
    return map_private(map->doorbell, HT_PAGE) &&
           map_private(map->ring, map->size);
}

int ht_node_map_enable(int fd, void *at, uint8_t **enable)
{
    int error;
    void *p = ht_sys_map_at(at, HT_ENABLE_SIZE, PROT_READ,
                            MAP_SHARED | (at ? MAP_FIXED : 0), fd,
                            HT_MMAP_ENABLE, &error);

    if (!error) {
        *enable = p;
    }
    return error;
}

int ht_node_submit(int fd, const struct ht_device *dev,
                   struct ht_node_map *map, struct ht_stream *s)
{
    const uint64_t hz = dev->caps.clock_hz ? dev->caps.clock_hz : 1000000000;
    struct ht_ioc_submit ioc = { .stream = s->index, .instance = s->instance };
    const uint64_t tail = ht_load_relaxed(&s->ring->host.tail);
    int r = ht_sys_ioctl(fd, HT_IOC_SUBMIT, &ioc);

    if (r == 0) {
        s->doorbells = ioc.kicks;
    }
    if (ht_load_relaxed(&s->ring->host.tail) != tail) {
        map->pause = 0;
    } else {
        map->pause = map->pause ? 2 * map->pause : hz / 50000;
        if (map->pause > hz / 1000) {
            map->pause = hz / 1000;
        }
        map->reaped_at = ht_clock();
    }
    return r;
}

bool ht_node_may_reap(const struct ht_node_map *map)
{
    return ht_clock() - map->reaped_at >= map->pause;
}
