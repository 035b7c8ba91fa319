/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the device, without its bus
 *
 * Threads:
 *   BQL     control messages, resets, properties, the worker of channel=virtio
 *   worker  channel=hypercall and shm: an IOThread, which opens, consumes and
 *           closes streams, and never takes the BQL
 *   vCPU    channel=hypercall: consumes in the doorbell (before QEMU 10.2 with
 *           the BQL, from 10.2 on without it)
 *   sinks   one thread for each backend of a device; see hypertrace/dispatch.h
 *
 * Lock order: BQL, HtWorker.lock, HtStream.lock, then the sinks' locks or
 * HtGuestClock.lock.  No code waits for a backend with one of these locks held,
 * except that an unplug and the exit of QEMU wait a few seconds with the BQL,
 * and that a session's lock is held while its backend takes a run.
 */
#ifndef HW_HYPERTRACE_DEVICE_H
#define HW_HYPERTRACE_DEVICE_H

#include "hw/virtio/virtio.h"
#include "system/hostmem.h"
#include "channel.h"
#include "clock.h"
#include "enable-page.h"
#include "registry.h"
#include "sink.h"
#include "worker.h"
#include "hypertrace/control.h"
#include "hypertrace/memory-directory.h"

#define TYPE_HYPERTRACE_DEVICE "hypertrace-device"

/* Property "streams" was not set: prepare.c computes it from the vCPUs */
#define HT_STREAMS_AUTO UINT32_MAX
/* Property "backlog" was not set: prepare.c computes it from the streams */
#define HT_BACKLOG_AUTO UINT64_MAX
OBJECT_DECLARE_SIMPLE_TYPE(HypertraceDevice, HYPERTRACE_DEVICE)

typedef struct HtMigration HtMigration;
typedef struct HtVirtio HtVirtio;

/* State of ht_guest_log(), which limits how often a guest makes the host log */
typedef struct HtLimit {
    int64_t second;
    unsigned times;
} HtLimit;

struct HypertraceDevice {
    VirtIODevice parent_obj;

    /* properties */
    struct {
        int channel;
        int mode;
        uint32_t streams;
        uint64_t packet_size;
        uint32_t packets;
        uint32_t batch;
        uint32_t flush_ms;
        HostMemoryBackend *memdev;
        IOThread *iothread;
        /* ids of backends, separated by ':' */
        char *backend;
        uint64_t backlog;
        /* maximum size of all classes together, in bytes */
        uint64_t class_bytes;
        char *name;
    } conf;

    DeviceState *proxy;         /* the PCI proxy, which contains the device */

    /* hypertrace_device_prepare() sets the following members */
    const HtChannelOps *channel;
    HtTrace *trace;             /* NULL if the device is not prepared */
    HtDeviceInfo info;
    HtSinks *sinks;
    HtDispatch *dispatch;

    struct ht_caps caps;        /* capabilities, in host byte order */
    uint8_t mailbox[HT_MAILBOX_SIZE];   /* private copy of a control request */

    HtStreams streams;
    HtWorker worker;
    HtClock clock;
    HtEnable enable;
    HtEnablePoll poll;
    HtControl messages;
    VMChangeStateEntry *vmstate;
    HtMigration *migration;

    /* used with channels hypercall and shm only */
    MemoryRegion regs;
    MemoryRegion ram;           /* stream RAM; unused if conf.memdev is set */
    MemoryRegion *ring_mr;
    uint8_t *ring_ram;
    /* directory in stream RAM; its @base is NULL if there is no stream RAM */
    HtDirectory directory;

    HtVirtio *virtio;           /* state of channel=virtio */

    /*
     * limit of the log lines about faults of the guest, except stopped streams
     */
    HtLimit log_control;
    /* limit of the log lines about streams that were stopped */
    HtLimit log_stopped;
};

/**
 * hypertrace_device_prepare: check all properties, and acquire the objects that
 * they name
 * @dev: the device, not yet realized
 * @errp: set on failure; for a refused value, it names the accepted range
 *
 * Every step of the device that can fail is here, before the PCI proxy is
 * realized: QEMU leaks a proxy whose realize function fails late.
 *
 * Context: BQL
 */
bool hypertrace_device_prepare(HypertraceDevice *dev, Error **errp);
void hypertrace_device_unprepare(HypertraceDevice *dev);
/* Keep the device, its memory and the objects that its properties link to */
void ht_device_ref(HypertraceDevice *dev);
/* Undo ht_device_ref().  Context: BQL */
void ht_device_unref(HypertraceDevice *dev);
/**
 * ht_device_describe: write the caps and the directory into the stream RAM
 * @dev: the device; its caps and classes are complete
 *
 * The guest may overwrite both.  Only `hypertrace recover` reads them, after
 * QEMU has ended.
 *
 * Context: BQL, while the worker opens no stream
 */
void ht_device_describe(HypertraceDevice *dev);
/*
 * ht_check_unread: test whether the property "unread" can be set to @unread.
 * Returns false with @errp set if not.  Context: BQL
 */
bool ht_check_unread(HypertraceDevice *dev, bool unread, Error **errp);

/* stream.c: get the device of a stream */
static inline HypertraceDevice *ht_stream_device(const HtStream *s)
{
    return s->all->cfg.opaque;
}
void ht_device_streams_init(HypertraceDevice *dev);

/* Functions of control.c.  Context: BQL */
void ht_control_init(HypertraceDevice *dev);
/* Request to close all streams, as the message HT_MSG_TAKEOVER does */
void ht_control_takeover(HypertraceDevice *dev);

/* migration.c: migration, savevm and loadvm.  Context: BQL */
extern const VMStateDescription ht_vmstate_state;
void ht_migration_realize(HypertraceDevice *dev);
void ht_migration_unrealize(HypertraceDevice *dev);
/*
 * Resume loaded streams: when a device with channel=virtio is reset, unless
 * loadvm follows, and when the VM starts
 */
void ht_migration_reset(HypertraceDevice *dev);
void ht_migration_vm_start(HypertraceDevice *dev);

/* regs.c: accesses to BAR0 */
extern const MemoryRegionOps ht_regs_ops;
#define HT_REGS_DOORBELL    HT_MAP_ALIGN
uint64_t ht_regs_size(const HypertraceDevice *dev);

/**
 * ht_guest_log: log a guest's fault, if QEMU logs guest errors, at most about
 * 10 times a second for each @limit
 * @dev: the device
 * @limit: limit shared by faults of this kind
 * @fmt: description of the fault
 *
 * Context: any thread
 */
void G_GNUC_PRINTF(3, 4) ht_guest_log(HypertraceDevice *dev, HtLimit *limit,
                                      const char *fmt, ...);
void G_GNUC_PRINTF(3, 0) ht_guest_vlog(HypertraceDevice *dev, HtLimit *limit,
                                       const char *fmt, va_list ap);

/*
 * ht_guest_error: log a fault of the guest, and count it in the device's
 * statistics.  A stream's consumer counts the faults in the stream's data.
 */
#define ht_guest_error(dev, ...)                                \
    do {                                                        \
        qatomic_inc(&(dev)->messages.errors);                   \
        ht_guest_log(dev, &(dev)->log_control, __VA_ARGS__);    \
    } while (0)

#endif /* HW_HYPERTRACE_DEVICE_H */
