/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests: the loopback port, host side
 *
 * The host's server (host-lib) runs in the guest's process.  This file adds
 * virtio's buffers and the thread that consumes.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/thread.h"
#include <poll.h>
#include <sys/eventfd.h>
#include "loopback-host.h"

/* Maximum time in ms for which the host's thread waits for a doorbell */
#define FLUSH_MS 10

/* Duration in ns of the measurement of the counter's frequency */
#define CALIBRATE_NS 2000000

static uint64_t counter(void *opaque)
{
    (void)opaque;
    return ht_clock();
}

static uint64_t measure_hz(void)
{
    uint64_t ns0 = ht_now_ns(), c0 = ht_clock(), ns, ticks;

    do {
        ns = ht_now_ns() - ns0;
        ticks = ht_clock() - c0;
    } while (ns < CALIBRATE_NS);
    return MAX(ticks * 1000000000.0 / ns, 1000);
}

uint64_t ht_loopback_sum(const uint8_t *data, size_t size)
{
    uint64_t sum = size;

    while (size--) {
        sum = (sum << 7 | sum >> 57) + *data++;
    }
    return sum;
}

/*
 * HtServerOps.take: consume the virtio buffers of a stream. Context: the stream
 * locked
 */
static size_t take_buffers(void *opaque, uint32_t stream, HtConsumer *c)
{
    struct ht_loopback *lb = opaque;
    struct ht_loopback_stream *st = &lb->streams[stream];
    size_t n = st->queued - st->done;

    while (st->done != st->queued) {
        struct ht_loopback_buffer *b = &st->buffers[st->done % lb->cfg.queue];
        size_t size = b->head.to - b->head.from;

        memcpy(st->copy, b->data, size);
        if (ht_loopback_sum(st->copy, size) != b->sum) {
            g_error("loopback: a buffer was changed while under way");
        }
        ht_consumer_feed(c, &b->head, st->copy, size);
        st->done++;
    }
    return n;
}

/*
 * HtServerOps.opened: forget the previous instance's buffers.  Context: the
 * stream locked
 */
static void opened(void *opaque, const HtStreamInfo *info)
{
    struct ht_loopback *lb = opaque;

    lb->streams[info->index].queued = 0;
    lb->streams[info->index].done = 0;
}

static bool wants(void *opaque, const HtClass *c)
{
    struct ht_loopback *lb = opaque;

    return !ht_atomic_read(&lb->off[c->id]);
}

static void deliver(void *opaque, const HtRun *run)
{
    struct ht_loopback *lb = opaque;

    lb->cfg.deliver(lb->cfg.opaque, run);
}

size_t ht_loopback_consume(struct ht_loopback *lb, uint32_t stream)
{
    return ht_server_consume(lb->server, stream, SIZE_MAX);
}

/*
 * Poll all streams once. If there was nothing to consume, arm the wake words on
 * channel=shm. Return true if there still is nothing to consume, so that the
 * host's thread may wait for a doorbell.
 */
static bool look(struct ht_loopback *lb)
{
    const bool armed = lb->cfg.channel == HT_CHANNEL_SHM;
    bool sleep = true;
    uint32_t i;

    for (i = 0; i < lb->cfg.streams; i++) {
        sleep &= ht_loopback_consume(lb, i) == 0;
    }
    return sleep && !(armed && ht_server_arm(lb->server, lb->cfg.eager));
}

void ht_loopback_step(struct ht_loopback *lb)
{
    while (!look(lb)) {
        /* poll again until look() finds nothing to consume */
    }
}

void ht_loopback_wake(struct ht_loopback *lb)
{
    uint64_t one = 1;

    if (lb->thread && write(lb->doorbell, &one, sizeof(one)) < 0) {
        g_error("loopback: doorbell: %s", g_strerror(errno));
    }
}

static gpointer host_thread(gpointer opaque)
{
    struct ht_loopback *lb = opaque;

    while (!ht_atomic_load_acquire(&lb->quit)) {
        struct pollfd p = { .fd = lb->doorbell, .events = POLLIN };
        uint64_t rung;

        if (!look(lb)) {
            if (lb->cfg.pace_us) {
                g_usleep(lb->cfg.pace_us);
            }
            continue;
        }
        if (poll(&p, 1, FLUSH_MS) > 0 &&
            read(lb->doorbell, &rung, sizeof(rung)) < 0) {
            g_error("loopback: doorbell: %s", g_strerror(errno));
        }
        if (lb->cfg.channel == HT_CHANNEL_SHM) {
            ht_server_disarm(lb->server);
        }
    }
    return NULL;
}

void ht_loopback_start(struct ht_loopback *lb, struct ht_ring_control **rings)
{
    static const HtServerOps ring_ops = {
        .deliver = deliver,
        .wants = wants,
        .counter = counter,
    };
    static const HtServerOps buffer_ops = {
        .deliver = deliver,
        .wants = wants,
        .counter = counter,
        .opened = opened,
        .take = take_buffers,
    };
    const HtServerConfig cfg = {
        .streams = lb->cfg.streams,
        .packet_size = lb->cfg.packet_size,
        .packets = lb->cfg.packets,
        .mode = lb->cfg.mode,
        .rings = rings,
        .enable = lb->enable,
        .hz = measure_hz(),
        .ppm = HT_TIME_NOMINAL_PPM,
        .future = true,
        .ops = lb->cfg.channel == HT_CHANNEL_VIRTIO ? &buffer_ops : &ring_ops,
        .opaque = lb,
    };

    lb->server = ht_server_new(&cfg);
    lb->doorbell = eventfd(0, EFD_CLOEXEC);
    if (lb->doorbell < 0) {
        g_error("loopback: eventfd: %s", g_strerror(errno));
    }
    if (lb->cfg.host == HT_LOOPBACK_THREAD) {
        lb->thread = g_thread_new("loopback", host_thread, lb);
    }
}

void ht_loopback_stop(struct ht_loopback *lb)
{
    if (lb->thread) {
        ht_atomic_store_release(&lb->quit, 1);
        ht_loopback_wake(lb);
        g_thread_join(lb->thread);
    }
    close(lb->doorbell);
    ht_server_free(lb->server);
}

uint64_t ht_loopback_close(struct ht_loopback *lb, uint32_t stream)
{
    return ht_server_close(lb->server, stream);
}

void ht_loopback_enable(struct ht_loopback *lb, uint32_t id, bool on)
{
    ht_atomic_set(&lb->off[id], !on);
    ht_server_decide(lb->server);
}

const HtClassTable *ht_loopback_classes(struct ht_loopback *lb)
{
    return ht_server_classes(lb->server);
}

const HtConsumer *ht_loopback_consumer(struct ht_loopback *lb, uint32_t stream)
{
    return ht_server_consumer(lb->server, stream);
}

void ht_loopback_message(struct ht_loopback *lb, struct ht_msg *msg)
{
    ht_server_exchange(lb->server, msg, msg->size);
    if (msg->type == HT_MSG_CLASS_REGISTER && msg->status == HT_STATUS_OK &&
        lb->busy[((struct ht_msg_class *)msg)->id]++ < lb->cfg.busy_replies) {
        msg->status = HT_STATUS_BUSY;
    }
}
