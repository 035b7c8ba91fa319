/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: system calls that do not change errno
 *
 * A program may emit an event between a call that fails and its check of errno,
 * or in a signal handler.  Unless stated otherwise, a function returns the
 * kernel's result, which is a negative errno on failure.
 */
#ifndef HT_LINUX_SYS_H
#define HT_LINUX_SYS_H

#include <asm/unistd.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

static inline long ht_sys(long nr, long a, long b, long c, long d, long e,
                          long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;

    __asm__ volatile("syscall"
                     : "=a" (ret)
                     : "a" (nr), "D" (a), "S" (b), "d" (c), "r" (r10),
                       "r" (r8), "r" (r9)
                     : "rcx", "r11", "memory");
    return ret;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0"
                     : "+r" (x0)
                     : "r" (x8), "r" (x1), "r" (x2), "r" (x3), "r" (x4),
                       "r" (x5)
                     : "memory");
    return x0;
#else
#error "hypertrace: no system calls are known for this processor"
#endif
}

static inline int ht_sys_open(const char *path, int flags)
{
    return ht_sys(__NR_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

static inline int ht_sys_close(int fd)
{
    return ht_sys(__NR_close, fd, 0, 0, 0, 0, 0);
}

static inline int ht_sys_ioctl(int fd, unsigned long request, void *arg)
{
    return ht_sys(__NR_ioctl, fd, request, (long)arg, 0, 0, 0);
}

/* Returns the address, or NULL; sets *@error to 0 or a negative errno */
static inline void *ht_sys_map_at(void *at, size_t size, int prot, int flags,
                                  int fd, uint64_t offset, int *error)
{
    long p = ht_sys(__NR_mmap, (long)at, size, prot, flags, fd, offset);

    *error = p < 0 && p > -4096 ? (int)p : 0;
    return *error ? NULL : (void *)p;
}

static inline void *ht_sys_map(size_t size, int flags, int fd, uint64_t offset,
                               int *error)
{
    return ht_sys_map_at(NULL, size, PROT_READ | PROT_WRITE, flags, fd, offset,
                         error);
}

static inline int ht_sys_unmap(void *p, size_t size)
{
    return ht_sys(__NR_munmap, (long)p, size, 0, 0, 0, 0);
}

static inline int ht_sys_madvise(void *p, size_t size, int advice)
{
    return ht_sys(__NR_madvise, (long)p, size, advice, 0, 0, 0);
}

static inline int ht_sys_getpid(void)
{
    return ht_sys(__NR_getpid, 0, 0, 0, 0, 0, 0);
}

static inline int ht_sys_gettid(void)
{
    return ht_sys(__NR_gettid, 0, 0, 0, 0, 0, 0);
}

/* Returns 0 if the thread exists, -ESRCH if not; other errors tell nothing */
static inline int ht_sys_thread_exists(int pid, int tid)
{
    return ht_sys(__NR_tgkill, pid, tid, 0, 0, 0, 0);
}

/*
 * Block all signals except SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and SIGSYS:
 * if an instruction or a system call raises one of these while it is blocked,
 * the kernel ends the process.  Returns true on success.
 * @mask: set, for ht_sys_restore_signals()
 */
static inline bool ht_sys_block_signals(uint64_t *mask)
{
    const uint64_t all = ~(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) |
                           1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) |
                           1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1));

    return ht_sys(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)mask,
                  sizeof(all), 0, 0) == 0;
}

static inline void ht_sys_restore_signals(const uint64_t *mask)
{
    ht_sys(__NR_rt_sigprocmask, SIG_SETMASK, (long)mask, 0, sizeof(*mask), 0,
           0);
}

static inline void ht_sys_sleep_ns(long ns)
{
    struct timespec t = { .tv_nsec = ns };

    ht_sys(__NR_nanosleep, (long)&t, 0, 0, 0, 0, 0);
}

static inline void ht_sys_yield(void)
{
    ht_sys(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
}

#endif /* HT_LINUX_SYS_H */
