/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the device, without its bus
 *
 * Who runs what:
 *   BQL     control messages, resets, property access; with channel=virtio
 *           also the worker
 *   worker  opening, consuming and closing streams.  Never takes the BQL
 *   vCPU    channel=hypercall only: consuming, in the doorbell (in QEMU 10.0
 *           with the BQL, from 10.2 without it)
 *   sinks   a thread each: calls a backend.  See sink.h
 * Lock order: BQL, HtStream.lock, then the sinks' locks or HtClock.lock.
 * Nothing that can wait for a backend is done with any of them held.
 */
#ifndef HW_HYPERTRACE_DEVICE_H
#define HW_HYPERTRACE_DEVICE_H

#include "hw/virtio/virtio.h"
#include "system/hostmem.h"
#include "channel.h"
#include "clock.h"
#include "enable.h"
#include "migration.h"
#include "recover.h"
#include "registry.h"
#include "sink.h"
#include "worker.h"

#define TYPE_HYPERTRACE_DEVICE "hypertrace-device"

/* Property streams: as many as the machine's vCPUs need */
#define HT_STREAMS_AUTO UINT32_MAX
/* Property backlog: for events of all streams at once */
#define HT_BACKLOG_AUTO UINT64_MAX
OBJECT_DECLARE_SIMPLE_TYPE(HypertraceDevice, HYPERTRACE_DEVICE)

typedef struct HtVirtio HtVirtio;

/* How often a guest may have the host log something: see ht_guest_log() */
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
        char *backend;          /* ids, with ':' between them */
        uint64_t backlog;
        uint64_t class_bytes;   /* of all classes, as a migration sends them */
        char *name;
    } conf;

    /* set by hypertrace_device_prepare() */
    const HtChannelOps *channel;
    HtTrace *trace;
    HtDeviceInfo info;
    HtSinks *sinks;
    HtDispatch *dispatch;       /* of @sinks */
    bool prepared;

    /* control */
    struct ht_caps caps;        /* host byte order */
    uint8_t mailbox[HT_MAILBOX_SIZE];   /* the copy that is executed */
    int64_t openings_ns;        /* get_clock() when the budget began */

    HtStream *streams;
    HtWorker worker;
    HtClock clock;
    HtEnable enable;
    bool resample;              /* the clock, once all streams are closed */
    VMChangeStateEntry *vmstate;
    HtMigration *migration;
    HtRecover recover;          /* its file is a property */

    /* rings: hypercall, shm */
    MemoryRegion regs;
    MemoryRegion ram;           /* unless memdev */
    MemoryRegion *ring_mr;
    uint8_t *ring_ram;

    HtVirtio *virtio;           /* channel-virtio.c */

    uint64_t guest_errors;      /* malformed control input */
    uint64_t discarded;         /* events without one; until a stream tells */
    QemuSeqLock telling;        /* @discarded moves to a stream */
    HtLimit log_control;        /* malformed input, as often as a guest likes */
    HtLimit log_stopped;        /* streams: why one was stopped */
};

/**
 * hypertrace_device_prepare: check all properties and take what they name
 * @dev: not yet realized
 * @errp: what is wrong, and the accepted range
 *
 * Everything that can fail does so here, before the PCI proxy is realized: a
 * proxy whose realize fails late is leaked.
 *
 * Context: BQL
 */
bool hypertrace_device_prepare(HypertraceDevice *dev, Error **errp);
void hypertrace_device_unprepare(HypertraceDevice *dev);
/* ht_check_unread: may the property "unread" be so?  Context: BQL */
bool ht_check_unread(HypertraceDevice *dev, bool unread, Error **errp);

/* regs.c: BAR0 */
extern const MemoryRegionOps ht_regs_ops;
/* Also the virtio config space */
void ht_caps_to_le(const struct ht_caps *host, struct ht_caps *le);
#define HT_REGS_DOORBELL    HT_MAP_ALIGN
uint64_t ht_regs_size(const HypertraceDevice *dev);

/**
 * ht_guest_log: log a guest's fault, at most a few times a second
 * @dev: the device
 * @limit: faults that share a limit
 * @fmt: what it did
 *
 * Context: any thread
 */
void G_GNUC_PRINTF(3, 4) ht_guest_log(HypertraceDevice *dev, HtLimit *limit,
                                      const char *fmt, ...);

/**
 * ht_guest_error: log a fault of the guest, and count it for the device; the
 * faults of a stream are counted by its consumer
 */
#define ht_guest_error(dev, ...)                                \
    do {                                                        \
        qatomic_inc(&(dev)->guest_errors);                      \
        ht_guest_log(dev, &(dev)->log_control, __VA_ARGS__);    \
    } while (0)

#endif /* HW_HYPERTRACE_DEVICE_H */
