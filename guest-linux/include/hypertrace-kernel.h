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
 * ht_kernel_register() - make an event class known
 * @cls: stays the caller's, and in place until ht_kernel_unregister()
 *
 * Registered on the device there is, and on each that replaces it.
 * Context: may sleep.
 *
 * Return: 0, also without a device; -ENOSPC: too many classes; else as
 * ht_register().
 */
int ht_kernel_register(struct ht_class *cls);

/**
 * ht_kernel_register_all() - make several event classes known, in few messages
 * @classes: as ht_kernel_register()'s
 * @count: of @classes
 *
 * Context: may sleep.
 *
 * Return: 0; else as ht_kernel_register(), and none is registered.
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
 * struct ht_settings - a module to which the host can say what to do
 * @owner: settings that are called "OWNER.NAME" are its
 * @set: called with NAME and its value, which may be empty, for each of them:
 *       when it is added, and again for all when the host changed any.  May
 *       sleep.  An error that it returns is logged
 * @link: the driver's
 */
struct ht_settings {
	const char *owner;
	int (*set)(const char *name, const char *value);
	struct list_head link;
};

/**
 * ht_kernel_settings_add() - be told what the host sets
 * @user: stays the caller's, and in place until ht_kernel_settings_remove()
 *
 * Context: may sleep; calls @user->set()
 */
void ht_kernel_settings_add(struct ht_settings *user);

/**
 * ht_kernel_settings_remove() - not any more
 * @user: as added; when this returns, @user->set() is not being called
 *
 * Context: may sleep, but not in @user->set()
 */
void ht_kernel_settings_remove(struct ht_settings *user);

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

/**
 * struct ht_kernel_decl - a field of a trace event, as the kernel declares it
 * @type: its words, without __data_loc and brackets: "unsigned int", "char"
 * @name: of the field; stays where it is as long as the class is used
 * @count: of an array's elements, where known; else 0
 * @size: in bytes; 0: all that follows
 * @array: it has brackets
 * @dynamic: its place and size are only told in an event
 * @is_signed: its elements are
 * @padded: char arrays of a fixed size are emitted as they are, zeroes included
 */
struct ht_kernel_decl {
	const char *type;
	const char *name;
	u32 count;
	u32 size;
	bool array;
	bool dynamic;
	bool is_signed;
	bool padded;
};

/**
 * ht_kernel_type() - what is known of a type of the kernel's by its name
 * @type: its words: "unsigned int", "const char *"
 * @size: set to its bytes
 * @is_signed: set
 *
 * Context: any.
 *
 * Return: whether it is an integer or a pointer that is known; else @size is a
 * word's.
 */
bool ht_kernel_type(const char *type, u32 *size, bool *is_signed);

/**
 * ht_kernel_add_field() - a class's next field, from the kernel's declaration
 * @cls: its @fields are @fields; @nr_fields grows
 * @fields: HT_FIELDS_MAX of them
 * @d: the declaration
 *
 * Integers stay what they are, char arrays become text, other arrays keep their
 * elements, and what is neither becomes bytes: an array or, with @dynamic or
 * without a size, a sequence.
 * Context: any.
 *
 * Return: the field; NULL: there are too many, or one of that name.
 */
const struct ht_field *ht_kernel_add_field(struct ht_class *cls,
					   struct ht_field *fields,
					   const struct ht_kernel_decl *d);

/**
 * ht_kernel_shift() - log2 of the bytes of an element
 * @f: a text, a sequence or an array
 */
static inline unsigned int ht_kernel_shift(const struct ht_field *f)
{
	return f->elem ? (f->elem - HT_FIELD_U8) & 3 : 0;
}

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
 * ht_kernel_room() - has this CPU's stream a packet to spare?
 *
 * For who has much to send and can wait for the host instead of losing events.
 * Context: any.
 *
 * Return: also true without a stream: what is emitted then is no loss of the
 * host's.
 */
static inline bool ht_kernel_room(void)
{
	unsigned long flags;
	struct ht_stream *s;
	bool room;

	/* Without any, events are missed, and not to be counted twice. */
	if (!raw_cpu_read(ht_kernel_stream))
		return true;
	s = ht_kernel_begin(&flags);
	if (!s)
		return true;
	room = s->overwrite || s->packet - READ_ONCE(s->ring->host.tail) <
			       s->packets_mask;
	ht_kernel_end(flags);
	return room;
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
