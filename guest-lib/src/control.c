/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: the device, and control messages to it
 */
#include "core.h"

static bool power_of_two(uint64_t v, uint64_t min, uint64_t max)
{
    return v >= min && v <= max && (v & (v - 1)) == 0;
}

static bool caps_valid(const struct ht_caps *c)
{
    const uint64_t ring = HT_PACKETS_OFFSET +
                          (uint64_t)c->packet_size * c->packets;

    return c->channel <= HT_CHANNEL_VIRTIO &&
           c->mode <= HT_MODE_OVERWRITE &&
           c->counter == HT_COUNTER &&
           c->streams >= 1 && c->streams <= HT_STREAMS_MAX &&
           power_of_two(c->packet_size, HT_PACKET_SIZE_MIN,
                        HT_PACKET_SIZE_MAX) &&
           power_of_two(c->packets, HT_PACKETS_MIN, HT_PACKETS_MAX) &&
           c->batch >= 1 && c->batch <= HT_BATCH_MAX &&
           /* A larger gap could be taken for a step back. */
           c->max_gap >= 1 && c->max_gap <= (HT_CLOCK_MASK + 1) / 2 &&
           c->max_message > sizeof(struct ht_msg_enabled) &&
           c->max_message <= c->mailbox_size &&
           (c->channel == HT_CHANNEL_VIRTIO || c->ring_stride >= ring);
}

int ht_device_init(struct ht_device *dev)
{
    if (dev->caps.magic != HT_MAGIC) {
        return -ENODEV;
    }
    if (dev->caps.version != HT_VERSION || !caps_valid(&dev->caps)) {
        return -EPROTO;
    }
    dev->cookie = 0;
    dev->streams = NULL;
    return 0;
}

struct ht_msg *ht_control_begin(struct ht_device *dev, uint16_t type,
                                uint32_t size)
{
    struct ht_msg *m = &dev->msg.h;

    if (dev->ops->lock) {
        dev->ops->lock(dev);
    }
    ht_zero(m, size);
    m->type = type;
    m->size = size;
    return m;
}

void ht_control_end(struct ht_device *dev)
{
    if (dev->ops->unlock) {
        dev->ops->unlock(dev);
    }
}

int ht_exchange(struct ht_device *dev, struct ht_msg *msg)
{
    const uint16_t type = msg->type;
    const uint32_t cookie = ht_atomic_next(&dev->cookie);
    int r;

    msg->cookie = cookie;
    msg->status = HT_STATUS_IO;         /* unless the host replies */
    /* No reply is longer than its message. */
    r = dev->ops->control(dev, msg, msg->size);
    if (r) {
        return r;
    }
    if (msg->type != type || msg->cookie != cookie) {
        return -EIO;                    /* not the reply to this message */
    }
    return msg->status;
}

int ht_mailbox_exchange(struct ht_device *dev, void *box, struct ht_msg *msg,
                        uint32_t size,
                        void (*go)(struct ht_device *dev, uint32_t bytes))
{
    const uint32_t bytes = ht_request_bytes(msg, size);
    const uint16_t type = msg->type;
    const uint32_t cookie = msg->cookie;
    struct ht_msg reply;
    uint32_t replied;

    if (bytes < sizeof(*msg) || bytes > size ||
        bytes > dev->caps.mailbox_size) {
        return -EINVAL;
    }
    if (size > dev->caps.mailbox_size) {
        size = dev->caps.mailbox_size;
    }
    ht_copy(box, msg, bytes);
    /* The message first: the host reads it before the store in go() returns. */
    ht_full_fence();
    go(dev, bytes);
    ht_full_fence();
    ht_copy(&reply, box, sizeof(reply));
    ht_compiler_barrier();              /* read the header once */
    replied = ht_reply_bytes(type, &reply, size);
    if (!replied || reply.type != type || reply.cookie != cookie) {
        return -EIO;
    }
    ht_copy(msg, box, replied);
    /* The host may still write to the mailbox: keep the checked header. */
    ht_copy(msg, &reply, sizeof(reply));
    return 0;
}

int ht_status_errno(int status)
{
    switch (status) {
    case HT_STATUS_OK:
        return 0;
    case HT_STATUS_INVAL:
        return -EINVAL;
    case HT_STATUS_LIMIT:
        return -ENOSPC;
    case HT_STATUS_NOENT:
        return -ENOENT;
    case HT_STATUS_EXIST:
        return -EEXIST;
    default:                            /* HT_STATUS_IO, HT_STATUS_STOPPED */
        return -EIO;
    }
}

int ht_control(struct ht_device *dev, struct ht_msg *msg)
{
    const uint32_t size = msg->size;
    unsigned tries = 0;
    int r;

    while ((r = ht_exchange(dev, msg)) == HT_STATUS_BUSY) {
        r = dev->ops->relax(dev, tries++);
        if (r) {
            return r;
        }
        /* The reply replaced the size in the header: restore it. */
        msg->size = size;
    }
    return r < 0 ? r : ht_status_errno(r);
}
