/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace, channel=virtio: test streams with memory that the driver
 * announces to the device.  At a stop or a reset, the device reads from this
 * memory the committed events that the driver has not submitted.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

#define PROPS "channel=virtio,packet-size=4096,packets=4,streams=2"

static QHt *boot(const char *backend)
{
    return qht_boot("pc", backend, PROPS, NULL);
}

static void stop(QHt *h)
{
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'stop' }");
}

static void cont(QHt *h)
{
    qtest_qmp_assert_success(h->qts, "{ 'execute': 'cont' }");
}

static uint64_t events(QHt *h)
{
    return qht_stream_stat(h, 0, "events");
}

/*
 * Open a stream, submit 10 events, and commit 5 further events without
 * submitting them
 */
static void fill(QHtStream *s, QHt *h, uint32_t id)
{
    qht_stream_announce(s, h, 0);
    qht_write_numbers(s, id, 0, 10);
    qht_commit(s);
    QHT_WAIT(events(h) == 10);
    qht_write_numbers(s, id, 10, 15);
}

/*
 * A reset of the machine consumes committed events from announced memory, also
 * those that the guest has not submitted.
 */
static void test_reset(void)
{
    QHt *h = boot("log");
    uint32_t id = qht_register_number(h, "number"), round;
    QHtStream s;

    for (round = 0; round < 3; round++) {
        fill(&s, h, id);
        qtest_system_reset(h->qts);
        g_assert_false(qht_stream_flag(h, 0, "open"));
        g_assert_cmpuint(events(h), ==, 15);
        qht_stream_forget(&s);
        qht_restart(h);
    }
    /* without announced memory, only submitted events are consumed */
    qht_stream_open(&s, h, 0);
    qht_write_numbers(&s, id, 0, 1);
    qht_commit(&s);
    qht_write_numbers(&s, id, 1, 2);
    qtest_system_reset(h->qts);
    g_assert_cmpuint(events(h), ==, 1);
    qht_stream_forget(&s);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

/*
 * A stop of the VM consumes committed events that the guest has not submitted
 * yet.  The guest submits them after the stop; each is recorded once.
 */
static void test_stop(void)
{
    QHt *h = boot("log");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;
    unsigned i;

    fill(&s, h, id);
    for (i = 0; i < 3; i++) {
        stop(h);
        g_assert_cmpuint(events(h), ==, 15);
        cont(h);
    }
    /*
     * Submit the 5 committed events for the first time: the stops have consumed
     * them, so the host must not count them again. Then stop after 3 more
     * events that are committed and not submitted.
     */
    qht_commit(&s);
    qht_stream_flush(&s);
    g_assert_cmpuint(events(h), ==, 15);
    qht_write_numbers(&s, id, 15, 18);
    stop(h);
    cont(h);
    qht_write_numbers(&s, id, 18, 400);
    qht_commit(&s);
    qht_stream_flush(&s);
    g_assert_cmpuint(events(h), ==, 400);
    /* Stop also when a packet ends, and after the ring has wrapped. */
    for (i = 1; i <= 12; i++) {
        qht_write_numbers(&s, id, 400 * i, 400 * (i + 1));
        if (i % 3) {
            qht_commit(&s);
            qht_stream_flush(&s);
        }
        if (i % 2) {
            qht_close_packet(&s);
        }
        stop(h);
        g_assert_cmpuint(events(h), ==, 400 * (i + 1));
        cont(h);
    }
    qht_settle(h);
    qht_assert_numbers(h->log, 0, 0, 13 * 400);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    g_assert_cmpuint(qht_stat(h, "dropped"), ==, 0);
    qht_stream_close(&s);
    qht_quit(h);
}

/*
 * A stop of the VM consumes closed packets, also packets that the guest has
 * submitted partly or not at all.
 */
static void test_packets(void)
{
    QHt *h = boot("log");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;
    unsigned round;

    for (round = 0; round < 2; round++) {
        qht_stream_announce(&s, h, 0);
        if (round) {
            qht_write_numbers(&s, id, 0, 10);
            qht_commit(&s);
            QHT_WAIT(events(h) == 10);
        }
        s.held = true;
        /* a packet holds 336 events of 12 bytes */
        qht_write_numbers(&s, id, round * 10, 4 * 336 - 5);
        stop(h);
        g_assert_cmpuint(events(h), ==, 4 * 336 - 5);
        cont(h);
        g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
        qtest_system_reset(h->qts);
        qht_stream_forget(&s);
        qht_restart(h);
    }
    qht_settle(h);
    g_assert_cmpuint(qht_log_count(h, "number"), ==, 2 * (4 * 336 - 5));
    qht_quit(h);
}

/* After a reset by the driver, the device no longer reads announced memory. */
static void test_driver_reset(void)
{
    QHt *h = boot("log");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;

    fill(&s, h, id);
    qvirtio_reset(&h->pci->vdev);
    g_assert_cmpuint(events(h), ==, 15);
    qht_write_numbers(&s, id, 15, 20);
    stop(h);
    g_assert_cmpuint(events(h), ==, 15);
    cont(h);
    /*
     * If the first entry of the announced table is 0, the device does not read
     * the stream's memory.
     */
    qht_restart(h);
    qht_stream_close(&s);
    fill(&s, h, id);
    qtest_writeq(h->qts, s.memory, 0);
    stop(h);
    g_assert_cmpuint(events(h), ==, 10);
    cont(h);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
    qht_stream_forget(&s);
}

/* If HT_F_MEMORY is not negotiated, the device does not read the memory. */
static void test_declined(void)
{
    QHt *h = boot("log");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s;

    h->declined = 1ull << HT_F_MEMORY;
    qtest_system_reset(h->qts);
    qht_restart(h);
    fill(&s, h, id);
    stop(h);
    g_assert_cmpuint(events(h), ==, 10);
    cont(h);
    qtest_system_reset(h->qts);
    g_assert_cmpuint(events(h), ==, 10);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_stream_forget(&s);
    qht_quit(h);
}

static void test_offered(void)
{
    static const struct {
        const char *props;
        bool memory;
    } rows[] = {
        { "channel=virtio", true },
        { "channel=virtio,iommu_platform=on", false },
        { "channel=shm", false },
        { "channel=hypercall", false },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        QHt *h = qht_boot("pc", "null", rows[i].props, NULL);
        uint64_t features = qvirtio_get_features(&h->pci->vdev);

        g_test_message("%s", rows[i].props);
        g_assert_cmpint(!!(features & 1ull << HT_F_MEMORY), ==, rows[i].memory);
        qht_quit(h);
    }
}

/*
 * The source of a migration consumes events that were committed and not yet
 * submitted.  When the guest submits them on the target, the target does not
 * consume them again.
 */
static void test_migration(void)
{
    QHt *h = boot("log");
    uint32_t id = qht_register_number(h, "number");
    QHtTarget *t = qht_target("pc", "log", PROPS, NULL);
    char *before;
    QHtStream s;

    fill(&s, h, id);
    qht_migrate(h, t);
    before = qht_move(h, t, true);
    qht_target_free(t);
    qht_assert_numbers(before, 0, 0, 15);
    qht_write_numbers(&s, id, 15, 20);
    qht_commit(&s);
    qht_stream_flush(&s);
    qht_write_numbers(&s, id, 20, 30);
    stop(h);
    qht_settle(h);
    qht_assert_numbers(h->log, 0, 15, 30);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
    qht_stream_forget(&s);
    qht_unlink(before);
}

/*
 * If announced memory has an invalid address or contents, QEMU survives, and
 * the device counts at most the events that the guest has committed.  The
 * device refuses to open a stream with an unaligned address.
 */
static void test_hostile(void)
{
    QHt *h = boot("null");
    uint32_t id = qht_register_number(h, "number"), i;
    const uint64_t bar = h->pci->bar.addr;
    const struct {
        const char *what;
        /* address that the driver announces; 0: that of the valid table */
        uint64_t memory;
        /* index of the table's entry that the test changes; -1: none */
        int entry;
        uint64_t value;         /* new value of the changed entry */
        /*
         * index of the word of the guest's line that the test changes; -1: none
         */
        int at;
        uint64_t word;          /* new value of the changed word */
        bool error;             /* the device must count an error */
    } bad[] = {
        { "no RAM", bar, -1, 0, -1, 0, true },
        { "a hole", UINT64_C(1) << 50, -1, 0, -1, 0, true },
        { "the end", UINT64_MAX - 7, -1, 0, -1, 0, true },
        { "control page no RAM", 0, 0, bar, -1, 0, true },
        { "control page unaligned", 0, 0, 0x100001, -1, 0, false },
        { "control page at the end", 0, 0, UINT64_MAX, -1, 0, true },
        { "slot no RAM", 0, 1, bar, -1, 0, true },
        { "slot at the end", 0, 1, UINT64_MAX - 100, -1, 0, true },
        { "slot not there", 0, 1, 0, -1, 0, true },
        { "head before", 0, -1, 0, 0, 70, true },
        { "head beyond the ring", 0, -1, 0, 0, 4 * 4096 + 1, true },
        { "head beyond all", 0, -1, 0, 0, UINT64_MAX, true },
        { "head inside an event", 0, -1, 0, 0, 64 + 150 + 1, true },
        { "head in a packet that was not begun", 0, -1, 0, 0, 3 * 4096 + 9,
          true },
        { "end inside an event", 0, -1, 0, 3, 64 + 150 + 1, false },
        { "lost events", 0, -1, 0, 2, UINT64_MAX, false },
    };

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        uint64_t errors = qht_stat(h, "errors");
        QHtStream s;

        g_test_message("%s", bad[i].what);
        if (bad[i].memory) {
            struct ht_msg_open m = {
                .vcpu = cpu_to_le32(-1),
                .memory = cpu_to_le64(bad[i].memory),
            };

            g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_OPEN, &m, sizeof(m)),
                             ==, HT_STATUS_OK);
        } else {
            fill(&s, h, id);
            if (bad[i].at >= 0) {
                qtest_writeq(h->qts, qtest_readq(h->qts, s.memory) +
                             8 * bad[i].at, bad[i].word);
            }
            if (bad[i].entry >= 0) {
                qtest_writeq(h->qts, s.memory + 8 * bad[i].entry,
                             bad[i].value);
            }
        }
        stop(h);
        if (bad[i].error) {
            g_assert_cmpuint(qht_stat(h, "errors"), >, errors);
        }
        g_assert_cmpuint(events(h), <=, 15);
        /*
         * The device counts the error at the first stop only, not at each stop.
         */
        errors = qht_stat(h, "errors");
        cont(h);
        stop(h);
        cont(h);
        g_assert_cmpuint(qht_stat(h, "errors"), ==, errors);
        qtest_system_reset(h->qts);
        if (!bad[i].memory) {
            qht_stream_forget(&s);
        }
        qht_restart(h);
    }
    {
        struct ht_msg_open m = { .memory = cpu_to_le64(4097) };

        g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_OPEN, &m, sizeof(m)), ==,
                         HT_STATUS_INVAL);
    }
    qht_quit(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("hypertrace/memory/reset", test_reset);
    qtest_add_func("hypertrace/memory/stop", test_stop);
    qtest_add_func("hypertrace/memory/packets", test_packets);
    qtest_add_func("hypertrace/memory/driver-reset", test_driver_reset);
    qtest_add_func("hypertrace/memory/declined", test_declined);
    qtest_add_func("hypertrace/memory/offered", test_offered);
    qtest_add_func("hypertrace/memory/migration", test_migration);
    qtest_add_func("hypertrace/memory/hostile", test_hostile);
    return g_test_run();
}
