/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: stream RAM, which the hypercall and shm channels share
 *
 * Consuming is modelled in tests/model/ring.pml, arming in wake.pml.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/lockable.h"
#include "device.h"

/*
 * The host's line was written: once more to be migrated.  Costs next to nothing
 * while nobody looks.  Any thread, without the BQL.
 */
static void ring_dirty(HtStream *s)
{
    HypertraceDevice *dev = s->dev;

    memory_region_set_dirty(dev->ring_mr, (uint8_t *)s->ring - dev->ring_ram,
                            sizeof(*s->ring));
}

/* Context: IOThread, or the doorbell's vCPU */
size_t ht_ring_consume(HtStream *s)
{
    size_t most = s->dev->conf.packets * s->dev->conf.packet_size;
    uint64_t cursor;
    size_t done = 0, n;

    QEMU_LOCK_GUARD(&s->lock);
    if (!s->consumer.open || !ht_consumer_pending(&s->consumer, s->ring)) {
        return 0;
    }
    qatomic_set(&s->consumer.wakeups, s->consumer.wakeups + 1);
    ht_stream_refresh_time(s);
    cursor = s->consumer.cursor;
    /*
     * A packet at a time: what is not read needs no spool.  At most a ring,
     * or a producer that is as fast as we are would keep us here.
     */
    while (done < most && ht_delivery_room(s->dev, s->index)) {
        n = ht_consumer_ring(&s->consumer, s->ring, s->packets, 1);
        if (n == 0) {
            break;
        }
        done += n;
        if (s->consumer.cursor & (s->dev->conf.packet_size - 1)) {
            /* Caught up in an open packet: chasing its producer slows it. */
            break;
        }
    }
    if ((cursor ^ s->consumer.cursor) >= s->dev->conf.packet_size) {
        ring_dirty(s);                          /* tail moved */
    }
    ht_stream_check_stopped(s);
    return done;
}

/* Context: IOThread */
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

/* Context: IOThread */
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

/* Context: IOThread */
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

/* Context: IOThread */
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

/* The producer may not touch the ring yet.  Context: IOThread */
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

/* The line is what it was when its stream stopped.  Context: IOThread */
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
