/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ht-marker: as one event, switch to a second thread and back
 *
 * Compare a run in which the kernel traces switches with one in which it does
 * not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "ht-marker.h"

const char *const marker_target;

static void *other(void *opaque)
{
    for (;;) {
        sched_yield();
    }
    return opaque;
}

/*
 * Start a second thread with the same real-time priority on the processor of
 * this thread, so that sched_yield() of one thread switches to the other.
 */
bool marker_open(const char *target)
{
    struct sched_param param = { .sched_priority = 1 };
    cpu_set_t one;
    pthread_t thread;
    int err;

    (void)target;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    err = sched_setaffinity(0, sizeof(one), &one) ||
          sched_setscheduler(0, SCHED_FIFO, &param) ? errno :
          pthread_create(&thread, NULL, other, NULL);
    if (err) {
        fprintf(stderr, "ht-marker: two threads on a processor: %s\n",
                strerror(err));
    }
    return !err;
}

bool marker_emit(uint64_t n, uint64_t time)
{
    (void)n;
    (void)time;
    return !sched_yield();
}
