/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: parts of ht_record_plan()
 */
#ifndef HYPERTRACE_RECORD_PLAN_WORDS_H
#define HYPERTRACE_RECORD_PLAN_WORDS_H

#include "record/plan.h"
#include "qemu/qemu-cmdline.h"

/** ht_plan_machine() - get the machine's type; "" if QEMU has no default */
const char *ht_plan_machine(const HtQemu *q);

/** ht_plan_is_known() - whether the machine's memory may be changed */
bool ht_plan_is_known(const HtQemu *q);

/**
 * ht_plan_descriptor() - get the path by which QEMU opens our descriptor
 * @q: the command line
 * @fd: number of the descriptor
 *
 * Return: newly allocated; NULL if it is not known whether the program that
 * starts QEMU keeps descriptors open
 */
char *ht_plan_descriptor(const HtQemu *q, int fd);

/**
 * ht_plan_words() - plan how the kernel gets its words
 * @p: filled in
 * @q: the command line; changed
 * @options: options of the user
 * @error: set if the kernel's image does not exist
 */
bool ht_plan_words(HtRecordPlan *p, HtQemu *q, const HtRecordOptions *options,
                   GError **error);

#endif
