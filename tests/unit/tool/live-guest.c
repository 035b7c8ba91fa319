/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest for `hypertrace record` without a processor or a kernel: its memory
 * is a file, as QEMU's is, with the ring of one processor.
 *
 * usage: live-guest -object memory-backend-file,...,mem-path=FILE
 *
 * For each line with a number N on standard input, the program writes N events
 * to the ring, then prints N.  It ends at the end of the input.  The time of
 * each event is 1 us after that of the previous one.  For "+N", the times are
 * an hour ahead of CLOCK_MONOTONIC, and LTTng-UST gets one event before and one
 * after each event.
 */
#include "hypertrace/base.h"
#include <fcntl.h>
#include <lttng/tracef.h>
#include <sys/mman.h>

#include "ftrace-guest.h"

#define MEMORY  (32u << 20)
#define RING_AT (2u << 20)

static uint8_t *map_memory(int argc, char **argv)
{
    const char *path = argc > 2 ? strstr(argv[2], "mem-path=") : NULL;
    uint8_t *memory;
    int fd;

    if (!path) {
        return NULL;
    }
    fd = open(path + strlen("mem-path="), O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, MEMORY)) {
        return NULL;
    }
    memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static uint64_t late_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (t.tv_sec + 3600) * UINT64_C(1000000000) + t.tv_nsec;
}

static void traced_event(FtGuest *g, unsigned n)
{
    lttng_ust_tracef("cause %u", n);
    fg_event(g, 0, late_clock(), 0);
    lttng_ust_tracef("effect %u", n);
}

int main(int argc, char **argv)
{
    FtGuest g = { .layout = HT_FT_LAYOUT_6_11, .subbuf = 4096, .nr = 6000,
                  .cpus = 1, .offset = RING_AT, .size = MEMORY };
    uint64_t ns = 1000000000;
    char line[32];
    unsigned n, i, traced = 0;

    g.mem = map_memory(argc, argv);
    if (!g.mem) {
        fputs("live-guest: no memory\n", stderr);
        return 1;
    }
    fg_init(&g);
    puts("0");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        n = atoi(line);
        printf("%u\n", n);
        for (i = 0; i < n; i++) {
            if (line[0] == '+') {
                traced_event(&g, traced++);
            } else {
                fg_event(&g, 0, ns += 1000, 0);
            }
        }
        fflush(stdout);
    }
    return 0;
}
