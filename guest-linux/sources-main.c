// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: events of the kernel for hypertrace.ko
 *
 *	insmod hypertrace-sources.ko events='sched:*,irq:*,!irq:tasklet_*' \
 *		functions='entry:vfs_*,calls:ext4_*,least_ns=1000000'
 *	cd /sys/module/hypertrace_sources/parameters
 *	echo 'sched,block:block_rq_*' >events
 *	echo >functions
 */
#include <linux/module.h>

#include "sources.h"

static int __init hypertrace_sources_init(void)
{
	int ret = hte_init();

	if (ret)
		return ret;
	ret = fn_init();
	if (ret)
		hte_exit();
	return ret;
}
module_init(hypertrace_sources_init);

static void __exit hypertrace_sources_exit(void)
{
	fn_exit();
	hte_exit();
}
module_exit(hypertrace_sources_exit);

MODULE_DESCRIPTION("hypertrace: trace events, system calls and functions");
MODULE_LICENSE("GPL");
