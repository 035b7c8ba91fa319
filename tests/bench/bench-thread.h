/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread that is measured
 */
#ifndef BENCH_THREAD_H
#define BENCH_THREAD_H

#include <stdint.h>

/* Time of this thread alone, in ns: others use the machine, too. */
uint64_t bench_cpu_ns(void);

/*
 * bench_pin: stay on one processor, so that a consumer gets another; threads
 * made later inherit it
 *
 * Does nothing where there is one processor.  Ends the program if it fails.
 */
void bench_pin(unsigned cpu);

#endif /* BENCH_THREAD_H */
