/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read a guest's RAM without allocating it
 *
 * Each read translates its address, under RCU: memory that is unplugged
 * meanwhile stays until the read is done, and the next read does not find it.
 * A read must not allocate pages that the guest never touched (or gave back).
 * A read of a hole in a shared mapping would do so, therefore shared memory is
 * read from its file.  Private memory reads as the zero page.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/atomic.h"
#include "qemu/rcu.h"
#include "system/dma.h"
#if __has_include("system/ramblock.h")
#include "system/ramblock.h"
#else
#include "exec/ramblock.h"
#endif
#include "ftrace.h"

/* Larger than any guest's memory */
#define SIZE (UINT64_C(1) << 52)

static bool is_plain_ram(MemoryRegion *mr)
{
    return memory_region_is_ram(mr) && !memory_region_is_ram_device(mr) &&
           mr->ram_block && mr->ram_block->host;
}

/* Context: RCU */
static MemoryRegion *find(uint64_t address, hwaddr *offset, hwaddr *len)
{
    MemoryRegion *mr = address_space_translate(&address_space_memory, address,
                                               offset, len, false,
                                               MEMTXATTRS_UNSPECIFIED);

    return is_plain_ram(mr) ? mr : NULL;
}

static bool has_file(RAMBlock *rb)
{
    return qemu_ram_is_shared(rb) && qemu_ram_get_fd(rb) >= 0;
}

static int file_read(RAMBlock *rb, hwaddr offset, uint8_t *buf, size_t len)
{
    while (len) {
        ssize_t n = pread(qemu_ram_get_fd(rb), buf, len,
                          rb->fd_offset + offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -ENXIO;     /* the file was truncated */
        }
        buf += n;
        offset += n;
        len -= n;
    }
    return 0;
}

static int ram_read(void *opaque, uint64_t address, void *buf, size_t len)
{
    RCU_READ_LOCK_GUARD();

    while (len) {
        hwaddr offset, n = len;
        MemoryRegion *mr = find(address, &offset, &n);
        int ret;

        if (!mr || n % 4 || offset % 4) {
            return -EFAULT;
        }
        if (has_file(mr->ram_block)) {
            ret = file_read(mr->ram_block, offset, buf, n);
        } else {
            HtFtMem mapped = {
                .size = n,
                .map = mr->ram_block->host + offset,
            };

            ret = ht_ft_mem_read(&mapped, 0, buf, n);
        }
        if (ret) {
            return ret;
        }
        address += n;
        buf = (uint8_t *)buf + n;
        len -= n;
    }
    return 0;
}

/* Private memory that is swapped out counts as untouched. */
static bool is_touched(RAMBlock *rb, hwaddr offset)
{
    uintptr_t page = (uintptr_t)(rb->host + offset) &
                     qemu_real_host_page_mask();
    unsigned char resident = 0;

    return has_file(rb) ||
           (!mincore((void *)page, 1, &resident) && resident & 1);
}

/* HtFtMem.next.  It tests the page at @address only, for single reads. */
static bool ram_next(void *opaque, uint64_t address, uint64_t *out)
{
    hwaddr offset, len = 4;
    MemoryRegion *mr;

    RCU_READ_LOCK_GUARD();
    mr = find(address, &offset, &len);
    *out = mr && is_touched(mr->ram_block, offset) ? address :
           QEMU_ALIGN_UP(address + 1, HT_FT_SEARCH_FULL);
    return true;
}

const HtFtMem ht_guest_ram = {
    .size = SIZE,
    .read = ram_read,
    .next = ram_next,
};

typedef struct RamRange {
    uint64_t begin, end;
} RamRange;

/* flatview_cb.  Context: RCU */
static bool add_range(Int128 start, Int128 len, const MemoryRegion *mr,
                      hwaddr offset, void *opaque)
{
    GArray *ranges = opaque;
    RamRange r = { .begin = int128_getlo(start) }, *last;

    if (!is_plain_ram((MemoryRegion *)mr) || int128_gethi(start) ||
        int128_gethi(len) || r.begin >= SIZE) {
        return false;
    }
    r.end = r.begin + MIN(int128_getlo(len), SIZE - r.begin);
    last = ranges->len ?
        &g_array_index(ranges, RamRange, ranges->len - 1) : NULL;
    if (last && last->end == r.begin) {
        last->end = r.end;
    } else {
        g_array_append_val(ranges, r);
    }
    return false;
}

/* All RAM, as RamRange */
static GArray *all_ranges(void)
{
    GArray *ranges = g_array_new(false, false, sizeof(RamRange));

    RCU_READ_LOCK_GUARD();
    flatview_for_each_range(address_space_to_flatview(&address_space_memory),
                            add_range, ranges);
    return ranges;
}

bool ht_guest_ram_at(uint64_t address, HtFtMem *mem)
{
    g_autoptr(GArray) ranges = all_ranges();
    guint i;

    for (i = 0; i < ranges->len; i++) {
        const RamRange *r = &g_array_index(ranges, RamRange, i);

        if (address >= r->begin && address < r->end) {
            *mem = ht_guest_ram;
            mem->size = r->end;
            return true;
        }
    }
    return false;
}

static void leave_out(HtFtSearch *search, GHashTable *silent)
{
    guint i;

    for (i = search->rings->len; i-- > 0;) {
        const HtFtRing *ring = search->rings->pdata[i];

        if (g_hash_table_contains(silent, &ring->offset)) {
            g_ptr_array_remove_index(search->rings, i);
        }
    }
}

GPtrArray *ht_guest_ram_search(const unsigned *round, unsigned now,
                               GHashTable *silent)
{
    g_autoptr(GArray) ranges = all_ranges();
    GPtrArray *found = g_ptr_array_new();
    guint i;

    for (i = 0; i < ranges->len && found->len < HT_FTRACE_RINGS; i++) {
        const RamRange *r = &g_array_index(ranges, RamRange, i);
        HtFtMem mem = ht_guest_ram;
        uint64_t left = DIV_ROUND_UP(r->end, HT_FT_SEARCH_FAST) -
                        DIV_ROUND_UP(r->begin, HT_FT_SEARCH_FAST);
        HtFtSearch search;

        mem.size = r->end;
        ht_ft_search_init(&search, &mem, HT_FT_SEARCH_FAST);
        while (left-- && qatomic_read(round) == now &&
               found->len + search.rings->len < HT_FTRACE_RINGS) {
            if (ht_ft_search_go(&search, 1)) {
                leave_out(&search, silent);
            }
        }
        while (search.rings->len) {
            g_ptr_array_add(found, g_ptr_array_steal_index(search.rings, 0));
        }
        ht_ft_search_clear(&search);
    }
    return found;
}
