/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: walk over one processor's part of an ftrace ring
 *
 * The kernel keeps the sub-buffers in a ring, order[1] to order[n - 1], and
 * one apart for readers in the guest, order[0].  The writer goes from place to
 * place.  A reader swaps its page with the one at the head: the page read
 * before, marked empty, is put where the head was.  It does so behind the
 * writer only.  So whatever was read meanwhile, the pages written since a look
 * are those that the places behind the last one had at that look, in this
 * order, until the writer has come around.
 *
 * Whether it has shows by a witness: a page at a place behind the last one.
 * The writer cannot overwrite anything that was not taken without having
 * written there before.
 */
#include "hypertrace/atomic.h"
#include "ftrace-cpu.h"

#define TRIES 4
/* A place so far ahead of the writer is not one that it is moving to. */
#define AHEAD 3

typedef enum Walk {
    WALK_DONE,          /* nothing more in this look */
    WALK_BEHIND,        /* there is more, but not now */
    WALK_AGAIN,         /* lost the way: begin again at the head */
    WALK_ERROR,
} Walk;

/* Where the writer is */
typedef struct Writer {
    uint32_t slot;
    uint32_t limit;     /* take so much of its page */
    uint64_t stamp;     /* of its page, where that was in the look before */
    bool begun;         /* then its page had something */
} Writer;

/* Which sub-buffer a guest address is; HT_FT_NO_SLOT if it is none */
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

/* How many steps along the ring from one place to another */
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

/* Is there something in a page that was not taken? */
static bool unread(const HtFtCpu *c, uint32_t slot, uint64_t *stamp)
{
    uint64_t page = ht_ft_cpu_page(c, slot), commit;

    return ht_ft_cpu_load(c, page, stamp) &&
           ht_ft_cpu_load(c, page + 8, &commit) && commit != 0 &&
           !(c->used[slot] && c->page[slot] == *stamp);
}

/*
 * Read the order of all pages.  Returns the head; HT_FT_NO_SLOT if a reader
 * changed it all the time, and nothing is changed then.
 */
static uint32_t read_order(HtFtCpu *c)
{
    uint32_t subbufs = c->ring->subbufs, i, n;

    for (i = 0; i < TRIES; i++) {
        uint32_t head = head_slot(c);

        if (head == HT_FT_NO_SLOT ||
            ht_ft_mem_read(c->mem, c->geo.order, c->new_order,
                           subbufs * sizeof(c->new_order[0])) ||
            head_slot(c) != head || order_at(c, 0) !=
            ht_le32(c->new_order[0])) {
            continue;
        }
        /* In the middle of a swap a page is there twice. */
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

/* Is the page that was taken last the writer's still?  Then nothing is new. */
static bool at_writer(const HtFtCpu *c)
{
    uint64_t stamp;

    return commit_slot(c) == c->last &&
           ht_ft_cpu_load(c, ht_ft_cpu_page(c, c->last), &stamp) &&
           stamp == c->page[c->last];
}

/* The order has changed: where is the page that was taken last? */
static bool follow_order(HtFtCpu *c, uint32_t head)
{
    uint32_t at = c->place[c->last];

    if (commit_slot(c) == c->last) {
        c->at = at ? at : before_at(c, c->place[head]);
        return true;
    }
    /* If it was read in the guest, where it is now means nothing. */
    return c->order[c->at] == c->last;
}

/*
 * Does the head follow on the readers' page?  When that was taken out, the one
 * read before, which is empty, was put before the head.  If the writer has
 * moved the head, its own is there.
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

/* Choose a witness for the next look; false if there is none. */
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
    /* Before the head is what readers of the guest are done with... */
    w->at = before_at(c, at);
    w->slot = c->order[w->at];
    w->full = false;
    if (!ht_ft_cpu_load(c, ht_ft_cpu_page(c, w->slot), &w->stamp) ||
        !ht_ft_cpu_load(c, ht_ft_cpu_page(c, w->slot) + 8, &commit)) {
        return false;
    }
    /*
     * ...or, where the ring is full, or fills for the first time, the writer,
     * or what it comes to next.
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
 * At the end of a look that took something: the order, if it has changed, and
 * a witness for the next one.  Where that is not possible, those of the look
 * before hold, until the writer has come around.  Whether it has meanwhile
 * tells the old witness, after the new one was read; if nothing is new, it
 * does not matter.
 */
static void prepare(HtFtCpu *c)
{
    uint32_t head = head_slot(c);
    bool changed, chosen;
    HtFtWitness witness;

    if (head == HT_FT_NO_SLOT) {
        return;
    }
    changed = order_at(c, 0) != c->order[0];
    if (changed) {
        head = read_order(c);
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
 * Fetch a page.  If it was read in the guest meanwhile, it is marked empty,
 * but what was in it is there still.  Only what a reader is done with leaves
 * its place: "echo > trace" marks pages empty where they are, and those were
 * not written to their end.
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
    /* While another boot makes the header anew, the order means nothing. */
    if (head_slot(c) == HT_FT_NO_SLOT || order_at(c, at) == want->slot) {
        return HT_FT_CLEARED;
    }
    return result;
}

static bool is_full(HtFtLook *look)
{
    look->full = look->copied + look->taken->len * sizeof(HtFtTaken) >=
                 HT_FT_LOOK_MAX;
    return look->full;
}

static void set_limit(const HtFtCpu *c, const Writer *w, HtFtWant *want)
{
    want->writers = want->slot == w->slot;
    want->limit = want->writers ? w->limit : ht_ft_cpu_capacity(c);
    want->stamp = want->writers ? w->stamp : 0;
}

/* Take the rest of the last page, then those behind it up to the writer's. */
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

        if (is_full(look)) {
            return WALK_BEHIND;
        }
        want = (HtFtWant) { .slot = c->order[at] };
        set_limit(c, w, &want);
        result = fetch(c, look, &want, at, &got);
        /* In a full ring a reader takes what the writer has yet to come to. */
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
            /* The writer's may have only just begun, or not yet. */
            return want.slot == w->slot ? WALK_DONE : lose(c);
        }
        c->at = at;
    }
    return WALK_DONE;
}

/*
 * Take a page on the way from the head on, if it has something.  Sets @stamp
 * to its time stamp, which is read before the witness is asked.
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
    /* All lies behind the page taken last, or a boot that began anew there. */
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

/* Is where the writer was before between the head and where it is now? */
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
 * Did the writer overwrite what nobody read?  It has not come to the place
 * before the head otherwise, but to the end of its first round; what a reader
 * is done with is marked empty.
 */
static bool has_wrapped(const HtFtCpu *c, uint32_t head_at, uint32_t writer)
{
    uint32_t slot = c->order[before_at(c, head_at)];
    uint64_t commit;

    return (head_at != 1 || slot != writer) &&
           ht_ft_cpu_load(c, ht_ft_cpu_page(c, slot) + 8, &commit) && commit;
}

/*
 * Take all that was not taken, from the oldest page on.  The writer overwrites
 * that first, so the head is the first witness.
 */
static Walk restart(HtFtCpu *c, HtFtLook *look, Writer *w)
{
    uint32_t head = read_order(c), at, slot, writer, n;
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
    /* It can have come around before there was a witness. */
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
        c->fresh = true;                /* it was made anew */
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
    for (n = 0; slot != w->slot && n < c->ring->subbufs; n++) {
        if (is_full(look)) {
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
    /* Where nothing was taken, it may not be on the way. */
    c->synced = c->last != HT_FT_NO_SLOT &&
                (c->order[c->at] == c->last || c->order[0] == c->last);
    return WALK_DONE;
}

/*
 * On a host that does not keep the order of stores: where the writer was.  What
 * is on the way to a page that had nothing yet can be taken; whether the writer
 * came around tells the witness.
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
        return -EIO;
    }
    /*
     * Pairs with the barrier where the tail moves to a page, before the commit
     * page does (rb_set_commit_to_write()): pages are as new as that.
     */
    ht_fence_acquire();
    first = ht_le64(line[0]);
    commit = ht_le64(line[2]);
    c->moved |= first && c->first && c->first != first;
    c->first = first ? first : c->first;
    if (commit == 0) {
        c->before = begin;
        return 0;               /* the processor did not come up yet */
    }
    w = (Writer) { slot_of(c, commit), ht_ft_cpu_capacity(c), 0, true };
    if (w.slot == HT_FT_NO_SLOT) {
        /* another boot is in the midst of it */
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
    for (i = 0; i < TRIES && walk == WALK_AGAIN; i++) {
        walk = c->synced ? advance(c, look, &w) : restart(c, look, &w);
    }
    if (c->synced && look->taken->len != taken) {
        prepare(c);
    }
    c->behind = walk == WALK_BEHIND || walk == WALK_AGAIN;
    c->looked |= !c->behind;
    if (walk == WALK_DONE && w.begun && !c->holds) {
        c->before = begin;
    }
    c->stats.errors += walk == WALK_ERROR;
    return walk == WALK_ERROR ? -EIO : 0;
}
