/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compare the texts of events with those that libtraceevent prints
 *
 * Promise: random records of each tested format are printed as libtraceevent
 * prints them.  Exceptions are formats with %c, formats that libtraceevent does
 * not understand, and the formats in the table below.  The test uses the
 * formats in this file and, with HT_FORMATS=FILE, also those of a kernel
 * ("hypertrace formats" prints them).  test_texts() in tests/e2e/test_record.py
 * runs it with the formats of a stock kernel.
 */
#include <event-parse.h>
#include <string.h>
#include <trace-seq.h>

#include "hypertrace/base.h"
#include "ftrace-guest.h"
#include "print/print-program.h"

#define RECORDS         1000
#define SYMBOL_BASE     UINT64_C(0xffffffff81000000)
#define SYMBOLS         64
#define RECORD_MAX      65536

/* Formats that libtraceevent 1.7 prints in another way, and the reason */
static const struct {
    const char *event, *why;
} differs[] = {
    { "ext4:ext4_fc_stats", "an array whose length is a name has no elements"
      " there" },
    { "fs_dax:dax_*", "a flag whose value is not known is taken for 0 there" },
    { "hugetlbfs:hugetlbfs_setattr", "'%.*s' with a precision below 0 is not"
      " understood there" },
    { "kmem:mm_page_alloc_extfrag", "'?:' in a comparison is misread there" },
    { "ras:aer_event", "'?:' in a '?:' is misread there" },
    { "rpm:rpm_status", "-1 has no name there" },
    { "sched:sched_skip_cpuset_numa", "'%*pbl' is not known there" },
    { "sock:sock_*_length", "numbers below 0 are above it there" },
    { "thermal_power_allocator:*", "an array has no '{0x}' there" },
    { "timer:itimer_state", "numbers below 0 are divided as unsigned there" },
    { "timer:timer_start", "'&' with '|' in parentheses is misread there" },
    { "vmscan:mm_vmscan_throttled", "names without values are taken for 0"
      " there" },
    { "writeback:*", "names without values are taken for 0 there" },
};

/* Print formats; test_own() gives each to an event with the fields below. */
static const char * const own[] = {
    "\"%d %i %u %x %X %o\", REC->s32, REC->s32, REC->u32, REC->u32, REC->u32,"
        " REC->u32",
    "\"%hd %hu %hhd %hhx\", REC->s16, REC->u16, REC->s8, REC->u8",
    "\"%ld %lu %lx %lld %llu %llx %zu\", (long)REC->s64, REC->u64, REC->u64,"
        " REC->s64, REC->u64, REC->u64, REC->u64",
    "\"[%5d|%-5d|%05u|%16llx|%.3hhd]\", REC->s32, REC->s32,"
        " REC->u32, REC->u64, REC->s8",
    "\"[%*d|%-12s|%12s|%.*s]\", 9, REC->s32, REC->text, REC->text, 3,"
        " REC->text",
    "\"%s %s\", REC->text, __get_str(name)",
    "\"%lu %d\", (REC->u64 & ~4095UL) >> 12, REC->u32 > 5",
    "\"%u %u\", ((unsigned int) ((REC->u32) >> 20)),"
        " ((unsigned int) ((REC->u32) & ((1U << 20) - 1)))",
    "\"%d %d %d\", 1 | 2 ^ 3 & 6, 1 << 2 + 1, ~REC->u8 & 0xff",
    "\"%s\", __print_flags(REC->u32, \"|\", { 1, \"A\" }, { 2, \"B\" },"
        " { 1UL << 2, \"C\" }, { (unsigned long)(( gfp_t)((((1UL))) << (3))),"
        " \"D\" }, { 0x30, \"E\" })",
    "\"%s\", REC->u64 ? __print_flags(REC->u64, \"\", { 1, \"A\" },"
        " { 4, \"C\" }) : \"none\"",
    "\"%s %s\", __print_symbolic(REC->u8, { 0, \"ZERO\" }, { 1, \"ONE\" }),"
        " __print_symbolic(REC->s32, { 0, \"Z\" }, { NOT_KNOWN, \"N\" },"
        " { 2, \"TWO\" })",
    "\"%s %s\", __print_hex(__get_dynamic_array(blob),"
        " __get_dynamic_array_len(blob)), __print_hex_str(REC->bytes, 6)",
    "\"%llu %d\", REC->args[1], REC->args[0] & 1",
    "\"[%8s|%-8s|%8s|%8s]\", 5, 12, REC->u8 ? \"a\" : 7, 2 - 3",
    "\"[%20s|%-20s|%*s|%.2s]\", REC->u64, REC->s64, 30, REC->addr, REC->u64",
    "\"%s|%s\", __get_bitmask(mask), __get_cpumask(mask)",
    "\"%pI4 %pi4 %pI4h %pI4l\", REC->ip4, REC->ip4, REC->ip4, REC->ip4",
    "\"%pI6 %pi6 %pI6c\", REC->ip6, REC->ip6, REC->ip6",
    "\"%pISpc %pISc %pIS\", REC->sock, REC->sock, REC->sock",
    "\"%pM %pm %pMR %pMF\", REC->mac, REC->mac, REC->mac, REC->mac",
    "\"%pU %pUb %pUB %pUl %pUL\", REC->ip6, REC->ip6, REC->ip6, REC->ip6,"
        " REC->ip6",
    "\"%*phD %*phC %*phN %*ph\", 4, __get_dynamic_array(blob), 99,"
        " __get_dynamic_array(blob), 2, __get_dynamic_array(blob), 3,"
        " __get_dynamic_array(blob)",
    "\"%pS %ps %p %pS\", (void *)REC->addr, (void *)REC->addr, (void *)REC->u64,"
        " (void *)REC->u64",
    "\"%d\", __builtin_expect(!!(REC->u32 > 9), 0) ? 4 : 5",
    "\"addr=0x%lx err=%ld\", __builtin_expect(!!((unsigned long)(void *)"
        "(REC->addr) >= (unsigned long)-4095), 0) ? 0 : REC->addr,"
        " __builtin_expect(!!((unsigned long)(void *)(REC->addr) >="
        " (unsigned long)-4095), 0) ? REC->addr : 0",
    "\"100%% \\\"\\t%s\\n\" \"more %d\", \"ab\", REC->pid",
};

static const char own_fields[] =
    FG_COMMON_FIELDS
    "\tfield:u8 u8;\toffset:8;\tsize:1;\tsigned:0;\n"
    "\tfield:s8 s8;\toffset:9;\tsize:1;\tsigned:1;\n"
    "\tfield:u16 u16;\toffset:10;\tsize:2;\tsigned:0;\n"
    "\tfield:s16 s16;\toffset:12;\tsize:2;\tsigned:1;\n"
    "\tfield:u32 u32;\toffset:16;\tsize:4;\tsigned:0;\n"
    "\tfield:int s32;\toffset:20;\tsize:4;\tsigned:1;\n"
    "\tfield:u64 u64;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:s64 s64;\toffset:32;\tsize:8;\tsigned:1;\n"
    "\tfield:unsigned long addr;\toffset:40;\tsize:8;\tsigned:0;\n"
    "\tfield:char text[16];\toffset:48;\tsize:16;\tsigned:0;\n"
    "\tfield:u64 args[3];\toffset:64;\tsize:24;\tsigned:0;\n"
    "\tfield:u8 bytes[6];\toffset:88;\tsize:6;\tsigned:0;\n"
    "\tfield:__u8 mac[6];\toffset:94;\tsize:6;\tsigned:0;\n"
    "\tfield:__u8 ip4[4];\toffset:100;\tsize:4;\tsigned:0;\n"
    "\tfield:__u8 ip6[16];\toffset:104;\tsize:16;\tsigned:0;\n"
    "\tfield:__u8 sock[28];\toffset:120;\tsize:28;\tsigned:0;\n"
    "\tfield:__data_loc char[] name;\toffset:148;\tsize:4;\tsigned:0;\n"
    "\tfield:__data_loc u8[] blob;\toffset:152;\tsize:4;\tsigned:0;\n"
    "\tfield:__data_loc u32[] words;\toffset:156;\tsize:4;\tsigned:0;\n"
    "\tfield:__data_loc unsigned long[] mask;\toffset:160;\tsize:4;"
    "\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:164;\tsize:4;\tsigned:1;\n";

static uint64_t random64(void)
{
    return (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
}

/* Return the numbers in a print format, such as those that have names in it. */
static GArray *numbers_of(const HtFtEvent *e)
{
    GArray *all = g_array_new(false, false, sizeof(uint64_t));
    const char *p = g_strstr_len(e->text, e->text_size, "print fmt:");
    const char *end = e->text + e->text_size;

    for (; p && p < end; p++) {
        if (g_ascii_isdigit(*p) && !g_ascii_isalnum(p[-1]) && p[-1] != '_') {
            uint64_t v = g_ascii_strtoull(p, (char **)&p, 0);

            g_array_append_val(all, v);
        }
    }
    return all;
}

/*
 * Return whether the format may print an array with a length that is the value
 * of a field. Then random values of the fields must be small, so that the array
 * stays within the record.
 */
static bool is_counted(const HtFtEvent *e)
{
    const char *p = g_strstr_len(e->text, e->text_size, "print fmt:");
    gssize len = e->text + e->text_size - p;

    return g_strstr_len(p, len, "__print_hex") ||
           g_strstr_len(p, len, "__print_array") ||
           g_strstr_len(p, len, "%*p");
}

static bool has_char(const HtFtEvent *e)
{
    const char *p = g_strstr_len(e->text, e->text_size, "print fmt:");

    return g_strstr_len(p, e->text + e->text_size - p, "%c");
}

/*
 * Choose the value of a field: 0 to 4 if @counted; else any number, an address
 * near a symbol, and, if @edges_too, also a limit of a type, a number of the
 * print format (@pool) or a number below 40.
 */
static uint64_t random_number(const GArray *pool, bool counted, bool edges_too)
{
    static const uint64_t edges[] = {
        0, 1, UINT64_MAX, INT32_MAX, (uint64_t)INT32_MIN, INT64_MAX,
        (uint64_t)INT64_MIN, UINT32_MAX, 255, 65535,
    };

    if (counted) {
        return g_test_rand_int_range(0, 5);
    }
    switch (g_test_rand_int_range(edges_too ? 0 : 3, 7)) {
    case 0:
        return edges[g_test_rand_int_range(0, G_N_ELEMENTS(edges))];
    case 1:
        return pool->len ? g_array_index(pool, uint64_t,
                                         g_test_rand_int_range(0, pool->len)) :
               0;
    case 2:
        return g_test_rand_int_range(0, 40);
    case 3:
        return SYMBOL_BASE + g_test_rand_int_range(0, SYMBOLS * 4096);
    default:
        return random64();
    }
}

static void random_text(uint8_t *p, size_t size)
{
    size_t i, len = size ? g_test_rand_int_range(0, size) : 0;

    memset(p, 0, size);
    for (i = 0; i < len; i++) {
        p[i] = g_test_rand_int_range(' ' + 1, 127);
    }
}

static void random_bytes(uint8_t *p, size_t size)
{
    size_t i;

    for (i = 0; i < size; i++) {
        p[i] = g_test_rand_int_range(0, 3) ? g_test_rand_int() : 0;
    }
    if (size >= 16 && g_test_rand_bit()) {
        ht_put_le16(p, g_test_rand_bit() ? 2 : 10);
    }
    if (size >= 16 && !g_test_rand_int_range(0, 8)) {
        memset(p, 0, 10);       /* an IPv4 address in IPv6 */
        p[10] = p[11] = 0xff;
    }
}

/* Make a random record as a kernel could write it; return its size. */
static size_t random_record(const HtFtEvent *e, const GArray *pool,
                            bool counted, bool edges, uint8_t *r)
{
    size_t size = HT_FT_COMMON_SIZE, i;

    for (i = 0; i < e->nr_fields; i++) {
        size = MAX(size, (size_t)e->fields[i].offset + e->fields[i].size);
    }
    memset(r, 0, size);
    ht_put_le16(r, e->id);
    r[2] = g_test_rand_int();
    r[3] = g_test_rand_int();
    ht_put_le32(r + 4, g_test_rand_int_range(0, 40000));
    for (i = 0; i < e->nr_fields; i++) {
        const HtFtField *f = &e->fields[i];
        size_t len, at;

        switch (f->kind) {
        case HT_FT_INT:
            at = random_number(pool, counted, edges);
            memcpy(r + f->offset, &at, f->size);
            break;
        case HT_FT_STRING:
            len = f->size ? f->size : 20;
            random_text(r + f->offset, len);
            size = MAX(size, f->offset + len);
            break;
        case HT_FT_DYN_STRING:
        case HT_FT_DYN_ARRAY:
            size = (size + 7) & ~(size_t)7;
            len = f->kind == HT_FT_DYN_STRING ? g_test_rand_int_range(1, 24) :
                  f->elem_size * g_test_rand_int_range(counted ? 5 : 1, 12);
            at = f->relative ? size - f->offset - f->size : size;
            ht_put_le32(r + f->offset, at | len << 16);
            if (f->kind == HT_FT_DYN_STRING) {
                random_text(r + size, len);
            } else {
                random_bytes(r + size, len);
            }
            size += len;
            break;
        default:
            len = f->size ? f->size : 8 * g_test_rand_int_range(1, 9);
            random_bytes(r + f->offset, len);
            size = MAX(size, f->offset + len);
        }
    }
    size = (size + 3) & ~(size_t)3;
    memset(r + size, 0, 16);
    return size;
}

typedef struct Oracle {
    struct tep_handle *tep;
    HtSymbols *symbols;
    struct trace_seq seq;
    uint8_t *record;
    unsigned events;
    /* number of print formats that cannot be compiled to a program */
    unsigned unknown;
    /*
     * number of formats that give other texts than libtraceevent, even if
     * random_number() does not get @edges_too
     */
    unsigned different;
    /* number of formats that do so only if random_number() gets @edges_too */
    unsigned edges;
    unsigned failed;
} Oracle;

static const char *find(const char *event)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(differs); i++) {
        if (g_pattern_match_simple(differs[i].event, event)) {
            return differs[i].why;
        }
    }
    return NULL;
}

static void compare(Oracle *o, const HtFtEvent *e)
{
    const HtPrintSymbols symbols = { .symbols = o->symbols };
    g_autofree char *name = g_strdup_printf("%s:%s", e->system, e->name);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GArray) pool = numbers_of(e);
    g_autofree char *why = NULL, *first = NULL;
    g_autoptr(HtPrint) p = ht_print_new(e, &why);
    bool counted = is_counted(e);
    unsigned i, different = 0, random = 0;
    struct tep_event *event;
    const char *known;

    o->events++;
    if (!p) {
        o->unknown++;
        g_test_message("%s has no program: %s", name, why);
        return;
    }
    if (tep_parse_event(o->tep, e->text, e->text_size, e->system)) {
        g_test_message("libtraceevent does not parse %s", name);
        return;
    }
    event = tep_find_event_by_name(o->tep, e->system, e->name);
    /* libtraceevent 1.7 prints ">c<" for %c: leave out formats with %c */
    if (!event || event->flags & TEP_EVENT_FL_FAILED || has_char(e)) {
        o->events--;
        g_test_message("libtraceevent does not understand %s", name);
        return;
    }
    for (i = 0; i < 2 * RECORDS; i++) {
        bool edges = i >= RECORDS;
        size_t size = random_record(e, pool, counted, edges, o->record);
        struct tep_record record = { .data = o->record, .size = size };

        trace_seq_reset(&o->seq);
        tep_print_event(o->tep, &o->seq, &record, "%s", TEP_PRINT_INFO);
        trace_seq_terminate(&o->seq);
        g_string_truncate(out, 0);
        ht_print(p, o->record, size, &symbols, out);
        if (strcmp(out->str, o->seq.buffer)) {
            first = first ? first : g_strdup_printf("'%s', libtraceevent '%s'",
                                                    out->str, o->seq.buffer);
            different++;
            random += i < RECORDS;
        }
    }
    if (different) {
        known = find(name);
        o->different += random != 0;
        o->edges += random == 0;
        g_test_message("%s: %u of %d random and %u of %d special records"
                       " differ: %s: %s", name, random, RECORDS,
                       different - random, RECORDS, first,
                       known ? known : "NOT EXPLAINED");
        o->failed += !known;
    }
}

static void begin(Oracle *o)
{
    g_autoptr(GString) kallsyms = g_string_new(NULL);
    unsigned i;

    *o = (Oracle) { .tep = tep_alloc(), .record = g_malloc0(RECORD_MAX) };
    tep_set_loglevel(TEP_LOG_NONE);
    tep_set_long_size(o->tep, 8);
    tep_set_file_bigendian(o->tep, TEP_LITTLE_ENDIAN);
    trace_seq_init(&o->seq);
    for (i = 0; i < SYMBOLS; i++) {
        g_autofree char *name = g_strdup_printf("function_%u", i);
        uint64_t addr = SYMBOL_BASE + i * 4096;

        g_string_append_printf(kallsyms, "%" G_GINT64_MODIFIER "x T %s\n",
                               addr, name);
        tep_register_function(o->tep, name, addr, NULL);
    }
    o->symbols = ht_symbols_parse(kallsyms->str, kallsyms->len, NULL);
    g_assert_nonnull(o->symbols);
}

static void end(Oracle *o)
{
    g_test_message("%u formats, %u without a program, %u differ, %u more for"
                   " special numbers", o->events, o->unknown, o->different,
                   o->edges);
    g_assert_cmpuint(o->failed, ==, 0);
    g_assert_cmpuint(o->unknown, ==, 0);
    g_assert_cmpuint(o->different * 100, <=, MAX(o->events, 100));
    tep_free(o->tep);
    trace_seq_destroy(&o->seq);
    ht_symbols_free(o->symbols);
    g_free(o->record);
}

static void test_own(void)
{
    g_autoptr(GString) text = g_string_new("system: own\n");
    g_autoptr(HtFtFormats) f = NULL;
    unsigned i;
    Oracle o;

    for (i = 0; i < G_N_ELEMENTS(own); i++) {
        g_string_append_printf(text, "name: event%u\nID: %u\nformat:\n%s\n"
                               "print fmt: %s\n", i, 500 + i, own_fields,
                               own[i]);
    }
    f = ht_ft_formats_parse(text->str, text->len, NULL);
    g_assert_cmpuint(ht_ft_formats_count(f), ==, G_N_ELEMENTS(own));
    begin(&o);
    for (i = 0; i < ht_ft_formats_count(f); i++) {
        compare(&o, ht_ft_formats_nth(f, i));
    }
    g_assert_cmpuint(o.unknown + o.different + o.edges, ==, 0);
    end(&o);
}

static void test_kernel(void)
{
    g_autoptr(HtFtFormats) f = NULL;
    g_autofree char *text = NULL;
    unsigned i;
    gsize size;
    Oracle o;

    g_assert_true(g_file_get_contents(g_getenv("HT_FORMATS"), &text, &size,
                                      NULL));
    f = ht_ft_formats_parse(text, size, NULL);
    g_assert_nonnull(f);
    begin(&o);
    for (i = 0; i < ht_ft_formats_count(f); i++) {
        compare(&o, ht_ft_formats_nth(f, i));
    }
    end(&o);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/print-oracle/own", test_own);
    if (g_getenv("HT_FORMATS")) {
        g_test_add_func("/print-oracle/kernel", test_kernel);
    }
    return g_test_run();
}
