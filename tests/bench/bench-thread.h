/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keep the thread that a benchmark measures on one processor, and read its
 * processor time
 */
#ifndef BENCH_THREAD_H
#define BENCH_THREAD_H

#include <stdint.h>

/* Processor time of the calling thread in ns, without other programs' time */
uint64_t bench_cpu_ns(void);

/*
 * bench_pin: keep the calling thread on processor @cpu, so that producer and
 * consumer do not share a processor
 *
 * Threads that the caller creates later inherit the processor. If the machine
 * has only one processor, the function does nothing. A failure ends the
 * program.
 */
void bench_pin(unsigned cpu);

#endif /* BENCH_THREAD_H */
