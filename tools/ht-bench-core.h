/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-bench: the workload, for every port of the library
 *
 * Freestanding: what it needs of its surroundings are two hooks.
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
 * struct ht_bench_hooks - what the workload's surroundings bring
 * @print: a piece of output, terminated by NUL
 * @pause: let time pass: @ticks of the clock, or a moment if it is 0, for
 *         the @tries-th time in a row.  False: give up
 */
struct ht_bench_hooks {
    void (*print)(const char *text);
    bool (*pause)(uint64_t ticks, uint64_t tries);
};

/**
 * struct ht_bench_params - one producer's workload
 * @hooks: see there
 * @kinds: event n is of kind @kinds[n % @nr_kinds]
 * @nr_kinds: 1 to HT_BENCH_KINDS
 * @first: the first event's sequence number
 * @events: sequence numbers to use up
 * @ticks: stop after so many ticks of the clock; 0: never.  May be changed
 *         meanwhile
 * @interval: ticks from one event to the next, times 65536; 0: flat out
 * @group: events between two looks at the clock; 1 with an interval
 * @lossless: wait where the ring is full, instead of discarding
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
 * struct ht_bench_result - what one producer did
 * @begin: clock before the first event
 * @end: clock after the last
 * @sent: events committed
 * @discarded: events for which there was no room
 * @bytes: payload of those sent
 * @waits: looks at a full ring (lossless)
 * @gave_up: the pause hook said so
 * @groups: entries in @histogram
 * @slowest: group, in sixteenths of a tick an event
 * @histogram: ticks an event in each group, times 16: exact up to 63, then
 *             32 buckets to each doubling
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
 * struct ht_bench_stream - what the report says of one stream
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
 * @params: of each producer
 * @sum: all producers' results, from ht_bench_add()
 * @streams: @nr_streams of them
 * @clock_hz: of the guest's counter
 * @drain_ticks: from the last event until the host had everything
 * @rate: events a second asked for; 0: flat out
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
 * ht_bench_register() - register the classes of some kinds
 * @dev: the device
 * @params: only those that it uses
 *
 * Return: 0, or what ht_register() returned.
 */
int ht_bench_register(struct ht_device *dev,
                      const struct ht_bench_params *params);

/**
 * ht_bench_run() - be a producer
 * @s: an open stream; its index is the tag
 * @params: the workload
 * @result: filled in
 */
void ht_bench_run(struct ht_stream *s, const struct ht_bench_params *params,
                  struct ht_bench_result *result);

/**
 * ht_bench_add() - add up the results of producers that ran together
 * @sum: zeroed before the first
 * @one: added
 */
void ht_bench_add(struct ht_bench_result *sum,
                  const struct ht_bench_result *one);

/**
 * ht_bench_payload() - bytes of a kind's payload
 */
uint32_t ht_bench_payload(enum ht_bench_kind kind);

/* ht_bench_json(), ht_bench_text() - print a report; see ht-bench(1) */
void ht_bench_json(const struct ht_bench_report *r);
void ht_bench_text(const struct ht_bench_report *r);

#endif /* HT_BENCH_CORE_H */
