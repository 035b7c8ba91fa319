/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: a guest in this process, over memory alone
 *
 * Written from abi.h, so that it is a second opinion about the mailbox.
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

/* Wait for the reply; a host is lost if its beat stands still */
static int wait_done(MgGuest *g, uint32_t go)
{
    uint64_t beat = ht_atomic_read(&g->page->beat);
    int64_t since = ht_now_ns();

    for (;;) {
        /* Pairs with the host's store-release of done after the reply. */
        if (ht_atomic_load_acquire(&g->page->done) == go) {
            return 0;
        }
        /* Pairs with the store-release of the epoch of a host that attaches. */
        if (ht_atomic_load_acquire(&g->page->caps.epoch) != g->epoch) {
            return -ESTALE;
        }
        if (ht_atomic_read(&g->page->beat) != beat) {
            beat = ht_atomic_read(&g->page->beat);
            since = ht_now_ns();
        } else if (ht_now_ns() - since > HT_BEAT_LOST_MS * INT64_C(1000000)) {
            return -ETIMEDOUT;
        }
        g_usleep(20);
    }
}

static int control(struct ht_device *dev, struct ht_msg *msg, uint32_t size)
{
    MgGuest *g = to_guest(dev);
    const uint32_t bytes = ht_request_bytes(msg, size);
    uint8_t *box = g->base + dev->caps.mailbox_offset;
    uint32_t go;
    int r;

    if (ht_atomic_load_acquire(&g->page->caps.epoch) != g->epoch) {
        return -ESTALE;
    }
    pthread_mutex_lock(&g->mailbox);
    go = ht_atomic_read(&g->page->done) + 1;
    memcpy(box, msg, bytes);
    ht_atomic_set(&g->page->bytes, bytes);
    /* Pairs with the host's load-acquire of go before it reads the request. */
    ht_atomic_store_release(&g->page->go, go);
    r = wait_done(g, go);
    if (!r && !ht_reply_take(msg, box + HT_MAILBOX_SIZE, size, size)) {
        r = -EIO;
    }
    pthread_mutex_unlock(&g->mailbox);
    return r;
}

static int map(struct ht_device *dev, uint32_t stream,
               struct ht_ring_control **ring, uint8_t **packets)
{
    MgGuest *g = to_guest(dev);
    uint8_t *p = g->base + g->ring_offset + stream * dev->caps.ring_stride;

    *ring = (struct ht_ring_control *)p;
    *packets = p + HT_PACKETS_OFFSET;
    return 0;
}

static void doorbell(struct ht_device *dev, uint32_t stream)
{
    (void)dev;                  /* the host polls */
    (void)stream;
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
    .doorbell = doorbell,
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

void mg_connect(MgGuest *g)
{
    g->epoch = ht_atomic_load_acquire(&g->page->caps.epoch);
    g_assert_cmphex(g->epoch, !=, 0);
    g->dev.caps = g->page->caps;
    g->ring_offset = g->dev.caps.ring_offset;
    g_assert_cmpuint(g->dev.caps.channel, ==, HT_CHANNEL_MEMORY);
    /* The producer's part is that of shm, with a wake word that never comes. */
    g->dev.caps.channel = HT_CHANNEL_SHM;
    g->dev.ops = &ops;
    g->dev.enable = g->base + g->dev.caps.enable_offset;
    g_assert_cmpint(ht_device_init(&g->dev), ==, 0);
}

void mg_free(MgGuest *g)
{
    munmap(g->base, g->size);
    pthread_mutex_destroy(&g->mailbox);
    pthread_mutex_destroy(&g->control);
}
