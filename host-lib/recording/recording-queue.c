/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: keep the newest pieces of a ring in a bounded amount of memory
 *
 * The entries lie one after another in one block of memory.  An entry that does
 * not fit at the end of the block is written at the block's start.
 */
#include <sys/mman.h>

#include "hypertrace/base.h"
#include "hypertrace/recording.h"

/* Head of an entry; the piece's records follow it */
typedef struct Entry {
    HtFtPiece p;                /* the piece; @p.data is not used */
} Entry;

#define ALIGN   8u

struct HtRecQueue {
    uint8_t *block;
    uint64_t size;
    uint64_t first;
    uint64_t next;
    /*
     * If newer entries begin at offset 0: end of the older ones, which begin at
     * @first; else 0
     */
    uint64_t wrap;
    uint64_t entries;
    uint64_t events;
    uint64_t bytes;
    /* set of the processors of which pieces were removed, or were too large */
    GHashTable *removed;
};

HtRecQueue *ht_rec_queue_new(uint64_t size, GError **error)
{
    HtRecQueue *q;
    void *block;

    size -= size % ALIGN;
    block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE |
                 MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "cannot get memory of %" PRIu64 " MiB for events: %s",
                    size >> 20, g_strerror(errno));
        return NULL;
    }
    q = g_new0(HtRecQueue, 1);
    q->block = block;
    q->size = size;
    q->removed = g_hash_table_new(NULL, NULL);
    return q;
}

void ht_rec_queue_free(HtRecQueue *q)
{
    if (q) {
        munmap(q->block, q->size);
        g_hash_table_unref(q->removed);
        g_free(q);
    }
}

static uint64_t entry_size(uint32_t data)
{
    return HT_ROUND_UP(sizeof(Entry) + (uint64_t)data, ALIGN);
}

static void note_removed(HtRecQueue *q, uint32_t cpu)
{
    g_hash_table_add(q->removed, GUINT_TO_POINTER(cpu));
}

static bool was_removed(const HtRecQueue *q, uint32_t cpu)
{
    return g_hash_table_contains(q->removed, GUINT_TO_POINTER(cpu));
}

static void remove_oldest(HtRecQueue *q)
{
    const Entry *e = (const Entry *)(q->block + q->first);
    uint64_t size = entry_size(e->p.size);

    note_removed(q, e->p.cpu);
    q->events -= e->p.events;
    q->bytes -= size;
    q->entries--;
    q->first += size;
    if (q->first == q->wrap) {
        q->first = 0;
        q->wrap = 0;
    }
    if (!q->entries) {
        q->first = q->next = q->wrap = 0;
    }
}

/*
 * Find room for an entry, at @next or at the start of the block.  Returns false
 * if older entries must be removed first
 */
static bool find_room(HtRecQueue *q, uint64_t size)
{
    if (q->wrap) {
        return q->first - q->next >= size;
    }
    if (q->size - q->next >= size) {
        return true;
    }
    if (q->first < size) {
        return false;
    }
    q->wrap = q->next;
    q->next = 0;
    return true;
}

void ht_rec_queue_push(HtRecQueue *q, const HtFtPiece *p)
{
    uint64_t size = entry_size(p->size);
    Entry *e;

    if (size > q->size) {
        note_removed(q, p->cpu);
        return;
    }
    while (!find_room(q, size)) {
        remove_oldest(q);
    }
    e = (Entry *)(q->block + q->next);
    e->p = *p;
    e->p.data = NULL;
    memcpy(e + 1, p->data, p->size);
    q->next += size;
    q->entries++;
    q->events += p->events;
    q->bytes += size;
}

/*
 * Make the piece of an entry.  If earlier pieces of its processor were removed,
 * the first piece that is left has HT_FT_PIECE_LATE.
 */
static HtFtPiece make_piece(const HtRecQueue *q, const Entry *e,
                            GHashTable *seen)
{
    HtFtPiece p = e->p;

    p.data = (const uint8_t *)(e + 1);
    if (g_hash_table_add(seen, GUINT_TO_POINTER(p.cpu)) &&
        was_removed(q, p.cpu)) {
        p.flags = (p.flags & ~HT_FT_PIECE_LOST) | HT_FT_PIECE_LATE;
        p.lost_estimate = 0;
        p.lost_from_ns = 0;
    }
    return p;
}

bool ht_rec_queue_each(const HtRecQueue *q,
                       bool (*visit)(void *opaque, const HtFtPiece *p),
                       void *opaque)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    uint64_t at = q->first, n;

    for (n = q->entries; n; n--) {
        const Entry *e = (const Entry *)(q->block + at);
        HtFtPiece p = make_piece(q, e, seen);

        if (!visit(opaque, &p)) {
            return false;
        }
        at += entry_size(e->p.size);
        at = q->wrap && at == q->wrap ? 0 : at;
    }
    return true;
}

uint64_t ht_rec_queue_events(const HtRecQueue *q)
{
    return q->events;
}

uint64_t ht_rec_queue_bytes(const HtRecQueue *q)
{
    return q->bytes;
}
