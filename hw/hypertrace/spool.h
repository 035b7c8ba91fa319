/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: runs on their way from a vCPU to the IOThread
 */
#ifndef HW_HYPERTRACE_SPOOL_H
#define HW_HYPERTRACE_SPOOL_H

#include "hypertrace/consumer.h"

/**
 * HtSpool: a queue of runs, in bytes
 *
 * One producer (under HtStream.lock), one consumer (IOThread); no lock.
 */
typedef struct HtSpool {
    uint8_t *buf;
    size_t size;
    size_t head;                /* bytes ever written; producer */
    size_t tail;                /* bytes ever read; consumer */
    uint8_t *merge;             /* a run put together; consumer */
    HtStreamInfo info;          /* of the stream being drained; consumer */
} HtSpool;

void ht_spool_init(HtSpool *s, size_t size);
void ht_spool_destroy(HtSpool *s);
/* Whether runs of @size bytes of events in total surely fit */
bool ht_spool_room(const HtSpool *s, size_t size);
/* False if it does not fit */
bool ht_spool_put(HtSpool *s, const HtRun *run);
/* Deliver what is there; returns whether there was something */
bool ht_spool_drain(HtSpool *s, HtDeliver *deliver, void *opaque);

#endif /* HW_HYPERTRACE_SPOOL_H */
