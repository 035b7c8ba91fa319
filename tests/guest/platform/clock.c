/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: measure the frequency of the time stamp counter with
 * channel 2 of the 8254 timer, if the caller does not know the frequency
 */
#include "hypertrace/arch.h"
#include "clock.h"
#include "console.h"
#include "io.h"

#define PIT_HZ          1193182u
#define PIT_CHANNEL2    0x42
#define PIT_COMMAND     0x43
/*
 * PIT command: channel 2, mode 0 (one shot), access to low byte, then high
 * byte
 */
#define PIT_CH2_MODE0   0xb0
#define GATE_PORT       0x61
#define GATE_ON         0x01
#define GATE_SPEAKER    0x02
#define GATE_OUTPUT     0x20
/*
 * PIT ticks of the measurement: 51 ms, so long that the time of an exit is
 * negligible
 */
#define COUNT           0xf000u
#define POLLS_MAX       10000000u

static uint64_t measure(void)
{
    uint8_t gate = inb(GATE_PORT) & ~(GATE_ON | GATE_SPEAKER);
    uint64_t begin, end;
    unsigned polls = 0;

    outb(GATE_PORT, gate);
    outb(PIT_COMMAND, PIT_CH2_MODE0);
    outb(PIT_CHANNEL2, COUNT & 0xff);
    outb(PIT_CHANNEL2, COUNT >> 8);
    begin = ht_clock();
    outb(GATE_PORT, gate | GATE_ON);
    begin += (ht_clock() - begin) / 2;
    do {
        end = ht_clock();
        if (++polls > POLLS_MAX) {
            payload_die(PAYLOAD_FAILED, "the timer chip does not count", NULL);
        }
    } while (!(inb(GATE_PORT) & GATE_OUTPUT));
    end += (ht_clock() - end) / 2;
    outb(GATE_PORT, gate);
    return (end - begin) * PIT_HZ / COUNT;
}

uint64_t clock_hz(uint64_t known)
{
    static uint64_t measured;

    if (known) {
        return known;
    }
    if (!measured) {
        measured = measure();
    }
    return measured;
}

uint64_t clock_ps(uint64_t ticks, uint64_t hz)
{
    return (uint64_t)((double)ticks * 1e12 / (double)hz + 0.5);
}
