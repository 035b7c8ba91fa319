/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: search a guest's memory for its kernel
 *
 * Kernels begin at physical addresses that are multiples of 2 MiB (x86, and
 * arm64 without UEFI) or of 64 KiB (arm64 with UEFI).  At each candidate, the
 * search compares the start of the line of /proc/version.
 */
#include "guest-kernel.h"

#define X86_ALIGN       (UINT64_C(2) << 20)
#define ARM64_ALIGN     (UINT64_C(64) << 10)
/* Maximum number of kernels that a search keeps; it ignores later ones */
#define FOUND_MAX       64u
/* Number of bytes of the version line that are compared first */
#define LOOK            32u

/* A kernel of the previous pass */
typedef struct Seen {
    uint64_t offset;
    uint64_t slide;
    uint64_t ticks;             /* tick count when the pass ended */
    /* monotonic time in us of the first pass that read this value of @ticks */
    int64_t us;
} Seen;

/*
 * Maximum rate of a kernel's ticks, in 1/ms (CONFIG_HZ is at most 1000), and
 * the number of ticks by which a busy guest may exceed it
 */
#define TICKS_PER_MS    1
#define TICKS_MORE      1000

struct HtKernelSearch {
    HtGuestMem mem;
    HtKernelImage *image;
    uint64_t align;
    /* distance in bytes from _text to linux_banner */
    uint64_t banner;
    bool possible;              /* the image has the symbols that are needed */
    HtGuestRange spans[HT_GUEST_RANGES_MAX];
    unsigned n_spans;
    unsigned span;
    /* offset in the span of the next candidate for _text */
    uint64_t next;
    GPtrArray *found;           /* elements: HtGuestKernel */
    GArray *seen;               /* elements: Seen */
    bool early;                 /* as set by ht_guest_kernel_try() */
};

/* Test whether all candidates of @piece are candidates of an earlier span */
static bool is_within(const HtGuestRange *piece, const HtKernelSearch *s)
{
    unsigned i;

    for (i = 0; i < s->n_spans; i++) {
        const HtGuestRange *r = &s->spans[i];

        if (piece->offset >= r->offset && piece->size <= r->size &&
            piece->offset - r->offset <= r->size - piece->size &&
            (piece->offset - r->offset) % s->align == 0) {
            return true;
        }
    }
    return false;
}

HtKernelSearch *ht_kernel_search_new(const HtGuestMem *mem,
                                     HtKernelImage *image)
{
    const HtSymbols *symbols = ht_kernel_image_symbols(image);
    const HtGuestRange *spans = mem->n ? mem->ranges : mem->pieces;
    HtKernelSearch *s = g_new0(HtKernelSearch, 1);
    uint64_t text, banner, table;
    unsigned i;

    s->mem = *mem;
    s->image = ht_kernel_image_ref(image);
    s->align = ht_kernel_image_machine(image) == HT_MACHINE_X86_64 ?
        X86_ALIGN : ARM64_ALIGN;
    s->found = g_ptr_array_new_with_free_func(
        (GDestroyNotify)ht_guest_kernel_free);
    s->seen = g_array_new(false, false, sizeof(Seen));
    s->possible = ht_symbols_address(symbols, "_text", &text) &&
                  ht_symbols_address(symbols, "linux_banner", &banner) &&
                  ht_symbols_address(symbols, "sys_call_table", &table) &&
                  banner > text;
    s->banner = s->possible ? banner - text : 0;
    for (i = 0; i < (mem->n ?: mem->n_pieces); i++) {
        if (!is_within(&spans[i], s)) {
            s->spans[s->n_spans++] = spans[i];
        }
    }
    if (!s->n_spans) {
        s->spans[0] = (HtGuestRange) { .size = mem->mem->size };
        s->n_spans = 1;
    }
    ht_kernel_search_restart(s);
    return s;
}

void ht_kernel_search_free(HtKernelSearch *s)
{
    if (s) {
        ht_kernel_image_unref(s->image);
        g_ptr_array_unref(s->found);
        g_array_unref(s->seen);
        g_free(s);
    }
}

void ht_kernel_search_restart(HtKernelSearch *s)
{
    g_ptr_array_set_size(s->found, 0);
    s->early = false;
    s->span = 0;
    s->next = 0;
}

void ht_kernel_search_forget(HtKernelSearch *s)
{
    g_array_set_size(s->seen, 0);
}

/*
 * Return the first place in the span @r, from @place on, with an aligned
 * physical address; without ranges of RAM, with an aligned offset in the span
 */
static uint64_t align_up(const HtKernelSearch *s, const HtGuestRange *r,
                         uint64_t place)
{
    uint64_t phase = (r->phys + place) % s->align;

    return phase ? place + (s->align - phase) : place;
}

static int try_place(HtKernelSearch *s, uint64_t offset)
{
    size_t len = MIN(strlen(ht_kernel_image_version(s->image)), LOOK);
    HtGuestKernel *k;
    char is[LOOK];
    int ret = ht_ft_mem_copy(s->mem.mem, offset + s->banner, is, len);

    /* Skip a page that cannot be read, unless the process has ended. */
    if (ret) {
        return ret == -ESRCH ? ret : 0;
    }
    if (!ht_kernel_image_has_banner(s->image, is, len) ||
        s->found->len == FOUND_MAX) {
        return 0;
    }
    k = ht_guest_kernel_try(&s->mem, s->image, offset, &s->early);
    if (k) {
        g_ptr_array_add(s->found, k);
    }
    return 0;
}

int ht_kernel_search_step(HtKernelSearch *s, const HtBudget *budget)
{
    const HtFtMem *mem = s->mem.mem;
    bool begun = false;

    while (s->possible && s->span < s->n_spans) {
        const HtGuestRange *r = &s->spans[s->span];
        uint64_t place = align_up(s, r, s->next), at, data;
        int ret;

        if (place >= r->size || s->banner + LOOK > r->size - place) {
            s->span++;
            s->next = 0;
            continue;
        }
        if (begun && ht_budget_is_over(budget)) {
            return 0;
        }
        begun = true;
        at = r->offset + place + s->banner;
        if (mem->next) {
            if (!mem->next(mem->opaque, at, &data) ||
                data - r->offset >= r->size) {
                s->span++;
                s->next = 0;
                continue;
            }
            if (data > at) {
                s->next = MAX(place + 1, data - r->offset - s->banner);
                continue;
            }
        }
        s->next = place + 1;
        ret = try_place(s, r->offset + place);
        if (ret) {
            return ret;
        }
    }
    return 1;
}

unsigned ht_kernel_search_found(const HtKernelSearch *s)
{
    return s->found->len;
}

static void not_found(const HtKernelSearch *s, GError **error)
{
    const char *release = ht_kernel_image_release(s->image);

    if (!s->possible) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "the kernel %s was built without CONFIG_KALLSYMS_ALL: its "
                    "symbols do not include variables, so its data cannot be "
                    "found.  Names of functions and boot-mapped rings still "
                    "work", release);
    } else if (s->early || s->found->len) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_AGAIN,
                    "the kernel %s is in the guest's memory, but has not set "
                    "itself up yet; try again", release);
    } else {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "the kernel %s is not in the guest's memory: it has not "
                    "started yet, or the guest runs a different kernel",
                    release);
    }
}

static const Seen *find_seen(const HtKernelSearch *s, const HtGuestKernel *k)
{
    unsigned i;

    for (i = 0; i < s->seen->len; i++) {
        const Seen *was = &g_array_index(s->seen, Seen, i);

        if (was->offset == k->offset && was->slide == k->slide) {
            return was;
        }
    }
    return NULL;
}

/*
 * Test whether a kernel's ticks have advanced, by a number that is possible in
 * the time between the two readings.  While a guest is idle, its ticks may
 * stand still for seconds and then advance by the ticks of this time.
 */
static bool has_moved(const Seen *was, const Seen *now)
{
    uint64_t ms = (now->us - was->us) / 1000;

    return now->ticks > was->ticks &&
           now->ticks - was->ticks <= TICKS_PER_MS * ms + TICKS_MORE;
}

/*
 * Compare the ticks of the kernels with those of the previous pass.  The memory
 * of a dead kernel may change, too, when the next kernel uses it: then the
 * difference is seldom a plausible number of ticks.
 */
static void find_moving(HtKernelSearch *s)
{
    GArray *seen = g_array_new(false, false, sizeof(Seen));
    unsigned i;

    for (i = 0; i < s->found->len; i++) {
        HtGuestKernel *k = s->found->pdata[i];
        const Seen *was = find_seen(s, k);
        HtKernelClock clock;

        if (!ht_guest_kernel_clock(k, &clock)) {
            Seen now = { .offset = k->offset, .slide = k->slide,
                         .ticks = clock.jiffies,
                         .us = g_get_monotonic_time() };

            k->moves = was && has_moved(was, &now);
            if (was && was->ticks == now.ticks) {
                now.us = was->us;
            }
            g_array_append_val(seen, now);
        }
    }
    g_array_unref(s->seen);
    s->seen = seen;
}

HtGuestKernel *ht_kernel_search_take(HtKernelSearch *s, GError **error)
{
    unsigned alive, with_clock, best;

    find_moving(s);
    best = ht_guest_kernel_newest(s->found, &alive, &with_clock);
    if (!alive) {
        not_found(s, error);
        return NULL;
    }
    if (alive > 1 && !with_clock) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "%u kernels are in the guest's memory, and the clocks "
                    "that tell the living one cannot be read: the kernel was "
                    "built without CONFIG_DEBUG_INFO_BTF", alive);
        return NULL;
    }
    return g_ptr_array_steal_index(s->found, best);
}

HtGuestKernel *ht_guest_kernel_find(const HtGuestMem *mem,
                                    HtKernelImage *image, GError **error)
{
    g_autoptr(HtKernelSearch) s = ht_kernel_search_new(mem, image);
    int ret = ht_kernel_search_step(s, NULL);

    if (ret < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(-ret),
                    "cannot read the guest's memory: %s", g_strerror(-ret));
        return NULL;
    }
    return ht_kernel_search_take(s, error);
}
