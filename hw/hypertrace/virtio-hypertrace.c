/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the virtio device behind the PCI proxy
 *
 * For the guest, every channel is a virtio device; only channel=virtio has
 * virtqueues.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "system/runstate.h"
#include "properties.h"

OBJECT_DEFINE_SIMPLE_TYPE(HypertraceDevice, hypertrace_device,
                          HYPERTRACE_DEVICE, VIRTIO_DEVICE)

/* Maximum number of lines that are logged per second for each HtLimit */
#define LOG_LINES 10

static bool may_log(HtLimit *limit)
{
    int64_t second = get_clock() / NANOSECONDS_PER_SECOND;

    /* A race is harmless: it allows a few more lines. */
    if (qatomic_xchg(&limit->second, second) != second) {
        qatomic_set(&limit->times, 0);
    }
    return qatomic_fetch_inc(&limit->times) < LOG_LINES;
}

void ht_guest_log(HypertraceDevice *dev, HtLimit *limit, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    ht_guest_vlog(dev, limit, fmt, ap);
    va_end(ap);
}

void ht_guest_vlog(HypertraceDevice *dev, HtLimit *limit, const char *fmt,
                   va_list ap)
{
    if (qemu_loglevel_mask(LOG_GUEST_ERROR) && may_log(limit)) {
        g_autofree char *what = g_strdup_vprintf(fmt, ap);

        qemu_log("hypertrace %s: %s\n", dev->info.name, what);
    }
}

static void hypertrace_get_config(VirtIODevice *vdev, uint8_t *config)
{
    struct ht_caps caps;

    ht_caps_swap(&caps, &HYPERTRACE_DEVICE(vdev)->caps);
    memcpy(config, &caps, sizeof(caps));
}

static uint64_t hypertrace_get_features(VirtIODevice *vdev, uint64_t features,
                                        Error **errp)
{
    /*
     * Do not offer HT_F_MEMORY if the rings are in stream RAM, which the host
     * reads anyway.  Do not offer it with an IOMMU either: the driver's
     * addresses are then not addresses of RAM.
     */
    if (!HYPERTRACE_DEVICE(vdev)->channel->uses_ring &&
        !virtio_has_feature(features, VIRTIO_F_IOMMU_PLATFORM)) {
        virtio_add_feature(&features, HT_F_MEMORY);
    }
    return features;
}

/*
 * Only a vCPU's thread can ask KVM for the offset of the guest's counter.  If
 * the guest's driver sets the features, this function runs in a vCPU's thread.
 * If QEMU calls it in another thread, for example to load a saved state,
 * ht_clock_update_offset() does nothing.
 */
static void hypertrace_set_features(VirtIODevice *vdev, uint64_t features)
{
    ht_clock_update_offset(&HYPERTRACE_DEVICE(vdev)->clock);
}

/*
 * Handle a stop or a start of the VM.  While the VM is stopped, the guest's
 * counter may stop or jump, and the worker's turns do nothing.
 */
static void hypertrace_vm_change(void *opaque, bool running, RunState state)
{
    HypertraceDevice *dev = opaque;

    ht_clock_vm_change(&dev->clock, running);
    if (running) {
        ht_worker_go(dev);
        ht_migration_vm_start(dev);
        ht_device_enable_start(dev);
        return;
    }
    /*
     * Deliver the guest's last events now: QEMU may exit next, and does not
     * unrealize devices then, or the VM may stay paused for long.
     */
    if (state == RUN_STATE_SHUTDOWN) {
        ht_streams_want_close_all(&dev->streams);
    }
    ht_device_enable_stop(dev);
    ht_worker_pause(dev);
}

static void hypertrace_device_realize(DeviceState *qdev, Error **errp)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(qdev);

    if (!dev->trace) {
        /* Refuse "-device hypertrace-device", without the PCI proxy. */
        error_setg(errp, "%s works only as part of the device 'hypertrace'",
                   TYPE_HYPERTRACE_DEVICE);
        return;
    }
    virtio_init(VIRTIO_DEVICE(dev), HT_VIRTIO_ID, sizeof(struct ht_caps));
    if (dev->channel->uses_ring) {
        /*
         * Make the proxy the owner of the region: QEMU keeps the owner while a
         * vCPU accesses the region.
         */
        memory_region_init_io(&dev->regs, OBJECT(dev->proxy), &ht_regs_ops,
                              dev, "hypertrace-regs", ht_regs_size(dev));
#if HT_QEMU_AT_LEAST(10, 2)
        memory_region_enable_lockless_io(&dev->regs);
#endif
    }
    if (dev->channel->realize) {
        dev->channel->realize(dev);
    }
    dev->vmstate = qemu_add_vm_change_state_handler(hypertrace_vm_change, dev);
    ht_guest_clock_sample(&dev->clock.guest, true);
    ht_migration_realize(dev);
    ht_worker_start(dev);
    if (runstate_is_running()) {
        /*
         * The device was plugged into a running VM, so no change of the VM's
         * state will call ht_device_enable_start().
         */
        ht_device_enable_start(dev);
    }
}

static void hypertrace_device_unrealize(DeviceState *qdev)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(qdev);

    ht_device_enable_stop(dev);
    ht_worker_stop(dev);
    ht_migration_unrealize(dev);
    qemu_del_vm_change_state_handler(dev->vmstate);
    if (dev->channel->unrealize) {
        dev->channel->unrealize(dev);
    }
    virtio_cleanup(VIRTIO_DEVICE(dev));
    hypertrace_device_unprepare(dev);
}

/*
 * Make the worker consume what was committed, close the streams and then read
 * the guest's counter again, which the reset may have changed.  Called for
 * resets of the system and of PCI, but not when a driver writes status = 0.
 * The reset does not clear the stream RAM.
 */
static void hypertrace_reset_hold(Object *obj, ResetType type)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(obj);

    if (dev->worker.running) {
        qatomic_set(&dev->streams.resample, true);
        /*
         * virtio: if a state was loaded and the VM has not run since, resume
         * the loaded streams, so that the reset consumes the buffers on the
         * queues.  If this reset is the one that precedes a loadvm, do not
         * resume: loadvm discards these streams.
         */
        if (!dev->channel->uses_ring && type != RESET_TYPE_SNAPSHOT_LOAD) {
            ht_migration_reset(dev);
        }
        ht_control_takeover(dev);
        ht_device_enable_reset(dev);
        if (!dev->channel->uses_ring || dev->worker.paused) {
            /*
             * Consume now.  Virtio: the reset ends the queues.  Rings: if the
             * VM is stopped, the stream RAM may be loaded next, and the worker
             * must not write to it then.
             */
            ht_worker_settle(dev);
        }
    }
}

/* Handle a reset of the virtio device, by a driver or by QEMU */
static void hypertrace_virtio_reset(VirtIODevice *vdev)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(vdev);

    if (!dev->channel->uses_ring) {
        /*
         * The reset ends the queues: consume the buffers on them even if no
         * sink has room.  The sinks count the events that they discard.
         */
        if (ht_streams_any_open(&dev->streams)) {
            ht_streams_want_flush(&dev->streams);
        }
        ht_worker_settle(dev);
        /*
         * Stop reading the streams' memory (HT_F_MEMORY): after this reset, the
         * driver may use the memory for other purposes.
         */
        ht_streams_forget_memory(&dev->streams);
    }
}

static void hypertrace_device_init(Object *obj)
{
    qemu_mutex_init(&HYPERTRACE_DEVICE(obj)->worker.lock);
}

static void hypertrace_device_finalize(Object *obj)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(obj);

    event_notifier_cleanup(&dev->worker.doorbell);
    qemu_mutex_destroy(&dev->worker.lock);
    ht_enable_destroy(&dev->enable);
    if (dev->streams.stream) {
        ht_streams_destroy(&dev->streams);
        ht_guest_clock_destroy(&dev->clock.guest);
    }
}

static const VMStateDescription vmstate_hypertrace = {
    .name = "hypertrace",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_VIRTIO_DEVICE,
        VMSTATE_END_OF_LIST()
    },
};

static const Property hypertrace_properties[] = {
    DEFINE_PROP_SIGNED("channel", HypertraceDevice, conf.channel,
                       HT_CHANNEL_SHM, ht_prop_channel, int),
    DEFINE_PROP_SIGNED("mode", HypertraceDevice, conf.mode, HT_MODE_DISCARD,
                       ht_prop_mode, int),
    { .name = "events", .info = &ht_prop_events },
    { .name = "settings", .info = &ht_prop_settings },
    { .name = "unread", .info = &ht_prop_unread },
    DEFINE_PROP_STRING("backend", HypertraceDevice, conf.backend),
    DEFINE_PROP_SIZE("backlog", HypertraceDevice, conf.backlog,
                     HT_BACKLOG_AUTO),
    DEFINE_PROP_SIZE("class-bytes", HypertraceDevice, conf.class_bytes,
                     1 * MiB),
    DEFINE_PROP_UINT32("streams", HypertraceDevice, conf.streams,
                       HT_STREAMS_AUTO),
    DEFINE_PROP_SIZE("packet-size", HypertraceDevice, conf.packet_size, 32768),
    DEFINE_PROP_UINT32("packets", HypertraceDevice, conf.packets, 16),
    DEFINE_PROP_UINT32("batch", HypertraceDevice, conf.batch, 1),
    DEFINE_PROP_UINT32("flush-ms", HypertraceDevice, conf.flush_ms, 10),
    DEFINE_PROP_LINK("memdev", HypertraceDevice, conf.memdev,
                     TYPE_MEMORY_BACKEND, HostMemoryBackend *),
    DEFINE_PROP_LINK("iothread", HypertraceDevice, conf.iothread,
                     TYPE_IOTHREAD, IOThread *),
    DEFINE_PROP_STRING("name", HypertraceDevice, conf.name),
};

static void hypertrace_device_class_init(ObjectClass *klass, HtClassData *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    VirtioDeviceClass *vdc = VIRTIO_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    device_class_set_props(dc, hypertrace_properties);
    dc->desc = "Tracing channel to the host";
    dc->vmsd = &vmstate_hypertrace;
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
    vdc->realize = hypertrace_device_realize;
    vdc->unrealize = hypertrace_device_unrealize;
    vdc->get_config = hypertrace_get_config;
    vdc->get_features = hypertrace_get_features;
    vdc->set_features = hypertrace_set_features;
    vdc->reset = hypertrace_virtio_reset;
    vdc->vmsd = &ht_vmstate_state;
    rc->phases.hold = hypertrace_reset_hold;
}
