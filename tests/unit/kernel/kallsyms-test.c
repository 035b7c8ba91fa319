/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decode a kernel's symbol tables, in each layout, whole and damaged
 */
#include "hypertrace/kallsyms.h"
#include "kernel-make.h"

#define FUNCTIONS 2600u

static GArray *make_symbols(KmLayout layout)
{
    GArray *symbols = g_array_new(false, false, sizeof(KmSymbol));
    g_autofree char *longest = g_strnfill(511, 'x');
    g_autofree char *longer = g_strnfill(200, 'y');

    /* KM_6_12 and KM_7_2 cannot encode symbols that are per-CPU offsets */
    if (layout == KM_5_10 || layout == KM_6_1_DEBIAN) {
        km_add(symbols, 0, 'A', "fixed_percpu_data");
        km_add(symbols, 0x1234, 'A', "cpu_number");
    }
    km_add(symbols, KM_TEXT, 'T', "_stext");
    km_add(symbols, KM_TEXT, 'T', "_text");
    km_fill(symbols, KM_TEXT + 16, FUNCTIONS);
    longest[510] = 0;
    km_add(symbols, KM_TEXT + 0x800000, 'd', longest);
    km_add(symbols, KM_TEXT + 0x800000, 'D', longer);
    km_add(symbols, KM_TEXT + 0x900000, 'B', "_end");
    return symbols;
}

static GByteArray *make_tables(const GArray *symbols, KmLayout layout,
                               uint64_t text)
{
    GByteArray *bytes = g_byte_array_new();
    unsigned i;

    /* put other bytes before the tables, and text like that of token_table */
    for (i = 0; i < 40000; i++) {
        uint8_t byte = i % 251;

        g_byte_array_append(bytes, &byte, 1);
    }
    g_byte_array_append(bytes, (const uint8_t *)"0\0001\0002\0003\0004\0005\0"
                        "6\0007\0008\0009\0\0\0\0\0", 24);
    km_kallsyms(bytes, symbols, layout, text);
    return bytes;
}

static void check(const HtSymbols *s, const GArray *symbols, uint64_t shift)
{
    unsigned i;

    g_assert_cmpuint(ht_symbols_count(s), ==, symbols->len);
    for (i = 0; i < symbols->len; i++) {
        const KmSymbol *want = &g_array_index(symbols, KmSymbol, i);
        uint64_t addr, offset;
        const char *name;
        char type;

        name = ht_symbols_get(s, i, &addr, &type);
        g_assert_cmpstr(name, ==, want->name);
        g_assert_cmpint(type, ==, want->type);
        g_assert_cmphex(addr, ==, want->addr + (want->addr >> 63 ? shift : 0));
        g_assert_true(ht_symbols_address(s, want->name, &addr));
        if (!(want->addr >> 63)) {
            g_assert_null(ht_symbols_find(s, want->addr, &offset));
        }
    }
    g_assert_null(ht_symbols_get(s, i, &(uint64_t) { 0 }, &(char) { 0 }));
}

/*
 * Promise: in each layout, names, types and addresses are those that the
 * kernel's build wrote. If the address of the first byte is not known, the
 * addresses' distances from _text are right.
 */
static void test_layouts(void)
{
    KmLayout layout;

    for (layout = 0; layout < KM_LAYOUTS; layout++) {
        g_autoptr(GArray) symbols = make_symbols(layout);
        g_autoptr(GByteArray) bytes = make_tables(symbols, layout, KM_TEXT);
        HtKernelSegment segment = { .addr = KM_TEXT, .size = bytes->len };
        g_autoptr(HtSymbols) s = NULL, t = NULL;
        g_autoptr(GError) error = NULL;
        uint64_t text;

        s = ht_kallsyms_decode(bytes->data, bytes->len, &segment, 1, &text,
                               &error);
        g_assert_no_error(error);
        g_assert_cmphex(text, ==, KM_TEXT);
        check(s, symbols, 0);

        segment.addr = 0;
        t = ht_kallsyms_decode(bytes->data, bytes->len, &segment, 1, &text,
                               &error);
        g_assert_no_error(error);
        check(t, symbols, text - KM_TEXT);
    }
}

/*
 * Promise: tables are refused if their address of _text is not that of the
 * first segment.  KM_7_2 is left out: its tables have only relative addresses.
 */
static void test_elsewhere(void)
{
    KmLayout layout;

    for (layout = 0; layout < KM_7_2; layout++) {
        g_autoptr(GArray) symbols = make_symbols(layout);
        g_autoptr(GByteArray) bytes = make_tables(symbols, layout, KM_TEXT);
        HtKernelSegment segment = { .addr = KM_TEXT + 0x1000000,
                                    .size = bytes->len };
        g_autoptr(GError) error = NULL;

        g_assert_null(ht_kallsyms_decode(bytes->data, bytes->len, &segment, 1,
                                         NULL, &error));
        g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL);
    }
}

/*
 * Promise: tables with a changed byte, or cut off, at 400 random places, are
 * decoded or refused in bounded time. No read is outside their bytes (builds
 * with a sanitizer prove this).
 */
static void test_damaged(void)
{
    g_autoptr(GArray) symbols = make_symbols(KM_6_12);
    g_autoptr(GByteArray) bytes = make_tables(symbols, KM_6_12, KM_TEXT);
    gint64 begin = g_get_monotonic_time();
    unsigned i, refused = 0;

    for (i = 0; i < 400; i++) {
        size_t size = i % 4 ? bytes->len :
            (size_t)g_test_rand_int_range(0, bytes->len);
        g_autofree uint8_t *bad = g_memdup2(bytes->data, size);
        HtKernelSegment segment = { .addr = KM_TEXT, .size = size };
        g_autoptr(HtSymbols) s = NULL;

        if (i % 4 && size) {
            bad[g_test_rand_int_range(40000, size)] = g_test_rand_int();
        }
        s = ht_kallsyms_decode(bad, size, &segment, 1, NULL, NULL);
        refused += !s;
    }
    g_assert_cmpuint(refused, >=, 50);
    g_assert_cmpint(g_get_monotonic_time() - begin, <, 60 * G_USEC_PER_SEC);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kallsyms/layouts", test_layouts);
    g_test_add_func("/kallsyms/elsewhere", test_elsewhere);
    g_test_add_func("/kallsyms/damaged", test_damaged);
    return g_test_run();
}
