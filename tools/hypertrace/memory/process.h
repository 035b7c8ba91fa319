/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a reference to a process that is safe against reuse of its PID
 *
 * The kernel may give a PID to another process after the first one has ended.
 * The functions that take an HtProcess never open files of that other process.
 */
#ifndef HYPERTRACE_PROCESS_H
#define HYPERTRACE_PROCESS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/**
 * struct HtProcessOwner - parent, user and program of a process
 * @parent: PID of the parent
 * @uid: the user
 * @gid: the group
 * @dev: device of the program's file; 0 if this may not be read
 * @inode: inode of the program's file; 0 if this may not be read
 */
typedef struct HtProcessOwner {
    pid_t parent;
    uid_t uid;
    gid_t gid;
    dev_t dev;
    ino_t inode;
} HtProcessOwner;

/**
 * struct HtProcess - a reference to a process
 * @pid: number of the process
 * @pidfd: descriptor that becomes readable when the process ends, even before
 *         its parent has waited for it
 * @dir: descriptor of the process's folder in /proc
 * @owner: user, group and program that the process had when it was chosen; if
 *         it has another user, group or program now, its memory must not be
 *         read. NULL: do not compare
 */
typedef struct HtProcess {
    pid_t pid;
    int pidfd;
    int dir;
    const HtProcessOwner *owner;
} HtProcess;

/**
 * ht_process_new() - get a reference to a process
 * @pid: number of the process
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

/**
 * ht_process_wrapped() - whether this process has more than one descendant
 *
 * If so, the program that the recorder has started may not be QEMU, but a
 * program that starts QEMU, as sudo does.
 */
bool ht_process_wrapped(void);

/** ht_process_ended() - whether the process has ended */
bool ht_process_ended(const HtProcess *p);

/**
 * ht_process_owner() - get the parent, user, group and program of a process
 * @o: filled in; valid only if true is returned
 *
 * Return: false if these cannot be read, or if the real, effective, saved and
 * file system ids of the user or of the group differ, so that the process has
 * rights of several users or groups
 */
bool ht_process_owner(const HtProcess *p, HtProcessOwner *o);

/**
 * ht_process_is_owner() - whether user, group and program of a process are the
 *                         same as before
 * @expected: earlier result of ht_process_owner(); the parent is not compared
 */
bool ht_process_is_owner(const HtProcess *p, const HtProcessOwner *expected);

/**
 * ht_process_close_others() - close the descriptors of this process, except the
 *                             standard streams and @keep
 * @keep: descriptors that stay open
 * @n: number of descriptors in @keep
 */
void ht_process_close_others(const int *keep, unsigned n);

/**
 * ht_process_is_ours() - whether a process belongs to the effective user of the
 *                        calling process
 *
 * If not, the command line of @p is not trusted: it may name any file.
 */
bool ht_process_is_ours(const HtProcess *p);

/**
 * ht_process_open() - open a file of the process's folder for reading
 * @name: name of the file, for example "mem"
 *
 * Return: a descriptor; -1 with errno set
 */
int ht_process_open(const HtProcess *p, const char *name);

/**
 * ht_process_read() - read a file of less than 64 MiB in the process's folder
 * @name: name of the file, for example "maps"
 * @size: set to the number of bytes, unless NULL
 * @error: set on failure
 *
 * Return: newly allocated and terminated by a NUL; NULL on failure
 */
char *ht_process_read(const HtProcess *p, const char *name, size_t *size,
                      GError **error);

/**
 * ht_process_args() - get the arguments of a process
 * @error: set on failure
 *
 * A process can make its arguments any text of any length: only the first
 * 256 KiB and the first 4,096 arguments are read.
 *
 * Return: newly allocated, NULL after the last; g_free() frees all; NULL on
 * failure
 */
char **ht_process_args(const HtProcess *p, GError **error);

#endif
