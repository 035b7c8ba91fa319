/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's function study: take the measurements that the host requests
 * one by one through the serial port, so that the host can alternate between
 * those that it compares
 *
 * A command is a line.  Its result is a line on the debug port, a JSON object;
 * with hold=1 or delay=MS, and for "pair", further lines are printed:
 *
 *     run device=I event=0|8|32|64|256|1024|4096 events=N [group=N]
 *         [batch=N] [mode=lossless|flat|rate] [rate=N] [hold=1]
 *         [delay=MS]
 *     peer name=NAME events=N [group=N] [hold=1]
 *     pair device=I producers=1|2 events=N
 *     quit
 *
 * mode=lossless: before each group, the producer waits for room; the groups'
 *     times do not include the waits.
 * mode=flat: the producer emits the groups without a wait.
 * mode=rate: the producer waits until the next group is due, so that it emits
 *     N events a second.  Meanwhile it pushes the open packet every half of the
 *     device's flush-ms.  It never waits for room.
 * hold=1: print "opened" before the first event and "emitted" after the last
 *     one, and wait for a line after each, so that the host can stop its
 *     consumer while events are emitted.  The command "run" brings the ring
 *     into this processor's cache after the first of these lines.  The command
 *     "pair" always waits for two lines, see pair().
 * delay=MS: print "ready", wait for MS milliseconds without an exit, then
 *     begin, so that the host can stop the thread of QEMU that passes on the
 *     host's lines.
 */
#include "hypertrace/port.h"
#include "clock.h"
#include "cmdline.h"
#include "device.h"
#include "emit-bench.h"
#include "libc.h"
#include "mm.h"
#include "pair.h"
#include "payload.h"
#include "peers.h"
#include "samples.h"
#include "serial.h"
#include "smp.h"

#define DEVICES_MAX     24
#define PATIENCE_S      20

static const struct {
    uint32_t size;
    void (*emit)(struct ht_stream *s, uint64_t n);
} events[] = {
    { 0, bench_emit_0 }, { 8, bench_emit_8 }, { 32, bench_emit_32 },
    { 64, bench_emit_64 }, { 256, bench_emit_256 },
    { 1024, bench_emit_1024 }, { 4096, bench_emit_4096 },
};

#define NR_EVENTS       (sizeof(events) / sizeof(events[0]))

static struct ht_bm_device *device[DEVICES_MAX];
static struct ht_stream *stream[DEVICES_MAX];
static struct samples samples;

static void check(int ret, const char *what)
{
    if (ret < 0) {
        payload_die(PAYLOAD_FAILED, what, errno_name(ret));
    }
}

static void say(const char *what)
{
    json_begin(NULL);
    json_str("function", what);
    json_end();
}

static void hold(const char *at)
{
    say(at);
    serial_line();
}

/*
 * Return true if the packet after the open one is free, so that the next group
 * of events fits even if the open packet has no room; also if the stream
 * overwrites old packets
 */
static bool room(struct ht_stream *s)
{
    uint64_t packet = s->packet + (s->cur ? 1 : 0);

    return packet - s->tail <= s->packets_mask || s->overwrite ||
           ht_has_space(s, packet);
}

static bool wait_for_room(struct ht_stream *s, uint64_t hz, uint64_t *waits)
{
    uint64_t since = ht_clock();

    while (!room(s)) {
        ++*waits;
        for (unsigned i = 0; i < 20; i++) {
            asm volatile("pause");
        }
        if (ht_clock() - since > hz * PATIENCE_S) {
            return false;
        }
    }
    return true;
}

/*
 * Wait until @due. Every half of flush_ms, push the events in the open packet,
 * so that the host has the other half of flush_ms to deliver them.
 */
static void wait_until(struct ht_stream *s, uint64_t due, uint64_t hz)
{
    static uint64_t pushed;
    uint64_t now;

    while ((int64_t)(due - (now = ht_clock())) > 0) {
        if (now - pushed > hz / 2000 * s->dev->caps.flush_ms) {
            ht_stream_push(s);
            pushed = now;
        }
        asm volatile("pause");
    }
}

/*
 * Write zeros to all packets of a stream's ring, so that this processor caches
 * them as far as its cache has room.  The ring must be empty.
 */
static void touch(struct ht_stream *s)
{
    memset(s->packets, 0, (uint64_t)s->dev->caps.packet_size *
                          s->dev->caps.packets);
}

static struct ht_stream *open_stream(unsigned index)
{
    struct ht_device *dev = &device[index]->dev;
    struct ht_stream *s = stream[index];
    bool first = !s;

    /*
     * struct ht_class holds an id that is valid on one device only: register
     * the classes again, to get the ids of this device.
     */
    check(bench_register(dev), "cannot register a class");
    check(bench_register_sizes(dev), "cannot register a class");
    if (first) {
        s = mm_alloc(sizeof(*s), 64);
        if (!s) {
            payload_die(PAYLOAD_USAGE, "not enough memory", NULL);
        }
        stream[index] = s;
    }
    check(ht_stream_open(dev, s, NULL), "cannot open a stream");
    if (first) {
        /*
         * Access each page now: the guest's first access to a page may cause an
         * exit, which must not be part of the measurement.
         */
        touch(s);
    }
    return s;
}

static void run(void)
{
    const char *mode = cmdline_str("mode", "lossless");
    unsigned index = cmdline_u64("device", 0, 0, DEVICES_MAX - 1);
    uint32_t size = cmdline_u64("event", 32, 0, 4096);
    uint64_t total = cmdline_u64("events", 10000, 1, 1ull << 40);
    uint32_t group = cmdline_u64("group", 1, 1, 1 << 20);
    uint64_t batch = cmdline_u64("batch", 0, 1, HT_BATCH_MAX);
    uint64_t rate = cmdline_u64("rate", 0, 1, 1000000000);
    bool held = cmdline_u64("hold", 0, 0, 1);
    uint64_t delay = cmdline_u64("delay", 0, 1, 10000);
    bool lossless = !strcmp(mode, "lossless");
    uint64_t waits = 0, busy = 0, begin, end, drained, hz, interval, due = 0;
    struct ht_stream *s;
    uint32_t old_batch;
    unsigned kind = 0;
    bool gave_up = false;

    if (!device[index] || (!lossless && strcmp(mode, "flat") &&
                           strcmp(mode, "rate")) ||
        !strcmp(mode, "rate") != !!rate) {
        payload_die(PAYLOAD_USAGE, "no such device or mode", mode);
    }
    while (kind < NR_EVENTS && events[kind].size != size) {
        kind++;
    }
    if (kind == NR_EVENTS) {
        payload_die(PAYLOAD_USAGE, "no event of this size", NULL);
    }
    if (lossless && (uint64_t)group * (size + HT_EVENT_HEADER_EXT) +
        sizeof(struct ht_packet) > device[index]->dev.caps.packet_size) {
        payload_die(PAYLOAD_USAGE, "a group does not fit into a packet", NULL);
    }
    cmdline_done();
    old_batch = device[index]->dev.caps.batch;
    if (batch) {
        device[index]->dev.caps.batch = batch;
    }
    hz = clock_hz(device[index]->dev.caps.clock_hz);
    interval = rate ? (uint64_t)((double)hz * group / rate * 65536) : 0;
    s = open_stream(index);

    if (held) {
        hold("opened");
    }
    if (delay) {
        uint64_t until = ht_clock() + delay * (hz / 1000);

        say("ready");
        while ((int64_t)(until - ht_clock()) > 0) {
            asm volatile("pause");
        }
    }
    if (held) {
        touch(s);
    }
    samples.nr = 0;
    begin = ht_clock();
    for (uint64_t i = 0; i < total; i += group) {
        uint32_t n = total - i < group ? total - i : group;
        uint64_t before, ticks;

        if (lossless && !wait_for_room(s, hz, &waits)) {
            gave_up = true;
            break;
        }
        if (interval) {
            due += interval;
            wait_until(s, begin + (due >> 16), hz);
        }
        before = ht_clock();
        events[kind].emit(s, n);
        ticks = ht_clock() - before;
        busy += ticks;
        samples_add(&samples, ticks, n);
    }
    end = ht_clock();
    if (held) {
        hold("emitted");
    }
    check(ht_stream_close(s), "cannot close the stream");
    /*
     * With the option "hold", drain_ns includes the time for which hold()
     * waited for the host's line after "emitted".
     */
    drained = ht_clock();
    device[index]->dev.caps.batch = old_batch;

    json_begin(NULL);
    json_str("function", "run");
    json_u64("device", index);
    json_str("channel", device_channel(device[index]));
    json_u64("event", size);
    json_u64("packet_size", device[index]->dev.caps.packet_size);
    json_u64("packets", device[index]->dev.caps.packets);
    json_str("mapping", device[index]->dev.mapping);
    json_u64("group", group);
    json_u64("sent", s->events);
    json_u64("discarded", s->lost);
    json_u64("waits", waits);
    json_bool("gave_up", gave_up);
    json_u64("doorbells", s->doorbells);
    json_milli("ns", clock_ps(busy, hz) / (s->events + s->lost));
    json_u64("duration_ns", clock_ps(end - begin, hz) / 1000);
    json_u64("drain_ns", clock_ps(drained - end, hz) / 1000);
    samples_json(&samples, hz);
    json_end();
}

/*
 * Print "opened", and wait for a line of the host. Then emit, print the result
 * row, and wait for another line. Then close, and print "closed".
 */
static void pair(void)
{
    static struct ht_stream *streams[PAIR_MAX];
    unsigned index = cmdline_u64("device", 0, 0, DEVICES_MAX - 1);
    unsigned n = cmdline_u64("producers", 1, 1, PAIR_MAX);
    uint64_t total = cmdline_u64("events", 64000, 64, 1ull << 40);
    struct ht_device *dev;
    uint64_t hz;

    if (!device[index]) {
        payload_die(PAYLOAD_USAGE, "no such device", NULL);
    }
    cmdline_done();
    dev = &device[index]->dev;
    hz = clock_hz(dev->caps.clock_hz);
    if (!smp_start(hz)) {
        payload_die(PAYLOAD_FAILED, "no second processor came up", NULL);
    }
    check(bench_register(dev), "cannot register a class");
    for (unsigned i = 0; i < n; i++) {
        /*
         * Let each stream begin on a new page, so that two streams share no
         * page: processors also prefetch neighbouring cache lines.
         */
        streams[i] = streams[i] ?: mm_alloc(sizeof(*streams[i]), 4096);
        if (!streams[i]) {
            payload_die(PAYLOAD_USAGE, "not enough memory", NULL);
        }
        check(ht_stream_open(dev, streams[i], NULL), "cannot open a stream");
        touch(streams[i]);
    }
    hold("opened");
    pair_run(streams, n, total, hz);
    serial_line();
    for (unsigned i = 0; i < n; i++) {
        check(ht_stream_close(streams[i]), "cannot close the stream");
    }
    say("closed");
}

static void peer(const struct ht_bm_platform *platform)
{
    const char *name = cmdline_str("name", "");
    uint64_t total = cmdline_u64("events", 1000, 1, 1ull << 40);
    uint32_t group = cmdline_u64("group", 1, 1, 1 << 20);
    bool held = cmdline_u64("hold", 0, 0, 1);
    uint64_t hz = clock_hz(device[0] ? device[0]->dev.caps.clock_hz : 0);
    uint64_t begin, end;
    unsigned i = 0;
    int ret;

    while (peers[i] && strcmp(peers[i]->name, name)) {
        i++;
    }
    if (!peers[i]) {
        payload_die(PAYLOAD_USAGE, "no such peer", name);
    }
    cmdline_done();
    ret = peers[i]->open(platform);
    if (ret) {
        payload_die(PAYLOAD_FAILED, "cannot use this peer", errno_name(ret));
    }
    if (held) {
        hold("opened");
    }
    samples.nr = 0;
    begin = ht_clock();
    for (uint64_t at = 0; at < total; at += group) {
        uint32_t n = total - at < group ? total - at : group;
        uint64_t before = ht_clock();

        peers[i]->emit(n);
        samples_add(&samples, ht_clock() - before, n);
    }
    end = ht_clock();
    if (held) {
        hold("emitted");
    }
    json_begin(NULL);
    json_str("function", "peer");
    json_str("peer", name);
    json_u64("group", group);
    json_u64("sent", total);
    json_milli("ns", clock_ps(end - begin, hz) / total);
    json_u64("duration_ns", clock_ps(end - begin, hz) / 1000);
    samples_json(&samples, hz);
    json_end();
}

enum payload_exit payload_study(void)
{
    static const char *const commands[] = {
        "run", "peer", "pair", "quit", NULL
    };
    unsigned nr = device_count();

    cmdline_done();
    serial_init();
    json_begin(NULL);
    json_str("function", "study");
    for (unsigned i = 0; i < nr && i < DEVICES_MAX; i++) {
        device[i] = device_open(i);
    }
    json_u64("devices", nr);
    json_u64("clock_hz", clock_hz(nr ? device[0]->dev.caps.clock_hz : 0));
    json_end();
    for (;;) {
        switch (cmdline_init(serial_line(), commands)) {
        case 0:
            run();
            break;
        case 1:
            peer(device_platform());
            break;
        case 2:
            pair();
            break;
        case 3:
            cmdline_done();
            for (unsigned i = 0; i < nr && i < DEVICES_MAX; i++) {
                ht_bm_close(device[i]);
            }
            return PAYLOAD_OK;
        default:
            payload_die(PAYLOAD_USAGE, "no such command", NULL);
        }
    }
}
