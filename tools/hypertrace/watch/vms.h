/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: find virtual machines among the processes of this host
 *
 * A virtual machine is a process of a known program. The kernel reports new
 * processes only to privileged programs, so /proc is listed from time to time.
 * New processes are examined, and a few of the others from time to time.
 */
#ifndef HYPERTRACE_WATCH_VMS_H
#define HYPERTRACE_WATCH_VMS_H

#include "memory/process.h"
#include "watch/settings.h"

/**
 * struct HtWatchVm - a virtual machine that a rule chose
 * @process: its process
 * @owner: user of the process
 * @name: its name, or the program and the PID; in [A-Za-z0-9_.-]
 * @rule: the rule that chose it
 */
typedef struct HtWatchVm {
    HtProcess *process;
    HtProcessOwner owner;
    char *name;
    const HtWatchRule *rule;
} HtWatchVm;

void ht_watch_vm_free(HtWatchVm *vm);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtWatchVm, ht_watch_vm_free)

typedef struct HtWatchVms HtWatchVms;

/**
 * ht_watch_vms_new() - prepare to find virtual machines
 * @settings: settings; must outlive the result
 */
HtWatchVms *ht_watch_vms_new(const HtWatchSettings *settings);
void ht_watch_vms_free(HtWatchVms *v);

/**
 * ht_watch_vms_scan() - find new virtual machines
 * @v: from ht_watch_vms_new()
 *
 * Each is returned once. A machine of another user is returned to root only;
 * for other users, a message names the first such machine.
 *
 * Return: HtWatchVm, which the caller owns
 */
GPtrArray *ht_watch_vms_scan(HtWatchVms *v);

/**
 * ht_watch_vms_again() - return a machine again from a scan a minute later
 * @v: from ht_watch_vms_new()
 * @pid: its process
 */
void ht_watch_vms_again(HtWatchVms *v, pid_t pid);

#endif
