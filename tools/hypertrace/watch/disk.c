/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: the folder of all recordings
 *
 * Users own the folders in it and may rename or replace their files. So
 * folders are opened one in another without symbolic links, and only files with
 * the names of a recording's files are removed.
 */
#include "hypertrace/base.h"
#include <dirent.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/statvfs.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "record/flight-dir.h"
#include "watch/disk.h"

/*
 * A recording of the future was made before the host's clock was set back: it
 * is older than all others. In seconds
 */
#define FUTURE      (INT64_C(1) << 40)
/* Limit for entries of a folder, which its user can create */
#define ENTRIES_MAX 100000

typedef struct Recording {
    char *vm;                   /* as "alice/web1" */
    char *name;
    uint64_t number;
    int64_t time;               /* seconds */
    uint64_t bytes;
    bool newest;                /* the virtual machine has no newer one */
} Recording;

static void free_recording(void *opaque)
{
    Recording *r = opaque;

    g_free(r->vm);
    g_free(r->name);
    g_free(r);
}

static bool fail(GError **error, const char *what, const char *path)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                "cannot %s %s: %s", what, path, g_strerror(code));
    return false;
}

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int ht_watch_disk_open(const char *path, GError **error)
{
    struct stat st;
    int fd = g_mkdir_with_parents(path, 0755) ? -1 :
             open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st)) {
        fail(error, "use the directory", path);
    } else if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_PERM,
                    "%s belongs to another user, or others can write to it: "
                    "name another directory with --dir", path);
    } else if (flock(fd, LOCK_EX | LOCK_NB)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
                    "another hypertrace watch uses %s: end it, or name another "
                    "directory with --dir", path);
    } else {
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

char *ht_watch_disk_user(int dir, uid_t uid, gid_t gid, GError **error)
{
    const struct passwd *user = getpwuid(uid);
    g_autofree char *name = user && *user->pw_name != '.' &&
                            !strchr(user->pw_name, '/') ?
                            g_strdup(user->pw_name) :
                            g_strdup_printf("%u", (unsigned)uid);
    bool made = !mkdirat(dir, name, 0700);
    int fd = open_folder(dir, name);
    struct stat st;
    bool ok = fd >= 0 && (!made || !fchown(fd, uid, gid)) && !fstat(fd, &st);

    if (!ok) {
        fail(error, "make the directory", name);
    } else if (st.st_uid != uid) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_PERM, "the directory %s "
                    "of the user's recordings belongs to another user", name);
        ok = false;
    }
    if (fd >= 0) {
        close(fd);
    }
    return ok ? g_steal_pointer(&name) : NULL;
}

/* Call @each for each entry of a folder. */
static void for_each(int fd, void (*each)(int fd, const char *name, void *),
                     void *opaque)
{
    int copy = open_folder(fd, ".");
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    unsigned n = 0;
    struct dirent *e;

    while (d && n++ < ENTRIES_MAX && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) {
            each(fd, e->d_name, opaque);
        }
    }
    if (d) {
        closedir(d);
    } else if (copy >= 0) {
        close(copy);
    }
}

static void add_size(int fd, const char *name, void *opaque)
{
    struct stat st;

    if (!fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
        *(uint64_t *)opaque += (uint64_t)st.st_blocks * 512;
    }
}

/* The list of one virtual machine's recordings, and the machine's name */
typedef struct Listing {
    GPtrArray *all;
    const char *prefix;
} Listing;

static void add_recording(int fd, const char *name, void *opaque)
{
    Listing *l = opaque;
    int64_t now = g_get_real_time() / G_USEC_PER_SEC;
    int sub = ht_flight_dir_number(name) ? open_folder(fd, name) : -1;
    struct stat st;

    if (sub >= 0 && !fstat(sub, &st)) {
        Recording *r = g_new0(Recording, 1);

        r->vm = g_strdup(l->prefix);
        r->name = g_strdup(name);
        r->number = ht_flight_dir_number(name);
        r->time = st.st_mtim.tv_sec - (st.st_mtim.tv_sec > now ? FUTURE : 0);
        for_each(sub, add_size, &r->bytes);
        g_ptr_array_add(l->all, r);
    }
    if (sub >= 0) {
        close(sub);
    }
}

static int by_number(const void *a, const void *b)
{
    const Recording *x = *(Recording * const *)a;
    const Recording *y = *(Recording * const *)b;

    return (x->number > y->number) - (x->number < y->number);
}

static int by_time(const void *a, const void *b)
{
    const Recording *x = *(Recording * const *)a;
    const Recording *y = *(Recording * const *)b;

    return x->time != y->time ? (x->time > y->time) - (x->time < y->time) :
           by_number(a, b);
}

/*
 * Add the recordings of a virtual machine. The host's clock may have been set
 * back: a recording is never older than one with a smaller number.
 */
static void add_vm(int fd, const char *name, void *opaque)
{
    const Listing *l = opaque;
    g_autofree char *path = g_build_filename(l->prefix, name, NULL);
    g_autoptr(GPtrArray) own = g_ptr_array_new();
    Listing of_vm = { .all = own, .prefix = path };
    int sub = *name == '.' ? -1 : open_folder(fd, name);
    unsigned i;

    if (sub < 0) {
        return;
    }
    for_each(sub, add_recording, &of_vm);
    close(sub);
    g_ptr_array_sort(own, by_number);
    for (i = 0; i < own->len; i++) {
        Recording *r = own->pdata[i];

        if (i) {
            r->time = MAX(r->time, ((Recording *)own->pdata[i - 1])->time);
        }
        r->newest = i + 1 == own->len;
        g_ptr_array_add(l->all, r);
    }
}

static void add_user(int fd, const char *name, void *opaque)
{
    Listing l = { .all = opaque, .prefix = name };
    int sub = *name == '.' ? -1 : open_folder(fd, name);

    if (sub >= 0) {
        for_each(sub, add_vm, &l);
        close(sub);
    }
}

static uint64_t available(int dir)
{
    struct statvfs st;

    return fstatvfs(dir, &st) ? UINT64_MAX :
           (uint64_t)st.f_bavail * st.f_frsize;
}

bool ht_watch_disk_is_full(int dir, uint64_t reserve)
{
    return available(dir) < reserve;
}

static bool remove_recording(int dir, const Recording *r, const char *why)
{
    g_auto(GStrv) parts = g_strsplit(r->vm, "/", 2);
    g_autoptr(GString) text = g_string_new(NULL);
    int user = open_folder(dir, parts[0]);
    int vm = user >= 0 ? open_folder(user, parts[1]) : -1;
    struct stat st;
    bool ok = false;

    if (vm >= 0) {
        ht_flight_dir_remove(vm, r->name);
        ok = fstatat(vm, r->name, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
        /* The folder of a machine that runs has a socket, and stays. */
        unlinkat(user, parts[1], AT_REMOVEDIR);
    }
    if (vm >= 0) {
        close(vm);
    }
    if (user >= 0) {
        close(user);
    }
    if (ok) {
        ht_escape_str(text, HT_ESCAPE_TERMINAL, r->vm);
        ht_notice("%s: removed the recording %s, %.1f MB: %s", text->str,
                  r->name, r->bytes / 1e6, why);
    }
    return ok;
}

uint64_t ht_watch_disk_trim(int dir, uint64_t max, uint64_t reserve)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_recording);
    uint64_t sum = 0, room = max > reserve ? max - reserve : 0;
    unsigned i;

    for_each(dir, add_user, all);
    g_ptr_array_sort(all, by_time);
    for (i = 0; i < all->len; i++) {
        sum += ((Recording *)all->pdata[i])->bytes;
    }
    for (i = 0; i < all->len; i++) {
        const Recording *r = all->pdata[i];
        bool many = sum > room;

        if (!many && available(dir) >= reserve) {
            break;
        }
        if ((many || !r->newest) &&
            remove_recording(dir, r, many ? "all recordings together reach "
                             "max-disk" : "the file system is full")) {
            sum -= r->bytes;
        }
    }
    return sum;
}
