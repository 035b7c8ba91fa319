/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests: the loopback port, declarations shared by its files
 */
#ifndef HT_LOOPBACK_HOST_H
#define HT_LOOPBACK_HOST_H

#include <pthread.h>
#include "hypertrace/server.h"
#include "loopback.h"

/* Locks are of pthread: the thread sanitizer does not know GLib's locks. */

/* A virtio buffer that was submitted */
struct ht_loopback_buffer {
    struct ht_submit head;
    const uint8_t *data;
    uint64_t sum;               /* checksum of @data, to detect a change */
};

struct ht_loopback_stream {
    struct ht_ring_control *ring;
    uint8_t *packets;

    /*
     * virtio: circular queue, whose buffers @done to @queued - 1 are submitted.
     * Lock: ht_server_lock()
     */
    struct ht_loopback_buffer *buffers;
    uint8_t *copy;              /* copy of the buffer being consumed */
    uint64_t queued;
    uint64_t done;
};

struct ht_loopback {
    struct ht_device dev;       /* first member: the port's functions get it */
    struct ht_loopback_config cfg;
    HtServer *server;
    unsigned busy[HT_CLASSES_MAX + 1];
    bool off[HT_CLASSES_MAX + 1];        /* by class id; accessed atomically */
    struct ht_loopback_stream *streams;
    pthread_mutex_t control;             /* ht_device's lock() and unlock() */
    uint8_t *memory;            /* rings, then the enable page */
    uint8_t *enable;
    size_t memory_size;         /* 0 if the memory is mapped from a file */

    GThread *thread;
    int doorbell;               /* eventfd */
    int quit;
};

uint64_t ht_loopback_sum(const uint8_t *data, size_t size);
size_t ht_loopback_consume(struct ht_loopback *lb, uint32_t stream);
void ht_loopback_start(struct ht_loopback *lb, struct ht_ring_control **rings);
void ht_loopback_stop(struct ht_loopback *lb);
void ht_loopback_wake(struct ht_loopback *lb);

#endif /* HT_LOOPBACK_HOST_H */
