/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target pages: walk page tables in memory with any content. A walk reads
 * at most one entry of each level. If a guest address is translated, the
 * resulting offset lies in RAM.
 */
#include "guest-kernel.h"
#include "hypertrace/kernel-space.h"
#include "fuzz.h"

typedef struct Memory {
    const uint8_t *bytes;
    uint64_t size;
    unsigned reads;
} Memory;

static int memory_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Memory *m = opaque;

    g_assert_cmpuint(offset, <=, m->size);
    g_assert_cmpuint(len, <=, m->size - offset);
    m->reads++;
    memcpy(buf, m->bytes + offset, len);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        HtMachine machine;
        unsigned shift, levels, va_bits;
    } kinds[] = {
        { HT_MACHINE_X86_64, 12, 4, 48 }, { HT_MACHINE_X86_64, 12, 5, 57 },
        { HT_MACHINE_AARCH64, 12, 4, 48 }, { HT_MACHINE_AARCH64, 12, 3, 39 },
        { HT_MACHINE_AARCH64, 12, 5, 52 }, { HT_MACHINE_AARCH64, 14, 4, 48 },
        { HT_MACHINE_AARCH64, 14, 3, 47 }, { HT_MACHINE_AARCH64, 16, 3, 52 },
        { HT_MACHINE_AARCH64, 16, 2, 42 },
    };
    FuzzInput in = fuzz_input(data, size);
    unsigned kind = fuzz_u8(&in) % G_N_ELEMENTS(kinds);
    uint64_t phys = (uint64_t)fuzz_u8(&in) << 12, addr, offset;
    HtGuestKernel k = { .pages = {
        .machine = kinds[kind].machine, .shift = kinds[kind].shift,
        .levels = kinds[kind].levels, .va_bits = kinds[kind].va_bits,
    } };
    uint8_t page[4096] = { 0 }, buf[64];
    Memory m = { .bytes = page, .size = sizeof(page) };
    HtFtMem mem = { .size = sizeof(page), .read = memory_read, .opaque = &m };
    uint64_t left;
    g_autoptr(GString) text = g_string_new(NULL);
    HtKernelSpace space;

    ht_guest_mem_init(&k.mem, &mem);
    ht_guest_mem_add(&k.mem, phys, sizeof(page), 0);
    k.pages.root = phys + (uint64_t)fuzz_u8(&in) * 16;
    addr = fuzz_bits(&in, 8);
    memcpy(page, in.p, MIN((size_t)(in.end - in.p), sizeof(page)));

    if (!ht_pages_walk(&k.mem, &k.pages, addr, &offset, &left)) {
        g_assert_cmpuint(left, >, 0);
        g_assert_cmpuint(left, <=, UINT64_C(1) << 52);
    }
    g_assert_cmpuint(m.reads, <=, kinds[kind].levels);
    if (!ht_guest_kernel_offset(&k, addr, &offset, &left)) {
        g_assert_cmpuint(offset, <, sizeof(page));
        g_assert_cmpuint(left, <=, UINT64_C(1) << k.pages.shift);
    }
    ht_guest_kernel_read(&k, addr, buf, sizeof(buf));
    space = ht_kernel_space_of(&k);
    ht_kernel_space_string(&space, addr, 16, text);
    g_assert_cmpuint(text->len, <=, 16);
    return 0;
}
