/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace tests: recordings of events that belong together
 */
#include "recording-make.h"

#define US      1000u
#define MS      1000000u

/* Somebody of @cpu, @by, wakes @pid */
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

    /* woken on one CPU, run on the other 1 ms later; then 2, 3 ... ms */
    for (i = 1; i <= 4; i++) {
        wakes(m, 0, i * 20 * MS, 0, 10 + i);
        make_switch(m, 1, i * 21 * MS, 0, "swapper/1", 0, 10 + i, "worker");
        make_switch(m, 1, i * 21 * MS + 5 * US, 10 + i, "worker", 1, 0,
                    "swapper/1");
    }
    /* woken twice: the second time counts */
    wakes(m, 0, 100 * MS, 0, 20);
    wakes(m, 0, 101 * MS, 0, 20);
    make_switch(m, 1, 103 * MS, 0, "swapper/1", 0, 20, "twice");
    /* woken while it still ran, then switched out and in: nobody woke it */
    wakes(m, 0, 104 * MS, 0, 20);
    make_switch(m, 1, 105 * MS, 20, "twice", 0, 0, "swapper/1");
    make_switch(m, 1, 106 * MS, 0, "swapper/1", 0, 20, "twice");
    make_switch(m, 1, 107 * MS, 20, "twice", 1, 0, "swapper/1");
    /* one interrupt within another, and two CPUs at the same time */
    irq(m, 0, 110 * MS, 5, true);
    irq(m, 1, 110 * MS + 1 * US, 5, true);
    irq(m, 0, 110 * MS + 2 * US, 6, true);
    irq(m, 0, 110 * MS + 4 * US, 6, false);
    irq(m, 1, 110 * MS + 8 * US, 5, false);
    irq(m, 0, 110 * MS + 10 * US, 5, false);
    /* a switch may be missing on CPU 1; what was on CPU 0 alone is whole */
    wakes(m, 0, 120 * MS, 0, 30);
    irq(m, 0, 121 * MS, 5, true);
    irq(m, 1, 121 * MS, 5, true);
    irq(m, 0, 121 * MS + 3 * US, 5, false);
    make_gap(m, 1, 9);
    make_switch(m, 0, 122 * MS, 0, "swapper/0", 0, 30, "gap");
    irq(m, 1, 123 * MS, 5, false);
    make_switch(m, 1, 124 * MS, 40, "?", 0, 0, "swapper/1");
    /* woken in one boot; its number runs in the next */
    wakes(m, 0, 130 * MS, 0, 50);
    make_boot(m);
    make_switch(m, 0, 10 * MS, 0, "swapper/0", 0, 50, "other");
    wakes(m, 0, 20 * MS, 50, 51);
    make_switch(m, 0, 70 * MS, 50, "other", 0, 51, "second");
    /* and in a segment of the clock */
    wakes(m, 0, 80 * MS, 51, 52);
    make_step(m);
    make_switch(m, 0, 81 * MS, 51, "second", 0, 52, "third");
    make_end(m);
}
