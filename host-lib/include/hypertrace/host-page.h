/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: tell a guest what its host does with its vCPUs
 *
 * The area is in the guest's enable page, see struct ht_host_page in abi.h.
 * The host writes it and never reads it back.
 */
#ifndef HYPERTRACE_HOST_PAGE_H
#define HYPERTRACE_HOST_PAGE_H

#include <stdint.h>

#include "hypertrace/abi.h"

/**
 * HtHostPage: the area, as its host uses it
 * @page: address of the area
 * @seq: by vCPU: the last even ht_host_stats.seq that this host has stored;
 *       before the first update, a random even number
 */
typedef struct HtHostPage {
    struct ht_host_page *page;
    uint64_t seq[HT_HOST_VCPUS];
} HtHostPage;

/* ht_host_page_clear: mark the area of the statistics as empty */
void ht_host_page_clear(uint8_t *enable);

/**
 * ht_host_page_begin: mark the area as used; no vCPU has data in it yet
 * @p: filled in
 * @enable: the enable page, HT_ENABLE_SIZE bytes
 * @seed: random number from which ht_host_stats.seq is counted, so that a guest
 *        that reads while a new host replaces an old one notices the change,
 *        and does not take words of both hosts for one update
 */
void ht_host_page_begin(HtHostPage *p, uint8_t *enable, uint64_t seed);

/**
 * ht_host_page_write: update the data of a vCPU
 * @p: the area
 * @vcpu: number of the vCPU, less than HT_HOST_VCPUS
 * @stats: the new values in the host's byte order; their seq is not used
 *
 * Context: one thread at a time; the guest may read at the same time
 */
void ht_host_page_write(HtHostPage *p, unsigned vcpu,
                        const struct ht_host_stats *stats);

#endif /* HYPERTRACE_HOST_PAGE_H */
