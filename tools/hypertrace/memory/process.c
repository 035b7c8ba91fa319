/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: a reference to a process that is safe against reuse of its PID
 */
#include "hypertrace/base.h"
#include <dirent.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/syscall.h>

#include "memory/process.h"

/*
 * ht_process_read() fails for a file of this many bytes or more. By default,
 * the file "maps" may have up to about 65,530 lines.
 */
#define TEXT_MAX (64u << 20)
/*
 * Maximum number of bytes and of arguments that ht_process_args() returns: a
 * process can set its arguments to any text of any length
 */
#define ARGS_BYTES  (256u << 10)
#define ARGS_MAX    4096u

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

static void add_children_of(GArray *all, pid_t pid, const char *thread)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%s/children",
                                            (int)pid, thread);
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

/* Add the children of a process. Each of its threads has its own list. */
static void add_children(GArray *all, pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    struct dirent *e;

    while (dir && (e = readdir(dir))) {
        if (e->d_name[0] != '.') {
            add_children_of(all, pid, e->d_name);
        }
    }
    if (dir) {
        closedir(dir);
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

bool ht_process_wrapped(void)
{
    g_autoptr(GArray) pids = ht_process_children();

    return pids->len > 1;
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

/*
 * Put CAP_SYS_PTRACE into this thread's effective set of capabilities, or take
 * it out. A recorder that hypertrace watch starts has the capability in its
 * permitted set only. Functions of this file make it effective while they open
 * or examine a file in /proc.
 *
 * Return: true if the effective set was changed
 */
static bool set_ptrace(bool on)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct data[2] = { 0 };
    uint32_t bit = 1u << CAP_SYS_PTRACE;

    if (syscall(SYS_capget, &header, data) || !(data[0].permitted & bit) ||
        !(data[0].effective & bit) != on) {
        return false;
    }
    data[0].effective ^= bit;
    return !syscall(SYS_capset, &header, data);
}

static bool stat_program(const HtProcess *p, struct stat *st)
{
    bool raised = set_ptrace(true);
    bool ok = !fstatat(p->dir, "exe", st, 0);

    if (raised) {
        set_ptrace(false);
    }
    return ok;
}

bool ht_process_owner(const HtProcess *p, HtProcessOwner *o)
{
    g_autofree char *status = ht_process_read(p, "status", NULL, NULL);
    const char *parent = status ? strstr(status, "\nPPid:") : NULL;
    const char *user = status ? strstr(status, "\nUid:") : NULL;
    const char *group = status ? strstr(status, "\nGid:") : NULL;
    uid_t u[4];
    gid_t g[4];
    struct stat st;

    *o = (HtProcessOwner) { 0 };
    /*
     * Read the user from "status": the owner of the folder /proc/PID may be
     * root although the process belongs to another user.
     */
    if (!parent || sscanf(parent, "\nPPid: %d", &o->parent) != 1 ||
        !user || sscanf(user, "\nUid: %u %u %u %u", &u[0], &u[1], &u[2],
                        &u[3]) != 4 ||
        !group || sscanf(group, "\nGid: %u %u %u %u", &g[0], &g[1], &g[2],
                         &g[3]) != 4 ||
        u[0] != u[1] || u[0] != u[2] || u[0] != u[3] ||
        g[0] != g[1] || g[0] != g[2] || g[0] != g[3]) {
        return false;
    }
    o->uid = u[0];
    o->gid = g[0];
    if (stat_program(p, &st)) {
        o->dev = st.st_dev;
        o->inode = st.st_ino;
    }
    return true;
}

bool ht_process_is_owner(const HtProcess *p, const HtProcessOwner *expected)
{
    HtProcessOwner o;

    return ht_process_owner(p, &o) && o.uid == expected->uid &&
           o.gid == expected->gid && o.dev == expected->dev &&
           o.inode == expected->inode;
}

bool ht_process_is_ours(const HtProcess *p)
{
    HtProcessOwner o;

    return ht_process_owner(p, &o) && o.uid == geteuid();
}

int ht_process_open(const HtProcess *p, const char *name)
{
    bool raised = set_ptrace(true);
    int fd = openat(p->dir, name, O_RDONLY | O_CLOEXEC), code = errno;

    if (raised) {
        set_ptrace(false);
    }
    errno = code;
    return fd;
}

/*
 * Read a file of /proc/PID to its end, or until at least @limit bytes were
 * read. Set @whole to whether the end was reached.
 */
static GByteArray *read_text(const HtProcess *p, const char *name, size_t limit,
                             bool *whole, GError **error)
{
    g_autoptr(GByteArray) text = g_byte_array_new();
    int fd = ht_process_open(p, name), code = errno;
    char buf[16384];
    ssize_t n = fd < 0 ? -1 : 1;

    while (fd >= 0 && n && text->len < limit) {
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
    *whole = !n;
    if (n < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                    "cannot read %s of process %d: %s", name, (int)p->pid,
                    g_strerror(code));
        return NULL;
    }
    return g_steal_pointer(&text);
}

char *ht_process_read(const HtProcess *p, const char *name, size_t *size,
                      GError **error)
{
    bool whole;
    g_autoptr(GByteArray) text = read_text(p, name, TEXT_MAX, &whole, error);

    if (!text) {
        return NULL;
    }
    if (!whole) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "%s of process %d has more than %u MiB", name, (int)p->pid,
                    TEXT_MAX >> 20);
        return NULL;
    }
    if (size) {
        *size = text->len;
    }
    g_byte_array_append(text, (const uint8_t *)"", 1);
    return (char *)g_byte_array_free(g_steal_pointer(&text), false);
}

char **ht_process_args(const HtProcess *p, GError **error)
{
    bool whole;
    g_autoptr(GByteArray) text = read_text(p, "cmdline", ARGS_BYTES, &whole,
                                           error);
    size_t size, at, n = 0;
    char **args, *copy;

    if (!text) {
        return NULL;
    }
    size = MIN(text->len, ARGS_BYTES);
    /*
     * One block has the array of pointers, and after it the text of the
     * arguments.
     */
    args = g_malloc0((ARGS_MAX + 1) * sizeof(*args) + size + 1);
    copy = (char *)(args + ARGS_MAX + 1);
    if (size) {
        memcpy(copy, text->data, size);
    }
    for (at = 0; at < size && n < ARGS_MAX; at += strlen(copy + at) + 1) {
        args[n++] = copy + at;
    }
    return args;
}
