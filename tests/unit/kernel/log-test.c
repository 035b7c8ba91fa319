/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read the records of a kernel's log while a writer adds records
 *
 * Promise: a reader that polls between stores of the writer gets each record
 * whole, in order and at most once, also if the ring has wrapped since the last
 * poll.  A reader that polls often misses no record.  A recording keeps the
 * records unchanged.
 */
#include "log-guest.h"

typedef struct Reader {
    LogGuest g;
    HtKernelLog *log;
    GRand *rand;
    unsigned odds;
    bool reading;
    uint64_t next;
    uint64_t missing;
    GString *file;
} Reader;

static void check(Reader *r, const HtLogRecord *record)
{
    char text[PG_SIZE];

    g_assert_cmpuint(record->seq, >=, r->next);
    r->missing += record->seq - r->next;
    r->next = record->seq + 1;
    pg_text(record->seq, text, record->len);
    g_assert_cmpmem(record->text, record->len, text, record->len);
    g_assert_cmpuint(record->ns, ==, 1000 * record->seq);
    g_assert_cmpuint(record->level, ==, record->seq % 8);
    g_assert_cmpuint(record->facility, ==, record->seq % 24);
    g_assert_cmphex(record->caller, ==, record->seq % 2 ? 17 :
                    (HT_LOG_CALLER_CPU | 3));
}

static void drain(Reader *r, bool last)
{
    HtLogRecord record;

    while (ht_kernel_log_next(r->log, last, &record) > 0) {
        check(r, &record);
        ht_log_record_write(&record, r->file);
    }
}

static void step(void *opaque)
{
    Reader *r = opaque;

    if (r->log && !r->reading && r->odds &&
        !g_rand_int_range(r->rand, 0, r->odds)) {
        r->reading = true;
        drain(r, false);
        r->reading = false;
    }
}

static void start(Reader *r, uint32_t seed, unsigned odds)
{
    memset(r, 0, sizeof(*r));
    pg_init(&r->g);
    r->rand = g_rand_new_with_seed(seed);
    r->odds = odds;
    r->file = g_string_new(NULL);
    r->log = ht_kernel_log_new(&r->g.space, &r->g.layout, PG_PRB);
    r->g.step = step;
    r->g.opaque = r;
}

static void finish(Reader *r)
{
    ht_kernel_log_free(r->log);
    g_rand_free(r->rand);
    g_string_free(r->file, true);
}

static void test_follow(gconstpointer data)
{
    unsigned odds = GPOINTER_TO_UINT(data), i;
    uint32_t seed;
    Reader r;

    for (seed = 1; seed <= 10; seed++) {
        start(&r, seed, odds);
        for (i = 0; i < 3000; i++) {
            unsigned len = g_rand_int_range(r.rand, 0, 90);

            pg_print(&r.g, i % 17 ? len : 0, false);
        }
        r.odds = 0;
        drain(&r, false);
        drain(&r, false);
        g_assert_cmpuint(r.next, ==, 3000);
        /*
         * with 5 stores on average from poll to poll, the reader misses no
         * record; with 900 stores, it misses some
         */
        if (odds <= 10) {
            g_assert_cmpuint(r.missing, ==, 0);
        } else {
            g_assert_cmpuint(r.missing, >, 0);
        }
        finish(&r);
    }
}

/*
 * A poll stops at an unfinished record. The last poll (@last of drain()) skips
 * this record and reads those after it.
 */
static void test_cut(void)
{
    Reader r;

    start(&r, 1, 0);
    pg_print(&r.g, 10, false);
    pg_print(&r.g, 11, true);
    pg_print(&r.g, 12, false);
    drain(&r, false);
    g_assert_cmpuint(r.next, ==, 1);
    drain(&r, true);
    g_assert_cmpuint(r.next, ==, 3);
    g_assert_cmpuint(r.missing, ==, 1);
    finish(&r);
}

/*
 * A recording returns a record with arbitrary bytes unchanged. Its reader skips
 * lines of another form, and returns a line only after the line's end was
 * written.
 */
static void test_file(void)
{
    static const char text[] = "one\ntwo\\x20 \x01\xff;,end";
    g_autofree char *dir = g_dir_make_tmp("log-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "log", NULL);
    g_autoptr(GString) file = g_string_new("no line\n1,2\n");
    g_autoptr(GError) error = NULL;
    HtLogRecord a = { 5, 123456789, 2, 6, 3, HT_LOG_CALLER_CPU | 1, text,
                      sizeof(text) - 1 }, b;
    HtLogReader *r;
    FILE *f;

    g_assert_null(ht_log_reader_open(dir, &error));
    g_assert_no_error(error);
    ht_log_record_write(&a, file);
    ht_log_record_write(&a, file);
    /* cut off the end of the last line */
    g_string_truncate(file, file->len - 3);
    g_assert_true(g_file_set_contents(path, file->str, file->len, NULL));
    r = ht_log_reader_open(dir, &error);
    g_assert_no_error(error);
    g_assert_true(ht_log_reader_next(r, &b));
    g_assert_cmpmem(b.text, b.len, text, sizeof(text) - 1);
    g_assert_cmpuint(b.seq, ==, 5);
    g_assert_cmpuint(b.ns, ==, 123456789);
    g_assert_cmpuint(b.boot, ==, 2);
    g_assert_cmpuint(b.level, ==, 6);
    g_assert_cmpuint(b.facility, ==, 3);
    g_assert_cmphex(b.caller, ==, HT_LOG_CALLER_CPU | 1);
    g_assert_false(ht_log_reader_next(r, &b));
    f = fopen(path, "a");
    fputs("nd", f);
    fflush(f);
    g_assert_false(ht_log_reader_next(r, &b));
    fputs("\n6,", f);
    fclose(f);
    g_assert_true(ht_log_reader_next(r, &b));
    g_assert_cmpmem(b.text, b.len, text, sizeof(text) - 1);
    g_assert_false(ht_log_reader_next(r, &b));
    ht_log_reader_close(r);
    unlink(path);
    rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/kernel-log/often", GUINT_TO_POINTER(5),
                         test_follow);
    g_test_add_data_func("/kernel-log/rarely", GUINT_TO_POINTER(900),
                         test_follow);
    g_test_add_func("/kernel-log/cut", test_cut);
    g_test_add_func("/kernel-log/file", test_file);
    return g_test_run();
}
