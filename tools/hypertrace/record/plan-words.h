/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: parts of ht_record_plan(): types of machines, paths of
 * descriptors, and words for the kernel's command line
 */
#ifndef HYPERTRACE_RECORD_PLAN_WORDS_H
#define HYPERTRACE_RECORD_PLAN_WORDS_H

#include "record/plan.h"
#include "qemu/qemu-cmdline.h"

/**
 * ht_plan_machine() - get the type of QEMU's machine; if it is not given, "pc"
 * for x86_64, else ""
 */
const char *ht_plan_machine(const HtQemu *q);

/**
 * ht_plan_is_known() - whether the properties of the machine's type are known.
 * Only then may the plan change its memory, or add a device or SMBIOS string
 */
bool ht_plan_is_known(const HtQemu *q);

/**
 * ht_plan_descriptor() - get the path by which QEMU opens a descriptor of this
 * process
 * @fd: number of the descriptor
 *
 * Return: newly allocated; NULL if QEMU may not be able to open it: the program
 * that starts QEMU may close descriptors, or run QEMU as another user
 */
char *ht_plan_descriptor(const HtQemu *q, int fd);

/**
 * ht_plan_has_syscalls() - check whether a list selects events of system calls
 * @events: list of events as for --event; or NULL
 *
 * When such an event is enabled, the kernel marks all threads that exist; only
 * marked threads, and threads that they create later, have these events. The
 * kernel enables the events of a boot-mapped ring before the first thread
 * exists, but those of trace_event= once more later. So only the main buffer
 * gets system calls.
 */
bool ht_plan_has_syscalls(const char *events);

/**
 * ht_plan_words() - plan how the kernel gets the words that start its ring
 * @p: set to the words, the way to the kernel's command line, and the image
 * @q: QEMU's command line, to which the words are added if possible
 * @options: options of the user
 * @error: set if the kernel's image does not exist; but a missing image is no
 *         error if another program starts QEMU
 *
 * Return: false if @error is set
 */
bool ht_plan_words(HtRecordPlan *p, HtQemu *q, const HtRecordOptions *options,
                   GError **error);

#endif
