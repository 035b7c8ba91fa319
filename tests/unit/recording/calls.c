/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace tests: write recordings with calls of functions, wakeups of tasks,
 * and interrupts
 */
#include "recording-make.h"

/* bit of common_flags: the event occurred in a hard interrupt */
#define HARDIRQ 0x08
#define US      1000u
#define MS      1000000u

/* Record an event of processor @cpu: task @by wakes task @pid */
static void wakes(Make *m, unsigned cpu, uint64_t ns, int32_t by, int32_t pid)
{
    uint8_t b[28] = { 0 };

    memcpy(b, "worker", 6);
    ht_put_le32(b + 16, pid);
    ht_put_le32(b + 20, 120);
    make_event(m, cpu, ns, by, MAKE_WAKING, b, sizeof(b));
}

static void irq(Make *m, unsigned cpu, uint64_t ns, uint32_t nr, bool entry)
{
    uint8_t b[8] = { nr, 0, 0, 0, 1 };

    if (entry) {
        make_text(m, cpu, ns, 0, MAKE_IRQ_ENTRY, b, 4, "nic", 3, NULL, 0);
    } else {
        make_event(m, cpu, ns, 0, MAKE_IRQ_EXIT, b, sizeof(b));
    }
}

void make_pairs(const char *dir)
{
    Make *m = make_new(dir);
    unsigned i;

    /* tasks woken on CPU 0 that run on CPU 1 after 1, 2, 3 and 4 ms */
    for (i = 1; i <= 4; i++) {
        wakes(m, 0, i * 20 * MS, 0, 10 + i);
        make_switch(m, 1, i * 21 * MS, 0, "swapper/1", 0, 10 + i, "worker");
        make_switch(m, 1, i * 21 * MS + 5 * US, 10 + i, "worker", 1, 0,
                    "swapper/1");
    }
    /* a task is woken twice before it runs: its latency is 2 ms, not 3 ms */
    wakes(m, 0, 100 * MS, 0, 20);
    wakes(m, 0, 101 * MS, 0, 20);
    make_switch(m, 1, 103 * MS, 0, "swapper/1", 0, 20, "twice");
    /*
     * a task is woken while it runs, then preempted, then runs again: `latency`
     * has no pair for this wakeup
     */
    wakes(m, 0, 104 * MS, 0, 20);
    make_switch(m, 1, 105 * MS, 20, "twice", 0, 0, "swapper/1");
    make_switch(m, 1, 106 * MS, 0, "swapper/1", 0, 20, "twice");
    make_switch(m, 1, 107 * MS, 20, "twice", 1, 0, "swapper/1");
    /*
     * CPU 0 has interrupt 5 and within it interrupt 6, while CPU 1 has
     * interrupt 5
     */
    irq(m, 0, 110 * MS, 5, true);
    irq(m, 1, 110 * MS + 1 * US, 5, true);
    irq(m, 0, 110 * MS + 2 * US, 6, true);
    irq(m, 0, 110 * MS + 4 * US, 6, false);
    irq(m, 1, 110 * MS + 8 * US, 5, false);
    irq(m, 0, 110 * MS + 10 * US, 5, false);
    /*
     * CPU 1 has a gap from 121 to 123 ms. It begins between the wakeup of task
     * 30 and the switch to this task, and lies within an interrupt of CPU 1. An
     * interrupt of CPU 0 is complete.
     */
    wakes(m, 0, 120 * MS, 0, 30);
    irq(m, 0, 121 * MS, 5, true);
    irq(m, 1, 121 * MS, 5, true);
    irq(m, 0, 121 * MS + 3 * US, 5, false);
    make_gap(m, 1, 9);
    make_switch(m, 0, 122 * MS, 0, "swapper/0", 0, 30, "gap");
    irq(m, 1, 123 * MS, 5, false);
    make_switch(m, 1, 124 * MS, 40, "?", 0, 0, "swapper/1");
    /* a task is woken in one boot; in the next one another task has its PID */
    wakes(m, 0, 130 * MS, 0, 50);
    make_boot(m);
    make_switch(m, 0, 10 * MS, 0, "swapper/0", 0, 50, "other");
    wakes(m, 0, 20 * MS, 50, 51);
    make_switch(m, 0, 70 * MS, 50, "other", 0, 51, "second");
    /* a task is woken in one segment of the clock and runs in the next one */
    wakes(m, 0, 80 * MS, 51, 52);
    make_step(m);
    make_switch(m, 0, 81 * MS, 51, "second", 0, 52, "third");
    make_end(m);
}

/*
 * A task sleeps three times: until an interrupt wakes it, until the task "disk"
 * wakes it, and while another CPU has a gap.
 */
void make_naps(const char *dir)
{
    Make *m = make_new(dir);

    make_switch(m, 0, 1 * MS, 0, "swapper/0", 0, 7, "napper");
    make_switch(m, 0, 2 * MS, 7, "napper", 1, 0, "swapper/0");
    make_flags(m, HARDIRQ);
    wakes(m, 0, 8 * MS, 0, 7);
    make_flags(m, 0);
    make_switch(m, 0, 10 * MS, 0, "swapper/0", 0, 7, "napper");
    make_switch(m, 0, 11 * MS, 7, "napper", 2, 8, "disk");
    wakes(m, 0, 13 * MS, 8, 7);
    make_switch(m, 0, 14 * MS, 8, "disk", 2, 7, "napper");
    /* flame does not count the third sleep: its wakeup may be in the gap */
    make_switch(m, 0, 15 * MS, 7, "napper", 1, 0, "swapper/0");
    wakes(m, 1, 15 * MS, 0, 9);
    make_gap(m, 1, 1);
    wakes(m, 1, 16 * MS, 0, 9);
    make_switch(m, 0, 17 * MS, 0, "swapper/0", 0, 7, "napper");
    make_end(m);
}

/* Address of the kernel's text in the first boot and in the second */
#define TEXT    0xffffffff91000000u
#define TEXT2   0xffffffffa1000000u

#define READ    0x3000u
#define WALK    0x4000u
#define LEAF    0x5000u
#define IDLE    0x6000u

static void enters(Make *m, unsigned cpu, uint64_t ns, int32_t pid,
                   uint64_t func, int depth)
{
    uint8_t b[12];

    ht_put_le64(b, func);
    ht_put_le32(b + 8, depth);
    make_event(m, cpu, ns, pid, MAKE_GRAPH_ENTRY, b, sizeof(b));
}

static void leaves(Make *m, unsigned cpu, uint64_t ns, int32_t pid,
                   uint64_t func, int depth, uint64_t since)
{
    uint8_t b[32] = { 0 };

    ht_put_le64(b, func);
    ht_put_le32(b + 8, depth);
    ht_put_le64(b + 16, since);
    ht_put_le64(b + 24, ns);
    make_event(m, cpu, ns, pid, MAKE_GRAPH_EXIT, b, sizeof(b));
}

static void calls(Make *m, uint64_t ns, uint64_t ip, uint64_t parent)
{
    uint8_t b[16];

    ht_put_le64(b, ip);
    ht_put_le64(b + 8, parent);
    make_event(m, 0, ns, 7, MAKE_FUNCTION, b, sizeof(b));
}

void make_functions(const char *dir)
{
    Make *m = make_new(dir);
    uint64_t t = 10 * MS;

    /* a function on CPU 0 calls itself, while CPU 1 runs another call */
    make_switch(m, 0, 1 * MS, 0, "swapper/0", 0, 7, "reader");
    enters(m, 0, t, 7, TEXT + READ, 0);
    enters(m, 0, t + 1 * US, 7, TEXT + WALK, 1);
    enters(m, 1, t + 2 * US, 0, TEXT + IDLE, 0);
    enters(m, 0, t + 3 * US, 7, TEXT + WALK, 2);
    enters(m, 1, t + 4 * US, 0, TEXT + LEAF, 1);
    enters(m, 0, t + 5 * US, 7, TEXT + LEAF, 3);
    leaves(m, 1, t + 6 * US, 0, TEXT + LEAF, 1, t + 4 * US);
    leaves(m, 0, t + 7 * US, 7, TEXT + LEAF, 3, t + 5 * US);
    leaves(m, 0, t + 8 * US, 7, TEXT + WALK, 2, t + 3 * US);
    leaves(m, 1, t + 9 * US, 0, TEXT + IDLE, 0, t + 2 * US);
    leaves(m, 0, t + 10 * US, 7, TEXT + WALK, 1, t + 1 * US);
    leaves(m, 0, t + 20 * US, 7, TEXT + READ, 0, t);
    /* a gap after a switch hides the ends of the calls of WALK and LEAF */
    t = 20 * MS;
    enters(m, 0, t, 7, TEXT + READ, 0);
    enters(m, 0, t + 1 * US, 7, TEXT + WALK, 1);
    enters(m, 0, t + 2 * US, 7, TEXT + LEAF, 2);
    make_switch(m, 0, t + 3 * US, 7, "reader", 0, 7, "reader");
    make_gap(m, 0, 4);
    leaves(m, 0, t + 9 * US, 7, TEXT + READ, 0, t);
    /*
     * A gap hides the begins of calls: only their ends follow.  Such a sequence
     * also occurs without a gap, if the kernel's tracing_thresh is set.
     */
    t = 30 * MS;
    make_gap(m, 0, 0);
    leaves(m, 0, t + 4 * US, 7, TEXT + LEAF, 2, t + 2 * US);
    leaves(m, 0, t + 5 * US, 7, TEXT + WALK, 1, t + 1 * US);
    leaves(m, 0, t + 9 * US, 7, TEXT + READ, 0, t);
    /* events of the tracer `function`: each names a function and its caller */
    t = 40 * MS;
    calls(m, t, TEXT + READ + 4, TEXT + 0x10);
    calls(m, t + 1 * US, TEXT + WALK + 4, TEXT + READ + 0x20);
    calls(m, t + 2 * US, TEXT + LEAF + 4, TEXT + WALK + 0x30);
    calls(m, t + 3 * US, TEXT + LEAF + 4, TEXT + READ + 0x40);
    /* a second boot, with its kernel at another address; one call has no end */
    make_boot(m);
    enters(m, 0, 5 * MS, 7, TEXT2 + READ, 0);
    leaves(m, 0, 5 * MS + 2 * US, 7, TEXT2 + READ, 0, 5 * MS);
    enters(m, 0, 6 * MS, 7, TEXT2 + READ, 0);
    enters(m, 0, 6 * MS + 1 * US, 7, TEXT2 + LEAF, 1);
    leaves(m, 0, 6 * MS + 4 * US, 7, TEXT2 + LEAF, 1, 6 * MS + 1 * US);
    make_end(m);
}

/*
 * A recording that ends while CPU 0 is in a softirq within an interrupt, within
 * calls of functions, within a system call
 */
void make_hang(const char *dir)
{
    Make *m = make_new(dir);
    uint8_t sys[56] = { 0 }, vec[4] = { 3 };

    make_switch(m, 0, 1 * MS, 0, "swapper/0", 0, 7, "reader");
    make_event(m, 0, 2 * MS, 7, MAKE_SYS_ENTER, sys, sizeof(sys));
    enters(m, 0, 3 * MS, 7, TEXT + READ, 0);
    enters(m, 0, 4 * MS, 7, TEXT + WALK, 1);
    enters(m, 0, 5 * MS, 7, TEXT + LEAF, 2);
    leaves(m, 0, 6 * MS, 7, TEXT + LEAF, 2, 5 * MS);
    make_text(m, 0, 7 * MS, 7, MAKE_IRQ_ENTRY, "\5\0\0\0", 4, "nic", 3, NULL,
              0);
    make_event(m, 0, 8 * MS, 7, MAKE_SOFTIRQ_ENTRY, vec, sizeof(vec));
    make_end(m);
}

/*
 * Calls that fill the tree of flame. First, each of 63 tasks makes 4096 calls
 * in a caller that has not ended. Then another task makes @single calls, and
 * 2100 calls in each of which is one call. At the end, the callers of the first
 * task and of the last one end.
 */
void make_full(const char *dir, unsigned single)
{
    Make *m = make_new(dir);
    uint64_t t = 10 * MS, first = t, outer;
    unsigned i;

    for (i = 0; i < 63 * 4096; i++, t += US) {
        leaves(m, 0, t + US, 100 + i / 4096, TEXT + LEAF, 1, t);
    }
    outer = t;
    for (i = 0; i < single; i++, t += US) {
        leaves(m, 0, t + US, 200, TEXT + LEAF, 1, t);
    }
    for (i = 0; i < 2100; i++, t += 3 * US) {
        leaves(m, 0, t + 2 * US, 200, TEXT + LEAF, 2, t + 1 * US);
        leaves(m, 0, t + 3 * US, 200, TEXT + WALK, 1, t);
    }
    leaves(m, 0, t, 100, TEXT + READ, 0, first);
    leaves(m, 0, t + 5 * US, 200, TEXT + READ, 0, outer);
    make_end(m);
}

void make_deep(const char *dir)
{
    Make *m = make_new(dir);
    int depth;

    for (depth = 299; depth >= 0; depth--) {
        leaves(m, 0, (20 + 300 - depth) * MS, 7, TEXT + WALK, depth,
               10 * MS + depth);
    }
    make_end(m);
}

static void initcall(Make *m, uint64_t ns, int32_t pid, uint16_t type,
                     uint64_t func)
{
    uint8_t b[12] = { 0 };

    ht_put_le64(b, func);
    make_event(m, 0, ns, pid, type, b, type == MAKE_FINISH ? 12 : 8);
}

/*
 * Three initcalls. During the first, its task calls functions on two
 * processors, and another task makes a call. The functions that the second
 * calls have no recorded ends. The third calls no function. Later, a task moves
 * to another processor within a call, calls a function there, and moves back.
 */
void make_inside(const char *dir)
{
    Make *m = make_new(dir);
    uint64_t t = 10 * MS;

    initcall(m, t, 1, MAKE_START, TEXT + 0x1000);
    enters(m, 0, t + 1 * MS, 1, TEXT + 0x1000, 0);
    enters(m, 0, t + 2 * MS, 1, TEXT + WALK, 1);
    leaves(m, 0, t + 4 * MS, 1, TEXT + WALK, 1, t + 2 * MS);
    enters(m, 0, t + 5 * MS, 1, TEXT + READ, 1);
    enters(m, 1, t + 5 * MS, 7, TEXT + IDLE, 0);
    /* the initcall's task continues on CPU 1 */
    enters(m, 1, t + 6 * MS, 1, TEXT + WALK, 2);
    leaves(m, 1, t + 9 * MS, 1, TEXT + WALK, 2, t + 6 * MS);
    leaves(m, 1, t + 10 * MS, 7, TEXT + IDLE, 0, t + 5 * MS);
    leaves(m, 1, t + 13 * MS, 1, TEXT + READ, 1, t + 5 * MS);
    leaves(m, 1, t + 14 * MS, 1, TEXT + 0x1000, 0, t + 1 * MS);
    initcall(m, t + 15 * MS, 1, MAKE_FINISH, TEXT + 0x1000);
    t = 30 * MS;
    initcall(m, t, 7, MAKE_START, TEXT + 0x2000);
    calls(m, t + 1 * MS, TEXT + LEAF + 4, TEXT + 0x2010);
    calls(m, t + 2 * MS, TEXT + LEAF + 4, TEXT + 0x2010);
    initcall(m, t + 3 * MS, 7, MAKE_FINISH, TEXT + 0x2000);
    initcall(m, t + 4 * MS, 1, MAKE_START, TEXT + 0x1000);
    initcall(m, t + 5 * MS, 1, MAKE_FINISH, TEXT + 0x1000);
    enters(m, 0, t + 6 * MS, 9, TEXT + READ, 0);
    enters(m, 1, t + 7 * MS, 9, TEXT + WALK, 1);
    leaves(m, 1, t + 8 * MS, 9, TEXT + WALK, 1, t + 7 * MS);
    leaves(m, 0, t + 9 * MS, 9, TEXT + READ, 0, t + 6 * MS);
    make_end(m);
}
