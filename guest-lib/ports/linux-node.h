/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: the module's node, /dev/hypertraceN
 *
 * What ht_open() and ht_trace() do with it alike.  Everything returns 0 or a
 * negative errno, and leaves errno alone.
 */
#ifndef HT_LINUX_NODE_H
#define HT_LINUX_NODE_H

#include "../../guest-linux/uapi/linux/hypertrace.h"
#include "hypertrace/port.h"

/**
 * struct ht_node_map - what of a stream is mapped
 * @ring_offset: of struct ht_ioc_info; set by whoever maps
 * @ring: with what is before it; NULL: nothing
 * @size: bytes at @ring
 * @doorbell: NULL: channel virtio
 * @reaped_at: virtio: clock at the last ht_node_submit() that freed nothing
 * @pause: ticks until the next one makes sense; 0: it does now
 * @refused: position for which the driver had no buffer last
 */
struct ht_node_map {
    uint32_t ring_offset;
    void *ring;
    size_t size;
    void *doorbell;
    uint64_t reaped_at;
    uint64_t pause;
    uint64_t refused;
};

/**
 * ht_node_open() - open a node and ask what is behind it
 * @path: the node
 * @info: set
 *
 * Return: a descriptor, or a negative errno.
 */
int ht_node_open(const char *path, struct ht_ioc_info *info);

/**
 * ht_node_control() - struct ht_port_ops.control() through a node
 * @fd: the node
 * @msg: likewise
 * @size: likewise
 */
int ht_node_control(int fd, struct ht_msg *msg, uint32_t size);

/**
 * ht_node_map() - struct ht_port_ops.map() through a node
 * @fd: the node, through which the stream was opened
 * @dev: its device
 * @stream: index
 * @map: all but @map->ring_offset is set; to be given to ht_node_unmap()
 *       unless this fails
 * @ring: set
 * @packets: set
 */
int ht_node_map(int fd, const struct ht_device *dev, uint32_t stream,
                struct ht_node_map *map, struct ht_ring_control **ring,
                uint8_t **packets);

/**
 * ht_node_unmap() - undo ht_node_map()
 * @map: may be of nothing
 */
void ht_node_unmap(struct ht_node_map *map);

/**
 * ht_node_map_private() - put private pages in the place of what is mapped
 * @map: of a stream; ht_node_unmap() unmaps the pages
 *
 * The driver takes what was committed, and closes the stream.  A store to the
 * pages goes nowhere; the ring in them says that it is closed.
 *
 * Return: whether it is done; if not, nothing changed that matters.
 */
bool ht_node_map_private(const struct ht_node_map *map);

/**
 * ht_node_map_enable() - map the enable page
 * @fd: the node
 * @at: an address where it replaces what is there; NULL: any
 * @enable: set to where it is
 */
int ht_node_map_enable(int fd, void *at, uint8_t **enable);

/**
 * ht_node_submit() - virtio: hand over what @s has committed, or reap
 * @fd: any node of the device
 * @dev: the device
 * @map: of the stream; its pause is set
 * @s: the stream; its doorbells are set
 */
int ht_node_submit(int fd, const struct ht_device *dev,
                   struct ht_node_map *map, struct ht_stream *s);

/**
 * ht_node_may_reap() - virtio: is ht_node_submit() worth a system call?
 * @map: of the stream
 *
 * If the device is busy, each discarded event would try again.  Tries that free
 * nothing are 20 us to 1 ms apart.
 */
bool ht_node_may_reap(const struct ht_node_map *map);

#endif /* HT_LINUX_NODE_H */
