/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace-sources: includes that the kernel's headers of trace events need,
 * and replacements for functions that they call but the kernel does not export
 */
#ifndef HTE_INCLUDES_H
#define HTE_INCLUDES_H

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <linux/sched/numa_balancing.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <linux/sock_diag.h>
#include <linux/swiotlb.h>
#include <linux/syscalls.h>
#include <linux/tracepoint.h>
#include <net/ipv6.h>

#include "events.h"

/*
 * task_numa_group_id() is private to the scheduler.  This macro only lets the
 * header compile; hte_is_complete() leaves out the events that have its value.
 */
#define task_numa_group_id(p)	0

#define netdev_drivername(dev)						\
	((dev)->dev.parent && (dev)->dev.parent->driver ?		\
	 (dev)->dev.parent->driver->name : "")

/* Unlike the kernel's function, return 0 for a socket without a cookie. */
#define sock_gen_cookie(sk)	((u64)atomic64_read(&(sk)->sk_cookie))

#endif /* HTE_INCLUDES_H */
