/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests: the loopback port, which connects a guest to a host in its process
 *
 * The guest is the real library, and the host is the real server of host-lib;
 * ordinary memory replaces the device.  With ht_loopback_config.file, the
 * producer can be in another process.  For unit tests and native benchmarks.
 */
#ifndef HT_LOOPBACK_H
#define HT_LOOPBACK_H

#include "hypertrace/consumer.h"
#include "hypertrace/port.h"

struct ht_loopback;

/**
 * enum ht_loopback_host - when the host consumes
 * @HT_LOOPBACK_NOW: in the doorbell (hypercall) or the submission (virtio)
 * @HT_LOOPBACK_STEP: in ht_loopback_step(), and during a flush or a close
 * @HT_LOOPBACK_THREAD: on its own thread (shm, virtio)
 */
enum ht_loopback_host {
    HT_LOOPBACK_NOW,
    HT_LOOPBACK_STEP,
    HT_LOOPBACK_THREAD,
};

/**
 * struct ht_loopback_config - properties of a device; 0 selects the default
 * @channel: enum ht_channel
 * @mode: enum ht_mode
 * @streams: number of streams, default 4
 * @packet_size: size of a packet in bytes, default 64 KiB
 * @packets: number of packets in a ring, default 16
 * @batch: commits per doorbell, default 1
 * @max_gap: maximum gap of a compact header in ticks, default half of its range
 * @queue: virtio: descriptors of a stream's queue, default HT_VQ_SIZE
 * @busy_replies: number of times that the registration of a class gets the
 *      reply BUSY instead of OK
 * @at_once: maximum number of messages executed in an exchange, the others get
 *      the reply BUSY; 0: all are executed
 * @host: when the host consumes
 * @eager: thread: while the thread sleeps, the next commit wakes it; if false,
 *         only the end of the packet does (shm)
 * @pace_us: thread: pause in us after each poll that found events
 * @file: descriptor of a file that holds the rings and the enable page at the
 *        offsets of the Linux driver's node, for a producer in another process;
 *        0: anonymous memory
 * @deliver: called with each run; one thread at a time for a stream
 * @opaque: first argument of @deliver
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
 * ht_loopback_free() - free a device
 * @lb: the device; its streams need not be closed, but must not be used later
 */
void ht_loopback_free(struct ht_loopback *lb);

struct ht_device *ht_loopback_device(struct ht_loopback *lb);
const HtClassTable *ht_loopback_classes(struct ht_loopback *lb);

/**
 * ht_loopback_message() - execute one control message
 * @lb: the device
 * @msg: the message; the reply overwrites it
 */
void ht_loopback_message(struct ht_loopback *lb, struct ht_msg *msg);

/**
 * ht_loopback_enable() - select whether the host wants events of a class
 *
 * A class that this function was not called for is on.
 */
void ht_loopback_enable(struct ht_loopback *lb, uint32_t id, bool on);

/**
 * ht_loopback_step() - consume now
 * @lb: the device
 *
 * Consumes everything that was committed or submitted, then, on channel=shm,
 * arms the wake words.
 */
void ht_loopback_step(struct ht_loopback *lb);

/**
 * ht_loopback_consumer() - get the consumer of a stream, to inspect it while no
 *                          thread uses the stream
 */
const HtConsumer *ht_loopback_consumer(struct ht_loopback *lb, uint32_t stream);

/**
 * ht_loopback_close() - close a stream from the host's side, as a reset does
 *
 * Return: the number of events that the producer counted as discarded.
 */
uint64_t ht_loopback_close(struct ht_loopback *lb, uint32_t stream);

#endif
