// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-ftrace: what ftrace records, as events of the device
 *
 * Users switch events on where they always do, in tracefs or with trace-cmd;
 * while this module is loaded, their records also go to the host, each type
 * under a class of its own.  This file knows the types: an array that
 * htf_write() reads, and a helper that fills it in.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/hashtable.h>
#include <linux/irq_work.h>
#include <linux/jhash.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/trace.h>
#include <linux/trace_events.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "ftrace.h"

#define HTF_IDS		(U16_MAX + 1)

/* Renewals that are remembered one by one; a power of two */
#define HTF_RENEWED	64

/* Read by htf_write() with interrupts off; written under htf_lock */
static struct htf_type **htf_types;

/* Numbers that records had and no type has */
static unsigned long *htf_wanted;

/* Numbers whose events the kernel forgot, and how many there were */
static u16 htf_renewed[HTF_RENEWED];
static u32 htf_nr_renewed;
static DEFINE_RAW_SPINLOCK(htf_lock);

/* The helper's own, and of who loads the module: under htf_mutex */
static DEFINE_MUTEX(htf_mutex);
static DEFINE_HASHTABLE(htf_known, 8);
static LIST_HEAD(htf_all);
static struct trace_array *htf_instance;
static bool htf_instance_made;

static void htf_helper(struct work_struct *work);
static DECLARE_WORK(htf_work, htf_helper);

/* What is known of a record whose type is not */
struct htf_type htf_untyped = {
	.class = {
		.name = "ftrace_record",
		.fields = htf_untyped.fields,
		.nr_fields = 5,
		.loglevel = 6,
	},
	.fields = {
		{ "common_type", HT_FIELD_U16 },
		{ "common_flags", HT_FIELD_U8, .flags = HT_FIELD_HEX },
		{ "common_preempt_count", HT_FIELD_U8 },
		{ "common_pid", HT_FIELD_S32 },
		{ "bytes", HT_FIELD_SEQUENCE, HT_FIELD_U8, HT_FIELD_HEX },
	},
	.ops = {
		{ HTF_PLAIN, .size = HTF_RECORD_MIN },
		{ HTF_COUNTED, .offset = HTF_RECORD_MIN },
	},
	.nr_ops = 2,
	.fixed = HTF_RECORD_MIN + 2,
	.least = HTF_RECORD_MIN,
	.all = LIST_HEAD_INIT(htf_untyped.all),
};

/* What htf_write() and htf_drain() ask -------------------------------------- */

/**
 * htf_type_get() - the type of a number
 * @id: in a record
 *
 * Context: any, with interrupts off until it is not used any more
 *
 * Return: NULL: not known yet
 */
notrace struct htf_type *htf_type_get(u16 id)
{
	/* Pairs with htf_store(). */
	return smp_load_acquire(&htf_types[id]);
}

/**
 * htf_type_wanted() - have the helper find out what a number means
 * @id: in a record that is about to be kept, which wakes the helper
 *
 * Context: any
 */
notrace void htf_type_wanted(u16 id)
{
	if (!test_bit(id, htf_wanted))
		set_bit(id, htf_wanted);
}

/**
 * htf_renewals() - how many events the kernel forgot so far
 *
 * Context: any
 */
notrace u32 htf_renewals(void)
{
	/* Pairs with htf_forget_event(). */
	return smp_load_acquire(&htf_nr_renewed);
}

/**
 * htf_type_renewed() - may a number mean something else than it did?
 * @id: the number
 * @since: htf_renewals() then
 *
 * Context: any
 */
notrace bool htf_type_renewed(u16 id, u32 since)
{
	u32 now = htf_renewals();

	if (now - since > HTF_RENEWED)
		return true;
	for (; since != now; since++) {
		if (READ_ONCE(htf_renewed[since % HTF_RENEWED]) == id)
			return true;
	}
	return false;
}

/**
 * htf_help() - wake the helper
 *
 * Context: any but an NMI
 */
void htf_help(void)
{
	queue_work(system_unbound_wq, &htf_work);
}

/* Types that go ------------------------------------------------------------ */

static void htf_reap(struct irq_work *work)
{
	htf_help();
}

static DEFINE_IRQ_WORK(htf_reaper, htf_reap);

/*
 * The kernel forgets an event, which is off: a kprobe is deleted, a module
 * unloaded.  The next one that is made may get its number.
 */
static int htf_forget_event(struct kprobe *p, struct pt_regs *regs)
{
	const struct trace_event *event =
		(void *)regs_get_kernel_argument(regs, 0);
	u16 id = event->type;
	struct htf_type *t;
	unsigned long flags;

	raw_spin_lock_irqsave(&htf_lock, flags);
	WRITE_ONCE(htf_renewed[htf_nr_renewed % HTF_RENEWED], id);
	/* Pairs with htf_renewals(). */
	smp_store_release(&htf_nr_renewed, htf_nr_renewed + 1);
	t = htf_types[id];
	WRITE_ONCE(htf_types[id], NULL);
	if (t && t != &htf_untyped)
		WRITE_ONCE(t->dead, true);
	raw_spin_unlock_irqrestore(&htf_lock, flags);
	irq_work_queue(&htf_reaper);
	return 0;
}

static struct kprobe htf_probe = {
	.symbol_name = "__unregister_trace_event",
	.pre_handler = htf_forget_event,
};

/* Unregister and free types: all, or those that are dead. */
static void htf_free_types(bool all)
{
	struct ht_class *classes[32];
	struct htf_type *t, *next;
	unsigned int n;

	do {
		LIST_HEAD(dead);

		n = 0;
		list_for_each_entry_safe(t, next, &htf_all, all) {
			if (n == ARRAY_SIZE(classes))
				break;
			if (!all && !READ_ONCE(t->dead))
				continue;
			hash_del(&t->hash);
			list_move(&t->all, &dead);
			classes[n++] = &t->class;
		}
		if (!n)
			return;
		/* This waits for who may still use them. */
		ht_kernel_unregister_all(classes, n);
		list_for_each_entry_safe(t, next, &dead, all)
			htf_type_free(t);
	} while (n == ARRAY_SIZE(classes));
}

/* Types that come ---------------------------------------------------------- */

/* Return: false: the number was another event's when @since was read */
static bool htf_store(u16 id, struct htf_type *t, u32 since)
{
	unsigned long flags;
	bool ok;

	raw_spin_lock_irqsave(&htf_lock, flags);
	ok = !htf_type_renewed(id, since);
	if (ok) {
		/* Pairs with htf_type_get(). */
		smp_store_release(&htf_types[id], t);
	}
	raw_spin_unlock_irqrestore(&htf_lock, flags);
	if (ok)
		clear_bit(id, htf_wanted);
	return ok;
}

static u32 htf_hash(const char *system, const char *name)
{
	return jhash(name, strlen(name), jhash(system, strlen(system), 0));
}

static bool htf_is_known(const char *system, const char *name)
{
	struct htf_type *t;

	hash_for_each_possible(htf_known, t, hash, htf_hash(system, name)) {
		if (!strcmp(t->class.name, name) &&
		    !strcmp(t->system, system) && !READ_ONCE(t->dead))
			return true;
	}
	return false;
}

/*
 * Find out about an event by its name.  If the host takes no more classes its
 * records are sent without types.
 */
static void htf_learn(const char *system, const char *name, bool wanted_only)
{
	u32 since = htf_renewals();
	struct htf_type *t;
	char path[256], *text;
	int ret;

	if (htf_is_known(system, name) ||
	    snprintf(path, sizeof(path), "events/%s/%s/format", system,
		     name) >= sizeof(path))
		return;
	text = htf_tracefs_read(path);
	if (!text)
		return;
	t = htf_type_parse(system, text);
	kvfree(text);
	if (IS_ERR(t)) {
		pr_warn_once("%s: error %ld: sent without types\n", path,
			     PTR_ERR(t));
		return;
	}
	if (htf_type_get(t->id) || (wanted_only && !test_bit(t->id, htf_wanted)))
		goto free;
	ret = ht_kernel_register(&t->class);
	if (ret) {
		pr_warn_once("%s: class: error %d: sent without types\n", path,
			     ret);
		htf_store(t->id, &htf_untyped, since);
		goto free;
	}
	list_add(&t->all, &htf_all);
	hash_add(htf_known, &t->hash, htf_hash(system, t->class.name));
	/* Nobody will say that it is dead if it is now. */
	if (!htf_store(t->id, t, since))
		WRITE_ONCE(t->dead, true);
	return;

free:
	htf_type_free(t);
}

/* A record may have asked just when the answer came. */
static bool htf_wants(void)
{
	unsigned long id;

	for_each_set_bit(id, htf_wanted, HTF_IDS) {
		if (!htf_type_get(id))
			return true;
		clear_bit(id, htf_wanted);
	}
	return false;
}

/* Each line of the file is "system:event". */
static void htf_learn_list(const char *path, bool wanted_only)
{
	char *text = htf_tracefs_read(path), *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		char *system = strsep(&line, ":");

		if (line)
			htf_learn(system, line, wanted_only);
		/* Thousands of files would be read, and events go meanwhile. */
		if (wanted_only && !htf_wants())
			break;
	}
	kvfree(text);
}

/*
 * First what is on, wanted or not: the rest of it comes soon.  An event that
 * is on elsewhere, or was for a moment, has to be looked for.
 */
static void htf_learn_all(void)
{
	u32 since = htf_renewals();
	unsigned long id;

	htf_learn_list("set_event", false);
	htf_learn_list("instances/" HTF_INSTANCE "/set_event", false);
	if (!htf_wants())
		return;
	htf_learn("ftrace", "function", true);
	htf_learn("ftrace", "print", true);
	if (htf_wants())
		htf_learn_list("available_events", true);
	for_each_set_bit(id, htf_wanted, HTF_IDS) {
		if (!htf_type_get(id))
			htf_store(id, &htf_untyped, since);
	}
}

static void htf_helper(struct work_struct *work)
{
	mutex_lock(&htf_mutex);
	htf_free_types(false);
	if (htf_wants())
		htf_learn_all();
	mutex_unlock(&htf_mutex);
	/* There may be much, and what came meanwhile be of another new type. */
	if (htf_export_drain())
		htf_help();
}

/* Neither a record, if the export is stopped, nor an event wakes it again. */
static void htf_helper_stop(void)
{
	unregister_kprobe(&htf_probe);
	irq_work_sync(&htf_reaper);
	cancel_work_sync(&htf_work);
}

/* ------------------------------------------------------------------------- */

static void htf_instance_get(void)
{
	htf_instance_made = !htf_tracefs_exists("instances/" HTF_INSTANCE
						"/set_event");
	htf_instance = htk_trace_array_get(HTF_INSTANCE);
	if (!htf_instance)
		pr_warn("cannot make the trace instance %s; others do as well\n",
			HTF_INSTANCE);
}

static void htf_instance_put(void)
{
	if (!htf_instance)
		return;
	trace_array_put(htf_instance);
	if (htf_instance_made && trace_array_destroy(htf_instance))
		pr_info("the trace instance %s is in use, and stays\n",
			HTF_INSTANCE);
}

static int __init hypertrace_ftrace_init(void)
{
	int ret = -ENOMEM;

	htf_types = vzalloc(array_size(HTF_IDS, sizeof(*htf_types)));
	htf_wanted = bitmap_zalloc(HTF_IDS, GFP_KERNEL);
	if (!htf_types || !htf_wanted)
		goto free;
	ret = htf_tracefs_init();
	if (ret)
		goto free;
	ret = htf_export_init();
	if (ret)
		goto tracefs;
	ret = ht_kernel_register(&htf_untyped.class);
	if (ret)
		goto export;
	ret = register_kprobe(&htf_probe);
	if (ret) {
		pr_err("%s: error %d: cannot learn of events that go\n",
		       htf_probe.symbol_name, ret);
		goto untyped;
	}
	ret = htf_history_init();
	if (ret)
		goto kprobe;
	htf_instance_get();
	/* What is on already, at best before its first record */
	mutex_lock(&htf_mutex);
	htf_learn_all();
	mutex_unlock(&htf_mutex);
	ret = htf_export_start(htf_history_wanted());
	if (!ret) {
		htf_history_send();
		return 0;
	}

	htf_history_exit();
kprobe:
	htf_helper_stop();
	htf_free_types(true);
	htf_instance_put();
untyped:
	ht_kernel_unregister(&htf_untyped.class);
export:
	htf_export_exit();
tracefs:
	htf_tracefs_exit();
free:
	bitmap_free(htf_wanted);
	vfree(htf_types);
	return ret;
}
module_init(hypertrace_ftrace_init);

static void __exit hypertrace_ftrace_exit(void)
{
	htf_export_stop();
	htf_helper_stop();
	/* Once more for what came last; nothing comes behind it. */
	do {
		if (htf_wants())
			htf_learn_all();
	} while (htf_export_drain());
	htf_export_exit();
	htf_history_exit();
	htf_free_types(true);
	ht_kernel_unregister(&htf_untyped.class);
	htf_instance_put();
	htf_tracefs_exit();
	bitmap_free(htf_wanted);
	vfree(htf_types);
}
module_exit(hypertrace_ftrace_exit);

MODULE_DESCRIPTION("hypertrace: what ftrace records as trace events");
MODULE_LICENSE("GPL");
