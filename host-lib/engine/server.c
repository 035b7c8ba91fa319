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
#include "hypertrace/control.h"
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
    HtClassTable *classes;
    Stream *streams;

    HtMutex messages;           /* serializes exchanges; all below */
    uint64_t instances;
    int64_t openings_ns;
    uint64_t discarded;         /* of producers without a stream, unreported */
    uint64_t guest_errors;
    HtEnable enable;
    HtControl control;
    unsigned log_tokens;
    int64_t logged_ns;

    HtServerClock clock;
};

/* HtControlOps.error.  Context: messages locked */
static void G_GNUC_PRINTF(2, 0) guest_error(void *opaque, const char *fmt,
                                            va_list ap)
{
    int64_t now = ht_now_ns();
    g_autofree char *text = NULL;
    HtServer *s = opaque;

    s->guest_errors++;
    if (now - s->logged_ns >= INT64_C(1000000000)) {
        s->log_tokens = MAX(s->log_tokens, 1);
    }
    if (!s->cfg.ops->log || !s->log_tokens) {
        return;
    }
    s->log_tokens--;
    s->logged_ns = now;
    text = g_strdup_vprintf(fmt, ap);
    s->cfg.ops->log(s->cfg.opaque, text);
}

void ht_server_time(HtServer *s, HtTimeMap *map)
{
    ht_server_clock_get(&s->clock, map);
}

/* Classes ------------------------------------------------------------------ */

/* HtEnableConfig.wants */
static bool wants(void *opaque, const HtClass *c)
{
    HtServer *s = opaque;

    return !s->cfg.ops->wants || s->cfg.ops->wants(s->cfg.opaque, c);
}

/* HtEnableConfig.write */
static void write_enable(void *opaque, const HtClass *c, bool on)
{
    HtServer *s = opaque;

    ht_atomic_set(s->cfg.enable + c->id, on ? HT_ENABLE_ON : 0);
}

/* HtEnableConfig.changed */
static void changed(void *opaque, uint32_t seq)
{
    HtServer *s = opaque;

    if (s->cfg.ops->changed) {
        s->cfg.ops->changed(s->cfg.opaque, seq);
    }
}

/* HtControlOps.added */
static void added(void *opaque, HtClass *c)
{
    HtServer *s = opaque;

    if (s->cfg.ops->added) {
        s->cfg.ops->added(s->cfg.opaque, c);
    }
}

bool ht_server_decide(HtServer *s)
{
    bool changed;

    ht_mutex_lock(&s->messages);
    changed = ht_enable_decide(&s->enable);
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

/* HtControlOps.open */
static enum ht_status stream_open(void *opaque, struct ht_msg_open *m,
                                  HtStreamInfo *info)
{
    HtServer *s = opaque;
    uint32_t index = ht_get_le32(&m->stream), first, last, i;

    if (ht_get_le64(&m->instance)) {
        return open_again(s, index, ht_get_le64(&m->instance));
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
            info->index = i;
            info->instance = ++s->instances;
            begin(s, st, info);
        }
        ht_mutex_unlock(&st->lock);
        if (free) {
            ht_put_le32(&m->stream, i);
            ht_put_le64(&m->instance, info->instance);
            return HT_STATUS_OK;
        }
    }
    return index == HT_STREAM_ANY ? HT_STATUS_LIMIT : HT_STATUS_EXIST;
}

/* HtControlOps.close */
static enum ht_status stream_close(void *opaque, const struct ht_msg_stream *m)
{
    HtServer *s = opaque;
    uint32_t index = ht_get_le32(&m->stream);
    uint64_t instance = ht_get_le64(&m->instance);
    Stream *st;

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

/* HtControlOps.flush */
static enum ht_status stream_flush(void *opaque, struct ht_msg_stream *m)
{
    HtServer *s = opaque;
    uint32_t index = ht_get_le32(&m->stream);
    uint64_t instance = ht_get_le64(&m->instance);

    if (index != HT_STREAM_ANY) {
        return instance ? flush_one(s, index, instance) : HT_STATUS_NOENT;
    }
    for (index = 0; index < s->cfg.streams; index++) {
        flush_one(s, index, 0);
    }
    return HT_STATUS_OK;
}

/* HtControlOps.discarded */
static void discarded(void *opaque, uint64_t count)
{
    HtServer *s = opaque;
    uint32_t i;

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
}

/* HtControlOps.stats.  Context: messages locked */
static bool get_stats(void *opaque, uint32_t stream, struct ht_stats *stats)
{
    HtServer *s = opaque;
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

/* HtControlOps.sync */
static enum ht_status time_sync(void *opaque, struct ht_msg_time *m)
{
    HtServer *s = opaque;

    ht_server_clock_sync(&s->clock, m);
    return HT_STATUS_OK;
}

/* HtControlOps.takeover */
static void takeover(void *opaque)
{
    ht_server_close_all(opaque);
}

size_t ht_server_exchange(HtServer *s, void *msgs, size_t size)
{
    size_t replied;

    ht_mutex_lock(&s->messages);
    replied = ht_control_exchange(&s->control, msgs, size);
    ht_mutex_unlock(&s->messages);
    return replied;
}

static const HtControlOps control_ops = {
    .added = added,
    .open = stream_open,
    .close = stream_close,
    .flush = stream_flush,
    .stats = get_stats,
    .discarded = discarded,
    .sync = time_sync,
    .takeover = takeover,
    .error = guest_error,
};

HtServer *ht_server_new(const HtServerConfig *cfg)
{
    HtServer *s = g_new0(HtServer, 1);
    uint32_t i;

    s->cfg = *cfg;
    s->classes = ht_class_table_new();
    if (cfg->class_bytes) {
        ht_class_table_set_limit(s->classes, cfg->class_bytes);
    }
    ht_enable_init(&s->enable, &(HtEnableConfig){
        .classes = s->classes,
        .wants = wants,
        .write = write_enable,
        .changed = changed,
        .opaque = s,
    });
    s->enable.settings = g_strdup(cfg->settings);
    s->control = (HtControl){
        .classes = s->classes,
        .enable = &s->enable,
        .ops = &control_ops,
        .opaque = s,
    };
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
    ht_enable_destroy(&s->enable);
    g_free(s);
}
