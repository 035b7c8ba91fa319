/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: channel=hypercall
 *
 * The producer rings after each commit, or each `batch` of them; the vCPU that
 * rings consumes before the guest goes on, up to a bound.  The IOThread takes
 * what is beyond that, and looks at the clock for what an incomplete batch left
 * behind.
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "device.h"

/*
 * Context: vCPU thread; needs no BQL, and must not touch what unrealize frees
 * once the streams are closed (the sinks)
 */
static void hypercall_doorbell(HtStream *s)
{
    if (qatomic_load_acquire(&s->phase) != HT_PHASE_OPEN) {
        return;
    }
    ht_ring_consume(s, HT_DOORBELL_BYTES, false);
    if (ht_ring_stream_pending(s) && !qatomic_read(&s->dev->worker.starved)) {
        ht_worker_kick(s->dev);
    }
}

/* The lock is let go after each piece: a doorbell waits for no more. */
static size_t hypercall_consume(HtStream *s, bool force)
{
    size_t done = 0, n;

    do {
        n = ht_ring_consume(s, HT_DOORBELL_BYTES, force);
        done += n;
    } while (n && done < s->dev->conf.packet_size);
    return done;
}

const HtChannelOps ht_channel_hypercall = {
    .name = "hypercall",
    .uses_ring = true,
    .rings = true,
    .consume = hypercall_consume,
    .doorbell = hypercall_doorbell,
};
