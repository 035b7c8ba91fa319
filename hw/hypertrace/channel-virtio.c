/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: channel=virtio
 *
 * Buffers are popped, copied and given back in the main loop, where a hostile
 * descriptor (zero length, MMIO) is safe; the IOThread walks the copies.  When
 * all copies are in use the rest stays on the queue: the guest runs out of
 * packets and discards, it never waits.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "device.h"

/* Private copies a device has */
#define BUFFERS 64

typedef struct Buffer {
    QSIMPLEQ_ENTRY(Buffer) entry;
    unsigned *extra;            /* the count it is in; NULL: of the pool */
    struct ht_submit submit;
    size_t size;
    uint8_t *data;              /* packet_size bytes; extra: @size bytes */
} Buffer;

typedef QSIMPLEQ_HEAD(, Buffer) BufferList;

struct HtVirtio {
    Buffer *buffers;
    QemuMutex lock;             /* all lists */
    BufferList free;
    BufferList *filled;         /* one a stream */
    unsigned *extras;           /* buffers beside the pool; one a stream */
    bool starved;               /* the main loop wants to know of a free one */
    QEMUBH *resume;             /* main loop */
    VirtQueue *control;
    VirtQueue **data;
};

/*
 * @force: where nothing may be left behind.  Beside the pool a stream has a
 * queue's length at most, however often its guest asks for that.
 */
static Buffer *buffer_get(HtVirtio *v, uint32_t stream, bool force)
{
    Buffer *b;

    WITH_QEMU_LOCK_GUARD(&v->lock) {
        b = QSIMPLEQ_FIRST(&v->free);
        if (b) {
            QSIMPLEQ_REMOVE_HEAD(&v->free, entry);
        } else if (force && v->extras[stream] < HT_VQ_SIZE) {
            b = g_new0(Buffer, 1);
            b->extra = &v->extras[stream];
            v->extras[stream]++;
        } else {
            v->starved = true;
        }
    }
    return b;
}

static void buffer_put(HtVirtio *v, Buffer *b)
{
    bool resume;

    WITH_QEMU_LOCK_GUARD(&v->lock) {
        if (b->extra) {
            (*b->extra)--;
            g_free(b->data);
            g_free(b);
        } else {
            QSIMPLEQ_INSERT_HEAD(&v->free, b, entry);
        }
        resume = v->starved;
        v->starved = false;
    }
    if (resume) {
        qemu_bh_schedule(v->resume);
    }
}

static void buffer_fill(HypertraceDevice *dev, Buffer *b, VirtQueueElement *e)
{
    size_t size = iov_size(e->out_sg, e->out_num);

    if (e->in_num != 0 || size < sizeof(b->submit) ||
        size - sizeof(b->submit) > dev->conf.packet_size) {
        /* no stream has this position: the walk will stop the stream */
        memset(&b->submit, 0xff, sizeof(b->submit));
        b->size = 0;
        return;
    }
    b->size = size - sizeof(b->submit);
    if (b->extra) {
        b->data = g_malloc(b->size);
    }
    iov_to_buf(e->out_sg, e->out_num, 0, &b->submit, sizeof(b->submit));
    iov_to_buf(e->out_sg, e->out_num, sizeof(b->submit), b->data, b->size);
}

typedef enum Pop {
    POP_NORMAL,
    POP_ALL,                    /* however many: force in buffer_get() */
    POP_LAST,                   /* also what must wait: the queue goes */
} Pop;

/* Take the buffers of a stream.  Context: BQL */
static void data_pop(HypertraceDevice *dev, uint32_t stream, Pop pop)
{
    HtVirtio *v = dev->virtio;
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);
    VirtQueue *vq = v->data[stream];
    VirtQueueElement *e;
    bool any = false;
    Buffer *b;

    if (pop != POP_LAST && ht_stream_waits(&dev->streams[stream])) {
        return;         /* not ours yet: see virtio_resumed() */
    }
    while (!vdev->broken && !virtio_queue_empty(vq)) {
        b = buffer_get(v, stream, pop != POP_NORMAL);
        if (!b) {
            break;
        }
        e = virtqueue_pop(vq, sizeof(*e));
        if (!e) {
            buffer_put(v, b);
            break;
        }
        buffer_fill(dev, b, e);
        virtqueue_push(vq, e, 0);
        g_free(e);
        any = true;
        if (qatomic_load_acquire(&dev->streams[stream].phase) ==
            HT_PHASE_FREE) {
            ht_guest_error(dev, "buffer for stream %" PRIu32
                           ", which is closed", stream);
            buffer_put(v, b);
            continue;
        }
        WITH_QEMU_LOCK_GUARD(&v->lock) {
            QSIMPLEQ_INSERT_TAIL(&v->filled[stream], b, entry);
        }
    }
    if (any) {
        virtio_notify(vdev, vq);
        ht_thread_kick(dev);
    }
}

/* Context: main loop, BQL */
static void data_output(VirtIODevice *vdev, VirtQueue *vq)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(vdev);

    data_pop(dev, virtio_get_queue_index(vq) - HT_VQ_DATA(0), POP_NORMAL);
}

/* Context: BQL */
static void data_pop_all(HypertraceDevice *dev, Pop pop)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);
    uint32_t i;

    if (!(vdev->status & VIRTIO_CONFIG_S_DRIVER_OK)) {
        return;
    }
    for (i = 0; i < dev->conf.streams; i++) {
        if (virtio_queue_get_addr(vdev, HT_VQ_DATA(i))) {
            data_pop(dev, i, pop);
        }
    }
}

/* Context: BH in main loop, BQL */
static void virtio_resume(void *opaque)
{
    HypertraceDevice *dev = opaque;

    if (dev->thread.running) {
        data_pop_all(dev, POP_NORMAL);
    }
}

/* Context: IOThread */
static void virtio_resumed(HtStream *s)
{
    qemu_bh_schedule(s->dev->virtio->resume);
}

/* Context: BQL */
static void virtio_drain(HypertraceDevice *dev, bool last)
{
    data_pop_all(dev, last ? POP_LAST : POP_ALL);
}

/* Context: BQL */
static bool virtio_holds(HtStream *s)
{
    HtVirtio *v = s->dev->virtio;

    QEMU_LOCK_GUARD(&v->lock);
    return !QSIMPLEQ_EMPTY(&v->filled[s->index]);
}

/* Context: main loop, BQL */
static void control_output(VirtIODevice *vdev, VirtQueue *vq)
{
    HypertraceDevice *dev = HYPERTRACE_DEVICE(vdev);
    VirtQueueElement *e;
    bool any = false;

    while (!vdev->broken && (e = virtqueue_pop(vq, sizeof(*e)))) {
        size_t size = iov_size(e->out_sg, e->out_num);

        if (size <= sizeof(dev->mailbox)) {
            iov_to_buf(e->out_sg, e->out_num, 0, dev->mailbox, size);
        }
        size = ht_control_message(dev, dev->mailbox, size);
        size = iov_from_buf(e->in_sg, e->in_num, 0, dev->mailbox, size);
        virtqueue_push(vq, e, size);
        g_free(e);
        any = true;
    }
    if (any) {
        virtio_notify(vdev, vq);
    }
}

static Buffer *filled_get(HtVirtio *v, uint32_t stream)
{
    Buffer *b;

    QEMU_LOCK_GUARD(&v->lock);
    b = QSIMPLEQ_FIRST(&v->filled[stream]);
    if (b) {
        QSIMPLEQ_REMOVE_HEAD(&v->filled[stream], entry);
    }
    return b;
}

/*
 * What came between the last look and the closing would look like nonsense to
 * the stream that is opened next, and what a rewind undoes to the one that is
 * loaded next.  Context: IOThread; BQL before a rewind
 */
static void virtio_purge(HtStream *s)
{
    HtVirtio *v = s->dev->virtio;
    bool undone = qatomic_load_acquire(&s->phase) == HT_PHASE_LOADED;
    Buffer *b;

    while ((b = filled_get(v, s->index))) {
        if (!undone) {
            ht_guest_error(s->dev, "buffer for stream %" PRIu32
                           ", which was closed", s->index);
        }
        buffer_put(v, b);
    }
}

/* Context: IOThread */
static size_t virtio_consume(HtStream *s)
{
    HtVirtio *v = s->dev->virtio;
    size_t done = 0;
    Buffer *b;

    QEMU_LOCK_GUARD(&s->lock);
    /*
     * All that can be queued for a stream at a time; no more, or a producer
     * that is as fast as we are would keep us here.
     */
    while (done < BUFFERS + HT_VQ_SIZE) {
        b = filled_get(v, s->index);
        if (!b) {
            break;
        }
        if (done == 0) {
            qatomic_set(&s->consumer.wakeups, s->consumer.wakeups + 1);
            ht_stream_refresh_time(s);
        }
        done++;
        ht_consumer_feed(&s->consumer, &b->submit, b->data, b->size);
        buffer_put(v, b);
    }
    ht_stream_check_stopped(s);
    return done;
}

static void virtio_channel_realize(HypertraceDevice *dev)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);
    HtVirtio *v = g_new0(HtVirtio, 1);
    uint32_t i;

    dev->virtio = v;
    qemu_mutex_init(&v->lock);
    QSIMPLEQ_INIT(&v->free);
    v->filled = g_new0(BufferList, dev->conf.streams);
    v->extras = g_new0(unsigned, dev->conf.streams);
    v->data = g_new0(VirtQueue *, dev->conf.streams);
    v->buffers = g_new0(Buffer, BUFFERS);
    for (i = 0; i < BUFFERS; i++) {
        v->buffers[i].data = g_malloc(dev->conf.packet_size);
        QSIMPLEQ_INSERT_TAIL(&v->free, &v->buffers[i], entry);
    }
    v->resume = virtio_bh_new_guarded(DEVICE(dev), virtio_resume, dev);
    v->control = virtio_add_queue(vdev, HT_VQ_SIZE, control_output);
    for (i = 0; i < dev->conf.streams; i++) {
        QSIMPLEQ_INIT(&v->filled[i]);
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
}

static void virtio_channel_release(HypertraceDevice *dev)
{
    HtVirtio *v = dev->virtio;
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        virtio_purge(&dev->streams[i]);
    }
    qemu_bh_delete(v->resume);
    for (i = 0; i < BUFFERS; i++) {
        g_free(v->buffers[i].data);
    }
    g_free(v->buffers);
    g_free(v->data);
    g_free(v->extras);
    g_free(v->filled);
    qemu_mutex_destroy(&v->lock);
    g_free(v);
    dev->virtio = NULL;
}

const HtChannelOps ht_channel_virtio = {
    .name = "virtio",
    .realize = virtio_channel_realize,
    .unrealize = virtio_channel_unrealize,
    .release = virtio_channel_release,
    .consume = virtio_consume,
    .drain = virtio_drain,
    .holds = virtio_holds,
    .purge = virtio_purge,
    .resumed = virtio_resumed,
};
