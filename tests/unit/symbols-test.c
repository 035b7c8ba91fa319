/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel's symbols: found by address and by name
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

/* The first of a name in the text counts, wherever it lies. */
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/symbols/find", test_find);
    g_test_add_func("/symbols/same-name", test_same_name);
    g_test_add_func("/symbols/malformed", test_malformed);
    g_test_add_func("/symbols/nothing", test_nothing);
    return g_test_run();
}
