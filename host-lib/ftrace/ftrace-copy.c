/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: copy the committed records of a page of a guest's ring
 *
 * When the kernel reuses a page, it clears the commit count, moves the tail (a
 * full barrier), writes the first record's header, then the time stamp; the
 * commit count grows later.  A check of the stamp alone would accept new bytes
 * under the old stamp; a check of the count alone would accept another page.
 * Both are therefore checked before and after the copy.
 */
#include "hypertrace/atomic.h"
#include "ftrace-cpu.h"

#define TRIES 4
/*
 * Maximum number of polls that skip a page whose commit count may be of the
 * previous boot: see is_of_boot_before()
 */
#define HOLD_TIMES 256

bool ht_ft_cpu_load(const HtFtCpu *c, uint64_t offset, uint64_t *value)
{
    if (ht_ft_mem_read(c->mem, offset, value, sizeof(*value))) {
        return false;
    }
    *value = ht_le64(*value);
    /*
     * Pairs with the guest's barrier where it moves the tail, and with x86's
     * store order: a later load returns a value that is at least as new.
     */
    ht_fence_acquire();
    return true;
}

bool ht_ft_records_ok(const uint8_t *data, const HtFtFetched *got)
{
    HtFtRecord r;
    HtFtIter it;
    HtFtStep step;

    ht_ft_iter_init(&it, data, got->to - got->from, 0, got->ns);
    do {
        step = ht_ft_iter_next(&it, &r);
    } while (step == HT_FT_EVENT);
    return step == HT_FT_END;
}

/*
 * Return the size of a page's records in bytes: @commit, which is not checked.
 * If a reader in the guest has marked the page empty (HtFtWant.cleared and a
 * count of 0), return the size of a full page.
 */
static uint64_t committed(const HtFtCpu *c, const HtFtWant *want,
                          uint64_t commit)
{
    return want->cleared && commit == 0 ? ht_ft_cpu_capacity(c) : commit;
}

/*
 * Limit a commit count to the page, and round it down to a multiple of 4, where
 * records end
 */
static uint32_t within_page(const HtFtCpu *c, uint64_t size)
{
    return MIN(size, ht_ft_cpu_capacity(c)) & ~3u;
}

/*
 * Test whether a page's commit count may be that of the previous boot.  A
 * kernel that takes over the ring begins on the page where the previous boot
 * ended.  Until this kernel's first commit, the page has the old count, and old
 * bytes after the new first record.  If the count does not change for
 * HOLD_TIMES polls, assume that it belongs to the new boot, and that the guest
 * hangs.
 */
static bool is_of_boot_before(HtFtCpu *c, const HtFtWant *want,
                              const HtFtFetched *got, uint64_t commit)
{
    if (!want->writers || want->resume || !c->looked ||
        !(c->moved || got->stamp < c->newest_ns) ||
        (want->slot == c->last && commit < c->used[want->slot])) {
        return false;
    }
    if (c->held != want->slot || c->held_stamp != got->stamp) {
        c->held = want->slot;
        c->held_stamp = got->stamp;
        c->held_commit = commit;
        c->held_times = 0;
    }
    c->holds = c->held_commit == commit && c->held_times++ < HOLD_TIMES;
    return c->holds;
}

/* Make one attempt of ht_ft_cpu_fetch() */
static HtFtCopy fetch(HtFtCpu *c, HtFtLook *look, const HtFtWant *want,
                      HtFtFetched *got)
{
    uint64_t page = ht_ft_cpu_page(c, want->slot);
    uint64_t stamp, commit, stamp2, commit2, size;
    uint32_t from = want->resume ? c->pos : 0;

    if (!ht_ft_cpu_load(c, page, &stamp) ||
        !ht_ft_cpu_load(c, page + 8, &commit)) {
        return HT_FT_ERROR;
    }
    if ((want->resume && stamp != c->page[want->slot]) ||
        (want->stamp && stamp != want->stamp)) {
        return HT_FT_OTHER;
    }
    size = committed(c, want, commit);
    *got = (HtFtFetched) {
        .slot = want->slot,
        .stamp = stamp,
        .from = from,
        .to = within_page(c, size),
        .ns = want->resume ? c->ns : stamp,
    };
    if (want->resume && c->spoiled) {
        return HT_FT_SAME;
    }
    if (want->cleared && commit != 0) {
        /* the kernel has begun to overwrite the page */
        return HT_FT_RETRY;
    }
    if (size > ht_ft_cpu_capacity(c) || size % 4) {
        return HT_FT_GARBAGE;
    }
    if (!want->resume && c->used[want->slot] &&
        stamp == c->page[want->slot]) {
        return size < c->used[want->slot] ? HT_FT_CLEARED : HT_FT_SAME;
    }
    if (size < from) {
        return HT_FT_CLEARED;
    }
    got->to = MIN(size, want->limit);
    if (got->to <= from) {
        return HT_FT_SAME;
    }
    if (is_of_boot_before(c, want, got, commit)) {
        return HT_FT_HELD;
    }
    if (ht_ft_mem_read(c->mem, page + HT_FT_PAGE_HEADER + from, look->page,
                       got->to - from)) {
        return HT_FT_ERROR;
    }
    look->copied += got->to - from;
    /*
     * Read the count and the stamp again only after the copy.  Before the guest
     * overwrites a page, it clears the page's count, and then moves the tail to
     * the page.  The move is a barrier, which pairs with this fence: if the
     * copy has new bytes, the old count is no longer read.
     */
    ht_fence_acquire();
    if (!ht_ft_cpu_load(c, page + 8, &commit2) ||
        !ht_ft_cpu_load(c, page, &stamp2)) {
        return HT_FT_ERROR;
    }
    if (stamp2 != stamp || committed(c, want, commit2) < size) {
        return HT_FT_RETRY;
    }
    return ht_ft_records_ok(look->page, got) ? HT_FT_COPIED : HT_FT_GARBAGE;
}

HtFtCopy ht_ft_cpu_fetch(HtFtCpu *c, HtFtLook *look, const HtFtWant *want,
                         HtFtFetched *got)
{
    HtFtCopy result;
    int i;

    for (i = 0; i < TRIES; i++) {
        result = fetch(c, look, want, got);
        if (result != HT_FT_RETRY && result != HT_FT_GARBAGE) {
            break;
        }
        c->stats.retries += result == HT_FT_RETRY;
    }
    /*
     * The size of a page that was marked empty is a guess: invalid records in
     * it are no error.
     */
    c->stats.bad += result == HT_FT_GARBAGE && !want->cleared;
    return result;
}

/* Queue the bytes from @begin to @end of the fetched range as a piece */
static void add_piece(HtFtCpu *c, HtFtLook *look, const HtFtFetched *got,
                      uint32_t begin, uint32_t end, HtFtTaken *t)
{
    t->p.cpu = c->number;
    t->p.slot = got->slot;
    t->p.from = got->from + begin;
    t->p.size = end - begin;
    t->p.stamp = got->stamp;
    t->p.flags = t->p.from == 0 ? HT_FT_PIECE_BEGIN : 0;
    if (c->lost || c->lapped) {
        t->p.flags |= HT_FT_PIECE_LOST;
        t->gap_ns = c->lost ? 0 : c->gap_ns;
        c->lost = c->lapped = false;
    }
    if (c->late && !c->stats.bytes) {
        t->p.flags |= HT_FT_PIECE_LATE;
        c->stats.late = 1;
    }
    t->at = look->bytes->len;
    g_byte_array_append(look->bytes, look->page + begin, end - begin);
    g_array_append_val(look->taken, *t);
    c->stats.events += t->p.events;
    c->stats.bytes += t->p.size;
}

void ht_ft_cpu_take(HtFtCpu *c, HtFtLook *look, const HtFtFetched *got)
{
    uint32_t begin = 0, pos = 0, size = got->to - got->from;
    uint64_t last = c->newest_ns, base = got->ns;
    HtFtTaken t = { .p.base_ns = base };
    HtFtRecord r;
    HtFtIter it;

    if (c->cut && got->from == 0) {
        c->cut = false;
        c->lost = true;
    }
    ht_ft_iter_init(&it, look->page, size, 0, base);
    while (ht_ft_iter_next(&it, &r) == HT_FT_EVENT) {
        if (c->fresh || r.ns < last) {
            HtFtStepBack step = !c->one_boot &&
                (c->fresh || last - r.ns > HT_FT_EPOCH_NS) ?
                HT_FT_STEP_EPOCH : HT_FT_STEP_SEGMENT;

            c->fresh = false;
            /*
             * The guest's clock stepped back before this record, or another
             * boot began: the earlier records are a piece of their own.
             */
            if (pos > begin) {
                t.p.end_ns = last;
                add_piece(c, look, got, begin, pos, &t);
            }
            t = (HtFtTaken) { .p.base_ns = base, .step = step };
            begin = pos;
        }
        if (t.p.events++ == 0) {
            t.p.begin_ns = r.ns;
        }
        last = r.ns;
        pos = it.pos;
        base = it.ns;
    }
    if (t.p.events == 0) {
        t.p.begin_ns = t.p.base_ns;
    }
    t.p.end_ns = MAX(it.ns, t.p.begin_ns);
    add_piece(c, look, got, begin, size, &t);
    c->stats.discarded += it.discarded;
    c->newest_ns = last;
    c->pos = got->to;
    c->ns = it.ns;
    c->changed = c->looked;
}

/* Queue the fetched records; their page becomes the page taken last. */
static void take(HtFtCpu *c, HtFtLook *look, const HtFtFetched *got)
{
    ht_ft_cpu_take(c, look, got);
    c->last = got->slot;
    c->page[got->slot] = got->stamp;
    c->used[got->slot] = got->to;
    c->spoiled = false;
    c->synced = true;
}

/* Skip invalid records; the rest of the page cannot be dated. */
static void skip(HtFtCpu *c, const HtFtFetched *got)
{
    c->lost = true;
    c->spoiled = true;
    c->last = got->slot;
    c->pos = got->to;
    c->page[got->slot] = got->stamp;
    c->used[got->slot] = MAX(got->to, 1);
}

bool ht_ft_cpu_use(HtFtCpu *c, HtFtLook *look, HtFtCopy result,
                   const HtFtFetched *got)
{
    if (result == HT_FT_COPIED) {
        take(c, look, got);
    } else if (result == HT_FT_GARBAGE) {
        skip(c, got);
    }
    return result == HT_FT_COPIED || result == HT_FT_GARBAGE;
}

/*
 * The kernel moves to a new page, commits the previous page, and only then
 * writes the new page's time stamp.  Before that, the sub-buffer has the stamp
 * of the page that is overwritten.  If records with this stamp were taken from
 * the sub-buffer, the new page counts as not started (@lag_size is 0).
 */
void ht_ft_cpu_note(HtFtCpu *c, uint32_t slot)
{
    uint64_t page = ht_ft_cpu_page(c, slot), stamp, commit;

    c->lag_slot = HT_FT_NO_SLOT;
    if (ht_ft_cpu_load(c, page, &stamp) &&
        ht_ft_cpu_load(c, page + 8, &commit)) {
        bool old = slot != c->last && c->used[slot] &&
                   c->page[slot] == stamp;

        c->lag_slot = slot;
        c->lag_size = old ? 0 : within_page(c, commit);
        c->lag_stamp = c->lag_size ? stamp : 0;
        c->lag_begin = c->look_begin;
    }
}
