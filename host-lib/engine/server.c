/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: serve the control messages and the streams of one guest
 *
 * HtServer.messages is the lock of the control context and of the worker
 * context of streams.h.  Functions that only consume, report, arm or disarm do
 * not take this lock.  They take a stream's lock; those that consume also take
 * the clock's.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/control.h"
#include "hypertrace/guest-clock.h"
#include "hypertrace/server.h"
#include "hypertrace/streams.h"

struct HtServer {
    HtServerConfig cfg;
    HtClassTable *classes;
    HtStreams streams;
    HtGuestClock clock;

    /* serializes the guest's requests; protects the members below */
    HtMutex messages;
    uint64_t instances;
    HtEnable enable;
    HtControl control;
    unsigned log_tokens;
    int64_t logged_ns;
};

/* HtControlOps.error.  Context: HtServer.messages is held */
static void G_GNUC_PRINTF(2, 0) guest_error(void *opaque, const char *fmt,
                                            va_list ap)
{
    int64_t now = ht_now_ns();
    g_autofree char *text = NULL;
    HtServer *s = opaque;

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
    unsigned version = 0;

    ht_guest_clock_sample(&s->clock, true);
    ht_guest_clock_copy(&s->clock, map, &version, false);
}

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

static HtServer *server_of(const HtStream *s)
{
    return s->all->cfg.opaque;
}

/* HtDeliver */
static void deliver(void *opaque, const HtRun *run)
{
    HtServer *s = server_of(opaque);

    s->cfg.ops->deliver(s->cfg.opaque, run);
}

/* HtStreamsConfig.clock */
static void update_clock(HtStream *st)
{
    ht_guest_clock_copy(&server_of(st)->clock, &st->consumer.time,
                        &st->time_version, true);
}

/* HtStreamsConfig.opening */
static void opening(HtStream *st)
{
    HtServer *s = server_of(st);

    if (s->cfg.ops->opened) {
        s->cfg.ops->opened(s->cfg.opaque, &st->next);
    }
}

/* HtStreamsConfig.unreported */
static void unreported(void *opaque, uint64_t count)
{
    HtServer *s = opaque;

    s->cfg.ops->unreported(s->cfg.opaque, count);
}

/*
 * Call HtServerOps.take: the owner consumes the buffers that the guest has
 * handed over
 */
static size_t take(HtStream *st)
{
    HtServer *s = server_of(st);
    size_t done;

    ht_mutex_lock(&st->lock);
    ht_stream_begin(st);
    done = s->cfg.ops->take(s->cfg.opaque, st->index, &st->consumer);
    st->consumer.wakeups += done != 0;
    ht_stream_end(st);
    ht_mutex_unlock(&st->lock);
    return done;
}

/* HtStreamsConfig.consume */
static size_t consume(HtStream *st, bool force)
{
    return server_of(st)->cfg.ops->take ? take(st) :
           ht_stream_consume(st, 1, force);
}

size_t ht_server_consume(HtServer *s, uint32_t stream, size_t most)
{
    HtStream *st = &s->streams.stream[stream];

    if (s->cfg.ops->take) {
        return take(st);
    }
    return ht_stream_phase(st) == HT_PHASE_OPEN ?
           ht_stream_consume(st, most, true) : 0;
}

void ht_server_tell(HtServer *s)
{
    ht_streams_tell(&s->streams);
}

bool ht_server_arm(HtServer *s, bool eager)
{
    return ht_streams_arm(&s->streams, eager);
}

void ht_server_disarm(HtServer *s)
{
    ht_streams_disarm(&s->streams);
}

uint64_t ht_server_close(HtServer *s, uint32_t stream)
{
    uint64_t lost;

    ht_mutex_lock(&s->messages);
    lost = ht_streams_close_one(&s->streams.stream[stream]);
    ht_mutex_unlock(&s->messages);
    return lost;
}

void ht_server_close_all(HtServer *s)
{
    ht_mutex_lock(&s->messages);
    ht_streams_want_close_all(&s->streams);
    ht_mutex_unlock(&s->messages);
}

unsigned ht_server_leave(HtServer *s)
{
    unsigned n;

    ht_mutex_lock(&s->messages);
    n = ht_streams_leave(&s->streams);
    ht_mutex_unlock(&s->messages);
    return n;
}

bool ht_server_stats(HtServer *s, uint32_t stream, struct ht_stats *stats)
{
    return ht_control_stats(&s->control, stream, stats);
}

const HtClassTable *ht_server_classes(const HtServer *s)
{
    return s->classes;
}

const HtConsumer *ht_server_consumer(const HtServer *s, uint32_t stream)
{
    return &s->streams.stream[stream].consumer;
}

void ht_server_lock(HtServer *s, uint32_t stream)
{
    ht_mutex_lock(&s->streams.stream[stream].lock);
}

void ht_server_unlock(HtServer *s, uint32_t stream)
{
    ht_mutex_unlock(&s->streams.stream[stream].lock);
}

/* HtControlOps.sync */
static enum ht_status time_sync(void *opaque, struct ht_msg_time *m)
{
    HtServer *s = opaque;

    ht_guest_clock_sync(&s->clock, m);
    return HT_STATUS_OK;
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
    .sync = time_sync,
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
    s->control = (HtControl){
        .classes = s->classes,
        .enable = &s->enable,
        .streams = &s->streams,
        .ops = &control_ops,
        .opaque = s,
    };
    s->log_tokens = HT_SERVER_LOG_BURST;
    ht_mutex_init(&s->messages);
    ht_guest_clock_init(&s->clock, cfg->hz, cfg->ppm, HT_GUEST_CLOCK_MEASURE |
                        (cfg->future ? HT_GUEST_CLOCK_FUTURE : 0));
    ht_guest_clock_set_counter(&s->clock, cfg->ops->counter, cfg->opaque, 0);
    ht_streams_init(&s->streams, &(HtStreamsConfig){
        .count = cfg->streams,
        .consumer = {
            .classes = s->classes,
            .packet_size = cfg->packet_size,
            .packets = cfg->packets,
            .overwrite = cfg->mode == HT_MODE_OVERWRITE,
            .deliver = deliver,
        },
        .opening_ns = cfg->opening_ns,
        .instances = &s->instances,
        .inline_work = true,
        .consume = consume,
        .clock = update_clock,
        .opening = opening,
        .unreported = cfg->ops->unreported ? unreported : NULL,
        .opaque = s,
    });
    for (i = 0; i < cfg->streams; i++) {
        ht_stream_set_ring(&s->streams.stream[i], cfg->rings[i]);
        if (!cfg->inherits) {
            ht_stream_close_ring(&s->streams.stream[i]);
        }
    }
    s->cfg.rings = NULL;
    return s;
}

bool ht_server_inherit_classes(HtServer *s, const void *data, size_t size,
                               char **why)
{
    uint32_t id;

    if (!ht_class_table_load(s->classes, data, size, why)) {
        return false;
    }
    ht_mutex_lock(&s->messages);
    ht_enable_decide(&s->enable);
    for (id = 1; id <= s->enable.count; id++) {
        if (!s->enable.on[id]) {
            /*
             * ht_enable_decide() does not write the byte of a class that stays
             * off, but the previous host may have switched the class on.
             */
            ht_atomic_set(s->cfg.enable + id, 0);
        }
    }
    ht_mutex_unlock(&s->messages);
    return true;
}

void ht_server_inherit_discarded(HtServer *s, uint64_t count)
{
    ht_mutex_lock(&s->messages);
    ht_streams_discarded(&s->streams, count);
    ht_mutex_unlock(&s->messages);
}

void ht_server_inherit_clock(HtServer *s, const HtTimeSegment *seg)
{
    ht_guest_clock_load(&s->clock, seg, 1, 0, true);
}

unsigned ht_server_inherit(HtServer *s, const HtInherited *in, unsigned n)
{
    unsigned done = 0, i;

    ht_mutex_lock(&s->messages);
    for (i = 0; i < n; i++) {
        if (ht_stream_inherit(&s->streams.stream[in[i].info.index], &in[i])) {
            /*
             * The guest may write a lower instance to its ring at any time:
             * consider the directory's instance, too.
             */
            s->instances = MAX(s->instances, in[i].info.instance);
            done++;
        }
    }
    for (i = 0; i < s->cfg.streams; i++) {
        HtStream *st = &s->streams.stream[i];
        uint64_t instance = ht_le64(ht_atomic_read(&st->ring->host.instance));

        if (instance <= UINT64_MAX / 2) {
            s->instances = MAX(s->instances, instance);
        }
        if (ht_stream_phase(st) == HT_PHASE_FREE) {
            ht_stream_close_ring(st);
        }
    }
    ht_mutex_unlock(&s->messages);
    return done;
}

void ht_server_free(HtServer *s)
{
    if (!s) {
        return;
    }
    ht_streams_destroy(&s->streams);
    ht_class_table_free(s->classes);
    ht_mutex_destroy(&s->messages);
    ht_guest_clock_destroy(&s->clock);
    ht_enable_destroy(&s->enable);
    g_free(s);
}
