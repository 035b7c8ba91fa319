/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's function bench: measure the cost of an event over each channel,
 * with the workload of ht-bench
 *
 *     bench [device=INDEX] [channel=NAME] [payload=LIST] [events=N]
 *           [mode=lossless|flat] [batch=N] [group=N] [rate=N]
 *     bench serial=1
 *
 * Without device and channel, all devices are measured in turn.  With serial=1,
 * the payload reads lines that the host writes to the serial port.  A line
 * "bench ..." with options of the first form starts a measurement, the line
 * "quit" ends the payload.
 */
#include "hypertrace/port.h"
#include "ht-bench-core.h"
#include "clock.h"
#include "cmdline.h"
#include "device.h"
#include "libc.h"
#include "mm.h"
#include "payload.h"
#include "serial.h"

#define PATIENCE_S      20
#define DEVICES_MAX     16

static struct ht_bm_device *device[DEVICES_MAX];
static struct ht_stream *stream[DEVICES_MAX];

/* maximum time for which a producer waits for room, in ticks */
static uint64_t patience;
static uint64_t waiting_since;
static struct ht_stream *producer;
/*
 * period of pushes while the producer waits for the time of its next event, in
 * ticks
 */
static uint64_t push_ticks;
static uint64_t pushed_at;

static bool pause_hook(uint64_t ticks, uint64_t tries)
{
    uint64_t now = ht_clock();

    if (!tries) {
        waiting_since = now;
    }
    /*
     * The payload has no timer that pushes events, so push them here, while the
     * producer waits for the time of its next event.
     */
    if (ticks && now - pushed_at >= push_ticks) {
        pushed_at = now;
        ht_stream_push(producer);
    }
    for (unsigned i = 0; i < 20; i++) {
        asm volatile("pause");
    }
    return ticks || ht_clock() - waiting_since < patience;
}

static const struct ht_bench_hooks hooks = {
    .print = put_str,
    .pause = pause_hook,
};

static void parse_payload(struct ht_bench_params *params, const char *list)
{
    params->nr_kinds = 0;
    while (params->nr_kinds < HT_BENCH_KINDS) {
        uint32_t size = 0;
        unsigned k = 0;

        while (*list >= '0' && *list <= '9' && size < 1000) {
            size = size * 10 + (*list++ - '0');
        }
        while (k < HT_BENCH_KINDS && ht_bench_payload(k) != size) {
            k++;
        }
        if (k == HT_BENCH_KINDS || (*list && *list != ',')) {
            break;
        }
        params->kinds[params->nr_kinds++] = k;
        if (!*list++) {
            return;
        }
    }
    payload_die(PAYLOAD_USAGE, "payload is up to four of 8,32,64,256", NULL);
}

static void check(int ret, const char *what)
{
    if (ret < 0) {
        payload_die(PAYLOAD_FAILED, what, errno_name(ret));
    }
}

static struct ht_stream *open_stream(unsigned index)
{
    struct ht_device *dev = &device[index]->dev;
    struct ht_stream *s = stream[index];
    bool first = !s;

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
         * The guest's first access to a page may cause an exit: access all
         * pages before the measurement.
         */
        memset(s->packets, 0, (uint64_t)dev->caps.packet_size *
                              dev->caps.packets);
    }
    return s;
}

static bool bench_device(unsigned index, const struct ht_bench_params *setting,
                         uint64_t rate)
{
    struct ht_bm_device *d = device[index];
    static struct ht_bench_result one, sum;
    struct ht_bench_params params = *setting;
    struct ht_bench_stream counts;
    struct ht_stream *s;
    struct ht_bench_report report = {
        .dev = &d->dev,
        .params = &params,
        .sum = &sum,
        .streams = &counts,
        .nr_streams = 1,
        .clock_hz = clock_hz(d->dev.caps.clock_hz),
        .rate = rate,
    };

    patience = report.clock_hz * PATIENCE_S;
    push_ticks = report.clock_hz / 1000 * d->dev.caps.flush_ms;
    pushed_at = 0;
    params.interval = rate ? (report.clock_hz << 16) / rate : 0;
    if (!params.group) {
        /*
         * With channel=hypercall each doorbell is an exit to QEMU.  The library
         * rings after every caps.batch events, and earlier if the ring is
         * almost full.  So time groups of caps.batch events: in general, each
         * has one doorbell.
         */
        params.group = d->dev.caps.channel == HT_CHANNEL_HYPERCALL ?
                       d->dev.caps.batch : 32;
    }
    check(ht_bench_register(&d->dev, &params), "cannot register a class");
    s = open_stream(index);
    producer = s;

    ht_bench_run(s, &params, &one);
    check(ht_stream_close(s), "cannot close the stream");
    ht_zero(&sum, sizeof(sum));
    ht_bench_add(&sum, &one);
    report.drain_ticks = ht_clock() - one.end;
    counts = (struct ht_bench_stream) {
        .index = s->index,
        .instance = s->instance,
        .sent = one.sent,
        .discarded = one.discarded,
        .doorbells = s->doorbells,
    };
    ht_bench_json(&report);
    return !one.gave_up;
}

static bool bench(unsigned devices)
{
    const char *mode = cmdline_str("mode", "lossless");
    struct ht_bench_params params = {
        .hooks = &hooks,
        .lossless = !strcmp(mode, "lossless"),
        .events = cmdline_u64("events", 100000, 1, 1ull << 40),
        .group = cmdline_u64("group", 0, 1, 65536),
    };
    uint64_t rate = cmdline_u64("rate", 0, 1, 1000000000);
    uint64_t batch = cmdline_u64("batch", 0, 1, HT_BATCH_MAX);
    uint64_t only = cmdline_u64("device", UINT64_MAX, 0, DEVICES_MAX - 1);
    const char *channel = cmdline_str("channel", NULL);
    unsigned found = 0;
    bool ok = true;

    if (!params.lossless && strcmp(mode, "flat")) {
        payload_die(PAYLOAD_USAGE, "mode is lossless or flat", mode);
    }
    parse_payload(&params, cmdline_str("payload", "32"));
    cmdline_done();
    for (unsigned i = 0; i < devices; i++) {
        struct ht_caps *caps = &device[i]->dev.caps;
        uint32_t old_batch = caps->batch;

        if ((only != UINT64_MAX && only != i) ||
            (channel && strcmp(channel, device_channel(device[i])))) {
            continue;
        }
        found++;
        if (batch) {
            /*
             * The device only proposes caps.batch: the guest may use another
             * value, such as that of the option "batch".
             */
            caps->batch = batch;
        }
        ok = bench_device(i, &params, rate) && ok;
        caps->batch = old_batch;
    }
    if (!found) {
        payload_die(PAYLOAD_USAGE, "no such hypertrace device", channel);
    }
    return ok;
}

static bool bench_commands(unsigned devices)
{
    static const char *const commands[] = { "bench", "quit", NULL };
    bool ok = true;

    cmdline_done();
    serial_init();
    json_begin(NULL);
    json_str("function", "bench");
    json_u64("devices", devices);
    json_end();
    for (;;) {
        switch (cmdline_init(serial_line(), commands)) {
        case 0:
            ok = bench(devices) && ok;
            break;
        case 1:
            cmdline_done();
            return ok;
        default:
            payload_die(PAYLOAD_USAGE, "no such command", NULL);
        }
    }
}

enum payload_exit payload_bench(void)
{
    bool serial = cmdline_u64("serial", 0, 0, 1);
    unsigned devices = device_count();
    bool ok;

    if (devices > DEVICES_MAX) {
        payload_die(PAYLOAD_USAGE, "too many devices", NULL);
    }
    for (unsigned i = 0; i < devices; i++) {
        device[i] = device_open(i);
    }
    ok = serial ? bench_commands(devices) : bench(devices);
    for (unsigned i = 0; i < devices; i++) {
        ht_bm_close(device[i]);
    }
    return ok ? PAYLOAD_OK : PAYLOAD_FAILED;
}
