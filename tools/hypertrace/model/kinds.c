/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: table of the kernel's events and fields that commands interpret
 */
#include <string.h>

#include "model/kinds.h"

const HtKindInfo ht_kinds[HT_KINDS] = {
    [HT_KIND_OTHER] = { "", "", { } },
    [HT_KIND_SCHED_SWITCH] = { "sched", "sched_switch", {
        "prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm",
        "next_pid", "next_prio" } },
    [HT_KIND_SCHED_WAKING] = { "sched", "sched_waking", {
        "comm", "pid", "prio", "target_cpu" } },
    [HT_KIND_SCHED_WAKEUP] = { "sched", "sched_wakeup", {
        "comm", "pid", "prio", "target_cpu" } },
    [HT_KIND_SCHED_WAKEUP_NEW] = { "sched", "sched_wakeup_new", {
        "comm", "pid", "prio", "target_cpu" } },
    [HT_KIND_SCHED_MIGRATE] = { "sched", "sched_migrate_task", {
        "comm", "pid", "prio", "orig_cpu", "dest_cpu" } },
    [HT_KIND_SCHED_EXEC] = { "sched", "sched_process_exec", {
        "filename", "pid", "old_pid" } },
    [HT_KIND_SCHED_FORK] = { "sched", "sched_process_fork", {
        "parent_comm", "parent_pid", "child_comm", "child_pid" } },
    [HT_KIND_SCHED_EXIT] = { "sched", "sched_process_exit", {
        "comm", "pid", "prio" } },
    [HT_KIND_SCHED_FREE] = { "sched", "sched_process_free", {
        "comm", "pid", "prio" } },
    [HT_KIND_SCHED_WAIT] = { "sched", "sched_process_wait", {
        "comm", "pid", "prio" } },
    [HT_KIND_TASK_NEW] = { "task", "task_newtask", {
        "comm", "pid", "clone_flags", "oom_score_adj" } },
    [HT_KIND_TASK_RENAME] = { "task", "task_rename", {
        "newcomm", "pid", "oldcomm", "oom_score_adj" } },
    [HT_KIND_IRQ_ENTRY] = { "irq", "irq_handler_entry", { "irq", "name" } },
    [HT_KIND_IRQ_EXIT] = { "irq", "irq_handler_exit", { "irq", "ret" } },
    [HT_KIND_SOFTIRQ_ENTRY] = { "irq", "softirq_entry", { "vec" } },
    [HT_KIND_SOFTIRQ_EXIT] = { "irq", "softirq_exit", { "vec" } },
    [HT_KIND_SOFTIRQ_RAISE] = { "irq", "softirq_raise", { "vec" } },
    [HT_KIND_SYS_ENTER] = { "raw_syscalls", "sys_enter", { "id", "args" } },
    [HT_KIND_SYS_EXIT] = { "raw_syscalls", "sys_exit", { "id", "ret" } },
    [HT_KIND_INITCALL_LEVEL] = { "initcall", "initcall_level", { "level" } },
    [HT_KIND_INITCALL_START] = { "initcall", "initcall_start", { "func" } },
    [HT_KIND_INITCALL_FINISH] = { "initcall", "initcall_finish", {
        "func", "ret" } },
    [HT_KIND_MODULE_LOAD] = { "module", "module_load", {
        "taints", "name" } },
    [HT_KIND_CONSOLE] = { "printk", "console", { "msg" } },
    [HT_KIND_CPU_FREQUENCY] = { "power", "cpu_frequency", {
        "state", "cpu_id" } },
    [HT_KIND_CPU_IDLE] = { "power", "cpu_idle", { "state", "cpu_id" } },
    [HT_KIND_FUNCTION] = { "ftrace", "function", { "ip", "parent_ip" } },
    [HT_KIND_GRAPH_ENTRY] = { "ftrace", "funcgraph_entry", {
        "func", "depth" } },
    [HT_KIND_GRAPH_EXIT] = { "ftrace", "funcgraph_exit", {
        "func", "depth", "overrun", "calltime", "rettime" } },
    [HT_KIND_KERNEL_STACK] = { "ftrace", "kernel_stack", {
        "caller", "size" } },
    [HT_KIND_USER_STACK] = { "ftrace", "user_stack", { "caller" } },
    [HT_KIND_KVM_ENTRY] = { "kvm", "kvm_entry", { "vcpu_id" } },
    [HT_KIND_KVM_EXIT] = { "kvm", "kvm_exit", { "vcpu_id", "exit_reason" } },
    [HT_KIND_KVM_USERSPACE] = { "kvm", "kvm_userspace_exit", { } },
};

/*
 * The events of the system "syscalls" have the same kinds as the events of
 * raw_syscalls, but the field with the number of the call has another name.
 * Each call has fields of its own for its arguments, so there is no name for
 * HT_F_SYS_ARGS.
 */
const char *ht_kind_field(HtKind kind, const char *system, unsigned field)
{
    if (!strcmp(system, "syscalls") &&
        (kind == HT_KIND_SYS_ENTER || kind == HT_KIND_SYS_EXIT)) {
        return field == HT_F_SYS_NR ? "__syscall_nr" :
               field == HT_F_SYS_RET && kind == HT_KIND_SYS_EXIT ? "ret" :
               NULL;
    }
    return ht_kinds[kind].fields[field];
}

HtKind ht_kind_find(const char *system, const char *name)
{
    unsigned k;

    if (!strcmp(system, "syscalls")) {
        return !strncmp(name, "sys_enter_", 10) ? HT_KIND_SYS_ENTER :
               !strncmp(name, "sys_exit_", 9) ? HT_KIND_SYS_EXIT :
               HT_KIND_OTHER;
    }
    if (!strcmp(system, "ftrace") && !strcmp(name, HT_KIND_RETADDR)) {
        return HT_KIND_GRAPH_ENTRY;
    }
    for (k = HT_KIND_OTHER + 1; k < HT_KINDS; k++) {
        if (!strcmp(name, ht_kinds[k].name) &&
            !strcmp(system, ht_kinds[k].system)) {
            return k;
        }
    }
    return HT_KIND_OTHER;
}
