/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: open, flush and close streams
 *
 * tests/model/control.pml proves the host's guarantees of a flush and a close.
 */
#include "core.h"

static const struct ht_channel_ops *channel_ops(uint32_t channel)
{
    switch (channel) {
    case HT_CHANNEL_HYPERCALL:
        return &ht_channel_hypercall;
    case HT_CHANNEL_SHM:
        return &ht_channel_shm;
    case HT_CHANNEL_MEMORY:
        return &ht_channel_memory;
    default:
        /* ht_device_init() rejects all other channels */
        return &ht_channel_virtio;
    }
}

static uint32_t log2_of(uint32_t v)
{
    return 31 - __builtin_clz(v);
}

static int stream_message(struct ht_device *dev, uint16_t type,
                          uint32_t stream, uint64_t instance, uint64_t lost)
{
    struct ht_msg_stream m = {
        .h = { .type = type, .size = sizeof(m) },
        .stream = stream,
        .instance = instance,
        .lost = lost,
    };
    int r = ht_control(dev, &m.h);

    /* ENOENT, EINVAL: a reset or another driver has closed the stream. */
    return r == -ENOENT || r == -EINVAL ? -EIO : r;
}

static int open_message(struct ht_device *dev,
                        const struct ht_stream_params *params,
                        uint32_t *stream, uint64_t *instance)
{
    struct ht_msg_open m;
    size_t len;
    int r;

    len = ht_strlen(params->name);
    if (len > HT_STREAM_NAME_MAX) {
        return -EINVAL;
    }
    ht_zero(&m, sizeof(m));
    m.h.type = HT_MSG_STREAM_OPEN;
    m.h.size = sizeof(m);
    m.stream = params->stream;
    m.vcpu = params->vcpu;
    if (len) {
        ht_copy(m.name, params->name, len);
    }
    r = ht_control(dev, &m.h);
    *stream = m.stream;
    *instance = m.instance;

    switch (r) {
    case 0:
        return *stream < dev->caps.streams ? 0 : -EIO;
    case -ETIMEDOUT:
        /* The host may open the stream later, so request a close. */
        if (*instance) {
            stream_message(dev, HT_MSG_STREAM_CLOSE, *stream, *instance, 0);
        }
        return r;
    case -EEXIST:
    case -ENOSPC:
        return -EBUSY;
    case -ENOENT:
        return -EINVAL;         /* no stream has that index */
    default:
        return r;
    }
}

/*
 * Add a stream to the device's list, the streams of which
 * ht_device_close_streams() closes.  Without ops->lock there is no list.
 */
static void list_stream(struct ht_device *dev, struct ht_stream *s)
{
    if (dev->ops->lock) {
        dev->ops->lock(dev);
        s->next_open = dev->streams;
        dev->streams = s;
        dev->ops->unlock(dev);
    }
}

static void unlist_stream(struct ht_device *dev, struct ht_stream *s)
{
    struct ht_stream **p;

    if (!dev->ops->lock) {
        return;
    }
    dev->ops->lock(dev);
    for (p = &dev->streams; *p; p = &(*p)->next_open) {
        if (*p == s) {
            *p = s->next_open;
            break;
        }
    }
    dev->ops->unlock(dev);
}

void ht_device_close_streams(struct ht_device *dev)
{
    while (dev->streams) {
        ht_stream_close(dev->streams);
    }
}

int ht_stream_open(struct ht_device *dev, struct ht_stream *s,
                   const struct ht_stream_params *params)
{
    static const struct ht_stream_params any = { HT_STREAM_ANY, -1, NULL, 0 };
    struct ht_ring_control *ring = NULL;
    uint8_t *packets = NULL;
    uint64_t instance;
    uint32_t stream;
    int r;

    if (!params) {
        params = &any;
    }
    if (params->stamps > HT_STAMPS_MAX) {
        return -EINVAL;
    }
    r = open_message(dev, params, &stream, &instance);
    if (r) {
        return r;
    }
    r = dev->ops->map(dev, stream, &ring, &packets);
    if (r) {
        stream_message(dev, HT_MSG_STREAM_CLOSE, stream, instance, 0);
        return r;
    }

    ht_zero(s, sizeof(*s));
    s->dev = dev;
    s->ring = ring;
    s->packets = packets;
    s->index = stream;
    s->instance = instance;
    s->max_gap = dev->caps.max_gap;
    s->packet_shift = log2_of(dev->caps.packet_size);
    s->packets_mask = dev->caps.packets - 1;
    s->overwrite = dev->caps.mode == HT_MODE_OVERWRITE;
    s->stamps = params->stamps ? params->stamps : 1;
    channel_ops(dev->caps.channel)->opened(s);
    ht_compiler_barrier();
    s->ops = channel_ops(dev->caps.channel);
    s->slow = &ht_slow;                 /* from here on the stream is open */
    list_stream(dev, s);
    return 0;
}

int ht_stream_push(struct ht_stream *s)
{
    int r;

    if (s->busy) {
        return -EBUSY;
    }
    s->busy = 1;
    ht_compiler_barrier();
    if (s->ops) {
        s->inherit = 0;
        ht_publish_lost(s);
        r = s->ops->flush(s);
    } else {
        r = -EIO;
    }
    ht_compiler_barrier();
    s->busy = 0;
    return r;
}

bool ht_stream_room(struct ht_stream *s, uint32_t size)
{
    uint64_t packet = s->packet;
    bool room = false;

    /*
     * Set busy: ht_has_space() may submit packets, which only one context may
     * do.
     */
    if (s->busy) {
        return false;
    }
    s->busy = 1;
    ht_compiler_barrier();
    if (s->cur) {
        room = (uint64_t)(s->packet_end - s->cur) >=
               (uint64_t)size + HT_EVENT_HEADER_EXT;
        packet++;
    }
    if (!room) {
        /*
         * Report room if the stream is not open, or if the host or the driver
         * has closed it: a wait for room would never end.
         */
        room = !s->ops || packet - s->tail <= s->packets_mask ||
               s->overwrite || ht_is_closed(s) || ht_has_space(s, packet);
    }
    ht_compiler_barrier();
    s->busy = 0;
    return room;
}

int ht_stream_stamps(struct ht_stream *s, uint32_t n)
{
    int r = -EIO;

    if (n < 1 || n > HT_STAMPS_MAX) {
        return -EINVAL;
    }
    if (s->busy) {
        return -EBUSY;
    }
    s->busy = 1;
    ht_compiler_barrier();
    if (s->slow) {
        s->stamps = n;
        s->inherit = 0;
        s->end = n > 1 ? NULL : s->packet_end;
        r = 0;
    }
    ht_compiler_barrier();
    s->busy = 0;
    return r;
}

int ht_stream_flush(struct ht_stream *s)
{
    unsigned tries = 0;
    int r;

    while ((r = ht_stream_push(s)) == -EAGAIN) {
        r = s->dev->ops->relax(s->dev, tries++);
        if (r) {
            return r;
        }
    }
    if (r) {
        return r;
    }
    return stream_message(s->dev, HT_MSG_STREAM_FLUSH, s->index, s->instance,
                          s->lost + ht_load_relaxed(&s->lost_nested));
}

int ht_stream_close(struct ht_stream *s)
{
    struct ht_device *dev = s->dev;
    unsigned tries = 0;
    int r, flushed, closed;
    uint64_t lost;

    if (!s->ops) {
        return -EIO;
    }
    unlist_stream(dev, s);
    s->busy = 1;                /* further events are discarded */
    ht_compiler_barrier();
    while ((r = s->ops->flush(s)) == -EAGAIN) {
        r = dev->ops->relax(dev, tries++);
        if (r) {
            break;
        }
    }
    ht_publish_lost(s);
    lost = s->lost + ht_load_relaxed(&s->lost_nested);
    /* Flush first: a close does not report that the stream was stopped. */
    flushed = stream_message(dev, HT_MSG_STREAM_FLUSH, s->index, s->instance,
                             lost);
    closed = stream_message(dev, HT_MSG_STREAM_CLOSE, s->index, s->instance,
                            lost);
    if (dev->ops->unmap) {
        dev->ops->unmap(dev, s->index);
    }
    s->ops = NULL;
    s->slow = NULL;
    ht_no_packet(s);
    s->ring = NULL;
    s->packets = NULL;
    ht_compiler_barrier();
    s->busy = 0;
    return r ? r : flushed ? flushed : closed;
}
