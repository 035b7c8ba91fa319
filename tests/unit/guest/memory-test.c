/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory-only transport: the guest library and the host's server share one
 * memory
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/memory.h"
#include "hypertrace/thread.h"
#include <sys/mman.h>
#include "memory-guest.h"
#include "guest-events.h"

#define SIZE            (UINT64_C(4) << 20)
#define PACKET          4096
#define PACKETS         16
#define THREADS         3
#define EVENTS          40000
#define CLASSES         2

/* A host with a thread that polls; @next has each stream's next event number */
typedef struct Host {
    HtMemory *m;
    HtThread thread;
    int quit;
    uint64_t next[HT_STREAMS_MAX];
    uint64_t instance[HT_STREAMS_MAX];
    uint64_t lost;
    unsigned opened;
    unsigned closed;
    /*
     * do not check the events: the guest is hostile, or a successor continues
     * the previous host's streams
     */
    bool any;
    /* by class id: what wants() decides: 1: on; -1: off; 0: as before */
    int decided[CLASSES + 1];
} Host;

static void deliver(void *opaque, const HtRun *run)
{
    Host *h = opaque;
    uint32_t i = run->stream->index;
    HtRunIter it;
    HtEvent ev;

    if (h->any) {
        return;
    }
    if (run->flags & HT_RUN_OPEN) {
        h->opened++;
        h->next[i] = 0;
        h->instance[i] = run->stream->instance;
    }
    g_assert_cmpuint(run->stream->instance, ==, h->instance[i]);
    ht_run_iter_init(&it, run,
                     ht_server_classes(ht_memory_server(h->m)));
    while (ht_run_next(&it, &ev)) {
        g_assert_cmpuint(ev.size, ==, 8);
        g_assert_cmpuint(ht_get_le64(ev.payload), ==, h->next[i]);
        h->next[i]++;
    }
    if (run->flags & HT_RUN_CLOSE) {
        h->closed++;
        h->lost += run->discarded;
    }
}

static const HtMemoryConfig config = {
    .packet_size = PACKET,
    .packets = PACKETS,
    .deliver = deliver,
};

/*
 * HtMemoryConfig.wants: returns @before until the test sets Host.decided for
 * the class
 */
static bool wants(void *opaque, const HtClass *c, bool before)
{
    const Host *h = opaque;
    int decided = ht_atomic_read(&h->decided[c->id]);

    return decided ? decided > 0 : before;
}

static void host_make(Host *h, int fd, bool attach, bool decides)
{
    g_autoptr(GError) error = NULL;
    HtMemoryConfig cfg = config;

    memset(h, 0, sizeof(*h));
    cfg.opaque = h;
    cfg.wants = decides ? wants : NULL;
    h->m = attach ? ht_memory_attach(fd, &cfg, &error) :
                    ht_memory_create(fd, &cfg, &error);
    g_assert_no_error(error);
    ht_memory_start(h->m);
}

static void host_new(Host *h, int fd, bool attach)
{
    host_make(h, fd, attach, false);
}

static void *host_thread(void *opaque)
{
    Host *h = opaque;

    while (!ht_atomic_load_acquire(&h->quit)) {
        int64_t ns = ht_memory_poll(h->m);

        g_assert_cmpint(ns, >=, 0);
        g_assert_cmpint(ns, <=, HT_MEMORY_IDLE_NS);
        g_usleep(ns / 1000);
    }
    return NULL;
}

static void host_start(Host *h)
{
    ht_thread_start(&h->thread, "host", host_thread, h);
}

static void host_stop(Host *h)
{
    ht_atomic_store_release(&h->quit, 1);
    ht_thread_join(&h->thread);
}

static int new_memfd(void)
{
    g_autoptr(GError) error = NULL;
    int fd = ht_memory_memfd(SIZE, &error);

    g_assert_no_error(error);
    return fd;
}

typedef struct Producer {
    MgGuest *g;
    pthread_t thread;
    struct ht_stream s;
    uint64_t events;
} Producer;

/* Emit events numbered from 0; if the ring is full, wait for room. */
static void *produce(void *opaque)
{
    Producer *p = opaque;
    uint64_t n;

    for (n = 0; n < p->events; n++) {
        while (!ht_stream_room(&p->s, 64)) {
            g_usleep(100);
        }
        g_assert_true(ht_emit_tick(&p->s, n));
    }
    return NULL;
}

/*
 * Promise: the host delivers each event of a stream exactly once and in order,
 * for several producers that write several times the size of their rings, then
 * close their streams.
 */
static void test_events(void)
{
    Producer p[THREADS] = { };
    int fd = new_memfd();
    MgGuest g;
    Host h;
    unsigned i;

    host_new(&h, fd, false);
    mg_new(&g, fd);
    host_start(&h);
    mg_connect(&g);
    g_assert_cmpint(ht_register(&g.dev, &ht_class_tick), ==, 1);
    for (i = 0; i < THREADS; i++) {
        p[i].g = &g;
        p[i].events = EVENTS;
        g_assert_cmpint(ht_stream_open(&g.dev, &p[i].s, NULL), ==, 0);
        pthread_create(&p[i].thread, NULL, produce, &p[i]);
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(p[i].thread, NULL);
        g_assert_cmpint(ht_stream_close(&p[i].s), ==, 0);
    }
    host_stop(&h);
    g_assert_cmpuint(h.opened, ==, THREADS);
    g_assert_cmpuint(h.closed, ==, THREADS);
    g_assert_cmpuint(h.lost, ==, 0);
    for (i = 0; i < THREADS; i++) {
        g_assert_cmpuint(h.next[i], ==, EVENTS);
    }
    ht_memory_free(h.m);
    mg_free(&g);
    close(fd);
}

/*
 * Promise: after TIME_SYNC messages, without any event, the host dates the
 * guest's counter within the error bound that it reports to the guest.
 */
static void test_time(void)
{
    int fd = new_memfd();
    uint64_t before, after, ns;
    HtTimeMap map;
    MgGuest g;
    Host h;
    int bound;

    host_new(&h, fd, false);
    mg_new(&g, fd);
    host_start(&h);
    mg_connect(&g);
    bound = ht_time_sync(&g.dev, 20);
    g_assert_cmpint(bound, >, 0);
    before = ht_now_ns();
    ns = ht_clock();
    after = ht_now_ns();
    host_stop(&h);
    ht_server_time(ht_memory_server(h.m), &map);
    ns = ht_time_map_to_ns(&map, ns);
    g_assert_cmpuint(ns + bound, >=, before);
    g_assert_cmpuint(ns, <=, after + bound);
    ht_memory_free(h.m);
    mg_free(&g);
    close(fd);
}

/*
 * Promise: when a host has ended, an emit does not wait, and discarded events
 * are counted. A flush then fails with ENODEV within 5 s. It also fails when a
 * successor has started, until the guest attaches to the successor. The guest
 * then registers and opens anew, and the successor delivers each event of the
 * new stream exactly once. While a host serves a memory, no second host can
 * attach to that memory.
 */
static void test_successor(void)
{
    g_autoptr(GError) error = NULL;
    HtMemoryConfig cfg = config;
    Producer p = { .events = 100 };
    int fd = new_memfd();
    int64_t start;
    unsigned n, kept = 0;
    MgGuest g;
    Host h;

    host_new(&h, fd, false);
    g_assert_null(ht_memory_attach(fd, &cfg, &error));
    g_assert_nonnull(strstr(error->message, "another host"));
    mg_new(&g, fd);
    host_start(&h);
    mg_connect(&g);
    p.g = &g;
    g_assert_cmpint(ht_register(&g.dev, &ht_class_tick), ==, 1);
    g_assert_cmpint(ht_stream_open(&g.dev, &p.s, NULL), ==, 0);
    produce(&p);
    g_assert_cmpint(ht_stream_flush(&p.s), ==, 0);
    g_assert_cmpuint(h.next[0], ==, p.events);
    host_stop(&h);

    for (n = 0; n < 2 * PACKET * PACKETS / 12; n++) {
        kept += ht_emit_tick(&p.s, n);
    }
    g_assert_cmpuint(kept, <, n);
    g_assert_cmpuint(p.s.lost, ==, n - kept);
    start = ht_now_ns();
    g_assert_cmpint(ht_stream_flush(&p.s), ==, -ENODEV);
    g_assert_cmpint(ht_now_ns() - start, <, 5 * INT64_C(1000000000));

    h.any = true;
    ht_memory_free(h.m);
    host_new(&h, fd, true);
    h.any = true;               /* successor-test.c checks inherited events */
    host_start(&h);
    g_assert_cmpint(ht_stream_flush(&p.s), ==, -ENODEV);
    ht_stream_close(&p.s);
    mg_connect(&g);
    host_stop(&h);
    h.any = false;
    h.quit = 0;
    host_start(&h);
    g_assert_cmpint(ht_register(&g.dev, &ht_class_tick), ==, 1);
    g_assert_cmpint(ht_stream_open(&g.dev, &p.s, NULL), ==, 0);
    produce(&p);
    g_assert_cmpint(ht_stream_close(&p.s), ==, 0);
    g_assert_cmpuint(h.next[0], ==, p.events);
    host_stop(&h);
    ht_memory_free(h.m);
    mg_free(&g);
    close(fd);
}

/* Wait until the guest sees class @id on or off; returns the ns it took */
static int64_t wait_enable(const MgGuest *g, uint32_t id, uint8_t on)
{
    int64_t start = ht_now_ns();

    while (ht_atomic_read(g->dev.enable + id) != on) {
        g_assert_cmpint(ht_now_ns() - start, <, INT64_C(10000000000));
        g_usleep(100);
    }
    return ht_now_ns() - start;
}

/* Connect, register two classes and open a stream */
static void register_two(MgGuest *g, struct ht_stream *s)
{
    mg_connect(g);
    g_assert_cmpint(ht_register(&g->dev, &ht_class_tick), ==, 1);
    g_assert_cmpint(ht_register(&g->dev, &ht_class_zero), ==, 2);
    g_assert_cmpint(ht_stream_open(&g->dev, s, NULL), ==, 0);
}

/*
 * Promise: the guest's enable byte of a class follows the host's decision.
 * Until the host has decided, a new class is on, and a class of the previous
 * host stays as it was.  A host without the callback "wants" switches all
 * classes on.
 */
static void test_enable(void)
{
    int fd = new_memfd(), i;
    struct ht_stream s;
    int64_t ns, most = 0;
    uint32_t seq;
    MgGuest g;
    Host h;

    host_make(&h, fd, false, true);
    mg_new(&g, fd);
    host_start(&h);
    register_two(&g, &s);
    g_assert_cmpint(g.dev.enable[1], ==, HT_ENABLE_ON);
    g_assert_cmpint(g.dev.enable[2], ==, HT_ENABLE_ON);
    for (i = 0; i < 20; i++) {
        seq = ht_atomic_read(&g.page->caps.enable_seq);
        ht_atomic_set(&h.decided[2], i % 2 ? 1 : -1);
        ns = wait_enable(&g, 2, i % 2 ? HT_ENABLE_ON : 0);
        most = MAX(most, ns);
        while (ht_atomic_read(&g.page->caps.enable_seq) == seq) {
            g_usleep(100);
        }
        g_assert_cmpint(g.dev.enable[1], ==, HT_ENABLE_ON);
    }
    g_test_message("at most %" PRId64 " us from a decision to the guest's byte",
                   most / 1000);
    ht_atomic_set(&h.decided[2], -1);
    wait_enable(&g, 2, 0);

    /*
     * The next host keeps the enable bytes of the previous one until it
     * decides, even if the guest registers its classes again.
     */
    host_stop(&h);
    ht_memory_free(h.m);
    g_assert_cmpint(g.dev.enable[2], ==, 0);
    host_make(&h, fd, true, true);
    h.any = true;
    g_assert_cmpint(g.dev.enable[1], ==, HT_ENABLE_ON);
    g_assert_cmpint(g.dev.enable[2], ==, 0);
    host_start(&h);
    register_two(&g, &s);
    g_assert_cmpint(g.dev.enable[1], ==, HT_ENABLE_ON);
    g_assert_cmpint(g.dev.enable[2], ==, 0);
    ht_atomic_set(&h.decided[1], -1);
    ht_atomic_set(&h.decided[2], 1);
    wait_enable(&g, 1, 0);
    wait_enable(&g, 2, HT_ENABLE_ON);
    host_stop(&h);
    ht_memory_free(h.m);

    host_make(&h, fd, true, false);
    g_assert_cmpint(g.dev.enable[1], ==, HT_ENABLE_ON);
    g_assert_cmpint(g.dev.enable[2], ==, HT_ENABLE_ON);
    ht_memory_free(h.m);
    mg_free(&g);
    close(fd);
}

/*
 * Promise: a memory of a wrong size, memory with other content, and a path that
 * exists already are refused.
 */
static void test_refused(void)
{
    g_autofree char *dir = g_dir_make_tmp("ht-memory-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "memory", NULL);
    struct ht_memory *page;
    int fd = new_memfd(), file;
    size_t i;
    Host h;

    g_assert_cmpint(ht_memory_memfd(SIZE + 4096, NULL), ==, -1);
    g_assert_null(ht_memory_attach(fd, &config, NULL));
    host_new(&h, fd, false);
    ht_memory_free(h.m);
    page = mmap(NULL, HT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(page != MAP_FAILED);
    /*
     * A wrong byte of the capabilities is refused. The host does not check
     * clock_hz, epoch and enable_seq; for max_gap, other values may be valid.
     */
    for (i = 0; i < sizeof(page->caps); i++) {
        uint8_t *byte = (uint8_t *)&page->caps + i, old = *byte;

        *byte ^= 0x80;
        if ((i >= offsetof(struct ht_caps, clock_hz) &&
             i < offsetof(struct ht_caps, ring_stride)) ||
            (i >= offsetof(struct ht_caps, enable_seq) &&
             i < offsetof(struct ht_caps, counter))) {
            host_new(&h, fd, true);
            ht_memory_free(h.m);
        } else if (i < offsetof(struct ht_caps, max_gap) ||
                   i >= offsetof(struct ht_caps, clock_hz)) {
            g_assert_null(ht_memory_attach(fd, &config, NULL));
        }
        *byte = old;
    }
    munmap(page, HT_PAGE);
    close(fd);

    file = ht_memory_make_file(path, SIZE, NULL);
    g_assert_cmpint(file, >=, 0);
    g_assert_cmpint(ht_memory_make_file(path, SIZE, NULL), ==, -1);
    host_new(&h, file, false);
    ht_memory_free(h.m);
    host_new(&h, file, true);
    ht_memory_free(h.m);
    close(file);
    unlink(path);
    rmdir(dir);
}

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Write one random word; most go to places that the host reads. */
static void scribble(MgGuest *g, uint64_t *seed)
{
    static const uint64_t values[] = {
        0, 1, UINT64_MAX, UINT64_MAX / 2, PACKET, PACKET * PACKETS, 64, 4096,
    };
    uint64_t r = draw(seed), at, v = draw(seed);
    uint64_t ring = ht_ring_at(&g->dev.caps,
                               (r >> 8) % g->dev.caps.streams);

    switch (r & 7) {
    case 0:
        at = draw(seed) % g->size;
        break;
    case 1:
        at = draw(seed) % sizeof(struct ht_memory);
        break;
    case 2:
    case 3:
        at = g->dev.caps.mailbox_offset + draw(seed) % 256;
        v = v & 1 ? v : v % 80;
        break;
    case 4:
        at = ring + draw(seed) % 32;
        break;
    default:
        at = ring + HT_PACKETS_OFFSET + draw(seed) % (2 * PACKET);
        v = v & 3 ? v % 256 : v;
        break;
    }
    if (v & 16) {
        v = values[v % G_N_ELEMENTS(values)];
    }
    ht_atomic_set((uint64_t *)(g->base + (at & ~UINT64_C(7))), v);
}

static void *attack(void *opaque)
{
    MgGuest *g = opaque;
    uint64_t seed = 1;
    unsigned i;

    for (i = 0; i < 3000000; i++) {
        scribble(g, &seed);
    }
    return NULL;
}

/*
 * Send a well-formed request, so that some streams are open: open a stream, or
 * close or flush a random stream and instance.
 */
static void send_message(MgGuest *g, uint64_t *seed)
{
    struct ht_msg_open open = {
        .h = { .type = HT_MSG_STREAM_OPEN, .size = sizeof(open) },
        .stream = HT_STREAM_ANY,
    };
    struct ht_msg_stream one = {
        .h = { .type = HT_MSG_STREAM_CLOSE + (draw(seed) & 1),
               .size = sizeof(one) },
        .stream = draw(seed) % 16,
        .instance = draw(seed) % 64,
    };
    bool opens = draw(seed) & 1;

    memcpy(g->base + g->dev.caps.mailbox_offset, opens ? (void *)&open : &one,
           opens ? sizeof(open) : sizeof(one));
    ht_atomic_set(&g->page->bytes, opens ? sizeof(open) : sizeof(one));
    /* The host executes only a request that has its epoch. */
    ht_atomic_set(&g->page->to, g->page->caps.epoch);
    ht_atomic_set(&g->page->go, draw(seed));
}

/*
 * Promise: a guest that writes any value at any time does not make the host
 * access other memory (guest-memory-asan checks this), end, or do unbounded
 * work. When the guest no longer writes such values, a new host that makes the
 * memory anew serves it.
 */
static void test_hostile(void)
{
    int fd = new_memfd();
    uint64_t seed = 42, polls = 0;
    Producer p = { .events = 1000 };
    pthread_t thread;
    MgGuest g;
    Host h;
    int i;

    host_new(&h, fd, false);
    h.any = true;
    mg_new(&g, fd);
    g.dev.caps = *ht_memory_caps(h.m);
    for (i = 0; i < 20000; i++) {
        unsigned n = draw(&seed) % 20;

        while (n--) {
            scribble(&g, &seed);
        }
        if (draw(&seed) % 4 == 0) {
            send_message(&g, &seed);
        }
        ht_memory_poll(h.m);
    }
    pthread_create(&thread, NULL, attack, &g);
    while (pthread_tryjoin_np(thread, NULL) == EBUSY) {
        ht_memory_poll(h.m);
        polls++;
    }
    g_test_message("%" PRIu64 " polls under attack", polls);
    g_assert_cmpuint(polls, >, 0);

    /* Page 0 has random content: one host makes it anew, the next attaches. */
    ht_memory_free(h.m);
    host_new(&h, fd, false);
    ht_memory_free(h.m);
    host_new(&h, fd, true);
    host_start(&h);
    mg_connect(&g);
    g_assert_cmpint(ht_register(&g.dev, &ht_class_tick), ==, 1);
    g_assert_cmpint(ht_stream_open(&g.dev, &p.s, NULL), ==, 0);
    produce(&p);
    g_assert_cmpint(ht_stream_close(&p.s), ==, 0);
    g_assert_cmpuint(h.next[p.s.index], ==, p.events);
    host_stop(&h);
    ht_memory_free(h.m);
    mg_free(&g);
    close(fd);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/events", test_events);
    g_test_add_func("/memory/time", test_time);
    g_test_add_func("/memory/successor", test_successor);
    g_test_add_func("/memory/enable", test_enable);
    g_test_add_func("/memory/refused", test_refused);
    g_test_add_func("/memory/hostile", test_hostile);
    return g_test_run();
}
