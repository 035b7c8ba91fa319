/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: lists of events and tasks as they are given on a command line
 */
#ifndef HYPERTRACE_TOOL_PATTERNS_H
#define HYPERTRACE_TOOL_PATTERNS_H

#include "model.h"

typedef struct HtPatterns HtPatterns;

/**
 * ht_patterns_new: read a list
 * @list: names with commas between, each with '*' and '?' as it likes:
 *        "sched_switch,irq_*,task:*" or "17,systemd*"
 */
HtPatterns *ht_patterns_new(const char *list);

/**
 * ht_patterns_free: forget it
 * @p: list or NULL
 */
void ht_patterns_free(HtPatterns *p);

/**
 * ht_patterns_event: does the list have this type of events?
 * @p: list of events; one with a colon is for system:event
 * @c: type, of one model only: answers are kept
 */
bool ht_patterns_event(HtPatterns *p, const HtEventClass *c);

/**
 * ht_patterns_task: does the list have this task, by its PID or name?
 * @p: list of tasks
 * @t: task
 */
bool ht_patterns_task(const HtPatterns *p, const HtTask *t);

#endif /* HYPERTRACE_TOOL_PATTERNS_H */
