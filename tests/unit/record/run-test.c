/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record reads a process whose mappings change
 *
 * A child process stands for QEMU. The child's memory has a kernel with a log,
 * but no ring.
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "hypertrace/recording-log.h"
#include "kernel-make.h"
#include "record/record.h"

#define MIB         (UINT64_C(1) << 20)
#define RAM_SIZE    (32 * MIB)
#define KERNEL_AT   (8 * MIB)
/* Offset in RAM of the kernel that boots after the first kernel */
#define SECOND_AT   (14 * MIB)
#define DEADLINE_US (60 * G_USEC_PER_SEC)
/* Time in which the recorder reads QEMU's mappings several times */
#define SCANS_US    G_USEC_PER_SEC

typedef struct Test {
    KmKernel kernel;
    char *dir;
    char *log;
    uint8_t *ram;               /* the guest's RAM; valid in the child */
    unsigned printed;
} Test;

static uint8_t *map_ram(void)
{
    uint8_t *room = mmap(NULL, RAM_SIZE + 4 * MIB, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *ram = (uint8_t *)HT_ROUND_UP((uintptr_t)room + MIB, 2 * MIB);

    g_assert_true(room != MAP_FAILED);
    g_assert_cmpint(mprotect(ram, RAM_SIZE, PROT_READ | PROT_WRITE), ==, 0);
    return ram;
}

static void boot(Test *t, uint64_t at, uint64_t seconds)
{
    km_place(&t->kernel, t->ram, RAM_SIZE, at, 0, seconds);
}

/* Add a line to the kernel's log; wait until the recording has the line. */
static void print(Test *t, uint64_t at)
{
    g_autofree char *text = g_strdup_printf("line %u", ++t->printed);
    int64_t end = g_get_monotonic_time() + DEADLINE_US;
    bool there = false;

    km_print(t->ram + at, t->printed, text);
    while (!there) {
        g_autofree char *log = NULL;

        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(1000);
        there = g_file_get_contents(t->log, &log, NULL, NULL) &&
                strstr(log, text);
    }
}

/* The process maps other memory several times, and the kernel prints on. */
static void map_others(Test *t)
{
    int64_t end;

    t->ram = map_ram();
    boot(t, KERNEL_AT, 1000);
    print(t, KERNEL_AT);
    end = g_get_monotonic_time() + SCANS_US;
    while (g_get_monotonic_time() < end) {
        map_ram();
        print(t, KERNEL_AT);
        g_usleep(SCANS_US / 10);
    }
}

/* The process replaces the guest's memory, and another kernel boots there. */
static void move_ram(Test *t)
{
    uint8_t *first;

    t->ram = first = map_ram();
    boot(t, KERNEL_AT, 1000);
    print(t, KERNEL_AT);
    t->ram = map_ram();
    munmap(first, RAM_SIZE);
    boot(t, SECOND_AT, 1001);
    print(t, SECOND_AT);
}

typedef struct Case {
    const char *name;
    void (*run)(Test *t);
    unsigned boots;
} Case;

static void run_child(Test *t, const Case *c)
{
    c->run(t);
    fflush(NULL);
    _exit(0);
}

static void check_log(const Test *t, unsigned boots)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HtLogReader) reader = ht_log_reader_open(t->dir, &error);
    unsigned lines = 0;
    HtLogRecord r;

    g_assert_no_error(error);
    g_assert_nonnull(reader);
    while (ht_log_reader_next(reader, &r)) {
        g_autofree char *text = g_strdup_printf("line %u", ++lines);

        g_assert_cmpuint(r.len, ==, strlen(text));
        g_assert_cmpint(memcmp(r.text, text, r.len), ==, 0);
        g_assert_cmpuint(r.boot, ==, lines == 1 ? 0 : boots - 1);
    }
    g_assert_cmpuint(lines, >, 1);
}

static void remove_folder(const char *dir)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(d))) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        g_remove(path);
    }
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

static void record(Test *t, pid_t pid)
{
    HtRecord r = {
        .memory_fd = -1, .ready_fd = -1, .qmp_fd = -1, .quiet = true,
        .dir = t->dir, .poll_us = 1000,
        .image = ht_kernel_image_ref(t->kernel.image),
    };
    const HtSessionInfo info = {
        .dir = t->dir, .command = "child", .source = "child",
        .image = t->kernel.image, .poll_us = r.poll_us,
    };
    g_autoptr(GError) error = NULL;

    r.plan = g_new0(HtRecordPlan, 1);
    r.plan->memory = HT_RECORD_PROCESS;
    r.plan->programs_fd = -1;
    r.plan->files = g_ptr_array_new_with_free_func(g_free);
    r.process = ht_process_new(pid, &error);
    g_assert_no_error(error);
    ht_record_run(&r, &info);
    ht_record_clear(&r);
}

/*
 * Promise: while a kernel's log is read from a memory, changes of other memory
 * of the process do not make the recorder read the same log again, as that of
 * another boot. If the memory of the kernel is gone, the next kernel is found
 * at another offset in other memory.
 */
static void test_memory(gconstpointer data)
{
    const Case *c = data;
    Test t = { .dir = g_dir_make_tmp("ht-run-XXXXXX", NULL) };
    pid_t pid;
    int status;

    t.log = g_build_filename(t.dir, "log", NULL);
    km_kernel(&t.kernel, 24, true);
    pid = fork();
    if (pid == 0) {
        run_child(&t, c);
    }
    record(&t, pid);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
    check_log(&t, c->boots);
    km_kernel_free(&t.kernel);
    remove_folder(t.dir);
    g_free(t.log);
    g_free(t.dir);
}

int main(int argc, char **argv)
{
    static const Case cases[] = {
        { "/run/memory/others", map_others, 1 },
        { "/run/memory/moves", move_ram, 2 },
    };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_add_data_func(cases[i].name, &cases[i], test_memory);
    }
    return g_test_run();
}
