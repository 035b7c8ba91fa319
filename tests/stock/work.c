/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Init of a guest that does a fixed piece of work for each line that it reads
 * from its console. It then prints a line: "work", the sum of the TSC cycles of
 * all parts except the last ("sleeps"), and the cycles of each part.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define CALLS       20000
#define TURNS       2000
#define FORKS       50
#define PAGES       2048
#define EXITS       1000
#define SLEEPS      50
#define PORT        0x300   /* no device has it */

static uint64_t ticks(void)
{
    uint32_t low, high;

    __asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

static void system_calls(void)
{
    int i;

    for (i = 0; i < CALLS; i++) {
        syscall(SYS_getppid);
    }
}

/*
 * Pass a byte to another process and back, repeatedly: with one processor, the
 * kernel switches tasks twice each time.
 */
static void switches(void)
{
    int there[2], back[2], i;
    char c = 0;
    pid_t pid;

    if (pipe(there) || pipe(back)) {
        _exit(1);
    }
    pid = fork();
    if (!pid) {
        close(there[1]);
        while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1) {
            ;
        }
        _exit(0);
    }
    for (i = 0; i < TURNS; i++) {
        if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1) {
            _exit(1);
        }
    }
    close(there[0]);
    close(there[1]);
    close(back[0]);
    close(back[1]);
    waitpid(pid, NULL, 0);
}

static void forks(void)
{
    int i;

    for (i = 0; i < FORKS; i++) {
        pid_t pid = fork();

        if (!pid) {
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
}

static void page_faults(void)
{
    size_t size = PAGES * 4096, i;
    volatile char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        _exit(1);
    }
    for (i = 0; i < size; i += 4096) {
        p[i] = 1;
    }
    munmap((void *)p, size);
}

/*
 * Execute CPUID: KVM and Xen handle the exit themselves, without the program
 * that emulates devices.
 */
static void cpuids(void)
{
    uint32_t a, b, c, d;
    int i;

    for (i = 0; i < EXITS; i++) {
        a = 0;
        c = 0;
        __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    }
}

/*
 * Write to a port that no device has, by the kernel's /dev/port: QEMU's
 * emulation of a KVM host refuses the instruction OUT to user mode, even after
 * iopl().
 */
static void ports(void)
{
    int fd = open("/dev/port", O_WRONLY), i;

    for (i = 0; i < EXITS; i++) {
        if (pwrite(fd, "", 1, PORT) != 1) {
            _exit(1);
        }
    }
    close(fd);
}

static void sleeps(void)
{
    const struct timespec ms = { .tv_nsec = 1000000 };
    int i;

    for (i = 0; i < SLEEPS; i++) {
        nanosleep(&ms, NULL);
    }
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {
        { "calls", system_calls }, { "switches", switches },
        { "forks", forks }, { "faults", page_faults }, { "cpuid", cpuids },
        { "ports", ports }, { "sleeps", sleeps },
    };
    enum { LAST = sizeof(parts) / sizeof(*parts) - 1 };
    uint64_t sums[LAST + 1], total;
    struct termios t;
    char line[64];
    unsigned i;

    if (tcgetattr(0, &t) || mount("none", "/dev", "devtmpfs", 0, "")) {
        return 1;
    }
    cfmakeraw(&t);
    tcsetattr(0, TCSANOW, &t);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        for (i = 0; i <= LAST; i++) {
            sums[i] = ticks();
            parts[i].run();
            sums[i] = ticks() - sums[i];
        }
        for (total = 0, i = 0; i < LAST; i++) {
            total += sums[i];
        }
        printf("work %llu", (unsigned long long)total);
        for (i = 0; i <= LAST; i++) {
            printf(" %s=%llu", parts[i].name, (unsigned long long)sums[i]);
        }
        printf("\n");
        fflush(stdout);
    }
    return 1;
}
