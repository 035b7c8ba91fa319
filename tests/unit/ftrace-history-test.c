/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages and formats that a guest's module sent: as a recording, and what of
 * them is none
 */
#include <glib/gstdio.h>

#include "hypertrace/ftrace-format.h"
#include "hypertrace/ftrace-history.h"
#include "hypertrace/ftrace-page.h"

static char *dir;
static HtRecWriter *w;
static HtFtHistory *h;

static void begin(void)
{
    dir = g_dir_make_tmp("ftrace-history-XXXXXX", NULL);
    w = ht_rec_writer_new(dir, NULL);
    g_assert_nonnull(w);
    h = ht_ft_history_new(w);
}

static HtRecording *end(void)
{
    HtRecording *r;

    ht_rec_writer_file(w, "info", "[recording]\nversion=1\n", -1, NULL);
    ht_rec_writer_free(w);
    r = ht_rec_open(dir, NULL);
    g_assert_nonnull(r);
    return r;
}

static void clear(HtRecording *r)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;

    ht_rec_close(r);
    ht_ft_history_free(h);
    while ((name = g_dir_read_name(d))) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        g_unlink(path);
    }
    g_rmdir(dir);
    g_free(dir);
}

/* Records of 8 bytes each, a nanosecond apart, from @ns on */
static uint32_t page(uint8_t *to, uint64_t ns, unsigned records, uint16_t type)
{
    uint32_t flags = 0;
    unsigned i;

    memset(to, 0, 4096);
    memcpy(to, &ns, sizeof(ns));
    for (i = 0; i < records; i++) {
        uint32_t word = 2 | 1 << 5;

        memcpy(to + 16 + 12 * i, &word, sizeof(word));
        memcpy(to + 20 + 12 * i, &type, sizeof(type));
    }
    flags = 12 * records;
    memcpy(to + 8, &flags, sizeof(flags));
    return 16 + 12 * records;
}

static void put(uint32_t cpu, uint32_t seq, const uint8_t *p, uint32_t size)
{
    g_autofree uint8_t *copy = g_memdup2(p, size);

    g_assert_true(ht_ft_history_page(h, cpu, seq, copy, size, NULL));
}

/* Two processors, twice: each time is a boot. */
static void test_whole(void)
{
    uint8_t p[4096];
    HtRecording *r;
    HtRecEvent ev;
    unsigned i;

    begin();
    g_assert_cmpuint(ht_ft_history_begin(h), ==, 0);
    put(0, 0, p, page(p, 100, 3, 7));
    put(0, 1, p, page(p, 200, 2, 8));
    put(1, 0, p, page(p, 150, 1, 9));
    g_assert_cmpuint(ht_ft_history_begin(h), ==, 1);
    put(1, 0, p, page(p, 50, 1, 10));
    r = end();
    for (i = 0; i < 7; i++) {
        static const struct {
            uint64_t ns;
            uint32_t cpu, epoch;
            uint16_t type;
        } want[] = {
            { 101, 0, 0, 7 }, { 102, 0, 0, 7 }, { 103, 0, 0, 7 },
            { 151, 1, 0, 9 }, { 201, 0, 0, 8 }, { 202, 0, 0, 8 },
            { 51, 1, 1, 10 },
        };

        g_assert_true(ht_rec_next(r, &ev));
        g_assert_cmpuint(ev.ns, ==, want[i].ns);
        g_assert_cmpuint(ev.cpu, ==, want[i].cpu);
        g_assert_cmpuint(ev.epoch, ==, want[i].epoch);
        g_assert_cmpuint(ev.type, ==, want[i].type);
        g_assert_false(ev.lost_before);
    }
    g_assert_false(ht_rec_next(r, &ev));
    g_assert_cmpuint(ht_ft_history_stats(h).events, ==, 7);
    g_assert_cmpuint(ht_ft_history_stats(h).gaps, ==, 0);
    g_assert_cmpuint(ht_ft_history_stats(h).bad, ==, 0);
    clear(r);
}

/* Up to which event a recording has them, and before which some are missing */
static void check(HtRecording *r, const char *want)
{
    g_autoptr(GString) have = g_string_new(NULL);
    HtRecEvent ev;

    while (ht_rec_next(r, &ev)) {
        g_string_append_printf(have, "%s%u", ev.lost_before ? "!" : " ",
                               ev.type);
    }
    g_assert_cmpstr(have->str, ==, want);
    g_assert_cmpuint(ht_rec_damaged(r), ==, 0);
}

static void test_missing(void)
{
    uint8_t p[4096];
    uint32_t size, missed = HT_FT_MISSED_EVENTS;
    HtRecording *r;

    begin();
    put(0, 0, p, page(p, 100, 1, 1));
    /* one did not come */
    put(0, 2, p, page(p, 300, 1, 2));
    /* the guest says that it lost some */
    size = page(p, 400, 1, 3);
    missed |= 12;
    memcpy(p + 8, &missed, sizeof(missed));
    put(0, 3, p, size);
    put(0, 4, p, page(p, 500, 1, 4));
    /* one without events, and what it says holds */
    size = page(p, 600, 0, 0);
    missed = HT_FT_MISSED_EVENTS;
    memcpy(p + 8, &missed, sizeof(missed));
    put(0, 5, p, size);
    put(0, 6, p, page(p, 700, 1, 5));
    g_assert_cmpuint(ht_ft_history_stats(h).gaps, ==, 3);
    /* likewise behind the last event, in this boot and the next */
    size = page(p, 800, 0, 0);
    memcpy(p + 8, &missed, sizeof(missed));
    put(0, 7, p, size);
    g_assert_cmpuint(ht_ft_history_stats(h).gaps, ==, 4);
    ht_ft_history_begin(h);
    put(1, 0, p, size);
    r = end();
    check(r, " 1!2!3 4!5");
    g_assert_cmpuint(ht_ft_history_stats(h).gaps, ==, 5);
    clear(r);
}

static void test_damaged(void)
{
    uint32_t size, word = 31 | 1 << 5, none = 0, huge = 5000;
    uint8_t p[4096];
    HtRecording *r;

    begin();
    /* the third record is longer than what is there */
    size = page(p, 100, 3, 1);
    memcpy(p + 16 + 24, &none, sizeof(none));
    memcpy(p + 20 + 24, &huge, sizeof(huge));
    put(0, 0, p, size);
    put(0, 1, p, page(p, 200, 1, 2));
    /* no whole head, a head that says more than there is */
    put(0, 2, p, 15);
    size = page(p, 300, 1, 3);
    put(0, 3, p, size - 1);
    put(0, 4, p, page(p, 400, 1, 4));
    /* nothing but a piece of a time */
    size = page(p, 500, 1, 5);
    memcpy(p + 16, &word, sizeof(word));
    p[8] = 6;
    put(0, 5, p, 22);
    put(0, 6, p, page(p, 600, 1, 6));
    /* padding, up to where no record can end */
    page(p, 700, 1, 7);
    p[8] = 12 + 4 + 3;
    p[28] = 29;
    put(0, 7, p, 16 + 19);
    put(0, 8, p, page(p, 800, 1, 8));
    /* no processor */
    put(HT_FT_CPUS_MAX, 0, p, page(p, 100, 1, 9));
    put(UINT32_MAX, 0, p, page(p, 100, 1, 9));
    r = end();
    check(r, " 1 1!2!4!6 7 8");
    g_assert_cmpuint(ht_ft_history_stats(h).bad, ==, 6);
    clear(r);
}

static const char format[] =
    "name: one\nID: 5\nformat:\n"
    "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\n"
    "print fmt: \"%d\", REC->a\n";

static void put_format(const char *name, uint32_t cut)
{
    uint32_t size = strlen(format);

    ht_ft_history_text(h, name, 0, size, format, cut);
    ht_ft_history_text(h, name, cut, size, format + cut, size - cut);
}

static void test_formats(void)
{
    g_autoptr(HtFtFormats) f = NULL;
    uint32_t size = strlen(format);
    const HtFtEvent *e;
    GString *text;

    begin();
    put_format("good:one", 40);
    put_format("good:one", 10);
    put_format("nothing", 10);
    put_format(":one", 10);
    put_format("two\nlines:one", 10);
    /* parts that are missing, too long, out of order, another's */
    ht_ft_history_text(h, "first:one", 10, size, format + 10, size - 10);
    ht_ft_history_text(h, "last:one", 0, size, format, 10);
    ht_ft_history_text(h, "long:one", 0, 10, format, size);
    ht_ft_history_text(h, "much:one", 0, UINT32_MAX, format, size);
    ht_ft_history_text(h, "hole:one", 0, size, format, 10);
    ht_ft_history_text(h, "hole:one", 20, size, format + 20, size - 20);
    ht_ft_history_text(h, "mixed:one", 0, size, format, 10);
    ht_ft_history_text(h, "other:one", 10, size, format + 10, size - 10);
    text = ht_ft_history_formats(h);
    f = ht_ft_formats_parse(text->str, text->len, NULL);
    g_string_free(text, true);
    g_assert_nonnull(f);
    g_assert_cmpuint(ht_ft_formats_count(f), ==, 1);
    e = ht_ft_formats_get(f, 5);
    g_assert_nonnull(e);
    g_assert_cmpstr(e->system, ==, "good");
    g_assert_cmpuint(e->nr_fields, ==, 1);
    clear(end());
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ftrace-history/whole", test_whole);
    g_test_add_func("/ftrace-history/missing", test_missing);
    g_test_add_func("/ftrace-history/damaged", test_damaged);
    g_test_add_func("/ftrace-history/formats", test_formats);
    return g_test_run();
}
