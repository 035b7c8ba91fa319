/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a process that stays the same one
 *
 * A number may be given to another process once this one has ended; what is
 * opened here never belongs to that one.
 */
#ifndef HYPERTRACE_PROCESS_H
#define HYPERTRACE_PROCESS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/**
 * struct HtProcess - a process
 * @pid: its number
 * @pidfd: readable once it has ended, also before its parent has asked
 * @dir: its folder in /proc
 */
typedef struct HtProcess {
    pid_t pid;
    int pidfd;
    int dir;
} HtProcess;

/**
 * ht_process_new() - hold on to a process
 * @pid: its number
 * @error: set if there is none
 *
 * Return: for ht_process_free(); NULL on failure
 */
HtProcess *ht_process_new(pid_t pid, GError **error);
void ht_process_free(HtProcess *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtProcess, ht_process_free)

/**
 * ht_process_children() - all processes that this one started, directly or not
 *
 * Return: an array of pid_t
 */
GArray *ht_process_children(void);

/** ht_process_ended() - has it ended? */
bool ht_process_ended(const HtProcess *p);

/**
 * ht_process_is_ours() - was it started by who runs this program?
 *
 * If not, what it says of itself need not be what one wants to open.
 */
bool ht_process_is_ours(const HtProcess *p);

/**
 * ht_process_open() - open a file of its folder for reading
 * @name: as "mem"
 *
 * Return: a descriptor; -1 with errno set
 */
int ht_process_open(const HtProcess *p, const char *name);

/**
 * ht_process_read() - read such a file
 * @name: as "maps"
 * @size: set to its bytes, unless NULL
 * @error: set on failure
 *
 * Return: newly allocated and terminated by a NUL; NULL on failure
 */
char *ht_process_read(const HtProcess *p, const char *name, size_t *size,
                      GError **error);

#endif
