/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: channel=hypercall
 *
 * The producer rings the doorbell after each commit, or each `batch` of them.
 * The vCPU that rings consumes before the guest continues, up to a limit.  The
 * IOThread consumes what exceeds the limit, and periodically polls for the rest
 * of an incomplete batch.
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "device.h"

/*
 * Context: vCPU thread; does not need the BQL, and must not use the sinks after
 * the streams are closed, because unrealize frees them
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

/* Release the lock after each piece, to bound the wait of a doorbell. */
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
