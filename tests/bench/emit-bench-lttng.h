/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: define LTTng-UST's tracepoints; LTTng includes this file several
 * times
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER emit_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./emit-bench-lttng.h"

#if !defined(EMIT_BENCH_LTTNG_H) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define EMIT_BENCH_LTTNG_H

#include <stdint.h>
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    emit_bench,
    four_numbers,
    LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, a, a)
        lttng_ust_field_integer(uint64_t, b, b)
        lttng_ust_field_integer(uint64_t, c, c)
        lttng_ust_field_integer(uint64_t, d, d)
    )
)

LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    emit_bench, four_numbers, emit_bench, event_32,
    LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d)
)

/*
 * Event for the row of a disabled tracepoint. The session of emit-bench.sh does
 * not enable this event.
 */
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    emit_bench, four_numbers, emit_bench, event_off,
    LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d)
)

#endif /* EMIT_BENCH_LTTNG_H */

#include <lttng/tracepoint-event.h>
