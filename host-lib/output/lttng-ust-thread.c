/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: keep threads out of LTTng-UST when the process ends
 *
 * LTTng-UST's destructor clears the pointers that tracepoints call, and takes
 * locks that a registration may hold.  Threads must not use these pointers or
 * hold these locks when the destructor runs.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/lttng-ust-thread.h"

typedef struct UstThread {
    struct UstThread *next;
    int inside;
    bool used;                  /* a running thread uses this entry */
} UstThread;

static GMutex threads_lock;
static UstThread *threads;
static bool ending;

static void thread_gone(void *opaque)
{
    UstThread *t = opaque;

    g_mutex_lock(&threads_lock);
    t->used = false;
    g_mutex_unlock(&threads_lock);
}

static UstThread *this_thread(void)
{
    static GPrivate key = G_PRIVATE_INIT(thread_gone);
    static __thread UstThread *self;
    UstThread *t;

    if (G_LIKELY(self)) {
        return self;
    }
    g_mutex_lock(&threads_lock);
    for (t = threads; t && t->used; t = t->next) {
        continue;
    }
    if (!t) {
        t = g_new0(UstThread, 1);
        t->next = threads;
        threads = t;
    }
    t->used = true;
    g_mutex_unlock(&threads_lock);
    g_private_set(&key, t);
    self = t;
    return t;
}

bool ht_ust_enter(void)
{
    UstThread *t = this_thread();

    /*
     * Full barrier: store `inside` before loading `ending`.  Pairs with the one
     * in ht_ust_end(): either this thread sees `ending`, or ht_ust_end() sees
     * `inside`.
     */
    __atomic_exchange_n(&t->inside, 1, __ATOMIC_SEQ_CST);
    if (G_UNLIKELY(__atomic_load_n(&ending, __ATOMIC_SEQ_CST))) {
        ht_atomic_store_release(&t->inside, 0);
        return false;
    }
    return true;
}

void ht_ust_leave(void)
{
    /* Pairs with the load-acquire in ht_ust_end(). */
    ht_atomic_store_release(&this_thread()->inside, 0);
}

bool ht_ust_end(unsigned ms)
{
    gint64 end = g_get_monotonic_time() + ms * G_GINT64_CONSTANT(1000);
    UstThread *t;
    bool inside;

    /*
     * Full barrier: store `ending` before loading `inside`.  Pairs with the one
     * in ht_ust_enter().
     */
    __atomic_store_n(&ending, true, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    do {
        inside = false;
        g_mutex_lock(&threads_lock);
        for (t = threads; t; t = t->next) {
            inside |= ht_atomic_load_acquire(&t->inside);
        }
        g_mutex_unlock(&threads_lock);
        if (!inside) {
            return true;
        }
        g_usleep(1000);
    } while (g_get_monotonic_time() < end);
    return false;
}
