/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: serve the control messages and the streams of one guest
 *
 * The guest is hostile: a message is a private copy, each word of a ring is
 * read once by the consumer, and nothing that was written to the enable bytes
 * or to the host's lines is read back.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/server.h"
#include "hypertrace/thread.h"
#include "sanitizer.h"
#include "server-clock.h"

typedef struct Stream {
    uint32_t index;
    bool live;                  /* not FREE; atomic, spares polls the lock */
    HtMutex lock;               /* all below */
    HtConsumer consumer;
    struct ht_ring_control *ring;
    struct ht_stats closed;     /* sums of closed instances */
    unsigned time_version;
    bool stop_told;             /* the guest knows that it was stopped */
} Stream;

struct HtServer {
    HtServerConfig cfg;
    char *settings;
    HtClassTable *classes;
    Stream *streams;

    HtMutex messages;           /* serializes exchanges; all below */
    uint64_t instances;
    int64_t openings_ns;
    uint64_t discarded;         /* of producers without a stream, unreported */
    uint64_t guest_errors;
    uint32_t enable_seq;
    uint32_t decided;           /* classes with an enable byte */
    bool on[HT_CLASSES_MAX + 1];
    unsigned log_tokens;
    int64_t logged_ns;

    HtServerClock clock;
};

/* Context: messages locked */
static void G_GNUC_PRINTF(2, 3) guest_error(HtServer *s, const char *fmt, ...)
{
    int64_t now = ht_now_ns();
    g_autofree char *text = NULL;
    va_list ap;

    s->guest_errors++;
    if (now - s->logged_ns >= INT64_C(1000000000)) {
        s->log_tokens = MAX(s->log_tokens, 1);
    }
    if (!s->cfg.ops->log || !s->log_tokens) {
        return;
    }
    s->log_tokens--;
    s->logged_ns = now;
    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    s->cfg.ops->log(s->cfg.opaque, text);
}

void ht_server_time(HtServer *s, HtTimeMap *map)
{
    ht_server_clock_get(&s->clock, map);
}

/* Classes ------------------------------------------------------------------ */

/* Decide about one class; returns true if its byte changed */
static bool decide(HtServer *s, uint32_t id)
{
    const HtClass *c = ht_class_table_get(s->classes, id);
    bool on = !s->cfg.ops->wants || s->cfg.ops->wants(s->cfg.opaque, c);

    if (s->on[id] == on) {
        return false;
    }
    s->on[id] = on;
    ht_atomic_set(s->cfg.enable + id, on ? HT_ENABLE_ON : 0);
    return true;
}

static void tell_changed(HtServer *s)
{
    s->enable_seq++;
    if (s->cfg.ops->changed) {
        s->cfg.ops->changed(s->cfg.opaque, s->enable_seq);
    }
}

/* Context: messages locked */
static enum ht_status class_register(HtServer *s, struct ht_msg_class *m,
                                     size_t size)
{
    enum ht_status status;
    HtClass *c;
    bool added;

    status = ht_class_table_add(s->classes, m, size, &added, &c);
    if (status != HT_STATUS_OK) {
        return status;
    }
    if (added && s->cfg.ops->added) {
        s->cfg.ops->added(s->cfg.opaque, c);
    }
    if (decide(s, c->id) && c->id <= s->decided) {
        tell_changed(s);        /* others may have registered it, too */
    }
    s->decided = MAX(s->decided, c->id);
    ht_put_le32(&m->id, c->id);
    m->on = s->on[c->id] ? HT_ENABLE_ON : 0;
    return HT_STATUS_OK;
}

static enum ht_status class_list(HtServer *s, struct ht_msg_class *m,
                                 size_t *size)
{
    uint32_t index;
    HtClass *c;

    if (*size < sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    index = ht_get_le32(&m->index);
    c = index < HT_CLASSES_MAX ? ht_class_table_get(s->classes, index + 1) :
                                 NULL;
    if (!c) {
        return HT_STATUS_NOENT;
    }
    *size = ht_class_encode(c, m);
    return HT_STATUS_OK;
}

/* Context: messages locked */
static enum ht_status read_enabled(HtServer *s, struct ht_msg_enabled *m,
                                   size_t *size)
{
    uint32_t first, count, i;

    if (*size < sizeof(*m) || ht_get_le32(&m->count) != *size - sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    first = ht_get_le32(&m->first);
    count = first > s->decided ? 0 :
            MIN(ht_get_le32(&m->count), s->decided + 1 - first);
    for (i = 0; i < count; i++) {
        m->on[i] = s->on[first + i] ? HT_ENABLE_ON : 0;
    }
    ht_put_le32(&m->count, count);
    ht_put_le32(&m->seq, s->enable_seq);
    *size = sizeof(*m) + count;
    return HT_STATUS_OK;
}

static enum ht_status read_settings(HtServer *s, struct ht_msg_settings *m,
                                    size_t *size)
{
    const char *text = s->settings ? s->settings : "";
    size_t length = strlen(text);

    if (*size < sizeof(*m) || ht_get_le32(&m->count) != *size - sizeof(*m) ||
        ht_get_le32(&m->count) < length) {
        return HT_STATUS_INVAL;
    }
    memcpy(m->text, text, length);
    ht_put_le32(&m->count, length);
    ht_put_le32(&m->seq, s->enable_seq);
    *size = sizeof(*m) + length;
    return HT_STATUS_OK;
}

bool ht_server_decide(HtServer *s)
{
    bool changed = false;
    uint32_t id;

    ht_mutex_lock(&s->messages);
    for (id = 1; id <= s->decided; id++) {
        changed |= decide(s, id);
    }
    if (changed) {
        tell_changed(s);
    }
    ht_mutex_unlock(&s->messages);
    return changed;
}

/* Streams ------------------------------------------------------------------ */

static void set_state(Stream *st, enum ht_stream_state state)
{
    /* Pairs with the load of host.state in the producer's ht_is_closed(). */
    ht_atomic_store_release(&st->ring->host.state, ht_le32(state));
    if (state == HT_STREAM_CLOSED) {
        /*
         * A producer that emits nevertheless reaches the wake word at once,
         * finds its stream closed, and counts its events as discarded.  Pairs
         * with the load of host.wake in a commit.
         */
        ht_atomic_store_release(&st->ring->host.wake, ht_le64(0));
    }
}

static void add_stats(struct ht_stats *sum, const struct ht_stats *s)
{
    sum->events += s->events;
    sum->packets += s->packets;
    sum->bytes += s->bytes;
    sum->lost += s->lost;
    sum->dropped += s->dropped;
    sum->wakeups += s->wakeups;
    sum->errors += s->errors;
}

/* Add the counters of a stream's instance */
static void add_instance(struct ht_stats *sum, const HtConsumer *c)
{
    const struct ht_stats own = {
        .events = c->events,
        .packets = c->packets,
        .bytes = c->bytes,
        .lost = c->lost + c->others,
        .dropped = c->dropped,
        .wakeups = c->wakeups,
        .errors = c->errors,
    };

    add_stats(sum, &own);
}

/* The producer's own count, which can grow without a move of head */
static uint64_t ring_lost(Stream *st)
{
    return ht_le64(ht_atomic_read(&st->ring->guest.lost));
}

/* Context: the stream locked */
static size_t read_ring(HtServer *s, Stream *st, size_t most)
{
    const bool overwrite = s->cfg.mode == HT_MODE_OVERWRITE;
    size_t done;

    if (overwrite) {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    }
    done = ht_consumer_ring(&st->consumer, st->ring,
                            (uint8_t *)st->ring + HT_PACKETS_OFFSET, most);
    if (overwrite) {
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
    return done;
}

/* Context: the stream locked */
static size_t consume(HtServer *s, Stream *st, size_t most)
{
    HtConsumer *c = &st->consumer;
    size_t done;

    if (s->cfg.ops->take) {
        /* Buffers of a stopped stream are given back, too. */
        ht_server_clock_copy(&s->clock, &st->consumer, &st->time_version);
        done = s->cfg.ops->take(s->cfg.opaque, st->index, c);
    } else if (ht_consumer_pending(c, st->ring)) {
        ht_server_clock_copy(&s->clock, &st->consumer, &st->time_version);
        done = read_ring(s, st, most);
    } else {
        return 0;
    }
    c->wakeups += done != 0;
    if (c->open && c->stopped && !st->stop_told) {
        st->stop_told = true;
        set_state(st, HT_STREAM_STOPPED);
    }
    return done;
}

/* Consume at most one ring, so that a fast producer cannot hold us */
static void consume_ring(HtServer *s, Stream *st)
{
    const uint64_t most = (uint64_t)s->cfg.packet_size * s->cfg.packets;
    uint64_t done = 0;
    size_t n;

    do {
        n = consume(s, st, most - done);
        done += n;
    } while (n && !s->cfg.ops->take && done < most);
}

/* Context: the stream locked */
static void close_stream(HtServer *s, Stream *st, uint64_t lost)
{
    consume_ring(s, st);
    /* A takeover does not give a final count. */
    ht_consumer_close(&st->consumer, MAX(lost, ring_lost(st)), ht_now_ns());
    add_instance(&st->closed, &st->consumer);
    set_state(st, HT_STREAM_CLOSED);
    ht_atomic_set(&st->live, false);
}

static bool name_copy(char *dst, const uint8_t *src)
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

/* Take one opening from the budget; false if it is used up */
static bool take_opening(HtServer *s)
{
    int64_t now = ht_now_ns();
    int64_t burst = HT_SERVER_BURST(s->cfg.streams) * s->cfg.opening_ns;

    /* The budget is the time since @openings_ns, at most @burst. */
    s->openings_ns = MAX(s->openings_ns, now - burst);
    if (now - s->openings_ns < s->cfg.opening_ns) {
        return false;
    }
    s->openings_ns += s->cfg.opening_ns;
    return true;
}

/* Begin an instance.  Context: messages and the stream locked */
static void begin(HtServer *s, Stream *st, const HtStreamInfo *info)
{
    struct ht_ring_control *ring = st->ring;

    memset(&ring->guest, 0, sizeof(ring->guest));
    memset(&ring->host, 0, sizeof(ring->host));
    ring->host.wake = ht_le64(HT_WAKE_NEVER);
    ring->host.instance = ht_le64(info->instance);
    set_state(st, HT_STREAM_OPENED);
    ht_atomic_set(&st->live, true);
    st->stop_told = false;
    st->time_version = 0;
    if (s->cfg.ops->opened) {
        s->cfg.ops->opened(s->cfg.opaque, st->index);
    }
    ht_consumer_open(&st->consumer, info, ht_now_ns());
    ht_server_clock_copy(&s->clock, &st->consumer, &st->time_version);
    ht_consumer_discarded(&st->consumer, s->discarded);
    s->discarded = 0;
}

static enum ht_status open_again(HtServer *s, uint32_t index, uint64_t instance)
{
    enum ht_status status = HT_STATUS_NOENT;

    if (index < s->cfg.streams) {
        Stream *st = &s->streams[index];

        ht_mutex_lock(&st->lock);
        if (st->consumer.open && st->consumer.info.instance == instance) {
            status = HT_STATUS_OK;
        }
        ht_mutex_unlock(&st->lock);
    }
    return status;
}

/* Context: messages locked */
static enum ht_status stream_open(HtServer *s, struct ht_msg_open *m,
                                  size_t size)
{
    HtStreamInfo info = { };
    uint32_t index, first, last, i;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    index = ht_get_le32(&m->stream);
    if (ht_get_le64(&m->instance)) {
        return open_again(s, index, ht_get_le64(&m->instance));
    }
    if (!name_copy(info.name, m->name)) {
        return HT_STATUS_INVAL;
    }
    if (index != HT_STREAM_ANY && index >= s->cfg.streams) {
        return HT_STATUS_NOENT;
    }
    first = index == HT_STREAM_ANY ? 0 : index;
    last = index == HT_STREAM_ANY ? s->cfg.streams - 1 : index;
    for (i = first; i <= last; i++) {
        Stream *st = &s->streams[i];
        bool free;

        ht_mutex_lock(&st->lock);
        free = !st->consumer.open;
        if (free && s->cfg.opening_ns && !take_opening(s)) {
            ht_mutex_unlock(&st->lock);
            return HT_STATUS_BUSY;      /* the guest sends the message again */
        }
        if (free) {
            info.index = i;
            info.vcpu = MAX((int32_t)ht_get_le32(&m->vcpu), -1);
            info.instance = ++s->instances;
            begin(s, st, &info);
        }
        ht_mutex_unlock(&st->lock);
        if (free) {
            ht_put_le32(&m->stream, i);
            ht_put_le64(&m->instance, info.instance);
            return HT_STATUS_OK;
        }
    }
    return index == HT_STREAM_ANY ? HT_STATUS_LIMIT : HT_STATUS_EXIST;
}

static enum ht_status stream_close(HtServer *s, struct ht_msg_stream *m,
                                   size_t size)
{
    uint64_t instance;
    uint32_t index;
    Stream *st;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    index = ht_get_le32(&m->stream);
    instance = ht_get_le64(&m->instance);
    if (index >= s->cfg.streams || instance == 0) {
        return HT_STATUS_NOENT;
    }
    st = &s->streams[index];
    ht_mutex_lock(&st->lock);
    if (st->consumer.info.instance != instance) {
        ht_mutex_unlock(&st->lock);
        return HT_STATUS_NOENT;
    }
    if (st->consumer.open) {
        close_stream(s, st, ht_get_le64(&m->lost));
    }
    ht_mutex_unlock(&st->lock);
    return HT_STATUS_OK;
}

static enum ht_status flush_one(HtServer *s, uint32_t index, uint64_t instance)
{
    enum ht_status status = HT_STATUS_NOENT;
    Stream *st;

    if (index >= s->cfg.streams) {
        return status;
    }
    st = &s->streams[index];
    ht_mutex_lock(&st->lock);
    if (st->consumer.open &&
        (!instance || st->consumer.info.instance == instance)) {
        consume_ring(s, st);
        status = st->consumer.stopped ? HT_STATUS_STOPPED : HT_STATUS_OK;
    }
    ht_mutex_unlock(&st->lock);
    return status;
}

static enum ht_status stream_flush(HtServer *s, struct ht_msg_stream *m,
                                   size_t size)
{
    uint64_t instance;
    uint32_t index;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    index = ht_get_le32(&m->stream);
    instance = ht_get_le64(&m->instance);
    if (index != HT_STREAM_ANY) {
        return instance ? flush_one(s, index, instance) : HT_STATUS_NOENT;
    }
    for (index = 0; index < s->cfg.streams; index++) {
        flush_one(s, index, 0);
    }
    return HT_STATUS_OK;
}

/* Context: messages locked */
static enum ht_status discarded_message(HtServer *s,
                                        struct ht_msg_discarded *m,
                                        size_t size)
{
    uint64_t count;
    uint32_t i;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    count = ht_get_le64(&m->count);
    if (count >= HT_LOST_MAX) {
        return HT_STATUS_INVAL;
    }
    s->discarded += MIN(count, HT_LOST_MAX - s->discarded);
    /* Any open stream reports them; else the next stream that is opened. */
    for (i = 0; i < s->cfg.streams && s->discarded; i++) {
        Stream *st = &s->streams[i];

        ht_mutex_lock(&st->lock);
        if (st->consumer.open) {
            ht_consumer_discarded(&st->consumer, s->discarded);
            s->discarded = 0;
        }
        ht_mutex_unlock(&st->lock);
    }
    return HT_STATUS_OK;
}

/* Context: messages locked */
static bool get_stats(HtServer *s, uint32_t stream, struct ht_stats *stats)
{
    const bool all = stream == HT_STREAM_ANY;
    uint32_t i;

    memset(stats, 0, sizeof(*stats));
    if (!all && stream >= s->cfg.streams) {
        return false;
    }
    if (all) {
        stats->lost = s->discarded;
        stats->errors = s->guest_errors;
    }
    for (i = all ? 0 : stream; i < (all ? s->cfg.streams : stream + 1); i++) {
        Stream *st = &s->streams[i];

        ht_mutex_lock(&st->lock);
        if (!all || st->consumer.open) {
            add_instance(stats, &st->consumer);
        }
        if (all) {
            add_stats(stats, &st->closed);
        }
        ht_mutex_unlock(&st->lock);
    }
    return true;
}

static enum ht_status stats_message(HtServer *s, struct ht_msg_stats *m,
                                    size_t size)
{
    struct ht_stats stats;

    if (size != sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    if (!get_stats(s, ht_get_le32(&m->stream), &stats)) {
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

size_t ht_server_consume(HtServer *s, uint32_t stream, size_t most)
{
    Stream *st = &s->streams[stream];
    size_t done;

    if (!s->cfg.ops->take && !ht_atomic_read(&st->live)) {
        return 0;
    }
    ht_mutex_lock(&st->lock);
    done = consume(s, st, most);
    ht_mutex_unlock(&st->lock);
    return done;
}

void ht_server_tell(HtServer *s, uint32_t stream)
{
    Stream *st = &s->streams[stream];

    if (!ht_atomic_read(&st->live)) {
        return;
    }
    ht_mutex_lock(&st->lock);
    if (st->consumer.open) {
        ht_consumer_tell(&st->consumer, ring_lost(st));
    }
    ht_mutex_unlock(&st->lock);
}

bool ht_server_arm(HtServer *s, uint32_t stream, bool eager)
{
    Stream *st = &s->streams[stream];
    bool pending;

    ht_mutex_lock(&st->lock);
    pending = ht_consumer_arm(&st->consumer, st->ring, eager);
    ht_mutex_unlock(&st->lock);
    return pending;
}

void ht_server_disarm(HtServer *s)
{
    uint32_t i;

    for (i = 0; i < s->cfg.streams; i++) {
        Stream *st = &s->streams[i];

        ht_mutex_lock(&st->lock);
        ht_consumer_disarm(&st->consumer, st->ring);
        ht_mutex_unlock(&st->lock);
    }
}

uint64_t ht_server_close(HtServer *s, uint32_t stream)
{
    Stream *st = &s->streams[stream];
    uint64_t lost = 0;

    ht_mutex_lock(&st->lock);
    if (st->consumer.open) {
        close_stream(s, st, 0);
        lost = st->consumer.lost;
    }
    ht_mutex_unlock(&st->lock);
    return lost;
}

void ht_server_close_all(HtServer *s)
{
    uint32_t i;

    for (i = 0; i < s->cfg.streams; i++) {
        ht_server_close(s, i);
    }
}

bool ht_server_stats(HtServer *s, uint32_t stream, struct ht_stats *stats)
{
    bool found;

    ht_mutex_lock(&s->messages);
    found = get_stats(s, stream, stats);
    ht_mutex_unlock(&s->messages);
    return found;
}

const HtClassTable *ht_server_classes(const HtServer *s)
{
    return s->classes;
}

const HtConsumer *ht_server_consumer(const HtServer *s, uint32_t stream)
{
    return &s->streams[stream].consumer;
}

void ht_server_lock(HtServer *s, uint32_t stream)
{
    ht_mutex_lock(&s->streams[stream].lock);
}

void ht_server_unlock(HtServer *s, uint32_t stream)
{
    ht_mutex_unlock(&s->streams[stream].lock);
}

/* Messages ----------------------------------------------------------------- */

static enum ht_status dispatch(HtServer *s, void *msg, size_t *size)
{
    const struct ht_msg *h = msg;

    switch (ht_get_le16(&h->type)) {
    case HT_MSG_CLASS_REGISTER:
        return class_register(s, msg, *size);
    case HT_MSG_CLASS_LIST:
        return class_list(s, msg, size);
    case HT_MSG_STREAM_OPEN:
        return stream_open(s, msg, *size);
    case HT_MSG_STREAM_CLOSE:
        return stream_close(s, msg, *size);
    case HT_MSG_STREAM_FLUSH:
        return stream_flush(s, msg, *size);
    case HT_MSG_TIME_SYNC:
        return ht_server_clock_sync(&s->clock, msg, *size);
    case HT_MSG_STATS:
        return stats_message(s, msg, *size);
    case HT_MSG_TAKEOVER:
        ht_server_close_all(s);
        return HT_STATUS_OK;
    case HT_MSG_DISCARDED:
        return discarded_message(s, msg, *size);
    case HT_MSG_ENABLED:
        return read_enabled(s, msg, size);
    case HT_MSG_SETTINGS:
        return read_settings(s, msg, size);
    default:
        return HT_STATUS_NOENT;
    }
}

static size_t execute(HtServer *s, void *msg, size_t size)
{
    struct ht_msg *h = msg;
    enum ht_status status = HT_STATUS_INVAL;

    if (size < sizeof(*h) || size > HT_MESSAGE_MAX ||
        ht_get_le32(&h->size) != size) {
        guest_error(s, "control message of %zu bytes says %" PRIu32, size,
                    size < sizeof(*h) ? 0 : ht_get_le32(&h->size));
        if (size < sizeof(*h)) {
            memset(msg, 0, sizeof(*h));
        }
        size = sizeof(*h);
    } else {
        status = dispatch(s, msg, &size);
        if (status == HT_STATUS_INVAL || status == HT_STATUS_LIMIT) {
            guest_error(s, "%s of type %u", status == HT_STATUS_INVAL ?
                        "malformed control message" :
                        "a limit is reached: control message",
                        ht_get_le16(&h->type));
        }
    }
    ht_put_le32(&h->size, size);
    ht_put_le32(&h->status, status);
    return size;
}

/* Test whether other messages may follow the message at @h */
static bool registers(const struct ht_msg *h, size_t size)
{
    return size >= sizeof(*h) &&
           ht_get_le16(&h->type) == HT_MSG_CLASS_REGISTER;
}

/*
 * Execute the registrations of one exchange in order; after HT_SERVER_TURN_NS,
 * answer the rest with BUSY.  Context: messages locked
 */
static size_t execute_all(HtServer *s, uint8_t *msgs, size_t size)
{
    int64_t end = ht_now_ns() + HT_SERVER_TURN_NS;
    size_t pos = 0, length;

    while (pos < size) {
        struct ht_msg *h = (struct ht_msg *)(msgs + pos);

        length = size - pos < sizeof(*h) ? 0 : ht_get_le32(&h->size);
        if (!registers(h, size - pos) || length < sizeof(*h) ||
            length > size - pos) {
            /* The position of the next message is not known. */
            guest_error(s, "at byte %zu of an exchange there is no message"
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
            /* The reply to a registration is not longer than the message. */
            execute(s, h, length);
        }
        pos = HT_ROUND_UP(pos + length, HT_MESSAGE_ALIGN);
    }
    return size;
}

size_t ht_server_exchange(HtServer *s, void *msgs, size_t size)
{
    size_t replied;

    ht_mutex_lock(&s->messages);
    if (size > HT_MAILBOX_SIZE || !registers(msgs, size)) {
        replied = execute(s, msgs, size);
    } else {
        replied = execute_all(s, msgs, size);
    }
    ht_mutex_unlock(&s->messages);
    return replied;
}

HtServer *ht_server_new(const HtServerConfig *cfg)
{
    HtServer *s = g_new0(HtServer, 1);
    uint32_t i;

    s->cfg = *cfg;
    s->settings = g_strdup(cfg->settings);
    s->classes = ht_class_table_new();
    if (cfg->class_bytes) {
        ht_class_table_set_limit(s->classes, cfg->class_bytes);
    }
    s->log_tokens = HT_SERVER_LOG_BURST;
    s->openings_ns = ht_now_ns() -
                     HT_SERVER_BURST(cfg->streams) * cfg->opening_ns;
    ht_mutex_init(&s->messages);
    ht_server_clock_init(&s->clock, cfg);
    s->streams = g_new0(Stream, cfg->streams);
    for (i = 0; i < cfg->streams; i++) {
        const HtConsumerConfig consumer = {
            .classes = s->classes,
            .packet_size = cfg->packet_size,
            .packets = cfg->packets,
            .overwrite = cfg->mode == HT_MODE_OVERWRITE,
            .deliver = cfg->ops->deliver,
            .opaque = cfg->opaque,
        };
        Stream *st = &s->streams[i];

        st->index = i;
        st->ring = cfg->rings[i];
        ht_mutex_init(&st->lock);
        ht_consumer_init(&st->consumer, &consumer);
        set_state(st, HT_STREAM_CLOSED);
    }
    s->cfg.rings = NULL;
    /*
     * The enable bytes of a previous host stay: producers that were switched
     * off now would not count the events that they discard.
     */
    return s;
}

void ht_server_free(HtServer *s)
{
    uint32_t i;

    if (!s) {
        return;
    }
    for (i = 0; i < s->cfg.streams; i++) {
        ht_consumer_destroy(&s->streams[i].consumer);
        ht_mutex_destroy(&s->streams[i].lock);
    }
    g_free(s->streams);
    ht_class_table_free(s->classes);
    ht_mutex_destroy(&s->messages);
    ht_server_clock_destroy(&s->clock);
    g_free(s->settings);
    g_free(s);
}
