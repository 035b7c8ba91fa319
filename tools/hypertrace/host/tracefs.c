/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: use an instance of the host's tracefs
 */
#include <mntent.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "host/tracefs.h"
#include "hypertrace/base.h"
#include "hypertrace/ftrace-page.h"

/* Lock file: the recorder that owns the instance has an exclusive lock on it */
#define LOCK_FILE       "/run/hypertrace-host.lock"
#define FILE_MAX        (1u << 20)
#define PAGE_MAX        65536u

/*
 * FSCONFIG_CMD_CREATE, and FSOPEN_CLOEXEC or FSMOUNT_CLOEXEC, of linux/mount.h,
 * which cannot be included with some versions of sys/mount.h
 */
#define CONFIG_CREATE   6
#define CLOSE_ON_EXEC   1

struct HtTracefs {
    int dir;                    /* descriptor of the instance's folder, or -1 */
    /* descriptor of the folder "instances", which contains @dir, or -1 */
    int instances;
    int lock;                   /* descriptor of LOCK_FILE, or -1 */
};

static int mount_private(const char *type)
{
    int fs = syscall(SYS_fsopen, type, CLOSE_ON_EXEC), dir = -1, code;

    if (fs < 0) {
        return -1;
    }
    if (!syscall(SYS_fsconfig, fs, CONFIG_CREATE, NULL, NULL, 0)) {
        dir = syscall(SYS_fsmount, fs, CLOSE_ON_EXEC, 0);
    }
    code = errno;
    close(fs);
    errno = code;
    return dir;
}

int ht_mount_open(const char *type)
{
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    struct mntent *m;
    int dir = -1;

    while (mounts && dir < 0 && (m = getmntent(mounts))) {
        if (!strcmp(m->mnt_type, type)) {
            dir = open(m->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    }
    if (mounts) {
        endmntent(mounts);
    }
    return dir >= 0 ? dir : mount_private(type);
}

static void fail(GError **error, const char *what, int code)
{
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "%s: %s%s",
                what, g_strerror(code),
                code == EACCES || code == EPERM ? " (run it as root)" : "");
}

static char *read_fd(int fd, size_t max)
{
    g_autoptr(GString) s = g_string_new(NULL);
    char buffer[4096];
    ssize_t n = 0;

    while (s->len < max && ((n = read(fd, buffer, sizeof(buffer))) > 0 ||
                            (n < 0 && errno == EINTR))) {
        g_string_append_len(s, buffer, MAX(n, 0));
    }
    return n < 0 ? NULL : g_string_free(g_steal_pointer(&s), false);
}

/*
 * Become the owner of the instance, and write @note to the lock's file. If
 * another process owns it, set @other to the note of that process. When an
 * owner dies, the kernel releases the lock; the note of an unlocked file is
 * ignored.
 */
static bool lock(HtTracefs *t, const char *note, char **other, GError **error)
{
    size_t len = strlen(note);

    t->lock = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
                   O_NONBLOCK, 0600);
    if (t->lock < 0) {
        fail(error, "cannot open " LOCK_FILE, errno);
        return false;
    }
    if (flock(t->lock, LOCK_EX | LOCK_NB)) {
        *other = errno == EWOULDBLOCK ? read_fd(t->lock, PATH_MAX) : NULL;
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_AGAIN,
                    "another recorder has the host's trace");
        return false;
    }
    if (ftruncate(t->lock, 0) ||
        pwrite(t->lock, note, len, 0) != (ssize_t)len) {
        fail(error, "cannot write " LOCK_FILE, errno);
        return false;
    }
    return true;
}

/*
 * Create the instance. The caller has the lock: if an instance exists, its
 * recorder has died, so remove it first.
 */
static bool make(HtTracefs *t, GError **error)
{
    int root = ht_mount_open("tracefs");

    if (root < 0) {
        fail(error, "cannot open tracefs", errno);
        return false;
    }
    t->instances = openat(root, "instances", O_RDONLY | O_DIRECTORY |
                          O_CLOEXEC);
    if (t->instances < 0) {
        fail(error, "cannot open tracefs", errno);
    }
    close(root);
    if (t->instances < 0) {
        return false;
    }
    if (unlinkat(t->instances, HT_TRACEFS_INSTANCE, AT_REMOVEDIR) &&
        errno != ENOENT) {
        fail(error, "cannot remove the instance " HT_TRACEFS_INSTANCE
             " of tracefs", errno);
        return false;
    }
    if (mkdirat(t->instances, HT_TRACEFS_INSTANCE, 0700)) {
        fail(error, "cannot create an instance of tracefs", errno);
        return false;
    }
    t->dir = openat(t->instances, HT_TRACEFS_INSTANCE,
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->dir < 0) {
        fail(error, "cannot open the instance of tracefs", errno);
        unlinkat(t->instances, HT_TRACEFS_INSTANCE, AT_REMOVEDIR);
    }
    return t->dir >= 0;
}

HtTracefs *ht_tracefs_new(const char *note, char **other, GError **error)
{
    g_autoptr(HtTracefs) t = g_new0(HtTracefs, 1);

    *other = NULL;
    t->dir = t->instances = t->lock = -1;
    if (!lock(t, note, other, error) || !make(t, error)) {
        return NULL;
    }
    return g_steal_pointer(&t);
}

void ht_tracefs_free(HtTracefs *t)
{
    if (!t) {
        return;
    }
    if (t->dir >= 0) {
        close(t->dir);
        unlinkat(t->instances, HT_TRACEFS_INSTANCE, AT_REMOVEDIR);
    }
    if (t->instances >= 0) {
        close(t->instances);
    }
    /* Release the lock last: the next owner may then create a new instance. */
    if (t->lock >= 0) {
        close(t->lock);
    }
    g_free(t);
}

/*
 * Read a file of the instance; of a file of more than 1 MiB, read only its
 * first 1 MiB.
 */
static char *file_text(const HtTracefs *t, const char *name, GError **error)
{
    int fd = openat(t->dir, name, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : read_fd(fd, FILE_MAX);

    if (!text) {
        g_autofree char *what = g_strdup_printf("cannot read %s of tracefs",
                                                name);

        fail(error, what, errno);
    }
    if (fd >= 0) {
        close(fd);
    }
    return text;
}

bool ht_tracefs_write(const HtTracefs *t, const char *name, const char *text,
                      GError **error)
{
    int fd = openat(t->dir, name, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

    if (n < 0) {
        g_autofree char *what = g_strdup_printf("cannot write %s of tracefs",
                                                name);

        fail(error, what, errno);
    }
    if (fd >= 0) {
        close(fd);
    }
    return n >= 0;
}

bool ht_tracefs_enable(const HtTracefs *t, const char *system,
                       const char *name, GString *formats)
{
    g_autofree char *path = g_strdup_printf("events/%s/%s/", system, name);
    g_autofree char *format = g_strconcat(path, "format", NULL);
    g_autofree char *enable = g_strconcat(path, "enable", NULL);
    g_autofree char *text = file_text(t, format, NULL);

    if (!text || !ht_tracefs_write(t, enable, "1", NULL)) {
        return false;
    }
    g_string_append_printf(formats, "system: %s\n%s\n", system, text);
    return true;
}

static bool page_field(const char *text, const char *name, unsigned *offset,
                       unsigned *size)
{
    const char *p = strstr(text, name);

    return p && sscanf(p + strlen(name), " offset:%u; size:%u;", offset,
                       size) == 2;
}

bool ht_tracefs_headers(const HtTracefs *t, GString *formats,
                        uint32_t *page_size, GError **error)
{
    g_autofree char *page = file_text(t, "events/header_page", error);
    g_autofree char *event = page ? file_text(t, "events/header_event", error) :
                             NULL;
    unsigned commit, commit_size, data, data_size;

    if (!event) {
        return false;
    }
    if (!page_field(page, "commit;", &commit, &commit_size) ||
        !page_field(page, "data;", &data, &data_size) || commit != 8 ||
        commit_size != 8 || data != HT_FT_PAGE_HEADER ||
        data_size > PAGE_MAX - HT_FT_PAGE_HEADER) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOSYS,
                    "the pages of the host's trace have another header than "
                    "that of 64-bit kernels");
        return false;
    }
    *page_size = data + data_size;
    g_string_append_printf(formats, "header: header_page\n%s\n"
                           "header: header_event\n%s\n", page, event);
    return true;
}

int ht_tracefs_ring(const HtTracefs *t, uint32_t cpu)
{
    char path[64];

    snprintf(path, sizeof(path), "per_cpu/cpu%" PRIu32 "/trace_pipe_raw", cpu);
    return openat(t->dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

bool ht_tracefs_count(const HtTracefs *t, uint32_t cpu, const char *name,
                      uint64_t *n)
{
    g_autofree char *path = g_strdup_printf("per_cpu/cpu%" PRIu32 "/stats",
                                            cpu);
    g_autofree char *text = file_text(t, path, NULL);
    g_autofree char *line = g_strconcat(name, ": ", NULL);
    const char *found = text ? strstr(text, line) : NULL;

    return found && sscanf(found + strlen(line), "%" SCNu64, n) == 1;
}
