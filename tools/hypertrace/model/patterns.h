/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: match events and tasks against a list of the command line
 */
#ifndef HYPERTRACE_TOOL_PATTERNS_H
#define HYPERTRACE_TOOL_PATTERNS_H

#include "model/model.h"

typedef struct HtNames HtNames;

/**
 * ht_names_new: parse a list
 * @list: names separated by commas, which may have '*' and '?':
 *        "sched_switch,irq_*,task:*" or "17,systemd*". A name that is a system
 *        stands for all its events, as in the kernel's parameter trace_event=.
 *        A '!' before a name excludes what the name matches, also if another
 *        name matches it. If '!' precedes all names, the list matches
 *        everything else. Empty names are ignored.
 */
HtNames *ht_names_new(const char *list);

/**
 * ht_names_whole: check that a list has no empty name
 * @option: the option that has the list, for the message
 * @list: the list, or NULL
 * @errp: set if a name or the whole list is empty
 *
 * The check prevents that a script whose variable is empty selects all events.
 *
 * Returns: true if no name is empty, or if @list is NULL
 */
bool ht_names_whole(const char *option, const char *list, GError **errp);

/**
 * ht_names_check: check that each name of a list matches an event
 * @list: list of events, as for ht_names_new()
 * @formats: formats of the events
 * @errp: set if a name matches no event; suggests similar names
 *
 * Names that begin with "type-" are accepted: events without a format have such
 * names, and are not in @formats.
 *
 * Returns: false if a name matches no event
 */
bool ht_names_check(const char *list, const HtFtFormats *formats,
                    GError **errp);

/**
 * ht_names_free: free a list
 * @p: list or NULL
 */
void ht_names_free(HtNames *p);

/**
 * ht_names_event: whether a list matches a type of events
 * @p: list of events; a name with a colon matches system:event
 * @c: type. All classes passed with one @p must come from the same formats,
 *     because the result is cached by the number of the type.
 */
bool ht_names_event(HtNames *p, const HtEventClass *c);

/**
 * ht_names_match: whether a list matches the name of an event
 * @p: list of events
 * @system: the event's system
 * @name: the event's name
 */
bool ht_names_match(const HtNames *p, const char *system, const char *name);

/**
 * ht_names_task: whether a list matches the PID or the name of a task
 * @p: list of tasks
 * @t: task
 */
bool ht_names_task(const HtNames *p, const HtTask *t);

/**
 * ht_grep_new: compile a regular expression for texts of any bytes
 * @regex: the expression
 * @errp: set if it is malformed
 *
 * Returns: the expression, for g_regex_unref(); NULL on failure
 */
GRegex *ht_grep_new(const char *regex, GError **errp);

#endif /* HYPERTRACE_TOOL_PATTERNS_H */
