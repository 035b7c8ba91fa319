/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: get the counter's frequency
 */
#ifndef PAYLOAD_CLOCK_H
#define PAYLOAD_CLOCK_H

#include <stdint.h>

/**
 * clock_hz() - ticks of the counter per second
 * @known: value reported by a device; 0: unknown, then the 8254 is used once
 *
 * Return: the frequency; without a working timer, the payload ends
 */
uint64_t clock_hz(uint64_t known);

uint64_t clock_ps(uint64_t ticks, uint64_t hz);

#endif /* PAYLOAD_CLOCK_H */
