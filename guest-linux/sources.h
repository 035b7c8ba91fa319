/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace-sources: the two kinds of sources in this module
 *
 * Both have one text that selects, the parameters events and functions.  The
 * text says which events the host may have; the host's enable bytes say which
 * of them it wants.
 */
#ifndef HT_SOURCES_H
#define HT_SOURCES_H

#include <linux/kconfig.h>
#include <linux/types.h>

/* Longest text of a parameter, with its NUL */
#define HT_SELECT_MAX	1024

/**
 * hte_init() - start the source of trace events and system calls
 *
 * Context: may sleep
 *
 * Return: 0 or a negative errno.
 */
int hte_init(void);
void hte_exit(void);

/**
 * fn_init() - start the source of functions
 *
 * Context: may sleep
 *
 * Return: 0 or a negative errno.
 */
#ifdef CONFIG_DYNAMIC_FTRACE
int fn_init(void);
void fn_exit(void);
#else
static inline int fn_init(void)
{
	return 0;
}

static inline void fn_exit(void)
{
}
#endif

#endif /* HT_SOURCES_H */
