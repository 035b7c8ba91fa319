/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: add buffers to a split virtqueue, and reap them
 */
#include "virtqueue.h"

#define DESC_F_NEXT     1
#define DESC_F_WRITE    2

typedef uint16_t __attribute__((may_alias)) any16_t;

static uint16_t avail_event(const struct ht_bm_vq *vq)
{
    return __atomic_load_n((const any16_t *)&vq->used.ring[vq->size],
                           __ATOMIC_RELAXED);
}

static void no_interrupts(struct ht_bm_vq *vq)
{
    /*
     * The device interrupts when used.idx passes the word used_event, so set
     * used_event to the index that is farthest from used.idx.
     */
    __atomic_store_n(&vq->avail.ring[vq->size],
                     (uint16_t)(vq->used_idx + 0x8000), __ATOMIC_RELAXED);
}

void ht_bm_vq_init(struct ht_bm_vq *vq, uint16_t index, uint16_t size)
{
    vq->index = index;
    vq->size = size;
    vq->pairs = size / 2;
    for (unsigned i = 0; i < vq->pairs; i++) {
        vq->desc[2 * i].flags = DESC_F_NEXT;
        vq->desc[2 * i].next = 2 * i + 1;
    }
    no_interrupts(vq);
}

unsigned ht_bm_vq_next(struct ht_bm_vq *vq)
{
    if (vq->out == vq->pairs || vq->broken) {
        return vq->pairs;
    }
    return (vq->oldest + vq->out) % vq->pairs;
}

int ht_bm_vq_add(struct ht_bm_vq *vq, unsigned pair, int in)
{
    uint16_t old = vq->avail_idx;
    uint16_t event;

    vq->desc[2 * pair + 1].flags = in ? DESC_F_WRITE : 0;
    vq->avail.ring[old % vq->size] = 2 * pair;
    vq->avail_idx = old + 1;
    vq->out++;
    /* Store the descriptors before idx, which the device loads first. */
    __atomic_store_n(&vq->avail.idx, vq->avail_idx, __ATOMIC_RELEASE);
    /*
     * Full barrier: store idx before loading avail_event.  Pairs with the
     * device's barrier between its store of avail_event and its load of idx: at
     * least one side sees the new value of the other side.
     */
    ht_full_fence();
    event = avail_event(vq);
    /* The device wants a notification if idx has just passed avail_event. */
    return (uint16_t)(vq->avail_idx - event - 1) <
           (uint16_t)(vq->avail_idx - old);
}

unsigned ht_bm_vq_reap(struct ht_bm_vq *vq)
{
    uint16_t idx = __atomic_load_n(&vq->used.idx, __ATOMIC_ACQUIRE);
    unsigned n = 0;

    if (vq->used_idx == idx) {
        return 0;
    }
    while (vq->used_idx != idx && !vq->broken) {
        uint32_t id = vq->used.ring[vq->used_idx % vq->size].id;
        unsigned pair = id / 2;

        if (id % 2 || pair >= vq->pairs || vq->done[pair] ||
            (pair + vq->pairs - vq->oldest) % vq->pairs >= vq->out) {
            vq->broken = 1;     /* @id is of no pair that the device held */
            break;
        }
        vq->done[pair] = 1;
        vq->used_idx++;
    }
    no_interrupts(vq);
    while (vq->out && vq->done[vq->oldest]) {
        vq->done[vq->oldest] = 0;
        vq->oldest = (vq->oldest + 1) % vq->pairs;
        vq->out--;
        n++;
    }
    return n;
}
