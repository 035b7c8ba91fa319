/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: threads and locks with pthreads, for programs other than QEMU
 */
#include "hypertrace/base.h"
#include <pthread.h>
#include <time.h>
#include "hypertrace/thread.h"

/*
 * Abort if a pthread function has failed with @error: the cause is a bug of the
 * caller, or a lack of memory or of threads.
 */
static void check(int error)
{
    if (error) {
        g_error("pthread: %s", g_strerror(error));
    }
}

void ht_mutex_init(HtMutex *m)
{
    m->impl = g_new(pthread_mutex_t, 1);
    check(pthread_mutex_init(m->impl, NULL));
}

void ht_mutex_destroy(HtMutex *m)
{
    check(pthread_mutex_destroy(m->impl));
    g_free(m->impl);
}

void ht_mutex_lock(HtMutex *m)
{
    check(pthread_mutex_lock(m->impl));
}

bool ht_mutex_trylock(HtMutex *m)
{
    return pthread_mutex_trylock(m->impl) == 0;
}

void ht_mutex_unlock(HtMutex *m)
{
    check(pthread_mutex_unlock(m->impl));
}

void ht_cond_init(HtCond *c)
{
    pthread_condattr_t attr;

    c->impl = g_new(pthread_cond_t, 1);
    check(pthread_condattr_init(&attr));
    check(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    check(pthread_cond_init(c->impl, &attr));
    check(pthread_condattr_destroy(&attr));
}

void ht_cond_destroy(HtCond *c)
{
    check(pthread_cond_destroy(c->impl));
    g_free(c->impl);
}

void ht_cond_signal(HtCond *c)
{
    check(pthread_cond_signal(c->impl));
}

void ht_cond_broadcast(HtCond *c)
{
    check(pthread_cond_broadcast(c->impl));
}

void ht_cond_wait(HtCond *c, HtMutex *m)
{
    check(pthread_cond_wait(c->impl, m->impl));
}

bool ht_cond_wait_until(HtCond *c, HtMutex *m, int64_t end_ns)
{
    struct timespec end = {
        .tv_sec = end_ns / 1000000000,
        .tv_nsec = end_ns % 1000000000,
    };
    int error = pthread_cond_timedwait(c->impl, m->impl, &end);

    if (error != ETIMEDOUT) {
        check(error);
    }
    return error == 0;
}

void ht_thread_start(HtThread *t, const char *name, void *(*fn)(void *),
                     void *opaque)
{
    pthread_t *thread = g_new(pthread_t, 1);

    check(pthread_create(thread, NULL, fn, opaque));
    pthread_setname_np(*thread, name);
    t->impl = thread;
}

void ht_thread_join(HtThread *t)
{
    pthread_t *thread = t->impl;

    check(pthread_join(*thread, NULL));
    g_free(thread);
    t->impl = NULL;
}

int64_t ht_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
