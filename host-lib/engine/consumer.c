/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: consume the events of one stream, of any channel
 *
 * The guest may write to its ring at any time.  A value from the ring that is
 * checked before it is used is therefore loaded once, into a local variable.
 * Event bytes are copied before they are parsed; later stages use the copy.
 * docs/specs/hypertrace.rst defines the protocol.  tests/model/ring.pml models
 * ht_consumer_ring() with an honest producer, and tests/model/wake.pml models
 * ht_consumer_arm(); a model checker checks both.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/consumer.h"

/*
 * A call of ht_consumer_ring() ends after this number of failed attempts to
 * copy a packet.  An attempt fails if the producer overwrites the packet
 * meanwhile.  A producer that is faster than the consumer could make every
 * attempt fail.
 */
#define TORN_MAX 4

static inline uint64_t packet_of(const HtConsumer *c, uint64_t position)
{
    return position / c->cfg.packet_size;
}

static inline uint32_t offset_of(const HtConsumer *c, uint64_t position)
{
    return position & (c->cfg.packet_size - 1);
}

static uint64_t read64(const uint64_t *p)
{
    return ht_le64(ht_atomic_read(p));
}

static void write64(uint64_t *p, uint64_t v)
{
    ht_atomic_set(p, ht_le64(v));
}

void ht_consumer_init(HtConsumer *c, const HtConsumerConfig *cfg)
{
    memset(c, 0, sizeof(*c));
    c->cfg = *cfg;
    c->walk.most = cfg->piece_events;
    if (!cfg->reserve) {
        c->buf = g_malloc(cfg->packet_size);
    }
}

void ht_consumer_destroy(HtConsumer *c)
{
    g_free(c->buf);
    c->buf = NULL;
}

static void G_GNUC_PRINTF(2, 3) stop(HtConsumer *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_vsnprintf(c->why, sizeof(c->why), fmt, ap);
    va_end(ap);
    c->errors++;
    c->stopped = true;
}

static void update_lost(HtConsumer *c, uint64_t lost)
{
    if (lost > c->lost && lost < HT_LOST_MAX) {
        /*
         * If it is not known what the earlier host has recorded, assume that
         * this host need not report the events that were discarded so far.
         */
        if (c->inherited && c->recorded == HT_RUN_UNKNOWN) {
            c->base += lost - c->lost;
            c->told += lost - c->lost;
        }
        c->lost = lost;
    }
}

/*
 * Count events that were overwritten before they were read, or that an earlier
 * host released without recording them.  A guest can claim huge numbers.  Keep
 * the sum below HT_LOST_MAX; otherwise ht_consumer_load() would refuse the
 * state after a migration.
 */
static void add_dropped(HtConsumer *c, uint64_t events)
{
    c->dropped += MIN(events, HT_LOST_MAX - 1 - c->dropped);
}

static uint64_t discarded(const HtConsumer *c)
{
    return c->lost + c->others + c->dropped;
}

static void deliver(HtConsumer *c, HtRun *run)
{
    run->stream = &c->info;
    /*
     * Read the number of classes after the walk, so that it includes every
     * class that the walk has seen.
     */
    run->classes = ht_class_table_count(c->cfg.classes);
    c->told = discarded(c);
    run->discarded = c->told - c->base;
    run->total = c->expected;
    run->lost = c->lost;
    c->cfg.deliver(c->cfg.opaque, run);
}

static void deliver_mark(HtConsumer *c, unsigned flag, uint64_t now_ns)
{
    HtRun run = {
        .flags = flag,
        .begin_ns = MAX(now_ns, c->walk.ns),
    };

    /* Set walk.ns, so that no later event gets an earlier time than this. */
    run.end_ns = c->walk.ns = run.begin_ns;
    run.counter = c->walk.clock;
    deliver(c, &run);
}

static void begin(HtConsumer *c, const HtStreamInfo *info)
{
    HtConsumerConfig cfg = c->cfg;
    uint8_t *buf = c->buf;

    memset(c, 0, sizeof(*c));
    c->cfg = cfg;
    c->buf = buf;
    c->info = *info;
    c->instance = info->instance;
    c->walk.cut = true;
    c->walk.most = cfg.piece_events;
    c->open = true;
}

void ht_consumer_open(HtConsumer *c, const HtStreamInfo *info, uint64_t now_ns)
{
    begin(c, info);
    deliver_mark(c, HT_RUN_OPEN, now_ns);
}

void ht_consumer_inherit(HtConsumer *c, const HtStreamInfo *info,
                         uint64_t tail, const HtRecorded *r, uint64_t now_ns)
{
    begin(c, info);
    c->inherited = true;
    c->cursor = tail * c->cfg.packet_size;
    c->recorded = r->events;
    c->expected = r->events;
    update_lost(c, r->lost);
    c->told = c->base = c->lost;
    deliver_mark(c, HT_RUN_OPEN, MAX(now_ns, r->end_ns));
}

void ht_consumer_close(HtConsumer *c, uint64_t lost, uint64_t now_ns)
{
    update_lost(c, lost);
    deliver_mark(c, HT_RUN_CLOSE, now_ns);
    c->open = false;
}

void ht_consumer_tell(HtConsumer *c, uint64_t lost)
{
    HtRun run = {
        .begin_ns = c->walk.ns,
        .end_ns = c->walk.ns,
        .counter = c->walk.clock,
    };

    update_lost(c, lost);
    if (c->told != discarded(c)) {
        deliver(c, &run);
    }
}

void ht_consumer_discarded(HtConsumer *c, uint64_t count)
{
    c->others += MIN(count, HT_LOST_MAX - MIN(c->others, HT_LOST_MAX));
}

/* Return how many of the next events an earlier host has already recorded */
static uint64_t recorded_ahead(const HtConsumer *c)
{
    return c->recorded != HT_RUN_UNKNOWN && c->recorded > c->expected ?
           c->recorded - c->expected : 0;
}

/*
 * Walk and deliver private bytes of one packet.  @more: the packet continues
 * after these bytes, so the last event in them may be incomplete.  Do not
 * deliver events that an earlier host has recorded.  Returns the number of
 * bytes of whole events.  This is @size unless @more is set, a run has reached
 * HtWalk.most events, or the stream was stopped.
 */
static size_t consume(HtConsumer *c, uint8_t *data, size_t size, bool more)
{
    const unsigned most = c->walk.most;
    size_t done = 0;

    while (done < size) {
        uint64_t known = recorded_ahead(c);
        bool cut = c->walk.cut;
        HtWalkStop why;
        HtWalkRun w;

        if (known) {
            c->walk.most = MIN(known, UINT32_MAX);
        }
        why = ht_walk(&c->walk, c->cfg.classes, &c->time, data + done,
                      size - done, &w);
        if (known) {
            c->walk.most = most;
            c->expected += w.events;
            c->walk.cut = true;
        } else if (w.events) {
            HtRun run = {
                .flags = cut ? HT_RUN_CUT : 0,
                .events = w.events,
                .data = data + done,
                .size = w.size,
                .begin_ns = w.begin_ns,
                .end_ns = w.end_ns,
                .counter = w.counter,
            };

            c->events += w.events;
            c->expected += w.events;
            c->bytes += w.size;
            c->packets++;
            deliver(c, &run);
        }
        done += w.size;
        if (known && why == HT_WALK_MOST) {
            continue;
        }
        if (why == HT_WALK_MOST || (why == HT_WALK_BAD_LENGTH && more)) {
            break;
        }
        if (why != HT_WALK_END && why != HT_WALK_CUT) {
            stop(c, "%s, at position 0x%" PRIx64, ht_walk_stop_str(why),
                 c->cursor);
            break;
        }
    }
    return done;
}

/*
 * Set the counts of an inherited instance to those in the header of the first
 * packet that this host reads.  If it is known how many events the earlier host
 * has recorded, events after these and before the packet count as dropped.
 */
static void count_from(HtConsumer *c, uint64_t events, uint64_t lost)
{
    update_lost(c, lost);
    c->inherited = false;
    c->expected = events;
    if (c->recorded != HT_RUN_UNKNOWN && events > c->recorded) {
        add_dropped(c, events - c->recorded);
    }
}

/*
 * Check a packet's header, a private copy, and store its counts and its clock
 * in @c.  @skipped: number of packets that were overwritten since the last
 * packet was read.  The number of missing events must not exceed what fits into
 * these packets, except in the first packet after ht_consumer_inherit().
 * Returns false if the header is not valid; the stream is then stopped.
 */
static bool packet_begin(HtConsumer *c, struct ht_packet h, uint64_t packet,
                         uint64_t skipped)
{
    uint64_t events, missing, most;

    if (ht_le32(h.magic) != HT_PACKET_MAGIC ||
        ht_le32(h.stream) != c->info.index ||
        ht_le64(h.instance) != c->instance ||
        ht_le64(h.seq) != packet) {
        stop(c, "packet %" PRIu64 " has a wrong header", packet);
        return false;
    }
    events = ht_le64(h.events);
    if (c->inherited) {
        if (events > UINT64_MAX / 2) {
            stop(c, "packet %" PRIu64 " counts %" PRIu64 " events before it",
                 packet, events);
            return false;
        }
        count_from(c, events, ht_le64(h.lost));
    }
    missing = events - c->expected;
    most = c->cfg.packet_size / HT_EVENT_HEADER;
    most *= MIN(skipped, UINT64_MAX / 2 / most);
    if (missing > most) {
        stop(c, "packet %" PRIu64 " counts %" PRIu64 " events before it,"
             " not %" PRIu64, packet, events, c->expected);
        return false;
    }
    add_dropped(c, missing);
    c->expected = events;
    update_lost(c, ht_le64(h.lost));
    c->walk.clock = ht_le64(h.clock_begin);
    if (c->time.count == 0 && c->time.nominal) {
        /*
         * No reading relates the guest's clock to the host's yet: use the time
         * of the stream's opening for the start of the first packet that is
         * read.  The packet began later, so the resulting dates are too early.
         */
        ht_time_map_sample(&c->time, c->walk.clock, c->walk.ns, UINT64_MAX);
    }
    return true;
}

/*
 * Return the number of the oldest packet that is not overwritten, in overwrite
 * mode.  The producer stores n to `opening` before it overwrites packet n -
 * cfg.packets with packet n.
 */
static uint64_t oldest(const HtConsumer *c, struct ht_ring_control *ring,
                       uint64_t head)
{
    uint64_t opening = read64(&ring->guest.opening);
    /* A head at the end of packet n does not show that packet n + 1 began. */
    uint64_t newest = MAX(packet_of(c, head - MIN(head, 1)), opening);

    return newest >= c->cfg.packets ? newest - c->cfg.packets + 1 : 0;
}

/*
 * Load the producer's head.  If the value is impossible, stop the stream and
 * return false
 */
static bool load_head(HtConsumer *c, struct ht_ring_control *ring,
                      uint64_t *head)
{
    const uint64_t size = c->cfg.packet_size;
    /* Pairs with the producer's store-releases of head. */
    uint64_t h = ht_le64(ht_atomic_load_acquire(&ring->guest.head));

    if (h < c->cursor || h > UINT64_MAX / 2 ||
        (!c->cfg.overwrite &&
         h - packet_of(c, c->cursor) * size > c->cfg.packets * size)) {
        stop(c, "head 0x%" PRIx64 " is impossible after 0x%" PRIx64,
             h, c->cursor);
        return false;
    }
    *head = h;
    return true;
}

/*
 * The producer has overwritten the whole ring: load `opening`, then the head
 * again.  If `opening` is more than one packet after the head's packet, stop
 * the stream.
 *
 * An honest producer cannot cause that: the release fence in its switch to
 * packet n - 1 orders the store of head to the start of packet n - 1 before the
 * store of n to `opening`.
 */
static bool load_newer_head(HtConsumer *c, struct ht_ring_control *ring,
                            uint64_t *head)
{
    uint64_t opening = ht_le64(ht_atomic_load_acquire(&ring->guest.opening));

    if (!load_head(c, ring, head)) {
        return false;
    }
    if (opening > packet_of(c, *head) + 1) {
        stop(c, "packet %" PRIu64 " is being taken at head 0x%" PRIx64,
             opening, *head);
        return false;
    }
    return true;
}

size_t ht_consumer_ring(HtConsumer *c, struct ht_ring_control *ring,
                        const uint8_t *packets, size_t max_bytes)
{
    const uint32_t size = c->cfg.packet_size;
    const uint32_t piece = c->cfg.piece ?: size;
    uint64_t skipped = c->skipped;
    uint32_t most = piece;
    unsigned torn = 0;
    size_t done = 0;
    uint64_t head;

    if (!c->open || c->stopped) {
        return 0;
    }
    if (!load_head(c, ring, &head)) {
        return 0;
    }

    while (c->cursor < head && done < max_bytes && torn < TORN_MAX) {
        uint64_t packet = packet_of(c, c->cursor);
        uint32_t from = offset_of(c, c->cursor), to, n = 0;
        bool closed = packet < packet_of(c, head);
        struct ht_packet header;
        const uint8_t *slot;
        uint8_t *events = NULL;
        size_t walked;

        if (c->cfg.overwrite) {
            uint64_t first = oldest(c, ring, head);

            if (first > packet_of(c, head)) {
                /*
                 * The producer has overwritten the whole ring since the head
                 * was loaded.
                 */
                torn++;
                if (!load_newer_head(c, ring, &head)) {
                    break;
                }
                continue;
            }
            if (packet < first) {
                skipped += first - packet;
                c->cursor = first * size;
                continue;
            }
        }
        slot = packets + (packet & (c->cfg.packets - 1)) * size;
        if (closed) {
            /*
             * The producer stores the size of the packet's content before
             * it moves head into the next packet.  So the size is final,
             * since the load-acquire of head came before.
             */
            const struct ht_packet *h = (const struct ht_packet *)slot;

            to = ht_le32(ht_atomic_read(&h->content));
        } else {
            to = offset_of(c, head);
        }
        if (from == 0) {
            memcpy(&header, slot, sizeof(header));
            from = sizeof(header);
        }
        if (to <= size && to > from) {
            n = MIN(to - from, most);
            events = c->cfg.reserve ? c->cfg.reserve(c->cfg.opaque, n) : c->buf;
            memcpy(events, slot + from, n);
        }
        if (c->cfg.overwrite) {
            /*
             * Load `opening` again after the copy.  Pairs with the release
             * fence between the stores of `opening` and of the slot in the
             * producer's switch.
             */
            ht_fence_acquire();
            if (packet < oldest(c, ring, head)) {
                torn++;
                continue;
            }
        }
        if (to > size || to < from) {
            stop(c, "packet %" PRIu64 " ends at %" PRIu32, packet, to);
            break;
        }
        if (offset_of(c, c->cursor) == 0) {
            if (!packet_begin(c, header, packet, skipped)) {
                break;
            }
            skipped = 0;
            c->cursor += from;
            done += from;
        }
        walked = consume(c, events, n, n < to - from);
        if (c->stopped) {
            break;
        }
        done += walked;
        if (walked < to - from) {
            c->cursor += walked;
            /* If no event ends in the piece, copy twice as many bytes next. */
            most = walked ? piece : 2 * n;
            continue;
        }
        c->cursor = closed ? (packet + 1) * size : packet * size + to;
        if (closed) {
            /*
             * Release: the copy is done before the slot is free.  Pairs with
             * the load-acquire of tail in the producer's switch.
             */
            ht_atomic_store_release(&ring->host.tail, ht_le64(packet + 1));
        }
    }
    c->skipped = skipped;
    update_lost(c, read64(&ring->guest.lost));
    return done;
}

/*
 * Check a buffer: its bytes must be in one packet, and begin at position @last
 * or, if @last is inside a packet, at the start of the next packet.  If not,
 * stop the stream.  Returns false if the stream is closed or stopped.
 */
static bool follows(HtConsumer *c, const struct ht_submit *sub, size_t size,
                    uint64_t last)
{
    uint64_t from = ht_le64(sub->from), to = ht_le64(sub->to), next = last;

    if (!c->open || c->stopped) {
        return false;
    }
    if (offset_of(c, from) == 0 && offset_of(c, next)) {
        /*
         * The producer has left the rest of the packet unused: the next
         * position is the start of the next packet.
         */
        next = (packet_of(c, next) + 1) * c->cfg.packet_size;
    }
    if (ht_le32(sub->stream) != c->info.index || from != next ||
        to <= from || to - from != size ||
        packet_of(c, from) != packet_of(c, to - 1) ||
        (offset_of(c, from) == 0 && size < sizeof(struct ht_packet))) {
        stop(c, "buffer [0x%" PRIx64 ", 0x%" PRIx64 ") of %zu bytes"
             " does not follow 0x%" PRIx64, from, to, size, last);
        return false;
    }
    return true;
}

/*
 * Consume the bytes [from, to) of one packet, which follow the bytes consumed
 * before
 */
static void take(HtConsumer *c, uint64_t from, uint64_t to, uint64_t lost,
                 uint8_t *data, size_t size)
{
    c->cursor = from;
    if (offset_of(c, from) == 0) {
        struct ht_packet header;

        memcpy(&header, data, sizeof(header));
        if (!packet_begin(c, header, packet_of(c, from), 0)) {
            return;
        }
        data += sizeof(struct ht_packet);
        size -= sizeof(struct ht_packet);
    }
    consume(c, data, size, false);
    if (!c->stopped) {
        c->cursor = to;
        update_lost(c, lost);
    }
}

void ht_consumer_feed(HtConsumer *c, const struct ht_submit *sub,
                      uint8_t *data, size_t size)
{
    uint64_t from = ht_le64(sub->from), to = ht_le64(sub->to), known;

    if (!follows(c, sub, size, c->fed)) {
        return;
    }
    if (to > c->cursor) {
        known = from < c->cursor ? c->cursor - from : 0;
        take(c, from + known, to, ht_le64(sub->lost), data + known,
             size - known);
    }
    if (!c->stopped) {
        c->fed = to;
    }
}

void ht_consumer_fetched(HtConsumer *c, const struct ht_submit *sub,
                         uint8_t *data, size_t size)
{
    if (follows(c, sub, size, c->cursor)) {
        take(c, ht_le64(sub->from), ht_le64(sub->to), ht_le64(sub->lost), data,
             size);
    }
}

bool ht_consumer_arm(HtConsumer *c, struct ht_ring_control *ring, bool eager)
{
    uint64_t wake;

    if (!c->open || c->stopped) {
        return false;
    }
    wake = eager ? c->cursor + 1 :
           (packet_of(c, c->cursor) + 1) * c->cfg.packet_size;
    write64(&ring->host.wake, wake);
    /*
     * Full barrier: store wake, then load head.  Pairs with the full fence
     * between head and wake in the producer's switch.  A commit within a packet
     * has no such fence; for this reason the caller must bound its sleep.
     */
    ht_fence();
    return eager ? read64(&ring->guest.head) != c->cursor :
           read64(&ring->guest.head) >= wake;
}

void ht_consumer_disarm(HtConsumer *c, struct ht_ring_control *ring)
{
    if (c->open) {
        write64(&ring->host.wake, HT_WAKE_NEVER);
    }
}

bool ht_consumer_pending(const HtConsumer *c,
                         const struct ht_ring_control *ring)
{
    return c->open && !c->stopped &&
           read64(&ring->guest.head) != c->cursor;
}

bool ht_consumer_has_closed_packet(const HtConsumer *c,
                                   const struct ht_ring_control *ring)
{
    return c->open && !c->stopped &&
           packet_of(c, read64(&ring->guest.head)) != packet_of(c, c->cursor);
}

bool ht_consumer_behind(const HtConsumer *c, const struct ht_ring_control *ring)
{
    return ht_consumer_pending(c, ring) &&
           (offset_of(c, c->cursor) == 0 ||
            ht_consumer_has_closed_packet(c, ring));
}
