/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open recordings from an untrusted source: files that are not regular or too
 * large, and too many processors
 */
#include "hypertrace/recording.h"
#include <glib/gstdio.h>
#include <sys/resource.h>

#define CPUS 400

static char *dir;

static void put(const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void setup(void)
{
    dir = g_dir_make_tmp("ht-open-XXXXXX", NULL);
    g_assert_nonnull(dir);
    put("info", "[recording]\nversion=1\n");
}

static void teardown(void)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(d)) != NULL) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        g_assert_cmpint(g_remove(path), ==, 0);
    }
    g_assert_cmpint(g_rmdir(dir), ==, 0);
    g_clear_pointer(&dir, g_free);
}

static void refused(const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecording) r = ht_rec_open(dir, &error);

    g_assert_null(r);
    g_assert_nonnull(error);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, message));
}

/*
 * Refuse a FIFO, a device and a folder in place of a file. The FIFO has no
 * writer: open() without O_NONBLOCK would wait for ever.
 */
static void test_no_file(gconstpointer name)
{
    g_autofree char *path = NULL;

    setup();
    path = g_build_filename(dir, name, NULL);
    unlink(path);
    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    refused("no regular file");
    unlink(path);
    g_assert_cmpint(symlink("/dev/zero", path), ==, 0);
    refused("no regular file");
    unlink(path);
    g_assert_cmpint(mkdir(path, 0700), ==, 0);
    refused("no regular file");
    teardown();
}

/*
 * Refuse a file of 1 TiB without reading it. The file is sparse, so it uses no
 * disk.
 */
static void test_large(gconstpointer name)
{
    g_autofree char *path = NULL;

    setup();
    path = g_build_filename(dir, name, NULL);
    put(name, "");
    g_assert_cmpint(truncate(path, (off_t)1 << 40), ==, 0);
    refused("1099511627776 bytes; at most ");
    teardown();
}

static void limit_files(rlim_t n)
{
    struct rlimit limit;

    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    limit.rlim_cur = MIN(n, limit.rlim_max);
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
}

/*
 * Make a piece with one record: 12 bytes of data, of event type 5, with @cpu
 * after the common fields.
 */
static void make_piece(HtFtPiece *p, uint32_t *data, uint32_t cpu)
{
    data[0] = ht_le32(3);
    data[1] = ht_le32(5);
    data[2] = 0;
    data[3] = ht_le32(cpu);
    *p = (HtFtPiece) { .cpu = cpu, .size = 16, .data = (uint8_t *)data };
}

/*
 * A recording of 400 processors can be written and read by a process that may
 * open 350 files at a time.
 */
static void test_processors(void)
{
    g_autoptr(GError) error = NULL;
    HtRecWriter *w;
    HtRecording *r;
    HtRecEvent ev;
    uint32_t data[4], cpu, events = 0;
    HtFtPiece p;
    int round;

    dir = g_dir_make_tmp("ht-open-XXXXXX", NULL);
    limit_files(CPUS - 50);
    w = ht_rec_writer_new(dir, &error);
    g_assert_no_error(error);
    g_assert_true(ht_rec_writer_file(w, "info", "[recording]\nversion=1\n", -1,
                                     &error));
    for (round = 0; round < 2; round++) {
        for (cpu = 0; cpu < CPUS; cpu++) {
            make_piece(&p, data, cpu);
            ht_rec_writer_piece(w, &p, &error);
        }
        ht_rec_writer_flush(w, &error);
        g_assert_no_error(error);
    }
    ht_rec_writer_free(w);
    r = ht_rec_open(dir, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(ht_rec_info(r)->cpus, ==, CPUS);
    while (ht_rec_next(r, &ev)) {
        g_assert_cmpuint(ev.type, ==, 5);
        g_assert_cmpuint(ht_get_le32(ev.data + 8), ==, ev.cpu);
        events++;
    }
    g_assert_cmpuint(events, ==, 2 * CPUS);
    ht_rec_close(r);
    /*
     * The reader keeps the files of the first 256 processors open. If the
     * process may not open so many files, this is an error.
     */
    limit_files(20);
    refused("Too many open files");
    limit_files(CPUS - 50);
    teardown();
}

/* Files of processors from number 1024 on are counted, but not read. */
static void test_left_out(void)
{
    static const char * const more[] = { "cpu1024", "cpu2000",
                                         "cpu4294967295" };
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecording) r = NULL;
    unsigned i;

    setup();
    put("cpu1023", "");
    put("cpux", "");
    for (i = 0; i < G_N_ELEMENTS(more); i++) {
        put(more[i], "");
    }
    r = ht_rec_open(dir, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(ht_rec_info(r)->cpus, ==, 1024);
    g_assert_cmpuint(ht_rec_info(r)->cpus_left_out, ==, G_N_ELEMENTS(more));
    teardown();
}

static void test_none(void)
{
    setup();
    put("info", "[recording]\nversion=99\n");
    refused("version 99");
    teardown();
    dir = g_dir_make_tmp("ht-open-XXXXXX", NULL);
    refused("is no recording: it has no file");
    teardown();
}

int main(int argc, char **argv)
{
    static const char * const names[] = { "info", "formats", "kallsyms",
                                          "cpu3" };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strdup_printf("/recording-open/no-file/%s",
                                                names[i]);

        g_test_add_data_func(path, names[i], test_no_file);
    }
    for (i = 0; i < 3; i++) {
        g_autofree char *path = g_strdup_printf("/recording-open/large/%s",
                                                names[i]);

        g_test_add_data_func(path, names[i], test_large);
    }
    g_test_add_func("/recording-open/processors", test_processors);
    g_test_add_func("/recording-open/left-out", test_left_out);
    g_test_add_func("/recording-open/none", test_none);
    return g_test_run();
}
