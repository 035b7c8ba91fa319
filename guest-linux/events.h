/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace-sources: events of tracepoints and system calls
 *
 * events-header.h generates a struct hte_event for each event in a header of
 * the kernel.  events-main.c attaches and detaches the probes.
 */
#ifndef HTE_EVENTS_H
#define HTE_EVENTS_H

#include <linux/trace_events.h>
#include <linux/types.h>

#include "hypertrace-kernel.h"
#include "sources.h"

/*
 * Maximum size of an entry with data of variable size, in bytes; an event with
 * a larger entry is discarded
 */
#define HTE_SCRATCH	PAGE_SIZE

/**
 * struct hte_dynamic - a word __data_loc_x of an event's entry
 * @word: offset of the word in the entry, in bytes
 * @shift: log2 of the size of an element of the data, in bytes
 * @text: the data are text that ends at the first NUL
 */
struct hte_dynamic {
	u16 word;
	u8 shift;
	bool text;
};

struct hte_syscall;

/**
 * struct hte_event - an event of the kernel
 * @system: ftrace's name of the event's system
 * @name: name of the event and of its class
 * @syscall: the system call of the event; NULL: the event of a tracepoint
 *
 * Only for the event of a tracepoint:
 *
 * @probe: the function to attach, with this structure as its data
 * @raw: the kernel's description of the entry
 * @size: size of the entry without the data of its words __data_loc_x, in bytes
 * @nr_dynamic: number of these words
 *
 * Protected by hte_mutex, except that probes read @class and @dynamic:
 *
 * @class: the class; its fields are NULL until the parameter first names the
 *         event
 * @dynamic: @nr_dynamic elements
 * @tp: the tracepoint, or NULL if the kernel and its loaded modules do not have
 *      it, or the event is left out
 * @named: the text that hte_parse() parsed last selects the event
 * @selected: the parameter selects the event
 * @registered: the class is registered
 * @attached: the probe is attached; for a system call, the event is emitted
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
 * Pointers to the events of headers, from events-first.c to events-last.c in
 * the order of linking.  They are pointers, not structures, since a compiler
 * may add padding between structures in a section.
 */
#define HTE_SECTION	__used __section("hte_events")
extern struct hte_event *const hte_events_begin[], *const hte_events_end[];

/* Array of all events, which is valid from hte_init() to hte_exit() */
extern struct hte_event **hte_events;
extern unsigned int hte_nr_events;

#define hte_for_each(e)							\
	for (struct hte_event **hte_p_ = hte_events, *(e);		\
	     hte_p_ < hte_events + hte_nr_events && ((e) = *hte_p_); hte_p_++)

/**
 * struct hte_decl - a field of a trace event, as the kernel declares it
 * @type: the type without __data_loc and brackets, for example "unsigned int"
 * @name: name of the field; must stay in place as long as the class is used
 * @count: number of elements of an array, or 0 if unknown
 * @size: size of the field in bytes; not used if @dynamic is set
 * @array: the declaration has brackets, or it is a system call's argument that
 *         is text
 * @dynamic: the size of the data varies: a text or a sequence
 * @is_signed: the value, or each element of an array, is a signed integer
 */
struct hte_decl {
	const char *type;
	const char *name;
	u32 count;
	u32 size;
	bool array;
	bool dynamic;
	bool is_signed;
};

/**
 * hte_type() - look up a type of the kernel by its name
 * @type: the type, for example "unsigned int" or "const char *"
 * @size: set to its size in bytes, or to that of a long if the type is unknown
 * @is_signed: set to true if it is a signed integer
 *
 * Context: any
 *
 * Return: true if @type is a known integer or a pointer.
 */
bool hte_type(const char *type, u32 *size, bool *is_signed);

/**
 * hte_add_field() - append a field to a class
 * @cls: the class, whose @fields are @fields; its @nr_fields is incremented
 * @fields: room for HT_FIELDS_MAX fields
 * @d: the declaration
 *
 * Context: the class is not registered
 *
 * Return: the field; NULL: the class already has HT_FIELDS_MAX fields, or a
 * field with a name that is too similar, such as x, _x and x_length.
 */
const struct ht_field *hte_add_field(struct ht_class *cls,
				     struct ht_field *fields,
				     const struct hte_decl *d);

/* log2 of the size of an element of a text, a sequence or an array, in bytes */
static inline unsigned int hte_shift(const struct ht_field *f)
{
	return f->elem ? (f->elem - HT_FIELD_U8) & 3 : 0;
}

/*
 * CONFIG_INIT_STACK_ALL_ZERO clears variables on the stack.  This attribute
 * exempts a variable that is always written before it is read.
 */
#if __has_attribute(uninitialized)
#define HTE_UNINITIALIZED	__attribute__((uninitialized))
#else
#define HTE_UNINITIALIZED
#endif

/**
 * hte_emit() - emit an event whose size is fixed
 * @e: the event
 * @entry: the payload, in memory to which the host cannot write
 * @size: size of @entry in bytes, a constant
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
 * struct hte_emit_state - an event of variable size that is being assembled
 * @stream: the stream of this CPU
 * @flags: the flags for ht_kernel_end()
 * @end: end of the memory that is reserved in the stream
 * @size: size of the reserved memory without the event's header, in bytes
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
