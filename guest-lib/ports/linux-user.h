/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: declarations shared by the files of the port
 */
#ifndef HT_LINUX_USER_H
#define HT_LINUX_USER_H

#include <pthread.h>

#include "linux-node.h"

/**
 * struct ht_linux - a device opened from Linux user space
 * @dev: the core's part; the first member, so that the addresses are equal
 * @lock: protects the core's message buffer and list of streams
 * @mailbox: without the module: serializes exchanges of control messages
 * @close: release everything except this structure
 * @pid: through the module: process that opened the device's node
 * @fd: descriptor of the device's node, or of the PCI device's memory
 * @ring_offset: through the module: from struct ht_ioc_info
 * @maps: through the module: mapped streams
 * @doorbells: through the module: the doorbell of each mapped stream; NULL if
 *             the stream is not mapped or the channel has no doorbells
 * @enable: the enable page, mapped through the module
 * @link: without the module: connection to the host
 * @ram, @ram_size: without the module: the device's memory
 */
struct ht_linux {
    struct ht_device dev;
    pthread_mutex_t lock;
    pthread_mutex_t mailbox;
    void (*close)(struct ht_linux *l);
    int pid;
    int fd;
    uint32_t ring_offset;
    struct ht_node_map maps[HT_STREAMS_MAX];
    volatile uint32_t *doorbells[HT_STREAMS_MAX];
    uint8_t *enable;

    struct ht_link link;
    uint8_t *ram;
    size_t ram_size;
};

static inline struct ht_linux *to_linux(struct ht_device *dev)
{
    return (struct ht_linux *)dev;
}

/* linux-user-device.c: open /dev/hypertraceN; returns 0 or a negative errno */
int ht_linux_open_device(struct ht_linux *l, const char *path);

/*
 * linux-user-memory.c: open a memory-only device by its PCI address; returns 0
 * or a negative errno
 */
int ht_linux_open_memory(struct ht_linux *l, const char *address);

/*
 * On x86-64, call @try for each ivshmem PCI device until @try returns 0.
 * Returns 0, or the first error of @try other than -ENODEV, or -ENODEV.  On
 * other processors, returns -ENODEV.
 */
int ht_linux_scan_pci(int (*try)(const char *address, struct ht_device **dev),
                      struct ht_device **dev);

int ht_linux_relax(struct ht_device *dev, unsigned tries);
void ht_linux_lock(struct ht_device *dev);
void ht_linux_unlock(struct ht_device *dev);

#endif /* HT_LINUX_USER_H */
