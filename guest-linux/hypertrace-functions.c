// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-functions: the kernel's functions, as trace events
 *
 *	insmod hypertrace-functions.ko entry='vfs_*,do_sys_open*'
 *	cd /sys/module/hypertrace_functions/parameters
 *	echo >entry
 *	echo 1000000 >least_ns
 *	echo 2 >most_depth
 *	echo 'ext4_*' >calls
 *
 * The host's settings functions.entry and so on are the same.
 *
 * An entry or exit is 8 bytes with its header, a call with its duration 12: a
 * function is told by the lower half of an address at its beginning, since
 * kernels and their modules are in one range of 4 GiB.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/fprobe.h>
#include <linux/kstrtox.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/trace_clock.h>
#include <linux/version.h>

#include "hypertrace-kernel.h"

#define FN_GLOBS_MAX	1024

HT_EVENT(function_entry, (x32, ip));
HT_EVENT(function_exit, (x32, ip));
HT_EVENT(function_call, (x32, ip), (u32, duration_ns));

static struct ht_class *const fn_classes[] = {
	&ht_class_function_entry,
	&ht_class_function_exit,
	&ht_class_function_call,
};

/* Guards what follows.  Taken inside the kernel's lock of parameters. */
static DEFINE_MUTEX(fn_mutex);
static bool fn_ready;

/* Of calls, which; 0: any.  The outermost one that is traced has depth 1. */
static unsigned int fn_least_ns, fn_least_depth, fn_most_depth;
static bool fn_limited;

/*
 * ht_trace(), but for the functions that the emit path itself calls, to have a
 * packet handed over: ftrace lets one level of those through.  They are the
 * tracer's, so they are no events, and none that were discarded.  An NMI there
 * is discarded, as everybody's is.
 *
 * Context: preemption off
 */
#define fn_trace(ident, ...)						\
do {									\
	unsigned long flags;						\
	struct ht_stream *s;						\
									\
	if (!ht_event_enabled(ident))					\
		break;							\
	s = ht_kernel_begin(&flags);					\
	if (!s)								\
		break;							\
	if (likely(!s->busy) || in_nmi())				\
		ht_emit_##ident(s, __VA_ARGS__);			\
	ht_kernel_end(flags);						\
} while (0)

/* Entries ----------------------------------------------------------------- */

static char fn_entry[FN_GLOBS_MAX], fn_except[FN_GLOBS_MAX];
static bool fn_entry_on;

/* Context: any, also NMIs; ftrace keeps it from interrupting itself */
static void notrace fn_on_entry(unsigned long ip, unsigned long parent_ip,
				struct ftrace_ops *ops,
				struct ftrace_regs *regs)
{
	fn_trace(function_entry, (u32)ip);
}

static struct ftrace_ops fn_ops = {
	.func = fn_on_entry,
};

/* Each glob of a list must be of some function. */
static int fn_set(const char *globs,
		  int (*set)(struct ftrace_ops *ops, unsigned char *buf,
			     int len, int reset))
{
	char copy[FN_GLOBS_MAX], *rest = copy, *glob;
	int ret = 0;

	strscpy(copy, globs, sizeof(copy));
	while (!ret && (glob = strsep(&rest, ", "))) {
		if (*glob)
			ret = set(&fn_ops, glob, strlen(glob), 0);
		if (ret)
			pr_err("no function that can be traced is called '%s'\n",
			       glob);
	}
	return ret;
}

/* Context: fn_mutex held */
static int fn_entry_apply(void)
{
	int ret = 0;

	if (fn_entry_on)
		unregister_ftrace_function(&fn_ops);
	fn_entry_on = false;
	/* Both are empty again. */
	ftrace_set_filter(&fn_ops, NULL, 0, 1);
	ftrace_set_notrace(&fn_ops, NULL, 0, 1);
	/* Without any pattern ftrace would take all functions. */
	if (!fn_entry[strspn(fn_entry, ", ")])
		return 0;
	ret = fn_set(fn_entry, ftrace_set_filter);
	if (!ret)
		ret = fn_set(fn_except, ftrace_set_notrace);
	if (!ret)
		ret = register_ftrace_function(&fn_ops);
	fn_entry_on = !ret;
	if (ret)
		*fn_entry = '\0';
	return ret;
}

/* Calls: entry and exit --------------------------------------------------- */

static char fn_calls[FN_GLOBS_MAX];

#ifdef CONFIG_FPROBE
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define fn_regs ftrace_regs
#else
#define fn_regs pt_regs
#endif

static bool fn_calls_on;

/* Instead of a call's beginning: its end is no event, either. */
#define FN_LEFT_OUT	U64_MAX

/* How many calls that are traced this one is in, as the kernel keeps them */
static unsigned int notrace fn_depth(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
	return current->curr_ret_depth;
#else
	const struct llist_node *node;
	unsigned int depth = 0;

	for (node = current->rethooks.first; node; node = node->next)
		depth++;
	return depth;
#endif
}

/* Return: 1: fprobe is not to look at its end. */
static noinline int notrace fn_on_limited_call(unsigned long ip, u64 *since)
{
	unsigned int depth = fn_depth() + 1;
	unsigned int most = READ_ONCE(fn_most_depth);

	if (most && depth > most)
		return 1;
	if (depth < READ_ONCE(fn_least_depth))
		*since = FN_LEFT_OUT;
	else if (READ_ONCE(fn_least_ns))
		*since = trace_clock_local();
	else
		fn_trace(function_entry, (u32)ip);
	return 0;
}

/*
 * With lockdep, fprobes before 6.14 call these on the way out of each call whose
 * end they look at, and so would for ever on the way out of these.
 */
static bool notrace fn_never_ends(unsigned long ip)
{
#if defined(CONFIG_PROVE_RCU) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	/* ftrace is called some bytes behind a function's beginning */
	return ip - (unsigned long)rcu_read_lock_any_held < 16 ||
	       ip - (unsigned long)rcu_lockdep_current_cpu_online < 16;
#else
	return false;
#endif
}

/* Return: 1: fprobe is not to look at its end. */
static int notrace fn_on_call(struct fprobe *fp, unsigned long ip,
			      unsigned long ret_ip, struct fn_regs *regs,
			      void *data)
{
	u64 *since = data;

	if (fn_never_ends(ip))
		return 1;
	*since = 0;
	if (unlikely(READ_ONCE(fn_limited)))
		return fn_on_limited_call(ip, since);
	fn_trace(function_entry, (u32)ip);
	return 0;
}

static void notrace fn_on_return(struct fprobe *fp, unsigned long ip,
				 unsigned long ret_ip, struct fn_regs *regs,
				 void *data)
{
	const u64 *since = data;
	u64 ns;

	if (!*since) {
		fn_trace(function_exit, (u32)ip);
		return;
	}
	if (*since == FN_LEFT_OUT)
		return;
	ns = trace_clock_local() - *since;
	if (ns >= READ_ONCE(fn_least_ns))
		fn_trace(function_call, (u32)ip, (u32)min_t(u64, ns, U32_MAX));
}

static struct fprobe fn_fprobe;

/* Context: fn_mutex held */
static int fn_calls_apply(void)
{
	int ret = 0;

	/* Waits until no function that is being traced has still to return. */
	if (fn_calls_on) {
		unregister_fprobe(&fn_fprobe);
		/* From 6.14 on a handler, with preemption off, may still run. */
		synchronize_rcu();
	}
	fn_calls_on = false;
	if (!fn_calls[strspn(fn_calls, ", ")])
		return 0;
	memset(&fn_fprobe, 0, sizeof(fn_fprobe));
	fn_fprobe.entry_handler = fn_on_call;
	fn_fprobe.exit_handler = fn_on_return;
	fn_fprobe.entry_data_size = sizeof(u64);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	/* Calls at a time; by default there is room for each function's. */
	fn_fprobe.nr_maxactive = 4096;
#endif
	ret = register_fprobe(&fn_fprobe, fn_calls,
			      *fn_except ? fn_except : NULL);
	fn_calls_on = !ret;
	if (ret) {
		pr_err("no function that can be traced is called '%s' (%d)\n",
		       fn_calls, ret);
		*fn_calls = '\0';
	}
	return ret;
}

static unsigned long fn_missed(void)
{
	return fn_calls_on ? fn_fprobe.nmissed : 0;
}
#else
static int fn_calls_apply(void)
{
	if (!*fn_calls)
		return 0;
	pr_err("this kernel has no fprobes: no exits, and no durations\n");
	*fn_calls = '\0';
	return -EOPNOTSUPP;
}

static unsigned long fn_missed(void)
{
	return 0;
}
#endif

/* Parameters -------------------------------------------------------------- */

static int fn_apply(void)
{
	int ret = fn_entry_apply(), ret2 = fn_calls_apply();

	return ret ?: ret2;
}

/*
 * What is set before the module is initialised is applied by that.
 *
 * Context: fn_mutex held
 */
static int fn_change(char *globs, const char *text)
{
	strscpy(globs, text, FN_GLOBS_MAX);
	strreplace(globs, '\n', '\0');
	if (!fn_ready)
		return 0;
	return globs == fn_entry ? fn_entry_apply() :
	       globs == fn_calls ? fn_calls_apply() : fn_apply();
}

static int fn_param_set(const char *text, const struct kernel_param *kp)
{
	int ret;

	if (strlen(text) >= FN_GLOBS_MAX)
		return -ENOSPC;
	mutex_lock(&fn_mutex);
	ret = fn_change(kp->arg, text);
	mutex_unlock(&fn_mutex);
	return ret;
}

static int fn_param_get(char *text, const struct kernel_param *kp)
{
	int n;

	mutex_lock(&fn_mutex);
	n = sysfs_emit(text, "%s\n", (const char *)kp->arg);
	mutex_unlock(&fn_mutex);
	return n;
}

static const struct kernel_param_ops fn_param_ops = {
	.set = fn_param_set,
	.get = fn_param_get,
};

module_param_cb(entry, &fn_param_ops, fn_entry, 0644);
MODULE_PARM_DESC(entry,
		 "functions whose entry is an event: patterns, separated by commas");
module_param_cb(calls, &fn_param_ops, fn_calls, 0644);
MODULE_PARM_DESC(calls,
		 "functions whose entry and exit are events: one pattern");
module_param_cb(except, &fn_param_ops, fn_except, 0644);
MODULE_PARM_DESC(except, "functions that are none of these: patterns");

/* Context: fn_mutex held */
static int fn_limit_change(unsigned int *limit, const char *text)
{
	int ret = kstrtouint(text, 0, limit);

	WRITE_ONCE(fn_limited, fn_least_ns || fn_least_depth || fn_most_depth);
	return ret;
}

static int fn_limit_set(const char *text, const struct kernel_param *kp)
{
	int ret;

	mutex_lock(&fn_mutex);
	ret = fn_limit_change(kp->arg, text);
	mutex_unlock(&fn_mutex);
	return ret;
}

static const struct kernel_param_ops fn_limit_ops = {
	.set = fn_limit_set,
	.get = param_get_uint,
};

module_param_cb(least_ns, &fn_limit_ops, &fn_least_ns, 0644);
MODULE_PARM_DESC(least_ns,
		 "of calls: one event, at the exit, if it took at least so long; 0: both");
module_param_cb(least_depth, &fn_limit_ops, &fn_least_depth, 0644);
MODULE_PARM_DESC(least_depth,
		 "of calls: those in at least so many that are traced, with itself");
module_param_cb(most_depth, &fn_limit_ops, &fn_most_depth, 0644);
MODULE_PARM_DESC(most_depth,
		 "of calls: those in at most so many that are traced, with itself; 0: any");

static int fn_missed_get(char *text, const struct kernel_param *kp)
{
	int n;

	mutex_lock(&fn_mutex);
	n = sysfs_emit(text, "%lu\n", fn_missed());
	mutex_unlock(&fn_mutex);
	return n;
}

static const struct kernel_param_ops fn_missed_ops = {
	.get = fn_missed_get,
};

module_param_cb(missed, &fn_missed_ops, NULL, 0444);
MODULE_PARM_DESC(missed,
		 "calls that fprobe left out: too many at a time, or called by itself");

/* What the host sets ------------------------------------------------------ */

static unsigned int *fn_limit(const char *name)
{
	return !strcmp(name, "least_ns") ? &fn_least_ns :
	       !strcmp(name, "least_depth") ? &fn_least_depth :
	       !strcmp(name, "most_depth") ? &fn_most_depth : NULL;
}

static char *fn_globs(const char *name)
{
	return !strcmp(name, "entry") ? fn_entry :
	       !strcmp(name, "calls") ? fn_calls :
	       !strcmp(name, "except") ? fn_except : NULL;
}

/* What stays as it is costs nothing: patching the kernel's text does. */
static int fn_host_set(const char *name, const char *value)
{
	unsigned int *limit = fn_limit(name);
	char *globs = fn_globs(name);
	int ret = -EINVAL;

	mutex_lock(&fn_mutex);
	if (limit)
		ret = fn_limit_change(limit, value);
	else if (globs && strlen(value) >= FN_GLOBS_MAX)
		ret = -ENOSPC;
	else if (globs)
		ret = strcmp(globs, value) ? fn_change(globs, value) : 0;
	mutex_unlock(&fn_mutex);
	return ret;
}

static struct ht_settings fn_settings = {
	.owner = "functions",
	.set = fn_host_set,
};

static int __init fn_init(void)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(fn_classes) && !ret; i++)
		ret = ht_kernel_register(fn_classes[i]);
	mutex_lock(&fn_mutex);
	if (!ret)
		ret = fn_apply();
	if (ret) {
		*fn_entry = '\0';
		*fn_calls = '\0';
		fn_apply();
	}
	fn_ready = !ret;
	mutex_unlock(&fn_mutex);
	if (ret) {
		ftrace_free_filter(&fn_ops);
		ht_kernel_unregister_all(fn_classes, ARRAY_SIZE(fn_classes));
	} else {
		ht_kernel_settings_add(&fn_settings);
	}
	return ret;
}
module_init(fn_init);

static void __exit fn_exit(void)
{
	ht_kernel_settings_remove(&fn_settings);
	/* A write to a parameter from now on must not register anything. */
	mutex_lock(&fn_mutex);
	fn_ready = false;
	*fn_entry = '\0';
	*fn_calls = '\0';
	fn_apply();
	mutex_unlock(&fn_mutex);
	ftrace_free_filter(&fn_ops);
	ht_kernel_unregister_all(fn_classes, ARRAY_SIZE(fn_classes));
}
module_exit(fn_exit);

MODULE_DESCRIPTION("hypertrace: the kernel's functions as trace events");
MODULE_LICENSE("GPL");
