/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test channel=virtio with invalid buffers, descriptors and
 * virtqueues
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"
#include "standard-headers/linux/virtio_config.h"

#define STREAMS 4

static QHt *boot(const char *more)
{
    g_autofree char *props = g_strdup_printf("channel=virtio,streams=%d,"
                                             "packet-size=4096,packets=4%s",
                                             STREAMS, more);

    return qht_boot("pc", "null", props, NULL);
}

static bool needs_reset(QHt *h)
{
    return h->pci->vdev.bus->get_status(&h->pci->vdev) &
           VIRTIO_CONFIG_S_NEEDS_RESET;
}

/* Check that the device works, after a reset if it needs one */
static void check_alive(QHt *h)
{
    uint32_t id;
    QHtStream s;

    if (needs_reset(h)) {
        qht_restart(h);
        g_assert_false(needs_reset(h));
    }
    id = qht_register_number(h, "number");
    qht_stream_open(&s, h, STREAMS - 1);
    qht_write_number(&s, id, 1);
    qht_commit(&s);
    qht_stream_flush(&s);
    g_assert_cmpuint(qht_stream_stat(h, s.index, "events"), ==, 1);
    qht_stream_close(&s);
}

/* Make a descriptor available, and kick */
static void put(QHt *h, QVirtQueue *vq, uint64_t addr, uint32_t len, bool write)
{
    qht_queue_kick(h, vq, qvirtqueue_add(h->qts, vq, addr, len, write, false));
}

typedef struct Bad {
    const char *what;
    uint64_t from;
    uint64_t to;
    uint32_t stream;
    /* number of bytes after the submit header in the buffer */
    uint32_t size;
} Bad;

/*
 * A buffer with wrong positions, size, stream index or class stops only the
 * stream of its queue.
 */
static void test_bad_submit(void)
{
    static const Bad bad[] = {
        { "gap", 76 + 12, 76 + 24, 0, 12 },
        { "overlap", 64, 76, 0, 12 },
        { "again from the start", 0, 76, 0, 76 },
        { "next packet, no header", 4096, 4096 + 12, 0, 12 },
        { "packet skipped", 8192, 8192 + 76, 0, 76 },
        { "across the packet's end", 76, 4096 + 12, 0, 4032 },
        { "fewer bytes than it says", 76, 100, 0, 12 },
        { "more bytes than it says", 76, 88, 0, 24 },
        { "no bytes", 76, 88, 0, 0 },
        { "nothing", 76, 76, 0, 0 },
        { "backwards", 76, 64, 0, 12 },
        { "another stream's", 76, 88, 1, 12 },
        { "no stream's", 76, 88, UINT32_MAX, 12 },
        { "all ones", UINT64_MAX, UINT64_MAX, 0, 12 },
        { "more than a packet", 76, 76 + 5000, 0, 5000 },
        { "unknown class", 76, 88, 0, 12 },
    };
    static const uint8_t zeros[5000];
    QHt *h = boot("");
    uint32_t id = qht_register_number(h, "number"), i;
    QHtStream good;

    qht_stream_open(&good, h, 1);
    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct ht_submit sub = {
            .from = cpu_to_le64(bad[i].from),
            .to = cpu_to_le64(bad[i].to),
            .stream = cpu_to_le32(bad[i].stream),
        };
        QHtStream s;

        g_test_message("%s", bad[i].what);
        qht_stream_open(&s, h, 0);
        qht_write_number(&s, id, 1);
        qht_commit(&s);
        QHT_WAIT(qht_stream_stat(h, 0, "events") == 1);
        qht_submit(h, 0, &sub, zeros, bad[i].size);
        QHT_WAIT(qht_stream_flag(h, 0, "stopped"));
        g_assert_cmpuint(qht_stream_stat(h, 0, "events"), ==, 1);
        g_assert_cmpuint(qht_stat(h, "errors"), ==, i + 1);
        qht_queue_wait(h, h->data[0]);
        qht_write_number(&good, id, i);
        qht_commit(&good);
        QHT_WAIT(qht_stream_stat(h, 1, "events") == i + 1);
        qht_stream_close(&s);
    }
    qht_stream_close(&good);
    g_assert_false(needs_reset(h));
    check_alive(h);
    qht_quit(h);
}

/*
 * A buffer that is too short or writable stops the stream; a valid one may
 * have several descriptors.
 */
static void test_shapes(void)
{
    QHt *h = boot("");
    uint32_t id = qht_register_number(h, "number");
    uint64_t mem = guest_alloc(h->alloc, 8192);
    uint32_t len, first;
    unsigned errors = 0;
    QHtStream s;

    for (len = 1; len < sizeof(struct ht_submit); len += 7) {
        qht_stream_open(&s, h, 0);
        put(h, h->data[0], mem, len, false);
        QHT_WAIT(qht_stream_flag(h, 0, "stopped"));
        errors++;
        qht_queue_wait(h, h->data[0]);
        qht_stream_close(&s);
    }
    /* a buffer with only a writable descriptor */
    qht_stream_open(&s, h, 0);
    put(h, h->data[0], mem, 4096, true);
    QHT_WAIT(qht_stream_flag(h, 0, "stopped"));
    errors++;
    qht_stream_close(&s);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, errors);

    /*
     * A valid buffer may have three descriptors: here they divide the submit
     * header and the packet's header.
     */
    qht_stream_open(&s, h, 0);
    qht_write_number(&s, id, 1);
    struct ht_submit sub = { .to = cpu_to_le64(76) };

    qtest_memwrite(h->qts, mem, &sub, sizeof(sub));
    qtest_memwrite(h->qts, mem + sizeof(sub), s.image, 76);
    first = qvirtqueue_add(h->qts, h->data[0], mem, 5, false, true);
    qvirtqueue_add(h->qts, h->data[0], mem + 5, 70, false, true);
    qvirtqueue_add(h->qts, h->data[0], mem + 75, sizeof(sub) + 76 - 75, false,
                   false);
    qht_queue_kick(h, h->data[0], first);
    QHT_WAIT(qht_stream_stat(h, 0, "events") == 1);
    qht_stream_close(&s);
    check_alive(h);
    qht_quit(h);
}

/*
 * After a buffer with an invalid address or length, and a new start of the
 * device, the device works.
 */
static void test_bad_descriptors(void)
{
    static const struct {
        uint64_t addr;
        uint32_t len;
    } bad[] = {
        { 0x100000, 0 },                /* zero length */
        { 0x100000, UINT32_MAX },
        { UINT64_MAX, 16 },
        { UINT64_MAX - 4, 4096 },
        { UINT64_C(1) << 52, 4096 },    /* unmapped */
    };
    QHt *h = boot("");
    unsigned i, queue;

    for (queue = 0; queue < 3; queue++) {
        for (i = 0; i < G_N_ELEMENTS(bad); i++) {
            QHtStream s;

            qht_stream_open(&s, h, 0);
            put(h, queue == 0 ? h->control : h->data[queue - 1], bad[i].addr,
                bad[i].len, false);
            qht_restart(h);
            qht_stream_close(&s);
            check_alive(h);
        }
    }
    qht_quit(h);
}

/*
 * After a chain with a loop, an invalid head or an invalid available index, the
 * device needs a reset; after the reset it works.
 */
static void test_bad_rings(void)
{
    QHt *h = boot("");
    uint64_t mem = guest_alloc(h->alloc, 4096);
    QVirtQueue *vq;
    QHtStream s;

    qht_stream_open(&s, h, 0);
    vq = h->data[0];
    qtest_writeq(h->qts, vq->desc, mem);
    qtest_writel(h->qts, vq->desc + 8, 64);
    qtest_writew(h->qts, vq->desc + 12, VRING_DESC_F_NEXT);
    qtest_writew(h->qts, vq->desc + 14, 0);
    qht_queue_kick(h, vq, 0);
    QHT_WAIT(needs_reset(h));
    qht_restart(h);

    qht_queue_kick(h, h->data[0], 0xffff);
    QHT_WAIT(needs_reset(h));
    qht_restart(h);

    vq = h->data[0];
    qtest_writew(h->qts, vq->avail + 2, 30000);
    h->pci->vdev.bus->virtqueue_kick(&h->pci->vdev, vq);
    QHT_WAIT(needs_reset(h));
    qht_restart(h);
    qht_stream_close(&s);
    check_alive(h);
    qht_quit(h);
}

/*
 * Buffers that lie in the device's own registers do not hang QEMU, even if a
 * reset follows at once; the device then works.
 */
static void test_mmio_buffers(void)
{
    QHt *h = boot("");
    unsigned i;

    for (i = 0; i < 6; i++) {
        uint64_t bar = h->pci->bar.addr;
        QHtStream s;

        qht_stream_open(&s, h, 0);
        put(h, h->data[0], bar, 4096, false);
        put(h, h->data[0], bar + h->pci->common_cfg_offset, 56, false);
        put(h, h->data[1], bar + h->pci->device_cfg_offset, 64, false);
        qvirtio_reset(&h->pci->vdev);
        qht_restart(h);
        put(h, h->control, bar, 64, false);
        put(h, h->control, bar, 64, true);
        qvirtio_reset(&h->pci->vdev);
        qht_restart(h);
        qht_stream_close(&s);
        check_alive(h);
    }
    qht_quit(h);
}

/*
 * Buffers of a closed stream are counted as errors, and their events do not get
 * into the next instance of the stream.
 */
static void test_closed_stream(void)
{
    QHt *h = boot("");
    uint32_t id = qht_register_number(h, "number"), i;
    struct ht_submit sub = { .to = cpu_to_le64(76) };
    const uint8_t zeros[76] = { 0 };
    QHtStream s;

    for (i = 1; i <= 200; i++) {
        qht_submit(h, 0, &sub, zeros, sizeof(zeros));
        qht_queue_wait(h, h->data[0]);
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 200);
    qht_stream_open(&s, h, 0);
    qht_write_number(&s, id, 1);
    qht_commit(&s);
    qht_stream_flush(&s);
    g_assert_cmpuint(qht_stream_stat(h, 0, "events"), ==, 1);

    /*
     * In each round, another driver takes over, and the previous driver's
     * producer still submits a buffer.
     */
    for (i = 0; i < 50; i++) {
        struct ht_msg m = { 0 };
        QHtStream t;

        g_assert_cmpuint(qht_call(h, HT_MSG_TAKEOVER, &m, sizeof(m)), ==,
                         HT_STATUS_OK);
        qht_write_number(&s, id, 2);
        qht_commit(&s);
        qht_stream_open(&t, h, 0);
        qht_write_number(&t, id, 3);
        qht_commit(&t);
        qht_stream_flush(&t);
        g_assert_false(qht_stream_flag(h, 0, "stopped"));
        g_assert_cmpuint(qht_stream_stat(h, 0, "events"), ==, 1);
        qht_stream_forget(&s);
        s = t;
    }
    qht_stream_close(&s);
    qht_quit(h);
}

/*
 * All queues are full before the kicks or, every second round, before the
 * flushes: all buffers are consumed.
 */
static void test_many(void)
{
    QHt *h = boot("");
    uint32_t id = qht_register_number(h, "number"), i, n;
    QHtStream s[STREAMS];
    unsigned round;

    for (i = 0; i < STREAMS; i++) {
        qht_stream_open(&s[i], h, i);
    }
    for (round = 1; round <= 5; round++) {
        for (i = 0; i < STREAMS; i++) {
            QVirtQueue *vq = h->data[i];
            uint16_t idx = qtest_readw(h->qts, vq->avail + 2);

            for (n = 0; n < HT_VQ_SIZE; n++) {
                uint64_t mem = guest_alloc(h->alloc, 4096);
                uint32_t offset = s[i].offset;
                struct ht_submit sub = {
                    .from = cpu_to_le64(s[i].submitted),
                    .stream = cpu_to_le32(i),
                };

                /*
                 * One packet has room for the events of all rounds: 5 x 64
                 * events of 12 bytes.
                 */
                qht_write_number(&s[i], id, n);
                s[i].submitted = s[i].offset;
                sub.to = cpu_to_le64(s[i].submitted);
                qtest_memwrite(h->qts, mem, &sub, sizeof(sub));
                qtest_memwrite(h->qts, mem + sizeof(sub), s[i].image + offset,
                               s[i].offset - offset);
                qtest_writew(h->qts, vq->avail + 4 +
                             2 * ((idx + n) % vq->size),
                             qvirtqueue_add(h->qts, vq, mem, sizeof(sub) +
                                            s[i].offset - offset, false,
                                            false));
            }
            qtest_writew(h->qts, vq->avail + 2, idx + HT_VQ_SIZE);
        }
        if (round & 1) {
            for (i = 0; i < STREAMS; i++) {
                h->pci->vdev.bus->virtqueue_kick(&h->pci->vdev, h->data[i]);
            }
        } else {
            /* Do not kick in this round: a flush must fetch the buffers. */
            for (i = 0; i < STREAMS; i++) {
                qht_stream_flush(&s[i]);
            }
        }
        for (i = 0; i < STREAMS; i++) {
            qht_queue_wait(h, h->data[i]);
            QHT_WAIT(qht_stream_stat(h, i, "events") == round * HT_VQ_SIZE);
            qht_stream_flush(&s[i]);
        }
    }
    for (i = 0; i < STREAMS; i++) {
        qht_stream_close(&s[i]);
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

static void test_control_shapes(void)
{
    QHt *h = boot("");
    uint64_t mem = guest_alloc(h->alloc, 16384), errors = 0;
    struct ht_msg_time m = {
        .h = {
            .type = cpu_to_le16(HT_MSG_TIME_SYNC),
            .size = cpu_to_le32(sizeof(m)),
            .cookie = cpu_to_le32(7),
        },
    };
    uint32_t len, first, status;

    qtest_memwrite(h->qts, mem, &m, sizeof(m));
    /*
     * A valid message without room for a reply is executed, and is no error;
     * shorter parts of it are errors.
     */
    for (len = 1; len <= sizeof(m); len++) {
        put(h, h->control, mem, len, false);
        qht_queue_wait(h, h->control);
        errors += len != sizeof(m);
    }
    put(h, h->control, mem + 8192, 4096, true);
    qht_queue_wait(h, h->control);
    errors++;
    g_assert_cmpuint(qtest_readl(h->qts, mem + 8192 + 8), ==, HT_STATUS_INVAL);
    put(h, h->control, mem, HT_MESSAGE_MAX + 1, false);
    qht_queue_wait(h, h->control);
    errors++;
    g_assert_cmpuint(qht_stat(h, "errors"), ==, errors);

    /*
     * The message is in two descriptors; two more have room for the first 16
     * bytes of the reply.
     */
    first = qvirtqueue_add(h->qts, h->control, mem, 20, false, true);
    qvirtqueue_add(h->qts, h->control, mem + 20, sizeof(m) - 20, false, true);
    qvirtqueue_add(h->qts, h->control, mem + 4096, 3, true, true);
    qvirtqueue_add(h->qts, h->control, mem + 4096 + 3, 13, true, false);
    qtest_memset(h->qts, mem + 4096, 0x5a, 64);
    qht_queue_kick(h, h->control, first);
    qht_queue_wait(h, h->control);
    status = qtest_readl(h->qts, mem + 4096 + 8);
    g_assert_cmpuint(status, ==, HT_STATUS_OK);
    g_assert_cmphex(qtest_readl(h->qts, mem + 4096 + 12), ==, 7);
    g_assert_cmphex(qtest_readl(h->qts, mem + 4096 + 16), ==, 0x5a5a5a5a);
    check_alive(h);
    qht_quit(h);
}

/*
 * While the VM is stopped, a kick makes the device answer messages for about
 * HT_CONTROL_TURN_NS; the other messages remain in the queue.  Promise: the
 * device answers these when the VM continues, without another kick.
 */
static void test_control_stopped(void)
{
    const unsigned count = 24, area = 4096;
    QHt *h = boot(",ioeventfd=off");
    uint64_t mem = guest_alloc(h->alloc, 2 * count * area);
    unsigned i, k;
    uint16_t idx;

    /* Register check_alive()'s class first, before many other classes. */
    qht_register_number(h, "number");
    idx = qtest_readw(h->qts, h->control->avail + 2);
    for (i = 0; i < count; i++) {
        g_autofree uint8_t *msgs = g_malloc0(area);
        size_t pos = 0;
        uint32_t desc;

        /*
         * Fill the buffer with messages: all buffers together take much longer
         * than HT_CONTROL_TURN_NS.
         */
        for (k = 0; pos + 128 < area; k++) {
            g_autofree char *name = g_strdup_printf("c%u.%u", i, k);

            pos += ROUND_UP(qht_class_message(msgs + pos, name),
                            HT_MESSAGE_ALIGN);
        }
        qtest_memwrite(h->qts, mem + 2 * i * area, msgs, pos);
        desc = qvirtqueue_add(h->qts, h->control, mem + 2 * i * area, pos,
                              false, true);
        qvirtqueue_add(h->qts, h->control, mem + (2 * i + 1) * area, area,
                       true, false);
        qtest_writew(h->qts, h->control->avail + 4 +
                     2 * ((idx + i) % h->control->size), desc);
    }
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    qtest_writew(h->qts, h->control->avail + 2, idx + count);
    h->pci->vdev.bus->virtqueue_kick(&h->pci->vdev, h->control);
    qtest_qmp_assert_success(h->qts, "{'execute': 'query-status'}");
    g_assert_cmpuint((uint16_t)(qtest_readw(h->qts, h->control->used + 2) -
                                idx), <, count);
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
    qht_queue_wait(h, h->control);
    check_alive(h);
    qht_quit(h);
}

/*
 * Each queue is full of chains of the maximum length; then the driver writes
 * status 0.  Promise: the reset walks a bounded number of descriptors while it
 * holds the big lock.  The test checks the number of buffers, which
 * data_is_all() in channel-virtio.c limits by their descriptors, and not the
 * time.
 */
static void test_reset_descriptors(void)
{
    const unsigned table = 1024, size = 1024;
    QHt *h = boot("");
    uint64_t mem = guest_alloc(h->alloc, table * 16 + 4096), before, taken;
    uint32_t i, n;
    gint64 begin, took;

    for (n = 0; n < table; n++) {
        uint64_t desc = mem + n * 16;

        qtest_writeq(h->qts, desc, mem + table * 16);
        qtest_writel(h->qts, desc + 8, 1);
        qtest_writew(h->qts, desc + 12, n + 1 < table ? 1 : 0);
        qtest_writew(h->qts, desc + 14, n + 1);
    }
    for (i = 0; i < STREAMS; i++) {
        QVirtQueue *vq = qht_queue_resize(h, i, size);

        for (n = 0; n < size; n++) {
            qtest_writeq(h->qts, vq->desc + n * 16, mem);
            qtest_writel(h->qts, vq->desc + n * 16 + 8, table * 16);
            /* VRING_DESC_F_INDIRECT */
            qtest_writew(h->qts, vq->desc + n * 16 + 12, 4);
            qtest_writew(h->qts, vq->avail + 4 + 2 * n, n);
        }
        qtest_writew(h->qts, vq->avail + 2, size);
    }
    before = qht_stat(h, "errors");
    begin = g_get_monotonic_time();
    h->pci->vdev.bus->set_status(&h->pci->vdev, 0);
    took = g_get_monotonic_time() - begin;
    /* each buffer that is consumed is an error, because its stream is closed */
    taken = qht_stat(h, "errors") - before;
    g_test_message("status=0 took %" PRId64 " us and %" PRIu64 " buffers",
                   took, taken);
    g_assert_cmpuint(taken, >=, STREAMS);
    g_assert_cmpuint(taken, <=, STREAMS * 8);
    qht_restart(h);
    check_alive(h);
    qht_quit(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("hypertrace/virtio/bad-submit", test_bad_submit);
    qtest_add_func("hypertrace/virtio/shapes", test_shapes);
    qtest_add_func("hypertrace/virtio/bad-descriptors", test_bad_descriptors);
    qtest_add_func("hypertrace/virtio/bad-rings", test_bad_rings);
    qtest_add_func("hypertrace/virtio/mmio-buffers", test_mmio_buffers);
    qtest_add_func("hypertrace/virtio/closed-stream", test_closed_stream);
    qtest_add_func("hypertrace/virtio/many", test_many);
    qtest_add_func("hypertrace/virtio/control-shapes", test_control_shapes);
    qtest_add_func("hypertrace/virtio/control-stopped", test_control_stopped);
    qtest_add_func("hypertrace/virtio/reset-descriptors",
                   test_reset_descriptors);
    return g_test_run();
}
