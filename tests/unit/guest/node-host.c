/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "hypertrace/base.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "../../../guest-linux/uapi/linux/hypertrace.h"
#include "node-host.h"

#define NODE "/dev/hypertrace"

/*
 * Install a seccomp filter that passes openat() and the driver's ioctl() to
 * the test, and allows all other calls. Return the descriptor by which the test
 * gets the calls, or -1.
 */
static int install_filter(void)
{
    static struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[1])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff00),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HT_IOC_MAGIC << 8, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    };
    struct sock_fprog program = { G_N_ELEMENTS(filter), filter };

    /*
     * openat() jumps to SECCOMP_RET_USER_NOTIF, without the check of the
     * ioctl() request; calls other than openat() and ioctl() jump to
     * SECCOMP_RET_ALLOW
     */
    filter[1].jt = 5;
    filter[2].jf = 3;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        return -1;
    }
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void send_fd(int socket, int fd)
{
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = "";
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = sizeof(control),
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    if (sendmsg(socket, &msg, 0) != 1) {
        _exit(99);
    }
}

static int receive_fd(int socket)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = sizeof(control),
    };
    int fd;

    g_assert_cmpint(recvmsg(socket, &msg, 0), ==, 1);
    g_assert_nonnull(CMSG_FIRSTHDR(&msg));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
    return fd;
}

/* Read memory of a process that waits for the result of its call. */
static bool peek(pid_t pid, uint64_t from, void *to, size_t size)
{
    struct iovec here = { to, size }, there = { (void *)(uintptr_t)from, size };

    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool poke(pid_t pid, uint64_t to, const void *from, size_t size)
{
    struct iovec here = { (void *)from, size };
    struct iovec there = { (void *)(uintptr_t)to, size };

    return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static void peek_path(pid_t pid, uint64_t from, char *path, size_t size)
{
    size_t i;

    for (i = 0; i + 1 < size; i++) {
        if (!peek(pid, from + i, path + i, 1) || !path[i]) {
            break;
        }
    }
    path[i] = '\0';
}

/*
 * Close the streams whose open file has been released, as the driver does.
 * Return the number of streams that are open.
 */
static unsigned close_released(NodeHost *h)
{
    uint32_t i;
    unsigned n = 0;

    for (i = 0; i < ht_loopback_device(h->lb)->caps.streams; i++) {
        struct flock lock = {
            .l_type = F_WRLCK, .l_start = h->opened_by[i], .l_len = 1,
        };

        if (!h->opened_by[i]) {
            continue;
        }
        g_assert_cmpint(fcntl(h->file, F_OFD_GETLK, &lock), ==, 0);
        if (lock.l_type == F_UNLCK) {
            h->lost += ht_loopback_close(h->lb, i);
            h->opened_by[i] = 0;
        } else {
            n++;
        }
    }
    return n;
}

static int command(NodeHost *h, const char *what)
{
    unsigned n;

    if (!strcmp(what, "plug")) {
        h->plugged = true;
    } else if (!strcmp(what, "unplug")) {
        h->plugged = false;
        h->generation++;
    } else if (!strcmp(what, "stall")) {
        h->error = ETIMEDOUT;
    } else if (!strcmp(what, "refuse")) {
        h->error = EBUSY;
    } else if (!strcmp(what, "busy")) {
        h->busy = true;
    } else if (!strcmp(what, "go")) {
        h->error = 0;
    } else if (sscanf(what, "emitted-%u", &n) == 1) {
        h->emitted += n;
    } else if (sscanf(what, "take-%u", &n) == 1) {
        h->lost += ht_loopback_close(h->lb, n);
        h->opened_by[n] = 0;
    } else if (!strcmp(what, "mark")) {
        g_assert_cmpuint(h->marks, <, NODE_MARKS);
        h->now.streams = close_released(h);
        h->mark[h->marks++] = h->now;
        h->now = (NodeMark) { };
    } else {
        g_error("unknown command %s", what);
    }
    return -ENOENT;
}

/*
 * Open the device.  The new open file has a number, its position, and a lock on
 * the byte with this number.  The kernel drops the lock when it releases the
 * open file: when all descriptors are closed and all mappings are removed.
 */
static int open_file(NodeHost *h)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", h->file);
    struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };
    int fd = open(path, O_RDWR | O_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    lock.l_start = ++h->files;
    g_assert_cmpint(fcntl(fd, F_OFD_SETLK, &lock), ==, 0);
    g_assert_cmpint(lseek(fd, h->files, SEEK_SET), ==, h->files);
    return fd;
}

static int on_open(NodeHost *h, int listener, const struct seccomp_notif *req,
                   bool *handled)
{
    struct seccomp_notif_addfd add = {
        .id = req->id,
        .flags = SECCOMP_ADDFD_FLAG_SEND,
        .newfd_flags = req->data.args[2] & O_CLOEXEC,
    };
    char path[256];
    int r;

    peek_path(req->pid, req->data.args[1], path, sizeof(path));
    *handled = true;
    if (g_str_has_prefix(path, NODE_COMMAND)) {
        return command(h, path + strlen(NODE_COMMAND));
    }
    if (!g_str_has_prefix(path, NODE)) {
        *handled = false;
        return 0;
    }
    h->now.opens++;
    if (strcmp(path, NODE "0") || !h->plugged) {
        return -ENOENT;
    }
    if (h->denied) {
        return -h->denied;
    }
    add.srcfd = open_file(h);
    /* Return 1: the ioctl() has also completed the process's openat() */
    r = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 ? -errno : 1;
    close(add.srcfd);
    return r;
}

static int on_info(NodeHost *h, pid_t pid, uint64_t arg)
{
    const struct ht_caps *caps = &ht_loopback_device(h->lb)->caps;
    struct ht_ioc_info info = { .generation = h->generation };

    memcpy(info.caps, caps, sizeof(*caps));
    return poke(pid, arg, &info, sizeof(info)) ? 0 : -EFAULT;
}

/*
 * Return the number of the open file of a process's descriptor; 0: the process
 * has ended
 */
static unsigned file_of(pid_t pid, int fd)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fdinfo/%d", (int)pid, fd);
    g_autofree char *text = NULL;
    unsigned n = 0;

    if (g_file_get_contents(path, &text, NULL, NULL)) {
        sscanf(text, "pos: %u", &n);
    }
    return n;
}

static void one_message(NodeHost *h, pid_t pid, int fd, struct ht_msg *m)
{
    struct ht_msg_open *open = (struct ht_msg_open *)m;

    if (m->type == HT_MSG_STREAM_OPEN) {
        close_released(h);
    }
    if (m->type == HT_MSG_DISCARDED) {
        h->told += ((struct ht_msg_discarded *)m)->count;
        m->status = HT_STATUS_OK;
    } else {
        ht_loopback_message(h->lb, m);
        if (m->type == HT_MSG_CLASS_REGISTER && h->unwanted) {
            ht_loopback_enable(h->lb, ((struct ht_msg_class *)m)->id, false);
        }
        if (m->type == HT_MSG_STREAM_OPEN && m->status == HT_STATUS_OK) {
            h->streams++;
            h->opened_by[open->stream] = file_of(pid, fd);
        }
    }
}

static int on_control(NodeHost *h, pid_t pid, int fd, uint64_t arg)
{
    g_autofree uint8_t *buffer = g_malloc0(HT_MAILBOX_SIZE);
    struct ht_msg *m = (struct ht_msg *)buffer;
    struct ht_ioc_control ioc;
    uint32_t pos, bytes;

    if (!peek(pid, arg, &ioc, sizeof(ioc)) || ioc.size < sizeof(*m) ||
        ioc.size > HT_MAILBOX_SIZE || !peek(pid, ioc.msg, buffer, ioc.size)) {
        return -EFAULT;
    }
    h->controls++;
    if (h->error) {
        return -h->error;
    }
    bytes = ht_request_bytes(m, ioc.size);
    for (pos = 0; pos < bytes; pos = HT_ROUND_UP(pos, HT_MESSAGE_ALIGN)) {
        struct ht_msg *one = (struct ht_msg *)(buffer + pos);

        pos += one->size;
        one_message(h, pid, fd, one);
    }
    return poke(pid, ioc.msg, buffer, ioc.size) ? 0 : -EFAULT;
}

static int on_submit(NodeHost *h, pid_t pid, uint64_t arg)
{
    struct ht_ioc_submit ioc;

    /*
     * The device never consumes the buffer, but the process's call succeeds.
     */
    g_assert_true(h->busy);
    if (!peek(pid, arg, &ioc, sizeof(ioc))) {
        return -EFAULT;
    }
    ioc.kicks++;
    return poke(pid, arg, &ioc, sizeof(ioc)) ? 0 : -EFAULT;
}

static int on_ioctl(NodeHost *h, const struct seccomp_notif *req)
{
    h->now.ioctls++;
    switch ((uint32_t)req->data.args[1]) {
    case HT_IOC_GET_INFO:
        return on_info(h, req->pid, req->data.args[2]);
    case HT_IOC_CONTROL:
        return on_control(h, req->pid, req->data.args[0], req->data.args[2]);
    case HT_IOC_SUBMIT:
        return on_submit(h, req->pid, req->data.args[2]);
    default:
        return -ENOTTY;
    }
}

static void serve_one(NodeHost *h, int listener)
{
    struct seccomp_notif req = { };
    struct seccomp_notif_resp resp = { };
    bool handled = true;
    int r;

    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req)) {
        return;                 /* the process has ended */
    }
    r = req.data.nr == SYS_openat ? on_open(h, listener, &req, &handled) :
                                    on_ioctl(h, &req);
    if (r > 0) {
        return;
    }
    resp.id = req.id;
    resp.error = r;
    if (!handled) {
        resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

static void deliver(void *opaque, const HtRun *run)
{
    NodeHost *h = opaque;
    HtRunIter it;
    HtEvent ev;

    ht_run_iter_init(&it, run, ht_loopback_classes(h->lb));
    g_mutex_lock(&h->lock);
    while (ht_run_next(&it, &ev)) {
        gpointer n = g_hash_table_lookup(h->got, ev.cls->name);

        g_hash_table_insert(h->got, g_strdup(ev.cls->name),
                            GUINT_TO_POINTER(GPOINTER_TO_UINT(n) + 1));
    }
    g_mutex_unlock(&h->lock);
}

static void start(NodeHost *h)
{
    struct ht_loopback_config cfg = {
        .channel = h->channel,
        .streams = h->streams_max ? h->streams_max : 64,
        .packets = 4,
        .host = h->busy ? HT_LOOPBACK_STEP : HT_LOOPBACK_THREAD,
        .deliver = deliver,
        .opaque = h,
    };

    h->file = memfd_create("hypertrace", MFD_CLOEXEC);
    g_assert_cmpint(ftruncate(h->file, HT_MMAP_ENABLE + HT_ENABLE_SIZE), ==, 0);
    cfg.file = h->file;
    h->generation = 1;
    h->got = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    h->lb = ht_loopback_new(&cfg);
    g_assert_nonnull(h->lb);
}

/*
 * After the process has ended, close its streams, and assert that the host has
 * found no error in any stream.
 */
static void finish(NodeHost *h)
{
    uint32_t i;

    close_released(h);
    for (i = 0; i < ht_loopback_device(h->lb)->caps.streams; i++) {
        g_assert_cmpstr(ht_loopback_consumer(h->lb, i)->why, ==, "");
    }
}

int node_host_run(NodeHost *h, const char *argument, const char *value)
{
    int pair[2], listener, status;
    struct pollfd p = { .events = POLLIN };
    pid_t pid;

    start(h);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                    ==, 0);
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        char *const argv[] = {
            (char *)"node", (char *)argument, (char *)value, NULL
        };

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        listener = install_filter();
        if (listener < 0) {
            _exit(98);
        }
        send_fd(pair[1], listener);
        close(listener);
        execv("/proc/self/exe", argv);
        _exit(97);
    }
    close(pair[1]);
    listener = receive_fd(pair[0]);
    close(pair[0]);
    p.fd = listener;
    /* POLLHUP: no process uses the filter any longer. */
    while (poll(&p, 1, -1) >= 0 && p.revents & POLLIN) {
        serve_one(h, listener);
    }
    close(listener);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    finish(h);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void node_host_free(NodeHost *h)
{
    ht_loopback_free(h->lb);
    g_hash_table_destroy(h->got);
    close(h->file);
}

unsigned node_host_got(NodeHost *h, const char *name)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(h->got, name));
}

void node_command(const char *what)
{
    char path[64];

    snprintf(path, sizeof(path), NODE_COMMAND "%s", what);
    g_assert_cmpint(openat(AT_FDCWD, path, O_RDONLY), ==, -1);
}
