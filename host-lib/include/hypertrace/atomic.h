/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: access memory that a guest or another thread may write
 *
 * A comment at each use of an ordering operation names the operation that it
 * pairs with; tests/model/ has models that prove the order.  The fuzz targets
 * have their own atomic.h, in which a simulated guest may run before each load.
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
