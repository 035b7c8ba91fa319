/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: the callbacks of a device's streams (hypertrace/streams.h) */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/timer.h"
#include "system/dma.h"
#include "device.h"
#include "trace.h"

/* HtDeliver: post a run to the sinks.  Context: HtStream.lock held */
static void stream_deliver(void *opaque, const HtRun *run)
{
    HtStream *s = opaque;
    HypertraceDevice *dev = ht_stream_device(s);

    trace_hypertrace_run(dev->trace->name, s->index, run->events, run->size,
                         run->discarded);
    /*
     * With channel=virtio, do not let ht_dispatch_post() call a backend
     * directly: the worker is the main loop then, so the call would delay the
     * guest.
     */
    ht_dispatch_post(dev->dispatch, run, s->fill, dev->channel->uses_ring);
}

/* HtReserve: get memory for a run.  Context: HtStream.lock held */
static uint8_t *stream_reserve(void *opaque, size_t size)
{
    HtStream *s = opaque;

    return ht_dispatch_reserve(ht_stream_device(s)->dispatch, &s->fill, size);
}

static bool has_room(void *opaque)
{
    HypertraceDevice *dev = opaque;

    return ht_dispatch_room(dev->dispatch);
}

static void update_clock(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);

    /*
     * While a reset is pending, do not sample the clock: the events from before
     * the reset need the old counter.
     */
    ht_guest_clock_copy(&dev->clock.guest, &s->consumer.time, &s->time_version,
                        !qatomic_read(&dev->streams.resample));
}

/*
 * Mark a part of the stream RAM dirty for migration.  This costs almost nothing
 * unless dirty pages are logged.  Context: any thread; the BQL is not needed
 */
static void mark_dirty(void *opaque, const void *host, size_t size)
{
    HypertraceDevice *dev = opaque;

    memory_region_set_dirty(dev->ring_mr,
                            (const uint8_t *)host - dev->ring_ram, size);
}

static void stream_opened(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);
    HtStreamInfo info = s->consumer.info;
    HtTimeSegment seg[HT_TIME_SEGMENTS];
    unsigned n;

    trace_hypertrace_stream_open(dev->trace->name, s->index,
                                 s->consumer.info.instance);
    if (!dev->directory.base) {
        return;
    }
    n = ht_guest_clock_save(&dev->clock.guest, seg);
    if (n) {
        ht_directory_set_clock(&dev->directory, &seg[n - 1]);
    }
    /*
     * The directory in stream RAM needs the instance that the packets have.
     * After a loadvm or a migration, the backends may get another instance.
     */
    info.instance = s->consumer.instance;
    ht_directory_set_stream(&dev->directory, &info, get_clock());
}

static void stream_stopped(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);

    ht_guest_log(dev, &dev->log_stopped, "stream %" PRIu32 " stopped: %s",
                 s->index, s->consumer.why);
}

static void stream_closed(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);

    trace_hypertrace_stream_close(dev->trace->name, s->index,
                                  s->consumer.info.instance);
    ht_dispatch_release(dev->dispatch, &s->fill);
}

/*
 * HtStreamsConfig.resampled: read both clocks again after a reset, because the
 * guest's counter may have restarted
 */
static void resampled(void *opaque)
{
    HypertraceDevice *dev = opaque;

    ht_guest_clock_sample(&dev->clock.guest, true);
}

/*
 * Read RAM only, so that the guest cannot make the host access a device's
 * registers. (QEMU's functions for single words access devices whatever the
 * attributes are.)
 */
static bool read_ram(void *opaque, uint64_t addr, void *to, size_t size)
{
    const MemTxAttrs ram_only = { .memory = true };

    return address_space_read(&address_space_memory, addr, ram_only, to,
                              size) == MEMTX_OK;
}

static void memory_bad(HtStream *s)
{
    ht_guest_error(ht_stream_device(s), "stream %" PRIu32 ": its memory is not"
                   " as its driver says", s->index);
}

void ht_device_streams_init(HypertraceDevice *dev)
{
    const HtChannelOps *channel = dev->channel;
    const HtStreamsConfig cfg = {
        .count = dev->conf.streams,
        .consumer = {
            .classes = dev->trace->classes,
            .packet_size = dev->conf.packet_size,
            .packets = dev->conf.packets,
            .overwrite = dev->conf.mode == HT_MODE_OVERWRITE,
            .piece = channel->rings ? HT_DOORBELL_BYTES : 0,
            .piece_events = channel->rings ? HT_DOORBELL_EVENTS : 0,
            .deliver = stream_deliver,
            .reserve = stream_reserve,
        },
        .opening_ns = HT_OPENING_NS,
        .instances = &dev->trace->instances,
        .arms = channel->arms,
        .passes = channel->uses_ring ? dev->conf.packets : VIRTQUEUE_MAX_SIZE,
        .consume = channel->consume,
        .room = has_room,
        .clock = update_clock,
        .kick = ht_worker_kick,
        .dirty = channel->uses_ring ? mark_dirty : NULL,
        .closing = channel->closing,
        .drained = channel->drained,
        .drop = channel->drop,
        .opened = stream_opened,
        .stopped = stream_stopped,
        .closed = stream_closed,
        .resampled = resampled,
        .read = read_ram,
        .memory_bad = memory_bad,
        .opaque = dev,
    };

    ht_streams_init(&dev->streams, &cfg);
}
