/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: the loopback port, guest and host in one process
 *
 * The guest is the real library, the host the real consumer; between them is
 * ordinary memory instead of a device.  For unit tests and native figures.
 */
#ifndef HT_LOOPBACK_H
#define HT_LOOPBACK_H

#include "hypertrace/consumer.h"
#include "hypertrace/port.h"

struct ht_loopback;

/**
 * enum ht_loopback_host - when the host does its part
 * @HT_LOOPBACK_NOW: in the doorbell (hypercall), in the submission (virtio)
 * @HT_LOOPBACK_STEP: in ht_loopback_step() only
 * @HT_LOOPBACK_THREAD: on a thread of its own (shm, virtio)
 */
enum ht_loopback_host {
    HT_LOOPBACK_NOW,
    HT_LOOPBACK_STEP,
    HT_LOOPBACK_THREAD,
};

/**
 * struct ht_loopback_config - a device to be; 0 is the default everywhere
 * @channel: enum ht_channel
 * @mode: enum ht_mode
 * @streams: default 4
 * @packet_size: default 64 KiB
 * @packets: default 16
 * @batch: default 1
 * @max_gap: default half of what the compact clock spans
 * @queue: virtio: descriptors of a stream's queue, default HT_VQ_SIZE
 * @busy_replies: how often a class is BUSY before it is registered
 * @at_once: classes of an exchange that the host has time for; 0: all
 * @host: when the host does its part
 * @eager: thread: be woken by each first event, not by the next packet
 * @pace_us: thread: time to leave the producer alone after each look
 * @file: a descriptor of a file that has the rings and the enable page at the
 *        offsets of the Linux driver's node, for a producer in another process;
 *        0: anonymous memory
 * @deliver: called with each run; one thread at a time for a stream
 * @opaque: its first argument
 */
struct ht_loopback_config {
    uint32_t channel;
    uint32_t mode;
    uint32_t streams;
    uint32_t packet_size;
    uint32_t packets;
    uint32_t batch;
    uint32_t max_gap;
    uint32_t queue;
    uint32_t busy_replies;
    uint32_t at_once;
    enum ht_loopback_host host;
    bool eager;
    uint32_t pace_us;
    int file;
    HtDeliver *deliver;
    void *opaque;
};

/**
 * ht_loopback_new() - make a device
 * @cfg: copied
 *
 * Return: the device, or NULL if the library refuses its capabilities.
 */
struct ht_loopback *ht_loopback_new(const struct ht_loopback_config *cfg);

/**
 * ht_loopback_free() - end it
 * @lb: its streams need not be closed, but nothing may use them any more
 */
void ht_loopback_free(struct ht_loopback *lb);

struct ht_device *ht_loopback_device(struct ht_loopback *lb);
const HtClassTable *ht_loopback_classes(struct ht_loopback *lb);

/**
 * ht_loopback_message() - execute one control message
 * @msg: the message, which the reply overwrites
 */
void ht_loopback_message(struct ht_loopback *lb, struct ht_msg *msg);

/**
 * ht_loopback_enable() - the host wants events of a class, or does not
 *
 * Classes are on when they are registered.
 */
void ht_loopback_enable(struct ht_loopback *lb, uint32_t id, bool on);

/**
 * ht_loopback_step() - have the host do its part now
 * @lb: the device
 *
 * Consumes all that was committed or submitted, then arms the wake words.
 */
void ht_loopback_step(struct ht_loopback *lb);

/**
 * ht_loopback_consumer() - the host's end of a stream, to be looked at while
 *                          nothing is under way
 */
const HtConsumer *ht_loopback_consumer(struct ht_loopback *lb, uint32_t stream);

/**
 * ht_loopback_close() - close a stream from the host's side, as a reset does
 *
 * Return: events that the producer counted as discarded.
 */
uint64_t ht_loopback_close(struct ht_loopback *lb, uint32_t stream);

#endif /* HT_LOOPBACK_H */
