/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-tracetest: tests that use ht_trace() and fork, exec, or run threads and
 * signal handlers. Most of them print the number of ht_trace() calls; the
 * end-to-end tests compare it with the recorded and discarded events.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hypertrace.h>

HT_EVENT_NAMED(step, "tracetest.step", (u32, thread), (u32, n), (text, what));
HT_EVENT_NAMED(tick, "tracetest.tick", (u32, n));
HT_EVENT(open, (u32, fd));

static const struct ht_label states[] = {
    { 0, "idle" }, { 1, "run" }, { 2, "wait" }, { 3, "gone" },
};

HT_EVENT_NAMED(all, "tracetest.all", (u32, n), (u8, a), (s8, b), (u16, c),
               (s16, d), (s32, e), (u64, f), (s64, g), (x32, h), (f64, i),
               (enum, u8, j, states), (text, k), (chars, l, 6), (seq, u16, m),
               (array, s32, o, 3), (bytes, p));

static void __attribute__((noreturn)) die(const char *what)
{
    printf("ht-tracetest: %s\n", what);
    exit(1);
}

static void said(const char *what, unsigned long long n)
{
    printf("%s %llu\n", what, n);
    fflush(stdout);
}

static void emit(unsigned thread, unsigned n, const char *what)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        errno = 4242;
        ht_trace(step, thread, i, what);
        if (errno != 4242) {
            die("an event changed errno");
        }
    }
}

static unsigned evaluated(void)
{
    static unsigned times;

    return ++times;
}

/*
 * Check that ht_trace() evaluates no arguments of an event that is off.
 * evaluated() counts its own calls.
 */
static void none(void)
{
    ht_trace(tick, evaluated());
    if (evaluated() != 1 || ht_event_enabled(tick)) {
        die("an event that is off was not");
    }
}

static int wait_status(void)
{
    int status;

    if (wait(&status) < 0) {
        die("no child");
    }
    return status;
}

/*
 * Make 20 children one after the other: every second one by the system call
 * clone(), which bypasses the C library, the others by fork(). The parent and
 * its children emit.
 */
static void forks(unsigned n)
{
    const unsigned children = 20;
    unsigned i;

    emit(0, n, "parent");
    for (i = 0; i < children; i++) {
        pid_t pid = i % 2 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) :
                            fork();

        if (pid == 0) {
            emit(0, n, "child");
            _exit(0);
        }
        emit(0, n, "parent");
        if (wait_status()) {
            die("a child did not survive");
        }
    }
    said("emitted", (2ull * children + 1) * n);
}

static unsigned per_thread;
static pthread_barrier_t together;

static unsigned leave(jmp_buf *out)
{
    longjmp(*out, 1);
}

static void *run_thread(void *opaque)
{
    const unsigned thread = (unsigned)(uintptr_t)opaque;
    jmp_buf out;

    /* A jump out of an event's arguments must not leave the stream locked. */
    if (!setjmp(out)) {
        ht_trace(step, thread, leave(&out), "never");
    }
    pthread_barrier_wait(&together);
    emit(thread, per_thread, "thread");
    pthread_barrier_wait(&together);
    return NULL;
}

/*
 * Run a group of threads at the same time, and after their end a second group,
 * which can use the streams that the first group's threads have freed.
 */
static void threads(unsigned count, unsigned n)
{
    pthread_t ids[256];
    unsigned round, i;

    per_thread = n;
    pthread_barrier_init(&together, NULL, count);
    for (round = 0; round < 2; round++) {
        for (i = 0; i < count; i++) {
            if (pthread_create(&ids[i], NULL, run_thread,
                               (void *)(uintptr_t)(round * count + i))) {
                die("no thread");
            }
        }
        for (i = 0; i < count; i++) {
            pthread_join(ids[i], NULL);
        }
    }
    said("emitted", 2ull * count * n);
}

static void *one_thread(void *opaque)
{
    emit(1, *(unsigned *)opaque, "after");
    return NULL;
}

/*
 * Close the descriptors 3 to 999, as a daemon does. Emit before the closing,
 * and after it in this thread and in a new one.
 */
static void closed(unsigned n)
{
    pthread_t id;
    int fd;

    emit(0, n, "before");
    for (fd = 3; fd < 1000; fd++) {
        close(fd);
    }
    emit(0, n, "after");
    if (pthread_create(&id, NULL, one_thread, &n)) {
        die("no thread");
    }
    pthread_join(id, NULL);
    said("emitted", 3ull * n);
}

static volatile unsigned ticks;

static void on_tick(int number)
{
    (void)number;
    ht_trace(tick, ticks);
    ticks++;
}

/*
 * Emit in a child of vfork(), which shares the parent's memory: the library
 * must not write the child's event, and must count it as discarded.
 */
static void __attribute__((noinline)) vforks(void)
{
    if (vfork() == 0) {
        ht_trace(tick, 0);
        _exit(0);
    }
    if (wait_status()) {
        die("a child did not survive");
    }
}

/*
 * Emit first in a child of vfork(), then in a signal handler, before this
 * process has emitted elsewhere. Then let a timer's signals interrupt emits of
 * the thread: the handler of these signals emits, too.
 */
static void signals(unsigned n)
{
    const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    struct sigaction sa = { .sa_handler = on_tick, .sa_flags = SA_RESTART };

    vforks();
    sigaction(SIGALRM, &sa, NULL);
    raise(SIGALRM);
    setitimer(ITIMER_REAL, &often, NULL);
    emit(0, n, "interrupted");
    while (ticks < 20) {
        emit(0, 1, "more");
        n++;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    said("emitted", 1ull + n + ticks);
}

/* Emit before exec(), and in the new program. */
static void execs(char **argv, unsigned n)
{
    char *const next[] = { argv[0], (char *)"emit", argv[2], NULL };

    emit(0, n, "before exec");
    execv("/proc/self/exe", next);
    die("exec");
}

/* Emit until the test creates /tmp/end */
static void lasting(void)
{
    unsigned long long n = 0;

    said("emitting", 0);
    while (access("/tmp/end", F_OK)) {
        emit(0, 1000, "lasting");
        n += 1000;
        usleep(1000);
        if (n == 20000) {
            said("under way", n);
        }
    }
    said("emitted", n);
}

/*
 * Until the test creates /tmp/end, emit bursts of @burst events with the value
 * @thread in the field "thread", and sleep for 1 ms after each burst
 */
static void steady(unsigned thread, unsigned burst)
{
    unsigned n = 0, i;

    while (access("/tmp/end", F_OK)) {
        for (i = 0; i < burst; i++) {
            ht_trace(step, thread, n, "steady");
            n++;
        }
        usleep(1000);
    }
    said("emitted", n);
}

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/*
 * Emit @count events with fields of most kinds and pseudo-random values, and
 * print the same values.  The test compares them with the trace.
 */
static void recorded(unsigned count)
{
    static const char *const texts[] = { "", "one", "two words", "three" };
    uint64_t seed = 88172645463325252ull;
    unsigned n, i;

    for (n = 0; n < count; n++) {
        const uint64_t r = draw(&seed), s = draw(&seed);
        const uint16_t m[4] = { (uint16_t)s, (uint16_t)(s >> 16), 0, 65535 };
        const int32_t o[3] = { (int32_t)(r >> 32), -1, (int32_t)n };
        const unsigned len = r % 5;
        const double half = (int)(s % 2000) / 2.0 - 500;
        const char *text = texts[s % 4];

        ht_trace(all, n, (uint8_t)r, (int8_t)(r >> 8), (uint16_t)(r >> 16),
                 (int16_t)(r >> 24), (int32_t)(r >> 16), r, (int64_t)s,
                 (uint32_t)s, half, r % 4, text, text, m, len, o, m, len);
        printf("ALL %u %u %d %u %d %d %llu %lld 0x%x %g %u \"%s\" %u", n,
               (uint8_t)r, (int8_t)(r >> 8), (uint16_t)(r >> 16),
               (int16_t)(r >> 24), (int32_t)(r >> 16), (unsigned long long)r,
               (long long)(int64_t)s, (uint32_t)s, half, (unsigned)(r % 4),
               text, len);
        for (i = 0; i < len; i++) {
            printf(" %u", m[i]);
        }
        printf(" %d %d %d", o[0], o[1], o[2]);
        for (i = 0; i < len; i++) {
            printf(" %u", ((const uint8_t *)m)[i]);
        }
        printf("\n");
    }
    said("emitted", n);
}

/*
 * Until /tmp/end exists, emit "tick" about every millisecond. Print whether the
 * event is on at first, and each change by the host that a later iteration
 * sees. ht_trace() evaluates the event's argument only while the event is on,
 * so @asked counts the emitted events.
 */
static void switched(void)
{
    unsigned asked = 0;
    bool is = ht_event_enabled(tick);

    /*
     * Read ht_event_enabled() once in each iteration: it can change at any
     * time
     */
    said(is ? "on" : "off", asked);
    for (; access("/tmp/end", F_OK); usleep(1000)) {
        bool was = is;

        is = ht_event_enabled(tick);
        if (is != was) {
            said(is ? "on" : "off", asked);
        }
        ht_trace(tick, asked++);
    }
    said("emitted", asked);
}

#ifndef TRACETEST_STATIC
/* Load and unload the shared object @file, tracetest-plugin.c, @rounds times */
static void plugins(const char *file, unsigned rounds)
{
    unsigned i;

    for (i = 0; i < rounds; i++) {
        void *plugin = dlopen(file, RTLD_NOW);
        void (*emit_plugin)(unsigned n);

        if (!plugin) {
            die(dlerror());
        }
        *(void **)&emit_plugin = dlsym(plugin, "emit_plugin");
        emit_plugin(i);
        emit(0, 1, "host");
        ht_trace(open, i);
        if (dlclose(plugin)) {
            die("dlclose");
        }
    }
    said("emitted", 2ull * rounds);
}
#endif

/*
 * Close the descriptors 3 to 999, then call getppid() @n times: at each call
 * the preloaded shared object, tracetest-plugin.c, emits an event.
 */
static void calls(unsigned n)
{
    unsigned i;
    int fd;

    for (fd = 3; fd < 1000; fd++) {
        close(fd);
    }
    for (i = 0; i < n; i++) {
        getppid();
    }
    said("emitted", n);
}

int main(int argc, char **argv)
{
    const char *test = argc > 1 ? argv[1] : "";
    const unsigned n = argc > 2 ? atoi(argv[2]) : 0;

    if (!strcmp(test, "none")) {
        none();
    } else if (!strcmp(test, "emit")) {
        emit(0, n, "emit");
        said("emitted", n);
    } else if (!strcmp(test, "fork")) {
        forks(n);
    } else if (!strcmp(test, "threads") && argc > 3) {
        threads(n, atoi(argv[3]));
    } else if (!strcmp(test, "closed")) {
        closed(n);
    } else if (!strcmp(test, "signal")) {
        signals(n);
    } else if (!strcmp(test, "exec")) {
        execs(argv, n);
    } else if (!strcmp(test, "lasting")) {
        lasting();
    } else if (!strcmp(test, "steady") && argc > 3) {
        steady(n, atoi(argv[3]));
    } else if (!strcmp(test, "recorded")) {
        recorded(n);
    } else if (!strcmp(test, "switched")) {
        switched();
#ifndef TRACETEST_STATIC
    } else if (!strcmp(test, "plugin") && argc > 3) {
        plugins(argv[3], n);
#endif
    } else if (!strcmp(test, "calls")) {
        calls(n);
    } else {
        die("usage: ht-tracetest TEST [N [ARGUMENT]]");
    }
    return 0;
}
