/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unit tests' shim, with a guest that may run before each load: a second
 * CPU that writes between any two looks of the host, yet repeatable.
 */
#ifndef HT_FUZZ_ATOMIC_H
#define HT_FUZZ_ATOMIC_H

#include "../../../unit/shim/qemu/atomic.h"

extern void (*fuzz_guest)(void);

#define FUZZ_GUEST() (fuzz_guest ? fuzz_guest() : (void)0)

#undef qatomic_read
#define qatomic_read(p) \
    ({ FUZZ_GUEST(); __atomic_load_n(p, __ATOMIC_RELAXED); })
#undef qatomic_load_acquire
#define qatomic_load_acquire(p) \
    ({ FUZZ_GUEST(); __atomic_load_n(p, __ATOMIC_ACQUIRE); })
#undef smp_rmb
/* As the one of the unit tests: who uses it says what it pairs with. */
#define smp_rmb() \
    ({ FUZZ_GUEST(); __atomic_thread_fence(__ATOMIC_ACQUIRE); })

#endif
