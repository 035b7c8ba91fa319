/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: interface of a port (Linux user space, Linux kernel, bare
 * metal; loopback in the tests)
 *
 * A port finds the device, exchanges control messages, maps stream memory and
 * carries doorbells or virtio submissions.  The core does everything else.
 */
#ifndef HYPERTRACE_PORT_H
#define HYPERTRACE_PORT_H

#include "hypertrace/hypertrace.h"

/**
 * struct ht_port_ops - a port's functions
 * @control: exchange control messages in place: for HT_MSG_CLASS_REGISTER,
 *           @size bytes of messages; else one message, with @size bytes of room
 *           at @msg.  Returns 0, or a negative errno if the transport failed;
 *           the core reads the statuses.  May sleep if the port can.
 * @map: get the addresses of a stream's control page and of its packets.  For
 *       virtio the port allocates guest RAM with the layout of a ring, in
 *       which the control page is zeroed except host.state, which is
 *       HT_STREAM_OPENED, and host.wake, which is HT_WAKE_NEVER.  Returns 0 or
 *       a negative errno.
 * @unmap: called after the stream was closed; may be NULL.
 * @doorbell: write the stream's doorbell (hypercall, shm).  Never sleeps.  May
 *            be NULL if the channel has none.
 * @submit: virtio: hand over the bytes [from, to) of the stream, which are in
 *          one packet.  May count kicks in s->doorbells.  Never sleeps.
 *          Returns 0; -EAGAIN: no descriptor is free; or another negative
 *          errno.
 * @reap: virtio: advance host.tail in the control page past packets whose
 *        buffers the host has returned.  Never sleeps.
 * @relax: wait before a retry, after a reply BUSY or after -EAGAIN of @submit;
 *         @tries: number of earlier waits in a row for the same message,
 *         classes or flush.
 *         Returns 0, or a negative errno, such as -ETIMEDOUT, to give up.
 * @lock: lock the device's message buffer and list of streams.  NULL if the
 *        caller serializes all users of the device; then the list is not used.
 * @unlock: undo @lock
 */
struct ht_port_ops {
    int (*control)(struct ht_device *dev, struct ht_msg *msg, uint32_t size);
    int (*map)(struct ht_device *dev, uint32_t stream,
               struct ht_ring_control **ring, uint8_t **packets);
    void (*unmap)(struct ht_device *dev, uint32_t stream);
    void (*doorbell)(struct ht_device *dev, uint32_t stream);
    int (*submit)(struct ht_device *dev, struct ht_stream *s,
                  uint64_t from, uint64_t to);
    void (*reap)(struct ht_device *dev, struct ht_stream *s);
    int (*relax)(struct ht_device *dev, unsigned tries);
    void (*lock)(struct ht_device *dev);
    void (*unlock)(struct ht_device *dev);
};

/**
 * struct ht_device - the core's part of a device; a port embeds it
 * @caps: read from the device by the port before ht_device_init()
 * @ops: the port's functions
 * @mapping: how stream memory is mapped, for display: "write-back",
 *           "uncached", "guest RAM"
 * @cookie: last cookie used
 * @streams: list of open streams; empty if @ops->lock is NULL
 * @enable: the enable page, or a copy of it; NULL if the port has neither
 * @enable_copy: if @enable is a copy that the core must update: the same
 *               address, to which ht_register() writes; at least
 *               HT_CLASSES_MAX + 1 bytes.  NULL: @enable is the device's page,
 *               or a copy that the Linux driver updates
 * @msg: buffer for messages, used between ops->lock and ops->unlock
 */
struct ht_device {
    struct ht_caps caps;
    const struct ht_port_ops *ops;
    const char *mapping;
    uint32_t cookie;
    struct ht_stream *streams;
    const uint8_t *enable;
    uint8_t *enable_copy;
    union {
        struct ht_msg h;
        uint8_t bytes[HT_MAILBOX_SIZE];
        uint64_t align;         /* alignment of the messages' members */
    } msg;
};

/**
 * struct ht_channel_ops - functions of a channel in the guest
 * @opened: called when the stream's ring is mapped; sets @wake of the stream
 * @notify: called after a commit if head has reached the wake word
 * @closed: called after a packet was closed and head was moved past it
 * @reclaim: virtio: advance host.tail over the packets that the host has
 *           returned, and submit closed packets that were not submitted yet.
 *           NULL: the host advances host.tail
 * @flush: hand over all bytes up to head, without closing the packet and
 *         without waiting; returns 0, or an error of ops->submit()
 */
struct ht_channel_ops {
    void (*opened)(struct ht_stream *s);
    void (*notify)(struct ht_stream *s);
    void (*closed)(struct ht_stream *s);
    void (*reclaim)(struct ht_stream *s);
    int (*flush)(struct ht_stream *s);
};

/**
 * ht_reply_take() - copy a reply out of memory that the host can write
 * @msg: message that was sent; replaced by the reply
 * @from: the reply
 * @size: argument of ops->control()
 * @len: bytes that the host claims to have written at @from
 *
 * The host may change the reply during the call; the header in @msg is the
 * checked copy.
 *
 * Context: any
 *
 * Return: false if the reply is malformed, longer than @len, or to another
 * message; @msg is unchanged then.
 */
bool ht_reply_take(struct ht_msg *msg, const void *from, uint32_t size,
                   uint32_t len);

/**
 * ht_request_bytes() - get the number of bytes that ops->control() sends
 * @msg: as for ops->control()
 * @size: as for ops->control()
 */
static inline uint32_t ht_request_bytes(const struct ht_msg *msg, uint32_t size)
{
    return msg->type == HT_MSG_CLASS_REGISTER ? size : msg->size;
}

/**
 * ht_reply_bytes() - get the number of bytes that ops->control() receives
 * @type: type of the message sent
 * @reply: header of the reply
 * @size: argument of ops->control()
 *
 * Return: the number, at least the size of a header and at most @size; 0: the
 * reply is malformed.
 */
static inline uint32_t ht_reply_bytes(uint16_t type, const struct ht_msg *reply,
                                      uint32_t size)
{
    if (type == HT_MSG_CLASS_REGISTER) {
        return size;
    }
    return reply->size >= sizeof(*reply) && reply->size <= size ?
           reply->size : 0;
}

/**
 * ht_mailbox_exchange() - ops->control() for the channels hypercall and shm
 * @dev: the device
 * @box: the device's mailbox in stream memory
 * @msg: as for ops->control()
 * @size: as for ops->control()
 * @go: write @bytes to HT_REG_MAILBOX_GO; returns when the device has replied
 *
 * Return: 0; -EINVAL: @size is not valid; -EIO: there is no valid reply to this
 * message, for example because the device was removed.
 *
 * Context: the port serializes exchanges
 */
int ht_mailbox_exchange(struct ht_device *dev, void *box, struct ht_msg *msg,
                        uint32_t size,
                        void (*go)(struct ht_device *dev, uint32_t bytes));

/**
 * struct ht_link - a guest's connection to the host of a memory-only device
 * @mem: page 0 of the memory
 * @now: get the time in ms, from a clock that never steps back
 * @pause: wait for about @tries * 50 us, at most 1 ms.  Returns 0, or a
 *         negative errno to give up.
 * @epoch: epoch of the host at the last ht_link_attach()
 * @beat: last beat that was read
 * @read_at: time when @beat was read, in ms
 * @still_ms: time in ms for which the beat has not changed; HT_BEAT_LOST_MS or
 *            more: there is no host
 * @go: number of the last request
 * @pending: the host has not answered the request @go
 *
 * The port sets the first three members, then calls ht_link_init().  The port
 * serializes calls of all functions that use the structure.
 */
struct ht_link {
    struct ht_memory *mem;
    uint64_t (*now)(struct ht_device *dev);
    int (*pause)(struct ht_device *dev, unsigned tries);
    uint64_t epoch;
    uint64_t beat;
    uint64_t read_at;
    uint32_t still_ms;
    uint32_t go;
    bool pending;
};

/**
 * ht_link_init() - start to watch for a host
 * @dev: the device
 * @link: its connection
 *
 * Writes nothing to the memory.  The host counts as absent until its beat
 * changes.
 */
void ht_link_init(struct ht_device *dev, struct ht_link *link);

/**
 * ht_link_beats() - read the beat, and test whether there is a host
 * @dev: the device
 * @link: its connection
 *
 * The host counts as absent if its beat has not changed for HT_BEAT_LOST_MS.
 * Between two calls at most half of this time is counted, because the virtual
 * machine or the whole computer may have been stopped.
 */
bool ht_link_beats(struct ht_device *dev, struct ht_link *link);

/**
 * ht_link_renewed() - test whether another host has attached since
 *                       ht_link_attach()
 * @link: the connection
 */
bool ht_link_renewed(const struct ht_link *link);

/**
 * ht_link_caps() - get the present capabilities
 * @dev: the device
 * @link: its connection
 * @caps: set to @dev->caps, with epoch, clock_hz and enable_seq as they are now
 */
void ht_link_caps(const struct ht_device *dev,
                    const struct ht_link *link, struct ht_caps *caps);

/**
 * ht_link_attach() - send messages to the present host from now on
 * @dev: the device; its capabilities get the values of the present host
 * @link: its connection
 *
 * The first message must be HT_MSG_TAKEOVER.  The present host does not know
 * the classes and streams that an earlier host knew.
 *
 * Return: 0; -ENODEV: there is no host; -EPROTO: the memory's capabilities
 * differ from those in @dev in more than epoch, clock_hz and enable_seq.
 */
int ht_link_attach(struct ht_device *dev, struct ht_link *link);

/**
 * ht_memory_exchange() - ops->control() of a memory-only device
 * @dev: the device
 * @link: its connection
 * @msg: as for ops->control()
 * @size: as for ops->control()
 *
 * Return: 0; -EINVAL: @size is not valid; -ENODEV: no host serves the memory,
 * or a new host does, which needs ht_link_attach(); -ETIMEDOUT: the host did
 * not answer within five seconds, but may still execute the message; -EBUSY:
 * the message was not sent, because an earlier one was not answered; -EIO: the
 * reply is not valid; or the errno of link->pause().
 *
 * Context: waits for about HT_BEAT_LOST_MS if the host has ended
 */
int ht_memory_exchange(struct ht_device *dev, struct ht_link *link,
                       struct ht_msg *msg, uint32_t size);

/**
 * ht_ring_at() - get the offset of a stream's ring in stream memory
 * @caps: the capabilities
 * @stream: index of the stream
 */
static inline uint64_t ht_ring_at(const struct ht_caps *caps,
                                      uint32_t stream)
{
    return caps->ring_offset + stream * caps->ring_stride;
}

/**
 * ht_caps_fit() - test whether stream memory has room for its parts
 * @caps: the capabilities of a device with stream memory
 * @size: bytes of stream memory
 *
 * Return: false if a value is out of range, or a part is not aligned, ends
 * after @size or overlaps another part; also for channel virtio.
 */
bool ht_caps_fit(const struct ht_caps *caps, uint64_t size);

/**
 * ht_device_init() - check the capabilities and initialize the core's part
 * @dev: @dev->caps and @dev->ops are set
 *
 * Return: 0; -ENODEV: no magic; -EPROTO: another version, a counter other than
 * HT_COUNTER, or values that are out of range or inconsistent.
 */
int ht_device_init(struct ht_device *dev);

/**
 * ht_device_close_streams() - close all streams, before a device is closed
 * @dev: the device; no other thread may use its streams
 */
void ht_device_close_streams(struct ht_device *dev);

/**
 * ht_control_begin() - lock the device's message buffer and start a message
 * @dev: the device
 * @type: enum ht_msg_type
 * @size: size of the message in bytes, at least that of its structure
 *
 * Return: the message: the header has @type and @size, and all else is 0.  The
 * caller must call ht_control_end().
 */
struct ht_msg *ht_control_begin(struct ht_device *dev, uint16_t type,
                                uint32_t size);

/**
 * ht_control_end() - unlock the message buffer
 * @dev: the device
 */
void ht_control_end(struct ht_device *dev);

/**
 * ht_control() - send a message, and send the reply back while it is BUSY
 * @dev: the device
 * @msg: the message; its header's type and size are set
 *
 * Return: 0; the reply's status as a negative errno: -EINVAL, -ENOSPC (LIMIT),
 * -ENOENT, -EEXIST, or -EIO for any other status; -EIO: the reply belongs to
 * another message; or the error of ops->control or ops->relax.
 */
int ht_control(struct ht_device *dev, struct ht_msg *msg);

/**
 * ht_class_valid() - test whether a class has the form of &struct ht_class
 * @c: the class
 */
bool ht_class_valid(const struct ht_class *c);

/**
 * ht_publish_lost() - report the number of discarded events to the host
 * @s: an open stream whose @busy the caller has set
 *
 * An event that is discarded because it interrupts the producer does not call
 * this: the producer's next call reports it.
 *
 * A driver may take the stream's memory away at any instruction, and map other
 * memory with the state "closed".  If that memory has the number, the host did
 * not get it: @told keeps its value.
 */
static inline void ht_publish_lost(struct ht_stream *s)
{
    struct ht_ring_control *ring = s->ring;
    const uint64_t lost = s->lost + ht_load_relaxed(&s->lost_nested);

    ht_store_relaxed(&ring->guest.lost, lost);
    ht_compiler_barrier();
    if (ht_likely(ht_load_relaxed32(&ring->host.state) == HT_STREAM_OPENED) ||
        ht_load_relaxed(&ring->guest.lost) != lost) {
        s->told = lost;
    }
}

/**
 * ht_is_closed() - test whether the host or the driver has closed a stream
 * @s: an open stream whose @busy the caller has set
 *
 * A stream is closed without its producer, for example, when another driver
 * takes over the device or when the device is removed.  Then another producer
 * may own the ring.  The loads are relaxed: if this producer sees the close
 * late, it writes a packet of the old instance, which the host rejects.
 */
static inline bool ht_is_closed(const struct ht_stream *s)
{
    const struct ht_host_line *host = &s->ring->host;

    return ht_load_relaxed32(&host->state) != HT_STREAM_OPENED ||
           ht_load_relaxed(&host->instance) != s->instance;
}

/**
 * ht_has_space() - test whether the memory for a packet is free
 * @s: an open stream whose @busy the caller has set
 * @packet: number of the packet, not less than that of the stream's next one
 *
 * Reloads host.tail.
 */
static inline bool ht_has_space(struct ht_stream *s, uint64_t packet)
{
    if (s->ops->reclaim) {
        s->ops->reclaim(s);
    }
    /*
     * Pairs with the store-release of tail in the host's consumer or the Linux
     * driver.  In virtio's other ports, this thread has stored the tail.
     */
    s->tail = ht_load_acquire(&s->ring->host.tail);
    return packet - s->tail <= s->packets_mask;
}

/**
 * ht_tell_discarded() - report discarded events that no open stream counts
 * @dev: the device
 * @count: number of events since the last report
 *
 * Return: as ht_control().
 */
int ht_tell_discarded(struct ht_device *dev, uint64_t count);

/**
 * ht_enable_read() - ask the host which classes it wants
 * @dev: the device
 * @to: HT_CLASSES_MAX + 1 bytes, in the format of the enable page; written for
 *      the classes that exist.  NULL: the port takes the values from the
 *      replies, in the order of all messages
 *
 * For the ports of channel virtio, on which a guest cannot map the enable page.
 *
 * Return: as ht_control(); -EIO: a reply is not valid.
 */
int ht_enable_read(struct ht_device *dev, uint8_t *to);

extern const struct ht_channel_ops ht_channel_hypercall;
extern const struct ht_channel_ops ht_channel_shm;
extern const struct ht_channel_ops ht_channel_virtio;
extern const struct ht_channel_ops ht_channel_memory;

#endif /* HYPERTRACE_PORT_H */
