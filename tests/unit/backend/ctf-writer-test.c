/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test that babeltrace2 reads what the CTF backend has written
 */
#include "hypertrace/base.h"
#include "hypertrace/ctf-writer.h"
#include "output/ctf-stream.h"
#include "backend-testlib.h"

static const HtCtfInfo info = {
    .vm_name = "a \"VM\"",
    .device = "ht0",
    .channel = "shm",
    .uuid = "0123456789abcde",
    .clock_uuid = "fedcba987654321",
    .precision_ns = 200,
};

typedef struct Fixture {
    char *dir;
    HtClassTable *classes;
    HtCtfWriter *w;
    GRand *rand;
} Fixture;

static void fixture_init(Fixture *f)
{
    f->dir = tl_tmpdir();
    f->classes = ht_class_table_new();
    f->rand = g_rand_new_with_seed(g_test_rand_int());
    g_assert_cmpint(ht_ctf_writer_new(f->dir, "ht0", &info, 4, &f->w), ==, 0);
}

static void fixture_clear(Fixture *f)
{
    ht_ctf_writer_free(f->w);
    ht_class_table_free(f->classes);
    g_rand_free(f->rand);
    tl_rmdir(f->dir);
}

static HtClass *add_class(Fixture *f, const char *name, const char *spec)
{
    HtClass *c = tl_class(f->classes, name, spec);

    g_assert_cmpint(ht_ctf_writer_class(f->w, c), ==, 0);
    return c;
}

static void mark(Fixture *f, const HtStreamInfo *stream, unsigned flag,
                 uint64_t ns, uint64_t discarded)
{
    HtRun run = tl_mark(stream, flag, ns, discarded);

    g_assert_cmpint(ht_ctf_writer_run(f->w, &run), ==, 0);
}

static void write_run(Fixture *f, TlRun *r)
{
    g_assert_cmpint(ht_ctf_writer_run(f->w, tl_run_end(r)), ==, 0);
}

/* Write a run with one event; returns the writer's result */
static int write_event(Fixture *f, TlRun *r, HtClass *c, unsigned flags,
                       uint64_t ns, uint64_t discarded)
{
    tl_run_begin(r, flags, discarded);
    tl_run_event(r, c, ns, f->rand, 0);
    return ht_ctf_writer_run(f->w, tl_run_end(r));
}

/* Append the line that babeltrace2 must print for event @i of a run to @out. */
static void expect(GString *out, const TlRun *r, unsigned i, const char *name)
{
    uint64_t ns = g_array_index(r->times, uint64_t, i);

    g_string_append_printf(out, "[%" PRIu64 ".%09" PRIu64 "] a \"VM\" %s: "
                           "{ guest_counter = %" PRIu64 ", "
                           "guest_events = 0, guest_discarded = 0, cpu_id = %d, "
                           "stream_index = %" PRIu32 " }, {%s%s }\n",
                           ns / 1000000000, ns % 1000000000, name,
                           r->run.counter,
                           r->run.stream->vcpu, r->run.stream->index,
                           *(char *)r->text->pdata[i] ? " " : "",
                           (char *)r->text->pdata[i]);
}

/* Random values of every kind of field are read back unchanged. */
static void test_kinds(void)
{
    static const HtStreamInfo stream = { .vcpu = -1, .instance = 1 };
    g_autofree char *out = NULL;
    GString *want = g_string_new(NULL);
    HtClass *all, *none;
    uint64_t ns = 1000;
    Fixture f;
    TlRun r;
    unsigned i, j;

    fixture_init(&f);
    none = add_class(&f, "nothing", "");
    all = add_class(&f, "sub.sys-tem_all",
                    "u8:int u16:event u32:string u64:struct x8:a x16:b "
                    "x32:c x64:d s8:e s16:f s32:g s64:h f32:i f64:j text:k "
                    "seq-u8:l seq-u16:m seq-x32:n seq-u64:o seq-s8:p "
                    "seq-s64:q arr-u8-1:r arr-x16-3:s arr-u32-2:t "
                    "arr-s64-2:u arr-s16-5:_v text:w chars-16:comm");
    mark(&f, &stream, HT_RUN_OPEN, ns, 0);
    tl_run_init(&r, &stream);
    for (i = 0; i < 50; i++) {
        ns += 20000000;
        tl_run_begin(&r, HT_RUN_CUT, 0);
        for (j = 0; j < 5; j++) {
            ns += g_rand_int_range(f.rand, 0, 10000000);
            /*
             * Only the first run has empty texts: for an empty text after
             * others, babeltrace2 2.0.4 may print the text of an earlier event.
             */
            tl_run_event(&r, j == 2 ? none : all, ns, f.rand,
                         i ? i % 7 * 11 + 1 : 0);
        }
        write_run(&f, &r);
        for (j = 0; j < 5; j++) {
            expect(want, &r, j, j == 2 ? none->name : all->name);
        }
    }
    mark(&f, &stream, HT_RUN_CLOSE, ns, 0);

    out = tl_babeltrace(f.dir, NULL);
    tl_assert_lines(out, want->str);
    g_string_free(want, true);
    tl_run_clear(&r);
    fixture_clear(&f);
}

/*
 * Events with long headers are read back: class ids from HT_ID_WIDE on need the
 * wide event header, and large gaps between dates the extended one.
 */
static void test_many_classes(void)
{
    static const HtStreamInfo stream = { .vcpu = 3, .instance = 9,
                                         .name = "a/b c" };
    GString *want = g_string_new(NULL);
    g_autofree char *out = NULL;
    HtClass *c[300];
    uint64_t ns = 5;
    Fixture f;
    TlRun r;
    unsigned i;

    fixture_init(&f);
    tl_run_init(&r, &stream);
    mark(&f, &stream, HT_RUN_OPEN, ns, 0);
    for (i = 0; i < G_N_ELEMENTS(c); i++) {
        g_autofree char *name = g_strdup_printf("class%u", i);

        c[i] = add_class(&f, name, "u32:x text:t");
    }
    tl_run_begin(&r, HT_RUN_CUT, 0);
    for (i = 0; i < G_N_ELEMENTS(c); i++) {
        ns += i % 5 ? 100 : UINT64_C(3000000000) * i;
        tl_run_event(&r, c[i], ns, f.rand, i);
    }
    write_run(&f, &r);
    for (i = 0; i < G_N_ELEMENTS(c); i++) {
        expect(want, &r, i, c[i]->name);
    }
    out = tl_babeltrace(f.dir, NULL);
    tl_assert_lines(out, want->str);
    g_string_free(want, true);
    tl_run_clear(&r);
    fixture_clear(&f);
}

/*
 * babeltrace2 accepts a trace without events, before a stream is opened, while
 * the stream is open, and after its close.
 */
static void test_empty(void)
{
    static const HtStreamInfo stream = { .vcpu = 0, .instance = 1 };
    Fixture f;
    g_autofree char *err1 = NULL, *err2 = NULL, *err3 = NULL;
    HtCtfWriter *again;

    fixture_init(&f);
    g_assert_cmpint(tl_count(f.dir, &err1), ==, 0);
    g_assert_cmpstr(err1, ==, "");
    mark(&f, &stream, HT_RUN_OPEN, 77, 0);
    g_assert_cmpint(tl_count(f.dir, &err2), ==, 0);
    g_assert_cmpstr(err2, ==, "");
    mark(&f, &stream, HT_RUN_CLOSE, 99, 0);
    g_assert_cmpint(tl_count(f.dir, &err3), ==, 0);
    g_assert_cmpstr(err3, ==, "");

    /* a second device of the same name writes to a new directory */
    g_assert_cmpint(ht_ctf_writer_new(f.dir, "ht0", &info, 1, &again), ==, 0);
    g_assert_true(g_str_has_suffix(ht_ctf_writer_path(again), "/ht0-2"));
    ht_ctf_writer_free(again);
    g_assert_cmpint(ht_ctf_writer_new("/nonexistent", "x", &info, 1, &again),
                    ==, -ENOENT);
    fixture_clear(&f);
}

/*
 * A stream is opened and closed at time 0: babeltrace2 accepts its packet,
 * which must not end before it begins.
 */
static void test_time_0(void)
{
    static const HtStreamInfo stream = { .vcpu = -1, .instance = 1 };
    Fixture f;

    fixture_init(&f);
    mark(&f, &stream, HT_RUN_OPEN, 0, 0);
    mark(&f, &stream, HT_RUN_CLOSE, 0, 7);
    g_assert_cmpint(tl_count(ht_ctf_writer_path(f.w), NULL), ==, 0);
    fixture_clear(&f);
}

/*
 * The writer refuses a run that is older than the stream's previous run, and a
 * run of a stream that is not open.
 */
static void test_refused(void)
{
    static const HtStreamInfo stream = { .vcpu = 0, .instance = 1 };
    g_autofree char *err = NULL;
    HtClass *c;
    Fixture f;
    TlRun r;

    fixture_init(&f);
    c = add_class(&f, "c", "u8:x");
    tl_run_init(&r, &stream);

    g_assert_cmpint(write_event(&f, &r, c, HT_RUN_CUT, 5000, 0), ==, -ENOENT);
    g_assert_cmpuint(ht_ctf_writer_dropped(f.w), ==, 1);

    /* a first event that is older than its stream's opening is accepted */
    mark(&f, &stream, HT_RUN_OPEN, 6000, 0);
    write_run(&f, &r);
    g_assert_cmpint(write_event(&f, &r, c, HT_RUN_CUT, 4999, 0), ==, -EINVAL);
    g_assert_cmpuint(ht_ctf_writer_dropped(f.w), ==, 2);
    g_assert_cmpint(write_event(&f, &r, c, 0, 5000, 0), ==, 0);
    g_assert_cmpint(tl_count(f.dir, &err), ==, 2);
    g_assert_cmpuint(tl_discarded(err), ==, 1);
    tl_run_clear(&r);
    fixture_clear(&f);
}

/*
 * The trace reports all discarded events: those before the first event, between
 * events, and at the close of the stream.
 */
static void test_discarded(void)
{
    static const HtStreamInfo stream = { .vcpu = 0, .instance = 1 };
    g_autofree char *err1 = NULL, *err2 = NULL, *err3 = NULL;
    uint64_t ns = 1, discarded = 0;
    HtClass *c;
    unsigned i;
    Fixture f;
    TlRun r;

    fixture_init(&f);
    c = add_class(&f, "c", "u8:x");
    tl_run_init(&r, &stream);
    mark(&f, &stream, HT_RUN_OPEN, ns, 0);
    for (i = 0; i < 100; i++) {
        discarded += i % 3 == 0 ? i + 1 : 0;
        ns += 1000;
        g_assert_cmpint(write_event(&f, &r, c, 0, ns, discarded), ==, 0);
        if (i == 0) {
            g_assert_cmpint(tl_count(f.dir, &err1), ==, 1);
            g_assert_cmpuint(tl_discarded(err1), ==, 1);
        }
    }
    g_assert_cmpint(tl_count(f.dir, &err2), ==, 100);
    g_assert_cmpuint(tl_discarded(err2), ==, discarded);
    mark(&f, &stream, HT_RUN_CLOSE, ns + 1, discarded + 1000);
    g_assert_cmpint(tl_count(f.dir, &err3), ==, 100);
    g_assert_cmpuint(tl_discarded(err3), ==, discarded + 1000);
    tl_run_clear(&r);
    fixture_clear(&f);
}

static void remove_streams(const char *dir)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(d))) {
        g_autofree char *file = g_build_filename(dir, name, NULL);

        if (g_str_has_prefix(name, "stream-")) {
            g_assert_cmpint(unlink(file), ==, 0);
        }
    }
}

/*
 * A run without events, which only reports discarded events, is written. Its
 * counts HtRun.total and HtRun.lost are in the trace before the stream is
 * closed: ht_ctf_recorded() reads them. Later runs with a total of 0 do not
 * change the total in the trace.
 */
static void test_recorded(void)
{
    static const HtStreamInfo stream = { .index = 1, .instance = 7 };
    HtRun run = { .stream = &stream, .begin_ns = 5, .end_ns = 5 };
    HtRecorded r;
    unsigned i;
    Fixture f;
    HtClass *c;
    TlRun events;

    fixture_init(&f);
    c = add_class(&f, "c", "u8:x");
    tl_run_init(&events, &stream);
    mark(&f, &stream, HT_RUN_OPEN, 5, 0);
    for (i = 1; i <= 3; i++) {
        run.discarded = run.lost = i;
        run.total = 10 * i;
        g_assert_cmpint(ht_ctf_writer_run(f.w, &run), ==, 0);
        g_assert_true(ht_ctf_recorded(ht_ctf_writer_path(f.w), 1, 7, &r));
        g_assert_cmpuint(r.events, ==, 10 * i);
        g_assert_cmpuint(r.lost, ==, i);
    }
    for (i = 1; i <= 300; i++) {
        g_assert_cmpint(write_event(&f, &events, c, 0, 1000 * i, 3 + i), ==, 0);
    }
    g_assert_true(ht_ctf_recorded(ht_ctf_writer_path(f.w), 1, 7, &r));
    g_assert_cmpuint(r.events, ==, 30);
    g_assert_cmpuint(r.end_ns, ==, 300000);
    g_assert_true(ht_ctf_recorded(ht_ctf_writer_path(f.w), 1, 8, &r));
    g_assert_cmpuint(r.events, ==, 0);
    g_assert_false(ht_ctf_recorded("/nonexistent", 1, 7, &r));
    tl_run_clear(&events);
    fixture_clear(&f);
}

/*
 * If the stream's file is deleted, a run with a date that is 10 ms later is
 * written to a new file. If the directory is deleted, such runs fail with
 * -ENOENT.
 */
static void test_deleted(void)
{
    static const HtStreamInfo stream = { .vcpu = 0, .instance = 1 };
    g_autofree char *err = NULL;
    uint64_t ns = 1000;
    HtClass *c;
    unsigned i;
    Fixture f;
    TlRun r;

    fixture_init(&f);
    c = add_class(&f, "c", "u8:x");
    tl_run_init(&r, &stream);
    mark(&f, &stream, HT_RUN_OPEN, ns, 0);
    for (i = 0; i < 30; i++) {
        if (i == 10) {
            remove_streams(ht_ctf_writer_path(f.w));
        }
        ns += 10000000;
        g_assert_cmpint(write_event(&f, &r, c, 0, ns, 0), ==, 0);
    }
    g_assert_cmpint(tl_count(f.dir, &err), ==, 20);
    g_assert_cmpuint(ht_ctf_writer_dropped(f.w), ==, 0);

    tl_rmdir(g_strdup(ht_ctf_writer_path(f.w)));
    for (i = 0; i < 5; i++) {
        ns += 10000000;
        g_assert_cmpint(write_event(&f, &r, c, 0, ns, 0), ==, -ENOENT);
    }
    g_assert_cmpuint(ht_ctf_writer_dropped(f.w), ==, 5);
    tl_run_clear(&r);
    fixture_clear(&f);
}

/*
 * Another program truncates the stream's file.  Promise that only this test
 * proves: the writer gets no SIGBUS, and writes a new file after it has noticed
 * the truncation.
 */
static void test_truncated(void)
{
    static const struct {
        /* number of events before and after the truncation */
        unsigned before, after;
        uint64_t step_ns;
        /* ns from the stream's first event to its later opening */
        int late_ns;
    } t[] = {
        { 10, 20, 10000000, 0 },
        { 0, 0, 0, 0 },
        { 1, 0, 0, 0 },
        { 0, 1, 0, 10 },
        { HT_CTF_CHECK_RUNS, HT_CTF_CHECK_RUNS, 0, 0 },
        /* the stream is closed before the writer notices the truncation */
        { 5, 5, 0, 0 },
    };
    HtStreamInfo stream = { .vcpu = 0 };
    g_autofree char *err = NULL;
    uint64_t ns = 1000;
    unsigned i, j;
    HtClass *c;
    Fixture f;
    TlRun r;

    fixture_init(&f);
    c = add_class(&f, "c", "u8:x");
    tl_run_init(&r, &stream);
    for (i = 0; i < G_N_ELEMENTS(t); i++) {
        g_autofree char *path = g_strdup_printf("%s/stream-000-%06u-0000",
                                                ht_ctf_writer_path(f.w), i);

        stream.instance = i;
        mark(&f, &stream, HT_RUN_OPEN, ns + t[i].late_ns, 0);
        for (j = 0; j < t[i].before + t[i].after; j++) {
            if (j == t[i].before) {
                g_assert_cmpint(truncate(path, 0), ==, 0);
            }
            ns += t[i].step_ns;
            g_assert_cmpint(write_event(&f, &r, c, 0, ns, 0), ==, 0);
        }
        g_assert_cmpint(truncate(path, 0), ==, 0);
        mark(&f, &stream, HT_RUN_CLOSE, ns, 0);
    }
    g_assert_cmpint(tl_count(f.dir, &err), ==, 20 + 1 + HT_CTF_CHECK_RUNS);
    tl_run_clear(&r);
    fixture_clear(&f);
}

static ino_t metadata_inode(const Fixture *f)
{
    g_autofree char *path = g_strdup_printf("%s/metadata",
                                            ht_ctf_writer_path(f->w));
    struct stat st;

    g_assert_cmpint(stat(path, &st), ==, 0);
    return st.st_ino;
}

/*
 * For a text of length 0, babeltrace2 prints the length 0. The printed text is
 * not checked: babeltrace2 2.0.4 may print that of an earlier event; see
 * docs/reliability.md.
 */
static void test_empty_text(void)
{
    static const HtStreamInfo stream = { .vcpu = 0, .instance = 1 };
    g_autofree char *err = NULL, *out = NULL;
    uint64_t ns = 1000;
    unsigned i, empty = 0;
    HtClass *c;
    Fixture f;
    TlRun r;
    char *p;

    fixture_init(&f);
    c = add_class(&f, "c", "text:t");
    tl_run_init(&r, &stream);
    mark(&f, &stream, HT_RUN_OPEN, ns, 0);
    for (i = 0; i < 100; i++) {
        ns += 1000;
        tl_run_begin(&r, 0, 0);
        tl_run_event(&r, c, ns, f.rand, i < 50 ? 7 : 0);
        g_assert_cmpint(ht_ctf_writer_run(f.w, tl_run_end(&r)), ==, 0);
    }
    out = tl_babeltrace(f.dir, &err);
    g_assert_nonnull(out);
    for (p = out; (p = strstr(p, "_t_length = 0,")); p++) {
        empty++;
    }
    g_assert_cmpuint(empty, ==, 50);
    tl_run_clear(&r);
    fixture_clear(&f);
}

/*
 * Most new classes are appended to the metadata file: 500 classes replace the
 * file at most 8 times.
 */
static void test_growing_metadata(void)
{
    static const HtStreamInfo stream = { .vcpu = 0, .instance = 1 };
    g_autofree char *err = NULL;
    uint64_t ns = 1000;
    unsigned i, anew = 0;
    ino_t inode;
    HtClass *c;
    Fixture f;
    TlRun r;

    fixture_init(&f);
    inode = metadata_inode(&f);
    tl_run_init(&r, &stream);
    mark(&f, &stream, HT_RUN_OPEN, ns, 0);
    for (i = 0; i < 500; i++) {
        g_autofree char *name = g_strdup_printf("c%0*u", 1 + i % 50, i);

        c = add_class(&f, name, "u8:x text:t");
        anew += metadata_inode(&f) != inode;
        inode = metadata_inode(&f);
        ns += 1000;
        g_assert_cmpint(write_event(&f, &r, c, 0, ns, 0), ==, 0);
        if (i % 50 == 0) {
            g_clear_pointer(&err, g_free);
            g_assert_cmpint(tl_count(f.dir, &err), ==, i + 1);
        }
    }
    g_assert_cmpuint(anew, <=, 8);
    tl_run_clear(&r);
    fixture_clear(&f);
}

/*
 * Runs of one event up to about 1 MiB, which fill several files, are read back.
 * If its runs are small, a stream's first file has at most HT_CTF_FILE_MIN
 * bytes.
 */
static void test_sizes(void)
{
    static const HtStreamInfo stream[] = {
        { .index = 0, .vcpu = 0, .instance = 1 },
        { .index = 3, .vcpu = -1, .instance = 2 },
    };
    g_autofree char *err = NULL, *path = NULL;
    uint64_t ns = 1, events = 0, bytes = 0;
    unsigned i, j, n;
    struct stat st;
    HtClass *c;
    Fixture f;
    TlRun r[2];

    fixture_init(&f);
    c = add_class(&f, "c", "u64:x text:t");
    for (j = 0; j < 2; j++) {
        mark(&f, &stream[j], HT_RUN_OPEN, ns, 0);
        tl_run_init(&r[j], &stream[j]);
    }
    for (i = 0; i < 400; i++) {
        for (j = 0; j < 2; j++) {
            tl_run_begin(&r[j], i % 5 ? 0 : HT_RUN_CUT, 0);
            n = i % 100 == 99 ? 1048576 / 1018 :
                                g_rand_int_range(f.rand, 1, 40);
            events += n;
            while (n--) {
                tl_run_event(&r[j], c, ns += 10, f.rand, 1000);
            }
            write_run(&f, &r[j]);
            bytes += r[0].run.size;
        }
    }
    for (j = 0; j < 2; j++) {
        mark(&f, &stream[j], HT_RUN_CLOSE, ns, 0);
        tl_run_clear(&r[j]);
    }
    g_assert_cmpint(tl_count(f.dir, &err), ==, events);
    g_assert_cmpstr(err, ==, "");

    /* the first file of stream 0: a later run did not fit into the file */
    path = g_strdup_printf("%s/stream-000-000001-0000",
                           ht_ctf_writer_path(f.w));
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(st.st_size, <=, HT_CTF_FILE_MIN);
    g_assert_cmpint(st.st_size, >, HT_CTF_FILE_MIN - 2 * 40 * 1018);
    g_assert_cmpint(bytes, >, 4 * HT_CTF_FILE_MIN);
    fixture_clear(&f);
}

/*
 * After a guest's clock went back, a stream's events keep one date until the
 * clock has caught up: the writer puts these events into one packet, and
 * replaces its file by larger ones.
 */
static void test_standing_time(void)
{
    HtStreamInfo stream = { .index = 1, .vcpu = 0, .instance = 3 };
    g_autofree char *err = NULL;
    int64_t want = 0;
    HtClass *c;
    Fixture f;
    TlRun r;
    unsigned i;

    fixture_init(&f);
    c = add_class(&f, "still", "u64:n");
    mark(&f, &stream, HT_RUN_OPEN, 5000, 0);
    tl_run_init(&r, &stream);
    /* 300 runs have one date; then each of 100 runs has a later date */
    for (i = 0; i < 400; i++) {
        tl_run_begin(&r, i == 0 ? HT_RUN_CUT : 0, 0);
        for (unsigned j = 0; j < 2000; j++, want++) {
            tl_run_event(&r, c, i < 300 ? 5000 : 6000 + i, f.rand, 0);
        }
        write_run(&f, &r);
    }
    mark(&f, &stream, HT_RUN_CLOSE, 7000, 0);
    g_assert_cmpint(tl_count(f.dir, &err), ==, want);
    g_assert_cmpstr(err, ==, "");
    tl_run_clear(&r);
    fixture_clear(&f);
}

/*
 * babeltrace2 prints the events of two devices, with their traces in one
 * directory, in the order of their dates.
 */
static void test_two_devices(void)
{
    static const HtStreamInfo stream = { .vcpu = 0, .instance = 1 };
    g_autofree char *out = NULL;
    g_auto(GStrv) lines = NULL;
    HtCtfInfo other = info;
    HtCtfWriter *w[2];
    HtRun m;
    HtClass *c;
    unsigned i;
    Fixture f;
    TlRun r;

    fixture_init(&f);
    other.uuid[0] = 'x';
    w[0] = f.w;
    g_assert_cmpint(ht_ctf_writer_new(f.dir, "ht1", &other, 1, &w[1]), ==, 0);
    c = add_class(&f, "c", "");
    g_assert_cmpint(ht_ctf_writer_class(w[1], c), ==, 0);
    g_assert_cmpint(ht_ctf_writer_class(w[1], c), ==, 0);
    tl_run_init(&r, &stream);
    m = tl_mark(&stream, HT_RUN_OPEN, 1, 0);
    g_assert_cmpint(ht_ctf_writer_run(w[0], &m), ==, 0);
    g_assert_cmpint(ht_ctf_writer_run(w[1], &m), ==, 0);
    for (i = 0; i < 1000; i++) {
        tl_run_begin(&r, 0, 0);
        tl_run_event(&r, c, 1000 * (i + 1), f.rand, 0);
        g_assert_cmpint(ht_ctf_writer_run(w[i % 2], tl_run_end(&r)), ==, 0);
    }
    ht_ctf_writer_free(w[1]);
    out = tl_babeltrace(f.dir, NULL);
    lines = g_strsplit(out, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 1001);
    for (i = 0; i + 1 < 1000; i++) {
        g_assert_cmpint(strncmp(lines[i], lines[i + 1], 14), <, 0);
    }
    tl_run_clear(&r);
    fixture_clear(&f);
}

int main(int argc, char **argv)
{
    setlinebuf(stdout);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ctf/kinds", test_kinds);
    g_test_add_func("/ctf/many-classes", test_many_classes);
    g_test_add_func("/ctf/empty", test_empty);
    g_test_add_func("/ctf/time-0", test_time_0);
    g_test_add_func("/ctf/refused", test_refused);
    g_test_add_func("/ctf/discarded", test_discarded);
    g_test_add_func("/ctf/recorded", test_recorded);
    g_test_add_func("/ctf/deleted", test_deleted);
    g_test_add_func("/ctf/empty-text", test_empty_text);
    g_test_add_func("/ctf/truncated", test_truncated);
    g_test_add_func("/ctf/growing-metadata", test_growing_metadata);
    g_test_add_func("/ctf/sizes", test_sizes);
    g_test_add_func("/ctf/standing-time", test_standing_time);
    g_test_add_func("/ctf/two-devices", test_two_devices);
    return g_test_run();
}
