/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: queue runs of events for one backend
 *
 * Events are stored in buffers, which the runs in all queues refer to.  While a
 * queue has a run in a buffer, the whole buffer counts against the queue's
 * budget.  Events for which a queue has no budget or no item left are discarded
 * for that queue only; the next run of their stream in that queue counts them.
 *
 * Context: no locking; the caller serializes all calls for a pool's queues.
 */
#ifndef HYPERTRACE_QUEUE_H
#define HYPERTRACE_QUEUE_H

#include "hypertrace/run.h"

/* Maximum number of queues that share a pool */
#define HT_QUEUES_MAX           8

/* Maximum size in bytes up to which consecutive runs in a buffer are merged */
#define HT_QUEUE_MERGE_MAX      (64 * 1024)

/* Maximum number of items in a queue, independent of its budget */
#define HT_QUEUE_ITEMS          4096

/**
 * HtBuffer: memory for events of one stream
 * @next: next buffer of HtPool.free
 * @refs: number of items of all queues that refer to the buffer and were not
 *        given back by ht_queue_done(); plus 1 while a stream fills the buffer
 * @queued: by queue: number of these items
 * @used: number of bytes of @data in use
 * @data: the events; HtPool.size bytes
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
 * The number of buffers is bounded by the queues' budgets, plus one buffer for
 * each stream.  A few unused buffers are kept.
 */
typedef struct HtPool {
    size_t size;                /* size of HtBuffer.data in bytes */
    /* number of buffers in use, without those in @free */
    unsigned buffers;
    unsigned nr_free;
    HtBuffer *free;
} HtPool;

/**
 * ht_pool_reserve: reserve space in a stream's buffer, or in a new one
 * @p: the pool
 * @fill: the stream's buffer, or NULL; set to the buffer with the space
 * @size: number of bytes, at most HtPool.size
 *
 * ht_queue_post() moves HtBuffer.used to the end of the events in the space.
 *
 * Returns: the address of @size bytes, at the offset HtBuffer.used
 */
uint8_t *ht_pool_reserve(HtPool *p, HtBuffer **fill, size_t size);

/* ht_pool_unref: drop a reference to a buffer; @b may be NULL */
void ht_pool_unref(HtPool *p, HtBuffer *b);

/* ht_pool_destroy: free the pool; all references must have been dropped */
void ht_pool_destroy(HtPool *p);

/**
 * HtQueued: an item taken from a queue
 * @run: the run; its stream is NULL unless @info is set
 * @index: index of the run's stream
 * @buffer: the buffer that holds the events; NULL without events
 * @info: with HT_RUN_OPEN: description of the stream; else NULL
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
    /* index of this queue, less than HT_QUEUES_MAX */
    unsigned index;
    /* limit of @held in bytes; events beyond it are discarded */
    size_t budget;
    /* bytes of the buffers to which items refer, until ht_queue_done() */
    size_t held;
    /* number of events posted or passed, and not discarded */
    uint64_t posted;
    uint64_t discarded;
    /* number of items taken and not given back yet */
    unsigned delivering;
    /*< private >*/
    HtQueued *items;
    /*
     * numbers of items ever taken from @items (@head) and appended to it
     * (@tail)
     */
    uint32_t head, tail;
    HtQueueStream *streams;
    uint32_t nr_streams;
    /*
     * number of streams for which an opening, a closing or a count of discarded
     * events is pending, but is not in @items yet
     */
    uint32_t marked;
} HtQueue;

/**
 * ht_queue_init: initialize an empty queue
 * @q: the queue
 * @pool: the buffers
 * @index: unique among the queues of @pool
 * @budget: bytes; at least four times HtPool.size
 * @streams: number of streams
 */
void ht_queue_init(HtQueue *q, HtPool *pool, unsigned index, size_t budget,
                   uint32_t streams);
/* ht_queue_destroy: drop all items and free the queue's memory */
void ht_queue_destroy(HtQueue *q);

/**
 * ht_queue_room: test whether one more buffer fits into half of the budget, and
 * more than half of the items are free
 * @q: the queue
 *
 * The other halves are reserved for events that must be consumed even if this
 * returns false: those of a stream that is closed or flushed, and those that
 * are consumed because another queue has room.
 */
bool ht_queue_room(const HtQueue *q);

/**
 * ht_queue_filling: test whether more than a quarter of the budget, or of the
 * items, is in use
 * @q: the queue
 */
bool ht_queue_filling(const HtQueue *q);

/**
 * ht_queue_empty: test whether no item is in the queue or pending, and all
 * items that were taken have been given back
 * @q: the queue
 */
bool ht_queue_empty(const HtQueue *q);

/*
 * ht_queue_posted: get the position after the item that was appended last, for
 * ht_queue_done_with()
 */
uint32_t ht_queue_posted(const HtQueue *q);
/**
 * ht_queue_done_with: test whether all items before a position were delivered
 * @q: the queue
 * @posted: position that ht_queue_posted() returned, less than 2^31 items ago
 *
 * Returns: true if they were; this may come late, never early
 */
bool ht_queue_done_with(const HtQueue *q, uint32_t posted);

/**
 * ht_queue_post: append a run
 * @q: the queue
 * @run: any run of an HtConsumer
 * @b: the buffer that holds its events; not used without events
 *
 * Never fails: events for which there is no room are counted as discarded.  If
 * there is no item left for an opening or closing, the queue notes it and
 * appends it later.  An instance that is opened and closed meanwhile is left
 * out; the next instance of the stream reports its discarded events.
 */
void ht_queue_post(HtQueue *q, const HtRun *run, HtBuffer *b);

/**
 * ht_queue_pass: count a run that the caller delivers without queueing it
 * @q: an empty queue; see ht_queue_empty()
 * @run: the run.  Unless it is an opening, the events that this queue has
 *       discarded are added to @run->discarded, and HT_RUN_CUT is set if they
 *       precede its first event
 */
void ht_queue_pass(HtQueue *q, HtRun *run);

/**
 * ht_queue_take: take the oldest item, or one that is noted for later
 * @q: the queue
 * @item: filled in; give it back by ht_queue_done()
 *
 * Returns: false if the queue is empty
 */
bool ht_queue_take(HtQueue *q, HtQueued *item);

/* ht_queue_done: give back an item after it was delivered */
void ht_queue_done(HtQueue *q, HtQueued *item);

#endif /* HYPERTRACE_QUEUE_H */
