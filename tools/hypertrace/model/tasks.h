/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: track the threads of a guest by its events
 */
#ifndef HYPERTRACE_TOOL_TASKS_H
#define HYPERTRACE_TOOL_TASKS_H

#include "model/model.h"

typedef struct HtTasks HtTasks;

/* Maximum number of PIDs in a boot: a hostile guest may invent PIDs. */
#define HT_TASKS_MAX    (1u << 20)

/**
 * ht_tasks_new: create an empty table
 * @max: maximum number of different PIDs in a boot; tasks with further PIDs are
 *       not in the table
 */
HtTasks *ht_tasks_new(unsigned max);

/**
 * ht_tasks_free: free a table
 * @t: tasks or NULL
 */
void ht_tasks_free(HtTasks *t);

/** ht_tasks_clear: forget all tasks */
void ht_tasks_clear(HtTasks *t);

/**
 * ht_tasks_before: update names and tasks by what an event shows about the
 *                  state before it
 * @ev: event; all members except @ev->task are set
 *
 * Returns: the task that was running, valid until the next call
 */
const HtTask *ht_tasks_before(HtTasks *t, const HtModelEvent *ev);

/**
 * ht_tasks_has_after: test whether ht_tasks_after() is needed after an event
 * @kind: the event's kind
 */
static inline bool ht_tasks_has_after(HtKind kind)
{
    return kind == HT_KIND_SCHED_SWITCH || kind == HT_KIND_SCHED_FORK ||
           kind == HT_KIND_SCHED_EXIT || kind == HT_KIND_TASK_NEW ||
           kind == HT_KIND_TASK_RENAME;
}

/**
 * ht_tasks_after: update names and tasks by the change that an event reports
 */
void ht_tasks_after(HtTasks *t, const HtModelEvent *ev);

/**
 * ht_tasks_renamed: get the PID of the task that a task_rename event renames
 * @running: the task that was running, before the change; or NULL
 *
 * In some kernels, such as Linux 6.15, the event has no field for the PID. A
 * task may rename other threads of its process. So without that field, this is
 * the running task, unless its name differs from the event's old name.
 *
 * Returns: the PID; 0 if not known
 */
int32_t ht_tasks_renamed(const HtModelEvent *ev, const HtTask *running);

/**
 * ht_tasks_find: find the task that has a PID, or had it last
 * @pid: thread; 0 for an idle task
 *
 * Returns: the task; NULL if the table does not have it
 */
const HtTask *ht_tasks_find(const HtTasks *t, int32_t pid);

/**
 * ht_tasks_id: get the unique number of the task that has a PID, or had it last
 * @pid: thread; not 0. If the table does not have the task, it is added.
 *
 * Returns: &HtTask.id; 0 if the table is full
 */
uint32_t ht_tasks_id(HtTasks *t, int32_t pid);

/**
 * ht_tasks_all: get the last task with each PID of a boot
 * @boot: the boot of the last event, or the boot before it
 *
 * Returns: a table by PID, which also has tasks that have ended. Its values
 * begin with an HtTask. NULL for other boots
 */
GHashTable *ht_tasks_all(const HtTasks *t, unsigned boot);

#endif /* HYPERTRACE_TOOL_TASKS_H */
