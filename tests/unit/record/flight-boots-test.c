/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record --flight: count the ends of a guest's boots
 *
 * Promise: a reset or a panic counts once, although several sources report it,
 * late and in different orders.  Comments in cases[] name exceptions.
 */
#include "hypertrace/base.h"
#include "record/flight-boots.h"

#define SECOND UINT64_C(1000000000)

/*
 * What a recorder knows about a guest, the time in ns, and the numbers of
 * resets and panics counted so far
 */
typedef struct Guest {
    HtFlightBoots b;
    HtSessionStats n;
    uint64_t now;
    unsigned resets, panics;
} Guest;

static void count(Guest *g, HtFlightDeath death)
{
    g->resets += death == HT_FLIGHT_RESET;
    g->panics += death == HT_FLIGHT_PANIC;
}

static void poll_for(Guest *g, uint64_t ns)
{
    uint64_t end = g->now + ns;

    do {
        count(g, ht_flight_boots_note(&g->b, &g->n, g->now));
        g->now += SECOND / 10;
    } while (g->now < end);
}

/*
 * Observations, one a character: b: a boot's first events are found; k: the log
 * of its kernel is found; g: this log is no longer found; p: a panic is found
 * in the present log or, after g, in the last log; P, R: the monitor reports a
 * panic, a reset; space: the recorder polls once, and 100 ms pass; _: the
 * recorder polls every 100 ms for 5 s.  Without a space or _ between two
 * characters, the recorder does not poll between them.
 */
static const struct {
    const char *seen;
    unsigned resets, panics;
} cases[] = {
    /* without a monitor */
    { "b _ b _", 1, 0 },
    { "b k _ p _ g _ b k _", 0, 1 },
    { "bk _ p _ gb _ k _ p _", 0, 2 },
    /*
     * The recorder finds a boot's panic in the poll that finds the next boot,
     * or in a later poll: the boot then counts as a reset, too.  In the last of
     * these rows, no boot panics.
     */
    { "bk _ gpb _ k _ p _", 0, 2 },
    { "bk _ gb p _ k _ p _", 1, 2 },
    { "bk _ gb _ k _ gb _ k _", 2, 0 },
    /*
     * The recorder no longer finds the kernel's log, and has no monitor. If the
     * next boot's log is found late or never, this is one reset. If the log of
     * the same boot is found again soon, no reset is counted: see the last of
     * these rows.
     */
    { "bk _ g _", 1, 0 },
    { "bk _ g _ _ b _ k _", 1, 0 },
    { "bk _ gb _ _ _ k _", 1, 0 },
    { "bk _ g k _", 0, 0 },
    /* The recorder still reads the dead kernel's log. */
    { "bk _ b _ g _ k _", 1, 0 },
    /* with a monitor */
    { "bk _ R g _ _ b _ _ k _", 1, 0 },
    { "bk _ R R R g _ b RR k _ R _", 2, 0 },
    { "bk _ R _ g _ _ b _ _ k _ R _", 2, 0 },
    { "bk _ P _ R _ gb k _", 1, 1 },
    { "bk _ pP _ R gb k _ Pp _ R _", 2, 2 },
    { "bk _ p P P _ R gb k _", 1, 1 },
    /* The monitor's report comes before the boot's first events are found. */
    { "bk _ R g P _ R _ b k _ R _", 2, 1 },
    { "bk _ R g P _ R _ P _ R _ b k _ p _", 1, 3 },
    { "P R _ bk _ R _", 1, 1 },
    { "bk _ R g P _ bkpR _", 1, 1 },
    { "R R _ b _ R _", 1, 0 },
    { "P _", 0, 1 },
    /* Without a log, each panic that the monitor reports counts. */
    { "b _ P _ P _", 0, 2 },
};

static void see(Guest *g, const char *seen)
{
    for (; *seen; seen++) {
        switch (*seen) {
        case 'b':
            g->n.boots++;
            break;
        case 'k':
            g->n.kernel_boot = g->n.boots;
            break;
        case 'g':
            g->n.kernel_boot = 0;
            break;
        case 'p':
            g->n.panic_boot = g->n.kernel_boot ?: g->n.panic_boot + 1;
            break;
        case 'P':
            count(g, ht_flight_boots_panic(&g->b));
            break;
        case 'R':
            count(g, ht_flight_boots_reset(&g->b, &g->n));
            break;
        default:
            poll_for(g, *seen == '_' ? 5 * SECOND : SECOND / 10);
        }
    }
}

static void test_orders(void)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        Guest g = { .now = SECOND };

        g_test_message("%s", cases[i].seen);
        see(&g, cases[i].seen);
        g_assert_cmpuint(g.resets, ==, cases[i].resets);
        g_assert_cmpuint(g.panics, ==, cases[i].panics);
    }
}

/* A boot of the random guest */
typedef struct Boot {
    bool ring, log, panics;
} Boot;

/*
 * Let the recorder see the life and the end of boot @i, with a monitor if
 * @monitor. Returns true if the boot has panicked and the caller must still let
 * the recorder find the panic in the log, together with the next boot.
 */
static bool live(Guest *g, const Boot *boot, unsigned i, bool monitor)
{
    bool late = boot->panics && !monitor && g_test_rand_bit();

    if (boot->log && g_test_rand_bit()) {
        g->n.boots = g->n.kernel_boot = i;
        see(g, g_test_rand_bit() ? " " : "_");
    }
    g->n.boots = i;
    see(g, g_test_rand_bit() ? " " : "_");
    if (boot->log) {
        g->n.kernel_boot = i;
        see(g, " ");
    }
    if (boot->panics && boot->log && !late) {
        g->n.panic_boot = i;
    }
    if (g_test_rand_bit()) {
        see(g, " ");
    }
    if (boot->panics && monitor) {
        see(g, "P");
    }
    if (g_test_rand_bit()) {
        see(g, "_");
    }
    if (monitor) {
        see(g, g_test_rand_bit() ? "R" : "RR R");
    }
    if (!late && g_test_rand_bit()) {
        see(g, "g");
        see(g, g_test_rand_bit() ? " " : "_");
    }
    return late;
}

/*
 * A panic is counted once, also if the log and the monitor both report it. A
 * boot has a reset if there is a monitor or no panic.
 */
static void test_random(void)
{
    unsigned trial;

    for (trial = 0; trial < 20000; trial++) {
        unsigned n = g_test_rand_int_range(2, 8), i, panics = 0, resets = 0;
        bool monitor = g_test_rand_bit(), late = false;
        Guest g = { .now = SECOND };

        for (i = 1; i <= n; i++) {
            Boot boot = { .log = g_test_rand_bit() };

            boot.panics = (boot.log || monitor) && g_test_rand_bit();
            if (late) {
                g.n.panic_boot = i - 1;
                g.n.kernel_boot = 0;
            }
            late = live(&g, &boot, i, monitor);
            panics += boot.panics;
            resets += monitor || !boot.panics;
        }
        if (late) {
            g.n.panic_boot = n;
        }
        see(&g, " ");
        /* One more boot ends boot @n, if nothing has reported its end yet. */
        g.n.boots = n + 1;
        see(&g, "_");
        g_assert_cmpuint(g.panics, ==, panics);
        g_assert_cmpuint(g.resets, ==, resets);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/flight-boots/orders", test_orders);
    g_test_add_func("/flight-boots/random", test_random);
    return g_test_run();
}
