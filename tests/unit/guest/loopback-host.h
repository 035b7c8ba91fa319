/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests: the loopback port, declarations shared by its files
 */
#ifndef HT_LOOPBACK_HOST_H
#define HT_LOOPBACK_HOST_H

#include <pthread.h>
#include "hypertrace/server.h"
#include "loopback.h"

/* The locks are pthread's: the thread sanitizer does not know GLib's locks. */

/* A virtio buffer that the guest has submitted */
struct ht_loopback_buffer {
    struct ht_submit head;
    const uint8_t *data;
    /* checksum of @data at the submission, to detect a later change */
    uint64_t sum;
};

struct ht_loopback_stream {
    struct ht_ring_control *ring;
    uint8_t *packets;

    /*
     * virtio: circular queue; the buffers @done to @queued - 1 were submitted
     * and are not consumed yet. Lock: ht_server_lock()
     */
    struct ht_loopback_buffer *buffers;
    uint8_t *copy;
    uint64_t queued;
    uint64_t done;
};

struct ht_loopback {
    /* the port's functions find the ht_loopback by this member's address */
    struct ht_device dev;
    struct ht_loopback_config cfg;
    HtServer *server;
    unsigned busy[HT_CLASSES_MAX + 1];
    /* by class id: the host has switched the class off; atomic */
    bool off[HT_CLASSES_MAX + 1];
    struct ht_loopback_stream *streams;
    /* taken by ht_port_ops.lock() */
    pthread_mutex_t control;
    uint8_t *memory;
    uint8_t *enable;
    /*
     * size of @memory in bytes; with ht_loopback_config.file it is 0, and
     * @memory is NULL
     */
    size_t memory_size;

    GThread *thread;
    int doorbell;
    int quit;
};

uint64_t ht_loopback_sum(const uint8_t *data, size_t size);
size_t ht_loopback_consume(struct ht_loopback *lb, uint32_t stream);
void ht_loopback_start(struct ht_loopback *lb, struct ht_ring_control **rings);
void ht_loopback_stop(struct ht_loopback *lb);
void ht_loopback_wake(struct ht_loopback *lb);

#endif
