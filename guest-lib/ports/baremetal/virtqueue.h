/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, bare metal: a split virtqueue of pairs of descriptors, which
 * are added and taken back first in, first out
 *
 * Pair n consists of the descriptors 2n and 2n + 1.  The driver polls for
 * completion.  By VIRTIO_F_EVENT_IDX the driver suppresses interrupts, and the
 * device suppresses notifications that it does not need.
 */
#ifndef HT_BM_VIRTQUEUE_H
#define HT_BM_VIRTQUEUE_H

#include "internal.h"

struct ht_bm_desc {
    uint64_t addr;
    uint32_t len;
    uint16_t flags;
    uint16_t next;
};

struct ht_bm_avail {
    uint16_t flags;
    uint16_t idx;
    /* the element at index `size` is the word used_event */
    uint16_t ring[HT_VQ_SIZE + 1];
};

struct ht_bm_used_elem {
    uint32_t id;
    uint32_t len;
};

struct ht_bm_used {
    uint16_t flags;
    uint16_t idx;
    /* the element at index `size` begins with the word avail_event */
    struct ht_bm_used_elem ring[HT_VQ_SIZE + 1];
};

#define HT_BM_PAIRS     (HT_VQ_SIZE / 2)

/**
 * struct ht_bm_vq - a queue: members that the device accesses, then private
 * ones
 */
struct ht_bm_vq {
    struct ht_bm_desc desc[HT_VQ_SIZE];
    struct ht_bm_avail avail;
    struct ht_bm_used used __attribute__((aligned(8)));
    struct ht_submit submit[HT_BM_PAIRS];

    uint8_t *notify;
    uint16_t index;
    uint16_t size;              /* number of the queue's descriptors */
    uint16_t pairs;
    uint16_t avail_idx;
    /* number of used entries read so far; modulo @size: index of the next */
    uint16_t used_idx;
    /*
     * number of the oldest pair that was not taken back; valid if @out is not 0
     */
    uint16_t oldest;
    /* number of pairs that were added and not taken back */
    uint16_t out;
    /* by pair: 1 if the device has returned the pair before an older pair */
    uint8_t done[HT_BM_PAIRS];
    /* the device returned an invalid entry, or a wait timed out */
    int broken;
};

/**
 * ht_bm_vq_init() - initialize a zeroed queue
 * @vq: the queue
 * @index: number of the queue
 * @size: number of descriptors, a power of two, 2 to HT_VQ_SIZE
 */
void ht_bm_vq_init(struct ht_bm_vq *vq, uint16_t index, uint16_t size);

/* Get the number of a free pair; @vq->pairs: none is free, or @broken is set */
unsigned ht_bm_vq_next(struct ht_bm_vq *vq);

/**
 * ht_bm_vq_add() - hand the pair of ht_bm_vq_next() to the device
 * @vq: the queue
 * @pair: the pair; addr and len of its descriptors are set
 * @in: the device writes the second descriptor's memory
 *
 * Return: 1 if the device wants to be notified, else 0.
 */
int ht_bm_vq_add(struct ht_bm_vq *vq, unsigned pair, int in);

/**
 * ht_bm_vq_reap() - take back the pairs that the device has used
 * @vq: the queue
 *
 * Pairs are taken back in the order in which they were added: a pair that the
 * device returns early stays out until the device has returned all older pairs.
 *
 * Return: number of pairs taken back.
 */
unsigned ht_bm_vq_reap(struct ht_bm_vq *vq);

#endif /* HT_BM_VIRTQUEUE_H */
