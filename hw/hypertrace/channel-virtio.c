/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: consume the virtqueues of channel=virtio
 *
 * The worker's job runs with the BQL, because the pop of a hostile descriptor
 * (zero length, MMIO) needs the BQL.  The worker copies a popped buffer to the
 * sinks' memory, checks the copy and returns the buffer at once.  While no sink
 * has room, the worker takes only buffers that a close or a flush needs, so the
 * guest runs out of packets and discards events.  When the VM stops or the
 * device is reset or unplugged, stream-memory.c reads the events that the guest
 * has committed but not submitted (if HT_F_MEMORY was negotiated).
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "device.h"

/*
 * Limits of one iteration of the main loop, shared by all kicks in it.
 * The buffer that reaches a limit is still consumed as a whole.
 */
#define TURN_BUFFERS 16
#define TURN_BYTES (256 * KiB)
#define TURN_EVENTS 4096
#define TURN_DESCRIPTORS 1024

/*
 * Number of descriptors that a buffer may have beyond one for each of its pages
 */
#define EXTRA_DESCRIPTORS 3

/*
 * Numbers of bytes and descriptors that were popped from a stream's data queue
 * since HtVirtio.all was set
 */
typedef struct HtTaken {
    size_t bytes;
    size_t descriptors;
} HtTaken;

struct HtVirtio {
    /*
     * the worker consumes all buffers: the limits of data_is_all() apply, but
     * not the limits of a turn below
     */
    bool all;
    /* remaining limits of the present turn, for all data queues together */
    unsigned buffers;
    size_t bytes;
    uint64_t events;
    size_t descriptors;

    VirtQueue *control;
    QEMUBH *messages;
    /* arrays with an element for each stream */
    VirtQueue **data;
    /* maximum number of buffers to pop before the stream can close */
    unsigned *closing;
    HtTaken *taken;
};

/* HtChannelOps.allow.  Context: BQL, as for all functions below */
static void virtio_allow(HypertraceDevice *dev, bool all)
{
    HtVirtio *v = dev->virtio;

    if (all && !v->all) {
        memset(v->taken, 0, dev->conf.streams * sizeof(*v->taken));
    }
    v->all = all;
    v->buffers = TURN_BUFFERS;
    v->bytes = TURN_BYTES;
    v->events = TURN_EVENTS;
    v->descriptors = TURN_DESCRIPTORS;
}

/*
 * Test whether a stream has reached its limit while HtVirtio.all is set.
 *
 * The worker then holds the BQL until the queues are empty, so a guest must not
 * prolong this.  An honest guest has handed over at most all packets of a ring.
 * The limit is twice that, because other vCPUs may continue meanwhile.  The
 * descriptors are limited, too, because a buffer of many short descriptors
 * takes longer: one for each page, and a few more for each buffer of a queue.
 */
static bool data_is_all(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);
    const HtTaken *t = &dev->virtio->taken[s->index];
    uint64_t bytes;
    unsigned buffers;

    if (!dev->virtio->all) {
        return false;
    }
    bytes = (uint64_t)dev->conf.packets * dev->conf.packet_size;
    buffers = virtio_queue_get_num(VIRTIO_DEVICE(dev), HT_VQ_DATA(s->index));
    return t->bytes > 2 * bytes ||
           t->descriptors > 2 * bytes / HT_PAGE + buffers * EXTRA_DESCRIPTORS;
}

/* Test whether the stream's queue has a buffer that the limits allow to pop */
static bool data_available(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);
    HtVirtio *v = dev->virtio;

    /*
     * A reset clears vdev->status before the worker consumes the rest of the
     * queues: ignore the status while v->all is set.
     */
    if (vdev->broken ||
        !(v->all || (vdev->status & VIRTIO_CONFIG_S_DRIVER_OK)) ||
        !virtio_queue_get_addr(vdev, HT_VQ_DATA(s->index)) ||
        virtio_queue_empty(v->data[s->index]) || data_is_all(s)) {
        v->closing[s->index] = 0;
        return false;
    }
    if (!v->all &&
        (!v->buffers || !v->bytes || !v->events || !v->descriptors)) {
        dev->streams.more = true;
        return false;
    }
    return true;
}

static VirtQueueElement *data_pop(HtStream *s)
{
    HtVirtio *v = ht_stream_device(s)->virtio;
    VirtQueueElement *e = virtqueue_pop(v->data[s->index], sizeof(*e));

    if (e) {
        size_t descriptors = (size_t)e->out_num + e->in_num;

        v->taken[s->index].descriptors += descriptors;
        v->descriptors -= MIN(v->descriptors, descriptors);
        v->buffers -= v->buffers > 0;
        v->bytes -= MIN(v->bytes, iov_size(e->out_sg, e->out_num));
        v->closing[s->index] -= v->closing[s->index] > 0;
    }
    return e;
}

static void data_push(HtStream *s, VirtQueueElement *e)
{
    VirtQueue *vq = ht_stream_device(s)->virtio->data[s->index];

    virtqueue_push(vq, e, 0);
    virtio_notify(VIRTIO_DEVICE(ht_stream_device(s)), vq);
    g_free(e);
}

/*
 * Pass a buffer's bytes to the stream's consumer.  Returns the number of bytes
 * consumed.  Context: HtStream.lock held
 */
static size_t data_feed(HtStream *s, VirtQueueElement *e)
{
    size_t size = iov_size(e->out_sg, e->out_num);
    struct ht_submit submit;
    uint8_t *data = NULL;

    if (e->in_num != 0 || size < sizeof(submit) ||
        size - sizeof(submit) > s->consumer.cfg.packet_size) {
        /*
         * The buffer is malformed: pass an impossible position to the consumer,
         * which then stops the stream as corrupt.
         */
        memset(&submit, 0xff, sizeof(submit));
        size = sizeof(submit);
    } else {
        iov_to_buf(e->out_sg, e->out_num, 0, &submit, sizeof(submit));
    }
    size -= sizeof(submit);
    if (size) {
        data = s->consumer.cfg.reserve(s, size);
        iov_to_buf(e->out_sg, e->out_num, sizeof(submit), data, size);
    }
    ht_consumer_feed(&s->consumer, &submit, data, size);
    return sizeof(submit) + size;
}

static size_t consume_buffer(HtStream *s)
{
    VirtQueueElement *e = data_pop(s);
    HtVirtio *v = ht_stream_device(s)->virtio;
    uint64_t events;
    size_t done;

    if (!e) {
        return 0;
    }
    ht_mutex_lock(&s->lock);
    qatomic_set(&s->consumer.wakeups, s->consumer.wakeups + 1);
    ht_stream_begin(s);
    events = s->consumer.events;
    done = s->consumer.stopped ? sizeof(struct ht_submit) : data_feed(s, e);
    v->taken[s->index].bytes += done - sizeof(struct ht_submit);
    events = s->consumer.events - events;
    v->events -= MIN(v->events, events);
    ht_stream_end(s);
    ht_mutex_unlock(&s->lock);
    data_push(s, e);
    return done;
}

static size_t virtio_consume(HtStream *s, bool force)
{
    HypertraceDevice *dev = ht_stream_device(s);
    const bool all = dev->virtio->all;
    const bool some = data_available(s);
    size_t done = 0;

    if (!(some || all) || (!force && !ht_dispatch_room(dev->dispatch))) {
        return 0;
    }
    if (some) {
        done = consume_buffer(s);
    }
    if (all && !data_available(s) &&
        virtio_vdev_has_feature(VIRTIO_DEVICE(dev), HT_F_MEMORY)) {
        done += ht_stream_fetch(s);
    }
    return done;
}

static bool virtio_drop(HtStream *s)
{
    VirtQueueElement *e = data_available(s) ? data_pop(s) : NULL;

    if (!e) {
        return false;
    }
    ht_guest_error(ht_stream_device(s), "buffer for stream %" PRIu32
                   ", which is closed", s->index);
    data_push(s, e);
    return true;
}

static void virtio_closing(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);

    dev->virtio->closing[s->index] =
        virtio_queue_get_num(VIRTIO_DEVICE(dev), HT_VQ_DATA(s->index));
}

static bool virtio_drained(HtStream *s)
{
    return ht_stream_device(s)->virtio->closing[s->index] == 0 ||
           virtio_queue_empty(ht_stream_device(s)->virtio->data[s->index]);
}

/* Context: main loop, or a vCPU without ioeventfd */
static void data_output(VirtIODevice *vdev, VirtQueue *vq)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(vdev);

    /*
     * All kicks of one iteration of the main loop share the limits of one turn,
     * so many kicks hold the BQL no longer than one kick.  The event loop calls
     * the doorbell's handler in another iteration, which sets the limits again.
     * A turn serves all queues: skip it if another turn is scheduled, if no
     * sink has room, or if this queue is empty.
     */
    if (!dev->worker.again && !dev->worker.starved && !virtio_queue_empty(vq)) {
        ht_worker_turn(dev);
    }
}

/* Context: main loop, or a vCPU without ioeventfd */
static void control_output(VirtIODevice *vdev, VirtQueue *vq)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(vdev);
    int64_t end = get_clock() + HT_CONTROL_TURN_NS;
    VirtQueueElement *e;
    bool some = false, more = false;

    while (!more && !vdev->broken && (e = virtqueue_pop(vq, sizeof(*e)))) {
        size_t size = iov_size(e->out_sg, e->out_num);

        iov_to_buf(e->out_sg, e->out_num, 0, dev->mailbox,
                   MIN(size, sizeof(dev->mailbox)));
        size = ht_control_exchange(&dev->messages, dev->mailbox, size);
        size = iov_from_buf(e->in_sg, e->in_num, 0, dev->mailbox, size);
        virtqueue_push(vq, e, size);
        g_free(e);
        some = true;
        more = get_clock() >= end;
    }
    if (some) {
        virtio_notify(vdev, vq);
    }
    if (more) {
        qemu_bh_schedule(dev->virtio->messages);
    }
}

/*
 * HtChannelOps.go, when the VM runs again: continue with control messages that
 * were pending when the VM stopped.  Their kick was consumed, and the driver
 * does not kick again.
 */
static void virtio_go(HypertraceDevice *dev)
{
    qemu_bh_schedule(dev->virtio->messages);
}

/* Context: BH in main loop */
static void control_go_on(void *opaque)
{
    HypertraceDevice *dev = opaque;
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);

    if (vdev->vm_running && (vdev->status & VIRTIO_CONFIG_S_DRIVER_OK)) {
        control_output(vdev, dev->virtio->control);
    }
}

static void virtio_channel_realize(HypertraceDevice *dev)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);
    HtVirtio *v = g_new0(HtVirtio, 1);
    uint32_t i;

    dev->virtio = v;
    v->data = g_new0(VirtQueue *, dev->conf.streams);
    v->closing = g_new0(unsigned, dev->conf.streams);
    v->taken = g_new0(HtTaken, dev->conf.streams);
    v->messages = virtio_bh_new_guarded(DEVICE(dev), control_go_on, dev);
    v->control = virtio_add_queue(vdev, HT_VQ_SIZE, control_output);
    for (i = 0; i < dev->conf.streams; i++) {
        v->data[i] = virtio_add_queue(vdev, HT_VQ_SIZE, data_output);
    }
}

static void virtio_channel_unrealize(HypertraceDevice *dev)
{
    HtVirtio *v = dev->virtio;
    uint32_t i;

    virtio_delete_queue(v->control);
    for (i = 0; i < dev->conf.streams; i++) {
        virtio_delete_queue(v->data[i]);
    }
    qemu_bh_delete(v->messages);
    g_free(v->taken);
    g_free(v->closing);
    g_free(v->data);
    g_free(v);
    dev->virtio = NULL;
}

const HtChannelOps ht_channel_virtio = {
    .name = "virtio",
    .realize = virtio_channel_realize,
    .unrealize = virtio_channel_unrealize,
    .consume = virtio_consume,
    .closing = virtio_closing,
    .drained = virtio_drained,
    .drop = virtio_drop,
    .allow = virtio_allow,
    .go = virtio_go,
};
