/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A virtual machine for "hypertrace watch" without a processor: a process whose
 * private memory has the ring of one processor, and a kernel without BTF types,
 * which the recorder finds at once.
 *
 * usage: qemu-system-x86_64 -name NAME [-late | -empty | -blank]
 *
 * It writes two events every 20 ms.  SIGUSR1 resets the machine: it gets a new
 * ring, with a clock that begins at 0.  With -late, it maps its memory only at
 * SIGUSR2, and has no kernel.  With -empty, the ring gets no events; with
 * -blank, the memory has neither ring nor kernel.  With -empty or -blank,
 * SIGUSR1 or SIGUSR2 ends the program.  Other options are ignored.
 */
#include "hypertrace/base.h"
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "ftrace-guest.h"
#include "hypertrace/thread.h"
#include "kernel-make.h"

#define MEMORY      (16u << 20)
#define ALIGN       (2u << 20)
#define RING_AT     (2u << 20)
#define KERNEL_AT   (8u << 20)
/*
 * Offset of the page with VMCOREINFO, by which the kernel is found, and the
 * kernel's phys_base
 */
#define INFO_AT     (12u << 20)
#define PHYS_BASE   ((int)KERNEL_AT - 0x1000000)

static uint8_t *map_memory(void)
{
    uint8_t *room = mmap(NULL, MEMORY + ALIGN, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *memory = (uint8_t *)HT_ROUND_UP((uintptr_t)room, ALIGN);

    return room == MAP_FAILED ||
           mprotect(memory, MEMORY, PROT_READ | PROT_WRITE) ? NULL : memory;
}

static void place_kernel(uint8_t *memory)
{
    KmKernel kernel;

    km_kernel(&kernel, 24, false);
    km_place(&kernel, memory, MEMORY, KERNEL_AT, 0, 1000);
    km_kernel_free(&kernel);
    g_snprintf((char *)memory + INFO_AT, 4096, "OSRELEASE=6.12.0-test\n"
               "SYMBOL(_stext)=%" PRIx64 "\nNUMBER(phys_base)=%d\n", KM_TEXT,
               PHYS_BASE);
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
    bool late = has_option(argc, argv, "-late");
    uint64_t boot = ht_now_ns();
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    while (late && wait_signal(&signals, true) != SIGUSR2) {
        continue;
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
    if (!late) {
        place_kernel(g.mem);
    }
    fg_init(&g);
    if (has_option(argc, argv, "-empty")) {
        return wait_signal(&signals, true) < 0;
    }
    for (;;) {
        fg_event(&g, 0, ht_now_ns() - boot, 0);
        fg_event(&g, 0, ht_now_ns() - boot, 0);
        if (wait_signal(&signals, false) == SIGUSR1) {
            boot = ht_now_ns();
            fg_boot(&g, 0, false, g.va + (1u << 21));
        }
    }
}
