/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: measure the speed of the CTF backend for runs of several sizes
 */
#include "hypertrace/base.h"
#include "hypertrace/ctf-writer.h"
#include "backend-testlib.h"

#define TOTAL (UINT64_C(1) << 30)
#define EVENT (HT_EVENT_HEADER + 4 * 8)

static void bench(const char *where, size_t want)
{
    static const HtStreamInfo stream = { .vcpu = 0, .instance = 1 };
    static const HtCtfInfo info = {
        .vm_name = "vm", .device = "ht0", .channel = "shm",
    };
    HtClassTable *t = ht_class_table_new();
    HtClass *c = tl_class(t, "c", "u64:a u64:b u64:c u64:d");
    GRand *rand = g_rand_new();
    g_autoptr(GError) error = NULL;
    char *dir = g_build_filename(where, "ht-bench-XXXXXX", NULL);
    uint64_t written = 0, runs = 0, ns = 1000;
    size_t pos;
    gint64 start;
    HtCtfWriter *w;
    TlRun r;
    HtRun m;

    g_assert_nonnull(g_mkdtemp(dir));
    g_assert_cmpint(ht_ctf_writer_new(dir, "ht0", &info, 1, &w), ==, 0);
    g_assert_cmpint(ht_ctf_writer_class(w, c), ==, 0);
    m = tl_mark(&stream, HT_RUN_OPEN, 1, 0);
    g_assert_cmpint(ht_ctf_writer_run(w, &m), ==, 0);
    tl_run_init(&r, &stream);
    tl_run_begin(&r, 0, 0);
    do {
        tl_run_event(&r, c, 1000, rand, 0);
    } while (r.data->len + EVENT <= want);
    tl_run_end(&r);

    start = g_get_monotonic_time();
    while (written < TOTAL && runs < 500000) {
        for (pos = 0; pos < r.run.size; pos += EVENT) {
            ns++;
            ht_put_le32(r.data->data + pos, c->id | (uint32_t)ns << 8);
        }
        r.run.begin_ns = ns - r.run.events + 1;
        r.run.end_ns = ns;
        g_assert_cmpint(ht_ctf_writer_run(w, &r.run), ==, 0);
        written += r.run.size;
        runs++;
    }
    start = g_get_monotonic_time() - start;
    printf("%8zu bytes a run: %6.2f GB/s, %7.0f ns a run, %6.1f ns an event\n",
           r.run.size, written / (start * 1000.0), start * 1000.0 / runs,
           start * 1000.0 / runs / r.run.events);
    ht_ctf_writer_free(w);
    tl_run_clear(&r);
    ht_class_table_free(t);
    g_rand_free(rand);
    tl_rmdir(dir);
}

int main(int argc, char **argv)
{
    const char *where = argc > 1 ? argv[1] : "/dev/shm";

    printf("CTF writer, in %s, events of 36 bytes\n", where);
    bench(where, EVENT);
    bench(where, 4096);
    bench(where, 65536);
    return 0;
}
