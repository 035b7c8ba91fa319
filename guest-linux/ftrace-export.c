// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-ftrace: what ftrace calls with each record
 *
 * A record is emitted into its CPU's stream at once if its type is known.  If
 * it is not, it is kept, and so is all that comes behind it on that CPU until
 * the helper has found out: order and times stay right.  Nothing here locks,
 * allocates or waits; interrupts are off, so only an NMI comes in between, and
 * its record is counted as discarded.
 */
#include <linux/bitops.h>
#include <linux/cpu.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/trace.h>
#include <linux/trace_events.h>

#include "ftrace.h"

static unsigned int keep_kb = 64;
module_param(keep_kb, uint, 0444);
MODULE_PARM_DESC(keep_kb,
		 "KiB a CPU for records whose type is not known yet, up to 65536");

/* Bytes of records that are emitted at once, with interrupts off */
#define HTF_DRAIN_MAX	(64u * 1024)

/* Instances in which one event may be on, to be known as the same */
#define HTF_DOUBLES	8

/*
 * A double comes from the same call of the same function, which has preemption
 * off: only interrupts, or a hypervisor, come in between.
 */
#define HTF_DOUBLE_NS	100000u

/* What a record may take in a page besides its own bytes: header, time */
#define HTF_HEADER	24

/* Records that are not exported: a stack trace behind each event */
#define HTF_UNSEEN	512

/**
 * struct htf_last - the last record of a context: task, softirq, interrupt, NMI
 * @at: where it was, once in each instance
 * @nr: of @at
 * @size: of the record; 0: the context has ended since
 * @clock: when it came
 * @written: of struct htf_cpu, then
 * @bytes: its first ones
 */
struct htf_last {
	unsigned long at[HTF_DOUBLES];
	unsigned int nr;
	u32 size;
	u64 clock;
	u64 written;
	u8 bytes[256];
};

/**
 * struct htf_cpu - a CPU's state
 * @held: records are not sent yet
 * @busy: the record of a context that is interrupted here is looked at
 * @begin: of @kept, where the first one is; 0 if @used is
 * @used: bytes of @kept, including what is before @begin
 * @kept: struct htf_kept after struct htf_kept
 * @wake: tells the helper
 * @written: bytes that records took in pages at most
 * @last: by context
 */
struct htf_cpu {
	bool held;
	bool busy;
	u32 begin;
	u32 used;
	u8 *kept;
	struct irq_work wake;
	u64 written;
	struct htf_last last[4];
};

/**
 * struct htf_kept - a record that waits for its type
 * @clock: when it happened
 * @renewals: how many types had been renewed by then
 * @size: of @record
 * @record: as the kernel wrote it
 */
struct htf_kept {
	u64 clock;
	u32 renewals;
	u32 size;
	u8 record[];
};

static struct htf_cpu __percpu *htf_cpus;

/* The helper is to drain, and has not begun to. */
static unsigned long htf_asked;

static u32 htf_room(void)
{
	return keep_kb * 1024;
}

/* Who has the parameters' lock, as who reads them does, finds it allocated. */
static int htf_kept_get(char *buffer, const struct kernel_param *kp)
{
	unsigned long kept = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		kept += htf_cpus ? READ_ONCE(per_cpu_ptr(htf_cpus, cpu)->used) :
				   0;
	return sysfs_emit(buffer, "%lu\n", kept);
}

static const struct kernel_param_ops htf_kept_ops = {
	.get = htf_kept_get,
};
module_param_cb(kept, &htf_kept_ops, NULL, 0444);
MODULE_PARM_DESC(kept, "read: bytes of records that wait for their types");

/* Events ------------------------------------------------------------------ */

/* Where the bytes of a counted or dynamic piece are, in whole elements */
static notrace u32 htf_find(const struct htf_op *op, const u8 *record,
			    u32 size, const u8 **at)
{
	u32 offset = op->offset, len = op->size;

	if (op->kind == HTF_DYNAMIC) {
		u32 where;

		memcpy(&where, record + offset, sizeof(where));
		offset = (where & 0xffff) +
			 (op->relative ? offset + sizeof(u32) : 0);
		len = where >> 16;
	} else if (!len) {
		len = size;
	}
	offset = min(offset, size);
	len = min3(len, size - offset, (u32)U16_MAX << op->shift);
	*at = record + offset;
	if (op->text)
		len = strnlen(*at, len);
	return len >> op->shift << op->shift;
}

/* As ht_begin(), at an earlier time */
static notrace u8 *htf_begin(struct ht_stream *s, u32 id, u32 size, u64 clock)
{
	u8 *end;

	if (likely(!clock))
		return ht_begin(s, id, size);
	if (s->busy) {
		ht_atomic_inc(&s->lost_nested);
		return NULL;
	}
	s->busy = 1;
	ht_compiler_barrier();
	if (!s->slow)
		return ht_discard(s);
	end = s->slow->early(s, id, size);
	if (end != HT_READ_CLOCK)
		return end;
	/* Another module's events may have gone first. */
	return s->slow->get(s, id, size, max(clock, s->clock));
}

static notrace void htf_emit(struct ht_stream *s, const struct htf_type *t,
			     const u8 *record, u32 size, u64 clock)
{
	struct {
		const u8 *at;
		u32 len;
	} pieces[HT_FIELDS_MAX];
	u32 id = READ_ONCE(t->class.id), total = t->fixed;
	unsigned int i;
	u8 *end, *p;

	/* A device may have less room for classes than the one before it. */
	if (unlikely(!id || size < t->least)) {
		ht_atomic_inc(&s->lost_nested);
		return;
	}
	/* the host does not want it: no event, and none discarded */
	if (READ_ONCE(t->class.state) != HT_ENABLE_ON)
		return;
	for (i = 0; i < t->nr_ops; i++) {
		const struct htf_op *op = &t->ops[i];

		if (op->kind == HTF_PLAIN)
			continue;
		pieces[i].len = htf_find(op, record, size, &pieces[i].at);
		total += pieces[i].len;
	}
	end = htf_begin(s, id, total, clock);
	if (!end)
		return;
	p = end - total;
	for (i = 0; i < t->nr_ops; i++) {
		const struct htf_op *op = &t->ops[i];

		if (op->kind == HTF_PLAIN) {
			memcpy(p, record + op->offset, op->size);
			p += op->size;
		} else {
			ht_put16(p, pieces[i].len >> op->shift);
			memcpy(p + 2, pieces[i].at, pieces[i].len);
			p += 2 + pieces[i].len;
		}
	}
	ht_finish(s, end);
}

/* Keeping ----------------------------------------------------------------- */

static notrace void htf_keep(struct htf_cpu *c, struct ht_stream *s,
			     const void *record, u32 size)
{
	u32 step = ALIGN(sizeof(struct htf_kept) + size, sizeof(u64));
	struct htf_kept *k = (struct htf_kept *)(c->kept + c->used);

	if (htf_room() - c->used < step) {
		ht_atomic_inc(&s->lost_nested);
		goto wake;
	}
	k->clock = ht_clock();
	k->renewals = htf_renewals();
	k->size = size;
	memcpy(k->record, record, size);
	c->used += step;
wake:
	/*
	 * Once: the interrupt may be an event itself, which is kept as well.
	 * Its barrier pairs with htf_export_drain().
	 */
	if (!test_and_set_bit(0, &htf_asked))
		irq_work_queue(&c->wake);
}

static void htf_woken(struct irq_work *work)
{
	htf_help();
}

/*
 * Emit what is kept here: up to the first of a type that is not known, and not
 * much at a time.
 */
static void htf_drain(void *left)
{
	struct htf_cpu *c = this_cpu_ptr(htf_cpus);
	struct ht_stream *s;
	unsigned long flags;
	u32 at = c->begin;

	if (!c->used)
		return;
	s = ht_kernel_begin(&flags);
	/* Without a device it stays here until there is one. */
	if (!s)
		return;
	WRITE_ONCE(c->busy, true);
	barrier();
	while (at < c->used && at - c->begin < HTF_DRAIN_MAX) {
		struct htf_kept *k = (struct htf_kept *)(c->kept + at);
		const struct trace_entry *entry = (void *)k->record;
		const struct htf_type *t;

		/* Its number may already be another event's. */
		if (htf_type_renewed(entry->type, k->renewals))
			t = &htf_untyped;
		else
			t = htf_type_get(entry->type);
		if (!t) {
			htf_type_wanted(entry->type);
			break;
		}
		htf_emit(s, t, k->record, k->size, k->clock);
		at += ALIGN(sizeof(*k) + k->size, sizeof(u64));
	}
	if (at == c->used) {
		at = 0;
		c->used = 0;
	}
	c->begin = at;
	if (c->used)
		*(bool *)left = true;
	barrier();
	WRITE_ONCE(c->busy, false);
	ht_kernel_end(flags);
}

/**
 * htf_export_drain() - emit some of what is kept, as far as types are known
 *
 * A CPU that is not up keeps its records until it is.
 * Context: may sleep
 *
 * Return: is there more to be emitted now, or once types are known?
 */
bool htf_export_drain(void)
{
	bool left = false;
	int cpu;

	clear_bit(0, &htf_asked);
	/* Pairs with htf_keep(): it asks again, or this sees its record. */
	smp_mb__after_atomic();
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		if (READ_ONCE(per_cpu_ptr(htf_cpus, cpu)->used))
			smp_call_function_single(cpu, htf_drain, &left, true);
	}
	cpus_read_unlock();
	return left;
}

/* Records ----------------------------------------------------------------- */

/*
 * Do two records of one size say the same, as far as @n bytes tell?  Between
 * their fields are bytes that nobody wrote, and common_flags tell whether a
 * task is to be switched, which may change from one to the other.
 */
static notrace bool htf_same(const struct htf_type *t, const u8 *a,
			     const u8 *b, u32 n)
{
	unsigned int i;

	if (!t)
		return !memcmp(a + 3, b + 3, n - 3);
	for (i = 0; i < t->nr_ops; i++) {
		const struct htf_op *op = &t->ops[i];
		const u8 *in_a = a + op->offset, *in_b = b + op->offset;
		u32 len = op->size, skip = op->offset == 2 ? 1 : 0;

		if (op->kind != HTF_PLAIN) {
			if (t->least > n)
				continue;
			len = htf_find(op, a, n, &in_a);
			if (len != htf_find(op, b, n, &in_b))
				return false;
		} else if (op->offset + len > n) {
			len = op->offset < n ? n - op->offset : skip;
		}
		if (memcmp(in_a + skip, in_b + skip, len - skip))
			return false;
	}
	return true;
}

/*
 * In how many instances the event before this one was on: it has come in all
 * of them now.
 */
static notrace void htf_came(const struct htf_last *l)
{
	struct htf_type *t;
	u16 id;

	memcpy(&id, l->bytes, sizeof(id));
	t = l->size ? htf_type_get(id) : NULL;
	if (t && t->usual != l->nr)
		WRITE_ONCE(t->usual, l->nr);
}

/* Can the instances of @l have gone on to other pages since? */
static notrace bool htf_page_left(const struct htf_last *l, u64 written)
{
	unsigned int i;

	for (i = 0; i < l->nr; i++) {
		if (PAGE_SIZE - offset_in_page(l->at[i]) <=
		    l->size + written + HTF_UNSEEN)
			return true;
	}
	return false;
}

/*
 * Nobody says which instance a record belongs to.  An event that is on in
 * several comes once for each, the same in each one's own pages.  The same in
 * a page of before is an event of its own that looks alike, and so is it in
 * another page if the instance may have gone on to that: rather twice than not
 * at all.
 */
static notrace bool htf_is_double(struct htf_cpu *c, const struct htf_type *t,
				  const void *record, u32 size)
{
	unsigned int level = interrupt_context_level();
	struct htf_last *l = &c->last[level];
	unsigned long at = (unsigned long)record;
	u32 n = min_t(u32, size, sizeof(l->bytes));
	u64 clock = ht_clock(), written = c->written;
	bool same, is_double = false;
	unsigned int i;

	c->written += size + HTF_HEADER;
	/* Who interrupted this context has ended. */
	while (++level < ARRAY_SIZE(c->last))
		c->last[level].size = 0;

	same = size == l->size && !memcmp(l->bytes, record, sizeof(u16)) &&
	       htf_same(t, l->bytes, record, n);
	if (same && l->nr < HTF_DOUBLES &&
	    clock - l->clock < HTF_DOUBLE_NS) {
		written -= l->written;
		/* Where nothing came in between: as many as before, then. */
		is_double = !htf_page_left(l, written) ||
			    (!written && t && l->nr < READ_ONCE(t->usual));
		for (i = 0; i < l->nr; i++) {
			if (!((l->at[i] ^ at) & PAGE_MASK))
				is_double = false;
		}
	}
	if (!is_double) {
		htf_came(l);
		l->nr = 0;
	}
	if (!same) {
		l->size = size;
		memcpy(l->bytes, record, n);
	}
	l->at[l->nr++] = at;
	l->clock = clock;
	l->written = c->written;
	return is_double;
}

static notrace void htf_write(struct trace_export *export, const void *record,
			      unsigned int size)
{
	const struct trace_entry *entry = record;
	const struct htf_type *t;
	struct ht_stream *s;
	struct htf_cpu *c;
	unsigned long flags;

	s = ht_kernel_begin(&flags);
	if (!s)
		return;
	c = this_cpu_ptr(htf_cpus);
	if (unlikely(c->held))
		goto out;
	if (unlikely(c->busy || size < HTF_RECORD_MIN)) {
		ht_atomic_inc(&s->lost_nested);
		goto out;
	}
	/* An NMI from here on is discarded. */
	WRITE_ONCE(c->busy, true);
	barrier();
	t = htf_type_get(entry->type);
	if (!htf_is_double(c, t, record, size)) {
		if (unlikely(!t))
			htf_type_wanted(entry->type);
		if (likely(t && !c->used))
			htf_emit(s, t, record, size, 0);
		else
			htf_keep(c, s, record, size);
	}
	barrier();
	WRITE_ONCE(c->busy, false);
out:
	ht_kernel_end(flags);
}

static struct trace_export htf_export = {
	.write = htf_write,
	.flags = TRACE_EXPORT_FUNCTION | TRACE_EXPORT_EVENT |
		 TRACE_EXPORT_MARKER,
};

int htf_export_init(void)
{
	int cpu;

	keep_kb = clamp(keep_kb, 4u, 65536u);
	htf_cpus = alloc_percpu(struct htf_cpu);
	if (!htf_cpus)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct htf_cpu *c = per_cpu_ptr(htf_cpus, cpu);

		c->kept = kvmalloc_node(htf_room(), GFP_KERNEL,
					cpu_to_node(cpu));
		if (!c->kept) {
			htf_export_exit();
			return -ENOMEM;
		}
		init_irq_work(&c->wake, htf_woken);
	}
	return 0;
}

/**
 * htf_export_start() - be called with records
 * @held: send none until htf_export_go()
 */
int htf_export_start(bool held)
{
	int cpu;

	for_each_possible_cpu(cpu)
		per_cpu_ptr(htf_cpus, cpu)->held = held;
	return register_ftrace_export(&htf_export);
}

/**
 * htf_export_go() - send a CPU's records from now on
 * @cpu: this one, with interrupts off, or one that is not up
 */
void htf_export_go(int cpu)
{
	WRITE_ONCE(per_cpu_ptr(htf_cpus, cpu)->held, false);
}

/**
 * htf_export_stop() - no record comes any more
 *
 * Nor is the helper told of any; what is kept can still be drained.
 */
void htf_export_stop(void)
{
	int cpu;

	unregister_ftrace_export(&htf_export);
	/* That does not wait for who is just in htf_write(). */
	synchronize_rcu();
	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(htf_cpus, cpu)->wake);
}

/* What is left had no device, or its CPU went: it is counted as discarded. */
static void htf_forget(struct htf_cpu *c)
{
	struct ht_stream *s;
	unsigned long flags;
	u32 at = c->begin;

	while (at < c->used) {
		struct htf_kept *k = (struct htf_kept *)(c->kept + at);

		s = ht_kernel_begin(&flags);
		if (s) {
			ht_atomic_inc(&s->lost_nested);
			ht_kernel_end(flags);
		}
		at += ALIGN(sizeof(*k) + k->size, sizeof(u64));
	}
}

void htf_export_exit(void)
{
	struct htf_cpu __percpu *cpus = htf_cpus;
	int cpu;

	kernel_param_lock(THIS_MODULE);
	htf_cpus = NULL;
	kernel_param_unlock(THIS_MODULE);
	for_each_possible_cpu(cpu) {
		struct htf_cpu *c = per_cpu_ptr(cpus, cpu);

		if (c->kept)
			htf_forget(c);
		kvfree(c->kept);
	}
	free_percpu(cpus);
}
