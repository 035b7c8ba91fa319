/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: walk over one processor's part of an ftrace ring
 *
 * The kernel keeps the sub-buffers in a ring, order[1] to order[n - 1], and one
 * more, order[0], for readers in the guest.  The writer moves from place to
 * place.  A reader swaps order[0] with the page at the head, and marks the page
 * that it gives back as empty.  Swaps happen only at places that the writer has
 * reached.  The writer "has come around" when it has passed all places since a
 * poll.  Until then, the pages that it has written since the poll are those
 * after the page taken last, in the order of that poll.
 *
 * The witness is a page that the writer must overwrite before it overwrites
 * pages that were not taken: the page before the head, the page taken or
 * visited last, or the head.  If the witness is unchanged, the writer has not
 * come around.
 */
#include "hypertrace/atomic.h"
#include "ftrace-cpu.h"

#define TRIES 4
/*
 * A page at least this number of places after the writer's page counts as ahead
 * of the writer
 */
#define AHEAD 3

typedef enum Walk {
    WALK_DONE,          /* nothing is left up to the writer's position */
    WALK_BEHIND,        /* committed records may be left for the next poll */
    WALK_AGAIN,         /* the position is lost: restart at the head */
    WALK_ERROR,
} Walk;

typedef struct Writer {
    uint32_t slot;
    /* maximum number of bytes to take of the page in sub-buffer @slot */
    uint32_t limit;
    /*
     * On a host with weak memory ordering: the page's time stamp at the
     * previous poll, and whether the page had committed records at that poll.
     * On other hosts: 0 and true
     */
    uint64_t stamp;
    bool begun;
} Writer;

/*
 * Return the number of the sub-buffer at a guest address, or HT_FT_NO_SLOT if
 * no sub-buffer begins there
 */
static uint32_t slot_of(const HtFtCpu *c, uint64_t address)
{
    uint64_t offset = address - c->first;
    uint64_t slot = offset / c->ring->subbuf_size;

    if (address < c->first || offset % c->ring->subbuf_size ||
        slot >= c->ring->subbufs) {
        return HT_FT_NO_SLOT;
    }
    return slot;
}

static uint32_t order_at(const HtFtCpu *c, uint32_t at)
{
    uint32_t slot;

    if (ht_ft_mem_read(c->mem, c->geo.order + 4 * (uint64_t)at, &slot, 4)) {
        return HT_FT_NO_SLOT;
    }
    slot = ht_le32(slot);
    return slot < c->ring->subbufs ? slot : HT_FT_NO_SLOT;
}

static uint32_t next_at(const HtFtCpu *c, uint32_t at)
{
    return at + 1 < c->ring->subbufs ? at + 1 : 1;
}

static uint32_t before_at(const HtFtCpu *c, uint32_t at)
{
    return at > 1 ? at - 1 : c->ring->subbufs - 1;
}

/* Number of steps from place @from to place @to, in the order of the ring */
static uint32_t distance(const HtFtCpu *c, uint32_t from, uint32_t to)
{
    return to >= from ? to - from : to + c->ring->subbufs - 1 - from;
}

static uint32_t head_slot(const HtFtCpu *c)
{
    uint64_t head;

    return ht_ft_cpu_load(c, c->geo.meta + 8, &head) ? slot_of(c, head) :
                                                        HT_FT_NO_SLOT;
}

static uint32_t commit_slot(const HtFtCpu *c)
{
    uint64_t commit;

    return ht_ft_cpu_load(c, c->geo.meta + 16, &commit) ?
        slot_of(c, commit) : HT_FT_NO_SLOT;
}

/* Test whether a page has records, and was not taken before */
static bool unread(const HtFtCpu *c, uint32_t slot, uint64_t *stamp)
{
    uint64_t page = ht_ft_cpu_page(c, slot), commit;

    return ht_ft_cpu_load(c, page, stamp) &&
           ht_ft_cpu_load(c, page + 8, &commit) && commit != 0 &&
           !(c->used[slot] && c->page[slot] == *stamp);
}

/*
 * Read the order of all pages.  Returns the head's slot; HT_FT_NO_SLOT, with
 * the previous order kept, if no attempt succeeded, usually because a reader in
 * the guest changed the order during each attempt.
 */
static uint32_t read_order(HtFtCpu *c, HtFtLook *look)
{
    uint32_t subbufs = c->ring->subbufs, i, n;

    for (i = 0; i < TRIES && (i == 0 || !ht_ft_look_full(look)); i++) {
        uint32_t head = head_slot(c);

        look->copied += subbufs * (uint64_t)HT_FT_LOOK_SLOT;
        if (head == HT_FT_NO_SLOT ||
            ht_ft_mem_read(c->mem, c->geo.order, c->new_order,
                           subbufs * sizeof(c->new_order[0])) ||
            head_slot(c) != head || order_at(c, 0) !=
            ht_le32(c->new_order[0])) {
            continue;
        }
        /* While a reader swaps pages, a page can appear twice in the order. */
        memset(c->new_place, 0xff, subbufs * sizeof(c->new_place[0]));
        for (n = 0; n < subbufs; n++) {
            uint32_t slot = ht_le32(c->new_order[n]);

            if (slot >= subbufs || c->new_place[slot] != UINT32_MAX) {
                break;
            }
            c->new_order[n] = slot;
            c->new_place[slot] = n;
        }
        if (n == subbufs && c->new_place[head] != 0) {
            uint32_t *order = c->order, *place = c->place;

            c->order = c->new_order;
            c->place = c->new_place;
            c->new_order = order;
            c->new_place = place;
            return head;
        }
    }
    return HT_FT_NO_SLOT;
}

static bool witness_ok(const HtFtCpu *c)
{
    uint64_t stamp;

    return order_at(c, c->witness.at) == c->witness.slot &&
           ht_ft_cpu_load(c, ht_ft_cpu_page(c, c->witness.slot), &stamp) &&
           stamp == c->witness.stamp;
}

/*
 * Test whether the writer is still in the page taken last.  If so, no page
 * after it has records to be taken.
 */
static bool at_writer(const HtFtCpu *c)
{
    uint64_t stamp;

    return commit_slot(c) == c->last &&
           ht_ft_cpu_load(c, ht_ft_cpu_page(c, c->last), &stamp) &&
           stamp == c->page[c->last];
}

/*
 * Find the place of the page taken last in the new order.  Returns false if the
 * place is not known.
 */
static bool follow_order(HtFtCpu *c, uint32_t head)
{
    uint32_t at = c->place[c->last];

    if (commit_slot(c) == c->last) {
        c->at = at ? at : before_at(c, c->place[head]);
        return true;
    }
    /*
     * If the page taken last is no longer at its place, a reader in the guest
     * has taken it away.
     */
    return c->order[c->at] == c->last;
}

/*
 * Test whether the head directly follows the readers' page in time.  A reader
 * that takes the head puts its previous page, which is empty, in the head's
 * place, before the new head.  If the writer moved the head instead, the page
 * before the new head is not empty, or is directly after the writer's page.
 */
static bool head_follows(const HtFtCpu *c, uint32_t head)
{
    uint32_t at = before_at(c, c->place[head]), writer;
    uint64_t commit;

    if (!ht_ft_cpu_load(c, ht_ft_cpu_page(c, c->order[at]) + 8, &commit) ||
        commit) {
        return false;
    }
    writer = commit_slot(c);
    return writer != HT_FT_NO_SLOT && c->place[writer] &&
           distance(c, c->place[writer], at) >= AHEAD;
}

/*
 * Choose the witness for the next poll: a page that the writer must overwrite
 * before it can overwrite pages that were not taken. Returns false if the order
 * or a page cannot be relied on; @w is not valid then.
 */
static bool choose_witness(HtFtCpu *c, uint32_t head, HtFtWitness *w)
{
    uint32_t at = c->place[head];
    uint64_t stamp, commit;

    if (at == 0 || c->cut ||
        (c->order[0] == c->last && next_at(c, c->at) != at) ||
        !ht_ft_cpu_load(c, ht_ft_cpu_page(c, c->last), &stamp) ||
        stamp != c->page[c->last]) {
        return false;
    }
    /*
     * If a reader in the guest has taken the head, the page before the new head
     * is the page that the reader gave back.
     */
    w->at = before_at(c, at);
    w->slot = c->order[w->at];
    w->full = false;
    if (!ht_ft_cpu_load(c, ht_ft_cpu_page(c, w->slot), &w->stamp) ||
        !ht_ft_cpu_load(c, ht_ft_cpu_page(c, w->slot) + 8, &commit)) {
        return false;
    }
    /*
     * If the ring is full or almost full, the page before the head is the
     * writer's page, or becomes this soon.  While the ring is filled for the
     * first time, the page before the head has no time stamp yet.  Choose
     * another page in these cases.
     */
    if (c->order[0] != c->last) {
        if (commit || !w->stamp || distance(c, c->at, w->at) < AHEAD) {
            *w = (HtFtWitness) { c->last, c->at, stamp, true };
        }
    } else if (commit_slot(c) != c->last && !head_follows(c, head)) {
        *w = (HtFtWitness) { .slot = head, .at = at, .full = true };
        if (!ht_ft_cpu_load(c, ht_ft_cpu_page(c, head), &w->stamp)) {
            return false;
        }
    }
    return head_slot(c) == head && order_at(c, 0) == c->order[0];
}

static Walk lose(HtFtCpu *c)
{
    if (!c->lapped) {
        c->lapped = c->stats.bytes != 0;
        c->gap_ns = c->before ? c->look_begin - c->before : 0;
    }
    c->synced = false;
    return WALK_AGAIN;
}

/*
 * After a poll that took something, read the order if it has changed, and
 * choose a witness for the next poll.  If the order cannot be read, or no
 * witness is safe, keep the old witness: it is valid until the writer has come
 * around.  If the new order does not show the place of the page taken last, the
 * position is lost.
 *
 * Check the old witness after reading the new order.  If the old witness has
 * changed, the writer has come around since the witness was chosen: keep that
 * witness, and if the order is new, the position is lost.  Skip the check while
 * the writer is in the page taken last.
 */
static void prepare(HtFtCpu *c, HtFtLook *look)
{
    uint32_t head = head_slot(c);
    bool changed, chosen;
    HtFtWitness witness;

    if (head == HT_FT_NO_SLOT) {
        return;
    }
    changed = order_at(c, 0) != c->order[0];
    if (changed) {
        head = read_order(c, look);
        if (head == HT_FT_NO_SLOT) {
            return;
        }
        chosen = follow_order(c, head);
        if (!chosen) {
            lose(c);
            return;
        }
    }
    chosen = choose_witness(c, head, &witness);
    if (at_writer(c) || witness_ok(c)) {
        if (chosen) {
            c->witness = witness;
        }
    } else if (changed) {
        lose(c);
    }
}

/*
 * Fetch a page.  If a reader in the guest has read the page and marked it
 * empty, the records are still there, but the page is no longer at its place.
 * Do not fetch an empty page that is at its place: "echo > trace" has cleared
 * it, perhaps before it was full.
 */
static HtFtCopy fetch(HtFtCpu *c, HtFtLook *look, HtFtWant *want, uint32_t at,
                      HtFtFetched *got)
{
    HtFtCopy result = ht_ft_cpu_fetch(c, look, want, got);
    uint64_t commit;

    if (result != HT_FT_CLEARED && result != HT_FT_SAME) {
        return result;
    }
    if (!ht_ft_cpu_load(c, ht_ft_cpu_page(c, want->slot) + 8, &commit)) {
        return HT_FT_ERROR;
    }
    if (commit || order_at(c, 0) == want->slot ||
        (c->order[0] != want->slot && order_at(c, at) == want->slot)) {
        return result;
    }
    want->cleared = true;
    want->limit = ht_ft_cpu_capacity(c);
    result = ht_ft_cpu_fetch(c, look, want, got);
    /* While another boot initializes the header, the order is not valid. */
    if (head_slot(c) == HT_FT_NO_SLOT || order_at(c, at) == want->slot) {
        return HT_FT_CLEARED;
    }
    return result;
}

bool ht_ft_look_full(HtFtLook *look)
{
    look->full = look->copied + look->taken->len * (uint64_t)HT_FT_LOOK_PIECE >=
                 HT_FT_LOOK_MAX;
    return look->full;
}

static void set_limit(const HtFtCpu *c, const Writer *w, HtFtWant *want)
{
    want->writers = want->slot == w->slot;
    want->limit = want->writers ? w->limit : ht_ft_cpu_capacity(c);
    want->stamp = want->writers ? w->stamp : 0;
}

/*
 * Take the new records of the page taken last, then the pages after it up to
 * the writer's page
 */
static Walk advance(HtFtCpu *c, HtFtLook *look, const Writer *w)
{
    HtFtWant want = {
        .slot = c->last,
        .resume = true,
    };
    HtFtFetched got;
    HtFtCopy result;
    uint32_t n;

    set_limit(c, w, &want);
    result = fetch(c, look, &want, c->at, &got);
    if (result == HT_FT_CLEARED || result == HT_FT_OTHER) {
        return lose(c);
    }
    if (!ht_ft_cpu_use(c, look, result, &got) && result != HT_FT_SAME) {
        return result == HT_FT_RETRY ? WALK_BEHIND : WALK_ERROR;
    }
    for (n = 0; c->last != w->slot; n++) {
        uint32_t at = next_at(c, c->at);

        if (ht_ft_look_full(look)) {
            return WALK_BEHIND;
        }
        want = (HtFtWant) { .slot = c->order[at] };
        set_limit(c, w, &want);
        result = fetch(c, look, &want, at, &got);
        /*
         * In a full ring, a reader in the guest can take this page.  The copy
         * is valid only if the page is still at its place.
         */
        if ((c->witness.full && order_at(c, at) != want.slot) ||
            !witness_ok(c) || n == c->ring->subbufs) {
            return lose(c);
        }
        if (result == HT_FT_RETRY) {
            return WALK_BEHIND;
        }
        if (result == HT_FT_ERROR) {
            return WALK_ERROR;
        }
        if (!ht_ft_cpu_use(c, look, result, &got)) {
            /*
             * The writer's page may have no records yet.  Any other page has
             * records, unless the position is lost.
             */
            return want.slot == w->slot ? WALK_DONE : lose(c);
        }
        c->at = at;
    }
    return WALK_DONE;
}

/*
 * During restart(), take a page if it has new records.  Sets @stamp to the
 * page's time stamp, which is read before the witness is checked.
 */
static Walk visit(HtFtCpu *c, HtFtLook *look, const Writer *w, uint32_t slot,
                  uint64_t *stamp)
{
    HtFtWant want = { .slot = slot };
    HtFtFetched got;
    HtFtCopy result;

    set_limit(c, w, &want);
    if (!ht_ft_cpu_load(c, ht_ft_cpu_page(c, slot), stamp)) {
        return WALK_ERROR;
    }
    if (slot == c->last && c->used[slot] && c->page[slot] == *stamp) {
        want.resume = true;
    }
    result = ht_ft_cpu_fetch(c, look, &want, &got);
    if (result == HT_FT_ERROR) {
        return WALK_ERROR;
    }
    if (!witness_ok(c) || (result != HT_FT_OTHER && got.stamp != *stamp)) {
        return lose(c);
    }
    /*
     * Clear @lapped if the walk has reached the page taken last, or if another
     * boot has begun on that page: no event was overwritten in between.
     */
    if (slot == c->last && (result == HT_FT_COPIED || result == HT_FT_SAME) &&
        (want.resume || *stamp < c->page[slot] ||
         (c->moved && c->witness.slot != slot))) {
        c->fresh |= c->moved && !want.resume;
        c->lapped = false;
    }
    if (ht_ft_cpu_use(c, look, result, &got) || result == HT_FT_SAME ||
        result == HT_FT_CLEARED || result == HT_FT_HELD) {
        return WALK_DONE;
    }
    return lose(c);
}

/*
 * Test whether the page of the writer at the previous poll (@w) still has the
 * same stamp, and is the readers' page, or lies between @head and @writer, the
 * writer's present page
 */
static bool still_behind(const HtFtCpu *c, const Writer *w, uint32_t head,
                         uint32_t writer)
{
    uint64_t stamp;

    if (!ht_ft_cpu_load(c, ht_ft_cpu_page(c, w->slot), &stamp) ||
        stamp != w->stamp) {
        return false;
    }
    return w->slot == c->order[0] ||
           (c->place[writer] && distance(c, c->place[head],
                                         c->place[w->slot]) <=
            distance(c, c->place[head], c->place[writer]));
}

/*
 * Test whether the writer has overwritten pages that no reader in the guest
 * took: then the page before the head is not empty.  In the writer's first
 * round, the page before the head may be the writer's, at the last place.
 */
static bool has_wrapped(const HtFtCpu *c, uint32_t head_at, uint32_t writer)
{
    uint32_t slot = c->order[before_at(c, head_at)];
    uint64_t commit;

    return (head_at != 1 || slot != writer) &&
           ht_ft_cpu_load(c, ht_ft_cpu_page(c, slot) + 8, &commit) && commit;
}

/*
 * Begin to take everything that was not taken: take the readers' page.  The
 * writer overwrites the oldest page first, so the head is the first witness.
 * Sets @next to the place of the head.
 */
static Walk begin_walk(HtFtCpu *c, HtFtLook *look, Writer *w, uint32_t *next)
{
    uint32_t head = read_order(c, look), at, slot, writer;
    uint64_t stamp;
    bool follows;
    Walk walk;

    c->synced = false;
    if (head == HT_FT_NO_SLOT) {
        return WALK_BEHIND;
    }
    at = c->place[head];
    c->witness = (HtFtWitness) { .slot = head, .at = at, .full = true };
    follows = head_follows(c, head);
    if (!ht_ft_cpu_load(c, ht_ft_cpu_page(c, head), &c->witness.stamp)) {
        return WALK_ERROR;
    }
    if (head_slot(c) != head || order_at(c, 0) != c->order[0]) {
        return lose(c);
    }
    /*
     * Read the writer's position after @witness was chosen: the writer may have
     * come around before.
     */
    writer = commit_slot(c);
    if (writer == HT_FT_NO_SLOT) {
        return WALK_BEHIND;
    }
    if (!c->relaxed) {
        w->slot = writer;
    } else if (!still_behind(c, w, head, writer)) {
        lose(c);
        return WALK_BEHIND;
    }
    c->late = has_wrapped(c, at, writer);
    if (c->moved && c->lapped && !c->late) {
        /* another boot has initialized the ring */
        c->fresh = true;
        c->lapped = false;
    }
    slot = c->order[0];
    if (slot == w->slot || unread(c, slot, &stamp)) {
        walk = visit(c, look, w, slot, &stamp);
        if (walk != WALK_DONE) {
            return walk;
        }
        c->cut |= slot != writer && !follows;
    }
    c->at = before_at(c, at);
    *next = at;
    return WALK_DONE;
}

/*
 * Test whether a walk that the previous poll interrupted can go on: the order
 * is the same, and the writer has not come around to the page visited last.
 */
static bool can_go_on(HtFtCpu *c, const Writer *w)
{
    bool paused = c->paused;
    uint32_t head, writer;

    c->paused = false;
    if (!paused || order_at(c, 0) != c->order[0] || !witness_ok(c)) {
        return false;
    }
    if (!c->relaxed) {
        return true;
    }
    head = head_slot(c);
    writer = commit_slot(c);
    return head != HT_FT_NO_SLOT && writer != HT_FT_NO_SLOT &&
           still_behind(c, w, head, writer);
}

/*
 * Take everything that was not taken, from the oldest page on, or from the page
 * at which the previous poll interrupted such a walk
 */
static Walk restart(HtFtCpu *c, HtFtLook *look, Writer *w)
{
    uint32_t at, slot, n;
    uint64_t stamp;
    Walk walk;

    if (can_go_on(c, w)) {
        at = c->paused_at;
        slot = c->order[before_at(c, at)];
    } else {
        walk = begin_walk(c, look, w, &at);
        if (walk != WALK_DONE) {
            return walk;
        }
        slot = c->order[0];
    }
    for (n = 0; slot != w->slot && n < c->ring->subbufs; n++) {
        if (n && ht_ft_look_full(look)) {
            /*
             * If this walk has taken no page, the next poll continues it at the
             * place @at.  Else the next poll goes on after the last page taken.
             */
            c->paused = !c->synced;
            c->paused_at = at;
            return WALK_BEHIND;
        }
        slot = c->order[at];
        walk = visit(c, look, w, slot, &stamp);
        if (walk != WALK_DONE) {
            return walk;
        }
        c->witness = (HtFtWitness) { slot, at, stamp, true };
        if (c->last == slot) {
            c->at = at;
            if (stamp != c->page[slot]) {
                return lose(c);
            }
        }
        at = next_at(c, at);
    }
    /*
     * If this walk took nothing, it may not have passed the page taken last.
     * The position is then known only if that page is at the place @c->at, or
     * is the readers' page.
     */
    c->synced = c->last != HT_FT_NO_SLOT &&
                (c->order[c->at] == c->last || c->order[0] == c->last);
    return WALK_DONE;
}

/*
 * On a host with weak memory ordering, get the writer's position at the
 * previous poll.  Returns false if that position cannot be used.  If the
 * writer's page had no records at that poll, the position is of use only while
 * @synced: the pages before it can be taken, and the witness shows whether the
 * writer came around.
 */
static bool lag_writer(HtFtCpu *c, Writer *w)
{
    uint64_t stamp;

    *w = (Writer) { c->lag_slot, c->lag_size, c->lag_stamp, c->lag_size != 0 };
    if (c->lag_slot == HT_FT_NO_SLOT) {
        return false;
    }
    if (!w->begun) {
        return c->synced;
    }
    return ht_ft_cpu_load(c, ht_ft_cpu_page(c, c->lag_slot), &stamp) &&
           stamp == c->lag_stamp;
}

int ht_ft_cpu_collect(HtFtCpu *c, HtFtLook *look)
{
    guint taken = look->taken->len;
    uint64_t line[3], commit, first, begin = c->look_begin;
    Walk walk = WALK_AGAIN;
    Writer w;
    int i;

    if (ht_ft_mem_read(c->mem, c->geo.meta, line, sizeof(line))) {
        c->behind = true;
        return -EIO;
    }
    /*
     * Pairs with the guest's barrier where it moves the tail to a page, before
     * it moves the commit page (rb_set_commit_to_write()): pages read after
     * this fence are at least as new as the commit page.
     */
    ht_fence_acquire();
    first = ht_le64(line[0]);
    commit = ht_le64(line[2]);
    c->moved |= first && c->first && c->first != first;
    c->first = first ? first : c->first;
    if (commit == 0) {
        c->before = begin;
        /* the guest has not brought this processor online yet, for example */
        return 0;
    }
    w = (Writer) { slot_of(c, commit), ht_ft_cpu_capacity(c), 0, true };
    if (w.slot == HT_FT_NO_SLOT) {
        /*
         * With @moved, another boot is initializing the header.  Otherwise the
         * header is not valid.
         */
        c->stats.retries += c->moved;
        c->stats.bad += !c->moved;
        c->behind = true;
        return 0;
    }
    c->behind = c->holds = false;
    if (c->relaxed) {
        uint32_t now = w.slot;
        bool valid = lag_writer(c, &w);

        begin = c->lag_begin;
        ht_ft_cpu_note(c, now);
        if (!valid) {
            if (c->synced) {
                lose(c);
            }
            return 0;
        }
    }
    /* Each attempt may read the order of all pages: stop in a full poll. */
    for (i = 0; i < TRIES && walk == WALK_AGAIN &&
         (i == 0 || !ht_ft_look_full(look)); i++) {
        walk = c->synced ? advance(c, look, &w) : restart(c, look, &w);
    }
    if (c->synced && look->taken->len != taken) {
        prepare(c, look);
    }
    c->behind = walk != WALK_DONE;
    c->looked |= !c->behind;
    if (walk == WALK_DONE && w.begun && !c->holds) {
        c->before = begin;
    }
    c->stats.errors += walk == WALK_ERROR;
    return walk == WALK_ERROR ? -EIO : 0;
}
