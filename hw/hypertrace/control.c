/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the part of the control messages that depends on the streams
 *
 * host-lib checks the messages (hypertrace/control.h).  All code runs with the
 * BQL held.  Requests for which the worker must act first are answered with
 * BUSY.  No code waits for a sink.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/timer.h"
#include "device.h"
#include "trace.h"

static HtStream *stream_lookup(HypertraceDevice *dev, uint32_t index)
{
    return index < dev->conf.streams ? &dev->streams[index] : NULL;
}

/* HtControlOps.added */
static void class_added(void *opaque, HtClass *c)
{
    HypertraceDevice *dev = opaque;

    ht_dispatch_wake(dev->dispatch);
    ht_recover_classes(dev);
    ht_device_enable_watch(dev);
}

/* Test whether the driver negotiated HT_F_MEMORY; else `memory` is ignored */
static bool has_memory(HypertraceDevice *dev)
{
    return virtio_vdev_has_feature(VIRTIO_DEVICE(dev), HT_F_MEMORY);
}

/*
 * Store the address of the stream's memory.  Each message that opens a stream
 * carries it, also when it is sent again: only then the driver knows the
 * stream's index.
 */
static void note_memory(HtStream *s, const struct ht_msg_open *m)
{
    s->memory = has_memory(s->dev) ? ldq_le_p(&m->memory) : 0;
}

/*
 * Take one opening from the budget, which is refilled with time.  Each opening
 * is a new instance of the trace, and a file of a ctf backend, so a guest must
 * not make them at the speed of its messages.
 *
 * Returns: false if the budget is used up
 */
static bool take_opening(HypertraceDevice *dev)
{
    int64_t now = get_clock();
    int64_t burst = HT_OPENINGS_BURST(dev->conf.streams) *
                    HT_OPENING_INTERVAL_NS;

    /* the budget is the time since @openings_ns, at most @burst */
    dev->openings_ns = MAX(dev->openings_ns, now - burst);
    if (now - dev->openings_ns < HT_OPENING_INTERVAL_NS) {
        return false;
    }
    dev->openings_ns += HT_OPENING_INTERVAL_NS;
    return true;
}

/*
 * Request an opening from the worker.  The reply to the first message has the
 * stream's instance; the guest sends it again to ask for the result.
 */
static enum ht_status stream_open(void *opaque, struct ht_msg_open *m,
                                  HtStreamInfo *info)
{
    HypertraceDevice *dev = opaque;
    HtStream *s = NULL;
    uint32_t index, i;

    if (has_memory(dev) && ldq_le_p(&m->memory) % sizeof(uint64_t)) {
        return HT_STATUS_INVAL;
    }
    index = ldl_le_p(&m->stream);
    if (ldq_le_p(&m->instance)) {
        s = stream_lookup(dev, index);
        if (!s || s->next.instance != ldq_le_p(&m->instance)) {
            return HT_STATUS_NOENT;
        }
        switch (qatomic_load_acquire(&s->phase)) {
        case HT_PHASE_OPENING:
        case HT_PHASE_LOADED:
            note_memory(s, m);
            return HT_STATUS_BUSY;
        case HT_PHASE_OPEN:
            note_memory(s, m);
            return HT_STATUS_OK;
        default:
            return HT_STATUS_NOENT;
        }
    }

    if (qatomic_read(&dev->resample)) {
        return HT_STATUS_BUSY;          /* earlier streams are being dated */
    }
    if (index != HT_STREAM_ANY) {
        s = stream_lookup(dev, index);
        if (!s) {
            return HT_STATUS_NOENT;
        }
        if (qatomic_load_acquire(&s->phase) != HT_PHASE_FREE) {
            return qatomic_read(&s->want_close) ? HT_STATUS_BUSY :
                                                  HT_STATUS_EXIST;
        }
    } else {
        bool closing = false;

        for (i = 0; i < dev->conf.streams && !s; i++) {
            HtStream *one = &dev->streams[i];

            closing |= qatomic_read(&one->want_close);
            if (qatomic_load_acquire(&one->phase) == HT_PHASE_FREE) {
                s = one;
            }
        }
        if (!s) {
            return closing ? HT_STATUS_BUSY : HT_STATUS_LIMIT;
        }
    }

    if (!take_opening(dev)) {
        return HT_STATUS_BUSY;          /* the guest sends the message again */
    }
    info->index = s->index;
    info->instance = ++dev->trace->instances;
    s->next = *info;
    /* Clear here: the worker could race with a newer request. */
    s->want_close = false;
    s->close_lost = 0;
    note_memory(s, m);
    stl_le_p(&m->stream, s->index);
    stq_le_p(&m->instance, info->instance);
    ht_clock_update_offset(&dev->clock);
    /* Pairs with the load-acquire in stream_work(). */
    qatomic_store_release(&s->phase, HT_PHASE_OPENING);
    ht_worker_kick(dev);
    return HT_STATUS_BUSY;
}

static enum ht_status stream_close(void *opaque, const struct ht_msg_stream *m)
{
    HypertraceDevice *dev = opaque;
    HtStream *s;

    s = stream_lookup(dev, ldl_le_p(&m->stream));
    if (!s || s->next.instance == 0 ||
        s->next.instance != ldq_le_p(&m->instance)) {
        return HT_STATUS_NOENT;
    }
    if (qatomic_load_acquire(&s->phase) == HT_PHASE_FREE) {
        return HT_STATUS_OK;
    }
    if (qatomic_load_acquire(&s->phase) == HT_PHASE_LOADED) {
        return HT_STATUS_BUSY;          /* it was not resumed yet */
    }
    if (!s->want_close) {
        ht_stream_want_close(s, ldq_le_p(&m->lost));
        ht_worker_kick(dev);
    }
    return HT_STATUS_BUSY;
}

static bool any_loaded(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        if (qatomic_load_acquire(&dev->streams[i].phase) == HT_PHASE_LOADED) {
            return true;
        }
    }
    return false;
}

static enum ht_status stream_flush(void *opaque, struct ht_msg_stream *m)
{
    HypertraceDevice *dev = opaque;
    HtWorker *w = &dev->worker;
    uint32_t index, ticket;
    uint64_t done;
    HtStream *s;

    index = ldl_le_p(&m->stream);
    if (index != HT_STREAM_ANY) {
        s = stream_lookup(dev, index);
        if (!s || s->next.instance != ldq_le_p(&m->instance) ||
            qatomic_load_acquire(&s->phase) == HT_PHASE_FREE) {
            return HT_STATUS_NOENT;
        }
        if (qatomic_read(&s->consumer.stopped)) {
            return HT_STATUS_STOPPED;
        }
    }
    ticket = ldl_le_p(&m->ticket);
    if (ticket == 0) {
        if (any_loaded(dev)) {
            return HT_STATUS_BUSY;      /* they were not resumed yet */
        }
        /* Tickets are 1 to 2^32 - 1. */
        w->flush_wanted_bql++;
        if ((uint32_t)w->flush_wanted_bql == 0) {
            w->flush_wanted_bql++;
        }
        stl_le_p(&m->ticket, (uint32_t)w->flush_wanted_bql);
        /* Pairs with the load-acquire in worker_work(). */
        qatomic_store_release(&w->flush_wanted, w->flush_wanted_bql);
        ht_worker_kick(dev);
        return HT_STATUS_BUSY;
    }
    done = qatomic_load_acquire(&w->flush_done);
    return (int32_t)((uint32_t)done - ticket) >= 0 ? HT_STATUS_OK :
                                                     HT_STATUS_BUSY;
}

static bool get_stats(void *opaque, uint32_t index, struct ht_stats *stats)
{
    HypertraceDevice *dev = opaque;
    HtStream *s = stream_lookup(dev, index);

    if (index == HT_STREAM_ANY) {
        ht_device_stats(dev, stats);
    } else if (s) {
        ht_stream_stats(s, stats);
    }
    return s || index == HT_STREAM_ANY;
}

/* The worker only decreases the number: together they keep the limit. */
static void discarded(void *opaque, uint64_t count)
{
    HypertraceDevice *dev = opaque;

    qatomic_add(&dev->discarded,
                MIN(count, HT_LOST_MAX - qatomic_read(&dev->discarded)));
    ht_worker_kick(dev);
}

static enum ht_status time_sync(void *opaque, struct ht_msg_time *m)
{
    HypertraceDevice *dev = opaque;

    if (qatomic_read(&dev->resample)) {
        return HT_STATUS_BUSY;
    }
    ht_clock_exchange(&dev->clock, m);
    return HT_STATUS_OK;
}

void ht_control_takeover(HypertraceDevice *dev)
{
    dev->caps.epoch++;
    /* This changes the generation, for a driver that is reading. */
    virtio_notify_config(VIRTIO_DEVICE(dev));
    ht_streams_want_close_all(dev);
    ht_worker_kick(dev);
}

static void takeover(void *opaque)
{
    ht_control_takeover(opaque);
}

static void G_GNUC_PRINTF(2, 0) error(void *opaque, const char *fmt, va_list ap)
{
    HypertraceDevice *dev = opaque;

    qatomic_inc(&dev->guest_errors);
    ht_guest_vlog(dev, &dev->log_control, fmt, ap);
}

static void done(void *opaque, unsigned type, size_t size,
                 enum ht_status status)
{
    HypertraceDevice *dev = opaque;

    trace_hypertrace_control(dev->trace->name, type, size, status);
}

const HtControlOps ht_control_ops = {
    .added = class_added,
    .open = stream_open,
    .close = stream_close,
    .flush = stream_flush,
    .stats = get_stats,
    .discarded = discarded,
    .sync = time_sync,
    .takeover = takeover,
    .error = error,
    .done = done,
};
