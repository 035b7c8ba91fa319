/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target ring: consume the ring of a guest that writes anything to it,
 * between the host's calls and before the host's atomic loads in
 * ht_consumer_ring()
 *
 * Delivered runs are well-formed, counted and never go back in time; a stop is
 * final; the stream of an honest guest is not stopped, and each of its events
 * is delivered or counted as lost or dropped.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "fuzz.h"

typedef struct Ring {
    CtRing ring;
    CtSink sink;
    HtConsumer consumer;
    bool honest;
    /* the part of the input that chooses the guest's actions in race() */
    FuzzInput race;
    /* number of whole events that the guest has tried to write */
    uint64_t tried;
} Ring;

static Ring *racing;

static void emit(Ring *f, unsigned count)
{
    while (count--) {
        f->tried++;
        ct_ring_emit(&f->ring, f->tried);
    }
}

static void emit_any(Ring *f, FuzzInput *in)
{
    g_autoptr(GByteArray) event = g_byte_array_new();

    fuzz_event(in, event, &f->ring.clock);
    f->tried++;
    ct_ring_put(&f->ring, event->data, event->len);
}

/*
 * Append up to 16 bytes, which need not be an event, and commit them: the guest
 * is no longer honest.
 */
static void append(Ring *f, FuzzInput *in)
{
    uint8_t bytes[16];
    unsigned i, count = fuzz_u8(in) % sizeof(bytes) + 1;

    for (i = 0; i < count; i++) {
        bytes[i] = fuzz_u8(in);
    }
    f->honest = false;
    ct_ring_put(&f->ring, bytes, count);
}

static void poke(Ring *f, uint8_t *p, FuzzInput *in)
{
    f->honest = false;
    *p ^= fuzz_u8(in) + 1;
}

static void poke_control(Ring *f, FuzzInput *in)
{
    size_t size = sizeof(*f->ring.control), at = fuzz_bits(in, 2) % size;

    poke(f, (uint8_t *)f->ring.control + at, in);
}

static void poke_packet(Ring *f, FuzzInput *in)
{
    struct ht_packet *p = ct_ring_packet(&f->ring, fuzz_u8(in));

    f->honest = false;
    switch (fuzz_u8(in) % 9) {
    case 0:
        p->magic ^= fuzz_number(in);
        break;
    case 1:
        p->stream = ht_le32(fuzz_number(in));
        break;
    case 2:
        p->instance = ht_le64(fuzz_number(in));
        break;
    case 3:
        p->seq = ht_le64(ht_le64(p->seq) + fuzz_number(in));
        break;
    case 4:
        p->clock_begin = ht_le64(fuzz_number(in));
        break;
    case 5:
        p->events = ht_le64(ht_le64(p->events) + fuzz_number(in));
        break;
    case 6:
        p->lost = ht_le64(fuzz_number(in));
        break;
    case 7:
        p->content = ht_le32(fuzz_number(in));
        break;
    default:
        poke(f, (uint8_t *)(p + 1) + fuzz_u8(in), in);
    }
}

static void poke_line(Ring *f, FuzzInput *in)
{
    struct ht_ring_control *c = f->ring.control;
    uint8_t how = fuzz_u8(in);
    uint64_t n = fuzz_number(in);

    f->honest = false;
    if (how & 0x80) {
        n *= f->ring.packet_size;
    }
    switch (how % 4) {
    case 0:
        c->guest.head = ht_le64(ht_le64(c->guest.head) + n);
        break;
    case 1:
        c->guest.head = ht_le64(n);
        break;
    case 2:
        c->guest.opening = ht_le64(n);
        break;
    default:
        c->guest.lost = ht_le64(n);
    }
}

/* Execute an action of the guest, which the input has chosen */
static void guest(Ring *f, uint8_t action, FuzzInput *in)
{
    switch (action % 8) {
    case 0:
        emit(f, 1);
        break;
    case 1:
        emit(f, fuzz_u8(in) * 4);
        break;
    case 2:
        emit_any(f, in);
        break;
    case 3:
        ct_ring_close_packet(&f->ring);
        break;
    case 4:
        append(f, in);
        break;
    case 5:
        poke_control(f, in);
        break;
    case 6:
        poke_packet(f, in);
        break;
    case 7:
        poke_line(f, in);
        break;
    }
}

/*
 * Called before the host's atomic loads and acquire fences
 * (shim/hypertrace/atomic.h): about every fourth time, the guest acts, as long
 * as @race has input.
 */
static void race(void)
{
    Ring *f = racing;
    uint8_t action;

    fuzz_guest = NULL;
    action = fuzz_u8(&f->race);
    if (action >= 0xc0) {
        guest(f, action, &f->race);
    }
    fuzz_guest = race;
}

/*
 * If the stream is not stopped, save the consumer's state, and load it as the
 * destination of a migration does.
 */
static void migrate(Ring *f)
{
    HtConsumer *c = &f->consumer;
    HtTimeMap time = c->time;
    HtConsumerState st;

    if (c->stopped) {
        return;
    }
    ht_consumer_save(c, &st);
    c->open = false;
    g_assert_null(ht_consumer_load(c, c->info.index, &st));
    /*
     * The sink is now that of the destination: its trace counts discarded
     * events from 0.
     */
    f->sink.discarded = 0;
    ht_consumer_resume(c);
    c->time = time;
}

/* Execute an action of the host, which the input has chosen */
static void host(Ring *f, uint8_t action, FuzzInput *in)
{
    struct ht_ring_control *control = f->ring.control;
    HtConsumer *c = &f->consumer;
    uint64_t cursor = c->cursor, lost = c->lost;
    bool stopped = c->stopped;
    uint64_t events = c->events;

    switch (action % 8) {
    case 0:
        ht_consumer_ring(c, control, f->ring.data, fuzz_number(in));
        break;
    case 1:
        ht_consumer_arm(c, control, action & 8);
        break;
    case 2:
        if (action & 8) {
            migrate(f);
        } else {
            ht_consumer_disarm(c, control);
        }
        break;
    case 3:
        fuzz_sample(in, &c->time);
        break;
    case 4:
        g_assert_false(ht_consumer_has_closed_packet(c, control) &&
                       !ht_consumer_pending(c, control));
        break;
    default:
        ht_consumer_ring(c, control, f->ring.data, SIZE_MAX);
    }
    g_assert_cmpuint(c->cursor, >=, cursor);
    g_assert_cmpuint(c->lost, >=, lost);
    if (stopped) {
        g_assert_true(c->stopped);
        g_assert_cmpuint(c->events, ==, events);
        g_assert_cmpuint(c->cursor, ==, cursor);
    }
    fuzz_check_consumer(c, &f->sink);
}

/*
 * Each event that the honest guest tried to write was delivered, or counted as
 * lost or dropped.
 */
static void check_honest(Ring *f)
{
    HtConsumer *c = &f->consumer;

    ht_consumer_ring(c, f->ring.control, f->ring.data, SIZE_MAX);
    g_assert_false(c->stopped);
    g_assert_false(ht_consumer_pending(c, f->ring.control));
    g_assert_cmpuint(c->lost, ==, f->ring.lost);
    g_assert_cmpuint(c->events + c->dropped + c->lost, ==, f->tried);
    if (!f->ring.overwrite) {
        g_assert_cmpuint(c->dropped, ==, 0);
        g_assert_cmpuint(c->skipped, ==, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    uint8_t how = fuzz_u8(&in);
    Ring f = { .honest = true, .sink = fuzz_sink() };

    ct_ring_init(&f.ring, HT_PACKET_SIZE_MIN, 2 << (how >> 1) % 3, how & 1);
    ct_consumer_open(&f.consumer, &f.sink, &f.ring);
    if (how & 0x80) {
        /* the map has no readings, so it relates no clocks yet */
        ht_time_map_init(&f.consumer.time, 1000000000);
    }
    racing = &f;

    while (fuzz_more(&in)) {
        uint8_t action = fuzz_u8(&in);

        if (action < 0x80) {
            guest(&f, action, &in);
        } else if (action < 0xc0) {
            host(&f, action, &in);
        } else {
            f.race = fuzz_slice(&in, action & 0x3f);
            fuzz_guest = race;
            host(&f, 0xff, &in);
            fuzz_guest = NULL;
        }
    }
    if (f.honest) {
        check_honest(&f);
    }
    ht_consumer_close(&f.consumer, fuzz_number(&in), 0);
    fuzz_check_consumer(&f.consumer, &f.sink);
    g_assert_cmpuint(f.sink.closed, ==, 1);
    g_assert_cmpuint(f.sink.discarded, ==, f.consumer.lost +
                     f.consumer.dropped - f.consumer.base);
    g_assert_false(ht_consumer_pending(&f.consumer, f.ring.control));

    ht_consumer_destroy(&f.consumer);
    ct_ring_destroy(&f.ring);
    g_array_free(f.sink.numbers, true);
    return 0;
}
