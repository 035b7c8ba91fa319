/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: migration, savevm and loadvm
 *
 * When the VM stops, ht_worker_pause() posts the committed events to the sinks,
 * if a sink has room.  The source's QEMU delivers these events or counts them
 * as discarded.  It does not write to the rings until the VM runs or is reset.
 * The saved state has classes, clock and streams' positions.  Loaded streams
 * continue when the VM runs, or when a virtio device is reset.  The guest keeps
 * the numbers of its stream instances.  The trace keeps such a number, too,
 * unless it was used in this trace before (the VM was rewound): the stream then
 * gets a new number in the trace, because events could appear twice otherwise.
 *
 * The loaded state may be forged.
 *
 * Context: BQL
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "hw/core/cpu.h"
#include "migration/vmstate.h"
#include "system/kvm.h"
#include "device.h"
#include "trace.h"

struct HtMigration {
    uint64_t epoch;
    uint32_t max_gap;
    uint32_t enable_seq;
    uint64_t flush_wanted;
    uint64_t guest_errors;
    uint64_t discarded;
    uint64_t instances;
    /* CLOCK_REALTIME minus CLOCK_MONOTONIC of the saving host, in ns */
    int64_t wall_offset;
    uint32_t nr_segments;
    HtTimeSegment segments[HT_TIME_SEGMENTS];
    uint32_t classes_size;
    uint8_t *classes;
    uint32_t nr_streams;
    uint32_t streams_size;
    uint8_t *streams;

    uint32_t classes_max;       /* value of the property class-bytes */
    /* a state was loaded, and choose_instances() was not called since */
    bool loaded;
};

static void state_free(HtMigration *m)
{
    g_clear_pointer(&m->classes, g_free);
    g_clear_pointer(&m->streams, g_free);
}

static int state_pre_save(void *opaque)
{
    HypertraceDevice *dev = opaque;
    HtMigration *m = dev->migration;
    GByteArray *classes;

    state_free(m);
    if (!dev->worker.paused) {
        error_report("hypertrace %s: the VM runs while it is saved",
                     dev->trace->name);
        return -EBUSY;
    }
    classes = ht_class_table_save(dev->trace->classes);
    m->epoch = dev->caps.epoch;
    m->max_gap = dev->caps.max_gap;
    m->enable_seq = dev->caps.enable_seq;
    m->flush_wanted = dev->streams.flush_given;
    m->guest_errors = qatomic_read(&dev->messages.errors);
    m->discarded = qatomic_read(&dev->streams.discarded);
    m->instances = m->loaded ? MAX(m->instances, dev->trace->instances) :
                               dev->trace->instances;
    m->wall_offset = ht_wall_offset();
    m->nr_segments = ht_guest_clock_save(&dev->clock.guest, m->segments);
    m->classes_size = classes->len;
    m->classes = g_byte_array_free(classes, false);
    m->nr_streams = dev->conf.streams;
    m->streams = g_malloc0(m->streams_size);
    ht_streams_save(&dev->streams, m->streams);
    return 0;
}

static int state_pre_load(void *opaque)
{
    HypertraceDevice *dev = opaque;
    HtMigration *m = dev->migration;
    uint32_t open;

    state_free(m);
    m->streams = g_malloc0(m->streams_size);
    m->loaded = false;
    /*
     * No stream is open: a reset before loadvm has closed them, none was opened
     * since QEMU started, or those of an earlier load were not resumed.
     */
    if (!ht_streams_unload(&dev->streams, &open)) {
        error_report("hypertrace %s: stream %" PRIu32 " is open",
                     dev->trace->name, open);
        return -EBUSY;
    }
    return 0;
}

static bool classes_fit(void *opaque, int version_id)
{
    HtMigration *m = opaque;

    if (m->classes_size > m->classes_max) {
        error_report("hypertrace: the classes to be loaded need %" PRIu32
                     " bytes; property 'class-bytes' allows %" PRIu32 " here",
                     m->classes_size, m->classes_max);
        return false;
    }
    return true;
}

static bool streams_fit(void *opaque, int version_id)
{
    HtMigration *m = opaque;

    return m->nr_streams == m->streams_size / HT_STREAM_STATE_SIZE;
}

static int G_GNUC_PRINTF(2, 3) refuse(HypertraceDevice *dev,
                                      const char *fmt, ...)
{
    g_autofree char *what = NULL;
    va_list ap;

    va_start(ap, fmt);
    what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    error_report("hypertrace %s: the state to be loaded is not valid: %s",
                 dev->trace->name, what);
    state_free(dev->migration);
    return -EINVAL;
}

static int state_post_load(void *opaque, int version_id)
{
    HypertraceDevice *dev = opaque;
    HtMigration *m = dev->migration;
    int64_t shift = (uint64_t)m->wall_offset - (uint64_t)ht_wall_offset();
    g_autofree char *why = NULL;

    if (m->max_gap == 0 || m->max_gap > (HT_CLOCK_MASK + 1) / 2) {
        return refuse(dev, "max_gap is %" PRIu32, m->max_gap);
    }
    if (m->discarded > HT_LOST_MAX) {
        return refuse(dev, "%" PRIu64 " events had no stream", m->discarded);
    }
    if (!ht_streams_load(&dev->streams, m->streams, m->instances, shift,
                         &why)) {
        return refuse(dev, "%s", why);
    }
    /*
     * With KVM, the host cannot read the counter any more until KVM has
     * reported the counter's new offset.
     */
    if (!ht_guest_clock_load(&dev->clock.guest, m->segments, m->nr_segments,
                             shift, !kvm_enabled())) {
        return refuse(dev, "its clock");
    }
    if (!ht_class_table_load(dev->trace->classes, m->classes, m->classes_size,
                             &why)) {
        return refuse(dev, "%s", why);
    }

    ht_streams_loaded(&dev->streams, m->streams);
    dev->caps.epoch = m->epoch;
    dev->caps.max_gap = m->max_gap;
    dev->caps.enable_seq = m->enable_seq;
    dev->enable.seq = m->enable_seq;
    qatomic_set(&dev->messages.errors, m->guest_errors);
    qatomic_set(&dev->streams.discarded, m->discarded);
    ht_streams_load_flush(&dev->streams, m->flush_wanted);
    state_free(m);
    ht_dispatch_wake(dev->dispatch);
    ht_device_describe(dev);
    m->loaded = true;
    return 0;
}

static const VMStateDescription vmstate_segment = {
    .name = "hypertrace/time",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(counter, HtTimeSegment),
        VMSTATE_UINT64(ns, HtTimeSegment),
        VMSTATE_UINT64(mult, HtTimeSegment),
        VMSTATE_UINT64(bound_ns, HtTimeSegment),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_migration = {
    .name = "hypertrace/migration",
    .version_id = 3,
    .minimum_version_id = 3,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(epoch, HtMigration),
        VMSTATE_UINT32(max_gap, HtMigration),
        VMSTATE_UINT32(enable_seq, HtMigration),
        VMSTATE_UINT64(flush_wanted, HtMigration),
        VMSTATE_UINT64(guest_errors, HtMigration),
        VMSTATE_UINT64(discarded, HtMigration),
        VMSTATE_UINT64(instances, HtMigration),
        VMSTATE_INT64(wall_offset, HtMigration),
        VMSTATE_UINT32(nr_segments, HtMigration),
        VMSTATE_STRUCT_ARRAY(segments, HtMigration, HT_TIME_SEGMENTS, 1,
                             vmstate_segment, HtTimeSegment),
        VMSTATE_UINT32(classes_size, HtMigration),
        VMSTATE_VALIDATE("size of classes", classes_fit),
        VMSTATE_VBUFFER_ALLOC_UINT32(classes, HtMigration, 1, NULL,
                                     classes_size),
        VMSTATE_UINT32(nr_streams, HtMigration),
        VMSTATE_VALIDATE("number of streams", streams_fit),
        VMSTATE_VBUFFER_UINT32(streams, HtMigration, 1, NULL, streams_size),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription ht_vmstate_state = {
    .name = "hypertrace-state",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = state_pre_save,
    .pre_load = state_pre_load,
    .post_load = state_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(migration, HypertraceDevice, vmstate_migration,
                               HtMigration),
        VMSTATE_END_OF_LIST()
    },
};

/*
 * Give a new instance to each loaded stream if the number of its instance was
 * used in the trace before.  No stream was opened since the state was loaded.
 * Returns false if no state was loaded since the last call.
 */
static bool choose_instances(HypertraceDevice *dev)
{
    uint32_t i;

    if (!dev->migration->loaded) {
        return false;
    }
    dev->migration->loaded = false;
    ht_streams_renumber(&dev->streams, dev->migration->instances);
    for (i = 0; i < dev->conf.streams; i++) {
        const HtStream *s = &dev->streams.stream[i];

        if (ht_stream_phase(s) == HT_PHASE_LOADED) {
            trace_hypertrace_stream_load(dev->trace->name, i, s->next.instance,
                                         s->consumer.info.instance);
        }
    }
    return true;
}

/* Context: vCPU thread, BQL */
static void start_on_cpu(CPUState *cpu, run_on_cpu_data data)
{
    HypertraceDevice *dev = data.host_ptr;

    if (dev->migration) {
        ht_clock_update_offset(&dev->clock);
        ht_streams_resume(&dev->streams);
    }
    ht_device_unref(dev);
}

void ht_migration_reset(HypertraceDevice *dev)
{
    if (choose_instances(dev)) {
        ht_streams_resume(&dev->streams);
    }
}

void ht_migration_vm_start(HypertraceDevice *dev)
{
    if (!choose_instances(dev)) {
        return;
    }
    if (kvm_enabled()) {
        /*
         * The load may have changed KVM's offset of the counter.  Ask for it in
         * the vCPU's thread, before the streams continue.
         */
        ht_device_ref(dev);
        async_run_on_cpu(first_cpu, start_on_cpu, RUN_ON_CPU_HOST_PTR(dev));
    } else {
        ht_streams_resume(&dev->streams);
    }
}

/*
 * Both sides must have the same values of the properties that the guest relies
 * on, and the same protocol version: saved ids and classes have no meaning in
 * another version.  Load this part first: otherwise QEMU would reject a
 * different PCI configuration or memory without naming the property.
 */
#define MUST_BE_SAME(property) \
    "hypertrace: property '" property "' must be the same on both sides"

static const VMStateDescription vmstate_conf = {
    .name = "hypertrace-properties",
    .version_id = HT_VERSION,
    .minimum_version_id = HT_VERSION,
    .early_setup = true,
    .priority = MIG_PRI_PCI_BUS,
    .fields = (const VMStateField[]) {
        VMSTATE_INT32_EQUAL(conf.channel, HypertraceDevice,
                            MUST_BE_SAME("channel")),
        VMSTATE_INT32_EQUAL(conf.mode, HypertraceDevice, MUST_BE_SAME("mode")),
        VMSTATE_UINT32_EQUAL(conf.streams, HypertraceDevice,
                             MUST_BE_SAME("streams")),
        VMSTATE_UINT64_EQUAL(conf.packet_size, HypertraceDevice,
                             MUST_BE_SAME("packet-size")),
        VMSTATE_UINT32_EQUAL(conf.packets, HypertraceDevice,
                             MUST_BE_SAME("packets")),
        VMSTATE_UINT32_EQUAL(conf.batch, HypertraceDevice,
                             MUST_BE_SAME("batch")),
        VMSTATE_UINT32_EQUAL(conf.flush_ms, HypertraceDevice,
                             MUST_BE_SAME("flush-ms")),
        VMSTATE_END_OF_LIST()
    },
};

void ht_migration_realize(HypertraceDevice *dev)
{
    dev->migration = g_new0(HtMigration, 1);
    dev->migration->streams_size = dev->conf.streams * HT_STREAM_STATE_SIZE;
    dev->migration->classes_max = dev->conf.class_bytes;
    vmstate_register_any(VMSTATE_IF(dev), &vmstate_conf, dev);
    if (dev->ring_mr) {
        vmstate_register_ram(dev->ring_mr, dev->proxy);
    }
}

void ht_migration_unrealize(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        if (ht_stream_is_suspended(&dev->streams.stream[i])) {
            warn_report("hypertrace %s: unplugged before its streams were"
                        " resumed after a migration: their events are not"
                        " recorded",
                        dev->trace->name);
            break;
        }
    }
    /* Unregister the RAM, because the region may outlive the device. */
    if (dev->ring_mr) {
        vmstate_unregister_ram(dev->ring_mr, dev->proxy);
    }
    vmstate_unregister(VMSTATE_IF(dev), &vmstate_conf, dev);
    state_free(dev->migration);
    g_clear_pointer(&dev->migration, g_free);
}
