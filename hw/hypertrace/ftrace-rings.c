/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the ftrace rings of a guest that are followed
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "migration/misc.h"
#include "system/dma.h"
#include "ftrace.h"

/* Limits of reading with the BQL held: bytes copied, and CPU time */
#define REST_BYTES  (256 * MiB)
#define REST_NS     (100 * (uint64_t)SCALE_MS)
/* CPU time limit of one poll: a caller that holds the BQL may wait for it */
#define LOOK_NS     (20 * (uint64_t)SCALE_MS)

/* Context: lock held */
static bool is_known(const HypertraceFtrace *ft, uint64_t address)
{
    guint i;

    for (i = 0; i < ft->rings->len; i++) {
        const HtFtWatched *w = ft->rings->pdata[i];

        if (ht_ft_follow_covers(w->follow, address)) {
            return true;
        }
    }
    return false;
}

/* Context: lock held */
static void drop_ring(HypertraceFtrace *ft, guint i)
{
    HtFtWatched *w = ft->rings->pdata[i];

    if (w->feed.taken && w->left) {
        ht_ft_feed_lose(&w->feed);
    }
    ht_ft_feed_close(&w->feed);
    ht_ft_follow_free(w->follow);
    g_ptr_array_remove_index(ft->rings, i);
    g_free(w);
}

/*
 * While a kernel initializes its ring, a later processor's part looks like
 * another ring.  Context: lock held
 */
static void drop_parts(HypertraceFtrace *ft, const HtFtRing *whole)
{
    guint i;

    for (i = ft->rings->len; i-- > 0;) {
        const HtFtWatched *w = ft->rings->pdata[i];

        if (ht_ft_ring_covers(whole, w->address)) {
            drop_ring(ft, i);
        }
    }
}

void ht_ftrace_add_rings(HypertraceFtrace *ft, GPtrArray *found)
{
    guint i;

    for (i = 0; i < found->len; i++) {
        HtFtRing *ring = found->pdata[i];
        HtFtWatched *w;
        HtFtMem mem;

        if (is_known(ft, ring->offset) ||
            !ht_guest_ram_at(ring->offset, &mem)) {
            ht_ft_ring_free(ring);
            continue;
        }
        drop_parts(ft, ring);
        if (ft->rings->len == HT_FTRACE_RINGS) {
            ht_ft_ring_free(ring);
            continue;
        }
        w = g_new0(HtFtWatched, 1);
        w->ft = ft;
        w->address = ring->offset;
        w->mem = mem;
        ht_ft_feed_init(&w->feed, &ft->runs, ft->nr_found++);
        w->follow = ht_ft_follow_new(&w->mem, ring, &ht_ftrace_follow_ops, w);
        g_ptr_array_add(ft->rings, w);
    }
    g_ptr_array_free(found, true);
}

void ht_ftrace_drop_all(HypertraceFtrace *ft)
{
    while (ft->rings->len) {
        drop_ring(ft, ft->rings->len - 1);
    }
}

void ht_ftrace_drop_gone(HypertraceFtrace *ft)
{
    guint i;

    for (i = ft->rings->len; i-- > 0;) {
        HtFtWatched *w = ft->rings->pdata[i];

        if (w->gone ||
            !ht_ft_ring_is_there(&w->mem, ht_ft_follow_ring(w->follow))) {
            drop_ring(ft, i);
        }
    }
}

void ht_ftrace_make_room(HypertraceFtrace *ft, GHashTable *silent)
{
    bool full = ft->rings->len == HT_FTRACE_RINGS;
    guint i;

    for (i = ft->rings->len; full && i-- > 0;) {
        const HtFtWatched *w = ft->rings->pdata[i];

        if (!w->feed.taken) {
            g_hash_table_add(silent, g_memdup2(&w->address,
                                               sizeof(w->address)));
            drop_ring(ft, i);
        }
    }
}

bool ht_ftrace_any_taken(HypertraceFtrace *ft)
{
    guint i;

    for (i = 0; i < ft->rings->len; i++) {
        HtFtWatched *w = ft->rings->pdata[i];

        if (w->feed.taken) {
            return true;
        }
    }
    return false;
}

/* Follow a ring from its start, for the sinks.  Context: lock held */
static bool take(HtFtWatched *w)
{
    HtFtRing *again = ht_ft_ring_at(&w->mem, w->address, NULL);

    if (!again) {
        return false;
    }
    ht_ft_follow_free(w->follow);
    w->follow = ht_ft_follow_new(&w->mem, again, &ht_ftrace_follow_ops, w);
    ht_ft_feed_begin(&w->feed);
    return true;
}

uint64_t ht_ftrace_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NANOSECONDS_PER_SECOND + t.tv_nsec;
}

bool ht_ftrace_look(HtFtWatched *w)
{
    ht_ft_follow_limit(w->follow, ht_ftrace_cpu_ns,
                       ht_ftrace_cpu_ns() + LOOK_NS);
    w->gone |= ht_ft_follow_look(w->follow) < 0;
    w->left = ht_ft_follow_more(w->follow);
    if (w->feed.taken) {
        ht_ft_feed_flush(&w->feed);
        return w->left;
    }
    /*
     * Only the ring of a running kernel changes; a copy in a page cache and a
     * ring of an earlier boot do not.
     */
    return (ht_ft_follow_alive(w->follow) && take(w)) || w->left;
}

/* Context: lock held */
static void look_rest(HypertraceFtrace *ft, int64_t *budget, uint64_t end)
{
    guint i;

    for (i = 0; i < ft->rings->len; i++) {
        HtFtWatched *w = ft->rings->pdata[i];
        unsigned times = HT_FTRACE_LAST_LOOKS;

        while (times && !w->gone) {
            if (*budget <= 0 || ht_ftrace_cpu_ns() >= end) {
                w->left = true;
                break;
            }
            times -= !ht_ftrace_look(w);
            *budget -= ht_ft_follow_copied(w->follow);
        }
    }
}

void ht_ftrace_take_rest(HypertraceFtrace *ft, bool only)
{
    uint64_t end = ht_ftrace_cpu_ns() + REST_NS;
    int64_t budget = REST_BYTES;

    /* The arrival of a missing page could need the BQL. */
    if (migration_in_incoming_postcopy()) {
        return;
    }
    look_rest(ft, &budget, end);
    if (only && !ht_ftrace_any_taken(ft) && ft->rings->len == 1 &&
        take(ft->rings->pdata[0])) {
        look_rest(ft, &budget, end);
    }
}

static void erase_ring(HtFtWatched *w)
{
    const HtFtRing *ring = ht_ft_follow_ring(w->follow);
    const MemTxAttrs attrs = { .memory = 1 };
    static const uint8_t zero[4];
    uint32_t i, magic;
    uint64_t at;

    for (i = 0; (at = ht_ft_ring_magic(ring, i)) != UINT64_MAX; i++) {
        if (!ht_ft_mem_read(&w->mem, at, &magic, sizeof(magic)) &&
            le32_to_cpu(magic) == HT_FT_MAGIC) {
            dma_memory_write(&address_space_memory, at, zero, sizeof(zero),
                             attrs);
        }
    }
}

void ht_ftrace_erase(HypertraceFtrace *ft)
{
    guint i;

    for (i = 0; i < ft->rings->len && !migration_in_incoming_postcopy(); i++) {
        HtFtWatched *w = ft->rings->pdata[i];

        if (w->feed.taken) {
            erase_ring(w);
        }
    }
}
