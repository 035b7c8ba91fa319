/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: hand events over to the host by the channels shm and memory
 *
 * The host polls the ring.
 *
 * shm: before the host sleeps, it stores a position in the wake word; when head
 * reaches this position, the guest rings the doorbell, once for each position.
 * tests/model/wake.pml proves that no event is forgotten.
 *
 * memory: there is no doorbell.  The wake word is HT_WAKE_NEVER while the
 * stream is open.  The host or driver sets it to 0 when it closes the stream:
 * the producer's next commit then calls notify() in switch.c, which tests
 * whether the stream is closed.
 */
#include "core.h"

static void shm_opened(struct ht_stream *s)
{
    s->wake = &s->ring->host.wake;
    s->rung = HT_WAKE_NEVER;
}

static void shm_notify(struct ht_stream *s)
{
    uint64_t wake = ht_load_relaxed(s->wake);

    if (ht_head(s) >= wake && wake != s->rung) {
        s->rung = wake;
        ht_ring_doorbell(s);
    }
}

static void shm_closed(struct ht_stream *s)
{
    /*
     * Full barrier: store head before loading the wake word.  Pairs with the
     * host's full fence, which is between its store of the wake word and its
     * load of head: at least one of the two sides sees the other's store.
     */
    ht_full_fence();
    shm_notify(s);
}

static int shm_flush(struct ht_stream *s)
{
    (void)s;                    /* the host reads committed events itself */
    return 0;
}

static void memory_nothing(struct ht_stream *s)
{
    (void)s;
}

const struct ht_channel_ops ht_channel_shm = {
    .opened = shm_opened,
    .notify = shm_notify,
    .closed = shm_closed,
    .flush = shm_flush,
};

const struct ht_channel_ops ht_channel_memory = {
    .opened = shm_opened,
    .notify = memory_nothing,
    .closed = memory_nothing,
    .flush = shm_flush,
};
