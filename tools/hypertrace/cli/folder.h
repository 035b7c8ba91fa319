/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: open, list, remove and give away folders that other users may be
 * changing
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
 * Return: false on failure, with errno; ht_folder_each() calls the function for
 * the next entry nevertheless
 */
typedef bool (*HtFolderEach)(int fd, const char *name, void *opaque);

/**
 * ht_folder_open() - open a folder
 * @at: descriptor of its parent folder; or AT_FDCWD
 * @name: its name in @at, or a path; a folder is refused if @name itself is a
 *        symbolic link, but links in other parts of a path are followed
 *
 * Return: a descriptor; -1 on failure, with errno
 */
int ht_folder_open(int at, const char *name);

/**
 * ht_folder_each() - call a function for each entry except "." and ".."
 * @fd: the folder
 * @left: maximum number of entries to handle, decremented for each; or NULL for
 *        no limit. If it is 0 afterwards, the folder may have more entries.
 * @each: the function
 * @opaque: passed to @each
 *
 * Return: false if a call of @each failed, or if the folder cannot be opened or
 * read; errno is then that of the last failure
 */
bool ht_folder_each(int fd, unsigned *left, HtFolderEach each, void *opaque);

/**
 * ht_folder_remove() - remove a folder and its files
 * @at: descriptor of its parent folder
 * @name: its name in @at; a symbolic link is refused
 * @is_ours: returns whether a file of this name may be removed; NULL: all files
 *
 * If the folder has other files or a subfolder, they stay and so does the
 * folder; the files that may be removed are removed nevertheless.
 *
 * Return: true if the folder was removed or does not exist; else false, with
 * errno
 */
bool ht_folder_remove(int at, const char *name,
                      bool (*is_ours)(const char *name));

/**
 * ht_folder_give() - make a user the owner of a folder and of all that is in
 *                    it; of a symbolic link itself, not of its target
 * @fd: the folder; since its creation, no other user was permitted to change it
 * @uid: the user
 * @gid: the user's group
 *
 * Return: false on failure, with errno
 */
bool ht_folder_give(int fd, uid_t uid, gid_t gid);

#endif /* HYPERTRACE_TOOL_FOLDER_H */
