/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the functions that a kernel's function tracers can trace, in its table
 * of traceable calls (mcount_loc)
 */
#include "hypertrace/kernel-functions.h"
#include "kernel-make.h"

#define AT_BANNER   0x1000u
#define AT_TABLE    0x2000u
#define AT_CODE     0x10000u
/* Number of functions sys_call_N; each has 16 bytes */
#define FUNCTIONS   2500u
#define AT_END      (AT_CODE + 16 * FUNCTIONS)

static gint by_address(gconstpointer a, gconstpointer b)
{
    const KmSymbol *x = a, *y = b;

    return (x->addr > y->addr) - (x->addr < y->addr);
}

/*
 * Make a kernel with a table of @n addresses of calls. An element of @entries
 * is an offset from _text, or 0 for an address of 0. According to the kernel's
 * symbols, the table has @declared addresses.
 */
static HtKernelImage *make(const uint32_t *entries, unsigned n,
                           unsigned declared)
{
    static const char banner[] = "Linux version 6.12.0-test (x@y) #1 SMP\n";
    g_autoptr(GArray) symbols = g_array_new(false, false, sizeof(KmSymbol));
    GByteArray *bytes = g_byte_array_new();
    g_autoptr(GBytes) copy = NULL;
    g_autoptr(GError) error = NULL;
    HtKernelImage *image;
    unsigned i;

    km_add(symbols, KM_TEXT, 'T', "_text");
    km_add(symbols, KM_TEXT + AT_BANNER, 'D', "linux_banner");
    km_add(symbols, KM_TEXT + AT_TABLE, 'D', "__start_mcount_loc");
    km_add(symbols, KM_TEXT + AT_TABLE + 8ull * declared, 'D',
           "__stop_mcount_loc");
    km_add(symbols, KM_TEXT + AT_TABLE + 0x1000, 'D', "sys_call_data");
    km_fill(symbols, KM_TEXT + AT_CODE, FUNCTIONS);
    km_add(symbols, KM_TEXT + AT_END, 'D', "_end");
    g_array_sort(symbols, by_address);
    g_byte_array_set_size(bytes, AT_END);
    memset(bytes->data, 0, bytes->len);
    memcpy(bytes->data + AT_BANNER, banner, sizeof(banner));
    for (i = 0; i < n; i++) {
        ht_put_le64(bytes->data + AT_TABLE + 8 * i,
                    entries[i] ? KM_TEXT + entries[i] : 0);
    }
    km_kallsyms(bytes, symbols, KM_6_12, KM_TEXT);
    copy = g_byte_array_free_to_bytes(bytes);
    image = ht_kernel_image_from_memory(copy, HT_MACHINE_X86_64, KM_TEXT,
                                        &error);
    g_assert_no_error(error);
    return image;
}

static void assert_match(const HtKernelFunctions *f, const char *glob,
                         unsigned traceable, unsigned named)
{
    unsigned n;

    g_test_message("%s", glob);
    g_assert_cmpuint(ht_kernel_functions_match(f, glob, &n), ==, traceable);
    g_assert_cmpuint(n, ==, named);
}

/*
 * Promise: a function is traceable only if the table has an address for it: its
 * start, or an address a few bytes after or before the start. Symbols of data
 * do not count as functions.
 */
static void test_table(void)
{
    static const uint32_t entries[] = {
        AT_CODE + 16 * 1,       /* the start of a function */
        AT_CODE + 16 * 2 + 4,   /* after the instruction endbr64 */
        0,                      /* a weak function that was replaced */
        AT_CODE + 16 * 4 - 4,   /* 4 bytes before the start of a function */
        AT_CODE + 16 * 20 + 4,
        AT_END + 0x100000,      /* an address after the last symbol */
        1,                      /* an address in no function sys_call_N */
    };
    g_autoptr(HtKernelImage) image = make(entries, G_N_ELEMENTS(entries),
                                          G_N_ELEMENTS(entries));
    g_autoptr(HtKernelFunctions) f = ht_kernel_functions_new(image);

    g_assert_true(ht_kernel_functions_certain(f));
    assert_match(f, "sys_call_1", 1, 1);
    assert_match(f, "sys_call_2", 1, 1);
    assert_match(f, "sys_call_3", 0, 1);
    assert_match(f, "sys_call_4", 1, 1);
    assert_match(f, "sys_call_?", 3, 10);
    assert_match(f, "*_2*", 2, 611);
    assert_match(f, "sys_call_data", 0, 0);
    assert_match(f, "no_such_function", 0, 0);
    assert_match(f, "", 0, 0);
}

/*
 * Promise: if the table is empty or has only addresses of 0, each function
 * counts as traceable.
 */
static void test_no_table(void)
{
    static const uint32_t none[4] = { 0 };
    unsigned n;

    for (n = 0; n <= G_N_ELEMENTS(none); n += G_N_ELEMENTS(none)) {
        g_autoptr(HtKernelImage) image = make(none, n, n);
        g_autoptr(HtKernelFunctions) f = ht_kernel_functions_new(image);

        g_assert_false(ht_kernel_functions_certain(f));
        assert_match(f, "sys_call_3", 1, 1);
        assert_match(f, "sys_call_data", 0, 0);
    }
}

/*
 * Promise: a table that exceeds the image or HT_KERNEL_FUNCTIONS_MAX is not
 * read, and each function counts as traceable.
 */
static void test_bounds(void)
{
    static const uint32_t entry = AT_CODE;
    static const unsigned declared[] = {
        1u << 18, HT_KERNEL_FUNCTIONS_MAX + 1, 1u << 26,
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(declared); i++) {
        g_autoptr(HtKernelImage) image = make(&entry, 1, declared[i]);
        g_autoptr(HtKernelFunctions) f = ht_kernel_functions_new(image);

        g_assert_false(ht_kernel_functions_certain(f));
        assert_match(f, "sys_call_3", 1, 1);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernel-functions/table", test_table);
    g_test_add_func("/kernel-functions/no-table", test_no_table);
    g_test_add_func("/kernel-functions/bounds", test_bounds);
    return g_test_run();
}
