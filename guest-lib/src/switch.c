/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: slow paths of the emit, such as a change to the next packet
 *
 * All functions here run with s->busy set, so a context that interrupts them
 * discards its event and changes no member but @lost_nested.
 * tests/model/ring.pml proves the order of stores and loads.
 */
#include "core.h"

static uint8_t *discard(struct ht_stream *s)
{
    s->lost++;
    /*
     * A stream with a @slow of NULL is closed, and another producer may have
     * its ring: do not write the number of discarded events to it.
     */
    if (s->slow) {
        ht_publish_lost(s);
    }
    ht_compiler_barrier();
    s->busy = 0;
    return NULL;
}

/*
 * Write a packet's size and end time to its header.  The host may be copying
 * the packet at the same time.  For the host the packet is open until head has
 * moved, and the host ignores both values in an open packet.
 *
 * With virtio, a header that was already submitted belongs to the device, so
 * write the packet's end to guest.end instead.  If this producer is killed, the
 * driver submits the rest of the packet up to guest.end.
 */
static ht_benign_race void finish_packet(struct ht_stream *s, uint32_t content,
                                         uint64_t now)
{
    struct ht_packet *p = ht_packet_at(s, s->packet);

    if (s->submitted > s->packet << s->packet_shift) {
        s->content = content;
        s->ring->guest.end = (s->packet << s->packet_shift) + content;
        return;
    }
    p->clock_end = now;
    p->content = content;
}

static void close_packet(struct ht_stream *s, uint64_t now)
{
    finish_packet(s, s->cur - (uint8_t *)ht_packet_at(s, s->packet), now);
    s->packet++;
    ht_no_packet(s);
    /* Pairs with the load-acquire of head in the host's consumer. */
    ht_store_release(&s->ring->guest.head, ht_head(s));
    s->ops->closed(s);
}

static bool open_packet(struct ht_stream *s, uint64_t now)
{
    struct ht_packet *p = ht_packet_at(s, s->packet);

    /* A closed stream may stay full: test first whether it was closed. */
    if (ht_is_closed(s)) {
        s->slow = NULL;
        return false;
    }
    /* `tail` is cached: the host may have released more packets since. */
    if (s->packet - s->tail > s->packets_mask &&
        !ht_has_space(s, s->packet) && !s->overwrite) {
        return false;
    }
    if (s->overwrite) {
        /*
         * Store `opening` before writing to the slot.  Pairs with the
         * consumer's fence between its copy of the slot and its second load of
         * `opening`.
         */
        ht_store_relaxed(&s->ring->guest.opening, s->packet);
        ht_store_fence();
    }

    p->magic = HT_PACKET_MAGIC;
    p->stream = s->index;
    p->instance = s->instance;
    p->seq = s->packet;
    p->clock_begin = now;
    p->events = s->events;
    /*
     * Store the number of discarded events in the control page, and in the
     * packet's header the number that the host was told.
     */
    ht_publish_lost(s);
    p->lost = s->told;
    p->clock_end = 0;
    p->content = 0;
    p->reserved = 0;

    s->base = (s->packet << s->packet_shift) - (uintptr_t)p;
    s->packet_end = (uint8_t *)p + ht_packet_bytes(s);
    s->end = s->stamps > 1 ? NULL : s->packet_end;
    s->cur = (uint8_t *)(p + 1);
    return true;
}

/* Write an event's header; returns the address of the first field */
static uint8_t *put_header(uint8_t *p, uint32_t header, uint32_t id,
                           uint64_t clock)
{
    if (header == HT_EVENT_HEADER) {
        ht_put32(p, id | (uint32_t)clock << 8);
    } else if (header == HT_EVENT_HEADER_WIDE) {
        p[0] = HT_ID_WIDE;
        p[1] = id;
        ht_put32(p + 2, id >> 8 | (uint32_t)clock << 8);
    } else {
        p[0] = HT_ID_EXTENDED;
        ht_put32(p + 1, id);
        ht_put64(p + 5, clock);
    }
    return p + header;
}

static uint32_t short_header(uint32_t id)
{
    return id < HT_ID_WIDE ? HT_EVENT_HEADER : HT_EVENT_HEADER_WIDE;
}

/*
 * Second part of get_early().  If the stream is open in mode discard, no packet
 * is open, and the ring has no room for a packet, count the event as discarded
 * and return NULL; else return HT_READ_CLOCK.  Not inlined, so that get_early()
 * need not save registers.
 */
static __attribute__((__noinline__)) uint8_t *get_full(struct ht_stream *s)
{
    if (!s->ops || s->cur || s->overwrite || ht_is_closed(s) ||
        ht_has_space(s, s->packet)) {
        return HT_READ_CLOCK;
    }
    return discard(s);
}

static uint8_t *get_early(struct ht_stream *s, uint32_t id, uint32_t size)
{
    uint8_t *cur = s->cur;
    uint32_t header;

    if (!s->inherit || id - 1 >= HT_CLASSES_MAX) {
        return get_full(s);
    }
    header = short_header(id);
    /* get_slow() handles an event that fills the packet or does not fit. */
    if ((uint64_t)(s->packet_end - cur) <= (uint64_t)size + header) {
        return get_full(s);
    }
    ht_prefetch_write(cur + HT_PREFETCH_AHEAD);
    s->inherit--;
    return put_header(cur, header, id, s->clock) + size;
}

static uint8_t *get_slow(struct ht_stream *s, uint32_t id, uint32_t size,
                         uint64_t now)
{
    const uint32_t first = short_header(id);
    uint32_t header = first;
    uint8_t *p;

    if (!s->ops || id - 1 >= HT_CLASSES_MAX || (uint64_t)size + first >
        ht_packet_bytes(s) - sizeof(struct ht_packet)) {
        return discard(s);
    }
    /* The difference is unsigned, so a clock that went back is a gap, too. */
    if (now - s->clock >= s->max_gap) {
        header = HT_EVENT_HEADER_EXT;
    }
    if (!s->cur ||
        (uint64_t)(s->packet_end - s->cur) < (uint64_t)size + header) {
        if (s->cur) {
            close_packet(s, now);
        }
        if (!open_packet(s, now)) {
            return discard(s);
        }
        header = first;         /* the event starts a packet */
    }

    p = put_header(s->cur, header, id, now) + size;
    s->clock = now;
    s->inherit = s->stamps - 1;
    if (p == s->packet_end) {
        /*
         * The event fills the packet.  Its commit moves head to the first byte
         * of the next packet: the host then takes this packet as closed.
         */
        finish_packet(s, ht_packet_bytes(s), now);
    }
    return p;
}

/*
 * Called by a commit whose head has reached the wake word: kick the host.
 *
 * A host that closes a stream sets the wake word to 0.  A driver that takes the
 * stream's memory away (for a suspend, an unplug or a fork) maps other memory,
 * with the wake word 0 and the state "closed".  The producer's next commit then
 * calls this function, which marks the stream as closed.  The event of this
 * commit counts as discarded.
 */
static void notify(struct ht_stream *s)
{
    if (ht_unlikely(ht_load_relaxed32(&s->ring->host.state) !=
                    HT_STREAM_OPENED)) {
        ht_no_packet(s);
        s->slow = NULL;
        s->lost++;
        return;
    }
    s->ops->notify(s);
}

const struct ht_slow ht_slow = {
    .early = get_early,
    .get = get_slow,
    .notify = notify,
};
