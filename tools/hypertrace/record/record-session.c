/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: copy events from a guest's memory into a recording
 */
#include "hypertrace/base.h"
#include "hypertrace/ftrace-follow.h"
#include "hypertrace/kernel-ring.h"
#include "hypertrace/recording.h"
#include "kernel/kernel-watch.h"
#include "kernel/record-log.h"
#include "record/record-info.h"
#include "record/record-session.h"
#include "record/search-pace.h"

/*
 * Maximum number of candidates that a search tests in a memory. The fast search
 * has one candidate for each 2 MiB.
 */
#define SEARCH_CANDIDATES 4096
/*
 * Maximum number of rings at the same time, because a hostile guest may forge
 * any number
 */
#define RINGS_MAX       16
/*
 * A ring that has not changed for this time in ns may be replaced by a ring
 * that was found later
 */
#define CHANCE_NS       UINT64_C(500000000)
/*
 * If no ring was found after this time in ns, search every page: a part in each
 * search, and up to 16 GiB at the end.
 */
#define ANYWHERE_NS     UINT64_C(3000000000)
#define ANYWHERE_LOOKS  256
#define ANYWHERE_LAST   (UINT64_C(4) << 20)
/*
 * Maximum number of boots that a recording tells apart; the last one stands for
 * all that follow
 */
#define BOOTS_MAX       4096
/* Time in us to read the kernel's log: in each poll, and at the end */
#define LOG_US          1000
#define LOG_LAST_US     G_TIME_SPAN_SECOND
#define LOG_LAST_POLLS  10

typedef struct Ring {
    HtSession *session;
    const HtFtMem *mem;
    uint64_t offset;
    HtFtFollow *follow;
    /* converter to runs; if @feed.runs is NULL, the ring is only recorded */
    HtFtFeed feed;
    /* number of boots before the ring's first boot */
    uint32_t epoch_base;
    bool taken;                 /* the ring is being recorded */
    uint64_t since;             /* time in ns when the ring was found */
    uint64_t newest_ns;         /* guest time of the last event, in ns */
    uint64_t seen_ns;           /* highest guest time before @taken, in ns */
    /*
     * in pieces of an unknown age, only events from this guest time on can
     * match: earlier ones may precede the session
     */
    uint64_t match_ns;
} Ring;

/* A memory and the searches in it */
typedef struct Place {
    const HtFtMem *mem;
    /* search for boot-mapped rings in this memory */
    bool rings;
    HtKernelWatch *watch;       /* search for the kernel; NULL: do not search */
    HtRecordLog *log;           /* log of the kernel that was found, or NULL */
    /* number of the boot of @log; it may still grow until @log has a record */
    uint32_t log_boot;
    HtSession *session;
    /* the records of @log that come now may precede the session */
    bool log_old;
    HtFtSearch search;
    HtFtSearch anywhere;
    unsigned turn;
} Place;

struct HtSession {
    HtRecWriter *writer;
    HtRecordInfo info;
    const HtKernel *kernel;
    HtFtRuns *runs;             /* further receiver of the events, or NULL */
    HtMatch *matches[HT_SESSION_MATCHES];
    bool running;               /* HtSessionInfo.running */
    unsigned nr_found;          /* with @runs: number of rings found so far */
    GPtrArray *places;
    GPtrArray *rings;
    uint64_t (*now)(void);
    HtSearchPace pace;
    uint64_t max_bytes;
    uint64_t ring_at;
    /* highest number of a boot that has a ring, plus 1 */
    uint32_t epochs;
    bool cut;                   /* HtSessionStats.cut */
    pid_t process;              /* the machine's process, as @info has it */
    HtKernelImage *image;
    bool main_buffer;
    bool has_formats;           /* the recording has the formats of events */
    uint32_t log_boots;         /* highest boot whose log is recorded, plus 1 */
    uint64_t logged;            /* number of records of earlier kernels' logs */
    /* number of the last boot whose log has a panic, plus 1; 0: none */
    uint32_t panic_boot;
    GString *log_text;
    bool more;
    /* sum of the counters of rings that were dropped */
    HtFtStats past;
    GError *error;
};

static uint64_t monotonic_ns(void)
{
    return g_get_monotonic_time() * UINT64_C(1000);
}

static uint64_t now(void *opaque)
{
    return ((Ring *)opaque)->session->now();
}

/*
 * Check whether a piece fits in the maximum size.  If not, set s->error, which
 * ends the recording.
 */
static bool has_room(HtSession *s, uint64_t bytes)
{
    if (s->max_bytes - ht_rec_writer_bytes(s->writer) >= bytes) {
        return true;
    }
    g_set_error(&s->error, G_FILE_ERROR, G_FILE_ERROR_NOSPC, "the recording "
                "has the size that it may have (--max-size, %" PRIu64 " MiB): "
                "the guest goes on, but nothing more is recorded",
                s->max_bytes >> 20);
    return false;
}

/* Pass a recorded piece to all matches. @epoch: the follower's epoch */
static void match_piece(const Ring *ring, const HtFtPiece *p, uint32_t epoch)
{
    const HtSession *s = ring->session;
    bool new = !s->running || p->host_before || epoch;
    unsigned i;

    for (i = 0; i < HT_SESSION_MATCHES; i++) {
        ht_match_piece(s->matches[i], p, new ? 0 : ring->match_ns);
    }
}

/* Let the matches see a record of a kernel's log. */
static void match_line(void *opaque, const HtLogRecord *r)
{
    const Place *p = opaque;
    unsigned i;

    for (i = 0; i < HT_SESSION_MATCHES && !p->log_old; i++) {
        ht_match_line(p->session->matches[i], r);
    }
}

static void set_match_formats(HtSession *s, const char *text, gsize size)
{
    unsigned i;

    for (i = 0; i < HT_SESSION_MATCHES; i++) {
        ht_match_formats(s->matches[i], text, size);
    }
}

static void ahead(void *opaque, const HtFtPiece *p)
{
    Ring *ring = opaque;

    if (ring->feed.runs) {
        ht_ft_feed_ahead(&ring->feed, p);
    }
}

static void piece(void *opaque, const HtFtPiece *p)
{
    Ring *ring = opaque;
    HtSession *s = ring->session;
    HtFtPiece of_all = *p;

    ring->newest_ns = p->end_ns;
    s->pace.active = s->now();
    if (ring->taken && !s->error &&
        has_room(s, sizeof(HtRecPieceHeader) + p->size)) {
        of_all.epoch = MIN(ring->epoch_base + p->epoch, BOOTS_MAX - 1);
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

static void add_stats(HtFtStats *sum, const Ring *ring)
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

static void free_ring(void *opaque)
{
    Ring *ring = opaque;

    add_stats(&ring->session->past, ring);
    ht_ft_feed_close(&ring->feed);
    ht_ft_follow_free(ring->follow);
    g_free(ring);
}

static void free_place(void *opaque)
{
    Place *p = opaque;

    ht_record_log_free(p->log);
    ht_kernel_watch_free(p->watch);
    ht_ft_search_clear(&p->search);
    ht_ft_search_clear(&p->anywhere);
    g_free(p);
}

/*
 * Add the address of each boot's kernel and the number of processors to the
 * info.
 */
static void update_info(HtSession *s, const Ring *ring)
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
     * The last of BOOTS_MAX boots stands for several kernels with different
     * addresses, so it gets no address.
     */
    if (n < BOOTS_MAX) {
        ht_rec_info_text(s->info.keys, n - 1, ht_ft_follow_text(ring->follow));
    }
}

/*
 * Drop the rings of earlier boots: the guest times in them are later than those
 * of @ring. If there was such a ring, all events of @ring are new.
 */
static void end_older(HtSession *s, Ring *ring)
{
    unsigned i;

    for (i = s->rings->len; i-- > 0;) {
        const Ring *other = s->rings->pdata[i];

        if (other->taken && other != ring &&
            other->newest_ns > ring->newest_ns + HT_FT_EPOCH_NS) {
            ring->match_ns = 0;
            g_ptr_array_remove_index(s->rings, i);
        }
    }
}

static void take(HtSession *s, Ring *ring)
{
    end_older(s, ring);
    if (!s->epochs) {
        ht_record_info_ring(&s->info, s->kernel,
                            ht_ft_follow_ring(ring->follow));
    }
    /* An earlier boot may have had a log but no ring. */
    ring->epoch_base = MAX(s->epochs, MAX(s->log_boots, 1) - 1);
    ring->taken = true;
    if (ring->feed.runs) {
        ht_ft_feed_begin(&ring->feed);
    }
}

static Ring *new_ring(HtSession *s, const HtFtMem *mem)
{
    Ring *ring = g_new0(Ring, 1);

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
    Ring *ring = new_ring(s, mem);

    ring->offset = found->offset;
    ring->follow = ht_ft_follow_new(mem, found, &follow_ops, ring);
    g_ptr_array_add(s->rings, ring);
}

/* Follow the main trace buffer of the kernel that a place's watch found. */
static void add_list(HtSession *s, const Place *p)
{
    HtGuestKernel *k = ht_kernel_watch_kernel(p->watch);
    const HtBtf *btf = ht_kernel_image_btf(s->image);
    HtKernelSpace space = ht_kernel_space_of(k);
    HtKernelRingLayout layout;
    uint64_t array, text;
    Ring *ring;

    if (ht_kernel_ring_instance(k, NULL, &array) ||
        ht_guest_kernel_symbol(k, "_text", &text) ||
        !ht_kernel_ring_layout(btf, ht_guest_kernel_page_size(k), &layout,
                               NULL)) {
        return;
    }
    ring = new_ring(s, p->mem);
    ring->follow = ht_kernel_ring_follow(&space, &layout, array,
                                         ht_guest_kernel_cpus(k), text,
                                         &follow_ops, ring);
    take(s, ring);
    g_ptr_array_add(s->rings, ring);
}

static bool is_list(const Ring *ring)
{
    return ht_ft_follow_ring(ring->follow)->layout == HT_FT_LAYOUT_LIST;
}

static void remove_rings(HtSession *s, const HtFtMem *mem)
{
    unsigned i;

    for (i = s->rings->len; i-- > 0;) {
        if (((Ring *)s->rings->pdata[i])->mem == mem) {
            g_ptr_array_remove_index(s->rings, i);
        }
    }
}

static void write_formats(HtSession *s, const Place *p)
{
    g_autoptr(GString) text = ht_kernel_watch_formats(p->watch);

    ht_rec_writer_file(s->writer, "formats", text->str, text->len,
                       s->error ? NULL : &s->error);
    set_match_formats(s, text->str, text->len);
    s->has_formats = true;
}

/*
 * Choose the number of the boot for a new log. With the main buffer, it is the
 * boot of the buffer in the same memory. A boot-mapped ring may be older or
 * newer than the log: choose the boot of the newest ring.
 */
static uint32_t boot_of_log(const HtSession *s, const HtFtMem *mem)
{
    uint32_t boot = s->main_buffer ? s->epochs : MAX(s->epochs, 1) - 1;
    unsigned i;

    for (i = 0; s->main_buffer && i < s->rings->len; i++) {
        const Ring *ring = s->rings->pdata[i];

        if (ring->mem == mem) {
            boot = ring->epoch_base + ht_ft_follow_epoch(ring->follow);
        }
    }
    return MAX(s->log_boots, boot);
}

/*
 * Record the new part of a log. The first record fixes the log's boot. Return:
 * true if the log may have more
 */
static bool poll_log(HtSession *s, Place *p, bool last, int64_t us)
{
    bool more, begun;

    if (!p->log || s->error) {
        return false;
    }
    begun = ht_record_log_records(p->log);
    if (!begun) {
        p->log_boot = boot_of_log(s, p->mem);
    }
    g_string_truncate(s->log_text, 0);
    more = ht_record_log_look(p->log, MIN(p->log_boot, BOOTS_MAX - 1), last, us,
                              s->log_text);
    if (s->log_text->len && has_room(s, s->log_text->len)) {
        ht_rec_writer_log(s->writer, s->log_text->str, s->log_text->len,
                          &s->error);
    }
    if (!begun && ht_record_log_records(p->log)) {
        s->log_boots = p->log_boot + 1;
    }
    if (ht_record_log_panic(p->log)) {
        s->panic_boot = MAX(s->panic_boot, p->log_boot + 1);
    }
    p->log_old &= more;
    return more;
}

/* Record the rest of a log.  The guest may still print: bound the polls. */
static void poll_log_last(HtSession *s, Place *p, int64_t us)
{
    unsigned n = 0;
    bool more;

    do {
        more = poll_log(s, p, true, us);
    } while (more && ++n < LOG_LAST_POLLS);
}

/*
 * Read the rest of an ended kernel's log, as far as its memory still has it.
 * After a long pause between polls, the panic may be only in this rest.
 */
static void end_log(HtSession *s, Place *p)
{
    poll_log_last(s, p, LOG_US);
    if (p->log) {
        s->logged += ht_record_log_records(p->log);
        g_clear_pointer(&p->log, ht_record_log_free);
    }
}

/*
 * Search for the kernels in all memories, and read their logs. If a kernel has
 * ended, stop reading its main buffer: the previous poll read its last events.
 */
static void watch(HtSession *s, bool last)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        Place *p = s->places->pdata[i];
        unsigned flags = p->watch ? ht_kernel_watch_look(p->watch, last) : 0;

        s->more |= flags & HT_WATCH_MORE;
        if (flags & HT_WATCH_GONE) {
            end_log(s, p);
            if (s->main_buffer) {
                remove_rings(s, p->mem);
            }
        }
        if (flags & HT_WATCH_KERNEL) {
            p->log = ht_record_log_new(ht_kernel_watch_kernel(p->watch),
                                       match_line, p, NULL);
            p->log_boot = boot_of_log(s, p->mem);
            p->log_old = s->running && !s->log_boots;
        }
        if (flags & HT_WATCH_FORMATS) {
            write_formats(s, p);
        }
        if (flags & HT_WATCH_FOUND && s->main_buffer) {
            add_list(s, p);
        }
        s->more |= poll_log(s, p, false, LOG_US);
    }
}

static void finish_logs(HtSession *s)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        poll_log_last(s, s->places->pdata[i], LOG_LAST_US);
    }
}

/*
 * Check whether the ring at @offset is known, or is one CPU's part of a known
 * ring whose header is valid. @except: a ring that does not count, or NULL
 */
static bool is_known(const HtSession *s, const HtFtMem *mem, uint64_t offset,
                     const Ring *except)
{
    unsigned i;

    for (i = 0; i < s->rings->len; i++) {
        const Ring *ring = s->rings->pdata[i];

        if (ring != except && ring->mem == mem &&
            ht_ft_follow_covers(ring->follow, offset) &&
            ht_ft_ring_is_there(mem, ht_ft_follow_ring(ring->follow))) {
            return true;
        }
    }
    return false;
}

/* Drop rings that @found replaces: those at its address or within it. */
static void drop_earlier(HtSession *s, const HtFtMem *mem,
                         const HtFtRing *found)
{
    unsigned i;

    for (i = s->rings->len; i-- > 0;) {
        const Ring *ring = s->rings->pdata[i];

        if (ring->mem == mem && ht_ft_ring_covers(found, ring->offset)) {
            g_ptr_array_remove_index(s->rings, i);
        }
    }
}

/* If RINGS_MAX is reached, drop a ring that has not changed for CHANCE_NS. */
static bool make_room(HtSession *s)
{
    uint64_t t = s->now();
    unsigned i;

    for (i = 0; i < s->rings->len && s->rings->len >= RINGS_MAX; i++) {
        const Ring *ring = s->rings->pdata[i];

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
 * Test more candidates of a search.  After the last one, begin again with the
 * first.  A session follows at most RINGS_MAX rings; begin with the ring after
 * the one that was added last, so that each gets its turn.
 */
static void search_place(HtSession *s, Place *p, HtFtSearch *search,
                         uint64_t candidates)
{
    uint64_t step = search->step;
    unsigned from = p->turn, i, n;

    ht_ft_search_go(search, candidates);
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
 * Try the ring's physical address, which the guest kernel's command line has
 * (trace_instance=NAME@ADDRESS).  Its offset in memory is the address minus the
 * holes below it, whose size is not known: the PCI hole below 4 GiB has 1 or 2
 * GiB; on Arm and RISC-V, memory begins at 1 or 2 GiB.  Try 0, 1 and 2 GiB.
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

static bool any_taken(const HtSession *s)
{
    unsigned i;

    for (i = 0; i < s->rings->len; i++) {
        if (((Ring *)s->rings->pdata[i])->taken) {
            return true;
        }
    }
    return false;
}

static void search(HtSession *s, uint64_t anywhere)
{
    bool found = any_taken(s);
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        Place *p = s->places->pdata[i];

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
}

/* Start to follow a ring anew from its oldest event, and record it. */
static bool follow_again(HtSession *s, Ring *ring)
{
    HtFtRing *again = ht_ft_ring_at(ring->mem, ring->offset, NULL);

    if (!again) {
        return false;
    }
    ht_ft_follow_free(ring->follow);
    ring->follow = ht_ft_follow_new(ring->mem, again, &follow_ops, ring);
    take(s, ring);
    return true;
}

/* Poll a ring that is not recorded. Returns true if it has changed. */
static bool has_changed(Ring *ring)
{
    ring->match_ns = ht_ft_follow_more(ring->follow) ? UINT64_MAX :
                     ring->seen_ns + 1;
    return ht_ft_follow_look(ring->follow) >= 0 &&
           ht_ft_follow_alive(ring->follow);
}

/*
 * Poll a ring. It is recorded only after it has changed: a copy in a page cache
 * and a ring of an earlier boot do not change. Drop a CPU's part of another
 * ring: a search finds the part alone while the ring's header is invalid.
 */
static void poll_ring(HtSession *s, Ring *ring)
{
    if (!ring->taken) {
        if (!has_changed(ring)) {
            return;
        }
        if (is_known(s, ring->mem, ring->offset, ring)) {
            g_ptr_array_remove(s->rings, ring);
            return;
        }
        if (!follow_again(s, ring)) {
            return;
        }
    }
    ht_ft_follow_look(ring->follow);
    ht_ft_feed_flush(&ring->feed);
    s->more |= ht_ft_follow_more(ring->follow);
    update_info(s, ring);
}

/*
 * Poll the main buffers, and all other rings whose headers are valid. Drop the
 * rest, except those that are being recorded: early in a boot, the kernel may
 * create its ring again.
 */
static void poll_rings(HtSession *s)
{
    g_autoptr(GPtrArray) rings = g_ptr_array_new();
    unsigned i;

    for (i = s->rings->len; i-- > 0;) {
        Ring *ring = s->rings->pdata[i];

        if (is_list(ring) ||
            ht_ft_ring_is_there(ring->mem, ht_ft_follow_ring(ring->follow))) {
            g_ptr_array_insert(rings, 0, ring);
        } else if (!ring->taken) {
            g_ptr_array_remove_index(s->rings, i);
        }
    }
    for (i = 0; i < rings->len; i++) {
        /* Polling an earlier ring of the list may have dropped this one. */
        if (g_ptr_array_find(s->rings, rings->pdata[i], NULL)) {
            poll_ring(s, rings->pdata[i]);
        }
    }
}

void ht_session_process(HtSession *s, pid_t pid)
{
    if (pid && pid != s->process) {
        s->process = pid;
        ht_record_info_process(&s->info, pid);
    }
}

bool ht_session_look(HtSession *s, GError **error)
{
    uint64_t t;

    s->more = false;
    if (s->image) {
        watch(s, false);
    }
    t = s->now();
    if (!s->main_buffer && ht_search_pace_due(&s->pace, t)) {
        search(s, t - s->pace.started >= ANYWHERE_NS ? ANYWHERE_LOOKS : 0);
        ht_search_pace_done(&s->pace, t, s->now(), any_taken(s));
    }
    poll_rings(s);
    if (s->error) {
        ht_rec_writer_flush(s->writer, NULL);
        g_propagate_error(error, g_steal_pointer(&s->error));
        return false;
    }
    return ht_record_info_poll(&s->info, s->writer, t, error) &&
           ht_rec_writer_flush(s->writer, error);
}

bool ht_session_more(const HtSession *s)
{
    return s->more;
}

bool ht_session_log_hint(const HtSession *s, HtKernelLogHint *hint)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        const Place *p = s->places->pdata[i];

        if (p->log && ht_record_log_hint(p->log, hint)) {
            return true;
        }
    }
    return false;
}

HtSession *ht_session_new(const HtSessionInfo *info, GError **error)
{
    g_autoptr(HtSession) s = g_new0(HtSession, 1);

    s->rings = g_ptr_array_new_with_free_func(free_ring);
    ht_record_info_init(&s->info, info);
    s->kernel = info->kernel;
    s->max_bytes = info->max_bytes && !info->memory ? info->max_bytes :
                   UINT64_MAX;
    s->ring_at = info->ring_at;
    s->runs = info->runs;
    memcpy(s->matches, info->matches, sizeof(s->matches));
    s->running = info->running;
    s->image = info->image ? ht_kernel_image_ref(info->image) : NULL;
    s->main_buffer = s->image && info->main_buffer;
    s->has_formats = s->kernel && s->kernel->formats;
    if (s->has_formats) {
        set_match_formats(s, s->kernel->formats, s->kernel->formats_size);
    }
    s->log_text = g_string_new(NULL);
    s->now = info->now ? info->now : monotonic_ns;
    s->pace.started = s->now();
    s->places = g_ptr_array_new_with_free_func(free_place);
    s->writer = info->memory ? ht_rec_writer_new_memory(info->memory, error) :
                ht_rec_writer_new(info->dir, error);
    if (!s->writer) {
        return NULL;
    }
    if (!ht_record_info_kernel(s->writer, s->kernel, error) ||
        !ht_record_info_write(&s->info, s->writer, error)) {
        return NULL;
    }
    return g_steal_pointer(&s);
}

void ht_session_add(HtSession *s, const HtFtMem *mem, unsigned what)
{
    Place *p = g_new0(Place, 1);

    p->session = s;
    p->mem = mem;
    p->rings = what & HT_SESSION_RINGS;
    if (s->image && what & HT_SESSION_KERNEL) {
        p->watch = ht_kernel_watch_new(mem, s->image,
                                       s->main_buffer || !s->has_formats,
                                       s->now);
    }
    ht_ft_search_init(&p->search, mem, HT_FT_SEARCH_FAST);
    ht_ft_search_init(&p->anywhere, mem, HT_FT_SEARCH_FULL);
    g_ptr_array_add(s->places, p);
}

void ht_session_remove(HtSession *s, const HtFtMem *mem)
{
    unsigned i;

    remove_rings(s, mem);
    for (i = s->places->len; i-- > 0;) {
        Place *p = s->places->pdata[i];

        if (p->mem == mem) {
            end_log(s, p);
            g_ptr_array_remove_index(s->places, i);
        }
    }
}

HtSessionStats ht_session_stats(const HtSession *s)
{
    HtFtStats sum = s->past;
    uint64_t logged = s->logged;
    uint32_t kernel_boot = 0;
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        const Place *p = s->places->pdata[i];

        if (p->log) {
            kernel_boot = MAX(kernel_boot, p->log_boot + 1);
            logged += ht_record_log_records(p->log);
        }
    }
    for (i = 0; i < s->rings->len; i++) {
        add_stats(&sum, s->rings->pdata[i]);
    }
    return (HtSessionStats) {
        .found = s->epochs != 0,
        .events = sum.events,
        .held = ht_rec_writer_held(s->writer),
        .bytes = ht_rec_writer_bytes(s->writer),
        .gaps = sum.gaps,
        .lost = sum.lost,
        .late = sum.late,
        .errors = sum.errors,
        .cut = s->cut,
        .boots = MAX(s->epochs, s->log_boots),
        .logged = logged,
        .kernel_boot = kernel_boot,
        .panic_boot = s->panic_boot,
    };
}

/*
 * Record the remaining events. The number of polls is bounded, because a guest
 * that still runs may write faster than the recorder reads.
 */
static bool poll_last(HtSession *s, GError **error)
{
    uint64_t rounds = 2;
    unsigned i;

    for (i = 0; i < s->rings->len; i++) {
        rounds += ht_ft_follow_polls(((Ring *)s->rings->pdata[i])->follow);
    }
    do {
        if (!ht_session_look(s, error)) {
            return false;
        }
    } while (s->more && rounds--);
    /* One more poll is needed, see ht_ft_follow_look(). */
    return ht_session_look(s, error);
}

bool ht_session_finish(HtSession *s, const char *end, GError **error)
{
    unsigned i;

    s->pace.next = 0;
    if (s->image && (s->main_buffer ? !s->rings->len :
                     !s->log_boots || !s->has_formats)) {
        watch(s, true);
    }
    if (!poll_last(s, error)) {
        return false;
    }
    finish_logs(s);
    if (s->error) {
        g_propagate_error(error, g_steal_pointer(&s->error));
        return false;
    }
    if (!s->rings->len && !s->main_buffer) {
        search(s, ANYWHERE_LAST);
    }
    /*
     * A ring is recorded when it changes, but a memory image does not change:
     * record its first ring that can be read.
     */
    for (i = 0; !any_taken(s) && !s->epochs && i < s->rings->len; i++) {
        if (follow_again(s, s->rings->pdata[i]) && !poll_last(s, error)) {
            return false;
        }
    }
    ht_rec_info_end(s->info.keys, end, s->now());
    return ht_record_info_write(&s->info, s->writer, error);
}

const char *ht_session_why(const HtSession *s)
{
    unsigned i;

    for (i = 0; i < s->places->len; i++) {
        const Place *p = s->places->pdata[i];
        const char *why = p->watch ? ht_kernel_watch_why(p->watch) : NULL;

        if (why) {
            return why;
        }
    }
    return NULL;
}

void ht_session_stop(HtSession *s, const char *why)
{
    g_key_file_set_string(s->info.keys, "recording", "cut", why);
    ht_record_info_write(&s->info, s->writer, NULL);
}

bool ht_session_save(HtSession *s, HtRecWriter *to, const char *cause,
                     const char *end, GError **error)
{
    g_key_file_set_string(s->info.keys, "recording", "cause", cause);
    ht_rec_info_end(s->info.keys, end, s->now());
    return ht_record_info_write(&s->info, s->writer, error) &&
           ht_rec_writer_save(s->writer, to, error);
}

void ht_session_discard(HtSession *s)
{
    ht_rec_writer_discard(s->writer);
}

void ht_session_free(HtSession *s)
{
    if (s) {
        g_ptr_array_free(s->rings, true);
        g_ptr_array_free(s->places, true);
        g_string_free(s->log_text, true);
        ht_rec_writer_free(s->writer);
        ht_kernel_image_unref(s->image);
        ht_record_info_clear(&s->info);
        g_clear_error(&s->error);
        g_free(s);
    }
}
