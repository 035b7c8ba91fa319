/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: lists of events and tasks as they are given on a command line
 */
#ifndef HYPERTRACE_TOOL_PATTERNS_H
#define HYPERTRACE_TOOL_PATTERNS_H

#include "model/model.h"

typedef struct HtNames HtNames;

/**
 * ht_names_new: read a list
 * @list: names with commas between, each with '*' and '?' as it likes:
 *        "sched_switch,irq_*,task:*" or "17,systemd*". A name after '!' is
 *        excluded; a list of these alone has all others.
 */
HtNames *ht_names_new(const char *list);

/**
 * ht_names_check: are there events of all these names?
 * @list: as for ht_names_new()
 * @formats: the events
 * @groups: a name without a colon can be that of a group, as for the kernel
 * @errp: set to a name that no event has, and to those near it
 */
bool ht_names_check(const char *list, const HtFtFormats *formats, bool groups,
                    GError **errp);

/**
 * ht_names_free: forget it
 * @p: list or NULL
 */
void ht_names_free(HtNames *p);

/**
 * ht_names_event: does the list have this type of events?
 * @p: list of events; one with a colon is for system:event
 * @c: type, of one model only: answers are kept
 */
bool ht_names_event(HtNames *p, const HtEventClass *c);

/**
 * ht_names_match: does the list have an event of this name?
 * @p: list of events
 * @system: what comes before a colon
 * @name: what comes after it
 */
bool ht_names_match(const HtNames *p, const char *system, const char *name);

/**
 * ht_names_task: does the list have this task, by its PID or name?
 * @p: list of tasks
 * @t: task
 */
bool ht_names_task(const HtNames *p, const HtTask *t);

#endif /* HYPERTRACE_TOOL_PATTERNS_H */
