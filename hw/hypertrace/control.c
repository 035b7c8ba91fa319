/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: callbacks of a device's control messages (hypertrace/control.h)
 *
 * All functions run with the BQL held, and none of them waits for a sink.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "device.h"
#include "trace.h"

static void class_added(void *opaque, HtClass *c)
{
    HypertraceDevice *dev = opaque;

    ht_dispatch_wake(dev->dispatch);
    if (dev->directory.base) {
        ht_directory_add_class(&dev->directory, c);
    }
    ht_device_enable_watch(dev);
}

/*
 * A driver sends STREAM_OPEN again until the device has opened the stream.
 * Each message may have the address of the stream's memory.  A driver that
 * chooses the memory by the stream's index learns this index from the first
 * reply, and sends the address in the next message.
 */
static enum ht_status stream_open(void *opaque, struct ht_msg_open *m,
                                  const HtStreamInfo *info)
{
    HypertraceDevice *dev = opaque;
    /* Ignore `memory` if the driver did not negotiate HT_F_MEMORY. */
    uint64_t memory = virtio_vdev_has_feature(VIRTIO_DEVICE(dev), HT_F_MEMORY) ?
                      ldq_le_p(&m->memory) : 0;
    enum ht_status status;

    if (memory % sizeof(uint64_t)) {
        return HT_STATUS_INVAL;
    }
    /*
     * Update the clock for a new stream, but not while a reset is pending: the
     * events from before the reset need the old clock.
     */
    if (!ldq_le_p(&m->instance) && !qatomic_read(&dev->streams.resample)) {
        ht_clock_update_offset(&dev->clock);
    }
    status = ht_streams_open(&dev->streams, m, info);
    if ((status == HT_STATUS_OK || status == HT_STATUS_BUSY) &&
        ldq_le_p(&m->instance)) {
        dev->streams.stream[ldl_le_p(&m->stream)].memory = memory;
    }
    return status;
}

static enum ht_status time_sync(void *opaque, struct ht_msg_time *m)
{
    HypertraceDevice *dev = opaque;

    if (qatomic_read(&dev->streams.resample)) {
        return HT_STATUS_BUSY;
    }
    ht_clock_update_offset(&dev->clock);
    ht_guest_clock_sync(&dev->clock.guest, m);
    return HT_STATUS_OK;
}

void ht_control_takeover(HypertraceDevice *dev)
{
    dev->caps.epoch++;
    /*
     * Change the generation of the configuration, so that a driver that is
     * reading the capabilities reads them again.
     */
    virtio_notify_config(VIRTIO_DEVICE(dev));
    ht_streams_want_close_all(&dev->streams);
    ht_worker_kick(dev);
}

static void takeover(void *opaque)
{
    ht_control_takeover(opaque);
}

static void G_GNUC_PRINTF(2, 0) error(void *opaque, const char *fmt, va_list ap)
{
    HypertraceDevice *dev = opaque;

    ht_guest_vlog(dev, &dev->log_control, fmt, ap);
}

static void done(void *opaque, unsigned type, size_t size,
                 enum ht_status status)
{
    HypertraceDevice *dev = opaque;

    trace_hypertrace_control(dev->trace->name, type, size, status);
}

void ht_control_init(HypertraceDevice *dev)
{
    static const HtControlOps ops = {
        .added = class_added,
        .open = stream_open,
        .sync = time_sync,
        .takeover = takeover,
        .error = error,
        .done = done,
    };

    dev->messages = (HtControl) {
        .classes = dev->trace->classes,
        .enable = &dev->enable,
        .streams = &dev->streams,
        .ops = &ops,
        .opaque = dev,
    };
}
