/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test the queue that keeps the newest pieces in a bounded amount of memory
 *
 * Promise: the queue holds the newest pieces, whatever their sizes are, with
 * unchanged data, in their order and without a hole.  It has removed a piece
 * only if it lacked room for two more.  A recording made of it can be read.
 */
#include <glib/gstdio.h>

#include "hypertrace/recording.h"

#define CPUS        5
#define PIECES      20000
/* No less than the number of bytes that the queue adds to a piece's records */
#define OVERHEAD    160

typedef struct Check {
    /* time stamp that the next piece must have; 0 before the first piece */
    uint64_t next;
    uint64_t first;
    uint64_t bytes;
    uint64_t events;
    uint32_t seen;              /* bitmap of the processors that had a piece */
    bool cut;                   /* pieces of each processor were removed */
} Check;

static uint8_t byte_of(uint64_t stamp, uint32_t i)
{
    return stamp * 31 + i;
}

static bool check_piece(void *opaque, const HtFtPiece *p)
{
    bool first = false;
    Check *c = opaque;
    uint32_t i;

    if (!c->first) {
        c->first = c->next = p->stamp;
    }
    g_assert_cmpuint(p->stamp, ==, c->next);
    g_assert_cmpuint(p->cpu, ==, p->stamp % CPUS);
    for (i = 0; i < p->size; i++) {
        g_assert_cmpuint(p->data[i], ==, byte_of(p->stamp, i));
    }
    first = !(c->seen & 1u << p->cpu);
    c->seen |= 1u << p->cpu;
    /*
     * If pieces were removed, the first piece that each processor still has is
     * "late": there is no gap before it.
     */
    if (first && c->cut) {
        g_assert_cmpuint(p->flags, ==, HT_FT_PIECE_LATE);
        g_assert_cmpuint(p->lost_estimate, ==, 0);
    } else {
        g_assert_cmpuint(p->flags, ==, HT_FT_PIECE_LOST);
        g_assert_cmpuint(p->lost_estimate, ==, 7);
    }
    c->next++;
    c->bytes += p->size;
    c->events += p->events;
    return true;
}

static void check_queue(const HtRecQueue *q, uint64_t size, uint64_t last,
                        uint32_t largest)
{
    /*
     * so many pieces were pushed that older pieces of each processor were
     * removed
     */
    Check c = { .cut = true };
    uint64_t pieces;

    g_assert_cmpuint(ht_rec_queue_bytes(q), <=, size);
    g_assert_true(ht_rec_queue_each(q, check_piece, &c));
    g_assert_cmpuint(c.next, ==, last + 1);
    g_assert_cmpuint(c.events, ==, ht_rec_queue_events(q));
    pieces = c.next - c.first;
    if (c.first > 1) {
        /* the queue lacks room for two more pieces of the maximum size */
        g_assert_cmpuint(c.bytes + pieces * OVERHEAD + 2 * largest +
                         2 * OVERHEAD, >=, size);
    }
}

static void fill(HtRecQueue *q, uint64_t stamp, uint32_t size)
{
    g_autofree uint8_t *data = g_malloc(size + 1);
    HtFtPiece p = {
        .cpu = stamp % CPUS, .size = size, .data = data, .stamp = stamp,
        .events = stamp % 3, .flags = HT_FT_PIECE_LOST, .lost_estimate = 7,
    };
    uint32_t i;

    for (i = 0; i < size; i++) {
        data[i] = byte_of(stamp, i);
    }
    ht_rec_queue_push(q, &p);
}

static void test_newest(void)
{
    static const uint32_t largest[] = { 4, 100, 4080, 65516 };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(largest); i++) {
        g_autoptr(HtRecQueue) q = ht_rec_queue_new(HT_REC_QUEUE_MIN + 12345,
                                                   NULL);
        uint64_t stamp;

        g_assert_nonnull(q);
        for (stamp = 1; stamp <= PIECES; stamp++) {
            fill(q, stamp, 4 * g_test_rand_int_range(1, largest[i] / 4 + 1));
            if (stamp % 997 == 0 && stamp > PIECES / 2) {
                check_queue(q, HT_REC_QUEUE_MIN + 12345, stamp, largest[i]);
            }
        }
    }
}

/* As long as the queue is not full, it keeps all pieces and their flags. */
static void test_all(void)
{
    g_autoptr(HtRecQueue) q = ht_rec_queue_new(HT_REC_QUEUE_MIN, NULL);
    Check c = { .cut = false };
    uint64_t stamp;

    g_assert_true(ht_rec_queue_each(q, check_piece, &c));
    g_assert_cmpuint(c.first, ==, 0);
    for (stamp = 1; stamp <= 100; stamp++) {
        fill(q, stamp, 4080);
    }
    g_assert_true(ht_rec_queue_each(q, check_piece, &c));
    g_assert_cmpuint(c.first, ==, 1);
    g_assert_cmpuint(c.next, ==, 101);
}

/* A piece that is larger than the queue is dropped; the others stay. */
static void test_too_large(void)
{
    g_autoptr(HtRecQueue) q = ht_rec_queue_new(HT_REC_QUEUE_MIN, NULL);
    Check c = { .cut = false };

    fill(q, 1, 4080);
    fill(q, 2, HT_REC_QUEUE_MIN);
    g_assert_true(ht_rec_queue_each(q, check_piece, &c));
    g_assert_cmpuint(c.next, ==, 2);
}

static void remove_dir(const char *dir)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(d))) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        g_remove(path);
    }
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

static void write_info(HtRecWriter *w, const char *end, GError **error)
{
    g_autofree char *text = g_strdup_printf("[recording]\nversion=1\nend=%s\n"
                                            "[guest]\npage-size=4096\n", end);

    g_assert_true(ht_rec_writer_file(w, "info", text, -1, error));
}

/*
 * Push a piece with one event: a record with type_len 3 and 12 bytes of data.
 */
static void push_event(HtRecWriter *w, uint32_t n)
{
    uint8_t data[16] = { 3 };
    HtFtPiece p = {
        .cpu = n % 2, .size = sizeof(data), .data = data, .stamp = 1000 + n,
        .base_ns = 1000 + 10 * n, .begin_ns = 1005 + 10 * n,
        .end_ns = 1005 + 10 * n, .events = 1, .flags = HT_FT_PIECE_BEGIN,
    };

    g_assert_true(ht_rec_writer_piece(w, &p, NULL));
}

/*
 * Save a queue twice: each copy has all pieces that were pushed before it was
 * made, and can be opened.
 */
static void test_save(void)
{
    g_autoptr(HtRecWriter) w = ht_rec_writer_new_memory(HT_REC_QUEUE_MIN,
                                                        NULL);
    g_autofree char *dir = g_dir_make_tmp("ht-queue-XXXXXX", NULL);
    uint32_t n = 0;
    unsigned i, cpu;

    for (i = 0; i < 2; i++) {
        g_autofree char *to = g_build_filename(dir, i ? "two" : "one", NULL);
        g_autoptr(GError) error = NULL;
        HtRecWriter *copy = ht_rec_writer_new(to, &error);
        HtRecording *r;
        HtFtPiece p;

        g_assert_no_error(error);
        for (; n < 100 * (i + 1); n++) {
            push_event(w, n);
        }
        g_assert_cmpuint(ht_rec_writer_held(w), ==, n);
        write_info(w, i ? "two" : "one", &error);
        g_assert_true(ht_rec_writer_save(w, copy, &error));
        g_assert_no_error(error);
        ht_rec_writer_free(copy);
        r = ht_rec_open(to, &error);
        g_assert_no_error(error);
        for (cpu = 0; cpu < 2; cpu++) {
            uint32_t pieces = 0;

            while (ht_rec_next_piece(r, cpu, &p)) {
                g_assert_cmpuint(p.stamp, ==, 1000 + cpu + 2 * pieces++);
            }
            g_assert_cmpuint(pieces, ==, n / 2);
        }
        g_assert_cmpuint(ht_rec_damaged(r), ==, 0);
        ht_rec_close(r);
        remove_dir(to);
    }
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

/*
 * If the log of a recording in memory exceeds 4 MiB, its newest lines are kept,
 * each of them whole, and at least about 2 MiB of them.
 */
static void test_log(void)
{
    g_autoptr(HtRecWriter) w = ht_rec_writer_new_memory(HT_REC_QUEUE_MIN,
                                                        NULL);
    g_autofree char *dir = g_dir_make_tmp("ht-queue-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "log", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    unsigned n, lines = 0, first;
    HtRecWriter *copy;
    gsize size;
    char *p;

    for (n = 0; n < 1000000; n++) {
        g_autofree char *line = g_strdup_printf("line %u\n", n);

        ht_rec_writer_log(w, line, strlen(line), &error);
    }
    copy = ht_rec_writer_new(dir, &error);
    g_assert_true(ht_rec_writer_save(w, copy, &error));
    g_assert_no_error(error);
    ht_rec_writer_free(copy);
    g_assert_true(g_file_get_contents(path, &text, &size, NULL));
    g_assert_cmpuint(size, <=, 4 << 20);
    g_assert_cmpuint(size, >=, (2 << 20) - 20);
    g_assert_cmpint(sscanf(text, "line %u\n", &first), ==, 1);
    for (p = text; (p = strchr(p, '\n')); p++) {
        lines++;
    }
    g_assert_cmpuint(first + lines, ==, n);
    remove_dir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/queue/newest", test_newest);
    g_test_add_func("/queue/all", test_all);
    g_test_add_func("/queue/too-large", test_too_large);
    g_test_add_func("/queue/save", test_save);
    g_test_add_func("/queue/log", test_log);
    return g_test_run();
}
