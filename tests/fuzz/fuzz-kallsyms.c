/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target kallsyms: search memory with any content for the tables of a
 * kernel's symbols. If they are found, they have the symbol "_text" and at most
 * HT_KALLSYMS_MAX symbols.
 */
#include "hypertrace/kallsyms.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    bool known = fuzz_u8(&in) & 1;
    g_autofree uint8_t *copy = fuzz_copy(in.p, in.end - in.p);
    HtKernelSegment segment = {
        .addr = known ? UINT64_C(0xffffffff81000000) : 0,
        .size = in.end - in.p,
    };
    g_autoptr(GError) error = NULL;
    uint64_t text, addr;
    g_autoptr(HtSymbols) s = ht_kallsyms_decode(copy, segment.size, &segment,
                                                1, &text, &error);

    g_assert_true(!s == !!error);
    if (s) {
        g_assert_cmpuint(ht_symbols_count(s), <=, HT_KALLSYMS_MAX);
        g_assert_true(ht_symbols_address(s, "_text", &addr));
        g_assert_true(!known || text == segment.addr);
    }
    return 0;
}
