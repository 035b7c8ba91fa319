/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-marker: emit by a static LTTng-UST tracepoint; the guest's LTTng records
 */
#include <stdio.h>

#include "emit-bench.h"
#include "emit-bench-lttng.h"
#include "ht-marker.h"

const char *const marker_target;

bool marker_open(const char *target)
{
    (void)target;
    if (!bench_lttng_recording()) {
        fprintf(stderr, "ht-marker: no session records emit_bench:event_32\n");
        return false;
    }
    return true;
}

bool marker_emit(uint64_t n, uint64_t time)
{
    lttng_ust_tracepoint(emit_bench, event_32, n, time, n + 1, time + 1);
    return true;
}
