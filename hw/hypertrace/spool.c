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
#include "device.h"

typedef struct Record {
    size_t size;                /* of the record, header included */
    bool skip;                  /* go on at the ring's beginning */
    HtRun run;                  /* stream and data are set again on reading */
    HtStreamInfo info;          /* HT_RUN_OPEN only */
} Record;

#define ALIGN 64
#define RECORD_MAX(n) ROUND_UP(sizeof(Record) + (n), ALIGN)

/* A run ends early where time jumps; a packet has few such places. */
#define RUNS_A_PACKET 16

void ht_spool_init(HtSpool *s, size_t size)
{
    memset(s, 0, sizeof(*s));
    s->size = ROUND_UP(size, ALIGN);
    s->buf = qemu_memalign(ALIGN, s->size);
}

void ht_spool_destroy(HtSpool *s)
{
    qemu_vfree(s->buf);
    s->buf = NULL;
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

bool ht_spool_drain(HtSpool *s, HtDeliver *deliver, void *opaque)
{
    size_t head = qatomic_load_acquire(&s->head);
    bool any = s->tail != head;

    while (s->tail != head) {
        Record *r = (Record *)(s->buf + s->tail % s->size);
        size_t size = r->size;

        if (!r->skip) {
            if (r->run.flags & HT_RUN_OPEN) {
                s->info = r->info;
            }
            r->run.stream = &s->info;
            r->run.data = (const uint8_t *)(r + 1);
            deliver(opaque, &r->run);
        }
        qatomic_store_release(&s->tail, s->tail + size);
    }
    return any;
}
