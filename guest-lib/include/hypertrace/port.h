/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: what a port brings (Linux user space, Linux kernel, bare
 * metal, loopback)
 *
 * A port finds the device, moves control messages, gives stream memory its
 * address and carries doorbells or virtio submissions.  Everything else is
 * in the core.
 */
#ifndef HYPERTRACE_PORT_H
#define HYPERTRACE_PORT_H

#include "hypertrace/hypertrace.h"

/**
 * struct ht_port_ops - a port's functions
 * @control: exchange control messages in place: of HT_MSG_CLASS_REGISTER, @size
 *           bytes of them; else one, with @size bytes of room at @msg.  0 or a
 *           negative errno (transport failure; statuses are the core's to
 *           read).  May sleep where the port can.
 * @map: the addresses of a stream's control page and of its packets.  For
 *       virtio this is guest RAM of the port, with the same layout, zeroed but
 *       for host.state, HT_STREAM_OPENED, and host.wake, HT_WAKE_NEVER.
 *       0 or a negative errno.
 * @unmap: the stream was closed; NULL if there is nothing to do.
 * @doorbell: write the stream's doorbell (hypercall, shm).  Never sleeps.
 * @submit: virtio: hand the bytes [from, to) of the stream over; they lie in
 *          one packet.  Counts a kick in s->doorbells.  Never sleeps.  0, or
 *          -EAGAIN: no descriptor is free.
 * @reap: virtio: advance host.tail in the control page past packets whose
 *        buffers came back.
 * @relax: let time pass between two tries of a message that was BUSY;
 *         @tries counts from 0.  Returns a negative errno to give up.
 * @lock: take the device's message buffer, which registering uses.  NULL where
 *        the caller sees to it that one thread at a time registers
 * @unlock: let others use it
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
 * @mapping: how stream memory is mapped, for people: "write-back",
 *           "write-combining", "uncached", "guest RAM"
 * @cookie: last cookie used
 * @streams: those that are open
 * @enable: the enable page, or a copy; NULL: the port has none
 * @enable_copy: virtio: the same, for ht_register() to write; or NULL
 * @msg: for messages that register, between ops->lock and ops->unlock
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
        uint64_t align;         /* as the messages' largest members need */
    } msg;
};

/**
 * struct ht_channel_ops - what differs between channels in the guest
 * @name: "hypercall", "shm", "virtio"
 * @opened: the stream's ring is mapped; set wake and its word
 * @notify: head reached the wake word after a commit
 * @closed: a packet was closed and head moved past it (after its release)
 * @space: is packet number @packet free?  Re-reads what the host released.
 * @flush: have [.., head) reach the host without closing the packet and
 *         without waiting; 0, or -EAGAIN
 */
struct ht_channel_ops {
    const char *name;
    void (*opened)(struct ht_stream *s);
    void (*notify)(struct ht_stream *s);
    void (*closed)(struct ht_stream *s);
    int (*space)(struct ht_stream *s, uint64_t packet);
    int (*flush)(struct ht_stream *s);
};

/**
 * ht_request_bytes() - how much ops->control() sends
 * @msg: its argument
 * @size: likewise
 */
static inline uint32_t ht_request_bytes(const struct ht_msg *msg, uint32_t size)
{
    return msg->type == HT_MSG_CLASS_REGISTER ? size : msg->size;
}

/**
 * ht_reply_bytes() - how much ops->control() has back
 * @type: of the message that was sent
 * @reply: the header of the reply
 * @size: argument of ops->control()
 *
 * Return: bytes, from a header to @size; 0: the reply is malformed.
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
 * ht_mailbox_exchange() - ops->control() by the mailbox, hypercall and shm
 * @dev: the device
 * @box: its mailbox
 * @msg: as for ops->control()
 * @size: likewise
 * @go: writes @bytes to the register, and returns when the device has replied
 *
 * Return: 0; -EINVAL: not a size; -EIO: no reply to this message, as there is
 * no device any more.
 *
 * Context: one exchange at a time, which the port sees to
 */
int ht_mailbox_exchange(struct ht_device *dev, void *box, struct ht_msg *msg,
                        uint32_t size,
                        void (*go)(struct ht_device *dev, uint32_t bytes));

/**
 * ht_device_init() - check the capabilities and set the core's part up
 * @dev: @dev->caps and @dev->ops are set
 *
 * Return: 0; -ENODEV: no magic; -EPROTO: another version, or values that
 * contradict each other.
 */
int ht_device_init(struct ht_device *dev);

/**
 * ht_device_close_streams() - close what is open, before a device is closed
 * @dev: the device; nobody uses its streams
 */
void ht_device_close_streams(struct ht_device *dev);

/**
 * ht_control_begin() - take the device's message buffer
 * @dev: the device
 * @type: enum ht_msg_type
 * @size: bytes of the message, at least its structure's
 *
 * Return: the message, its header set and the rest of @size bytes zero.  To
 * be followed by ht_control_end().
 */
struct ht_msg *ht_control_begin(struct ht_device *dev, uint16_t type,
                                uint32_t size);

/**
 * ht_control_end() - let others use the message buffer
 * @dev: the device
 */
void ht_control_end(struct ht_device *dev);

/**
 * ht_control() - send a message and wait until it is not BUSY any more
 * @dev: the device
 * @msg: the message; its header's type and size are set
 *
 * Return: 0, or the status as a negative errno: -EINVAL, -ENOSPC, -ENOENT,
 * -EEXIST, -EIO; or what ops->control or ops->relax failed with.
 */
int ht_control(struct ht_device *dev, struct ht_msg *msg);

/**
 * ht_exchange() - send a message once
 * @dev: the device
 * @msg: the message; its header's type and size are set
 *
 * Return: enum ht_status, or a negative errno.
 */
int ht_exchange(struct ht_device *dev, struct ht_msg *msg);

/**
 * ht_class_valid() - is a class as &struct ht_class says?
 * @c: the class
 */
bool ht_class_valid(const struct ht_class *c);

/**
 * ht_publish_lost() - tell the host how many events were discarded
 * @s: a stream that is open and busy (or about to be closed)
 *
 * Called when this context discards, at a push, flush and close; the header of
 * each packet has the count as well.  So what interrupting contexts discard is
 * told with the next packet at the latest.
 */
static inline void ht_publish_lost(struct ht_stream *s)
{
    s->told = s->lost + ht_load_relaxed(&s->lost_nested);
    ht_store_relaxed(&s->ring->guest.lost, s->told);
}

/**
 * ht_is_closed() - was a stream that this producer opened closed by another?
 * @s: a stream that is open and busy
 *
 * By the host, when another driver takes the device over, or with its device;
 * the ring may be another producer's by now.  Read relaxed: seen late, a packet
 * is written that the host refuses.
 */
static inline bool ht_is_closed(const struct ht_stream *s)
{
    const struct ht_host_line *host = &s->ring->host;

    return ht_load_relaxed32(&host->state) != HT_STREAM_OPENED ||
           ht_load_relaxed(&host->instance) != s->instance;
}

/**
 * ht_tell_discarded() - tell the host of events for which there was no stream
 * @dev: the device
 * @count: how many more than before
 *
 * Where there is a stream, its own count says it.
 *
 * Return: as ht_control().
 */
int ht_tell_discarded(struct ht_device *dev, uint64_t count);

/**
 * ht_enable_read() - ask the host which classes it wants
 * @dev: the device
 * @to: HT_CLASSES_MAX + 1 bytes, as those of the enable page; written as far
 *      as there are classes.  NULL: the port takes them from the replies, in
 *      the order of all that it is told
 *
 * For ports that cannot look at the enable page itself: virtio's.
 *
 * Return: as ht_control().
 */
int ht_enable_read(struct ht_device *dev, uint8_t *to);

extern const struct ht_channel_ops ht_channel_hypercall;
extern const struct ht_channel_ops ht_channel_shm;
extern const struct ht_channel_ops ht_channel_virtio;

#endif /* HYPERTRACE_PORT_H */
