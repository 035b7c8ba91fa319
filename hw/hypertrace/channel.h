/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: channels, what differs between the ways events take
 */
#ifndef HW_HYPERTRACE_CHANNEL_H
#define HW_HYPERTRACE_CHANNEL_H

#include "qemu/units.h"
#include "stream.h"

/**
 * HtChannelOps: what differs between the channels on the host
 * @name: value of the property
 * @uses_ring: has BAR0 and BAR4, and an IOThread as worker; otherwise the main
 *             loop is
 * @rings: the producer rings for each batch, and consuming is for the vCPU
 * @arms: the consumer sleeps and the producer rings when armed to
 * @realize, @unrealize: the channel's own resources; BQL.  Cannot fail
 * @consume: take a packet at most of what a stream's producer committed or
 *           handed over; unless @force, only while a sink has room.  Returns
 *           bytes.  Worker; takes the stream's lock
 * @doorbell: written by the guest; vCPU thread
 * @closing: a close was asked for: what the guest handed over so far is to be
 *           consumed before; BQL
 * @drained: whether that is done.  Worker
 * @drop: take a buffer that was handed over for a stream that is closed;
 *        returns whether it took one.  Worker
 * @allow: from now on the worker may take @all there is, or else what one
 *         iteration of the main loop may.  Worker
 * @go: the VM runs again; BQL
 */
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

/* ring.c: what hypercall and shm share; worker unless it says otherwise */
/**
 * ht_ring_consume: take what was committed
 * @s: a stream
 * @most: bytes, and at least an event; in channel=hypercall a piece at most
 * @force: even if no sink has room
 *
 * Returns: bytes
 *
 * Context: worker, or the doorbell's vCPU
 */
size_t ht_ring_consume(HtStream *s, size_t most, bool force);
/* Whether a look would find something.  Context: any thread */
bool ht_ring_stream_pending(HtStream *s);
bool ht_ring_pending(HypertraceDevice *dev);
bool ht_ring_behind(HypertraceDevice *dev);    /* by a packet's end */
bool ht_ring_arm_all(HypertraceDevice *dev, bool eager);
void ht_ring_disarm_all(HypertraceDevice *dev);
void ht_ring_open(HtStream *s);
void ht_ring_pause(HtStream *s);
void ht_ring_resume(HtStream *s);
void ht_ring_set_state(HtStream *s, enum ht_stream_state state);

/* What a doorbell of channel=hypercall takes at most; the worker the rest */
#define HT_DOORBELL_BYTES   (8 * KiB)
#define HT_DOORBELL_EVENTS  1000

#endif /* HW_HYPERTRACE_CHANNEL_H */
