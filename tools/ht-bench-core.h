/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-bench: emit the events of the workload and report the results, on any port
 * of the library
 *
 * The code is freestanding: besides the library, it needs only the functions of
 * struct ht_bench_hooks, which the program provides.
 */
#ifndef HT_BENCH_CORE_H
#define HT_BENCH_CORE_H

#include "hypertrace/hypertrace.h"

enum ht_bench_kind {
    HT_BENCH_8,
    HT_BENCH_32,
    HT_BENCH_64,
    HT_BENCH_256,
    HT_BENCH_KINDS,
};

/**
 * struct ht_bench_hooks - functions of the program
 * @print: print a text that ends with NUL
 * @pause: sleep for at most @ticks ticks of the clock; the caller then reads
 *         the clock again. If @ticks is 0, a ring is full: the hook chooses the
 *         time, and the caller then checks the ring again. @tries is the number
 *         of earlier calls in the same wait. Returns false to end the run
 */
struct ht_bench_hooks {
    void (*print)(const char *text);
    bool (*pause)(uint64_t ticks, uint64_t tries);
};

/**
 * struct ht_bench_params - one producer's workload
 * @hooks: functions of the program
 * @kinds: event n is of kind @kinds[n % @nr_kinds]
 * @nr_kinds: 1 to HT_BENCH_KINDS
 * @first: sequence number of the first event
 * @events: number of sequence numbers to use
 * @ticks: stop after this many ticks of the clock; 0: no limit of time. May be
 *         changed during the run, also by a signal handler
 * @interval: ticks from one event to the next, times 65536; 0: no pause
 * @group: events between two readings of the clock, at least 1; if @interval is
 *         not 0, 1 is used instead
 * @lossless: if the ring is full, wait for room instead of discarding the event
 */
struct ht_bench_params {
    const struct ht_bench_hooks *hooks;
    enum ht_bench_kind kinds[HT_BENCH_KINDS];
    uint32_t nr_kinds;
    uint64_t first;
    uint64_t events;
    uint64_t ticks;
    uint64_t interval;
    uint32_t group;
    bool lossless;
};

#define HT_BENCH_SUB_BITS       5
#define HT_BENCH_BUCKETS        (44 << HT_BENCH_SUB_BITS)

/**
 * struct ht_bench_result - result of one producer
 * @begin: clock before the first event
 * @end: clock after the last event
 * @sent: events committed
 * @discarded: events for which ht_get() returned NULL, in general because the
 *             ring was full
 * @bytes: payload of the events sent
 * @waits: number of checks that found no room for an event (lossless)
 * @gave_up: the run ended early, because the pause hook returned false
 * @groups: number of groups of events that @histogram counts
 * @slowest: ticks per event of the slowest group, times 16
 * @histogram: number of groups for each range of (ticks per event, times 16).
 *             Up to 63, each value has a bucket of its own; above, each power
 *             of two has 32 buckets
 */
struct ht_bench_result {
    uint64_t begin;
    uint64_t end;
    uint64_t sent;
    uint64_t discarded;
    uint64_t bytes;
    uint64_t waits;
    bool gave_up;
    uint64_t groups;
    uint64_t slowest;
    uint32_t histogram[HT_BENCH_BUCKETS];
};

/**
 * struct ht_bench_stream - counts of one producer's stream, for the report
 */
struct ht_bench_stream {
    uint32_t index;
    uint64_t instance;
    uint64_t sent;
    uint64_t discarded;
    uint64_t doorbells;
};

/**
 * struct ht_bench_report - a run, for printing
 * @dev: the device
 * @params: workload of each producer
 * @sum: sum of the producers' results, from ht_bench_add()
 * @streams: counts of each stream
 * @nr_streams: number of @streams, and of producers
 * @clock_hz: frequency of the guest's counter
 * @drain_ticks: ticks from the end of the run until the streams were flushed
 *               and closed
 * @rate: chosen events per second of each producer; 0: no limit
 */
struct ht_bench_report {
    const struct ht_device *dev;
    const struct ht_bench_params *params;
    const struct ht_bench_result *sum;
    const struct ht_bench_stream *streams;
    uint32_t nr_streams;
    uint64_t clock_hz;
    uint64_t drain_ticks;
    uint64_t rate;
};

/**
 * ht_bench_register() - register the event classes of a workload
 * @dev: the device
 * @params: the workload
 *
 * Return: 0, or the error of ht_register()
 */
int ht_bench_register(struct ht_device *dev,
                      const struct ht_bench_params *params);

/**
 * ht_bench_run() - emit the events of one producer
 * @s: an open stream; its index is the tag in the payload
 * @params: the workload
 * @result: filled in
 */
void ht_bench_run(struct ht_stream *s, const struct ht_bench_params *params,
                  struct ht_bench_result *result);

/**
 * ht_bench_add() - add the result of a producer to the sum of a run
 * @sum: zeroed before the first call
 * @one: result to add
 */
void ht_bench_add(struct ht_bench_result *sum,
                  const struct ht_bench_result *one);

/**
 * ht_bench_payload() - get the size of a kind's payload in bytes
 */
uint32_t ht_bench_payload(enum ht_bench_kind kind);

/* ht_bench_json(), ht_bench_text() - print a report; see ht-bench(1) */
void ht_bench_json(const struct ht_bench_report *r);
void ht_bench_text(const struct ht_bench_report *r);

#endif /* HT_BENCH_CORE_H */
