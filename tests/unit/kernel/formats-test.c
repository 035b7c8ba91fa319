/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read a kernel's event formats from its lists: each event has the text that
 * tracefs prints, and lists of a hostile guest cost a bounded number of reads
 * and of bytes
 */
#include "formats-make.h"

typedef struct Test {
    FormatsGuest guest;
    HtBtf *btf;
    HtKernelFormats *formats;
    unsigned reads;
} Test;

static int count_read(void *opaque, uint64_t offset, void *buf, size_t len)
{
    Test *t = opaque;

    t->reads++;
    memcpy(buf, t->guest.mem + offset, len);
    return 0;
}

static void setup(Test *t, uint64_t size)
{
    g_autoptr(GError) error = NULL;

    *t = (Test) { .btf = fm_btf() };
    fm_init(&t->guest, size);
    t->guest.ft = (HtFtMem) { .size = size, .read = count_read, .opaque = t };
    fm_field(&t->guest, FM_COMMON, "unsigned short", "common_type", 0, 2);
    t->formats = ht_kernel_formats_new(&t->guest.space, t->btf, &t->guest.at,
                                       4096, &error);
    g_assert_no_error(error);
}

static void teardown(Test *t)
{
    ht_kernel_formats_free(t->formats);
    ht_btf_free(t->btf);
    fm_clear(&t->guest);
}

static char *text_of(Test *t)
{
    g_autoptr(HtKernelFormatsList) list = NULL;
    g_autoptr(GString) text = NULL;
    const char *first;

    g_assert_cmpint(ht_kernel_formats_step(t->formats, UINT_MAX), ==, 1);
    list = ht_kernel_formats_list(t->formats);
    text = ht_kernel_formats_list_text(list);
    first = strstr(text->str, "system: ");
    return g_strdup(first ? first : "");
}

#define COMMON "\tfield:unsigned short common_type;\toffset:0;\tsize:2;" \
    "\tsigned:0;\n"

static void test_text(void)
{
    g_autofree char *text = NULL;
    uint64_t fields;
    Test t;

    setup(&t, 1 << 16);
    fields = fm_event(&t.guest, 300, "sched", "sched_one", "\"%d\", REC->a");
    fm_field(&t.guest, fields, "int", "a", 8, 4);
    fm_field(&t.guest, fields, "char[16]", "b\n", 12, 16);
    fm_event(&t.guest, 301, "irq", "irq_one", "\"\"");
    text = text_of(&t);
    g_assert_cmpstr(text, ==,
        "system: irq\nname: irq_one\nID: 301\nformat:\n" COMMON
        "\n\nprint fmt: \"\"\n"
        "system: sched\nname: sched_one\nID: 300\nformat:\n" COMMON
        "\n\tfield:int a;\toffset:8;\tsize:4;\tsigned:0;\n"
        "\tfield:char b?[16];\toffset:12;\tsize:16;\tsigned:0;\n"
        "\nprint fmt: \"%d\", REC->a\n");
    teardown(&t);
}

/*
 * The format of an event that the kernel removes is kept. If another event then
 * gets the same id, a record with this id may be of either event: the text has
 * one event unsure_ID in place of both.
 */
static void test_reused(void)
{
    g_autofree char *removed = NULL, *reused = NULL;
    Test t;

    setup(&t, 1 << 16);
    fm_event(&t.guest, 299, "a", "stays", "\"\"");
    fm_event(&t.guest, 300, "a", "goes", "\"\"");
    g_free(text_of(&t));
    g_assert_false(ht_kernel_formats_changed(t.formats, true));
    fm_remove(&t.guest);
    g_assert_true(ht_kernel_formats_changed(t.formats, true));
    removed = text_of(&t);
    g_assert_nonnull(strstr(removed, "name: goes\nID: 300\n"));
    fm_event(&t.guest, 300, "a", "comes", "\"\"");
    reused = text_of(&t);
    g_assert_null(strstr(reused, "goes"));
    g_assert_null(strstr(reused, "comes"));
    g_assert_nonnull(strstr(reused, "name: unsure_300\nID: 300\n"));
    g_assert_nonnull(strstr(reused, "name: stays\nID: 299\n"));
    teardown(&t);
}

/*
 * A probe is removed, and another probe with the same id and name is made. If
 * the fields' names, offsets, sizes or number differ, a record may be of either
 * probe: the event is called unsure_ID.
 */
static void test_made_again(void)
{
    static const struct {
        const char *name;
        uint32_t offset, bytes;
        bool more;
        bool unsure;
    } rows[] = {
        { "n", 8, 4, false, false }, { "m", 8, 4, false, true },
        { "n", 16, 4, false, true }, { "n", 8, 8, false, true },
        { "n", 8, 4, true, true },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *before = NULL, *after = NULL;
        uint64_t fields;
        Test t;

        setup(&t, 1 << 16);
        fm_event(&t.guest, 299, "a", "stays", "\"\"");
        fields = fm_event(&t.guest, 300, "a", "probe", "\"%d\", REC->n");
        fm_field(&t.guest, fields, "u32", "n", 8, 4);
        before = text_of(&t);
        g_assert_null(strstr(before, "unsure"));
        fm_remove(&t.guest);
        fields = fm_event(&t.guest, 300, "a", "probe", "\"%d\", REC->n");
        fm_field(&t.guest, fields, "u32", rows[i].name, rows[i].offset,
                 rows[i].bytes);
        if (rows[i].more) {
            fm_field(&t.guest, fields, "u32", "more", 12, 4);
        }
        after = text_of(&t);
        g_assert_cmpint(strstr(after, "unsure_300") != NULL, ==,
                        rows[i].unsure);
        teardown(&t);
    }
}

/*
 * The kernel adds an event to its list before it adds the event's fields. If a
 * later pass finds more fields, the event is not called unsure_ID.
 */
static void test_early(void)
{
    g_autofree char *before = NULL, *after = NULL;
    uint64_t fields;
    Test t;

    setup(&t, 1 << 16);
    fields = fm_event(&t.guest, 300, "a", "early", "\"%d\", REC->n");
    before = text_of(&t);
    fm_field(&t.guest, fields, "u32", "n", 8, 4);
    g_free(text_of(&t));
    fm_field(&t.guest, fields, "u32", "m", 12, 4);
    after = text_of(&t);
    g_assert_nonnull(strstr(after, "field:u32 m;\toffset:12;\tsize:4;"));
    g_assert_null(strstr(after, "unsure"));
    teardown(&t);
}

/*
 * During its boot the kernel replaces names of enumerators in print formats by
 * numbers. Each call of ht_kernel_formats_changed() with texts=true tests one
 * print format that had names in the last pass. New bytes in the memory of a
 * removed event's print format are no change.
 */
static void test_named(void)
{
    g_autofree char *before = NULL, *after = NULL;
    unsigned i, found = 0;
    Test t;

    setup(&t, 1 << 16);
    for (i = 0; i < 20; i++) {
        fm_event(&t.guest, 300 + i, "a", "names", "{  NAME, \"n\" }");
        fm_event(&t.guest, 400 + i, "a", "numbers", "{ 7, \"n\" }");
    }
    fm_event(&t.guest, 500, "a", "goes", "{ _GOES, \"n\" }");
    before = text_of(&t);
    fm_remove(&t.guest);
    g_free(text_of(&t));
    for (i = 0; i < 40; i++) {
        g_assert_false(ht_kernel_formats_changed(t.formats, true));
    }
    g_assert_nonnull(strstr(before, "NAME"));
    for (i = 0; i < t.guest.used - 8; i++) {
        uint8_t *p = t.guest.mem + i;

        if (!memcmp(p, "  NAME", 6) || !memcmp(p, " _GOES", 6)) {
            memcpy(p, "     1", 6);
            found++;
        }
    }
    g_assert_cmpuint(found, ==, 21);
    g_assert_false(ht_kernel_formats_changed(t.formats, false));
    g_assert_true(ht_kernel_formats_changed(t.formats, true));
    after = text_of(&t);
    g_assert_null(strstr(after, "NAME"));
    for (i = 0; i < 40; i++) {
        g_assert_false(ht_kernel_formats_changed(t.formats, true));
    }
    teardown(&t);
}

/*
 * A pass over the formats ends although a list is circular. If this is an
 * event's list of fields, only this event is left out; if it is the list of
 * events, the pass fails with -ELOOP.
 */
static void test_circles(void)
{
    g_autofree char *text = NULL;
    uint64_t fields, field;
    Test t;

    setup(&t, 1 << 16);
    fm_event(&t.guest, 299, "a", "good", "\"\"");
    fields = fm_event(&t.guest, 300, "a", "circle", "\"\"");
    fm_field(&t.guest, fields, "int", "a", 8, 4);
    field = fm_get(&t.guest, fields);
    fm_put(&t.guest, field + 8, field);
    text = text_of(&t);
    g_assert_nonnull(strstr(text, "name: good\n"));
    g_assert_null(strstr(text, "name: circle\n"));

    fm_put(&t.guest, fm_get(&t.guest, FM_EVENTS),
           fm_get(&t.guest, FM_EVENTS));
    g_assert_cmpint(ht_kernel_formats_step(t.formats, UINT_MAX), ==, -ELOOP);
    teardown(&t);
}

#define MANY 1000u
/* Number of reads that an event may take beyond the limit of a step */
#define ONE_EVENT 600u

/* Add @n events that share a list of 128 fields with texts of maximum length */
static void fill(Test *t, unsigned n)
{
    g_autofree char *name = g_strnfill(256, 'n');
    g_autofree char *print = g_strnfill(16384, 'p');
    uint64_t fields, class, call, printed;
    unsigned i;

    fields = fm_event(&t->guest, 300, "a", "first", "\"\"");
    for (i = 0; i < HT_KERNEL_FIELDS_MAX; i++) {
        g_autofree char *type = g_strdup_printf("%0512u", i);

        fm_field(&t->guest, fields, type, name, 8, 8);
    }
    class = fields - FM_CLASS_FIELDS;
    printed = fm_text(&t->guest, print);
    for (i = 1; i < n; i++) {
        fm_event(&t->guest, 300 + i, "a", "other", "");
        call = fm_get(&t->guest, FM_EVENTS);
        fm_put(&t->guest, call + FM_CALL_CLASS, class);
        fm_put(&t->guest, call + FM_CALL_PRINT, printed);
    }
}

static void test_reads(void)
{
    unsigned reads = 1024;
    int ret = 0;
    Test t;

    setup(&t, 1 << 20);
    fill(&t, 10);
    while (!ret) {
        t.reads = 0;
        ret = ht_kernel_formats_step(t.formats, reads);
        /*
         * twice the limit, because a step does not count all reads: a word
         * is read until two reads agree, which may count as one read
         */
        g_assert_cmpuint(t.reads, <=, 2 * (reads + ONE_EVENT));
    }
    g_assert_cmpint(ret, ==, 1);
    g_assert_cmpuint(ht_kernel_formats_count(t.formats), ==, 10);
    teardown(&t);
}

/*
 * An idle recorder repeats passes over the formats. A pass that is one step
 * reads each page of the guest at most once, except for some pointers.
 */
static void test_pages(void)
{
    const unsigned n = 40, pages = 16;
    unsigned i;
    Test t;

    setup(&t, pages * 4096);
    for (i = 0; i < n; i++) {
        uint64_t fields = fm_event(&t.guest, 300 + i, "system", "event",
                                   "\"%d\"");

        fm_field(&t.guest, fields, "int", "a", 8, 4);
        fm_field(&t.guest, fields, "int", "b", 12, 4);
    }
    for (i = 0; i < 2; i++) {
        t.reads = 0;
        g_assert_cmpint(ht_kernel_formats_step(t.formats, UINT_MAX), ==, 1);
        /*
         * in addition, a pointer that may be torn is read alone, until two
         * reads of it agree
         */
        g_assert_cmpuint(t.reads, <=, pages + 2 * (1 + n));
    }
    g_assert_cmpuint(ht_kernel_formats_count(t.formats), ==, n);
    teardown(&t);
}

static void test_bytes(void)
{
    Test t;
    unsigned i;

    setup(&t, 1 << 20);
    fill(&t, MANY);
    for (i = 0; i < 3; i++) {
        g_assert_cmpint(ht_kernel_formats_step(t.formats, UINT_MAX), ==, 1);
        g_assert_cmpuint(ht_kernel_formats_bytes(t.formats), >, 15 << 20);
        g_assert_cmpuint(ht_kernel_formats_bytes(t.formats), <=, 16 << 20);
    }
    g_assert_cmpuint(ht_kernel_formats_count(t.formats), <, MANY);
    teardown(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/formats/text", test_text);
    g_test_add_func("/formats/reused", test_reused);
    g_test_add_func("/formats/made-again", test_made_again);
    g_test_add_func("/formats/early", test_early);
    g_test_add_func("/formats/named", test_named);
    g_test_add_func("/formats/circles", test_circles);
    g_test_add_func("/formats/reads", test_reads);
    g_test_add_func("/formats/pages", test_pages);
    g_test_add_func("/formats/bytes", test_bytes);
    return g_test_run();
}
