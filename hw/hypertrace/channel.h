/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: interface of the channels, which transport events
 */
#ifndef HW_HYPERTRACE_CHANNEL_H
#define HW_HYPERTRACE_CHANNEL_H

#include "qemu/units.h"
#include "hypertrace/streams.h"

typedef struct HypertraceDevice HypertraceDevice;

/**
 * HtChannelOps: the host's part of a channel; unused callbacks are NULL
 * @name: value of the property "channel"
 * @uses_ring: the device has registers (BAR0) and stream RAM (BAR4), and its
 *             worker runs in an IOThread; else the main loop is the worker
 * @rings: the producer writes the doorbell for each batch of events; the vCPU
 *         thread that handles this write consumes up to HT_DOORBELL_BYTES
 * @arms: the consumer sleeps after it has armed the wake word; the producer
 *        writes the doorbell when head has reached the wake word
 * @realize: allocate the channel's own resources; cannot fail; BQL
 * @unrealize: free them; BQL
 * @consume: consume about one packet, or one buffer, of a stream; virtio, when
 *           the VM stops or the device is reset or unplugged: also the events
 *           that the guest has not handed over (HT_F_MEMORY).  Without @force,
 *           consume only if a sink has room.  Returns the number of bytes.
 *           Worker; takes the stream's lock
 * @doorbell: called when the guest has written the doorbell, unless an
 *            ioeventfd takes the write; vCPU thread
 * @closing: called when a close is requested: note the maximum number of
 *           buffers that the guest may have handed over so far, which must be
 *           consumed first; BQL
 * @drained: test whether the buffers that @closing noted were consumed.  Worker
 * @drop: drop one buffer that was handed over for a closed stream; returns
 *        whether there was one.  Worker
 * @allow: set how much the worker may take from now on: everything (@all), or
 *         the limit of one iteration of the main loop.  Worker
 * @go: called when the VM runs again; BQL
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

/*
 * ring.c: mark the guest's last writes dirty. Context: BQL and HtWorker.lock;
 * the VM is stopped
 */
void ht_ring_pause(HtStream *s);

/*
 * Maximum numbers of bytes and of events that the vCPU consumes in one doorbell
 * of channel=hypercall, or one larger event.  The worker consumes the rest.
 */
#define HT_DOORBELL_BYTES   (8 * KiB)
#define HT_DOORBELL_EVENTS  1000

#endif /* HW_HYPERTRACE_CHANNEL_H */
