/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: get the frequency of the time stamp counter
 */
#ifndef PAYLOAD_CLOCK_H
#define PAYLOAD_CLOCK_H

#include <stdint.h>

/**
 * clock_hz() - ticks of the time stamp counter per second
 * @known: value reported by a device; 0: unknown, then the first such call
 *         measures it with the 8254 timer
 *
 * Return: the frequency; if it must be measured and the timer does not work,
 *         the payload ends
 */
uint64_t clock_hz(uint64_t known);

uint64_t clock_ps(uint64_t ticks, uint64_t hz);

#endif /* PAYLOAD_CLOCK_H */
