/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the newest pieces of a ring, in a bounded amount of memory
 *
 * A new piece replaces the oldest ones of all processors, so that the queue
 * holds the same stretch of time of each of them.
 */
#ifndef HYPERTRACE_RECORDING_QUEUE_H
#define HYPERTRACE_RECORDING_QUEUE_H

#include "hypertrace/ftrace-follow.h"

/* Limits of the size of a queue in bytes */
#define HT_REC_QUEUE_MIN (UINT64_C(1) << 20)
#define HT_REC_QUEUE_MAX (UINT64_C(64) << 30)

typedef struct HtRecQueue HtRecQueue;

/**
 * ht_rec_queue_new: create a queue
 * @size: size in bytes, HT_REC_QUEUE_MIN to HT_REC_QUEUE_MAX
 * @error: set if there is too little address space
 *
 * Memory is used as pieces arrive, at most @size and 1 bit per processor.
 *
 * Returns: the queue, for ht_rec_queue_free(); or NULL
 */
HtRecQueue *ht_rec_queue_new(uint64_t size, GError **error);

/**
 * ht_rec_queue_free: free a queue
 * @q: the queue or NULL
 */
void ht_rec_queue_free(HtRecQueue *q);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtRecQueue, ht_rec_queue_free)

/**
 * ht_rec_queue_push: add a copy of a piece
 * @q: the queue
 * @p: the piece
 *
 * Removes the oldest pieces until there is room.
 */
void ht_rec_queue_push(HtRecQueue *q, const HtFtPiece *p);

/**
 * ht_rec_queue_each: visit all pieces, the oldest first
 * @q: the queue
 * @visit: called for each piece, which is valid during the call only; returns
 *         false to stop.  The first piece of a processor whose earlier pieces
 *         were removed has the flag HT_FT_PIECE_LATE, and no gap before it.
 * @opaque: passed to @visit
 *
 * Returns: false if @visit did
 */
bool ht_rec_queue_each(const HtRecQueue *q,
                       bool (*visit)(void *opaque, const HtFtPiece *p),
                       void *opaque);

/**
 * ht_rec_queue_events: get the number of events in the queue
 * @q: the queue
 */
uint64_t ht_rec_queue_events(const HtRecQueue *q);

/**
 * ht_rec_queue_bytes: get the number of bytes that the pieces take
 * @q: the queue
 *
 * Returns: at most the queue's size
 */
uint64_t ht_rec_queue_bytes(const HtRecQueue *q);

#endif /* HYPERTRACE_RECORDING_QUEUE_H */
