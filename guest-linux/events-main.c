// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: trace events and system calls, by probes of this module
 * instead of ftrace's
 *
 * The parameter events selects the events that the host may receive.  When the
 * host switches a selected event on or off, a work item attaches or detaches
 * the probe.  A class has the name of ftrace's event, without the system, and
 * its fields have the names of ftrace's fields.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/glob.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "events.h"

struct hte_event **hte_events;
unsigned int hte_nr_events;

/*
 * For each CPU, HTE_SCRATCH bytes in which a probe assembles an event of
 * variable size
 */
static u8 __percpu *hte_scratch;

/*
 * Protects hte_ready, hte_patterns and the members of struct hte_event that
 * events.h names.  The module notifier takes the mutex, so a holder must not
 * wait for the host: a module that is being loaded would wait, too.
 */
static DEFINE_MUTEX(hte_mutex);
static bool hte_ready;
static char hte_patterns[HT_SELECT_MAX] = "sched,irq,nmi,signal,task";

/**
 * hte_begin_dynamic() - begin an event whose size varies
 * @e: the event
 * @m: state, filled in for hte_end_dynamic()
 * @size: size of the entry with all its data, in bytes
 *
 * Interrupts stay off until hte_end_dynamic().
 *
 * Context: any
 *
 * Return: zeroed memory for the entry.  NULL if the event was discarded:
 * interrupts are restored, and the caller must not call hte_end_dynamic().
 */
notrace void *hte_begin_dynamic(struct hte_event *e, struct hte_emit_state *m,
				u32 size)
{
	m->stream = ht_kernel_begin(&m->flags);
	if (unlikely(!m->stream))
		return NULL;
	/* ht_begin() discards an event of the size HT_EV_TOO_LONG. */
	m->size = likely(size <= HTE_SCRATCH) ? size : HT_EV_TOO_LONG;
	/*
	 * Reserve the size of the entry; the packed event is not longer.  When
	 * ht_begin() succeeds, it marks the stream as busy, so no other event
	 * of this CPU uses the scratch memory until ht_finish().
	 */
	m->end = ht_begin(m->stream, READ_ONCE(e->class.id), m->size);
	if (unlikely(!m->end)) {
		ht_kernel_end(m->flags);
		return NULL;
	}
	m->entry = this_cpu_ptr(hte_scratch);
	memset(m->entry, 0, size);
	return m->entry;
}

/**
 * hte_end_dynamic() - pack the complete entry into the event and commit it
 * @e: the event
 * @m: state from hte_begin_dynamic()
 * @locs: values of the entry's words __data_loc_x: offset | size << 16, in
 *        bytes
 *
 * Context: on the CPU of hte_begin_dynamic(), interrupts still off
 */
notrace void hte_end_dynamic(struct hte_event *e, struct hte_emit_state *m,
			     const u32 *locs)
{
	u8 *to = m->end - m->size;
	unsigned int i, at = 0;

	for (i = 0; i <= e->nr_dynamic; i++) {
		unsigned int word = i < e->nr_dynamic ? e->dynamic[i].word :
							e->size;

		memcpy(to, m->entry + at, word - at);
		to += word - at;
		at = word + sizeof(u32);
	}
	for (i = 0; i < e->nr_dynamic; i++) {
		const u8 *from = m->entry + (locs[i] & 0xffff);
		u32 size = locs[i] >> 16;

		if (e->dynamic[i].text)
			size = strnlen(from, size);
		ht_put16(to, size >> e->dynamic[i].shift);
		memcpy(to + sizeof(u16), from, size);
		to += sizeof(u16) + size;
	}
	ht_finish(m->stream, to);
	ht_kernel_end(m->flags);
}

/*
 * Match an event by the rules of tracefs's set_event: "system:event",
 * "system:", ":event", or a word without ":", which is the name of a system or
 * an event.  A name may have wildcards.
 */
static bool hte_matches(const struct hte_event *e, const char *system,
			const char *name)
{
	if (!name)
		return glob_match(system, e->name) ||
		       glob_match(system, e->system);
	return glob_match(*system ? system : "*", e->system) &&
	       glob_match(*name ? name : "*", e->name);
}

/* Context: hte_mutex held */
static int hte_parse_word(void *unused, char *word)
{
	bool on = *word != '!', found = false;
	char *name = word + !on, *system = strsep(&name, ":");

	/* A word without any name, such as ":" or "!", is an error. */
	if (*system || (name && *name)) {
		hte_for_each(e) {
			if (!hte_matches(e, system, name))
				continue;
			/* An event without a tracepoint is not an error. */
			e->named = on && e->tp;
			found = true;
		}
	}
	if (found)
		return 0;
	pr_err("'%s%s%s' matches no event of this module\n", system,
	       name ? ":" : "", name ?: "");
	return -EINVAL;
}

/*
 * Set @named of each event.  If several patterns match an event, the last one
 * applies.
 *
 * Context: hte_mutex held
 */
static int hte_parse(const char *text)
{
	hte_for_each(e)
		e->named = false;
	return ht_for_each_word(text, hte_parse_word, NULL);
}

static bool hte_is_new(const struct hte_event *e)
{
	return e->named && !e->registered && e->class.fields;
}

/*
 * Register the classes of named events that are not registered yet.  If the
 * class of an event cannot be made, leave this event out and register the
 * others.  If there is not enough memory, or ht_kernel_register() fails,
 * register none and return the error.
 *
 * Context: hte_mutex held
 */
static int hte_register(void)
{
	struct ht_class **classes;
	unsigned int n = 0;
	int ret;

	hte_for_each(e) {
		if (!e->named || e->class.fields)
			continue;
		ret = hte_class_make(e);
		if (ret == -ENOMEM)
			return ret;
		if (ret)
			pr_warn("%s:%s: left out: error %d\n", e->system,
				e->name, ret);
	}
	hte_for_each(e)
		n += hte_is_new(e);
	if (!n)
		return 0;
	classes = kvmalloc_array(n, sizeof(*classes), GFP_KERNEL);
	if (!classes)
		return -ENOMEM;
	n = 0;
	hte_for_each(e) {
		if (hte_is_new(e))
			classes[n++] = &e->class;
	}
	ret = ht_kernel_register(classes, n);
	kvfree(classes);
	hte_for_each(e)
		e->registered |= !ret && hte_is_new(e);
	return ret;
}

/* Context: hte_mutex held */
static void hte_attach(struct hte_event *e, bool on)
{
	int ret;

	if (on == e->attached)
		return;
	if (e->syscall)
		ret = hte_syscall_attach(e, on);
	else if (on)
		ret = tracepoint_probe_register(e->tp, e->probe, e);
	else
		ret = tracepoint_probe_unregister(e->tp, e->probe, e);
	if (ret)
		pr_warn_once("%s:%s: probe: error %d\n", e->system, e->name,
			     ret);
	else
		e->attached = on;
}

/*
 * Attach the probes of events that are selected and that the host wants, and
 * detach all others.  A detached probe may still be running on return.
 *
 * Context: hte_mutex held
 */
static void hte_switch(void)
{
	bool any = false, more = false;

	hte_for_each(e) {
		bool on = e->selected && ht_class_enabled(&e->class);

		any |= e->selected;
		more |= on && !e->attached;
		hte_attach(e, on);
	}
	hte_tasks_switch(any, more);
}

static void hte_changed(struct work_struct *work)
{
	mutex_lock(&hte_mutex);
	if (hte_ready)
		hte_switch();
	mutex_unlock(&hte_mutex);
}

static DECLARE_WORK(hte_work, hte_changed);
static struct ht_kernel_watch hte_watch = {
	.work = &hte_work,
};

/*
 * Select the events that @text names.  After an error the selection is
 * unchanged.
 *
 * Context: hte_mutex held
 */
static int hte_select(const char *text)
{
	int ret = hte_parse(text);

	if (!ret)
		ret = hte_register();
	if (ret)
		return ret;
	hte_for_each(e)
		e->selected = e->named;
	if (text != hte_patterns)
		strscpy(hte_patterns, text, sizeof(hte_patterns));
	hte_switch();
	return 0;
}

/*
 * Wait until the host has registered new classes, if a host answers.  Then
 * attach the probes of events that the host wants.
 */
static void hte_sync(void)
{
	ht_kernel_sync();
	hte_changed(NULL);
}

/*
 * Set the parameter "events".  An argument of insmod is only stored here, and
 * hte_init() applies it.
 */
static int hte_events_set(const char *text, const struct kernel_param *kp)
{
	bool ready;
	int ret;

	if (strlen(text) >= sizeof(hte_patterns))
		return -ENOSPC;
	mutex_lock(&hte_mutex);
	ready = hte_ready;
	ret = ready ? hte_select(text) : ht_set_early(hte_patterns, text);
	mutex_unlock(&hte_mutex);
	if (ready && !ret)
		hte_sync();
	return ret;
}

static int hte_events_get(char *text, const struct kernel_param *kp)
{
	int n;

	mutex_lock(&hte_mutex);
	n = sysfs_emit(text, "%s\n", strim(hte_patterns));
	mutex_unlock(&hte_mutex);
	return n;
}

static const struct kernel_param_ops hte_events_ops = {
	.set = hte_events_set,
	.get = hte_events_get,
};

module_param_cb(events, &hte_events_ops, NULL, 0644);
MODULE_PARM_DESC(events,
		 "events that the host may receive: [!]SYSTEM:EVENT,...; patterns; the last match applies");

static bool hte_is_at(const struct hte_event *e, const struct tracepoint *tp)
{
	return !strcmp(tp->name, e->syscall ? hte_syscall_tracepoint(e) :
					      e->name);
}

/*
 * Check whether the module can read all values of an event.  It cannot read the
 * NUMA group of a task, because the kernel does not export
 * task_numa_group_id(): leave out the events with this value.
 */
static bool hte_is_complete(const struct hte_event *e)
{
	static const char *const lacking[] = {
		"sched_move_numa", "sched_stick_numa", "sched_swap_numa",
	};

	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lacking); i++) {
		if (!strcmp(lacking[i], e->name))
			return false;
	}
	return true;
}

static void hte_find_tracepoint(struct tracepoint *tp, void *unused)
{
	hte_for_each(e) {
		if (hte_is_at(e, tp) && hte_is_complete(e))
			e->tp = tp;
	}
}

/*
 * Add the tracepoints of a module that is being loaded, before its code runs,
 * or remove those of a module that is being unloaded, after its code has run.
 * register_tracepoint_module_notifier() also calls this to add those of each
 * loaded module, and unregister_tracepoint_module_notifier() to remove them.
 * The caller holds a lock of the module notifiers, so do not wait for the host.
 */
static int hte_module_tracepoints(struct notifier_block *nb,
				  unsigned long action, void *data)
{
	struct module *mod = ((struct tp_module *)data)->mod;
	unsigned int i;

	mutex_lock(&hte_mutex);
	for (i = 0; i < mod->num_tracepoints; i++) {
		struct tracepoint *tp =
			tracepoint_ptr_deref(&mod->tracepoints_ptrs[i]);

		if (action == MODULE_STATE_COMING)
			hte_find_tracepoint(tp, NULL);
		if (action != MODULE_STATE_GOING)
			continue;
		hte_for_each(e) {
			if (e->tp != tp)
				continue;
			hte_attach(e, false);
			e->selected = false;
			e->tp = NULL;
		}
	}
	if (i && hte_ready && action == MODULE_STATE_COMING)
		hte_select(hte_patterns);
	mutex_unlock(&hte_mutex);
	return NOTIFY_OK;
}

static struct notifier_block hte_modules = {
	.notifier_call = hte_module_tracepoints,
};

/*
 * List all events.  System calls come last: classes that are registered early
 * get small ids, which take fewer bytes in each event.
 */
static int hte_list(void)
{
	unsigned int fixed = hte_events_end - hte_events_begin;

	hte_scratch = __alloc_percpu(HTE_SCRATCH, sizeof(u64));
	if (!hte_scratch || hte_syscalls_init())
		return -ENOMEM;
	hte_events = kvmalloc_array(fixed + hte_syscalls_list(NULL),
				    sizeof(*hte_events), GFP_KERNEL);
	if (!hte_events)
		return -ENOMEM;
	memcpy(hte_events, hte_events_begin, fixed * sizeof(*hte_events));
	hte_nr_events = fixed + hte_syscalls_list(hte_events + fixed);
	for_each_kernel_tracepoint(hte_find_tracepoint, NULL);
	return 0;
}

static void hte_unlist(void)
{
	kvfree(hte_events);
	hte_syscalls_exit();
	free_percpu(hte_scratch);
}

/*
 * Detach all probes and wait until none is running.  While hte_ready is false,
 * a write to the parameter attaches no probe.
 */
static void hte_stop(void)
{
	mutex_lock(&hte_mutex);
	hte_ready = false;
	hte_for_each(e) {
		e->selected = false;
		hte_attach(e, false);
	}
	mutex_unlock(&hte_mutex);
	tracepoint_synchronize_unregister();
}

static void hte_unregister(void)
{
	static struct ht_class *classes[256];
	unsigned int n = 0;

	hte_for_each(e) {
		if (!e->registered)
			continue;
		classes[n++] = &e->class;
		if (n == ARRAY_SIZE(classes)) {
			ht_kernel_unregister(classes, n);
			n = 0;
		}
	}
	ht_kernel_unregister(classes, n);
	hte_for_each(e)
		hte_class_free(e);
}

void hte_exit(void)
{
	unregister_tracepoint_module_notifier(&hte_modules);
	ht_kernel_unwatch(&hte_watch);
	hte_stop();
	cancel_work_sync(&hte_work);
	hte_unregister();
	hte_tasks_exit();
	hte_unlist();
}

int hte_init(void)
{
	int ret;

	ret = hte_list();
	if (!ret)
		ret = hte_tasks_init();
	if (ret) {
		hte_unlist();
		return ret;
	}
	ht_kernel_watch(&hte_watch);
	register_tracepoint_module_notifier(&hte_modules);
	mutex_lock(&hte_mutex);
	hte_ready = true;
	ret = hte_select(hte_patterns);
	mutex_unlock(&hte_mutex);
	if (ret)
		hte_exit();
	else
		hte_sync();
	return ret;
}
