/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: get the frequency of the time stamp counter
 */
#ifndef PAYLOAD_CLOCK_H
#define PAYLOAD_CLOCK_H

#include <stdint.h>

/**
 * clock_hz() - get the ticks of the time stamp counter per second
 * @known: value that a device reports, or 0: unknown. The first call with 0
 *         measures the frequency with the 8254 timer
 *
 * Return: @known, or the measured frequency. If the timer does not count, the
 *         payload ends.
 */
uint64_t clock_hz(uint64_t known);

uint64_t clock_ps(uint64_t ticks, uint64_t hz);

#endif /* PAYLOAD_CLOCK_H */
