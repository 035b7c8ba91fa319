/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: the counter's frequency
 */
#ifndef PAYLOAD_CLOCK_H
#define PAYLOAD_CLOCK_H

#include <stdint.h>

/**
 * clock_hz() - ticks of the counter in a second
 * @known: what a device said; 0: unknown, then the timer chip is asked once
 *
 * Return: ends the payload if there is no working timer
 */
uint64_t clock_hz(uint64_t known);

/* @ticks in units of 1/1000 ns */
uint64_t clock_ps(uint64_t ticks, uint64_t hz);

#endif /* PAYLOAD_CLOCK_H */
