// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-console: what the kernel prints, as trace events
 *
 * Every line of the kernel's log since boot, as "dmesg -r" shows it, whatever
 * the console's log level is, with the time that the kernel gave it.
 *
 * The log itself is read; all else here says that there is something new:
 *
 * - A console, as far as the log level lets it.  It is called by printk(), so
 *   the line is with the host before the printer goes on, also in a panic, and
 *   before a crash kernel is started.
 * - printk's tracepoint, for the other lines: they are sent a moment later.
 * - A dumper, for a panic with a kernel whose consoles print in threads only.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/console.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/kmsg_dump.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#include "hypertrace-kernel.h"

/*
 * @seq: of the record, whose lines all have it; one that is not there was
 *       overwritten before it could be sent
 * @time_us: when it was printed, on the kernel's clock; 0 if printk.time is off
 */
HT_EVENT(printk, (u64, seq), (u64, time_us), (u8, level), (u8, facility),
	 (text, message));

/* A record with a prefix for each of its lines, which may be many */
#define CON_RECORD_MAX	4096

struct con_reader {
	char record[CON_RECORD_MAX + 1];
};

/* A reader at a time each: the work; and the console, or a panic's dumper */
static struct con_reader con_later, con_now;

/* The next record to send.  Who moves it on sends the one that was there. */
static atomic64_t con_next;

/* There is more than a printer should wait for. */
static bool con_behind = true;

/*
 * "<6>[    1.000000] text", without the time "<6>text"; kernels that say who
 * prints do so behind that, "[    T1]".
 */
static void con_send_line(u64 seq, const char *line)
{
	unsigned int prio = 0;
	u64 seconds, us = 0;
	int n = 0;

	if (sscanf(line, "<%u>%n", &prio, &n) == 1)
		line += n;
	n = 0;
	if (sscanf(line, "[%llu.%llu]%n", &seconds, &us, &n) == 2 && n) {
		us += seconds * USEC_PER_SEC;
		line += n;
	} else {
		us = 0;
	}
	if (IS_ENABLED(CONFIG_PRINTK_CALLER) && *line == '[')
		line += strcspn(line, "]") + !!strchr(line, ']');
	if (n || IS_ENABLED(CONFIG_PRINTK_CALLER))
		line += *line == ' ';
	ht_trace(printk, seq, us, prio & 7, prio >> 3, line);
}

/*
 * Send what is new.  Readers at the same time each send what they moved
 * con_next over, so that a record is sent once, though maybe not in order.
 *
 * @patience: how often to wait, in all, for a host that is behind; only in a
 *            task
 */
static void con_drain(struct con_reader *reader, unsigned int patience)
{
	char *rest, *line;
	size_t len;

	while (ht_event_enabled(printk)) {
		u64 seq = atomic64_read(&con_next);
		struct kmsg_dump_iter iter = {
			.cur_seq = seq,
			.next_seq = U64_MAX,
		};

		for (; patience && !ht_kernel_room(); patience--)
			usleep_range(500, 1000);
		if (!kmsg_dump_get_line(&iter, true, reader->record,
					CON_RECORD_MAX, &len))
			break;
		if (atomic64_cmpxchg(&con_next, seq, iter.cur_seq) != seq)
			continue;
		reader->record[len] = '\0';
		rest = reader->record;
		while ((line = strsep(&rest, "\n"))) {
			if (*line)
				con_send_line(iter.cur_seq - 1, line);
		}
	}
}

/* In a task ---------------------------------------------------------------- */

static void con_work_fn(struct work_struct *work);
static DECLARE_DEFERRABLE_WORK(con_work, con_work_fn);

/*
 * While nobody wants the events they stay in the log: it is looked once a
 * second, by a timer that wakes no CPU, whether somebody does.
 */
static void con_work_fn(struct work_struct *work)
{
	if (!ht_event_enabled(printk)) {
		WRITE_ONCE(con_behind, true);
		schedule_delayed_work(&con_work, HZ);
		return;
	}
	con_drain(&con_later, 1000);
	WRITE_ONCE(con_behind, false);
}

/* Not from where the line is printed: that may hold any lock. */
static void con_irq_work_fn(struct irq_work *work)
{
	mod_delayed_work(system_wq, &con_work, 0);
}

static DEFINE_IRQ_WORK(con_irq_work, con_irq_work_fn);

/* Context: any */
static void con_on_printk(void *data, const char *text, size_t len)
{
	irq_work_queue(&con_irq_work);
}

static struct tracepoint *con_tracepoint;

static void con_find_tracepoint(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "console"))
		con_tracepoint = tp;
}

/* At once ------------------------------------------------------------------ */

static void con_write(struct console *con, const char *text, unsigned int len)
{
	if (!READ_ONCE(con_behind) || oops_in_progress)
		con_drain(&con_now, 0);
}

static struct console con_console = {
	.name = "hypertrace",
	.write = con_write,
	.flags = CON_ENABLED | CON_ANYTIME,
};

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static void con_dump(struct kmsg_dumper *dumper,
		     struct kmsg_dump_detail *detail)
#else
static void con_dump(struct kmsg_dumper *dumper, enum kmsg_dump_reason reason)
#endif
{
	con_drain(&con_now, 0);
}

static struct kmsg_dumper con_dumper = {
	.dump = con_dump,
	.max_reason = KMSG_DUMP_PANIC,
};

static int __init con_init(void)
{
	int ret;

	for_each_kernel_tracepoint(con_find_tracepoint, NULL);
	if (!con_tracepoint)
		return -EOPNOTSUPP;
	ret = ht_kernel_register(&ht_class_printk);
	if (ret)
		return ret;
	ret = tracepoint_probe_register(con_tracepoint, con_on_printk, NULL);
	if (ret)
		goto unregister;
	ret = kmsg_dump_register(&con_dumper);
	if (ret)
		goto detach;
	/* What was printed so far is sent when the module has been loaded. */
	mod_delayed_work(system_wq, &con_work, 0);
	flush_delayed_work(&con_work);
	register_console(&con_console);
	return 0;

detach:
	tracepoint_probe_unregister(con_tracepoint, con_on_printk, NULL);
	tracepoint_synchronize_unregister();
	irq_work_sync(&con_irq_work);
	cancel_delayed_work_sync(&con_work);
unregister:
	ht_kernel_unregister(&ht_class_printk);
	return ret;
}
module_init(con_init);

static void __exit con_exit(void)
{
	unregister_console(&con_console);
	kmsg_dump_unregister(&con_dumper);
	tracepoint_probe_unregister(con_tracepoint, con_on_printk, NULL);
	tracepoint_synchronize_unregister();
	irq_work_sync(&con_irq_work);
	cancel_delayed_work_sync(&con_work);
	ht_kernel_unregister(&ht_class_printk);
}
module_exit(con_exit);

MODULE_DESCRIPTION("hypertrace: what the kernel prints as trace events");
MODULE_LICENSE("GPL");
