/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: folders that other users may change at the same time
 *
 * A folder is opened by its parent's descriptor. Symbolic links are not
 * followed.
 */
#ifndef HYPERTRACE_TOOL_FOLDER_H
#define HYPERTRACE_TOOL_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * HtFolderEach() - handle an entry of a folder
 * @fd: the folder
 * @name: the entry
 * @opaque: of ht_folder_each()
 *
 * Return: false on failure; ht_folder_each() then goes on with the next entry
 */
typedef bool (*HtFolderEach)(int fd, const char *name, void *opaque);

/**
 * ht_folder_open() - open a folder
 * @at: descriptor of the folder that has it
 * @name: its name; a symbolic link is refused
 *
 * Return: a descriptor; -1 on failure, with errno
 */
int ht_folder_open(int at, const char *name);

/**
 * ht_folder_each() - call a function for each entry except "." and ".."
 * @fd: the folder
 * @left: number of entries that may be handled, which is decremented; or NULL.
 *        It is 0 afterwards if there may be more entries.
 * @each: the function
 * @opaque: passed to it
 *
 * Return: false if a call failed, or if the folder cannot be read; errno is
 * then that of the failure
 */
bool ht_folder_each(int fd, unsigned *left, HtFolderEach each, void *opaque);

/**
 * ht_folder_remove() - remove a folder and its files
 * @at: descriptor of the folder that has it
 * @name: its name; a symbolic link is not followed
 * @is_ours: whether a file of this name may be removed; NULL for all files
 *
 * A folder with other files or with folders in it stays.
 *
 * Return: true if no folder of that name is left
 */
bool ht_folder_remove(int at, const char *name,
                      bool (*is_ours)(const char *name));

/**
 * ht_folder_give() - make a user the owner of a folder and of all that is in it
 * @fd: the folder, which no other user could change since it was created
 * @uid: the user
 * @gid: the user's group
 *
 * Return: false on failure, with errno
 */
bool ht_folder_give(int fd, uid_t uid, gid_t gid);

#endif /* HYPERTRACE_TOOL_FOLDER_H */
