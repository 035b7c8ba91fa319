/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: hand events over to the host by the channel hypercall
 *
 * The producer rings the doorbell after every `batch` commits.  The store to
 * the doorbell causes an exit, and the host consumes up to 8 KiB and up to 1000
 * events before the vCPU continues.
 */
#include "core.h"

static const uint64_t wake_always;       /* 0, so each commit calls notify() */

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
 * after the next one is not free.  Load the tail for this test, because the
 * host may have freed packets at an earlier doorbell.
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
