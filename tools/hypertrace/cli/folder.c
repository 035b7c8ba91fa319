/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: open, list, remove and give away folders that other users may be
 * changing
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/folder.h"

int ht_folder_open(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Read the next entry, or return NULL. On an error, set *@code to errno. */
static struct dirent *next(DIR *dir, int *code)
{
    struct dirent *e;

    errno = 0;
    e = readdir(dir);
    if (!e && errno) {
        *code = errno;
    }
    return e;
}

bool ht_folder_each(int fd, unsigned *left, HtFolderEach each, void *opaque)
{
    int copy = ht_folder_open(fd, "."), code = 0;
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *e;
    bool ok = dir;

    if (!dir) {
        code = errno;
        if (copy >= 0) {
            close(copy);
        }
    }
    while (dir && (!left || *left) && (e = next(dir, &code))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) {
            continue;
        }
        if (left) {
            --*left;
        }
        if (!each(fd, e->d_name, opaque)) {
            code = errno;
            ok = false;
        }
    }
    if (dir) {
        closedir(dir);
    }
    errno = code;
    return ok && !code;
}

typedef bool (*IsOurs)(const char *name);

static bool remove_file(int fd, const char *name, void *opaque)
{
    IsOurs is_ours = *(IsOurs *)opaque;

    return (is_ours && !is_ours(name)) || !unlinkat(fd, name, 0);
}

bool ht_folder_remove(int at, const char *name,
                      bool (*is_ours)(const char *name))
{
    int fd = ht_folder_open(at, name);

    if (fd < 0) {
        return errno == ENOENT;
    }
    ht_folder_each(fd, NULL, remove_file, &is_ours);
    close(fd);
    return !unlinkat(at, name, AT_REMOVEDIR) || errno == ENOENT;
}

typedef struct Owner {
    uid_t uid;
    gid_t gid;
} Owner;

static bool give(int fd, Owner *to);

static bool give_entry(int fd, const char *name, void *to)
{
    const Owner *o = to;
    int folder = ht_folder_open(fd, name);
    bool ok;

    if (folder < 0) {
        return !fchownat(fd, name, o->uid, o->gid, AT_SYMLINK_NOFOLLOW);
    }
    ok = give(folder, to);
    close(folder);
    return ok;
}

/*
 * Change the owner of a folder and of its entries. Change the folder last: the
 * new owner must not be able to replace entries while they are changed.
 */
static bool give(int fd, Owner *to)
{
    return ht_folder_each(fd, NULL, give_entry, to) &&
           !fchown(fd, to->uid, to->gid);
}

bool ht_folder_give(int fd, uid_t uid, gid_t gid)
{
    Owner to = { uid, gid };

    return give(fd, &to);
}
