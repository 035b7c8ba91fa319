// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: system calls, two events each
 *
 * The events are those of ftrace's system "syscalls", for example
 * sys_enter_openat and sys_exit_openat.  The module asks ftrace for the names
 * and types of the calls' arguments when it is loaded; without
 * CONFIG_FTRACE_SYSCALLS, it has no such events.  One probe serves the entries
 * of all system calls, and a second probe serves the exits.
 */
#include <linux/bits.h>
#include <linux/compat.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <trace/syscall.h>

#include <asm/syscall.h>
#include <asm/unistd.h>

#include "events.h"

#define HTE_ARGS_MAX	6

/*
 * Room for all texts of a call together, in bytes: the text that exceeds it is
 * cut, and further texts stay empty
 */
#define HTE_TEXTS_MAX	512

/**
 * struct hte_syscall - a system call
 * @enter: the event of its entry
 * @exit: the event of its exit
 * @meta: ftrace's description
 * @size: size of the payload of @enter in bytes, without the bytes of texts
 * @texts: bit N is set if argument N is text
 * @shift: log2 of the size in bytes of each argument that is not text
 */
struct hte_syscall {
	struct hte_event enter;
	struct hte_event exit;
	const struct syscall_metadata *meta;
	u16 size;
	u8 texts;
	u8 shift[HTE_ARGS_MAX];
};

static struct hte_syscall *hte_syscalls;
static unsigned int hte_nr_syscalls;

/*
 * Indexed by the number of a system call: the call if its entry (hte_entered)
 * or exit (hte_left) is emitted, else NULL
 */
static struct hte_syscall *hte_entered[NR_syscalls];
static struct hte_syscall *hte_left[NR_syscalls];
static unsigned int hte_nr_entered, hte_nr_left;

/**
 * struct hte_texts - the arguments of a call that are text
 * @len: length of each text in bytes, indexed by the argument's number
 * @bytes: the texts, without NULs between them
 */
struct hte_texts {
	u16 len[HTE_ARGS_MAX];
	char bytes[HTE_TEXTS_MAX];
};

/*
 * Copy the texts of a call from user memory.  If a page of a text is not
 * present, the text stays empty, since the probe must not sleep for a page
 * fault.
 *
 * Return: the size of all texts in bytes.
 */
static notrace unsigned int hte_get_texts(struct hte_texts *t,
					  const struct hte_syscall *call,
					  const unsigned long *args)
{
	unsigned int i, at = 0;

	for (i = 0; i < HTE_ARGS_MAX; i++) {
		long len = 0;

		if (!(call->texts & BIT(i)))
			continue;
		if (at < sizeof(t->bytes)) {
			pagefault_disable();
			len = strncpy_from_user(t->bytes + at,
						(const char __user *)args[i],
						sizeof(t->bytes) - at);
			pagefault_enable();
		}
		t->len[i] = max(len, 0L);
		at += t->len[i];
	}
	return at;
}

static __always_inline u8 *hte_put_arg(u8 *p, unsigned int shift,
				       unsigned long value)
{
	switch (shift) {
	case 0:
		ht_put8(p, value);
		break;
	case 1:
		ht_put16(p, value);
		break;
	case 2:
		ht_put32(p, value);
		break;
	default:
		ht_put64(p, value);
		break;
	}
	return p + (1 << shift);
}

static notrace void hte_emit_enter(const struct hte_syscall *call,
				   const unsigned long *args,
				   const struct hte_texts *texts,
				   unsigned int text_size)
{
	u32 size = call->size + text_size;
	const char *text = texts ? texts->bytes : NULL;
	struct ht_stream *s;
	unsigned long flags;
	unsigned int i;
	u8 *end, *p;

	s = ht_kernel_begin(&flags);
	if (unlikely(!s))
		return;
	end = ht_begin(s, READ_ONCE(call->enter.class.id), size);
	if (likely(end)) {
		p = end - size;
		for (i = 0; i < call->meta->nb_args; i++) {
			if (call->texts & BIT(i)) {
				p = ht_put_seq(p, text, texts->len[i], 1);
				text += texts->len[i];
			} else {
				p = hte_put_arg(p, call->shift[i], args[i]);
			}
		}
		ht_finish(s, end);
	}
	ht_kernel_end(flags);
}

/* Not inlined, so that a call without texts needs no stack for hte_texts */
static noinline notrace void hte_enter_with_texts(const struct hte_syscall *call,
						  const unsigned long *args)
{
	struct hte_texts HTE_UNINITIALIZED texts;
	unsigned int size = hte_get_texts(&texts, call, args);

	hte_emit_enter(call, args, &texts, size);
}

/*
 * Look up a system call in hte_entered or hte_left.  Return NULL if its event
 * is off, and for compat calls, whose numbers have another meaning.
 */
static __always_inline const struct hte_syscall *
hte_wanted(struct hte_syscall *const *calls, long nr)
{
	if (in_compat_syscall() || (unsigned long)nr >= NR_syscalls)
		return NULL;
	return READ_ONCE(calls[nr]);
}

static notrace void hte_on_enter(void *data, struct pt_regs *regs, long nr)
{
	const struct hte_syscall *call = hte_wanted(hte_entered, nr);
	unsigned long args[HTE_ARGS_MAX];

	if (!call)
		return;
	syscall_get_arguments(current, regs, args);
	if (call->texts)
		hte_enter_with_texts(call, args);
	else
		hte_emit_enter(call, args, NULL, 0);
}

static notrace void hte_on_exit(void *data, struct pt_regs *regs, long ret)
{
	const struct hte_syscall *call =
		hte_wanted(hte_left, syscall_get_nr(current, regs));
	u64 value = ret;

	if (call)
		hte_emit(&call->exit, &value, sizeof(value));
}

/**
 * hte_syscall_tracepoint() - get the name of an event's tracepoint
 * @e: an event of a system call
 *
 * Context: any
 */
const char *hte_syscall_tracepoint(const struct hte_event *e)
{
	return e == &e->syscall->enter ? "sys_enter" : "sys_exit";
}

/**
 * hte_syscall_attach() - start or stop emitting an event
 * @e: an event of a system call
 * @on: true: start an event that is off; false: stop an event that is on
 *
 * Context: may sleep; callers exclude each other by hte_mutex
 *
 * Return: 0, or the error of attaching or detaching the probe; nothing has
 * changed then.
 */
int hte_syscall_attach(struct hte_event *e, bool on)
{
	bool enter = e == &e->syscall->enter;
	struct hte_syscall **calls = enter ? hte_entered : hte_left;
	unsigned int *users = enter ? &hte_nr_entered : &hte_nr_left;
	void *probe = enter ? (void *)hte_on_enter : (void *)hte_on_exit;
	int nr = e->syscall->meta->syscall_nr;
	int ret = 0;

	if (on) {
		if (!*users)
			ret = tracepoint_probe_register(e->tp, probe, NULL);
		if (ret)
			return ret;
		++*users;
		WRITE_ONCE(calls[nr], e->syscall);
		return 0;
	}
	if (*users == 1)
		ret = tracepoint_probe_unregister(e->tp, probe, NULL);
	if (ret)
		return ret;
	--*users;
	WRITE_ONCE(calls[nr], NULL);
	return 0;
}

/*
 * Test whether an argument is text.  The type is not enough, since buffers are
 * pointers to char, too.
 */
static bool hte_is_text(const char *type, const char *name)
{
	static const char *const names[] = {
		"_description", "_fs_name", "_type", "dev_name", "dir_name",
		"filename", "from_pathname", "name", "name_user", "new_root",
		"newname", "oldname", "path", "pathname", "put_old",
		"specialfile", "to_pathname", "type", "u_name", "uname",
	};

	unsigned int i;

	if (strcmp(type, "const char *") && strcmp(type, "char *"))
		return false;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static void hte_measure(struct hte_syscall *call)
{
	const struct syscall_metadata *meta = call->meta;
	bool is_signed;
	unsigned int i;
	u32 size;

	for (i = 0; i < meta->nb_args; i++) {
		if (hte_is_text(meta->types[i], meta->args[i])) {
			call->texts |= BIT(i);
			call->size += sizeof(u16);
			continue;
		}
		hte_type(meta->types[i], &size, &is_signed);
		call->shift[i] = ilog2(size);
		call->size += size;
	}
}

/**
 * hte_syscall_fields() - add the fields of an event to its class
 * @e: an event of a system call
 * @fields: room for HT_FIELDS_MAX fields
 *
 * Context: as hte_add_field()
 *
 * Return: 0; -E2BIG: the names of two fields are too similar.
 */
int hte_syscall_fields(struct hte_event *e, struct ht_field *fields)
{
	static const struct hte_decl ret = {
		.type = "long", .name = "ret", .size = sizeof(u64),
		.is_signed = true,
	};
	const struct syscall_metadata *meta = e->syscall->meta;
	unsigned int i;

	if (e == &e->syscall->exit)
		return hte_add_field(&e->class, fields, &ret) ?
		       0 : -E2BIG;
	for (i = 0; i < meta->nb_args; i++) {
		bool text = e->syscall->texts & BIT(i);
		struct hte_decl d = {
			.type = text ? "char" : meta->types[i],
			.name = meta->args[i],
			.array = text,
			.dynamic = text,
		};

		hte_type(d.type, &d.size, &d.is_signed);
		if (!hte_add_field(&e->class, fields, &d))
			return -E2BIG;
	}
	return 0;
}

/*
 * Words of the kernel's headers that may be names of system calls, for example
 * "sys_read"
 */
static const char *const hte_syscall_names[] = {
#define HTE_SYSCALL(name) #name,
#include "syscall-names.h"
};

static const struct syscall_metadata *hte_syscall_find(const char *name)
{
#ifdef CONFIG_FTRACE_SYSCALLS
	const struct syscall_metadata *meta;
	struct trace_event_file *file;
	char event[64];

	snprintf(event, sizeof(event), "sys_enter_%s", name + strlen("sys_"));
	file = trace_get_event_file(NULL, "syscalls", event);
	if (IS_ERR(file))
		return NULL;
	/* The description remains valid after trace_put_event_file(). */
	meta = file->event_call->data;
	trace_put_event_file(file);
	if (meta->syscall_nr >= 0 && meta->syscall_nr < NR_syscalls &&
	    meta->nb_args <= HTE_ARGS_MAX)
		return meta;
#endif
	return NULL;
}

/**
 * hte_syscalls_init() - find the system calls of this kernel
 *
 * The caller must call hte_syscalls_exit(), also after an error.
 *
 * Context: may sleep
 *
 * Return: 0 or -ENOMEM.
 */
int hte_syscalls_init(void)
{
	unsigned int i;

	hte_syscalls = kvcalloc(ARRAY_SIZE(hte_syscall_names),
				sizeof(*hte_syscalls), GFP_KERNEL);
	if (!hte_syscalls)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(hte_syscall_names); i++) {
		struct hte_syscall *call = &hte_syscalls[hte_nr_syscalls];

		call->meta = hte_syscall_find(hte_syscall_names[i]);
		if (!call->meta)
			continue;
		call->enter.name = call->meta->enter_event->name;
		call->exit.name = call->meta->exit_event->name;
		call->enter.system = call->exit.system = "syscalls";
		call->enter.syscall = call->exit.syscall = call;
		hte_measure(call);
		hte_nr_syscalls++;
	}
	return 0;
}

void hte_syscalls_exit(void)
{
	kvfree(hte_syscalls);
}

/**
 * hte_syscalls_list() - list the events of system calls
 * @list: filled with pointers to the events, unless it is NULL
 *
 * Context: after hte_syscalls_init()
 *
 * Return: the number of events.
 */
unsigned int hte_syscalls_list(struct hte_event **list)
{
	unsigned int i;

	for (i = 0; list && i < hte_nr_syscalls; i++) {
		*list++ = &hte_syscalls[i].enter;
		*list++ = &hte_syscalls[i].exit;
	}
	return 2 * hte_nr_syscalls;
}
