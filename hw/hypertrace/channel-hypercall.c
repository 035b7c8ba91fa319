/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: channel=hypercall
 *
 * The producer rings after each commit, or each `batch` of them; the vCPU that
 * rings consumes before the guest goes on.  The IOThread looks at the clock
 * for what an incomplete batch left behind.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
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
    ht_ring_consume(s);
    if (s->dev->deferred) {
        ht_thread_kick(s->dev);
    }
}

const HtChannelOps ht_channel_hypercall = {
    .name = "hypercall",
    .uses_ring = true,
    .consumes_in_vcpu = true,
    .consume = ht_ring_consume,
    .doorbell = hypercall_doorbell,
};
