/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: check a device's capabilities, and exchange control messages
 * with it
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

    return c->channel <= HT_CHANNEL_MEMORY &&
           c->mode <= HT_MODE_OVERWRITE &&
           c->counter == HT_COUNTER &&
           c->streams >= 1 && c->streams <= HT_STREAMS_MAX &&
           power_of_two(c->packet_size, HT_PACKET_SIZE_MIN,
                        HT_PACKET_SIZE_MAX) &&
           power_of_two(c->packets, HT_PACKETS_MIN, HT_PACKETS_MAX) &&
           c->batch >= 1 && c->batch <= HT_BATCH_MAX &&
           /* A larger gap looks like a step back in a clock of 24 bits. */
           c->max_gap >= 1 && c->max_gap <= (HT_CLOCK_MASK + 1) / 2 &&
           c->max_message > sizeof(struct ht_msg_enabled) &&
           c->max_message <= c->mailbox_size &&
           (c->channel == HT_CHANNEL_VIRTIO || c->ring_stride >= ring);
}

struct part {
    uint64_t offset;
    uint64_t bytes;
};

static bool part_fits(const struct part *p, uint64_t size)
{
    return p->offset % HT_MAP_ALIGN == 0 && p->offset <= size &&
           p->bytes <= size - p->offset;
}

static bool overlap(const struct part *a, const struct part *b)
{
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

bool ht_caps_fit(const struct ht_caps *c, uint64_t size)
{
    const bool memory = c->channel == HT_CHANNEL_MEMORY;
    struct part parts[4];
    unsigned i, k;

    if (!caps_valid(c) || c->channel == HT_CHANNEL_VIRTIO ||
        c->ring_stride > size || c->ring_stride % HT_MAP_ALIGN ||
        c->mailbox_size < HT_MESSAGE_MAX) {
        return false;
    }
    parts[0].offset = c->ring_offset;
    parts[0].bytes = (c->streams - 1) * c->ring_stride + HT_PACKETS_OFFSET +
                     (uint64_t)c->packet_size * c->packets;
    parts[1].offset = c->enable_offset;
    parts[1].bytes = HT_ENABLE_SIZE;
    parts[2].offset = c->mailbox_offset;
    parts[2].bytes = (uint64_t)c->mailbox_size << memory;
    parts[3].offset = 0;
    parts[3].bytes = memory ? sizeof(struct ht_memory) : 0;
    for (i = 0; i < 4; i++) {
        if (!part_fits(&parts[i], size)) {
            return false;
        }
        for (k = 0; k < i; k++) {
            if (overlap(&parts[i], &parts[k])) {
                return false;
            }
        }
    }
    return true;
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

/* Send a message once; returns enum ht_status, or a negative errno */
static int exchange(struct ht_device *dev, struct ht_msg *msg)
{
    const uint16_t type = msg->type;
    const uint32_t cookie = ht_atomic_next(&dev->cookie);
    int r;

    msg->cookie = cookie;
    /* status of the reply if the host writes none */
    msg->status = HT_STATUS_IO;
    /* The reply is at most as long as the message. */
    r = dev->ops->control(dev, msg, msg->size);
    if (r) {
        return r;
    }
    if (msg->type != type || msg->cookie != cookie) {
        return -EIO;                    /* another message's reply */
    }
    return msg->status;
}

bool ht_reply_take(struct ht_msg *msg, const void *from, uint32_t size,
                   uint32_t len)
{
    struct ht_msg head;
    uint32_t replied;

    ht_copy(&head, from, sizeof(head));
    /* The host may change the header: check and use the copy only. */
    ht_compiler_barrier();
    replied = ht_reply_bytes(msg->type, &head, size);
    if (!replied || replied > len || head.type != msg->type ||
        head.cookie != msg->cookie) {
        return false;
    }
    ht_copy(msg, from, replied);
    /*
     * Restore the checked header in the copy: the host may have changed it
     * since.
     */
    ht_copy(msg, &head, sizeof(head));
    return true;
}

uint32_t ht_request_check(const struct ht_device *dev,
                          const struct ht_msg *msg, uint32_t *size)
{
    const uint32_t bytes = ht_request_bytes(msg, *size);

    if (bytes < sizeof(*msg) || bytes > *size ||
        bytes > dev->caps.mailbox_size) {
        return 0;
    }
    if (*size > dev->caps.mailbox_size) {
        *size = dev->caps.mailbox_size;
    }
    return bytes;
}

int ht_mailbox_exchange(struct ht_device *dev, void *box, struct ht_msg *msg,
                        uint32_t size,
                        void (*go)(struct ht_device *dev, uint32_t bytes))
{
    const uint32_t bytes = ht_request_check(dev, msg, &size);

    if (!bytes) {
        return -EINVAL;
    }
    ht_copy(box, msg, bytes);
    /* Store the message before go(), during which the host reads it. */
    ht_full_fence();
    go(dev, bytes);
    ht_full_fence();
    return ht_reply_take(msg, box, size, size) ? 0 : -EIO;
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
    default:                            /* for example HT_STATUS_IO */
        return -EIO;
    }
}

int ht_control(struct ht_device *dev, struct ht_msg *msg)
{
    const uint32_t size = msg->size;
    unsigned tries = 0;
    int r;

    while ((r = exchange(dev, msg)) == HT_STATUS_BUSY) {
        r = dev->ops->relax(dev, tries++);
        if (r) {
            return r;
        }
        /* The reply replaced the size in the header: restore it. */
        msg->size = size;
    }
    return r < 0 ? r : ht_status_errno(r);
}
