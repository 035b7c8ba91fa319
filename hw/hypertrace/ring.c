/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: channels hypercall and shm, whose rings are in the device's RAM
 *
 * hypercall: the producer rings the doorbell after each commit, or each `batch`
 * of them.  The vCPU that rings consumes before the guest continues, up to a
 * limit.  The IOThread consumes what exceeds the limit, and periodically polls
 * for the rest of an incomplete batch.
 *
 * shm: the producer rings the doorbell at most once each time the consumer arms
 * it.  Under KVM, the write ends in the kernel, at the ioeventfd; the
 * handler here serves accelerators and accesses without ioeventfd.
 *
 * Consuming is modelled in tests/model/ring.pml, arming in wake.pml.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/lockable.h"
#include "device.h"

/*
 * The host's line was written: mark it dirty for migration.  Costs almost
 * nothing unless dirty pages are logged.  Any thread, without the BQL.
 */
static void ring_dirty(HtStream *s)
{
    HypertraceDevice *dev = s->dev;

    memory_region_set_dirty(dev->ring_mr, (uint8_t *)s->ring - dev->ring_ram,
                            sizeof(*s->ring));
}

/*
 * Consume what was committed: at most @most bytes, but at least one event; in
 * channel=hypercall at most a piece.  With @force, consume even if no sink has
 * room.  Returns the number of bytes.
 *
 * Context: worker, or the doorbell's vCPU
 */
static size_t ring_consume(HtStream *s, size_t most, bool force)
{
    HtConsumer *c = &s->consumer;
    uint64_t cursor, events;
    size_t done;

    QEMU_LOCK_GUARD(&s->lock);
    if (!c->open || !ht_consumer_pending(c, s->ring) ||
        (!force && !ht_dispatch_room(s->dev->dispatch))) {
        return 0;
    }
    qatomic_set(&c->wakeups, c->wakeups + 1);
    ht_stream_begin(s);
    cursor = c->cursor;
    events = c->events;
    done = ht_consumer_ring(c, s->ring, s->packets, 1);
    if (s->dev->channel->rings && done && done < most &&
        c->events - events < HT_DOORBELL_EVENTS) {
        /* At a packet's end, the batch continues in the next one. */
        c->cfg.piece = most - done;
        c->walk.most = HT_DOORBELL_EVENTS - (c->events - events);
        done += ht_consumer_ring(c, s->ring, s->packets, 1);
        c->cfg.piece = HT_DOORBELL_BYTES;
        c->walk.most = HT_DOORBELL_EVENTS;
    }
    if ((cursor ^ c->cursor) >= s->dev->conf.packet_size) {
        ring_dirty(s);                          /* tail moved */
    }
    ht_stream_end(s);
    return done;
}

/* Test whether a ring has something to consume.  Context: any thread */
static bool ring_stream_pending(HtStream *s)
{
    return ht_consumer_pending(&s->consumer, s->ring);
}

/* Context: worker */
bool ht_ring_arm_all(HypertraceDevice *dev, bool eager)
{
    bool pending = false;
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams[i];

        if (qatomic_read(&s->phase) == HT_PHASE_OPEN) {
            pending |= ht_consumer_arm(&s->consumer, s->ring, eager);
            ring_dirty(s);
        }
    }
    return pending;
}

/* Context: worker */
void ht_ring_disarm_all(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams[i];

        if (qatomic_read(&s->phase) == HT_PHASE_OPEN) {
            ht_consumer_disarm(&s->consumer, s->ring);
            ring_dirty(s);
        }
    }
}

/* Context: worker */
bool ht_ring_behind(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams[i];

        if (qatomic_read(&s->phase) == HT_PHASE_OPEN &&
            ht_consumer_behind(&s->consumer, s->ring)) {
            return true;
        }
    }
    return false;
}

/* Context: worker */
bool ht_ring_pending(HypertraceDevice *dev)
{
    uint32_t i;

    for (i = 0; i < dev->conf.streams; i++) {
        HtStream *s = &dev->streams[i];

        if (qatomic_read(&s->phase) == HT_PHASE_OPEN &&
            ht_consumer_pending(&s->consumer, s->ring)) {
            return true;
        }
    }
    return false;
}

/* Initialize the host's line before the producer may use it.  Worker */
void ht_ring_open(HtStream *s)
{
    struct ht_ring_control *ring = s->ring;

    memset(&ring->guest, 0, sizeof(ring->guest));
    memset(&ring->host, 0, sizeof(ring->host));
    ring->host.wake = cpu_to_le64(HT_WAKE_NEVER);
    ring->host.instance = cpu_to_le64(s->next.instance);
    ht_ring_set_state(s, HT_STREAM_OPENED);
}

void ht_ring_set_state(HtStream *s, enum ht_stream_state state)
{
    qatomic_store_release(&s->ring->host.state, cpu_to_le32(state));
    ring_dirty(s);
}

/*
 * Mark the guest's last writes dirty, because TCG may miss them.  A TLB entry
 * that is being filled while QEMU syncs dirty pages can keep saying that its
 * page is dirty when it no longer is (tlb_set_page_full(),
 * tlb_reset_dirty_range_all() in QEMU).  If the VM stopped before that entry
 * was filled again, the migrated head was before the consumed position.
 */
void ht_ring_pause(HtStream *s)
{
    HypertraceDevice *dev = s->dev;
    const uint64_t size = dev->conf.packet_size, nr = dev->conf.packets;
    uint64_t first = s->consumer.cursor / size;
    uint64_t last = le64_to_cpu(qatomic_read(&s->ring->guest.head)) / size;
    uint64_t i;

    ring_dirty(s);
    /* At most the whole ring, if the guest's values are invalid. */
    for (i = 0; i <= MIN(last - first, nr - 1); i++) {
        memory_region_set_dirty(dev->ring_mr, s->packets - dev->ring_ram +
                                (first + i) % nr * size, size);
    }
}

/* Restore the line to the state when its stream stopped.  Context: worker */
void ht_ring_resume(HtStream *s)
{
    struct ht_host_line *host = &s->ring->host;
    const HtConsumer *c = &s->consumer;

    qatomic_set(&host->wake, cpu_to_le64(HT_WAKE_NEVER));
    qatomic_set(&host->instance, cpu_to_le64(c->instance));
    qatomic_store_release(&host->tail,
                          cpu_to_le64(c->cursor / c->cfg.packet_size));
    ht_ring_set_state(s, c->stopped ? HT_STREAM_STOPPED : HT_STREAM_OPENED);
}

/* Channel hypercall -------------------------------------------------------- */

/*
 * Context: vCPU thread; does not need the BQL, and must not use the sinks after
 * the streams are closed, because unrealize frees them
 */
static void hypercall_doorbell(HtStream *s)
{
    if (qatomic_load_acquire(&s->phase) != HT_PHASE_OPEN) {
        return;
    }
    ring_consume(s, HT_DOORBELL_BYTES, false);
    if (ring_stream_pending(s) && !qatomic_read(&s->dev->worker.starved)) {
        ht_worker_kick(s->dev);
    }
}

/* Release the lock after each piece, to bound the wait of a doorbell. */
static size_t hypercall_consume(HtStream *s, bool force)
{
    size_t done = 0, n;

    do {
        n = ring_consume(s, HT_DOORBELL_BYTES, force);
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

/* Channel shm -------------------------------------------------------------- */

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
    return ring_consume(s, s->dev->conf.packet_size, force);
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
