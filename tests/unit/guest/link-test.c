/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control messages by memory alone, with a host that ends at any step, and a
 * host that attaches at any step.
 *
 * Promise: the guest never accepts the reply of another exchange. It waits at
 * most HT_BEAT_LOST_MS for a host that has ended. After it has noticed that the
 * host has ended, exchanges fail without a wait until it attaches again.
 */
#include <glib.h>
#include <string.h>

#include "hypertrace/abi.h"
#include "hypertrace/port.h"

#define MAILBOX         HT_MAP_ALIGN
#define SIZE            (8 * HT_MAP_ALIGN)

/*
 * The last step that the scripted host has done for the present request. A test
 * can make the host end after any of these steps.
 */
enum step {
    IDLE,               /* the host has not read the request yet */
    COPIED,
    HALF,               /* the host has written the header of the reply */
    REPLIED,            /* the host has written the whole reply */
    /* the host has stored ht_memory.done; `step` is then IDLE again */
    DONE,
};

static union {
    struct ht_memory page;
    uint8_t bytes[SIZE];
} *ram;

static struct ht_device *dev;
static struct ht_link to_host;
static uint64_t time_ms;

/* The scripted host */
static struct {
    enum step step, last;
    uint32_t done;
    bool ended;
    /* the host advances the beat but answers no request */
    bool mute;
    /* when the host ends, a successor attaches to the memory */
    bool renews;
    /* when the host ends, a successor stores `done`, then ends, too */
    bool half;
    unsigned executed;
    uint8_t fill;               /* byte with which the host fills its replies */
    struct ht_msg_stats request;
} host;

static void host_attach(uint8_t fill)
{
    struct ht_memory *p = &ram->page;

    memset(&host, 0, sizeof(host));
    host.last = DONE;
    host.fill = fill;
    host.done = __atomic_load_n(&p->go, __ATOMIC_ACQUIRE);
    __atomic_store_n(&p->done, host.done, __ATOMIC_RELAXED);
    __atomic_store_n(&p->beat, p->beat + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&p->caps.epoch, p->caps.epoch + 1, __ATOMIC_RELEASE);
}

/* Execute the host's next step of the current request. */
static void host_step(void)
{
    struct ht_memory *p = &ram->page;
    struct ht_msg_stats *reply = (void *)(ram->bytes + MAILBOX +
                                          HT_MAILBOX_SIZE);
    uint32_t go = __atomic_load_n(&p->go, __ATOMIC_ACQUIRE);

    switch (host.step) {
    case IDLE:
        g_assert_cmpuint(p->bytes, ==, sizeof(host.request));
        memcpy(&host.request, ram->bytes + MAILBOX, sizeof(host.request));
        host.step = COPIED;
        break;
    case COPIED:
        reply->h = host.request.h;
        reply->h.status = HT_STATUS_OK;
        host.step = HALF;
        break;
    case HALF:
        host.executed++;
        memset(&reply->stats, host.fill, sizeof(reply->stats));
        host.step = REPLIED;
        break;
    default:
        host.done = go;
        host.step = IDLE;
        __atomic_store_n(&p->done, go, __ATOMIC_RELEASE);
        host.ended = host.last == DONE && host.renews;
        return;
    }
    if (host.step == host.last) {
        host.ended = true;
    }
}

static void host_run(void)
{
    struct ht_memory *p = &ram->page;

    if (!host.ended) {
        if (time_ms % HT_BEAT_MS == 0) {
            __atomic_store_n(&p->beat, p->beat + 1, __ATOMIC_RELAXED);
        }
        if (!host.mute && host.last == IDLE) {
            host.ended = true;
        } else if (!host.mute &&
                   __atomic_load_n(&p->go, __ATOMIC_ACQUIRE) != host.done) {
            host_step();
        }
    }
    if (host.ended && host.half) {
        __atomic_store_n(&p->done, p->go, __ATOMIC_RELEASE);
    } else if (host.ended && host.renews) {
        host_attach(0x77);
    }
}

static uint64_t now(struct ht_device *d)
{
    g_assert_true(d == dev);
    return time_ms;
}

static int wait_ms(struct ht_device *d, unsigned tries)
{
    g_assert_true(d == dev);
    g_assert_cmpuint(tries, >=, 1);
    g_assert_cmpuint(tries, <=, 20);
    time_ms++;
    host_run();
    return 0;
}

static void beat_for(unsigned ms)
{
    while (ms--) {
        time_ms++;
        host_run();
        ht_link_beats(dev, &to_host);
    }
}

static struct ht_caps valid_caps(void)
{
    return (struct ht_caps) {
        .magic = HT_MAGIC, .version = HT_VERSION,
        .channel = HT_CHANNEL_MEMORY, .counter = HT_COUNTER,
        .streams = 2, .packet_size = 4096, .packets = 2, .batch = 1,
        .max_gap = 1 << 20, .ring_offset = 6 * HT_MAP_ALIGN,
        .ring_stride = HT_MAP_ALIGN, .mailbox_offset = MAILBOX,
        .mailbox_size = HT_MAILBOX_SIZE, .max_classes = 16,
        .max_message = HT_MESSAGE_MAX, .enable_offset = 4 * HT_MAP_ALIGN,
        .epoch = 100,
    };
}

static void set_up(void)
{
    static const struct ht_port_ops ops;

    ram = g_malloc0(sizeof(*ram));
    ram->page.caps = valid_caps();
    dev = g_new0(struct ht_device, 1);
    dev->caps = ram->page.caps;
    dev->ops = &ops;
    g_assert_true(ht_caps_fit(&dev->caps, SIZE));
    g_assert_cmpint(ht_device_init(dev), ==, 0);
    to_host = (struct ht_link) {
        .mem = &ram->page, .now = now, .pause = wait_ms,
    };
    ht_link_init(dev, &to_host);
    time_ms = 1000;
}

static void tear_down(void)
{
    g_free(dev);
    g_free(ram);
}

static void attach(uint8_t fill)
{
    host_attach(fill);
    beat_for(HT_BEAT_MS);
    g_assert_cmpint(ht_link_attach(dev, &to_host), ==, 0);
    g_assert_cmpuint(dev->caps.epoch, ==, ram->page.caps.epoch);
    g_assert_false(ht_link_renewed(&to_host));
}

/* Exchange a message; set *@waited to the ms that the call took. */
static int exchange(struct ht_msg_stats *m, uint64_t *waited)
{
    const uint64_t begun = time_ms;
    int r;

    memset(m, 0, sizeof(*m));
    m->h.type = HT_MSG_STATS;
    m->h.size = sizeof(*m);
    /*
     * Always use the same cookie, as two programs that use one driver may.
     */
    m->h.cookie = 1;
    r = ht_memory_exchange(dev, &to_host, &m->h, sizeof(*m));
    *waited = time_ms - begun;
    return r;
}

static void check_reply(const struct ht_msg_stats *m, uint8_t fill)
{
    const uint8_t *p = (const uint8_t *)&m->stats;
    unsigned i;

    g_assert_cmpuint(m->h.status, ==, HT_STATUS_OK);
    for (i = 0; i < sizeof(m->stats); i++) {
        g_assert_cmphex(p[i], ==, fill);
    }
}

static void test_exchange(void)
{
    struct ht_msg_stats m;
    uint64_t waited;
    unsigned i;

    set_up();
    /*
     * Without a host, the exchange fails at once and leaves the memory
     * unchanged.
     */
    g_assert_cmpint(exchange(&m, &waited), ==, -ENODEV);
    g_assert_cmpuint(waited, ==, 0);
    g_assert_cmpint(ht_link_attach(dev, &to_host), ==, -ENODEV);
    g_assert_cmpuint(ram->page.go, ==, 0);

    attach(0x11);
    for (i = 1; i < 100; i++) {
        g_assert_cmpint(exchange(&m, &waited), ==, 0);
        check_reply(&m, 0x11);
        g_assert_cmpuint(host.executed, ==, i);
    }
    g_assert_cmpint(ht_memory_exchange(dev, &to_host, &m.h, 8), ==, -EINVAL);
    tear_down();
}

static void test_ends(void)
{
    struct ht_msg_stats m;
    uint64_t waited;
    enum step last;
    unsigned i;
    int r;

    for (last = IDLE; last <= REPLIED; last++) {
        set_up();
        attach(0x22);
        g_assert_cmpint(exchange(&m, &waited), ==, 0);
        host.last = last;
        r = exchange(&m, &waited);
        g_assert_cmpint(r, ==, -ENODEV);
        g_assert_cmpuint(waited, <=, HT_BEAT_LOST_MS);
        for (i = 0; i < 3; i++) {
            g_assert_cmpint(exchange(&m, &waited), ==, -ENODEV);
            g_assert_cmpuint(waited, ==, 0);
            beat_for(1000);
        }
        /*
         * A successor does not execute a request from before it attached. The
         * guest sends it no request until ht_link_attach().
         */
        host_attach(0x33);
        g_assert_cmpint(exchange(&m, &waited), ==, -ENODEV);
        beat_for(HT_BEAT_MS);
        g_assert_cmpint(exchange(&m, &waited), ==, -ENODEV);
        g_assert_true(ht_link_renewed(&to_host));
        g_assert_cmpint(ht_link_attach(dev, &to_host), ==, 0);
        g_assert_cmpuint(host.executed, ==, 0);
        g_assert_cmpint(exchange(&m, &waited), ==, 0);
        check_reply(&m, 0x33);
        tear_down();
    }
}

static void test_renewed(void)
{
    struct ht_msg_stats m;
    uint64_t waited;
    enum step last;

    for (last = IDLE; last <= DONE; last++) {
        set_up();
        attach(0x44);
        g_assert_cmpint(exchange(&m, &waited), ==, 0);
        host.last = last;
        host.renews = true;
        g_assert_cmpint(exchange(&m, &waited), ==, -ENODEV);
        g_assert_cmpuint(waited, <, HT_BEAT_MS);
        g_assert_cmpint(exchange(&m, &waited), ==, -ENODEV);
        g_assert_cmpint(ht_link_attach(dev, &to_host), ==, 0);
        g_assert_cmpint(exchange(&m, &waited), ==, 0);
        check_reply(&m, 0x77);
        tear_down();
    }
}

/*
 * While the guest waits for a reply, a successor sets `done` and ends before it
 * sets its epoch. The guest must take neither the reply area, which it has
 * cleared, nor the reply to an earlier message for the reply.
 */
static void test_half_attached(void)
{
    struct ht_msg_stats m;
    uint64_t waited;

    set_up();
    attach(0x55);
    g_assert_cmpint(exchange(&m, &waited), ==, 0);
    host.last = COPIED;
    host.half = true;
    g_assert_cmpint(exchange(&m, &waited), ==, -EIO);
    tear_down();
}

static void test_mute(void)
{
    struct ht_msg_stats m;
    uint64_t waited;

    set_up();
    attach(0x66);
    host.mute = true;
    g_assert_cmpint(exchange(&m, &waited), ==, -ETIMEDOUT);
    g_assert_cmpuint(waited, <=, 5000);
    g_assert_cmpint(exchange(&m, &waited), ==, -EBUSY);
    g_assert_cmpuint(waited, ==, 0);
    /*
     * The late reply to the first request is not taken for the reply to the
     * next one.
     */
    host.mute = false;
    beat_for(10);
    g_assert_cmpuint(host.executed, ==, 1);
    host.fill = 0x67;
    g_assert_cmpint(exchange(&m, &waited), ==, 0);
    check_reply(&m, 0x67);
    tear_down();
}

/*
 * An earlier boot of the guest left a request in memory. The host executes that
 * request before the first one of the new boot.
 */
static void test_reboot(void)
{
    struct ht_msg_stats m;
    uint64_t waited;

    set_up();
    attach(0x12);
    memset(ram->bytes + MAILBOX, 0, sizeof(m));
    ram->page.bytes = sizeof(m);
    ram->page.go++;
    g_assert_cmpint(exchange(&m, &waited), ==, 0);
    check_reply(&m, 0x12);
    g_assert_cmpuint(host.executed, ==, 2);

    /*
     * While the host does not answer the old request, the new boot's first
     * message waits for the host, and later messages fail at once.
     */
    ram->page.go++;
    host.mute = true;
    g_assert_cmpint(exchange(&m, &waited), ==, -EBUSY);
    g_assert_cmpuint(waited, >, 1000);
    g_assert_cmpint(exchange(&m, &waited), ==, -EBUSY);
    g_assert_cmpuint(waited, ==, 0);
    host.mute = false;
    beat_for(10);
    g_assert_cmpint(exchange(&m, &waited), ==, 0);
    tear_down();
}

/*
 * Guest and host stop for 1,000 s: afterwards the guest must not conclude that
 * the host has ended.
 */
static void test_stopped(void)
{
    struct ht_msg_stats m;
    uint64_t waited;

    set_up();
    attach(0x13);
    time_ms += 1000000;
    g_assert_cmpint(exchange(&m, &waited), ==, 0);
    g_assert_cmpuint(waited, <, HT_BEAT_MS);
    tear_down();
}

static void test_layout(void)
{
    struct ht_msg_stats m;
    uint64_t waited;

    set_up();
    host_attach(0x14);
    beat_for(HT_BEAT_MS);
    ram->page.caps.clock_hz = 12345;
    ram->page.caps.packets *= 2;
    g_assert_cmpint(ht_link_attach(dev, &to_host), ==, -EPROTO);
    g_assert_cmpuint(dev->caps.packets, ==, 2);
    ram->page.caps.packets /= 2;
    g_assert_cmpint(ht_link_attach(dev, &to_host), ==, 0);
    g_assert_cmpuint(dev->caps.clock_hz, ==, 12345);
    g_assert_cmpint(exchange(&m, &waited), ==, 0);
    tear_down();
}

static void test_fit(void)
{
    const struct ht_caps good = valid_caps();
    const uint64_t far = (uint64_t)1 << 63;
    struct ht_caps c;

#define REFUSED(change) do { \
        c = good; \
        change; \
        g_assert_false(ht_caps_fit(&c, SIZE)); \
    } while (0)

    g_assert_true(ht_caps_fit(&good, SIZE));
    g_assert_false(ht_caps_fit(&good, SIZE - HT_MAP_ALIGN));
    g_assert_false(ht_caps_fit(&good, 0));
    REFUSED(c.channel = HT_CHANNEL_MEMORY + 1);
    REFUSED(c.channel = HT_CHANNEL_VIRTIO);
    REFUSED(c.streams = 0);
    REFUSED(c.streams = 3);
    REFUSED(c.streams = HT_STREAMS_MAX + 1);
    REFUSED(c.packets = 1024);
    REFUSED(c.packet_size = 5000);
    REFUSED(c.ring_stride = HT_PAGE);
    REFUSED(c.ring_stride = far);
    REFUSED(c.ring_offset += HT_PAGE);
    REFUSED(c.ring_offset = 0);
    REFUSED(c.ring_offset = far);
    REFUSED(c.ring_offset = -(uint64_t)HT_MAP_ALIGN);
    REFUSED(c.enable_offset = c.ring_offset);
    REFUSED(c.enable_offset = far);
    REFUSED(c.mailbox_offset = 0);
    REFUSED(c.mailbox_offset = c.enable_offset - HT_MAP_ALIGN);
    REFUSED(c.mailbox_offset = -HT_MAP_ALIGN);
    REFUSED(c.mailbox_size = UINT32_MAX);
    REFUSED(c.mailbox_size = 8);
#undef REFUSED
}

/*
 * test_threads(): host and guest are two threads, with the real clock. In
 * guest-link-tsan, the thread sanitizer checks the order of their accesses.
 */
static int over;

static gpointer serve(gpointer opaque)
{
    struct ht_memory *p = &ram->page;

    while (!g_atomic_int_get(&over)) {
        __atomic_fetch_add(&p->beat, 1, __ATOMIC_RELAXED);
        while (__atomic_load_n(&p->go, __ATOMIC_ACQUIRE) != host.done) {
            host_step();
        }
        g_usleep(20);
    }
    return opaque;
}

static uint64_t real_now(struct ht_device *d)
{
    (void)d;
    return g_get_monotonic_time() / 1000;
}

static int real_pause(struct ht_device *d, unsigned tries)
{
    (void)d;
    g_usleep(tries);
    return 0;
}

static void test_threads(void)
{
    struct ht_msg_stats m;
    GThread *thread;
    unsigned i;
    int r;

    set_up();
    host_attach(0x15);
    to_host.now = real_now;
    to_host.pause = real_pause;
    ht_link_init(dev, &to_host);
    thread = g_thread_new("host", serve, NULL);
    while ((r = ht_link_attach(dev, &to_host)) == -ENODEV) {
        g_usleep(100);
    }
    g_assert_cmpint(r, ==, 0);
    for (i = 0; i < 2000; i++) {
        memset(&m, 0, sizeof(m));
        m.h.type = HT_MSG_STATS;
        m.h.size = sizeof(m);
        r = ht_memory_exchange(dev, &to_host, &m.h, sizeof(m));
        /*
         * On a busy machine, the host's thread may not run for
         * HT_BEAT_LOST_MS; the exchange then fails.
         */
        if (r != -ENODEV && r != -EBUSY) {
            g_assert_cmpint(r, ==, 0);
            check_reply(&m, 0x15);
        }
    }
    g_atomic_int_set(&over, 1);
    g_thread_join(thread);
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/link/exchange", test_exchange);
    g_test_add_func("/link/host-ends", test_ends);
    g_test_add_func("/link/new-host", test_renewed);
    g_test_add_func("/link/half-attached", test_half_attached);
    g_test_add_func("/link/no-answer", test_mute);
    g_test_add_func("/link/reboot", test_reboot);
    g_test_add_func("/link/stopped", test_stopped);
    g_test_add_func("/link/layout", test_layout);
    g_test_add_func("/link/fit", test_fit);
    g_test_add_func("/link/threads", test_threads);
    return g_test_run();
}
