/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: names of virtual machines, and the limit for the disk
 *
 * Promise: of a user, the oldest recordings are removed first and no more than
 * needed, also if the host's clock was set back; other files of users are not
 * removed; a user with many bytes or files cannot displace the recordings of
 * others.
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "qemu/vm.h"
#include "record/flight-dir.h"
#include "watch/disk.h"
#include "watch/recorder.h"
#include "watch/vms.h"

#define KIB     1024u
#define TRIES   60

static void test_names(void)
{
    static const struct {
        const char *program;
        const char *args;
        const char *name;
    } rows[] = {
        { "qemu-system-x86_64", "q -name web1 -m 1G", "web1" },
        { "qemu-system-aarch64", "q --name guest=a,debug-threads=on", "a" },
        { "qemu-kvm", "q -name debug-threads=on,guest=b", "b" },
        { "kvm", "q -name {\"guest\":\"c\"}", "c" },
        { "kvm", "q -name a,,b", "a,b" },
        { "kvm", "q -name", NULL },
        { "kvm", "q -m 1G", NULL },
        { "kvm", "q -name debug-threads=on", NULL },
        { "firecracker", "f --id=d --api-sock s", "d" },
        { "firecracker-v1.9", "f --id d", "d" },
        { "crosvm", "crosvm run --name e kernel", "e" },
        { "lkvm", "lkvm run --name f", "f" },
        { "cloud-hypervisor", "c --name g", NULL },
        { "bash", "bash -name h", NULL },
        { "qemu-img", "qemu-img -name i", NULL },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) args = g_strsplit(rows[i].args, " ", -1);
        g_autofree char *name = ht_vm_name(rows[i].program, args);

        g_assert_cmpstr(name, ==, rows[i].name);
    }
}

static void remove_tree(const char *path)
{
    g_autoptr(GDir) d = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL :
                        g_dir_open(path, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *file = g_build_filename(path, name, NULL);

        remove_tree(file);
    }
    g_remove(path);
}

static void make_file(const char *dir, const char *name, size_t kib)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *data = g_malloc(kib * KIB + 1);

    memset(data, 'x', kib * KIB);
    g_assert_true(g_file_set_contents(path, data, kib * KIB, NULL));
}

static void set_time(const char *path, int64_t seconds)
{
    const struct timespec times[] = {
        { .tv_sec = seconds }, { .tv_sec = seconds },
    };

    g_assert_cmpint(utimensat(AT_FDCWD, path, times, 0), ==, 0);
}

static void make_recording(const char *vm, unsigned number, unsigned kib,
                           int64_t time)
{
    g_autofree char *name = g_strdup_printf("%u-panic", number);
    g_autofree char *path = g_build_filename(vm, name, NULL);

    g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    make_file(path, "info", 0);
    make_file(path, "cpu0", kib);
    set_time(path, time);
}

/*
 * Return a set in which bit N stands for recording number N of a machine; add
 * the bytes on disk of their files cpu0 to *@bytes.
 */
static uint64_t numbers(const char *vm, uint64_t *bytes)
{
    g_autoptr(GDir) d = g_dir_open(vm, 0, NULL);
    uint64_t bits = 0;
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *file = g_build_filename(vm, name, "cpu0", NULL);
        unsigned number = ht_flight_dir_number(name);
        struct stat st;

        if (number && !stat(file, &st)) {
            bits |= UINT64_C(1) << number;
            *bytes += (uint64_t)st.st_blocks * 512;
        }
    }
    return bits;
}

/* Test whether @left has the highest bits of @all, any number of them. */
static bool are_newest(uint64_t all, uint64_t left)
{
    return !(left & ~all) &&
           (!left || (all & -(left & -left)) == left);
}

static void trim_once(GRand *rand, const char *top)
{
    unsigned vms = g_rand_int_range(rand, 1, 5), i, n;
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    uint64_t before[4], sum = 0, left, room;
    g_autoptr(GError) error = NULL;
    int dir;

    for (i = 0; i < vms; i++) {
        g_autofree char *user = g_strdup_printf("user%u", i / 2);
        g_autofree char *name = g_strdup_printf("vm%u", i);
        char *path = g_build_filename(top, user, name, NULL);

        g_ptr_array_add(paths, path);
        g_assert_cmpint(g_mkdir_with_parents(path, 0700), ==, 0);
        for (n = 1; n < 8; n++) {
            if (g_rand_boolean(rand)) {
                unsigned kib = 4 * g_rand_int_range(rand, 1, 20);

                make_recording(path, n, kib, g_rand_int_range(rand, 1, 1000));
            }
        }
        /* Files of the user that are no recordings: trimming must keep them. */
        make_file(path, "notes", 400);
        make_file(path, "9-panic", 400);
        before[i] = numbers(path, &sum);
    }
    room = g_rand_int_range(rand, 1, 800) * KIB;
    dir = ht_watch_disk_open(top, &error);
    g_assert_no_error(error);
    left = ht_watch_disk_trim(dir, room + KIB, KIB);
    close(dir);
    g_assert_cmpuint(left, <=, room);
    room = 0;
    for (i = 0; i < vms; i++) {
        g_autofree char *notes = g_build_filename(paths->pdata[i], "notes",
                                                  NULL);

        g_assert_true(are_newest(before[i], numbers(paths->pdata[i], &room)));
        g_assert_true(g_file_test(notes, G_FILE_TEST_IS_REGULAR));
    }
    g_assert_cmpuint(left, ==, room);
}

static void test_trim(void)
{
    GRand *rand = g_rand_new_with_seed(g_test_rand_int());
    unsigned i;

    for (i = 0; i < TRIES; i++) {
        g_autofree char *top = g_dir_make_tmp("ht-watch-XXXXXX", NULL);

        trim_once(rand, top);
        remove_tree(top);
    }
    g_rand_free(rand);
}

/*
 * Recordings that fit into the limit are not removed, and no more are removed
 * than needed.
 */
static void test_no_more(void)
{
    g_autofree char *top = g_dir_make_tmp("ht-watch-XXXXXX", NULL);
    g_autofree char *a = g_build_filename(top, "u", "a", NULL);
    g_autofree char *b = g_build_filename(top, "u", "b", NULL);
    g_autoptr(GError) error = NULL;
    uint64_t bytes = 0;
    int dir;

    g_assert_cmpint(g_mkdir_with_parents(a, 0700), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(b, 0700), ==, 0);
    make_recording(a, 1, 40, 300);
    /* this recording was made after the host's clock was set back */
    make_recording(a, 2, 40, 100);
    make_recording(b, 1, 40, 200);
    make_recording(b, 2, 40, 400);
    dir = ht_watch_disk_open(top, &error);
    g_assert_no_error(error);
    g_assert_cmpint(ht_watch_disk_open(top, NULL), ==, -1);
    g_assert_cmpuint(ht_watch_disk_trim(dir, 170 * KIB, 10 * KIB), ==,
                     160 * KIB);
    g_assert_cmpuint(ht_watch_disk_trim(dir, 169 * KIB, 10 * KIB), ==,
                     120 * KIB);
    g_assert_cmphex(numbers(a, &bytes), ==, 1 << 1 | 1 << 2);
    g_assert_cmphex(numbers(b, &bytes), ==, 1 << 2);
    /*
     * no file system has so much free space: the newest recording of each
     * machine is kept, and all others are removed
     */
    ht_watch_disk_trim(dir, UINT64_MAX, UINT64_MAX / 2);
    g_assert_cmphex(numbers(a, &bytes), ==, 1 << 2);
    g_assert_cmphex(numbers(b, &bytes), ==, 1 << 2);
    close(dir);
    remove_tree(top);
}

/*
 * Recordings with a date in the future, because the host's clock was set back
 * after they were made, count as older than all others.
 */
static void test_clock(void)
{
    g_autofree char *top = g_dir_make_tmp("ht-watch-XXXXXX", NULL);
    g_autofree char *a = g_build_filename(top, "u", "a", NULL);
    g_autofree char *b = g_build_filename(top, "u", "b", NULL);
    int64_t now = g_get_real_time() / G_USEC_PER_SEC;
    g_autoptr(GError) error = NULL;
    uint64_t bytes = 0;
    int dir;

    g_assert_cmpint(g_mkdir_with_parents(a, 0700), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(b, 0700), ==, 0);
    make_recording(a, 1, 40, now + 1000000);
    make_recording(a, 2, 40, now + 2000000);
    make_recording(b, 1, 40, now - 1000000);
    make_recording(b, 2, 40, now);
    dir = ht_watch_disk_open(top, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(ht_watch_disk_trim(dir, 90 * KIB, 10 * KIB), ==,
                     80 * KIB);
    g_assert_cmphex(numbers(a, &bytes), ==, 0);
    g_assert_cmphex(numbers(b, &bytes), ==, 1 << 1 | 1 << 2);
    close(dir);
    remove_tree(top);
}

/*
 * Trimming does not follow symbolic links: it removes no recording of another
 * user's folder.
 */
static void test_links(void)
{
    g_autofree char *top = g_dir_make_tmp("ht-watch-XXXXXX", NULL);
    g_autofree char *other = g_dir_make_tmp("ht-other-XXXXXX", NULL);
    g_autofree char *user = g_build_filename(top, "u", NULL);
    g_autofree char *vm = g_build_filename(user, "vm", NULL);
    g_autofree char *link = g_build_filename(vm, "1-panic", NULL);
    g_autofree char *link_vm = g_build_filename(user, "vm2", NULL);
    g_autofree char *target = g_build_filename(other, "1-panic", NULL);
    g_autoptr(GError) error = NULL;
    uint64_t bytes = 0;
    int dir;

    g_assert_cmpint(g_mkdir_with_parents(vm, 0700), ==, 0);
    make_recording(other, 1, 40, 1);
    g_assert_cmpint(symlink(target, link), ==, 0);
    g_assert_cmpint(symlink(other, link_vm), ==, 0);
    dir = ht_watch_disk_open(top, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(ht_watch_disk_trim(dir, 1, 0), ==, 0);
    g_assert_cmphex(numbers(other, &bytes), ==, 1 << 1);
    close(dir);
    remove_tree(top);
    remove_tree(other);
}

/*
 * The user with the most bytes makes room: the only recording of another user
 * stays, although it is the oldest. Files that are no part of a recording, or
 * that have a second hard link, do not count.
 */
static void test_users(void)
{
    g_autofree char *top = g_dir_make_tmp("ht-watch-XXXXXX", NULL);
    g_autofree char *a = g_build_filename(top, "greedy", "a", NULL);
    g_autofree char *b = g_build_filename(top, "modest", "b", NULL);
    g_autofree char *linked = g_build_filename(b, "1-panic", "cpu1", NULL);
    g_autofree char *target = g_build_filename(b, "target", NULL);
    g_autofree char *panic = g_build_filename(b, "1-panic", NULL);
    g_autoptr(GError) error = NULL;
    uint64_t bytes = 0;
    unsigned i;
    int dir;

    g_assert_cmpint(g_mkdir_with_parents(a, 0700), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(b, 0700), ==, 0);
    for (i = 1; i <= 3; i++) {
        make_recording(a, i, 80, 100 * i);
    }
    make_recording(b, 1, 40, 1);
    make_file(panic, "other", 400);
    make_file(b, "target", 400);
    g_assert_cmpint(link(target, linked), ==, 0);
    dir = ht_watch_disk_open(top, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(ht_watch_disk_trim(dir, 130 * KIB, 10 * KIB), ==,
                     120 * KIB);
    g_assert_cmphex(numbers(a, &bytes), ==, 1 << 3);
    g_assert_cmphex(numbers(b, &bytes), ==, 1 << 1);
    close(dir);
    remove_tree(top);
}

/*
 * If a user has more files than the walk over them visits, the recordings of
 * this user are neither counted nor removed.
 */
static void test_crowd(void)
{
    g_autofree char *top = g_dir_make_tmp("ht-watch-XXXXXX", NULL);
    g_autofree char *a = g_build_filename(top, "crowd", "a", NULL);
    g_autofree char *b = g_build_filename(top, "other", "b", NULL);
    g_autoptr(GError) error = NULL;
    uint64_t bytes = 0;
    unsigned i;
    int dir;

    g_assert_cmpint(g_mkdir_with_parents(a, 0700), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(b, 0700), ==, 0);
    make_recording(a, 1, 40, 1);
    make_recording(b, 1, 40, 2);
    for (i = 0; i < 50000; i++) {
        g_autofree char *path = g_strdup_printf("%s/%u", a, i);

        g_assert_cmpint(symlink("x", path), ==, 0);
    }
    dir = ht_watch_disk_open(top, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(ht_watch_disk_trim(dir, UINT64_MAX, 1), ==, 40 * KIB);
    g_assert_cmphex(numbers(a, &bytes), ==, 1 << 1);
    close(dir);
    remove_tree(top);
}

/*
 * A user's folder that still belongs to root, because a watch was killed before
 * it set the owner, gets the user as its owner.
 */
static void test_owner(void)
{
    g_autofree char *top = g_dir_make_tmp("ht-watch-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(top, "12345678", NULL);
    g_autofree char *name = NULL;
    g_autoptr(GError) error = NULL;
    struct stat st;
    int dir;

    if (geteuid()) {
        g_test_skip("only root has folders of other users");
        return;
    }
    g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    dir = ht_watch_disk_open(top, &error);
    g_assert_no_error(error);
    name = ht_watch_disk_user(dir, 12345678, 12345679, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(name, ==, "12345678");
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_uid, ==, 12345678);
    g_assert_cmpuint(st.st_gid, ==, 12345679);
    /* A folder of a third user is refused. */
    g_assert_cmpint(chown(path, 12345680, 0), ==, 0);
    g_assert_null(ht_watch_disk_user(dir, 12345678, 12345679, NULL));
    close(dir);
    remove_tree(top);
}

/*
 * A message of a recorder counts as the report of a new recording only if it
 * begins with a cause and the recording's path. A guest can choose other parts
 * of messages.
 */
static void test_messages(void)
{
    static const struct {
        const char *text;
        bool made;
    } rows[] = {
        { "panic: /d/u/vm/3-panic, 9 events", true },
        { "io-error: /d/u/vm/12-io-error, 9 events", true },
        { "panic: /d/u/vm/panic, 9 events", false },
        { "panic: /d/u/vm2/3-panic, 9 events", false },
        { "panic: /x/d/u/vm/3-panic, 9 events", false },
        { "no recording (panic): /d/u/vm/3-panic", false },
        { "removed the recording /d/u/vm/3-panic: full", false },
        { "the guest says panic: /d/u/vm/3-panic", false },
        { ": /d/u/vm/3-panic", false },
        { "panic: ", false },
        { "", false },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("%s", rows[i].text);
        g_assert_cmpint(ht_watch_is_recording(rows[i].text, "/d/u/vm"), ==,
                        rows[i].made);
    }
}

/*
 * ht_process_args() reads the arguments of a process up to a limit of bytes.
 * After the process has executed another program, ht_process_is_owner() returns
 * false for the owner that was read before.
 */
static void test_process(void)
{
    g_autofree char *huge = g_strnfill(100 * KIB, 'x');
    const char *argv[] = { "sh", "-c", "kill -STOP $$; exec sleep 1000", huge,
                           huge, huge, NULL };
    g_autoptr(HtProcess) p = NULL;
    g_autofree char **args = NULL;
    g_autoptr(GError) error = NULL;
    HtProcessOwner o, later;
    GPid pid;
    int i;

    g_assert_true(g_spawn_async(NULL, (char **)argv, NULL,
                                G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD,
                                NULL, NULL, &pid, &error));
    g_assert_cmpint(waitpid(pid, NULL, WUNTRACED), ==, pid);
    p = ht_process_new(pid, &error);
    g_assert_no_error(error);
    args = ht_process_args(p, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(g_strv_length(args), ==, 6);
    g_assert_cmpstr(args[0], ==, "sh");
    g_assert_cmpuint(strlen(args[4]), ==, 100 * KIB);
    g_assert_cmpuint(strlen(args[5]), <, 100 * KIB);
    g_assert_true(ht_process_owner(p, &o));
    g_assert_cmpuint(o.uid, ==, getuid());
    g_assert_true(ht_process_is_owner(p, &o));
    kill(pid, SIGCONT);
    for (i = 0; ht_process_is_owner(p, &o) && i < 60000; i++) {
        g_usleep(1000);
    }
    g_assert_true(ht_process_owner(p, &later));
    g_assert_cmpuint(later.inode, !=, o.inode);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ht_messages_of("watch");
    g_test_add_func("/watch/names", test_names);
    g_test_add_func("/watch/trim", test_trim);
    g_test_add_func("/watch/no-more", test_no_more);
    g_test_add_func("/watch/clock", test_clock);
    g_test_add_func("/watch/links", test_links);
    g_test_add_func("/watch/users", test_users);
    g_test_add_func("/watch/crowd", test_crowd);
    g_test_add_func("/watch/owner", test_owner);
    g_test_add_func("/watch/messages", test_messages);
    g_test_add_func("/watch/process", test_process);
    return g_test_run();
}
