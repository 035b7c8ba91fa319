/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Distinguish the running kernel from the dead kernels of earlier boots
 *
 * Promise: the watch does not follow a dead kernel instead of a running or
 * later kernel, also if the dead kernel's clock was overwritten.  The watch
 * notices a boot at the address of the boot before.  A kernel that is alone in
 * memory is followed without a proof that it runs (test_only).
 */
#include "hypertrace/base.h"
#include "kernel-make.h"
#include "kernel/kernel-watch.h"

#define MIB     (UINT64_C(1) << 20)
#define SIZE    (64 * MIB)
#define FIRST   (8 * MIB)
#define SECOND  (24 * MIB)
#define THIRD   (40 * MIB)

static uint64_t clock_ns;

static int64_t now(void)
{
    return clock_ns;
}

typedef struct Test {
    KmKernel kernel;
    HtFtMem mem;
    uint8_t *ram;
    HtKernelWatch *watch;
} Test;

static void place(Test *t, uint64_t phys, uint64_t seconds)
{
    km_place(&t->kernel, t->ram, SIZE, phys, phys / 4, seconds);
}

static void setup(Test *t)
{
    t->ram = g_malloc0(SIZE);
    t->mem = (HtFtMem) { .size = SIZE, .map = t->ram };
    km_kernel(&t->kernel, 24, true);
    t->watch = ht_kernel_watch_new(&t->mem, t->kernel.image, false, now);
}

static void teardown(Test *t)
{
    ht_kernel_watch_free(t->watch);
    km_kernel_free(&t->kernel);
    g_free(t->ram);
}

/* Let the clock of the kernel at @phys run for @ticks ticks. */
static void tick(Test *t, uint64_t phys, uint64_t ticks)
{
    uint8_t *at = t->ram + phys + t->kernel.jiffies;

    ht_put_le64(at, ht_get_le64(at) + ticks);
}

/*
 * Poll for 10 s of the watch's clock.  @runs: address of the kernel that runs,
 * or 0.  Return: HT_WATCH_KERNEL and HT_WATCH_GONE, each if a poll returned it
 */
static unsigned look(Test *t, uint64_t runs)
{
    unsigned flags = 0, i;

    for (i = 0; i < 1000; i++) {
        if (runs) {
            tick(t, runs, 1);
        }
        flags |= ht_kernel_watch_look(t->watch, false);
        clock_ns += 10000000;
    }
    return flags & (HT_WATCH_KERNEL | HT_WATCH_GONE);
}

/* Assert that the watch has the kernel at @phys; 0: that it has none. */
static void expect(const Test *t, uint64_t phys)
{
    HtGuestKernel *k = ht_kernel_watch_kernel(t->watch);

    g_assert_cmphex(k ? ht_guest_kernel_phys(k) : 0, ==, phys);
}

/* The only kernel in RAM is found and kept although its clock stands still. */
static void test_only(void)
{
    Test t;

    setup(&t);
    g_assert_cmpuint(look(&t, 0), ==, 0);
    place(&t, FIRST, 1000);
    g_assert_cmpuint(look(&t, 0), ==, HT_WATCH_KERNEL);
    expect(&t, FIRST);
    g_assert_cmpuint(look(&t, FIRST), ==, 0);
    expect(&t, FIRST);
    teardown(&t);
}

/* Clocks of a dead kernel, in s: a later kernel may have overwritten them */
static const uint64_t dead_clocks[] = {
    0, 500, 1000, 1001, 5000000000, 9223372036, 9223372037, UINT64_MAX,
};

/*
 * A second kernel boots while the first kernel is still in RAM: the watch
 * follows the second, also if the first kernel's clock was overwritten.
 */
static void test_dead_clock(void)
{
    unsigned i;

    for (i = 0; i < 2 * G_N_ELEMENTS(dead_clocks); i++) {
        uint64_t seconds = dead_clocks[i / 2];
        Test t;

        setup(&t);
        place(&t, FIRST, 1000);
        look(&t, FIRST);
        expect(&t, FIRST);
        /* In every second round, a new watch has not followed the first. */
        if (i % 2) {
            ht_kernel_watch_free(t.watch);
            t.watch = ht_kernel_watch_new(&t.mem, t.kernel.image, false, now);
        }
        ht_put_le64(t.ram + FIRST + t.kernel.seconds, seconds);
        place(&t, SECOND, 1000);
        look(&t, SECOND);
        expect(&t, SECOND);
        g_assert_cmpuint(look(&t, SECOND), ==, 0);
        teardown(&t);
    }
}

/*
 * When the followed kernel is overwritten and none runs, as in a boot loader's
 * menu, the watch does not return to the kernel of an earlier boot.
 */
static void test_no_kernel_runs(void)
{
    Test t;

    setup(&t);
    place(&t, FIRST, 1000);
    look(&t, FIRST);
    place(&t, SECOND, 1100);
    look(&t, SECOND);
    expect(&t, SECOND);
    /* The boot loader overwrites the kernel that was followed. */
    memset(t.ram + SECOND + KM_SYSCALLS, 0, 8);
    g_assert_cmpuint(look(&t, 0), ==, HT_WATCH_GONE);
    expect(&t, 0);
    /* The boot loader overwrites the ticks of the first kernel, too. */
    tick(&t, FIRST, 1u << 30);
    g_assert_cmpuint(look(&t, 0), ==, 0);
    place(&t, THIRD, 1200);
    look(&t, THIRD);
    expect(&t, THIRD);
    teardown(&t);
}

/*
 * The watch knows a kernel's boot by its stack canary. If something overwrites
 * the canary, the watch drops the kernel, and does not take it again while the
 * kernel's clock stands still.
 */
static void test_canary(void)
{
    static const uint64_t canaries[] = { 0, 1, UINT64_MAX };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(canaries); i++) {
        Test t;

        setup(&t);
        place(&t, FIRST, 1000);
        look(&t, FIRST);
        ht_put_le64(t.ram + FIRST + t.kernel.canary, canaries[i]);
        g_assert_cmpuint(look(&t, 0), ==, HT_WATCH_GONE);
        place(&t, SECOND, 1100);
        look(&t, SECOND);
        expect(&t, SECOND);
        g_assert_cmpuint(look(&t, SECOND), ==, 0);
        teardown(&t);
    }
}

/*
 * The watch starts when RAM has a dead kernel and a running kernel, and follows
 * the running kernel.  Then this kernel stands still, and no search finds it
 * any longer.  The watch keeps it, also at the guest's end, and does not follow
 * the dead kernel.
 */
static void test_older(void)
{
    Test t;

    setup(&t);
    place(&t, FIRST, 1000);
    place(&t, SECOND, 1100);
    look(&t, SECOND);
    expect(&t, SECOND);
    memset(t.ram + SECOND + KM_BANNER, 0, 8);
    g_assert_cmpuint(look(&t, 0), ==, 0);
    expect(&t, SECOND);
    /* The first kernel's clock was overwritten, and the guest ends. */
    ht_put_le64(t.ram + FIRST + t.kernel.seconds, 5000000000);
    ht_kernel_watch_look(t.watch, true);
    expect(&t, SECOND);
    teardown(&t);
}

/*
 * If the guest ends, the watch takes the kernel that booted last even if no
 * poll could prove that this kernel runs.
 */
static void test_last_boot(void)
{
    Test t;

    setup(&t);
    place(&t, FIRST, 1000);
    look(&t, FIRST);
    place(&t, SECOND, 1010);
    g_assert_cmpuint(ht_kernel_watch_look(t.watch, true) & HT_WATCH_GONE, !=,
                     0);
    ht_kernel_watch_look(t.watch, true);
    expect(&t, SECOND);
    teardown(&t);
}

/*
 * If the polls have seen neither of two kernels run, only the last poll, at the
 * guest's end, takes a kernel: the kernel with the later clock.
 */
static void test_last(void)
{
    Test t;

    setup(&t);
    place(&t, FIRST, 1000);
    place(&t, SECOND, 1100);
    look(&t, 0);
    expect(&t, 0);
    ht_kernel_watch_look(t.watch, true);
    expect(&t, SECOND);
    teardown(&t);
}

/*
 * A kernel boots again at the same address, and at the next poll its clock is
 * later than that of the boot before: the watch notices the boot.
 */
static void test_same_address(void)
{
    Test t;

    setup(&t);
    place(&t, FIRST, 1000);
    look(&t, FIRST);
    place(&t, FIRST, 1100);
    g_assert_cmpuint(look(&t, FIRST), ==, HT_WATCH_GONE | HT_WATCH_KERNEL);
    expect(&t, FIRST);
    g_assert_cmpuint(look(&t, FIRST), ==, 0);
    teardown(&t);
}

/*
 * Boots that follow a long standstill, as after panic=60, are followed although
 * each lasts only 2 s.
 */
static void test_short_boots(void)
{
    static const uint64_t places[] = { SECOND, THIRD, FIRST };
    unsigned i, j;
    Test t;

    setup(&t);
    place(&t, FIRST, 1000);
    look(&t, FIRST);
    for (i = 0; i < 6; i++) {
        uint64_t at = places[i % G_N_ELEMENTS(places)];
        bool found = false;

        for (j = 0; j < 6; j++) {
            look(&t, 0);
        }
        place(&t, at, 1100 + 100 * i);
        for (j = 0; j < 200; j++) {
            tick(&t, at, 3);
            ht_kernel_watch_look(t.watch, false);
            clock_ns += 10000000;
            found |= ht_kernel_watch_kernel(t.watch) &&
                     ht_guest_kernel_phys(ht_kernel_watch_kernel(t.watch)) ==
                     at;
        }
        g_assert_true(found);
    }
    teardown(&t);
}

/*
 * A kernel boots again at the same address, and its clock stops before a search
 * has seen it move: the watch follows the new boot.
 */
static void test_same_address_stops(void)
{
    Test t;

    setup(&t);
    place(&t, FIRST, 1000);
    look(&t, FIRST);
    look(&t, FIRST);
    place(&t, FIRST, 1003);
    ht_put_le64(t.ram + FIRST + t.kernel.jiffies, 1000);
    g_assert_cmpuint(look(&t, 0), ==, HT_WATCH_GONE | HT_WATCH_KERNEL);
    expect(&t, FIRST);
    teardown(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watch/only", test_only);
    g_test_add_func("/watch/dead-clock", test_dead_clock);
    g_test_add_func("/watch/no-kernel-runs", test_no_kernel_runs);
    g_test_add_func("/watch/canary", test_canary);
    g_test_add_func("/watch/older", test_older);
    g_test_add_func("/watch/last", test_last);
    g_test_add_func("/watch/last-boot", test_last_boot);
    g_test_add_func("/watch/same-address", test_same_address);
    g_test_add_func("/watch/same-address-stops", test_same_address_stops);
    g_test_add_func("/watch/short-boots", test_short_boots);
    return g_test_run();
}
