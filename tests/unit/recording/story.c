/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace tests: write a recording, for tests/unit/tool and for measurements
 *
 *   recording-story story DIR      many types of events, and hostile texts
 *   recording-story slower DIR     a boot with a longer initcall than in story
 *   recording-story kept DIR       boots, some without a kernel address in info
 *   recording-story pairs DIR      pairs of events for latency (calls.c)
 *   recording-story functions DIR  function events (calls.c)
 *   recording-story hang DIR       a hang within an interrupt (calls.c)
 *   recording-story naps DIR       a task that sleeps (calls.c)
 *   recording-story full DIR N     calls that fill flame's tree; N is @single
 *                                  of make_full() (calls.c)
 *   recording-story deep DIR       300 nested calls (calls.c)
 *   recording-story inside DIR     functions called within initcalls (calls.c)
 *   recording-story talk DIR       two guests that exchange messages (talk.c)
 *   recording-story losses DIR     a device's trace without an event, with 5
 *                                  discarded ones
 *   recording-story dead DIR       stream memory of a killed QEMU (dead.c)
 *   recording-story steps DIR      a clock that goes back in an initcall, and
 *                                  initcalls without an end
 *   recording-story levels DIR     40 levels of initcalls
 *   recording-story steps-process DIR  a clock that goes back while a process
 *                                  runs
 *   recording-story repeats DIR    a console line that is printed twice
 *   recording-story stamped DIR    console lines that begin with a time
 *   recording-story toggled DIR    console lines, of which the last begins with
 *                                  a time
 *   recording-story oops DIR       the last console lines of a machine
 *   recording-story threads DIR    threads that rename themselves and others
 *   recording-story stacks DIR     kernel stacks, and a call of read()
 *   recording-story reuse DIR      a PID used by four tasks, in two boots
 *   recording-story crowd DIR N    N tasks that run once, in two boots
 *   recording-story random DIR N   random events; N is the seed
 *   recording-story bulk DIR N     N events, mainly for measurements
 */
#include "recording-make.h"

#define US      1000u
#define MS      1000000u

/* address of the kernel's text in the first boot */
#define TEXT    0xffffffff91000000u
/* address of the kernel's text in the second boot */
#define TEXT2   0xffffffffa1000000u

/* Text with bytes that outputs escape */
#define HOSTILE "\033[2J</script>\"'&\001\377x"

static void func(Make *m, uint64_t ns, int32_t pid, uint16_t type,
                 uint64_t addr, int32_t ret)
{
    uint8_t b[12];

    ht_put_le64(b, addr);
    ht_put_le32(b + 8, ret);
    make_event(m, 0, ns, pid, type, b, type == MAKE_FINISH ? 12 : 8);
}

static void level(Make *m, uint64_t ns, const char *name)
{
    make_text(m, 0, ns, 1, MAKE_LEVEL, NULL, 0, name, strlen(name), NULL, 0);
}

static void print(Make *m, uint64_t ns, int32_t pid, const char *text)
{
    make_console(m, 0, ns, pid, text, strlen(text));
}

static void ends(Make *m, unsigned cpu, uint64_t ns, int32_t pid,
                 const char *comm)
{
    uint8_t b[24] = { 0 };

    memcpy(b, comm, MIN(strlen(comm), 16));
    ht_put_le32(b + 16, pid);
    ht_put_le32(b + 20, 120);
    make_event(m, cpu, ns, pid, MAKE_EXIT, b, sizeof(b));
}

static void renames(Make *m, unsigned cpu, uint64_t ns, int32_t by,
                    int32_t pid, const char *from, const char *to)
{
    uint8_t b[40] = { 0 };

    ht_put_le32(b, pid);
    memcpy(b + 4, from, MIN(strlen(from), 16));
    memcpy(b + 20, to, MIN(strlen(to), 16));
    make_event(m, cpu, ns, by, MAKE_RENAME, b, sizeof(b));
}

static void kernel(Make *m, uint64_t text, uint64_t slow)
{
    print(m, 0, 0, "Linux version 6.12.1-test\n");
    make_newtask(m, 0, 1 * MS, 0, 1, "swapper/0", 0);
    make_switch(m, 0, 2 * MS, 0, "swapper/0", 0, 1, "swapper/0");
    level(m, 10 * MS, "early");
    func(m, 11 * MS, 1, MAKE_START, text + 0x1000, 0);
    func(m, 12 * MS, 1, MAKE_FINISH, text + 0x1000, 0);
    level(m, 20 * MS, "late");
    func(m, 21 * MS, 1, MAKE_START, text + 0x2000, 0);
    func(m, 21 * MS + slow, 1, MAKE_FINISH, text + 0x2000, -19);
    print(m, 22 * MS + slow, 1, "Run /sbin/init as init process");
    make_exec(m, 0, 30 * MS + slow, 1, "/sbin/init");
    renames(m, 0, 30 * MS + slow + US, 1, 1, "swapper/0", "init");
}

/* Events of a service; its name has terminal controls */
static void service(Make *m)
{
    make_newtask(m, 0, 100 * MS, 1, 7, "init", 0);
    make_switch(m, 0, 101 * MS, 1, "init", 1, 7, "init");
    make_exec(m, 0, 102 * MS, 7, "/usr/bin/" HOSTILE);
    renames(m, 0, 102 * MS + US, 7, 7, "init", "\033[2J</script>");
    make_newtask(m, 0, 103 * MS, 7, 8, "\033[2J</script>", CLONE_THREAD);
    /* a thread of task 7 runs for 2 ms on CPU 1 */
    make_switch(m, 1, 110 * MS, 0, "swapper/1", 0, 8, "worker");
    make_switch(m, 1, 112 * MS, 8, "worker", 2, 0, "swapper/1");
    ends(m, 0, 150 * MS, 7, "\033[2J</script>");
    make_switch(m, 0, 151 * MS, 7, "\033[2J</script>", 0x20, 1, "init");
}

static void interrupts(Make *m)
{
    uint8_t irq[8] = { 11 }, odd[8] = { 1, 0, 0, 0, 2, 0xaa, 0xbb, 0xcc };
    uint8_t sys[56] = { 39 }, graph[32] = { 0 };

    make_text(m, 1, 200 * MS, 0, MAKE_IRQ_ENTRY, irq, 4, "virtio0", 7, NULL,
              0);
    irq[4] = 1;
    make_event(m, 1, 200 * MS + 5 * US, 0, MAKE_IRQ_EXIT, irq, 8);
    irq[0] = 1;
    make_event(m, 1, 200 * MS + 6 * US, 0, MAKE_SOFTIRQ_ENTRY, irq, 4);
    make_event(m, 1, 200 * MS + 9 * US, 0, MAKE_SOFTIRQ_EXIT, irq, 4);
    ht_put_le64(sys + 8, 0xffffffffffffffff);
    make_event(m, 0, 201 * MS, 1, MAKE_SYS_ENTER, sys, sizeof(sys));
    ht_put_le64(sys + 8, 7);
    make_event(m, 0, 201 * MS + US, 1, MAKE_SYS_EXIT, sys, 16);
    ht_put_le64(graph, TEXT + 0x3000);
    make_event(m, 0, 202 * MS, 1, MAKE_GRAPH_ENTRY, graph, 12);
    ht_put_le64(graph + 16, 202 * MS);
    ht_put_le64(graph + 24, 202 * MS + 3 * US);
    make_event(m, 0, 202 * MS + 3 * US, 1, MAKE_GRAPH_EXIT, graph, 32);
    make_text(m, 0, 203 * MS, 1, MAKE_ODD, NULL, 0, HOSTILE, strlen(HOSTILE),
              odd, sizeof(odd));
    make_event(m, 0, 204 * MS, 1, MAKE_UNKNOWN, "\1\2\3\4", 4);
}

static void story(const char *dir)
{
    Make *m = make_new(dir);
    uint8_t b[28] = { 0 };

    kernel(m, TEXT, 5 * MS);
    service(m);
    interrupts(m);
    make_console(m, 0, 300 * MS, 1, "two\nlines\twith" HOSTILE "\0tail\n",
                 19 + strlen(HOSTILE));
    make_gap(m, 1, 123);
    /* the task 99, "late", was switched in during the gap */
    memcpy(b, "swapper/1", 9);
    make_event(m, 1, 400 * MS, 99, MAKE_WAKING, b, sizeof(b));
    make_switch(m, 1, 401 * MS, 99, "late", 0, 0, "swapper/1");
    make_boot(m);
    kernel(m, TEXT2, 2 * MS);
    make_step(m);
    print(m, 3 * MS, 1, "after a step back");
    make_end(m);
}

static void slower(const char *dir)
{
    Make *m = make_new(dir);

    kernel(m, TEXT, 45 * MS);
    make_end(m);
}

/*
 * Five boots; the file info has no kernel address for the last three. A reader
 * can find the address of the fourth boot's kernel from its initcalls. The
 * third boot has too few initcalls, and those of the fifth fit no address.
 */
static void kept(const char *dir)
{
    static const uint32_t at[] = { 0, 0x1000, 0x2000, 0x3000, 0x4000, 0x5000,
                                   0x6000, 0x100000 };
    Make *m = make_new(dir);
    unsigned boot, i;

    for (boot = 0; boot < 5; boot++) {
        for (i = 0; i < G_N_ELEMENTS(at) - (boot == 2); i++) {
            func(m, (i + 1) * MS, 1, MAKE_START, 0xffffffff92000000u +
                 boot * 0x1200000 + at[i] + (boot == 4 && i == 3), 0);
        }
        if (boot < 4) {
            make_boot(m);
        }
    }
    make_end(m);
}

/*
 * Within the first initcall the guest's clock goes back by 7 ms.  A gap hides
 * the end of the second initcall and the begin of the third.  The fifth and
 * last one has no end.
 */
static void steps(const char *dir)
{
    Make *m = make_new(dir);

    make_look(m, UINT64_C(5000000000), UINT64_C(5015000000));
    print(m, 1 * MS, 0, "Linux version 6.12.1-test\n");
    level(m, 10 * MS, "early");
    func(m, 11 * MS, 1, MAKE_START, TEXT + 0x1000, 0);
    print(m, 13 * MS, 1, "before");
    make_step(m);
    make_look(m, UINT64_C(5015000000), UINT64_C(5080000000));
    print(m, 6 * MS, 1, "after");
    func(m, 8 * MS, 1, MAKE_FINISH, TEXT + 0x1000, 0);
    func(m, 9 * MS, 1, MAKE_START, TEXT + 0x2000, 0);
    make_gap(m, 0, 50);
    func(m, 40 * MS, 1, MAKE_FINISH, TEXT + 0x3000, 0);
    func(m, 41 * MS, 1, MAKE_START, TEXT + 0x4000, 0);
    func(m, 42 * MS, 1, MAKE_FINISH, TEXT + 0x4000, 0);
    func(m, 43 * MS, 1, MAKE_START, TEXT + 0x1000, 0);
    make_gap(m, 0, 5);
    make_exec(m, 0, 60 * MS, 1, "/sbin/init");
    make_end(m);
}

/*
 * A process runs for 10 ms, the guest's clock goes back, and the process runs
 * for 5 ms more.
 */
static void steps_process(const char *dir)
{
    Make *m = make_new(dir);

    make_look(m, UINT64_C(5000000000), UINT64_C(5015000000));
    print(m, 1 * MS, 0, "Linux version 6.12.1-test\n");
    make_exec(m, 0, 10 * MS, 1, "/sbin/init");
    make_switch(m, 0, 15 * MS, 1, "init", 1, 100, "worker");
    make_exec(m, 0, 20 * MS, 100, "/bin/worker");
    print(m, 30 * MS, 100, "before");
    make_step(m);
    make_look(m, UINT64_C(5015000000), UINT64_C(5080000000));
    print(m, 12 * MS, 100, "after");
    print(m, 17 * MS, 100, "later");
    make_end(m);
}

/*
 * More levels of initcalls than "boot --svg" has rows for. Each level has one
 * call, except level0.
 */
static void levels(const char *dir)
{
    Make *m = make_new(dir);
    unsigned i, k;

    print(m, 1 * MS, 0, "Linux version 6.12.1-test\n");
    for (i = 0; i < 40; i++) {
        g_autofree char *name = g_strdup_printf("level%u", i);

        level(m, (10 + i) * MS, name);
        /* level0 has 209 calls; "boot --svg" draws 200 */
        for (k = 1; !i && k <= 209; k++) {
            func(m, 10 * MS + k * 4000, 1, MAKE_START, TEXT + 0x1000, 0);
            func(m, 10 * MS + k * 4000 + 1000, 1, MAKE_FINISH, TEXT + 0x1000,
                 0);
        }
        if (!i) {
            continue;
        }
        func(m, (10 + i) * MS + 1000, 1, MAKE_START, TEXT + 0x1000, 0);
        func(m, (10 + i) * MS + 2000, 1, MAKE_FINISH, TEXT + 0x1000, 0);
    }
    make_end(m);
}

/* Console lines, of which one is printed at 20 ms and again at 5 s */
static void repeats(const char *dir)
{
    Make *m = make_new(dir);

    print(m, 10 * MS, 0, "first");
    print(m, 20 * MS, 0, "same");
    print(m, 30 * MS, 0, "between");
    print(m, UINT64_C(5000) * MS, 0, "same");
    print(m, UINT64_C(5050) * MS, 0, "late");
    print(m, UINT64_C(5100) * MS, 0, "end");
    make_end(m);
}

/*
 * Console events. All texts but the last begin with the time of the log's
 * record, which is earlier than the event's. Two lines are printed twice.
 */
static void stamped(const char *dir)
{
    Make *m = make_new(dir);

    print(m, 12 * MS, 0, "[    0.010000] first\n");
    print(m, UINT64_C(2500) * MS, 0, "[    0.020000] second\n");
    print(m, UINT64_C(2600) * MS, 0, "[    1.500000] third\n");
    print(m, UINT64_C(2650) * MS, 0, "[    1.600000] first\n");
    print(m, UINT64_C(2660) * MS, 0, "[    1.610000] second\n");
    print(m, UINT64_C(2700) * MS, 0, "[1.2] no time\n");
    make_end(m);
}

/*
 * Console events, 2 s later than the records of the test's log. The guest's
 * user has switched the times of lines on before the last line.
 */
static void toggled(const char *dir)
{
    Make *m = make_new(dir);

    print(m, UINT64_C(2010) * MS, 0, "first\n");
    print(m, UINT64_C(2020) * MS, 0, "second\n");
    print(m, UINT64_C(2040) * MS, 0, "[    0.040000] fourth\n");
    make_end(m);
}

/*
 * The last console lines of a machine. The test's log has older lines with the
 * same texts, as after an earlier oops, of which there are no events.
 */
static void oops(const char *dir)
{
    Make *m = make_new(dir);

    print(m, UINT64_C(5000000) * MS, 0, "Call Trace:");
    print(m, UINT64_C(5000001) * MS, 0, " <TASK>");
    print(m, UINT64_C(5000002) * MS, 0, "end");
    make_end(m);
}

/*
 * A thread on CPU 1 renames itself, and then the process's first thread, on CPU
 * 0, renames it again.
 */
static void threads(const char *dir)
{
    Make *m = make_new(dir);

    make_switch(m, 0, 1 * MS, 0, "swapper/0", 0, 7, "main");
    make_exec(m, 0, 1 * MS, 7, "/proc/self/exe");
    make_newtask(m, 0, 2 * MS, 7, 8, "main", CLONE_THREAD);
    make_switch(m, 1, 3 * MS, 0, "swapper/1", 0, 8, "main");
    renames(m, 1, 4 * MS, 8, 8, "main", "worker");
    renames(m, 0, 5 * MS, 7, 8, "worker", "helper");
    print(m, 6 * MS, 7, "text");
    make_switch(m, 1, 7 * MS, 8, "helper", 1, 0, "swapper/1");
    make_end(m);
}

/* Stacks of 0, 1 and 14 frames, and a system call's events of group syscalls */
static void stacks(const char *dir)
{
    static const unsigned depths[] = { 0, 1, 14 };
    Make *m = make_new(dir);
    uint8_t b[8 + 14 * 8], call[24] = { 0 };
    unsigned i, k;

    for (i = 0; i < G_N_ELEMENTS(depths); i++) {
        memset(b, 0, sizeof(b));
        ht_put_le32(b, depths[i]);
        for (k = 0; k < depths[i]; k++) {
            ht_put_le64(b + 8 + k * 8, TEXT + 0x1000 + k);
        }
        make_event(m, 0, (i + 1) * MS, 1, MAKE_KERNEL_STACK, b,
                   8 + depths[i] * 8);
    }
    ht_put_le64(call + 8, 3);
    ht_put_le64(call + 16, 0x7f0000001000);
    make_event(m, 0, 10 * MS, 1, MAKE_ENTER_READ, call, 24);
    ht_put_le64(call + 8, 100);
    make_event(m, 0, 11 * MS, 1, MAKE_EXIT_READ, call, 16);
    make_end(m);
}

static void reuse_one(Make *m, uint64_t ns, const char *comm, unsigned run,
                      bool begins)
{
    uint64_t end = ns + (1 + run) * MS;

    if (begins) {
        make_newtask(m, 0, ns, 1, 50, "init", 0);
    }
    make_switch(m, 0, ns + MS, 1, "init", 1, 50, comm);
    ends(m, 0, end, 50, comm);
    /* An exiting task is preempted and runs again: it is the same task. */
    make_switch(m, 0, end, 50, comm, 0, 1, "init");
    make_switch(m, 0, end, 1, "init", 0, 50, comm);
    make_switch(m, 0, end, 50, comm, 0x10, 1, "init");
}

static void reuse(const char *dir)
{
    Make *m = make_new(dir);

    reuse_one(m, 10 * MS, "first", 1, true);
    reuse_one(m, 20 * MS, "second", 2, true);
    /* the event of the task's begin was not recorded */
    reuse_one(m, 30 * MS, "unseen", 3, false);
    make_boot(m);
    reuse_one(m, 10 * MS, "third", 4, true);
    make_end(m);
}

/*
 * Tasks that run for 1 us each: the first half in the first boot. Between two
 * tasks, the CPU is idle for 1 us.
 */
static void crowd(const char *dir, unsigned n)
{
    Make *m = make_new(dir);
    uint64_t ns = 1 * MS;
    unsigned i;

    for (i = 1; i <= n; i++) {
        make_switch(m, 0, ns += US, 0, "swapper/0", 0, i, "one");
        make_switch(m, 0, ns += US, i, "one", 1, 0, "swapper/0");
        if (i == n / 2) {
            make_boot(m);
        }
    }
    make_end(m);
}

/*
 * Write random events. In each segment of the clock their times are in order;
 * their fields are random bytes.
 */
static void anything(const char *dir, uint32_t seed)
{
    static const uint16_t types[] = {
        MAKE_SWITCH, MAKE_NEWTASK, MAKE_RENAME, MAKE_EXEC, MAKE_EXIT,
        MAKE_LEVEL, MAKE_START, MAKE_FINISH, MAKE_CONSOLE, MAKE_IRQ_ENTRY,
        MAKE_IRQ_EXIT, MAKE_SOFTIRQ_ENTRY, MAKE_SOFTIRQ_EXIT, MAKE_SYS_ENTER,
        MAKE_SYS_EXIT, MAKE_WAKING, MAKE_FUNCTION, MAKE_GRAPH_ENTRY,
        MAKE_GRAPH_EXIT,
    };
    g_autoptr(GRand) r = g_rand_new_with_seed(seed);
    Make *m = make_new(dir);
    uint64_t ns = 50 * MS;
    unsigned i, k;

    for (i = 0; i < 3000; i++) {
        uint8_t b[64];
        int32_t pid = g_rand_int_range(r, 0, 9);

        for (k = 0; k < sizeof(b); k++) {
            int most = g_rand_int_range(r, 0, 3) ? 9 : 256;

            b[k] = g_rand_int_range(r, 0, most);
        }
        ns += g_rand_int_range(r, 0, 2000) * US / 10;
        make_event(m, g_rand_int_range(r, 0, 2), ns, pid,
                   types[g_rand_int_range(r, 0, G_N_ELEMENTS(types))], b,
                   sizeof(b));
        if (!g_rand_int_range(r, 0, 100)) {
            make_gap(m, g_rand_int_range(r, 0, 2), g_rand_int_range(r, 0, 9));
        }
        if (!g_rand_int_range(r, 0, 150)) {
            uint64_t back = g_rand_int_range(r, 1, 30000) * US;

            make_step(m);
            ns -= MIN(ns, back);
        }
        if (!g_rand_int_range(r, 0, 1500)) {
            make_boot(m);
            ns = g_rand_int_range(r, 0, 1000) * US;
        }
    }
    make_end(m);
}

static void bulk(const char *dir, uint64_t n)
{
    Make *m = make_new(dir);
    uint64_t i;

    for (i = 0; i < n; i++) {
        unsigned cpu = i % 4;
        uint64_t ns = 1000 + i * 250;
        int32_t pid = 100 + cpu * 100 + i / 4 / 3 % 50;
        uint8_t vec[4] = { i / 12 % 10 };
        char comm[16], next[16];

        switch (i / 4 % 3) {
        case 0:
            g_snprintf(comm, sizeof(comm), "task-%d", pid);
            g_snprintf(next, sizeof(next), "task-%d", 100 + cpu * 100 +
                       (pid - 100 - (int)cpu * 100 + 1) % 50);
            make_switch(m, cpu, ns, pid, comm, 1, 100 + cpu * 100 +
                        (pid - 100 - (int)cpu * 100 + 1) % 50, next);
            break;
        case 1:
            make_event(m, cpu, ns, 100 + cpu * 100 + (pid + 1) % 50,
                       MAKE_SOFTIRQ_ENTRY, vec, 4);
            break;
        default:
            make_event(m, cpu, ns, 100 + cpu * 100 + (pid + 1) % 50,
                       MAKE_SOFTIRQ_EXIT, vec, 4);
        }
    }
    make_end(m);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "story")) {
        story(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "slower")) {
        slower(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "kept")) {
        kept(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "steps")) {
        steps(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "steps-process")) {
        steps_process(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "losses")) {
        device_end_quiet(device_new(argv[2], UINT64_C(20000) * MS));
    } else if (argc == 3 && !strcmp(argv[1], "levels")) {
        levels(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "repeats")) {
        repeats(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "stamped")) {
        stamped(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "toggled")) {
        toggled(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "oops")) {
        oops(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "threads")) {
        threads(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "stacks")) {
        stacks(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "reuse")) {
        reuse(argv[2]);
    } else if (argc == 4 && !strcmp(argv[1], "crowd")) {
        crowd(argv[2], atoi(argv[3]));
    } else if (argc == 4 && !strcmp(argv[1], "random")) {
        anything(argv[2], g_ascii_strtoull(argv[3], NULL, 10));
    } else if (argc == 3 && !strcmp(argv[1], "pairs")) {
        make_pairs(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "hang")) {
        make_hang(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "naps")) {
        make_naps(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "functions")) {
        make_functions(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "deep")) {
        make_deep(argv[2]);
    } else if (argc == 4 && !strcmp(argv[1], "full")) {
        make_full(argv[2], atoi(argv[3]));
    } else if (argc == 3 && !strcmp(argv[1], "inside")) {
        make_inside(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "talk")) {
        make_talk(argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "dead")) {
        make_dead(argv[2]);
    } else if (argc == 4 && !strcmp(argv[1], "bulk")) {
        bulk(argv[2], g_ascii_strtoull(argv[3], NULL, 10));
    } else {
        fprintf(stderr, "usage: recording-story STORY DIR | bulk DIR N\n");
        return 2;
    }
    return 0;
}
