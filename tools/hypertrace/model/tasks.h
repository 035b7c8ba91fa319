/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the threads of a guest, as its events tell of them
 */
#ifndef HYPERTRACE_TOOL_TASKS_H
#define HYPERTRACE_TOOL_TASKS_H

#include "model/model.h"

typedef struct HtTasks HtTasks;

/**
 * ht_tasks_new: know nothing
 */
HtTasks *ht_tasks_new(void);

/**
 * ht_tasks_free: forget all
 * @t: tasks or NULL
 */
void ht_tasks_free(HtTasks *t);

/**
 * ht_tasks_clear: know nothing again
 * @t: tasks
 */
void ht_tasks_clear(HtTasks *t);

/**
 * ht_tasks_before: learn what an event says of the time before it
 * @t: tasks
 * @ev: event; all but @ev->task is set
 *
 * Returns: the task of the event
 */
const HtTask *ht_tasks_before(HtTasks *t, const HtModelEvent *ev);

/**
 * ht_tasks_after: learn what an event changes
 * @t: tasks
 * @ev: event
 */
void ht_tasks_after(HtTasks *t, const HtModelEvent *ev);

/**
 * ht_tasks_find: what is known of a thread
 * @t: tasks
 * @pid: thread
 *
 * Returns: the task or NULL
 */
const HtTask *ht_tasks_find(const HtTasks *t, int32_t pid);

/**
 * ht_tasks_id: the number of the task that has a PID now
 * @t: tasks
 * @pid: thread; not 0
 *
 * Returns: &HtTask.id; 0 if there are too many tasks
 */
uint32_t ht_tasks_id(HtTasks *t, int32_t pid);

/**
 * ht_tasks_all: all that are known
 * @t: tasks
 * @boot: of this boot or the one before, which is as it was at its end
 *
 * Returns: a table by PID, whose values begin with an HtTask; NULL for other
 * boots
 */
GHashTable *ht_tasks_all(const HtTasks *t, unsigned boot);

#endif /* HYPERTRACE_TOOL_TASKS_H */
