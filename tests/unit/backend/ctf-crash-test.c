/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test that babeltrace2 can read a CTF trace while its writer
 * writes, after the writer was killed, and on a full disk
 */
#include "hypertrace/base.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "hypertrace/ctf-writer.h"
#include "backend-testlib.h"

#define SKIP 77

static const HtCtfInfo info = {
    .vm_name = "vm",
    .device = "ht0",
    .channel = "shm",
    .uuid = "0123456789abcde",
};

static const HtStreamInfo stream[] = {
    { .index = 0, .vcpu = 0, .instance = 1 },
    { .index = 1, .vcpu = -1, .instance = 2, .name = "other" },
};

/*
 * Memory shared by the writer's process and the test's process. The release of
 * @written in write_forever() pairs with the acquire in written(): the events
 * counted are in the trace. @allowed needs no barrier, because a stale value
 * only delays the writer.
 */
typedef struct Progress {
    /* once @written reaches this number of events, no further run is written */
    uint64_t allowed;
    uint64_t written;
} Progress;

static Progress *progress_new(void)
{
    Progress *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    g_assert_true(p != MAP_FAILED);
    return p;
}

/*
 * Write runs of two streams, alternately, until the process is killed. The runs
 * of a stream can fill several files. Every 50 runs, close the second stream
 * and open a new instance of it. If @late_classes is false, add all classes
 * before the first run.
 */
static void G_GNUC_NORETURN write_forever(const char *dir, Progress *p,
                                          uint32_t seed, bool late_classes)
{
    HtClassTable *t = ht_class_table_new();
    GRand *rand = g_rand_new_with_seed(seed);
    HtStreamInfo info2[2] = { stream[0], stream[1] };
    HtClass *c[64];
    uint64_t ns = 1000, runs;
    unsigned j, n, classes = 0;
    HtCtfWriter *w;
    HtRun m;
    TlRun r[2];

    /* let the kernel kill the writer if the test's process ends first */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    g_assert_cmpint(ht_ctf_writer_new(dir, "ht0", &info, 2, &w), ==, 0);
    for (j = 0; j < 2; j++) {
        m = tl_mark(&info2[j], HT_RUN_OPEN, ns, 0);
        g_assert_cmpint(ht_ctf_writer_run(w, &m), ==, 0);
        tl_run_init(&r[j], &info2[j]);
    }
    for (runs = 0; ; runs++) {
        while (__atomic_load_n(&p->allowed, __ATOMIC_RELAXED) <= p->written) {
            sched_yield();
        }
        while (classes < G_N_ELEMENTS(c) && (!late_classes ||
                                           classes <= runs / 4)) {
            g_autofree char *name = g_strdup_printf("c%u", classes);

            c[classes] = tl_class(t, name, "u64:x text:t");
            g_assert_cmpint(ht_ctf_writer_class(w, c[classes++]), ==, 0);
        }
        j = runs % 2;
        if (runs % 50 == 49) {
            m = tl_mark(&info2[j], HT_RUN_CLOSE, ns, 0);
            g_assert_cmpint(ht_ctf_writer_run(w, &m), ==, 0);
            info2[j].instance += 2;
            m = tl_mark(&info2[j], HT_RUN_OPEN, ns, 0);
            g_assert_cmpint(ht_ctf_writer_run(w, &m), ==, 0);
        }
        tl_run_begin(&r[j], runs % 50 > 47 || runs % 7 == 0 ? HT_RUN_CUT : 0,
                     0);
        n = g_rand_int_range(rand, 1, 100);
        while (n--) {
            tl_run_event(&r[j], c[g_rand_int_range(rand, 0, classes)],
                         ns += 20, rand, g_rand_int_range(rand, 1, 900));
        }
        g_assert_cmpint(ht_ctf_writer_run(w, tl_run_end(&r[j])), ==, 0);
        __atomic_fetch_add(&p->written, r[j].run.events, __ATOMIC_RELEASE);
    }
}

static uint64_t written(Progress *p)
{
    return __atomic_load_n(&p->written, __ATOMIC_ACQUIRE);
}

/*
 * Wait until the writer, process @pid, has written more than @events events;
 * assert that the process has not ended.
 */
static void wait_written(Progress *p, uint64_t events, pid_t pid)
{
    while (written(p) <= events) {
        g_assert_cmpint(waitpid(pid, NULL, WNOHANG), ==, 0);
        sched_yield();
    }
}

static void check_trace(const char *dir, uint64_t least, uint64_t most)
{
    g_autofree char *err = NULL;
    int64_t n = tl_count(dir, &err);

    g_assert_cmpstr(err, ==, "");
    g_assert_cmpint(n, >=, least);
    g_assert_cmpint(n, <=, most);
}

/*
 * A writer is killed at 60 random moments: the trace has all runs for which
 * ht_ctf_writer_run() had returned, and at most one more run.
 */
static void test_kill(void)
{
    unsigned i;

    for (i = 0; i < 60; i++) {
        uint32_t seed = g_test_rand_int();
        Progress *p = progress_new();
        char *dir = tl_tmpdir();
        uint64_t until = g_test_rand_int_range(1, 4000);
        pid_t pid;

        p->allowed = UINT64_MAX;
        pid = fork();
        if (pid == 0) {
            write_forever(dir, p, seed, true);
        }
        wait_written(p, until, pid);
        kill(pid, SIGKILL);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
        check_trace(dir, written(p), written(p) + 100);
        munmap(p, sizeof(*p));
        tl_rmdir(dir);
    }
}

/*
 * Read a trace while its writer writes runs: babeltrace2 gets all events that
 * were written before it started. All classes are added before the first run,
 * because babeltrace2 reads the metadata only once.
 */
static void test_live(void)
{
    uint32_t seed = g_test_rand_int();
    Progress *p = progress_new();
    char *dir = tl_tmpdir();
    unsigned i;
    pid_t pid;

    pid = fork();
    if (pid == 0) {
        write_forever(dir, p, seed, false);
    }
    for (i = 0; i < 20; i++) {
        uint64_t before = written(p);

        /* the writer may write more runs while babeltrace2 reads */
        __atomic_store_n(&p->allowed, before + 200, __ATOMIC_RELAXED);
        wait_written(p, before, pid);
        before = written(p);
        check_trace(dir, before, UINT64_MAX / 2);
    }
    kill(pid, SIGKILL);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    check_trace(dir, written(p), written(p) + 100);
    munmap(p, sizeof(*p));
    tl_rmdir(dir);
}

static void check_lossy_trace(const char *dir, uint64_t events,
                              uint64_t discarded)
{
    g_autofree char *err = NULL;

    g_assert_cmpint(tl_count(dir, &err), ==, events);
    g_assert_cmpuint(tl_discarded(err), ==, discarded);
}

static void fill_file(const char *path, size_t size)
{
    g_autofree char *bytes = g_malloc0(size);

    g_assert_true(g_file_set_contents(path, bytes, size, NULL));
}

/*
 * Fill a disk while a trace is written. Returns 0, or SKIP if the process may
 * not mount. Context: a child process, which gets a mount namespace with a
 * tmpfs of 3 MiB
 */
static int full_disk(void)
{
    GRand *rand = g_rand_new_with_seed(g_test_rand_int());
    HtClassTable *t = ht_class_table_new();
    uint64_t ns = 1, good = 0, bad = 0;
    char *dir = tl_tmpdir();
    g_autofree char *ballast = g_strdup_printf("%s/.ballast", dir);
    HtClass *c, *late;
    HtCtfWriter *w;
    unsigned i;
    HtRun m;
    TlRun r;
    int ret;

    if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
        rmdir(dir);
        return SKIP;
    }
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("ht-test", dir, "tmpfs", 0, "size=3m") < 0) {
        rmdir(dir);
        return SKIP;
    }
    fill_file(ballast, 512 * 1024);
    g_assert_cmpint(ht_ctf_writer_new(dir, "ht0", &info, 2, &w), ==, 0);
    c = tl_class(t, "c", "u64:x text:t");
    g_assert_cmpint(ht_ctf_writer_class(w, c), ==, 0);
    m = tl_mark(&stream[0], HT_RUN_OPEN, ns, 0);
    g_assert_cmpint(ht_ctf_writer_run(w, &m), ==, 0);
    tl_run_init(&r, &stream[0]);
    for (i = 0; i < 1000; i++) {
        tl_run_begin(&r, 0, 0);
        tl_run_event(&r, c, ns += 20, rand, 7000);
        tl_run_event(&r, c, ns += 20, rand, 7000);
        ret = ht_ctf_writer_run(w, tl_run_end(&r));
        g_assert_true(ret == 0 || ret == -ENOSPC);
        *(ret ? &bad : &good) += r.run.events;
        if (i == 500) {
            /*
             * the disk is full: the events that were written before are intact
             */
            g_assert_cmpint(bad, >, 0);
            check_lossy_trace(dir, good, 0);

            /* an opening cannot be written to the full disk */
            m = tl_mark(&stream[1], HT_RUN_OPEN, ns, 0);
            g_assert_cmpint(ht_ctf_writer_run(w, &m), ==, -ENOSPC);
            /* add classes until one does not fit on the full disk */
            late = tl_class(t, "late", "u8:x");
            while ((ret = ht_ctf_writer_class(w, late)) == 0) {
                g_autofree char *name = g_strdup_printf("late%u", i++);

                late = tl_class(t, name, "u8:x");
            }
            g_assert_cmpint(ret, ==, -ENOSPC);
            check_lossy_trace(dir, good, 0);

            /*
             * once the disk has space, this class and an event of it are
             * written
             */
            g_assert_cmpint(unlink(ballast), ==, 0);
            g_assert_cmpint(ht_ctf_writer_class(w, late), ==, 0);
            i = 970;
            tl_run_clear(&r);
            tl_run_init(&r, &stream[1]);
            tl_run_begin(&r, 0, 0);
            tl_run_event(&r, late, ns += 20, rand, 0);
            g_assert_cmpint(ht_ctf_writer_run(w, tl_run_end(&r)), ==, 0);
            good++;
            tl_run_clear(&r);
            tl_run_init(&r, &stream[0]);
        }
    }
    check_lossy_trace(dir, good, bad);

    /* the disk is full again: a close still writes the count of lost events */
    fill_file(ballast, 1);
    for (i = 0; i < 1000; i++) {
        tl_run_begin(&r, HT_RUN_CUT, 0);
        tl_run_event(&r, c, ns += 20, rand, 3900);
        ret = ht_ctf_writer_run(w, tl_run_end(&r));
        *(ret ? &bad : &good) += r.run.events;
    }
    g_assert_cmpint(ret, ==, -ENOSPC);
    g_assert_cmpuint(ht_ctf_writer_dropped(w), ==, bad);
    m = tl_mark(&stream[0], HT_RUN_CLOSE, ns, 5);
    g_assert_cmpint(ht_ctf_writer_run(w, &m), ==, 0);
    check_lossy_trace(dir, good, bad + 5);

    ht_ctf_writer_free(w);
    ht_class_table_free(t);
    tl_run_clear(&r);
    g_rand_free(rand);
    umount(dir);
    rmdir(dir);
    g_free(dir);
    return 0;
}

static void test_full_disk(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        _exit(full_disk());
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP) {
        g_test_skip("cannot mount a file system");
    } else {
        g_assert_cmpint(status, ==, 0);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ctf/kill", test_kill);
    g_test_add_func("/ctf/live", test_live);
    g_test_add_func("/ctf/full-disk", test_full_disk);
    return g_test_run();
}
