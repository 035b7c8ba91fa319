/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: threads and locks of the program that the engine is part of
 *
 * QEMU implements these functions with QemuThread and QemuMutex
 * (hw/hypertrace/thread.c): QEMU's signal mask and lock statistics apply.
 * Other programs link an implementation with pthreads
 * (engine/thread-pthread.c).
 */
#ifndef HYPERTRACE_THREAD_H
#define HYPERTRACE_THREAD_H

#include "hypertrace/base.h"

/* Only the implementation uses the member @impl of the following types. */
typedef struct HtMutex {
    void *impl;
} HtMutex;

typedef struct HtCond {
    void *impl;
} HtCond;

typedef struct HtThread {
    void *impl;
} HtThread;

void ht_mutex_init(HtMutex *m);
void ht_mutex_destroy(HtMutex *m);
void ht_mutex_lock(HtMutex *m);
/* ht_mutex_trylock: take a lock if it is free; returns false if it is held */
bool ht_mutex_trylock(HtMutex *m);
void ht_mutex_unlock(HtMutex *m);

void ht_cond_init(HtCond *c);
void ht_cond_destroy(HtCond *c);
void ht_cond_signal(HtCond *c);
void ht_cond_broadcast(HtCond *c);
void ht_cond_wait(HtCond *c, HtMutex *m);

/**
 * ht_cond_wait_until: wait for a signal or a time
 * @c: the condition
 * @m: its lock, held
 * @end_ns: time of ht_now_ns() at which the wait ends, in ns
 *
 * Returns: false if @end_ns was reached; true otherwise, maybe without a signal
 */
bool ht_cond_wait_until(HtCond *c, HtMutex *m, int64_t end_ns);

/**
 * ht_thread_start: run a function in a thread of its own
 * @t: the thread, for ht_thread_join()
 * @name: up to 15 characters
 * @fn: the function
 * @opaque: its argument
 */
void ht_thread_start(HtThread *t, const char *name, void *(*fn)(void *),
                     void *opaque);
void ht_thread_join(HtThread *t);

/* ht_now_ns: read CLOCK_MONOTONIC; returns ns */
int64_t ht_now_ns(void);

#endif /* HYPERTRACE_THREAD_H */
