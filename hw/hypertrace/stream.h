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
 * HtStreamPhase: who may move a stream on
 *
 * The control path (BQL) moves FREE to OPENING, migration (BQL) FREE to LOADED
 * and back until it sets HtStream.want_resume; the worker all others.
 */
typedef enum HtStreamPhase {
    HT_PHASE_FREE,
    HT_PHASE_OPENING,
    HT_PHASE_OPEN,
    HT_PHASE_LOADED,            /* open for the guest, not yet worked on */
} HtStreamPhase;

typedef struct HtStream {
    HypertraceDevice *dev;
    uint32_t index;

    /* BQL, read by the worker once the phase is OPENING */
    HtStreamInfo next;          /* with the instance that the guest knows */
    uint64_t close_lost;
    uint64_t memory;            /* virtio: its table's address; BQL */

    HtStreamPhase phase;        /* store-release, load-acquire */
    bool want_close;            /* BQL; false again once it is reopened */
    bool want_resume;           /* BQL; once it was loaded */

    QemuMutex lock;             /* all below */
    HtConsumer consumer;
    HtBuffer *fill;             /* what its events are copied to */
    unsigned time_version;
    bool reported;              /* that it was stopped */

    struct ht_ring_control *ring;   /* hypercall, shm; in guest memory */
    uint8_t *packets;

    QemuSeqLock sums;           /* written by the worker */
    struct ht_stats closed;     /* sums over the instances that were closed */
} HtStream;

/**
 * ht_stream_is_suspended: loaded by migration, not yet resumed
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
 * ht_stream_want_close: ask for a stream to be drained and closed
 * @s: any stream
 * @lost: the guest's count of discarded events, or 0
 *
 * Context: BQL
 */
void ht_stream_want_close(HtStream *s, uint64_t lost);
void ht_streams_want_close_all(HypertraceDevice *dev);

/**
 * ht_streams_work: open, consume and close as asked
 * @dev: the device
 * @force: consume even if no sink has room: each discards for itself
 *
 * Takes a packet of each stream, or what a turn of the main loop may.
 *
 * Returns: whether there was anything
 *
 * Context: worker
 */
bool ht_streams_work(HypertraceDevice *dev, bool force);

/* Have the trace know how much each open stream discarded.  Context: worker */
void ht_streams_tell(HypertraceDevice *dev);

/**
 * ht_stream_fetch: consume what was committed and is not handed over (virtio)
 * @s: a stream, of which all that was handed over is consumed
 *
 * Returns: bytes; 0 if the driver did not say where it is
 *
 * Context: BQL
 */
size_t ht_stream_fetch(HtStream *s);
/* Streams' memory is not theirs any more.  Context: BQL */
void ht_streams_forget_memory(HypertraceDevice *dev);

/* Before consuming.  Context: HtStream.lock held */
void ht_stream_begin(HtStream *s);
/* After consuming: log a stream that was just stopped.  Likewise */
void ht_stream_end(HtStream *s);

/* Of the open instance, or of the last one.  Context: any thread */
void ht_stream_stats(HtStream *s, struct ht_stats *stats);
void ht_device_stats(HypertraceDevice *dev, struct ht_stats *stats);

#endif /* HW_HYPERTRACE_STREAM_H */
