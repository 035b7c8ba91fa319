/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-devtest: what the driver refuses to a user other than root, and to a file
 * that is open only for reading
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../../guest-linux/uapi/linux/hypertrace.h"
#include "hypertrace/abi.h"
#include "ht-devtest.h"

#define USER 1000

static struct ht_caps caps;

static int open_as(int flags)
{
    struct ht_ioc_info info;
    int fd = open(path, flags | O_CLOEXEC);

    if (fd < 0 || ioctl(fd, HT_IOC_GET_INFO, &info)) {
        die("%s: %s", path, strerror(errno));
    }
    memcpy(&caps, info.caps, sizeof(caps));
    return fd;
}

/*
 * Send a message, and repeat it while the reply is BUSY. Returns the positive
 * errno of the ioctl, or minus the status in the reply of the driver or device.
 */
static int message(int fd, void *msg, uint32_t size)
{
    struct ht_ioc_control ioc = { .msg = (uintptr_t)msg, .size = size };
    struct ht_msg *m = msg;
    int tries;

    for (tries = 0; tries < 5000; tries++) {
        m->size = size;
        if (ioctl(fd, HT_IOC_CONTROL, &ioc)) {
            return errno;
        }
        if (m->status != HT_STATUS_BUSY) {
            return -(int)m->status;
        }
        usleep(1000);
    }
    die("message %u: the host is still busy", m->type);
}

static int type_only(int fd, uint16_t type)
{
    union {
        struct ht_msg h;
        uint8_t bytes[256];
    } m = { .h.type = type };

    return message(fd, &m, type == HT_MSG_STATS ?
                   sizeof(struct ht_msg_stats) : 64);
}

static int register_class(int fd, const char *name)
{
    union {
        struct ht_msg_class c;
        uint8_t bytes[sizeof(struct ht_msg_class) + 128];
    } m = { .c.h.type = HT_MSG_CLASS_REGISTER,
            .c.name_len = strlen(name) };

    memcpy(m.c.data, name, strlen(name));
    return message(fd, &m, sizeof(m.c) + strlen(name));
}

static int open_stream(int fd)
{
    struct ht_msg_open m = {
        .h.type = HT_MSG_STREAM_OPEN,
        .stream = HT_STREAM_ANY,
        .vcpu = -1,
        .name = "kernel/0",
    };

    return message(fd, &m, sizeof(m));
}

static void check(const char *what, int got, int wanted)
{
    if (got != wanted) {
        die("%s: %d, not %d", what, got, wanted);
    }
}

static void check_read_only(void)
{
    struct ht_ioc_submit submit = { .stream = 0 };
    int fd = open_as(O_RDONLY);

    check("asking", type_only(fd, HT_MSG_STATS), 0);
    check("registering without write", register_class(fd, "mine"), EPERM);
    check("opening without write", open_stream(fd), EPERM);
    check("discarding without write", type_only(fd, HT_MSG_DISCARDED), EPERM);
    check("submitting without write",
          ioctl(fd, HT_IOC_SUBMIT, &submit) ? errno : 0, EBADF);
    close(fd);
}

static void check_messages(int fd)
{
    static const uint16_t types[] = {
        HT_MSG_TIME_SYNC, HT_MSG_TAKEOVER, HT_MSG_ENABLED, 0, 11, 99,
    };
    unsigned i;

    for (i = 0; i < sizeof(types) / sizeof(*types); i++) {
        check("a message of the driver", type_only(fd, types[i]), EPERM);
    }
}

static void check_names(int fd)
{
    static const char * const names[] = {
        "sched_switch", "irq_handler_entry", "sys_enter_read", "sys_exit_new",
        "function_entry", "lttng_statedump_start",
    };
    unsigned i;

    for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
        check(names[i], register_class(fd, names[i]), -HT_STATUS_INVAL);
    }
    check("a name that only begins so", register_class(fd, "sched_switches"),
          0);
}

/*
 * Size of a CLASS_REGISTER message with a name of 12 bytes, rounded up to a
 * multiple of 8 bytes
 */
#define CLASS_STRIDE \
    ((sizeof(struct ht_msg_class) + 12 + HT_MESSAGE_ALIGN - 1) & \
     ~(HT_MESSAGE_ALIGN - 1))

/*
 * Register the classes @first to @first + @count - 1, at most 64, by one ioctl.
 * After a reply BUSY, send its message and all later messages again by another
 * ioctl.
 *
 * Returns: the number of classes that were registered; the others exceed the
 * user's quota
 */
static unsigned register_some(int fd, unsigned first, unsigned count)
{
    static uint64_t buffer[64 * CLASS_STRIDE / 8];
    uint8_t *bytes = (uint8_t *)buffer;
    unsigned i, n, done = 0, end = first + count;

    while (first < end) {
        struct ht_ioc_control ioc = { .msg = (uintptr_t)buffer };

        memset(buffer, 0, sizeof(buffer));
        n = end - first;
        for (i = 0; i < n; i++) {
            struct ht_msg_class *m = (void *)(bytes + CLASS_STRIDE * i);

            m->h.type = HT_MSG_CLASS_REGISTER;
            m->h.status = HT_STATUS_IO;
            m->name_len = snprintf((char *)m->data, 16, "mine.%07u", first + i);
            m->h.size = sizeof(*m) + m->name_len;
            ioc.size = CLASS_STRIDE * i + m->h.size;
        }
        if (ioctl(fd, HT_IOC_CONTROL, &ioc)) {
            die("classes from %u on: %s", first, strerror(errno));
        }
        for (i = 0; i < n; i++, first++) {
            const struct ht_msg_class *m = (void *)(bytes + CLASS_STRIDE * i);

            if (m->h.status == HT_STATUS_BUSY) {
                break;
            }
            if (m->h.status == HT_STATUS_OK) {
                done++;
            } else if (m->h.status != HT_STATUS_LIMIT) {
                die("class %u: status %u", first, m->h.status);
            }
        }
        if (!i) {
            die("class %u: the first of a message is busy", first);
        }
    }
    return done;
}

/*
 * Check that the quota of one user is an eighth of caps.max_classes: register
 * classes until the driver refuses one. check_names() has already registered
 * one class. The class with the longest name counts as two, because its message
 * has more than 128 bytes.
 */
static void check_classes(int fd)
{
    const unsigned quota = caps.max_classes / 8;
    unsigned n = 1, some;
    char name[HT_CLASS_NAME_MAX + 1];

    memset(name, 'n', HT_CLASS_NAME_MAX);
    name[HT_CLASS_NAME_MAX] = '\0';
    check("a large class", register_class(fd, name), 0);

    do {
        some = register_some(fd, n, 16);
        n += some;
    } while (some == 16 && n < caps.max_classes);
    check("classes of a user", n, quota - 2);
    check("classes of before", register_some(fd, 1, 16), 16);
}

static void check_streams(int fd)
{
    unsigned n;
    int r = 0;

    for (n = 0; n < caps.streams && !r; n++) {
        r = open_stream(fd);
    }
    check("streams of a user", r, -HT_STATUS_LIMIT);
    if (n < 2) {
        die("a user has no stream");
    }
}

/*
 * The streams of this user stay in use until the program is killed. In this
 * time the test lets the kernel and a program of root emit.
 */
void trust_test(void)
{
    int fd;

    if (setgid(USER) || setuid(USER)) {
        die("cannot become user %d: %s", USER, strerror(errno));
    }
    fd = open_as(O_RDWR);
    check_read_only();
    check_messages(fd);
    check_names(fd);
    check_classes(fd);
    check_streams(fd);
    puts("holding all that a user may have");
    fflush(stdout);
    pause();
}
