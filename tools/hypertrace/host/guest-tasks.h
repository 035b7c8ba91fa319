/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the task that a guest ran at a time of its host
 */
#ifndef HYPERTRACE_TOOL_GUEST_TASKS_H
#define HYPERTRACE_TOOL_GUEST_TASKS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/bounds.h"
#include "model/model.h"

typedef struct HtGuestTasks HtGuestTasks;

/**
 * ht_guest_tasks_new: read which tasks ran on the processors of a guest
 * @dir: recording of the guest
 * @errp: set on failure; also if the recording does not name the process of the
 *        virtual machine, or has no times of the host's clock
 *
 * Returns: the tasks; NULL on failure
 */
HtGuestTasks *ht_guest_tasks_new(const char *dir, GError **errp);

/**
 * ht_guest_tasks_find_process: get the PID of a recording's virtual machine
 * @m: model of the recording
 * @process: set to the PID
 * @errp: set if the recording does not have it
 *
 * Returns: false on failure
 */
bool ht_guest_tasks_find_process(HtModel *m, uint32_t *process, GError **errp);

/** ht_guest_tasks_free: free the tasks, or do nothing for NULL */
void ht_guest_tasks_free(HtGuestTasks *g);

/**
 * ht_guest_tasks_process: get the process ID of the virtual machine
 */
uint32_t ht_guest_tasks_process(const HtGuestTasks *g);

/**
 * ht_guest_tasks_dir: get the folder of the guest's recording
 */
const char *ht_guest_tasks_dir(const HtGuestTasks *g);

/**
 * ht_guest_tasks_bounds: get the distribution of the maximum errors of the
 * events' host times
 */
const HtBounds *ht_guest_tasks_bounds(const HtGuestTasks *g);

/**
 * ht_guest_tasks_at: find the task of a processor at a time
 * @vcpu: the processor; -1 if one thread of the host runs all processors
 * @ns: the time, by the host's CLOCK_MONOTONIC
 * @until: set to the time up to which the result is valid: that of the next
 *         change after @ns, or that from which on changes were not stored;
 *         UINT64_MAX if there is no such time after @ns
 *
 * Returns: "NAME-PID" or "idle", owned by @g, with any bytes in the name; NULL
 * if the task is not known
 */
const char *ht_guest_tasks_at(const HtGuestTasks *g, int32_t vcpu, uint64_t ns,
                              uint64_t *until);

#endif /* HYPERTRACE_TOOL_GUEST_TASKS_H */
