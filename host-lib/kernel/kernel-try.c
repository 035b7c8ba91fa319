/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test whether a kernel is at an offset of the memory
 *
 * The line of /proc/version proves the build.  The slide is the difference
 * between the address of the first system call's handler in the sys_call_table
 * in memory and that handler's link address.  The physical address of the
 * kernel's first byte is read from the kernel's page tables (x86), or computed
 * from kimage_voffset and checked by the page tables (arm64); it must fit the
 * offset.  The page tables also show that the kernel has initialized itself.
 * An image that was unpacked but not relocated yet, or a copy in the page
 * cache, fails one of these checks.
 */
#include "guest-kernel.h"
#include "hypertrace/kernel-space.h"

#define BANNER_MAX      512u
#define GIB             (UINT64_C(1) << 30)
/* Maximum size of a kernel, from _text to _end */
#define KERNEL_MAX      (UINT64_C(1) << 30)

/* x86-64 */
#define X86_LINK        UINT64_C(0xffffffff80000000)
#define X86_ADDRESS     UINT64_C(0x000ffffffffff000)
#define X86_PMD         (UINT64_C(1) << 21)
#define X86_DIRECT_4    UINT64_C(0xffff888000000000)
#define X86_DIRECT_5    UINT64_C(0xff11000000000000)
/*
 * Minimum distance in bytes from the start of a kernel below the PCI hole to
 * the hole: such a kernel does not continue after the hole
 */
#define KERNEL_MIN      X86_PMD

const uint64_t ht_x86_low[HT_X86_LOW_N] = {
    2 * GIB, 3 * GIB, UINT64_C(0xb0000000), UINT64_C(0xe0000000),
};

/*
 * Return the link address of a symbol; 0 if the image does not have it.  While
 * a candidate is being checked, HtGuestKernel.text is a link address, too.
 */
static uint64_t link_of(const HtGuestKernel *k, const char *name)
{
    uint64_t addr;

    return ht_symbols_address(ht_kernel_image_symbols(k->image), name,
                              &addr) ? addr : 0;
}

/* Read a word of the kernel at a link address; 0 if that fails */
static uint64_t word_of(const HtGuestKernel *k, uint64_t link, unsigned size)
{
    uint8_t bytes[8];

    if (link < k->text || link - k->text > KERNEL_MAX ||
        ht_ft_mem_copy(k->mem.mem, k->offset + (link - k->text), bytes,
                       size)) {
        return 0;
    }
    return ht_get_le(bytes, size, false);
}

static uint64_t word(const HtGuestKernel *k, const char *name, unsigned size)
{
    uint64_t link = link_of(k, name);

    return link ? word_of(k, link, size) : 0;
}

static bool has_banner(const HtGuestKernel *k, const HtKernelImage *image)
{
    uint64_t link = link_of(k, "linux_banner");
    size_t len = strlen(ht_kernel_image_version(image));
    char is[BANNER_MAX];

    return link >= k->text && link - k->text < KERNEL_MAX &&
           len < sizeof(is) &&
           !ht_ft_mem_copy(k->mem.mem, k->offset + (link - k->text), is,
                           len) &&
           ht_kernel_image_has_banner(image, is, len);
}

/* Find KASLR's slide from the address of the first system call's handler */
static bool find_slide(HtGuestKernel *k, const char *handler, uint64_t step)
{
    uint64_t table = word(k, "sys_call_table", 8);
    uint64_t link = link_of(k, handler);

    if (!link || !(table >> 63) || (table - link) % step) {
        return false;
    }
    k->slide = table - link;
    return true;
}

/*
 * Get the next piece that contains the kernel, from index @i on.  Several
 * pieces may contain it: see HtGuestMem.pieces.
 */
static bool next_piece(const HtGuestKernel *k, unsigned *i, HtGuestRange *piece)
{
    if (!k->mem.n_pieces && !*i) {
        *piece = (HtGuestRange) {
            .size = k->mem.mem->size & ~UINT64_C(4095),
        };
        ++*i;
        return true;
    }
    while (*i < k->mem.n_pieces) {
        *piece = k->mem.pieces[(*i)++];
        if (k->offset >= piece->offset &&
            k->offset - piece->offset < piece->size) {
            return true;
        }
    }
    return false;
}

/* Test whether the ranges of RAM place the kernel at its physical address */
static bool agrees(const HtGuestKernel *k)
{
    uint64_t phys;

    return !ht_guest_mem_phys(&k->mem, k->offset, &phys) && phys == k->phys;
}

/*
 * Find the physical address of _text in the kernel's table of 2 MiB pages.
 * The kernel maps parts of itself by small pages.  Their table may be anywhere
 * in RAM, so an entry of a large page is preferred.
 */
static bool x86_base(const HtGuestKernel *k, const HtGuestRange *r,
                     uint64_t pmd, uint64_t *base)
{
    uint64_t first = (k->text + k->slide - X86_LINK) / X86_PMD;
    uint64_t n = (link_of(k, "_end") - k->text) / X86_PMD, entry, offset, i;
    uint8_t bytes[8];

    for (i = 0; i <= n && first + i < 512; i++) {
        entry = word_of(k, pmd + (first + i) * 8, 8);
        if ((entry & 0x81) == 0x81) {
            *base = (entry & X86_ADDRESS & ~(X86_PMD - 1)) - i * X86_PMD;
            return true;
        }
    }
    entry = word_of(k, pmd + first * 8, 8);
    if (!(entry & 1)) {
        return false;
    }
    /* Without ranges, assume that the table is below the PCI hole. */
    offset = r->offset + (entry & X86_ADDRESS);
    if ((k->mem.n && ht_guest_mem_offset(&k->mem, entry & X86_ADDRESS,
                                         &offset, NULL)) ||
        ht_ft_mem_copy(k->mem.mem, offset, bytes, 8)) {
        return false;
    }
    *base = ht_get_le64(bytes) & X86_ADDRESS;
    return true;
}

/*
 * x86-64: find the physical address to which the kernel's page tables map
 * _text, and the layout of these tables
 */
static bool x86_place(HtGuestKernel *k, const HtGuestRange *r)
{
    uint64_t pmd = link_of(k, "level2_kernel_pgt");
    uint64_t top = link_of(k, "init_top_pgt");
    uint64_t l3 = link_of(k, "level3_kernel_pgt");
    uint64_t l4 = link_of(k, "level4_kernel_pgt");
    uint64_t text = k->text, last, base;

    if (!pmd || !top || !l3 || k->text + k->slide < X86_LINK ||
        k->text + k->slide - X86_LINK >= GIB) {
        return false;
    }
    if (!x86_base(k, r, pmd, &base)) {
        return false;
    }
    last = word_of(k, top + 511 * 8, 8) & X86_ADDRESS;
    k->phys = base;
    k->pages.root = base + (top - text);
    k->pages.shift = 12;
    if (last == base + (l3 - text)) {
        k->pages.levels = 4;
        k->pages.va_bits = 48;
    } else if (l4 && last == base + (l4 - text)) {
        k->pages.levels = 5;
        k->pages.va_bits = 57;
    } else {
        return false;
    }
    return true;
}

static bool usual_low(uint64_t below)
{
    unsigned i;

    for (i = 0; i < HT_X86_LOW_N; i++) {
        if (below == ht_x86_low[i]) {
            return true;
        }
    }
    return false;
}

/*
 * x86-64: find the ranges of RAM from the piece @r, which holds the kernel.
 * Without NUMA nodes, a PC's RAM is one piece; its part above the PCI hole
 * continues at 4 GiB.  The kernel stores the end of RAM (max_pfn).  If RAM has
 * several pieces (NUMA nodes), the ranges cover only @r.  With @usual, refuse a
 * kernel above 4 GiB if RAM below the hole would not have a usual size.
 */
static bool x86_ranges(HtGuestKernel *k, const HtGuestRange *r, bool usual)
{
    uint64_t at = k->offset - r->offset, below = r->size;
    uint64_t top = word(k, "max_pfn", 8) << 12;

    if (!r->size || !top) {
        return false;
    }
    if (k->phys == at) {
        if (top > 4 * GIB && top - 4 * GIB < r->size) {
            below = r->size - (top - 4 * GIB);
        }
    } else if (k->phys >= 4 * GIB && at >= k->phys - 4 * GIB) {
        below = at - (k->phys - 4 * GIB);
        if (usual && !usual_low(below)) {
            return false;
        }
    } else {
        /*
         * The physical address of the kernel does not fit if @r is all of a
         * PC's RAM.  If the memory has several pieces, take @r for a NUMA node
         * after the first node.  If @r is the only piece, a copy of a kernel
         * was found: refuse the copy.
         */
        return k->mem.n_pieces > 1 && k->phys > at &&
               !ht_guest_mem_add(&k->mem, k->phys - at, r->size, r->offset);
    }
    if (below > 4 * GIB || below > r->size ||
        (k->phys < 4 * GIB && below < k->phys + KERNEL_MIN)) {
        return false;
    }
    return !ht_guest_mem_add(&k->mem, 0, below, r->offset) &&
           (below == r->size ||
            !ht_guest_mem_add(&k->mem, 4 * GIB, r->size - below,
                              r->offset + below));
}

static bool try_x86(HtGuestKernel *k)
{
    HtGuestRange r = { 0 };
    unsigned i, any;

    if (!find_slide(k, "__x64_sys_read", X86_PMD)) {
        return false;
    }
    if (k->mem.n) {
        return x86_place(k, &r) && agrees(k);
    }
    /*
     * If several pieces contain a kernel above 4 GiB, each may be RAM.  First
     * try the pieces that give RAM below the PCI hole a usual size.
     */
    for (any = 0; any < 2; any++) {
        for (i = 0; next_piece(k, &i, &r); ) {
            if (x86_place(k, &r) && x86_ranges(k, &r, !any)) {
                return true;
            }
        }
    }
    return false;
}

static unsigned arm64_page_shift(const HtGuestKernel *k)
{
    static const unsigned shifts[] = { 0, 12, 14, 16 };
    uint64_t link = link_of(k, "_text");
    const uint8_t *header = ht_kernel_image_bytes(k->image, link, 64);

    return header && !memcmp(header + 56, "ARM\x64", 4) ?
        shifts[header[24] >> 1 & 3] : 0;
}

/* Test whether the page tables map _text to its physical address */
static bool maps_itself(HtGuestKernel *k)
{
    uint64_t phys, left;

    return !ht_pages_walk(&k->mem, &k->pages, k->text + k->slide, &phys,
                          &left) && phys == k->phys;
}

/* arm64: find the width of kernel addresses: it depends on build and CPU */
static bool arm64_levels(HtGuestKernel *k)
{
    static const unsigned widths[] = { 48, 52, 47, 39, 42, 36 };
    unsigned per_level = k->pages.shift - 3, i;

    for (i = 0; i < G_N_ELEMENTS(widths); i++) {
        k->pages.va_bits = widths[i];
        k->pages.levels = (widths[i] - k->pages.shift + per_level - 1) /
                          per_level;
        if (maps_itself(k)) {
            return true;
        }
    }
    return false;
}

static bool try_arm64(HtGuestKernel *k)
{
    uint64_t voffset, root = link_of(k, "swapper_pg_dir");
    HtGuestRange r = { 0 };
    unsigned first = 0;
    uint64_t at;

    k->pages.shift = arm64_page_shift(k);
    if (!k->pages.shift || !root ||
        (!k->mem.n && !next_piece(k, &first, &r)) ||
        !find_slide(k, "__arm64_sys_io_setup", 4096)) {
        return false;
    }
    voffset = word(k, "kimage_voffset", 8);
    k->phys = k->text + k->slide - voffset;
    if (!voffset || k->phys % 4096 || k->phys >> 52) {
        return false;
    }
    k->pages.root = k->phys + (root - k->text);
    at = k->offset - r.offset;
    if (k->mem.n ? !agrees(k) :
        !r.size || k->phys < at ||
        ht_guest_mem_add(&k->mem, k->phys - at, r.size, r.offset)) {
        return false;
    }
    return arm64_levels(k);
}

/*
 * Set the direct map to begin at @virt, with the physical address @phys, if the
 * page tables confirm this
 */
static bool direct_at(HtGuestKernel *k, uint64_t virt, uint64_t phys)
{
    uint64_t is, left, end = 0;
    unsigned i;

    if (!virt || k->phys < phys ||
        ht_pages_walk(&k->mem, &k->pages, virt + (k->phys - phys), &is,
                      &left) || is != k->phys) {
        return false;
    }
    k->direct = virt;
    k->direct_phys = phys;
    /* Other areas may follow the direct map: limit it to the end of RAM. */
    for (i = 0; i < k->mem.n; i++) {
        end = MAX(end, k->mem.ranges[i].phys + k->mem.ranges[i].size);
    }
    k->direct_size = end > phys ? end - phys : 0;
    return true;
}

void ht_guest_kernel_direct_map(HtGuestKernel *k)
{
    const HtKernelSpace space = ht_kernel_space_of(k);
    uint64_t at, base = k->direct, start = k->direct_phys;

    if (k->pages.machine == HT_MACHINE_X86_64) {
        if (ht_guest_kernel_symbol(k, "page_offset_base", &at)) {
            base = k->pages.levels == 5 ? X86_DIRECT_5 : X86_DIRECT_4;
        } else if (ht_kernel_space_u64_again(&space, at, &base)) {
            base = 0;
        }
        start = 0;
    } else if (ht_guest_kernel_symbol(k, "memstart_addr", &at) ||
               ht_kernel_space_u64_again(&space, at, &start)) {
        base = start = 0;
    } else {
        base = UINT64_MAX << k->pages.va_bits;
        /*
         * memstart_addr may be negative in a kernel for 52-bit addresses, on a
         * CPU with 48-bit addresses.
         */
        if ((int64_t)start < 0) {
            base -= start;
            start = 0;
        }
    }
    if (k->direct_size && base == k->direct && start == k->direct_phys) {
        return;
    }
    k->direct_size = 0;
    direct_at(k, base, start);
}

/*
 * Find the addresses of the clocks.  The kernel's types have the offset of the
 * wall clock in timekeeper_data or tk_core.
 */
static void find_clocks(HtGuestKernel *k)
{
    const HtBtf *btf = ht_kernel_image_btf(k->image);
    uint32_t seconds, lock, keeper;

    if (ht_guest_kernel_symbol(k, "jiffies_64", &k->jiffies_at)) {
        k->jiffies_at = 0;
    }
    if (!btf || ht_btf_offset(btf, "timekeeper", "xtime_sec", &seconds,
                              NULL)) {
        return;
    }
    if (!ht_guest_kernel_symbol(k, "timekeeper_data", &k->time_at) ||
        !ht_guest_kernel_symbol(k, "tk_core", &k->time_at)) {
        /*
         * From 6.13 on, tk_core is a struct tk_data; before, it is a lock and a
         * timekeeper.
         */
        if (ht_btf_offset(btf, "tk_data", "timekeeper", &keeper, NULL)) {
            if (ht_btf_struct_size(btf, "seqcount_raw_spinlock_t", &lock) &&
                ht_btf_struct_size(btf, "seqcount_t", &lock)) {
                k->time_at = 0;
                return;
            }
            keeper = HT_ROUND_UP(lock, 8);
        }
        k->time_at += keeper + seconds;
    }
}

/*
 * Find and read the stack canary of the first task, a random number by which
 * two boots of a kernel differ
 */
static void find_canary(HtGuestKernel *k)
{
    const HtBtf *btf = ht_kernel_image_btf(k->image);
    uint32_t canary;

    if (btf && !ht_guest_kernel_symbol(k, "system_state", &k->state_at) &&
        !ht_guest_kernel_symbol(k, "init_task", &k->canary_at) &&
        !ht_btf_offset(btf, "task_struct", "stack_canary", &canary, NULL)) {
        k->canary_at += canary;
    } else {
        k->canary_at = 0;
    }
    if (ht_guest_kernel_canary(k, &k->canary)) {
        k->canary = 0;
    }
}

HtGuestKernel *ht_guest_kernel_try(const HtGuestMem *mem, HtKernelImage *image,
                                   uint64_t offset, bool *early)
{
    g_autoptr(HtGuestKernel) k = g_new0(HtGuestKernel, 1);
    uint64_t end;

    k->mem = *mem;
    k->image = ht_kernel_image_ref(image);
    k->pages.machine = ht_kernel_image_machine(image);
    k->offset = offset;
    k->text = link_of(k, "_text");
    end = link_of(k, "_end");
    if (end <= k->text || end - k->text > KERNEL_MAX ||
        end - k->text > mem->mem->size ||
        offset > mem->mem->size - (end - k->text) || !has_banner(k, image)) {
        return NULL;
    }
    if (!(k->pages.machine == HT_MACHINE_X86_64 ? try_x86(k) : try_arm64(k))) {
        if (early) {
            *early = true;
        }
        return NULL;
    }
    k->text += k->slide;
    k->end = end + k->slide;
    ht_guest_kernel_direct_map(k);
    find_clocks(k);
    find_canary(k);
    return g_steal_pointer(&k);
}
