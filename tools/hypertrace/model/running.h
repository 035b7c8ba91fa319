/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what each processor is at: a task, and in that an initcall, a
 * system call, an interrupt
 */
#ifndef HYPERTRACE_TOOL_RUNNING_H
#define HYPERTRACE_TOOL_RUNNING_H

#include "model/duration.h"
#include "model/model.h"

#define HT_RUNNING_CPUS_MAX     4096
#define HT_RUNNING_NESTED_MAX   8

/**
 * HtNests: what began and did not end, the outermost first
 * @kinds: of the event that began it
 * @names: of it, as "softirq NET_RX"; any bytes
 * @nr: how many there are
 * @deeper: more within these, which are only counted
 */
typedef struct HtNests {
    HtKind kinds[HT_RUNNING_NESTED_MAX];
    char *names[HT_RUNNING_NESTED_MAX];
    unsigned nr;
    unsigned deeper;
} HtNests;

/**
 * HtRunCpu: a processor
 * @seen: there was an event of it
 * @known: which task runs
 * @pid: that task
 * @since: it runs since then, or is known since then
 * @last: when its last event was
 * @irqs: interrupts that it is in
 * @version: changes with all but @last
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
 * ht_running_new: nothing is known
 * @m: model, whose events they are
 */
HtRunning *ht_running_new(HtModel *m);

/**
 * ht_running_tasks_only: follow tasks, but no interrupts, calls and initcalls
 * @r: running, before its first event; is much faster then
 */
void ht_running_tasks_only(HtRunning *r);

/**
 * ht_running_free: forget it
 * @r: running or NULL
 */
void ht_running_free(HtRunning *r);

/**
 * ht_running_before: what was from the last event of a processor to this one
 * @r: running
 * @ev: event
 *
 * Nothing is known behind a gap, behind a switch that was not recorded, and
 * at the begin of a boot and of a segment of the clock.
 *
 * Returns: its processor, valid until ht_running_after(); NULL if it has too
 * high a number
 */
const HtRunCpu *ht_running_before(HtRunning *r, const HtModelEvent *ev);

/**
 * ht_running_time: how long the processor did what ht_running_before() says
 * @cpu: the processor
 * @ev: the event given to ht_running_before()
 *
 * Each moment of a processor between its first and its last event of a segment
 * is in exactly one of these times.
 *
 * Returns: nanoseconds
 */
static inline uint64_t ht_running_time(const HtRunCpu *cpu,
                                       const HtModelEvent *ev)
{
    return ht_elapsed(cpu->last, ev->rec.ns);
}

/**
 * ht_running_after: what this event changes; call it after each
 * ht_running_before()
 * @r: running
 * @ev: event
 */
void ht_running_after(HtRunning *r, const HtModelEvent *ev);

/**
 * ht_running_cpu: a processor as it is now
 * @r: running
 * @cpu: its number, below HT_RUNNING_CPUS_MAX
 */
const HtRunCpu *ht_running_cpu(const HtRunning *r, uint32_t cpu);

/**
 * ht_running_task: what a task is in
 * @r: running
 * @pid: task
 *
 * Returns: initcalls or a system call, or NULL
 */
const HtNests *ht_running_task(const HtRunning *r, int32_t pid);

#endif /* HYPERTRACE_TOOL_RUNNING_H */
