/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace: events of the Linux kernel, for other modules
 *
 *	HT_EVENT(queue_full, (u32, cpu), (u64, depth));
 *
 *	ht_kernel_register(&ht_class_queue_full);	// may sleep
 *
 *	ht_trace(queue_full, cpu, depth);		// anywhere, even in an NMI
 *
 * Each CPU has a stream.  Events go to the first device, or the one of the
 * parameter kernel_device; without one they vanish, which is not an error:
 * instrumented code does not care whether it is watched.
 */
#ifndef HYPERTRACE_KERNEL_H
#define HYPERTRACE_KERNEL_H

#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/workqueue.h>

#include "hypertrace/event.h"

/**
 * ht_kernel_register() - register an event class
 * @cls: must stay in place until ht_kernel_unregister()
 *
 * The driver registers the class on the device, and on each that replaces it,
 * from a work item: this function does not wait for the host.  A class that the
 * host refuses is logged and never enabled.
 * Context: may sleep.
 *
 * Return: 0, also without a device; -ENOSPC: too many classes; -EPERM: the
 * kernel is locked down and its data must not leave.
 */
int ht_kernel_register(struct ht_class *cls);

/**
 * ht_kernel_register_all() - register several event classes, in few messages
 * @classes: as for ht_kernel_register()
 * @count: number of @classes
 *
 * Context: may sleep.
 *
 * Return: as ht_kernel_register(); after an error none is registered.
 */
int ht_kernel_register_all(struct ht_class *const *classes,
			   unsigned int count);

/**
 * ht_kernel_unregister() - forget an event class
 * @cls: as registered; when this returns no event of it is being emitted
 *
 * Context: may sleep.
 */
void ht_kernel_unregister(struct ht_class *cls);

/**
 * ht_kernel_unregister_all() - forget several event classes, in one wait
 * @classes: as registered; when this returns no event of them is being emitted
 * @count: of @classes
 *
 * Context: may sleep.
 */
void ht_kernel_unregister_all(struct ht_class *const *classes,
			      unsigned int count);

/**
 * ht_kernel_sync() - wait until the host knows all classes
 *
 * If the host does not answer, wait for one timeout, some seconds; the driver
 * goes on trying.
 * Context: may sleep; no lock held that a notifier of the kernel takes.
 */
void ht_kernel_sync(void);

/**
 * struct ht_kernel_watch - who is told that classes were switched on or off
 * @list: the driver's
 * @work: queued when the state of any class may have changed
 */
struct ht_kernel_watch {
	struct list_head list;
	struct work_struct *work;
};

/**
 * ht_kernel_watch() - be told when classes are switched
 * @w: stays the caller's, with @work set, until ht_kernel_unwatch()
 *
 * For who has more to do for an event than ht_trace(): what counts when @work
 * runs is ht_class_enabled().  It runs without any lock of the driver's.
 * Context: may sleep.
 */
void ht_kernel_watch(struct ht_kernel_watch *w);

/**
 * ht_kernel_unwatch() - no more
 * @w: as watched; its work is not queued any more, but may be pending
 *
 * Context: may sleep.
 */
void ht_kernel_unwatch(struct ht_kernel_watch *w);

/* This CPU's stream; for ht_kernel_begin() only */
DECLARE_PER_CPU(struct ht_stream *, ht_kernel_stream);

/**
 * ht_kernel_missed() - count an event of a CPU without a stream
 *
 * Context: any, interrupts off.
 */
void ht_kernel_missed(void);

/**
 * ht_kernel_begin() - this CPU's stream
 * @flags: set, for ht_kernel_end()
 *
 * Interrupts are off from here to ht_kernel_end(), so do little.
 * Context: any, also NMIs and probes.
 *
 * Return: the stream; NULL: there is none, and ht_kernel_end() must not be
 * called.
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
 * ht_kernel_end() - done with the stream from ht_kernel_begin()
 * @flags: as ht_kernel_begin() set them
 */
static __always_inline void ht_kernel_end(unsigned long flags)
{
	raw_local_irq_restore(flags);
}

/**
 * ht_class_enabled() - would events of a class be recorded?
 * @cls: the class
 *
 * That is: it is registered on a device, and its host wants it.
 */
static inline bool ht_class_enabled(const struct ht_class *cls)
{
	return READ_ONCE(cls->state) == HT_ENABLE_ON;
}

/**
 * ht_event_enabled() - would an event be recorded?
 * @ident: of HT_EVENT()
 */
#define ht_event_enabled(ident) unlikely(ht_class_enabled(&ht_class_##ident))

/**
 * ht_trace() - emit an event on this CPU's stream
 * @ident: of HT_EVENT()
 * @...: its fields, evaluated only if the event is wanted, and before
 *       interrupts are off
 *
 * HT_EVENT() comes behind the inclusion of this file.
 *
 * Context: any, also NMIs and probes.
 */
#define ht_trace(ident, ...)						\
do {									\
	if (ht_event_enabled(ident))					\
		ht_trace_##ident(0, ##__VA_ARGS__);			\
} while (0)

/* The first parameter is there for the comma before the next. */
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
