// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: events of the kernel itself
 *
 * The guest library's core runs here with the driver as its port.  A stream
 * belongs to a CPU.  Its producer has interrupts off from reserve to commit;
 * what still interrupts it, an NMI or a probe inside the emit path, finds the
 * stream's busy flag, and its event is counted as discarded.  No lock is taken
 * and nothing is submitted here, since an event may be anywhere.  What that
 * core and the host owe each other is proved in tests/model/.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "hypertrace-kernel.h"
#include "htk.h"

/* How often it is tried again to have a stream for each CPU */
#define HTK_EMIT_RETRY_MS	500

static unsigned int kernel_streams;
module_param(kernel_streams, uint, 0444);
MODULE_PARM_DESC(kernel_streams,
		 "streams for kernel events; 0: three quarters of the device's");

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
 * @streams: opened so far
 */
struct htk_emit {
	struct htk *h;
	struct htk_cpu __percpu *cpus;
	unsigned int streams;
};

/*
 * What emitters read, with interrupts off: each CPU's stream, and the one that
 * counts the events of CPUs that have none.  htk_emit_stop() waits for them.
 */
DEFINE_PER_CPU(struct ht_stream *, ht_kernel_stream);
EXPORT_PER_CPU_SYMBOL_GPL(ht_kernel_stream);
static struct ht_stream *htk_emit_first;

/*
 * Events that had no stream: between two devices, while the machine was
 * suspended, or since programs have all streams.  Counted as discarded by the
 * next stream that is closed or opened.
 */
static atomic64_t htk_missed;
static bool htk_emit_paused;

/*
 * Guards what follows, and updates.  Nests inside the lock of CPU hot-plug,
 * which htk_emit_prepare() is called with: who opens streams takes that first.
 */
static DEFINE_MUTEX(htk_emit_mutex);
static LIST_HEAD(htk_sources);
static LIST_HEAD(htk_watches);
static struct htk_emit *htk_emit;
static struct htk *htk_emit_device;
static struct ht_class *htk_classes[HT_CLASSES_MAX];
static unsigned int htk_nr_classes;

/* What is wanted ---------------------------------------------------------- */

/* Its events are wanted from now on, or not; ids of no device are not. */
static void htk_emit_switch(const struct htk *h, struct ht_class *cls)
{
	WRITE_ONCE(cls->state, cls->id && htk_enable_get(h, cls->id) ?
			       HT_ENABLE_ON : 0);
}

/*
 * Not a call: who is told may wait for CPU hot-plug, whose thread may wait for
 * the mutex.
 *
 * Context: htk_emit_mutex held
 */
static void htk_emit_tell(void)
{
	struct ht_kernel_watch *w;

	list_for_each_entry(w, &htk_watches, list)
		schedule_work(w->work);
}

/* Streams ----------------------------------------------------------------- */

static unsigned int htk_emit_limit(const struct htk *h)
{
	unsigned int streams = h->core.caps.streams;

	if (kernel_streams)
		return min(kernel_streams, streams);
	return max(streams * 3 / 4, 1u);
}

/* Events that vanished are the stream's to tell; it may be in use. */
static void htk_emit_count_missed(struct ht_stream *first)
{
	if (first)
		atomic64_add(atomic64_xchg(&htk_missed, 0),
			     (atomic64_t *)&first->lost_nested);
}

/* Without a stream, a message is what tells them. */
static void htk_emit_tell_missed(struct htk_emit *e, struct ht_stream *first)
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
	ret = ht_tell_discarded(&e->h->core, missed);
	/* After a timeout the host counts them later. */
	if (ret && ret != -ETIMEDOUT)
		atomic64_add(missed, &htk_missed);
}

/* Context: htk_emit_mutex held; @cpu may be emitting */
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
	if (e->streams == htk_emit_limit(e->h))
		return -EBUSY;
	snprintf(name, sizeof(name), "kernel/%u", cpu);
	ret = ht_stream_open(&e->h->core, &c->stream, &params);
	if (ret)
		return ret;
	c->open = true;
	if (!e->streams++)
		smp_store_release(&htk_emit_first, &c->stream);
	/* Pairs with the dependency of who reads it and uses the stream. */
	smp_store_release(per_cpu_ptr(&ht_kernel_stream, cpu), &c->stream);
	return 0;
}

/* Context: cpus_read_lock() and htk_emit_mutex held */
static bool htk_emit_open_all(struct htk_emit *e)
{
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		if (htk_emit_open_one(e, cpu))
			return false;
	}
	return true;
}

static void htk_emit_again(struct work_struct *work);
static DECLARE_DELAYED_WORK(htk_emit_retry, htk_emit_again);

/* Programs may have the streams that the kernel may have. */
static void htk_emit_later(const struct htk_emit *e)
{
	if (e->streams < htk_emit_limit(e->h))
		queue_delayed_work(system_freezable_wq, &htk_emit_retry,
				   msecs_to_jiffies(HTK_EMIT_RETRY_MS));
}

static void htk_emit_again(struct work_struct *work)
{
	cpus_read_lock();
	mutex_lock(&htk_emit_mutex);
	if (htk_emit) {
		if (!htk_emit_open_all(htk_emit))
			htk_emit_later(htk_emit);
		htk_emit_tell_missed(htk_emit, htk_emit_first);
	}
	mutex_unlock(&htk_emit_mutex);
	cpus_read_unlock();
}

static void htk_emit_short(const struct htk_emit *e, unsigned int cpus)
{
	dev_warn(&e->h->vdev->dev,
		 "only %u of %u kernel streams: events of the other CPUs are discarded\n",
		 e->streams, cpus);
	htk_emit_later(e);
}

/*
 * A CPU comes.  One that went keeps its stream: it emits until it is dead, and
 * it may come back.
 *
 * Context: CPU hot-plug's thread, cpus_write_lock() held; @cpu is not up
 */
static int htk_emit_prepare(unsigned int cpu)
{
	mutex_lock(&htk_emit_mutex);
	if (htk_emit) {
		if (htk_emit_open_one(htk_emit, cpu))
			htk_emit_short(htk_emit, num_online_cpus() + 1);
		htk_emit_count_missed(htk_emit_first);
	}
	mutex_unlock(&htk_emit_mutex);
	return 0;
}

/* All at once: the host is not waited for a stream at a time. */
static void htk_emit_close(struct htk_emit *e)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct htk_cpu *c = per_cpu_ptr(e->cpus, cpu);

		/* Discarded events are told; what is left, the driver hands over. */
		if (c->open)
			ht_stream_push(&c->stream);
	}
	htk_close_owner(&e->h->kernel);
}

/* Context: cpus_read_lock() and htk_emit_mutex held */
static int htk_emit_start(struct htk *h)
{
	struct htk_emit *e;
	unsigned int i;
	int ret;

	e = kzalloc(sizeof(*e), GFP_KERNEL);
	if (!e)
		return -ENOMEM;
	e->h = h;
	e->cpus = __alloc_percpu(sizeof(struct htk_cpu), 64);
	if (!e->cpus) {
		kfree(e);
		return -ENOMEM;
	}
	/* Not the ids of another device: there they are other classes. */
	for (i = 0; i < htk_nr_classes; i++)
		WRITE_ONCE(htk_classes[i]->id, 0);
	ret = ht_register_all(&h->core, htk_classes, htk_nr_classes);
	for (i = 0; i < htk_nr_classes; i++) {
		if (!htk_classes[i]->id)
			dev_err(&h->vdev->dev, "class %s: not registered (%d)\n",
				htk_classes[i]->name, ret);
		htk_emit_switch(h, htk_classes[i]);
	}
	if (!htk_emit_open_all(e))
		htk_emit_short(e, num_online_cpus());
	htk_emit_count_missed(htk_emit_first);
	htk_emit = e;
	WRITE_ONCE(htk_emit_paused, false);
	htk_emit_tell();
	return 0;
}

static void htk_emit_nothing(void *unused)
{
}

/* Context: cpus_read_lock() and htk_emit_mutex held */
static void htk_emit_stop(void)
{
	struct htk_emit *e = htk_emit;
	struct ht_stream *first = htk_emit_first;
	unsigned int cpu;

	if (!e)
		return;
	htk_emit = NULL;
	WRITE_ONCE(htk_emit_first, NULL);
	for_each_possible_cpu(cpu)
		WRITE_ONCE(*per_cpu_ptr(&ht_kernel_stream, cpu), NULL);
	/*
	 * Emitters have interrupts off: where this interrupt came, none has a
	 * stream.  RCU would not see those of the idle loop.
	 */
	on_each_cpu(htk_emit_nothing, NULL, true);
	htk_emit_tell_missed(e, first);
	htk_emit_close(e);
	free_percpu(e->cpus);
	kfree(e);
}

/*
 * The device that takes the kernel's events: the one asked for, or the first.
 *
 * Context: cpus_read_lock() and htk_emit_mutex held
 */
static void htk_emit_choose(void)
{
	struct htk *h;

	list_for_each_entry(h, &htk_sources, source) {
		if (kernel_device >= 0 && h->id != kernel_device)
			continue;
		htk_emit_device = h;
		if (htk_nr_classes && htk_emit_start(h))
			dev_err(&h->vdev->dev, "no memory for kernel events\n");
		break;
	}
}

/*
 * No device takes events, and none is expected back.
 *
 * Context: htk_emit_mutex held
 */
static void htk_emit_off(void)
{
	unsigned int i;

	WRITE_ONCE(htk_emit_paused, false);
	for (i = 0; i < htk_nr_classes; i++) {
		WRITE_ONCE(htk_classes[i]->state, 0);
		WRITE_ONCE(htk_classes[i]->id, 0);
	}
	htk_emit_tell();
}

/**
 * htk_emit_enable() - other classes of a device are on than before
 * @h: the device, maybe gone
 */
void htk_emit_enable(struct htk *h)
{
	unsigned int i;
	int ret;

	mutex_lock(&htk_emit_mutex);
	if (h->virtio) {
		/* htk_enable_learn() takes them from the replies. */
		ret = ht_enable_read(&h->core, NULL);
		if (ret && ret != -ENODEV)
			dev_warn(&h->vdev->dev,
				 "which events are wanted: error %d\n", ret);
	}
	for (i = 0; htk_emit_device == h && i < htk_nr_classes; i++)
		htk_emit_switch(h, htk_classes[i]);
	htk_emit_tell();
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
 * @h: takes the kernel's events, if no other does
 */
void htk_emit_add(struct htk *h)
{
	cpus_read_lock();
	mutex_lock(&htk_emit_mutex);
	list_add_tail(&h->source, &htk_sources);
	if (!htk_emit_device)
		htk_emit_choose();
	mutex_unlock(&htk_emit_mutex);
	cpus_read_unlock();
}

/**
 * htk_emit_remove() - a device goes, but still answers
 * @h: the device; if it took the kernel's events, the next one does from now on
 * @back: it comes back: events without a device until then are counted
 */
void htk_emit_remove(struct htk *h, bool back)
{
	cpus_read_lock();
	mutex_lock(&htk_emit_mutex);
	/* A device that did not wake up was removed before. */
	list_del_init(&h->source);
	if (htk_emit_device == h) {
		WRITE_ONCE(htk_emit_paused, true);
		htk_emit_stop();
		htk_emit_device = NULL;
		htk_emit_choose();
		if (!htk_emit_device && !back)
			htk_emit_off();
	}
	mutex_unlock(&htk_emit_mutex);
	cpus_read_unlock();
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

static enum cpuhp_state htk_emit_cpuhp;

int htk_emit_init(void)
{
	int ret;

	/* No device is known yet, so nothing to do for the CPUs there are. */
	ret = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN,
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
	cancel_delayed_work_sync(&htk_emit_retry);
}

/* For other modules ------------------------------------------------------- */

/* Context: htk_emit_mutex held */
static void htk_emit_forget(struct ht_class *cls)
{
	unsigned int i;

	for (i = 0; i < htk_nr_classes; i++) {
		if (htk_classes[i] != cls)
			continue;
		htk_classes[i] = htk_classes[--htk_nr_classes];
		WRITE_ONCE(cls->state, 0);
		WRITE_ONCE(cls->id, 0);
		break;
	}
}

int ht_kernel_register_all(struct ht_class *const *classes,
			   unsigned int count)
{
	struct htk *h;
	unsigned int i;
	int ret = 0;

	cpus_read_lock();
	mutex_lock(&htk_emit_mutex);
	h = htk_emit_device;
	if (count > HT_CLASSES_MAX - htk_nr_classes) {
		ret = -ENOSPC;
		goto out;
	}
	if (h) {
		if (!htk_emit)
			ret = htk_emit_start(h);
		if (!ret)
			ret = ht_register_all(&h->core, classes, count);
		for (i = 0; !ret && i < count; i++)
			htk_emit_switch(h, classes[i]);
	}
	if (!ret) {
		memcpy(htk_classes + htk_nr_classes, classes,
		       array_size(count, sizeof(*classes)));
		htk_nr_classes += count;
		htk_emit_tell();
		goto out;
	}
	for (i = 0; i < count; i++)
		WRITE_ONCE(classes[i]->id, 0);
	if (!htk_nr_classes)
		htk_emit_stop();
out:
	mutex_unlock(&htk_emit_mutex);
	cpus_read_unlock();
	return ret;
}
EXPORT_SYMBOL_GPL(ht_kernel_register_all);

int ht_kernel_register(struct ht_class *cls)
{
	return ht_kernel_register_all(&cls, 1);
}
EXPORT_SYMBOL_GPL(ht_kernel_register);

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

void ht_kernel_unregister_all(struct ht_class *const *classes,
			      unsigned int count)
{
	cpus_read_lock();
	mutex_lock(&htk_emit_mutex);
	while (count)
		htk_emit_forget(classes[--count]);
	/* The streams are for other users' events. */
	if (!htk_nr_classes) {
		htk_emit_stop();
		WRITE_ONCE(htk_emit_paused, false);
	}
	/* Those of the idle loop, where RCU does not look */
	on_each_cpu(htk_emit_nothing, NULL, true);
	mutex_unlock(&htk_emit_mutex);
	cpus_read_unlock();
	/* Those that asked for a class's state and have not begun yet */
	synchronize_rcu();
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
