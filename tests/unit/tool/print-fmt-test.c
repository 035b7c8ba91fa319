/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Print formats as programs: what they print, and that no record makes them
 * read elsewhere
 */
#include <string.h>

#include "hypertrace/base.h"
#include "print-event.h"
#include "print/print-program.h"

static HtFtFormats *parse(const char *print)
{
    g_autofree char *text = g_strconcat(print_event, print, "\n", NULL);
    HtFtFormats *f = ht_ft_formats_parse(text, strlen(text), NULL);

    g_assert_nonnull(f);
    return f;
}

static const struct {
    const char *print;
    const char *expected;       /* NULL: not understood */
} cases[] = {
    { "\"plain 100%%\\ttext\"", "plain 100%\ttext" },
    { "\"%d %i %u %x %X %x\", REC->n, REC->n, REC->u, REC->u, REC->u, REC->u",
      "-5 -5 2147483653 80000005 80000005 80000005" },
    { "\"%ld %lx\", (long)REC->n, (unsigned long)REC->u", "-5 80000005" },
    { "\"%hd %hhu\", REC->u, REC->u", "5 5" },
    { "\"[%5d|%-5d|%05u|%+d]\", REC->n, REC->n, REC->args[0], 3",
      "[   -5|-5   |00010|+3]" },
    { "\"[%*d|%.2s|%8s|%-8s]\", 4, REC->n, REC->comm, REC->comm, REC->comm",
      "[  -5|co|    comm|comm    ]" },
    { "\"%s %s %c\", REC->comm, __get_str(name), 'x' == 'x' ? 65 : 66",
      "comm file A" },
    { "\"%pS %ps %p\", (void *)REC->addr, (void *)REC->addr,"
      " (void *)REC->addr", "second+0x10 second 0xffffffff81002010" },
    { "\"%llu %lu\", REC->args[1], REC->args[5]", "20 0" },
    { "\"%d %d\", 100 + REC->args[1] * 2 - 7, REC->args[2] >> 1", "133 15" },
    { "\"%s\", REC->n < 0 ? \"below\" : \"above\"", "below" },
    { "\"%s\", REC->n > 0 && REC->u ? \"both\" : \"no\"", "no" },
    { "\"%d %d %d\", !REC->n, ~REC->n, REC->u & 0xf", "0 4 5" },
    { "\"%s\", __print_flags(REC->u, \"|\", { 1, \"ONE\" }, { 2, \"TWO\" },"
      " { 4, \"FOUR\" })", "ONE|FOUR|0x80000000" },
    { "\"%s %s\", __print_symbolic(REC->n, { -5, \"MINUS\" }),"
      " __print_symbolic(REC->n + 1, { -5, \"MINUS\" })",
      "MINUS 0xfffffffffffffffc" },
    { "\"%s\", __print_hex(__get_dynamic_array(blob),"
      " __get_dynamic_array_len(blob))", "01 ab ff" },
    { "\"%s\", __print_array(__get_dynamic_array(blob), 3, 1)",
      "{0x1,0xab,0xff}" },
    { "\"%d pid %d\", __get_dynamic_array_len(name), REC->common_pid",
      "5 pid 77" },
    { "\"%d %d\", 5 / REC->common_flags, 5 % REC->common_flags", "0 0" },
    { "\"%pI4\", REC->args", NULL },
    { "\"%s\", no_such_function(REC->n)", NULL },
    { "\"%d %d\", REC->n", NULL },
};

static const char kallsyms[] =
    "ffffffff81001000 T first\n"
    "ffffffff81002000 T second\n"
    "ffffffff81003000 T third\n";

static void test_prints(void)
{
    g_autoptr(HtSymbols) symbols = ht_symbols_parse(kallsyms,
                                                    strlen(kallsyms), NULL);
    const HtPrintSymbols s = { .symbols = symbols };
    uint8_t r[PRINT_RECORD_SIZE];
    unsigned i;

    print_make_record(r);
    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HtFtFormats) f = parse(cases[i].print);
        g_autoptr(HtPrint) p = ht_print_new(ht_ft_formats_get(f, 500));
        g_autoptr(GString) out = g_string_new(NULL);

        g_test_message("%s", cases[i].print);
        if (!cases[i].expected) {
            g_assert_null(p);
            continue;
        }
        g_assert_nonnull(p);
        ht_print(p, r, sizeof(r), &s, out);
        g_assert_cmpstr(out->str, ==, cases[i].expected);
    }
}

/* Records of every size, and of random bytes; a sanitizer would see */
static void test_hostile(void)
{
    unsigned i, k, n;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HtFtFormats) f = parse(cases[i].print);
        g_autoptr(HtPrint) p = ht_print_new(ht_ft_formats_get(f, 500));

        for (k = 0; p && k < 300; k++) {
            gsize size = 8 + k % (PRINT_RECORD_SIZE - 7);
            g_autofree uint8_t *r = g_malloc(size);
            g_autoptr(GString) out = g_string_new(NULL);

            for (n = 0; n < size; n++) {
                r[n] = g_test_rand_int();
            }
            ht_print(p, r, size, NULL, out);
            g_assert_cmpuint(out->len, <, 16384);
        }
    }
}

/* An expression that is too deep is not understood, and nothing else */
static void test_deep(void)
{
    g_autoptr(GString) s = g_string_new("\"%d\", ");
    g_autoptr(HtFtFormats) f = NULL;
    g_autoptr(HtPrint) p = NULL;
    unsigned i;

    for (i = 0; i < 200; i++) {
        g_string_append(s, "REC->n + (");
    }
    g_string_append(s, "1");
    for (i = 0; i < 200; i++) {
        g_string_append(s, ")");
    }
    f = parse(s->str);
    p = ht_print_new(ht_ft_formats_get(f, 500));
    g_assert_null(p);
}

/* What overflows libtraceevent's stack costs this format, and no other. */
static void test_crash(void)
{
    g_autofree char *open = g_strnfill(300000, '(');
    g_autofree char *print = g_strconcat("\"%d\", ", open, NULL);
    g_autoptr(HtFtFormats) bad = parse(print), good = parse(cases[0].print);
    g_autoptr(HtPrint) p = ht_print_new(ht_ft_formats_get(bad, 500));
    g_autoptr(HtPrint) q = ht_print_new(ht_ft_formats_get(good, 500));

    g_assert_null(p);
    g_assert_nonnull(q);
}

/* The program is the same as if libtraceevent ran in this process. */
static void check_same(const HtFtFormats *f)
{
    gint64 took[2] = { 0 };
    unsigned i, understood = 0;

    for (i = 0; i < ht_ft_formats_count(f); i++) {
        const HtFtEvent *e = ht_ft_formats_nth(f, i);
        gint64 begin = g_get_monotonic_time(), between;
        g_autoptr(HtPrint) here = ht_print_compile(e), there = NULL;

        between = g_get_monotonic_time();
        there = ht_print_new(e);
        took[0] += between - begin;
        took[1] += g_get_monotonic_time() - between;
        g_assert_true(!here == !there);
        if (here) {
            g_autoptr(GBytes) a = ht_print_encode(here);
            g_autoptr(GBytes) b = ht_print_encode(there);

            g_assert_true(g_bytes_equal(a, b));
            understood++;
        }
    }
    g_test_message("%u formats, %u understood, %" G_GINT64_FORMAT " us here,"
                   " %" G_GINT64_FORMAT " us there", i, understood, took[0],
                   took[1]);
}

/* Of a kernel's formats, too, if HT_FORMATS is a file of them */
static void test_same(void)
{
    const char *path = g_getenv("HT_FORMATS");
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HtFtFormats) f = parse(cases[i].print);

        check_same(f);
    }
    if (path) {
        g_autoptr(HtFtFormats) f = NULL;
        g_autofree char *text = NULL;
        gsize size;

        g_assert_true(g_file_get_contents(path, &text, &size, NULL));
        f = ht_ft_formats_parse(text, size, NULL);
        g_assert_nonnull(f);
        check_same(f);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/print-fmt/prints", test_prints);
    g_test_add_func("/print-fmt/hostile", test_hostile);
    g_test_add_func("/print-fmt/deep", test_deep);
    g_test_add_func("/print-fmt/crash", test_crash);
    g_test_add_func("/print-fmt/same", test_same);
    return g_test_run();
}
