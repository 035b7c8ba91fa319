/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the payload's function study: emit on one processor, or on two processors
 * at the same time
 */
#ifndef PAYLOAD_PAIR_H
#define PAYLOAD_PAIR_H

#include "hypertrace/hypertrace.h"
#include "console.h"

#define PAIR_MAX        2

/**
 * pair_run() - emit events with 32 bytes of payload, and print for each
 *              producer its numbers of sent and discarded events, its time, and
 *              the distribution of the time of an emit
 * @streams: streams that were just opened, one per producer
 * @n: number of producers, 1 or 2; before a call with 2, call smp_start()
 * @events: events of each producer, rounded up to a multiple of 64
 * @hz: ticks of the clock per second
 */
void pair_run(struct ht_stream *const *streams, unsigned n, uint64_t events,
              uint64_t hz);

#endif /* PAYLOAD_PAIR_H */
