/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test events of each channel, from the guest's writes to the log
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

/*
 * A DISCARDED message with a count of MOST or more is refused.  The device adds
 * up smaller counts until a stream reports the sum, and limits the sum to MOST.
 */
#define MOST (UINT64_C(1) << 56)

typedef struct Case {
    const char *machine;
    const char *channel;
} Case;

static const Case cases[] = {
    { "pc", "hypercall" }, { "pc", "shm" }, { "pc", "virtio" },
    { "q35", "hypercall" }, { "q35", "shm" }, { "q35", "virtio" },
};

static QHt *boot(const Case *c, const char *backend, const char *props)
{
    g_autofree char *all = g_strdup_printf("channel=%s,%s", c->channel, props);

    return qht_boot(c->machine, backend, all, NULL);
}

/*
 * Check that the log has the events of a class with the numbers from @from to
 * @to - 1, each once and in order
 */
static void assert_logged(QHt *h, const char *class_name, uint64_t from,
                          uint64_t to)
{
    g_autofree char *text = NULL;
    g_autofree char *what = g_strdup_printf(" %s n=", class_name);
    uint64_t n = from;
    char *p;

    qht_settle(h);
    g_assert_true(g_file_get_contents(h->log, &text, NULL, NULL));
    for (p = text; (p = strstr(p, what)); ) {
        p += strlen(what);
        g_assert_cmpuint(g_ascii_strtoull(p, &p, 10), ==, n++);
    }
    g_assert_cmpuint(n, ==, to);
}

/* Events that fill several packets arrive, also from a packet that is open. */
static void test_events(const void *data)
{
    QHt *h = boot(data, "log", "streams=2,packet-size=4096,packets=4");
    uint32_t id = qht_register_number(h, "number");
    const uint64_t count = 2000;
    QHtStream s;
    uint64_t n;

    qht_stream_open(&s, h, HT_STREAM_ANY);
    for (n = 0; n < count; n++) {
        qht_write_number(&s, id, n);
        if (n % 7 == 0) {
            qht_commit(&s);
        }
        if (n == count / 2) {
            qht_commit(&s);
            qht_stream_flush(&s);
            g_assert_cmpuint(qht_stream_stat(h, s.index, "events"), ==, n + 1);
            assert_logged(h, "number", 0, n + 1);
        }
    }
    qht_commit(&s);
    qht_stream_flush(&s);
    g_assert_cmpuint(qht_stream_stat(h, s.index, "events"), ==, count);
    g_assert_cmpuint(qht_stream_stat(h, s.index, "bytes"), ==, count * 12);
    g_assert_cmpuint(qht_stream_stat(h, s.index, "packets"), >=,
                     count * 12 / h->caps.packet_size);
    g_assert_cmpuint(qht_stream_stat(h, s.index, "wakeups"), >, 0);
    s.lost = 3;
    qht_stream_close(&s);
    assert_logged(h, "number", 0, count);
    g_assert_cmpuint(qht_log_count(h, "ht stream 0 \"qtest\" opened"), ==, 1);
    g_assert_cmpuint(qht_log_count(h, "closed, 3 events discarded"), ==, 1);
    g_assert_cmpuint(qht_stat(h, "events"), ==, count);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 3);
    g_assert_cmpuint(qht_stat(h, "dropped"), ==, 0);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

/* Each stream delivers its own events, and can be closed and opened again. */
static void test_streams(const void *data)
{
    QHt *h = boot(data, "log", "streams=3,packet-size=4096,packets=2");
    uint32_t id = qht_register_number(h, "number");
    unsigned round, i, n;

    for (round = 0; round < 3; round++) {
        QHtStream s[3];

        for (i = 0; i < 3; i++) {
            qht_stream_open(&s[i], h, HT_STREAM_ANY);
            g_assert_cmpuint(s[i].instance, ==, round * 3 + i + 1);
        }
        for (n = 0; n < 30; n++) {
            qht_write_number(&s[n % 3], id, 1000 * round + n);
            qht_commit(&s[n % 3]);
        }
        for (i = 0; i < 3; i++) {
            qht_stream_close(&s[i]);
        }
    }
    for (i = 0; i < 3; i++) {
        g_autofree char *what =
            g_strdup_printf(" ht stream %u vcpu -1 number ", i);

        g_assert_cmpuint(qht_log_count(h, what), ==, 30);
    }
    g_assert_cmpuint(qht_stat(h, "events"), ==, 90);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

/* The log shows text, signed numbers, sequences, arrays and floats as sent. */
static void test_types(const void *data)
{
    static const uint8_t fields[] = {
        HT_FIELD_TEXT, 0, 0, 1, 0, 0, 't',
        HT_FIELD_S16, 0, 0, 1, 0, 0, 'i',
        HT_FIELD_SEQUENCE, HT_FIELD_U8, HT_FIELD_HEX, 1, 0, 0, 's',
        HT_FIELD_ARRAY, HT_FIELD_U16, 0, 1, 2, 0, 'a',
        HT_FIELD_F64, 0, 0, 1, 0, 0, 'd',
    };
    static const uint8_t payload[] = {
        5, 0, 'h', 'e', 'l', 'l', 'o', 0xfe, 0xff,
        2, 0, 0x0a, 0xff, 7, 0, 0, 1,
        0, 0, 0, 0, 0, 0, 0xf8, 0x3f,
    };
    QHt *h = boot(data, "log", "streams=1,packet-size=4096,packets=2");
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    QHtStream s;

    m->nr_fields = 5;
    m->name_len = 5;
    memcpy(m->data, "types", 5);
    memcpy(m->data + 5, fields, sizeof(fields));
    g_assert_cmpuint(qht_call(h, HT_MSG_CLASS_REGISTER, m,
                              sizeof(*m) + 5 + sizeof(fields)), ==,
                     HT_STATUS_OK);
    qht_stream_open(&s, h, 0);
    qht_write(&s, le32_to_cpu(m->id), payload, sizeof(payload));
    qht_commit(&s);
    qht_stream_close(&s);
    g_assert_cmpuint(qht_log_count(h, " types t=\"hello\" i=-2 s=[0xa 0xff]"
                                   " a=[7 256] d=1.5"), ==, 1);
    qht_quit(h);
}

static double logged_time(QHt *h, const char *what)
{
    g_autofree char *text = NULL;
    char *p;

    qht_settle(h);
    g_assert_true(g_file_get_contents(h->log, &text, NULL, NULL));
    p = strstr(text, what);
    g_assert_nonnull(p);
    while (p > text && p[-1] != '\n') {
        p--;
    }
    return g_ascii_strtod(p, NULL);
}

/*
 * Guest counters are converted to the host's CLOCK_MONOTONIC.  Under qtest the
 * counter is the host's TSC since the start of the VM.
 */
static void test_time(const void *data)
{
    double before = g_get_monotonic_time() / 1e6, after, opened, closed;
    QHt *h = boot(data, "log", "streams=1,packet-size=4096,packets=4");
    uint32_t id = qht_register_number(h, "number");
    struct ht_msg_time m = { .prev = 0 };
    QHtStream s;

    g_assert_cmpuint(qht_call(h, HT_MSG_TIME_SYNC, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
    after = g_get_monotonic_time() / 1e6;
    g_assert_cmpfloat(le64_to_cpu(m.host_ns) / 1e9, >=, before);
    g_assert_cmpfloat(le64_to_cpu(m.host_ns) / 1e9, <=, after);
    /*
     * The bound is a few us, unless this program was preempted: tolerate 10 ms.
     */
    g_assert_cmpuint(le64_to_cpu(m.bound_ns), <, 10000000);
    /*
     * The bound includes a drift of 50 ppm to each side in the next 25 ms: at
     * least 2.5 us.
     */
    g_assert_cmpuint(le64_to_cpu(m.bound_ns), >=, 2500);

    after = g_get_monotonic_time() / 1e6;
    qht_stream_open(&s, h, 0);
    opened = g_get_monotonic_time() / 1e6;
    /* A counter from before the opening is dated at the opening. */
    s.clock = 0;
    qht_write_number(&s, id, 1);
    qht_close_packet(&s);
    /* A counter in the future must not be dated after the present. */
    s.clock = h->caps.clock_hz * 1000;
    qht_write_number(&s, id, 2);
    qht_commit(&s);
    qht_stream_close(&s);
    closed = g_get_monotonic_time() / 1e6;
    g_assert_cmpfloat(logged_time(h, "number n=1"), >=, after);
    g_assert_cmpfloat(logged_time(h, "number n=1"), <=, opened);
    g_assert_cmpfloat(logged_time(h, "number n=2"), >=, opened);
    g_assert_cmpfloat(logged_time(h, "number n=2"), <=, closed);
    qht_quit(h);
}

/*
 * hypercall with batch=1: the device consumes an event in the write to the
 * doorbell, before this write returns.  A write anywhere in the 64 KiB of a
 * stream's doorbell rings this doorbell only.
 */
static void test_hypercall_synchronous(const void *data)
{
    QHt *h = qht_boot(data, "null", "channel=hypercall,streams=2", NULL);
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;
    unsigned n;

    qht_stream_open(&s, h, 1);
    qht_stream_flush(&s);       /* wait for the poll that the opening starts */
    for (n = 0; n < 200; n++) {
        qht_write_number(&s, id, n);
        /* without a doorbell the host does not consume */
        g_assert_cmpuint(qht_stream_stat(h, 1, "events"), ==, n);
        qpci_io_writel(h->pci->pdev, h->regs, h->caps.doorbell_offset +
                       HT_MAP_ALIGN - 4 - 4 * n, 0);
        g_assert_cmpuint(qht_stream_stat(h, 1, "events"), ==, n);
        qpci_io_writel(h->pci->pdev, h->regs, h->caps.doorbell_offset +
                       HT_MAP_ALIGN + HT_MAP_ALIGN / 200 * n / 4 * 4, 0);
        g_assert_cmpuint(qht_stream_stat(h, 1, "events"), ==, n + 1);
    }
    qht_stream_close(&s);
    qht_quit(h);
}

/* hypercall: a timer consumes events that do not fill a batch. */
static void test_hypercall_batch(const void *data)
{
    QHt *h = qht_boot(data, "null", "channel=hypercall,streams=1,batch=8,"
                      "flush-ms=20", NULL);
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;
    unsigned round, n = 0, i;

    g_assert_cmpuint(h->caps.batch, ==, 8);
    qht_stream_open(&s, h, 0);
    for (round = 0; round < 5; round++) {
        for (i = 0; i < 3; i++) {
            qht_write_number(&s, id, n++);
        }
        QHT_WAIT(qht_stream_stat(h, 0, "events") == n);
    }
    qht_stream_close(&s);
    qht_quit(h);
}

/* shm: without a doorbell, a timer consumes the events of an open packet. */
static void test_shm_quiet(const void *data)
{
    QHt *h = qht_boot(data, "null", "channel=shm,streams=2,flush-ms=5", NULL);
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;
    unsigned n;

    qht_stream_open(&s, h, 0);
    for (n = 0; n < 5; n++) {
        qht_write_number(&s, id, n);
    }
    QHT_WAIT(qht_stream_stat(h, 0, "events") == 5);
    qht_stream_close(&s);
    qht_quit(h);
}

/*
 * shm: if a stream has no new events, the device arms the stream's wake word
 * for the next commit. A ring of the doorbell does not raise the stream's
 * counter "wakeups" if the stream has no new event.
 */
static void test_shm_doorbell(const void *data)
{
    QHt *h = qht_boot(data, "null", "channel=shm,streams=2,flush-ms=1", NULL);
    uint32_t id = qht_register_number(h, "number");
    uint64_t head, wakeups;
    QHtStream s;
    unsigned n;

    qht_stream_open(&s, h, 1);
    for (n = 0; n < 20; n++) {
        qht_write_number(&s, id, n);
        head = qht_ring_readq(h, 1, QHT_GUEST(head));
        /*
         * Ring the doorbell if the device has asked for it; if not, the
         * device's timer finds the event.
         */
        if (qht_ring_readq(h, 1, QHT_HOST(wake)) <= head) {
            qht_doorbell(&s);
        }
        QHT_WAIT(qht_stream_stat(h, 1, "events") == n + 1);
        /* The device asks for a doorbell at the next commit. */
        QHT_WAIT(qht_ring_readq(h, 1, QHT_HOST(wake)) == head + 1);
    }
    wakeups = qht_stream_stat(h, 1, "wakeups");
    /* Ring the doorbell, which all streams share, by writes of each size. */
    for (n = 0; n < 10; n++) {
        qpci_io_writeb(h->pci->pdev, h->regs, h->caps.doorbell_offset, 0);
        qpci_io_writew(h->pci->pdev, h->regs, h->caps.doorbell_offset, 0);
        qpci_io_writel(h->pci->pdev, h->regs, h->caps.doorbell_offset, 0);
        qpci_io_writeq(h->pci->pdev, h->regs, h->caps.doorbell_offset, 0);
    }
    qht_stream_flush(&s);
    g_assert_cmpuint(qht_stream_stat(h, 1, "wakeups"), ==, wakeups);
    qht_stream_close(&s);
    qht_quit(h);
}

/* mode=overwrite: "dropped" counts the events of overwritten packets. */
static void test_overwrite(const void *data)
{
    QHt *h = qht_boot(data, "null", "channel=hypercall,mode=overwrite,"
                      "streams=1,packet-size=4096,packets=4", NULL);
    uint32_t id = qht_register_number(h, "number");
    uint64_t events, dropped;
    QHtStream s;
    unsigned n;

    g_assert_cmpuint(h->caps.mode, ==, HT_MODE_OVERWRITE);
    qht_stream_open(&s, h, 0);
    qht_stream_flush(&s);       /* wait for the poll that the opening starts */
    for (n = 0; n < 10 * 336 + 5; n++) {
        qht_write_number(&s, id, n);
    }
    qht_doorbell(&s);
    /* the doorbell consumes 8 KiB, the worker the rest */
    qht_stream_flush(&s);
    events = qht_stream_stat(h, 0, "events");
    dropped = qht_stream_stat(h, 0, "dropped");
    g_assert_cmpuint(events, ==, 3 * 336 + 5);
    g_assert_cmpuint(dropped, ==, 7 * 336);
    g_assert_cmpuint(qht_stream_stat(h, 0, "errors"), ==, 0);
    qht_stream_close(&s);
    qht_quit(h);
}

/* The producer's count of lost events is in the statistics and in the log. */
static void test_lost(const void *data)
{
    QHt *h = boot(data, "log", "streams=1,packet-size=4096,packets=2");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;

    qht_stream_open(&s, h, 0);
    qht_write_number(&s, id, 1);
    s.lost = 17;
    if (!h->control) {
        qht_ring_writeq(h, 0, QHT_GUEST(lost), s.lost);
    }
    qht_commit(&s);
    qht_stream_flush(&s);
    g_assert_cmpuint(qht_stream_stat(h, 0, "lost"), ==, 17);
    qht_stream_close(&s);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 17);
    g_assert_cmpuint(qht_log_count(h, "closed, 17 events discarded"), ==, 1);
    qht_quit(h);
}

/*
 * A stop of the VM writes the count of discarded events into the trace, because
 * QEMU may end after the stop without closing the stream.
 */
static void test_lost_stop(const void *data)
{
    QHt *h = boot(data, "log", "streams=1,packet-size=4096,packets=2");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;

    qht_stream_open(&s, h, 0);
    qht_write_number(&s, id, 1);
    qht_commit(&s);
    qht_write_number(&s, id, 2);
    s.lost = 5;
    if (!h->control) {
        qht_ring_writeq(h, 0, QHT_GUEST(lost), s.lost);
    }
    qht_commit(&s);
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    g_assert_cmpuint(qht_log_count(h, "goes on, 5 events discarded"), ==, 1);
    /*
     * The log has two lines with a count of discards, of the opening and of the
     * first stop: a second stop adds none.
     */
    qtest_qmp_assert_success(h->qts, "{'execute': 'cont'}");
    qtest_qmp_assert_success(h->qts, "{'execute': 'stop'}");
    g_assert_cmpuint(qht_log_count(h, "events discarded"), ==, 2);
    qht_stream_forget(&s);
    qht_quit(h);
}

static void discarded(QHt *h, uint64_t count, unsigned status)
{
    struct ht_msg_discarded m = { .count = cpu_to_le64(count) };

    g_assert_cmpuint(qht_call(h, HT_MSG_DISCARDED, &m, sizeof(m)), ==, status);
}

/*
 * A DISCARDED message reports events that were discarded without a stream. Its
 * count is added to a stream that is open, else to the next one that is opened.
 */
static void test_discarded(const void *data)
{
    QHt *h = boot(data, "log", "streams=2,packet-size=4096,packets=2");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;

    discarded(h, 0, HT_STATUS_OK);
    discarded(h, 7, HT_STATUS_OK);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 7);
    qht_stream_open(&s, h, 1);
    qht_write_number(&s, id, 1);
    s.lost = 2;
    qht_commit(&s);
    qht_stream_flush(&s);
    discarded(h, 30, HT_STATUS_OK);
    qht_stream_close(&s);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 39);
    g_assert_cmpuint(qht_log_count(h, "closed, 39 events discarded"), ==, 1);
    /* a count of MOST is refused; the sum is limited to MOST */
    discarded(h, MOST, HT_STATUS_INVAL);
    discarded(h, MOST - 1, HT_STATUS_OK);
    discarded(h, MOST - 1, HT_STATUS_OK);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 39 + MOST);
    qht_stream_open(&s, h, 0);
    qht_stream_close(&s);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 39 + MOST);
    qht_quit(h);
}

static void add(const char *name, const Case *c, void (*fn)(const void *))
{
    g_autofree char *path = g_strdup_printf("hypertrace/data/%s/%s/%s",
                                            c->machine, c->channel, name);

    qtest_add_data_func(path, c, fn);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        if (!qtest_has_machine(cases[i].machine)) {
            continue;
        }
        add("events", &cases[i], test_events);
        add("streams", &cases[i], test_streams);
        add("types", &cases[i], test_types);
        add("time", &cases[i], test_time);
        add("lost", &cases[i], test_lost);
        add("lost-stop", &cases[i], test_lost_stop);
        add("discarded", &cases[i], test_discarded);
    }
    qtest_add_data_func("hypertrace/data/hypercall/synchronous", "pc",
                        test_hypercall_synchronous);
    qtest_add_data_func("hypertrace/data/hypercall/batch", "pc",
                        test_hypercall_batch);
    qtest_add_data_func("hypertrace/data/shm/quiet", "pc", test_shm_quiet);
    qtest_add_data_func("hypertrace/data/shm/doorbell", "pc",
                        test_shm_doorbell);
    qtest_add_data_func("hypertrace/data/overwrite", "pc", test_overwrite);
    return g_test_run();
}
