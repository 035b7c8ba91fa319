/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: control messages, from the mailbox or the control queue
 *
 * The message is already a private copy.  All code runs with the BQL held.
 * Requests for which the worker must act first are answered with BUSY.  No code
 * waits for a sink.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/timer.h"
#include "control.h"
#include "device.h"
#include "trace.h"

static HtStream *stream_lookup(HypertraceDevice *dev, uint32_t index)
{
    return index < dev->conf.streams ? &dev->streams[index] : NULL;
}

static enum ht_status class_register(HypertraceDevice *dev,
                                     struct ht_msg_class *m, size_t size)
{
    enum ht_status status;
    HtClass *c;
    bool added;

    status = ht_class_table_add(dev->trace->classes, m, size, &added, &c);
    if (status == HT_STATUS_OK) {
        stl_le_p(&m->id, c->id);
        m->on = ht_enable_class(dev, c);
        if (added) {
            ht_dispatch_wake(dev->dispatch);
            ht_recover_classes(dev);
        }
    }
    return status;
}

static enum ht_status class_list(HypertraceDevice *dev,
                                 struct ht_msg_class *m, size_t *size)
{
    HtClass *c;

    if (*size < sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    c = ht_class_table_get(dev->trace->classes,
                           ldl_le_p(&m->index) == UINT32_MAX ? 0 :
                           ldl_le_p(&m->index) + 1);
    if (!c) {
        return HT_STATUS_NOENT;
    }
    *size = ht_class_encode(c, m);
    return HT_STATUS_OK;
}

static bool stream_name_copy(char *dst, const uint8_t *src)
{
    size_t len = strnlen((const char *)src, HT_STREAM_NAME_MAX), i;

    for (i = 0; i < len; i++) {
        if (src[i] < ' ' || src[i] > '~') {
            return false;
        }
    }
    memcpy(dst, src, len);
    dst[len] = '\0';
    return true;
}

/* Test whether the driver negotiated HT_F_MEMORY; else `memory` is ignored */
static bool has_memory(HypertraceDevice *dev)
{
    return virtio_vdev_has_feature(VIRTIO_DEVICE(dev), HT_F_MEMORY);
}

/*
 * Store the address of the stream's memory.  Each message that opens a stream
 * carries it, also when it is sent again: only then the driver knows the
 * stream's index.
 */
static void note_memory(HtStream *s, const struct ht_msg_open *m)
{
    s->memory = has_memory(s->dev) ? ldq_le_p(&m->memory) : 0;
}

/*
 * Take one opening from the budget, which is refilled with time.  Each opening
 * is a new instance of the trace, and a file of a ctf backend, so a guest must
 * not make them at the speed of its messages.
 *
 * Returns: false if the budget is used up
 */
static bool take_opening(HypertraceDevice *dev)
{
    int64_t now = get_clock();
    int64_t burst = HT_OPENINGS_BURST(dev->conf.streams) *
                    HT_OPENING_INTERVAL_NS;

    /* the budget is the time since @openings_ns, at most @burst */
    dev->openings_ns = MAX(dev->openings_ns, now - burst);
    if (now - dev->openings_ns < HT_OPENING_INTERVAL_NS) {
        return false;
    }
    dev->openings_ns += HT_OPENING_INTERVAL_NS;
    return true;
}

/*
 * Request an opening from the worker.  The reply to the first message has the
 * stream's instance; the guest sends it again to ask for the result.
 */
static enum ht_status stream_open(HypertraceDevice *dev,
                                  struct ht_msg_open *m, size_t size)
{
    HtStream *s = NULL;
    HtStreamInfo info = { };
    uint32_t index, i;

    if (size != sizeof(*m) ||
        (has_memory(dev) && ldq_le_p(&m->memory) % sizeof(uint64_t))) {
        return HT_STATUS_INVAL;
    }
    index = ldl_le_p(&m->stream);
    if (ldq_le_p(&m->instance)) {
        s = stream_lookup(dev, index);
        if (!s || s->next.instance != ldq_le_p(&m->instance)) {
            return HT_STATUS_NOENT;
        }
        switch (qatomic_load_acquire(&s->phase)) {
        case HT_PHASE_OPENING:
        case HT_PHASE_LOADED:
            note_memory(s, m);
            return HT_STATUS_BUSY;
        case HT_PHASE_OPEN:
            note_memory(s, m);
            return HT_STATUS_OK;
        default:
            return HT_STATUS_NOENT;
        }
    }

    if (!stream_name_copy(info.name, m->name)) {
        return HT_STATUS_INVAL;
    }
    if (qatomic_read(&dev->resample)) {
        return HT_STATUS_BUSY;          /* earlier streams are being dated */
    }
    if (index != HT_STREAM_ANY) {
        s = stream_lookup(dev, index);
        if (!s) {
            return HT_STATUS_NOENT;
        }
        if (qatomic_load_acquire(&s->phase) != HT_PHASE_FREE) {
            return qatomic_read(&s->want_close) ? HT_STATUS_BUSY :
                                                  HT_STATUS_EXIST;
        }
    } else {
        bool closing = false;

        for (i = 0; i < dev->conf.streams && !s; i++) {
            HtStream *one = &dev->streams[i];

            closing |= qatomic_read(&one->want_close);
            if (qatomic_load_acquire(&one->phase) == HT_PHASE_FREE) {
                s = one;
            }
        }
        if (!s) {
            return closing ? HT_STATUS_BUSY : HT_STATUS_LIMIT;
        }
    }

    if (!take_opening(dev)) {
        return HT_STATUS_BUSY;          /* the guest sends the message again */
    }
    info.index = s->index;
    info.vcpu = MAX((int32_t)ldl_le_p(&m->vcpu), -1);
    info.instance = ++dev->trace->instances;
    s->next = info;
    /* Clear here: the worker could race with a newer request. */
    s->want_close = false;
    s->close_lost = 0;
    note_memory(s, m);
    stl_le_p(&m->stream, s->index);
    stq_le_p(&m->instance, info.instance);
    ht_clock_update_offset(&dev->clock);
    /* Pairs with the load-acquire in stream_work(). */
    qatomic_store_release(&s->phase, HT_PHASE_OPENING);
    ht_worker_kick(dev);
    return HT_STATUS_BUSY;
}

static enum ht_status stream_close(HypertraceDevice *dev,
                                   struct ht_msg_stream *m, size_t size)
{
    HtStream *s;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    s = stream_lookup(dev, ldl_le_p(&m->stream));
    if (!s || s->next.instance == 0 ||
        s->next.instance != ldq_le_p(&m->instance)) {
        return HT_STATUS_NOENT;
    }
    if (qatomic_load_acquire(&s->phase) == HT_PHASE_FREE) {
        return HT_STATUS_OK;
    }
    if (qatomic_load_acquire(&s->phase) == HT_PHASE_LOADED) {
        return HT_STATUS_BUSY;          /* it was not resumed yet */
    }
    if (!s->want_close) {
        ht_stream_want_close(s, ldq_le_p(&m->lost));
        ht_worker_kick(dev);
    }
    return HT_STATUS_BUSY;
}

static bool any_loaded(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        if (qatomic_load_acquire(&dev->streams[i].phase) == HT_PHASE_LOADED) {
            return true;
        }
    }
    return false;
}

static enum ht_status flush_message(HypertraceDevice *dev,
                                    struct ht_msg_stream *m, size_t size)
{
    HtWorker *w = &dev->worker;
    uint32_t index, ticket;
    uint64_t done;
    HtStream *s;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    index = ldl_le_p(&m->stream);
    if (index != HT_STREAM_ANY) {
        s = stream_lookup(dev, index);
        if (!s || s->next.instance != ldq_le_p(&m->instance) ||
            qatomic_load_acquire(&s->phase) == HT_PHASE_FREE) {
            return HT_STATUS_NOENT;
        }
        if (qatomic_read(&s->consumer.stopped)) {
            return HT_STATUS_STOPPED;
        }
    }
    ticket = ldl_le_p(&m->ticket);
    if (ticket == 0) {
        if (any_loaded(dev)) {
            return HT_STATUS_BUSY;      /* they were not resumed yet */
        }
        /* Tickets are 1 to 2^32 - 1. */
        w->flush_wanted_bql++;
        if ((uint32_t)w->flush_wanted_bql == 0) {
            w->flush_wanted_bql++;
        }
        stl_le_p(&m->ticket, (uint32_t)w->flush_wanted_bql);
        /* Pairs with the load-acquire in worker_work(). */
        qatomic_store_release(&w->flush_wanted, w->flush_wanted_bql);
        ht_worker_kick(dev);
        return HT_STATUS_BUSY;
    }
    done = qatomic_load_acquire(&w->flush_done);
    return (int32_t)((uint32_t)done - ticket) >= 0 ? HT_STATUS_OK :
                                                     HT_STATUS_BUSY;
}

static enum ht_status stats_message(HypertraceDevice *dev,
                                    struct ht_msg_stats *m, size_t size)
{
    struct ht_stats stats;
    uint32_t index;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    index = ldl_le_p(&m->stream);
    if (index == HT_STREAM_ANY) {
        ht_device_stats(dev, &stats);
    } else {
        HtStream *s = stream_lookup(dev, index);

        if (!s) {
            return HT_STATUS_NOENT;
        }
        ht_stream_stats(s, &stats);
    }
    stq_le_p(&m->stats.events, stats.events);
    stq_le_p(&m->stats.packets, stats.packets);
    stq_le_p(&m->stats.bytes, stats.bytes);
    stq_le_p(&m->stats.lost, stats.lost);
    stq_le_p(&m->stats.dropped, stats.dropped);
    stq_le_p(&m->stats.wakeups, stats.wakeups);
    stq_le_p(&m->stats.errors, stats.errors);
    return HT_STATUS_OK;
}

/* The worker only decreases the number: together they keep the limit. */
static enum ht_status discarded_message(HypertraceDevice *dev,
                                        struct ht_msg_discarded *m, size_t size)
{
    uint64_t count;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    count = ldq_le_p(&m->count);
    if (count >= HT_LOST_MAX) {
        return HT_STATUS_INVAL;
    }
    qatomic_add(&dev->discarded,
                MIN(count, HT_LOST_MAX - qatomic_read(&dev->discarded)));
    ht_worker_kick(dev);
    return HT_STATUS_OK;
}

void ht_control_takeover(HypertraceDevice *dev)
{
    dev->caps.epoch++;
    /* This changes the generation, for a driver that is reading. */
    virtio_notify_config(VIRTIO_DEVICE(dev));
    ht_streams_want_close_all(dev);
    ht_worker_kick(dev);
}

static enum ht_status dispatch(HypertraceDevice *dev, void *msg, size_t *size)
{
    struct ht_msg *h = msg;

    switch (lduw_le_p(&h->type)) {
    case HT_MSG_CLASS_REGISTER:
        return class_register(dev, msg, *size);
    case HT_MSG_CLASS_LIST:
        return class_list(dev, msg, size);
    case HT_MSG_STREAM_OPEN:
        return stream_open(dev, msg, *size);
    case HT_MSG_STREAM_CLOSE:
        return stream_close(dev, msg, *size);
    case HT_MSG_STREAM_FLUSH:
        return flush_message(dev, msg, *size);
    case HT_MSG_TIME_SYNC:
        if (*size != sizeof(struct ht_msg_time)) {
            return HT_STATUS_INVAL;
        }
        if (qatomic_read(&dev->resample)) {
            return HT_STATUS_BUSY;
        }
        ht_clock_exchange(&dev->clock, msg);
        return HT_STATUS_OK;
    case HT_MSG_STATS:
        return stats_message(dev, msg, *size);
    case HT_MSG_TAKEOVER:
        ht_control_takeover(dev);
        return HT_STATUS_OK;
    case HT_MSG_DISCARDED:
        return discarded_message(dev, msg, *size);
    case HT_MSG_ENABLED:
        return ht_enable_read(dev, msg, size);
    case HT_MSG_SETTINGS:
        return ht_enable_read_settings(dev, msg, size);
    default:
        return HT_STATUS_NOENT;
    }
}

static size_t execute(HypertraceDevice *dev, void *msg, size_t size)
{
    struct ht_msg *h = msg;
    enum ht_status status = HT_STATUS_INVAL;

    if (size < sizeof(*h) || size > HT_MESSAGE_MAX ||
        ldl_le_p(&h->size) != size) {
        ht_guest_error(dev, "control message of %zu bytes says %" PRIu32, size,
                       size < sizeof(*h) ? 0 : ldl_le_p(&h->size));
        if (size < sizeof(*h)) {
            memset(msg, 0, sizeof(*h));
        }
        size = sizeof(*h);
    } else if (!dev->worker.running) {
        status = HT_STATUS_IO;                  /* being unplugged */
    } else {
        status = dispatch(dev, msg, &size);
        trace_hypertrace_control(dev->trace->name, lduw_le_p(&h->type), size,
                                 status);
        if (status == HT_STATUS_INVAL || status == HT_STATUS_LIMIT) {
            ht_guest_error(dev, "%s of type %u",
                           status == HT_STATUS_INVAL ?
                           "malformed control message" :
                           "a limit is reached: control message",
                           lduw_le_p(&h->type));
        }
    }
    stl_le_p(&h->size, size);
    stl_le_p(&h->status, status);
    return size;
}

/* Test whether other messages may follow the message at @msg */
static bool registers(const struct ht_msg *h, size_t size)
{
    return size >= sizeof(*h) && lduw_le_p(&h->type) == HT_MSG_CLASS_REGISTER;
}

size_t ht_control_exchange(HypertraceDevice *dev, void *msgs, size_t size)
{
    int64_t end = get_clock() + HT_CONTROL_TURN_NS;
    struct ht_msg *h = msgs;
    size_t pos = 0, length;

    if (size > HT_MAILBOX_SIZE || !registers(h, size)) {
        return execute(dev, msgs, size);
    }
    while (pos < size) {
        h = msgs + pos;
        length = size - pos < sizeof(*h) ? 0 : ldl_le_p(&h->size);
        if (!registers(h, size - pos) || length < sizeof(*h) ||
            length > size - pos) {
            /* The position of the next message is not known. */
            ht_guest_error(dev, "at byte %zu of an exchange there is no"
                           " message that registers a class", pos);
            if (size - pos < sizeof(*h)) {
                return pos;
            }
            stl_le_p(&h->size, sizeof(*h));
            stl_le_p(&h->status, HT_STATUS_INVAL);
            return pos + sizeof(*h);
        }
        if (pos && get_clock() >= end) {
            stl_le_p(&h->status, HT_STATUS_BUSY);
        } else {
            /* The reply to a registration is not longer than the message. */
            execute(dev, h, length);
        }
        pos = ROUND_UP(pos + length, HT_MESSAGE_ALIGN);
    }
    return size;
}
