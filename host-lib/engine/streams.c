/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: open, consume and close the streams of one guest
 *
 * The guest may be hostile: each value of a ring is copied before it is
 * checked, and this host never reads back what it wrote to the host's lines.
 */
#include "hypertrace/base.h"
#include "hypertrace/streams.h"
#include "sanitizer.h"

void ht_streams_init(HtStreams *a, const HtStreamsConfig *cfg)
{
    HtConsumerConfig consumer = cfg->consumer;
    uint32_t i;

    a->cfg = *cfg;
    a->openings_ns = ht_now_ns() -
                     HT_OPENINGS_BURST(cfg->count) * cfg->opening_ns;
    a->stream = g_new0(HtStream, cfg->count);
    for (i = 0; i < cfg->count; i++) {
        HtStream *s = &a->stream[i];

        s->all = a;
        s->index = i;
        ht_mutex_init(&s->lock);
        consumer.opaque = s;
        ht_consumer_init(&s->consumer, &consumer);
    }
}

void ht_streams_destroy(HtStreams *a)
{
    uint32_t i;

    for (i = 0; a->stream && i < a->cfg.count; i++) {
        ht_consumer_destroy(&a->stream[i].consumer);
        ht_mutex_destroy(&a->stream[i].lock);
    }
    g_free(a->stream);
    a->stream = NULL;
}

void ht_stream_set_ring(HtStream *s, struct ht_ring_control *ring)
{
    s->ring = ring;
    s->packets = (uint8_t *)ring + HT_PACKETS_OFFSET;
}

/* The host's line ---------------------------------------------------------- */

static void dirty(HtStream *s)
{
    const HtStreamsConfig *cfg = &s->all->cfg;

    if (cfg->dirty) {
        cfg->dirty(cfg->opaque, s->ring, sizeof(*s->ring));
    }
}

static void set_state(HtStream *s, enum ht_stream_state state)
{
    if (!s->ring) {
        return;
    }
    /*
     * The producer's ht_is_closed() loads host.state with relaxed order.  A
     * producer that sees a close late may write a packet of the old instance:
     * the host does not read a closed ring, and rejects the packet in an open
     * ring.
     */
    ht_atomic_store_release(&s->ring->host.state, ht_le32(state));
    if (state == HT_STREAM_CLOSED) {
        /*
         * A wake word of 0 makes the producer call notify() at the next commit
         * that loads it.  notify() finds the stream closed, and counts the
         * committed event as discarded.  A commit loads host.wake with relaxed
         * order, after its store of head.
         */
        ht_atomic_store_release(&s->ring->host.wake, ht_le64(0));
    }
    dirty(s);
}

void ht_stream_close_ring(HtStream *s)
{
    set_state(s, HT_STREAM_CLOSED);
}

/*
 * Return the producer's count of discarded events, 0 without a ring.  The count
 * can grow while head does not move.
 */
static uint64_t ring_lost(const HtStream *s)
{
    return s->ring ? ht_le64(ht_atomic_read(&s->ring->guest.lost)) : 0;
}

/* Statistics --------------------------------------------------------------- */

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

HT_NO_TSAN void ht_stream_stats(const HtStream *s, struct ht_stats *stats)
{
    const HtConsumer *c = &s->consumer;

    stats->events = ht_atomic_read(&c->events);
    stats->packets = ht_atomic_read(&c->packets);
    stats->bytes = ht_atomic_read(&c->bytes);
    stats->lost = ht_atomic_read(&c->lost) + ht_atomic_read(&c->others);
    stats->dropped = ht_atomic_read(&c->dropped);
    stats->wakeups = ht_atomic_read(&c->wakeups);
    stats->errors = ht_atomic_read(&c->errors);
}

/*
 * Begin to write under a sequence lock with one writer.  An odd number means
 * that the writer is active.
 */
static void seq_write_begin(unsigned *seq)
{
    ht_atomic_set(seq, *seq + 1);
    /* Store the number before the data; pairs with seq_read_retry(). */
    ht_fence_release();
}

static void seq_write_end(unsigned *seq)
{
    /* Pairs with the load-acquire in seq_read_begin(). */
    ht_atomic_store_release(seq, *seq + 1);
}

/*
 * Begin to read.  If the number is odd, a writer is active: clear its lowest
 * bit, so that seq_read_retry() returns true.
 */
static unsigned seq_read_begin(const unsigned *seq)
{
    return ht_atomic_load_acquire(seq) & ~1u;
}

static bool seq_read_retry(const unsigned *seq, unsigned start)
{
    ht_fence_acquire();
    return ht_atomic_read(seq) != start;
}

/*
 * Add the counters of a stream's instances.  The sequence lock makes readers
 * see each instance once: as open, or in @closed.
 */
static HT_NO_TSAN void add_stream(const HtStream *s, struct ht_stats *sum)
{
    struct ht_stats stats, closed;
    HtStreamPhase phase;
    unsigned start;

    do {
        start = seq_read_begin(&s->sums);
        closed = s->closed;
        phase = ht_stream_phase(s);
        ht_stream_stats(s, &stats);
    } while (seq_read_retry(&s->sums, start));
    stats_add(sum, &closed);
    if (phase == HT_PHASE_OPEN || phase == HT_PHASE_LOADED) {
        stats_add(sum, &stats);
    }
}

void ht_streams_stats(const HtStreams *a, struct ht_stats *sum)
{
    unsigned start;
    uint32_t i;

    do {
        start = seq_read_begin(&a->telling);
        memset(sum, 0, sizeof(*sum));
        sum->lost = ht_atomic_read(&a->discarded);
        for (i = 0; i < a->cfg.count; i++) {
            add_stream(&a->stream[i], sum);
        }
    } while (seq_read_retry(&a->telling, start));
}

/* Consuming ---------------------------------------------------------------- */

void ht_stream_begin(HtStream *s)
{
    s->all->cfg.clock(s);
}

void ht_stream_end(HtStream *s)
{
    if (s->consumer.open && s->consumer.stopped && !s->reported) {
        s->reported = true;
        set_state(s, HT_STREAM_STOPPED);
        if (s->all->cfg.stopped) {
            s->all->cfg.stopped(s);
        }
    }
}

/*
 * Consume from a stream's ring; see ht_stream_consume() for @most.  Context:
 * HtStream.lock held
 */
static size_t read_ring(HtStream *s, size_t most)
{
    HtConsumer *c = &s->consumer;
    const uint64_t events = c->events;
    const HtConsumerConfig cfg = c->cfg;
    size_t done;

    if (!cfg.piece) {
        return ht_consumer_ring(c, s->ring, s->packets, most);
    }
    done = ht_consumer_ring(c, s->ring, s->packets, 1);
    if (done && done < most && c->events - events < cfg.piece_events) {
        /*
         * The piece is shorter than @most, for example because its packet has
         * ended: consume a second piece, up to the rest of @most.
         */
        c->cfg.piece = most - done;
        c->walk.most = cfg.piece_events - (c->events - events);
        done += ht_consumer_ring(c, s->ring, s->packets, 1);
        c->cfg.piece = cfg.piece;
        c->walk.most = cfg.piece_events;
    }
    return done;
}

size_t ht_stream_consume(HtStream *s, size_t most, bool force)
{
    const HtStreamsConfig *cfg = &s->all->cfg;
    HtConsumer *c = &s->consumer;
    uint64_t cursor;
    size_t done = 0;

    ht_mutex_lock(&s->lock);
    if (c->open && ht_consumer_pending(c, s->ring) &&
        (force || !cfg->room || cfg->room(cfg->opaque))) {
        ht_atomic_set(&c->wakeups, c->wakeups + 1);
        ht_stream_begin(s);
        cursor = c->cursor;
        if (c->cfg.overwrite) {
            AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        }
        done = read_ring(s, most);
        if (c->cfg.overwrite) {
            AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
        }
        if ((cursor ^ c->cursor) >= c->cfg.packet_size) {
            /* the consumer has left a packet, and has moved host.tail */
            dirty(s);
        }
        ht_stream_end(s);
    }
    ht_mutex_unlock(&s->lock);
    return done;
}

void ht_streams_tell(HtStreams *a)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        HtStream *s = &a->stream[i];

        if (ht_stream_phase(s) != HT_PHASE_OPEN) {
            continue;
        }
        ht_mutex_lock(&s->lock);
        if (s->consumer.open) {
            ht_consumer_tell(&s->consumer, ring_lost(s));
        }
        ht_mutex_unlock(&s->lock);
    }
}

bool ht_streams_arm(HtStreams *a, bool eager)
{
    bool pending = false;
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        HtStream *s = &a->stream[i];

        if (ht_stream_phase(s) == HT_PHASE_OPEN) {
            ht_mutex_lock(&s->lock);
            pending |= ht_consumer_arm(&s->consumer, s->ring, eager);
            ht_mutex_unlock(&s->lock);
            dirty(s);
        }
    }
    return pending;
}

void ht_streams_disarm(HtStreams *a)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        HtStream *s = &a->stream[i];

        if (ht_stream_phase(s) == HT_PHASE_OPEN) {
            ht_mutex_lock(&s->lock);
            ht_consumer_disarm(&s->consumer, s->ring);
            ht_mutex_unlock(&s->lock);
            dirty(s);
        }
    }
}

typedef bool Test(const HtConsumer *c, const struct ht_ring_control *ring);

static bool any(const HtStreams *a, Test *test)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        const HtStream *s = &a->stream[i];

        if (ht_stream_phase(s) == HT_PHASE_OPEN &&
            test(&s->consumer, s->ring)) {
            return true;
        }
    }
    return false;
}

bool ht_streams_pending(const HtStreams *a)
{
    return any(a, ht_consumer_pending);
}

/* Work --------------------------------------------------------------------- */

static void open_stream(HtStream *s)
{
    const HtStreamsConfig *cfg = &s->all->cfg;

    ht_mutex_lock(&s->lock);
    s->reported = false;
    s->time_version = 0;
    if (s->ring) {
        struct ht_ring_control *ring = s->ring;

        /*
         * Initialize the guest's and the host's line before the state is
         * OPENED.
         */
        memset(&ring->guest, 0, sizeof(ring->guest));
        memset(&ring->host, 0, sizeof(ring->host));
        ring->host.wake = ht_le64(HT_WAKE_NEVER);
        ring->host.instance = ht_le64(s->next.instance);
    }
    set_state(s, HT_STREAM_OPENED);
    if (cfg->opening) {
        cfg->opening(s);
    }
    ht_consumer_open(&s->consumer, &s->next, ht_now_ns());
    cfg->clock(s);
    ht_mutex_unlock(&s->lock);
    if (cfg->opened) {
        cfg->opened(s);
    }
    ht_atomic_store_release(&s->phase, HT_PHASE_OPEN);
}

/* Write the saved values to the host's line, and continue the stream */
static void resume_stream(HtStream *s)
{
    const HtStreamsConfig *cfg = &s->all->cfg;
    const HtConsumer *c = &s->consumer;

    ht_mutex_lock(&s->lock);
    s->time_version = 0;
    if (s->ring) {
        struct ht_host_line *host = &s->ring->host;

        ht_atomic_set(&host->wake, ht_le64(HT_WAKE_NEVER));
        ht_atomic_set(&host->instance, ht_le64(c->instance));
        /* Pairs with the load-acquire of host.tail in the producer. */
        ht_atomic_store_release(&host->tail,
                                ht_le64(c->cursor / c->cfg.packet_size));
    }
    set_state(s, c->stopped ? HT_STREAM_STOPPED : HT_STREAM_OPENED);
    ht_consumer_resume(&s->consumer);
    ht_mutex_unlock(&s->lock);
    if (cfg->opened) {
        cfg->opened(s);
    }
    ht_atomic_store_release(&s->phase, HT_PHASE_OPEN);
}

/* End the instance in the trace.  If @close_ring, also close its ring */
static void end_stream(HtStream *s, bool close_ring)
{
    const HtStreamsConfig *cfg = &s->all->cfg;
    struct ht_stats stats;

    ht_mutex_lock(&s->lock);
    /*
     * Use the larger of the guest's final count and the ring's count: after a
     * takeover or a reset, the guest has sent no final count.
     */
    ht_consumer_close(&s->consumer,
                      MAX(ht_atomic_read(&s->close_lost), ring_lost(s)),
                      ht_now_ns());
    if (close_ring) {
        set_state(s, HT_STREAM_CLOSED);
    }
    if (cfg->closed) {
        cfg->closed(s);
    }
    ht_mutex_unlock(&s->lock);
    seq_write_begin(&s->sums);
    ht_stream_stats(s, &stats);
    stats_add(&s->closed, &stats);
    /* Pairs with the load-acquire in ht_stream_phase(). */
    ht_atomic_store_release(&s->phase, HT_PHASE_FREE);
    seq_write_end(&s->sums);
}

/*
 * Call HtStreamsConfig.consume until it consumes nothing, but at most once more
 * than a ring has packets.  For a ring, this suffices to consume all events
 * that are in it now, except those that the producer overwrites meanwhile.  A
 * producer that goes on to commit cannot prolong the loop.
 *
 * Returns: true if anything was consumed
 */
static bool consume_ring(HtStream *s)
{
    bool progress = false;
    uint32_t i;

    for (i = 0; i <= s->all->cfg.consumer.packets &&
                s->all->cfg.consume(s, true); i++) {
        progress = true;
    }
    return progress;
}

/*
 * Do what is due for one stream: open, resume, consume or close it.  Context:
 * worker
 */
static bool work(HtStream *s, bool force)
{
    const HtStreamsConfig *cfg = &s->all->cfg;
    bool progress = false;
    bool want_close;

    switch (ht_stream_phase(s)) {
    case HT_PHASE_FREE:
        return cfg->drop && cfg->drop(s);
    case HT_PHASE_OPENING:
        /* Drop buffers left by the previous instance. */
        if (cfg->drop) {
            if (cfg->drop(s)) {
                return true;
            }
            if (s->all->more) {
                return false;
            }
        }
        open_stream(s);
        progress = true;
        break;
    case HT_PHASE_LOADED:
        /* Pairs with the store-release in ht_streams_resume(). */
        if (!ht_atomic_load_acquire(&s->want_resume)) {
            return false;
        }
        resume_stream(s);
        progress = true;
        break;
    case HT_PHASE_OPEN:
        break;
    }
    /*
     * Load want_close before consuming, so that all events committed before the
     * request are consumed.  Pairs with the store-release in want_close().
     */
    want_close = ht_atomic_load_acquire(&s->want_close);
    progress |= cfg->consume(s, force || want_close) > 0;
    if (!want_close) {
        return progress;
    }
    progress |= consume_ring(s);
    if (!cfg->drained || cfg->drained(s)) {
        end_stream(s, true);
        progress = true;
    }
    return progress;
}

/*
 * If no open stream waits for its close, all events from before the reset have
 * dates: call HtStreamsConfig.resampled, and clear @resample.  Context: worker
 */
static void resample(HtStreams *a)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        HtStream *s = &a->stream[i];

        if (ht_stream_phase(s) == HT_PHASE_OPEN &&
            ht_atomic_read(&s->want_close)) {
            return;
        }
    }
    if (a->cfg.resampled) {
        a->cfg.resampled(a->cfg.opaque);
    }
    ht_atomic_set(&a->resample, false);
}

/*
 * Pass the number of events that producers without a stream have discarded to
 * the consumer of any open stream, which reports it.  Context: worker
 */
static void tell_discarded(HtStreams *a)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count && ht_atomic_read(&a->discarded); i++) {
        HtStream *s = &a->stream[i];

        if (ht_stream_phase(s) == HT_PHASE_OPEN) {
            ht_mutex_lock(&s->lock);
            seq_write_begin(&a->telling);
            ht_consumer_discarded(&s->consumer,
                                  ht_atomic_exchange(&a->discarded, 0));
            seq_write_end(&a->telling);
            if (a->cfg.unreported) {
                /*
                 * Deliver the count to the trace before the owner notes that no
                 * discarded event is unreported: the owner may be killed in
                 * between.
                 */
                ht_consumer_tell(&s->consumer, ring_lost(s));
                a->cfg.unreported(a->cfg.opaque, 0);
            }
            ht_mutex_unlock(&s->lock);
        }
    }
}

/*
 * Open, consume and close streams as requested.  Consume about one packet of
 * each stream, and about a ring of a stream that must be closed; consume less
 * if the callbacks set HtStreams.more.  Return true if there was anything to
 * do.  Context: worker
 */
static bool work_all(HtStreams *a, bool force)
{
    uint32_t n = a->cfg.count, first = a->first, i;
    bool progress = false;

    tell_discarded(a);
    for (i = 0; i < n; i++) {
        uint32_t index = (first + i) % n;
        bool full = a->more;
        bool did = work(&a->stream[index], force);

        if (!full && (did || !a->more)) {
            /* the stream was served: the next pass starts after it */
            a->first = (index + 1) % n;
            a->polled++;
        }
        progress |= did;
    }
    if (ht_atomic_read(&a->resample)) {
        resample(a);
    }
    return progress;
}

bool ht_streams_turn(HtStreams *a, bool *again)
{
    /* Pairs with the store-release in ht_streams_want_flush(). */
    uint64_t flush = ht_atomic_load_acquire(&a->flush_wanted);
    bool flushing, progress = false;
    unsigned rounds = 0;

    if (a->flush_next == a->flush_done) {
        a->flush_next = flush;
        a->flush_polled = a->polled;
    }
    flushing = a->flush_next != a->flush_done;
    a->more = false;
    /*
     * Limit the number of rounds, because the owner's other handlers must run
     * as well.
     */
    while (work_all(a, flushing) && ++rounds < HT_STREAMS_ROUNDS) {
        progress = true;
        /*
         * Stop although an active producer has committed more by now: if the
         * host followed it through the open packet, the producer would have a
         * cache miss every few events.  The end of the packet, polling or a
         * timer starts another turn.
         */
        if (a->more || (a->cfg.arms && !flushing &&
                        !any(a, ht_consumer_behind))) {
            break;
        }
    }
    *again = rounds == HT_STREAMS_ROUNDS || a->more;
    if (!*again) {
        a->flush_next = flush;
    }
    /*
     * Complete a flush after a bounded number of passes, even if a producer
     * never pauses: the events committed before the flush fit in a ring or a
     * queue.
     */
    if (a->flush_next != a->flush_done &&
        (!*again || a->polled - a->flush_polled >
                    (uint64_t)a->cfg.passes * a->cfg.count)) {
        /* Pairs with the load-acquire of @flush_done in ht_streams_flush(). */
        ht_atomic_store_release(&a->flush_done, a->flush_next);
    }
    return progress;
}

/*
 * Test whether any stream is in one of @phases, a mask of bits 1 <<
 * HtStreamPhase
 */
static bool any_in(const HtStreams *a, unsigned phases)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        if (phases & 1u << ht_stream_phase(&a->stream[i])) {
            return true;
        }
    }
    return false;
}

bool ht_streams_any_open(const HtStreams *a)
{
    return any_in(a, ~(1u << HT_PHASE_FREE));
}

/* Control ------------------------------------------------------------------ */

static HtStream *lookup(HtStreams *a, uint32_t index)
{
    return index < a->cfg.count ? &a->stream[index] : NULL;
}

/*
 * Do the work of a request that the caller has noted in @s: at once with
 * HtStreamsConfig.inline_work, else in the worker, which this function kicks
 */
static enum ht_status request(HtStreams *a, HtStream *s)
{
    if (!a->cfg.inline_work) {
        a->cfg.kick(a->cfg.opaque);
        return HT_STATUS_BUSY;
    }
    work(s, true);
    tell_discarded(a);
    return HT_STATUS_OK;
}

/*
 * Take one opening from the budget, which is refilled with time.
 *
 * Returns: false if the budget is used up
 */
static bool take_opening(HtStreams *a)
{
    int64_t now = ht_now_ns(), interval = a->cfg.opening_ns;

    /*
     * The budget is the time since @openings_ns, but at most the time of a
     * burst.
     */
    a->openings_ns = MAX(a->openings_ns,
                         now - HT_OPENINGS_BURST(a->cfg.count) * interval);
    if (now - a->openings_ns < interval) {
        return false;
    }
    a->openings_ns += interval;
    return true;
}

/*
 * Answer a STREAM_OPEN that the guest repeats, to get the result of the request
 */
static enum ht_status open_again(HtStream *s, uint64_t instance)
{
    if (!s || s->next.instance != instance) {
        return HT_STATUS_NOENT;
    }
    switch (ht_stream_phase(s)) {
    case HT_PHASE_OPENING:
    case HT_PHASE_LOADED:
        return HT_STATUS_BUSY;
    case HT_PHASE_OPEN:
        return HT_STATUS_OK;
    default:
        return HT_STATUS_NOENT;
    }
}

/*
 * Find a free stream: the one with @index, or any stream if @index is
 * HT_STREAM_ANY
 *
 * Returns: the stream; NULL with @status set if none is free.  NOENT: there is
 * no stream @index.  BUSY: a stream that could be taken is being closed.
 * Otherwise LIMIT for HT_STREAM_ANY, EXIST for an @index
 */
static HtStream *find_free(HtStreams *a, uint32_t index, enum ht_status *status)
{
    const bool any_stream = index == HT_STREAM_ANY;
    bool closing = false;
    uint32_t i;

    if (!any_stream && index >= a->cfg.count) {
        *status = HT_STATUS_NOENT;
        return NULL;
    }
    for (i = any_stream ? 0 : index;
         i < (any_stream ? a->cfg.count : index + 1); i++) {
        HtStream *s = &a->stream[i];

        closing |= ht_atomic_read(&s->want_close);
        if (ht_stream_phase(s) == HT_PHASE_FREE) {
            return s;
        }
    }
    *status = closing ? HT_STATUS_BUSY :
              any_stream ? HT_STATUS_LIMIT : HT_STATUS_EXIST;
    return NULL;
}

enum ht_status ht_streams_open(HtStreams *a, struct ht_msg_open *m,
                               const HtStreamInfo *info)
{
    uint32_t index = ht_get_le32(&m->stream);
    enum ht_status status = HT_STATUS_OK;
    HtStream *s;

    if (ht_get_le64(&m->instance)) {
        return open_again(lookup(a, index), ht_get_le64(&m->instance));
    }
    if (ht_atomic_read(&a->resample)) {
        /*
         * A reset is pending: its streams must be closed, and their events
         * dated, before a stream is opened.
         */
        return HT_STATUS_BUSY;
    }
    s = find_free(a, index, &status);
    if (!s) {
        return status;
    }
    if (a->cfg.opening_ns && !take_opening(a)) {
        /* the budget is used up: the guest sends the message again */
        return HT_STATUS_BUSY;
    }
    s->next = *info;
    s->next.index = s->index;
    s->next.instance = ++*a->cfg.instances;
    /*
     * Clear want_close before the worker sees OPENING: if the worker cleared
     * want_close, it could clear a newer request.
     */
    ht_atomic_set(&s->want_close, false);
    ht_atomic_set(&s->close_lost, 0);
    /* Forget the memory of the previous instance: the guest may reuse it. */
    s->memory = 0;
    ht_put_le32(&m->stream, s->index);
    ht_put_le64(&m->instance, s->next.instance);
    /* Pairs with the load-acquire in work(). */
    ht_atomic_store_release(&s->phase, HT_PHASE_OPENING);
    return request(a, s);
}

static void want_close(HtStream *s, uint64_t lost)
{
    const HtStreamsConfig *cfg = &s->all->cfg;

    if (ht_stream_phase(s) == HT_PHASE_FREE) {
        return;
    }
    /* An earlier request to close may have set a higher count. */
    ht_atomic_set(&s->close_lost, MAX(s->close_lost, lost));
    if (cfg->closing) {
        cfg->closing(s);
    }
    /* Pairs with the load-acquire in work(). */
    ht_atomic_store_release(&s->want_close, true);
}

enum ht_status ht_streams_close(HtStreams *a, const struct ht_msg_stream *m)
{
    HtStream *s = lookup(a, ht_get_le32(&m->stream));

    if (!s || s->next.instance == 0 ||
        s->next.instance != ht_get_le64(&m->instance)) {
        return HT_STATUS_NOENT;
    }
    switch (ht_stream_phase(s)) {
    case HT_PHASE_FREE:
        return HT_STATUS_OK;
    case HT_PHASE_LOADED:
        return HT_STATUS_BUSY;
    default:
        break;
    }
    if (s->want_close) {
        return HT_STATUS_BUSY;
    }
    want_close(s, ht_get_le64(&m->lost));
    return request(a, s);
}

void ht_streams_want_close_all(HtStreams *a)
{
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        want_close(&a->stream[i], 0);
        if (a->cfg.inline_work) {
            work(&a->stream[i], true);
        }
    }
}

uint64_t ht_streams_close_one(HtStream *s)
{
    if (ht_stream_phase(s) == HT_PHASE_FREE) {
        return 0;
    }
    want_close(s, 0);
    work(s, true);
    return s->consumer.lost;
}

/* Streams of a host that has ended ---------------------------------------- */

bool ht_stream_inherit(HtStream *s, const HtInherited *in)
{
    struct ht_host_line *host = &s->ring->host;
    uint64_t tail = ht_le64(ht_atomic_read(&host->tail));

    if (ht_stream_phase(s) != HT_PHASE_FREE ||
        in->info.instance - 1 >= UINT64_MAX / 2 ||
        ht_le32(ht_atomic_read(&host->state)) != HT_STREAM_OPENED ||
        ht_le64(ht_atomic_read(&host->instance)) != in->info.instance ||
        tail > UINT64_MAX / 2 / s->all->cfg.consumer.packet_size) {
        return false;
    }
    s->next = in->info;
    ht_mutex_lock(&s->lock);
    s->reported = false;
    s->time_version = 0;
    ht_atomic_set(&host->wake, ht_le64(HT_WAKE_NEVER));
    ht_consumer_inherit(&s->consumer, &in->info, tail, &in->recorded,
                        MIN(in->opened_ns, (uint64_t)ht_now_ns()));
    ht_mutex_unlock(&s->lock);
    ht_atomic_store_release(&s->phase, HT_PHASE_OPEN);
    return true;
}

unsigned ht_streams_leave(HtStreams *a)
{
    bool stopped;
    unsigned n = 0;
    uint32_t i;

    for (i = 0; i < a->cfg.count; i++) {
        if (ht_stream_phase(&a->stream[i]) == HT_PHASE_OPEN) {
            consume_ring(&a->stream[i]);
            /*
             * If the stream was stopped as corrupt, close its ring: a successor
             * cannot continue it.
             */
            stopped = a->stream[i].consumer.stopped;
            end_stream(&a->stream[i], stopped);
            n += !stopped;
        }
    }
    return n;
}

/* Consume about one ring, so that a fast producer cannot hold the caller */
static void flush_now(HtStream *s)
{
    uint32_t i;

    for (i = 0; i <= s->all->cfg.consumer.packets; i++) {
        if (!work(s, true)) {
            break;
        }
    }
}

void ht_streams_want_flush(HtStreams *a)
{
    /* Skip 0: tickets are 1 to 2^32 - 1. */
    a->flush_given++;
    if ((uint32_t)a->flush_given == 0) {
        a->flush_given++;
    }
    /* Pairs with the load-acquire in ht_streams_turn(). */
    ht_atomic_store_release(&a->flush_wanted, a->flush_given);
}

enum ht_status ht_streams_flush(HtStreams *a, struct ht_msg_stream *m)
{
    uint32_t index = ht_get_le32(&m->stream), ticket, i;
    HtStream *s = NULL;
    uint64_t done;

    if (index != HT_STREAM_ANY) {
        s = lookup(a, index);
        if (!s || s->next.instance != ht_get_le64(&m->instance) ||
            ht_stream_phase(s) == HT_PHASE_FREE) {
            return HT_STATUS_NOENT;
        }
    }
    if (a->cfg.inline_work) {
        for (i = s ? index : 0; i < (s ? index + 1 : a->cfg.count); i++) {
            flush_now(&a->stream[i]);
        }
    }
    if (s && ht_atomic_read(&s->consumer.stopped)) {
        return HT_STATUS_STOPPED;
    }
    if (a->cfg.inline_work) {
        return HT_STATUS_OK;
    }
    ticket = ht_get_le32(&m->ticket);
    if (ticket == 0) {
        if (any_in(a, 1u << HT_PHASE_LOADED)) {
            return HT_STATUS_BUSY;
        }
        ht_streams_want_flush(a);
        ht_put_le32(&m->ticket, (uint32_t)a->flush_given);
        a->cfg.kick(a->cfg.opaque);
        return HT_STATUS_BUSY;
    }
    /* Pairs with the store-release in ht_streams_turn(). */
    done = ht_atomic_load_acquire(&a->flush_done);
    return (int32_t)((uint32_t)done - ticket) >= 0 ? HT_STATUS_OK :
                                                     HT_STATUS_BUSY;
}

/*
 * Add to HtStreams.discarded, up to HT_LOST_MAX.  The sum cannot exceed this
 * limit meanwhile, because the worker never adds to it.
 */
void ht_streams_discarded(HtStreams *a, uint64_t count)
{
    ht_atomic_add(&a->discarded,
                  MIN(count, HT_LOST_MAX - ht_atomic_read(&a->discarded)));
    if (a->cfg.unreported) {
        a->cfg.unreported(a->cfg.opaque, ht_atomic_read(&a->discarded));
    }
    if (a->cfg.inline_work) {
        tell_discarded(a);
    } else {
        a->cfg.kick(a->cfg.opaque);
    }
}
