/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read what is new of one processor of an ordinary ftrace ring
 *
 * A page is copied between two reads of its header.  When the writer reuses a
 * page, it stores a commit count of 0, then the first record's header, then the
 * time stamp, and a commit count only after the records that it counts.  A
 * copy is therefore valid if the stamp is unchanged and the count has not
 * decreased.  A page that a reader in the guest takes leaves the ring with its
 * old stamp and count, so the node must also have the same page after the copy.
 *
 * When the writer has left a page, the page is final.  The next page is that of
 * the next node, unless the writer has come around since.  If the previous page
 * still has its stamp, the writer has not come around.
 *
 * After the cursor was lost, the kernel's counters show whether events are
 * missing: they count each event that is committed.
 */
#include "ring.h"

#define TRIES 4u

static HtListWalk failed(int ret)
{
    return ret == -EAGAIN ? HT_LIST_MORE : HT_LIST_ERROR;
}

static void lose(HtListCpu *l)
{
    l->doubt |= l->placed;
    l->at.node = 0;
}

/*
 * Reset the state after the ring was emptied, by "echo >trace" or by a change
 * of the trace clock
 */
static void reset(HtListCpu *l)
{
    l->at.node = 0;
    l->placed = l->doubt = l->settled = l->spoiled = false;
    l->scan = 0;
    l->lost_before += l->lost;
    l->followed = l->base = l->lost = l->gone = l->sure = 0;
    l->based = true;
}

/* Mark that events may be missing before a piece; account() decides. */
static void mark_doubt(HtFtLook *look, guint at)
{
    HtFtTaken *t = &g_array_index(look->taken, HtFtTaken, at);

    t->p.flags |= HT_FT_PIECE_LOST;
    t->counted = true;
    t->lost = 0;
}

/* Maximum number of bytes that may be taken of the cursor's page */
static uint32_t limit_of(const HtFtCpu *c, const HtListCpu *l, uint32_t size)
{
    if (c->relaxed && l->at.node == l->writer.node &&
        l->at.stamp == l->writer.stamp) {
        return MIN(size, l->writer_size);
    }
    return size;
}

/*
 * Copy records of the cursor's page, and check that the page was not replaced
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
        guint first = look->taken->len;

        ht_ft_cpu_take(c, look, &got);
        if (l->doubt) {
            mark_doubt(look, first);
            l->doubt = false;
        }
    } else {
        /* Records after an invalid one in the same page cannot be dated. */
        c->stats.bad++;
        c->lost = l->spoiled = true;
    }
    return HT_LIST_DONE;
}

/* Check that the writer has not overwritten the page since it was copied */
static HtListWalk check_lap(HtListCpu *l)
{
    HtListHeader h;
    uint64_t stamp;
    uint32_t size;
    int ret;

    if (l->at.apart) {
        /*
         * The writer never overwrites the readers' page, so the stamp proves
         * nothing.  Check the count of overwritten events instead.
         */
        ret = ht_list_header(l, &h);
        l->doubt |= !ret && h.overrun != l->overrun;
        return ret ? failed(ret) : HT_LIST_DONE;
    }
    ret = ht_list_page(l, l->at.page, &stamp, &size);
    if (ret) {
        return failed(ret);
    }
    return stamp == l->at.stamp ? HT_LIST_DONE : HT_LIST_LOST;
}

/* Go from the cursor's page, which is final, to the next page */
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
    walk = check_lap(l);
    if (walk != HT_LIST_DONE || !size) {
        return walk;
    }
    l->at = (HtListCursor) { next.addr, next.page, stamp, false };
    l->last = stamp;
    l->spoiled = false;
    c->pos = 0;
    return HT_LIST_DONE;
}

/* Queue the pages from the cursor to the writer's page */
static HtListWalk advance(HtFtCpu *c, HtListCpu *l, HtFtLook *look)
{
    for (;;) {
        uint64_t node = l->at.node;
        HtListNode n;
        HtListWalk walk = fetch(c, l, look, &n);

        if (walk != HT_LIST_DONE || node == l->h.commit) {
            return walk;
        }
        if (look->bytes->len >= HT_FT_LOOK_MAX) {
            return HT_LIST_MORE;
        }
        walk = step(c, l, &n);
        if (walk != HT_LIST_DONE || l->at.node == node) {
            return walk;
        }
    }
}

/* Queue everything up to the writer; set the cursor first if need be */
static HtListWalk follow(HtFtCpu *c, HtListCpu *l, HtFtLook *look)
{
    HtListWalk walk = HT_LIST_LOST;
    unsigned i;

    for (i = 0; i < TRIES && walk == HT_LIST_LOST; i++) {
        if (!l->at.node) {
            walk = ht_list_place(l);
            if (walk != HT_LIST_DONE || !l->at.node) {
                return walk;
            }
            c->pos = 0;
            l->spoiled = false;
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
 * set @lost as their number before the first such piece; else remove the gaps.
 */
static void resolve_doubts(HtFtLook *look, guint first, bool found,
                           uint64_t lost)
{
    guint i;

    for (i = first; i < look->taken->len; i++) {
        HtFtTaken *t = &g_array_index(look->taken, HtFtTaken, i);

        if (!t->counted) {
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

/* Keep the gaps of pieces in doubt, with estimated numbers of events */
static bool leave_doubts(HtFtLook *look, guint first)
{
    bool any = false;
    guint i;

    for (i = first; i < look->taken->len; i++) {
        HtFtTaken *t = &g_array_index(look->taken, HtFtTaken, i);

        any |= t->counted;
        t->counted = false;
    }
    return any;
}

static bool has_doubts(const HtFtLook *look, guint first)
{
    guint i;

    for (i = first; i < look->taken->len; i++) {
        if (g_array_index(look->taken, HtFtTaken, i).counted) {
            return true;
        }
    }
    return false;
}

/*
 * Compare the events taken with the kernel's counters, after a poll that took
 * everything.  The kernel counts an event shortly before the event is visible.
 * The comparison is therefore exact only if no commit was under way, the guest
 * was quiet since the poll began, and the host keeps the order of stores.
 * Events can be missing only if events were overwritten, or read in the guest.
 */
static void account(HtFtCpu *c, HtListCpu *l, HtFtLook *look, guint first)
{
    uint64_t entries = l->h.entries, gone = l->h.overrun + l->h.read;
    bool doubts = has_doubts(look, first), exact;
    uint64_t missing, news = 0;
    HtListHeader after;

    if (ht_list_header(l, &after)) {
        l->uncounted |= leave_doubts(look, first);
        return;
    }
    exact = !c->relaxed && !memcmp(&after, &l->h, sizeof(after)) &&
            !after.committing;
    if (!l->based) {
        l->based = exact;
        l->base = entries > l->followed ? entries - l->followed : 0;
    }
    missing = entries > l->base + l->followed ?
              entries - l->base - l->followed : 0;
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
        resolve_doubts(look, first, missing > l->sure && gone != l->gone,
                       news);
    }
    /*
     * ht_ft_follow_look() adds HtFtTaken.lost of the pieces that it passes on.
     */
    c->stats.lost = l->lost_before + (exact ? missing : l->lost);
    if (!l->doubt) {
        l->lost = exact ? missing : l->lost + news;
        l->uncounted &= !exact;
        c->stats.lost = l->lost_before + l->lost - (doubts ? news : 0);
    }
    l->settled = exact && !l->doubt;
    if (l->settled) {
        l->gone = gone;
        l->sure = missing;
    }
}

/*
 * Read the kernel's ring_buffer_per_cpu.  A member that the kernel changes
 * during the read may be half old and half new: read @reader and @commit a
 * second time if they differ from the previous poll, and @entries if it has
 * decreased.
 */
static int load_header(HtFtCpu *c, HtListCpu *l, HtListHeader *h)
{
    const HtKernelRingLayout *p = l->layout;
    int ret = ht_list_header(l, h);

    if (!ret && h->reader != l->h.reader) {
        ret = ht_kernel_space_u64(l->space, l->va + p->reader, &h->reader);
    }
    if (!ret && h->commit != l->h.commit) {
        ret = ht_kernel_space_u64(l->space, l->va + p->commit, &h->commit);
    }
    if (!ret && h->entries < l->h.entries) {
        ret = ht_kernel_space_u64(l->space, l->va + p->entries, &h->entries);
    }
    if (!ret && !l->h.reader && (h->overrun || h->read)) {
        /* events were overwritten or read in the guest before the first poll */
        c->late = true;
    }
    return ret;
}

/* Note the writer's page, for the next poll of a host with weak ordering */
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
    uint64_t followed = c->stats.events;
    guint first = look->taken->len;
    HtListWalk walk;

    /*
     * If the ring was empty at all earlier polls, and events were overwritten
     * or read in the guest since, this poll may miss some of these.
     */
    l->doubt |= l->based && !l->placed && (l->h.overrun || l->h.read);
    walk = follow(c, l, look);
    l->followed += c->stats.events - followed;
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
        c->before = begin;      /* the processor is not online yet */
        return 0;
    }
    ret = load_header(c, l, &h);
    if (ret) {
        c->behind = true;
        c->stats.errors += ret != -EAGAIN;
        return ret == -EAGAIN ? 0 : ret;
    }
    if (h.entries < l->h.entries) {
        reset(l);
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
    c->behind = walk == HT_LIST_MORE;
    look->more |= c->behind;
    c->looked |= !c->behind;
    if (walk == HT_LIST_DONE) {
        c->before = begin;
    }
    c->stats.errors += walk == HT_LIST_ERROR;
    return walk == HT_LIST_ERROR ? -EIO : 0;
}
