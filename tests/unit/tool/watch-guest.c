/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A virtual machine for "hypertrace watch" without a processor or a kernel: a
 * process whose private memory has the ring of one processor.
 *
 * usage: qemu-system-x86_64 -name NAME [-late | -empty | -blank]
 *
 * It writes two events every 20 ms.  With -late, it maps its memory only at
 * SIGUSR2.  With -empty, the ring gets no events; with -blank, the memory has
 * no ring.  SIGUSR1 resets it: the next kernel makes a new ring, and its
 * clock begins at 0.
 */
#include "hypertrace/base.h"
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "ftrace-guest.h"

#define MEMORY  (16u << 20)
#define ALIGN   (2u << 20)
#define RING_AT (2u << 20)

static uint8_t *map_memory(void)
{
    uint8_t *room = mmap(NULL, MEMORY + ALIGN, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *memory = (uint8_t *)HT_ROUND_UP((uintptr_t)room, ALIGN);

    return room == MAP_FAILED ||
           mprotect(memory, MEMORY, PROT_READ | PROT_WRITE) ? NULL : memory;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/*
 * Wait for a signal, at most 20 ms unless @forever. Returns the signal, or a
 * negative value if none came.
 */
static int wait_signal(const sigset_t *signals, bool forever)
{
    const struct timespec tick = { 0, 20000000 };

    return forever ? sigwaitinfo(signals, NULL) :
           sigtimedwait(signals, NULL, &tick);
}

static bool has_option(int argc, char **argv, const char *option)
{
    return argc > 3 && !strcmp(argv[3], option);
}

int main(int argc, char **argv)
{
    FtGuest g = { .layout = HT_FT_LAYOUT_6_11, .subbuf = 4096, .nr = 100,
                  .cpus = 1, .offset = RING_AT, .size = MEMORY };
    uint64_t boot = now_ns();
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    if (has_option(argc, argv, "-late")) {
        while (wait_signal(&signals, true) != SIGUSR2) {
            continue;
        }
    }
    g.mem = map_memory();
    if (!g.mem) {
        fputs("watch-guest: no memory\n", stderr);
        return 1;
    }
    if (has_option(argc, argv, "-blank")) {
        /* Touch the memory, as a guest that runs does. */
        memset(g.mem, 1, MEMORY);
        return wait_signal(&signals, true) < 0;
    }
    fg_init(&g);
    if (has_option(argc, argv, "-empty")) {
        return wait_signal(&signals, true) < 0;
    }
    for (;;) {
        fg_event(&g, 0, now_ns() - boot, 0);
        fg_event(&g, 0, now_ns() - boot, 0);
        if (wait_signal(&signals, false) == SIGUSR1) {
            boot = now_ns();
            fg_boot(&g, 0, false, g.va + (1u << 21));
        }
    }
}
