/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: a second processor, at CPL 3 like the first
 */
#ifndef PAYLOAD_SMP_H
#define PAYLOAD_SMP_H

#include <stdbool.h>
#include <stdint.h>

/**
 * smp_start() - have the second processor wait for work
 * @hz: ticks of the clock in a second
 *
 * Return: false if there is none, or it does not come up.
 */
bool smp_start(uint64_t hz);

/**
 * smp_run() - have it call a function
 * @fn: must neither use ports nor print
 * @arg: its argument
 *
 * smp_wait() returns when it has returned.
 */
void smp_run(void (*fn)(void *arg), void *arg);
void smp_wait(void);

/* What smp.S copies, and what it calls on the second processor */
extern const char smp_trampoline[], smp_trampoline_end[];
void smp_second(void);

#endif /* PAYLOAD_SMP_H */
