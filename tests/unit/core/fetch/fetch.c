/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watch the loads of instrumented code, and flip bytes that are read again
 */
#include "fetch.h"

#define REGIONS 4

static struct Region {
    uint8_t *p;
    size_t size;
    bool keep;
    uint8_t *seen;
    uint8_t *flipped;
} regions[REGIONS];
static unsigned nr_regions;
static bool running, flipping;
static size_t bytes;

void fetch_watch(void *p, size_t size, bool keep)
{
    g_assert_cmpuint(nr_regions, <, REGIONS);
    regions[nr_regions++] = (struct Region) {
        .p = p,
        .size = size,
        .keep = keep,
        .seen = g_malloc0(size),
        .flipped = g_malloc0(size),
    };
}

void fetch_forget(void)
{
    while (nr_regions) {
        nr_regions--;
        g_free(regions[nr_regions].seen);
        g_free(regions[nr_regions].flipped);
    }
}

void fetch_begin(bool flip)
{
    unsigned i;

    for (i = 0; i < nr_regions; i++) {
        if (!regions[i].keep) {
            memset(regions[i].seen, 0, regions[i].size);
        }
    }
    bytes = 0;
    flipping = flip;
    running = true;
}

size_t fetch_end(void)
{
    unsigned i;
    size_t k;

    running = false;
    for (i = 0; i < nr_regions; i++) {
        struct Region *r = &regions[i];

        for (k = 0; k < r->size; k++) {
            r->p[k] ^= r->flipped[k];
        }
        memset(r->flipped, 0, r->size);
    }
    return bytes;
}

static void load(const void *from, size_t n)
{
    uintptr_t begin = (uintptr_t)from, end = begin + n;
    unsigned i;

    for (i = 0; running && i < nr_regions; i++) {
        struct Region *r = &regions[i];
        uintptr_t at = MAX(begin, (uintptr_t)r->p);

        for (; at < MIN(end, (uintptr_t)r->p + r->size); at++) {
            size_t k = at - (uintptr_t)r->p;

            bytes++;
            if (flipping && r->seen[k]) {
                r->p[k] ^= 0xff;
                r->flipped[k] ^= 0xff;
            }
            r->seen[k] = 1;
        }
    }
}

void *fetch_memcpy(void *to, const void *from, size_t n)
{
    load(from, n);
    return memcpy(to, from, n);
}

#define READ(n)                                                     \
    void __tsan_read##n(const void *p) { load(p, n); }              \
    void __tsan_unaligned_read##n(const void *p) { load(p, n); }    \
    void __tsan_write##n(const void *p) { (void)p; }                \
    void __tsan_unaligned_write##n(const void *p) { (void)p; }
READ(1)
READ(2)
READ(4)
READ(8)
READ(16)

uint32_t __tsan_atomic32_load(const uint32_t *p, int order)
{
    (void)order;
    load(p, sizeof(*p));
    return *p;
}

uint64_t __tsan_atomic64_load(const uint64_t *p, int order)
{
    (void)order;
    load(p, sizeof(*p));
    return *p;
}

void __tsan_atomic32_store(uint32_t *p, uint32_t v, int order)
{
    (void)order;
    *p = v;
}

void __tsan_atomic64_store(uint64_t *p, uint64_t v, int order)
{
    (void)order;
    *p = v;
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(const void *p, size_t n)
{
    load(p, n);
}

void __tsan_write_range(void *p, size_t n)
{
    (void)p;
    (void)n;
}

void __tsan_atomic_thread_fence(int order)
{
    (void)order;
}
