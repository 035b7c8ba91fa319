// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: functions of the kernel as trace events
 *
 *	echo 'entry:vfs_*,entry:do_sys_open*,!vfs_fsync*' >functions
 *	echo 'calls:ext4_*,least_ns=1000000,most_depth=1' >functions
 *	echo >functions
 *
 * The module parameter "functions" selects functions and calls; an empty text
 * selects none.  The host's setting "functions" has the same syntax.  The
 * setting can select only functions and calls that the parameter selects.
 *
 * A call is two events, an entry and an exit, of 8 bytes each, including a
 * short header.  With least_ns, a call is instead a single event at its end
 * with the call's duration, of 12 bytes in all.  Each event has the lower 32
 * bits of an address at the start of the function.  They identify the function,
 * since a kernel and its modules lie within 4 GiB.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/fprobe.h>
#include <linux/glob.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
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
#include <linux/workqueue.h>

#include "hypertrace-kernel.h"
#include "sources.h"

HT_EVENT(function_entry, (x32, ip));
HT_EVENT(function_exit, (x32, ip));
HT_EVENT(function_call, (x32, ip), (u32, duration_ns));

static struct ht_class *const fn_classes[] = {
	&ht_class_function_entry,
	&ht_class_function_exit,
	&ht_class_function_call,
};

/**
 * struct fn_limits - limits that select calls; 0: no limit
 * @least_ns: shortest duration, in ns; a call is then one event, at its exit
 * @least_depth: report only calls nested at least this deep in traced calls
 *               (outermost = 1)
 * @most_depth: report only calls nested at most this deep
 */
struct fn_limits {
	unsigned int least_ns;
	unsigned int least_depth;
	unsigned int most_depth;
};

/**
 * struct fn_set - a selection of functions and calls
 * @bound: while a setting of the host is parsed: the parameter's text, which
 *         limits the setting; while the parameter is parsed: NULL
 * @ops: its filter holds the functions whose entries are events
 * @entry: the set selects functions whose entries are events
 * @calls: pattern of the functions whose calls are events; empty: no function
 * @except: pattern of functions that are excluded from @calls
 * @excess: "!PATTERN" excludes a second pattern, for which @except has no room;
 *          an error only if @calls is not empty
 * @limits: limits of calls
 */
struct fn_set {
	const char *bound;
	struct ftrace_ops ops;
	bool entry;
	char calls[HT_SELECT_MAX];
	char except[HT_SELECT_MAX];
	bool excess;
	struct fn_limits limits;
};

/*
 * Protects the variables from here to fn_calls_on.  fn_now is the set in use;
 * the other one of fn_sets is free for parsing a new text.
 */
static DEFINE_MUTEX(fn_mutex);
static bool fn_ready;
/*
 * fn_text: the parameter; fn_request: the host's setting that was last applied
 * or refused
 */
static char fn_text[HT_SELECT_MAX], fn_request[HT_SELECT_MAX];
static struct fn_set fn_sets[2];
static struct fn_set *fn_now = &fn_sets[0];
static bool fn_entry_on, fn_calls_on;

/*
 * Copy of the limits of fn_now, for the handlers of calls; written only while
 * no handler is attached.  fn_limited: any limit is set
 */
static struct fn_limits fn_limits;
static bool fn_limited;

/*
 * As ht_trace(), but ignore functions that the emit path itself calls when it
 * hands over a packet: their events are neither emitted nor counted as
 * discarded.  ftrace calls the handler for these functions, and the stream is
 * busy then.  The stream is also busy if an NMI has interrupted the emission of
 * an event: then count the NMI's event as discarded.
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

/* Context: any, also NMIs; ftrace prevents recursion */
static void notrace fn_on_entry(unsigned long ip, unsigned long parent_ip,
				struct ftrace_ops *ops,
				struct ftrace_regs *regs)
{
	fn_trace(function_entry, (u32)ip);
}

/* Calls: entry and exit --------------------------------------------------- */

#ifdef CONFIG_FPROBE
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define fn_regs ftrace_regs
#else
#define fn_regs pt_regs
#endif

/* Stored instead of a call's start time if the call must not be reported */
#define FN_LEFT_OUT	U64_MAX

/*
 * Number of traced calls that enclose the present call in the same task,
 * including calls that other users of the kernel's return hooks trace
 */
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

/* Return: 1 if fprobe should ignore the end of the call. */
static noinline int notrace fn_on_limited_call(unsigned long ip, u64 *since)
{
	unsigned int depth = fn_depth() + 1;

	if (fn_limits.most_depth && depth > fn_limits.most_depth)
		return 1;
	if (depth < fn_limits.least_depth)
		*since = FN_LEFT_OUT;
	else if (fn_limits.least_ns)
		*since = trace_clock_local();
	else
		fn_trace(function_entry, (u32)ip);
	return 0;
}

/*
 * Check for functions that fprobe before 6.14 calls itself, with
 * CONFIG_PROVE_RCU, when a traced call ends.  If the ends of these calls were
 * traced, the handler would recurse without end.
 */
static bool notrace fn_never_ends(unsigned long ip)
{
#if defined(CONFIG_PROVE_RCU) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	/*
	 * @ip is the address of the instruction that ftrace has patched, near
	 * the start of the function: compare with the first 16 bytes.
	 */
	return ip - (unsigned long)rcu_read_lock_any_held < 16 ||
	       ip - (unsigned long)rcu_lockdep_current_cpu_online < 16;
#else
	return false;
#endif
}

/* Return: 1 if fprobe should ignore the end of the call. */
static int notrace fn_on_call(struct fprobe *fp, unsigned long ip,
			      unsigned long ret_ip, struct fn_regs *regs,
			      void *data)
{
	u64 *since = data;

	if (fn_never_ends(ip))
		return 1;
	*since = 0;
	if (unlikely(fn_limited))
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
	if (ns >= fn_limits.least_ns)
		fn_trace(function_call, (u32)ip, (u32)min_t(u64, ns, U32_MAX));
}

static struct fprobe fn_fprobe;

/* Context: fn_mutex held, fn_calls_on is false */
static int fn_calls_attach(const struct fn_set *set)
{
	memset(&fn_fprobe, 0, sizeof(fn_fprobe));
	fn_fprobe.entry_handler = fn_on_call;
	fn_fprobe.exit_handler = fn_on_return;
	fn_fprobe.entry_data_size = sizeof(u64);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	/* Maximum number of calls in progress; the default is too low. */
	fn_fprobe.nr_maxactive = 4096;
#endif
	return register_fprobe(&fn_fprobe, set->calls,
			       *set->except ? set->except : NULL);
}

/* Context: fn_mutex held */
static void fn_calls_detach(void)
{
	unregister_fprobe(&fn_fprobe);
	/*
	 * From 6.14 on, unregister_fprobe() may return while a handler is
	 * running.  Handlers run with preemption off, so RCU waits for them.
	 */
	synchronize_rcu();
}

static unsigned long fn_missed(void)
{
	return fn_calls_on ? fn_fprobe.nmissed : 0;
}

#define FN_HAS_CALLS	true
#else
static int fn_calls_attach(const struct fn_set *set)
{
	return -EOPNOTSUPP;
}

static void fn_calls_detach(void)
{
}

static unsigned long fn_missed(void)
{
	return 0;
}

#define FN_HAS_CALLS	false
#endif

/* Selection --------------------------------------------------------------- */

/* Free the filters of @ops, and reset @ops, in which ftrace leaves pointers. */
static void fn_free_ops(struct ftrace_ops *ops)
{
	ftrace_free_filter(ops);
	memset(ops, 0, sizeof(*ops));
	ops->func = fn_on_entry;
}

/*
 * Check whether a pattern matches any function that can be traced.
 *
 * Context: fn_mutex held
 *
 * Return: 0; -EINVAL: no function; or another error of ftrace_set_filter().
 */
static int fn_check(char *pattern)
{
	static struct ftrace_ops check;
	int ret = ftrace_set_filter(&check, pattern, strlen(pattern), 1);

	fn_free_ops(&check);
	return ret;
}

/*
 * Parse a limit of calls.  If a limit is given several times, also in both the
 * parameter and the host's setting, the strictest number applies.
 */
static int fn_parse_limit(struct fn_set *set, const char *name,
			  const char *value)
{
	unsigned int *most = &set->limits.most_depth;
	unsigned int *limit =
		!strcmp(name, "least_ns") ? &set->limits.least_ns :
		!strcmp(name, "least_depth") ? &set->limits.least_depth :
		!strcmp(name, "most_depth") ? most : NULL;
	unsigned int number;
	int ret = limit ? kstrtouint(value, 0, &number) : -EINVAL;

	if (!ret)
		*limit = limit == most ? min_not_zero(*most, number) :
					 max(*limit, number);
	else
		pr_err("'%s=%s': the name must be least_ns, least_depth or most_depth, the value 0 to 4294967295\n",
		       name, value);
	return ret;
}

/*
 * Store a pattern in @to, which is fn_set.calls or fn_set.except.  Fail if @to
 * has a pattern already, since fprobe takes only one of each kind.
 */
static int fn_parse_calls(char *pattern, char *to, const char *what)
{
	if (!FN_HAS_CALLS) {
		pr_err("'calls:%s': calls need a kernel with CONFIG_FPROBE\n",
		       pattern);
		return -EOPNOTSUPP;
	}
	if (*to) {
		pr_err("'%s%s': only one pattern of this kind is possible, and '%s' is already given\n",
		       what, pattern, to);
		return -EEXIST;
	}
	strscpy(to, pattern, HT_SELECT_MAX);
	return fn_check(pattern);
}

static int fn_parse_entry(struct fn_set *set, char *pattern, bool on)
{
	set->entry |= on;
	return (on ? ftrace_set_filter : ftrace_set_notrace)
	       (&set->ops, pattern, strlen(pattern), 0);
}

/**
 * struct fn_cover - a word of the host's setting
 * @word: "entry:PATTERN" or "calls:PATTERN"
 * @covered: a word of the module's parameter selects all that @word selects
 */
struct fn_cover {
	const char *word;
	bool covered;
};

/*
 * Set @covered if @bound, a word of the parameter, selects all functions that
 * the host's word selects: if the words are equal, or if @bound matches the
 * text of the host's word as a pattern, under two conditions.  If the host's
 * word has wildcards, @bound must have no wildcard but "*".  The host's word
 * must not have "[" or "\", since literals of @bound could match a part of such
 * a wildcard.
 */
static int fn_cover_word(void *arg, char *bound)
{
	struct fn_cover *c = arg;

	c->covered |= !strcmp(bound, c->word) ||
		      (glob_match(bound, c->word) && !strpbrk(c->word, "[\\") &&
		       (!strpbrk(c->word, "*?") || !strpbrk(bound, "?[\\")));
	return 0;
}

static int fn_check_bound(const struct fn_set *set, const char *word)
{
	struct fn_cover c = { .word = word };
	int ret = ht_for_each_word(set->bound, fn_cover_word, &c);

	if (ret || c.covered)
		return ret;
	pr_err("'%s': the parameter functions does not select all functions with this pattern\n",
	       word);
	return -EPERM;
}

/*
 * Parse "entry:PATTERN" or "calls:PATTERN", which select functions, or the same
 * after a "!", which excludes them.  "!PATTERN" excludes functions from both.
 * "LIMIT=NUMBER" sets a limit.
 */
static int fn_parse_word(void *arg, char *word)
{
	struct fn_set *set = arg;
	bool on = *word != '!';
	char *pattern = word + !on, *limit = strchr(word, '=');
	bool entry = str_has_prefix(pattern, "entry:");
	bool calls = str_has_prefix(pattern, "calls:");
	int ret = 0;

	if (limit) {
		*limit = '\0';
		return fn_parse_limit(set, word, limit + 1);
	}
	if (entry || calls)
		pattern += strlen("entry:");
	if (!*pattern || (on && !entry && !calls)) {
		pr_err("'%s': must be entry:PATTERN, calls:PATTERN, or one of them or a PATTERN after '!'\n",
		       word);
		return -EINVAL;
	}
	if (on && set->bound)
		ret = fn_check_bound(set, word);
	if (!ret && !calls)
		ret = fn_parse_entry(set, pattern, on);
	if (!ret && calls)
		ret = fn_parse_calls(pattern, on ? set->calls : set->except,
				     on ? "calls:" : "!calls:");
	else if (!ret && !on && !entry && *set->except)
		set->excess = true;
	else if (!ret && !on && !entry)
		strscpy(set->except, pattern, sizeof(set->except));
	if (ret == -EINVAL)
		pr_err("'%s': matches no function that can be traced, see tracefs's available_filter_functions\n",
		       word);
	return ret;
}

/*
 * Parse a word of the parameter if it is an exclusion or a limit; ignore all
 * others.
 */
static int fn_parse_bound(void *set, char *word)
{
	return *word == '!' || strchr(word, '=') ? fn_parse_word(set, word) : 0;
}

/*
 * Parse @text into @set.  If there is a @bound, the host's @text can select
 * only functions that @bound selects, and the exclusions and limits of @bound
 * apply as well.
 *
 * Context: fn_mutex held; @set is not in use
 */
static int fn_parse(struct fn_set *set, const char *text, const char *bound)
{
	int ret = 0;

	fn_free_ops(&set->ops);
	memset(set, 0, sizeof(*set));
	set->ops.func = fn_on_entry;
	if (bound)
		ret = ht_for_each_word(bound, fn_parse_bound, set);
	set->bound = bound;
	if (!ret)
		ret = ht_for_each_word(text, fn_parse_word, set);
	if (ret || !set->excess || !*set->calls)
		return ret;
	pr_err("calls:%s: only one pattern can be excluded from calls\n",
	       set->calls);
	return -EINVAL;
}

/* Context: fn_mutex held */
static void fn_attach(bool entry, bool calls)
{
	int ret = 0;

	if (fn_entry_on && !entry)
		unregister_ftrace_function(&fn_now->ops);
	else if (entry && !fn_entry_on)
		ret = register_ftrace_function(&fn_now->ops);
	if (ret)
		pr_warn("entries are not traced: error %d\n", ret);
	fn_entry_on = entry && !ret;

	ret = 0;
	if (fn_calls_on && !calls)
		fn_calls_detach();
	else if (calls && !fn_calls_on)
		ret = fn_calls_attach(fn_now);
	if (ret)
		pr_warn("calls are not traced: error %d\n", ret);
	fn_calls_on = calls && !ret;
}

/*
 * Attach the handler of entries if fn_now selects entries and the host wants
 * function_entry; else detach it.  Attach the handler of calls if fn_now
 * selects calls and the host wants at least one of the three classes; else
 * detach it.
 *
 * Context: fn_mutex held
 */
static void fn_switch(void)
{
	fn_attach(fn_now->entry && ht_class_enabled(&ht_class_function_entry),
		  *fn_now->calls &&
		  (ht_class_enabled(&ht_class_function_entry) ||
		   ht_class_enabled(&ht_class_function_exit) ||
		   ht_class_enabled(&ht_class_function_call)));
}

/* Get the element of fn_sets that is not in use.  Context: fn_mutex held */
static struct fn_set *fn_next(void)
{
	return &fn_sets[fn_now == &fn_sets[0]];
}

/*
 * Take the set that fn_next() returns into use: detach the handlers, copy the
 * limits, and attach the handlers that the new set needs.
 *
 * Context: fn_mutex held
 */
static void fn_use_next(void)
{
	struct fn_set *next = fn_next();

	fn_attach(false, false);
	fn_now = next;
	fn_limits = next->limits;
	fn_limited = fn_limits.least_ns || fn_limits.least_depth ||
		     fn_limits.most_depth;
	fn_switch();
}

/*
 * Apply a new text of the parameter.  If the text is wrong, change nothing.  If
 * the host's setting is wrong, or selects functions that the text does not
 * allow, select no function.
 *
 * Context: fn_mutex held
 */
static int fn_select(const char *text)
{
	int ret = fn_parse(fn_next(), text, NULL);

	if (ret)
		return ret;
	if (*fn_request && fn_parse(fn_next(), fn_request, text)) {
		pr_warn("no function is traced: the host's setting functions=%s is refused\n",
			fn_request);
		fn_parse(fn_next(), "", NULL);
	}
	fn_use_next();
	return 0;
}

/*
 * If the host's setting has changed, apply it.  If a part of the setting is
 * wrong or not allowed by the parameter, refuse the whole setting: the
 * selection does not change.  Without a setting, the parameter alone selects.
 *
 * Context: fn_mutex held
 */
static void fn_follow_host(void)
{
	static char request[HT_SELECT_MAX];

	ht_kernel_setting("functions", request, sizeof(request));
	if (!strcmp(request, fn_request))
		return;
	strscpy(fn_request, request, sizeof(fn_request));
	if (fn_parse(fn_next(), *request ? request : fn_text,
		     *request ? fn_text : NULL))
		pr_warn("the host's setting functions=%s is refused\n", request);
	else
		fn_use_next();
}

static void fn_changed(struct work_struct *work)
{
	mutex_lock(&fn_mutex);
	if (fn_ready) {
		fn_follow_host();
		fn_switch();
	}
	mutex_unlock(&fn_mutex);
}

static DECLARE_WORK(fn_work, fn_changed);
static struct ht_kernel_watch fn_watch = {
	.work = &fn_work,
};

/* Parameters -------------------------------------------------------------- */

/*
 * Set the parameter "functions".  An argument of insmod is only stored here,
 * and fn_init() applies it.
 */
static int fn_functions_set(const char *text, const struct kernel_param *kp)
{
	int ret;

	if (strlen(text) >= HT_SELECT_MAX)
		return -ENOSPC;
	mutex_lock(&fn_mutex);
	if (fn_ready) {
		ret = fn_select(text);
		if (!ret)
			strscpy(fn_text, text, sizeof(fn_text));
	} else {
		ret = ht_set_early(fn_text, text);
	}
	mutex_unlock(&fn_mutex);
	return ret;
}

static int fn_functions_get(char *text, const struct kernel_param *kp)
{
	int n;

	mutex_lock(&fn_mutex);
	n = sysfs_emit(text, "%s\n", strim(fn_text));
	mutex_unlock(&fn_mutex);
	return n;
}

static const struct kernel_param_ops fn_functions_ops = {
	.set = fn_functions_set,
	.get = fn_functions_get,
};

module_param_cb(functions, &fn_functions_ops, NULL, 0644);
MODULE_PARM_DESC(functions,
		 "functions that may be events: [!]entry:PATTERN, [!]calls:PATTERN, !PATTERN, least_ns=N, least_depth=N, most_depth=N");

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
		 "calls that fprobe missed: too many in progress, or made by fprobe itself");

/*
 * Detach all handlers and unregister the classes.  While fn_ready is false,
 * writing the parameter attaches no handler.
 */
void fn_exit(void)
{
	ht_kernel_unwatch(&fn_watch);
	mutex_lock(&fn_mutex);
	fn_ready = false;
	fn_attach(false, false);
	fn_free_ops(&fn_sets[0].ops);
	fn_free_ops(&fn_sets[1].ops);
	mutex_unlock(&fn_mutex);
	cancel_work_sync(&fn_work);
	ht_kernel_unregister(fn_classes, ARRAY_SIZE(fn_classes));
}

int fn_init(void)
{
	int ret;

	ret = ht_kernel_register(fn_classes, ARRAY_SIZE(fn_classes));
	if (ret)
		return ret;
	ht_kernel_watch(&fn_watch);
	ht_kernel_sync();
	mutex_lock(&fn_mutex);
	ht_kernel_setting("functions", fn_request, sizeof(fn_request));
	ret = fn_select(fn_text);
	fn_ready = !ret;
	mutex_unlock(&fn_mutex);
	if (ret)
		fn_exit();
	return ret;
}
