// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: events of the kernel itself
 *
 * The guest library's core runs here with the driver as its port.  A stream
 * belongs to a CPU.  Its producer has interrupts off from reserve to commit.  An
 * NMI or a probe inside the emit path finds the stream busy, and its event is
 * counted as discarded.  The emit path takes no lock and submits nothing, since
 * an event can occur anywhere.  The models in tests/model/ prove the protocol
 * between that core and the host.
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

/* Time between two attempts to register what the host did not answer, in ms */
#define HTK_EMIT_RETRY_MS	500

static int kernel_device = -1;
module_param(kernel_device, int, 0444);
MODULE_PARM_DESC(kernel_device,
		 "N of the /dev/hypertraceN that takes kernel events; -1: the first there is");

struct htk_cpu {
	struct ht_stream stream;
	bool open;
};

/**
 * struct htk_emit - the kernel's streams of one device
 * @h: the device
 * @cpus: a stream each
 * @streams: number of streams opened so far
 * @short_of_streams: the log says that there are too few
 */
struct htk_emit {
	struct htk *h;
	struct htk_cpu __percpu *cpus;
	unsigned int streams;
	bool short_of_streams;
};

/**
 * struct htk_class - a class of a module
 * @cls: the class; its @id is 0 until the host knows it
 * @refused: the host refused it, on the present device
 */
struct htk_class {
	struct ht_class *cls;
	bool refused;
};

/*
 * Read by emitters with interrupts off: the stream of each CPU, and the one that
 * counts events of CPUs without a stream.  htk_emit_detach() waits for them.
 */
DEFINE_PER_CPU(struct ht_stream *, ht_kernel_stream);
EXPORT_PER_CPU_SYMBOL_GPL(ht_kernel_stream);
static struct ht_stream *htk_emit_first;

/*
 * Events without a stream: while the machine was suspended, between two devices,
 * or because programs have all streams.  The next stream that is opened or closed
 * counts them as discarded.
 */
static atomic64_t htk_missed;
static bool htk_emit_paused;

/* CPUs that are or were present: each gets a stream */
static struct cpumask htk_emit_cpus;

/*
 * Two locks.  htk_emit_exchange is held over messages to the host about the
 * kernel's classes and streams; it protects htk_emit and the ids of classes.
 * htk_emit_mutex is never held over a message; it protects the lists.  It nests
 * inside htk_emit_exchange.  No lock of the kernel is taken outside of either:
 * CPU hot-plug and the notifiers of modules only queue htk_emit_work.
 */
static DEFINE_MUTEX(htk_emit_exchange);
static DEFINE_MUTEX(htk_emit_mutex);
static LIST_HEAD(htk_sources);
static LIST_HEAD(htk_watches);
static struct htk_emit *htk_emit;
static struct htk *htk_emit_device;
static struct htk_class htk_classes[HT_CLASSES_MAX];
static unsigned int htk_nr_classes;

static void htk_emit_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(htk_emit_work, htk_emit_work_fn);

static void htk_emit_kick(void)
{
	mod_delayed_work(htk_wq, &htk_emit_work, 0);
}

/* What is wanted ---------------------------------------------------------- */

/*
 * Ask the kernel whether its data may leave.  In confidentiality mode it may not
 * be traced, by root either.
 */
static int htk_locked_down(void)
{
	return security_locked_down(LOCKDOWN_TRACEFS);
}

/*
 * Copy the enable bytes of the device into the classes, and tell the watches.
 *
 * Watches get a work item, not a call: the callback may take the lock of CPU
 * hot-plug.
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

/* Add the missed events to the stream's count; the stream may be in use. */
static void htk_emit_count_missed(struct ht_stream *first)
{
	if (first)
		atomic64_add(atomic64_xchg(&htk_missed, 0),
			     (atomic64_t *)&first->lost_nested);
}

/* Without a stream, a message tells the host.  Context: htk_emit_exchange held */
static void htk_emit_tell_missed(struct htk *h, struct ht_stream *first)
{
	u64 missed;
	int ret;

	if (first) {
		htk_emit_count_missed(first);
		return;
	}
	missed = atomic64_xchg(&htk_missed, 0);
	if (!missed)
		return;
	ret = ht_tell_discarded(&h->core, missed);
	/* After a timeout the host counts them later. */
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
	/* Pairs with the address dependency of emitters, which read the pointer. */
	smp_store_release(per_cpu_ptr(&ht_kernel_stream, cpu), &c->stream);
	return 0;
}

/*
 * Open what is missing.  The first error ends it, so that a host that does not
 * answer is waited for once, whatever the number of CPUs.
 *
 * Return: whether to try again later: if programs have streams that the kernel
 * may have, or the host did not answer.
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
		dev_warn(&e->h->vdev->dev,
			 "only %u kernel streams for %u CPUs (error %d): events of the other CPUs are discarded\n",
			 e->streams, cpumask_weight(&htk_emit_cpus), ret);
	e->short_of_streams = true;
	return e->streams < htk_origin_kernel_streams(e->h);
}

static void htk_emit_nothing(void *unused)
{
}

/*
 * Emitters have interrupts off: when this interrupt has run on all CPUs, all
 * emitters see what was stored before.  RCU would not see those of the idle loop.
 * With the lock of CPU hot-plug held no CPU is half gone.
 */
static void htk_emit_wait(void)
{
	cpus_read_lock();
	on_each_cpu(htk_emit_nothing, NULL, true);
	cpus_read_unlock();
}

/* Take the streams from the emitters.  Context: htk_emit_exchange held */
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

/* Close all streams at once.  Context: htk_emit_exchange held */
static void htk_emit_stop(void)
{
	struct htk_emit *e = htk_emit;
	struct ht_stream *first;
	unsigned int cpu;

	if (!e)
		return;
	first = htk_emit_detach();
	htk_emit_tell_missed(e->h, first);
	for_each_possible_cpu(cpu) {
		struct htk_cpu *c = per_cpu_ptr(e->cpus, cpu);

		/* Publish the count; htk_close_owner() hands over the rest. */
		if (c->open)
			ht_stream_push(&c->stream);
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

/* Classes that the host does not know.  Context: htk_emit_mutex held */
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
 * Register what the host does not know.  A class that the host refuses costs no
 * other; a host that does not answer is asked again later.
 *
 * Return: 0, or a negative errno: try again.
 *
 * Context: htk_emit_exchange held, which keeps the classes in place
 */
static int htk_emit_register(struct htk *h)
{
	struct ht_class **list;
	unsigned int i, n, last;
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

	/* Those that were added meanwhile come next: they are after @last. */
	mutex_lock(&htk_emit_mutex);
	for (i = 0; i < last; i++) {
		struct htk_class *c = &htk_classes[i];

		if (c->cls->id || c->refused)
			continue;
		c->refused = true;
		dev_err(&h->vdev->dev, "class %s: the host refused it (%d)\n",
			c->cls->name, ret);
	}
	mutex_unlock(&htk_emit_mutex);
	return 0;
}

/*
 * The one place that registers classes and opens or closes streams of a device
 * that stays.
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
	/* Streams come last: an event needs the id of its class. */
	if (htk_emit_start(h) || htk_emit_register(h))
		again = true;
	else
		again = htk_emit_open_all(htk_emit);
	if (htk_emit)
		htk_emit_tell_missed(h, htk_emit_first);
	WRITE_ONCE(htk_emit_paused, false);
	mutex_lock(&htk_emit_mutex);
	htk_emit_switch();
	mutex_unlock(&htk_emit_mutex);
	return again;
}

static void htk_emit_work_fn(struct work_struct *work)
{
	mutex_lock(&htk_emit_exchange);
	/* htk_emit_exchange held: nobody else chooses another device. */
	if (htk_emit_device && htk_emit_sync(htk_emit_device))
		queue_delayed_work(htk_wq, &htk_emit_work,
				   msecs_to_jiffies(HTK_EMIT_RETRY_MS));
	mutex_unlock(&htk_emit_exchange);
}

/*
 * Choose the device that takes the kernel's events: the one asked for, or the
 * first.  Ids of another device mean other classes here.
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
		for (i = 0; i < htk_nr_classes; i++) {
			WRITE_ONCE(htk_classes[i].cls->id, 0);
			htk_classes[i].refused = false;
		}
		htk_emit_kick();
		break;
	}
}

/* No device takes events, and none is expected.  Context: htk_emit_mutex held */
static void htk_emit_off(void)
{
	unsigned int i;

	WRITE_ONCE(htk_emit_paused, false);
	for (i = 0; i < htk_nr_classes; i++)
		WRITE_ONCE(htk_classes[i].cls->id, 0);
	htk_emit_switch();
}

/* Devices ----------------------------------------------------------------- */

/**
 * htk_emit_enabled() - work of a device whose enable bytes changed
 * @work: enable_work of the device, which may be gone
 */
void htk_emit_enabled(struct work_struct *work)
{
	struct htk *h = container_of(to_delayed_work(work), struct htk,
				     enable_work);
	int ret = 0;

	if (h->virtio) {
		/* htk_enable_learn() stores what the replies say. */
		mutex_lock(&h->messages);
		ret = ht_enable_read(&h->core, NULL);
		mutex_unlock(&h->messages);
	}
	if (ret && ret != -ENODEV) {
		/* The host stalls: what it wants is still to be learned. */
		dev_warn_once(&h->vdev->dev,
			      "reading what the host wants: error %d\n", ret);
		queue_delayed_work(htk_wq, &h->enable_work,
				   msecs_to_jiffies(HTK_EMIT_RETRY_MS));
	}
	mutex_lock(&htk_emit_mutex);
	if (htk_emit_device == h)
		htk_emit_switch();
	mutex_unlock(&htk_emit_mutex);
}

/**
 * htk_emit_is() - does a device take the kernel's events, now or if there are
 * any?
 * @h: the device
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
 * htk_emit_add() - a device is ready
 * @h: takes the kernel's events, unless another one does
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
 * htk_emit_remove() - a device goes, but still answers
 * @h: the device; if it took the kernel's events, the next one does from now on
 * @back: it comes back: events without a device until then are counted
 */
void htk_emit_remove(struct htk *h, bool back)
{
	mutex_lock(&htk_emit_exchange);
	/* A device that did not wake up was removed before. */
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
 * htk_emit_lost() - a device that was to come back does not
 */
void htk_emit_lost(void)
{
	mutex_lock(&htk_emit_mutex);
	if (!htk_emit_device)
		htk_emit_off();
	mutex_unlock(&htk_emit_mutex);
}

/*
 * A CPU comes.  If it was plugged in since the module was loaded, the work item
 * opens its stream, since the lock of CPU hot-plug is held here; events until
 * then are counted as discarded.  A CPU that went keeps its stream, because it
 * emits until it is dead and may come back.
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

int ht_kernel_register_all(struct ht_class *const *classes,
			   unsigned int count)
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
EXPORT_SYMBOL_GPL(ht_kernel_register_all);

int ht_kernel_register(struct ht_class *cls)
{
	return ht_kernel_register_all(&cls, 1);
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

void ht_kernel_unregister_all(struct ht_class *const *classes,
			      unsigned int count)
{
	bool last;

	/* The work item may be registering them. */
	mutex_lock(&htk_emit_exchange);
	mutex_lock(&htk_emit_mutex);
	while (count)
		htk_emit_forget(classes[--count]);
	last = !htk_nr_classes;
	mutex_unlock(&htk_emit_mutex);
	mutex_unlock(&htk_emit_exchange);
	/* Wait for emitters that hold a stream, also in the idle loop. */
	htk_emit_wait();
	/* Wait for emitters that have read the class's state only. */
	synchronize_rcu();
	/* Without any class the streams are closed. */
	if (last) {
		htk_emit_kick();
		ht_kernel_sync();
	}
}
EXPORT_SYMBOL_GPL(ht_kernel_unregister_all);

void ht_kernel_unregister(struct ht_class *cls)
{
	ht_kernel_unregister_all(&cls, 1);
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
