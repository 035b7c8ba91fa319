/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics of a guest's vCPUs: the host writes them into the enable page, and
 * the guest reads them with ht_host_stats(), also during a write
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/host-page.h"
#include "hypertrace/port.h"
#include "hypertrace/thread.h"

#define NS              UINT64_C(1000000000)
#define UPDATES         50000

static uint8_t *enable;
static struct ht_host_page *page;
static struct ht_device dev;
static HtHostPage host;

static void set_up(void)
{
    enable = g_malloc0(HT_ENABLE_SIZE);
    page = (struct ht_host_page *)(enable + HT_HOST_OFFSET);
    dev = (struct ht_device) { .enable = enable };
}

static void tear_down(void)
{
    g_free(enable);
}

static struct ht_host_stats values(int32_t vcpu)
{
    struct ht_host_stats s = {
        .from_ns = NS, .to_ns = 11 * NS, .vcpu = vcpu, .nr_exits = 2,
        .guest_ns = 2 * NS, .exits_ns = NS, .vmm_ns = NS,
        .preempted_ns = 2 * NS, .woken_ns = NS, .halted_ns = NS,
        .waiting_ns = NS, .unknown_ns = NS, .machines_ns = NS, .tasks_ns = NS,
        .own_ns = 7, .idle_ns = 8, .other_exits = 9, .other_exits_ns = 10,
        .exits = { { 0x78, "hlt", 5, NS }, { 0x7b, "io", UINT64_MAX, 6 } },
    };

    return s;
}

static int read_stats(unsigned vcpu, struct ht_host_stats *s)
{
    memset(s, 0xaa, sizeof(*s));
    return ht_host_stats(&dev, vcpu, s);
}

/*
 * Promise: ht_host_stats() returns -ENODATA if the port has mapped no page, the
 * page has no valid magic number, the host has written no values of the vCPU
 * since ht_host_page_begin(), or the number of the vCPU is too large.
 */
static void test_no_data(void)
{
    static const uint8_t fills[] = { 0, HT_ENABLE_ON, 0xff };
    struct ht_device virtio = { };
    struct ht_host_stats s;
    unsigned i;

    set_up();
    g_assert_cmpint(ht_host_stats(&virtio, 0, &s), ==, -ENODATA);
    for (i = 0; i < G_N_ELEMENTS(fills); i++) {
        memset(enable, fills[i], HT_ENABLE_SIZE);
        g_assert_cmpint(read_stats(0, &s), ==, -ENODATA);
    }
    ht_host_page_begin(&host, enable, UINT64_MAX);
    for (i = 0; i < HT_HOST_VCPUS + 2; i++) {
        g_assert_cmpint(read_stats(i, &s), ==, -ENODATA);
    }
    g_assert_cmpint(read_stats(UINT_MAX, &s), ==, -ENODATA);
    ht_host_page_clear(enable);
    g_assert_cmpint(read_stats(0, &s), ==, -ENODATA);
    tear_down();
}

/* Promise: the guest gets all values that the host has written for a vCPU. */
static void test_values(void)
{
    struct ht_host_stats want, s;
    unsigned i;

    set_up();
    /*
     * The sequence number wraps. The host skips 0, which means that there is no
     * data.
     */
    ht_host_page_begin(&host, enable, UINT64_MAX - 4);
    for (i = 0; i < 6; i++) {
        want = values(HT_HOST_VCPUS - 1);
        /*
         * The host overwrites what the guest has written into the slot, and
         * does not read it.
         */
        memset(&page->vcpus[HT_HOST_VCPUS - 1], 0x11 * i, sizeof(want));
        ht_host_page_write(&host, HT_HOST_VCPUS - 1, &want);
        g_assert_cmpint(read_stats(HT_HOST_VCPUS - 1, &s), ==, 0);
        g_assert_cmpuint(s.seq, ==, i < 2 ? UINT64_MAX - 3 + 2 * i : 2 * i - 2);
        want.seq = s.seq;
        g_assert_cmpmem(&s, sizeof(s), &want, sizeof(want));
        g_assert_cmpint(read_stats(HT_HOST_VCPUS - 2, &s), ==, -ENODATA);
    }
    /* One thread runs all vCPUs, so the values have vCPU number -1. */
    want = values(-1);
    ht_host_page_write(&host, 0, &want);
    g_assert_cmpint(read_stats(0, &s), ==, 0);
    g_assert_cmpint(s.vcpu, ==, -1);
    /* A port that only copies the enable bytes has no statistics. */
    dev.enable_copy = enable;
    g_assert_cmpint(read_stats(0, &s), ==, -ENODATA);
    dev.enable_copy = NULL;
    /* The host's values do not change the page's enable bytes. */
    for (i = 0; i < HT_HOST_OFFSET; i++) {
        g_assert_cmpuint(enable[i], ==, 0);
    }
    /* A new host clears the values of the previous one. */
    ht_host_page_begin(&host, enable, 4);
    g_assert_cmpint(read_stats(0, &s), ==, -ENODATA);
    tear_down();
}

/*
 * Write valid values @s into slot 0: the guest accepts them. Then run @change,
 * which makes @s invalid, and write @s again: the guest refuses them with EIO.
 */
#define REFUSED(change) do { \
    struct ht_host_stats s = values(0), out; \
    ht_host_page_write(&host, 0, &s); \
    g_assert_cmpint(read_stats(0, &out), ==, 0); \
    change; \
    ht_host_page_write(&host, 0, &s); \
    g_assert_cmpint(read_stats(0, &out), ==, -EIO); \
} while (0)

/*
 * Promise: ht_host_stats() refuses values out of range, and makes a bounded
 * number of attempts to read a slot that the host seems to be writing.
 */
static void test_hostile(void)
{
    struct ht_host_stats s;
    uint64_t *words;
    unsigned i, k, good = 0;

    set_up();
    ht_host_page_begin(&host, enable, 0);
    REFUSED(s.vcpu = 1);
    REFUSED(s.vcpu = -2);
    REFUSED(s.from_ns = s.to_ns + 1);
    REFUSED(s.to_ns = 10 * NS);
    REFUSED(s.nr_exits = HT_HOST_EXITS + 1);
    REFUSED(s.nr_exits = UINT32_MAX);
    REFUSED(s.guest_ns = UINT64_MAX);
    REFUSED(s.unknown_ns += NS);
    REFUSED(s.machines_ns = 10 * NS);
    REFUSED(s.idle_ns = UINT64_MAX);
    REFUSED(s.other_exits_ns = 10 * NS + 1);
    REFUSED(s.exits[1].ns = 10 * NS + 1);
    REFUSED(s.exits[1].name[0] = 27);
    REFUSED(s.exits[0].name[1] = '\x80');
    REFUSED(memset(s.exits[0].name, 'x', sizeof(s.exits[0].name)));
    page->version = ht_le32(HT_HOST_VERSION + 1);
    g_assert_cmpint(read_stats(0, &s), ==, -EPROTO);
    page->version = ht_le32(HT_HOST_VERSION);
    page->vcpus[0].seq = ht_le64(7);
    g_assert_cmpint(read_stats(0, &s), ==, -EAGAIN);

    /*
     * The guest writes random words into the slot. If ht_host_stats() succeeds,
     * the number of exits, the guest's time and the names are valid.
     */
    words = (uint64_t *)&page->vcpus[0];
    for (i = 0; i < 20000; i++) {
        s = values(0);
        ht_host_page_write(&host, 0, &s);
        for (k = 0; k < 3; k++) {
            words[g_test_rand_int_range(0, sizeof(s) / 8)] =
                g_test_rand_bit() ? (uint64_t)g_test_rand_int() :
                ((uint64_t)g_test_rand_int() << 32 | g_test_rand_int());
        }
        if (read_stats(0, &s) == 0) {
            g_assert_cmpuint(s.nr_exits, <=, HT_HOST_EXITS);
            g_assert_cmpuint(s.guest_ns, <=, s.to_ns - s.from_ns);
            for (k = 0; k < s.nr_exits; k++) {
                g_assert_nonnull(memchr(s.exits[k].name, 0,
                                        sizeof(s.exits[k].name)));
            }
            good++;
        }
    }
    g_assert_cmpuint(good, >, 0);
    tear_down();
}

static int stop;

static void *write_all(void *opaque)
{
    uint64_t n;
    unsigned i, spin;

    for (n = 1; n <= UPDATES; n++) {
        struct ht_host_stats s = {
            .to_ns = n * 12, .nr_exits = HT_HOST_EXITS, .guest_ns = n,
            .exits_ns = n, .vmm_ns = n, .preempted_ns = n, .woken_ns = n,
            .halted_ns = n, .waiting_ns = n, .unknown_ns = n,
            .machines_ns = n, .tasks_ns = n, .own_ns = n, .idle_ns = n,
            .other_exits = n, .other_exits_ns = n,
        };

        for (i = 0; i < HT_HOST_EXITS; i++) {
            s.exits[i] = (struct ht_host_exit) { n, "x", n, n };
        }
        ht_host_page_write(opaque, 0, &s);
        /*
         * vary the pause, so that some reads happen during an update and others
         * between two updates
         */
        for (spin = n % 64 * 64; spin; spin--) {
            ht_compiler_barrier();
        }
    }
    ht_atomic_set(&stop, 1);
    return NULL;
}

/*
 * Promise: a guest that reads while the host writes never gets parts of two
 * updates, and no older update than in an earlier read.
 */
static void test_beside(void)
{
    uint64_t last = 0, reads = 0, distinct = 0;
    struct ht_host_stats s;
    HtThread thread;
    unsigned i;
    int r;

    set_up();
    stop = 0;
    ht_host_page_begin(&host, enable, 0x123456789);
    ht_thread_start(&thread, "host", write_all, &host);
    do {
        bool end = ht_atomic_read(&stop);

        r = ht_host_stats(&dev, 0, &s);
        if (!r) {
            const uint64_t n = s.guest_ns;
            const uint64_t *sum = &s.guest_ns;

            g_assert_cmpuint(n, >=, last);
            g_assert_cmpuint(s.to_ns, ==, 12 * n);
            for (i = 0; i < 14; i++) {
                g_assert_cmpuint(sum[i], ==, n);
            }
            for (i = 0; i < HT_HOST_EXITS; i++) {
                g_assert_cmpuint(s.exits[i].reason, ==, n);
                g_assert_cmpuint(s.exits[i].count, ==, n);
                g_assert_cmpuint(s.exits[i].ns, ==, n);
            }
            distinct += n != last;
            last = n;
            reads++;
        } else {
            g_assert_true(r == -EAGAIN || (r == -ENODATA && !last));
        }
        if (end) {
            break;
        }
    } while (true);
    ht_thread_join(&thread);
    g_assert_cmpuint(last, ==, UPDATES);
    g_test_message("%" PRIu64 " reads of %" PRIu64 " updates", reads,
                   distinct);
    g_assert_cmpuint(distinct, >, 1);
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest-host/no-data", test_no_data);
    g_test_add_func("/guest-host/values", test_values);
    g_test_add_func("/guest-host/hostile", test_hostile);
    g_test_add_func("/guest-host/beside", test_beside);
    return g_test_run();
}
