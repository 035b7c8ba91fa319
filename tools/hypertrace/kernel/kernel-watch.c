/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the kernel in a guest's memory
 */
#include "hypertrace/base.h"
#include "kernel/kernel-watch.h"

/* Time in us that a step of the search may take */
#define SEARCH_US       2000
/*
 * Pause in ns between searches, from SEARCH_NS to PAUSE_MAX: as long as the
 * search took or, after EAGER_NS without a kernel, PAUSE_LATER times as long.
 * Searches thus use half of a processor at first, 1 % later.
 */
#define SEARCH_NS       UINT64_C(2000000)
#define EAGER_NS        UINT64_C(30000000000)
#define PAUSE_LATER     99
#define PAUSE_MAX       UINT64_C(2000000000)
/* Number of event formats read in a poll, in the first passes and later */
#define EVENTS_FIRST    128u
#define EVENTS_LATER    16u
/* Period in ns at which the kernel's clock is checked */
#define CLOCK_NS        UINT64_C(1000000000)
/*
 * Pause in ns after the first pass over all formats.  It doubles after each
 * pass.  A pass finds texts that the kernel changes in place: early in the boot
 * it replaces the names of enumerators by their values.
 */
#define PASS_NS         UINT64_C(1000000000)
/* Longest pause after a pass that reads EVENTS_FIRST formats in a poll */
#define PASS_SOON_NS    (4 * PASS_NS)

struct HtKernelWatch {
    HtKernelSearch *search;
    bool searching;             /* @search is under way */
    bool wants_formats;
    uint64_t searched_ns;       /* duration of this search so far */
    uint64_t missing_since;     /* time in ns since which no kernel is known */
    uint64_t (*now)(void);
    HtGuestKernel *kernel;
    HtKernelFormats *formats;
    bool ready;                 /* HT_WATCH_FOUND was returned */
    bool gone;                  /* HT_WATCH_GONE was returned */
    uint64_t next_search;
    uint64_t next_clock;
    HtKernelClock clock;
    /* a pass over the formats has begun and not ended */
    bool passing;
    uint64_t next_pass;
    uint64_t pass_ns;
    /* ht_kernel_formats_serial() when the formats were last reported */
    unsigned serial;
    GError *error;
};

HtKernelWatch *ht_kernel_watch_new(const HtFtMem *mem, HtKernelImage *image,
                                   bool formats, uint64_t (*now)(void))
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
    g_clear_pointer(&w->kernel, ht_guest_kernel_free);
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
        ht_kernel_search_free(w->search);
        g_clear_error(&w->error);
        g_free(w);
    }
}

/* Do a step of the search. Returns NULL until a kernel is found. */
static HtGuestKernel *search(HtKernelWatch *w, uint64_t t, bool last,
                             unsigned *flags)
{
    HtGuestKernel *k = NULL;
    int ret;

    if (!w->searching) {
        if (t < w->next_search && !last) {
            return NULL;
        }
        ht_kernel_search_restart(w->search);
        w->searching = true;
        w->searched_ns = 0;
    }
    ret = ht_kernel_search_step(w->search, last ? 0 : SEARCH_US);
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

static void adopt(HtKernelWatch *w, HtGuestKernel *k, uint64_t t)
{
    w->kernel = k;
    w->next_clock = t + CLOCK_NS;
    w->clock = (HtKernelClock) { 0 };
    w->pass_ns = PASS_NS;
    if (w->wants_formats) {
        w->formats = ht_kernel_formats_of(k, w->error ? NULL : &w->error);
    }
    w->passing = w->formats;
    w->serial = 0;
}

/*
 * Check whether the kernel has ended.  RAM survives a reset, also with the data
 * of the previous kernel.  If the kernel's clock stands still, or was
 * overwritten, another kernel may have booted: search again.  If the kernel's
 * ticks went back, the same kernel has booted again at the same address.
 */
static bool has_ended(HtKernelWatch *w, uint64_t t, bool last, unsigned *flags)
{
    HtKernelClock clock;
    bool dead = false;

    if (!w->searching) {
        int ret = t < w->next_clock && !last ? -EAGAIN :
                  ht_guest_kernel_clock(w->kernel, &clock);

        if (ret && ret != -ERANGE) {
            return false;
        }
        w->next_clock = t + CLOCK_NS;
        dead = !ret && clock.jiffies < w->clock.jiffies;
        w->searching = ret || (!dead && clock.jiffies == w->clock.jiffies);
        w->clock = clock;
        if (w->searching) {
            ht_kernel_search_restart(w->search);
            w->searched_ns = 0;
        }
    }
    if (w->searching) {
        HtGuestKernel *k = search(w, t, last, flags);

        dead = k && (ht_guest_kernel_phys(k) !=
                     ht_guest_kernel_phys(w->kernel) ||
                     ht_guest_kernel_slide(k) !=
                     ht_guest_kernel_slide(w->kernel));
        ht_guest_kernel_free(k);
    }
    return dead;
}

/* Read more formats of events.  Returns true if all are known. */
static bool read_formats(HtKernelWatch *w, uint64_t t, bool last,
                         unsigned *flags)
{
    int ret;

    if (!w->passing) {
        w->passing = t >= w->next_pass ||
                     ht_kernel_formats_changed(w->formats);
    }
    if (!w->passing) {
        return w->ready;
    }
    ret = ht_kernel_formats_step(w->formats, last ? HT_KERNEL_EVENTS_MAX :
                                 w->pass_ns > PASS_SOON_NS ? EVENTS_LATER :
                                 EVENTS_FIRST);
    if (ret == 0) {
        *flags |= w->ready ? 0 : HT_WATCH_MORE;
        return w->ready;
    }
    /* Early in the boot, the kernel's list of events is not complete. */
    w->passing = ret < 0 && !w->ready;
    if (!w->passing) {
        w->next_pass = t + w->pass_ns;
        w->pass_ns *= 2;
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
        HtGuestKernel *k = search(w, t, last, &flags);

        if (!k) {
            return flags;
        }
        adopt(w, k, t);
        flags |= HT_WATCH_KERNEL;
    }
    if (ht_guest_kernel_check(w->kernel) || has_ended(w, t, last, &flags)) {
        w->gone = true;
        w->next_search = 0;
        return HT_WATCH_GONE | HT_WATCH_MORE;
    }
    if (!w->formats || !read_formats(w, t, last, &flags)) {
        return flags;
    }
    if (ht_kernel_formats_serial(w->formats) != w->serial && !w->passing) {
        w->serial = ht_kernel_formats_serial(w->formats);
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

GString *ht_kernel_watch_formats(const HtKernelWatch *w)
{
    return ht_kernel_formats_text(w->formats);
}

const char *ht_kernel_watch_why(const HtKernelWatch *w)
{
    return w->error ? w->error->message : NULL;
}
