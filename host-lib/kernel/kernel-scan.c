/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find a kernel in memory without its image
 */
#include "hypertrace/base.h"
#include "hypertrace/kernel-scan.h"
#include "guest-kernel.h"

/* Memory is read in slices of this size, in bytes. */
#define SLICE           (1u << 20)
#define PAGE            4096u
#define INFO            "OSRELEASE="
/* Maximum number of VMCOREINFO pages tried */
#define FOUND_MAX       16u
/* Maximum number of copies, each of up to HT_SCAN_KERNEL_MAX bytes */
#define COPIES_MAX      32u
#define ARM64_MAGIC     0x38u           /* offset of "ARM\x64" from _text */
#define X86_LINK        UINT64_C(0xffffffff80000000)
#define X86_ALIGN       (UINT64_C(2) << 20)
#define ARM64_HEAD      (UINT64_C(64) << 10)
#define GIB             (UINT64_C(1) << 30)

struct HtKernelScan {
    HtGuestMem mem;
    uint64_t next;
    uint8_t *slice;
    GPtrArray *found;
    unsigned texts;
    unsigned copies;
    /* why the last copy of a kernel is not valid; NULL if it is, or if none */
    GError *why;
};

HtKernelScan *ht_kernel_scan_new(const HtGuestMem *mem)
{
    HtKernelScan *s = g_new0(HtKernelScan, 1);

    s->mem = *mem;
    s->slice = g_malloc(SLICE);
    s->found = g_ptr_array_new_with_free_func(
        (GDestroyNotify)ht_guest_kernel_free);
    return s;
}

void ht_kernel_scan_free(HtKernelScan *s)
{
    if (s) {
        g_ptr_array_unref(s->found);
        g_clear_error(&s->why);
        g_free(s->slice);
        g_free(s);
    }
}

/* Get the value of a line "KEY=VALUE" in a NUL-terminated text */
static bool value_of(const char *text, const char *key, int base,
                     uint64_t *value)
{
    const char *p = text;
    size_t len = strlen(key);

    while (p) {
        if (!strncmp(p, key, len) && p[len] == '=') {
            /* phys_base may be negative. */
            *value = p[len + 1] == '-' ?
                (uint64_t)g_ascii_strtoll(p + len + 1, NULL, base) :
                g_ascii_strtoull(p + len + 1, NULL, base);
            return true;
        }
        p = strchr(p, '\n');
        p = p ? p + 1 : NULL;
    }
    return false;
}

/* Place of _text in memory, computed from a VMCOREINFO */
typedef struct Place {
    HtMachine machine;
    uint64_t text;
    uint64_t phys;
} Place;

static bool read_info(const char *text, Place *p)
{
    uint64_t stext, by;

    if (!value_of(text, "SYMBOL(_stext)", 16, &stext) || !(stext >> 63)) {
        return false;
    }
    if (value_of(text, "NUMBER(phys_base)", 10, &by)) {
        p->machine = HT_MACHINE_X86_64;
        p->text = stext & ~(X86_ALIGN - 1);
        p->phys = p->text - X86_LINK + by;
    } else if (value_of(text, "NUMBER(kimage_voffset)", 16, &by)) {
        p->machine = HT_MACHINE_AARCH64;
        p->text = (stext & ~(ARM64_HEAD - 1)) - ARM64_HEAD;
        p->phys = p->text - by;
    } else {
        return false;
    }
    return p->phys < UINT64_C(1) << 52;
}

/*
 * Copy a kernel out of RAM.  Pages that the guest never used, or that cannot be
 * read, are zero in the copy.
 */
static GBytes *copy_kernel(const HtKernelScan *s, uint64_t offset,
                           uint64_t size)
{
    const HtFtMem *mem = s->mem.mem;
    uint8_t *copy = g_malloc0(size);
    uint64_t at = offset, data;

    while (at < offset + size) {
        uint64_t n = MIN(PAGE - at % PAGE, offset + size - at);

        data = at;
        if (mem->next && (!mem->next(mem->opaque, at, &data) ||
                          data >= offset + size)) {
            break;
        }
        if (data > at) {
            at = data;
            continue;
        }
        ht_ft_mem_copy(mem, at, copy + (at - offset), n);
        at += n;
    }
    return g_bytes_new_take(copy, size);
}

/*
 * Check the page at _text before a copy: it must not be a page that
 * HtFtMem.next leaves out.  On x86 it must not be zero; on arm64 it must have
 * the header of an image.
 */
static bool may_be_text(const HtKernelScan *s, const Place *p, uint64_t offset)
{
    static const uint8_t none[PAGE];
    const HtFtMem *mem = s->mem.mem;
    uint64_t data = offset;
    uint8_t page[PAGE];

    if (mem->size - offset < PAGE ||
        (mem->next && (!mem->next(mem->opaque, offset, &data) ||
                       data >= offset + PAGE)) ||
        ht_ft_mem_copy(mem, offset, page, PAGE)) {
        return false;
    }
    return p->machine == HT_MACHINE_AARCH64 ?
           !memcmp(page + ARM64_MAGIC, "ARM\x64", 4) :
           memcmp(page, none, PAGE) != 0;
}

/* Test whether the kernel is at @offset; if so, add it to the kernels found */
static bool try_offset(HtKernelScan *s, const Place *p, uint64_t offset)
{
    g_autoptr(HtKernelImage) image = NULL;
    g_autoptr(GBytes) bytes = NULL;
    HtGuestKernel *k;
    uint64_t size;

    if (offset >= s->mem.mem->size || offset % PAGE ||
        s->copies >= COPIES_MAX || !may_be_text(s, p, offset)) {
        return false;
    }
    s->copies++;
    size = MIN(HT_SCAN_KERNEL_MAX, s->mem.mem->size - offset);
    bytes = copy_kernel(s, offset, size);
    g_clear_error(&s->why);
    image = ht_kernel_image_from_memory(bytes, p->machine, p->text, &s->why);
    k = image ? ht_guest_kernel_try(&s->mem, image, offset, NULL) : NULL;
    if (k) {
        /*
         * Free the copy's code and data: a guest may have many kernels, and
         * each keeps its image.
         */
        ht_kernel_image_shrink(image);
        g_ptr_array_add(s->found, k);
    }
    return k;
}

/* As try_offset(); @at is the distance from the start of the piece @r */
static bool try_piece(HtKernelScan *s, const Place *p, const HtGuestRange *r,
                      uint64_t at)
{
    return at < r->size && r->size - at > X86_ALIGN &&
           try_offset(s, p, r->offset + at);
}

/*
 * Try the offsets in the memory that the physical address of _text can have,
 * until a kernel is found.  If no ranges are known, try the address as an
 * offset in each piece.  On x86, a piece may continue at 4 GiB after the PCI
 * hole; on arm64, RAM may begin at 1 GiB.
 */
static void try_place(HtKernelScan *s, const Place *p)
{
    HtGuestRange whole = { .size = s->mem.mem->size };
    uint64_t offset;
    unsigned i, j;

    if (s->mem.n) {
        if (!ht_guest_mem_offset(&s->mem, p->phys, &offset, NULL)) {
            try_offset(s, p, offset);
        }
        return;
    }
    for (i = 0; i < MAX(s->mem.n_pieces, 1); i++) {
        const HtGuestRange *r = s->mem.n_pieces ? &s->mem.pieces[i] : &whole;

        if (try_piece(s, p, r, p->phys)) {
            return;
        }
        if (p->machine == HT_MACHINE_AARCH64) {
            if (p->phys >= GIB && try_piece(s, p, r, p->phys - GIB)) {
                return;
            }
            continue;
        }
        for (j = 0; j < HT_X86_LOW_N && p->phys >= 4 * GIB; j++) {
            if (try_piece(s, p, r, p->phys - 4 * GIB + ht_x86_low[j])) {
                return;
            }
        }
    }
}

static void try_page(HtKernelScan *s, const uint8_t *page)
{
    char text[PAGE + 1];
    Place place;

    memcpy(text, page, PAGE);
    text[PAGE] = 0;
    if (s->texts < FOUND_MAX && read_info(text, &place)) {
        s->texts++;
        try_place(s, &place);
    }
}

int ht_kernel_scan_step(HtKernelScan *s, const HtBudget *budget)
{
    const HtFtMem *mem = s->mem.mem;

    while (s->next + PAGE <= mem->size) {
        uint64_t n, at, data = s->next;
        int ret;

        if (mem->next) {
            if (!mem->next(mem->opaque, s->next, &data)) {
                break;
            }
            data -= data % PAGE;
        }
        s->next = MAX(s->next, data);
        if (s->next + PAGE > mem->size) {
            break;
        }
        /* Do not read beyond the next hole. */
        n = MIN(SLICE, (mem->size - s->next) & ~(uint64_t)(PAGE - 1));
        for (at = PAGE; mem->next && at < n; at += PAGE) {
            if (!mem->next(mem->opaque, s->next + at, &data) ||
                data >= s->next + at + PAGE) {
                n = at;
            }
        }
        ret = ht_ft_mem_copy(mem, s->next, s->slice, n);
        if (ret == -ESRCH) {
            return ret;
        }
        for (at = 0; !ret && at < n; at += PAGE) {
            if (!memcmp(s->slice + at, INFO, strlen(INFO))) {
                try_page(s, s->slice + at);
            }
        }
        s->next += n;
        if (ht_budget_is_over(budget)) {
            return 0;
        }
    }
    s->next = mem->size;
    return 1;
}

double ht_kernel_scan_progress(const HtKernelScan *s)
{
    return s->mem.mem->size ? (double)s->next / s->mem.mem->size : 1;
}

HtGuestKernel *ht_kernel_scan_take(HtKernelScan *s, GError **error)
{
    unsigned alive, with_clock;
    unsigned best = ht_guest_kernel_newest(s->found, &alive, &with_clock);

    if (!alive) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "no kernel was found in the guest's memory%s%s; give its "
                    "image with --kernel FILE", s->texts ? ": " : "",
                    !s->texts ? "" : s->why ? s->why->message :
                    "its page tables do not map it");
        return NULL;
    }
    return g_ptr_array_steal_index(s->found, best);
}
