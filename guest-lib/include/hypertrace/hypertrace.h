/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: emit trace events from a guest to its host
 *
 * Freestanding: no libc, and nothing is allocated, locked or copied between
 * ht_get() and ht_commit().  A port (port.h) brings a device's channel; the
 * same calls then work over hypercall, shm and virtio.
 */
#ifndef HYPERTRACE_H
#define HYPERTRACE_H

#include "hypertrace/abi.h"
#include "hypertrace/arch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ht_channel_ops;
struct ht_device;
struct ht_stream;

/**
 * struct ht_label - a name for a value of a field
 * @value: the value
 * @name: shown in its place: printable ASCII without '"' and '\\', 1 to
 *        HT_LABEL_MAX bytes
 */
struct ht_label {
    int64_t value;
    const char *name;
};

/**
 * struct ht_field - one field of an event class
 * @name: [A-Za-z_][A-Za-z0-9_]*, 1 to HT_FIELD_NAME_MAX bytes
 * @kind: enum ht_field_kind
 * @elem: integer kind of the elements of a sequence or an array, else 0
 * @flags: HT_FIELD_HEX; HT_FIELD_UTF8: an array of u8 that is text;
 *         HT_FIELD_LABELS: an integer with @labels, which with HT_FIELD_BITS
 *         are names of bits; or 0
 * @count: elements of an array; number of @labels, at most HT_LABELS_MAX; or 0
 * @labels: NULL, unless @flags has HT_FIELD_LABELS
 */
struct ht_field {
    const char *name;
    uint8_t kind;
    uint8_t elem;
    uint8_t flags;
    uint16_t count;
    const struct ht_label *labels;
};

/**
 * struct ht_class - an event class: a name and typed fields
 * @name: [A-Za-z0-9_.-]+, 1 to HT_CLASS_NAME_MAX bytes
 * @fields: @nr_fields fields, in the order of the payload
 * @on: not 0 where events of the class are wanted; what ht_trace() looks at.
 *      NULL in a kernel and without an operating system
 * @nr_fields: 0 to HT_FIELDS_MAX
 * @loglevel: 0 (emergency) to 14 (debug), as syslog's and LTTng's
 * @state: in a kernel, what @on points to elsewhere
 * @id: filled in by ht_register(); 0 before, and ht_get() discards such events
 *
 * Usually written by HT_EVENT() (event.h).  Ids belong to a device: to emit on
 * two devices at once, keep a copy of the class for each.
 */
struct ht_class {
    const char *name;
    const struct ht_field *fields;
    const uint8_t *on;
    uint8_t nr_fields;
    uint8_t loglevel;
    uint8_t state;
    uint8_t reserved;
    uint32_t id;
};

/* Not an address: what struct ht_slow's @early returns */
#define HT_READ_CLOCK   ((uint8_t *)1)

/**
 * struct ht_slow - what an emit calls when it is not straight
 * @early: what can be done without reading the clock: the end of an event that
 *         has the date of the one before it; NULL: the ring is full, the event
 *         was discarded and counted; HT_READ_CLOCK: neither
 * @get: reserve an event in the next packet, with a longer header, or with a
 *       new stamp
 * @notify: head reached the wake word
 *
 * Functions of whoever opened the stream: a program need not be linked to it.
 */
struct ht_slow {
    uint8_t *(*early)(struct ht_stream *s, uint32_t id, uint32_t size);
    uint8_t *(*get)(struct ht_stream *s, uint32_t id, uint32_t size,
                    uint64_t now);
    void (*notify)(struct ht_stream *s);
};

/**
 * struct ht_stream - one producer's ordered events
 *
 * One context uses a stream at a time; a context that interrupts it (signal,
 * interrupt) gets NULL from ht_get(), and the event is counted as discarded.
 * Fields are private to the library; they are here for the inline emit, and
 * all zero is a stream that is not open.  The emit path knows the offsets up
 * to @lost; there is room for what the rest may become.
 */
struct ht_stream {
    /* the emit path: one cache line, and what it rarely stores */
    uint8_t *cur;               /* where the next event goes */
    uint8_t *end;               /* where straight events end; NULL: none is */
    uint64_t base;              /* position of cur, less cur */
    struct ht_ring_control *ring;
    const uint64_t *wake;       /* ring when head >= *wake: host line */
    uint64_t clock;             /* of an event, or a packet, before cur */
    uint64_t max_gap;           /* ticks: so far from it, a short header does */
    uint32_t busy;
    uint32_t inherit;           /* events to come with the date of @clock */
    uint64_t events;            /* committed since open */
    uint8_t *next;              /* ht_get(): end of the event being written */
    const struct ht_slow *slow; /* NULL: nothing can be emitted */
    uint64_t lost_nested;       /* by contexts that interrupted this one */
    uint64_t lost;

    /* switching packets */
    uint8_t *packets;
    uint8_t *packet_end;        /* of the open packet; NULL: none */
    uint64_t packet;            /* number of the open (or next) packet */
    uint64_t tail;              /* cached: first packet not released */
    uint64_t submitted;         /* virtio: position handed over so far */
    uint64_t rung;              /* wake value rung for */
    uint64_t instance;
    uint64_t batch_events;      /* hypercall: events at the last doorbell */
    uint64_t doorbells;         /* rung, or virtio kicks */
    uint64_t told;              /* lost, as the host was told last */
    const struct ht_channel_ops *ops;
    struct ht_device *dev;
    struct ht_stream *next_open;        /* of the device */
    uint32_t packet_shift;
    uint32_t packets_mask;
    uint32_t index;
    uint32_t overwrite;
    uint32_t content;           /* virtio: of the packet handed over in part */
    uint32_t stamps;            /* the clock is read for each so many events */
    uint64_t reserved[8];
};

/**
 * struct ht_stream_params - how to open a stream
 * @stream: index wanted, or HT_STREAM_ANY
 * @vcpu: the vCPU the producer is bound to, or -1: the guest's number of it,
 *        which need not be QEMU's
 * @name: shown by the host; NULL or [ -~]{0,32}
 * @stamps: as of ht_stream_stamps(); 0 is 1
 */
struct ht_stream_params {
    uint32_t stream;
    int32_t vcpu;
    const char *name;
    uint32_t stamps;
};

/**
 * ht_register() - tell the host of an event class
 * @dev: an open device
 * @cls: the class; its id is set
 *
 * Registering a class again is cheap and gives the same id.  Waits for the
 * device, not for the host's backends (typically under a millisecond).
 * Not for the emit path.  Threads: one at a time a device.
 *
 * Return: the id, 1 to HT_CLASSES_MAX; -EINVAL: a name or field is not as
 * struct ht_class says; -ENOSPC: a limit of the host; -EIO: the backend
 * failed; -ETIMEDOUT: the host did not answer within seconds.
 */
int ht_register(struct ht_device *dev, struct ht_class *cls);

/**
 * ht_wanted() - does the host want events of a class?
 * @dev: the device
 * @cls: registered on it
 *
 * A load where the device has memory for it, else what was known last: see the
 * port.  ht_get() does not look: whoever emits without asking is recorded, if
 * a backend of the host wants it.
 *
 * Return: whether it does; true where the port cannot tell.
 */
bool ht_wanted(const struct ht_device *dev, const struct ht_class *cls);

/**
 * ht_register_all() - tell the host of many event classes at once
 * @dev: an open device
 * @classes: @n of them; NULL is skipped.  Their ids are set, those of classes
 *           that were refused to 0
 * @n: number of @classes
 *
 * As ht_register() for each, but for HT_MAILBOX_SIZE bytes of them with one
 * message: a class takes some 100.  One that is refused concerns no other.
 *
 * Return: 0, or the first error; -ETIMEDOUT and other failures of the device
 * end it.
 */
int ht_register_all(struct ht_device *dev, struct ht_class *const *classes,
                    unsigned n);

/**
 * ht_stream_open() - open a stream
 * @dev: an open device
 * @s: storage for the stream; the caller's, 64-byte aligned
 * @params: NULL for any stream, not bound to a vCPU, without a name
 *
 * Return: 0; -EBUSY: all streams (or the one wanted) are in use; -EINVAL;
 * -EIO; -ETIMEDOUT.
 */
int ht_stream_open(struct ht_device *dev, struct ht_stream *s,
                   const struct ht_stream_params *params);

/**
 * ht_stream_stamps() - read the clock for some events only
 * @s: a stream that is open
 * @n: for the next event and each @n-th behind it, and for the first of each
 *     packet, 1 to HT_STAMPS_MAX; 1, the default, is for each event
 *
 * For events that come in bursts, where reading the clock is most of what they
 * cost.  The others have the date of the event before them.  So the order is
 * exact, and an event took place between its date and the next other date of
 * the stream, or when the host saw it first, if that is earlier.  Where a burst
 * begins, ht_stream_push(), ht_stream_flush() or this has the next event
 * read the clock.
 *
 * Called by the producer.
 *
 * Return: 0; -EINVAL; -EBUSY: called between ht_get() and ht_commit(); -EIO:
 * @s is not open.
 */
int ht_stream_stamps(struct ht_stream *s, uint32_t n);

#define HT_STAMPS_MAX   1024u

/**
 * ht_stream_flush() - have the host take all committed events now
 * @s: the stream
 *
 * Called by the producer.  Returns when the events are in the host's memory:
 * the guest may end, its memory may go, and they still reach the backends,
 * which are not waited for.
 *
 * Return: 0; -EIO: the stream was stopped as corrupt or closed by the host;
 * -EBUSY: called between ht_get() and ht_commit(); -ETIMEDOUT.
 */
int ht_stream_flush(struct ht_stream *s);

/**
 * ht_stream_push() - hand committed events over without waiting
 * @s: the stream
 *
 * For the producer, or a context that interrupts it (a timer on its CPU), to
 * bound how long an event waits in an open packet: virtio submits what was
 * committed, hypercall rings for the rest of a batch, shm has nothing to do.
 * Never sleeps and sends no message.  The next event reads the clock, whatever
 * ht_stream_stamps() said.
 *
 * Return: 0; -EBUSY: an event or a flush of @s is under way; -EAGAIN: no
 * descriptor is free; -EIO: @s is not open.
 */
int ht_stream_push(struct ht_stream *s);

/**
 * ht_stream_room() - would an event be taken now?
 * @s: the stream
 * @size: its payload bytes
 *
 * For a producer that would rather wait than discard: ht_get() counts an event
 * each time that it finds no room.  Called by the producer, outside
 * ht_get() and ht_commit().
 *
 * Return: whether ht_get() would find room for it, or find that the stream was
 * closed by the host or with the device, so that there is nothing to wait for.
 */
bool ht_stream_room(struct ht_stream *s, uint32_t size);

/**
 * ht_stream_close() - flush and close a stream
 * @s: the stream; may be opened again afterwards
 *
 * Return: as ht_stream_flush(); the stream is closed in any case.
 */
int ht_stream_close(struct ht_stream *s);

/**
 * ht_time_sync() - help the host relate the guest's clock to its own
 * @dev: an open device
 * @rounds: exchanges, 1 to 1000; the best one counts
 *
 * Needed only where the host cannot compute the guest's counter itself.
 *
 * Return: the error bound in ns (clamped to INT_MAX), or a negative errno.
 */
int ht_time_sync(struct ht_device *dev, unsigned rounds);

/**
 * ht_get_stats() - read the host's counters
 * @dev: an open device
 * @stream: an index, or HT_STREAM_ANY for the device's sums
 * @stats: filled in
 *
 * Return: 0 or a negative errno.
 */
int ht_get_stats(struct ht_device *dev, uint32_t stream,
                 struct ht_stats *stats);

/**
 * ht_discard() - what becomes of an event for a stream that is not open
 * @s: busy
 */
static inline uint8_t *ht_discard(struct ht_stream *s)
{
    s->lost++;
    ht_compiler_barrier();
    s->busy = 0;
    return NULL;
}

/**
 * ht_begin() - ht_get() for a caller that keeps the event's end itself
 *
 * Goes on with ht_finish().  One pointer tells all of an event whose size is
 * a constant, so it need not go through memory.
 *
 * Return: the end of the @size payload bytes, or NULL.
 */
static inline uint8_t *ht_begin(struct ht_stream *s, uint32_t id,
                                uint32_t size)
{
    uint8_t *cur, *end;
    uint64_t now;

    if (ht_unlikely(s->busy)) {
        ht_atomic_inc(&s->lost_nested);
        return NULL;
    }
    s->busy = 1;
    ht_compiler_barrier();      /* an interrupting context sees busy first */
    cur = s->cur;
    if (ht_unlikely((uintptr_t)cur + HT_EVENT_HEADER + size >=
                    (uintptr_t)s->end)) {
        if (!s->slow) {
            return ht_discard(s);
        }
        end = s->slow->early(s, id, size);
        return end != HT_READ_CLOCK ? end :
                                      s->slow->get(s, id, size, ht_clock());
    }
    ht_prefetch_write(cur + HT_PREFETCH_AHEAD);
    now = ht_clock();
    /*
     * All events within max_gap behind @clock are within max_gap of each other,
     * whichever is before which, so it need not follow them.
     */
    if (ht_unlikely(now - s->clock >= s->max_gap ||
                    id - 1 >= HT_ID_WIDE - 1)) {
        return s->slow->get(s, id, size, now);
    }
    ht_put32(cur, id | (uint32_t)now << 8);
    return cur + HT_EVENT_HEADER + size;
}

/**
 * ht_finish() - publish the event last begun
 * @s: the stream
 * @end: of its payload
 */
static inline void ht_finish(struct ht_stream *s, uint8_t *end)
{
    uint64_t head = s->base + (uintptr_t)end;

    s->cur = end;
    s->events++;
    /*
     * Pairs with the load-acquire of head in the host's consumer; proof:
     * tests/model/ring.pml.
     */
    ht_store_release(&s->ring->guest.head, head);
    /*
     * Relaxed: a wake word armed at this very moment can be missed.  The
     * worst outcome is that the event waits for the consumer's time bound;
     * proof: tests/model/wake.pml.
     */
    if (ht_unlikely(head >= ht_load_relaxed(s->wake))) {
        s->slow->notify(s);     /* still busy: a doorbell is not re-entered */
    }
    ht_compiler_barrier();
    s->busy = 0;
}

/**
 * ht_get() - reserve an event
 * @s: the stream
 * @id: from ht_register()
 * @size: payload bytes
 *
 * Never blocks.  Between ht_get() and ht_commit() nothing else may be
 * reserved on @s.
 *
 * Return: where to write @size payload bytes; NULL: the event is discarded
 * and counted (ring full, @size more than a packet holds, or @s is in use by
 * the context that this one interrupted).
 */
static inline void *ht_get(struct ht_stream *s, uint32_t id, uint32_t size)
{
    uint8_t *end = ht_begin(s, id, size);

    if (ht_unlikely(!end)) {
        return NULL;
    }
    s->next = end;
    return end - size;
}

/**
 * ht_commit() - publish the event last reserved
 * @s: the stream
 */
static inline void ht_commit(struct ht_stream *s)
{
    ht_finish(s, s->next);
}

/* Linux user space --------------------------------------------------------- */

/**
 * ht_open() - open a device from Linux user space
 * @path: "/dev/hypertraceN", a PCI address "0000:00:04.0" (root, without the
 *        module: hypercall, and shm for diagnosis), or NULL: what
 *        $HYPERTRACE_DEVICE says, else the first device found
 * @dev: set on success
 *
 * Return: 0; -ENODEV: there is none; -EACCES; -EPROTO: another version.
 */
int ht_open(const char *path, struct ht_device **dev);

/**
 * ht_close() - close a device opened with ht_open()
 * @dev: streams that are open are closed, so that nothing is emitted to them
 *       any more; NULL is fine
 */
void ht_close(struct ht_device *dev);

#ifdef __cplusplus
}
#endif

#endif /* HYPERTRACE_H */
