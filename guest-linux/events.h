/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace-sources: a tracepoint as a class and a probe
 *
 * events-header.h makes one struct hte_event of each TRACE_EVENT() of a header;
 * events-main.c attaches and detaches the probes.
 *
 * Dependencies: sources-main.c uses events-main.c and functions.c;
 * events-main.c uses events-class.c, events-syscalls.c and events-tasks.c;
 * these use events-fields.c.
 */
#ifndef HTE_EVENTS_H
#define HTE_EVENTS_H

#include <linux/trace_events.h>
#include <linux/types.h>

#include "hypertrace-kernel.h"
#include "sources.h"

/* Largest event with strings of a tracepoint, in bytes */
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

/**
 * struct hte_decl - a field of a trace event, as the kernel declares it
 * @type: words of the type, without __data_loc and brackets: "unsigned int"
 * @name: of the field; must stay in place as long as the class is used
 * @count: elements of an array, or 0 if unknown
 * @size: in bytes; 0: the rest of the event
 * @array: the declaration has brackets
 * @dynamic: the event itself tells place and size
 * @is_signed: the elements are signed
 * @padded: emit char arrays of a fixed size whole, with their zeroes
 */
struct hte_decl {
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
 * hte_type() - look up a type of the kernel by its name
 * @type: words of the type: "unsigned int", "const char *"
 * @size: set to its size in bytes; to that of a word if it is unknown
 * @is_signed: set
 *
 * Return: whether @type is a known integer or a pointer.
 */
bool hte_type(const char *type, u32 *size, bool *is_signed);

/**
 * hte_add_field() - append a field to a class
 * @cls: its @fields are @fields; @nr_fields is incremented
 * @fields: room for HT_FIELDS_MAX fields
 * @d: the declaration
 *
 * Return: the field; NULL: too many fields, or one of that name exists.
 */
const struct ht_field *hte_add_field(struct ht_class *cls,
				     struct ht_field *fields,
				     const struct hte_decl *d);

/* log2 of the bytes of an element of a text, a sequence or an array */
static inline unsigned int hte_shift(const struct ht_field *f)
{
	return f->elem ? (f->elem - HT_FIELD_U8) & 3 : 0;
}

/*
 * Kernels are built to clear variables on the stack.  Do not clear those that
 * are written before they are read.
 */
#if __has_attribute(uninitialized)
#define HTE_UNINITIALIZED	__attribute__((uninitialized))
#else
#define HTE_UNINITIALIZED
#endif

/**
 * hte_emit() - emit an event whose size is fixed
 * @e: the event
 * @entry: the payload, in memory that the host cannot write
 * @size: of @entry, a constant
 *
 * Context: any
 */
static __always_inline void hte_emit(const struct hte_event *e,
				     const void *entry, u32 size)
{
	unsigned long flags;
	struct ht_stream *s = ht_kernel_begin(&flags);
	u8 *end;

	if (unlikely(!s))
		return;
	end = ht_begin(s, READ_ONCE(e->class.id), size);
	if (likely(end)) {
		memcpy(end - size, entry, size);
		ht_finish(s, end);
	}
	ht_kernel_end(flags);
}

/**
 * struct hte_emit_state - an event with strings that is being assembled
 * @stream: the stream of this CPU
 * @flags: of ht_kernel_begin()
 * @end: end of the event in the stream
 * @size: bytes reserved there
 * @entry: private memory that the kernel's assignments fill in
 */
struct hte_emit_state {
	struct ht_stream *stream;
	unsigned long flags;
	u8 *end;
	u32 size;
	u8 *entry;
};

void *hte_begin_dynamic(struct hte_event *e, struct hte_emit_state *m,
			u32 size);
void hte_end_dynamic(struct hte_event *e, struct hte_emit_state *m,
		     const u32 *locs);

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
void hte_tasks_switch(bool any, bool more);

#endif /* HTE_EVENTS_H */
