/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: functions for a build without LTTng-UST, which emit nothing
 */
#include "emit-bench.h"

bool bench_lttng_recording(void)
{
    return false;
}

void bench_lttng(uint64_t n)
{
    (void)n;
}

bool bench_lttng_is_off(void)
{
    return false;
}

void bench_lttng_off(uint64_t n)
{
    (void)n;
}
