// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: events of the kernel itself
 *
 * The guest library's core runs here with the driver as its port.  Each CPU has
 * a stream if the device has enough.  Interrupts are off from reserve to
 * commit.  If an NMI or a probe interrupts the emit path, it finds the stream
 * busy, and its event is discarded.  The emit path takes no lock and submits
 * nothing, since an event can occur under any lock.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "hypertrace-kernel.h"
#include "htk.h"

/*
 * Pause in ms before the next attempt to register classes, to open streams, or
 * to read the enable bytes and settings
 */
#define HTK_EMIT_RETRY_MS	500

static int kernel_device = -1;
module_param(kernel_device, int, 0444);
MODULE_PARM_DESC(kernel_device,
		 "N of the /dev/hypertraceN that takes kernel events; -1: the first device");

struct htk_cpu {
	struct ht_stream stream;
	bool open;
};

/**
 * struct htk_emit - the kernel's streams of one device
 * @h: the device
 * @cpus: a stream for each possible CPU; not all of them are open
 * @streams: number of streams opened so far
 * @short_of_streams: the log already has the warning about missing streams
 */
struct htk_emit {
	struct htk *h;
	struct htk_cpu __percpu *cpus;
	unsigned int streams;
	bool short_of_streams;
};

/**
 * struct htk_class - a class of a module
 * @cls: the class; its @id is 0 until the host has registered it
 * @refused: the library or the host of htk_emit_device refused the class
 */
struct htk_class {
	struct ht_class *cls;
	bool refused;
};

/*
 * The stream of each CPU, and the stream that counts the events of CPUs without
 * a stream.  Emitters read these pointers with interrupts off, and
 * htk_emit_detach() waits for such emitters.
 */
DEFINE_PER_CPU(struct ht_stream *, ht_kernel_stream);
EXPORT_PER_CPU_SYMBOL_GPL(ht_kernel_stream);
static struct ht_stream *htk_emit_first;

/*
 * Number of discarded events that are not in the count of an open stream,
 * because the kernel had no stream (for example, the machine was suspended, or
 * programs had all streams), or because the host had closed the stream that
 * counted them.  htk_emit_report_missed() adds the number to the count of
 * htk_emit_first or, without this stream, sends it in a message.
 */
static atomic64_t htk_missed;
static bool htk_emit_paused;

/* CPUs that get a stream: present at the load of the module, or online later */
static struct cpumask htk_emit_cpus;

/*
 * htk_emit_exchange is held while the kernel's classes are registered and its
 * streams are opened or closed.  It protects htk_emit and, while a device takes
 * the events, the ids of classes.
 *
 * htk_emit_mutex protects htk_sources, htk_watches and htk_classes.  It is not
 * held during an exchange with the host, and it nests inside htk_emit_exchange.
 * htk_emit_device is written with both held.
 *
 * The callbacks of CPU hot-plug and of module notifiers, which run with locks
 * of the kernel held, do not take htk_emit_exchange: they queue htk_emit_work,
 * and may take htk_emit_mutex.
 */
static DEFINE_MUTEX(htk_emit_exchange);
static DEFINE_MUTEX(htk_emit_mutex);
static LIST_HEAD(htk_sources);
static LIST_HEAD(htk_watches);
static struct htk_emit *htk_emit;
static struct htk *htk_emit_device;
/* The last settings that were read, "NAME=VALUE NAME=VALUE" (htk_emit_mutex) */
static char htk_emit_settings[HT_SETTINGS_MAX + 1];
static struct htk_class htk_classes[HT_CLASSES_MAX];
static unsigned int htk_nr_classes;

static void htk_emit_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(htk_emit_work, htk_emit_work_fn);

static void htk_emit_kick(void)
{
	mod_delayed_work(htk_wq, &htk_emit_work, 0);
}

/* Enable bytes ------------------------------------------------------------ */

/*
 * Return -EPERM if the kernel is locked down in confidentiality mode, in which
 * not even root may trace the kernel; else 0
 */
static int htk_locked_down(void)
{
	return security_locked_down(LOCKDOWN_TRACEFS);
}

/*
 * Copy the enable bytes of htk_emit_device into the classes, and notify the
 * watches.  Without this device, or if the kernel is locked down, switch all
 * classes off.
 *
 * Queue the work of a watch instead of calling its function, which may take the
 * lock of CPU hot-plug.
 *
 * Context: htk_emit_mutex held
 */
static void htk_emit_switch(void)
{
	struct htk *h = htk_emit_device;
	bool open = h && htk_nr_classes && !htk_locked_down();
	struct ht_kernel_watch *w;
	unsigned int i;

	for (i = 0; i < htk_nr_classes; i++) {
		struct ht_class *cls = htk_classes[i].cls;

		WRITE_ONCE(cls->state, open && cls->id &&
			   htk_enable_get(h, cls->id) ? HT_ENABLE_ON : 0);
	}
	list_for_each_entry(w, &htk_watches, list)
		schedule_work(w->work);
}

/* Streams ----------------------------------------------------------------- */

/*
 * Report htk_missed to the host: in the count of discarded events of @first,
 * which may be in use, or by a message if @first is NULL.
 *
 * Context: htk_emit_exchange held; h->control not held
 */
static void htk_emit_report_missed(struct htk *h, struct ht_stream *first)
{
	u64 missed = atomic64_xchg(&htk_missed, 0);
	int ret = 0;

	if (first)
		atomic64_add(missed, (atomic64_t *)&first->lost_nested);
	else if (missed)
		ret = ht_tell_discarded(&h->core, missed);
	/* After a timeout, assume that the host executes the message later. */
	if (ret && ret != -ETIMEDOUT)
		atomic64_add(missed, &htk_missed);
}

/* Context: htk_emit_exchange held; @cpu may be emitting */
static int htk_emit_open_one(struct htk_emit *e, unsigned int cpu)
{
	struct htk_cpu *c = per_cpu_ptr(e->cpus, cpu);
	char name[HT_STREAM_NAME_MAX];
	struct ht_stream_params params = {
		.stream = HT_STREAM_ANY,
		.vcpu = cpu,
		.name = name,
	};
	int ret;

	if (c->open)
		return 0;
	if (e->streams == htk_origin_kernel_streams(e->h))
		return -ENOSPC;
	snprintf(name, sizeof(name), "kernel/%u", cpu);
	ret = ht_stream_open(&e->h->core, &c->stream, &params);
	if (ret)
		return ret;
	c->open = true;
	if (!e->streams++)
		smp_store_release(&htk_emit_first, &c->stream);
	/* Pairs with the address dependency in ht_kernel_begin(). */
	smp_store_release(per_cpu_ptr(&ht_kernel_stream, cpu), &c->stream);
	return 0;
}

/*
 * Open the streams that are missing.  Stop at the first error: if the host does
 * not answer, each further attempt would wait for another timeout.
 *
 * Return: true if the caller should retry later: after an error, while the
 * kernel has fewer streams than it may have.  For example, programs have
 * streams that are reserved for the kernel, or the host did not answer.
 *
 * Context: htk_emit_exchange held
 */
static bool htk_emit_open_all(struct htk_emit *e)
{
	unsigned int cpu;
	int ret = 0;

	for_each_cpu(cpu, &htk_emit_cpus) {
		ret = htk_emit_open_one(e, cpu);
		if (ret)
			break;
	}
	if (!ret)
		return false;
	if (!e->short_of_streams)
		dev_warn(e->h->dev,
			 "only %u kernel streams for %u CPUs (error %d): events of the other CPUs are discarded\n",
			 e->streams, cpumask_weight(&htk_emit_cpus), ret);
	e->short_of_streams = true;
	return e->streams < htk_origin_kernel_streams(e->h);
}

static void htk_emit_nothing(void *unused)
{
}

/*
 * Wait until no emitter uses a stream pointer that it read before this call.
 *
 * Emitters have interrupts off, so an interrupt on each CPU waits for them.
 * RCU would not wait for emitters in the idle loop.  The lock of CPU hot-plug
 * is held because a CPU that is going offline emits but does not get the
 * interrupt.
 */
static void htk_emit_wait(void)
{
	cpus_read_lock();
	on_each_cpu(htk_emit_nothing, NULL, true);
	cpus_read_unlock();
}

/*
 * Clear the pointers by which emitters find the streams, and wait until no
 * emitter uses a stream.
 *
 * Context: htk_emit_exchange held
 *
 * Return: the stream that counted events of CPUs without a stream, or NULL.
 */
static struct ht_stream *htk_emit_detach(void)
{
	struct ht_stream *first = htk_emit_first;
	unsigned int cpu;

	WRITE_ONCE(htk_emit_first, NULL);
	for_each_possible_cpu(cpu)
		WRITE_ONCE(*per_cpu_ptr(&ht_kernel_stream, cpu), NULL);
	htk_emit_wait();
	return first;
}

/*
 * Before a stream is closed, store its count of discarded events in the ring,
 * where the host reads the count.  If the host has closed the stream, it does
 * not read the ring: add the events that it was not told to htk_missed.
 */
static void htk_emit_push(struct ht_stream *s)
{
	u64 lost;

	if (!ht_is_closed(s))
		ht_stream_push(s);
	lost = s->lost + READ_ONCE(s->lost_nested);
	atomic64_add(lost - s->told, &htk_missed);
}

/*
 * Close the kernel's streams of all CPUs, and free htk_emit.
 *
 * Context: htk_emit_exchange held
 */
static void htk_emit_stop(void)
{
	struct htk_emit *e = htk_emit;
	struct ht_stream *first;
	unsigned int cpu;

	if (!e)
		return;
	first = htk_emit_detach();
	htk_emit_report_missed(e->h, first);
	for_each_possible_cpu(cpu) {
		struct htk_cpu *c = per_cpu_ptr(e->cpus, cpu);

		if (c->open)
			htk_emit_push(&c->stream);
	}
	htk_close_owner(&e->h->kernel);
	free_percpu(e->cpus);
	kfree(e);
	htk_emit = NULL;
}

/* Context: htk_emit_exchange held */
static int htk_emit_start(struct htk *h)
{
	struct htk_emit *e;

	if (htk_emit)
		return 0;
	e = kzalloc(sizeof(*e), GFP_KERNEL);
	if (!e)
		return -ENOMEM;
	e->h = h;
	e->cpus = __alloc_percpu(sizeof(struct htk_cpu), 64);
	if (!e->cpus) {
		kfree(e);
		return -ENOMEM;
	}
	htk_emit = e;
	return 0;
}

/* Classes ----------------------------------------------------------------- */

/*
 * Find the classes that have no id yet and were not refused.  Store pointers to
 * these classes in @list unless @list is NULL.
 *
 * Context: htk_emit_mutex held
 *
 * Return: the number of these classes.
 */
static unsigned int htk_emit_unknown(struct ht_class **list)
{
	unsigned int i, n = 0;

	for (i = 0; i < htk_nr_classes; i++) {
		if (htk_classes[i].cls->id || htk_classes[i].refused)
			continue;
		if (list)
			list[n] = htk_classes[i].cls;
		n++;
	}
	return n;
}

/*
 * Register the classes that have no id yet and were not refused.  If the host
 * refuses a class, the other classes are still registered.
 *
 * Return: 0, or a negative errno if the caller should retry later.
 *
 * Context: htk_emit_exchange held, so no class can be unregistered
 */
static int htk_emit_register(struct htk *h)
{
	struct ht_class **list;
	unsigned int i, n, last;
	const char *name;
	int ret;

	mutex_lock(&htk_emit_mutex);
	last = htk_nr_classes;
	n = htk_emit_unknown(NULL);
	list = n ? kvmalloc_array(n, sizeof(*list), GFP_KERNEL) : NULL;
	if (list)
		htk_emit_unknown(list);
	mutex_unlock(&htk_emit_mutex);
	if (!n)
		return 0;
	if (!list)
		return -ENOMEM;
	mutex_lock(&h->messages);
	ret = ht_register_all(&h->core, list, n);
	mutex_unlock(&h->messages);
	kvfree(list);
	if (ret && ret != -EINVAL && ret != -ENOSPC)
		return ret;

	/* Classes from index @last on were added during the exchange. */
	mutex_lock(&htk_emit_mutex);
	for (i = 0, n = 0; i < last; i++) {
		struct htk_class *c = &htk_classes[i];

		if (c->cls->id || c->refused)
			continue;
		c->refused = true;
		if (!n++)
			name = c->cls->name;
	}
	if (n)
		dev_err(h->dev, "the host refused %s and %u other classes (%d)\n",
			name, n - 1, ret);
	mutex_unlock(&htk_emit_mutex);
	return 0;
}

/*
 * Register classes and open streams, or close the streams if no class is left.
 *
 * Return: true if the caller should retry later.
 *
 * Context: htk_emit_exchange held
 */
static bool htk_emit_sync(struct htk *h)
{
	bool wanted, again = false;

	mutex_lock(&htk_emit_mutex);
	wanted = htk_nr_classes;
	mutex_unlock(&htk_emit_mutex);
	if (!wanted) {
		htk_emit_stop();
		WRITE_ONCE(htk_emit_paused, false);
		return false;
	}
	/* Register classes first, since an event needs the id of its class. */
	if (htk_emit_start(h) || htk_emit_register(h))
		again = true;
	else
		again = htk_emit_open_all(htk_emit);
	if (htk_emit)
		htk_emit_report_missed(h, htk_emit_first);
	WRITE_ONCE(htk_emit_paused, false);
	mutex_lock(&htk_emit_mutex);
	htk_emit_switch();
	mutex_unlock(&htk_emit_mutex);
	return again;
}

static void htk_emit_work_fn(struct work_struct *work)
{
	mutex_lock(&htk_emit_exchange);
	/* htk_emit_device changes only with htk_emit_exchange held. */
	if (htk_emit_device && htk_emit_sync(htk_emit_device))
		queue_delayed_work(htk_wq, &htk_emit_work,
				   msecs_to_jiffies(HTK_EMIT_RETRY_MS));
	mutex_unlock(&htk_emit_exchange);
}

/*
 * Choose the device that takes the kernel's events: the device that the
 * parameter kernel_device names; without the parameter, the first in
 * htk_sources.  If htk_sources has no such device, change nothing.  Ids of
 * classes belong to a device, so let the work item register all classes again.
 *
 * Context: htk_emit_exchange and htk_emit_mutex held
 */
static void htk_emit_choose(void)
{
	unsigned int i;
	struct htk *h;

	list_for_each_entry(h, &htk_sources, source) {
		if (kernel_device >= 0 && h->id != kernel_device)
			continue;
		htk_emit_device = h;
		htk_enable_changed(h);
		for (i = 0; i < htk_nr_classes; i++) {
			WRITE_ONCE(htk_classes[i].cls->id, 0);
			htk_classes[i].refused = false;
		}
		htk_emit_kick();
		break;
	}
}

/*
 * Switch all classes off: no device takes events, and none is coming back.
 *
 * Context: htk_emit_mutex held
 */
static void htk_emit_off(void)
{
	unsigned int i;

	WRITE_ONCE(htk_emit_paused, false);
	for (i = 0; i < htk_nr_classes; i++)
		WRITE_ONCE(htk_classes[i].cls->id, 0);
	htk_emit_switch();
}

/* Devices ----------------------------------------------------------------- */

/*
 * Read the settings for the kernel's event sources, if the device takes the
 * kernel's events.  If the host refuses the message, clear the settings.
 *
 * Context: no lock held
 *
 * Return: 0; -ENODEV: the device is away; or another negative errno: the caller
 * should ask again.
 */
static int htk_emit_read_settings(struct htk *h)
{
	const u32 size = sizeof(struct ht_msg_settings) + HT_SETTINGS_MAX;
	struct ht_msg_settings *m;
	u32 count = 0;
	int ret;

	if (size > h->core.caps.max_message || !htk_emit_is(h))
		return 0;
	mutex_lock(&h->messages);
	m = (void *)ht_control_begin(&h->core, HT_MSG_SETTINGS, size);
	m->count = HT_SETTINGS_MAX;
	ret = ht_control(&h->core, &m->h);
	if (!ret)
		count = min(m->count, HT_SETTINGS_MAX);
	if (!ret || ret == -ENOENT || ret == -EINVAL) {
		mutex_lock(&htk_emit_mutex);
		memcpy(htk_emit_settings, m->text, count);
		htk_emit_settings[count] = '\0';
		mutex_unlock(&htk_emit_mutex);
		ret = 0;
	}
	ht_control_end(&h->core);
	mutex_unlock(&h->messages);
	return ret;
}

/**
 * htk_emit_enabled() - read the settings of a device again, and the enable
 *                      bytes into the copies of virtio and of the classes
 * @work: enable_work of the device; the device may be gone
 */
void htk_emit_enabled(struct work_struct *work)
{
	struct htk *h = container_of(to_delayed_work(work), struct htk,
				     enable_work);
	int ret = 0;

	if (h->virtio) {
		/* htk_enable_learn() stores the bytes of the replies. */
		mutex_lock(&h->messages);
		ret = ht_enable_read(&h->core, NULL);
		mutex_unlock(&h->messages);
	}
	if (!ret)
		ret = htk_emit_read_settings(h);
	if (ret && ret != -ENODEV) {
		/* Unless the device is away, a later exchange may succeed. */
		dev_warn_once(h->dev,
			      "cannot read enable bytes or settings: error %d, retrying\n",
			      ret);
		queue_delayed_work(htk_wq, &h->enable_work,
				   msecs_to_jiffies(HTK_EMIT_RETRY_MS));
	}
	mutex_lock(&htk_emit_mutex);
	if (htk_emit_device == h)
		htk_emit_switch();
	mutex_unlock(&htk_emit_mutex);
}

/**
 * htk_emit_is() - check whether a device takes the kernel's events
 * @h: the device
 *
 * Context: may sleep
 *
 * Return: true if it does, even if the kernel emits no events.
 */
bool htk_emit_is(const struct htk *h)
{
	bool is;

	mutex_lock(&htk_emit_mutex);
	is = htk_emit_device == h;
	mutex_unlock(&htk_emit_mutex);
	return is;
}

/**
 * htk_emit_add() - add a device that is ready
 * @h: the device; it takes the kernel's events unless another device does, or
 *     the parameter kernel_device names another device
 *
 * Context: may sleep
 */
void htk_emit_add(struct htk *h)
{
	mutex_lock(&htk_emit_exchange);
	mutex_lock(&htk_emit_mutex);
	list_add_tail(&h->source, &htk_sources);
	if (!htk_emit_device)
		htk_emit_choose();
	mutex_unlock(&htk_emit_mutex);
	mutex_unlock(&htk_emit_exchange);
}

/**
 * htk_emit_remove() - remove a device that is going away
 * @h: the device; if it took the kernel's events, htk_emit_choose() chooses
 *     another device
 * @back: the device will come back: if no other device takes the events until
 *        then, classes that are on stay on, and their events count as discarded
 *
 * Context: may sleep
 */
void htk_emit_remove(struct htk *h, bool back)
{
	mutex_lock(&htk_emit_exchange);
	/* If a resume has failed, the device is not in the list: no effect. */
	mutex_lock(&htk_emit_mutex);
	list_del_init(&h->source);
	mutex_unlock(&htk_emit_mutex);
	if (htk_emit_device == h) {
		WRITE_ONCE(htk_emit_paused, true);
		htk_emit_stop();
		mutex_lock(&htk_emit_mutex);
		htk_emit_device = NULL;
		htk_emit_choose();
		if (!htk_emit_device && !back)
			htk_emit_off();
		mutex_unlock(&htk_emit_mutex);
	}
	mutex_unlock(&htk_emit_exchange);
}

/**
 * htk_emit_lost() - stop waiting for a device that does not come back
 *
 * If no device takes the kernel's events, switch all classes off.
 *
 * Context: may sleep
 */
void htk_emit_lost(void)
{
	mutex_lock(&htk_emit_mutex);
	if (!htk_emit_device)
		htk_emit_off();
	mutex_unlock(&htk_emit_mutex);
}

/*
 * Prepare for a CPU that comes online.  If the CPU was plugged in after the
 * module was loaded, let the work item open a stream for it, since the lock of
 * CPU hot-plug is held here.  Until then its events are counted as discarded.
 *
 * A CPU that goes offline keeps its stream, because it emits events on the way
 * and may come back.
 */
static int htk_emit_prepare(unsigned int cpu)
{
	if (!cpumask_test_and_set_cpu(cpu, &htk_emit_cpus))
		htk_emit_kick();
	return 0;
}

static enum cpuhp_state htk_emit_cpuhp;

int htk_emit_init(void)
{
	int ret;

	cpumask_copy(&htk_emit_cpus, cpu_present_mask);
	ret = cpuhp_setup_state(CPUHP_BP_PREPARE_DYN,
				"trace/hypertrace:prepare",
				htk_emit_prepare, NULL);
	if (ret < 0)
		return ret;
	htk_emit_cpuhp = ret;
	return 0;
}

void htk_emit_exit(void)
{
	cpuhp_remove_state_nocalls(htk_emit_cpuhp);
	cancel_delayed_work_sync(&htk_emit_work);
}

/* For other modules ------------------------------------------------------- */

int ht_kernel_register(struct ht_class *const *classes, unsigned int count)
{
	unsigned int i;
	int ret = htk_locked_down();

	if (ret)
		return ret;
	for (i = 0; i < count; i++)
		htk_origin_reserve(classes[i]->name);
	mutex_lock(&htk_emit_mutex);
	if (count > HT_CLASSES_MAX - htk_nr_classes) {
		ret = -ENOSPC;
		goto out;
	}
	for (i = 0; i < count; i++) {
		WRITE_ONCE(classes[i]->id, 0);
		WRITE_ONCE(classes[i]->state, 0);
		htk_classes[htk_nr_classes++] = (struct htk_class) {
			.cls = classes[i],
		};
	}
	htk_emit_kick();
out:
	mutex_unlock(&htk_emit_mutex);
	return ret;
}
EXPORT_SYMBOL_GPL(ht_kernel_register);

void ht_kernel_sync(void)
{
	flush_delayed_work(&htk_emit_work);
}
EXPORT_SYMBOL_GPL(ht_kernel_sync);

void ht_kernel_watch(struct ht_kernel_watch *w)
{
	mutex_lock(&htk_emit_mutex);
	list_add(&w->list, &htk_watches);
	mutex_unlock(&htk_emit_mutex);
}
EXPORT_SYMBOL_GPL(ht_kernel_watch);

void ht_kernel_unwatch(struct ht_kernel_watch *w)
{
	mutex_lock(&htk_emit_mutex);
	list_del(&w->list);
	mutex_unlock(&htk_emit_mutex);
}
EXPORT_SYMBOL_GPL(ht_kernel_unwatch);

void ht_kernel_setting(const char *name, char *value, size_t size)
{
	size_t n = strlen(name), len;
	const char *word;

	*value = '\0';
	mutex_lock(&htk_emit_mutex);
	for (word = htk_emit_settings; *word; word += len) {
		word += *word == ' ';
		len = strcspn(word, " ");
		if (len > n && !strncmp(word, name, n) && word[n] == '=')
			strscpy(value, word + n + 1, min(size, len - n));
	}
	mutex_unlock(&htk_emit_mutex);
}
EXPORT_SYMBOL_GPL(ht_kernel_setting);

/* Context: htk_emit_mutex held */
static void htk_emit_forget(struct ht_class *cls)
{
	unsigned int i;

	for (i = 0; i < htk_nr_classes; i++) {
		if (htk_classes[i].cls != cls)
			continue;
		htk_classes[i] = htk_classes[--htk_nr_classes];
		WRITE_ONCE(cls->state, 0);
		WRITE_ONCE(cls->id, 0);
		break;
	}
}

void ht_kernel_unregister(struct ht_class *const *classes, unsigned int count)
{
	bool last;

	/* Wait for the work item, which may be registering the classes. */
	mutex_lock(&htk_emit_exchange);
	mutex_lock(&htk_emit_mutex);
	while (count)
		htk_emit_forget(classes[--count]);
	last = !htk_nr_classes;
	mutex_unlock(&htk_emit_mutex);
	mutex_unlock(&htk_emit_exchange);
	/* Wait for emitters that use a stream now, also in the idle loop. */
	htk_emit_wait();
	/* Wait for emitters that read the state but do not use a stream yet. */
	synchronize_rcu();
	/* The work item closes the streams if no class is left. */
	if (last) {
		htk_emit_kick();
		ht_kernel_sync();
	}
}
EXPORT_SYMBOL_GPL(ht_kernel_unregister);

notrace void ht_kernel_missed(void)
{
	struct ht_stream *first = READ_ONCE(htk_emit_first);

	if (first)
		ht_atomic_inc(&first->lost_nested);
	else if (READ_ONCE(htk_emit_paused) || READ_ONCE(htk_emit))
		atomic64_inc(&htk_missed);
}
EXPORT_SYMBOL_GPL(ht_kernel_missed);
