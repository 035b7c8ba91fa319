/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: streams, from opening to closing
 */
#ifndef HW_HYPERTRACE_STREAM_H
#define HW_HYPERTRACE_STREAM_H

#include "qemu/atomic.h"
#include "qemu/seqlock.h"
#include "qemu/thread.h"
#include "hypertrace/consumer.h"
#include "hypertrace/queue.h"

typedef struct HypertraceDevice HypertraceDevice;

/**
 * HtStreamPhase: phases of a stream, and the threads that change them
 *
 * The control path (BQL) changes FREE to OPENING.  Migration (BQL) changes FREE
 * to LOADED, and back until it sets HtStream.want_resume.  The worker makes all
 * other changes.
 */
typedef enum HtStreamPhase {
    HT_PHASE_FREE,
    HT_PHASE_OPENING,
    HT_PHASE_OPEN,
    HT_PHASE_LOADED,            /* open for the guest, not resumed yet */
} HtStreamPhase;

typedef struct HtStream {
    HypertraceDevice *dev;
    uint32_t index;

    /* BQL, read by the worker once the phase is OPENING */
    HtStreamInfo next;          /* with the instance that the guest knows */
    uint64_t close_lost;
    uint64_t memory;            /* virtio: address of its table; BQL */

    HtStreamPhase phase;        /* store-release, load-acquire */
    bool want_close;            /* BQL; cleared when it is opened again */
    bool want_resume;           /* BQL; set after it was loaded */

    QemuMutex lock;             /* protects all members below */
    HtConsumer consumer;
    HtBuffer *fill;             /* buffer that its events are copied to */
    unsigned time_version;
    bool reported;              /* its stop was logged */

    struct ht_ring_control *ring;   /* hypercall, shm; in guest memory */
    uint8_t *packets;

    QemuSeqLock sums;           /* written by the worker */
    struct ht_stats closed;     /* sums of all closed instances */
} HtStream;

/**
 * ht_stream_is_suspended: test for a loaded stream that was not resumed yet
 *
 * Context: BQL
 */
static inline bool ht_stream_is_suspended(const HtStream *s)
{
    return qatomic_load_acquire(&s->phase) == HT_PHASE_LOADED &&
           !s->want_resume;
}

void ht_streams_init(HypertraceDevice *dev);
void ht_streams_finalize(HypertraceDevice *dev);

/**
 * ht_stream_want_close: request that a stream is drained and closed
 * @s: any stream
 * @lost: the guest's count of discarded events, or 0
 *
 * Context: BQL
 */
void ht_stream_want_close(HtStream *s, uint64_t lost);
void ht_streams_want_close_all(HypertraceDevice *dev);

/**
 * ht_streams_work: open, consume and close streams as requested
 * @dev: the device
 * @force: consume even if no sink has room: each sink then discards
 *
 * Takes a packet of each stream, or the limit of a turn of the main loop.
 *
 * Returns: true if there was anything to do
 *
 * Context: worker
 */
bool ht_streams_work(HypertraceDevice *dev, bool force);

/* Report the discarded events of open streams to the trace.  Context: worker */
void ht_streams_tell(HypertraceDevice *dev);

/**
 * ht_stream_fetch: consume what was committed and not handed over (virtio)
 * @s: a stream; all that was handed over is consumed
 *
 * Returns: number of bytes; 0 if the driver did not announce the memory
 *
 * Context: BQL
 */
size_t ht_stream_fetch(HtStream *s);
/* Forget the addresses of streams' memory.  Context: BQL */
void ht_streams_forget_memory(HypertraceDevice *dev);

/* Call this before consuming.  Context: HtStream.lock held */
void ht_stream_begin(HtStream *s);
/* Call this after consuming; logs a new stop.  Context: HtStream.lock held */
void ht_stream_end(HtStream *s);

/* Statistics of the open instance, or of the last one.  Context: any thread */
void ht_stream_stats(HtStream *s, struct ht_stats *stats);
void ht_device_stats(HypertraceDevice *dev, struct ht_stats *stats);

#endif /* HW_HYPERTRACE_STREAM_H */
