/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the channels hypercall and shm, which have rings in stream RAM
 *
 * hypercall: the producer rings the doorbell after every `batch` commits.  If a
 * sink has room, the vCPU's thread then consumes up to HT_DOORBELL_BYTES or
 * HT_DOORBELL_EVENTS, or one larger event.  The IOThread consumes the rest.  If
 * `batch` is not 1, it also polls for the events of an incomplete batch.
 *
 * shm: the producer rings the doorbell at most once each time the consumer arms
 * the wake word.  With an ioeventfd (KVM), the write of 4 bytes ends in the
 * kernel.  Other writes, and those under other accelerators, run the handler in
 * this file.
 *
 * Consuming is modelled in tests/model/ring.pml, arming in wake.pml.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "device.h"

/*
 * Mark the guest's last writes dirty, because TCG may miss them.  A TLB entry
 * that is filled while QEMU syncs dirty pages may still say that its page is
 * dirty although the sync has marked the page clean (tlb_set_page_full(),
 * tlb_reset_dirty_range_all() in QEMU).  If the VM stops then, the migrated
 * head can be older than the position up to which the host has consumed.
 */
void ht_ring_pause(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);
    const uint64_t size = dev->conf.packet_size, nr = dev->conf.packets;
    uint64_t first = s->consumer.cursor / size;
    uint64_t last = le64_to_cpu(qatomic_read(&s->ring->guest.head)) / size;
    uint64_t i;

    memory_region_set_dirty(dev->ring_mr, (uint8_t *)s->ring - dev->ring_ram,
                            sizeof(*s->ring));
    /* Mark at most the whole ring, even if the guest's head is not valid. */
    for (i = 0; i <= MIN(last - first, nr - 1); i++) {
        memory_region_set_dirty(dev->ring_mr, s->packets - dev->ring_ram +
                                (first + i) % nr * size, size);
    }
}

/*
 * HtChannelOps.doorbell.  If the stream is closed, do not use the sinks, which
 * unrealize may have freed.  Context: vCPU thread; the BQL is not needed
 */
static void hypercall_doorbell(HtStream *s)
{
    HypertraceDevice *dev = ht_stream_device(s);

    if (ht_stream_phase(s) != HT_PHASE_OPEN) {
        return;
    }
    ht_stream_consume(s, HT_DOORBELL_BYTES, false);
    if (ht_consumer_pending(&s->consumer, s->ring) &&
        !qatomic_read(&dev->worker.starved)) {
        ht_worker_kick(dev);
    }
}

/*
 * Consume about a packet, in pieces.  Release the stream's lock after each
 * piece, so that a vCPU in the doorbell need not wait for the whole packet.
 */
static size_t hypercall_consume(HtStream *s, bool force)
{
    size_t done = 0, n;

    do {
        n = ht_stream_consume(s, HT_DOORBELL_BYTES, force);
        done += n;
    } while (n && done < s->consumer.cfg.packet_size);
    return done;
}

const HtChannelOps ht_channel_hypercall = {
    .name = "hypercall",
    .uses_ring = true,
    .rings = true,
    .consume = hypercall_consume,
    .doorbell = hypercall_doorbell,
};

/* Context: vCPU thread */
static void shm_doorbell(HtStream *s)
{
    ht_worker_kick(ht_stream_device(s));
}

static void shm_realize(HypertraceDevice *dev)
{
    /* All streams have the same doorbell (stride 0); any value rings it. */
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
    const HtWorker *w = &ht_stream_device(s)->worker;

    if (qatomic_read(&w->unread) && !w->settling && !force) {
        return 0;
    }
    return ht_stream_consume(s, 1, force);
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
