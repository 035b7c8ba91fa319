// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: events of the kernel itself
 *
 * The guest library's core runs here with the driver as its port.  A stream
 * belongs to a CPU and a context, so that its producer is never interrupted by
 * another producer of the same stream, except by a fault or a probe inside the
 * emit path, which the stream's busy flag catches.  What that core and the host
 * owe each other is proved in tests/model/.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "hypertrace-kernel.h"
#include "htk.h"

static unsigned int kernel_streams;
module_param(kernel_streams, uint, 0444);
MODULE_PARM_DESC(kernel_streams,
		 "streams for kernel events; 0: three quarters of the device's");

enum htk_context {
	HTK_TASK,
	HTK_SOFTIRQ,
	HTK_IRQ,
	HTK_NMI,
	HTK_CONTEXTS,
};

static const char * const htk_context_names[HTK_CONTEXTS] = {
	"task", "softirq", "irq", "nmi",
};

struct htk_cpu {
	struct ht_stream stream[HTK_CONTEXTS];
	bool open[HTK_CONTEXTS];
	u64 unstreamed;		/* events for which no stream was open */
};

struct htk_emit {
	struct htk *h;
	struct htk_cpu __percpu *cpus;
	unsigned int streams;	/* opened so far */
};

/* The device that takes the kernel's events; emitters read it under RCU. */
static struct htk_emit __rcu *htk_emit;

/*
 * Guards what follows, and updates.  Nests inside the lock of CPU hot-plug,
 * which htk_emit_online() is called with: who opens streams takes that first.
 */
static DEFINE_MUTEX(htk_emit_mutex);
static struct htk *htk_emit_device;
static struct ht_class *htk_classes[HT_CLASSES_MAX];
static unsigned int htk_nr_classes;

/* The library's port ------------------------------------------------------ */

static struct htk *to_htk(struct ht_device *dev)
{
	return container_of(dev, struct htk, core);
}

static int htk_port_control(struct ht_device *dev, struct ht_msg *msg,
			    u32 size)
{
	struct htk *h = to_htk(dev);

	return htk_control(h, &h->kernel, msg, size);
}

static int htk_port_map(struct ht_device *dev, u32 stream,
			struct ht_ring_control **ring, u8 **packets)
{
	struct htk *h = to_htk(dev);

	*ring = h->transport->ring_addr(h, stream);
	*packets = (u8 *)*ring + HT_PACKETS_OFFSET;
	return 0;
}

static void htk_port_doorbell(struct ht_device *dev, u32 stream)
{
	htk_pci_ring(to_htk(dev), stream);
}

static int htk_port_submit(struct ht_device *dev, struct ht_stream *s,
			   u64 from, u64 to)
{
	return htk_virtio_submit(to_htk(dev), s->index, from, to, false,
				 &s->doorbells);
}

static void htk_port_reap(struct ht_device *dev, struct ht_stream *s)
{
	htk_virtio_reap(to_htk(dev), s->index, false, &s->doorbells);
}

/* Doubles from 100 us to 50 ms: five seconds are about 108 tries. */
static int htk_port_relax(struct ht_device *dev, unsigned int tries)
{
	if (tries > 108)
		return -ETIMEDOUT;
	fsleep(min(100ul << min(tries, 9u), 50000ul));
	return 0;
}

const struct ht_port_ops htk_port_ops = {
	.control	= htk_port_control,
	.map		= htk_port_map,
	.doorbell	= htk_port_doorbell,
	.submit		= htk_port_submit,
	.reap		= htk_port_reap,
	.relax		= htk_port_relax,
};

/* Streams ----------------------------------------------------------------- */

static unsigned int htk_emit_limit(const struct htk *h)
{
	unsigned int streams = h->core.caps.streams;

	if (kernel_streams)
		return min(kernel_streams, streams);
	return max(streams * 3 / 4, 1u);
}

/*
 * Context: htk_emit_mutex held; nobody has seen @e, or this is the thread of
 * CPU hot-plug on @cpu, where alone the stream will be used
 */
static int htk_emit_open_one(struct htk_emit *e, unsigned int cpu,
			     unsigned int context)
{
	struct htk_cpu *c = per_cpu_ptr(e->cpus, cpu);
	char name[HT_STREAM_NAME_MAX];
	struct ht_stream_params params = {
		.stream = HT_STREAM_ANY,
		.vcpu = cpu,
		.name = name,
	};
	int ret;

	if (c->open[context])
		return 0;
	if (e->streams == htk_emit_limit(e->h))
		return -EBUSY;
	snprintf(name, sizeof(name), "kernel/%u/%s", cpu,
		 htk_context_names[context]);
	ret = ht_stream_open(&e->h->core, &c->stream[context], &params);
	if (ret)
		return ret;
	e->streams++;
	/* An interrupt on this CPU sees the stream first. */
	barrier();
	WRITE_ONCE(c->open[context], true);
	return 0;
}

static void htk_emit_short(const struct htk_emit *e)
{
	dev_warn(&e->h->vdev->dev,
		 "%u streams for the kernel, %u wanted: its events in other contexts are lost\n",
		 e->streams, num_online_cpus() * HTK_CONTEXTS);
}

/*
 * The contexts that matter most first, should streams be short.
 *
 * Context: cpus_read_lock() and htk_emit_mutex held
 */
static void htk_emit_open(struct htk_emit *e)
{
	unsigned int context, cpu;

	for (context = 0; context < HTK_CONTEXTS; context++) {
		for_each_online_cpu(cpu) {
			if (htk_emit_open_one(e, cpu, context)) {
				htk_emit_short(e);
				return;
			}
		}
	}
}

/*
 * A CPU comes.  One that went keeps its streams: it emits until it is dead,
 * and it may come back.
 *
 * Context: CPU hot-plug's thread on @cpu, cpus_write_lock() held
 */
static int htk_emit_online(unsigned int cpu)
{
	unsigned int context;
	struct htk_emit *e;

	mutex_lock(&htk_emit_mutex);
	e = rcu_dereference_protected(htk_emit,
				      lockdep_is_held(&htk_emit_mutex));
	for (context = 0; e && context < HTK_CONTEXTS; context++) {
		if (htk_emit_open_one(e, cpu, context)) {
			htk_emit_short(e);
			break;
		}
	}
	mutex_unlock(&htk_emit_mutex);
	return 0;
}

static void htk_emit_close(struct htk_emit *e)
{
	unsigned int context, cpu;
	u64 unstreamed = 0;

	for_each_possible_cpu(cpu) {
		struct htk_cpu *c = per_cpu_ptr(e->cpus, cpu);

		for (context = 0; context < HTK_CONTEXTS; context++) {
			if (c->open[context])
				ht_stream_close(&c->stream[context]);
		}
		unstreamed += c->unstreamed;
	}
	if (unstreamed)
		dev_info(&e->h->vdev->dev,
			 "%llu kernel events had no stream\n", unstreamed);
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
	for (i = 0; i < htk_nr_classes; i++) {
		ret = ht_register(&h->core, htk_classes[i]);
		if (ret < 0)
			dev_err(&h->vdev->dev, "class %s: error %d\n",
				htk_classes[i]->name, ret);
	}
	htk_emit_open(e);
	rcu_assign_pointer(htk_emit, e);
	return 0;
}

/* Context: htk_emit_mutex held */
static void htk_emit_stop(void)
{
	struct htk_emit *e;
	unsigned int i;

	e = rcu_replace_pointer(htk_emit, NULL,
				lockdep_is_held(&htk_emit_mutex));
	for (i = 0; i < htk_nr_classes; i++)
		WRITE_ONCE(htk_classes[i]->id, 0);
	if (!e)
		return;
	/* Emitters run with preemption off: behind this none has a stream. */
	synchronize_rcu();
	htk_emit_close(e);
	free_percpu(e->cpus);
	kfree(e);
}

/**
 * htk_emit_add() - a device is ready
 * @h: takes the kernel's events, if no other does
 */
void htk_emit_add(struct htk *h)
{
	cpus_read_lock();
	mutex_lock(&htk_emit_mutex);
	if (!htk_emit_device) {
		htk_emit_device = h;
		if (htk_nr_classes && htk_emit_start(h))
			dev_err(&h->vdev->dev, "no memory for kernel events\n");
	}
	mutex_unlock(&htk_emit_mutex);
	cpus_read_unlock();
}

/**
 * htk_emit_remove() - a device goes, but still answers
 * @h: the device
 */
void htk_emit_remove(struct htk *h)
{
	mutex_lock(&htk_emit_mutex);
	if (htk_emit_device == h) {
		htk_emit_stop();
		htk_emit_device = NULL;
	}
	mutex_unlock(&htk_emit_mutex);
}

static enum cpuhp_state htk_emit_cpuhp;

int htk_emit_init(void)
{
	int ret;

	/* No device is known yet, so nothing to do for the CPUs there are. */
	ret = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN,
					"trace/hypertrace:online",
					htk_emit_online, NULL);
	if (ret < 0)
		return ret;
	htk_emit_cpuhp = ret;
	return 0;
}

void htk_emit_exit(void)
{
	cpuhp_remove_state_nocalls(htk_emit_cpuhp);
}

/* For other modules ------------------------------------------------------- */

int ht_kernel_register(struct ht_class *cls)
{
	int ret = 0;

	cpus_read_lock();
	mutex_lock(&htk_emit_mutex);
	if (htk_nr_classes == HT_CLASSES_MAX) {
		ret = -ENOSPC;
		goto out;
	}
	if (htk_emit_device) {
		if (!rcu_access_pointer(htk_emit))
			ret = htk_emit_start(htk_emit_device);
		if (!ret)
			ret = ht_register(&htk_emit_device->core, cls);
	}
	if (ret >= 0) {
		htk_classes[htk_nr_classes++] = cls;
		ret = 0;
	} else if (!htk_nr_classes) {
		htk_emit_stop();
	}
out:
	mutex_unlock(&htk_emit_mutex);
	cpus_read_unlock();
	return ret;
}
EXPORT_SYMBOL_GPL(ht_kernel_register);

void ht_kernel_unregister(struct ht_class *cls)
{
	unsigned int i;

	mutex_lock(&htk_emit_mutex);
	for (i = 0; i < htk_nr_classes; i++) {
		if (htk_classes[i] != cls)
			continue;
		htk_classes[i] = htk_classes[--htk_nr_classes];
		WRITE_ONCE(cls->id, 0);
		break;
	}
	/* The streams are for other users' events. */
	if (!htk_nr_classes)
		htk_emit_stop();
	mutex_unlock(&htk_emit_mutex);
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(ht_kernel_unregister);

static notrace enum htk_context htk_context(void)
{
	if (in_nmi())
		return HTK_NMI;
	if (in_hardirq())
		return HTK_IRQ;
	if (in_serving_softirq())
		return HTK_SOFTIRQ;
	return HTK_TASK;
}

notrace struct ht_stream *ht_kernel_begin(void)
{
	enum htk_context context;
	struct htk_emit *e;
	struct htk_cpu *c;

	preempt_disable_notrace();
	/* An idle CPU does not hold off synchronize_rcu(). */
	if (unlikely(!rcu_is_watching()))
		goto none;
	e = rcu_dereference_raw(htk_emit);
	if (unlikely(!e))
		goto none;
	c = this_cpu_ptr(e->cpus);
	context = htk_context();
	if (unlikely(!READ_ONCE(c->open[context]))) {
		/* An interrupt in between loses one count. */
		c->unstreamed++;
		goto none;
	}
	return &c->stream[context];

none:
	preempt_enable_notrace();
	return NULL;
}
EXPORT_SYMBOL_GPL(ht_kernel_begin);

notrace void ht_kernel_end(void)
{
	preempt_enable_notrace();
}
EXPORT_SYMBOL_GPL(ht_kernel_end);

notrace void *ht_kernel_get(const struct ht_class *cls, u32 size,
			    struct ht_stream **stream)
{
	struct ht_stream *s = ht_kernel_begin();
	void *payload;

	if (!s)
		return NULL;
	payload = ht_get(s, READ_ONCE(cls->id), size);
	if (!payload)
		ht_kernel_end();
	*stream = s;
	return payload;
}
EXPORT_SYMBOL_GPL(ht_kernel_get);

notrace void ht_kernel_commit(struct ht_stream *stream)
{
	ht_commit(stream);
	ht_kernel_end();
}
EXPORT_SYMBOL_GPL(ht_kernel_commit);

/* Called by the inline functions of the library's header */
EXPORT_SYMBOL_GPL(ht_get_full);
EXPORT_SYMBOL_GPL(ht_get_slow);
EXPORT_SYMBOL_GPL(ht_get_nested);
EXPORT_SYMBOL_GPL(ht_notify);
