/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: parts of ht_record_plan()
 */
#ifndef HYPERTRACE_RECORD_PLAN_WORDS_H
#define HYPERTRACE_RECORD_PLAN_WORDS_H

#include "record/plan.h"
#include "qemu/qemu-cmdline.h"

/** ht_plan_machine() - the machine's type; "" if QEMU has no default one */
const char *ht_plan_machine(const HtQemu *q);

/** ht_plan_is_known() - is it a machine whose memory may be changed? */
bool ht_plan_is_known(const HtQemu *q);

/**
 * ht_plan_descriptor() - the path by which QEMU opens a descriptor of ours
 * @fd: its number
 *
 * Return: newly allocated; NULL if nothing is known of the program that starts
 * QEMU
 */
char *ht_plan_descriptor(const HtQemu *q, int fd);

/**
 * ht_plan_words() - plan how the kernel gets its words
 * @p: filled in
 * @q: changed
 * @options: what the user wants
 * @error: set if the kernel's image is not there
 */
bool ht_plan_words(HtRecordPlan *p, HtQemu *q, const HtRecordOptions *options,
                   GError **error);

#endif
