/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the device, without its bus
 *
 * Who runs what:
 *   BQL       control messages, resets, property access, popping virtqueues
 *   IOThread  opening, consuming and closing streams; deferred delivery.
 *             Never takes the BQL.
 *   vCPU      channel=hypercall only: consuming, in the doorbell (in QEMU 10.0
 *             with the BQL, from 10.2 without it)
 * Lock order: BQL, HtStream.lock, HtClock.lock.  HtStream.lock is held while
 * backends take runs, so whoever holds the BQL may take it only where no
 * backend can block: in the doorbell, see HtSink.deferred.
 */
#ifndef HW_HYPERTRACE_DEVICE_H
#define HW_HYPERTRACE_DEVICE_H

#include "qemu/atomic.h"
#include "qemu/event_notifier.h"
#include "qemu/seqlock.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "hw/virtio/virtio.h"
#include "system/hostmem.h"
#include "system/iothread.h"
#include "hypertrace/backend.h"
#include "hypertrace/consumer.h"
#include "spool.h"

#define TYPE_HYPERTRACE_DEVICE "hypertrace-device"
OBJECT_DECLARE_SIMPLE_TYPE(HypertraceDevice, HYPERTRACE_DEVICE)

/* registry.c --------------------------------------------------------------- */

/**
 * HtTrace: what outlives a device: replugged under the same name, it goes on
 * @name: key
 * @classes: ids stay what they were
 * @instances: stream instances so far
 * @used: a device has it
 */
typedef struct HtTrace {
    char *name;
    HtClassTable *classes;
    uint64_t instances;
    bool used;
} HtTrace;

/**
 * ht_trace_claim: find or make the trace with a name
 * @name: valid name, or NULL for the first free of "ht0", "ht1"...
 * @errp: set if the name is not valid or a device has it
 *
 * Context: BQL
 */
HtTrace *ht_trace_claim(const char *name, Error **errp);
void ht_trace_release(HtTrace *trace);

/* delivery.c --------------------------------------------------------------- */

/**
 * HtSink: one backend as this device uses it
 * @deferred: runs go through a spool and the IOThread, because the consumer is
 *            a vCPU and the backend may block
 */
typedef struct HtSink {
    HypertraceDevice *dev;
    HypertraceBackend *backend;
    void *session;
    bool deferred;
    HtSpool *spools;            /* one a stream, if deferred */
} HtSink;

bool ht_delivery_attach(HypertraceDevice *dev, Error **errp);
void ht_delivery_detach(HypertraceDevice *dev);
/* HtDeliver; opaque is the HtStream */
void ht_delivery_run(void *opaque, const HtRun *run);
/* Whether every spool of a stream has room for one more packet */
bool ht_delivery_room(HypertraceDevice *dev, uint32_t stream);
/* Context: IOThread */
bool ht_delivery_drain(HypertraceDevice *dev);

/* stream.c ----------------------------------------------------------------- */

/**
 * HtStreamPhase: who may move a stream on
 *
 * The control path (BQL) moves FREE to OPENING, migration (BQL) FREE to LOADED
 * and back until it sets HtStream.want_resume; the IOThread all others.
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

    /* BQL, read by the IOThread once the phase is OPENING */
    HtStreamInfo next;          /* with the instance that the guest knows */
    uint64_t close_lost;

    HtStreamPhase phase;        /* store-release, load-acquire */
    bool want_close;            /* BQL; false again once it is reopened */
    bool want_resume;           /* BQL; once it was loaded */

    QemuMutex lock;             /* all below */
    HtConsumer consumer;
    unsigned time_version;
    bool reported;              /* that it was stopped */

    struct ht_ring_control *ring;   /* hypercall, shm; in guest memory */
    uint8_t *packets;

    QemuSeqLock sums;           /* written by the IOThread */
    struct ht_stats closed;     /* sums over the instances that were closed */
} HtStream;

/* Loaded, and not told yet to go on.  Context: BQL */
static inline bool ht_stream_waits(const HtStream *s)
{
    return qatomic_load_acquire(&s->phase) == HT_PHASE_LOADED &&
           !s->want_resume;
}

bool ht_streams_init(HypertraceDevice *dev);
void ht_streams_finalize(HypertraceDevice *dev);
/* Ask for a stream to be drained and closed.  Context: BQL */
void ht_stream_want_close(HtStream *s, uint64_t lost);
void ht_streams_want_close_all(HypertraceDevice *dev);
/* Open, consume, close as asked; whether there was anything.  IOThread */
bool ht_streams_work(HypertraceDevice *dev);
/* After consuming: log a stream that was just stopped.  Holds the lock */
void ht_stream_check_stopped(HtStream *s);
/* Before consuming.  Holds the lock */
void ht_stream_refresh_time(HtStream *s);
void ht_stream_stats(HtStream *s, struct ht_stats *stats);
void ht_device_stats(HypertraceDevice *dev, struct ht_stats *stats);

/* clock.c ------------------------------------------------------------------ */

typedef enum HtClockSource {
    HT_CLOCK_ELAPSED,           /* TCG on x86, qtest: QEMU makes the counter */
    HT_CLOCK_KVM,               /* host TSC + the offset KVM tells */
    HT_CLOCK_BRACKET,           /* exchanges with the guest */
} HtClockSource;

typedef struct HtClock {
    HtClockSource source;
    QemuMutex lock;             /* all below */
    HtTimeMap map;
    unsigned version;
    int64_t tsc_offset;
    int64_t sampled_ns;         /* when the map was last given a reading */
    int64_t tried_ns;           /* when that was last tried */
    int64_t looked_ns;          /* the host's time at the last look */
    uint64_t exchange_ns;       /* bracket: the last exchange */
    uint32_t exchange_cookie;
    bool scaled;                /* KVM scales the TSC: brackets only */
} HtClock;

/* False if the guest's counter is not known.  BQL, CPUs are there */
bool ht_clock_init(HtClock *c, Error **errp);
void ht_clock_destroy(HtClock *c);
/* The counter's frequency, ticks a second.  Any thread */
uint64_t ht_clock_hz(HtClock *c);
/*
 * How wrong dates are at most, UINT64_MAX if there is no idea: of events that
 * are consumed within 10 ms where the host reads the counter itself, else of
 * events of the next second.  Any thread
 */
uint64_t ht_clock_bound_ns(HtClock *c);
/* Read the counter if the last reading is old, or now.  Any thread */
void ht_clock_sample(HtClock *c, bool now);
/* Ask KVM for the TSC's offset, if this is a vCPU's thread.  BQL */
void ht_clock_update_offset(HtClock *c);
/* Copy the map if it changed since *version */
void ht_clock_copy(HtClock *c, HtTimeMap *map, unsigned *version);
/* HT_MSG_TIME_SYNC.  Context: BQL */
void ht_clock_exchange(HtClock *c, struct ht_msg_time *m);
/* Returns the number of segments written, at most HT_TIME_SEGMENTS */
unsigned ht_clock_save(HtClock *c, HtTimeSegment *seg);
/* Go on with another host's, whose clock was behind by @shift.  BQL */
bool ht_clock_load(HtClock *c, const HtTimeSegment *seg, unsigned count,
                   int64_t shift);

/* clock-target.c */

/* A vCPU's TSC: (the host's, scaled by khz / host_khz) + offset */
typedef struct HtKvmTsc {
    int64_t offset;
    int khz;
    int host_khz;
} HtKvmTsc;

/* Set the source and the map's frequency */
bool ht_clock_target(HtClock *c, uint64_t host_hz, uint32_t host_ppm,
                     Error **errp);
/* False if KVM does not tell or this is no vCPU's thread */
bool ht_clock_kvm_tsc(HtKvmTsc *tsc);

/* thread.c ----------------------------------------------------------------- */

typedef struct HtThread {
    IOThread *iothread;
    bool own;                   /* made by the device */
    AioContext *ctx;
    EventNotifier doorbell;     /* shm; also wakes the thread from anywhere */
    QEMUTimer *timer;
    bool polling;
    bool paused;                /* the VM is stopped and all is delivered */
    bool progress;              /* since the last tick of the timer */
    unsigned quiet;             /* ticks without progress */
    bool eager;                 /* what the wake words were armed with */
    int64_t looked_ns;
    uint64_t flush_wanted_bql;  /* tickets given */
    uint64_t flush_wanted;      /* BQL, store-release */
    uint64_t flush_done;        /* IOThread, store-release */
    uint64_t flush_next;        /* IOThread: the one under way */
    unsigned flush_passes;      /* IOThread: over all streams, for it */
    unsigned beats;             /* racy: moves while backends take runs */
    unsigned left;              /* BQL: calls that nobody waits for any more */
    bool running;               /* BQL */
} HtThread;

bool ht_thread_prepare(HypertraceDevice *dev, Error **errp);
void ht_thread_unprepare(HypertraceDevice *dev);
void ht_thread_start(HypertraceDevice *dev);
/*
 * Close all streams and detach; waits for the walk.  If HtThread.left is set
 * then, a backend hangs: see hypertrace_device_unused().  Context: BQL
 */
void ht_thread_stop(HypertraceDevice *dev);
/*
 * Deliver all that was committed; the VM is stopped.  False if that takes too
 * long: it goes on behind the caller's back.  Context: BQL
 */
bool ht_thread_settle(HypertraceDevice *dev);
/*
 * Settle, then leave rings alone, which may be another QEMU's from now on,
 * until ht_thread_go().  Returns what ht_thread_settle() does.  Context: BQL
 */
bool ht_thread_pause(HypertraceDevice *dev);
void ht_thread_go(HypertraceDevice *dev);
/* Tickets up to this one were given.  Context: BQL */
void ht_thread_load_flush(HypertraceDevice *dev, uint64_t wanted);
/* Have the IOThread look.  Any thread */
void ht_thread_kick(HypertraceDevice *dev);

/* register.c --------------------------------------------------------------- */

/* HT_MSG_CLASS_REGISTER; @m in and out.  Context: BQL */
enum ht_status ht_register_class(HypertraceDevice *dev,
                                 struct ht_msg_class *m, size_t size);
/* Tell newly attached backends of the classes the trace has.  BQL */
void ht_register_again(HypertraceDevice *dev);
/* Tell the backends of classes they were not told of.  BQL */
void ht_register_new(HypertraceDevice *dev);
/* Whether backends are being told.  BQL */
bool ht_register_pending(HypertraceDevice *dev);

/* control.c ---------------------------------------------------------------- */

/**
 * ht_control_message: execute a control message
 * @dev: the device
 * @msg: HT_MESSAGE_MAX bytes, private; the reply overwrites the message
 * @size: bytes of the message
 *
 * Returns: bytes of the reply
 *
 * Context: BQL
 */
size_t ht_control_message(HypertraceDevice *dev, void *msg, size_t size);
/* Close all streams and begin a new epoch.  Context: BQL */
void ht_control_takeover(HypertraceDevice *dev);

/* migration.c -------------------------------------------------------------- */

typedef struct HtMigration HtMigration;

/* In VirtioDeviceClass.vmsd */
extern const struct VMStateDescription ht_vmstate_state;

/* All: Context: BQL */
void ht_migration_realize(HypertraceDevice *dev);
void ht_migration_unrealize(HypertraceDevice *dev);
/* The VM runs: what was loaded begins to matter */
void ht_migration_vm_start(HypertraceDevice *dev);
/* Go on with loaded streams if nothing is in the way any more */
void ht_migration_resume(HypertraceDevice *dev);

/* migration-conf.c --------------------------------------------------------- */

typedef struct HtSavedConf HtSavedConf;

void ht_migration_conf_register(HypertraceDevice *dev);
void ht_migration_conf_unregister(HypertraceDevice *dev);

/* channels ----------------------------------------------------------------- */

/**
 * HtChannelOps: what differs between the channels on the host
 * @name: value of the property
 * @uses_ring: has BAR0 and BAR4
 * @consumes_in_vcpu: runs of a backend that may block must be deferred
 * @arms: the consumer sleeps and the producer rings when armed to
 * @realize, @unrealize: the channel's own resources; BQL.  Cannot fail.
 *           The IOThread may still be in @consume after @unrealize
 * @release: what @unrealize had to leave; the IOThread has stopped.  BQL
 * @consume: take what a stream's producer committed or handed over; returns
 *           bytes.  IOThread (and the doorbell's vCPU), takes the lock
 * @doorbell: written by the guest; vCPU thread
 * @drain: BQL: fetch what only the BQL may (virtqueues); before a flush, a
 *         close or a stop, or for the last time (a reset or takeover): then of
 *         loaded streams, too
 * @holds: whether something fetched of a loaded stream waits for it; BQL
 * @purge: drop what was handed over for a stream after it was closed; IOThread.
 *         Or for a loaded stream before a rewind; BQL
 * @resumed: a loaded stream is consumed from now on; IOThread
 */
typedef struct HtChannelOps {
    const char *name;
    bool uses_ring;
    bool consumes_in_vcpu;
    bool arms;
    void (*realize)(HypertraceDevice *dev);
    void (*unrealize)(HypertraceDevice *dev);
    void (*release)(HypertraceDevice *dev);
    size_t (*consume)(HtStream *s);
    void (*doorbell)(HtStream *s);
    void (*drain)(HypertraceDevice *dev, bool last);
    bool (*holds)(HtStream *s);
    void (*purge)(HtStream *s);
    void (*resumed)(HtStream *s);
} HtChannelOps;

extern const HtChannelOps ht_channel_hypercall;
extern const HtChannelOps ht_channel_shm;
extern const HtChannelOps ht_channel_virtio;

/* ring.c: what hypercall and shm share */
size_t ht_ring_consume(HtStream *s);
bool ht_ring_arm_all(HypertraceDevice *dev, bool eager);
void ht_ring_disarm_all(HypertraceDevice *dev);
bool ht_ring_pending(HypertraceDevice *dev);
bool ht_ring_behind(HypertraceDevice *dev);    /* by a packet's end */
void ht_ring_open(HtStream *s);
void ht_ring_resume(HtStream *s);
void ht_ring_set_state(HtStream *s, enum ht_stream_state state);

/* regs.c: BAR0 */
extern const MemoryRegionOps ht_regs_ops;
/* Also the virtio config space */
void ht_caps_to_le(const struct ht_caps *host, struct ht_caps *le);
#define HT_REGS_MAILBOX     0x1000
#define HT_REGS_DOORBELL    0x2000
uint64_t ht_regs_size(const HypertraceDevice *dev);

typedef struct HtVirtio HtVirtio;

/* How often a guest may have the host do something: see ht_limit() */
typedef struct HtLimit {
    int64_t second;
    unsigned times;
} HtLimit;

/* Log lines a second for each kind of a guest's misbehaviour */
#define HT_LOG_LINES        10
/* Classes a second that the backends refused, and are to try again */
#define HT_CLASS_RETRIES    16

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
        HypertraceBackend *backend;
        char *name;
    } conf;

    /* set by hypertrace_device_prepare() */
    const HtChannelOps *channel;
    HtTrace *trace;
    HtDeviceInfo info;
    HypertraceBackend *default_backend;
    HtSink *sinks;
    unsigned nr_sinks;
    bool deferred;              /* one of them is */
    bool prepared;

    /* control */
    struct ht_caps caps;        /* host byte order */
    uint8_t mailbox[HT_MESSAGE_MAX];
    GQueue jobs;                /* classes to tell the backends of; BQL */
    bool job_running;
    HtClass *job_class;
    bool unrealized;            /* waits for its job and thread to end */

    HtStream *streams;
    HtThread thread;
    HtClock clock;
    VMChangeStateEntry *vmstate;
    HtMigration *migration;
    HtSavedConf *saved_conf;

    /* rings: hypercall, shm */
    MemoryRegion regs;
    MemoryRegion ram;           /* unless memdev */
    MemoryRegion *ring_mr;
    uint8_t *ring_ram;

    HtVirtio *virtio;           /* channel-virtio.c */

    uint64_t guest_errors;      /* malformed control input */
    HtLimit log_control;        /* malformed input, as often as a guest likes */
    HtLimit log_stopped;        /* streams: why one was stopped */
    HtLimit log_refused;        /* classes: why a backend refused one */
    HtLimit retries;            /* of classes that a backend refused */
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

/**
 * hypertrace_device_unused: unprepare, if unrealized and nobody is in a backend
 * @dev: the device
 *
 * A thread that is in a backend uses the device and what it was given; each
 * calls this when it comes back.
 *
 * Context: BQL
 */
void hypertrace_device_unused(HypertraceDevice *dev);

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
 * ht_limit: whether something may be done once more in this second
 * @limit: what was done so far
 * @a_second: how often it may
 *
 * Context: any thread
 */
bool ht_limit(HtLimit *limit, unsigned a_second);

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
