/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target dead: recover events from stream memory, after its host was
 * killed. The memory is valid except for the input's changes.
 *
 * The reader refuses the memory with a reason, or recovers events: they are
 * whole, the results count them, and in each stream times do not decrease.
 */
#include "hypertrace/base.h"
#include "hypertrace/dead-streams.h"
#include "hypertrace/memory-layout.h"
#include "core-memory.h"
#include "fuzz.h"

#define SIZE            HT_PACKET_SIZE_MIN
#define PACKETS         4u
#define STREAMS         3u

typedef struct Reading {
    const HtDead *d;
    uint64_t events;
    uint64_t ns;
    unsigned opened, closed;
} Reading;

/* HtDeliver: check a recovered run, and count its events */
static void deliver(void *opaque, const HtRun *run)
{
    Reading *r = opaque;
    uint32_t events = 0;
    HtRunIter it;
    HtEvent ev;

    r->opened += !!(run->flags & HT_RUN_OPEN);
    r->closed += !!(run->flags & HT_RUN_CLOSE);
    if (!run->events) {
        return;
    }
    ht_run_iter_init(&it, run, r->d->classes);
    while (ht_run_next(&it, &ev)) {
        g_autofree uint8_t *payload = fuzz_copy(ev.payload, ev.size);

        g_assert_cmpint(fuzz_payload(ev.cls, payload, ev.size), ==, ev.size);
        g_assert_cmpuint(ev.ns, >=, r->ns);
        g_assert_cmpuint(ev.ns, <=, HT_TIME_MAX_NS);
        r->ns = ev.ns;
        events++;
    }
    g_assert_cmpuint(events, ==, run->events);
    r->events += events;
}

static void describe(FuzzInput *in, CtMemory *m)
{
    uint8_t how = fuzz_u8(in);
    HtTimeSegment clock = {
        .counter = how & 1 ? fuzz_number(in) : 0,
        .ns = how & 2 ? fuzz_number(in) % (HT_TIME_MAX_NS + 1) : 5000,
        .mult = how & 4 ? fuzz_number(in) : UINT64_C(1) << HT_TIME_MULT_SHIFT,
    };

    ct_memory_init(m, 1 + fuzz_u8(in) % STREAMS, SIZE, PACKETS, fuzz_classes());
    if (how & 8) {
        ht_directory_set_clock(&m->directory, &clock);
    }
}

/* Add a stream with events that were committed but not consumed */
static void add_stream(FuzzInput *in, CtMemory *m, unsigned i)
{
    uint8_t how = fuzz_u8(in);
    unsigned n, count = fuzz_u8(in);
    uint64_t clock;
    CtRing ring;

    ct_ring_init(&ring, SIZE, PACKETS, how & 16);
    ring.stream = i;
    ring.instance += i;
    for (n = 0; n < count; n++) {
        if (how & 32) {
            g_autoptr(GByteArray) event = g_byte_array_new();

            clock = ring.clock;
            fuzz_event(in, event, &clock);
            ring.clock = clock;
            ct_ring_put(&ring, event->data, event->len);
        } else {
            ct_ring_emit(&ring, n);
        }
    }
    if (how & 64) {
        ring.instance = fuzz_number(in);
    }
    ct_memory_put(m, &ring, "main", (int32_t)i - 1);
    ct_ring_destroy(&ring);
}

/* Overwrite up to 8 bytes, mostly in tables and headers, or cut @m short */
static void change(FuzzInput *in, CtMemory *m)
{
    const struct ht_caps *c = &m->caps;
    uint8_t where = fuzz_u8(in), *at = m->ram;
    uint64_t value, offset = fuzz_number(in);
    uint32_t stream = (where >> 3) % c->streams;
    size_t size = m->size;

    switch (where % 8) {
    case 0:
        size = sizeof(*c);
        break;
    case 1:
    case 2:
        at += ht_layout_directory(c);
        /* change only the directory's head or its first streams */
        size = 2048;
        break;
    case 3:
        at += ht_layout_directory(c) + HT_DIRECTORY_HEAD;
        size = m->directory.class_bytes;
        break;
    case 4:
        m->size = offset % (size + 1);
        return;
    case 5:
        at = (uint8_t *)ct_memory_ring(m, stream);
        size = sizeof(struct ht_ring_control);
        break;
    case 6:
        at = (uint8_t *)ct_memory_ring(m, stream) + HT_PACKETS_OFFSET +
             (where >> 5) % PACKETS * SIZE;
        size = sizeof(struct ht_packet);
        break;
    }
    value = fuzz_number(in);
    if (size) {
        offset %= size;
        memcpy(at + offset, &value, MIN(sizeof(value), size - offset));
    }
}

static void read_all(const HtDead *d, uint8_t *ram)
{
    HtDeadResult result;
    uint32_t i;

    g_assert_cmpuint(d->caps.streams, >=, 1);
    g_assert_cmpuint(d->caps.streams, <=, HT_STREAMS_MAX);
    for (i = 0; i < d->caps.streams; i++) {
        Reading r = { .d = d };
        bool opened = ht_dead_read(d, i, ram, 0, deliver, &r, &result);

        g_assert_cmpint(opened, ==, d->streams[i].instance != 0);
        g_assert_cmpuint(r.opened, ==, opened);
        g_assert_cmpuint(r.closed, ==, opened);
        g_assert_cmpuint(result.events, ==, r.events);
        g_assert_cmpuint(result.begin_ns, <=, result.end_ns);
        g_assert_nonnull(memchr(result.why, 0, sizeof(result.why)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    g_autofree uint8_t *exact = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(HtDead) d = NULL;
    unsigned i, changes = fuzz_u8(&in) % 8;
    CtMemory m;

    describe(&in, &m);
    for (i = 0; i < m.caps.streams; i++) {
        add_stream(&in, &m, i);
    }
    for (i = 0; i < changes && m.size == ht_layout_size(&m.caps); i++) {
        change(&in, &m);
    }
    exact = fuzz_copy(m.ram, m.size);
    d = ht_dead_new(exact, m.size, &error);
    g_assert_true(!d == !!error);
    if (d) {
        read_all(d, exact);
    }
    ct_memory_destroy(&m);
    return 0;
}
