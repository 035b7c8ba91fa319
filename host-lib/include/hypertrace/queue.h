/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: runs on their way to one backend
 *
 * Events lie in buffers that the runs in the queues of all backends refer to;
 * a queue pays for a buffer as a whole while it has a run in it.  What does not
 * fit a queue's budget is discarded for that queue alone, and counted in the
 * next run of its stream.  No lock and no thread: the caller has them.
 */
#ifndef HYPERTRACE_QUEUE_H
#define HYPERTRACE_QUEUE_H

#include "hypertrace/run.h"

/* Queues that may share a pool */
#define HT_QUEUES_MAX           8

/* Runs that follow each other in a buffer become one, up to this size. */
#define HT_QUEUE_MERGE_MAX      (64 * 1024)

/* Items a queue has, whatever its budget */
#define HT_QUEUE_ITEMS          4096

/**
 * HtBuffer: memory for events of one stream
 * @refs: runs queued, in all queues, and who fills it
 * @queued: runs of each queue
 * @used: bytes that runs may refer to
 */
typedef struct HtBuffer HtBuffer;
struct HtBuffer {
    HtBuffer *next;
    uint32_t refs;
    uint32_t queued[HT_QUEUES_MAX];
    size_t used;
    uint8_t data[];
};

/**
 * HtPool: buffers of one size
 *
 * As many as its queues' budgets pay for, and one for each stream that is
 * being filled; a few more are kept for next time.
 */
typedef struct HtPool {
    size_t size;                /* of HtBuffer.data */
    unsigned buffers;           /* in use */
    unsigned nr_free;
    HtBuffer *free;
} HtPool;

/**
 * ht_pool_reserve: find room in a stream's buffer, or change it
 * @p: the pool
 * @fill: the buffer being filled, or NULL; updated
 * @size: bytes, at most those of a buffer
 *
 * Returns: where @size bytes can be written, at @used
 */
uint8_t *ht_pool_reserve(HtPool *p, HtBuffer **fill, size_t size);

/* ht_pool_unref: give up one of HtBuffer.refs; @b may be NULL */
void ht_pool_unref(HtPool *p, HtBuffer *b);

/* ht_pool_destroy: no buffer is in use any more */
void ht_pool_destroy(HtPool *p);

/**
 * HtQueued: an item taken from a queue
 * @run: its stream is NULL unless @info is set
 * @index: of its stream
 * @buffer: holds what it refers to; NULL if it has no events
 * @info: HT_RUN_OPEN: the stream; else NULL
 */
typedef struct HtQueued {
    HtRun run;
    uint32_t index;
    HtBuffer *buffer;
    HtStreamInfo *info;
} HtQueued;

typedef struct HtQueueStream HtQueueStream;

typedef struct HtQueue {
    HtPool *pool;
    unsigned index;             /* below HT_QUEUES_MAX */
    size_t budget;              /* bytes */
    size_t held;                /* of @budget */
    uint64_t posted;            /* events */
    uint64_t discarded;         /* events, since ever */
    unsigned delivering;        /* items taken and not given back */
    /*< private >*/
    HtQueued *items;
    uint32_t head, tail;        /* items ever taken, put */
    HtQueueStream *streams;
    uint32_t nr_streams;
    uint32_t marked;            /* streams with something to say */
} HtQueue;

/**
 * ht_queue_init: an empty queue
 * @q: the queue
 * @pool: buffers
 * @index: unique among the queues of @pool
 * @budget: bytes; at least four times a buffer's size
 * @streams: streams have an index below this
 */
void ht_queue_init(HtQueue *q, HtPool *pool, unsigned index, size_t budget,
                   uint32_t streams);
/* ht_queue_destroy: forget what was not taken */
void ht_queue_destroy(HtQueue *q);

/**
 * ht_queue_room: whether a buffer fits half of the budget
 *
 * The other half is for what cannot be left where it is: a stream is closed
 * or flushed, or another queue had room.
 */
bool ht_queue_room(const HtQueue *q);

/**
 * ht_queue_filling: whether a fourth of the budget is used
 */
bool ht_queue_filling(const HtQueue *q);

/**
 * ht_queue_empty: whether all was taken, and given back
 */
bool ht_queue_empty(const HtQueue *q);

/* ht_queue_posted: a number for what was posted so far */
uint32_t ht_queue_posted(const HtQueue *q);
/**
 * ht_queue_done_with: whether all of that was taken, and given back
 * @q: the queue
 * @posted: of ht_queue_posted(), less than 2^31 items ago
 */
bool ht_queue_done_with(const HtQueue *q, uint32_t posted);

/**
 * ht_queue_post: append a run
 * @q: the queue
 * @run: any run of ht_consumer
 * @b: the buffer that its events are in
 *
 * Never fails: events over budget are counted, and openings and closings over
 * budget are one state of their stream.
 */
void ht_queue_post(HtQueue *q, const HtRun *run, HtBuffer *b);

/**
 * ht_queue_pass: let a run pass an empty queue
 * @q: the queue; ht_queue_empty()
 * @run: as ht_queue_post(); adjusted for whoever delivers it instead
 */
void ht_queue_pass(HtQueue *q, HtRun *run);

/**
 * ht_queue_take: take the oldest item
 * @q: the queue
 * @item: filled in, to be given back
 *
 * Returns: false if there is none
 */
bool ht_queue_take(HtQueue *q, HtQueued *item);

/* ht_queue_done: give an item back, delivered */
void ht_queue_done(HtQueue *q, HtQueued *item);

#endif /* HYPERTRACE_QUEUE_H */
