/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For "study", a function of the payload: emit on one processor, or on two
 * at once
 */
#ifndef PAYLOAD_PAIR_H
#define PAYLOAD_PAIR_H

#include "hypertrace/hypertrace.h"
#include "console.h"

#define PAIR_MAX        2

/**
 * pair_run() - emit 32-byte events, and print the time that it took
 * @streams: open streams, one per producer; for two, call smp_start() before
 * @n: number of producers
 * @events: events of each producer
 * @hz: ticks of the clock per second
 */
void pair_run(struct ht_stream *const *streams, unsigned n, uint64_t events,
              uint64_t hz);

#endif /* PAYLOAD_PAIR_H */
