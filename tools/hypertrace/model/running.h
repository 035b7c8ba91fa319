/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: track the state of each processor: the task that it runs, and
 * the initcall, system call or interrupts that it is in
 */
#ifndef HYPERTRACE_TOOL_RUNNING_H
#define HYPERTRACE_TOOL_RUNNING_H

#include "model/duration.h"
#include "model/model.h"

#define HT_RUNNING_NESTED_MAX   8

/**
 * HtNests: nested activities that have begun and not ended, outermost first
 * @kinds: for each activity, the kind of the event that began it
 * @names: names of the activities, for example "softirq NET_RX"; may have any
 *         bytes
 * @nr: number of activities that have entries in @kinds and @names
 * @deeper: number of further activities, nested in these, without entries
 */
typedef struct HtNests {
    HtKind kinds[HT_RUNNING_NESTED_MAX];
    char *names[HT_RUNNING_NESTED_MAX];
    unsigned nr;
    unsigned deeper;
} HtNests;

/**
 * HtRunCpu: the state of a processor
 * @seen: the processor had an event in this segment of the clock
 * @known: the task that the processor runs is known
 * @pid: PID of that task; valid only if @known
 * @since: guest time in nanoseconds since which the task runs; if its start was
 *         not recorded, since which it is known to run
 * @last: guest time of the processor's last event in nanoseconds
 * @irqs: interrupts that the processor is in
 * @version: changes whenever @known, @pid, @since or @irqs changes, or the
 *           initcall or system call of the task that the processor runs; also
 *           changes with each task_rename event
 */
typedef struct HtRunCpu {
    bool seen;
    bool known;
    int32_t pid;
    uint64_t since;
    uint64_t last;
    HtNests irqs;
    unsigned version;
} HtRunCpu;

typedef struct HtRunning HtRunning;

/**
 * ht_running_new: start without any state
 * @m: model of the events
 */
HtRunning *ht_running_new(HtModel *m);

/**
 * ht_running_tasks_only: do not track interrupts, system calls and initcalls
 * @r: the states, before the first event
 *
 * The functions for events then take less time.
 */
void ht_running_tasks_only(HtRunning *r);

/**
 * ht_running_free: free the states
 * @r: the states or NULL
 */
void ht_running_free(HtRunning *r);

/**
 * ht_running_before: get the state of a processor just before an event
 *
 * The task is not known after a gap, after a switch that was not recorded, and
 * at the start of a boot or of a segment of the clock.
 *
 * Returns: the state of the event's processor since its previous event, valid
 * until ht_running_after(); NULL if the processor's number is HT_FT_CPUS_MAX or
 * more
 */
const HtRunCpu *ht_running_before(HtRunning *r, const HtModelEvent *ev);

/**
 * ht_running_time: get the time since the processor's previous event
 * @cpu: the processor, from ht_running_before()
 * @ev: the event passed to ht_running_before()
 *
 * If all events are passed, these times cover the time from the processor's
 * first event to its last in each segment of the clock, without overlap.
 *
 * Returns: nanoseconds
 */
static inline uint64_t ht_running_time(const HtRunCpu *cpu,
                                       const HtModelEvent *ev)
{
    return ht_elapsed(cpu->last, ev->rec.ns);
}

/**
 * ht_running_after: update the state of a processor by an event
 * @ev: the event passed to ht_running_before() just before
 */
void ht_running_after(HtRunning *r, const HtModelEvent *ev);

/**
 * ht_running_cpu: get the current state of a processor
 * @cpu: its number, below HT_FT_CPUS_MAX
 */
const HtRunCpu *ht_running_cpu(const HtRunning *r, uint32_t cpu);

/**
 * ht_running_task: get the initcall or system call that a task is in
 * @pid: PID of the task
 *
 * Returns: the initcall or system call. If the task is in none, if the begin
 * was not recorded, if too many tasks are tracked, or after
 * ht_running_tasks_only(): NULL, or a result without entries.
 */
const HtNests *ht_running_task(const HtRunning *r, int32_t pid);

#endif /* HYPERTRACE_TOOL_RUNNING_H */
