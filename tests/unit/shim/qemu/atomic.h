/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HT_SHIM_ATOMIC_H
#define HT_SHIM_ATOMIC_H

#define qatomic_read(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define qatomic_set(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define qatomic_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define qatomic_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
/* As QEMU's: who uses one says what it pairs with. */
#define smp_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)    /* full */
#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)   /* loads */
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)   /* stores */

#endif
