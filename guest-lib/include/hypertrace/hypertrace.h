/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: emit trace events from a guest to its host
 *
 * The core needs no libc.  To emit an event it allocates no memory and takes no
 * lock, and the caller writes the event directly into the ring.  A port
 * (port.h) connects the library to a device.  The same calls work over all
 * channels: hypercall, shm, virtio and memory.
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
 * @name: text to show instead of the value: printable ASCII without '"' and
 *        '\\', 1 to HT_LABEL_MAX bytes
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
 * @flags: HT_FIELD_HEX; HT_FIELD_UTF8 for an array of u8 that is text;
 *         HT_FIELD_LABELS for an integer with @labels, which name bits if
 *         HT_FIELD_BITS is set as well; or 0
 * @count: number of elements of an array, 1 to 4096; number of @labels, at most
 *         HT_LABELS_MAX; or 0
 * @labels: NULL unless @flags has HT_FIELD_LABELS
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
 * @fields: array of @nr_fields fields, in the order of the payload
 * @on: for ht_trace() in user space: points to a byte that is HT_ENABLE_ON if
 *      events of the class are wanted, or must look for a device.  NULL in a
 *      kernel and on bare metal
 * @nr_fields: 0 to HT_FIELDS_MAX
 * @loglevel: enum ht_level, 0 (emergency) to 14 (debug)
 * @state: in a kernel, instead of @on: HT_ENABLE_ON if events are wanted
 * @reserved: 0
 * @id: set by ht_register(); 0 before, so that ht_get() discards the events
 *
 * Usually defined by HT_EVENT() (event.h).  Ids belong to a device: to emit to
 * two devices at the same time, keep a copy of the class for each.
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

/* Return value of ht_slow.early(): read the clock and call ht_slow.get() */
#define HT_READ_CLOCK   ((uint8_t *)1)

/**
 * struct ht_slow - slow paths of an emit
 * @early: called before the clock is read, for an event that the fast path
 *         cannot reserve below @end of the stream.  Returns the end of the
 *         event if the event gets the time of the previous event; NULL if the
 *         ring is full and the event was counted as discarded; else
 *         HT_READ_CLOCK
 * @get: reserve an event that neither the fast path nor @early can reserve,
 *       such as the first of a packet, or one that needs a longer header.
 *       Returns the end of the event; NULL: the event was discarded and counted
 * @notify: called after a commit if head has reached the wake word
 *
 * A stream points to the functions of the library that opened it, so that a
 * program need not be linked to the library.
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
 * One context uses a stream at a time.  If a signal or interrupt handler
 * interrupts an event, ht_get() returns NULL to the handler, and the handler's
 * event counts as discarded; so it may if the handler interrupts another call.
 * The members are private to the library; they are public for the inline emit.
 * A stream of all zeros is not open.  Programs compile in the offsets of the
 * members up to @lost; @reserved leaves room for further members.
 */
struct ht_stream {
    /*
     * An emit of the fast path accesses the first cache line and @events; with
     * ht_get() also @next.
     */
    uint8_t *cur;               /* address at which the next event starts */
    /*
     * the fast path may reserve bytes below this address; NULL: slow path only
     */
    uint8_t *end;
    /* number to add to an address in the packet to get its position */
    uint64_t base;
    struct ht_ring_control *ring;
    /* wake word: call ht_slow.notify() after a commit if head >= the word */
    const uint64_t *wake;
    /* counter value of the last event from ht_slow.get() */
    uint64_t clock;
    /*
     * an event this many ticks after @clock, or more, gets a longer header,
     * unless it starts a packet
     */
    uint64_t max_gap;
    /*
     * 1: a context uses the stream, so events of contexts that interrupt it are
     * discarded
     */
    uint32_t busy;
    /* number of further events that get the time @clock without a reading */
    uint32_t inherit;
    uint64_t events;            /* number of events committed since the open */
    /*
     * between ht_get() and ht_commit(): end of the event that is being written
     */
    uint8_t *next;
    /* NULL: the stream is not open, or an event has found it closed */
    const struct ht_slow *slow;
    /*
     * number of discarded events of contexts that interrupted the producer; in
     * a kernel, also of CPUs without a stream
     */
    uint64_t lost_nested;
    uint64_t lost;

    /* The fast path does not access the following members. */
    uint8_t *packets;
    uint8_t *packet_end;        /* end of the open packet; NULL: none is open */
    /* number of the open packet; if none is open, of the next one */
    uint64_t packet;
    /*
     * copy of host.tail, the number of the oldest packet that the host has not
     * released; the host may have released more packets since
     */
    uint64_t tail;
    /* virtio: position of the first byte that was not submitted to the host */
    uint64_t submitted;
    /* value of the wake word when the producer last kicked */
    uint64_t rung;
    uint64_t instance;
    /* hypercall: value of @events at the last doorbell */
    uint64_t batch_events;
    uint64_t doorbells;         /* number of doorbells; virtio: of kicks */
    /* number of discarded events that were reported to the host */
    uint64_t told;
    const struct ht_channel_ops *ops;
    struct ht_device *dev;
    /* next stream in the device's list of open streams */
    struct ht_stream *next_open;
    uint32_t packet_shift;
    uint32_t packets_mask;
    uint32_t index;
    uint32_t overwrite;
    /* virtio: ht_packet.content of a closed packet that is partly submitted */
    uint32_t content;
    /* N: the producer reads the clock for every Nth event */
    uint32_t stamps;
    uint64_t reserved[8];
};

/**
 * struct ht_stream_params - how to open a stream
 * @stream: requested index, or HT_STREAM_ANY
 * @vcpu: number that the guest gives the producer's vCPU (QEMU's may differ),
 *        or -1 if the producer is not bound to a vCPU
 * @name: name for display by the host; NULL or [ -~]{0,32}
 * @stamps: see ht_stream_stamps(); 0 means 1
 */
struct ht_stream_params {
    uint32_t stream;
    int32_t vcpu;
    const char *name;
    uint32_t stamps;
};

/**
 * ht_register() - register an event class with the host
 * @dev: an open device
 * @cls: the class; its id is set
 *
 * Registering a class again on the same device gives the same id, unless
 * another host has attached to a memory-only device.  Waits for the device's
 * reply, typically less than a millisecond, but not for the host's backends.
 *
 * Context: one thread at a time for each device, unless the port locks the
 * device (ops->lock); not on the emit path.
 *
 * Return: the id, 1 to HT_CLASSES_MAX; -EINVAL: a name or field does not have
 * the form that struct ht_class requires, or a name is reserved; -ENOSPC: a
 * limit of the host or a quota of the Linux driver is reached, or the message
 * is too long; -EIO: the device was removed, or the reply is not valid;
 * -ETIMEDOUT: the host did not answer, or did not do the work, within seconds;
 * or another error of ops->control(), such as -ENODEV: there is no device or no
 * host.
 */
int ht_register(struct ht_device *dev, struct ht_class *cls);

/**
 * ht_wanted() - test whether the host wants events of a class
 * @dev: the device
 * @cls: a class registered on @dev
 *
 * If the port has mapped the device's enable page, the value is the present
 * one.  With virtio it is the last value that the device has sent to the driver
 * or port.  ht_get() does not test whether the class is wanted.
 *
 * Return: true if events are wanted, or if the port cannot tell.
 */
bool ht_wanted(const struct ht_device *dev, const struct ht_class *cls);

/**
 * ht_register_all() - register many event classes at once
 * @dev: an open device
 * @classes: array of @n pointers to classes; a pointer may be NULL.  The ids of
 *           the classes are set; refused classes get id 0.  If an exchange
 *           fails, its classes and those of all later exchanges get id 0, too
 * @n: number of @classes
 *
 * As ht_register() for each class, but one exchange registers up to 16 classes.
 * A refused class does not affect the others.
 *
 * Return: 0, or the first error of a class.  If an exchange fails, for example
 * with -ETIMEDOUT, the call ends and returns that error instead.
 */
int ht_register_all(struct ht_device *dev, struct ht_class *const *classes,
                    unsigned n);

/**
 * ht_stream_open() - open a stream
 * @dev: an open device
 * @s: memory for the stream; owned by the caller, aligned to 64 bytes so that
 *     an event uses few cache lines
 * @params: NULL for any stream, not bound to a vCPU, without a name
 *
 * Return: 0; -EBUSY: all streams (or the requested one) are in use, or a quota
 * of the Linux driver is used up; -EINVAL: a member of @params is not valid;
 * -EIO: the device was removed; -ETIMEDOUT: the host did not answer, or did not
 * open the stream, within seconds; or another error of the port, such as
 * -ENODEV: there is no device or no host.
 */
int ht_stream_open(struct ht_device *dev, struct ht_stream *s,
                   const struct ht_stream_params *params);

/**
 * ht_stream_stamps() - read the clock for some events only
 * @s: an open stream
 * @n: read the clock for the next event and each @n-th event after it, and for
 *     the first event of each packet; 1 (the default) to HT_STAMPS_MAX
 *
 * For bursts of events, in which reading the clock is most of the cost.  All
 * other events get the time of the previous event.  The order of events is
 * exact.  An event happened between its time and the next different time in the
 * stream, and before the host first saw it.  To read the clock at the start of
 * a burst, call ht_stream_push(), ht_stream_flush() or this function.
 *
 * Context: the producer.
 *
 * Return: 0; -EINVAL: @n is out of range; -EBUSY: an event or another call is
 * using @s; -EIO: @s is not open.
 */
int ht_stream_stamps(struct ht_stream *s, uint32_t n);

#define HT_STAMPS_MAX   1024u

/**
 * ht_stream_flush() - hand over all committed events and wait for the host
 * @s: the stream
 *
 * Returns when the events are in the host's memory, without waiting for the
 * backends.  The backends get the events even if the guest then ends, unless a
 * backend is so far behind that the host discards and counts them.
 *
 * Context: the producer.
 *
 * Return: 0; -EIO: the stream was stopped as corrupt, closed by the host, or is
 * not open; -EBUSY: an event or another call is using @s; -ETIMEDOUT: the host
 * did not answer, or did not read the events, within seconds; or another error
 * of the port.
 */
int ht_stream_flush(struct ht_stream *s);

/**
 * ht_stream_push() - hand committed events over without waiting
 * @s: the stream
 *
 * Call this to bound the time that events wait in an open packet.  virtio
 * submits the committed events.  hypercall rings the doorbell if an event was
 * committed since the last doorbell.  shm and memory hand over nothing, because
 * the host polls.  On every channel, the number of discarded events is stored
 * for the host.  Sends no message and does not sleep; with virtio in Linux user
 * space it may make system calls.
 * The next event reads the clock, whatever ht_stream_stamps() set.
 *
 * Context: the producer, or a context that interrupts it (a timer on its CPU).
 *
 * Return: 0; -EBUSY: an event or another call is using @s; -EIO: @s is not
 * open; virtio: an error of ops->submit(), such as -EAGAIN: no descriptor is
 * free.
 */
int ht_stream_push(struct ht_stream *s);

/**
 * ht_stream_room() - test whether an event would be accepted now
 * @s: the stream
 * @size: size of its payload in bytes, small enough for a packet
 *
 * For a producer that waits for room instead of discarding events.
 *
 * Context: the producer, but not between ht_get() and ht_commit().
 *
 * Return: true if ht_get() would find room, or if waiting is useless: the
 * stream is not open, the host has closed it, or the device was removed.  False
 * if there may be no room, or if an event or another call is using @s.
 */
bool ht_stream_room(struct ht_stream *s, uint32_t size);

/**
 * ht_stream_close() - flush and close a stream
 * @s: the stream; can be opened again afterwards
 *
 * Context: the producer, or any thread once the producer no longer uses @s.
 *
 * Return: 0 or the first error, as ht_stream_flush(); the guest no longer uses
 * the stream in any case.
 */
int ht_stream_close(struct ht_stream *s);

/**
 * ht_time_sync() - help the host relate the guest's clock to its own
 * @dev: an open device
 * @rounds: number of exchanges, 1 to 1000; the host combines them all
 *
 * Needed only if the host cannot compute the guest's counter itself.
 *
 * Return: the error bound in ns, or INT_MAX if it is larger or not known;
 * -EINVAL: @rounds is out of range; -EIO: the device was opened through the
 * Linux driver, which does not pass these messages on; or another error of
 * ht_control().
 */
int ht_time_sync(struct ht_device *dev, unsigned rounds);

/**
 * ht_get_stats() - read the host's counters
 * @dev: an open device
 * @stream: index of a stream, or HT_STREAM_ANY for the sums of the device
 * @stats: filled in; unchanged after an error
 *
 * Return: 0; -ENOENT: no stream has the index; or another error of
 * ht_control().
 */
int ht_get_stats(struct ht_device *dev, uint32_t stream,
                 struct ht_stats *stats);

/**
 * ht_host_stats() - read how a vCPU of this guest spent its time on the host
 * @dev: an open device
 * @vcpu: number of the vCPU on the host, 0 to HT_HOST_VCPUS - 1; a guest may
 *        give its processors other numbers.  If the host runs all vCPUs in one
 *        thread, only number 0 has data, and @stats->vcpu is -1
 * @stats: filled in; undefined after an error
 *
 * The host updates the values some 10 times a second.  If @stats->to_ns no
 * longer changes, the host has stopped recording them.  The library checks only
 * that each value is in its range: a host can give false values.
 *
 * Context: any, also an interrupt; sends no message and does not wait.
 *
 * Return: 0; -ENODATA: the host publishes no statistics, or none of this vCPU;
 * -EAGAIN: the host was writing them during each of 64 attempts; -EPROTO: they
 * have another version; -EIO: a value is out of its range.
 */
int ht_host_stats(const struct ht_device *dev, unsigned vcpu,
                  struct ht_host_stats *stats);

/**
 * ht_discard() - discard an event because its stream is not open, and count it
 * @s: the stream, whose @busy the caller has set; this function clears @busy
 *
 * Return: NULL.
 */
static inline uint8_t *ht_discard(struct ht_stream *s)
{
    s->lost++;
    ht_compiler_barrier();
    s->busy = 0;
    return NULL;
}

/**
 * ht_begin() - reserve an event, for a caller that remembers where it ends
 * @s: the stream
 * @id: from ht_register()
 * @size: size of the payload in bytes
 *
 * As ht_get(), but the caller passes the returned address to ht_finish().
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
    /* A handler that interrupts the following code must see @busy. */
    ht_compiler_barrier();
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
     * Do not update @clock: consecutive events are less than max_gap apart if
     * each is less than max_gap after @clock.
     */
    if (ht_unlikely(now - s->clock >= s->max_gap ||
                    id - 1 >= HT_ID_WIDE - 1)) {
        return s->slow->get(s, id, size, now);
    }
    ht_put32(cur, id | (uint32_t)now << 8);
    return cur + HT_EVENT_HEADER + size;
}

/**
 * ht_finish() - publish the event reserved by ht_begin()
 * @s: the stream
 * @end: end of its payload
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
     * The relaxed load can miss a wake word that the host is arming.  Then the
     * event waits, at most until the host's timer fires; proof:
     * tests/model/wake.pml.
     */
    if (ht_unlikely(head >= ht_load_relaxed(s->wake))) {
        /* @s is still busy, so interrupting events do not call notify() */
        s->slow->notify(s);
    }
    ht_compiler_barrier();
    s->busy = 0;
}

/**
 * ht_get() - reserve an event
 * @s: the stream
 * @id: from ht_register()
 * @size: size of the payload in bytes
 *
 * Does not wait for room.  With virtio in Linux user space, it may make system
 * calls.  Until ht_commit(), no other event can be reserved on @s.
 *
 * Return: the address for @size payload bytes; NULL: the event is discarded and
 * counted (the ring is full, @size exceeds a packet, @id is not valid, @s is
 * not open, or an interrupted context is using @s).
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
 * @path: "/dev/hypertraceN"; or the PCI address of a memory-only device, such
 *        as "0000:00:04.0", to use it without the module (only by root, only on
 *        x86, and with uncached memory); or NULL for the path in
 *        $HYPERTRACE_DEVICE, by default the first device that can be opened
 * @dev: set on success; NULL after an error
 *
 * Return: 0; -ENODEV: no device was found; -EACCES: no permission; -EPROTO: the
 * device has another version, or its capabilities are not valid; or another
 * negative errno of the system.
 */
int ht_open(const char *path, struct ht_device **dev);

/**
 * ht_close() - close a device opened with ht_open()
 * @dev: the device or NULL; its open streams are closed, and events emitted to
 *       them later are discarded
 */
void ht_close(struct ht_device *dev);

#ifdef __cplusplus
}
#endif

#endif /* HYPERTRACE_H */
