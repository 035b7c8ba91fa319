/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: functions for a build without <sys/sdt.h>, which emit nothing
 */
#include "emit-bench.h"

bool bench_usdt_recording(void)
{
    return false;
}

bool bench_usdt_is_off(void)
{
    return false;
}

void bench_usdt(uint64_t n)
{
    (void)n;
}

void bench_usdt_off(uint64_t n)
{
    (void)n;
}
