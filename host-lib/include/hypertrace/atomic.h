/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: access memory that a guest or another thread may write
 *
 * Comments at ordering operations name the operations that they pair with.
 * tests/model/ has models of the protocols between host and guest.  The fuzz
 * targets have their own atomic.h, in which a simulated guest may run before
 * ht_atomic_read(), ht_atomic_load_acquire() and ht_fence_acquire().
 */
#ifndef HYPERTRACE_ATOMIC_H
#define HYPERTRACE_ATOMIC_H

#define ht_atomic_read(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define ht_atomic_set(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define ht_atomic_add(p, n) ((void)__atomic_fetch_add(p, n, __ATOMIC_RELAXED))
#define ht_atomic_exchange(p, v) __atomic_exchange_n(p, v, __ATOMIC_RELAXED)
#define ht_atomic_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define ht_atomic_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define ht_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define ht_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define ht_fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)

#endif /* HYPERTRACE_ATOMIC_H */
