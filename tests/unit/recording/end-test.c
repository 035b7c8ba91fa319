/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find the end of a recording without reading all of it, and read a recording
 * up to an epoch and a time
 */
#include "hypertrace/recording.h"
#include <glib/gstdio.h>

#define CPUS    3
#define ROUNDS  60

/* Write a random recording of some boots, segments and processors. */
static void make(GRand *rand, const char *dir)
{
    g_autoptr(GError) error = NULL;
    HtRecWriter *w = ht_rec_writer_new(dir, &error);
    uint32_t epoch = 0, segment = 0, n = g_rand_int_range(rand, 1, 200);
    uint64_t ns[CPUS] = { 0 };
    uint32_t i, j;

    g_assert_no_error(error);
    g_assert_true(ht_rec_writer_file(w, "info", "[recording]\nversion=1\n", -1,
                                     &error));
    for (i = 0; i < n; i++) {
        uint32_t cpu = g_rand_int_range(rand, 0, CPUS), data[400];
        HtFtPiece p = {
            .cpu = cpu, .data = (uint8_t *)data,
            .size = 16 * g_rand_int_range(rand, 1, 101),
        };

        if (g_rand_int_range(rand, 0, 40) == 0) {
            epoch++;
            memset(ns, 0, sizeof(ns));
        } else if (g_rand_int_range(rand, 0, 40) == 0) {
            segment++;
            memset(ns, 0, sizeof(ns));
        }
        p.epoch = epoch;
        p.segment = segment;
        p.base_ns = ns[cpu] += g_rand_int_range(rand, 0, 1000000000);
        /* The records are at 1 us, 2 us ... after the piece's base_ns. */
        for (j = 0; j < p.size / 16; j++) {
            data[4 * j] = ht_le32(3 | 1000u << 5);
            data[4 * j + 1] = ht_le32(5);
            data[4 * j + 2] = data[4 * j + 3] = 0;
        }
        ns[cpu] += 1000 * (p.size / 16);
        ht_rec_writer_piece(w, &p, &error);
        g_assert_no_error(error);
    }
    g_assert_true(ht_rec_writer_flush(w, &error));
    ht_rec_writer_free(w);
}

/*
 * Choose a random processor. If it has a file, append a part of a header, or
 * bytes that are no header. Return whether a reader counts these bytes as
 * damage.
 */
static bool damage(GRand *rand, const char *dir)
{
    static const uint32_t header[2] = { 0x70667468, 16 };
    g_autofree char *path = g_strdup_printf("%s/cpu%d", dir,
                                            g_rand_int_range(rand, 0, CPUS));
    bool whole = g_rand_boolean(rand);
    uint32_t other = g_rand_int(rand);
    FILE *f = g_file_test(path, G_FILE_TEST_EXISTS) ? fopen(path, "a") : NULL;

    if (f) {
        /*
         * The first 8 bytes of a header do not count as damage. 72 bytes
         * without the header's magic number do.
         */
        fwrite(whole ? header : &other, 4, 1, f);
        fwrite(header + 1, 4, 1, f);
        for (int i = 0; !whole && i < 16; i++) {
            fwrite(&other, 4, 1, f);
        }
        fclose(f);
    }
    return f && !whole;
}

static bool is_wanted(const HtRecEvent *ev, uint32_t epoch, uint64_t ns)
{
    return ev->epoch <= epoch && ev->ns <= ns;
}

/*
 * Read the recording. Return a hash of the sequence of the events up to @epoch
 * and @ns. Set @events to the number of all events that were read, and @end to
 * the last of them.
 */
static uint64_t sum(HtRecording *r, uint32_t epoch, uint64_t ns,
                    uint64_t *events, HtRecEnd *end)
{
    uint64_t n = 0;
    HtRecEvent ev;

    *events = 0;
    ht_rec_rewind(r);
    while (ht_rec_next(r, &ev)) {
        ++*events;
        *end = (HtRecEnd) { ev.epoch, ev.segment, ev.ns };
        if (is_wanted(&ev, epoch, ns)) {
            n = n * 31 + ev.ns * 7 + ev.cpu + ev.epoch;
        }
    }
    return n;
}

static void clean(const char *dir)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(d)) != NULL) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        g_assert_cmpint(g_remove(path), ==, 0);
    }
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

/*
 * Promise: --to and --boot miss no event.  For random recordings and limits,
 * the end that ht_rec_end() finds is that of a whole read; it finds none if the
 * end of a file is damaged.  A read with a limit has all events within the
 * limit, also if the guest boots again or its clock goes back.  Some limits
 * save the reading of later events.
 */
static void test_random(void)
{
    GRand *rand = g_rand_new_with_seed(g_test_rand_int());
    uint64_t saved = 0;
    int round, i;

    for (round = 0; round < ROUNDS; round++) {
        g_autofree char *dir = g_dir_make_tmp("ht-end-XXXXXX", NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(HtRecording) r = NULL;
        HtRecEnd end, real, unused;
        uint64_t all, events;
        bool damaged;

        make(rand, dir);
        damaged = g_rand_int_range(rand, 0, 4) == 0 && damage(rand, dir);
        r = ht_rec_open(dir, &error);
        g_assert_no_error(error);
        sum(r, UINT32_MAX, UINT64_MAX, &all, &real);
        if (ht_rec_end(r, &end)) {
            g_assert_false(damaged);
            g_assert_cmpuint(end.epoch, ==, real.epoch);
            g_assert_cmpuint(end.segment, ==, real.segment);
            g_assert_cmpuint(end.ns, ==, real.ns);
        } else {
            g_assert_true(damaged);
        }
        for (i = 0; i < 20; i++) {
            uint32_t epoch = g_rand_boolean(rand) ? UINT32_MAX :
                             (uint32_t)g_rand_int_range(rand, 0, 6);
            uint64_t ns = g_rand_boolean(rand) ? UINT64_MAX :
                          real.ns / 16 * g_rand_int_range(rand, 0, 17);
            uint64_t expected;

            ht_rec_until(r, UINT32_MAX, UINT64_MAX);
            expected = sum(r, epoch, ns, &events, &unused);
            g_assert_cmpuint(events, ==, all);
            ht_rec_until(r, epoch, ns);
            g_assert_cmpuint(sum(r, epoch, ns, &events, &unused), ==,
                             expected);
            g_assert_cmpuint(events, <=, all);
            saved += all - events;
        }
        clean(dir);
    }
    g_assert_cmpuint(saved, >, 0);
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recording-end/random", test_random);
    return g_test_run();
}
