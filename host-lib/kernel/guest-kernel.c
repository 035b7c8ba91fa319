/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: read a guest's kernel at the kernel's virtual addresses */
#include "guest-kernel.h"
#include "hypertrace/kernel-space.h"

void ht_guest_kernel_free(HtGuestKernel *k)
{
    if (k) {
        ht_kernel_image_unref(k->image);
        g_free(k);
    }
}

HtKernelImage *ht_guest_kernel_image(const HtGuestKernel *k)
{
    return k->image;
}

const HtGuestMem *ht_guest_kernel_memory(const HtGuestKernel *k)
{
    return &k->mem;
}

uint64_t ht_guest_kernel_slide(const HtGuestKernel *k)
{
    return k->slide;
}

uint64_t ht_guest_kernel_phys(const HtGuestKernel *k)
{
    return k->phys;
}

unsigned ht_guest_kernel_page_size(const HtGuestKernel *k)
{
    return 1u << k->pages.shift;
}

unsigned ht_guest_kernel_levels(const HtGuestKernel *k)
{
    return k->pages.levels;
}

int ht_guest_kernel_symbol(const HtGuestKernel *k, const char *name,
                           uint64_t *addr)
{
    if (!ht_symbols_address(ht_kernel_image_symbols(k->image), name, addr)) {
        return -ENOENT;
    }
    /* KASLR does not move per-CPU symbols that are offsets (bit 63 is 0). */
    if (*addr >> 63) {
        *addr += k->slide;
    }
    return 0;
}

int ht_guest_kernel_offset(HtGuestKernel *k, uint64_t addr, uint64_t *offset,
                           uint64_t *left)
{
    uint64_t size = UINT64_C(1) << k->pages.shift, page = addr & ~(size - 1);
    HtPageCache *c = &k->cache[page >> k->pages.shift & (HT_PAGE_CACHE - 1)];
    uint64_t phys, in_page, in_range;
    int ret;

    if (addr >= k->text && addr < k->end) {
        *offset = k->offset + (addr - k->text);
        if (left) {
            *left = k->end - addr;
        }
        return 0;
    }
    if (addr >= k->direct && addr - k->direct < k->direct_size) {
        return ht_guest_mem_offset(&k->mem,
                                   k->direct_phys + (addr - k->direct),
                                   offset, left);
    }
    if (c->page != page + 1) {
        ret = ht_pages_walk(&k->mem, &k->pages, page, &phys, &in_page);
        if (!ret) {
            ret = ht_guest_mem_offset(&k->mem, phys, offset, &in_range);
        }
        if (!ret && in_range < size) {
            ret = -ENXIO;
        }
        if (ret) {
            return ret;
        }
        *c = (HtPageCache) { .page = page + 1, .offset = *offset };
    }
    *offset = c->offset + (addr - page);
    if (left) {
        *left = size - (addr - page);
    }
    return 0;
}

int ht_guest_kernel_read(HtGuestKernel *k, uint64_t addr, void *buf,
                         size_t len)
{
    const HtKernelSpace space = ht_kernel_space_of(k);

    return ht_kernel_space_read(&space, addr, buf, len);
}

int ht_guest_kernel_value(HtGuestKernel *k, uint64_t addr, unsigned size,
                          uint64_t *value)
{
    uint8_t bytes[8];
    int ret;

    if (size != 1 && size != 2 && size != 4 && size != 8) {
        return -EINVAL;
    }
    ret = ht_guest_kernel_read(k, addr, bytes, size);
    if (!ret) {
        *value = ht_get_le(bytes, size, false);
    }
    return ret;
}

int ht_guest_kernel_canary(HtGuestKernel *k, uint64_t *canary)
{
    const HtKernelSpace space = ht_kernel_space_of(k);
    uint64_t state = 0;
    int ret;

    *canary = 0;
    if (!k->state_at || !k->canary_at) {
        return 0;
    }
    /*
     * The kernel chooses the canary while system_state is SYSTEM_BOOTING (0):
     * do not read the canary before the state changes.  Before Linux 5.9, the
     * first CPU chose again when it became idle, soon after this state.
     */
    ret = ht_guest_kernel_value(k, k->state_at, 4, &state);
    return ret || !state ? ret :
           ht_kernel_space_u64(&space, k->canary_at, canary);
}

/*
 * Compare the kernel's canary with HtGuestKernel.canary; return -ESTALE if they
 * differ.  If HtGuestKernel.canary is not known yet, set it.
 */
static int check_canary(HtGuestKernel *k)
{
    const HtKernelSpace space = ht_kernel_space_of(k);
    uint64_t canary = k->canary;
    int ret;

    if (!canary) {
        return ht_guest_kernel_canary(k, &k->canary);
    }
    ret = ht_kernel_space_u64_again(&space, k->canary_at, &canary);
    return ret ? ret : canary == k->canary ? 0 : -ESTALE;
}

bool ht_guest_kernel_same_boot(const HtGuestKernel *a, const HtGuestKernel *b)
{
    return a->phys == b->phys && a->slide == b->slide &&
           (!a->canary || !b->canary || a->canary == b->canary);
}

bool ht_guest_kernel_moves(const HtGuestKernel *k)
{
    return k->moves;
}

int ht_guest_kernel_check(HtGuestKernel *k)
{
    const HtSymbols *symbols = ht_kernel_image_symbols(k->image);
    const char *handler = k->pages.machine == HT_MACHINE_X86_64 ?
        "__x64_sys_read" : "__arm64_sys_io_setup";
    uint64_t table, want, is;
    int ret;

    memset(k->cache, 0, sizeof(k->cache));
    if (!ht_symbols_address(symbols, "sys_call_table", &table) ||
        !ht_symbols_address(symbols, handler, &want)) {
        return -ESTALE;
    }
    ret = ht_guest_kernel_value(k, table + k->slide, 8, &is);
    if (ret) {
        return ret;
    }
    if (is != want + k->slide) {
        return -ESTALE;
    }
    ret = check_canary(k);
    if (!ret) {
        ht_guest_kernel_direct_map(k);
    }
    return ret;
}

/* Latest time of the wall clock in s: KTIME_SEC_MAX of linux/ktime.h */
#define SECONDS_MAX     UINT64_C(9223372036)

int ht_guest_kernel_clock(HtGuestKernel *k, HtKernelClock *clock)
{
    const HtKernelSpace space = ht_kernel_space_of(k);
    int ret;

    *clock = (HtKernelClock) { 0 };
    if (!k->time_at) {
        return -ENOENT;
    }
    ret = ht_kernel_space_u64(&space, k->time_at, &clock->seconds);
    if (!ret && k->jiffies_at) {
        ret = ht_kernel_space_u64(&space, k->jiffies_at, &clock->jiffies);
    }
    return ret ? ret : clock->seconds > SECONDS_MAX ? -ERANGE : 0;
}

static bool is_later(const HtKernelClock *a, const HtKernelClock *b)
{
    return a->seconds > b->seconds ||
           (a->seconds == b->seconds && a->jiffies > b->jiffies);
}

unsigned ht_guest_kernel_newest(const GPtrArray *found, unsigned *alive,
                                unsigned *with_clock)
{
    HtKernelClock clock, latest = { 0 };
    unsigned best = 0, i;
    bool moves = false;

    *alive = *with_clock = 0;
    for (i = 0; i < found->len; i++) {
        HtGuestKernel *k = found->pdata[i];
        int ret = ht_guest_kernel_clock(k, &clock);

        /*
         * -ERANGE: the value is no time.  Assume that another kernel runs now
         * and has overwritten this kernel's clock.
         */
        if (ret == -ERANGE) {
            continue;
        }
        if (!(*alive)++) {
            best = i;
        }
        if (ret) {
            continue;
        }
        if (!(*with_clock)++ || k->moves > moves ||
            (k->moves == moves && is_later(&clock, &latest))) {
            latest = clock;
            moves = k->moves;
            best = i;
        }
    }
    return best;
}

unsigned ht_guest_kernel_cpus(HtGuestKernel *k)
{
    uint64_t addr, n;

    if (ht_guest_kernel_symbol(k, "nr_cpu_ids", &addr) ||
        ht_guest_kernel_value(k, addr, 4, &n)) {
        return 1;
    }
    return MAX(n, 1);
}
