/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace: events of the Linux kernel, for other modules
 *
 *	HT_EVENT(queue_full, (u32, cpu), (u64, depth));
 *	static struct ht_class *const classes[] = { &ht_class_queue_full };
 *
 *	ht_kernel_register(classes, 1);		// may sleep
 *
 *	ht_trace(queue_full, cpu, depth);	// anywhere, even in an NMI
 *
 * Each CPU has a stream if the kernel may have enough streams of the device.
 * Events go to the first device, or to the device that hypertrace.ko's
 * parameter kernel_device names.  While there is no such device, all classes
 * are off, and the functions here can still be called, so instrumented code
 * need not know whether it is traced.  A suspended device still counts as a
 * device: classes that are on stay on, and events are counted as discarded.
 */
#ifndef HYPERTRACE_KERNEL_H
#define HYPERTRACE_KERNEL_H

#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/workqueue.h>

#include "hypertrace/event.h"

/**
 * ht_kernel_register() - register event classes
 * @classes: the classes; must stay in place until ht_kernel_unregister()
 * @count: number of @classes
 *
 * A work item registers the classes on the device, and again on each device
 * that replaces it, so this function does not wait for the host.  Classes that
 * the host refuses stay off, and the driver logs an error.
 *
 * Context: may sleep.
 *
 * Return: 0, also without a device; -ENOSPC: more than HT_CLASSES_MAX classes
 * of all modules; -EPERM: the kernel is locked down in confidentiality mode.
 * After an error none of @classes is registered.
 */
int ht_kernel_register(struct ht_class *const *classes, unsigned int count);

/**
 * ht_kernel_unregister() - unregister event classes
 * @classes: registered classes
 * @count: number of @classes
 *
 * When this function returns, no event of the classes is being emitted.
 *
 * Context: may sleep, for seconds if the host does not answer.  The caller must
 * not hold a lock that a notifier of CPU hot-plug or of modules takes.
 */
void ht_kernel_unregister(struct ht_class *const *classes, unsigned int count);

/**
 * ht_kernel_sync() - wait until the host has registered or refused all classes
 *
 * Without a device that takes the kernel's events, this function does not wait
 * for a host.  If the host does not answer, this function returns after a
 * timeout of some seconds, and the driver keeps retrying.
 *
 * Context: may sleep.  The caller must not hold a lock that a notifier of CPU
 * hot-plug or of modules takes.
 */
void ht_kernel_sync(void);

/**
 * ht_kernel_setting() - read one of the host's settings for event sources
 * @name: name of the setting
 * @value: set to the value, or to "" if the host has no setting of this name
 * @size: size of @value in bytes; HT_SETTINGS_MAX is always enough
 *
 * An event source must treat the value as a request that it may refuse.
 *
 * Context: may sleep.
 */
void ht_kernel_setting(const char *name, char *value, size_t size);

/**
 * struct ht_kernel_watch - notification of changes by the host
 * @list: used by the driver
 * @work: queued when the state of any class or a setting may have changed
 */
struct ht_kernel_watch {
	struct list_head list;
	struct work_struct *work;
};

/**
 * ht_kernel_watch() - get notified when the host may have switched a class on
 *                     or off, or changed a setting
 * @w: the watch, with @work set; must stay in place until ht_kernel_unwatch()
 *
 * An event source needs this if it must attach something, such as a probe,
 * before it can emit.  The work function should call ht_class_enabled() and
 * ht_kernel_setting().  No lock of the driver is held while it runs.
 *
 * Context: may sleep.
 */
void ht_kernel_watch(struct ht_kernel_watch *w);

/**
 * ht_kernel_unwatch() - end the notifications
 * @w: the watch; the driver no longer queues its work, which may be pending
 *
 * Context: may sleep.
 */
void ht_kernel_unwatch(struct ht_kernel_watch *w);

/* The stream of this CPU, or NULL; for ht_kernel_begin() only */
DECLARE_PER_CPU(struct ht_stream *, ht_kernel_stream);

/**
 * ht_kernel_missed() - count an event of a CPU without a stream as discarded
 *
 * The event is not counted if no device takes the kernel's events and the
 * driver does not wait for one to come back.
 *
 * Context: any, interrupts off.
 */
void ht_kernel_missed(void);

/**
 * ht_kernel_begin() - disable interrupts and get this CPU's stream
 * @flags: the previous state of interrupts, for ht_kernel_end()
 *
 * Interrupts stay off until ht_kernel_end().
 *
 * Context: any, also NMIs and probes.
 *
 * Return: the stream.  NULL if the CPU has no stream: ht_kernel_missed() was
 * called, interrupts are restored, and the caller must not call
 * ht_kernel_end().
 */
static __always_inline struct ht_stream *ht_kernel_begin(unsigned long *flags)
{
	struct ht_stream *s;

	raw_local_irq_save(*flags);
	s = raw_cpu_read(ht_kernel_stream);
	if (likely(s))
		return s;
	ht_kernel_missed();
	raw_local_irq_restore(*flags);
	return NULL;
}

/**
 * ht_kernel_end() - release the stream and restore interrupts
 * @flags: as set by ht_kernel_begin()
 */
static __always_inline void ht_kernel_end(unsigned long flags)
{
	raw_local_irq_restore(flags);
}

/**
 * ht_class_enabled() - check whether the host wants events of a class
 * @cls: the class
 *
 * Context: any.
 *
 * Return: true if the class is registered on a device and the host wants it;
 * the last value while that device is suspended or has no host.
 */
static inline bool ht_class_enabled(const struct ht_class *cls)
{
	return READ_ONCE(cls->state) == HT_ENABLE_ON;
}

/**
 * ht_event_enabled() - check whether the host wants an event
 * @ident: the event's name, as in HT_EVENT()
 *
 * Context: any.
 */
#define ht_event_enabled(ident) unlikely(ht_class_enabled(&ht_class_##ident))

/**
 * ht_trace() - emit an event on this CPU's stream
 * @ident: the event's name, as in HT_EVENT()
 * @...: its fields; evaluated only if the host wants the event, and before
 *       interrupts are disabled
 *
 * HT_EVENT() must follow the inclusion of this file.
 *
 * Context: any, also NMIs and probes.
 */
#define ht_trace(ident, ...)						\
do {									\
	if (ht_event_enabled(ident))					\
		ht_trace_##ident(0, ##__VA_ARGS__);			\
} while (0)

/*
 * ht_trace_<ident>() has an unused first parameter, so that a comma comes
 * before each field.
 */
#undef HT_EV_TRACE
#define HT_EV_TRACE(scope, ident, ...)					\
static __always_inline __maybe_unused					\
void ht_trace_##ident(int ht_unused_ HT_EV_EACH(HT_EV_PARAM, ##__VA_ARGS__)) \
{									\
	unsigned long ht_flags_;					\
	struct ht_stream *ht_stream_ = ht_kernel_begin(&ht_flags_);	\
									\
	if (ht_stream_) {						\
		ht_emit_##ident(ht_stream_				\
				HT_EV_EACH(HT_EV_ARG, ##__VA_ARGS__));	\
		ht_kernel_end(ht_flags_);				\
	}								\
}

#endif /* HYPERTRACE_KERNEL_H */
