/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: interface of the channels, which transport events
 */
#ifndef HW_HYPERTRACE_CHANNEL_H
#define HW_HYPERTRACE_CHANNEL_H

#include "qemu/units.h"
#include "hypertrace/streams.h"

/**
 * HtChannelOps: the host's part of a channel
 * @name: value of the property
 * @uses_ring: the device has BAR0 and BAR4, and an IOThread as worker;
 *             otherwise the main loop is the worker
 * @rings: the producer kicks for each batch, and the vCPU consumes
 * @arms: the consumer sleeps, and the producer kicks if the wake word is armed
 * @realize, @unrealize: the channel's own resources; BQL.  Cannot fail
 * @consume: consume up to a packet of a stream, committed or handed over by its
 *           producer; unless @force, only if a sink has room.  Returns the
 *           number of bytes.  Worker; takes the stream's lock
 * @doorbell: the guest has written the doorbell; vCPU thread
 * @closing: a close was requested; buffers that the guest has handed over so
 *           far must be consumed first; BQL
 * @drained: test whether that was consumed.  Worker
 * @drop: drop a buffer that was handed over for a closed stream; returns true
 *        if there was one.  Worker
 * @allow: set how much the worker may take from now on: everything (@all), or
 *         the limit of one iteration of the main loop.  Worker
 * @go: the VM runs again; BQL
 */
typedef struct HypertraceDevice HypertraceDevice;

typedef struct HtChannelOps {
    const char *name;
    bool uses_ring;
    bool rings;
    bool arms;
    void (*realize)(HypertraceDevice *dev);
    void (*unrealize)(HypertraceDevice *dev);
    size_t (*consume)(HtStream *s, bool force);
    void (*doorbell)(HtStream *s);
    void (*closing)(HtStream *s);
    bool (*drained)(HtStream *s);
    bool (*drop)(HtStream *s);
    void (*allow)(HypertraceDevice *dev, bool all);
    void (*go)(HypertraceDevice *dev);
} HtChannelOps;

extern const HtChannelOps ht_channel_hypercall;
extern const HtChannelOps ht_channel_shm;
extern const HtChannelOps ht_channel_virtio;

/* ring.c: mark the guest's last writes dirty.  Context: worker, VM stopped */
void ht_ring_pause(HtStream *s);

/* Maximum that a doorbell of channel=hypercall takes; the worker continues */
#define HT_DOORBELL_BYTES   (8 * KiB)
#define HT_DOORBELL_EVENTS  1000

#endif /* HW_HYPERTRACE_CHANNEL_H */
