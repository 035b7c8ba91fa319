/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event formats as a guest prints them, then a record: as the kernel would
 * print it
 *
 * Whatever the format says, only the record is read.
 */
#include "hypertrace/base.h"
#include "print-fmt.h"
#include "fuzz.h"

/* What a kernel has for names and addresses, for %pS */
static const HtPrintSymbols *symbols(void)
{
    static const char text[] = "ffffffff81000000 T _text\n"
                               "ffffffff81000100 t do_one_initcall\n"
                               "ffffffff81002000 T _etext\n";
    static HtPrintSymbols s = { .shift = 0x10000 };

    if (!s.symbols) {
        s.symbols = ht_symbols_parse(text, sizeof(text) - 1, NULL);
    }
    return &s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);
    FuzzInput record = fuzz_slice(&in, fuzz_u8(&in));
    size_t bytes = record.end - record.p;
    g_autofree uint8_t *copy = fuzz_copy(record.p, bytes);
    g_autoptr(HtFtFormats) f =
        ht_ft_formats_parse((const char *)in.p, in.end - in.p, NULL);
    unsigned i;

    for (i = 0; f && i < ht_ft_formats_count(f); i++) {
        g_autoptr(HtPrint) print = ht_print_new(ht_ft_formats_nth(f, i));
        g_autoptr(GString) once = g_string_new(NULL);
        g_autoptr(GString) again = g_string_new(NULL);

        if (print) {
            ht_print(print, copy, bytes, symbols(), once);
            ht_print(print, copy, bytes, symbols(), again);
            g_assert_true(g_string_equal(once, again));
            ht_print(print, copy, 0, NULL, again);
        }
    }
    return 0;
}
