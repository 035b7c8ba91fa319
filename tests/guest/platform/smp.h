/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: use the second processor, which runs at CPL 3 like
 * the first
 */
#ifndef PAYLOAD_SMP_H
#define PAYLOAD_SMP_H

#include <stdbool.h>
#include <stdint.h>

/**
 * smp_start() - start the second processor, unless it runs; it waits for work
 * @hz: ticks of the clock per second
 *
 * Return: false if no second processor starts within about 2 s, such as on a
 * machine with one processor.
 */
bool smp_start(uint64_t hz);

/**
 * smp_run() - let the second processor call a function, and do not wait for it
 * @fn: the function; it must neither use ports nor print
 * @arg: argument of @fn
 *
 * The function of an earlier call must have returned, for which smp_wait()
 * waits.
 */
void smp_run(void (*fn)(void *arg), void *arg);
void smp_wait(void);

/*
 * begin and end of the second processor's first code, for real mode, which
 * smp_start() copies below 1 MiB
 */
extern const char smp_trampoline[], smp_trampoline_end[];
void smp_second(void);

#endif /* PAYLOAD_SMP_H */
