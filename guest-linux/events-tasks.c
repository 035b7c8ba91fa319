// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: emit an event for each task that exists
 *
 * From these events a viewer knows each task even before the trace has another
 * event of the task.  The names and values are those of lttng-modules.
 */
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "events.h"

HT_EVENT(lttng_statedump_start);
HT_EVENT(lttng_statedump_process_state, (s32, tid), (s32, pid), (s32, ppid),
	 (chars, name, TASK_COMM_LEN), (s32, type), (s32, mode), (s32, submode),
	 (s32, status), (u32, cpu));
HT_EVENT(lttng_statedump_end);

static struct ht_class *const hte_task_classes[] = {
	&ht_class_lttng_statedump_start,
	&ht_class_lttng_statedump_process_state,
	&ht_class_lttng_statedump_end,
};

enum { LTTNG_USER_THREAD, LTTNG_KERNEL_THREAD };
enum { LTTNG_MODE_UNKNOWN = 5 };
enum { LTTNG_SUBMODE_UNKNOWN = 1 };
enum {
	LTTNG_UNNAMED = 0,
	LTTNG_WAIT_CPU = 2,
	LTTNG_ZOMBIE = 4,
	LTTNG_WAIT = 5,
	LTTNG_DEAD = 7,
};

static int hte_task_status(const struct task_struct *t)
{
	unsigned int state = READ_ONCE(t->__state);
	int exit_state = READ_ONCE(t->exit_state);

	if (exit_state & EXIT_ZOMBIE)
		return LTTNG_ZOMBIE;
	if (exit_state & EXIT_DEAD)
		return LTTNG_DEAD;
	if (state == TASK_RUNNING)
		return LTTNG_WAIT_CPU;
	if (state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE))
		return LTTNG_WAIT;
	return LTTNG_UNNAMED;
}

/* Context: rcu_read_lock() held */
static void hte_task_dump(const struct task_struct *t)
{
	const struct task_struct *parent = rcu_dereference(t->real_parent);

	ht_trace(lttng_statedump_process_state, t->pid, t->tgid,
		 parent ? parent->tgid : 0, t->comm,
		 t->flags & PF_KTHREAD ? LTTNG_KERNEL_THREAD :
					 LTTNG_USER_THREAD,
		 LTTNG_MODE_UNKNOWN, LTTNG_SUBMODE_UNKNOWN,
		 hte_task_status(t), task_cpu(t));
}

/*
 * Emit an event for each task, after an event for the start and before an event
 * for the end.  Each of the three classes is emitted only if it is on.  Events
 * for which the stream has no room are counted as discarded.
 */
static void hte_tasks_dump(void)
{
	const struct task_struct *process, *t;

	ht_trace(lttng_statedump_start);
	rcu_read_lock();
	for_each_process_thread(process, t)
		hte_task_dump(t);
	rcu_read_unlock();
	ht_trace(lttng_statedump_end);
}

/**
 * hte_tasks_switch() - emit an event for each task, if the trace needs them now
 * @any: the parameter selects at least one trace event
 * @more: at least one trace event was off and has been switched on
 *
 * Emit nothing unless @any is true and the class
 * lttng_statedump_process_state is on.  Then emit if the last call found
 * otherwise.  Also emit if @more is true, since tasks may have started or ended
 * while trace events were off.
 *
 * Context: hte_mutex held
 */
void hte_tasks_switch(bool any, bool more)
{
	static bool was;
	bool is = any &&
		  ht_class_enabled(&ht_class_lttng_statedump_process_state);

	if (is && (!was || more))
		hte_tasks_dump();
	was = is;
}

int hte_tasks_init(void)
{
	return ht_kernel_register(hte_task_classes,
				  ARRAY_SIZE(hte_task_classes));
}

void hte_tasks_exit(void)
{
	ht_kernel_unregister(hte_task_classes, ARRAY_SIZE(hte_task_classes));
}
