/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: find the processes that are virtual machines, and their names
 *
 * Here, a virtual machine is a process that runs a known program. The user who
 * starts the process chooses its arguments: they may be long, and may have the
 * name of another user's machine.
 */
#ifndef HYPERTRACE_VM_H
#define HYPERTRACE_VM_H

#include "memory/process.h"

/**
 * ht_vm_name() - get the name of a virtual machine
 * @program: name of its program
 * @args: its arguments; NULL after the last
 *
 * Return: newly allocated; NULL if the program is no known one, or if the
 * arguments have no name
 */
char *ht_vm_name(const char *program, char **args);

/**
 * ht_vm_program() - get the name of the program that a virtual machine runs
 * @p: any process
 *
 * Return: newly allocated; NULL if the process does not run a known program
 */
char *ht_vm_program(const HtProcess *p);

/**
 * ht_vm_maybe() - check with one system call whether to examine a process
 * @pid: the process
 *
 * Most processes of a host are no virtual machines. The process may run another
 * program right after this call: if the result is true, check the process by
 * ht_vm_program().
 *
 * Return: false if the process does not run a known program; true also if the
 * caller is not allowed to read the link /proc/PID/exe
 */
bool ht_vm_maybe(pid_t pid);

/**
 * ht_vm_is_part() - check whether a process is a part of a virtual machine
 * @owner: from ht_process_owner()
 *
 * A machine of crosvm, for example, has several processes: the first one counts
 * as the machine, and is the parent of the other ones.
 *
 * Return: true if the process's parent runs a known program
 */
bool ht_vm_is_part(const HtProcessOwner *owner);

/**
 * ht_vm_find() - find the process of a virtual machine by its name
 * @name: the machine's name; libvirt gives a domain's name to QEMU
 * @error: set on failure
 *
 * Return: for ht_process_free(); NULL if no machine has the name, or several
 */
HtProcess *ht_vm_find(const char *name, GError **error);

#endif
