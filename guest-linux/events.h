/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace-events: a tracepoint as a class and a probe
 *
 * events-header.h makes one struct hte_event of each TRACE_EVENT() of a header;
 * events-main.c switches them.
 */
#ifndef HTE_EVENTS_H
#define HTE_EVENTS_H

#include <linux/trace_events.h>
#include <linux/types.h>

#include "hypertrace-kernel.h"

/* A tracepoint's event with strings takes no more than this, with all of it. */
#define HTE_SCRATCH	PAGE_SIZE

/**
 * struct hte_dynamic - what a word __data_loc_x of the kernel's entry becomes
 * @word: where it is
 * @shift: log2 of the bytes of an element
 * @text: up to its first NUL
 */
struct hte_dynamic {
	u16 word;
	u8 shift;
	bool text;
};

struct hte_syscall;

/**
 * struct hte_event - an event of the kernel
 * @system: as ftrace calls it
 * @name: of the tracepoint, and of the class
 * @syscall: the beginning or end of this system call; NULL: a tracepoint, with
 * @probe: what is attached, with this structure as its data
 * @raw: what the kernel's entry consists of
 * @size: of the entry, without what its words __data_loc_x refer to
 * @nr_dynamic: of these words
 *
 * What follows belongs to events-main.c:
 *
 * @class: its fields are NULL until the event is selected for the first time
 * @dynamic: @nr_dynamic of them
 * @tp: NULL: this kernel does not have it
 * @named: by patterns that are being read
 * @selected: by the parameter
 * @registered: the class is
 * @attached: the probe is
 */
struct hte_event {
	const char *system;
	const char *name;
	struct hte_syscall *syscall;
	void *probe;
	const struct trace_event_fields *raw;
	u16 size;
	u8 nr_dynamic;

	struct ht_class class;
	struct hte_dynamic *dynamic;
	struct tracepoint *tp;
	bool named;
	bool selected;
	bool registered;
	bool attached;
};

/*
 * Pointers to those of headers, between the first and the last object that is
 * linked.  Not the structures: a compiler may align these as it likes.
 */
#define HTE_SECTION	__used __section("hte_events")
extern struct hte_event *const hte_events_begin[], *const hte_events_end[];

/* All of them, while the module is initialised */
extern struct hte_event **hte_events;
extern unsigned int hte_nr_events;

#define hte_for_each(e)							\
	for (struct hte_event **hte_p_ = hte_events, *(e);		\
	     hte_p_ < hte_events + hte_nr_events && ((e) = *hte_p_); hte_p_++)

/* Not cleared first, as kernels are built to do with what is on the stack */
#if __has_attribute(uninitialized)
#define HTE_UNINITIALIZED	__attribute__((uninitialized))
#else
#define HTE_UNINITIALIZED
#endif

/**
 * struct hte_emit - an event being written
 * @stream: this CPU's
 * @flags: of ht_kernel_begin()
 * @end: of the event in the stream
 * @size: reserved there
 * @entry: what the kernel's assignments filled in
 */
struct hte_emit {
	struct ht_stream *stream;
	unsigned long flags;
	u8 *end;
	u32 size;
	u8 *entry;
};

void *hte_begin_dynamic(struct hte_event *e, struct hte_emit *m, u32 size);
void hte_end_dynamic(struct hte_event *e, struct hte_emit *m, const u32 *locs);

/**
 * hte_begin() - have an event written
 * @e: the event
 * @m: for hte_end()
 * @size: of all of it
 * @dynamic: words __data_loc_x; a constant
 *
 * Interrupts are off from here to hte_end(), whatever the kernel calls probes
 * with: some have preemption on.
 *
 * Return: where to; NULL: it was discarded.  The stream itself, if the size is
 * known beforehand.
 */
static __always_inline void *hte_begin(struct hte_event *e,
				       struct hte_emit *m, u32 size,
				       u32 dynamic)
{
	if (dynamic)
		return hte_begin_dynamic(e, m, size);
	m->stream = ht_kernel_begin(&m->flags);
	if (unlikely(!m->stream))
		return NULL;
	m->end = ht_begin(m->stream, READ_ONCE(e->class.id), size);
	if (unlikely(!m->end)) {
		ht_kernel_end(m->flags);
		return NULL;
	}
	return m->end - size;
}

/**
 * hte_end() - the event is written
 * @m: as hte_begin() filled it in
 */
static __always_inline void hte_end(struct hte_emit *m)
{
	ht_finish(m->stream, m->end);
	ht_kernel_end(m->flags);
}

/* events-class.c */
int hte_class_make(struct hte_event *e);
void hte_class_free(struct hte_event *e);

/* events-syscalls.c */
int hte_syscalls_init(void);
void hte_syscalls_exit(void);
unsigned int hte_syscalls_list(struct hte_event **list);
int hte_syscall_fields(struct hte_event *e, struct ht_field *fields);
int hte_syscall_attach(struct hte_event *e, bool on);
const char *hte_syscall_tracepoint(const struct hte_event *e);

/* events-tasks.c */
int hte_tasks_init(void);
void hte_tasks_exit(void);
void hte_tasks_switch(bool more);
void hte_tasks_dump(void);

#endif /* HTE_EVENTS_H */
