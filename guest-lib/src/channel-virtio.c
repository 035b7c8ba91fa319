/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: hand events over to the host by the channel virtio
 *
 * The ring is in the guest's memory, in the layout of stream memory.  The guest
 * writes both the guest's and the host's line of the control page.  It submits
 * closed packets to the device and, for a push or flush, the committed bytes of
 * the open packet.  When the device has returned all buffers of a packet, the
 * port, or the Linux driver that the port uses, advances host.tail, and the
 * packet's memory is free again.
 */
#include "core.h"

static void virtio_opened(struct ht_stream *s)
{
    /*
     * Do not set host.state: the port or the Linux driver has set it to OPENED,
     * or to CLOSED if the device was removed since.
     */
    s->ring->host.instance = s->instance;
    /* The word is HT_WAKE_NEVER while the stream is open. */
    s->wake = &s->ring->host.wake;
    /* Never overwrite packets, because the device may still read them. */
    s->overwrite = 0;
}

/* Submit closed packets from s->submitted on, and the open one if @open_too */
static int submit(struct ht_stream *s, bool open_too)
{
    while (s->submitted < ht_head(s)) {
        const uint64_t packet = s->submitted >> s->packet_shift;
        const uint64_t start = packet << s->packet_shift;
        const bool closed = packet < s->packet;
        uint64_t to = ht_head(s);
        int r;

        if (closed) {
            to = start + (s->submitted > start ? s->content :
                          ht_packet_at(s, packet)->content);
        } else if (!open_too) {
            break;
        }
        if (s->submitted < to) {
            r = s->dev->ops->submit(s->dev, s, s->submitted, to);
            if (r) {
                return r;
            }
        }
        s->submitted = closed ? start + ht_packet_bytes(s) : to;
    }
    return 0;
}

static int submit_reaping(struct ht_stream *s, bool open_too)
{
    int r = submit(s, open_too);

    if (r == -EAGAIN) {
        s->dev->ops->reap(s->dev, s);
        r = submit(s, open_too);
    }
    return r;
}

static void virtio_notify(struct ht_stream *s)
{
    (void)s;                    /* submissions kick the device */
}

static void virtio_closed(struct ht_stream *s)
{
    /*
     * If no buffer is free, the packet is submitted later, for example when the
     * next packet is closed, when the ring is full (virtio_reclaim()), or by a
     * push or flush.
     */
    (void)submit_reaping(s, false);
}

static void virtio_reclaim(struct ht_stream *s)
{
    s->dev->ops->reap(s->dev, s);
    if (s->submitted < ht_head(s)) {
        (void)submit(s, false);
    }
}

static int virtio_flush(struct ht_stream *s)
{
    return submit_reaping(s, true);
}

const struct ht_channel_ops ht_channel_virtio = {
    .opened = virtio_opened,
    .notify = virtio_notify,
    .closed = virtio_closed,
    .reclaim = virtio_reclaim,
    .flush = virtio_flush,
};
