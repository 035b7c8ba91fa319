/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: translate a kernel's addresses by its own page tables
 *
 * x86-64 has 4 or 5 levels of tables with 512 entries; arm64 has pages of 4, 16
 * or 64 KiB and 2 to 5 levels.  The guest may change an entry at any time: a
 * walk reads at most one entry for each level, reads it only once, and checks
 * the copy.
 */
#include "guest-kernel.h"

#define X86_PRESENT     1u
#define X86_LARGE       0x80u
#define X86_ADDRESS     UINT64_C(0x000ffffffffff000)

#define ARM_VALID       1u
/*
 * bit that is set in an entry that refers to a table and, in a table of the
 * last level, in an entry that refers to a page
 */
#define ARM_TABLE       2u
#define ARM_ADDRESS     UINT64_C(0x0000ffffffffffff)

static uint64_t entry_address(const HtPageTables *pt, uint64_t entry)
{
    uint64_t address;

    if (pt->machine == HT_MACHINE_X86_64) {
        return entry & X86_ADDRESS;
    }
    address = entry & ARM_ADDRESS & ~((UINT64_C(1) << pt->shift) - 1);
    if (pt->shift == 16) {
        /*
         * With pages of 64 KiB, bits 12 to 15 of the entry are bits 48 to 51 of
         * the address.
         */
        address |= (entry >> 12 & 15) << 48;
    }
    return address;
}

/*
 * Return what an entry refers to.  The tables of level 0 are the last ones: all
 * their valid entries refer to pages.
 */
static enum { NONE, TABLE, PAGE } entry_kind(const HtPageTables *pt,
                                             uint64_t entry, unsigned level)
{
    if (pt->machine == HT_MACHINE_X86_64) {
        if (!(entry & X86_PRESENT)) {
            return NONE;
        }
        return level == 0 || (level < 3 && entry & X86_LARGE) ? PAGE : TABLE;
    }
    if (!(entry & ARM_VALID)) {
        return NONE;
    }
    if (level == 0) {
        return entry & ARM_TABLE ? PAGE : NONE;
    }
    return entry & ARM_TABLE ? TABLE : level < 4 ? PAGE : NONE;
}

int ht_pages_walk(const HtGuestMem *mem, const HtPageTables *pt, uint64_t addr,
                  uint64_t *phys, uint64_t *left)
{
    unsigned per_level = pt->shift - 3;
    uint64_t table = pt->root;
    unsigned level = pt->levels;
    /*
     * Lowest bit from which on all bits of a kernel address are 1.  On x86,
     * user addresses use the other half of the top table.
     */
    unsigned high = pt->va_bits - (pt->machine == HT_MACHINE_X86_64);

    if (addr >> high != UINT64_MAX >> high) {
        return -EFAULT;
    }
    while (level--) {
        unsigned shift = pt->shift + per_level * level;
        uint64_t mask = (UINT64_C(1) << shift) - 1, index, entry;
        int ret;

        /* In the top table, va_bits may leave fewer bits for the index. */
        index = level + 1 == pt->levels ?
            (addr & ((UINT64_C(1) << pt->va_bits) - 1)) >> shift :
            addr >> shift & ((UINT64_C(1) << per_level) - 1);
        ret = ht_guest_mem_read(mem, table + index * 8, &entry, 8);
        if (ret) {
            return ret;
        }
        entry = ht_le64(entry);
        switch (entry_kind(pt, entry, level)) {
        case NONE:
            return -EFAULT;
        case PAGE:
            *phys = (entry_address(pt, entry) & ~mask) | (addr & mask);
            *left = mask + 1 - (addr & mask);
            return 0;
        case TABLE:
            table = entry_address(pt, entry);
            break;
        }
    }
    return -EFAULT;
}
