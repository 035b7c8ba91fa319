/* SPDX-License-Identifier: MIT */
/*
 * libhypertrace: code that depends on the processor and the environment
 *
 * There are three environments: hosted user space, the Linux kernel, and
 * freestanding.  The processors are x86-64 and little-endian 64-bit Arm.
 */
#ifndef HYPERTRACE_ARCH_H
#define HYPERTRACE_ARCH_H

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/barrier.h>
#else
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if __STDC_HOSTED__
#include <errno.h>
#endif
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "hypertrace: packets are little-endian, and so must the guest be"
#endif

/*
 * Errno numbers for environments without a libc.  They are Linux's, so that the
 * library and its caller may be compiled for different environments.
 */
#ifndef EINVAL
#define EIO             5
#define EAGAIN          11
#define EBUSY           16
#define EEXIST          17
#define ENODEV          19
#define EINVAL          22
#define ENOSPC          28
#endif
#ifndef ENOENT
#define ENOENT          2
#endif
#ifndef ENODATA
#define ENODATA         61
#endif
#ifndef EPROTO
#define EPROTO          71
#endif
#ifndef ETIMEDOUT
#define ETIMEDOUT       110
#endif

#define ht_likely(x)    __builtin_expect(!!(x), 1)
#define ht_unlikely(x)  __builtin_expect(!!(x), 0)

/*
 * Attribute of a function whose stores race harmlessly with loads of the host:
 * it keeps the thread sanitizer from reporting these races.  The function's
 * comment says what the host may see.
 */
#ifdef __SANITIZE_THREAD__
#define ht_benign_race  __attribute__((__noinline__, no_sanitize_thread))
#else
#define ht_benign_race
#endif

/*
 * TLS model of a thread-local variable.  With a dynamic model, glibc may
 * allocate the variable at its first use, in the middle of an event.  With the
 * initial-exec model, glibc takes it from a small reserve when it loads the
 * shared object.  musl has no reserve, but never allocates at the first use.
 */
#ifdef __GLIBC__
#define HT_TLS_MODEL    __attribute__((tls_model("initial-exec")))
#else
#define HT_TLS_MODEL
#endif

/* Clock ---------------------------------------------------------------- */

/* The counter that ht_clock() reads; the device's caps.counter must equal it */
#if defined(__x86_64__)
#define HT_COUNTER      HT_COUNTER_TSC
#elif defined(__aarch64__)
#define HT_COUNTER      HT_COUNTER_CNTVCT
#endif

/**
 * ht_clock() - read the guest's counter
 *
 * The processor may reorder the read with other instructions: an event does not
 * need a serialized read, which takes longer.  A test may define HT_CLOCK
 * instead.
 */
static inline uint64_t ht_clock(void)
{
#if defined(HT_CLOCK)
    return HT_CLOCK;
#elif defined(__x86_64__)
    uint64_t lo, hi;            /* rdtsc clears the upper halves of rax, rdx */

    __asm__ volatile("rdtsc" : "=a" (lo), "=d" (hi));
    return hi << 32 | lo;
#elif defined(__aarch64__)
    uint64_t v;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r" (v));
    return v;
#else
#error "hypertrace: no clock is known for this processor"
#endif
}

/* Ordering --------------------------------------------------------------- */

/*
 * Loads, stores and fences for memory that the guest shares with the host or
 * between its threads.  In a kernel built for one processor, smp_*() do not
 * order accesses against those of the host, so use virt_*().  tests/model/ has
 * proofs of the protocols between guest and host.
 */
#define ht_compiler_barrier() __asm__ volatile("" : : : "memory")

static inline uint64_t ht_load_relaxed(const uint64_t *p)
{
#ifdef __KERNEL__
    return READ_ONCE(*p);
#else
    return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

static inline uint32_t ht_load_relaxed32(const uint32_t *p)
{
#ifdef __KERNEL__
    return READ_ONCE(*p);
#else
    return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

static inline void ht_store_relaxed(uint64_t *p, uint64_t v)
{
#ifdef __KERNEL__
    WRITE_ONCE(*p, v);
#else
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}

static inline void ht_store_relaxed32(uint32_t *p, uint32_t v)
{
#ifdef __KERNEL__
    WRITE_ONCE(*p, v);
#else
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}

static inline uint64_t ht_load_acquire(const uint64_t *p)
{
#ifdef __KERNEL__
    return virt_load_acquire(p);
#else
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

static inline uint32_t ht_load_acquire32(const uint32_t *p)
{
#ifdef __KERNEL__
    return virt_load_acquire(p);
#else
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

static inline void ht_store_release(uint64_t *p, uint64_t v)
{
#ifdef __KERNEL__
    virt_store_release(p, v);
#else
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

static inline void ht_store_release32(uint32_t *p, uint32_t v)
{
#ifdef __KERNEL__
    virt_store_release(p, v);
#else
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

/**
 * ht_store_fence() - order earlier stores before later stores
 */
static inline void ht_store_fence(void)
{
#if defined(__KERNEL__)
    virt_wmb();
#elif defined(__x86_64__)
    ht_compiler_barrier();      /* x86 makes stores visible in program order */
#else
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/**
 * ht_full_fence() - order all earlier accesses before all later ones
 *
 * On x86 a locked instruction on the stack takes less time than mfence.
 */
static inline void ht_full_fence(void)
{
#if defined(__KERNEL__)
    virt_mb();
#elif defined(__x86_64__)
    __asm__ volatile("lock; orq $0, (%%rsp)" : : : "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/**
 * ht_atomic_inc() - add one atomically
 * @p: the counter, to which interrupting contexts and, in a kernel, other
 *     processors may add at the same time
 */
static inline void ht_atomic_inc(uint64_t *p)
{
#ifdef __KERNEL__
    atomic64_inc((atomic64_t *)p);
#else
    __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
#endif
}

/**
 * ht_atomic_next() - add one atomically
 * @p: the counter
 *
 * Return: the new value, which no other caller gets until the counter wraps.
 */
static inline uint32_t ht_atomic_next(uint32_t *p)
{
#ifdef __KERNEL__
    return atomic_inc_return_relaxed((atomic_t *)p);
#else
    return __atomic_add_fetch(p, 1, __ATOMIC_RELAXED);
#endif
}

/* Prefetching -------------------------------------------------------------- */

/*
 * Distance from an event to the cache line to prefetch, in bytes.  It is long
 * enough to fetch the line from another processor in time, and so short that
 * the line is still cached when it is written.
 */
#define HT_PREFETCH_AHEAD       2048

/**
 * ht_prefetch_write() - prefetch a cache line for writing
 * @p: any address; never faults, not even after the end of a mapping
 *
 * The consumer's processor has a copy of each line of the ring that it has
 * read.  Without the prefetch, a store waits until that processor gives up the
 * line.
 *
 * On x86 do not use __builtin_prefetch(): in code for the oldest processors it
 * prefetches for reading, which is slower than no prefetch while a consumer
 * runs.
 */
static inline void ht_prefetch_write(const uint8_t *p)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m" (*p));
#else
    __builtin_prefetch(p, 1, 3);
#endif
}

/* Unaligned stores --------------------------------------------------------- */

struct ht_packed16 {
    uint16_t v;
} __attribute__((packed, may_alias));

struct ht_packed32 {
    uint32_t v;
} __attribute__((packed, may_alias));

struct ht_packed64 {
    uint64_t v;
} __attribute__((packed, may_alias));

static inline void ht_put8(void *p, uint8_t v)
{
    *(uint8_t *)p = v;
}

static inline void ht_put16(void *p, uint16_t v)
{
    ((struct ht_packed16 *)p)->v = v;
}

static inline void ht_put32(void *p, uint32_t v)
{
    ((struct ht_packed32 *)p)->v = v;
}

static inline void ht_put64(void *p, uint64_t v)
{
    ((struct ht_packed64 *)p)->v = v;
}

/* Memory ------------------------------------------------------------------- */

/*
 * A freestanding program may lack memcpy() and memset().  The barriers and the
 * assembler keep the compiler from replacing a loop by a call of them.
 */
static inline void ht_copy(void *to, const void *from, size_t n)
{
#if defined(__KERNEL__) || __STDC_HOSTED__
    __builtin_memcpy(to, from, n);
#elif defined(__x86_64__)
    __asm__ volatile("rep movsb"
                     : "+D" (to), "+S" (from), "+c" (n) : : "memory");
#else
    uint8_t *t = to;
    const uint8_t *f = from;

    while (n--) {
        *t++ = *f++;
        ht_compiler_barrier();
    }
#endif
}

static inline void ht_zero(void *to, size_t n)
{
#if defined(__KERNEL__) || __STDC_HOSTED__
    __builtin_memset(to, 0, n);
#else
    uint8_t *t = to;

    while (n--) {
        *t++ = 0;
        ht_compiler_barrier();
    }
#endif
}

/**
 * ht_strlen() - get the length of a string
 * @s: the string, or NULL, whose length is 0
 */
static inline size_t ht_strlen(const char *s)
{
    if (!s) {
        return 0;
    }
#if defined(__KERNEL__) || __STDC_HOSTED__
    /* for a literal, the compiler computes the length */
    return __builtin_strlen(s);
#else
    {
        size_t n = 0;

        while (s[n]) {
            n++;
            ht_compiler_barrier();
        }
        return n;
    }
#endif
}

#endif /* HYPERTRACE_ARCH_H */
