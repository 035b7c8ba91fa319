/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: channel=shm
 *
 * The producer rings the doorbell at most once each time the consumer arms it.
 * Under KVM, the write ends in the kernel, at the doorbell's ioeventfd; the
 * handler here serves accelerators and accesses without ioeventfd.
 */
#include "qemu/osdep.h"
#include "device.h"

/* Context: vCPU thread */
static void shm_doorbell(HtStream *s)
{
    ht_worker_kick(s->dev);
}

static void shm_realize(HypertraceDevice *dev)
{
    /* Stride 0: one address serves all streams, and carries no data. */
    memory_region_add_eventfd(&dev->regs, HT_REGS_DOORBELL, 4, false, 0,
                              &dev->worker.doorbell);
}

static void shm_unrealize(HypertraceDevice *dev)
{
    memory_region_del_eventfd(&dev->regs, HT_REGS_DOORBELL, 4, false, 0,
                              &dev->worker.doorbell);
}

static size_t shm_consume(HtStream *s, bool force)
{
    const HtWorker *w = &s->dev->worker;

    if (qatomic_read(&w->unread) && !w->settling && !force) {
        return 0;
    }
    return ht_ring_consume(s, s->dev->conf.packet_size, force);
}

const HtChannelOps ht_channel_shm = {
    .name = "shm",
    .uses_ring = true,
    .arms = true,
    .realize = shm_realize,
    .unrealize = shm_unrealize,
    .consume = shm_consume,
    .doorbell = shm_doorbell,
};
