/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: stream RAM, shared by the channels hypercall and shm
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

size_t ht_ring_consume(HtStream *s, size_t most, bool force)
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

bool ht_ring_stream_pending(HtStream *s)
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
