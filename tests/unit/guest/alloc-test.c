/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: after a stream's first event, neither an emit nor the host's
 * consumer allocates memory
 *
 * Replacements of malloc(), calloc(), realloc() and memalign() count the calls
 * of the whole process.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "guest-testlib.h"
#include "guest-events.h"
#include "alloc-test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    puts("1..0 # SKIP the sanitizer has an allocator of its own");
    return 0;
}
#else

#define EVENTS 200000

static unsigned allocations;

static void allocated(void)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
    allocated();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    allocated();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    allocated();
    return __libc_realloc(p, size);
}

void *memalign(size_t align, size_t size)
{
    allocated();
    return __libc_memalign(align, size);
}

static void count(void *opaque, const HtRun *run)
{
    uint64_t *n = opaque;

    *n += run->events;
}

static void run(struct ht_loopback_config cfg)
{
    uint16_t three[3] = { };
    struct ht_loopback *lb;
    struct ht_device *dev;
    struct ht_stream s;
    uint64_t i, got = 0;
    unsigned before;

    cfg.deliver = count;
    cfg.opaque = &got;
    cfg.packets = 4;
    cfg.packet_size = 4096;
    before = ht_atomic_read(&allocations);
    lb = ht_loopback_new(&cfg);
    dev = ht_loopback_device(lb);
    g_assert_cmpint(ht_register(dev, &ht_class_mixed), >, 0);
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    /* check the counter: creating a device allocates */
    g_assert_cmpuint(ht_atomic_read(&allocations), >, before + 5);

    for (i = 0; i < EVENTS; i++) {
        if (i == 1) {
            /* wait until the host's thread has polled the ring */
            g_assert_cmpint(ht_stream_flush(&s), ==, 0);
            while (cfg.host == HT_LOOPBACK_THREAD &&
                   ht_load_relaxed(&s.ring->host.wake) == HT_WAKE_NEVER) {
                sched_yield();
            }
            before = ht_atomic_read(&allocations);
        }
        ht_emit_mixed(&s, i, i, i, i, "text", i, i, three, i, i, "more", i, i,
                      i, i, i, "12345");
    }
    g_assert_cmpuint(ht_atomic_read(&allocations), ==, before);

    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(got, >, 0);
    g_assert_cmpuint(got + s.lost, <=, EVENTS);
    ht_loopback_free(lb);
}

static void test_hypercall(void)
{
    run((struct ht_loopback_config) { .channel = HT_CHANNEL_HYPERCALL });
}

static void test_shm(void)
{
    run((struct ht_loopback_config) {
            .channel = HT_CHANNEL_SHM, .host = HT_LOOPBACK_THREAD,
        });
}

static void test_overwrite(void)
{
    run((struct ht_loopback_config) {
            .channel = HT_CHANNEL_SHM, .mode = HT_MODE_OVERWRITE,
            .host = HT_LOOPBACK_STEP,
        });
}

static void test_virtio(void)
{
    run((struct ht_loopback_config) { .channel = HT_CHANNEL_VIRTIO });
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/alloc/hypercall", test_hypercall);
    g_test_add_func("/guest/alloc/shm", test_shm);
    g_test_add_func("/guest/alloc/overwrite", test_overwrite);
    g_test_add_func("/guest/alloc/virtio", test_virtio);
    return g_test_run();
}
#endif
