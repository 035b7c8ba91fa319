/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: a program that uses ht_trace(), with hosts that are absent, do
 * not answer or do not consume, with cancelled threads, children, and denied
 * system calls
 *
 * This program is both sides: node_host_run() runs it again as the traced
 * process.
 */
#define _GNU_SOURCE
#include "hypertrace/base.h"
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "node-program.h"

static void child_plain(const char *value)
{
    emit(atoi(value));
    say_emitted();
}

static void on_cleanup(void *opaque)
{
    (void)opaque;
    ht_trace(probe, 1);
}

static void *emit_on(void *opaque)
{
    (void)opaque;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_push(on_cleanup, NULL);
    for (;;) {
        ht_trace(step, 1, 7);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void child_cancel(const char *value)
{
    pthread_t thread;
    unsigned i;

    (void)value;
    for (i = 0; i < 50; i++) {
        g_assert_cmpint(pthread_create(&thread, NULL, emit_on, NULL), ==, 0);
        usleep(i * 100);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    emit_until_open();
    emit(100);
    emit_until_open();
}

/*
 * All control messages fail from the start of the process to the command "go".
 * @value: "unplug": the device is removed after 5000 events, until the command
 * "plug"; NULL: it stays
 */
static void child_stall(const char *value)
{
    emit(5000);
    if (value) {
        node_command(value);
        g_assert_cmpint(ht_trace_status(NULL), ==, HT_TRACE_NO_DEVICE);
        emit(5000);
    }
    say_emitted();
    node_command("plug");
    node_command("go");
    emit_until_open();
    node_command("mark");
    emit(100);
}

static void *emit_once(void *opaque)
{
    ht_trace(probe, 1);
    return opaque;
}

/*
 * The device is replaced. Then a thread opens a stream, registers the classes
 * on the new device, and ends.
 */
static void child_replaced(const char *value)
{
    pthread_t thread;

    (void)value;
    emit(1);
    node_command("unplug");
    node_command("plug");
    g_assert_cmpint(pthread_create(&thread, NULL, emit_once, NULL), ==, 0);
    pthread_join(thread, NULL);
    node_command("mark");
}

static void child_late(const char *value)
{
    (void)value;
    emit(1);
    node_command("mark");
    emit(1000000);
    node_command("mark");
    node_command("plug");
    emit_until_open();
    emit(100);
}

/*
 * The device never returns a buffer, and a ring has 4 packets of 64 KiB: most
 * of the 120000 events are discarded.
 */
static void child_busy(const char *value)
{
    (void)value;
    emit(20000);
    node_command("mark");
    emit(100000);
    node_command("mark");
    say_emitted();
}

static void wait_all(void)
{
    int status;

    while (wait(&status) > 0) {
        if (status) {
            g_error("a child ended with status 0x%x", status);
        }
    }
}

static pid_t fork_somehow(bool by_itself)
{
    return by_itself ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
}

static void *emit_1000(void *opaque)
{
    emit(1000);
    return opaque;
}

/*
 * Emit, also in children and grandchildren. Half of these processes also start
 * a thread, which emits.
 */
static void child_fork(const char *value)
{
    const unsigned depth = atoi(value);
    pthread_t thread;
    unsigned i;

    emit(10);
    for (i = 0; depth && i < 4; i++) {
        if (fork_somehow(i & 1) == 0) {
            emitted = 0;
            if (i & 2) {
                g_assert_cmpint(pthread_create(&thread, NULL, emit_1000, NULL),
                                ==, 0);
                pthread_join(thread, NULL);
            }
            child_fork(depth == 2 ? "1" : "0");
            _exit(0);
        }
    }
    wait_all();
    emit(10);
    say_emitted();
}

/*
 * Count the mappings and descriptors of the device that this process has,
 * except the mapping of the enable bytes.
 */
static unsigned inherited(void)
{
    unsigned n = 0;
    char line[512], to[64];
    struct dirent *e;
    FILE *maps = fopen("/proc/self/maps", "r");
    DIR *fds = opendir("/proc/self/fd");

    while (fgets(line, sizeof(line), maps)) {
        n += strstr(line, "memfd:hypertrace") && !strstr(line, " 40000000000 ");
    }
    while ((e = readdir(fds))) {
        ssize_t len = readlinkat(dirfd(fds), e->d_name, to, sizeof(to) - 1);

        if (len > 0) {
            to[len] = '\0';
            n += strstr(to, "memfd:hypertrace") != NULL;
        }
    }
    fclose(maps);
    closedir(fds);
    return n;
}

static volatile bool ending;

static void *open_and_close(void *opaque)
{
    pthread_t thread;

    while (!ending) {
        g_assert_cmpint(pthread_create(&thread, NULL, emit_once, NULL), ==, 0);
        pthread_join(thread, NULL);
    }
    return opaque;
}

static void child_fork_opening(const char *value)
{
    pthread_t threads[2];
    unsigned i, held = 0;
    int status;

    (void)value;
    emit(1);
    for (i = 0; i < 2; i++) {
        g_assert_cmpint(pthread_create(&threads[i], NULL, open_and_close, NULL),
                        ==, 0);
    }
    for (i = 0; i < 400; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            _exit(inherited() != 0);
        }
        waitpid(pid, &status, 0);
        held += status != 0;
    }
    ending = true;
    for (i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    if (held) {
        g_error("%u of 400 children hold the device", held);
    }
}

static unsigned descriptors(void)
{
    DIR *fds = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(fds)) {
        n++;
    }
    closedir(fds);
    return n;
}

static void deny(unsigned nr, unsigned error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { G_N_ELEMENTS(filter), filter };

    g_assert_cmpint(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), ==,
                    0);
}

/*
 * @value: number of a system call: execute the program again with this call
 * denied and the value NULL; NULL: assert that no signal is blocked after the
 * library's start and some events
 */
static void child_start(const char *value)
{
    static const char *const again[] = { "node", "start", NULL };
    sigset_t blocked;
    int i;

    if (value) {
        deny((unsigned)atoi(value), EPERM);
        execv("/proc/self/exe", (char **)again);
        g_assert_not_reached();
    }
    emit(10);
    g_assert_cmpint(sigprocmask(SIG_SETMASK, NULL, &blocked), ==, 0);
    for (i = 1; i < NSIG; i++) {
        g_assert_cmpint(sigismember(&blocked, i), <=, 0);
    }
}

/*
 * Emit while one system call fails. @value: "NUMBER ERROR", the system call's
 * number and the errno that it returns
 */
static void child_denied(const char *value)
{
    unsigned nr, error, before, i;

    g_assert_cmpint(sscanf(value, "%u %u", &nr, &error), ==, 2);
    before = nr == SYS_openat ? 0 : descriptors();
    deny(nr, error);
    /* emit for longer than HT_TRACE_RETRY_MS, so that opening is tried again */
    for (i = 0; i < 700; i++) {
        emit(10);
        usleep(1000);
    }
    ht_trace_stamps(2);
    emit(10);
    if (before) {
        g_assert_cmpuint(descriptors(), <=, before + 1);
    }
    if (nr != SYS_clone && fork() == 0) {
        emit(10);
        _exit(0);
    }
    wait_all();
    if (nr != SYS_openat) {
        say_emitted();
    }
}

/*
 * ht_event_parse() refuses each of the bad descriptions of a class, and makes
 * the fields of the good one.
 */
static void check_descriptions(void)
{
    static const char *const bad[] = {
        "", " ", "a b", "a u32", "a u32 n;; u32 m", "a u33 n", "a u32 n m",
        "a u32 n; u32 n", "a u32[ n", "a u32[0] n", "a u32[5000] n",
        "a text[3] t", "a chars c", "a chars[] c", "a:loud u8 n", "a: u8 n",
        "a u8{} n", "a u8{x} n", "a u8{x=} n", "a u8{x=1 n", "a u8{=1} n",
        "a text{x=1} t", "a u8[2]{x=1} n", "a/b u8 n", "a u8 0n",
        "a u8{x=1,y=2|z=4} n", "a u8{x=1|y=2,z=4} n", "a u8{x=1;y=2} n",
    };
    const struct ht_field *f;
    struct ht_class *c;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        if (ht_event_parse(bad[i])) {
            g_error("\"%s\" is not refused", bad[i]);
        }
    }
    g_assert_nonnull(ht_event_parse("node.none"));
    c = ht_event_parse(" node.all:warning\tx16 a;bool b; ptr c; f32 d; text e;"
                       "bytes f; s64[] g; u16[6] h; chars[16] i;"
                       "s8{minus = -1, zero=0x0} j; x32{r=1|w=2} k ");
    g_assert_nonnull(c);
    g_assert_cmpuint(c->loglevel, ==, HT_LEVEL_WARNING);
    g_assert_cmpuint(c->nr_fields, ==, 11);
    f = c->fields;
    g_assert_true(f[0].kind == HT_FIELD_U16 && f[0].flags == HT_FIELD_HEX);
    g_assert_true(f[1].kind == HT_FIELD_U8 && f[1].count == 2);
    g_assert_cmpstr(f[1].labels[1].name, ==, "true");
    g_assert_true(f[2].kind == HT_FIELD_U64 && f[2].flags == HT_FIELD_HEX);
    g_assert_true(f[6].kind == HT_FIELD_SEQUENCE && f[6].elem == HT_FIELD_S64);
    g_assert_true(f[7].kind == HT_FIELD_ARRAY && f[7].count == 6);
    g_assert_true(f[8].elem == HT_FIELD_U8 && f[8].flags == HT_FIELD_UTF8);
    g_assert_cmpint(f[9].labels[0].value, ==, -1);
    g_assert_cmpuint(f[9].flags, ==, HT_FIELD_LABELS);
    g_assert_cmpuint(f[10].flags, ==, HT_FIELD_LABELS | HT_FIELD_BITS |
                                      HT_FIELD_HEX);
    g_assert_cmpstr(f[10].name, ==, "k");
}

/*
 * An integer value of a field is accepted if it is in the field's range, and
 * refused otherwise.
 */
static void check_ranges(void)
{
    static const char *const kinds[] = {
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64",
    };
    unsigned i, bit;

    for (i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *text = g_strdup_printf("node.%s %s n", kinds[i],
                                                kinds[i]);
        struct ht_class *c = ht_event_parse(text);
        const unsigned bits = 8u << i % 4;
        const bool is_signed = i >= 4;

        for (bit = 0; bit < 64; bit++) {
            struct ht_value v = {
                .u = 1ull << bit, .type = HT_VALUE_UNSIGNED,
            };

            g_assert_cmpint(ht_event_values(c, &v, 1), ==,
                            bit < bits - is_signed ? 1 : -EINVAL);
            v.u = ~0ull << bit;
            v.type = HT_VALUE_SIGNED;
            g_assert_cmpint(ht_event_values(c, &v, 1), ==,
                            is_signed && bit < bits ? 1 : -EINVAL);
        }
    }
}

static void child_values(const char *value)
{
    static const uint16_t six[6] = { 1, 2, 3, 4, 5, 6 };
    static const int64_t two[2] = { -1, 2 };
    const struct ht_value values[] = {
        { .u = 7, .type = HT_VALUE_UNSIGNED },
        { .f = 0.5, .type = HT_VALUE_FLOAT },
        { .p = "text", .size = 4, .type = HT_VALUE_MEMORY },
        { .p = two, .size = sizeof(two), .type = HT_VALUE_MEMORY },
        { .p = six, .size = sizeof(six), .type = HT_VALUE_MEMORY },
    };
    struct ht_value wrong[G_N_ELEMENTS(values)];
    struct ht_class *c;
    unsigned i, n = G_N_ELEMENTS(values);

    (void)value;
    check_descriptions();
    check_ranges();
    c = ht_event_parse("node.values u32 a; f32 b; text c; s64[] d; u16[6] e");
    for (i = 0; i < 100; i++) {
        g_assert_cmpint(ht_event_values(c, values, n), ==, 1);
    }
    g_assert_cmpint(ht_event_values(c, values, n - 1), ==, -EINVAL);
    for (i = 0; i < n; i++) {
        memcpy(wrong, values, sizeof(values));
        wrong[i].type = wrong[i].type % 4 + 1;
        if (i != 0) {
            g_assert_cmpint(ht_event_values(c, wrong, n), ==, -EINVAL);
        }
        memcpy(wrong, values, sizeof(values));
        /* a text or sequence that is too long, or an array of a wrong length */
        wrong[i].size = i == 2 ? 65536 : i == 3 ? 65536 * 8 : 10;
        if (i >= 2) {
            g_assert_cmpint(ht_event_values(c, wrong, n), ==, -EINVAL);
        }
        /* a length that ends within an element */
        wrong[i].size = i == 2 ? 4 : sizeof(two) - 1;
        if (i >= 3) {
            g_assert_cmpint(ht_event_values(c, wrong, n), ==, -EINVAL);
        }
    }
}

/*
 * Assert that ht_trace_status() is @value, and that the reason begins with
 * "off: " unless the state is HT_TRACE_ON.
 */
static void child_status(const char *value)
{
    const char *why = NULL;

    g_assert_cmpint(ht_trace_status(&why), ==, atoi(value));
    g_assert_cmpint(g_str_has_prefix(why, "off: "), ==,
                    atoi(value) != HT_TRACE_ON);
    g_assert_cmpint(ht_trace_status(NULL), ==, atoi(value));
}

static const NodeChild children[] = {
    { "plain", child_plain },
    { "cancel", child_cancel },
    { "stall", child_stall },
    { "replaced", child_replaced },
    { "late", child_late },
    { "busy", child_busy },
    { "fork", child_fork },
    { "fork-opening", child_fork_opening },
    { "denied", child_denied },
    { "start", child_start },
    { "values", child_values },
    { "status", child_status },
    { }
};

static void test_plain(void)
{
    NodeHost h = { .plugged = true, .channel = HT_CHANNEL_SHM };

    g_assert_cmpint(node_host_run(&h, "plain", "100"), ==, 0);
    g_assert_cmpuint(steps_got(&h), ==, 100);
    g_assert_cmpuint(h.lost + h.told, ==, 0);
    node_host_free(&h);
}

static void test_cancel(void)
{
    NodeHost h = { .plugged = true, .channel = HT_CHANNEL_SHM };

    g_assert_cmpint(node_host_run(&h, "cancel", NULL), ==, 0);
    g_assert_cmpuint(steps_got(&h), >, 100);
    node_host_free(&h);
}

static void check_stall(int error, const char *value)
{
    NodeHost h = {
        .plugged = true, .channel = HT_CHANNEL_SHM, .error = error,
    };

    g_assert_cmpint(node_host_run(&h, "stall", value), ==, 0);
    /*
     * the 100 events after the command "mark" arrive; no earlier event of the
     * class "step" does, and each of them is counted as lost
     */
    g_assert_cmpuint(steps_got(&h), ==, 100);
    g_assert_cmpuint(h.lost + h.told, >=, h.emitted);
    node_host_free(&h);
}

static void test_stall(void)
{
    check_stall(ETIMEDOUT, NULL);
    check_stall(EBUSY, NULL);
    check_stall(ENODEV, NULL);
    check_stall(ENODEV, "unplug");
}

/*
 * Promise: when a thread ends, its stream is closed, also if the thread was the
 * first to use a new device.  The main thread's and the shared one are left.
 */
static void test_replaced(void)
{
    NodeHost h = { .plugged = true, .channel = HT_CHANNEL_SHM };

    g_assert_cmpint(node_host_run(&h, "replaced", NULL), ==, 0);
    g_assert_cmpuint(h.streams, ==, 3);
    g_assert_cmpuint(h.mark[0].streams, ==, 2);
    node_host_free(&h);
}

static void test_late(void)
{
    NodeHost h = { .channel = HT_CHANNEL_SHM };

    g_assert_cmpint(node_host_run(&h, "late", NULL), ==, 0);
    g_assert_cmpuint(steps_got(&h), ==, 100);
    /* before the library has found a device, no event counts as lost */
    g_assert_cmpuint(h.lost + h.told, ==, 0);
    /* the program's start and its first event have tried each of 32 nodes */
    g_assert_cmpuint(h.mark[0].opens, ==, 2 * 32);
    g_test_message("%u calls for 1000000 events", h.mark[1].opens);
    g_assert_cmpuint(h.mark[1].opens, <, 1000);
    node_host_free(&h);
}

static void test_busy(void)
{
    NodeHost h = {
        .plugged = true, .channel = HT_CHANNEL_VIRTIO, .busy = true,
    };

    g_assert_cmpint(node_host_run(&h, "busy", NULL), ==, 0);
    g_test_message("%u calls for 100000 discarded events",
                   h.mark[1].opens + h.mark[1].ioctls);
    g_assert_cmpuint(h.mark[1].opens, <, 1000);
    g_assert_cmpuint(h.mark[1].ioctls, <, 2000);
    g_assert_cmpuint(h.lost, >, 100000);
    node_host_free(&h);
}

static void test_fork(void)
{
    NodeHost h = { .plugged = true, .channel = HT_CHANNEL_SHM };

    g_assert_cmpint(node_host_run(&h, "fork", "2"), ==, 0);
    g_assert_cmpuint(h.emitted, >, 21 * 20);
    g_assert_cmpuint(steps_got(&h), ==, h.emitted);
    g_assert_cmpuint(h.lost + h.told, ==, 0);
    node_host_free(&h);
}

static void test_fork_opening(void)
{
    NodeHost h = { .plugged = true, .channel = HT_CHANNEL_SHM };

    g_assert_cmpint(node_host_run(&h, "fork-opening", NULL), ==, 0);
    g_assert_cmpuint(h.streams, >, 10);
    node_host_free(&h);
}

/* Run the traced process with one system call denied; see child_denied(). */
static void run_denied(const char *value)
{
    NodeHost h = { .plugged = true, .channel = HT_CHANNEL_SHM };

    g_assert_cmpint(node_host_run(&h, "denied", value), ==, 0);
    g_assert_cmpuint(steps_got(&h) + h.lost + h.told, <=, h.emitted + 7020);
    node_host_free(&h);
}

/*
 * Promise: the program survives if one of the system calls that the library
 * makes is denied; write() is left out, which only HYPERTRACE_DEBUG needs. Each
 * pair of call and error has a host and a traced process of its own. These
 * sleep most of the time, so all run at once.
 */
static void test_denied(void)
{
    static const int calls[] = {
        SYS_openat, SYS_ioctl, SYS_mmap, SYS_munmap, SYS_madvise, SYS_close,
        SYS_prctl, SYS_getpid, SYS_gettid, SYS_tgkill, SYS_nanosleep,
        SYS_sched_yield, SYS_rt_sigprocmask,
    };
    static const int errors[] = { EPERM, ENOSYS };
    pid_t hosts[G_N_ELEMENTS(calls)][G_N_ELEMENTS(errors)];
    unsigned i, j;

    fflush(NULL);
    for (i = 0; i < G_N_ELEMENTS(calls); i++) {
        for (j = 0; j < G_N_ELEMENTS(errors); j++) {
            g_autofree char *value = g_strdup_printf("%d %d", calls[i],
                                                     errors[j]);

            hosts[i][j] = fork();
            g_assert_cmpint(hosts[i][j], >=, 0);
            if (!hosts[i][j]) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                run_denied(value);
                _exit(0);
            }
        }
    }
    for (i = 0; i < G_N_ELEMENTS(calls); i++) {
        for (j = 0; j < G_N_ELEMENTS(errors); j++) {
            int status;

            g_assert_cmpint(waitpid(hosts[i][j], &status, 0), ==, hosts[i][j]);
            if (status) {
                g_error("call %d denied with error %d: status %d", calls[i],
                        errors[j], status);
            }
        }
    }
}

/*
 * If a seccomp filter denies a system call of the library's start, the library
 * does not leave the program's signals blocked.
 */
static void test_start(void)
{
    static const int calls[] = { SYS_madvise, SYS_ioctl, SYS_getpid };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(calls); i++) {
        g_autofree char *value = g_strdup_printf("%d", calls[i]);
        NodeHost h = { .plugged = true, .channel = HT_CHANNEL_SHM };

        g_test_message("call %s", value);
        g_assert_cmpint(node_host_run(&h, "start", value), ==, 0);
        node_host_free(&h);
    }
}

/*
 * Events of classes that are made at run time arrive.  A wrong description of a
 * class is refused, and so is an event with a value that does not fit its
 * field.
 */
static void test_values(void)
{
    NodeHost h = { .plugged = true, .channel = HT_CHANNEL_SHM };

    g_assert_cmpint(node_host_run(&h, "values", NULL), ==, 0);
    g_assert_cmpuint(node_host_got(&h, "node.values"), ==, 100);
    g_assert_cmpuint(node_host_got(&h, "node.u8"), ==, 8);
    g_assert_cmpuint(node_host_got(&h, "node.s64"), ==, 63 + 64);
    node_host_free(&h);
}

static void check_status(NodeHost h, enum ht_trace_state state)
{
    g_autofree char *value = g_strdup_printf("%d", state);

    h.channel = HT_CHANNEL_SHM;
    g_assert_cmpint(node_host_run(&h, "status", value), ==, 0);
    node_host_free(&h);
}

static void test_status(void)
{
    const NodeHost plugged = { .plugged = true };
    NodeHost h = plugged;

    check_status(plugged, HT_TRACE_ON);
    check_status((NodeHost) { .plugged = false }, HT_TRACE_NO_DEVICE);
    h.denied = EACCES;
    check_status(h, HT_TRACE_DENIED);
    h = plugged;
    h.error = ETIMEDOUT;
    check_status(h, HT_TRACE_NO_ANSWER);
    h = plugged;
    h.unwanted = true;
    check_status(h, HT_TRACE_UNWANTED);
    g_setenv("HYPERTRACE_DEVICE", "none", true);
    check_status(plugged, HT_TRACE_DISABLED);
    g_unsetenv("HYPERTRACE_DEVICE");
}

int main(int argc, char **argv)
{
    if (!strcmp(argv[0], "node")) {
        return node_child(argv, children);
    }
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/node/plain", test_plain);
    g_test_add_func("/guest/node/cancel", test_cancel);
    g_test_add_func("/guest/node/stall", test_stall);
    g_test_add_func("/guest/node/replaced", test_replaced);
    g_test_add_func("/guest/node/late", test_late);
    g_test_add_func("/guest/node/busy", test_busy);
    g_test_add_func("/guest/node/fork", test_fork);
    g_test_add_func("/guest/node/fork-opening", test_fork_opening);
    g_test_add_func("/guest/node/denied", test_denied);
    g_test_add_func("/guest/node/start", test_start);
    g_test_add_func("/guest/node/values", test_values);
    g_test_add_func("/guest/node/status", test_status);
    return g_test_run();
}
