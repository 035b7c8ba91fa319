/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's function soak: emit on the streams of all devices in random
 * order, for as long as the host wants
 *
 *     soak
 *
 * The host sends command lines to the serial port. The payload answers each
 * command "round" with one row, a JSON object, on the debug port; "quit" ends
 * the payload:
 *
 *     round seed=S events=N [few=MASK] end=close|leave|takeover|reset
 *     quit
 *
 * The seed decides what a round does: the round opens and closes streams, and
 * emits events of four sizes in bursts of random length.  Most bursts wait for
 * room in the ring, some have a fixed rate.  Between bursts, the round may for
 * example pause, push or flush.  It ends when N events or more were sent.
 * Bursts to devices with a bit in MASK, and to those of channel hypercall, are
 * short.  At the end, the round closes all streams, leaves them open, opens
 * some devices again as another driver would, or waits for one more line and
 * then resets the machine.
 *
 * The results are in struct book.  The host may read the book from the guest's
 * memory while the VM is stopped; the payload's first row states the address.
 */
#include "hypertrace/port.h"
#include "ht-bench-core.h"
#include "clock.h"
#include "cmdline.h"
#include "device.h"
#include "io.h"
#include "libc.h"
#include "payload.h"
#include "serial.h"

#define DEVICES_MAX     8
/* maximum number of streams that are open on a device at a time */
#define STREAMS_MAX     8
/* maximum number of entries `closed` in the book: those of one round */
#define CLOSED_MAX      512
#define PATIENCE_S      30
#define PAUSE_MAX_US    4000
#define BURST_MAX       (1 << 20)
#define FEW_MAX         2048
#define EXITS_MAX       64
#define RESET_PORT      0xcf9
#define RESET_HARD      0x06

/*
 * a stream instance that was closed, or that a takeover ended; after a close,
 * also the host's counters of this instance
 */
struct closed {
    uint64_t device;
    uint64_t stream;
    uint64_t instance;
    uint64_t sent;
    uint64_t lost;
    /* 1: @host is valid */
    uint64_t asked;
    struct ht_stats host;
};

struct slot {
    struct ht_stream s;
    uint64_t open;
};

/*
 * Results for the host. The content is inconsistent while @changing is set, or
 * the member `busy` of an open stream in @slots. @rounds: number of rounds that
 * have begun since the payload's start.
 */
static struct book {
    uint64_t changing;
    uint64_t nr_closed;
    uint64_t rounds;
    struct closed closed[CLOSED_MAX];
    struct slot slots[DEVICES_MAX][STREAMS_MAX];
} book __attribute__((aligned(64)));

static struct ht_bm_device *device[DEVICES_MAX];
static unsigned nr_devices;
static struct ht_stream *producer;
static uint64_t hz;
static uint64_t patience;
static uint64_t waiting_since;
static uint64_t state;
static struct ht_bench_params all_kinds = {
    .kinds = { HT_BENCH_8, HT_BENCH_32, HT_BENCH_64, HT_BENCH_256 },
    .nr_kinds = HT_BENCH_KINDS,
};

static struct {
    uint64_t bursts, opened, closed, pauses, pushes, flushes, discarded;
} done;

static void check(int ret, const char *what)
{
    if (ret < 0) {
        payload_die(PAYLOAD_FAILED, what, errno_name(ret));
    }
}

static uint64_t random_u64(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t below(uint64_t n)
{
    return random_u64() % n;
}

/*
 * Get a random number from 1 to @most. All lengths in bits are equally likely,
 * so most numbers are small.
 */
static uint64_t magnitude(uint64_t most)
{
    unsigned bits = 64 - __builtin_clzll(most);
    uint64_t v = (uint64_t)1 << below(bits);

    v += below(v);
    return v < most ? v : most;
}

/*
 * Mark the book as inconsistent, or as consistent if @yes is false. The host
 * reads the book while the VM is stopped, so compiler barriers suffice.
 */
static void changing(bool yes)
{
    ht_compiler_barrier();
    book.changing = yes;
    ht_compiler_barrier();
}

static void spin(uint64_t ticks)
{
    uint64_t since = ht_clock();

    while (ht_clock() - since < ticks) {
        asm volatile("pause");
    }
}

static bool pause_hook(uint64_t ticks, uint64_t tries)
{
    uint64_t now = ht_clock();

    if (!tries) {
        waiting_since = now;
    }
    if (ticks && !(tries & 63)) {
        /*
         * The producer waits for the time of its next event. Push its events at
         * the first of every 64 tries, because the payload has no timer that
         * would push them.
         */
        ht_stream_push(producer);
    }
    spin(hz / 1000000);
    return ticks || ht_clock() - waiting_since < patience;
}

static const struct ht_bench_hooks hooks = {
    .print = put_str,
    .pause = pause_hook,
};

static void slot_open(unsigned d, struct slot *slot)
{
    struct ht_stream_params params = {
        .stream = HT_STREAM_ANY,
        .vcpu = below(2) ? 0 : -1,
        .name = below(2) ? "soak" : NULL,
    };

    changing(true);
    check(ht_stream_open(&device[d]->dev, &slot->s, &params),
          "cannot open a stream");
    slot->open = 1;
    changing(false);
    done.opened++;
}

static struct closed *note_closed(unsigned d, struct slot *slot)
{
    struct closed *c = &book.closed[book.nr_closed++];

    c->device = d;
    c->stream = slot->s.index;
    c->instance = slot->s.instance;
    c->sent = slot->s.events;
    c->lost = slot->s.lost + slot->s.lost_nested;
    c->asked = 0;
    slot->open = 0;
    return c;
}

static void slot_close(unsigned d, struct slot *slot)
{
    struct closed *c;

    changing(true);
    check(ht_stream_close(&slot->s), "cannot close a stream");
    c = note_closed(d, slot);
    check(ht_get_stats(&device[d]->dev, c->stream, &c->host),
          "cannot read a stream's statistics");
    c->asked = 1;
    changing(false);
    done.closed++;
}

static unsigned streams_of(unsigned d)
{
    uint32_t n = device[d]->dev.caps.streams;

    return n < STREAMS_MAX ? n : STREAMS_MAX;
}

/* Open device @d again, as another driver would, while its streams are open */
static void take_over(unsigned d)
{
    struct slot *slots = book.slots[d];
    unsigned n = streams_of(d);

    if (device[d]->dev.caps.channel == HT_CHANNEL_VIRTIO) {
        /*
         * With virtio, device_open() resets the device, and events that were
         * not submitted may be lost: flush the streams.
         */
        for (unsigned i = 0; i < n; i++) {
            if (slots[i].open) {
                check(ht_stream_flush(&slots[i].s), "cannot flush a stream");
            }
        }
    }
    changing(true);
    device[d] = device_open(d);
    for (unsigned i = 0; i < n; i++) {
        if (slots[i].open) {
            note_closed(d, &slots[i]);
        }
    }
    changing(false);
}

static uint64_t burst(unsigned d, struct ht_stream *s, uint64_t most)
{
    static struct ht_bench_result result;
    struct ht_bench_params params = {
        .hooks = &hooks,
        .first = s->events + s->lost,
        .events = magnitude(most),
        .group = 32,
        .lossless = below(4) != 0,
    };

    if (below(3)) {
        params.kinds[0] = below(4) ? HT_BENCH_32 : below(HT_BENCH_KINDS);
        params.nr_kinds = 1;
    } else {
        for (unsigned i = 0; i < HT_BENCH_KINDS; i++) {
            params.kinds[i] = below(HT_BENCH_KINDS);
        }
        params.nr_kinds = 1 + below(HT_BENCH_KINDS);
    }
    if (!below(16)) {
        /* emit at a fixed rate, so that the events are due within 1 ms */
        params.events = params.events < 64 ? params.events : 64;
        params.interval = ((hz << 16) / 1000 / params.events) >> below(8);
    }
    if (device[d]->dev.caps.channel == HT_CHANNEL_HYPERCALL && !below(8)) {
        device[d]->dev.caps.batch = magnitude(HT_BATCH_MAX);
    }
    producer = s;
    ht_bench_run(s, &params, &result);
    if (result.gave_up) {
        payload_die(PAYLOAD_FAILED, "the host makes no room",
                    device_channel(device[d]));
    }
    done.bursts++;
    done.discarded += result.discarded;
    return result.sent;
}

static uint64_t step(uint32_t few)
{
    unsigned d = below(nr_devices);
    struct slot *slot = &book.slots[d][below(streams_of(d))];
    uint64_t most = few >> d & 1 ? FEW_MAX : BURST_MAX, sent;

    if (!slot->open) {
        if (book.nr_closed + DEVICES_MAX * STREAMS_MAX >= CLOSED_MAX) {
            return 0;
        }
        slot_open(d, slot);
    }
    if (device[d]->dev.caps.channel == HT_CHANNEL_HYPERCALL) {
        most = EXITS_MAX;
    }
    sent = burst(d, &slot->s, most);
    switch (below(32)) {
    case 0 ... 3:
        ht_stream_push(&slot->s);
        done.pushes++;
        break;
    case 4 ... 5:
        check(ht_stream_flush(&slot->s), "cannot flush a stream");
        done.flushes++;
        break;
    case 6 ... 9:
        spin(hz / 1000000 * magnitude(PAUSE_MAX_US));
        done.pauses++;
        break;
    case 10:
        check(ht_time_sync(&device[d]->dev, 1 + below(4)),
              "cannot relate the clocks");
        break;
    case 11:
        check(ht_bench_register(&device[d]->dev, &all_kinds),
              "cannot register a class again");
        break;
    case 12 ... 13:
        slot_close(d, slot);
        break;
    }
    return sent;
}

static void close_all(void)
{
    for (unsigned d = 0; d < nr_devices; d++) {
        for (unsigned i = 0; i < streams_of(d); i++) {
            if (book.slots[d][i].open) {
                slot_close(d, &book.slots[d][i]);
            }
        }
    }
}

static void round(void)
{
    const char *end = cmdline_str("end", "close");
    uint64_t events = cmdline_u64("events", 100000, 1, 1ull << 40);
    uint32_t few = cmdline_u64("few", 0, 0, (1u << DEVICES_MAX) - 1);
    uint64_t sent = 0;

    state = cmdline_u64("seed", 1, 0, UINT64_MAX / 16);
    cmdline_done();
    ht_zero(&done, sizeof(done));
    changing(true);
    /* The host has read the entries of the previous round: reuse them. */
    book.nr_closed = 0;
    book.rounds++;
    changing(false);
    while (sent < events) {
        sent += step(few);
    }
    if (!strcmp(end, "close")) {
        close_all();
    } else if (!strcmp(end, "takeover")) {
        for (unsigned d = 0; d < nr_devices; d++) {
            if (below(2)) {
                take_over(d);
            }
        }
    } else if (strcmp(end, "leave") && strcmp(end, "reset")) {
        payload_die(PAYLOAD_USAGE, "a round cannot end so", end);
    }
    json_begin(NULL);
    json_str("function", "round");
    json_u64("sent", sent);
    json_u64("discarded", done.discarded);
    json_u64("bursts", done.bursts);
    json_u64("opened", done.opened);
    json_u64("closed", done.closed);
    json_u64("pauses", done.pauses);
    json_u64("pushes", done.pushes);
    json_u64("flushes", done.flushes);
    json_end();
    if (!strcmp(end, "reset")) {
        /* Wait for the line that the host sends after it has read the book. */
        serial_line();
        outb(RESET_PORT, RESET_HARD);
        for (;;) {
            asm volatile("pause");
        }
    }
}

static void open_devices(void)
{
    static const enum ht_bench_kind kinds[] = {
        HT_BENCH_8, HT_BENCH_32, HT_BENCH_64, HT_BENCH_256,
    };

    nr_devices = device_count();
    if (!nr_devices || nr_devices > DEVICES_MAX) {
        payload_die(PAYLOAD_USAGE, "no devices, or too many", NULL);
    }
    for (unsigned d = 0; d < nr_devices; d++) {
        device[d] = device_open(d);
        /*
         * Register in the same order on each device, so that all devices give a
         * class the same id: the struct ht_class of a kind has only one id.
         */
        for (unsigned k = 0; k < HT_BENCH_KINDS; k++) {
            struct ht_bench_params one = {
                .kinds = { kinds[k] }, .nr_kinds = 1,
            };

            check(ht_bench_register(&device[d]->dev, &one),
                  "cannot register a class");
        }
    }
    hz = clock_hz(device[0]->dev.caps.clock_hz);
    patience = hz * PATIENCE_S;
}

static void hello(void)
{
    json_begin(NULL);
    json_str("function", "soak");
    json_u64("devices", nr_devices);
    json_u64("book", (uintptr_t)&book);
    json_u64("size", sizeof(book));
    json_u64("closed", offsetof(struct book, closed));
    json_u64("closed_size", sizeof(struct closed));
    json_u64("slots", offsetof(struct book, slots));
    json_u64("slot_size", sizeof(struct slot));
    json_u64("slots_per_device", STREAMS_MAX);
    json_u64("open", offsetof(struct slot, open));
    json_begin("stream");
    json_u64("instance", offsetof(struct ht_stream, instance));
    json_u64("events", offsetof(struct ht_stream, events));
    json_u64("lost", offsetof(struct ht_stream, lost));
    json_u64("busy", offsetof(struct ht_stream, busy));
    json_u64("index", offsetof(struct ht_stream, index));
    json_u64("cur", offsetof(struct ht_stream, cur));
    json_u64("base", offsetof(struct ht_stream, base));
    json_u64("submitted", offsetof(struct ht_stream, submitted));
    json_u64("packet", offsetof(struct ht_stream, packet));
    json_u64("packets", offsetof(struct ht_stream, packets));
    json_u64("content", offsetof(struct ht_stream, content));
    json_end();
    json_end();
}

enum payload_exit payload_soak(void)
{
    static const char *const commands[] = { "round", "quit", NULL };

    cmdline_done();
    serial_init();
    open_devices();
    hello();
    for (;;) {
        switch (cmdline_init(serial_line(), commands)) {
        case 0:
            round();
            break;
        case 1:
            cmdline_done();
            close_all();
            for (unsigned d = 0; d < nr_devices; d++) {
                ht_bm_close(device[d]);
            }
            return PAYLOAD_OK;
        default:
            payload_die(PAYLOAD_USAGE, "no such command", NULL);
        }
    }
}
