/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hypertrace: host-lib's threads and locks (hypertrace/thread.h) in QEMU */
#include "qemu/osdep.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "hypertrace/thread.h"

void ht_mutex_init(HtMutex *m)
{
    m->impl = g_new(QemuMutex, 1);
    qemu_mutex_init(m->impl);
}

void ht_mutex_destroy(HtMutex *m)
{
    qemu_mutex_destroy(m->impl);
    g_free(m->impl);
}

void ht_mutex_lock(HtMutex *m)
{
    qemu_mutex_lock((QemuMutex *)m->impl);
}

bool ht_mutex_trylock(HtMutex *m)
{
    return qemu_mutex_trylock((QemuMutex *)m->impl) == 0;
}

void ht_mutex_unlock(HtMutex *m)
{
    qemu_mutex_unlock(m->impl);
}

void ht_cond_init(HtCond *c)
{
    c->impl = g_new(QemuCond, 1);
    qemu_cond_init(c->impl);
}

void ht_cond_destroy(HtCond *c)
{
    qemu_cond_destroy(c->impl);
    g_free(c->impl);
}

void ht_cond_signal(HtCond *c)
{
    qemu_cond_signal(c->impl);
}

void ht_cond_broadcast(HtCond *c)
{
    qemu_cond_broadcast(c->impl);
}

void ht_cond_wait(HtCond *c, HtMutex *m)
{
    qemu_cond_wait(c->impl, (QemuMutex *)m->impl);
}

bool ht_cond_wait_until(HtCond *c, HtMutex *m, int64_t end_ns)
{
    int64_t left = end_ns - get_clock();

    return left > 0 &&
           qemu_cond_timedwait((QemuCond *)c->impl, (QemuMutex *)m->impl,
                               MIN(DIV_ROUND_UP(left, SCALE_MS), INT_MAX));
}

void ht_thread_start(HtThread *t, const char *name, void *(*fn)(void *),
                     void *opaque)
{
    t->impl = g_new(QemuThread, 1);
    qemu_thread_create(t->impl, name, fn, opaque, QEMU_THREAD_JOINABLE);
}

void ht_thread_join(HtThread *t)
{
    qemu_thread_join(t->impl);
    g_free(t->impl);
    t->impl = NULL;
}

int64_t ht_now_ns(void)
{
    return get_clock();
}
