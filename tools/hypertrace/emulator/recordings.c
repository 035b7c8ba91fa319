/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace as the emulator: make and remove recordings in a folder
 *
 * The folder is locked while recordings are made or removed in it, and each
 * recording is locked by its recorder.
 */
#include "hypertrace/base.h"
#include <glib/gstdio.h>
#include <sys/file.h>

#include "cli/escape.h"
#include "cli/folder.h"
#include "emulator/recordings.h"

typedef struct Recording {
    char *name;
    /* time in ns at which the recording's file "info" was last changed */
    int64_t changed;
    uint64_t bytes;
} Recording;

static void free_recording(void *opaque)
{
    Recording *r = opaque;

    g_free(r->name);
    g_free(r);
}

static int by_age(const void *a, const void *b)
{
    const Recording *x = *(Recording * const *)a;
    const Recording *y = *(Recording * const *)b;

    return (x->changed > y->changed) - (x->changed < y->changed);
}

/*
 * Add the disk space of a file to the sum @opaque. Returns false for a
 * subfolder, because a folder with a subfolder is no recording, and on failure.
 */
static bool add_size(int fd, const char *name, void *opaque)
{
    struct stat st;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || S_ISDIR(st.st_mode)) {
        return false;
    }
    *(uint64_t *)opaque += (uint64_t)st.st_blocks * 512;
    return true;
}

/*
 * Append a folder to the list @opaque if it is a recording: it has the file
 * "info" and no subfolder.
 */
static bool add_recording(int fd, const char *name, void *opaque)
{
    int sub = ht_folder_open(fd, name);
    struct stat st;
    Recording r = { 0 };

    if (sub >= 0 && !fstatat(sub, "info", &st, AT_SYMLINK_NOFOLLOW) &&
        ht_folder_each(sub, NULL, add_size, &r.bytes)) {
        r.name = g_strdup(name);
        r.changed = st.st_mtim.tv_sec * INT64_C(1000000000) +
                    st.st_mtim.tv_nsec;
        g_ptr_array_add(opaque, g_memdup2(&r, sizeof(r)));
    }
    if (sub >= 0) {
        close(sub);
    }
    return true;
}

static bool remove_recording(int fd, const char *name)
{
    int sub = ht_folder_open(fd, name);
    bool ok = sub >= 0 && !flock(sub, LOCK_EX | LOCK_NB) &&
              ht_folder_remove(fd, name, NULL);

    if (sub >= 0) {
        close(sub);
    }
    return ok;
}

static void remove_old(int fd, uint64_t keep, uint64_t bytes)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(free_recording);
    uint64_t count, sum = 0;
    guint i;

    ht_folder_each(fd, NULL, add_recording, all);
    g_ptr_array_sort(all, by_age);
    count = all->len;
    for (i = 0; i < all->len; i++) {
        sum += ((Recording *)all->pdata[i])->bytes;
    }
    for (i = 0; i < all->len && (count >= keep || sum > bytes); i++) {
        const Recording *r = all->pdata[i];

        if (remove_recording(fd, r->name)) {
            count--;
            sum -= r->bytes;
        }
    }
}

static char *new_name(const char *guest)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autofree char *date = g_date_time_format(now, "%Y%m%d-%H%M%S");
    g_autofree char *name = ht_escape_file_name(guest && *guest ? guest :
                                                "guest");

    return g_strdup_printf("%s-%s", name, date);
}

static char *make_folder(int fd, const char *guest, int *lock)
{
    g_autofree char *base = new_name(guest);
    char *name = g_strdup(base);
    unsigned i;

    for (i = 2; mkdirat(fd, name, 0700); i++) {
        int code = errno;

        g_free(name);
        if (code != EEXIST) {
            errno = code;
            return NULL;
        }
        name = g_strdup_printf("%s-%u", base, i);
    }
    *lock = ht_folder_open(fd, name);
    if (*lock >= 0) {
        flock(*lock, LOCK_EX | LOCK_NB);
    }
    return name;
}

char *ht_recordings_new(const char *folder, const char *guest, uint64_t keep,
                        uint64_t bytes, int *lock, GError **error)
{
    int fd = g_mkdir_with_parents(folder, 0700) ? -1 :
             open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_autofree char *name = NULL;

    *lock = -1;
    if (fd >= 0 && !flock(fd, LOCK_EX)) {
        remove_old(fd, keep, bytes);
        name = make_folder(fd, guest, lock);
    }
    if (!name) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "cannot create a recording in %s: %s; set "
                    "HYPERTRACE_RECORDINGS to a folder that is writable",
                    folder, g_strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return name ? g_build_filename(folder, name, NULL) : NULL;
}
