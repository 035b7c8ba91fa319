/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-devtest: tests that use the library, most of them while the program is
 * killed or forks, the device is unplugged, or the machine is suspended or ends
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hypertrace/event.h"
#include "hypertrace/port.h"
#include "ht-devtest.h"

HT_EVENT_NAMED(devtest, "devtest.event", (u64, n), (text, note));
HT_EVENT_NAMED(second, "devtest.second", (u32, n));

static struct ht_device *open_library(struct ht_stream *s)
{
    struct ht_device *dev;
    int r = ht_open(path, &dev);

    if (r == 0) {
        r = ht_register(dev, &ht_class_devtest);
    }
    if (r >= 0) {
        r = ht_stream_open(dev, s, NULL);
    }
    if (r < 0) {
        die("%s: %s", path, strerror(-r));
    }
    return dev;
}

static struct ht_stream stream __attribute__((aligned(64)));

/*
 * Emit @events events, which are committed but not flushed, and wait for
 * SIGKILL: the host must get all of them.
 */
static void hold(uint64_t events)
{
    uint64_t n;

    open_library(&stream);
    for (n = 0; n < events; n++) {
        if (!ht_emit_devtest(&stream, n, "held")) {
            die("event %llu: no room", (unsigned long long)n);
        }
    }
    printf("holding %llu\n", (unsigned long long)events);
    fflush(stdout);
    for (;;) {
        pause();
    }
}

static int no_room(struct ht_device *dev, struct ht_stream *s, uint64_t from,
                   uint64_t to)
{
    (void)dev;
    (void)s;
    (void)from;
    (void)to;
    return -EAGAIN;
}

/*
 * For channel=virtio: emit @events events, then die by SIGKILL. The program
 * submits the first 11 events, not the others. The events must fill the first
 * two packets and reach the third.
 */
static void abandon(uint64_t events)
{
    struct ht_device *dev = open_library(&stream);
    struct ht_port_ops ops = *dev->ops;
    uint64_t n;

    for (n = 0; n < events; n++) {
        if (!ht_emit_devtest(&stream, n, "abandoned")) {
            die("event %llu: no room", (unsigned long long)n);
        }
        if (n == 10) {
            expect("handing over", -ht_stream_push(&stream), 0);
            ops.submit = no_room;
            dev->ops = &ops;
        }
    }
    if (stream.packet < 2) {
        die("all of it is in one packet");
    }
    raise(SIGKILL);
}

/*
 * Counts of a producer, a child that will be killed, in memory shared with its
 * parent
 */
struct progress {
    uint64_t emitted;
    uint64_t discarded;
};

static void __attribute__((noreturn)) emit_until_killed(struct progress *p)
{
    uint64_t n;

    open_library(&stream);
    for (n = 0; ; n++) {
        if (ht_emit_devtest(&stream, n, "until killed")) {
            __atomic_store_n(&p->emitted, p->emitted + 1, __ATOMIC_RELEASE);
        } else {
            __atomic_store_n(&p->discarded, p->discarded + 1,
                             __ATOMIC_RELEASE);
        }
        if (n % 1000 == 999) {
            ht_stream_push(&stream);
        }
    }
}

/*
 * In each round, fork a producer, wait until it has emitted at least 1500
 * events, and then for less than 1 ms, a time that differs from round to round.
 * Then kill the producer, and print its counts.
 */
static void kills(unsigned rounds)
{
    struct progress *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned i;
    pid_t pid;

    for (i = 0; i < rounds; i++) {
        memset(p, 0, sizeof(*p));
        pid = fork();
        if (pid == 0) {
            emit_until_killed(p);
        }
        while (__atomic_load_n(&p->emitted, __ATOMIC_ACQUIRE) < 1500) {
            usleep(500);
        }
        usleep(i * 37 % 1000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        printf("killed %llu %llu\n", (unsigned long long)p->emitted,
               (unsigned long long)p->discarded);
    }
}

/*
 * Emit @rate / 1000 events and sleep for 1 ms, again and again until /tmp/end
 * exists. After each 100th group of events print the counts: the test sees that
 * emits do not block.
 */
static void pace(unsigned rate)
{
    const struct timespec ms = { .tv_nsec = 1000000 };
    uint64_t emitted = 0, n = 0;
    unsigned ticks, i;

    open_library(&stream);
    for (ticks = 1; ; ticks++) {
        for (i = 0; i < rate / 1000; i++, n++) {
            emitted += ht_emit_devtest(&stream, n, "pace");
        }
        if (ticks % 100 == 0) {
            printf("pace %s %llu %llu\n", path, (unsigned long long)emitted,
                   (unsigned long long)(n - emitted));
            fflush(stdout);
        }
        if (access("/tmp/end", F_OK) == 0) {
            break;
        }
        nanosleep(&ms, NULL);
    }
    expect("closing", -ht_stream_close(&stream), 0);
    printf("paced %llu %llu\n", (unsigned long long)emitted,
           (unsigned long long)(n - emitted));
}

/*
 * Emit 1000 events, then at once, without a flush, reboot if @how is "reboot",
 * else make the kernel panic.
 */
static void last(const char *how)
{
    int sysrq = open("/proc/sysrq-trigger", O_WRONLY);
    uint64_t n;

    open_library(&stream);
    for (n = 0; n < 1000; n++) {
        ht_emit_devtest(&stream, n, "last");
    }
    if (!strcmp(how, "reboot")) {
        reboot(RB_AUTOBOOT);
    } else if (write(sysrq, "c", 1) != 1) {
        die("sysrq: %s", strerror(errno));
    }
    die("the kernel goes on");
}

/*
 * Emit groups of 1000 events, each with a flush, until a flush fails because
 * the device was unplugged; then emit 100000 events that no device takes.
 */
static void endless(void)
{
    struct ht_device *dev = open_library(&stream);
    uint64_t n = 0, more;
    int r;

    puts("emitting");
    fflush(stdout);
    do {
        for (more = 0; more < 1000; more++) {
            ht_emit_devtest(&stream, n++, "unplug me");
        }
        r = ht_stream_flush(&stream);
    } while (r == 0);
    for (more = 0; more < 100000; more++) {
        ht_emit_devtest(&stream, n++, "nobody there");
    }
    printf("gone: flush %s, ", strerror(-r));
    r = ht_stream_close(&stream);
    printf("close %s\n", strerror(-r));
    ht_close(dev);
}

/*
 * Emit before a suspend of the machine, which closes the stream. Wait until
 * /tmp/awake exists, and emit to the closed stream: these events are lost. Then
 * open another stream, and emit to it.
 */
static void suspended(void)
{
    struct ht_device *dev = open_library(&stream);
    uint64_t n;
    int r;

    for (n = 0; n < 1000; n++) {
        ht_emit_devtest(&stream, n, "before");
    }
    puts("emitted");
    fflush(stdout);
    while (access("/tmp/awake", F_OK)) {
        usleep(10000);
    }
    for (n = 0; n < 1000; n++) {
        ht_emit_devtest(&stream, n, "nobody there");
    }
    r = ht_stream_flush(&stream);
    printf("closed: lost %llu, flush %s\n", (unsigned long long)stream.lost,
           strerror(-r));
    fflush(stdout);
    ht_stream_close(&stream);
    r = ht_stream_open(dev, &stream, NULL);
    expect("opening another stream", -r, 0);
    for (n = 0; n < 1000; n++) {
        ht_emit_devtest(&stream, n, "after");
    }
    expect("closing", -ht_stream_close(&stream), 0);
    ht_close(dev);
}

static unsigned child_status(void)
{
    int status;

    wait(&status);
    return status;
}

/*
 * Cases that a producer must survive: the child of fork() emits to the parent's
 * stream and closes it; the parent emits after it has closed the device. While
 * the device is open, the parent's emits must not change errno.
 */
static void survival(void)
{
    struct ht_device *dev = open_library(&stream);
    uint64_t n, changed = 0;

    for (n = 0; n < 1000; n++) {
        ht_emit_devtest(&stream, n, "parent");
    }
    if (fork() == 0) {
        for (n = 0; n < 40000; n++) {
            ht_emit_devtest(&stream, n, "child");
        }
        ht_stream_close(&stream);
        ht_emit_devtest(&stream, n, "child");
        ht_close(dev);
        _exit(0);
    }
    expect("the child's wait status", child_status(), 0);
    for (n = 1000; n < 40000; n++) {
        errno = 12345;
        ht_emit_devtest(&stream, n, "parent");
        changed += errno != 12345;
    }
    if (changed) {
        die("%llu emits changed errno", (unsigned long long)changed);
    }
    expect("flushing", -ht_stream_flush(&stream), 0);
    ht_close(dev);
    for (n = 0; n < 1000; n++) {
        ht_emit_devtest(&stream, n, "closed");
    }
    expect("closing", -ht_stream_close(&stream), EIO);
}

static void ids(void)
{
    struct ht_device *dev;
    int r = ht_open(path, &dev), first, second;

    if (r) {
        die("%s: %s", path, strerror(-r));
    }
    first = ht_register(dev, &ht_class_devtest);
    second = ht_register(dev, &ht_class_second);
    if (first < 0 || second < 0) {
        die("registering: %s", strerror(first < 0 ? -first : -second));
    }
    printf("ids %d %d\n", first, second);
    ht_close(dev);
}

int emit_test(const char *name, const char *arg)
{
    uint64_t n = arg ? strtoull(arg, NULL, 10) : 0;

    if (!strcmp(name, "hold")) {
        hold(n);
    } else if (!strcmp(name, "abandon")) {
        abandon(n);
    } else if (!strcmp(name, "kills")) {
        kills(n);
    } else if (!strcmp(name, "pace")) {
        pace(n);
    } else if (!strcmp(name, "last")) {
        last(arg ? arg : "");
    } else if (!strcmp(name, "endless")) {
        endless();
    } else if (!strcmp(name, "suspended")) {
        suspended();
    } else if (!strcmp(name, "survival")) {
        survival();
    } else if (!strcmp(name, "ids")) {
        ids();
    } else {
        return 0;
    }
    return 1;
}
