/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: print formats are parsed in a process of their own
 *
 * libtraceevent parses them with recursion and without doubts, and a
 * recording's formats are its guest's.  Whatever one of them does to its
 * process, the command gets a program that it checks, or none.
 */
#include "hypertrace/base.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "print/print-program.h"

/* The kernel's longest formats make programs of a few KiB. */
#define PROGRAM_MAX     (1u << 20)
#define CPU_SECONDS_MAX 5
#define SECONDS_MAX     60
#define MEMORY_MAX      (UINT64_C(4) << 30)

#if defined(__x86_64__)
#define ARCH            AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH            AUDIT_ARCH_AARCH64
#endif

/*
 * Memory, and writing to what is open.  Where the kernel refuses filters, as
 * some containers do, there is none.
 */
static void filter(void)
{
#ifdef ARCH
    static const uint32_t allowed[] = {
        __NR_write, __NR_brk, __NR_mmap, __NR_mremap, __NR_munmap,
        __NR_mprotect, __NR_madvise, __NR_futex, __NR_getrandom,
        __NR_exit_group,
    };
    const struct sock_filter
        arch = BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                        offsetof(struct seccomp_data, arch)),
        is_ours = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
        nr = BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                      offsetof(struct seccomp_data, nr)),
        allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        end = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_filter f[5 + 2 * G_N_ELEMENTS(allowed)] = {
        arch, is_ours, end, nr,
    };
    struct sock_fprog prog = { .len = 4, .filter = f };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(allowed); i++) {
        f[prog.len++] = (struct sock_filter)
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        f[prog.len++] = allow;
    }
    f[prog.len++] = end;
    if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
    }
#endif
}

static void limit(int resource, rlim_t to)
{
    struct rlimit r;

    if (!getrlimit(resource, &r)) {
        r.rlim_cur = MIN(to, r.rlim_max);
        setrlimit(resource, &r);
    }
}

/* Nothing is open but @fd, as standard output. */
static bool confine(int fd)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (nothing < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
        dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDERR_FILENO) < 0) {
        return false;
    }
    closefrom(STDERR_FILENO + 1);
    prctl(PR_SET_DUMPABLE, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, CPU_SECONDS_MAX);
    signal(SIGALRM, SIG_DFL);
    alarm(SECONDS_MAX);
#ifndef __SANITIZE_ADDRESS__
    limit(RLIMIT_DATA, MEMORY_MAX);
#endif
    filter();
    return true;
}

static bool write_all(const uint8_t *p, gsize size)
{
    while (size) {
        ssize_t n = write(STDOUT_FILENO, p, size);

        if (n < 0) {
            return false;
        }
        p += n;
        size -= n;
    }
    return true;
}

/*
 * The child's.  A lock that another thread of the parent held stays locked: the
 * alarm ends who waits for it.
 */
static G_NORETURN void parse(const HtFtEvent *e, int fd)
{
    HtPrint *print = confine(fd) ? ht_print_compile(e) : NULL;
    const uint8_t *p;
    gsize size;

    if (!print) {
        _exit(1);
    }
    p = g_bytes_get_data(ht_print_encode(print), &size);
    _exit(write_all(p, size) ? 0 : 1);
}

/* What the child says until it ends; too much is nothing. */
static GBytes *read_all(int fd)
{
    g_autoptr(GByteArray) all = g_byte_array_new();
    uint8_t part[4096];
    ssize_t n;

    do {
        n = read(fd, part, sizeof(part));
        if (n > 0) {
            g_byte_array_append(all, part, n);
        }
    } while (all->len <= PROGRAM_MAX && (n > 0 || (n < 0 && errno == EINTR)));
    return n == 0 && all->len ? g_byte_array_free_to_bytes(
                                    g_steal_pointer(&all)) : NULL;
}

HtPrint *ht_print_new(const HtFtEvent *e)
{
    g_autoptr(GBytes) bytes = NULL;
    int fds[2], status = 0;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC)) {
        return NULL;
    }
    pid = fork();
    if (pid == 0) {
        parse(e, fds[1]);
    }
    close(fds[1]);
    bytes = pid > 0 ? read_all(fds[0]) : NULL;
    close(fds[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        /* not for long: what it writes now, nobody reads */
    }
    return bytes && !status ? ht_print_decode(bytes, e) : NULL;
}
