/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: execute the control messages of one guest
 */
#include "hypertrace/base.h"
#include "hypertrace/consumer.h"
#include "hypertrace/control.h"
#include "hypertrace/thread.h"

void ht_caps_swap(struct ht_caps *to, const struct ht_caps *from)
{
    *to = (struct ht_caps) {
        .magic = ht_le32(from->magic),
        .version = ht_le32(from->version),
        .channel = ht_le32(from->channel),
        .mode = ht_le32(from->mode),
        .ring_offset = ht_le64(from->ring_offset),
        .streams = ht_le32(from->streams),
        .packet_size = ht_le32(from->packet_size),
        .packets = ht_le32(from->packets),
        .batch = ht_le32(from->batch),
        .flush_ms = ht_le32(from->flush_ms),
        .max_gap = ht_le32(from->max_gap),
        .clock_hz = ht_le64(from->clock_hz),
        .epoch = ht_le64(from->epoch),
        .ring_stride = ht_le64(from->ring_stride),
        .doorbell_offset = ht_le32(from->doorbell_offset),
        .doorbell_stride = ht_le32(from->doorbell_stride),
        .mailbox_offset = ht_le32(from->mailbox_offset),
        .mailbox_size = ht_le32(from->mailbox_size),
        .max_classes = ht_le32(from->max_classes),
        .max_message = ht_le32(from->max_message),
        .enable_offset = ht_le64(from->enable_offset),
        .enable_seq = ht_le32(from->enable_seq),
        .counter = ht_le32(from->counter),
    };
}

static void G_GNUC_PRINTF(2, 3) guest_error(HtControl *c, const char *fmt, ...)
{
    va_list ap;

    ht_atomic_add(&c->errors, 1);
    va_start(ap, fmt);
    c->ops->error(c->opaque, fmt, ap);
    va_end(ap);
}

static enum ht_status class_register(HtControl *c, struct ht_msg_class *m,
                                     size_t size)
{
    enum ht_status status;
    HtClass *class;
    bool added;

    status = ht_class_table_add(c->classes, m, size, &added, &class);
    if (status != HT_STATUS_OK) {
        return status;
    }
    if (added) {
        c->ops->added(c->opaque, class);
    }
    ht_put_le32(&m->id, class->id);
    m->on = ht_enable_register(c->enable, class);
    return HT_STATUS_OK;
}

static enum ht_status class_list(HtControl *c, struct ht_msg_class *m,
                                 size_t *size)
{
    HtClass *class = NULL;
    uint32_t index;

    if (*size < sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    index = ht_get_le32(&m->index);
    if (index < HT_CLASSES_MAX) {
        class = ht_class_table_get(c->classes, index + 1);
    }
    if (!class) {
        return HT_STATUS_NOENT;
    }
    *size = ht_class_encode(class, m);
    return HT_STATUS_OK;
}

static enum ht_status read_enabled(const HtEnable *e, struct ht_msg_enabled *m,
                                   size_t *size)
{
    uint32_t first, count, i;

    if (*size < sizeof(*m) || ht_get_le32(&m->count) != *size - sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    first = ht_get_le32(&m->first);
    count = first > e->count ? 0 :
            MIN(ht_get_le32(&m->count), e->count + 1 - first);
    for (i = 0; i < count; i++) {
        m->on[i] = e->on[first + i] ? HT_ENABLE_ON : 0;
    }
    ht_put_le32(&m->count, count);
    ht_put_le32(&m->seq, e->seq);
    *size = sizeof(*m) + count;
    return HT_STATUS_OK;
}

static enum ht_status read_settings(const HtEnable *e,
                                    struct ht_msg_settings *m, size_t *size)
{
    const char *text = e->settings ? e->settings : "";
    size_t length = strlen(text);

    if (*size < sizeof(*m) || ht_get_le32(&m->count) != *size - sizeof(*m) ||
        ht_get_le32(&m->count) < length) {
        return HT_STATUS_INVAL;
    }
    memcpy(m->text, text, length);
    ht_put_le32(&m->count, length);
    ht_put_le32(&m->seq, e->seq);
    *size = sizeof(*m) + length;
    return HT_STATUS_OK;
}

static enum ht_status stream_open(HtControl *c, struct ht_msg_open *m,
                                  size_t size)
{
    HtStreamInfo info = { };

    if (size != sizeof(*m) || !ht_stream_name_copy(info.name, m->name)) {
        return HT_STATUS_INVAL;
    }
    info.vcpu = MAX((int32_t)ht_get_le32(&m->vcpu), -1);
    return c->ops->open ? c->ops->open(c->opaque, m, &info) :
                          ht_streams_open(c->streams, m, &info);
}

bool ht_control_stats(const HtControl *c, uint32_t stream,
                      struct ht_stats *stats)
{
    if (stream == HT_STREAM_ANY) {
        ht_streams_stats(c->streams, stats);
        stats->errors += ht_atomic_read(&c->errors);
    } else if (stream < c->streams->cfg.count) {
        ht_stream_stats(&c->streams->stream[stream], stats);
    } else {
        return false;
    }
    return true;
}

static enum ht_status stats_message(HtControl *c, struct ht_msg_stats *m,
                                    size_t size)
{
    struct ht_stats stats;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    if (!ht_control_stats(c, ht_get_le32(&m->stream), &stats)) {
        return HT_STATUS_NOENT;
    }
    ht_put_le64(&m->stats.events, stats.events);
    ht_put_le64(&m->stats.packets, stats.packets);
    ht_put_le64(&m->stats.bytes, stats.bytes);
    ht_put_le64(&m->stats.lost, stats.lost);
    ht_put_le64(&m->stats.dropped, stats.dropped);
    ht_put_le64(&m->stats.wakeups, stats.wakeups);
    ht_put_le64(&m->stats.errors, stats.errors);
    return HT_STATUS_OK;
}

static enum ht_status discarded_message(HtControl *c,
                                        const struct ht_msg_discarded *m,
                                        size_t size)
{
    if (size != sizeof(*m) || ht_get_le64(&m->count) >= HT_LOST_MAX) {
        return HT_STATUS_INVAL;
    }
    ht_streams_discarded(c->streams, ht_get_le64(&m->count));
    return HT_STATUS_OK;
}

static enum ht_status dispatch(HtControl *c, void *msg, size_t *size)
{
    const struct ht_msg *h = msg;
    const bool stream = *size == sizeof(struct ht_msg_stream);

    switch (ht_get_le16(&h->type)) {
    case HT_MSG_CLASS_REGISTER:
        return class_register(c, msg, *size);
    case HT_MSG_CLASS_LIST:
        return class_list(c, msg, size);
    case HT_MSG_STREAM_OPEN:
        return stream_open(c, msg, *size);
    case HT_MSG_STREAM_CLOSE:
        return stream ? ht_streams_close(c->streams, msg) : HT_STATUS_INVAL;
    case HT_MSG_STREAM_FLUSH:
        return stream ? ht_streams_flush(c->streams, msg) : HT_STATUS_INVAL;
    case HT_MSG_TIME_SYNC:
        return *size == sizeof(struct ht_msg_time) ?
               c->ops->sync(c->opaque, msg) : HT_STATUS_INVAL;
    case HT_MSG_STATS:
        return stats_message(c, msg, *size);
    case HT_MSG_TAKEOVER:
        if (c->ops->takeover) {
            c->ops->takeover(c->opaque);
        } else {
            ht_streams_want_close_all(c->streams);
        }
        return HT_STATUS_OK;
    case HT_MSG_DISCARDED:
        return discarded_message(c, msg, *size);
    case HT_MSG_ENABLED:
        return read_enabled(c->enable, msg, size);
    case HT_MSG_SETTINGS:
        return read_settings(c->enable, msg, size);
    default:
        return HT_STATUS_NOENT;
    }
}

static size_t execute(HtControl *c, void *msg, size_t size)
{
    struct ht_msg *h = msg;
    enum ht_status status = HT_STATUS_INVAL;

    if (size < sizeof(*h) || size > HT_MESSAGE_MAX ||
        ht_get_le32(&h->size) != size) {
        guest_error(c, "control message of %zu bytes says %" PRIu32, size,
                    size < sizeof(*h) ? 0 : ht_get_le32(&h->size));
        if (size < sizeof(*h)) {
            memset(msg, 0, sizeof(*h));
        }
        size = sizeof(*h);
    } else if (c->gone) {
        status = HT_STATUS_IO;
    } else {
        status = dispatch(c, msg, &size);
        if (c->ops->done) {
            c->ops->done(c->opaque, ht_get_le16(&h->type), size, status);
        }
        if (status == HT_STATUS_INVAL || status == HT_STATUS_LIMIT) {
            guest_error(c, "%s of type %u", status == HT_STATUS_INVAL ?
                        "malformed control message" :
                        "a limit is reached: control message",
                        ht_get_le16(&h->type));
        }
    }
    ht_put_le32(&h->size, size);
    ht_put_le32(&h->status, status);
    return size;
}

/*
 * Test whether the message at @h registers a class; an exchange may have
 * several such messages
 */
static bool registers(const struct ht_msg *h, size_t size)
{
    return size >= sizeof(*h) &&
           ht_get_le16(&h->type) == HT_MSG_CLASS_REGISTER;
}

size_t ht_control_exchange(HtControl *c, void *msgs, size_t size)
{
    uint8_t *bytes = msgs;
    size_t pos = 0, length;
    int64_t end;

    if (size > HT_MAILBOX_SIZE || !registers(msgs, size)) {
        return execute(c, msgs, size);
    }
    end = ht_now_ns() + HT_CONTROL_TURN_NS;
    while (pos < size) {
        struct ht_msg *h = (struct ht_msg *)(bytes + pos);

        length = size - pos < sizeof(*h) ? 0 : ht_get_le32(&h->size);
        if (!registers(h, size - pos) || length < sizeof(*h) ||
            length > size - pos) {
            /*
             * The message at @pos registers no class, or its size is not valid.
             */
            guest_error(c, "at byte %zu of an exchange there is no message"
                        " that registers a class", pos);
            if (size - pos < sizeof(*h)) {
                return pos;
            }
            ht_put_le32(&h->size, sizeof(*h));
            ht_put_le32(&h->status, HT_STATUS_INVAL);
            return pos + sizeof(*h);
        }
        if (pos && ht_now_ns() >= end) {
            ht_put_le32(&h->status, HT_STATUS_BUSY);
        } else {
            /*
             * The reply to a registration is not longer than the message: the
             * next message is not overwritten.
             */
            execute(c, h, length);
        }
        pos = HT_ROUND_UP(pos + length, HT_MESSAGE_ALIGN);
    }
    return size;
}
