/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compile print formats to programs, and print records with them
 *
 * Promise: an expression has the value that C gives it, also where
 * libtraceevent computes another one (print-oracle-test.c compares with
 * libtraceevent). A program reads only the bytes of its record, whatever the
 * format and the record are.
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
    /* text that the format must give; NULL: the format is refused */
    const char *expected;
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
      "MINUS 0xfffffffc" },
    { "\"%s\", __print_hex(__get_dynamic_array(blob),"
      " __get_dynamic_array_len(blob))", "01 ab ff" },
    { "\"%s\", __print_array(__get_dynamic_array(blob), 3, 1)",
      "{0x1,0xab,0xff}" },
    { "\"%d pid %d\", __get_dynamic_array_len(name), REC->common_pid",
      "5 pid 77" },
    { "\"%d %d\", 5 / REC->common_flags, 5 % REC->common_flags", "0 0" },
    /* common fields, addresses of array elements, bitmaps with their size */
    { "\"pid %d flags %d\", REC->ent.pid, REC->ent.flags", "pid 77 flags 0" },
    { "\"%d\", REC->ent.nothing", NULL },
    { "\"%s %3ph\", __print_hex(&REC->args[1], 2), &REC->args[2]",
      "14 00 1e 00 00" },
    { "\"%s\", __print_hex(&REC->args[1000], 2)", NULL },
    { "\"[%*pbl|%*pb]\", 24, __get_dynamic_array(blob), 24,"
      " __get_dynamic_array(blob)", "[0,8-9,11,13,15-23|ffab01]" },
    { "\"[%*pbl|%*pb|%9pb]\", 9, __get_dynamic_array(blob), 9,"
      " __get_dynamic_array(blob), __get_dynamic_array(blob)",
      "[0,8|101|101]" },
    { "\"[%*pbl|%*pb|%*pbl]\", 0, __get_dynamic_array(blob), -4,"
      " __get_dynamic_array(blob), 1 << 30, __get_dynamic_array(blob)",
      "[|1|0,8-9,11,13,15-23]" },
    /* operators, types and casts, as in C; a block gives its last value */
    { "\"%d %d\", 7 - 3 - 2, 100 / 7 % 5 * 2 + 1", "2 9" },
    { "\"%d\", REC->n > 5 ? 1 : REC->n < 3 ? 2 : 3", "2" },
    { "\"%s\", REC->n > 7 && REC->u != 3 || !REC->n ? \"yes\" : \"no\"",
      "no" },
    { "\"%d %d\", REC->n < 0, REC->u < 0", "1 0" },
    { "\"%d %d\", REC->n < REC->u, (long)REC->n < REC->u", "0 1" },
    { "\"%d %d\", REC->n / 2, REC->n % 2", "-2 -1" },
    { "\"%d %d\", REC->n >> 1, (unsigned)REC->n >> 31", "-3 1" },
    { "\"%lld\", (long long)(REC->n * REC->u)", "2147483623" },
    { "\"%lu %lu\", (unsigned long)(void *)(REC->addr) >="
      " (unsigned long)-4095 ? 0 : REC->addr, (unsigned long)-1 >="
      " (unsigned long)-4095", "18446744071578853392 1" },
    { "\"%d %u\", (u8)REC->n, (unsigned short)REC->n", "251 65531" },
    { "\"%d\", ({ int x = (REC->n); int y = (128); ((x) < (y) ? (x) :"
      " (y)); })", "-5" },
    { "\"%d %d\", sizeof(u64), sizeof(REC->comm)", "8 8" },
    { "\"%llx\", (((u64)(REC)->u << 32) | 5)", "8000000500000005" },
    { "\"%c%c\", 'a', REC->n ? 'x' : 'y'", "ax" },
    { "\"%s\", \"a\\\"b\"", "a\"b" },
    { "\"%s\", __get_str(name)[0] ? \"some\" : \"none\"", "some" },
    { "\"%lu\", ((unsigned long *)REC->args)[2]", "30" },
    { "\"%d\", *(int *)REC->args", "10" },
    /*
     * A constant with an unknown value (NO_SUCH) equals no number. In a list,
     * an entry with NULL as its text is the end.
     */
    { "\"%s\", __print_symbolic(REC->args[0], { NO_SUCH, \"NONE\" },"
      " { 10, \"TEN\" }, { -1, ((void *)0) })", "TEN" },
    { "\"%s\", __print_symbolic(REC->u, { NO_SUCH, \"NONE\" })",
      "0x80000005" },
    { "\"%s\", __print_flags(REC->common_flags, \"|\","
      " { NO_SUCH, \"NONE\" }, { 0, \"ZERO\" })", "" },
    { "\"%s\", REC->n == NO_SUCH ? \"such\" : \"other\"", "other" },
    /* functions that libtraceevent without plugins does not know */
    { "\"%s|%s\", nvme_trace_disk_name(p, REC->comm),"
      " xen_hypercall_name(REC->args[0])", "disk=comm, |(update_descriptor)" },
    { "\"%lx\", pte_val(native_make_pte(REC->args[1]))", "14" },
    { "\"%llu.%09u\", __print_ns_to_secs(REC->addr),"
      " __print_ns_without_secs(REC->addr)", "18446744071.578853392" },
    /*
     * Unknown functions are printed as calls, with those arguments that can be
     * printed; a format that needs the value of such a call as a number in an
     * expression is refused.  Then statements in parentheses, swaps of bytes,
     * and other rare expressions.
     */
    { "\"%s|%d|%-9s\", no_such(p, REC->n, REC->u), other(REC->comm), f()",
      "no_such(-5, 0x80000005)|other(comm)|f()      " },
    { "\"%s %s\", a(p, __get_dynamic_array(blob), b(\"x\", REC->n ? 1 : 2)),"
      " REC->n ? c(__get_str(name)) : \"none\"",
      "a(01 ab ff, b(x, 1)) c(file)" },
    { "\"%d\", no_such(REC->n) + 1", NULL },
    { "\"%d\", REC->n ? no_such(REC->n) : 1", NULL },
    { "\"%s\", __print_symbolic(no_such(REC->n), { 0, \"ZERO\" })", NULL },
    { "\"%*d\", no_such(1), 1", NULL },
    { "\"%s\", no_such(1", NULL },
    { "\"%d %s %d\", REC->n, ({ static const char *a[] = { \")}\", \"b\" };"
      " int x; x = REC->n; trace_seq_printf(p, \"%d\", '}'); x; }), 3",
      "-5 (not known) 3" },
    { "\"%d\", ({ int x; x = REC->n; x; }) + 1", NULL },
    { "\"%s\", ({ int x; x = REC->n;", NULL },
    { "\"%x %x %llx\", __builtin_bswap16((__u16)REC->n), ntohl(REC->u),"
      " (__u64)__builtin_bswap64(((__u64)(__be64)(REC->args[0])))",
      "fbff 5000080 a00000000000000" },
    { "\"%x\", (__builtin_constant_p((__u16)(REC->u)) ? 1 :"
      " __fswab16(REC->u)) + 1", "501" },
    { "\"%d %d\", REC->n ?: 7, (REC->common_flags ?: REC->common_preempt_count)"
      " ?: 9", "-5 9" },
    { "\"%s|%s\", __print_symbolic(REC->n, { }), __print_symbolic(REC->n,"
      " { 1, \"ONE\", }, { -5, \"MINUS\", })", "0xfffffffb|MINUS" },
    { "\"%pISpsfc|%pIS\", __get_dynamic_array(blob), REC->comm", "|" },
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
        g_autoptr(HtPrint) p = ht_print_new(ht_ft_formats_get(f, 500), NULL);
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

/*
 * Print records of 8 to PRINT_RECORD_SIZE random bytes. A build with sanitizers
 * detects reads beyond the record.
 */
static void test_hostile(void)
{
    unsigned i, k, n;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HtFtFormats) f = parse(cases[i].print);
        g_autoptr(HtPrint) p = ht_print_new(ht_ft_formats_get(f, 500), NULL);

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

/* An expression that is nested too deeply is refused. */
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
    p = ht_print_new(ht_ft_formats_get(f, 500), NULL);
    g_assert_null(p);
}

/*
 * Refuse 60 variables of which all but the first use the previous one twice:
 * their expansion has more than HT_PRINT_NODES_MAX nodes.
 */
static void test_expansion(void)
{
    g_autoptr(GString) s = g_string_new("\"%d\", ({ int a0 = (REC->n);");
    g_autoptr(HtFtFormats) f = NULL;
    g_autofree char *why = NULL;
    g_autoptr(HtPrint) p = NULL;
    unsigned i;

    for (i = 1; i < 60; i++) {
        g_string_append_printf(s, " int a%u = (a%u + a%u);", i, i - 1, i - 1);
    }
    g_string_append(s, " a59; })");
    f = parse(s->str);
    p = ht_print_new(ht_ft_formats_get(f, 500), &why);
    g_assert_null(p);
    g_assert_nonnull(why);
}

/* 300,000 open parentheses are refused and do not use up the stack. */
static void test_parentheses(void)
{
    g_autofree char *open = g_strnfill(300000, '(');
    g_autofree char *print = g_strconcat("\"%d\", ", open, NULL);
    g_autoptr(HtFtFormats) f = parse(print);
    g_autofree char *why = NULL;
    g_autoptr(HtPrint) p = ht_print_new(ht_ft_formats_get(f, 500), &why);

    g_assert_null(p);
    g_assert_cmpstr(why, ==, "an expression is too deep");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/print-fmt/prints", test_prints);
    g_test_add_func("/print-fmt/hostile", test_hostile);
    g_test_add_func("/print-fmt/deep", test_deep);
    g_test_add_func("/print-fmt/expansion", test_expansion);
    g_test_add_func("/print-fmt/parentheses", test_parentheses);
    return g_test_run();
}
