/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target symbols: parse any text as symbols that a guest has printed. The
 * symbol that is found for an address does not have a higher address, and the
 * address of its name has a symbol. A shift that is found fits the first
 * address.
 */
#include "hypertrace/base.h"
#include "hypertrace/symbols.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    uint64_t addr = fuzz_bits(&in, 8), offset = 0, of_name;
    g_autoptr(HtSymbols) s =
        ht_symbols_parse((const char *)in.p, in.end - in.p, NULL);
    const char *name = s ? ht_symbols_find(s, addr, &offset) : NULL;

    if (s) {
        g_assert_cmpuint(ht_symbols_count(s), >, 0);
    }
    if (s) {
        uint64_t addrs[HT_SYMBOLS_SHIFT_MIN], shift;
        unsigned i;

        for (i = 0; i < G_N_ELEMENTS(addrs); i++) {
            addrs[i] = addr + (addr >> (i + 1) & 0xffff);
        }
        if (ht_symbols_shift(s, addrs, i, &shift)) {
            g_assert_nonnull(ht_symbols_find(s, addrs[0] - shift, &offset));
            g_assert_cmpuint(offset, ==, 0);
            name = ht_symbols_find(s, addr, &offset);
        }
    }
    if (name) {
        g_assert_true(*name && offset <= addr);
        g_assert_true(ht_symbols_address(s, name, &of_name));
        g_assert_cmpstr(ht_symbols_find(s, of_name, &offset), !=, NULL);
        g_assert_cmpuint(offset, ==, 0);
    }
    return 0;
}
