/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: table of the kernel's events and fields that commands interpret
 */
#ifndef HYPERTRACE_TOOL_KINDS_H
#define HYPERTRACE_TOOL_KINDS_H

#include <stdint.h>

#define HT_KIND_FIELDS  8
/*
 * Name of function_graph's entry event if the tracer's option
 * funcgraph-retaddr is set (Linux 6.13 and later). Its kind is
 * HT_KIND_GRAPH_ENTRY.
 */
#define HT_KIND_RETADDR "fgraph_retaddr_entry"

typedef enum HtKind {
    HT_KIND_OTHER,
    HT_KIND_SCHED_SWITCH,
    HT_KIND_SCHED_WAKING,
    HT_KIND_SCHED_WAKEUP,
    HT_KIND_SCHED_WAKEUP_NEW,
    HT_KIND_SCHED_MIGRATE,
    HT_KIND_SCHED_EXEC,
    HT_KIND_SCHED_FORK,
    HT_KIND_SCHED_EXIT,
    HT_KIND_SCHED_FREE,
    HT_KIND_SCHED_WAIT,
    HT_KIND_TASK_NEW,
    HT_KIND_TASK_RENAME,
    HT_KIND_IRQ_ENTRY,
    HT_KIND_IRQ_EXIT,
    HT_KIND_SOFTIRQ_ENTRY,
    HT_KIND_SOFTIRQ_EXIT,
    HT_KIND_SOFTIRQ_RAISE,
    HT_KIND_SYS_ENTER,
    HT_KIND_SYS_EXIT,
    HT_KIND_INITCALL_LEVEL,
    HT_KIND_INITCALL_START,
    HT_KIND_INITCALL_FINISH,
    HT_KIND_MODULE_LOAD,
    HT_KIND_CONSOLE,
    HT_KIND_CPU_FREQUENCY,
    HT_KIND_CPU_IDLE,
    HT_KIND_FUNCTION,
    HT_KIND_GRAPH_ENTRY,
    HT_KIND_GRAPH_EXIT,
    HT_KIND_KERNEL_STACK,
    HT_KIND_USER_STACK,
    HT_KIND_KVM_ENTRY,
    HT_KIND_KVM_EXIT,
    HT_KIND_KVM_USERSPACE,
    HT_KINDS
} HtKind;

/*
 * Fields of each kind, as indices of HtEventClass.field. The order of a kind's
 * fields must be that of the names in ht_kinds (kinds.c).
 */
enum {
    HT_F_SWITCH_PREV_COMM = 0, HT_F_SWITCH_PREV_PID, HT_F_SWITCH_PREV_PRIO,
    HT_F_SWITCH_PREV_STATE, HT_F_SWITCH_NEXT_COMM, HT_F_SWITCH_NEXT_PID,
    HT_F_SWITCH_NEXT_PRIO,
    /*
     * first fields of the events sched_waking, sched_wakeup, sched_wakeup_new,
     * sched_process_exit, sched_process_free, sched_process_wait and
     * sched_migrate_task. The first three also have HT_F_WAKE_CPU, and the last
     * one has HT_F_MIGRATE_*.
     */
    HT_F_TASK_COMM = 0, HT_F_TASK_PID, HT_F_TASK_PRIO,
    HT_F_WAKE_CPU = 3,
    HT_F_MIGRATE_FROM = 3, HT_F_MIGRATE_TO,
    HT_F_EXEC_FILE = 0, HT_F_EXEC_PID, HT_F_EXEC_OLD_PID,
    HT_F_FORK_PARENT_COMM = 0, HT_F_FORK_PARENT, HT_F_FORK_CHILD_COMM,
    HT_F_FORK_CHILD,
    HT_F_NEW_COMM = 0, HT_F_NEW_PID, HT_F_NEW_FLAGS, HT_F_NEW_OOM,
    HT_F_RENAME_NEW = 0, HT_F_RENAME_PID, HT_F_RENAME_OLD, HT_F_RENAME_OOM,
    HT_F_IRQ = 0, HT_F_IRQ_NAME = 1, HT_F_IRQ_RET = 1,
    HT_F_SOFTIRQ_VEC = 0,
    HT_F_SYS_NR = 0, HT_F_SYS_ARGS = 1, HT_F_SYS_RET = 1,
    HT_F_INITCALL_LEVEL = 0,
    HT_F_INITCALL_FUNC = 0, HT_F_INITCALL_RET,
    HT_F_MODULE_TAINTS = 0, HT_F_MODULE_NAME,
    HT_F_CONSOLE_TEXT = 0,
    HT_F_POWER_STATE = 0, HT_F_POWER_CPU,
    HT_F_FUNCTION_IP = 0, HT_F_FUNCTION_PARENT,
    HT_F_GRAPH_FUNC = 0, HT_F_GRAPH_DEPTH, HT_F_GRAPH_OVERRUN,
    HT_F_GRAPH_CALLTIME, HT_F_GRAPH_RETTIME,
    HT_F_KVM_VCPU = 0, HT_F_KVM_REASON,
    HT_F_STACK_CALLERS = 0, HT_F_STACK_SIZE,
};

/**
 * HtKindInfo: the event that a kind stands for
 * @system: the event's system in tracefs
 * @name: the event's name
 * @fields: names of fields; NULL after the last
 */
typedef struct HtKindInfo {
    const char *system;
    const char *name;
    const char *fields[HT_KIND_FIELDS + 1];
} HtKindInfo;

extern const HtKindInfo ht_kinds[HT_KINDS];

/**
 * ht_kind_field: get the name of a field in the events of a kind
 * @kind: the kind
 * @system: the event's system in tracefs: events of "syscalls" have other
 *          fields than those of "raw_syscalls", but the same kinds
 * @field: HT_F_*
 *
 * Returns: the name; NULL if these events have no such field
 */
const char *ht_kind_field(HtKind kind, const char *system, unsigned field);

/**
 * ht_kind_find: find the kind of an event
 * @system: the event's system in tracefs
 * @name: the event's name
 *
 * Returns: the kind, or HT_KIND_OTHER
 */
HtKind ht_kind_find(const char *system, const char *name);

#endif /* HYPERTRACE_TOOL_KINDS_H */
