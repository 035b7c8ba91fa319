/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-churn: programs that start, fork, exec and die while they emit
 *
 *     ht-churn SLOTS PAUSE FIRST SEED DEVICE...
 *
 * Keep SLOTS programs running until the file /tmp/end exists; children that
 * these programs fork are not counted.  A program emits events by ht_trace() to
 * a random DEVICE, in bursts with pauses of up to PAUSE ms; its children use
 * the same device.  Each thread numbers its events from 0 on.  Programs
 * also write to the parameters of hypertrace-sources.ko, now and then.  At the
 * end, print a line about each thread of each program.  Threads are numbered
 * from FIRST on:
 *
 *     thread NUMBER device INDEX ENDING
 *         evaluated N finished N told N unreported N
 *
 * ENDING is "exit" after exit() or the end of the thread's function, "_exit"
 * after _exit() or exec(), else "killed".  "evaluated" is the number of events
 * for which ht_trace() evaluated its arguments; "finished" is the number of
 * these events for which ht_trace() returned.  "unreported" is the result of
 * the thread's last call of ht_trace_discarded(), and "told" the value of
 * "finished" at this call.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hypertrace.h>

#define TABLE       "/tmp/churn"
#define ROWS_MAX    (1u << 18)
#define DEPTH_MAX   2           /* generations of children of a program */
#define BURST_MAX   50          /* events */

HT_EVENT_NAMED(tick, "churn.tick", (u32, thread), (u32, n), (text, note));

enum ending { KILLED, EXIT, EXIT_NOW };

/* The counts of a thread, in memory that outlives the thread */
struct row {
    uint32_t device;
    uint32_t ending;
    uint64_t evaluated;
    uint64_t finished;
    uint64_t told;
    uint64_t unreported;
};

/* The memory that all programs share */
struct table {
    uint32_t first;             /* number of the first thread */
    uint32_t nr;
    uint32_t end;               /* 1: all programs must end */
    uint32_t seed;
    uint32_t pause;             /* a pause is shorter than this time in us */
    int32_t changer;            /* PID that changes a setting now, or 0 */
    uint32_t changed;           /* end of the last change: time() */
    struct row rows[ROWS_MAX];
};

/*
 * Parameters of hypertrace-sources.ko and texts that programs write to them;
 * "nonsense" and "sometimes" are invalid
 */
static const char *const settings[][2] = {
    { "events", "sched,irq" },
    { "events", "" },
    { "events", "sched,timer:,!hrtimer_*" },
    { "events", "sched,nonsense:*" },
    { "functions", "entry:vfs_*" },
    { "functions", "calls:do_sys_*,least_ns=1000" },
    { "functions", "entry:rcu_*,calls:vfs_*,most_depth=2" },
    { "functions", "sometimes:vfs_*" },
    { "functions", "" },
};

static struct table *table;

static void __attribute__((noreturn)) die(const char *what)
{
    printf("ht-churn: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void map_table(int flags)
{
    int fd = open(TABLE, O_RDWR | flags, 0600);

    if (fd < 0 || ftruncate(fd, sizeof(*table))) {
        die(TABLE);
    }
    table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                 0);
    if (table == MAP_FAILED) {
        die("mmap");
    }
    close(fd);
}

/* Return the index of a new row, or ROWS_MAX if all rows are in use. */
static uint32_t new_row(uint32_t device)
{
    uint32_t i = __atomic_fetch_add(&table->nr, 1, __ATOMIC_RELAXED);

    if (i >= ROWS_MAX) {
        __atomic_store_n(&table->nr, ROWS_MAX, __ATOMIC_RELAXED);
        return ROWS_MAX;
    }
    table->rows[i].device = device;
    return i;
}

/* Return a random number from 0 to @below - 1. */
static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 16) % below;
}

static uint64_t seed_of(uint32_t row)
{
    return (table->seed + 1) * 0x9e3779b97f4a7c15ull +
           row * 0xbf58476d1ce4e5b9ull;
}

static void burst(uint32_t i, uint64_t *seed)
{
    static const char note[] = "all of this text, or only the end of it, is in "
                               "an event, so events differ in their sizes";
    struct row *row = &table->rows[i];
    uint32_t n = 1 + draw(seed, BURST_MAX);

    while (n-- > 0) {
        ht_trace(tick, table->first + i, (uint32_t)row->evaluated++,
                 note + draw(seed, sizeof(note)));
        row->finished = row->evaluated;
    }
    row->unreported = ht_trace_discarded();
    row->told = row->finished;
}

/*
 * Change a setting of hypertrace-sources.ko, if the module is loaded, no other
 * program changes a setting, and the last change ended at least 3 s ago.  A
 * change of functions takes seconds in an emulated guest, with lockdep and
 * KASAN minutes.  Other programs would wait for the module's lock in this time.
 */
static void set(uint64_t *seed)
{
    const char *const *setting =
        settings[draw(seed, sizeof(settings) / sizeof(settings[0]))];
    int32_t before = table->changer;
    char path[80];
    int fd;

    if ((before && !kill(before, 0)) ||
        (uint32_t)time(NULL) - table->changed < 3 ||
        !__atomic_compare_exchange_n(&table->changer, &before, getpid(), false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        return;
    }
    snprintf(path, sizeof(path), "/sys/module/hypertrace_sources/parameters/%s",
             setting[0]);
    fd = open(path, O_WRONLY);
    if (fd >= 0) {
        if (write(fd, setting[1], strlen(setting[1])) < 0 && errno == EIO) {
            die(setting[1]);
        }
        close(fd);
    }
    table->changed = (uint32_t)time(NULL);
    table->changer = 0;
}

static void exec_life(uint32_t i)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", i);
    execl("/proc/self/exe", "ht-churn", "life", number, NULL);
    _exit(1);
}

static void *second_thread(void *opaque)
{
    uint32_t i = (uint32_t)(uintptr_t)opaque;
    uint64_t seed = seed_of(i);
    uint32_t bursts = draw(&seed, 30);

    while (bursts-- > 0 && !table->end) {
        burst(i, &seed);
        usleep(draw(&seed, table->pause));
    }
    table->rows[i].ending = EXIT;
    return NULL;
}

static void start_second(uint32_t device, uint64_t *seed)
{
    uint32_t i = new_row(device);
    pthread_t id;

    if (i < ROWS_MAX &&
        pthread_create(&id, NULL, second_thread, (void *)(uintptr_t)i) == 0 &&
        draw(seed, 2)) {
        pthread_join(id, NULL);
    }
}

/* Emit as the thread of row @i, and end. */
static void __attribute__((noreturn)) live(uint32_t i, unsigned depth)
{
    uint64_t seed = seed_of(i);
    uint32_t device = table->rows[i].device, bursts = draw(&seed, 60), next;

    while (bursts-- > 0 && !table->end) {
        burst(i, &seed);
        usleep(draw(&seed, table->pause));
        switch (draw(&seed, 60)) {
        case 0:
            next = depth < DEPTH_MAX ? new_row(device) : ROWS_MAX;
            if (next < ROWS_MAX && fork() == 0) {
                live(next, depth + 1);
            }
            break;
        case 1:
            next = new_row(device);
            if (next < ROWS_MAX) {
                table->rows[i].ending = EXIT_NOW;
                exec_life(next);
            }
            break;
        case 2:
            start_second(device, &seed);
            break;
        case 3:
            set(&seed);
            break;
        }
    }
    switch (draw(&seed, 4)) {
    case 0:
        raise(SIGKILL);
        break;
    case 1:
        table->rows[i].ending = EXIT_NOW;
        _exit(0);
    }
    table->rows[i].ending = EXIT;
    exit(0);
}

/*
 * Start a program that emits to a random device of the @nr in @devices. Returns
 * its PID, or -1 if it was not started.
 */
static pid_t start(char **devices, unsigned nr, uint64_t *seed)
{
    uint32_t device = draw(seed, nr), i = new_row(device);
    pid_t pid = i < ROWS_MAX ? fork() : -1;

    if (pid == 0) {
        setenv("HYPERTRACE_DEVICE", devices[device], 1);
        exec_life(i);
    }
    return pid;
}

static void print_rows(void)
{
    static const char *const endings[] = { "killed", "exit", "_exit" };
    uint32_t i;

    for (i = 0; i < table->nr; i++) {
        const struct row *r = &table->rows[i];

        printf("thread %u device %u %s evaluated %llu finished %llu told %llu "
               "unreported %llu\n", table->first + i, r->device,
               endings[r->ending], (unsigned long long)r->evaluated,
               (unsigned long long)r->finished, (unsigned long long)r->told,
               (unsigned long long)r->unreported);
    }
}

/*
 * Keep @slots programs running until /tmp/end exists, and kill one at random
 * now and then; finally wait for the end of all programs and their children.
 */
static void churn(unsigned slots, char **devices, unsigned nr)
{
    uint64_t seed = seed_of(ROWS_MAX);
    pid_t *pids = calloc(slots, sizeof(*pids));
    unsigned i;

    /* If a program ends, let this process become the parent of its children. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    while (access("/tmp/end", F_OK)) {
        pid_t ended;

        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {
            for (i = 0; i < slots; i++) {
                if (pids[i] == ended) {
                    pids[i] = 0;
                }
            }
        }
        for (i = 0; i < slots; i++) {
            if (pids[i] <= 0) {
                pids[i] = start(devices, nr, &seed);
            }
        }
        i = draw(&seed, slots * 4);
        if (i < slots && pids[i] > 0) {
            kill(pids[i], SIGKILL);
        }
        usleep(20000);
    }
    table->end = 1;
    do {
        i = wait(NULL) > 0 || errno == EINTR;
    } while (i);
    free(pids);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "life")) {
        map_table(0);
        live(strtoul(argv[2], NULL, 10), 0);
    }
    if (argc < 6) {
        fprintf(stderr, "usage: ht-churn SLOTS PAUSE FIRST SEED DEVICE...\n");
        return 2;
    }
    unlink(TABLE);
    map_table(O_CREAT | O_EXCL);
    table->pause = strtoul(argv[2], NULL, 10) * 1000 + 1;
    table->first = strtoul(argv[3], NULL, 10);
    table->seed = strtoul(argv[4], NULL, 10);
    churn(strtoul(argv[1], NULL, 10), argv + 5, argc - 5);
    print_rows();
    return 0;
}
