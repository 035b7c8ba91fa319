/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: use the module's node, /dev/hypertraceN
 *
 * ht_open() and ht_trace() use these functions, which do not change errno.
 * Unless stated otherwise, they return 0 or a negative errno.
 */
#ifndef HT_LINUX_NODE_H
#define HT_LINUX_NODE_H

#include "../../guest-linux/uapi/linux/hypertrace.h"
#include "hypertrace/port.h"

/**
 * struct ht_node_map - mappings of a stream
 * @ring_offset: bytes from @ring to the control page, from struct ht_ioc_info;
 *               set by the caller of ht_node_map()
 * @ring: start of the mapping that holds the ring; NULL: not mapped
 * @size: size of the mapping at @ring in bytes
 * @doorbell: the doorbell; NULL for the channels virtio and memory
 * @reaped_at: virtio: clock at the last ht_node_submit() that freed no packet
 * @pause: ticks to wait after @reaped_at; 0: none
 * @refused: virtio, and only for a device from ht_open(): first position that
 *           was not submitted when the driver last had no free buffer;
 *           HT_WAKE_NEVER: the last submission did not fail for this reason
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
 * ht_node_open() - open a node and query its device
 * @path: path of the node
 * @info: filled in
 *
 * Return: a descriptor, or a negative errno.
 */
int ht_node_open(const char *path, struct ht_ioc_info *info);

/**
 * ht_node_control() - struct ht_port_ops.control() through a node
 * @fd: the node
 */
int ht_node_control(int fd, struct ht_msg *msg, uint32_t size);

/**
 * ht_node_map() - struct ht_port_ops.map() through a node
 * @fd: the node by which the stream was opened
 * @dev: its device
 * @stream: index of the stream
 * @map: initialized by this, except @map->ring_offset; if the call succeeds,
 *       the caller must pass it to ht_node_unmap()
 * @ring: set to the address of the control page
 * @packets: set to the address of the packets
 */
int ht_node_map(int fd, const struct ht_device *dev, uint32_t stream,
                struct ht_node_map *map, struct ht_ring_control **ring,
                uint8_t **packets);

/**
 * ht_node_unmap() - undo ht_node_map()
 * @map: the mappings; may be empty
 */
void ht_node_unmap(struct ht_node_map *map);

/**
 * ht_node_map_private() - replace a stream's mappings by private pages
 * @map: the mappings; ht_node_unmap() unmaps the pages
 *
 * The driver delivers the committed events, and closes the stream.  The pages
 * are zeroes, so the ring in them has the state "closed".  Neither the driver
 * nor the host sees stores to the pages.
 *
 * Return: true on success.  Otherwise the ring is still mapped, but a doorbell
 * may no longer reach the host.
 */
bool ht_node_map_private(const struct ht_node_map *map);

/**
 * ht_node_map_enable() - map the enable page
 * @fd: the node
 * @at: address of a mapping to replace; NULL: any address
 * @enable: set to the address
 */
int ht_node_map_enable(int fd, void *at, uint8_t **enable);

/**
 * ht_node_submit() - virtio: submit committed events, and reap buffers
 * @fd: any descriptor of the device's node
 * @dev: the device
 * @map: mappings of the stream; @pause and @reaped_at are updated
 * @s: the stream; @doorbells is updated
 */
int ht_node_submit(int fd, const struct ht_device *dev,
                   struct ht_node_map *map, struct ht_stream *s);

/**
 * ht_node_may_reap() - virtio: test whether to call ht_node_submit() in order
 *                      to free packets
 * @map: mappings of the stream
 *
 * Return: false for 20 us after a call of ht_node_submit() that freed no packet
 * of the ring.  This time doubles with each further such call in a row, up to
 * 1 ms.  So discarded events do not cause a system call each.
 */
bool ht_node_may_reap(const struct ht_node_map *map);

#endif /* HT_LINUX_NODE_H */
