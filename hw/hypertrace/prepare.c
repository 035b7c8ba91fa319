/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: check the properties, and acquire the objects that they name */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-common.h"
#include "qemu/units.h"
#include "hw/boards.h"
#include "system/runstate.h"
#include "system/system.h"
#include "hypertrace/memory-layout.h"
#include "device.h"

#define RING_RAM_MAX (1 * GiB)
QEMU_BUILD_BUG_ON(HT_CLASSES_MAX >= HT_ENABLE_SIZE);

/* Minimum of the automatic values of "streams" and "backlog" */
#define STREAMS_AUTO_MIN 16
#define BACKLOG_AUTO_MIN (8 * MiB)

#define BACKLOG_MIN (1 * MiB)
#define BACKLOG_MAX (16 * GiB)

#define CLASS_BYTES_MIN (4 * KiB)
#define CLASS_BYTES_MAX HT_DIRECTORY_CLASSES

static const HtChannelOps *const channels[] = {
    [HT_CHANNEL_HYPERCALL] = &ht_channel_hypercall,
    [HT_CHANNEL_SHM] = &ht_channel_shm,
    [HT_CHANNEL_VIRTIO] = &ht_channel_virtio,
};

static bool check_range(const char *name, uint64_t value, uint64_t min,
                        uint64_t max, bool power_of_two, Error **errp)
{
    if (value < min || value > max ||
        (power_of_two && !is_power_of_2(value))) {
        error_setg(errp, "%s=%" PRIu64 " is out of range: %s%" PRIu64
                   " to %" PRIu64, name, value,
                   power_of_two ? "a power of two, " : "", min, max);
        return false;
    }
    return true;
}

/* Size of the stream RAM in bytes.  The properties must be in their ranges. */
static uint64_t ring_ram_size(const HypertraceDevice *dev)
{
    struct ht_caps c = {
        .streams = dev->conf.streams,
        .packet_size = dev->conf.packet_size,
        .packets = dev->conf.packets,
    };

    ht_layout(&c);
    return pow2ceil(ht_layout_size(&c));
}

bool ht_check_unread(HypertraceDevice *dev, bool unread, Error **errp)
{
    if (unread && (dev->conf.channel != HT_CHANNEL_SHM ||
                   dev->conf.mode != HT_MODE_OVERWRITE)) {
        error_setg(errp, "unread needs channel=shm and mode=overwrite: other"
                   " guests discard, or ring, when a ring is full");
        return false;
    }
    return true;
}

static uint64_t memdev_size(HypertraceDevice *dev)
{
    return memory_region_size(host_memory_backend_get_memory(dev->conf.memdev));
}

/*
 * Default of the property "streams".  By default, a Linux guest's kernel uses
 * three quarters of the streams, one for each vCPU.  If packets or memdev leave
 * no room for that many, use fewer, but at least STREAMS_AUTO_MIN.
 */
static uint32_t streams_auto(HypertraceDevice *dev)
{
    unsigned vcpus = MACHINE(qdev_get_machine())->smp.max_cpus;
    uint64_t room = dev->conf.memdev ? memdev_size(dev) : RING_RAM_MAX;

    dev->conf.streams = MIN(MAX(DIV_ROUND_UP(vcpus * 4, 3), STREAMS_AUTO_MIN),
                            HT_STREAMS_MAX);
    while (dev->channel->uses_ring && ring_ram_size(dev) > room &&
           dev->conf.streams > STREAMS_AUTO_MIN) {
        dev->conf.streams--;
    }
    return dev->conf.streams;
}

/*
 * Default of the property "backlog".  Half of the backlog is reserved for runs
 * that are posted when no sink has room: here, a buffer for each stream.
 */
static uint64_t backlog_auto(HypertraceDevice *dev)
{
    uint64_t buffer = MAX(HT_DISPATCH_BUFFER, dev->conf.packet_size);

    return MAX(2 * dev->conf.streams * buffer, BACKLOG_AUTO_MIN);
}

static bool check_properties(HypertraceDevice *dev, Error **errp)
{
    if (!check_range("packet-size", dev->conf.packet_size, HT_PACKET_SIZE_MIN,
                     HT_PACKET_SIZE_MAX, true, errp) ||
        !check_range("packets", dev->conf.packets, HT_PACKETS_MIN,
                     HT_PACKETS_MAX, true, errp)) {
        return false;
    }
    if (dev->conf.streams == HT_STREAMS_AUTO) {
        dev->conf.streams = streams_auto(dev);
    }
    if (dev->conf.backlog == HT_BACKLOG_AUTO) {
        dev->conf.backlog = backlog_auto(dev);
    }
    if (!check_range("streams", dev->conf.streams, 1, HT_STREAMS_MAX, false,
                     errp) ||
        !check_range("batch", dev->conf.batch, 1, HT_BATCH_MAX, false, errp) ||
        !check_range("flush-ms", dev->conf.flush_ms, 1, 1000, false, errp) ||
        !check_range("backlog", dev->conf.backlog, BACKLOG_MIN, BACKLOG_MAX,
                     false, errp) ||
        !check_range("class-bytes", dev->conf.class_bytes, CLASS_BYTES_MIN,
                     CLASS_BYTES_MAX, false, errp) ||
        !ht_check_unread(dev, dev->worker.unread, errp)) {
        return false;
    }
    if (dev->conf.batch != 1 && dev->conf.channel != HT_CHANNEL_HYPERCALL) {
        error_setg(errp, "batch=%" PRIu32 " needs channel=hypercall",
                   dev->conf.batch);
        return false;
    }
    if (!dev->channel->uses_ring) {
        if (dev->conf.memdev) {
            error_setg(errp, "memdev needs channel=hypercall or channel=shm:"
                       " virtio has no stream RAM");
            return false;
        }
        if (dev->conf.iothread) {
            error_setg(errp, "iothread needs channel=hypercall or channel=shm:"
                       " virtio's queues are served by the main loop");
            return false;
        }
        if (dev->conf.mode != HT_MODE_DISCARD) {
            error_setg(errp, "mode=overwrite needs channel=hypercall or"
                       " channel=shm: a virtio buffer cannot be taken back");
            return false;
        }
        return true;
    }
    if (ring_ram_size(dev) > RING_RAM_MAX) {
        error_setg(errp, "streams x packets x packet-size need %" PRIu64
                   " MiB of stream RAM; at most %" PRIu64 " MiB are possible",
                   ring_ram_size(dev) / MiB, RING_RAM_MAX / MiB);
        return false;
    }
    if (dev->conf.memdev) {
        const char *id = object_get_canonical_path_component(
            OBJECT(dev->conf.memdev));
        uint64_t size = memdev_size(dev);

        if (host_memory_backend_is_mapped(dev->conf.memdev)) {
            error_setg(errp, "memdev '%s' is in use", id);
            return false;
        }
        if (size != ring_ram_size(dev)) {
            error_setg(errp, "memdev '%s' has %" PRIu64 " bytes, the streams"
                       " need exactly %" PRIu64, id, size,
                       ring_ram_size(dev));
            return false;
        }
    }
    return true;
}

static void fill_caps(HypertraceDevice *dev)
{
    uint64_t hz = ht_guest_clock_hz(&dev->clock.guest);
    /*
     * Limit the time between two events with a short header to 2^23 ticks and
     * to 2^23 ns, half of the range of 24 bits, so that neither can wrap.
     */
    uint64_t gap = MIN(hz, NANOSECONDS_PER_SECOND);

    gap = muldiv64(gap, (HT_CLOCK_MASK + 1) / 2, NANOSECONDS_PER_SECOND);
    dev->caps = (struct ht_caps) {
        .magic = HT_MAGIC,
        .version = HT_VERSION,
        .channel = dev->conf.channel,
        .mode = dev->conf.mode,
        .streams = dev->conf.streams,
        .packet_size = dev->conf.packet_size,
        .packets = dev->conf.packets,
        .batch = dev->conf.batch,
        .flush_ms = dev->conf.flush_ms,
        .max_gap = MAX(gap, 1),
        .clock_hz = hz,
        .epoch = 1,
        .max_classes = HT_CLASSES_MAX,
        .max_message = HT_MESSAGE_MAX,
        .mailbox_size = HT_MAILBOX_SIZE,
        .counter = dev->clock.counter,
    };
    if (dev->channel->uses_ring) {
        ht_layout(&dev->caps);
        dev->caps.doorbell_offset = HT_REGS_DOORBELL;
        dev->caps.doorbell_stride = dev->channel->arms ? 0 : HT_MAP_ALIGN;
    }
}

static bool init_ring_ram(HypertraceDevice *dev, Error **errp)
{
    uint32_t i;

    if (dev->conf.memdev) {
        dev->ring_mr = host_memory_backend_get_memory(dev->conf.memdev);
        host_memory_backend_set_mapped(dev->conf.memdev, true);
    } else {
        /*
         * The PCI proxy owns the RAM: the device is a part of the proxy's
         * memory.
         */
        if (!memory_region_init_ram_nomigrate(&dev->ram, OBJECT(dev->proxy),
                                              "hypertrace-ring",
                                              ring_ram_size(dev), errp)) {
            return false;
        }
        dev->ring_mr = &dev->ram;
    }
    dev->ring_ram = memory_region_get_ram_ptr(dev->ring_mr);
    for (i = 0; i < dev->conf.streams; i++) {
        ht_stream_set_ring(&dev->streams.stream[i],
                           ht_layout_ring(&dev->caps, dev->ring_ram, i));
    }
    return true;
}

void ht_device_describe(HypertraceDevice *dev)
{
    const HtClassTable *classes = dev->trace->classes;
    struct ht_caps caps;
    uint32_t id;

    if (!dev->ring_mr) {
        return;
    }
    ht_caps_swap(&caps, &dev->caps);
    memcpy(dev->ring_ram, &caps, sizeof(caps));
    dev->directory.base = dev->ring_ram + ht_layout_directory(&dev->caps);
    ht_directory_clear(&dev->directory, 0);
    for (id = 1; id <= ht_class_table_count(classes); id++) {
        ht_directory_add_class(&dev->directory,
                               ht_class_table_get(classes, id));
    }
}

static void finalize_ring_ram(HypertraceDevice *dev)
{
    if (!dev->ring_mr) {
        return;
    }
    /* dev->ram may still be mapped; it is freed with its owner, the proxy. */
    if (dev->conf.memdev) {
        host_memory_backend_set_mapped(dev->conf.memdev, false);
    }
    dev->ring_mr = NULL;
    dev->directory.base = NULL;
}

bool hypertrace_device_prepare(HypertraceDevice *dev, Error **errp)
{
    g_autoptr(GPtrArray) backends = NULL;

    dev->channel = channels[dev->conf.channel];
    if (!check_properties(dev, errp)) {
        return false;
    }
    dev->trace = ht_trace_claim(dev->conf.name ?: dev->proxy->id, errp);
    if (!dev->trace) {
        return false;
    }
    if (ht_class_table_size(dev->trace->classes) > dev->conf.class_bytes) {
        error_setg(errp, "class-bytes=%" PRIu64 " is less than the %zu bytes of"
                   " the classes that an earlier device '%s' registered",
                   dev->conf.class_bytes,
                   ht_class_table_size(dev->trace->classes), dev->trace->name);
        goto fail;
    }
    ht_class_table_set_limit(dev->trace->classes, dev->conf.class_bytes);
    dev->info = (HtDeviceInfo) {
        .name = dev->trace->name,
        .vm_name = qemu_name ?: "vm",
        .channel = dev->channel->name,
        .classes = dev->trace->classes,
        .streams = dev->conf.streams,
        .clock_bound_ns = ht_clock_bound_ns,
        .opaque = &dev->clock,
    };
    if (!ht_clock_init(&dev->clock, errp)) {
        goto fail;
    }
    ht_device_streams_init(dev);
    backends = ht_backends_find(OBJECT(dev), dev->info.name,
                                dev->conf.backend, errp);
    if (!backends) {
        goto fail;
    }
    dev->sinks = ht_sinks_new(&dev->info, backends, dev->conf.backlog,
                              dev->conf.packet_size, ht_worker_kick, dev, errp);
    if (!dev->sinks) {
        goto fail;
    }
    dev->dispatch = ht_sinks_dispatch(dev->sinks);
    if (!ht_worker_prepare(dev, errp)) {
        goto fail;
    }
    fill_caps(dev);
    if (dev->channel->uses_ring && !init_ring_ram(dev, errp)) {
        goto fail;
    }
    ht_device_enable_init(dev);
    ht_control_init(dev);
    ht_device_describe(dev);
    return true;

fail:
    hypertrace_device_unprepare(dev);
    return false;
}

/*
 * Release what hypertrace_device_prepare() has acquired, also after it has
 * failed.  Streams, clock and stream RAM stay until finalize, since a vCPU may
 * still be in a doorbell.
 */
void hypertrace_device_unprepare(HypertraceDevice *dev)
{
    if (!dev->trace) {
        return;
    }
    ht_worker_unprepare(dev);
    g_clear_pointer(&dev->sinks, ht_sinks_free);
    ht_backends_drop(OBJECT(dev));
    finalize_ring_ram(dev);
    g_clear_pointer(&dev->trace, ht_trace_release);
}

void ht_device_ref(HypertraceDevice *dev)
{
    object_ref(OBJECT(dev));
    object_ref(OBJECT(dev->proxy));
}

void ht_device_unref(HypertraceDevice *dev)
{
    Object *proxy = OBJECT(dev->proxy);

    object_unref(OBJECT(dev));
    object_unref(proxy);
}
