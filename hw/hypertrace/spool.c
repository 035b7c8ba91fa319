/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: runs on their way from a vCPU to the IOThread
 *
 * A byte ring of records, each a header and, behind it, the run's events.  A
 * record does not wrap: the rest of the ring is skipped instead.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/memalign.h"
#include "qemu/units.h"
#include "spool.h"

typedef struct Record {
    size_t size;                /* of the record, header included */
    bool skip;                  /* go on at the ring's beginning */
    HtRun run;                  /* stream and data are set again on reading */
    HtStreamInfo info;          /* HT_RUN_OPEN only */
} Record;

#define ALIGN 64
#define RECORD_MAX(n) ROUND_UP(sizeof(Record) + (n), ALIGN)

/* Runs are merged up to this size. */
#define MERGE_MAX (64 * KiB)

/* A run ends early where time jumps; a packet has few such places. */
#define RUNS_A_PACKET 16

void ht_spool_init(HtSpool *s, size_t size)
{
    memset(s, 0, sizeof(*s));
    s->size = ROUND_UP(size, ALIGN);
    s->buf = qemu_memalign(ALIGN, s->size);
    s->merge = g_malloc(MERGE_MAX);
}

void ht_spool_destroy(HtSpool *s)
{
    qemu_vfree(s->buf);
    s->buf = NULL;
    g_free(s->merge);
    s->merge = NULL;
}

bool ht_spool_room(const HtSpool *s, size_t size)
{
    /* twice, as up to one record's length may have to be skipped */
    size_t need = 2 * (RECORD_MAX(size) + RUNS_A_PACKET * RECORD_MAX(0));

    return s->size - (s->head - qatomic_load_acquire(&s->tail)) >= need;
}

bool ht_spool_put(HtSpool *s, const HtRun *run)
{
    size_t need = RECORD_MAX(run->size);
    size_t at = s->head % s->size;
    size_t rest = s->size - at;
    size_t skip = rest < need ? rest : 0;
    Record *r = (Record *)(s->buf + at);

    /* Pairs with the store-release of tail in ht_spool_drain(). */
    if (s->size - (s->head - qatomic_load_acquire(&s->tail)) < skip + need) {
        return false;
    }
    if (skip) {
        /* ALIGN and sizeof(Record): a header's first members always fit */
        r->size = skip;
        r->skip = true;
        r = (Record *)s->buf;
    }
    r->size = need;
    r->skip = false;
    r->run = *run;
    if (run->flags & HT_RUN_OPEN) {
        r->info = *run->stream;
    }
    if (run->size) {
        memcpy(r + 1, run->data, run->size);
    }
    /* Pairs with the load-acquire of head in ht_spool_drain(). */
    qatomic_store_release(&s->head, s->head + skip + need);
    return true;
}

static bool can_merge(const HtRun *a, const HtRun *b)
{
    return !(a->flags & (HT_RUN_OPEN | HT_RUN_CLOSE)) && !b->flags &&
           a->discarded == b->discarded && a->size + b->size <= MERGE_MAX;
}

/*
 * With a doorbell an event, runs are single events, and what may block (a
 * file, say) costs more a run than an event: consecutive ones become one.
 */
bool ht_spool_drain(HtSpool *s, HtDeliver *deliver, void *opaque)
{
    /* Pairs with the store-release of head in ht_spool_put(). */
    size_t head = qatomic_load_acquire(&s->head);
    bool any = s->tail != head;
    HtRun merged = { };

    while (s->tail != head) {
        Record *r = (Record *)(s->buf + s->tail % s->size);
        size_t size = r->size;

        if (!r->skip) {
            HtRun *run = &r->run;

            if (merged.events && !can_merge(&merged, run)) {
                deliver(opaque, &merged);
                merged.events = 0;
            }
            if (run->flags & HT_RUN_OPEN) {
                s->info = r->info;
            }
            run->stream = &s->info;
            run->data = (const uint8_t *)(r + 1);
            if (merged.events) {
                memcpy(s->merge + merged.size, run->data, run->size);
                merged.size += run->size;
                merged.events += run->events;
                merged.end_ns = run->end_ns;
            } else if (run->events && run->size < MERGE_MAX / 2) {
                merged = *run;
                merged.data = s->merge;
                memcpy(s->merge, run->data, run->size);
            } else {
                deliver(opaque, run);
            }
        }
        /* Pairs with the load-acquire of tail in ht_spool_put(). */
        qatomic_store_release(&s->tail, s->tail + size);
    }
    if (merged.events) {
        deliver(opaque, &merged);
    }
    return any;
}
