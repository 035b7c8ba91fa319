/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hypertrace-sources: the two kinds of event sources in this module
 *
 * The module parameters "events" and "functions" select the events that the
 * host may receive.  Among these, the host selects the events that it wants, by
 * enable bytes and, for functions, by the setting "functions".
 */
#ifndef HT_SOURCES_H
#define HT_SOURCES_H

#include <linux/kconfig.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>

#include "hypertrace/abi.h"

/* Room for the text of a parameter or of a setting, in bytes with the NUL */
#define HT_SELECT_MAX	(HT_SETTINGS_MAX + 1)

/**
 * ht_for_each_word() - parse the words of a parameter or of a host's setting
 * @text: words, separated by commas, spaces or newlines; not modified
 * @parse: called with @arg and a copy of each word, which @parse may modify
 * @arg: argument of @parse
 *
 * Context: may sleep
 *
 * Return: 0; -ENOMEM; or the first error of @parse, which ends the loop.
 */
static inline int ht_for_each_word(const char *text,
				   int (*parse)(void *arg, char *word),
				   void *arg)
{
	char *copy = kstrdup(text, GFP_KERNEL), *rest = copy, *word;
	int ret = 0;

	if (!copy)
		return -ENOMEM;
	while (!ret && (word = strsep(&rest, ", \n")))
		ret = *word ? parse(arg, word) : 0;
	kfree(copy);
	return ret;
}

/**
 * ht_set_early() - set a parameter before its source of events has started
 * @to: memory of HT_SELECT_MAX bytes for the text, which the source parses when
 *      it starts
 * @text: the text, shorter than HT_SELECT_MAX bytes
 *
 * Only arguments of insmod can be set so early: the kernel parses them before
 * it adds the module to sysfs.  A write to sysfs is refused, because its writer
 * could not learn of an error in the text, which would make insmod fail.
 *
 * Return: 0; -EBUSY: a write to sysfs, before the source's start or after its
 * end.
 */
static inline int ht_set_early(char *to, const char *text)
{
	if (THIS_MODULE->mkobj.kobj.state_in_sysfs)
		return -EBUSY;
	strscpy(to, text, HT_SELECT_MAX);
	return 0;
}

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
