/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace-events: what the kernel's headers of trace events expect to have
 * been included, or to be callable by the kernel alone
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

/* NUMA balancing's groups are the scheduler's own. */
#define task_numa_group_id(p)	0

#define netdev_drivername(dev)						\
	((dev)->dev.parent ? dev_driver_string((dev)->dev.parent) : "")

/* A socket that has no cookie yet is not given one. */
#define sock_gen_cookie(sk)	((u64)atomic64_read(&(sk)->sk_cookie))

#endif /* HTE_INCLUDES_H */
