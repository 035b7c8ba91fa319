/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel's symbols: found by address and by name, and the shift of a
 * relocated kernel
 */
#include "hypertrace/base.h"
#include "hypertrace/symbols.h"

static HtSymbols *parse(const char *text)
{
    GError *error = NULL;
    HtSymbols *s = ht_symbols_parse(text, strlen(text), &error);

    g_assert_no_error(error);
    return s;
}

static void assert_symbol(const HtSymbols *s, uint64_t addr, const char *name,
                          uint64_t offset)
{
    uint64_t o = ~0ull;

    g_assert_cmpstr(ht_symbols_find(s, addr, &o), ==, name);
    if (name) {
        g_assert_cmpuint(o, ==, offset);
    }
}

static void test_find(void)
{
    g_autoptr(HtSymbols) s = parse(
        "0000000000001000 A per_cpu\n"
        "ffffffff81000100 t second\n"
        "ffffffff81000000 T _text\n"
        "ffffffff81000000 T _stext\n"
        "ffffffff81000200 T third\t[module]\r\n"
        "ffffffff81000300 T end");
    uint64_t addr;

    g_assert_cmpuint(ht_symbols_count(s), ==, 5);
    assert_symbol(s, 0x1000, NULL, 0);
    assert_symbol(s, 0xffffffff80ffffffull, NULL, 0);
    assert_symbol(s, 0xffffffff81000000ull, "_text", 0);
    assert_symbol(s, 0xffffffff810000ffull, "_text", 0xff);
    assert_symbol(s, 0xffffffff81000100ull, "second", 0);
    assert_symbol(s, 0xffffffff81000234ull, "third", 0x34);
    assert_symbol(s, 0xffffffff81000300ull, "end", 0);
    assert_symbol(s, 0xffffffff81000301ull, NULL, 0);
    assert_symbol(s, UINT64_MAX, NULL, 0);
    g_assert_true(ht_symbols_address(s, "_stext", &addr));
    g_assert_cmphex(addr, ==, 0xffffffff81000000ull);
    g_assert_false(ht_symbols_address(s, "per_cpu", &addr));
}

/*
 * If two lines have the same name, ht_symbols_address() gives the address of
 * the line that comes first in the text.
 */
static void test_same_name(void)
{
    g_autoptr(HtSymbols) s = parse("ffffffff82000000 t init\n"
                                   "ffffffff81000000 t init\n");
    uint64_t addr;

    g_assert_true(ht_symbols_address(s, "init", &addr));
    g_assert_cmphex(addr, ==, 0xffffffff82000000ull);
}

static void test_malformed(void)
{
    g_autofree char *long_name = g_strnfill(512, 'n');
    g_autofree char *text = g_strconcat(
        "\n\x20\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \x20\n"
        "0ffffffff81000000 T wide\nffffffff81000000 TT two\n"
        "xffffffff81000000 T x\nffffffff81000000 T \x01\n"
        "ffffffff81000000 T ", long_name, "\nffffffff81000008 T good\n", NULL);
    g_autoptr(HtSymbols) s = parse(text);

    g_assert_cmpuint(ht_symbols_count(s), ==, 1);
    assert_symbol(s, 0xffffffff81000008ull, "good", 0);
}

static void test_nothing(void)
{
    static const char * const texts[] = { "", "\n", "0 T zero\n" };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(ht_symbols_parse(texts[i], strlen(texts[i]), &error));
        g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL);
    }
}

/*
 * ht_symbols_shift() finds the shift of a relocated kernel from the addresses
 * at which at least HT_SYMBOLS_SHIFT_MIN of its functions begin.
 */
static void test_shift(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    GRand *rand = g_rand_new_with_seed(3);
    uint64_t addrs[32], of[4000], shift, at = UINT64_C(0xffffffff81000000);
    HtSymbols *s;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(of); i++) {
        at += 16 * g_rand_int_range(rand, 1, 60);
        of[i] = at;
        g_string_append_printf(text, "%" PRIx64 " t f%u\n", at, i);
    }
    s = parse(text->str);
    for (i = 0; i < G_N_ELEMENTS(addrs); i++) {
        addrs[i] = of[g_rand_int_range(rand, 0, G_N_ELEMENTS(of))] + 0x1a600000;
    }
    for (i = 0; i <= G_N_ELEMENTS(addrs); i++) {
        shift = 0;
        g_assert_cmpint(ht_symbols_shift(s, addrs, i, &shift), ==,
                        i >= HT_SYMBOLS_SHIFT_MIN);
        g_assert_true(i < HT_SYMBOLS_SHIFT_MIN || shift == 0x1a600000);
    }
    /* no function begins at this address, so no shift fits all addresses */
    addrs[5] += 8;
    g_assert_false(ht_symbols_shift(s, addrs, i - 1, &shift));
    ht_symbols_free(s);

    /* more than one shift fits the addresses: the function finds none */
    g_string_truncate(text, 0);
    for (i = 0; i < 40; i++) {
        g_string_append_printf(text, "%" PRIx64 " t f%u\n",
                               UINT64_C(0xffffffff81000000) + i * 0x10000,
                               i);
        addrs[i % 8] = UINT64_C(0xffffffff81000000) + i % 8 * 0x10000;
    }
    s = parse(text->str);
    g_assert_false(ht_symbols_shift(s, addrs, 8, &shift));
    ht_symbols_free(s);
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/symbols/find", test_find);
    g_test_add_func("/symbols/same-name", test_same_name);
    g_test_add_func("/symbols/malformed", test_malformed);
    g_test_add_func("/symbols/nothing", test_nothing);
    g_test_add_func("/symbols/shift", test_shift);
    return g_test_run();
}
