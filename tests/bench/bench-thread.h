/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keep a benchmark's thread on one processor, and read its processor time */
#ifndef BENCH_THREAD_H
#define BENCH_THREAD_H

#include <stdint.h>

/* Processor time of the calling thread since its start, in ns */
uint64_t bench_cpu_ns(void);

/*
 * bench_pin: keep the calling thread on processor @cpu, so that producer and
 * consumer do not share a processor
 *
 * Threads that the caller creates later inherit the processor. If only one
 * processor is online, the function does nothing. A failure ends the program.
 */
void bench_pin(unsigned cpu);

#endif /* BENCH_THREAD_H */
