/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a reference to a process that is safe against reuse of its PID
 */
#include "hypertrace/base.h"
#include <dirent.h>
#include <poll.h>
#include <sys/syscall.h>

#include "memory/process.h"

/* Maximum bytes of ht_process_read(). "maps" may have 65,530 lines. */
#define TEXT_MAX (64u << 20)

void ht_process_close_others(const int *keep, unsigned n)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;

    while (dir && (e = readdir(dir))) {
        int fd = atoi(e->d_name);
        bool kept = fd < 3 || fd == dirfd(dir);
        unsigned i;

        for (i = 0; i < n; i++) {
            kept |= fd == keep[i];
        }
        if (!kept) {
            close(fd);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

HtProcess *ht_process_new(pid_t pid, GError **error)
{
    g_autoptr(HtProcess) p = g_new0(HtProcess, 1);
    g_autofree char *path = g_strdup_printf("/proc/%d", (int)pid);

    p->pid = pid;
    p->dir = -1;
    p->pidfd = syscall(SYS_pidfd_open, pid, 0);
    if (p->pidfd >= 0) {
        p->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    /*
     * The folder was opened after the pidfd. So if the process still runs, the
     * folder is its own, and not of a later process with the same PID.
     */
    if (p->dir < 0 || ht_process_ended(p)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
                    "process %d: %s", (int)pid,
                    p->dir >= 0 || errno == ESRCH || errno == ENOENT ?
                    "there is no such process" : g_strerror(errno));
        return NULL;
    }
    return g_steal_pointer(&p);
}

static void add_children(GArray *all, pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children",
                                            (int)pid, (int)pid);
    g_autofree char *text = NULL;
    char *p, *end;
    pid_t child;

    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        return;
    }
    for (p = text; (child = strtol(p, &end, 10)) > 0; p = end) {
        g_array_append_val(all, child);
    }
}

GArray *ht_process_children(void)
{
    GArray *all = g_array_new(false, false, sizeof(pid_t));
    pid_t self = getpid();
    unsigned i;

    add_children(all, self);
    for (i = 0; i < all->len; i++) {
        add_children(all, g_array_index(all, pid_t, i));
    }
    return all;
}

void ht_process_free(HtProcess *p)
{
    if (p) {
        if (p->pidfd >= 0) {
            close(p->pidfd);
        }
        if (p->dir >= 0) {
            close(p->dir);
        }
        g_free(p);
    }
}

bool ht_process_ended(const HtProcess *p)
{
    struct pollfd poll_fd = { .fd = p->pidfd, .events = POLLIN };

    return poll(&poll_fd, 1, 0) > 0;
}

bool ht_process_owner(const HtProcess *p, HtProcessOwner *o)
{
    g_autofree char *status = ht_process_read(p, "status", NULL, NULL);
    const char *parent = status ? strstr(status, "\nPPid:") : NULL;
    const char *user = status ? strstr(status, "\nUid:") : NULL;
    const char *group = status ? strstr(status, "\nGid:") : NULL;

    /* Read "status": the owner of the folder in /proc may be root. */
    return parent && sscanf(parent, "\nPPid: %d", &o->parent) == 1 &&
           user && sscanf(user, "\nUid: %u %u", &o->real, &o->uid) == 2 &&
           group && sscanf(group, "\nGid: %*u %u", &o->gid) == 1;
}

bool ht_process_is_ours(const HtProcess *p)
{
    HtProcessOwner o;

    return ht_process_owner(p, &o) && o.real == geteuid() &&
           o.uid == geteuid();
}

int ht_process_open(const HtProcess *p, const char *name)
{
    return openat(p->dir, name, O_RDONLY | O_CLOEXEC);
}

char *ht_process_read(const HtProcess *p, const char *name, size_t *size,
                      GError **error)
{
    g_autoptr(GByteArray) text = g_byte_array_new();
    int fd = ht_process_open(p, name), code = errno;
    char buf[16384];
    ssize_t n = fd < 0 ? -1 : 1;

    while (fd >= 0 && n && text->len < TEXT_MAX) {
        n = read(fd, buf, sizeof(buf));
        if (n < 0 && errno != EINTR) {
            code = errno;
            break;
        } else if (n > 0) {
            g_byte_array_append(text, (uint8_t *)buf, n);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    if (n) {
        code = n > 0 ? EFBIG : code;
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                    "cannot read %s of process %d: %s", name, (int)p->pid,
                    g_strerror(code));
        return NULL;
    }
    if (size) {
        *size = text->len;
    }
    g_byte_array_append(text, (const uint8_t *)"", 1);
    return (char *)g_byte_array_free(g_steal_pointer(&text), false);
}
