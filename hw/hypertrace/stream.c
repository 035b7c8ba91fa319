/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: streams, from opening to closing
 *
 * tests/model/control.pml proves that a close delivers what was committed.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/lockable.h"
#include "device.h"
#include "trace.h"

/* HtDeliver.  Context: HtStream.lock held */
static void stream_deliver(void *opaque, const HtRun *run)
{
    HtStream *s = opaque;

    trace_hypertrace_run(s->dev->trace->name, s->index, run->events, run->size,
                         run->discarded);
    /* In the main loop, a backend that is called directly delays the guest. */
    ht_dispatch_post(s->dev->dispatch, run, s->fill,
                     s->dev->channel->uses_ring);
}

/* HtReserve.  Context: HtStream.lock held */
static uint8_t *stream_reserve(void *opaque, size_t size)
{
    HtStream *s = opaque;

    return ht_dispatch_reserve(s->dev->dispatch, &s->fill, size);
}

void ht_streams_init(HypertraceDevice *dev)
{
    HtConsumerConfig cfg = {
        .classes = dev->trace->classes,
        .packet_size = dev->conf.packet_size,
        .packets = dev->conf.packets,
        .overwrite = dev->conf.mode == HT_MODE_OVERWRITE,
        .piece = dev->channel->rings ? HT_DOORBELL_BYTES : 0,
        .piece_events = dev->channel->rings ? HT_DOORBELL_EVENTS : 0,
        .deliver = stream_deliver,
        .reserve = stream_reserve,
    };
    uint32_t i;

    seqlock_init(&dev->telling);
    dev->streams = g_new0(HtStream, dev->conf.streams);
    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams[i];

        s->dev = dev;
        s->index = i;
        qemu_mutex_init(&s->lock);
        seqlock_init(&s->sums);
        cfg.opaque = s;
        ht_consumer_init(&s->consumer, &cfg);
    }
}

void ht_streams_finalize(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; dev->streams && i < dev->conf.streams; i++) {
        ht_consumer_destroy(&dev->streams[i].consumer);
        qemu_mutex_destroy(&dev->streams[i].lock);
    }
    g_free(dev->streams);
    dev->streams = NULL;
}

void ht_stream_want_close(HtStream *s, uint64_t lost)
{
    if (qatomic_load_acquire(&s->phase) == HT_PHASE_FREE) {
        return;
    }
    /* An earlier request may have had a higher count. */
    qatomic_set(&s->close_lost, MAX(s->close_lost, lost));
    if (s->dev->channel->closing) {
        s->dev->channel->closing(s);
    }
    /* Pairs with the load-acquire in stream_work(). */
    qatomic_store_release(&s->want_close, true);
}

void ht_streams_want_close_all(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        ht_stream_want_close(&dev->streams[i], 0);
    }
}

void ht_stream_begin(HtStream *s)
{
    /* Events from before a reset are dated by the old counter. */
    if (!qatomic_read(&s->dev->resample)) {
        ht_clock_sample(&s->dev->clock, false);
    }
    ht_clock_copy(&s->dev->clock, &s->consumer.time, &s->time_version);
}

void ht_stream_end(HtStream *s)
{
    if (!s->consumer.stopped || s->reported) {
        return;
    }
    s->reported = true;
    if (s->ring) {
        ht_ring_set_state(s, HT_STREAM_STOPPED);
    }
    ht_guest_log(s->dev, &s->dev->log_stopped, "stream %" PRIu32 " stopped: %s",
                 s->index, s->consumer.why);
}

static void stream_open(HtStream *s)
{
    trace_hypertrace_stream_open(s->dev->trace->name, s->index,
                                 s->next.instance);
    WITH_QEMU_LOCK_GUARD(&s->lock) {
        s->reported = false;
        s->time_version = 0;
        if (s->ring) {
            ht_ring_open(s);
        }
        ht_consumer_open(&s->consumer, &s->next, get_clock());
    }
    ht_recover_stream(s);
    qatomic_store_release(&s->phase, HT_PHASE_OPEN);
}

/* Resume a stream that was loaded */
static void stream_resume(HtStream *s)
{
    trace_hypertrace_stream_open(s->dev->trace->name, s->index,
                                 s->consumer.info.instance);
    WITH_QEMU_LOCK_GUARD(&s->lock) {
        s->time_version = 0;
        if (s->ring) {
            ht_ring_resume(s);
        }
        ht_consumer_resume(&s->consumer);
    }
    ht_recover_stream(s);
    qatomic_store_release(&s->phase, HT_PHASE_OPEN);
}

static void stats_add(struct ht_stats *sum, const struct ht_stats *a)
{
    sum->events += a->events;
    sum->packets += a->packets;
    sum->bytes += a->bytes;
    sum->lost += a->lost;
    sum->dropped += a->dropped;
    sum->wakeups += a->wakeups;
    sum->errors += a->errors;
}

/*
 * Another thread may be consuming: the numbers are then of slightly different
 * times.
 */
static void consumer_stats(HtStream *s, struct ht_stats *stats)
{
    const HtConsumer *c = &s->consumer;

    stats->events = qatomic_read(&c->events);
    stats->packets = qatomic_read(&c->packets);
    stats->bytes = qatomic_read(&c->bytes);
    stats->lost = qatomic_read(&c->lost) + qatomic_read(&c->others);
    stats->dropped = qatomic_read(&c->dropped);
    stats->wakeups = qatomic_read(&c->wakeups);
    stats->errors = qatomic_read(&c->errors);
}

/* Statistics of the open instance, or of the last one */
void ht_stream_stats(HtStream *s, struct ht_stats *stats)
{
    consumer_stats(s, stats);
}

static void add_streams(HypertraceDevice *dev, struct ht_stats *sum)
{
    uint32_t i;

    memset(sum, 0, sizeof(*sum));
    sum->errors = qatomic_read(&dev->guest_errors);
    sum->lost = qatomic_read(&dev->discarded);
    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams[i];
        struct ht_stats stats, closed;
        HtStreamPhase phase;
        unsigned start;

        do {
            start = seqlock_read_begin(&s->sums);
            closed = s->closed;
            phase = qatomic_load_acquire(&s->phase);
            consumer_stats(s, &stats);
        } while (seqlock_read_retry(&s->sums, start));
        stats_add(sum, &closed);
        if (phase == HT_PHASE_OPEN || phase == HT_PHASE_LOADED) {
            stats_add(sum, &stats);
        }
    }
}

void ht_device_stats(HypertraceDevice *dev, struct ht_stats *sum)
{
    unsigned start;

    do {
        start = seqlock_read_begin(&dev->telling);
        add_streams(dev, sum);
    } while (seqlock_read_retry(&dev->telling, start));
}

/* The guest's own count, which can grow without a move of head */
static uint64_t ring_lost(HtStream *s)
{
    return s->ring ? le64_to_cpu(qatomic_read(&s->ring->guest.lost)) : 0;
}

void ht_streams_tell(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams[i];

        if (qatomic_load_acquire(&s->phase) == HT_PHASE_OPEN) {
            QEMU_LOCK_GUARD(&s->lock);
            ht_consumer_tell(&s->consumer, ring_lost(s));
        }
    }
}

static void stream_close(HtStream *s)
{
    /* A reset does not give a final count. */
    uint64_t lost = MAX(qatomic_read(&s->close_lost), ring_lost(s));
    struct ht_stats stats;

    trace_hypertrace_stream_close(s->dev->trace->name, s->index,
                                  s->consumer.info.instance);
    WITH_QEMU_LOCK_GUARD(&s->lock) {
        ht_consumer_close(&s->consumer, lost, get_clock());
        if (s->ring) {
            ht_ring_set_state(s, HT_STREAM_CLOSED);
        }
        ht_dispatch_release(s->dev->dispatch, &s->fill);
    }
    /* Readers see the instance in exactly one of the two sums. */
    seqlock_write_begin(&s->sums);
    consumer_stats(s, &stats);
    stats_add(&s->closed, &stats);
    /* Pairs with the load-acquire in the control path. */
    qatomic_store_release(&s->phase, HT_PHASE_FREE);
    seqlock_write_end(&s->sums);
}

/* Context: worker */
static bool stream_work(HtStream *s, bool force)
{
    const HtChannelOps *channel = s->dev->channel;
    bool progress = false;
    bool want_close;
    uint32_t i;

    switch (qatomic_load_acquire(&s->phase)) {
    case HT_PHASE_FREE:
        return channel->drop && channel->drop(s);
    case HT_PHASE_OPENING:
        /* Drop buffers left by the previous instance. */
        if (channel->drop) {
            if (channel->drop(s)) {
                return true;
            }
            if (s->dev->worker.more) {
                return false;
            }
        }
        stream_open(s);
        progress = true;
        break;
    case HT_PHASE_LOADED:
        if (!qatomic_load_acquire(&s->want_resume)) {
            return false;
        }
        stream_resume(s);
        progress = true;
        break;
    case HT_PHASE_OPEN:
        break;
    }
    /* Sample want_close first, so that earlier commits are consumed. */
    want_close = qatomic_load_acquire(&s->want_close);
    progress |= channel->consume(s, force || want_close) > 0;
    if (!want_close) {
        return progress;
    }
    /* At most a ring: later events of a producer that continues are lost. */
    for (i = 0; i <= s->dev->conf.packets && channel->consume(s, true); i++) {
        progress = true;
    }
    if (!channel->drained || channel->drained(s)) {
        stream_close(s);
        progress = true;
    }
    return progress;
}

/* Start a new clock when all streams that a reset closed are dated.  Worker */
static void resample_clock(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams[i];

        if (qatomic_load_acquire(&s->phase) == HT_PHASE_OPEN &&
            qatomic_read(&s->want_close)) {
            return;
        }
    }
    ht_clock_sample(&dev->clock, true);
    qatomic_set(&dev->resample, false);
}

/* Report device-wide discards by any open stream.  Worker */
static void tell_discarded(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams[i];

        if (qatomic_load_acquire(&s->phase) == HT_PHASE_OPEN) {
            QEMU_LOCK_GUARD(&s->lock);
            seqlock_write_begin(&dev->telling);
            ht_consumer_discarded(&s->consumer,
                                  qatomic_xchg(&dev->discarded, 0));
            seqlock_write_end(&dev->telling);
            return;
        }
    }
}

bool ht_streams_work(HypertraceDevice *dev, bool force)
{
    HtWorker *w = &dev->worker;
    uint32_t n = dev->conf.streams, first = w->first, i;
    bool progress = false;

    if (qatomic_read(&dev->discarded)) {
        tell_discarded(dev);
    }
    for (i = 0; i < n; i++) {
        uint32_t index = (first + i) % n;
        bool full = w->more;
        bool did = stream_work(&dev->streams[index], force);

        if (!full && (did || !w->more)) {
            /* The stream had its turn: start after it the next time. */
            w->first = (index + 1) % n;
            w->flush_looks++;
        }
        progress |= did;
    }
    if (qatomic_read(&dev->resample)) {
        resample_clock(dev);
    }
    return progress;
}
