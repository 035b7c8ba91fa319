/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: serve the socket of a flight recorder
 */
#include "hypertrace/base.h"
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "record/flight-control.h"

/*
 * Maximum number of accepted requests; the kernel keeps further ones in the
 * socket's backlog
 */
#define CLIENTS_MAX 8

struct HtFlightControl {
    /* descriptor of the recorder's folder; owned by the caller */
    int dir;
    int fd;
    /*
     * Use epoll, not poll(): an idle recorder waits many times a second, and
     * poll() would examine each descriptor every time.
     */
    int epoll;
    int pidfd;                  /* pidfd in @epoll, or -1 */
    bool full;                  /* @epoll ignores @fd: no room in @clients */
    int clients[CLIENTS_MAX];
    unsigned count;
    /* ht_flight_control_wait() saw no request, and no poll followed it */
    bool idle;
};

/* A path may be too long for an address, so use the folder's descriptor. */
static struct sockaddr_un address(int dir)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };

    snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/"
             HT_FLIGHT_SOCKET, dir);
    return a;
}

/*
 * Add, change or remove @fd in @epoll, as @op tells. If @read is set, @epoll
 * reports that @fd can be read.
 */
static bool follow(int epoll, int op, int fd, bool read)
{
    struct epoll_event e = { .events = read ? EPOLLIN : 0, .data.fd = fd };

    return !epoll_ctl(epoll, op, fd, &e);
}

HtFlightControl *ht_flight_control_new(int dir, GError **error)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct sockaddr_un a = address(dir);
    HtFlightControl *c;

    /*
     * A socket that exists already is of a recorder that has ended, because
     * this recorder has locked the folder.
     */
    unlinkat(dir, HT_FLIGHT_SOCKET, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
        fchmodat(dir, HT_FLIGHT_SOCKET, 0600, 0) || listen(fd, CLIENTS_MAX) ||
        !follow(epoll, EPOLL_CTL_ADD, fd, true)) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "cannot make the socket " HT_FLIGHT_SOCKET " in the "
                    "recorder's directory: %s", g_strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        if (epoll >= 0) {
            close(epoll);
        }
        return NULL;
    }
    c = g_new0(HtFlightControl, 1);
    c->dir = dir;
    c->fd = fd;
    c->epoll = epoll;
    c->pidfd = -1;
    return c;
}

void ht_flight_control_free(HtFlightControl *c)
{
    if (c) {
        ht_flight_control_reply(c, NULL);
        close(c->epoll);
        close(c->fd);
        unlinkat(c->dir, HT_FLIGHT_SOCKET, 0);
        g_free(c);
    }
}

/* Test whether the client's user is the recorder's user or root. */
static bool may_ask(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
           (peer.uid == geteuid() || !peer.uid);
}

bool ht_flight_control_poll(HtFlightControl *c)
{
    /*
     * Skip accept4() if the last ht_flight_control_wait() found no request: the
     * kernel allocates a socket before it finds that no request is pending.
     */
    while (!c->idle && c->count < CLIENTS_MAX) {
        int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0) {
            break;
        }
        if (may_ask(fd)) {
            c->clients[c->count++] = fd;
        } else {
            close(fd);
        }
    }
    c->idle = false;
    return c->count;
}

static void follow_process(HtFlightControl *c, int pidfd)
{
    if (c->pidfd >= 0) {
        follow(c->epoll, EPOLL_CTL_DEL, c->pidfd, false);
    }
    if (pidfd >= 0) {
        follow(c->epoll, EPOLL_CTL_ADD, pidfd, true);
    }
    c->pidfd = pidfd;
}

bool ht_flight_control_wait(HtFlightControl *c, int pidfd, uint64_t ns)
{
    int ms = MIN(ns / 1000000 + (ns % 1000000 != 0), INT_MAX);
    bool full = c->count == CLIENTS_MAX;
    struct epoll_event ready[2];
    int n, i;

    if (pidfd != c->pidfd) {
        follow_process(c, pidfd);
    }
    if (full != c->full) {
        follow(c->epoll, EPOLL_CTL_MOD, c->fd, !full);
        c->full = full;
    }
    n = epoll_wait(c->epoll, ready, G_N_ELEMENTS(ready), ms);
    c->idle = n >= 0;
    for (i = 0; i < n; i++) {
        c->idle &= ready[i].data.fd != c->fd;
    }
    return n == 0;
}

void ht_flight_control_reply(HtFlightControl *c, const char *line)
{
    g_autofree char *text = g_strdup_printf("%s\n", line ? line : "");

    while (c->count) {
        int fd = c->clients[--c->count];

        /*
         * The socket does not block, and its empty buffer has room for the
         * line. Ignore errors: the client may have ended.
         */
        if (line) {
            send(fd, text, strlen(text), MSG_NOSIGNAL);
        }
        close(fd);
    }
}

int ht_flight_control_connect(const char *path, GError **error)
{
    int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = address(dir);

    if (dir < 0 || fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a))) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "%s: no flight recorder uses this directory: %s", path,
                    g_strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        fd = -1;
    }
    if (dir >= 0) {
        close(dir);
    }
    return fd;
}
