/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test the permissions of a recording's files, and that the writer neither
 * follows links nor changes files that others put into the recording's folder
 */
#include "hypertrace/recording.h"
#include <glib/gstdio.h>

static const char * const names[] = {
    "info", "cpu0", "formats", "kallsyms", "log", ".info", ".formats",
    ".hypertrace-info", "victim", "notes",
};

static char *dir;

static char *path_of(const char *name)
{
    return g_build_filename(dir, "rec", name, NULL);
}

static void clear(void)
{
    g_autofree char *rec = path_of("");
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = path_of(names[i]);

        unlink(path);
    }
    rmdir(rec);
}

static HtRecWriter *writer(GError **error)
{
    g_autofree char *rec = path_of("");

    return ht_rec_writer_new(rec, error);
}

static void write_piece(HtRecWriter *w, GError **error)
{
    static uint8_t data[16];
    HtFtPiece piece = { .data = data, .size = sizeof(data) };

    ht_rec_writer_piece(w, &piece, error);
    ht_rec_writer_flush(w, error);
}

static mode_t mode_of(const char *name)
{
    g_autofree char *path = path_of(name);
    struct stat st;

    g_assert_cmpint(lstat(path, &st), ==, 0);
    return st.st_mode;
}

static void test_private(void)
{
    mode_t mask = umask(0);
    g_autoptr(GError) error = NULL;
    HtRecWriter *w = writer(&error);

    g_assert_no_error(error);
    ht_rec_writer_file(w, "info", "x", -1, &error);
    write_piece(w, &error);
    g_assert_no_error(error);
    g_assert_cmpint(mode_of(""), ==, S_IFDIR | 0700);
    g_assert_cmpint(mode_of("info"), ==, S_IFREG | 0600);
    g_assert_cmpint(mode_of("cpu0"), ==, S_IFREG | 0600);
    ht_rec_writer_free(w);
    g_assert_null(writer(&error));
    g_assert_nonnull(strstr(error->message, "recording already"));
    clear();
    umask(mask);
}

/*
 * The writer does not follow a symbolic link that someone put into the folder.
 */
static void test_links(void)
{
    g_autofree char *rec = path_of(""), *victim = path_of("victim");
    g_autofree char *hidden = path_of(".hypertrace-info");
    g_autofree char *cpu = path_of("cpu0");
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    HtRecWriter *w;

    g_assert_cmpint(mkdir(rec, 0777), ==, 0);
    g_assert_true(g_file_set_contents(victim, "mine", -1, NULL));
    g_assert_cmpint(symlink(victim, hidden), ==, 0);
    w = writer(&error);
    g_assert_no_error(error);
    g_assert_true(ht_rec_writer_file(w, "info", "x", -1, &error));
    g_assert_cmpint(symlink(victim, cpu), ==, 0);
    write_piece(w, &error);
    g_assert_nonnull(error);
    g_assert_true(S_ISREG(mode_of("info")));
    g_assert_true(g_file_get_contents(victim, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "mine");
    ht_rec_writer_free(w);
    clear();
}

/*
 * Write each text of a recording and a piece, then discard the recording.
 */
static void write_and_discard(HtRecWriter *w)
{
    g_autoptr(GError) error = NULL;

    ht_rec_writer_file(w, "info", "x", -1, &error);
    ht_rec_writer_file(w, "info", "y", -1, &error);
    ht_rec_writer_file(w, "formats", "x", -1, &error);
    ht_rec_writer_file(w, "kallsyms", "x", -1, &error);
    ht_rec_writer_log(w, "x\n", 2, &error);
    write_piece(w, &error);
    g_assert_no_error(error);
    ht_rec_writer_discard(w);
}

/*
 * A writer removes and replaces only files that it has made itself. This test
 * leaves out names that begin with .hypertrace-: such files are removed.
 */
static void test_foreign_files(void)
{
    g_autofree char *rec = path_of("");
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = path_of(names[i]), *text = NULL;
        HtRecWriter *w;

        if (g_str_has_prefix(names[i], ".hypertrace-")) {
            continue;
        }
        g_assert_cmpint(mkdir(rec, 0777), ==, 0);
        g_assert_true(g_file_set_contents(path, "mine", -1, NULL));
        w = writer(NULL);
        if (w) {
            write_and_discard(w);
            ht_rec_writer_free(w);
        }
        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        g_assert_cmpstr(text, ==, "mine");
        g_assert_cmpint(unlink(path), ==, 0);
        /*
         * nothing else is left in the folder, and the user's folder still
         * exists
         */
        g_assert_cmpint(rmdir(rec), ==, 0);
    }
}

/* If the writer made the folder, ht_rec_writer_discard() removes the folder. */
static void test_discard(void)
{
    g_autofree char *rec = path_of("");
    g_autoptr(GError) error = NULL;
    HtRecWriter *w = writer(&error);

    g_assert_no_error(error);
    write_and_discard(w);
    ht_rec_writer_free(w);
    g_assert_false(g_file_test(rec, G_FILE_TEST_EXISTS));
}

static void test_not_ours(void)
{
    g_autoptr(GError) error = NULL;
    HtRecWriter *w;

    if (geteuid() == 0) {
        g_autofree char *rec = path_of("");

        g_assert_cmpint(mkdir(rec, 0777), ==, 0);
        g_assert_cmpint(chown(rec, 12345, -1), ==, 0);
        w = writer(&error);
        clear();
    } else {
        w = ht_rec_writer_new("/usr", &error);
    }
    g_assert_null(w);
    g_assert_nonnull(strstr(error->message, "another user"));
}

int main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    dir = g_dir_make_tmp("ht-recording-XXXXXX", NULL);
    g_assert_nonnull(dir);
    g_test_add_func("/recording-writer/private", test_private);
    g_test_add_func("/recording-writer/links", test_links);
    g_test_add_func("/recording-writer/foreign-files", test_foreign_files);
    g_test_add_func("/recording-writer/discard", test_discard);
    g_test_add_func("/recording-writer/not-ours", test_not_ours);
    status = g_test_run();
    rmdir(dir);
    g_free(dir);
    return status;
}
