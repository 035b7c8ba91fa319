/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-marker: emit events in a Linux guest by one of several methods, for
 * comparison with ht-bench
 *
 * With -r the program emits at a rate until it is killed or an emit fails. If a
 * sleep was too long, it emits the events that are due at full speed, like
 * ht-bench. With -n it emits whole groups of 16 events at full speed, prints
 * the time of an event, and executes marks around each group for insn-plugin.c,
 * which counts instructions.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ht-marker.h"
#include "insn-marks.h"

/* number of events that are timed together, by a clock read before and after */
#define GROUP           16

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static void usage(FILE *f)
{
    fprintf(f, "usage: ht-marker -n EVENTS | -r RATE%s%s\n",
            marker_target ? " " : "", marker_target ? marker_target : "");
}

static uint64_t parse(const char *s)
{
    char *end;
    uint64_t v;

    errno = 0;
    v = strtoull(s, &end, 10);
    if (*s < '0' || *s > '9' || *end || errno || !v || v > 1000000000) {
        fprintf(stderr, "ht-marker: '%s' is not from 1 to 1000000000\n", s);
        exit(2);
    }
    return v;
}

static void emit(uint64_t n, uint64_t time)
{
    if (!marker_emit(n, time)) {
        fprintf(stderr, "ht-marker: event %" PRIu64 ": %s\n", n,
                strerror(errno));
        exit(1);
    }
}

static void __attribute__((noreturn)) at_rate(uint64_t rate)
{
    uint64_t gap = 1000000000 / rate, due = now_ns(), n;

    for (n = 0;; n++) {
        struct timespec t;

        due += gap;
        while (now_ns() < due) {
            t.tv_sec = due / 1000000000;
            t.tv_nsec = due % 1000000000;
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        }
        emit(n, due);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void print_time(const char *name, uint64_t group_ns)
{
    printf(", \"%s\": %.3f", name, (double)group_ns / GROUP);
}

static int flat_out(uint64_t events)
{
    uint64_t groups = (events + GROUP - 1) / GROUP, begin, end, i, n = 0;
    uint64_t *took = calloc(groups, sizeof(*took));

    if (!took) {
        fprintf(stderr, "ht-marker: not enough memory\n");
        return 1;
    }
    begin = end = now_ns();
    for (i = 0; i < groups; i++) {
        uint64_t before = end, last = n + GROUP;

        insn_mark(INSN_MARK_BEGIN);
        while (n < last) {
            emit(n++, 0);
        }
        insn_mark(INSN_MARK_END);
        end = now_ns();
        took[i] = end - before;
    }
    qsort(took, groups, sizeof(*took), compare);
    printf("{\"tool\": \"ht-marker\", \"group\": %d, \"sent\": %" PRIu64
           ", \"duration_ns\": %" PRIu64, GROUP, n, end - begin);
    print_time("p50_ns", took[groups / 2]);
    print_time("p99_ns", took[groups * 99 / 100]);
    print_time("max_ns", took[groups - 1]);
    printf("}\n");
    free(took);
    return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
    uint64_t events = 0, rate = 0;
    int c;

    while ((c = getopt(argc, argv, "hn:r:")) != -1) {
        switch (c) {
        case 'n':
            events = parse(optarg);
            break;
        case 'r':
            rate = parse(optarg);
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (!events == !rate || argc - optind != !!marker_target) {
        usage(stderr);
        return 2;
    }
    if (!marker_open(argv[optind])) {
        return 1;
    }
    if (rate) {
        at_rate(rate);
    }
    return flat_out(events);
}
