/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the payload's measurements: store durations of groups of operations, and
 * print their distribution
 */
#ifndef PAYLOAD_SAMPLES_H
#define PAYLOAD_SAMPLES_H

#include <stdint.h>

#define SAMPLES_MAX     65536u

/**
 * struct samples - measured groups
 * @nr: number of groups in @ticks; groups after SAMPLES_MAX are dropped
 * @ticks: for each group, the ticks that 64 of its operations took on average
 */
struct samples {
    uint32_t nr;
    uint32_t ticks[SAMPLES_MAX];
};

static inline void samples_add(struct samples *s, uint64_t ticks,
                               uint64_t operations)
{
    uint64_t v = (ticks << 6) / operations;

    if (s->nr < SAMPLES_MAX) {
        s->ticks[s->nr++] = v < UINT32_MAX ? v : UINT32_MAX;
    }
}

/**
 * samples_json() - print to the open JSON object the number of groups and, if
 *                  there are groups, percentiles of the groups' average times
 *                  of one operation, in ns
 * @s: the samples; the function sorts them
 * @hz: ticks per second
 */
void samples_json(struct samples *s, uint64_t hz);

#endif /* PAYLOAD_SAMPLES_H */
