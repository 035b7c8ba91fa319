/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: measure the folder of all recordings, and remove old ones
 *
 * The folder has a folder for each user, as "alice/web1/3-panic": the user's
 * folder belongs to the user, and the recorder of a virtual machine makes the
 * folders below it.
 */
#ifndef HYPERTRACE_WATCH_DISK_H
#define HYPERTRACE_WATCH_DISK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * ht_watch_disk_open() - create and lock the folder
 * @path: the folder
 * @error: set if it cannot be used, or if another process has locked it
 *
 * Return: a descriptor, which holds the lock; -1 on failure
 */
int ht_watch_disk_open(const char *path, GError **error);

/**
 * ht_watch_disk_user() - create the folder of a user
 * @dir: from ht_watch_disk_open()
 * @uid: the user
 * @gid: the group of a new folder
 * @error: set on failure
 *
 * Return: its name, newly allocated; NULL on failure
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
 * The user whose recordings have the most bytes makes room first, so that no
 * user can displace the recordings of others who have less. A user with too
 * many files is left out, which is printed once.
 *
 * Prints a line for each recording that it removes. If the file system is full
 * but @max is not reached, each virtual machine's newest recording is kept.
 *
 * Return: the sum of the sizes of the recordings that are left, without those
 * that could not be removed
 */
uint64_t ht_watch_disk_trim(int dir, uint64_t max, uint64_t reserve);

#endif
