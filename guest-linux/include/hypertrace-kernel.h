/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace: events of the Linux kernel, for other modules
 *
 *	HT_EVENT(queue_full, (u32, cpu), (u64, depth));
 *
 *	ht_kernel_register(&ht_class_queue_full);	// may sleep
 *
 *	struct ht_stream *s = ht_kernel_begin();	// anywhere, even in an NMI
 *
 *	if (s) {
 *		ht_emit_queue_full(s, cpu, depth);
 *		ht_kernel_end();
 *	}
 *
 * Each CPU has a stream for each context: task, softirq, interrupt, NMI.
 * Events go to the first device; without one they vanish, which is not an
 * error: instrumented code does not care whether it is watched.
 */
#ifndef HYPERTRACE_KERNEL_H
#define HYPERTRACE_KERNEL_H

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
 * ht_kernel_unregister() - forget an event class
 * @cls: as registered; when this returns no event of it is being emitted
 *
 * Context: may sleep.
 */
void ht_kernel_unregister(struct ht_class *cls);

/**
 * ht_kernel_begin() - this CPU's stream for the current context
 *
 * Preemption is off from here to ht_kernel_end(); do not sleep.
 *
 * Return: the stream; NULL: there is none, and ht_kernel_end() must not be
 * called.
 */
struct ht_stream *ht_kernel_begin(void);

/**
 * ht_kernel_end() - done with the stream from ht_kernel_begin()
 */
void ht_kernel_end(void);

/**
 * ht_kernel_get() - reserve an event, as ht_get()
 * @cls: a registered class
 * @size: payload bytes
 * @stream: set, for ht_kernel_commit()
 *
 * Return: where the payload goes; NULL: discarded, nothing to commit.
 */
void *ht_kernel_get(const struct ht_class *cls, u32 size,
		    struct ht_stream **stream);

/**
 * ht_kernel_commit() - publish the event of ht_kernel_get()
 * @stream: from ht_kernel_get()
 */
void ht_kernel_commit(struct ht_stream *stream);

#endif /* HYPERTRACE_KERNEL_H */
