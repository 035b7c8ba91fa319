/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-devtest: the guest's part of end-to-end tests of /dev/hypertraceN. This
 * file has main() and wrong uses of the node. A test prints "ok" and exits 0,
 * or prints the failed expectation and exits 1. Some tests of
 * ht-devtest-emit.c and ht-devtest-trust.c end otherwise, such as by SIGKILL.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../guest-linux/uapi/linux/hypertrace.h"
#include "hypertrace/abi.h"
#include "ht-devtest.h"

const char *path;

void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("ht-devtest: ", stdout);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    exit(1);
}

void expect(const char *what, int got, int wanted)
{
    if (got != wanted) {
        die("%s: %s, not %s", what, strerror(got), strerror(wanted));
    }
}

static int open_node(struct ht_caps *caps)
{
    struct ht_ioc_info info;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0 || ioctl(fd, HT_IOC_GET_INFO, &info)) {
        die("%s: %s", path, strerror(errno));
    }
    memcpy(caps, info.caps, sizeof(*caps));
    return fd;
}

static int message(int fd, void *msg, uint32_t size)
{
    struct ht_ioc_control ioc = { .msg = (uintptr_t)msg, .size = size };

    return ioctl(fd, HT_IOC_CONTROL, &ioc) ? errno : 0;
}

/*
 * Send a message, and repeat it while the reply is BUSY.  Returns the status of
 * the reply, or a negative errno.
 */
static int message_done(int fd, void *msg, uint32_t size)
{
    struct ht_msg *m = msg;
    int r, tries;

    for (tries = 0; tries < 5000; tries++) {
        m->size = size;
        r = message(fd, msg, size);
        if (r || m->status != HT_STATUS_BUSY) {
            return r ? -r : (int)m->status;
        }
        usleep(1000);
    }
    die("message %u: the host is still busy", m->type);
}

static struct ht_msg_open open_stream(int fd, uint32_t stream)
{
    struct ht_msg_open m = {
        .h.type = HT_MSG_STREAM_OPEN,
        .stream = stream,
        .vcpu = -1,
        .name = "devtest",
    };
    int r = message_done(fd, &m, sizeof(m));

    if (r) {
        die("cannot open stream %d: %d", (int)stream, r);
    }
    return m;
}

static int stream_message(int fd, uint16_t type, uint32_t stream,
                          uint64_t instance)
{
    struct ht_msg_stream m = {
        .h.type = type,
        .stream = stream,
        .instance = instance,
    };

    return message_done(fd, &m, sizeof(m));
}

static void *map(int fd, uint64_t offset, size_t size, int prot, int flags)
{
    return mmap(NULL, size, prot, flags, fd, (off_t)offset);
}

static int map_errno(int fd, uint64_t offset, size_t size, int prot,
                     int flags)
{
    void *p = map(fd, offset, size, prot, flags);

    if (p == MAP_FAILED) {
        return errno;
    }
    munmap(p, size);
    return 0;
}

static size_t ring_size(const struct ht_caps *caps)
{
    return HT_PACKETS_OFFSET + (size_t)caps->packets * caps->packet_size;
}

#define RW      (PROT_READ | PROT_WRITE)

static void check_mappings(int owner, int other, uint32_t stream,
                           const struct ht_caps *caps)
{
    const uint64_t ring = HT_MMAP_RING(stream);
    const size_t size = ring_size(caps);

    expect("mapping", map_errno(owner, ring, size, RW, MAP_SHARED), 0);
    expect("mapping another's ring",
           map_errno(other, ring, HT_PAGE, RW, MAP_SHARED), EPERM);
    expect("reading another's ring",
           map_errno(other, ring, HT_PAGE, PROT_READ, MAP_SHARED), EPERM);
    expect("mapping another's doorbell",
           map_errno(other, HT_MMAP_DOORBELL(stream), HT_PAGE, RW,
                     MAP_SHARED), EPERM);
    expect("mapping a stream that is not open",
           map_errno(owner, HT_MMAP_RING(stream + 1), HT_PAGE, RW,
                     MAP_SHARED), EPERM);
    expect("mapping past the ring",
           map_errno(owner, ring, size + HT_PAGE, RW, MAP_SHARED), EINVAL);
    expect("mapping behind the ring",
           map_errno(owner, ring + size, HT_PAGE, RW, MAP_SHARED), EINVAL);
    expect("mapping no stream",
           map_errno(owner, HT_MMAP_RING(caps->streams), HT_PAGE, RW,
                     MAP_SHARED), EINVAL);
    expect("mapping far out",
           map_errno(owner, 0x7ffffffffffff000, HT_PAGE, RW, MAP_SHARED),
           EINVAL);
    expect("a private mapping",
           map_errno(owner, ring, HT_PAGE, RW, MAP_PRIVATE), EINVAL);
    expect("an executable mapping",
           map_errno(owner, ring, HT_PAGE, PROT_READ | PROT_EXEC,
                     MAP_SHARED), EINVAL);
    expect("mapping the doorbell",
           map_errno(owner, HT_MMAP_DOORBELL(stream), HT_PAGE, RW,
                     MAP_SHARED),
           caps->channel == HT_CHANNEL_VIRTIO ? EINVAL : 0);
}

static void check_messages(int owner, int other, struct ht_msg_open *o,
                           const struct ht_caps *caps)
{
    struct ht_ioc_submit submit = { .stream = o->stream, .instance = 1 << 30 };
    struct ht_msg takeover = { .type = HT_MSG_TAKEOVER };
    const int denied = caps->channel == HT_CHANNEL_VIRTIO ? EPERM : EINVAL;
    static uint64_t large[HT_MAILBOX_SIZE / 8 + 1];
    struct ht_msg m = { .type = HT_MSG_STATS };

    expect("takeover", -message_done(owner, &takeover, sizeof(takeover)),
           EPERM);
    expect("closing another's stream",
           -stream_message(other, HT_MSG_STREAM_CLOSE, o->stream,
                           o->instance), EPERM);
    expect("flushing another's stream",
           -stream_message(other, HT_MSG_STREAM_FLUSH, o->stream,
                           o->instance), EPERM);
    expect("closing another instance",
           -stream_message(owner, HT_MSG_STREAM_CLOSE, o->stream,
                           o->instance + 1), EPERM);
    expect("asking after another's opening",
           -message_done(other, o, sizeof(*o)), EPERM);
    expect("submitting to another instance",
           ioctl(other, HT_IOC_SUBMIT, &submit) ? errno : 0, denied);
    submit.stream = caps->streams;
    expect("submitting to no stream",
           ioctl(owner, HT_IOC_SUBMIT, &submit) ? errno : 0, EINVAL);
    m.size = 8;
    expect("a message that is too short", message(owner, &m, 8), EINVAL);
    m.size = 4096;
    expect("a message that is not there", message(owner, &m, sizeof(m)),
           EINVAL);
    m.size = sizeof(m);
    memcpy(large, &m, sizeof(m));
    expect("a message that is too long", message(owner, large, 8192), EINVAL);
    expect("messages that are too long",
           message(owner, large, sizeof(large)), EINVAL);
    expect("no message", message(owner, NULL, 64), EFAULT);
    expect("no ioctl", ioctl(owner, _IO(HT_IOC_MAGIC, 99)) ? errno : 0,
           ENOTTY);
}

static void check_fork(volatile uint8_t *ring)
{
    const struct ht_ring_control *control = (const void *)ring;
    const uint8_t before = ring[0];
    int status;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        if (control->host.state != HT_STREAM_CLOSED || control->host.wake) {
            _exit(1);
        }
        ring[0] = before + 1;
        ring[HT_PACKETS_OFFSET] = 1;
        pid = fork();
        if (pid == 0) {
            ring[0] = before + 1;
            _exit(control->host.state != HT_STREAM_CLOSED);
        }
        waitpid(pid, &status, 0);
        _exit(status ? 2 : 0);
    }
    waitpid(pid, &status, 0);
    if (status) {
        die("a child: wait status 0x%x", status);
    }
    if (ring[0] != before) {
        die("a child has its parent's ring");
    }
}

static void ownership(void)
{
    struct ht_caps caps;
    int owner = open_node(&caps), other = open_node(&caps);
    const size_t size = ring_size(&caps);
    struct ht_msg_open o = open_stream(owner, HT_STREAM_ANY), again;
    volatile uint8_t *ring, *reused;
    size_t i;

    /*
     * The node must not support seals, which a user could set on a memfd by
     * fcntl().
     */
    expect("seals", fcntl(owner, F_GET_SEALS) < 0 ? errno : 0, EINVAL);
    check_mappings(owner, other, o.stream, &caps);
    check_messages(owner, other, &o, &caps);

    ring = map(owner, HT_MMAP_RING(o.stream), size, RW, MAP_SHARED);
    check_fork(ring);
    for (i = HT_PACKETS_OFFSET; i < size; i++) {
        ring[i] = 0xa5;
    }
    expect("closing", -stream_message(owner, HT_MSG_STREAM_CLOSE, o.stream,
                                      o.instance), 0);

    /*
     * The owner's mapping @ring stays after the close of the owner's stream,
     * but must share no memory with the stream when another file opens it.
     */
    again = open_stream(other, o.stream);
    reused = map(other, HT_MMAP_RING(again.stream), size, RW, MAP_SHARED);
    if (reused == MAP_FAILED) {
        die("mapping the ring again: %s", strerror(errno));
    }
    for (i = 0; i < size; i += 64) {
        ring[i] = 0x5a;
    }
    for (i = HT_PACKETS_OFFSET; i < size; i++) {
        if (reused[i]) {
            die("byte %zu of the ring is 0x%x, of its former owner", i,
                reused[i]);
        }
    }
    for (i = 0; i < size; i += HT_PAGE) {
        if (ring[i] != ring[0]) {
            die("a closed stream's mapping has several pages");
        }
    }
    close(owner);
    close(other);
}

/*
 * Write random words to the control page and to packets of a stream, and call
 * HT_IOC_SUBMIT, which works only with channel=virtio: the guest's kernel must
 * survive.
 */
static void hostile(unsigned rounds)
{
    struct ht_caps caps;
    int fd = open_node(&caps);
    const size_t size = ring_size(&caps);
    uint64_t x = 88172645463325252u;
    unsigned round, i;

    for (round = 0; round < rounds; round++) {
        struct ht_msg_open o = open_stream(fd, HT_STREAM_ANY);
        volatile uint64_t *ring = map(fd, HT_MMAP_RING(o.stream), size, RW,
                                      MAP_SHARED);

        if (ring == MAP_FAILED) {
            die("mapping: %s", strerror(errno));
        }
        for (i = 0; i < 200; i++) {
            struct ht_ioc_submit submit = {
                .stream = o.stream,
                .instance = o.instance,
            };

            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            ring[x % (HT_PAGE / 8)] = x >> (x >> 58);
            ring[HT_PAGE / 8 + x % ((size - HT_PAGE) / 8)] = x;
            /* overwrite the size of the first packet's content */
            ring[HT_PAGE / 8 + 7] = x >> (x >> 59);
            if (i % 64 == 63) {
                /* A random head, after which the host may stop the stream */
                ring[0] = x >> (x % 64);
                ioctl(fd, HT_IOC_SUBMIT, &submit);
            }
            /* a plausible head, which grows in each iteration */
            ring[0] = (uint64_t)i * (caps.packet_size / 8) + x % 64;
            ioctl(fd, HT_IOC_SUBMIT, &submit);
        }
        stream_message(fd, HT_MSG_STREAM_FLUSH, o.stream, o.instance);
        expect("closing", -stream_message(fd, HT_MSG_STREAM_CLOSE, o.stream,
                                          o.instance), 0);
        munmap((void *)ring, size);
    }
    close(fd);
}

struct submitter {
    int fd;
    struct ht_caps caps;
    struct ht_msg_open stream;
    volatile uint64_t *head;
    int error;
};

static void *submit_all_the_time(void *opaque)
{
    struct submitter *t = opaque;
    struct ht_ioc_submit submit = {
        .stream = t->stream.stream,
        .instance = t->stream.instance,
    };

    while (ioctl(t->fd, HT_IOC_SUBMIT, &submit) == 0 || errno == EAGAIN) {
        *t->head += t->caps.packet_size / 4;
    }
    t->error = errno;
    return NULL;
}

/*
 * Close a stream while a thread calls HT_IOC_SUBMIT for it.  The close must
 * succeed, and the thread's calls after it must fail. Without channel=virtio,
 * the thread's first call fails already.
 */
static void closing(void)
{
    struct submitter t;
    unsigned round;

    t.fd = open_node(&t.caps);
    for (round = 0; round < 20; round++) {
        pthread_t thread;

        t.stream = open_stream(t.fd, 0);
        t.head = map(t.fd, HT_MMAP_RING(0), HT_PAGE, RW, MAP_SHARED);
        if (t.head == MAP_FAILED) {
            die("mapping: %s", strerror(errno));
        }
        if (pthread_create(&thread, NULL, submit_all_the_time, &t)) {
            die("no thread");
        }
        usleep(2000);
        expect("closing", -stream_message(t.fd, HT_MSG_STREAM_CLOSE, 0,
                                          t.stream.instance), 0);
        pthread_join(thread, NULL);
        munmap((void *)t.head, HT_PAGE);
        expect("submitting to a closed stream", t.error,
               t.caps.channel == HT_CHANNEL_VIRTIO ? EPERM : EINVAL);
    }
    close(t.fd);
}

struct writer {
    volatile struct ht_ring_control *ring;
    uint32_t packet_size;
    uint32_t packets;
    volatile bool over;
};

static void *write_all_the_time(void *opaque)
{
    struct writer *w = opaque;

    while (!w->over) {
        uint64_t used = w->ring->guest.head -
                        w->ring->host.tail * w->packet_size;

        if (used < w->packet_size * w->packets / 2) {
            w->ring->guest.head += w->packet_size / 4;
        }
    }
    return NULL;
}

/*
 * Close a stream while a thread writes to its ring; after the thread has ended,
 * open the stream again.  The driver's timer must not submit buffers of the
 * closed stream; the test looks for the host's error message.
 */
static void writing(void)
{
    struct ht_caps caps;
    int fd = open_node(&caps);
    unsigned round;

    for (round = 0; round < 40; round++) {
        struct writer w = {
            .packet_size = caps.packet_size,
            .packets = caps.packets,
        };
        struct ht_msg_open o = open_stream(fd, 0);
        pthread_t thread;

        w.ring = map(fd, HT_MMAP_RING(0), HT_PAGE, RW, MAP_SHARED);
        if (w.ring == MAP_FAILED) {
            die("mapping: %s", strerror(errno));
        }
        if (pthread_create(&thread, NULL, write_all_the_time, &w)) {
            die("no thread");
        }
        usleep(1000 * (round % 8));
        expect("closing", -stream_message(fd, HT_MSG_STREAM_CLOSE, 0,
                                          o.instance), 0);
        w.over = true;
        pthread_join(thread, NULL);
        munmap((void *)w.ring, HT_PAGE);
    }
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        die("usage: ht-devtest DEVICE TEST [ARGUMENT]");
    }
    path = argv[1];
    if (!strcmp(argv[2], "ownership")) {
        ownership();
    } else if (!strcmp(argv[2], "hostile")) {
        hostile(20);
        closing();
        writing();
    } else if (!strcmp(argv[2], "trust")) {
        trust_test();
    } else if (!emit_test(argv[2], argc > 3 ? argv[3] : NULL)) {
        die("%s: no such test", argv[2]);
    }
    puts("ok");
    return 0;
}
