/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host-lib's atomic.h with the hook fuzz_guest() before each ht_atomic_read(),
 * ht_atomic_load_acquire() and ht_fence_acquire(). A fuzz target runs the guest
 * in this hook: like a second CPU that writes between two loads of the host,
 * but repeatable
 */
#ifndef HT_FUZZ_ATOMIC_H
#define HT_FUZZ_ATOMIC_H

#include "../../../../host-lib/include/hypertrace/atomic.h"

extern void (*fuzz_guest)(void);

#define FUZZ_GUEST() (fuzz_guest ? fuzz_guest() : (void)0)

#undef ht_atomic_read
#define ht_atomic_read(p) \
    ({ FUZZ_GUEST(); __atomic_load_n(p, __ATOMIC_RELAXED); })
#undef ht_atomic_load_acquire
#define ht_atomic_load_acquire(p) \
    ({ FUZZ_GUEST(); __atomic_load_n(p, __ATOMIC_ACQUIRE); })
#undef ht_fence_acquire
#define ht_fence_acquire() \
    ({ FUZZ_GUEST(); __atomic_thread_fence(__ATOMIC_ACQUIRE); })

#endif
