/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests: the loopback port, guest side
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include <sys/mman.h>
#include "../../../guest-linux/uapi/linux/hypertrace.h"
#include "loopback-host.h"

static struct ht_loopback *loopback(struct ht_device *dev)
{
    return (struct ht_loopback *)((char *)dev - offsetof(struct ht_loopback,
                                                        dev));
}

static int lb_control(struct ht_device *dev, struct ht_msg *msg, uint32_t size)
{
    /* Like a real host, this host executes a copy of the messages. */
    const uint32_t bytes = ht_request_bytes(msg, size);
    g_autofree uint8_t *copy = g_malloc0(HT_MAILBOX_SIZE);
    struct ht_msg *m = (struct ht_msg *)copy;
    const uint32_t most = loopback(dev)->cfg.at_once;
    uint32_t pos, replied, count = 0;

    memcpy(copy, msg, bytes);
    for (pos = 0; pos < bytes; pos = HT_ROUND_UP(pos, HT_MESSAGE_ALIGN)) {
        struct ht_msg *one = (struct ht_msg *)(copy + pos);

        pos += one->size;
        if (most && count++ >= most) {
            one->status = HT_STATUS_BUSY;
        } else {
            ht_loopback_message(loopback(dev), one);
        }
    }
    replied = ht_reply_bytes(msg->type, m, size);
    memcpy(msg, copy, replied);
    return replied ? 0 : -EIO;
}

static int lb_map(struct ht_device *dev, uint32_t stream,
                  struct ht_ring_control **ring, uint8_t **packets)
{
    struct ht_loopback_stream *st = &loopback(dev)->streams[stream];

    *ring = st->ring;
    *packets = st->packets;
    return 0;
}

static void lb_doorbell(struct ht_device *dev, uint32_t stream)
{
    struct ht_loopback *lb = loopback(dev);

    if (dev->caps.channel == HT_CHANNEL_SHM) {
        ht_loopback_wake(lb);
    } else if (lb->cfg.host == HT_LOOPBACK_NOW) {
        ht_loopback_consume(lb, stream);
    }
}

static int lb_submit(struct ht_device *dev, struct ht_stream *s,
                     uint64_t from, uint64_t to)
{
    struct ht_loopback *lb = loopback(dev);
    struct ht_loopback_stream *st = &lb->streams[s->index];
    const uint64_t ring = (uint64_t)dev->caps.packet_size * dev->caps.packets;
    bool full;

    ht_server_lock(lb->server, s->index);
    full = st->queued - st->done == lb->cfg.queue;
    if (!full) {
        struct ht_loopback_buffer *b =
            &st->buffers[st->queued++ % lb->cfg.queue];

        b->head = (struct ht_submit) {
            .from = from,
            .to = to,
            .lost = s->lost + ht_load_relaxed(&s->lost_nested),
            .stream = s->index,
        };
        b->data = st->packets + from % ring;
        b->sum = ht_loopback_sum(b->data, to - from);
    }
    ht_server_unlock(lb->server, s->index);
    if (full) {
        return -EAGAIN;
    }
    s->doorbells++;
    if (lb->cfg.host == HT_LOOPBACK_NOW) {
        ht_loopback_consume(lb, s->index);
    } else {
        ht_loopback_wake(lb);
    }
    return 0;
}

static void lb_reap(struct ht_device *dev, struct ht_stream *s)
{
    struct ht_loopback *lb = loopback(dev);
    struct ht_loopback_stream *st = &lb->streams[s->index];
    uint64_t position = s->submitted;

    ht_server_lock(lb->server, s->index);
    if (st->done != st->queued) {
        position = st->buffers[st->done % lb->cfg.queue].head.from;
    }
    ht_server_unlock(lb->server, s->index);
    ht_store_relaxed(&st->ring->host.tail, position / dev->caps.packet_size);
}

static int lb_relax(struct ht_device *dev, unsigned tries)
{
    struct ht_loopback *lb = loopback(dev);

    if (tries >= 10000) {
        return -ETIMEDOUT;
    }
    if (lb->cfg.host == HT_LOOPBACK_STEP) {
        ht_loopback_step(lb);
    } else {
        g_usleep(100);
    }
    return 0;
}

static void lb_lock(struct ht_device *dev)
{
    pthread_mutex_lock(&loopback(dev)->control);
}

static void lb_unlock(struct ht_device *dev)
{
    pthread_mutex_unlock(&loopback(dev)->control);
}

static const struct ht_port_ops loopback_ops = {
    .control = lb_control,
    .map = lb_map,
    .doorbell = lb_doorbell,
    .submit = lb_submit,
    .reap = lb_reap,
    .relax = lb_relax,
    .lock = lb_lock,
    .unlock = lb_unlock,
};

static void set_defaults(struct ht_loopback_config *c)
{
    c->streams = c->streams ?: 4;
    c->packet_size = c->packet_size ?: 65536;
    c->packets = c->packets ?: 16;
    c->batch = c->batch ?: 1;
    c->max_gap = c->max_gap ?: 1u << (HT_CLOCK_BITS - 1);
    c->queue = c->queue ?: HT_VQ_SIZE;
}

static uint8_t *map_memory(size_t size, int file, uint64_t offset)
{
    uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
                      file ? file : -1, offset);

    if (p == MAP_FAILED) {
        g_error("loopback: no memory for %zu bytes", size);
    }
    return p;
}

struct ht_loopback *ht_loopback_new(const struct ht_loopback_config *cfg)
{
    struct ht_loopback *lb = g_new0(struct ht_loopback, 1);
    g_autofree struct ht_ring_control **rings = NULL;
    uint64_t stride;
    uint32_t i;

    lb->cfg = *cfg;
    set_defaults(&lb->cfg);
    cfg = &lb->cfg;
    stride = HT_PACKETS_OFFSET + (uint64_t)cfg->packet_size * cfg->packets;
    lb->dev.ops = &loopback_ops;
    lb->dev.mapping = cfg->channel == HT_CHANNEL_VIRTIO ? "guest RAM" :
                                                          "write-back";
    lb->dev.caps = (struct ht_caps) {
        .magic = HT_MAGIC,
        .version = HT_VERSION,
        .channel = cfg->channel,
        .mode = cfg->mode,
        .streams = cfg->streams,
        .packet_size = cfg->packet_size,
        .packets = cfg->packets,
        .batch = cfg->batch,
        .max_gap = cfg->max_gap,
        .ring_stride = stride,
        .max_classes = HT_CLASSES_MAX,
        .max_message = HT_MESSAGE_MAX,
        .mailbox_size = HT_MAILBOX_SIZE,
        .counter = HT_COUNTER,
    };
    if (ht_device_init(&lb->dev)) {
        g_free(lb);
        return NULL;
    }

    if (cfg->file) {
        lb->enable = map_memory(HT_ENABLE_SIZE, cfg->file, HT_MMAP_ENABLE);
    } else {
        lb->memory_size = stride * cfg->streams + HT_ENABLE_SIZE;
        lb->memory = map_memory(lb->memory_size, 0, 0);
        lb->enable = lb->memory + stride * cfg->streams;
    }
    if (cfg->channel == HT_CHANNEL_VIRTIO) {
        lb->dev.enable_copy = g_malloc0(HT_ENABLE_SIZE);
        lb->dev.enable = lb->dev.enable_copy;
    } else {
        lb->dev.enable = lb->enable;
    }
    rings = g_new(struct ht_ring_control *, cfg->streams);
    lb->streams = g_new0(struct ht_loopback_stream, cfg->streams);
    for (i = 0; i < cfg->streams; i++) {
        struct ht_loopback_stream *st = &lb->streams[i];

        st->ring = (struct ht_ring_control *)
            (cfg->file ? map_memory(stride, cfg->file, HT_MMAP_RING(i)) :
                         lb->memory + i * stride);
        st->packets = (uint8_t *)st->ring + HT_PACKETS_OFFSET;
        st->buffers = g_new0(struct ht_loopback_buffer, cfg->queue);
        st->copy = g_malloc(cfg->packet_size);
        rings[i] = st->ring;
    }
    pthread_mutex_init(&lb->control, NULL);
    ht_loopback_start(lb, rings);
    return lb;
}

void ht_loopback_free(struct ht_loopback *lb)
{
    uint32_t i;

    ht_loopback_stop(lb);
    for (i = 0; i < lb->cfg.streams; i++) {
        struct ht_loopback_stream *st = &lb->streams[i];

        if (!lb->memory) {
            munmap(st->ring, lb->dev.caps.ring_stride);
        }
        g_free(st->buffers);
        g_free(st->copy);
    }
    g_free(lb->streams);
    if (lb->memory) {
        munmap(lb->memory, lb->memory_size);
    } else {
        munmap(lb->enable, HT_ENABLE_SIZE);
    }
    g_free(lb->dev.enable_copy);
    pthread_mutex_destroy(&lb->control);
    g_free(lb);
}

struct ht_device *ht_loopback_device(struct ht_loopback *lb)
{
    return &lb->dev;
}
