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

/* Context: IOThread, or the doorbell's vCPU */
size_t ht_ring_consume(HtStream *s)
{
    size_t most = s->dev->conf.packets * s->dev->conf.packet_size;
    size_t done = 0, n;

    QEMU_LOCK_GUARD(&s->lock);
    if (!s->consumer.open || !ht_consumer_pending(&s->consumer, s->ring)) {
        return 0;
    }
    qatomic_set(&s->consumer.wakeups, s->consumer.wakeups + 1);
    ht_stream_refresh_time(s);
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
}
