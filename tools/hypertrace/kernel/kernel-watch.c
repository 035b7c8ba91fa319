/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the kernel in a guest's memory
 */
#include "hypertrace/base.h"
#include "kernel/kernel-watch.h"

/*
 * Time in ns after which a step of the search ends: STEP_NS in a poll,
 * STEP_LAST_NS in the last poll
 */
#define STEP_NS         UINT64_C(1000000)
#define STEP_LAST_NS    UINT64_C(5000000000)
/*
 * While no kernel is known: pause in ns between searches. It is as long as the
 * last search took or, after EAGER_NS without a kernel, PAUSE_LATER times as
 * long, but at least SEARCH_NS and at most PAUSE_MAX. So searches of up to 2 s
 * use at most half of a processor at first. Later, searches of up to 20 ms use
 * at most 1 %.
 */
#define SEARCH_NS       UINT64_C(2000000)
#define EAGER_NS        UINT64_C(30000000000)
#define PAUSE_LATER     99
#define PAUSE_MAX       UINT64_C(2000000000)
/*
 * Number of reads of event formats in a poll: READS_FIRST in the first passes
 * over the formats (see PASS_SOON_NS), READS_LATER in later passes. At worst,
 * each read also walks the page tables. Even then, the poll takes about 10 ms
 * at most.
 */
#define READS_FIRST     1024u
#define READS_LATER     256u
/*
 * Number of reads of event formats in the last poll; these reads take some
 * seconds at most
 */
#define READS_LAST      (1u << 20)
/*
 * Minimum pause in ns, for each byte of all formats, from a pass that found
 * changes to a pass that is caused by further changes. After such a pass the
 * session writes all formats; this pause limits the writing to about 32 MiB/s.
 */
#define CHANGE_NS       30u
/* Period in ns at which the kernel's clock is checked while it advances */
#define CLOCK_NS        UINT64_C(1000000000)
/*
 * While the clock of the known kernel stands still: first pause in ns after a
 * search that found several kernels, none of which was proved to run. The pause
 * doubles after each such search, up to CLOCK_NS.
 */
#define PROOF_NS        UINT64_C(10000000)
/*
 * While the known kernel's clock stands still, searches for another kernel use
 * at most 10 % of a processor: the pause after a search is at least PAUSE_STILL
 * times as long as the search. Once the clock has stood still for STILL_NS, the
 * pause is at least PAUSE_LATER times as long.
 */
#define PAUSE_STILL     9
#define STILL_NS        UINT64_C(600000000000)
/*
 * The wall clock of the kernel of the next boot is compared with that of the
 * known kernel: the difference may be up to this many seconds larger than the
 * time since the known kernel's clock was read.
 */
#define AHEAD_MAX       60
/*
 * PASS_NS is the maximum pause in ns after the first pass over all formats. The
 * maximum doubles after each pass, up to PASS_MAX_NS. Passes are repeated to
 * find changes, for example of texts in place: early in the boot the kernel
 * replaces the names of enumerators by their values.
 */
#define PASS_NS         UINT64_C(1000000000)
#define PASS_MAX_NS     UINT64_C(3600000000000)
/*
 * Minimum pause in ns between two tests of a format's text: SAMPLE_NS at first,
 * SAMPLE_LATER_NS once the pause between passes is longer than PASS_SOON_NS
 */
#define SAMPLE_NS       UINT64_C(10000000)
#define SAMPLE_LATER_NS (10 * SAMPLE_NS)
/*
 * Maximum pause in ns between passes with which a poll makes READS_FIRST reads;
 * with a longer pause, a poll makes READS_LATER reads
 */
#define PASS_SOON_NS    (4 * PASS_NS)

struct HtKernelWatch {
    HtKernelSearch *search;
    bool searching;             /* @search is under way */
    bool wants_formats;
    uint64_t searched_ns;       /* duration of this search so far, in ns */
    uint64_t missing_since;     /* time in ns since which no kernel is known */
    int64_t (*now)(void);
    HtGuestKernel *kernel;
    HtGuestKernel *next;        /* kernel that replaces @kernel, or NULL */
    HtGuestKernel *ended;       /* the last kernel that ended, or NULL */
    HtKernelFormats *formats;
    bool ready;                 /* HT_WATCH_FOUND was returned for @kernel */
    bool gone;                  /* HT_WATCH_GONE was returned for @kernel */
    uint64_t next_search;
    uint64_t next_clock;
    /* last valid clock of @kernel, or of @ended while no kernel is known */
    HtKernelClock clock;
    uint64_t clock_ns;          /* time at which @clock was read */
    uint64_t adopted_ns;        /* time at which @kernel was found */
    /* time at which @clock was first seen to stand still; 0: it goes on */
    uint64_t still_ns;
    /* time of the next search while @clock stands still */
    uint64_t next_still;
    /* pause in ns after the next search without a proof, see PROOF_NS */
    uint64_t proof_ns;
    /* a pass over the formats is under way, or begins in the next step */
    bool passing;
    uint64_t next_pass;
    uint64_t pass_ns;
    /* earliest time at which changes of the formats cause a pass */
    uint64_t next_change;
    uint64_t next_sample;       /* time of the next test of a format's text */
    /* ht_kernel_formats_serial() when HT_WATCH_FORMATS was last returned */
    unsigned serial;
    GError *error;
};

HtKernelWatch *ht_kernel_watch_new(const HtFtMem *mem, HtKernelImage *image,
                                   bool formats, int64_t (*now)(void))
{
    HtKernelWatch *w = g_new0(HtKernelWatch, 1);
    g_autofree HtGuestMem *guest = g_new(HtGuestMem, 1);

    ht_guest_mem_init(guest, mem);
    w->search = ht_kernel_search_new(guest, image);
    w->wants_formats = formats;
    w->now = now;
    w->missing_since = now();
    return w;
}

static void release(HtKernelWatch *w)
{
    g_clear_pointer(&w->formats, ht_kernel_formats_free);
    if (w->kernel) {
        ht_guest_kernel_free(w->ended);
        w->ended = g_steal_pointer(&w->kernel);
    }
    w->ready = w->gone = w->passing = false;
    w->missing_since = w->now();
}

static uint64_t search_pause(const HtKernelWatch *w, uint64_t t)
{
    bool eager = w->kernel || t - w->missing_since < EAGER_NS;
    uint64_t pause = w->searched_ns * (eager ? 1 : PAUSE_LATER);

    return CLAMP(pause, SEARCH_NS, PAUSE_MAX);
}

void ht_kernel_watch_free(HtKernelWatch *w)
{
    if (w) {
        release(w);
        ht_guest_kernel_free(w->next);
        ht_guest_kernel_free(w->ended);
        ht_kernel_search_free(w->search);
        g_clear_error(&w->error);
        g_free(w);
    }
}

static void begin_search(HtKernelWatch *w)
{
    ht_kernel_search_restart(w->search);
    w->searching = true;
    w->searched_ns = 0;
}

/*
 * Do a step of the search. If no search is under way, begin a search first, but
 * do nothing if its time has not come. Returns the kernel that the search has
 * found; NULL if the search goes on or has found no kernel.
 */
static HtGuestKernel *search(HtKernelWatch *w, uint64_t t, bool last,
                             unsigned *flags)
{
    const HtBudget budget = { w->now, t + (last ? STEP_LAST_NS : STEP_NS) };
    HtGuestKernel *k = NULL;
    int ret;

    if (!w->searching) {
        if (t < w->next_search && !last) {
            return NULL;
        }
        begin_search(w);
    }
    ret = ht_kernel_search_step(w->search, &budget);
    w->searched_ns += w->now() - t;
    if (ret == 0) {
        *flags |= HT_WATCH_MORE;
        return NULL;
    }
    w->searching = false;
    if (ret > 0) {
        g_clear_error(&w->error);
        k = ht_kernel_search_take(w->search, &w->error);
    }
    t = w->now();
    w->next_search = t + search_pause(w, t);
    return k;
}

/*
 * Test whether a wall clock can be that of the boot after the known kernel's
 * boot. Data that a later kernel has written over a dead kernel's clock seldom
 * pass this test.
 */
static bool is_next(const HtKernelWatch *w, const HtKernelClock *clock)
{
    uint64_t passed = (w->now() - w->clock_ns) / CLOCK_NS;

    return clock->seconds >= w->clock.seconds &&
           clock->seconds - w->clock.seconds <= passed + AHEAD_MAX;
}

static bool at_same_place(const HtGuestKernel *a, const HtGuestKernel *b)
{
    return ht_guest_kernel_phys(a) == ht_guest_kernel_phys(b) &&
           ht_guest_kernel_slide(a) == ht_guest_kernel_slide(b);
}

/*
 * Decide whether the kernel @k, which a search has found, is the running one.
 * RAM may also hold dead kernels of earlier boots. A kernel runs if its tick
 * count was seen to advance. If not, accept a kernel if its clock has no known
 * address, and reject it if its clock has an address but cannot be read. If the
 * clock can be read, accept @k only if the search found no other kernel, and if
 * either no kernel was known before, or the place and the clock of @k can be
 * those of the next boot. @last: in this last call, other kernels that the
 * search found do not count.
 */
static bool is_running(const HtKernelWatch *w, HtGuestKernel *k, bool last)
{
    const HtGuestKernel *known = w->kernel ?: w->ended;
    HtKernelClock clock;
    int ret;

    if (ht_guest_kernel_moves(k)) {
        return true;
    }
    ret = ht_guest_kernel_clock(k, &clock);
    if (ret == -ENOENT) {
        return true;
    }
    if (ret || (!last && ht_kernel_search_found(w->search))) {
        return false;
    }
    return !known ||
           (is_next(w, &clock) && (!at_same_place(k, known) ||
                                   clock.jiffies < w->clock.jiffies));
}

static void adopt(HtKernelWatch *w, HtGuestKernel *k, uint64_t t)
{
    w->kernel = k;
    w->adopted_ns = w->clock_ns = t;
    w->next_clock = t + CLOCK_NS;
    w->still_ns = 0;
    if (ht_guest_kernel_clock(k, &w->clock)) {
        w->clock = (HtKernelClock) { 0 };
    }
    w->pass_ns = PASS_NS;
    w->next_change = w->next_sample = 0;
    if (w->wants_formats) {
        w->formats = ht_kernel_formats_of(k, w->error ? NULL : &w->error);
    }
    w->passing = w->formats;
    w->serial = 0;
}

/*
 * Read the kernel's clock, if it is time for that. If its ticks went back, the
 * same kernel has booted again at the same address: return true. If the clock
 * stands still, or was overwritten, another kernel may have booted: begin a
 * search, if the pause after the last search is over. @last: this is the last
 * call, so do not wait, and begin a search although the clock goes on.
 */
static bool check_clock(HtKernelWatch *w, uint64_t t, bool last)
{
    HtKernelClock clock;
    int ret = t < w->next_clock && !last ? -EAGAIN :
              ht_guest_kernel_clock(w->kernel, &clock);

    if (ret && ret != -ERANGE) {
        return false;
    }
    w->next_clock = t + CLOCK_NS;
    if (!ret && clock.jiffies < w->clock.jiffies) {
        return true;
    }
    if (!ret && !last && clock.jiffies != w->clock.jiffies) {
        w->clock = clock;
        w->clock_ns = t;
        w->still_ns = 0;
        return false;
    }
    if (!w->still_ns) {
        w->still_ns = w->next_still = t;
        w->proof_ns = PROOF_NS;
        ht_kernel_search_forget(w->search);
    }
    if (t >= w->next_still || last) {
        begin_search(w);
    }
    return false;
}

/* Choose the time of the next search while the kernel's clock stands still. */
static void pause_search(HtKernelWatch *w)
{
    uint64_t t = w->now(), pause = CLOCK_NS;
    unsigned times = t - w->still_ns < STILL_NS ? PAUSE_STILL : PAUSE_LATER;

    if (ht_kernel_search_found(w->search)) {
        pause = w->proof_ns;
        w->proof_ns = MIN(2 * w->proof_ns, CLOCK_NS);
    }
    w->next_still = t + MAX(pause, w->searched_ns * times);
    w->next_clock = MIN(w->next_clock, w->next_still);
}

/*
 * Check whether the kernel has ended although it is still in RAM: RAM may
 * survive a reset. If the search finds another kernel that runs, set @w->next
 * to that kernel.
 */
static bool has_ended(HtKernelWatch *w, uint64_t t, bool last, unsigned *flags)
{
    g_autoptr(HtGuestKernel) k = NULL;

    if (!w->searching) {
        if (check_clock(w, t, last)) {
            return true;
        }
        if (!w->searching) {
            return false;
        }
    }
    k = search(w, t, last, flags);
    if (k && !ht_guest_kernel_same_boot(k, w->kernel) &&
        is_running(w, k, last)) {
        w->next = g_steal_pointer(&k);
        return true;
    }
    if (!w->searching) {
        pause_search(w);
    }
    return false;
}

/*
 * Test whether formats were added. If a pause of SAMPLE_NS or SAMPLE_LATER_NS
 * is over, also test whether the kernel has changed one of the texts in place.
 */
static bool has_changed(HtKernelWatch *w, uint64_t t)
{
    bool texts = t >= w->next_sample;

    if (texts) {
        w->next_sample = t + (w->pass_ns > PASS_SOON_NS ? SAMPLE_LATER_NS :
                              SAMPLE_NS);
    }
    return ht_kernel_formats_changed(w->formats, texts);
}

/* Read more formats of events. Returns true once all were read once. */
static bool read_formats(HtKernelWatch *w, uint64_t t, bool last,
                         unsigned *flags)
{
    int ret;

    if (!w->passing) {
        w->passing = t >= w->next_pass ||
                     ((t >= w->next_change || last) && has_changed(w, t));
    }
    if (!w->passing) {
        return w->ready;
    }
    ret = ht_kernel_formats_step(w->formats, last ? READS_LAST :
                                 w->pass_ns > PASS_SOON_NS ? READS_LATER :
                                 READS_FIRST);
    if (ret == 0) {
        *flags |= w->ready ? 0 : HT_WATCH_MORE;
        return w->ready;
    }
    /*
     * A step may fail early in the boot, when the kernel's list of events is
     * not complete. If no pass has been completed yet, the next poll tries
     * again.
     */
    w->passing = ret < 0 && !w->ready;
    if (!w->passing) {
        w->next_pass = t + w->pass_ns;
        w->pass_ns = MIN(2 * w->pass_ns, PASS_MAX_NS);
    }
    return w->ready || ret > 0;
}

unsigned ht_kernel_watch_look(HtKernelWatch *w, bool last)
{
    uint64_t t = w->now();
    unsigned flags = 0;

    if (w->gone) {
        release(w);
    }
    if (!w->kernel) {
        g_autoptr(HtGuestKernel) k = g_steal_pointer(&w->next);

        if (!k) {
            k = search(w, t, last, &flags);
            if (!k || !is_running(w, k, last)) {
                return flags;
            }
        }
        adopt(w, g_steal_pointer(&k), t);
        flags |= HT_WATCH_KERNEL;
    }
    if (ht_guest_kernel_check(w->kernel) || has_ended(w, t, last, &flags)) {
        w->gone = true;
        if (!w->next) {
            ht_kernel_search_forget(w->search);
        }
        /*
         * Search again at once, but only if the kernel was known for CLOCK_NS
         * or longer: a hostile guest may make a kernel that ends at each poll.
         */
        if (t - w->adopted_ns >= CLOCK_NS) {
            w->next_search = 0;
        }
        return HT_WATCH_GONE | HT_WATCH_MORE;
    }
    if (!w->formats || !read_formats(w, t, last, &flags)) {
        return flags;
    }
    if (ht_kernel_formats_serial(w->formats) != w->serial && !w->passing) {
        w->serial = ht_kernel_formats_serial(w->formats);
        w->next_change = t + CHANGE_NS * ht_kernel_formats_bytes(w->formats);
        flags |= HT_WATCH_FORMATS;
    }
    if (!w->ready) {
        w->ready = true;
        flags |= HT_WATCH_FOUND;
    }
    return flags;
}

HtGuestKernel *ht_kernel_watch_kernel(const HtKernelWatch *w)
{
    return w->kernel;
}

HtKernelFormatsList *ht_kernel_watch_formats(const HtKernelWatch *w)
{
    return ht_kernel_formats_list(w->formats);
}

const char *ht_kernel_watch_why(const HtKernelWatch *w)
{
    return w->error ? w->error->message : NULL;
}
