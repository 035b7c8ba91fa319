/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: a guest in this process, over memory alone
 *
 * This file is a port: it has the functions that the guest library calls.
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/thread.h"
#include <sys/mman.h>
#include "memory-guest.h"

static MgGuest *to_guest(struct ht_device *dev)
{
    return (MgGuest *)((char *)dev - offsetof(MgGuest, dev));
}

static uint64_t now_ms(struct ht_device *dev)
{
    (void)dev;
    return ht_now_ns() / 1000000;
}

static int pause_50us(struct ht_device *dev, unsigned tries)
{
    (void)dev;
    g_usleep(tries * 50);
    return 0;
}

static int control(struct ht_device *dev, struct ht_msg *msg, uint32_t size)
{
    MgGuest *g = to_guest(dev);
    int r;

    pthread_mutex_lock(&g->mailbox);
    r = ht_memory_exchange(dev, &g->link, msg, size);
    pthread_mutex_unlock(&g->mailbox);
    return r;
}

static int map(struct ht_device *dev, uint32_t stream,
               struct ht_ring_control **ring, uint8_t **packets)
{
    MgGuest *g = to_guest(dev);
    uint8_t *p = g->base + ht_ring_at(&dev->caps, stream);

    *ring = (struct ht_ring_control *)p;
    *packets = p + HT_PACKETS_OFFSET;
    return 0;
}

static int relax(struct ht_device *dev, unsigned tries)
{
    (void)dev;
    g_usleep(1000);
    return tries < 5000 ? 0 : -ETIMEDOUT;
}

static void lock(struct ht_device *dev)
{
    pthread_mutex_lock(&to_guest(dev)->control);
}

static void unlock(struct ht_device *dev)
{
    pthread_mutex_unlock(&to_guest(dev)->control);
}

static const struct ht_port_ops ops = {
    .control = control,
    .map = map,
    .relax = relax,
    .lock = lock,
    .unlock = unlock,
};

void mg_new(MgGuest *g, int fd)
{
    struct stat st;

    memset(g, 0, sizeof(*g));
    g_assert_cmpint(fstat(fd, &st), ==, 0);
    g->size = st.st_size;
    g->base = mmap(NULL, g->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(g->base != MAP_FAILED);
    g->page = (struct ht_memory *)g->base;
    pthread_mutex_init(&g->mailbox, NULL);
    pthread_mutex_init(&g->control, NULL);
}

bool mg_try_connect(MgGuest *g, unsigned ms)
{
    struct ht_msg takeover = { .type = HT_MSG_TAKEOVER,
                               .size = sizeof(takeover) };
    int64_t end = ht_now_ns() + ms * INT64_C(1000000);
    int r;

    g->dev.caps = g->page->caps;
    g->dev.ops = &ops;
    g->dev.enable = g->base + g->dev.caps.enable_offset;
    g_assert_true(ht_caps_fit(&g->dev.caps, g->size));
    g_assert_cmpint(ht_device_init(&g->dev), ==, 0);
    g->link = (struct ht_link) {
        .mem = g->page,
        .now = now_ms,
        .pause = pause_50us,
    };
    ht_link_init(&g->dev, &g->link);
    while ((r = ht_link_attach(&g->dev, &g->link)) == -ENODEV &&
           ht_now_ns() < end) {
        g_usleep(1000);
    }
    return r == 0 && ht_control(&g->dev, &takeover) == 0;
}

void mg_connect(MgGuest *g)
{
    g_assert_true(mg_try_connect(g, 10000));
}

void mg_free(MgGuest *g)
{
    munmap(g->base, g->size);
    pthread_mutex_destroy(&g->mailbox);
    pthread_mutex_destroy(&g->control);
}
