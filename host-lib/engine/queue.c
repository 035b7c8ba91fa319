/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: queue runs of events for one backend
 */
#include "hypertrace/base.h"
#include "hypertrace/queue.h"

/* Maximum number of unused buffers that a pool keeps */
#define FREE_MAX 16

/*
 * Maximum number of items that one post adds: a closing, an opening, a count of
 * discarded events, and the run
 */
#define ITEMS_A_POST 4

/*
 * Pending items of a stream.  They are delivered in the order of these bits.
 */
enum {
    MARK_CLOSE = 1,             /* @close */
    MARK_OPEN = 2,              /* @open */
    /* a run that reports the number of discarded events */
    MARK_TOLD = 4,
};

/*
 * State of a stream in a queue.  While the queue is full, the stream may be
 * opened and closed several times.  Of these openings and closings, two can
 * stay pending: the closing of an instance of which the opening was queued, and
 * the opening of the instance that is open now.
 */
struct HtQueueStream {
    unsigned marks;             /* MARK_* bits of the stream's pending items */
    HtRun open, close;          /* runs of the pending opening and closing */
    /* description of the instance that was opened last */
    HtStreamInfo info;
    /* HtRun.discarded of the stream's last run */
    uint64_t upstream;
    /*
     * number of events of the open instance that this queue has discarded, plus
     * the value of @carried when the instance was opened
     */
    uint64_t discarded;
    /*
     * number of discarded events of instances that were closed before their
     * opening was queued; the next instance reports them
     */
    uint64_t carried;
    /*
     * this queue has discarded events of the stream since it last accepted
     * events of the stream
     */
    bool gap;
    /* host time of the stream's last run, in ns */
    uint64_t ns;
    /* guest counter of the stream's last run */
    uint64_t counter;
    /* number of the stream's last item with events, counted as HtQueue.tail */
    uint32_t last;
};

uint8_t *ht_pool_reserve(HtPool *p, HtBuffer **fill, size_t size)
{
    HtBuffer *b = *fill;

    if (b && b->refs == 1) {
        /* no item refers to the buffer: reuse it from the start */
        b->used = 0;
    }
    if (b && p->size - b->used < size) {
        ht_pool_unref(p, b);
        b = NULL;
    }
    if (!b) {
        b = p->free;
        if (b) {
            p->free = b->next;
            p->nr_free--;
            memset(b, 0, sizeof(*b));
        } else {
            b = g_malloc(sizeof(*b) + p->size);
            memset(b, 0, sizeof(*b));
        }
        b->refs = 1;
        p->buffers++;
    }
    *fill = b;
    return b->data + b->used;
}

void ht_pool_unref(HtPool *p, HtBuffer *b)
{
    if (!b || --b->refs) {
        return;
    }
    p->buffers--;
    if (p->nr_free < FREE_MAX) {
        b->next = p->free;
        p->free = b;
        p->nr_free++;
    } else {
        g_free(b);
    }
}

void ht_pool_destroy(HtPool *p)
{
    HtBuffer *b;

    while ((b = p->free)) {
        p->free = b->next;
        g_free(b);
    }
    p->nr_free = 0;
}

void ht_queue_init(HtQueue *q, HtPool *pool, unsigned index, size_t budget,
                   uint32_t streams)
{
    *q = (HtQueue) {
        .pool = pool,
        .index = index,
        .budget = budget,
        .items = g_new(HtQueued, HT_QUEUE_ITEMS),
        .streams = g_new0(HtQueueStream, streams),
        .nr_streams = streams,
    };
}

void ht_queue_destroy(HtQueue *q)
{
    HtQueued item;

    while (ht_queue_take(q, &item)) {
        ht_queue_done(q, &item);
    }
    g_free(q->items);
    g_free(q->streams);
}

static uint32_t items_left(const HtQueue *q)
{
    return HT_QUEUE_ITEMS - (q->tail - q->head);
}

bool ht_queue_room(const HtQueue *q)
{
    return q->held + q->pool->size <= q->budget / 2 &&
           items_left(q) > HT_QUEUE_ITEMS / 2;
}

bool ht_queue_filling(const HtQueue *q)
{
    return q->held > q->budget / 4 || items_left(q) < HT_QUEUE_ITEMS * 3 / 4;
}

bool ht_queue_empty(const HtQueue *q)
{
    return q->head == q->tail && !q->marked && !q->delivering;
}

uint32_t ht_queue_posted(const HtQueue *q)
{
    return q->tail;
}

bool ht_queue_done_with(const HtQueue *q, uint32_t posted)
{
    /*
     * @head does not count an item that ht_queue_take() has made by
     * take_mark(), but @delivering does.  While such an item is being
     * delivered, the comparison with @posted can fail although all items before
     * @posted were delivered.  The result is then true too late, never too
     * early.
     */
    return (int32_t)(q->head - q->delivering - posted) >= 0 ||
           ht_queue_empty(q);
}

static void set_marks(HtQueue *q, HtQueueStream *s, unsigned marks)
{
    q->marked += !s->marks && marks;
    q->marked -= s->marks && !marks;
    s->marks = marks;
}

/*
 * Make an item from a pending mark of a stream: of the closing, else of the
 * opening, else of the count of discarded events
 */
static HtQueued take_mark(HtQueue *q, HtQueueStream *s)
{
    HtQueued item = { .index = s - q->streams };

    if (s->marks & MARK_CLOSE) {
        item.run = s->close;
        set_marks(q, s, s->marks & ~MARK_CLOSE);
    } else if (s->marks & MARK_OPEN) {
        item.run = s->open;
        item.info = g_memdup2(&s->info, sizeof(s->info));
        item.run.stream = item.info;
        set_marks(q, s, s->marks & ~MARK_OPEN);
    } else {
        item.run = (HtRun) {
            .begin_ns = s->ns,
            .end_ns = s->ns,
            .counter = s->counter,
            .discarded = s->upstream + s->discarded,
        };
        set_marks(q, s, 0);
    }
    return item;
}

static void append(HtQueue *q, HtQueued item)
{
    q->items[q->tail++ % HT_QUEUE_ITEMS] = item;
}

static void append_marks(HtQueue *q, HtQueueStream *s)
{
    while (s->marks) {
        append(q, take_mark(q, s));
    }
}

static void begin_instance(HtQueueStream *s, const HtRun *run)
{
    s->info = *run->stream;
    s->open = *run;
    s->discarded = s->carried;
    s->carried = 0;
    s->gap = false;
}

static void post_close(HtQueue *q, HtQueueStream *s, const HtRun *run)
{
    if (s->marks & MARK_OPEN) {
        /*
         * The opening of the instance that ends was never queued: report its
         * discarded events with the next instance.
         */
        s->carried = s->discarded + run->discarded;
        s->discarded = 0;
        set_marks(q, s, s->marks & MARK_CLOSE);
        return;
    }
    s->close = *run;
    s->close.stream = NULL;
    s->close.discarded += s->discarded;
    s->discarded = 0;
    set_marks(q, s, MARK_CLOSE);
}

/*
 * Append a run's events to the stream's last item with events.  Returns false
 * if that is not possible: the item was taken, the events do not follow it in
 * the buffer, events were discarded in between, the run has a flag, or the item
 * would have more than HT_QUEUE_MERGE_MAX bytes.
 */
static bool merge(HtQueue *q, HtQueueStream *s, const HtRun *run, HtBuffer *b,
                  uint64_t discarded)
{
    HtQueued *item = &q->items[s->last % HT_QUEUE_ITEMS];

    if (s->last - q->head >= q->tail - q->head || run->flags ||
        item->buffer != b || item->index != s - q->streams ||
        item->run.data + item->run.size != run->data ||
        item->run.discarded != discarded ||
        item->run.size + run->size > HT_QUEUE_MERGE_MAX) {
        return false;
    }
    item->run.size += run->size;
    item->run.events += run->events;
    item->run.end_ns = run->end_ns;
    item->run.classes = run->classes;
    item->run.total = run->total;
    item->run.lost = run->lost;
    return true;
}

static bool post_events(HtQueue *q, HtQueueStream *s, const HtRun *run,
                        HtBuffer *b)
{
    uint64_t discarded = run->discarded + s->discarded;
    HtQueued item = {
        .run = *run,
        .index = run->stream->index,
        .buffer = b,
    };

    if (merge(q, s, run, b, discarded)) {
        return true;
    }
    if (items_left(q) <= ITEMS_A_POST) {
        return false;
    }
    if (!b->queued[q->index]) {
        if (q->held + q->pool->size > q->budget) {
            return false;
        }
        q->held += q->pool->size;
    }
    if (s->gap) {
        /*
         * This queue has discarded the events before this run.  Without them,
         * the 24-bit clock of the run's first event may be ambiguous.
         */
        item.run.flags |= HT_RUN_CUT;
        s->gap = false;
    }
    b->queued[q->index]++;
    b->refs++;
    item.run.stream = NULL;
    item.run.discarded = discarded;
    s->last = q->tail;
    append(q, item);
    return true;
}

void ht_queue_post(HtQueue *q, const HtRun *run, HtBuffer *b)
{
    HtQueueStream *s = &q->streams[run->stream->index];
    s->ns = run->end_ns;
    s->counter = run->counter;
    s->upstream = run->discarded;
    if (run->flags & HT_RUN_OPEN) {
        begin_instance(s, run);
        set_marks(q, s, (s->marks & MARK_CLOSE) | MARK_OPEN |
                        (s->discarded ? MARK_TOLD : 0));
    } else if (run->flags & HT_RUN_CLOSE) {
        post_close(q, s, run);
    } else if (run->events == 0) {
        set_marks(q, s, s->marks | MARK_TOLD);
    } else if (s->marks == MARK_TOLD) {
        /* the run itself reports the number of discarded events */
        set_marks(q, s, 0);
    }
    if (s->marks && items_left(q) > ITEMS_A_POST) {
        append_marks(q, s);
    }
    if (run->events == 0) {
        return;
    }
    if (!s->marks && post_events(q, s, run, b)) {
        q->posted += run->events;
        b->used = MAX(b->used, (size_t)(run->data + run->size - b->data));
    } else {
        s->gap = true;
        s->discarded += run->events;
        q->discarded += run->events;
        set_marks(q, s, s->marks | MARK_TOLD);
    }
}

void ht_queue_pass(HtQueue *q, HtRun *run)
{
    HtQueueStream *s = &q->streams[run->stream->index];

    s->ns = run->end_ns;
    s->counter = run->counter;
    s->upstream = run->discarded;
    if (run->flags & HT_RUN_OPEN) {
        begin_instance(s, run);
    } else {
        run->discarded += s->discarded;
        if (s->gap && run->events) {
            run->flags |= HT_RUN_CUT;
            s->gap = false;
        }
    }
    q->posted += run->events;
}

bool ht_queue_take(HtQueue *q, HtQueued *item)
{
    uint32_t i;

    if (q->head != q->tail) {
        *item = q->items[q->head++ % HT_QUEUE_ITEMS];
    } else if (q->marked) {
        for (i = 0; !q->streams[i].marks; i++) {
            /* q->marked is not 0, so a stream has marks: the loop ends. */
        }
        *item = take_mark(q, &q->streams[i]);
    } else {
        return false;
    }
    q->delivering++;
    return true;
}

void ht_queue_done(HtQueue *q, HtQueued *item)
{
    HtBuffer *b = item->buffer;

    q->delivering--;
    g_clear_pointer(&item->info, g_free);
    if (b) {
        item->buffer = NULL;
        if (--b->queued[q->index] == 0) {
            q->held -= q->pool->size;
        }
        ht_pool_unref(q->pool, b);
    }
}
