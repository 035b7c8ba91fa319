/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-marker: a source of events for a file, such as ftrace's trace_marker: the
 * peer of ht-bench in macro-benchmarks
 *
 * usage: ht-marker FILE RATE
 *
 * Writes 32 bytes RATE times a second until it is killed; what was due while
 * it slept is written at once, as ht-bench does.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

int main(int argc, char **argv)
{
    uint64_t due, gap, seq = 0;
    double rate = argc == 3 ? strtod(argv[2], NULL) : 0;
    char text[33];
    int fd;

    if (!(rate >= 1 && rate <= 1e9)) {
        fprintf(stderr, "usage: ht-marker FILE RATE\n");
        return 2;
    }
    fd = open(argv[1], O_WRONLY);
    if (fd < 0) {
        fprintf(stderr, "ht-marker: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    gap = 1e9 / rate;
    due = now_ns();
    for (;;) {
        struct timespec t;

        due += gap;
        while (now_ns() < due) {
            t.tv_sec = due / 1000000000;
            t.tv_nsec = due % 1000000000;
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        }
        snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64, seq, due);
        if (write(fd, text, 32) != 32) {
            fprintf(stderr, "ht-marker: %s: %s\n", argv[1], strerror(errno));
            return 1;
        }
        seq++;
    }
}
