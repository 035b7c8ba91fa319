/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The folder of a flight recorder whose listing fails
 *
 * The test program replaces readdir().
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <glib/gstdio.h>

#include "cli/folder.h"
#include "record/flight-dir.h"

/* readdir() fails with EIO after this many calls; negative: it does not fail */
static int calls_left = -1;

struct dirent *readdir(DIR *dir)
{
    /* with _FILE_OFFSET_BITS=64, <dirent.h> renames the function */
    void *next = dlsym(RTLD_NEXT, "readdir64") ?: dlsym(RTLD_NEXT, "readdir");

    if (calls_left == 0) {
        errno = EIO;
        return NULL;
    }
    calls_left--;
    return ((struct dirent *(*)(DIR *))next)(dir);
}

static bool count(int fd, const char *name, void *opaque)
{
    (void)fd;
    (void)name;
    ++*(unsigned *)opaque;
    return true;
}

static unsigned entries(const HtFlightDir *d)
{
    unsigned n = 0;

    g_assert_true(ht_folder_each(d->fd, NULL, count, &n));
    return n;
}

static void write_recording(const HtFlightDir *d)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;

    ht_rec_writer_free(ht_flight_dir_begin(d, &error));
    g_assert_no_error(error);
    path = ht_flight_dir_commit(d, HT_CAUSE_SIGNAL, &error);
    g_assert_no_error(error);
}

/*
 * If the folder cannot be listed, a recording is made, but no old one is
 * removed. The next recording removes all that are too many.
 */
static void test_listing_fails(void)
{
    g_autofree char *top = g_dir_make_tmp("ht-flight-XXXXXX", NULL);
    g_autoptr(GError) error = NULL;
    HtFlightDir *d = ht_flight_dir_open(top, 2, &error);
    unsigned n = 0;

    g_assert_no_error(error);
    for (; d->number <= 3; d->number++) {
        calls_left = 3;
        write_recording(d);
        calls_left = -1;
        g_assert_cmpuint(entries(d), ==, d->number);
    }
    calls_left = 4;
    g_assert_false(ht_folder_each(d->fd, NULL, count, &n));
    g_assert_cmpint(errno, ==, EIO);
    g_assert_cmpuint(n, >=, 2);
    calls_left = -1;
    write_recording(d);
    g_assert_cmpuint(entries(d), ==, 2);
    g_assert_true(ht_flight_dir_remove(d->fd, "3-signal"));
    g_assert_true(ht_flight_dir_remove(d->fd, "4-signal"));
    ht_flight_dir_close(d);
    g_assert_cmpint(g_rmdir(top), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/flight-dir/listing-fails", test_listing_fails);
    return g_test_run();
}
