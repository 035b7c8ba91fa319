/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile guest (what=streams): write wrong bytes to streams, first one fault
 * in each stream, then many random ones
 */
#include "hostile.h"
#include "libc.h"
#include "mm.h"
#include "payload.h"
#include "virtqueue.h"

/* number of forged packets; in a ring, the last one is open */
#define PACKETS         2
#define EVENTS          20u
#define EVENT_SIZE      (HT_EVENT_HEADER + 8u)
#define SCRIBBLES       1500

enum attack {
    NOTHING,
    MAGIC, STREAM, INSTANCE, SEQ, COUNT, LOST, CLOCK,
    ID_ZERO, ID_UNKNOWN, ID_HUGE, EVENT_CUT,
    EVENTS_RANDOM, HEADER_RANDOM, ALL_RANDOM,
    RING_ONLY,
    CONTENT_SMALL = RING_ONLY, CONTENT_LARGE, HEAD_FAR, HEAD_NEGATIVE,
    HEAD_IN_HEADER, HOST_LINE, GUEST_LINE_RANDOM,
    BUFFER_ONLY,
    BUFFER_FROM = BUFFER_ONLY, BUFFER_TO, BUFFER_STREAM, BUFFER_LOST,
    BUFFER_SHORT,
    ATTACKS,
};

enum outcome { ACCEPTED, STOPPED, EITHER };

static const struct {
    const char *name;
    enum outcome outcome;
} attacks[ATTACKS] = {
    [NOTHING] = { "nothing wrong", ACCEPTED },
    [MAGIC] = { "packet magic", STOPPED },
    [STREAM] = { "packet stream", STOPPED },
    [INSTANCE] = { "packet instance", STOPPED },
    [SEQ] = { "packet number", STOPPED },
    [COUNT] = { "events before the packet", STOPPED },
    [LOST] = { "impossible lost events", ACCEPTED },
    [CLOCK] = { "clock", ACCEPTED },
    [ID_ZERO] = { "id 0", STOPPED },
    [ID_UNKNOWN] = { "unknown id", STOPPED },
    [ID_HUGE] = { "impossible id", STOPPED },
    [EVENT_CUT] = { "event cut short", STOPPED },
    [EVENTS_RANDOM] = { "random events", EITHER },
    [HEADER_RANDOM] = { "random header", STOPPED },
    [ALL_RANDOM] = { "random bytes", STOPPED },
    [CONTENT_SMALL] = { "content within the header", STOPPED },
    [CONTENT_LARGE] = { "content beyond the packet", STOPPED },
    [HEAD_FAR] = { "head too far", STOPPED },
    [HEAD_NEGATIVE] = { "head below 0", STOPPED },
    [HEAD_IN_HEADER] = { "head within a header", STOPPED },
    [HOST_LINE] = { "host's line", ACCEPTED },
    [GUEST_LINE_RANDOM] = { "random guest line", STOPPED },
    [BUFFER_FROM] = { "buffer's begin", STOPPED },
    [BUFFER_TO] = { "buffer's end", STOPPED },
    [BUFFER_STREAM] = { "buffer's stream", STOPPED },
    [BUFFER_LOST] = { "buffer's lost events", ACCEPTED },
    [BUFFER_SHORT] = { "buffer cut short", STOPPED },
};

/**
 * struct forger - a stream to which this file writes, instead of the library
 * @d: the device
 * @s: the stream
 * @bytes: packets that will be copied to the ring or, with channel=virtio, be
 *         submitted
 * @content: number of used bytes of each packet
 * @guest: content of the guest's line in the ring
 * @submit: header of each buffer, with channel=virtio
 * @size: size of each buffer, with channel=virtio
 */
struct forger {
    struct ht_bm_device *d;
    struct ht_stream s;
    uint8_t *bytes;
    uint32_t packet_size;
    uint32_t content[PACKETS];
    struct ht_guest_line guest;
    struct ht_submit submit[PACKETS];
    uint32_t size[PACKETS];
};

static struct ht_packet *packet_at(struct forger *f, unsigned i)
{
    return (struct ht_packet *)(f->bytes + i * f->packet_size);
}

static uint8_t *event_at(struct forger *f, unsigned i, unsigned n)
{
    return (uint8_t *)(packet_at(f, i) + 1) + n * EVENT_SIZE;
}

/*
 * Fill @f with what a correct guest writes: packets with events, the guest's
 * line, and the headers and sizes of virtio's buffers
 */
static void forge(struct forger *f)
{
    uint64_t n = 0;

    memset(f->bytes, 0, PACKETS * f->packet_size);
    memset(&f->guest, 0, sizeof(f->guest));
    for (unsigned i = 0; i < PACKETS; i++) {
        struct ht_packet *p = packet_at(f, i);
        uint32_t now = ht_clock();

        f->content[i] = sizeof(*p) + EVENTS * EVENT_SIZE;
        p->magic = HT_PACKET_MAGIC;
        p->stream = f->s.index;
        p->instance = f->s.instance;
        p->seq = i;
        p->clock_begin = ht_clock();
        p->events = n;
        p->content = f->content[i];
        for (unsigned k = 0; k < EVENTS; k++, n++) {
            ht_put32(event_at(f, i, k), hostile_class() | now << 8);
            ht_put64(event_at(f, i, k) + HT_EVENT_HEADER, n);
        }
        f->submit[i] = (struct ht_submit) {
            .from = (uint64_t)i * f->packet_size,
            .to = (uint64_t)i * f->packet_size + f->content[i],
            .stream = f->s.index,
        };
        f->size[i] = f->content[i];
    }
    f->guest.head = (PACKETS - 1) * (uint64_t)f->packet_size +
                    f->content[PACKETS - 1];
    f->guest.opening = PACKETS - 1;
}

static void cut(struct forger *f, unsigned i, uint32_t bytes)
{
    f->content[i] -= bytes;
    packet_at(f, i)->content -= bytes;
    f->submit[i].to -= bytes;
    f->size[i] -= bytes;
    if (i == PACKETS - 1) {
        f->guest.head -= bytes;
    }
}

static void attack_packet(struct forger *f, enum attack attack, unsigned i)
{
    struct ht_packet *p = packet_at(f, i);
    uint8_t *event = event_at(f, i, hostile_below(EVENTS));
    uint64_t flip = 1 + hostile_below(UINT32_MAX);

    switch (attack) {
    case MAGIC:
        p->magic ^= flip;
        break;
    case STREAM:
        p->stream ^= flip;
        break;
    case INSTANCE:
        p->instance ^= flip;
        break;
    case SEQ:
        p->seq ^= flip;
        break;
    case COUNT:
        p->events ^= flip;
        break;
    case LOST:
        p->lost = UINT64_MAX - flip;
        break;
    case CLOCK:
        p->clock_begin = hostile_random();
        break;
    case ID_ZERO:
        event[0] = 0;
        break;
    case ID_UNKNOWN:
        event[0] = HT_ID_WIDE - 1;
        break;
    case ID_HUGE:
        event[0] = HT_ID_EXTENDED;
        ht_put32(event + 1, (uint32_t)flip | 0x80000000u);
        break;
    case EVENT_CUT:
        cut(f, i, 1 + hostile_below(EVENT_SIZE - 1));
        break;
    case EVENTS_RANDOM:
        hostile_fill(event_at(f, i, 0), EVENTS * EVENT_SIZE);
        break;
    case HEADER_RANDOM:
        hostile_fill(p, sizeof(*p));
        break;
    case ALL_RANDOM:
        hostile_fill(p, f->packet_size);
        break;
    default:
        break;
    }
}

static void attack_ring(struct forger *f, enum attack attack)
{
    uint64_t ring = (uint64_t)f->packet_size * f->d->dev.caps.packets;

    switch (attack) {
    case CONTENT_SMALL:
        packet_at(f, 0)->content = hostile_below(sizeof(struct ht_packet));
        break;
    case CONTENT_LARGE:
        packet_at(f, 0)->content = f->packet_size + 1 +
                                   hostile_below(INT32_MAX);
        break;
    case HEAD_FAR:
        f->guest.head += ring * (1 + hostile_below(1 << 20));
        break;
    case HEAD_NEGATIVE:
        f->guest.head = -hostile_below(1 << 20) - 1;
        break;
    case HEAD_IN_HEADER:
        f->guest.head = (PACKETS - 1) * f->packet_size + 1 +
                        hostile_below(sizeof(struct ht_packet) - 1);
        break;
    case HOST_LINE:
        hostile_fill(&f->s.ring->host, sizeof(f->s.ring->host));
        break;
    case GUEST_LINE_RANDOM:
        hostile_fill(&f->guest, sizeof(f->guest));
        break;
    default:
        break;
    }
}

static void attack_buffer(struct forger *f, enum attack attack, unsigned i)
{
    uint64_t flip = 1 + hostile_below(UINT32_MAX);

    switch (attack) {
    case BUFFER_FROM:
        f->submit[i].from ^= flip;
        break;
    case BUFFER_TO:
        f->submit[i].to ^= flip;
        break;
    case BUFFER_STREAM:
        f->submit[i].stream ^= flip;
        break;
    case BUFFER_LOST:
        f->submit[i].lost = UINT64_MAX - flip;
        break;
    case BUFFER_SHORT:
        f->size[i] -= 1 + hostile_below(EVENT_SIZE);
        break;
    default:
        break;
    }
}

static void submit(struct forger *f, unsigned i)
{
    struct ht_bm_vq *vq = f->d->data[f->s.index];
    unsigned pair;

    while ((pair = ht_bm_vq_next(vq)) == vq->pairs) {
        ht_bm_vq_reap(vq);
        if (vq->broken) {
            payload_die(PAYLOAD_FAILED, "a virtqueue broke", NULL);
        }
    }
    vq->submit[pair] = f->submit[i];
    vq->desc[2 * pair].addr = (uintptr_t)&vq->submit[pair];
    vq->desc[2 * pair].len = sizeof(vq->submit[pair]);
    vq->desc[2 * pair + 1].addr = (uintptr_t)packet_at(f, i);
    vq->desc[2 * pair + 1].len = f->size[i];
    if (ht_bm_vq_add(vq, pair, 0)) {
        ht_bm_write16(vq->notify, vq->index);
    }
}

static void publish(struct forger *f)
{
    struct ht_guest_line *guest = &f->s.ring->guest;

    if (!f->d->regs) {
        for (unsigned i = 0; i < PACKETS; i++) {
            submit(f, i);
        }
        return;
    }
    for (unsigned i = 0; i < PACKETS; i++) {
        memcpy(f->s.packets + i * f->packet_size, packet_at(f, i),
               f->packet_size);
    }
    ht_store_relaxed(&guest->lost, f->guest.lost);
    ht_store_relaxed(&guest->opening, f->guest.opening);
    /* Pairs with the load-acquire of head in the host's consumer. */
    ht_store_release(&guest->head, f->guest.head);
    f->d->dev.ops->doorbell(&f->d->dev, f->s.index);
}

static uint64_t errors_of(struct ht_bm_device *d, uint32_t stream)
{
    struct ht_stats stats = { .errors = UINT64_MAX };

    hostile_check("statistics", ht_get_stats(&d->dev, stream, &stats), 0);
    return stats.errors;
}

static void attack_once(struct forger *f, enum attack attack)
{
    const char *name = attacks[attack].name;
    enum outcome outcome = attacks[attack].outcome;
    struct ht_stats stats = { 0 };
    int flushed;

    hostile_stream(f->d, &f->s, name);
    forge(f);
    attack_packet(f, attack, hostile_below(PACKETS));
    attack_ring(f, attack);
    attack_buffer(f, attack, hostile_below(PACKETS));
    publish(f);
    flushed = ht_stream_flush(&f->s);
    hostile_check("statistics",
                  ht_get_stats(&f->d->dev, f->s.index, &stats), 0);
    if (outcome == EITHER) {
        outcome = stats.errors ? STOPPED : ACCEPTED;
    } else if (outcome == ACCEPTED) {
        hostile_check(name, stats.events, PACKETS * EVENTS);
    }
    hostile_check(name, stats.errors, outcome == STOPPED);
    hostile_check(name, flushed, outcome == STOPPED ? -EIO : 0);
    if (f->d->regs && outcome == STOPPED) {
        hostile_check(name, ht_load_relaxed32(&f->s.ring->host.state),
                      HT_STREAM_STOPPED);
    }
    /* Ignore the result: a close of a stopped stream returns an error. */
    ht_stream_close(&f->s);
}

static uint64_t random_position(struct forger *f)
{
    uint64_t head = ht_load_relaxed(&f->s.ring->guest.head);

    switch (hostile_below(5)) {
    case 0:
        return head + hostile_below(64) - 8;
    case 1:
        return head + EVENT_SIZE;
    case 2:
        return (head / f->packet_size + hostile_below(3)) * f->packet_size;
    case 3:
        return hostile_below(f->d->dev.caps.packets * f->packet_size);
    default:
        return hostile_random() >> hostile_below(64);
    }
}

static void scribble_ring(struct forger *f)
{
    struct ht_ring_control *ring = f->s.ring;
    uint32_t packets = f->d->dev.caps.packets;
    uint64_t at;

    switch (hostile_below(8)) {
    case 0:
        ht_store_relaxed(&ring->guest.head, random_position(f));
        break;
    case 1:
        ht_store_relaxed(&ring->guest.opening,
                         random_position(f) / f->packet_size);
        break;
    case 2:
        ht_store_relaxed(&ring->guest.lost, random_position(f));
        break;
    case 3:
        at = hostile_below(sizeof(ring->host) / 8);
        ht_store_relaxed((uint64_t *)&ring->host + at, random_position(f));
        break;
    case 4:
        /*
         * Overwrite a packet of the ring with one of the forged packets, which
         * have no fault here.
         */
        at = hostile_below(packets);
        memcpy(f->s.packets + at * f->packet_size,
               packet_at(f, hostile_below(PACKETS)), f->packet_size);
        break;
    default:
        at = hostile_below(packets * f->packet_size / 8);
        if (hostile_below(2)) {
            at -= at % (f->packet_size / 8);
            at += hostile_below(16);
        }
        ht_store_relaxed((uint64_t *)f->s.packets + at, random_position(f));
        break;
    }
    if (hostile_below(16) == 0) {
        f->d->dev.ops->doorbell(&f->d->dev, f->s.index);
    }
}

static void scribble_buffers(struct forger *f)
{
    unsigned i = hostile_below(PACKETS);

    if (hostile_below(4) == 0) {
        forge(f);
    }
    attack_packet(f, hostile_below(ATTACKS), i);
    attack_buffer(f, hostile_below(ATTACKS), i);
    /*
     * Replace size 0 by 1: virtio does not allow empty buffers, and a virtio
     * device that finds one stops.  virtqueues.c tests empty buffers.
     */
    f->size[i] = f->size[i] ? f->size[i] : 1;
    submit(f, i);
    /* Overwrite an event of the packet while the host may be copying it. */
    hostile_fill(event_at(f, i, hostile_below(EVENTS)), EVENT_SIZE);
}

static void scribble(struct forger *f, struct honest *h)
{
    struct ht_stats stats = { 0 };

    for (unsigned i = 0; i < SCRIBBLES; i++) {
        if (i % 50 == 0) {
            /* The host no longer reads a stopped stream: open it again. */
            hostile_check("statistics",
                          ht_get_stats(&f->d->dev, f->s.index, &stats), 0);
            if (i == 0 || stats.errors) {
                if (i) {
                    ht_stream_close(&f->s);
                }
                hostile_stream(f->d, &f->s, "scribble");
                forge(f);
                publish(f);
            }
            honest_emit(h, 3);
            honest_flush(h);
        }
        if (f->d->regs) {
            scribble_ring(f);
        } else {
            scribble_buffers(f);
        }
    }
    ht_stream_close(&f->s);
}

void hostile_streams(unsigned index)
{
    struct ht_bm_device *d = hostile_open(index);
    struct honest *h = honest_new();
    struct forger *f = mm_alloc(sizeof(*f), 64);
    uint64_t before, after;
    unsigned rounds = hostile_rounds(5);

    f->d = d;
    f->packet_size = d->dev.caps.packet_size;
    f->bytes = mm_alloc(PACKETS * f->packet_size, HT_PAGE);
    if (!f->bytes) {
        payload_die(PAYLOAD_USAGE, "not enough memory", NULL);
    }
    honest_open(h, d);
    before = errors_of(d, HT_STREAM_ANY);
    for (unsigned i = 0; i < rounds; i++) {
        unsigned stopped = 0;

        for (unsigned a = 0; a < ATTACKS; a++) {
            if (a >= RING_ONLY && (a < BUFFER_ONLY) != (d->regs != NULL)) {
                continue;
            }
            honest_emit(h, 7);
            attack_once(f, a);
            honest_emit(h, 2);
            honest_flush(h);
            stopped += attacks[a].outcome == STOPPED;
        }
        after = errors_of(d, HT_STREAM_ANY);
        hostile_check("each stopped stream is an error of the device",
                      after - before >= stopped, true);
        before = after;
        scribble(f, h);
    }
    hostile_check("errors of the honest stream",
                  errors_of(d, h->s.index), 0);
    honest_close(h, index);
    ht_bm_close(d);
}
