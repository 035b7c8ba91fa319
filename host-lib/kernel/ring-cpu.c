/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read what is new of one processor of an ordinary ftrace ring
 *
 * A page is copied between two reads of its header.  When the writer (the
 * guest's kernel) reuses a page, it stores a commit count of 0, then the first
 * record's header, then the page's time stamp, and a commit count only after
 * the records that it counts.  A copy is therefore valid if the stamp is
 * unchanged and the count has not decreased.  A page that a reader in the guest
 * takes leaves the ring with its old stamp and count, so the node must also
 * have the same page after the copy.
 *
 * When the writer has left a page, the page is final.  The next page is that of
 * the next node, unless the writer has passed all nodes since and overwritten
 * both pages.  If the previous page still has its stamp, the writer has not
 * overwritten it.
 *
 * The cursor is the position at which the next poll continues.  It is lost if
 * the writer or a reader in the guest takes its page.  Then the kernel's
 * counters usually show whether events are missing: they count each event that
 * is committed.
 */
#include "ring.h"

#define TRIES 4u
/*
 * Time in ns in which a kernel is assumed to empty its ring at most once,
 * because it waits for a grace period of RCU each time
 */
#define TWICE_NS UINT64_C(10000000)

static HtListWalk failed(int ret)
{
    return ret == -EAGAIN ? HT_LIST_MORE : HT_LIST_ERROR;
}

static void lose(HtListCpu *l)
{
    l->doubt |= l->placed;
    l->proved = false;
    l->own = l->at;
    l->at.node = 0;
}

/* Read the bytes after the last event taken; false if that is not possible */
static bool read_tail(const HtFtCpu *c, const HtListCpu *l, uint8_t *tail)
{
    return l->at.node &&
           c->pos + HT_LIST_TAIL <= l->subbuf_size - HT_FT_PAGE_HEADER &&
           !ht_kernel_space_read(l->space, l->at.page + HT_FT_PAGE_HEADER +
                                 c->pos, tail, HT_LIST_TAIL);
}

/* Test whether the page of the cursor @at still has the events taken of it */
static bool is_in_place(const HtFtCpu *c, HtListCpu *l, const HtListCursor *at)
{
    HtListNode n;
    uint64_t stamp;
    uint32_t size;

    return at->node && c->pos && !ht_list_node(l, at->node, &n) &&
           n.page == at->page && !ht_list_page(l, n.page, &stamp, &size) &&
           stamp == at->stamp && size >= c->pos;
}

/*
 * Reset the state after the guest emptied the ring, for example by
 * "echo >trace" or by a change of the trace clock.  Events that were written
 * after the last poll and before the ring was emptied can no longer be read.
 * If the last poll took everything, unchanged bytes after the last event taken
 * prove that there was no such event: emptying the ring does not change these
 * bytes.  They prove nothing if the ring may have been emptied twice.
 */
static void reset(const HtFtCpu *c, HtListCpu *l)
{
    uint8_t tail[HT_LIST_TAIL];
    bool settled = l->settled;

    l->lost_before += l->lost;
    l->base = l->lost = l->gone = l->sure = 0;
    l->based = true;
    l->settled = false;
    if (is_in_place(c, l, &l->at)) {
        /*
         * The cursor is valid in the emptied ring: the last poll set it again,
         * after the ring was emptied.
         */
        l->followed = c->stats.events - l->placed_at;
        return;
    }
    l->followed = 0;
    l->emptied |= l->h.entries && (!settled || !l->tail_known ||
                                   c->look_begin - c->before > TWICE_NS ||
                                   !read_tail(c, l, tail) ||
                                   memcmp(tail, l->tail, HT_LIST_TAIL));
    l->tail_known = false;
    l->at.node = 0;
    l->doubt = l->proved = l->spoiled = false;
    l->restart = l->placed;
    l->own.node = 0;
    l->scan = 0;
}

/* Mark that events may be missing before a piece; account() decides. */
static void mark_doubt(HtFtLook *look, guint at)
{
    HtFtTaken *t = &g_array_index(look->taken, HtFtTaken, at);

    t->p.flags |= HT_FT_PIECE_LOST;
    t->counted = true;
    t->lost = 0;
}

/* Mark that an unknown number of events may be missing before a piece. */
static void mark_emptied(HtFtLook *look, guint at)
{
    mark_doubt(look, at);
    g_array_index(look->taken, HtFtTaken, at).proved = true;
}

/*
 * Decide whether events are missing before a piece.  @followed is the number of
 * events taken before the piece since the ring was reset.
 */
static void resolve_doubt(HtListCpu *l, HtFtLook *look, guint at,
                          uint64_t followed)
{
    HtFtTaken *t = &g_array_index(look->taken, HtFtTaken, at);
    uint64_t missing;

    if (!l->proved || !l->based) {
        mark_doubt(look, at);
        return;
    }
    if (l->before < l->base + followed + l->sure) {
        /*
         * Fewer events were written before the cursor's page than were taken or
         * missing: the ring was emptied, and each of its counters has reached
         * its old value again.
         */
        mark_emptied(look, at);
        return;
    }
    missing = l->before - l->base - followed;
    if (missing > l->lost) {
        mark_doubt(look, at);
        t->proved = true;
        t->lost = missing - l->lost;
    }
    l->lost = l->sure = missing;
}

/*
 * Return the maximum number of bytes that may be taken of the cursor's page;
 * the guest has committed @size bytes to the page.  On a host with weak memory
 * ordering, do not go beyond the writer's position at the previous poll.
 */
static uint32_t limit_of(const HtFtCpu *c, const HtListCpu *l, uint32_t size)
{
    if (c->relaxed && l->at.node == l->writer.node &&
        l->at.stamp == l->writer.stamp) {
        return MIN(size, l->writer_size);
    }
    return size;
}

/*
 * Copy and queue the new records of the cursor's page, and check that the page
 * was not replaced
 */
static HtListWalk fetch(HtFtCpu *c, HtListCpu *l, HtFtLook *look,
                        HtListNode *n)
{
    HtFtFetched got = {
        .slot = l->at.page / l->subbuf_size,
        .stamp = l->at.stamp,
        .from = c->pos,
        .ns = c->pos ? c->ns : l->at.stamp,
    };
    uint64_t stamp;
    uint32_t size;
    int ret = ht_list_node(l, l->at.node, n);

    if (ret || n->page != l->at.page) {
        return ret ? failed(ret) : HT_LIST_LOST;
    }
    ret = ht_list_page(l, l->at.page, &stamp, &size);
    if (ret) {
        return failed(ret);
    }
    if (stamp != l->at.stamp || (size < c->pos && !l->spoiled)) {
        return HT_LIST_LOST;
    }
    size = limit_of(c, l, size);
    if (size <= c->pos || l->spoiled) {
        return HT_LIST_DONE;
    }
    got.to = size;
    ret = ht_kernel_space_read(l->space,
                               l->at.page + HT_FT_PAGE_HEADER + got.from,
                               look->page, got.to - got.from);
    l->reads -= MIN(l->reads, 1);
    look->copied += got.to - got.from;
    ret = ret ? ret : ht_list_page(l, l->at.page, &stamp, &size);
    ret = ret ? ret : ht_list_node(l, l->at.node, n);
    if (ret) {
        return failed(ret);
    }
    if (stamp != l->at.stamp || size < got.to || n->page != l->at.page) {
        c->stats.retries++;
        return HT_LIST_LOST;
    }
    if (ht_ft_records_ok(look->page, &got)) {
        uint64_t followed = l->followed + c->stats.events - l->begin;
        guint first = look->taken->len;

        ht_ft_cpu_take(c, look, &got);
        if (l->emptied) {
            mark_emptied(look, first);
        } else if (l->doubt) {
            resolve_doubt(l, look, first, followed);
        }
        l->emptied = l->doubt = false;
    } else {
        /* Times of records after an invalid one are not known: skip these. */
        c->stats.bad++;
        c->lost = l->spoiled = true;
    }
    return HT_LIST_DONE;
}

/*
 * Check that since the cursor's page was copied, the writer has not overwritten
 * it, and the ring was not emptied.  For the readers' page, set HtListCpu.doubt
 * instead if later pages may have been overwritten.
 */
static HtListWalk check_lap(const HtFtCpu *c, HtListCpu *l)
{
    HtListHeader h;
    uint64_t stamp;
    uint32_t size;
    int ret;

    if (l->at.apart) {
        /*
         * The writer does not overwrite the readers' page, so the stamp proves
         * nothing about the pages after it.  Check the count of overwritten
         * events instead.
         */
        ret = ht_list_header(l, &h);
        l->doubt |= !ret && h.overrun != l->overrun;
        return ret ? failed(ret) : HT_LIST_DONE;
    }
    ret = ht_list_page(l, l->at.page, &stamp, &size);
    if (ret) {
        return failed(ret);
    }
    return stamp == l->at.stamp && (size >= c->pos || l->spoiled) ?
           HT_LIST_DONE : HT_LIST_LOST;
}

/* Move the cursor from its page, which is final, to the next page */
static HtListWalk step(HtFtCpu *c, HtListCpu *l, const HtListNode *n)
{
    HtListWalk walk;
    HtListNode next;
    uint64_t stamp;
    uint32_t size;
    int ret = ht_list_node(l, HT_LIST_ADDR(n->next), &next);

    ret = ret ? ret : ht_list_page(l, next.page, &stamp, &size);
    if (ret) {
        return failed(ret);
    }
    if (!size && next.addr != l->h.commit) {
        /* a reader in the guest took the page */
        return HT_LIST_LOST;
    }
    walk = check_lap(c, l);
    if (walk != HT_LIST_DONE || !size) {
        return walk;
    }
    l->at = (HtListCursor) { next.addr, next.page, stamp, false };
    l->last = stamp;
    l->spoiled = l->proved = false;
    c->pos = 0;
    return HT_LIST_DONE;
}

/* Queue the new records from the cursor to the writer's page */
static HtListWalk advance(HtFtCpu *c, HtListCpu *l, HtFtLook *look)
{
    for (;;) {
        uint64_t node = l->at.node;
        HtListNode n;
        HtListWalk walk = fetch(c, l, look, &n);

        if (walk != HT_LIST_DONE || node == l->h.commit) {
            return walk;
        }
        if (ht_ft_look_full(look)) {
            return HT_LIST_MORE;
        }
        walk = step(c, l, &n);
        if (walk != HT_LIST_DONE || l->at.node == node) {
            return walk;
        }
    }
}

/*
 * Set the cursor again after ht_list_place() has found no page that is newer
 * than the page taken last.  If that page (HtListCpu.own) is still in place,
 * nothing after it was overwritten: set the cursor to it, because more events
 * may follow in it.
 */
static void go_back(const HtFtCpu *c, HtListCpu *l)
{
    if (is_in_place(c, l, &l->own)) {
        l->at = l->own;
        l->doubt = false;
    }
}

/* Queue all new records up to the writer; set the cursor first if it is lost */
static HtListWalk follow(HtFtCpu *c, HtListCpu *l, HtFtLook *look)
{
    HtListWalk walk = HT_LIST_LOST;
    unsigned i;

    for (i = 0; i < TRIES && walk == HT_LIST_LOST; i++) {
        if (!l->at.node) {
            walk = ht_list_place(l);
            if (walk == HT_LIST_DONE && !l->at.node) {
                go_back(c, l);
            }
            if (walk != HT_LIST_DONE || !l->at.node) {
                return walk;
            }
            if (l->at.node == l->own.node && l->at.stamp == l->own.stamp) {
                return HT_LIST_MORE;
            }
            c->pos = 0;
            l->spoiled = false;
            l->placed_at = c->stats.events;
        }
        walk = advance(c, l, look);
        if (walk == HT_LIST_LOST) {
            lose(l);
        }
    }
    return walk == HT_LIST_LOST ? HT_LIST_MORE : walk;
}

/*
 * Resolve the pieces that mark_doubt() marked.  If events are missing (@found),
 * set their number @lost at the first such piece, and 0 at the others; else
 * remove the marks.
 */
static void resolve_doubts(HtFtLook *look, guint first, bool found,
                           uint64_t lost)
{
    guint i;

    for (i = first; i < look->taken->len; i++) {
        HtFtTaken *t = &g_array_index(look->taken, HtFtTaken, i);

        if (!t->counted || t->proved) {
            continue;
        }
        t->lost = lost;
        lost = 0;
        if (!found) {
            t->p.flags &= ~HT_FT_PIECE_LOST;
            t->counted = false;
        }
    }
}

/*
 * The kernel's counters cannot show whether events are missing before the
 * pieces that mark_doubt() marked: report each as a gap whose number of events
 * is estimated (HT_FT_PIECE_LOST stays).  Return whether there is such a
 * piece.
 */
static bool leave_doubts(HtFtLook *look, guint first)
{
    bool any = false;
    guint i;

    for (i = first; i < look->taken->len; i++) {
        HtFtTaken *t = &g_array_index(look->taken, HtFtTaken, i);

        any |= t->counted && !t->proved;
        t->counted &= t->proved;
    }
    return any;
}

static bool has_doubts(const HtFtLook *look, guint first)
{
    guint i;

    for (i = first; i < look->taken->len; i++) {
        const HtFtTaken *t = &g_array_index(look->taken, HtFtTaken, i);

        if (t->counted && !t->proved) {
            return true;
        }
    }
    return false;
}

/* Get the number of missing events that resolve_doubt() found in this poll */
static uint64_t sum_proved(const HtFtLook *look, guint first)
{
    uint64_t sum = 0;
    guint i;

    for (i = first; i < look->taken->len; i++) {
        const HtFtTaken *t = &g_array_index(look->taken, HtFtTaken, i);

        sum += t->proved ? t->lost : 0;
    }
    return sum;
}

/*
 * Compare the events taken with the kernel's counters, after a poll that took
 * everything.  The kernel counts an event shortly before the event is visible.
 * The comparison is therefore exact only if no commit was under way, the guest
 * was quiet since the poll began, and the host keeps the order of stores.
 * Unless the ring was emptied, events can be missing only if events were
 * overwritten, or read in the guest.
 */
static void account(HtFtCpu *c, HtListCpu *l, HtFtLook *look, guint first)
{
    uint64_t entries = l->h.entries, gone = l->h.overrun + l->h.read;
    bool doubts = has_doubts(look, first), exact, emptied;
    uint64_t missing, most, news = 0, proved = sum_proved(look, first);
    HtListHeader after;

    if (ht_list_header(l, &after)) {
        l->uncounted |= leave_doubts(look, first);
        return;
    }
    /*
     * The kernel counts all events that can be taken: a count below the number
     * of events taken or missing proves that the ring was emptied.
     */
    emptied = l->based &&
              after.entries < l->base + l->followed + l->sure;
    exact = !c->relaxed && !memcmp(&after, &l->h, sizeof(after)) &&
            !after.committing;
    if (!l->based) {
        l->based = exact;
        l->base = entries > l->followed ? entries - l->followed : 0;
    }
    if (exact && emptied) {
        /*
         * The ring was emptied, and its counters have reached their old values
         * again.
         */
        l->lost_before += l->lost;
        l->followed = entries;
        l->base = l->lost = l->sure = 0;
    }
    missing = entries > l->base + l->followed ?
              entries - l->base - l->followed : 0;
    /*
     * @missing is too low if the poll took events that were written after the
     * poll began.  @most includes these events.
     */
    most = after.entries > l->base + l->followed ?
           after.entries - l->base - l->followed : 0;
    if (gone != l->gone && missing > l->lost && (exact || doubts)) {
        news = missing - l->lost;
    }
    if (!doubts && news && !l->uncounted) {
        /*
         * No piece is in doubt: only the counters show that events are missing.
         */
        l->doubt = look->taken->len == first;
        doubts = !l->doubt;
        if (doubts) {
            mark_doubt(look, first);
        }
    }
    if (doubts) {
        resolve_doubts(look, first, emptied || (most > l->sure &&
                       after.overrun + after.read != l->gone), news);
    }
    /*
     * ht_ft_follow_look() adds HtFtTaken.lost of the pieces that it passes on:
     * leave these events out here.
     */
    c->stats.lost = l->lost_before + (exact ? missing : l->lost) - proved;
    if (!l->doubt) {
        l->lost = exact ? missing : l->lost + news;
        l->uncounted = !exact && (l->uncounted || doubts);
        c->stats.lost = l->lost_before + l->lost - (doubts ? news : 0) -
                        proved;
    }
    l->settled = exact && !l->doubt;
    if (l->settled) {
        l->gone = gone;
        l->sure = missing;
        l->tail_known = read_tail(c, l, l->tail);
    }
}

/*
 * Read the kernel's ring_buffer_per_cpu to @h.  A member that the kernel
 * changes during the read may be half old and half new: read HtListHeader's
 * members reader and commit a second time if they differ from the previous
 * poll.  If a count has decreased, read all members again: the kernel may be
 * emptying the ring.
 */
static int load_header(HtFtCpu *c, HtListCpu *l, HtListHeader *h)
{
    const HtKernelRingLayout *p = l->layout;
    int ret = ht_list_header(l, h);

    if (!ret && ht_list_emptied(&l->h, h)) {
        ret = ht_list_header(l, h);
    }
    if (!ret && h->reader != l->h.reader) {
        ret = ht_kernel_space_u64(l->space, l->va + p->reader, &h->reader);
    }
    if (!ret && h->commit != l->h.commit) {
        ret = ht_kernel_space_u64(l->space, l->va + p->commit, &h->commit);
    }
    if (!ret && !l->h.reader && (h->overrun || h->read)) {
        /* events were overwritten or read in the guest before the first poll */
        c->late = true;
    }
    return ret;
}

/* Note the writer's position for the next poll, on a weakly ordered host */
static int note_writer(HtListCpu *l, const HtListHeader *h)
{
    HtListNode n;
    int ret = ht_list_node(l, h->commit, &n);

    l->writer = (HtListCursor) { 0 };
    ret = ret ? ret : ht_list_page(l, n.page, &l->writer.stamp,
                                   &l->writer_size);
    if (!ret) {
        l->writer.node = n.addr;
        l->writer.page = n.page;
    }
    return ret;
}

static HtListWalk collect(HtFtCpu *c, HtListCpu *l, HtFtLook *look)
{
    guint first = look->taken->len;
    HtListWalk walk;

    /*
     * If nothing was taken yet, or nothing since the ring was emptied, and
     * events were overwritten or read in the guest, this poll may miss some of
     * these events.
     */
    l->doubt |= l->based && (!l->placed || l->restart) &&
                (l->h.overrun || l->h.read);
    l->begin = c->stats.events;
    walk = follow(c, l, look);
    l->followed += c->stats.events - l->begin;
    l->begin = c->stats.events;
    if (walk == HT_LIST_DONE) {
        account(c, l, look, first);
    } else {
        l->settled = false;
        l->uncounted |= leave_doubts(look, first);
    }
    return walk;
}

int ht_list_collect(HtFtCpu *c, HtListCpu *l, HtFtLook *look)
{
    uint64_t begin = c->look_begin;
    HtListHeader h;
    HtListWalk walk;
    bool same;
    int ret;

    if (!l->va) {
        c->before = begin;      /* the processor has no ring yet */
        return 0;
    }
    ret = load_header(c, l, &h);
    if (ret) {
        c->behind = true;
        c->stats.errors += ret != -EAGAIN;
        return ret == -EAGAIN ? 0 : ret;
    }
    if (ht_list_emptied(&l->h, &h)) {
        reset(c, l);
    }
    if (!l->h.reader && !c->late) {
        l->based = true;
    }
    if (c->relaxed) {
        HtListHeader now = h;
        uint64_t lag_begin = l->lag_begin;

        h = l->lag;
        l->lag = now;
        l->lag_begin = begin;
        begin = lag_begin;
        if (!h.commit) {
            return note_writer(l, &now);
        }
    }
    same = !memcmp(&h, &l->h, sizeof(h));
    /* The cursor's page may have become the readers' page. */
    l->at.apart |= l->at.node && l->at.node == h.reader;
    l->h = h;
    c->behind = false;
    if (same && l->settled) {
        c->before = begin;
        return 0;
    }
    walk = collect(c, l, look);
    if (walk == HT_LIST_DONE) {
        l->overrun = h.overrun;
    }
    if (c->relaxed) {
        note_writer(l, &l->lag);
    }
    c->behind = walk != HT_LIST_DONE;
    look->more |= walk == HT_LIST_MORE;
    c->looked |= !c->behind;
    if (walk == HT_LIST_DONE) {
        c->before = begin;
    }
    c->stats.errors += walk == HT_LIST_ERROR;
    return walk == HT_LIST_ERROR ? -EIO : 0;
}
