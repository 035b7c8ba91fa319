/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read a recording while it is written
 *
 * Promise: with ht_rec_more(), a reader loses no event of an intact file and
 * repeats none, wherever the bytes that were written so far end.  The events
 * are in the order of time if, at each call with a limit, the files have all
 * events before that limit.
 */
#include "hypertrace/base.h"
#include "hypertrace/recording.h"
#include <glib/gstdio.h>

#define CPUS    4
#define ROUNDS  300

static char *dir;

static void append(const char *name, const void *data, size_t size)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    FILE *f = fopen(path, "ab");

    g_assert_nonnull(f);
    g_assert_cmpuint(fwrite(data, 1, size, f), ==, size);
    fclose(f);
}

static void put_u32(GByteArray *a, uint32_t v)
{
    v = ht_le32(v);
    g_byte_array_append(a, (uint8_t *)&v, sizeof(v));
}

/* Make a piece of @count events, 1 ns apart, each with its number. */
static GByteArray *piece(uint32_t count, uint64_t ns, uint32_t *number)
{
    GByteArray *a = g_byte_array_new();
    HtRecPieceHeader h = {
        .magic = ht_le32(HT_REC_MAGIC),
        .size = ht_le32(16 * count),
        .base_ns = ht_le64(ns),
    };

    uint32_t i;

    g_byte_array_append(a, (uint8_t *)&h, sizeof(h));
    for (i = 0; i < count; i++) {
        /* time since the previous event in ns; 3: the data have 12 bytes */
        put_u32(a, !!i << 5 | 3);
        put_u32(a, 5);
        put_u32(a, 0);
        put_u32(a, (*number)++);
    }
    return a;
}

/* A processor's file: the first @written of its @bytes are in it so far */
typedef struct File {
    GByteArray *bytes;
    guint written;
    uint32_t events;
} File;

/*
 * Append the bytes of @f that its file lacks: all if @all, else a random
 * number, which may end inside a piece.
 */
static void write_some(File *f, unsigned cpu, bool all)
{
    g_autofree char *name = g_strdup_printf("cpu%u", cpu);
    guint left = f->bytes->len - f->written;
    guint n = all || !left ? left : (guint)g_test_rand_int_range(0, left + 1);

    if (n) {
        append(name, f->bytes->data + f->written, n);
        f->written += n;
    }
}

/*
 * Read the events that the files have, and check that no event is missing. If
 * @before is not 0, check that all are before the time @before and in the order
 * of time. Between two events, sometimes append bytes to a file.
 */
static void read_all(HtRecording *r, uint64_t before, uint64_t *last,
                     uint32_t *next, File *files)
{
    HtRecEvent ev;

    ht_rec_more(r, before ? before : UINT64_MAX);
    while (ht_rec_next(r, &ev)) {
        if (before) {
            g_assert_cmpuint(ev.ns, <, before);
            g_assert_cmpuint(ev.ns, >=, *last);
        }
        g_assert_cmpuint(ht_get_le32(ev.data + 8), ==, next[ev.cpu]);
        next[ev.cpu]++;
        *last = ev.ns;
        if (g_test_rand_bit()) {
            unsigned cpu = g_test_rand_int_range(0, CPUS);

            write_some(&files[cpu], cpu, false);
            ht_rec_more(r, before ? before : UINT64_MAX);
        }
    }
    g_assert_false(ht_rec_next(r, &ev));
}

static void test_grow(gconstpointer ordered)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HtRecording) r = NULL;
    g_autofree char *info = NULL;
    File files[CPUS] = { 0 };
    uint32_t next[CPUS] = { 0 };
    uint64_t last = 0, ns = 1000, done;
    unsigned round, i;

    dir = g_dir_make_tmp("ht-more-XXXXXX", NULL);
    info = g_build_filename(dir, "info", NULL);
    append("info", "[recording]\nversion=1\n", 22);
    r = ht_rec_open(dir, &error);
    g_assert_no_error(error);
    for (i = 0; i < CPUS; i++) {
        files[i].bytes = g_byte_array_new();
    }
    for (round = 0; round < ROUNDS; round++) {
        /*
         * After the first loop, the files have all events before @done; the
         * second loop adds events from @done on, and may write them in part.
         */
        done = ns;
        for (i = 0; i < CPUS; i++) {
            write_some(&files[i], i, true);
        }
        for (i = 0; i < CPUS; i++) {
            g_autoptr(GByteArray) a = NULL;

            /* Processor @i has no event in the first 50 * @i rounds. */
            if (round < i * 50 || g_test_rand_int_range(0, 3) == 0) {
                continue;
            }
            a = piece(g_test_rand_int_range(1, 60), ns, &files[i].events);
            g_byte_array_append(files[i].bytes, a->data, a->len);
            write_some(&files[i], i, false);
        }
        ns += 100;
        if (g_test_rand_bit()) {
            read_all(r, ordered ? done : 0, &last, next, files);
        }
    }
    for (i = 0; i < CPUS; i++) {
        write_some(&files[i], i, true);
    }
    read_all(r, ordered ? UINT64_MAX : 0, &last, next, files);
    for (i = 0; i < CPUS; i++) {
        g_autofree char *name = g_strdup_printf("%s/cpu%u", dir, i);

        g_assert_cmpuint(next[i], ==, files[i].events);
        g_byte_array_unref(files[i].bytes);
        g_unlink(name);
    }
    g_assert_cmpuint(ht_rec_damaged(r), ==, 0);
    g_assert_cmpuint(ht_rec_unread(r), ==, 0);
    g_assert_cmpint(ht_rec_error(r), ==, 0);
    g_unlink(info);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
    g_free(dir);
}

/*
 * If damaged bytes lie before a piece that is only partly written, the piece's
 * first event has lost_before set, once the piece is whole. A piece counts as
 * damage if it is older than the last valid piece: it has an earlier epoch and
 * no later host_after, or the same epoch and an earlier host_after. A
 * processor's file that cannot be opened is an error.
 */
static void test_damage(void)
{
    g_autoptr(HtRecording) r = NULL;
    g_autoptr(GByteArray) bytes = NULL;
    g_autofree char *info = NULL, *cpu0 = NULL, *cpu1 = NULL;
    /*
     * Pieces that are appended in this order.  @copy: the piece is older than
     * the last valid one; it must count as damage, and make a gap that begins
     * at the end of the last valid piece.  A recorder that follows two rings at
     * once writes pieces as in the last two rows.
     */
    static const struct {
        uint32_t epoch;
        uint64_t host_after;
        bool copy;
    } rows[] = {
        { 5, 0, false }, { 4, 0, true }, { 5, 1000, false },
        { 5, 999, true }, { 4, 1000, true }, { 6, 999, false },
        { 4, 2000, false }, { 5, 2001, false },
    };
    uint32_t number = 0, i;
    uint64_t damaged, last_ns = 1000;
    bool gap = false;
    HtRecEvent ev;

    dir = g_dir_make_tmp("ht-more-XXXXXX", NULL);
    info = g_build_filename(dir, "info", NULL);
    cpu0 = g_build_filename(dir, "cpu0", NULL);
    cpu1 = g_build_filename(dir, "cpu1", NULL);
    append("info", "[recording]\nversion=1\n", 22);
    r = ht_rec_open(dir, NULL);
    g_assert_nonnull(r);
    append("cpu0", "oops", 4);
    bytes = piece(1, 1000, &number);
    append("cpu0", bytes->data, bytes->len - 8);
    ht_rec_more(r, UINT64_MAX);
    g_assert_false(ht_rec_next(r, &ev));
    append("cpu0", bytes->data + bytes->len - 8, 8);
    ht_rec_more(r, UINT64_MAX);
    g_assert_true(ht_rec_next(r, &ev));
    g_assert_true(ev.lost_before);
    g_assert_cmpint(ht_rec_error(r), ==, 0);
    while (ht_rec_next(r, &ev)) {
        g_assert_false(ev.lost_before);
    }
    damaged = ht_rec_damaged(r);
    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        ht_put_le32(bytes->data + offsetof(HtRecPieceHeader, epoch),
                    rows[i].epoch);
        ht_put_le64(bytes->data + offsetof(HtRecPieceHeader, host_after),
                    rows[i].host_after);
        ht_put_le64(bytes->data + offsetof(HtRecPieceHeader, base_ns),
                    2000 + i);
        append("cpu0", bytes->data, bytes->len);
        ht_rec_more(r, UINT64_MAX);
        g_assert_true(ht_rec_next(r, &ev) != rows[i].copy);
        if (!rows[i].copy) {
            g_assert_cmpuint(ev.epoch, ==, rows[i].epoch);
            g_assert_cmpuint(ev.ns, ==, 2000 + i);
            g_assert_true(ev.lost_before == gap);
            g_assert_cmpuint(ev.lost_from_ns, ==, gap ? last_ns : 0);
            last_ns = ev.ns;
        }
        gap = rows[i].copy;
        g_assert_false(ht_rec_next(r, &ev));
        damaged += rows[i].copy ? bytes->len : 0;
        g_assert_cmpuint(ht_rec_damaged(r), ==, damaged);
    }
    /* Boots are shown as epoch + 1, which overflows here: refuse the piece. */
    ht_put_le32(bytes->data + offsetof(HtRecPieceHeader, epoch), UINT32_MAX);
    append("cpu0", bytes->data, bytes->len);
    ht_rec_more(r, UINT64_MAX);
    g_assert_false(ht_rec_next(r, &ev));
    g_assert_cmpint(g_mkdir(cpu1, 0700), ==, 0);
    ht_rec_more(r, UINT64_MAX);
    g_assert_cmpint(ht_rec_error(r), ==, EIO);
    g_rmdir(cpu1);
    g_unlink(cpu0);
    g_unlink(info);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
    g_free(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/recording-more/ordered", "", test_grow);
    g_test_add_data_func("/recording-more/late", NULL, test_grow);
    g_test_add_func("/recording-more/damage", test_damage);
    return g_test_run();
}
