/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace, Linux user space: make the state of a process, also after
 * fork()
 *
 * struct process, with the streams, is in memory that the kernel clears in a
 * child of fork().  The child makes another struct process when it first calls
 * the library.
 * The cleared one stays mapped, because the child's first thread may still have
 * pointers to a stream there; a cleared stream is not open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "linux-process.h"
#include "linux-sys.h"

struct process *ht_process;
__thread struct self ht_self HT_TLS_MODEL;

/*
 * Descriptors of the device's node, by which threads open streams, register
 * classes and report discarded events.  A thread has such a descriptor only
 * between ht_trace_begin_opening() and ht_trace_end_opening().  A child of
 * fork() must not inherit the descriptor: the child lacks the thread that
 * closes it, and the stream would stay open.  So fork() waits for threads in
 * this section, and no thread enters the section while another is in fork().
 * If the host hangs, fork() continues after 50 ms, and the child closes the
 * descriptors.
 *
 * Up to THREADS_MAX threads can have a descriptor at the same time.
 */
static struct descriptor {
    struct process *of;         /* NULL: free */
    int fd;
} descriptors[THREADS_MAX];

static __thread struct process *forking HT_TLS_MODEL;

static void close_inherited(struct process *parent)
{
    unsigned i;

    for (i = 0; i < THREADS_MAX; i++) {
        struct descriptor *d = &descriptors[i];

        if (__atomic_load_n(&d->of, __ATOMIC_ACQUIRE) == parent) {
            if (d->fd >= 0) {
                ht_sys_close(d->fd);
            }
            __atomic_store_n(&d->of, NULL, __ATOMIC_RELEASE);
        }
    }
}

static void fork_prepare(void)
{
    struct process *p = __atomic_load_n(&ht_process, __ATOMIC_ACQUIRE);
    unsigned tries;

    if (!p->alive) {
        return;
    }
    forking = p;
    /*
     * Full barrier: add to @forks before loading @openings.  Pairs with the
     * full barrier in ht_trace_begin_opening(): at least one of the two threads
     * sees the count of the other one.
     */
    __atomic_fetch_add(&p->forks, 1, __ATOMIC_SEQ_CST);
    for (tries = 0; tries < 100 &&
                    __atomic_load_n(&p->openings, __ATOMIC_SEQ_CST); tries++) {
        ht_sys_sleep_ns(500000);
    }
}

static void fork_parent(void)
{
    if (forking) {
        __atomic_fetch_sub(&forking->forks, 1, __ATOMIC_RELEASE);
        forking = NULL;
    }
}

static void fork_child(void)
{
    if (forking) {
        close_inherited(forking);
        forking = NULL;
    }
}

int *ht_trace_descriptor(void)
{
    unsigned i;

    for (i = 0; i < THREADS_MAX; i++) {
        struct descriptor *d = &descriptors[i];
        struct process *none = NULL;

        if (__atomic_compare_exchange_n(&d->of, &none, ht_self.process, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            d->fd = -1;
            return &d->fd;
        }
    }
    return NULL;
}

void ht_trace_close_descriptor(int *fd)
{
    struct descriptor *d = (struct descriptor *)
        ((char *)fd - offsetof(struct descriptor, fd));
    const int was = *fd;
    int r = 0;

    *fd = -1;
    if (was >= 0) {
        r = ht_sys_close(was);
    }
    /*
     * If a seccomp filter refuses close(), the entry stays in use: at most
     * THREADS_MAX descriptors can leak.
     */
    if (r == 0 || r == -EBADF) {
        __atomic_store_n(&d->of, NULL, __ATOMIC_RELEASE);
    }
}

/*
 * Block signals, since a handler could leave the section by siglongjmp().
 */
bool ht_trace_begin_opening(uint64_t *mask)
{
    if (ht_self.opening || !ht_sys_block_signals(mask)) {
        return false;
    }
    /* Add to @openings before loading @forks; pairs with fork_prepare(). */
    __atomic_fetch_add(&ht_self.process->openings, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ht_self.process->forks, __ATOMIC_SEQ_CST)) {
        __atomic_fetch_sub(&ht_self.process->openings, 1, __ATOMIC_RELEASE);
        ht_sys_restore_signals(mask);
        return false;
    }
    ht_self.opening = true;
    ht_compiler_barrier();
    return true;
}

void ht_trace_end_opening(const uint64_t *mask)
{
    ht_compiler_barrier();
    ht_self.opening = false;
    __atomic_fetch_sub(&ht_self.process->openings, 1, __ATOMIC_RELEASE);
    ht_sys_restore_signals(mask);
}

struct process *ht_new_process(void)
{
    struct process *p;
    int error;

    p = ht_sys_map(sizeof(*p), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &error);
    if (error) {
        return NULL;
    }
    p->pid = ht_sys_getpid();
    if (p->pid <= 0 ||
        ht_sys_madvise(p, sizeof(*p), MADV_WIPEONFORK)) {
        ht_sys_unmap(p, sizeof(*p));
        return NULL;
    }
    p->alive = 1;
    return p;
}

struct process *ht_this_process(void)
{
    struct process *p = __atomic_load_n(&ht_process, __ATOMIC_ACQUIRE), *new;

    if (ht_unlikely(p && !p->alive)) {
        new = ht_new_process();
        if (!new) {
            return NULL;
        }
        if (__atomic_compare_exchange_n(&ht_process, &p, new, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            close_inherited(p);
            p = new;
        } else {
            /* another thread was faster: use its structure */
            ht_sys_unmap(new, sizeof(*new));
        }
    }
    if (ht_unlikely(ht_self.process != p)) {
        ht_self = (struct self) { .process = p };
    }
    return p;
}

void ht_watch_forks(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}
