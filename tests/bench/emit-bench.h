/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit-bench: interfaces between its files
 */
#ifndef EMIT_BENCH_H
#define EMIT_BENCH_H

#include <stdbool.h>
#include <stdint.h>

struct ht_stream;
struct ht_device;

/*
 * Each function of this file that has a parameter n runs a loop n times.  An
 * iteration emits an event, if the event is on; in bench_empty() it does
 * nothing, and in emit-bench-limits.c it does a part of an emit.  The functions
 * are not in emit-bench.c, so that the compiler cannot inline them there.
 */
void bench_emit_32(struct ht_stream *s, uint64_t n);
void bench_emit_8(struct ht_stream *s, uint64_t n);
void bench_emit_0(struct ht_stream *s, uint64_t n);
void bench_emit_text(struct ht_stream *s, uint64_t n);
void bench_emit_32_noclock(struct ht_stream *s, uint64_t n);
void bench_emit_8_noclock(struct ht_stream *s, uint64_t n);
void bench_emit_64(struct ht_stream *s, uint64_t n);
void bench_emit_256(struct ht_stream *s, uint64_t n);
void bench_emit_1024(struct ht_stream *s, uint64_t n);
void bench_emit_4096(struct ht_stream *s, uint64_t n);
void bench_empty(uint64_t n);
void bench_trace(uint64_t n);
void bench_trace_at(const uint8_t *byte, uint64_t n);
void bench_trace_on(struct ht_stream *s, uint64_t n);
bool bench_trace_is_on(void);
int bench_register(struct ht_device *dev);
int bench_register_trace(struct ht_device *dev);
int bench_register_sizes(struct ht_device *dev);
int bench_register_noclock(struct ht_device *dev);

/*
 * Functions of emit-bench-limits.c. Its thread, which bench_limits_start()
 * starts, reads the events that bench_*_live*() write. bench_limits_behind()
 * tests whether events of more than half the ring's size wait for the thread.
 */
void bench_limits_start(void);
void bench_limits_stop(void);
bool bench_limits_behind(void);
void bench_limit_live(uint64_t n);
void bench_limit_live_prefetch(uint64_t n);
void bench_lines_live(uint64_t n);
void bench_lines_live_prefetch(uint64_t n);
void bench_stores_8(uint64_t n);
void bench_stores_32(uint64_t n);

/*
 * Functions of emit-bench-lttng.c.  The functions that return bool test whether
 * a tracepoint is on or off; without LTTng-UST they return false.
 */
bool bench_lttng_recording(void);
void bench_lttng(uint64_t n);
bool bench_lttng_is_off(void);
void bench_lttng_off(uint64_t n);

/*
 * Functions of emit-bench-usdt.c.  The functions that return bool test whether
 * a probe is on or off; without <sys/sdt.h> they return false.
 */
bool bench_usdt_recording(void);
void bench_usdt(uint64_t n);
bool bench_usdt_is_off(void);
void bench_usdt_off(uint64_t n);

#endif /* EMIT_BENCH_H */
