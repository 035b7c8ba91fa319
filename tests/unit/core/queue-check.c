/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Check the invariants of two queues that share one pool of buffers
 *
 * An event here is its number, eight bytes.  Each queue delivers each event
 * once, in order, or counts the event as discarded in a later run.  No queue
 * exceeds its budget, and no buffer leaks.
 */
#include "hypertrace/base.h"
#include "queue-check.h"

void qc_init(QcCheck *c, size_t budget)
{
    unsigned i;

    memset(c, 0, sizeof(*c));
    c->pool.size = QC_BUFFER;
    for (i = 0; i < QC_QUEUES; i++) {
        ht_queue_init(&c->queue[i], &c->pool, i, budget, QC_STREAMS);
    }
    for (i = 0; i < QC_STREAMS; i++) {
        c->stream[i].info.index = i;
    }
}

static void check_budgets(QcCheck *c)
{
    size_t held = 0;
    unsigned i;

    for (i = 0; i < QC_QUEUES; i++) {
        g_assert_cmpuint(c->queue[i].held, <=, c->queue[i].budget);
        held += c->queue[i].held;
    }
    g_assert_cmpuint(c->pool.buffers, <=, held / QC_BUFFER + QC_STREAMS);
}

static void post(QcCheck *c, QcStream *s, HtRun *run)
{
    unsigned i;

    run->stream = &s->info;
    run->begin_ns = run->end_ns = c->ns++;
    run->discarded = s->upstream;
    for (i = 0; i < QC_QUEUES; i++) {
        ht_queue_post(&c->queue[i], run, s->fill);
    }
    check_budgets(c);
}

void qc_toggle(QcCheck *c, unsigned stream)
{
    QcStream *s = &c->stream[stream];
    HtRun run = { .flags = s->open ? HT_RUN_CLOSE : HT_RUN_OPEN };

    s->open = !s->open;
    if (s->open) {
        s->info.instance++;
        s->upstream = 0;
        s->fresh = true;
    }
    post(c, s, &run);
    if (!s->open) {
        ht_pool_unref(&c->pool, s->fill);
        s->fill = NULL;
    }
}

void qc_post(QcCheck *c, unsigned stream, unsigned events, bool cut,
             unsigned upstream)
{
    QcStream *s = &c->stream[stream];
    HtRun run = {
        .flags = cut || s->fresh ? HT_RUN_CUT : 0,
        .events = events,
        .size = events * sizeof(uint64_t),
    };
    uint8_t *data;
    unsigned i;

    data = ht_pool_reserve(&c->pool, &s->fill, run.size);
    g_assert_true(data >= s->fill->data &&
                  data + run.size <= s->fill->data + QC_BUFFER);
    for (i = 0; i < events; i++, s->next++) {
        memcpy(data + i * sizeof(s->next), &s->next, sizeof(s->next));
    }
    s->upstream += upstream;
    s->discarded += upstream;
    s->fresh = false;
    run.data = data;
    post(c, s, &run);
}

void qc_tell(QcCheck *c, unsigned stream, unsigned upstream)
{
    HtRun run = { };

    c->stream[stream].upstream += upstream;
    c->stream[stream].discarded += upstream;
    post(c, &c->stream[stream], &run);
}

static void check_events(QcSeen *seen, const HtRun *run)
{
    uint64_t first, number;
    uint32_t i;

    memcpy(&first, run->data, sizeof(first));
    g_assert_cmpuint(first, >=, seen->next);
    /* if events are missing before a run, the run has HT_RUN_CUT */
    g_assert_true(first == seen->next || (run->flags & HT_RUN_CUT));
    g_assert_cmpuint(run->size, ==, run->events * sizeof(number));
    for (i = 0; i < run->events; i++) {
        memcpy(&number, run->data + i * sizeof(number), sizeof(number));
        g_assert_cmpuint(number, ==, first + i);
    }
    seen->next = first + run->events;
    seen->got += run->events;
}

static void check_item(QcCheck *c, unsigned queue, const HtQueued *item)
{
    QcSeen *seen = &c->stream[item->index].seen[queue];
    const HtRun *run = &item->run;

    if (run->flags & HT_RUN_OPEN) {
        g_assert_nonnull(item->info);
        g_assert_true(run->stream == item->info);
        g_assert_cmpuint(item->info->index, ==, item->index);
        g_assert_cmpuint(item->info->instance, >, seen->instance);
        g_assert_false(seen->open);
        g_assert_cmpuint(run->discarded, ==, 0);
        seen->open = true;
        seen->instance = item->info->instance;
        seen->missing = 0;
        return;
    }
    g_assert_true(seen->open);
    g_assert_cmpuint(run->discarded, >=, seen->missing);
    seen->missing = run->discarded;
    if (run->flags & HT_RUN_CLOSE) {
        seen->open = false;
        seen->told += seen->missing;
    } else if (run->events) {
        check_events(seen, run);
    }
}

unsigned qc_take(QcCheck *c, unsigned queue, unsigned items)
{
    HtQueue *q = &c->queue[queue];
    HtQueued item;
    unsigned n;

    for (n = 0; n < items && ht_queue_take(q, &item); n++) {
        g_assert_false(ht_queue_empty(q));
        check_item(c, queue, &item);
        ht_queue_done(q, &item);
        check_budgets(c);
    }
    return n;
}

void qc_finish(QcCheck *c)
{
    unsigned i, j;

    /*
     * open and close each stream while the queues have room, so that the queues
     * report the pending counts of discarded events
     */
    for (i = 0; i < QC_STREAMS; i++) {
        if (c->stream[i].open) {
            qc_toggle(c, i);
        }
        for (j = 0; j < QC_QUEUES; j++) {
            qc_take(c, j, UINT_MAX);
        }
        qc_toggle(c, i);
        qc_toggle(c, i);
        for (j = 0; j < QC_QUEUES; j++) {
            QcSeen *seen = &c->stream[i].seen[j];

            qc_take(c, j, UINT_MAX);
            g_assert_false(seen->open);
            g_assert_cmpuint(seen->got + seen->told, ==,
                             c->stream[i].next + c->stream[i].discarded);
        }
    }
    for (j = 0; j < QC_QUEUES; j++) {
        g_assert_true(ht_queue_empty(&c->queue[j]));
        g_assert_cmpuint(c->queue[j].held, ==, 0);
        ht_queue_destroy(&c->queue[j]);
    }
    g_assert_cmpuint(c->pool.buffers, ==, 0);
    ht_pool_destroy(&c->pool);
}
