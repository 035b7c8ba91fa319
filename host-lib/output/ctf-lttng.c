/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: translate names of Linux's events and fields to those that
 * LTTng's kernel tracer uses
 *
 * Viewers for traces of lttng-modules expect the names that lttng-modules uses.
 * Most of these are the kernel's names; the tables below have exceptions.
 */
#include "hypertrace/base.h"
#include "ctf-lttng.h"

typedef struct Name {
    const char *kernel;
    const char *lttng;
} Name;

/*
 * Prefixes of the kernel's event names, and the prefixes that lttng-modules has
 * instead: those of its include/instrumentation/events/, without asoc, btrfs,
 * jbd, mmutrace, printk, random and regmap
 */
static const Name events[] = {
    { "sys_enter_", "syscall_entry_" },
    { "sys_exit_", "syscall_exit_" },
    { "softirq_", "irq_softirq_" },
    { "hrtimer_", "timer_hrtimer_" },
    { "itimer_", "timer_itimer_" },
    { "cpu_idle", "power_cpu_idle" },
    { "cpu_frequency", "power_cpu_frequency" },
    { "kvm_apic", "kvm_x86_apic" },
    { "kvm_cpuid", "kvm_x86_cpuid" },
    { "kvm_cr", "kvm_x86_cr" },
    { "kvm_emulate_insn", "kvm_x86_emulate_insn" },
    { "kvm_entry", "kvm_x86_entry" },
    { "kvm_eoi", "kvm_x86_eoi" },
    { "kvm_exit", "kvm_x86_exit" },
    { "kvm_hv_hypercall", "kvm_x86_hv_hypercall" },
    { "kvm_hypercall", "kvm_x86_hypercall" },
    { "kvm_inj_exception", "kvm_x86_inj_exception" },
    { "kvm_inj_virq", "kvm_x86_inj_virq" },
    { "kvm_invlpga", "kvm_x86_invlpga" },
    { "kvm_msr", "kvm_x86_msr" },
    { "kvm_nested_intercepts", "kvm_x86_nested_intercepts" },
    { "kvm_nested_intr_vmexit", "kvm_x86_nested_intr_vmexit" },
    { "kvm_nested_vmexit", "kvm_x86_nested_vmexit" },
    { "kvm_nested_vmrun", "kvm_x86_nested_vmrun" },
    { "kvm_page_fault", "kvm_x86_page_fault" },
    { "kvm_pic_set_irq", "kvm_x86_pic_set_irq" },
    { "kvm_pio", "kvm_x86_pio" },
    { "kvm_pv_eoi", "kvm_x86_pv_eoi" },
    { "kvm_skinit", "kvm_x86_skinit" },
    { "kvm_track_tsc", "kvm_x86_track_tsc" },
    { "kvm_update_master_clock", "kvm_x86_update_master_clock" },
    { "kvm_write_tsc_offset", "kvm_x86_write_tsc_offset" },
    { "vcpu_match_mmio", "kvm_x86_vcpu_match_mmio" },
    { "kfree_skb", "skb_kfree" },
    { "consume_skb", "skb_consume" },
    { "kmalloc", "kmem_kmalloc" },
    { "kfree", "kmem_kfree" },
    { "mm_page_", "kmem_mm_page_" },
    { "mm_compaction_", "compaction_" },
    { "mm_shrink_slab_", "mm_vmscan_shrink_slab_" },
    { "napi_gro_", "net_napi_gro_" },
    { "netif_receive_skb", "net_if_receive_skb" },
    { "netif_rx", "net_if_rx" },
    { "balance_dirty_pages", "writeback_balance_dirty_pages" },
    { "bdi_dirty_ratelimit", "writeback_bdi_dirty_ratelimit" },
    { "folio_wait_writeback", "writeback_folio_wait" },
    { "global_dirty_state", "writeback_global_dirty_state" },
    { "clock_disable", "power_clock_disable" },
    { "clock_enable", "power_clock_enable" },
    { "clock_set_rate", "power_clock_set_rate" },
    { "machine_suspend", "power_machine_suspend" },
    { "wakeup_source_", "power_wakeup_source_" },
    { "irq_disable", "preemptirq_irq_disable" },
    { "irq_enable", "preemptirq_irq_enable" },
    { "preempt_disable", "preemptirq_preempt_disable" },
    { "preempt_enable", "preemptirq_preempt_enable" },
    { "page_fault_user", "x86_exceptions_page_fault_user" },
    { "page_fault_kernel", "x86_exceptions_page_fault_kernel" },
    { "call_function_", "x86_irq_vectors_call_function_" },
    { "deferred_error_apic_", "x86_irq_vectors_deferred_error_apic_" },
    { "error_apic_", "x86_irq_vectors_error_apic_" },
    { "irq_work_", "x86_irq_vectors_irq_work_" },
    { "local_timer_", "x86_irq_vectors_local_timer_" },
    { "reschedule_", "x86_irq_vectors_reschedule_" },
    { "spurious_apic_", "x86_irq_vectors_spurious_apic_" },
    { "thermal_apic_", "x86_irq_vectors_thermal_apic_" },
    { "threshold_apic_", "x86_irq_vectors_threshold_apic_" },
    { "x86_platform_ipi_", "x86_irq_vectors_ipi_" },
};

/*
 * Fields of the scheduler's events that hold the id of a thread.  The kernel's
 * names have "pid" where those of lttng-modules have "tid".
 */
static const Name sched_fields[] = {
    { "pid", "tid" },
    { "prev_pid", "prev_tid" },
    { "next_pid", "next_tid" },
    { "parent_pid", "parent_tid" },
    { "child_pid", "child_tid" },
    { "old_pid", "old_tid" },
};

char *ht_ctf_lttng_event(const char *name)
{
    const char *version = strrchr(name, '.');
    int len = strlen(name);
    unsigned i;

    /* NAME.vN is a class of the event NAME with other fields: drop ".vN". */
    if (version && version[1] == 'v' && g_ascii_isdigit(version[2])) {
        len = version - name;
    }
    for (i = 0; i < G_N_ELEMENTS(events); i++) {
        int prefix = strlen(events[i].kernel);

        if (g_str_has_prefix(name, events[i].kernel) && prefix <= len) {
            return g_strdup_printf("%s%.*s", events[i].lttng, len - prefix,
                                   name + prefix);
        }
    }
    return g_strndup(name, len);
}

const char *ht_ctf_lttng_field(const HtClass *c, const char *name)
{
    unsigned i;

    for (i = 0; g_str_has_prefix(c->name, "sched_") &&
                i < G_N_ELEMENTS(sched_fields); i++) {
        if (!strcmp(name, sched_fields[i].kernel) &&
            ht_class_field_free(c, sched_fields[i].lttng)) {
            return sched_fields[i].lttng;
        }
    }
    return name;
}
