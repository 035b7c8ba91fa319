// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-ftrace: what a ring had before the module came
 *
 * Records are read as the guest's own file `trace` reads them: nothing is taken
 * out of the ring, stopped or cleared, as trace_pipe_raw and snapshot would.
 * They go into pages that are laid out as the kernel's own, so that the host
 * decodes them like those of a ring in memory (hypertrace-recover(1)).
 *
 * On each CPU there is a moment when no record is being written, and that is
 * where it is cut: what is older comes in a page, what is younger goes through
 * htf_write().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/trace.h>
#include <linux/trace_events.h>
#include <linux/utsname.h>

#include "ftrace.h"

static char *history;
module_param(history, charp, 0444);
MODULE_PARM_DESC(history,
		 "trace instance whose records so far are sent; /: the top level");

/* Bytes of a part of a text */
#define HTF_TEXT	3000u

/* Waits of half a millisecond, in all, for a host that is behind */
#define HTF_PATIENCE	10000u

/* A page's head, and what a record in it may take besides its bytes */
#define HTF_PAGE_HEAD	16u
#define HTF_PAGE_MISSED	(1u << 31)
#define HTF_EXTEND	30u
#define HTF_DELTA_BITS	27
#define HTF_SMALL_MAX	112u

/* A trace_printk()'s text, as the kernel cuts it */
#define HTF_PRINT_MAX	1024u

/*
 * A history begins; all else is of the last one that did.
 *
 * @symbol, @address: something in the kernel's text, and where it is
 */
HT_EVENT(ftrace_history, (text, instance), (text, release), (text, machine),
	 (text, symbol), (x64, address));

/*
 * @seq: from 0 for each CPU
 * @page: as ftrace's header_page describes it, up to the last record
 */
HT_EVENT(ftrace_page, (u32, cpu), (u32, seq), (bytes, page));

/*
 * Part of the format of an event that is in the pages
 *
 * @name: system:event
 * @offset: of the part, of @size bytes in all
 */
HT_EVENT(ftrace_text, (text, name), (u32, offset), (u32, size), (text, part));

static struct ht_class *const htf_classes[] = {
	&ht_class_ftrace_history, &ht_class_ftrace_page, &ht_class_ftrace_text,
};

/**
 * struct htf_history - what is being read
 * @file: keeps the instance
 * @buffer: of it
 * @cut: the ring's clock: older records of this CPU are sent
 * @overrun: how many were overwritten by then
 * @seen: types of records that were
 * @room: bytes of a page at most
 * @page: of them
 * @used: bytes of @page; 0: it has no head yet
 * @seq: of it
 * @last: when its last record was
 * @missed: records before it are missing
 * @lost: records before the next one are missing
 * @patience: left
 * @print: ids of the events print, bprint and bputs; 0: not looked at
 * @text: a trace_printk(), or part of a format
 */
struct htf_history {
	struct trace_event_file *file;
	struct trace_buffer *buffer;
	u64 cut;
	unsigned long overrun;
	unsigned long *seen;
	u32 room;
	u8 *page;
	u32 used;
	u32 seq;
	u64 last;
	bool missed;
	bool lost;
	unsigned int patience;
	unsigned int print, bprint, bputs;
	union {
		u8 record[HTF_PRINT_MAX + 64];
		char text[HTF_TEXT + 1];
	};
};

static struct htf_history *htf_history;

static const char *htf_instance_name(void)
{
	return !strcmp(history, "/") ? NULL : history;
}

/* Sending ----------------------------------------------------------------- */

static void htf_wait(struct htf_history *h)
{
	for (; h->patience && !ht_kernel_room(); h->patience--)
		usleep_range(500, 1000);
}

static void htf_page_begin(struct htf_history *h, u64 ts)
{
	ht_put64(h->page, ts);
	h->used = HTF_PAGE_HEAD;
	h->last = ts;
	h->missed = h->lost;
	h->lost = false;
}

static void htf_page_send(struct htf_history *h, u32 cpu)
{
	if (!h->used)
		return;
	ht_put64(h->page + 8, (h->used - HTF_PAGE_HEAD) |
			      (h->missed ? HTF_PAGE_MISSED : 0));
	htf_wait(h);
	ht_trace(ftrace_page, cpu, h->seq, h->page, h->used);
	h->seq++;
	h->used = 0;
}

static void htf_page_add(struct htf_history *h, u32 cpu, u64 ts,
			 const u8 *record, u32 size)
{
	u32 len = ALIGN(size, 4), need = len + 16;
	u64 delta;
	u8 *p;

	if (HTF_PAGE_HEAD + need > h->room) {
		h->lost = true;
		return;
	}
	if (h->lost || h->used + need > h->room)
		htf_page_send(h, cpu);
	if (!h->used)
		htf_page_begin(h, ts);
	p = h->page + h->used;
	delta = ts - h->last;
	if (delta >> HTF_DELTA_BITS) {
		ht_put32(p, HTF_EXTEND | (u32)delta << 5);
		ht_put32(p + 4, delta >> HTF_DELTA_BITS);
		p += 8;
		delta = 0;
	}
	if (len <= HTF_SMALL_MAX) {
		ht_put32(p, len / 4 | (u32)delta << 5);
		p += 4;
	} else {
		ht_put32(p, (u32)delta << 5);
		ht_put32(p + 4, len + 4);
		p += 8;
	}
	memcpy(p, record, size);
	memset(p + size, 0, len - size);
	h->used = p + len - h->page;
	h->last = ts;
}

/*
 * The text of a trace_printk(), whose record refers to the kernel's memory, as
 * a marker's record
 *
 * Return: its size; 0: it is another event's
 */
static u32 htf_print(struct htf_history *h, const u8 *record, u32 size)
{
	const struct trace_entry *entry = (const void *)record;
	const u32 head = HTF_RECORD_MIN + sizeof(long);
	char *text = h->record + head;
	const char *from;

	if (!h->print || size < head + sizeof(long) ||
	    (entry->type != h->bprint && entry->type != h->bputs))
		return 0;
	memcpy(h->record, record, head);
	((struct trace_entry *)h->record)->type = h->print;
	memcpy(&from, record + head, sizeof(from));
	if (entry->type == h->bputs)
		strscpy(text, from, HTF_PRINT_MAX);
	else
		bstr_printf(text, HTF_PRINT_MAX, from,
			    (const u32 *)(record + head + sizeof(from)));
	return head + strlen(text) + 1;
}

/* Reading ----------------------------------------------------------------- */

static void htf_read_record(struct htf_history *h, u32 cpu, u64 ts,
			    struct ring_buffer_event *event)
{
	const u8 *record = ring_buffer_event_data(event);
	u32 size = ring_buffer_event_length(event), print;

	if (size < HTF_RECORD_MIN)
		return;
	print = htf_print(h, record, size);
	if (print) {
		record = h->record;
		size = print;
	}
	__set_bit(((const struct trace_entry *)record)->type, h->seen);
	htf_page_add(h, cpu, ts, record, size);
}

static void htf_read_cpu(struct htf_history *h, u32 cpu)
{
	struct ring_buffer_iter *iter =
		ring_buffer_read_start(h->buffer, cpu, GFP_KERNEL);
	struct ring_buffer_event *event;
	unsigned int tries = 0;
	u64 ts, last = 0;

	h->seq = 0;
	h->lost = ring_buffer_overrun_cpu(h->buffer, cpu) != h->overrun;
	while (iter) {
		cond_resched();
		event = ring_buffer_iter_peek(iter, &ts);
		if (!event) {
			/* Or the writer went by just there. */
			if (ring_buffer_iter_empty(iter) || tries++ == 100)
				break;
			continue;
		}
		tries = 0;
		h->lost |= ring_buffer_iter_dropped(iter);
		if (ts >= h->cut)
			break;
		/* Who takes records out meanwhile has us begin again. */
		if (ts >= last)
			htf_read_record(h, cpu, ts, event);
		last = max(ts, last);
		ring_buffer_iter_advance(iter);
	}
	if (iter)
		ring_buffer_read_finish(iter);
	htf_page_send(h, cpu);
	/* One without records says that its last ones are missing. */
	if (h->lost)
		htf_page_begin(h, h->cut);
	htf_page_send(h, cpu);
}

/*
 * On its CPU, in a task: who writes a record has preemption off, so none is
 * being written.  Only an NMI's may come just here, and then twice.
 */
static int htf_cut(void *data)
{
	struct htf_history *h = data;
	int cpu = smp_processor_id();
	unsigned int tries = 1000;
	unsigned long flags;
	u64 begin;

	raw_local_irq_save(flags);
	begin = ring_buffer_time_stamp(h->buffer);
	htf_export_go(cpu);
	/* Later than all that there is; some clocks stand still, though. */
	do {
		h->cut = ring_buffer_time_stamp(h->buffer);
	} while (h->cut == begin && --tries);
	h->overrun = ring_buffer_overrun_cpu(h->buffer, cpu);
	raw_local_irq_restore(flags);
	return 0;
}

static void htf_cut_cpu(struct htf_history *h, int cpu)
{
	cpus_read_lock();
	if (cpu_online(cpu)) {
		smp_call_on_cpu(cpu, htf_cut, h, false);
	} else {
		htf_export_go(cpu);
		h->cut = U64_MAX;
		h->overrun = ring_buffer_overrun_cpu(h->buffer, cpu);
	}
	cpus_read_unlock();
}

/* Formats ----------------------------------------------------------------- */

static char *htf_format(const char *system, const char *name, unsigned int *id)
{
	char path[256], *text, *at;

	if (snprintf(path, sizeof(path), "events/%s/%s/format", system,
		     name) >= sizeof(path))
		return NULL;
	text = htf_tracefs_read(path);
	at = text ? strstr(text, "\nID: ") : NULL;
	if (at && sscanf(at, "\nID: %u", id) == 1 && *id && *id <= U16_MAX)
		return text;
	kvfree(text);
	return NULL;
}

static void htf_send_text(struct htf_history *h, const char *system,
			  const char *event, const char *text)
{
	u32 size = strlen(text), offset, n;
	char name[256];

	snprintf(name, sizeof(name), "%s:%s", system, event);
	for (offset = 0; offset < size; offset += n) {
		n = min3(size - offset, HTF_TEXT, h->room - HTF_PAGE_HEAD);
		memcpy(h->text, text + offset, n);
		h->text[n] = '\0';
		htf_wait(h);
		ht_trace(ftrace_text, name, offset, size, h->text);
	}
}

/* The format of an event, if it is in the pages and was not sent yet */
static void htf_send_format(struct htf_history *h, const char *system,
			    const char *event)
{
	unsigned int id;
	char *text = htf_format(system, event, &id);

	if (text && __test_and_clear_bit(id, h->seen))
		htf_send_text(h, system, event, text);
	kvfree(text);
}

static void htf_send_formats(struct htf_history *h)
{
	/* The tracers', which no list has */
	static const char *const own[] = {
		"function", "funcgraph_entry", "funcgraph_exit",
		"fgraph_retaddr_entry", "context_switch", "wakeup",
		"kernel_stack", "user_stack", "bprint", "print", "raw_data",
		"bputs", "mmiotrace_rw", "mmiotrace_map", "branch", "hwlat",
		"osnoise", "timerlat", "func_repeats",
	};
	char *text, *rest, *line;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(own); i++)
		htf_send_format(h, "ftrace", own[i]);
	text = htf_tracefs_read("available_events");
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		char *system = strsep(&line, ":");

		if (bitmap_empty(h->seen, U16_MAX + 1))
			break;
		if (line)
			htf_send_format(h, system, line);
		cond_resched();
	}
	kvfree(text);
}

/* ------------------------------------------------------------------------- */

/*
 * The buffer of the instance.  Nothing says so but a reservation, which fails:
 * no record is so large.
 */
static int htf_find_buffer(struct htf_history *h)
{
	h->file = trace_get_event_file(htf_instance_name(), "sched",
				       "sched_kthread_stop_ret");
	if (IS_ERR(h->file))
		return PTR_ERR(h->file);
	/* With such a trigger it would be another buffer. */
	if (h->file->flags & EVENT_FILE_FL_TRIGGER_COND ||
	    trace_event_buffer_lock_reserve(&h->buffer, h->file, 0, INT_MAX,
					    0)) {
		trace_put_event_file(h->file);
		return -EBUSY;
	}
	return 0;
}

static void htf_print_ids(struct htf_history *h)
{
	kvfree(htf_format("ftrace", "bprint", &h->bprint));
	kvfree(htf_format("ftrace", "bputs", &h->bputs));
	kvfree(htf_format("ftrace", "print", &h->print));
}

static void htf_history_free(struct htf_history *h)
{
	bitmap_free(h->seen);
	kfree(h->page);
	kfree(h);
}

/**
 * htf_history_init() - find what the parameter asks for
 *
 * Context: may sleep
 *
 * Return: 0, also if it asks for nothing; -ENOENT: there is no such instance
 */
int htf_history_init(void)
{
	struct htf_history *h;
	int ret = -ENOMEM;

	if (!history || !*history)
		return 0;
	h = kzalloc(sizeof(*h), GFP_KERNEL);
	if (!h)
		return ret;
	h->patience = HTF_PATIENCE;
	h->page = kmalloc(PAGE_SIZE, GFP_KERNEL);
	h->seen = bitmap_zalloc(U16_MAX + 1, GFP_KERNEL);
	if (!h->page || !h->seen)
		goto free;
	ret = htf_find_buffer(h);
	if (ret) {
		pr_err("history=%s: error %d: no such trace instance, or its event sched_kthread_stop_ret has a trigger\n",
		       history, ret);
		goto free;
	}
	ret = ht_kernel_register_all(htf_classes, ARRAY_SIZE(htf_classes));
	if (ret) {
		trace_put_event_file(h->file);
		goto free;
	}
	/* Of an earlier boot's ring, it would be that kernel's memory. */
	if (!htf_instance_name())
		htf_print_ids(h);
	htf_history = h;
	return 0;

free:
	htf_history_free(h);
	return ret;
}

/**
 * htf_history_wanted() - are records held until htf_history_send()?
 */
bool htf_history_wanted(void)
{
	return htf_history;
}

/**
 * htf_history_send() - let records go, and send those before them
 *
 * Context: may sleep
 */
void htf_history_send(void)
{
	struct htf_history *h = htf_history;
	struct ht_stream *s;
	unsigned long flags;
	bool wanted;
	int cpu;

	if (!h)
		return;
	/* All in one stream, and so in this order */
	migrate_disable();
	s = ht_kernel_begin(&flags);
	if (s) {
		/* The count of a sequence has 16 bits. */
		h->room = min3((u32)PAGE_SIZE, (u32)U16_MAX & ~3u,
			       (1u << s->packet_shift) -
			       (u32)sizeof(struct ht_packet) - 64);
		ht_kernel_end(flags);
	}
	wanted = s && ht_event_enabled(ftrace_page);
	if (wanted)
		ht_trace(ftrace_history, history, init_utsname()->release,
			 init_utsname()->machine, "register_ftrace_export",
			 (unsigned long)register_ftrace_export);
	else
		pr_warn("history=%s: no host wants it\n", history);
	/* One at a time: soon after the cut little has been overwritten. */
	for_each_possible_cpu(cpu) {
		htf_cut_cpu(h, cpu);
		if (wanted)
			htf_read_cpu(h, cpu);
	}
	if (wanted)
		htf_send_formats(h);
	migrate_enable();
}

/**
 * htf_history_exit() - undo htf_history_init()
 */
void htf_history_exit(void)
{
	struct htf_history *h = htf_history;

	if (!h)
		return;
	htf_history = NULL;
	ht_kernel_unregister_all(htf_classes, ARRAY_SIZE(htf_classes));
	trace_put_event_file(h->file);
	htf_history_free(h);
}
