/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: the loopback port, host side
 *
 * Does the work of hw/hypertrace/ without QEMU or a virtual machine, with the
 * same consumer and class table.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include <poll.h>
#include <sys/eventfd.h>
#include "loopback-host.h"

/* Maximum time of an event in the open packet of a quiet stream */
#define FLUSH_MS 10

/* Distance of two clock samples, which suffices for a test */
#define CALIBRATE_NS 2000000
#define SYNC_NS 100000000

static uint64_t host_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static void time_sample(struct ht_loopback *lb)
{
    uint64_t counter, before, after;

    before = host_ns();
    counter = ht_clock();
    after = host_ns();
    ht_time_map_sample(&lb->time, counter, (before + after) / 2,
                       (after - before) / 2 + 1);
    lb->last_sync_ns = after;
}

static void time_copy(struct ht_loopback *lb, HtTimeMap *map)
{
    pthread_mutex_lock(&lb->time_lock);
    if (host_ns() - lb->last_sync_ns > SYNC_NS) {
        time_sample(lb);
    }
    *map = lb->time;
    pthread_mutex_unlock(&lb->time_lock);
}

static void time_start(struct ht_loopback *lb)
{
    uint64_t ns0 = host_ns(), c0 = ht_clock(), ns, ticks;

    do {
        ns = host_ns() - ns0;
        ticks = ht_clock() - c0;
    } while (ns < CALIBRATE_NS);
    ht_time_map_init(&lb->time, MAX(ticks * 1000000000.0 / ns, 1000));
    time_sample(lb);
}

uint64_t ht_loopback_sum(const uint8_t *data, size_t size)
{
    uint64_t sum = size;

    while (size--) {
        sum = (sum << 7 | sum >> 57) + *data++;
    }
    return sum;
}

static void consume_buffers(struct ht_loopback *lb,
                            struct ht_loopback_stream *st)
{
    while (st->done != st->queued) {
        struct ht_loopback_buffer *b = &st->buffers[st->done % lb->cfg.queue];
        size_t size = b->head.to - b->head.from;

        memcpy(st->copy, b->data, size);
        if (ht_loopback_sum(st->copy, size) != b->sum) {
            g_error("loopback: a buffer was changed while under way");
        }
        ht_consumer_feed(&st->consumer, &b->head, st->copy, size);
        st->done++;
    }
}

static size_t consume_ring(struct ht_loopback *lb,
                           struct ht_loopback_stream *st)
{
    const bool overwrite = lb->cfg.mode == HT_MODE_OVERWRITE;
    size_t n;

    if (overwrite) {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    }
    n = ht_consumer_ring(&st->consumer, st->ring, st->packets, SIZE_MAX);
    if (overwrite) {
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
    return n;
}

size_t ht_loopback_consume(struct ht_loopback *lb, uint32_t stream)
{
    struct ht_loopback_stream *st = &lb->streams[stream];
    size_t n;

    pthread_mutex_lock(&st->lock);
    time_copy(lb, &st->consumer.time);
    if (lb->cfg.channel == HT_CHANNEL_VIRTIO) {
        n = st->queued - st->done;
        consume_buffers(lb, st);
    } else {
        n = consume_ring(lb, st);
    }
    st->consumer.wakeups += n != 0;
    pthread_mutex_unlock(&st->lock);
    return n;
}

/* Returns true if something was committed meanwhile */
static bool arm(struct ht_loopback *lb, uint32_t stream)
{
    struct ht_loopback_stream *st = &lb->streams[stream];
    bool pending;

    pthread_mutex_lock(&st->lock);
    pending = ht_consumer_arm(&st->consumer, st->ring, lb->cfg.eager);
    pthread_mutex_unlock(&st->lock);
    return pending;
}

static void disarm(struct ht_loopback *lb)
{
    uint32_t i;

    for (i = 0; i < lb->cfg.streams; i++) {
        struct ht_loopback_stream *st = &lb->streams[i];

        pthread_mutex_lock(&st->lock);
        ht_consumer_disarm(&st->consumer, st->ring);
        pthread_mutex_unlock(&st->lock);
    }
}

/* Poll all streams once; returns true if the thread should sleep */
static bool look(struct ht_loopback *lb)
{
    const bool armed = lb->cfg.channel == HT_CHANNEL_SHM;
    bool sleep = true;
    uint32_t i;

    for (i = 0; i < lb->cfg.streams; i++) {
        sleep &= ht_loopback_consume(lb, i) == 0;
    }
    for (i = 0; sleep && armed && i < lb->cfg.streams; i++) {
        sleep &= !arm(lb, i);
    }
    return sleep;
}

void ht_loopback_step(struct ht_loopback *lb)
{
    while (!look(lb)) {
        /* Poll again: there was something. */
    }
}

void ht_loopback_wake(struct ht_loopback *lb)
{
    uint64_t one = 1;

    if (lb->thread && write(lb->doorbell, &one, sizeof(one)) < 0) {
        g_error("loopback: doorbell: %s", g_strerror(errno));
    }
}

static gpointer host_thread(gpointer opaque)
{
    struct ht_loopback *lb = opaque;

    while (!ht_atomic_load_acquire(&lb->quit)) {
        struct pollfd p = { .fd = lb->doorbell, .events = POLLIN };
        uint64_t rung;

        if (!look(lb)) {
            if (lb->cfg.pace_us) {
                g_usleep(lb->cfg.pace_us);
            }
            continue;
        }
        if (poll(&p, 1, FLUSH_MS) > 0 &&
            read(lb->doorbell, &rung, sizeof(rung)) < 0) {
            g_error("loopback: doorbell: %s", g_strerror(errno));
        }
        if (lb->cfg.channel == HT_CHANNEL_SHM) {
            disarm(lb);
        }
    }
    return NULL;
}

void ht_loopback_start(struct ht_loopback *lb)
{
    time_start(lb);
    lb->doorbell = eventfd(0, EFD_CLOEXEC);
    if (lb->doorbell < 0) {
        g_error("loopback: eventfd: %s", g_strerror(errno));
    }
    if (lb->cfg.host == HT_LOOPBACK_THREAD) {
        lb->thread = g_thread_new("loopback", host_thread, lb);
    }
}

void ht_loopback_stop(struct ht_loopback *lb)
{
    if (lb->thread) {
        ht_atomic_store_release(&lb->quit, 1);
        ht_loopback_wake(lb);
        g_thread_join(lb->thread);
    }
    close(lb->doorbell);
}

static uint32_t register_class(struct ht_loopback *lb, struct ht_msg *msg)
{
    struct ht_msg_class *m = (struct ht_msg_class *)msg;
    uint32_t status;
    HtClass *c;
    bool added;

    status = ht_class_table_add(lb->classes, msg, msg->size, &added, &c);
    if (status != HT_STATUS_OK) {
        return status;
    }
    m->id = c->id;
    if (added) {
        ht_loopback_enable(lb, c->id, true);
    }
    m->on = lb->enable[c->id];
    if (lb->busy[c->id]++ < lb->cfg.busy_replies) {
        return HT_STATUS_BUSY;
    }
    return HT_STATUS_OK;
}

static uint32_t list_class(struct ht_loopback *lb, struct ht_msg *msg)
{
    struct ht_msg_class *m = (struct ht_msg_class *)msg;
    HtClass *c = ht_class_table_get(lb->classes, m->index + 1);

    if (!c) {
        return HT_STATUS_NOENT;
    }
    m->h.size = ht_class_encode(c, m);
    return HT_STATUS_OK;
}

static uint32_t read_enabled(struct ht_loopback *lb, struct ht_msg *msg)
{
    struct ht_msg_enabled *m = (struct ht_msg_enabled *)msg;
    uint32_t classes = ht_class_table_count(lb->classes) + 1;

    if (msg->size < sizeof(*m) || m->count != msg->size - sizeof(*m)) {
        return HT_STATUS_INVAL;
    }
    m->count = m->first < classes ? MIN(m->count, classes - m->first) : 0;
    memcpy(m->on, lb->enable + m->first, m->count);
    m->h.size = sizeof(*m) + m->count;
    return HT_STATUS_OK;
}

static void open_consumer(struct ht_loopback *lb, uint32_t stream,
                          const struct ht_msg_open *m)
{
    struct ht_loopback_stream *st = &lb->streams[stream];
    HtStreamInfo info = {
        .index = stream,
        .vcpu = m->vcpu,
        .instance = m->instance,
    };

    memcpy(info.name, m->name, HT_STREAM_NAME_MAX);
    memset(st->ring, 0, sizeof(*st->ring));
    st->ring->host.wake = HT_WAKE_NEVER;
    if (lb->cfg.channel != HT_CHANNEL_VIRTIO) {
        st->ring->host.instance = m->instance;
    }
    st->ring->host.state = HT_STREAM_OPENED;
    st->queued = 0;
    st->done = 0;
    ht_consumer_open(&st->consumer, &info, host_ns());
}

static uint32_t open_stream(struct ht_loopback *lb, struct ht_msg *msg)
{
    struct ht_msg_open *m = (struct ht_msg_open *)msg;
    const bool any = m->stream == HT_STREAM_ANY;
    uint32_t i;

    if (!any && m->stream >= lb->cfg.streams) {
        return HT_STATUS_NOENT;
    }
    for (i = any ? 0 : m->stream; i < lb->cfg.streams; i++) {
        struct ht_loopback_stream *st = &lb->streams[i];
        bool free;

        pthread_mutex_lock(&st->lock);
        free = !st->consumer.open;
        if (free) {
            m->stream = i;
            m->instance = ++lb->instances;
            open_consumer(lb, i, m);
        }
        pthread_mutex_unlock(&st->lock);
        if (free) {
            return HT_STATUS_OK;
        }
        if (!any) {
            return HT_STATUS_EXIST;
        }
    }
    return HT_STATUS_LIMIT;
}

static void close_stream(struct ht_loopback *lb, uint32_t stream, uint64_t lost)
{
    struct ht_loopback_stream *st = &lb->streams[stream];

    pthread_mutex_lock(&st->lock);
    ht_consumer_close(&st->consumer, lost, host_ns());
    ht_atomic_set(&st->ring->host.state, HT_STREAM_CLOSED);
    pthread_mutex_unlock(&st->lock);
}

uint64_t ht_loopback_close(struct ht_loopback *lb, uint32_t stream)
{
    ht_loopback_consume(lb, stream);
    close_stream(lb, stream,
                 ht_load_relaxed(&lb->streams[stream].ring->guest.lost));
    return lb->streams[stream].consumer.lost;
}

/* Handle HT_MSG_STREAM_CLOSE and HT_MSG_STREAM_FLUSH */
static uint32_t finish_stream(struct ht_loopback *lb, struct ht_msg *msg)
{
    struct ht_msg_stream *m = (struct ht_msg_stream *)msg;
    struct ht_loopback_stream *st;
    bool stopped;

    if (m->stream >= lb->cfg.streams) {
        return HT_STATUS_NOENT;
    }
    st = &lb->streams[m->stream];
    if (!st->consumer.open || st->consumer.info.instance != m->instance) {
        return HT_STATUS_NOENT;
    }
    ht_loopback_consume(lb, m->stream);
    if (msg->type == HT_MSG_STREAM_CLOSE) {
        close_stream(lb, m->stream, m->lost);
    }
    pthread_mutex_lock(&st->lock);
    stopped = st->consumer.stopped;
    pthread_mutex_unlock(&st->lock);
    return stopped ? HT_STATUS_STOPPED : HT_STATUS_OK;
}

static uint32_t sync_time(struct ht_loopback *lb, struct ht_msg *msg)
{
    struct ht_msg_time *m = (struct ht_msg_time *)msg;

    pthread_mutex_lock(&lb->time_lock);
    time_sample(lb);
    m->host_ns = host_ns();
    m->bound_ns = ht_time_map_bound(&lb->time, m->host_ns);
    pthread_mutex_unlock(&lb->time_lock);
    return HT_STATUS_OK;
}

static uint32_t get_stats(struct ht_loopback *lb, struct ht_msg *msg)
{
    struct ht_msg_stats *m = (struct ht_msg_stats *)msg;
    uint32_t i;

    if (m->stream != HT_STREAM_ANY && m->stream >= lb->cfg.streams) {
        return HT_STATUS_NOENT;
    }
    for (i = 0; i < lb->cfg.streams; i++) {
        struct ht_loopback_stream *st = &lb->streams[i];
        const HtConsumer *c = &st->consumer;

        if (m->stream != HT_STREAM_ANY && m->stream != i) {
            continue;
        }
        pthread_mutex_lock(&st->lock);
        m->stats.events += c->events;
        m->stats.packets += c->packets;
        m->stats.bytes += c->bytes;
        m->stats.lost += c->lost;
        m->stats.dropped += c->dropped;
        m->stats.wakeups += c->wakeups;
        m->stats.errors += c->errors;
        pthread_mutex_unlock(&st->lock);
    }
    return HT_STATUS_OK;
}

void ht_loopback_message(struct ht_loopback *lb, struct ht_msg *msg)
{
    switch (msg->type) {
    case HT_MSG_CLASS_REGISTER:
        msg->status = register_class(lb, msg);
        break;
    case HT_MSG_CLASS_LIST:
        msg->status = list_class(lb, msg);
        break;
    case HT_MSG_ENABLED:
        msg->status = read_enabled(lb, msg);
        break;
    case HT_MSG_STREAM_OPEN:
        msg->status = open_stream(lb, msg);
        break;
    case HT_MSG_STREAM_CLOSE:
    case HT_MSG_STREAM_FLUSH:
        msg->status = finish_stream(lb, msg);
        break;
    case HT_MSG_TIME_SYNC:
        msg->status = sync_time(lb, msg);
        break;
    case HT_MSG_STATS:
        msg->status = get_stats(lb, msg);
        break;
    default:
        msg->status = HT_STATUS_NOENT;
    }
}
