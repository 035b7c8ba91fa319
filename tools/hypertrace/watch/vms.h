/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: find virtual machines among the processes of this host
 *
 * A virtual machine is a process that runs a known program. The kernel reports
 * new processes only to privileged programs, so ht_watch_vms_scan() must be
 * called from time to time. It examines new processes, and at times a few of
 * the others.
 */
#ifndef HYPERTRACE_WATCH_VMS_H
#define HYPERTRACE_WATCH_VMS_H

#include "memory/process.h"
#include "watch/settings.h"

/**
 * struct HtWatchVm - a virtual machine that a rule chose
 * @process: its process
 * @owner: parent, user, group and program of the process
 * @name: the machine's name; if it has none, the program's name, '-' and the
 *        PID. ht_escape_file_name() has made it a valid name of a folder
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
 * A machine is returned if a rule chooses it: usually once, and again after
 * ht_watch_vms_again(). The same process may also be returned again if the
 * inode of its folder in /proc has changed. Only root gets machines of other
 * users. For another caller, a message names the first such machine.
 *
 * Return: new array of HtWatchVm; the caller owns the array and its elements
 */
GPtrArray *ht_watch_vms_scan(HtWatchVms *v);

/**
 * ht_watch_vms_again() - let a later scan return a machine again, a minute or
 * more after the scan that returned it
 * @v: from ht_watch_vms_new()
 * @pid: the machine's process
 */
void ht_watch_vms_again(HtWatchVms *v, pid_t pid);

#endif
