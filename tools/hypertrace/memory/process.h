/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a reference to a process that is safe against reuse of its PID
 *
 * The kernel may give a PID to another process after the first one has ended.
 * These functions never open files of that other process.
 */
#ifndef HYPERTRACE_PROCESS_H
#define HYPERTRACE_PROCESS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/**
 * struct HtProcess - a process
 * @pid: its number
 * @pidfd: becomes readable when the process ends, also before its parent waits
 * @dir: descriptor of its folder in /proc
 */
typedef struct HtProcess {
    pid_t pid;
    int pidfd;
    int dir;
} HtProcess;

/**
 * ht_process_new() - get a reference to a process
 * @pid: its number
 * @error: set on failure
 *
 * Return: for ht_process_free(); NULL on failure
 */
HtProcess *ht_process_new(pid_t pid, GError **error);
void ht_process_free(HtProcess *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtProcess, ht_process_free)

/**
 * ht_process_children() - list the descendants of this process
 *
 * Return: an array of pid_t
 */
GArray *ht_process_children(void);

/** ht_process_ended() - whether the process has ended */
bool ht_process_ended(const HtProcess *p);

/**
 * struct HtProcessOwner - the parent and the user of a process
 * @parent: PID of the parent
 * @real: the real user
 * @uid: the effective user
 * @gid: the effective group
 */
typedef struct HtProcessOwner {
    pid_t parent;
    uid_t real;
    uid_t uid;
    gid_t gid;
} HtProcessOwner;

/**
 * ht_process_owner() - get the parent and the user of a process
 * @p: the process
 * @o: set if true is returned
 */
bool ht_process_owner(const HtProcess *p, HtProcessOwner *o);

/**
 * ht_process_close_others() - close the descriptors of this process
 * @keep: descriptors that stay open, besides the standard streams
 * @n: number of these
 */
void ht_process_close_others(const int *keep, unsigned n);

/**
 * ht_process_is_ours() - whether the process has the user of this program
 *
 * If not, its command line is not trusted: it may name any file.
 */
bool ht_process_is_ours(const HtProcess *p);

/**
 * ht_process_open() - open a file of the process's folder for reading
 * @p: the process
 * @name: name of the file, for example "mem"
 *
 * Return: a descriptor; -1 with errno set
 */
int ht_process_open(const HtProcess *p, const char *name);

/**
 * ht_process_read() - read a file of the process's folder
 * @p: the process
 * @name: name of the file, for example "maps"
 * @size: set to the number of bytes, unless NULL
 * @error: set on failure
 *
 * Return: newly allocated and terminated by a NUL; NULL on failure
 */
char *ht_process_read(const HtProcess *p, const char *name, size_t *size,
                      GError **error);

#endif
