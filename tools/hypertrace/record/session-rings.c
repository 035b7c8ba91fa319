/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: find rings in a guest's memory and follow them
 */
#include "hypertrace/base.h"
#include "hypertrace/kernel-ring.h"
#include "record/session.h"

/*
 * Maximum number of candidates that one call of ht_session_search() tests in a
 * memory at the usual places, which are multiples of 2 MiB
 */
#define SEARCH_CANDIDATES 4096
/*
 * If no ring is recorded in this time in ns after the start, each search also
 * tests the next ANYWHERE_LOOKS pages of each memory.
 */
#define ANYWHERE_NS     UINT64_C(3000000000)
#define ANYWHERE_LOOKS  256
/* Maximum time in ns of the search for rings in a poll before the last ones */
#define SEARCH_NS       UINT64_C(1000000)
/*
 * A search adds a ring only while fewer rings than this are followed: a hostile
 * guest may forge any number.
 */
#define RINGS_MAX       16
/*
 * If a ring has not changed for this time in ns since it was found, it may be
 * dropped to make room for another ring.
 */
#define CHANCE_NS       UINT64_C(500000000)

/*
 * Pause in ns between searches: at least this long while a ring is recorded, at
 * most this long while none is. A guest may create another ring after a reset.
 * After a search that used up its time, the pause may be shorter: the next
 * search continues it.
 */
#define AGAIN_NS        UINT64_C(1000000000)
/*
 * While a ring is recorded, the pause is at least this many times as long as
 * the search, which uses 0.05 % of a processor. The factor is only PAUSE_LATER,
 * which uses 1 %, from QUIET_LEAST_NS to QUIET_NS after events were last read:
 * the guest may have been reset.
 */
#define PAUSE_FOUND     1999
#define QUIET_LEAST_NS  UINT64_C(1500000000)
#define QUIET_NS        UINT64_C(60000000000)
/*
 * While no ring is recorded, the pause is PAUSE_EAGER times as long as the
 * search (10 % of a processor) for EAGER_NS after the start, and PAUSE_LATER
 * times as long (1 %) later; but at most AGAIN_NS.
 */
#define EAGER_NS        UINT64_C(10000000000)
#define PAUSE_EAGER     9
#define PAUSE_LATER     99

static uint64_t now(void *opaque)
{
    return ((HtSessionRing *)opaque)->session->now();
}

/*
 * Compare the events of a recorded piece with all matches, unless they may be
 * older than the session. @epoch: the piece's epoch, as the ring's follower
 * counts it
 */
static void match_piece(const HtSessionRing *ring, const HtFtPiece *p,
                        uint32_t epoch)
{
    const HtSession *s = ring->session;
    bool new = !s->running || p->host_before || epoch;
    unsigned i;

    for (i = 0; i < HT_SESSION_MATCHES; i++) {
        ht_match_piece(s->matches[i], p, new ? 0 : ring->match_ns);
    }
}

static void ahead(void *opaque, const HtFtPiece *p)
{
    HtSessionRing *ring = opaque;

    if (ring->feed.runs) {
        ht_ft_feed_ahead(&ring->feed, p);
    }
}

static void piece(void *opaque, const HtFtPiece *p)
{
    HtSessionRing *ring = opaque;
    HtSession *s = ring->session;
    HtFtPiece of_all = *p;

    ring->newest_ns = p->end_ns;
    s->pace.active = s->now();
    if (ring->taken && !s->error &&
        ht_session_has_room(s, sizeof(HtRecPieceHeader) + p->size)) {
        of_all.epoch = MIN(ring->epoch_base + p->epoch, HT_SESSION_BOOTS - 1);
        ht_rec_writer_piece(s->writer, &of_all, &s->error);
        if (ring->feed.runs) {
            ht_ft_feed_piece(&ring->feed, p);
        }
        match_piece(ring, &of_all, p->epoch);
    } else if (!ring->taken) {
        ring->seen_ns = MAX(ring->seen_ns, p->end_ns);
    }
}

static const HtFtFollowOps follow_ops = {
    .ahead = ahead,
    .piece = piece,
    .now = now,
};

void ht_session_add_stats(HtFtStats *sum, const HtSessionRing *ring)
{
    HtFtStats stats = ht_ft_follow_stats(ring->follow, -1);

    if (ring->taken) {
        sum->events += stats.events;
        sum->gaps += stats.gaps;
        sum->lost += stats.lost;
        sum->late += stats.late;
        sum->errors += stats.errors;
    }
}

void ht_session_free_ring(void *opaque)
{
    HtSessionRing *ring = opaque;

    ht_session_add_stats(&ring->session->past, ring);
    ht_ft_feed_close(&ring->feed);
    ht_ft_follow_free(ring->follow);
    g_free(ring);
}

/*
 * Add the address of each boot's kernel and the number of processors to the
 * info.
 */
static void update_info(HtSession *s, const HtSessionRing *ring)
{
    const HtFtRing *r = ht_ft_follow_ring(ring->follow);
    uint32_t n = ring->epoch_base + ht_ft_follow_epoch(ring->follow) + 1;

    s->cut |= r->cut;
    ht_record_info_cpus(&s->info, r->cpus);
    if (n <= s->epochs) {
        return;
    }
    s->epochs = n;
    s->info.changed = true;
    /*
     * The last of HT_SESSION_BOOTS boots stands for several kernels with
     * different addresses, so do not store an address for it.
     */
    if (n < HT_SESSION_BOOTS) {
        ht_rec_info_text(s->info.keys, n - 1, ht_ft_follow_text(ring->follow));
    }
}

/*
 * Drop each recorded ring that is of an earlier boot than @ring: its last event
 * has a guest time more than HT_FT_EPOCH_NS later than the last event of @ring.
 * If a ring is dropped, the boot of @ring began after the session, so that any
 * event of @ring can match.
 */
static void end_older(HtSession *s, HtSessionRing *ring)
{
    unsigned i;

    for (i = s->rings->len; i-- > 0;) {
        const HtSessionRing *other = s->rings->pdata[i];

        if (other->taken && other != ring &&
            other->newest_ns > ring->newest_ns + HT_FT_EPOCH_NS) {
            ring->match_ns = 0;
            g_ptr_array_remove_index(s->rings, i);
        }
    }
}

static void take(HtSession *s, HtSessionRing *ring)
{
    end_older(s, ring);
    if (!s->epochs) {
        ht_record_info_ring(&s->info, s->kernel,
                            ht_ft_follow_ring(ring->follow));
    }
    /*
     * The ring is of the boot after those of all earlier rings or, if a later
     * boot has a log, of the last boot with a log.
     */
    ring->epoch_base = MAX(s->epochs, MAX(s->log_boots, 1) - 1);
    ring->taken = true;
    if (ring->feed.runs) {
        ht_ft_feed_begin(&ring->feed);
    }
}

static void set_follower(HtSessionRing *ring, HtFtFollow *follow)
{
    ht_ft_follow_free(ring->follow);
    ring->follow = follow;
}

static HtSessionRing *new_ring(HtSession *s, const HtFtMem *mem)
{
    HtSessionRing *ring = g_new0(HtSessionRing, 1);

    ring->session = s;
    ring->mem = mem;
    ring->since = s->now();
    ring->match_ns = s->main_buffer && s->epochs ? 0 : UINT64_MAX;
    if (s->runs) {
        ht_ft_feed_init(&ring->feed, s->runs, s->nr_found++);
    }
    return ring;
}

static void add_ring(HtSession *s, const HtFtMem *mem, HtFtRing *found)
{
    HtSessionRing *ring = new_ring(s, mem);

    ring->offset = found->offset;
    set_follower(ring, ht_ft_follow_new(mem, found, &follow_ops, ring));
    g_ptr_array_add(s->rings, ring);
}

void ht_session_follow_buffer(HtSession *s, const HtSessionPlace *p)
{
    HtGuestKernel *k = ht_kernel_watch_kernel(p->watch);
    const HtBtf *btf = ht_kernel_image_btf(s->image);
    HtKernelSpace space = ht_kernel_space_of(k);
    HtKernelRingLayout layout;
    uint64_t array, text;
    HtSessionRing *ring;

    if (ht_kernel_ring_instance(k, NULL, &array) ||
        ht_guest_kernel_symbol(k, "_text", &text) ||
        !ht_kernel_ring_layout(btf, ht_guest_kernel_page_size(k), &layout,
                               NULL)) {
        return;
    }
    ring = new_ring(s, p->mem);
    set_follower(ring, ht_kernel_ring_follow(&space, &layout, array,
                                             ht_guest_kernel_cpus(k), text,
                                             &follow_ops, ring));
    take(s, ring);
    g_ptr_array_add(s->rings, ring);
}

static bool is_list(const HtSessionRing *ring)
{
    return ht_ft_follow_ring(ring->follow)->layout == HT_FT_LAYOUT_LIST;
}

void ht_session_remove_rings(HtSession *s, const HtFtMem *mem)
{
    unsigned i;

    for (i = s->rings->len; i-- > 0;) {
        if (((HtSessionRing *)s->rings->pdata[i])->mem == mem) {
            g_ptr_array_remove_index(s->rings, i);
        }
    }
}

/*
 * Check whether a known ring with a valid header begins at @offset, or has one
 * CPU's part there. @except: a ring that does not count, or NULL
 */
static bool is_known(const HtSession *s, const HtFtMem *mem, uint64_t offset,
                     const HtSessionRing *except)
{
    unsigned i;

    for (i = 0; i < s->rings->len; i++) {
        const HtSessionRing *ring = s->rings->pdata[i];

        if (ring != except && ring->mem == mem &&
            ht_ft_follow_covers(ring->follow, offset) &&
            ht_ft_ring_is_there(mem, ht_ft_follow_ring(ring->follow))) {
            return true;
        }
    }
    return false;
}

/* Drop rings that @found replaces: their headers are within @found. */
static void drop_earlier(HtSession *s, const HtFtMem *mem,
                         const HtFtRing *found)
{
    unsigned i;

    for (i = s->rings->len; i-- > 0;) {
        const HtSessionRing *ring = s->rings->pdata[i];

        if (ring->mem == mem && ht_ft_ring_covers(found, ring->offset)) {
            g_ptr_array_remove_index(s->rings, i);
        }
    }
}

/*
 * If RINGS_MAX rings are followed, drop rings that have not changed for
 * CHANCE_NS since they were found, until there is room for another ring.
 * Returns false if there is no room.
 */
static bool make_room(HtSession *s)
{
    uint64_t t = s->now();
    unsigned i;

    for (i = 0; i < s->rings->len && s->rings->len >= RINGS_MAX; i++) {
        const HtSessionRing *ring = s->rings->pdata[i];

        if (!ring->taken && t - ring->since >= CHANCE_NS) {
            g_ptr_array_remove_index(s->rings, i);
        }
    }
    return s->rings->len < RINGS_MAX;
}

/* Add a ring if it is new and there is room. Takes ownership of @found. */
static bool add_candidate(HtSession *s, const HtFtMem *mem, HtFtRing *found)
{
    if (!is_known(s, mem, found->offset, NULL)) {
        drop_earlier(s, mem, found);
        if (make_room(s)) {
            add_ring(s, mem, found);
            return true;
        }
    }
    ht_ft_ring_free(found);
    return false;
}

/*
 * Test more candidates of a search, and add the rings that are found. After the
 * last candidate, begin again with the first. There may be no room for all
 * found rings (RINGS_MAX), so add them from @p->turn on, after the ring that
 * was added last: each then gets its turn.
 */
static void search_place(HtSession *s, HtSessionPlace *p, HtFtSearch *search,
                         uint64_t candidates)
{
    uint64_t step = search->step;
    unsigned from = p->turn, i, n;

    ht_ft_search_go(search, candidates, &s->budget);
    n = search->rings->len;
    for (i = 0; i < n; i++) {
        unsigned at = (from + i) % n;

        if (add_candidate(s, p->mem, search->rings->pdata[at])) {
            p->turn = at + 1;
        }
        search->rings->pdata[at] = NULL;
    }
    g_ptr_array_set_size(search->rings, 0);
    if (search->done) {
        ht_ft_search_clear(search);
        ht_ft_search_init(search, p->mem, step);
    }
}

/*
 * Test for a ring at the physical address on the guest kernel's command line
 * (trace_instance=NAME@ADDRESS). The offset in memory is this address minus the
 * size of the holes below it, which is not known: the PCI hole below 4 GiB has
 * 1 or 2 GiB; on Arm and RISC-V, memory begins at 1 or 2 GiB. Try 0, 1 and 2
 * GiB.
 */
static void search_given_address(HtSession *s, const HtFtMem *mem)
{
    uint64_t less;

    for (less = 0; less <= 2 && less << 30 <= s->ring_at; less++) {
        HtFtRing *ring = ht_ft_ring_at(mem, s->ring_at - (less << 30), NULL);

        if (ring) {
            add_candidate(s, mem, ring);
        }
    }
}

bool ht_session_any_taken(const HtSession *s)
{
    unsigned i;

    for (i = 0; i < s->rings->len; i++) {
        if (((HtSessionRing *)s->rings->pdata[i])->taken) {
            return true;
        }
    }
    return false;
}

bool ht_session_search(HtSession *s, uint64_t anywhere)
{
    bool found = ht_session_any_taken(s);
    unsigned i;

    ht_session_allow(s, SEARCH_NS);
    for (i = 0; i < s->places->len; i++) {
        HtSessionPlace *p = s->places->pdata[i];

        if (!p->rings) {
            continue;
        }
        if (s->ring_at) {
            search_given_address(s, p->mem);
        }
        search_place(s, p, &p->search, SEARCH_CANDIDATES);
        if (!found && anywhere) {
            search_place(s, p, &p->anywhere, anywhere);
        }
    }
    return ht_budget_is_over(&s->budget);
}

static bool is_quiet(const HtSessionPace *p, uint64_t now)
{
    return now - p->active >= QUIET_LEAST_NS && now - p->active <= QUIET_NS;
}

/*
 * Test whether the next search must begin: its time has come, or is_quiet() has
 * just become true.
 */
static bool is_search_due(HtSessionPace *p, uint64_t now)
{
    bool quiet = is_quiet(p, now);

    if (quiet && !p->quiet) {
        p->next = now;
    }
    p->quiet = quiet;
    return now >= p->next;
}

/*
 * Choose the time of the next search.  @found: a ring is recorded; @more: the
 * search stopped early, and the next one continues it
 */
static void pause_search(HtSessionPace *p, uint64_t begun, uint64_t now,
                         bool found, bool more)
{
    uint64_t took = now - begun;

    if (found) {
        p->next = now + MAX(took * (is_quiet(p, now) ? PAUSE_LATER :
                                    PAUSE_FOUND), more ? 0 : AGAIN_NS);
    } else {
        p->next = now + MIN(took * (now - p->started < EAGER_NS ?
                                    PAUSE_EAGER : PAUSE_LATER), AGAIN_NS);
    }
}

void ht_session_poll_search(HtSession *s)
{
    uint64_t t = s->now();
    bool more;

    if (!s->main_buffer && is_search_due(&s->pace, t)) {
        more = ht_session_search(s, t - s->pace.started >= ANYWHERE_NS ?
                                 ANYWHERE_LOOKS : 0);
        pause_search(&s->pace, t, s->now(), ht_session_any_taken(s), more);
    }
}

bool ht_session_follow_again(HtSession *s, HtSessionRing *ring)
{
    HtFtRing *again = ht_ft_ring_at(ring->mem, ring->offset, NULL);

    if (!again) {
        return false;
    }
    set_follower(ring, ht_ft_follow_new(ring->mem, again, &follow_ops, ring));
    take(s, ring);
    return true;
}

/* Poll a ring that is not recorded. Returns true if it has changed. */
static bool has_changed(HtSessionRing *ring)
{
    ring->match_ns = ht_ft_follow_more(ring->follow) ? UINT64_MAX :
                     ring->seen_ns + 1;
    return ht_ft_follow_look(ring->follow) >= 0 &&
           ht_ft_follow_alive(ring->follow);
}

/*
 * Poll a ring. A boot-mapped ring is recorded only after it has changed: a copy
 * in a page cache and a ring of an earlier boot do not change. Drop @ring if it
 * is one CPU's part of another ring: a search finds the part alone while the
 * other ring's header is invalid.
 */
static void poll_ring(HtSession *s, HtSessionRing *ring)
{
    if (!ring->taken) {
        if (!has_changed(ring)) {
            return;
        }
        if (is_known(s, ring->mem, ring->offset, ring)) {
            g_ptr_array_remove(s->rings, ring);
            return;
        }
        if (!ht_session_follow_again(s, ring)) {
            return;
        }
    }
    ht_ft_follow_look(ring->follow);
    ht_ft_feed_flush(&ring->feed);
    s->more |= ht_ft_follow_more(ring->follow);
    update_info(s, ring);
}

/*
 * Poll the main buffers, and all other rings with a valid header, until a ring
 * has more to read than a poll allows. Drop boot-mapped rings without a valid
 * header, except those that are being recorded: early in a boot, the kernel may
 * create its ring again.
 */
void ht_session_poll_rings(HtSession *s)
{
    g_autoptr(GPtrArray) rings = g_ptr_array_new();
    bool others = s->more;
    unsigned i;

    for (i = s->rings->len; i-- > 0;) {
        HtSessionRing *ring = s->rings->pdata[i];

        if (is_list(ring) ||
            ht_ft_ring_is_there(ring->mem, ht_ft_follow_ring(ring->follow))) {
            g_ptr_array_insert(rings, 0, ring);
        } else if (!ring->taken) {
            g_ptr_array_remove_index(s->rings, i);
        }
    }
    s->more = false;
    for (i = 0; i < rings->len && !s->more; i++) {
        unsigned n = (s->first_ring + i) % rings->len;

        /*
         * The poll of a ring that comes before in the list may have dropped
         * this ring.
         */
        if (g_ptr_array_find(s->rings, rings->pdata[n], NULL)) {
            poll_ring(s, rings->pdata[n]);
        }
        if (s->more) {
            /*
             * The ring has more to read: begin the next poll with the ring
             * after it.
             */
            s->first_ring = (n + 1) % rings->len;
        }
    }
    s->more |= others;
}
