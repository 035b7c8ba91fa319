/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace watch: measure the folder of all recordings, and remove old ones
 *
 * Users own the folders below the folder of all recordings, and may rename or
 * replace what is in them. So each of these folders is opened by its parent's
 * descriptor, symbolic links in them are not followed, and only files with the
 * names of a recording's files, and empty folders, are removed.
 */
#include "hypertrace/base.h"
#include <pwd.h>
#include <sys/file.h>
#include <sys/statvfs.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/folder.h"
#include "record/flight-dir.h"
#include "watch/disk.h"

/*
 * Seconds to subtract from the time of a recording that is in the future, for
 * example because the host's clock was set back. The recording then counts as
 * old: see add_vm().
 */
#define FUTURE      (INT64_C(1) << 40)
#define USERS_MAX   10000
/*
 * Maximum number of files and folders of a user that are examined: a user can
 * create any number
 */
#define ENTRIES_MAX 50000

typedef struct Recording {
    /* user and machine of the recording, as "alice/web1" */
    char *vm;
    char *name;
    uint64_t number;
    /*
     * time of the last change of the recording's folder, in seconds since
     * 1970, changed by FUTURE and add_vm(); used to order recordings by age
     */
    int64_t time;
    uint64_t bytes;
    /* no recording of the machine has a higher number */
    bool newest;
} Recording;

typedef struct User {
    /* of Recording, from the oldest to the newest */
    GPtrArray *all;
    uint64_t sum;               /* sum of Recording.bytes that are left */
    unsigned next;              /* index in @all of the next one to remove */
} User;

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
                    "name another directory with -o", path);
    } else if (flock(fd, LOCK_EX | LOCK_NB)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
                    "another hypertrace watch uses %s: end it, or name another "
                    "directory with -o", path);
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
    int fd = ht_folder_open(dir, name);
    struct stat st;
    bool ok = fd >= 0 && !fstat(fd, &st);

    /*
     * Make the user the owner of a new folder, or of one that still belongs to
     * this process's user because a watch was killed before this step.
     */
    if (ok && (made || (st.st_uid == geteuid() && uid != geteuid()))) {
        ok = !fchown(fd, uid, gid) && !fstat(fd, &st);
    }
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

/* State while the folders below one user's folder are visited */
typedef struct Walk {
    GPtrArray *all;
    /* path of the present folder, as in Recording.vm */
    const char *prefix;
    uid_t uid;
    /* number of files and folders that may still be visited */
    unsigned *left;
    uint64_t bytes;
} Walk;

/*
 * Add the size of a recording's file.  Count only files that belong to the
 * user, and none with further hard links: to remove one link would not free the
 * file's bytes.
 */
static bool add_size(int fd, const char *name, void *opaque)
{
    Walk *w = opaque;
    struct stat st;

    if (ht_flight_dir_is_file(name) &&
        !fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
        st.st_uid == w->uid && st.st_nlink == 1) {
        w->bytes += (uint64_t)st.st_blocks * 512;
    }
    return true;
}

static bool add_recording(int fd, const char *name, void *opaque)
{
    Walk *w = opaque;
    int64_t now = g_get_real_time() / G_USEC_PER_SEC;
    int sub = ht_flight_dir_number(name) ? ht_folder_open(fd, name) : -1;
    struct stat st;

    if (sub >= 0 && !fstat(sub, &st)) {
        Walk files = *w;
        Recording *r = g_new0(Recording, 1);

        files.bytes = 0;
        ht_folder_each(sub, w->left, add_size, &files);
        r->vm = g_strdup(w->prefix);
        r->name = g_strdup(name);
        r->number = ht_flight_dir_number(name);
        r->time = st.st_mtim.tv_sec - (st.st_mtim.tv_sec > now ? FUTURE : 0);
        r->bytes = files.bytes;
        g_ptr_array_add(w->all, r);
    }
    if (sub >= 0) {
        close(sub);
    }
    return true;
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
 * back: if a recording has an earlier time than the recording with the next
 * lower number, give it the time of that recording.
 */
static bool add_vm(int fd, const char *name, void *opaque)
{
    const Walk *w = opaque;
    g_autofree char *path = g_build_filename(w->prefix, name, NULL);
    g_autoptr(GPtrArray) own = g_ptr_array_new();
    Walk of_vm = *w;
    int sub = *name == '.' ? -1 : ht_folder_open(fd, name);
    unsigned i;

    if (sub < 0) {
        return true;
    }
    of_vm.all = own;
    of_vm.prefix = path;
    ht_folder_each(sub, w->left, add_recording, &of_vm);
    close(sub);
    g_ptr_array_sort(own, by_number);
    for (i = 0; i < own->len; i++) {
        Recording *r = own->pdata[i];

        if (i) {
            r->time = MAX(r->time, ((Recording *)own->pdata[i - 1])->time);
        }
        r->newest = i + 1 == own->len;
        g_ptr_array_add(w->all, r);
    }
    return true;
}

static void free_user(void *opaque)
{
    User *u = opaque;

    g_ptr_array_free(u->all, true);
    g_free(u);
}

/*
 * Note that a user has too many files. Return: true at the first call for this
 * user; the caller prints a message then
 */
static bool is_new_crowd(const char *user)
{
    static GHashTable *told;

    if (!told) {
        told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    }
    return g_hash_table_add(told, g_strdup(user));
}

static bool add_user(int fd, const char *name, void *opaque)
{
    int sub = *name == '.' ? -1 : ht_folder_open(fd, name);
    unsigned left = ENTRIES_MAX, i;
    Walk w = { .prefix = name, .left = &left };
    struct stat st;
    User *u;

    if (sub < 0 || fstat(sub, &st)) {
        if (sub >= 0) {
            close(sub);
        }
        return true;
    }
    u = g_new0(User, 1);
    u->all = g_ptr_array_new_with_free_func(free_recording);
    w.all = u->all;
    w.uid = st.st_uid;
    ht_folder_each(sub, &left, add_vm, &w);
    close(sub);
    if (!left) {
        if (is_new_crowd(name)) {
            ht_error("%s: recordings of this user are neither counted nor "
                     "removed: the directory has more than %u files", name,
                     ENTRIES_MAX - 1);
        }
        free_user(u);
        return true;
    }
    g_ptr_array_sort(u->all, by_time);
    for (i = 0; i < u->all->len; i++) {
        u->sum += ((Recording *)u->all->pdata[i])->bytes;
    }
    g_ptr_array_add(opaque, u);
    return true;
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

static void remove_recording(int dir, const Recording *r, const char *why)
{
    g_auto(GStrv) parts = g_strsplit(r->vm, "/", 2);
    g_autoptr(GString) text = g_string_new(NULL);
    int user = ht_folder_open(dir, parts[0]);
    int vm = user >= 0 ? ht_folder_open(user, parts[1]) : -1;
    bool ok = false;

    if (vm >= 0) {
        ok = ht_flight_dir_remove(vm, r->name);
        /*
         * Remove the machine's folder if it is empty. This fails if the machine
         * has other recordings, or if its recorder runs and has a socket in the
         * folder.
         */
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
}

/*
 * Get the oldest recording of a user that may be removed; NULL if there is no
 * such recording. @many: all recordings together are too large; then a
 * machine's newest recording may be removed, too.
 */
static const Recording *next_of(User *u, bool many)
{
    while (!many && u->next < u->all->len &&
           ((Recording *)u->all->pdata[u->next])->newest) {
        u->next++;
    }
    return u->next < u->all->len ? u->all->pdata[u->next] : NULL;
}

/*
 * Find the user whose recordings have the most bytes together, among the users
 * with a recording that may be removed. @many: as for next_of()
 */
static User *largest(const GPtrArray *users, bool many)
{
    User *found = NULL;
    unsigned i;

    for (i = 0; i < users->len; i++) {
        User *u = users->pdata[i];

        if (next_of(u, many) && (!found || u->sum > found->sum)) {
            found = u;
        }
    }
    return found;
}

uint64_t ht_watch_disk_trim(int dir, uint64_t max, uint64_t reserve)
{
    g_autoptr(GPtrArray) users = g_ptr_array_new_with_free_func(free_user);
    uint64_t sum = 0, room = max > reserve ? max - reserve : 0;
    unsigned left = USERS_MAX, i;

    ht_folder_each(dir, &left, add_user, users);
    for (i = 0; i < users->len; i++) {
        sum += ((User *)users->pdata[i])->sum;
    }
    while (sum > room || available(dir) < reserve) {
        bool many = sum > room;
        User *u = largest(users, many);
        const Recording *r;

        if (!u) {
            break;
        }
        r = u->all->pdata[u->next++];
        remove_recording(dir, r, many ? "all recordings together reach "
                         "max-disk" : "the file system is full");
        /*
         * The user can prevent the removal. Subtract the bytes even then:
         * otherwise recordings of other users would be removed instead.
         */
        u->sum -= r->bytes;
        sum -= r->bytes;
    }
    return sum;
}
