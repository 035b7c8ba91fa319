// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: the kernel's scheduling and interrupts, as trace events
 *
 * Loaded, it attaches to the kernel's tracepoints; unloaded, nothing is left.
 * Where lttng-modules has such an event, class and fields are called as there,
 * which is what trace viewers look for.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>

#include "hypertrace-kernel.h"

HT_EVENT(sched_switch, (chars, prev_comm, TASK_COMM_LEN), (s32, prev_tid),
	 (s32, prev_prio), (s64, prev_state), (chars, next_comm, TASK_COMM_LEN),
	 (s32, next_tid), (s32, next_prio));
HT_EVENT(sched_wakeup, (chars, comm, TASK_COMM_LEN), (s32, tid), (s32, prio),
	 (s32, target_cpu));
HT_EVENT(irq_handler_entry, (s32, irq), (text, name));
HT_EVENT(irq_handler_exit, (s32, irq), (s32, ret));
HT_EVENT(softirq_entry, (u32, vec));
HT_EVENT(softirq_exit, (u32, vec));
HT_EVENT(nmi_handler, (s64, delta_ns), (s32, handled));

static void on_sched_switch(void *data, bool preempt,
			    struct task_struct *prev,
			    struct task_struct *next, unsigned int prev_state)
{
	/* A task that is preempted is runnable, whatever it was about to be. */
	ht_trace(sched_switch, prev->comm, prev->pid, prev->prio,
		 preempt ? 0 : prev_state & TASK_REPORT,
		 next->comm, next->pid, next->prio);
}

static void on_sched_wakeup(void *data, struct task_struct *p)
{
	ht_trace(sched_wakeup, p->comm, p->pid, p->prio, task_cpu(p));
}

static void on_irq_entry(void *data, int irq, struct irqaction *action)
{
	ht_trace(irq_handler_entry, irq, action->name);
}

static void on_irq_exit(void *data, int irq, struct irqaction *action,
			int ret)
{
	ht_trace(irq_handler_exit, irq, ret);
}

static void on_softirq_entry(void *data, unsigned int vec)
{
	ht_trace(softirq_entry, vec);
}

static void on_softirq_exit(void *data, unsigned int vec)
{
	ht_trace(softirq_exit, vec);
}

static void on_nmi_handler(void *data, void *handler, s64 delta_ns,
			   int handled)
{
	ht_trace(nmi_handler, delta_ns, handled);
}

static struct hook {
	struct ht_class *class;
	void *probe;
	struct tracepoint *tp;
	bool registered;
} hooks[] = {
	{ &ht_class_sched_switch, on_sched_switch },
	{ &ht_class_sched_wakeup, on_sched_wakeup },
	{ &ht_class_irq_handler_entry, on_irq_entry },
	{ &ht_class_irq_handler_exit, on_irq_exit },
	{ &ht_class_softirq_entry, on_softirq_entry },
	{ &ht_class_softirq_exit, on_softirq_exit },
	{ &ht_class_nmi_handler, on_nmi_handler },
};

/* Classes are called as their tracepoints. */
static void find_tracepoint(struct tracepoint *tp, void *data)
{
	struct hook *h;

	for (h = hooks; h < hooks + ARRAY_SIZE(hooks); h++) {
		if (!strcmp(tp->name, h->class->name))
			h->tp = tp;
	}
}

static void detach(void)
{
	struct hook *h;

	for (h = hooks; h < hooks + ARRAY_SIZE(hooks); h++) {
		if (h->registered)
			tracepoint_probe_unregister(h->tp, h->probe, NULL);
	}
	tracepoint_synchronize_unregister();
	for (h = hooks; h < hooks + ARRAY_SIZE(hooks); h++) {
		if (h->tp)
			ht_kernel_unregister(h->class);
	}
}

static int __init hypertrace_events_init(void)
{
	struct hook *h;
	int ret;

	for_each_kernel_tracepoint(find_tracepoint, NULL);
	for (h = hooks; h < hooks + ARRAY_SIZE(hooks); h++) {
		/* Not every architecture has NMIs. */
		if (!h->tp) {
			pr_info("this kernel has no tracepoint %s\n",
				h->class->name);
			continue;
		}
		ret = ht_kernel_register(h->class);
		if (!ret)
			ret = tracepoint_probe_register(h->tp, h->probe, NULL);
		if (ret) {
			pr_err("%s: error %d\n", h->class->name, ret);
			detach();
			return ret;
		}
		h->registered = true;
	}
	return 0;
}
module_init(hypertrace_events_init);

static void __exit hypertrace_events_exit(void)
{
	detach();
}
module_exit(hypertrace_events_exit);

MODULE_DESCRIPTION("hypertrace: scheduling and interrupts as trace events");
MODULE_LICENSE("GPL");
