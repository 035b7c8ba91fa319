/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"
#include <sched.h>
#include "bench-thread.h"

uint64_t bench_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

void bench_pin(unsigned cpu)
{
    cpu_set_t set;

    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        return;
    }
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set)) {
        fprintf(stderr, "cannot run on processor %u: %s\n", cpu,
                strerror(errno));
        exit(1);
    }
}
