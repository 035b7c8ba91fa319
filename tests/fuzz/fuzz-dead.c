/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files left by a device whose QEMU was killed: an index and stream RAM, valid
 * except for the input's changes
 *
 * An index is refused with a reason, or it is completely usable: events are
 * whole, their count is right, and time does not go back.
 */
#include "hypertrace/base.h"
#include "hypertrace/dead-streams.h"
#include "fuzz.h"

#define SIZE            HT_PACKET_SIZE_MIN
#define PACKETS         4u
#define STRIDE          HT_ROUND_UP(HT_PACKETS_OFFSET + PACKETS * SIZE, \
                                    HT_MAP_ALIGN)
#define STREAMS         3u
#define RAM_MAX         (1u << 20)

typedef struct Reading {
    const HtDead *d;
    uint64_t events;
    uint64_t ns;
    unsigned opened, closed;
} Reading;

/* HtDeliver */
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

static void begin_index(FuzzInput *in, GByteArray *index)
{
    HtDeadHead h = {
        .magic = HT_DEAD_MAGIC,
        .version = HT_DEAD_VERSION,
        .streams = 1 + fuzz_u8(in) % STREAMS,
        .packet_size = SIZE,
        .packets = PACKETS,
        .stride = STRIDE,
        .mult = fuzz_u8(in) ? UINT64_C(1) << HT_TIME_MULT_SHIFT : 0,
        .trace = "ht0",
        .vm = "vm",
        .channel = "shm",
        .memory = "/none",
    };
    g_autoptr(GByteArray) classes = ht_class_table_save(fuzz_classes());

    ht_dead_head_swap(&h);
    g_byte_array_set_size(index, HT_DEAD_CLASSES);
    memset(index->data, 0, index->len);
    memcpy(index->data, &h, sizeof(h));
    g_byte_array_append(index, classes->data, classes->len);
}

/* Add a stream with the events that its producer had committed */
static void add_stream(FuzzInput *in, GByteArray *index, uint8_t *ram,
                       unsigned i)
{
    uint8_t how = fuzz_u8(in);
    HtDeadStream s = {
        .vcpu = (int32_t)i - 1,
        .counter = how & 1 ? fuzz_number(in) : 0,
        .ns = how & 2 ? fuzz_number(in) % (HT_TIME_MAX_NS + 1) : 5000,
        .mult = how & 4 ? fuzz_number(in) :
                how & 8 ? UINT64_C(1) << HT_TIME_MULT_SHIFT : 0,
        .name = "main",
    };
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
    s.instance = how & 64 ? fuzz_number(in) : ring.instance;
    ht_dead_stream_swap(&s);
    memcpy(index->data + HT_DEAD_STREAMS + i * sizeof(s), &s, sizeof(s));
    memcpy(ram + i * STRIDE, ring.control, sizeof(*ring.control));
    memcpy(ram + i * STRIDE + HT_PACKETS_OFFSET, ring.data, PACKETS * SIZE);
    ct_ring_destroy(&ring);
}

/* Change any byte, but mostly bytes of numbers */
static void change(FuzzInput *in, GByteArray *index, uint8_t *ram)
{
    uint8_t where = fuzz_u8(in), *at = index->data;
    uint64_t value, offset = fuzz_number(in);
    size_t size = index->len;

    switch (where % 8) {
    case 0:
        size = MIN(size, offsetof(HtDeadHead, trace));
        break;
    case 1:
        size = MIN(size, sizeof(HtDeadHead));
        break;
    case 2:
        if (size > HT_DEAD_STREAMS + STREAMS * sizeof(HtDeadStream)) {
            at += HT_DEAD_STREAMS;
            size = STREAMS * sizeof(HtDeadStream);
        }
        break;
    case 3:
        if (size > HT_DEAD_CLASSES) {
            at += HT_DEAD_CLASSES;
            size -= HT_DEAD_CLASSES;
        }
        break;
    case 4:
        g_byte_array_set_size(index, offset % (size + 1));
        return;
    case 5:
        at = ram + (where >> 3) % STREAMS * STRIDE;
        size = sizeof(struct ht_ring_control);
        break;
    case 6:
        at = ram + (where >> 3) % STREAMS * STRIDE + HT_PACKETS_OFFSET +
             (where >> 5) % PACKETS * SIZE;
        size = sizeof(struct ht_packet);
        break;
    default:
        at = ram;
        size = STREAMS * STRIDE;
    }
    value = fuzz_number(in);
    if (size) {
        offset %= size;
        memcpy(at + offset, &value, MIN(sizeof(value), size - offset));
    }
}

static void read_all(const HtDead *d, const uint8_t *ram)
{
    uint64_t size = ht_dead_size(d);
    g_autofree uint8_t *own = NULL;
    HtDeadResult result;
    uint32_t i;

    g_assert_cmpuint(d->head.streams, >=, 1);
    g_assert_cmpuint(d->head.streams, <=, HT_STREAMS_MAX);
    g_assert_null(strchr(d->head.trace, '/'));
    if (size > RAM_MAX) {
        return;
    }
    own = g_malloc0(size);
    memcpy(own, ram, MIN(size, STREAMS * STRIDE));
    for (i = 0; i < d->head.streams; i++) {
        Reading r = { .d = d };
        bool opened = ht_dead_read(d, i, own, 0, deliver, &r, &result);

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
    g_autoptr(GByteArray) index = g_byte_array_new();
    g_autofree uint8_t *ram = g_malloc0(STREAMS * STRIDE);
    g_autofree uint8_t *exact = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(HtDead) d = NULL;
    unsigned i, changes = fuzz_u8(&in) % 8;

    begin_index(&in, index);
    for (i = 0; i < STREAMS; i++) {
        add_stream(&in, index, ram, i);
    }
    for (i = 0; i < changes; i++) {
        change(&in, index, ram);
    }
    exact = fuzz_copy(index->data, index->len);
    d = ht_dead_new(exact, index->len, &error);
    g_assert_true(!d == !!error);
    g_assert_true(d || changes);
    if (d) {
        read_all(d, ram);
    }
    return 0;
}
