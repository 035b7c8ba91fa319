/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: measure the folder of all recordings, and remove old ones
 *
 * A recording is in a folder such as "alice/web1/3-panic" below the folder of
 * all recordings. The folder "alice" belongs to the user alice. The recorder of
 * the virtual machine web1 makes the folders below it.
 */
#ifndef HYPERTRACE_WATCH_DISK_H
#define HYPERTRACE_WATCH_DISK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * ht_watch_disk_open() - create the folder of all recordings, unless it exists,
 * and lock it
 * @path: the folder
 * @error: set if it cannot be used, if it belongs to another user, if its group
 *         or others may write to it, or if another process has locked it
 *
 * Return: a descriptor, which holds the lock; -1 on failure
 */
int ht_watch_disk_open(const char *path, GError **error);

/**
 * ht_watch_disk_user() - create the folder of a user, unless it exists
 * @dir: from ht_watch_disk_open()
 * @uid: the user
 * @gid: the group of a new folder
 * @error: set on failure; also if the folder belongs to another user
 *
 * Return: the folder's name in @dir, newly allocated; NULL on failure
 */
char *ht_watch_disk_user(int dir, uid_t uid, gid_t gid, GError **error);

/**
 * ht_watch_disk_is_full() - whether the file system has too little room
 * @dir: from ht_watch_disk_open()
 * @reserve: bytes that must be free
 */
bool ht_watch_disk_is_full(int dir, uint64_t reserve);

/**
 * ht_watch_disk_trim() - remove the oldest recordings of the largest users
 * @dir: from ht_watch_disk_open()
 * @max: maximum sum of the sizes of all recordings in bytes
 * @reserve: bytes that must be free for the next recording: of @max, and of the
 *           file system
 *
 * While there is too little room, the function removes the oldest recording of
 * the user whose recordings have the most bytes. So no user can displace the
 * recordings of others who have less. A user with too many files is left out,
 * and a message tells this once.
 *
 * The function prints a line for each recording that it removes. While all
 * recordings together have at most @max - @reserve bytes, it keeps the newest
 * recording of each virtual machine even if the file system is full.
 *
 * Return: the sum of the sizes in bytes of the recordings that are left,
 * without recordings that could not be removed, and without those of users who
 * are left out
 */
uint64_t ht_watch_disk_trim(int dir, uint64_t max, uint64_t reserve);

#endif
