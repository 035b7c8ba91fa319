/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test streams and their last events at a close, a reset, a
 * takeover, a stop of the VM, and the end of QEMU
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

static QHt *boot(const void *channel, const char *backend, const char *props)
{
    g_autofree char *all = g_strdup_printf("channel=%s,packet-size=4096,"
                                           "packets=4,%s",
                                           (const char *)channel, props);

    return qht_boot("pc", backend, all, NULL);
}

static uint32_t stream_status(QHt *h, uint16_t type, uint32_t index,
                              uint64_t instance)
{
    struct ht_msg_stream m = {
        .stream = cpu_to_le32(index),
        .instance = cpu_to_le64(instance),
    };

    return qht_call(h, type, &m, sizeof(m));
}

/* Open two streams and write events; notify the device only with virtio */
static void fill(QHt *h, QHtStream *s, uint32_t id, unsigned count)
{
    unsigned i, n;

    for (i = 0; i < 2; i++) {
        qht_stream_open(&s[i], h, HT_STREAM_ANY);
        for (n = 0; n < count; n++) {
            qht_write_number(&s[i], id, n);
        }
        if (h->control) {
            qht_commit(&s[i]);
        }
    }
}

static void assert_closed(QHt *h, QHtStream *s, uint64_t events)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        QHT_WAIT(!qht_stream_flag(h, s[i].index, "open"));
        qht_stream_forget(&s[i]);
    }
    g_assert_cmpuint(qht_stat(h, "events"), ==, events);
    g_assert_cmpuint(qht_log_count(h, "closed"), ==,
                     qht_log_count(h, "opened"));
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
}

/*
 * A reset delivers the events that were committed before it, then closes the
 * streams.
 */
static void test_system_reset(const void *channel)
{
    QHt *h = boot(channel, "log", "streams=2,flush-ms=1000");
    uint32_t id = qht_register_number(h, "number");
    uint64_t epoch = h->caps.epoch;
    QHtStream s[2];
    unsigned i;

    for (i = 1; i <= 5; i++) {
        uint64_t instance;

        fill(h, s, id, 100);
        instance = s[1].instance;
        qtest_system_reset(h->qts);
        assert_closed(h, s, 200 * i);
        qht_restart(h);
        g_assert_cmpuint(h->caps.epoch, >, epoch);
        epoch = h->caps.epoch;
        /*
         * After the reset, a flush of the instance from before the reset fails.
         */
        g_assert_cmpuint(stream_status(h, HT_MSG_STREAM_FLUSH, s[1].index,
                                       instance), ==, HT_STATUS_NOENT);
        g_assert_cmpuint(qht_register_number(h, "number"), ==, id);
    }
    qht_quit(h);
}

/*
 * A reset also reports the count of lost events that the guest wrote after its
 * last flush.
 */
static void test_lost_at_reset(const void *channel)
{
    QHt *h = boot(channel, "log", "streams=2");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s[2];

    fill(h, s, id, 10);
    if (h->caps.channel == HT_CHANNEL_HYPERCALL) {
        qht_doorbell(&s[0]);
    }
    qht_stream_flush(&s[0]);
    qht_ring_writeq(h, s[0].index, QHT_GUEST(lost), 9);
    qtest_system_reset(h->qts);
    assert_closed(h, s, 20);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 9);
    g_assert_cmpuint(qht_log_count(h, "closed, 9 events discarded"), ==, 1);
    qht_quit(h);
}

static void takeover(QHt *h, bool by_register)
{
    struct ht_msg m = { 0 };

    if (by_register) {
        qpci_io_writel(h->pci->pdev, h->regs, HT_REG_TAKEOVER, HT_MAGIC);
    } else {
        g_assert_cmpuint(qht_call(h, HT_MSG_TAKEOVER, &m, sizeof(m)), ==,
                         HT_STATUS_OK);
    }
}

/* A takeover closes the streams of the previous driver. */
static void test_takeover(const void *channel)
{
    QHt *h = boot(channel, "log", "streams=2,flush-ms=1000");
    uint32_t id = qht_register_number(h, "number");
    uint64_t epoch = h->caps.epoch;
    QHtStream s[2], t;
    unsigned i;

    for (i = 1; i <= 20; i++) {
        fill(h, s, id, 50);
        takeover(h, i & 1 && !h->control);
        /*
         * Until the old stream is closed, the reply to STREAM_OPEN is BUSY;
         * qht_stream_open() sends the reply back.
         */
        qht_stream_open(&t, h, s[0].index);
        g_assert_cmpuint(t.instance, >, s[1].instance);
        qht_stream_close(&t);
        assert_closed(h, s, 100 * i);
    }
    qht_restart(h);
    g_assert_cmpuint(h->caps.epoch, ==, epoch + 20);
    if (!h->control) {
        /*
         * Writing another value than HT_MAGIC to HT_REG_TAKEOVER is counted as
         * an error, and takes nothing over.
         */
        qpci_io_writel(h->pci->pdev, h->regs, HT_REG_TAKEOVER, 1);
        g_assert_cmpuint(qht_stat(h, "errors"), ==, 1);
    }
    qht_quit(h);
}

/*
 * A close and a takeover both close the same instance.  They must not close the
 * instance that is opened right after them.
 */
static void test_close_twice(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=1");
    uint32_t id = qht_register_number(h, "number");
    unsigned i;

    for (i = 0; i < 200; i++) {
        g_autofree struct ht_msg_stream *m = g_malloc0(HT_MESSAGE_MAX);
        QHtStream s;

        qht_stream_open(&s, h, 0);
        m->h.type = cpu_to_le16(HT_MSG_STREAM_CLOSE);
        m->h.size = cpu_to_le32(sizeof(*m));
        m->instance = cpu_to_le64(s.instance);
        qht_exchange(h, m, sizeof(*m));
        takeover(h, false);
        qht_stream_forget(&s);
        qht_stream_open(&s, h, 0);
        qht_write_number(&s, id, i);
        qht_commit(&s);
        qht_stream_flush(&s);
        g_assert_true(qht_stream_flag(h, 0, "open"));
        qht_stream_close(&s);
        g_assert_cmpuint(qht_stat(h, "events"), ==, i + 1);
    }
    qht_quit(h);
}

/*
 * A write of status 0, by which Linux resets a virtio device that it starts to
 * use, does not close streams.
 */
static void test_status_zero(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=2,flush-ms=1000");
    uint32_t id = qht_register_number(h, "number");
    uint64_t epoch = h->caps.epoch;
    QHtStream s[2];
    unsigned i, round;

    fill(h, s, id, 10);
    for (round = 1; round <= 5; round++) {
        qvirtio_reset(&h->pci->vdev);
        for (i = 0; i < 2; i++) {
            g_assert_true(qht_stream_flag(h, s[i].index, "open"));
        }
        qht_restart(h);
        g_assert_cmpuint(h->caps.epoch, ==, epoch);
        for (i = 0; i < 2; i++) {
            qht_write_number(&s[i], id, 10 + round);
            qht_commit(&s[i]);
            qht_stream_flush(&s[i]);
        }
        g_assert_cmpuint(qht_stat(h, "events"), ==, 20 + 2 * round);
    }
    for (i = 0; i < 2; i++) {
        qht_stream_close(&s[i]);
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

/* A stop of the VM delivers the events that were committed before it. */
static void test_vm_stop(const void *channel)
{
    QHt *h = boot(channel, "log", "streams=2,flush-ms=5");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s[2];
    unsigned i;

    fill(h, s, id, 20);
    if (h->caps.channel == HT_CHANNEL_HYPERCALL) {
        qht_doorbell(&s[0]);
        qht_doorbell(&s[1]);
    }
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    QHT_WAIT(qht_stat(h, "events") == 40);
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
    for (i = 0; i < 2; i++) {
        s[i].clock += h->caps.clock_hz;
        qht_write_number(&s[i], id, 20);
        qht_commit(&s[i]);
        qht_stream_close(&s[i]);
    }
    g_assert_cmpuint(qht_stat(h, "events"), ==, 42);
    qht_quit(h);
}

/* When QEMU ends, the last events are in the log and the streams are closed. */
static void test_last_words(const void *channel)
{
    QHt *h = boot(channel, "log", "streams=2,flush-ms=1000");
    uint32_t id = qht_register_number(h, "number");
    g_autofree char *log = NULL, *text = NULL;
    QHtStream s[2];

    fill(h, s, id, 20);
    qht_stream_forget(&s[0]);
    qht_stream_forget(&s[1]);
    log = g_steal_pointer(&h->log);
    qht_quit(h);
    g_assert_true(g_file_get_contents(log, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "ht stream 0 vcpu -1 number n=19"));
    g_assert_nonnull(strstr(text, "ht stream 1 vcpu -1 number n=19"));
    g_assert_nonnull(strstr(text, "ht stream 0 \"qtest\" closed"));
    g_assert_nonnull(strstr(text, "ht stream 1 \"qtest\" closed"));
    unlink(log);
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "system-reset", test_system_reset, QHT_CHANNELS },
        { "lost-at-reset", test_lost_at_reset, QHT_RINGS },
        { "takeover", test_takeover, QHT_CHANNELS },
        { "close-twice", test_close_twice, QHT_CHANNELS },
        { "status-zero", test_status_zero, QHT_CHANNELS },
        { "vm-stop", test_vm_stop, QHT_CHANNELS },
        { "last-words", test_last_words, QHT_CHANNELS },
    };

    g_test_init(&argc, &argv, NULL);
    qht_add_tests("reset", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
