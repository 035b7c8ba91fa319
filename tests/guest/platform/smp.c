/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: start the second processor, and let it call
 * functions
 */
#include "hypertrace/arch.h"
#include "internal.h"
#include "libc.h"
#include "smp.h"

/*
 * Address at which the second processor starts: a page below 1 MiB that the
 * payload uses for nothing else
 */
#define SMP_START       0x8000

/* Local APIC: interrupt command register */
#define APIC_ICR        ((uint8_t *)(uintptr_t)0xfee00300)
/* destination: all processors except the sending one, here the second one */
#define ICR_OTHERS      0x000c0000u
#define ICR_ASSERT      0x00004000u
#define ICR_INIT        0x00000500u
#define ICR_STARTUP     0x00000600u
/* the pause after INIT is a second / INIT_DIVISOR, the required 10 ms */
#define INIT_DIVISOR    100

/*
 * The first processor stores the function and its argument, then increments
 * `go`, which the second processor polls.
 */
static void (*work_fn)(void *arg);
static void *work_arg;
static uint32_t go;                     /* number of calls requested */
static uint32_t done;                   /* number of calls completed */
static uint32_t up;

void smp_second(void)
{
    uint32_t seen = 0;

    __atomic_store_n(&up, 1, __ATOMIC_RELEASE);
    for (;;) {
        while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) == seen) {
            asm volatile("pause");
        }
        seen++;
        work_fn(work_arg);
        __atomic_store_n(&done, seen, __ATOMIC_RELEASE);
    }
}

static void pass(uint64_t ticks)
{
    uint64_t since = ht_clock();

    while (ht_clock() - since < ticks &&
           !__atomic_load_n(&up, __ATOMIC_ACQUIRE)) {
        asm volatile("pause");
    }
}

bool smp_start(uint64_t hz)
{
    if (up) {
        return true;
    }
    memcpy((void *)(uintptr_t)SMP_START, smp_trampoline,
           smp_trampoline_end - smp_trampoline);
    ht_bm_write32(APIC_ICR, ICR_OTHERS | ICR_ASSERT | ICR_INIT);
    pass(hz / INIT_DIVISOR);
    ht_bm_write32(APIC_ICR, ICR_OTHERS | ICR_ASSERT | ICR_STARTUP |
                            SMP_START >> 12);
    pass(2 * hz);
    return up;
}

void smp_run(void (*fn)(void *arg), void *arg)
{
    work_fn = fn;
    work_arg = arg;
    /* Pairs with the load-acquire in smp_second(). */
    __atomic_store_n(&go, go + 1, __ATOMIC_RELEASE);
}

void smp_wait(void)
{
    while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != go) {
        asm volatile("pause");
    }
}
