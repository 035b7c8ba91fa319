/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: what an event costs over each channel; the workload is ht-bench's
 *
 *     bench [device=INDEX] [channel=NAME] [payload=LIST] [events=N]
 *           [mode=lossless|flat] [batch=N] [group=N] [rate=N]
 *
 * Without device and channel, all devices in turn.
 */
#include "hypertrace/port.h"
#include "ht-bench-core.h"
#include "clock.h"
#include "cmdline.h"
#include "device.h"
#include "libc.h"
#include "mm.h"
#include "payload.h"

#define PATIENCE_S      20      /* without a free packet */

static uint64_t patience;       /* ticks */
static uint64_t waiting_since;

static bool pause_hook(uint64_t ticks, uint64_t tries)
{
    if (!tries) {
        waiting_since = ht_clock();
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

static bool bench_device(struct ht_bm_device *d,
                         const struct ht_bench_params *setting, uint64_t rate)
{
    static struct ht_bench_result one, sum;
    struct ht_stream *s = mm_alloc(sizeof(*s), 64);
    struct ht_bench_params params = *setting;
    struct ht_bench_stream stream;
    struct ht_bench_report report = {
        .dev = &d->dev,
        .params = &params,
        .sum = &sum,
        .streams = &stream,
        .nr_streams = 1,
        .clock_hz = clock_hz(d->dev.caps.clock_hz),
        .rate = rate,
    };

    if (!s) {
        payload_die(PAYLOAD_USAGE, "not enough memory", NULL);
    }
    patience = report.clock_hz * PATIENCE_S;
    params.interval = rate ? (report.clock_hz << 16) / rate : 0;
    if (!params.group) {
        /* so that each sample has one doorbell, where they are real exits */
        params.group = d->dev.caps.channel == HT_CHANNEL_HYPERCALL ?
                       d->dev.caps.batch : 32;
    }
    check(ht_bench_register(&d->dev, &params), "cannot register a class");
    check(ht_stream_open(&d->dev, s, NULL), "cannot open a stream");
    /* The first touch of a page is an exit of another kind: before timing. */
    memset(s->packets, 0,
           (uint64_t)d->dev.caps.packet_size * d->dev.caps.packets);

    ht_bench_run(s, &params, &one);
    check(ht_stream_close(s), "cannot close the stream");
    ht_zero(&sum, sizeof(sum));
    ht_bench_add(&sum, &one);
    report.drain_ticks = ht_clock() - one.end;
    stream = (struct ht_bench_stream) {
        .index = s->index,
        .instance = s->instance,
        .sent = one.sent,
        .discarded = one.discarded,
        .doorbells = s->doorbells,
    };
    ht_bench_json(&report);
    return !one.gave_up;
}

enum payload_exit payload_bench(void)
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
    uint64_t only = cmdline_u64("device", UINT64_MAX, 0, 255);
    const char *channel = cmdline_str("channel", NULL);
    unsigned devices = device_count();
    unsigned found = 0;
    bool ok = true;

    if (!params.lossless && strcmp(mode, "flat")) {
        payload_die(PAYLOAD_USAGE, "mode is lossless or flat", mode);
    }
    parse_payload(&params, cmdline_str("payload", "32"));
    cmdline_done();
    for (unsigned i = 0; i < devices; i++) {
        struct ht_bm_device *d;

        if (only != UINT64_MAX && only != i) {
            continue;
        }
        d = device_open(i);
        if (!channel || !strcmp(channel, device_channel(d))) {
            found++;
            if (batch) {
                d->dev.caps.batch = batch;      /* the guest's to decide */
            }
            ok = bench_device(d, &params, rate) && ok;
        }
        ht_bm_close(d);
    }
    if (!found) {
        payload_die(PAYLOAD_USAGE, "no such hypertrace device", channel);
    }
    return ok ? PAYLOAD_OK : PAYLOAD_FAILED;
}
