/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: hand events over to the host by the channel hypercall
 *
 * The producer rings the doorbell after every `batch` commits, earlier if the
 * ring is almost full, and for a push or flush.  The store to the doorbell
 * causes an exit.  Before the vCPU continues, the host consumes at most 8 KiB
 * and at most 1000 events, or one larger event.
 */
#include "core.h"

static const uint64_t wake_always;   /* 0, so a commit always calls notify() */

static void hypercall_opened(struct ht_stream *s)
{
    s->wake = &wake_always;
}

static void ring(struct ht_stream *s)
{
    s->batch_events = s->events;
    ht_ring_doorbell(s);
}

static void hypercall_notify(struct ht_stream *s)
{
    if (s->events - s->batch_events >= s->dev->caps.batch) {
        ring(s);
    }
}

/*
 * A batch may be larger than a ring, so ring the doorbell early if the packet
 * after the next one is not free.  ht_has_space() loads the tail: before the
 * doorbell because the host may have freed packets at an earlier doorbell, and
 * after it to get what the host has freed now.
 */
static void hypercall_closed(struct ht_stream *s)
{
    if (s->events != s->batch_events && !ht_has_space(s, s->packet + 1)) {
        ring(s);
        ht_has_space(s, s->packet);
    }
}

static int hypercall_flush(struct ht_stream *s)
{
    if (s->events != s->batch_events) {
        ring(s);
    }
    return 0;
}

const struct ht_channel_ops ht_channel_hypercall = {
    .opened = hypercall_opened,
    .notify = hypercall_notify,
    .closed = hypercall_closed,
    .flush = hypercall_flush,
};
