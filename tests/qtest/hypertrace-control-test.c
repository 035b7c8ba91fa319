/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test control messages, well-formed and malformed
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"
#include "standard-headers/linux/virtio_pci.h"

static QHt *boot(const void *channel, const char *backend, const char *props)
{
    g_autofree char *all = g_strdup_printf("channel=%s,packet-size=4096,"
                                           "packets=4,%s",
                                           (const char *)channel, props);

    return qht_boot("pc", backend, all, NULL);
}

static void *message(uint16_t type, size_t size)
{
    struct ht_msg *m = g_malloc0(HT_MESSAGE_MAX);

    stw_le_p(&m->type, type);
    stl_le_p(&m->size, size);
    stl_le_p(&m->cookie, 0xc001e);
    return m;
}

/*
 * Size of a message of this type, without room for a reply; 0 if several sizes
 * are valid
 */
static size_t size_of(uint16_t type)
{
    switch (type) {
    case HT_MSG_STREAM_OPEN:
        return sizeof(struct ht_msg_open);
    case HT_MSG_STREAM_CLOSE:
    case HT_MSG_STREAM_FLUSH:
        return sizeof(struct ht_msg_stream);
    case HT_MSG_TIME_SYNC:
        return sizeof(struct ht_msg_time);
    case HT_MSG_STATS:
        return sizeof(struct ht_msg_stats);
    case HT_MSG_DISCARDED:
        return sizeof(struct ht_msg_discarded);
    case HT_MSG_ENABLED:
        return sizeof(struct ht_msg_enabled);
    case HT_MSG_SETTINGS:
        return sizeof(struct ht_msg_settings);
    default:
        return 0;
    }
}

/* A reply has at least a header, with the message's type and cookie. */
static void assert_reply(struct ht_msg *m, uint16_t type)
{
    g_assert_cmpuint(lduw_le_p(&m->type), ==, type);
    g_assert_cmphex(ldl_le_p(&m->cookie), ==, 0xc001e);
    g_assert_cmpuint(ldl_le_p(&m->size), >=, sizeof(*m));
    g_assert_cmpuint(ldl_le_p(&m->size), <=, HT_MESSAGE_MAX);
}

/*
 * A message with a wrong size for its type is refused and counted as an error.
 */
static void test_malformed(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=2");
    uint64_t errors = 0;
    uint16_t type;
    size_t size;

    for (type = HT_MSG_STREAM_OPEN; type <= HT_MSG_SETTINGS; type++) {
        /*
         * A TAKEOVER message is only a header; the device ignores bytes after
         * it.
         */
        for (size = sizeof(struct ht_msg);
             type != HT_MSG_TAKEOVER && size < 128; size++) {
            g_autofree void *m = message(type, size);

            if (size == size_of(type)) {
                continue;
            }
            g_assert_cmpuint(qht_exchange(h, m, size), ==, HT_STATUS_INVAL);
            assert_reply(m, type);
            errors++;
        }
    }
    for (size = sizeof(struct ht_msg); size < sizeof(struct ht_msg_class);
         size++) {
        g_autofree void *r = message(HT_MSG_CLASS_REGISTER, size);
        g_autofree void *l = message(HT_MSG_CLASS_LIST, size);

        g_assert_cmpuint(qht_exchange(h, r, size), ==, HT_STATUS_INVAL);
        g_assert_cmpuint(qht_exchange(h, l, size), ==, HT_STATUS_INVAL);
        errors += 2;
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, errors);
    qht_quit(h);
}

/*
 * If the size in a message's header differs from the size given to the device,
 * the message is refused and counted as an error.
 */
static void test_wrong_size(const void *channel)
{
    static const uint32_t sizes[] = {
        0, 1, 15, 16, 17, 47, 49, HT_MESSAGE_MAX, HT_MESSAGE_MAX + 1,
        0x10030, 0x80000030, UINT32_MAX,
    };
    QHt *h = boot(channel, "null", "streams=1");
    uint64_t errors = 0;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree struct ht_msg *m = message(HT_MSG_TIME_SYNC, sizes[i]);

        if (sizes[i] == sizeof(struct ht_msg_time)) {
            continue;
        }
        /* the header has a wrong size */
        g_assert_cmpuint(qht_exchange(h, m, sizeof(struct ht_msg_time)), ==,
                         HT_STATUS_INVAL);
        assert_reply(m, HT_MSG_TIME_SYNC);
        errors++;
        if (!h->control) {
            /* the register gets a wrong size */
            g_autofree struct ht_msg *d =
                message(HT_MSG_TIME_SYNC, sizeof(struct ht_msg_time));

            qpci_memwrite(h->pci->pdev, h->ring, h->caps.mailbox_offset, d,
                          sizeof(struct ht_msg_time));
            qpci_io_writel(h->pci->pdev, h->regs, HT_REG_MAILBOX_GO, sizes[i]);
            qpci_memread(h->pci->pdev, h->ring, h->caps.mailbox_offset, d,
                         sizeof(*d));
            g_assert_cmpuint(ldl_le_p(&d->status), ==, HT_STATUS_INVAL);
            errors++;
        }
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, errors);
    qht_quit(h);
}

static void test_unknown_type(const void *channel)
{
    static const uint16_t types[] = { 0, 12, 255, 256, 65535 };
    QHt *h = boot(channel, "null", "streams=1");
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autofree struct ht_msg *m = message(types[i], 64);

        g_assert_cmpuint(qht_exchange(h, m, 64), ==, HT_STATUS_NOENT);
        assert_reply(m, types[i]);
    }
    qht_quit(h);
}

/*
 * The reply to a valid CLASS_REGISTER has the class's id if its status is OK or
 * BUSY.
 */
static void test_register(const void *channel)
{
    QHt *h = boot(channel, "log", "streams=1");
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    g_autofree struct ht_msg_class *again = g_malloc0(HT_MESSAGE_MAX);
    size_t size = qht_class_message(m, "one"), cut;
    uint32_t status;

    for (cut = sizeof(*m); cut < size; cut++) {
        memcpy(again, m, size);
        stl_le_p(&again->h.size, cut);
        g_assert_cmpuint(qht_exchange(h, again, cut), ==, HT_STATUS_INVAL);
    }
    memcpy(again, m, size);
    status = qht_exchange(h, again, size);
    g_assert_true(status == HT_STATUS_BUSY || status == HT_STATUS_OK);
    g_assert_cmpuint(ldl_le_p(&again->id), ==, 1);
    g_assert_cmpuint(ldl_le_p(&again->h.size), ==, size);
    QHT_WAIT(qht_exchange(h, again, size) == HT_STATUS_OK);
    g_assert_cmpuint(ldl_le_p(&again->id), ==, 1);

    g_assert_cmpuint(qht_register_number(h, "two"), ==, 2);
    g_assert_cmpuint(qht_register_number(h, "one"), ==, 1);
    /*
     * Register a class with the same name and another field's name: it gets an
     * id of its own.
     */
    size = qht_class_message(m, "one");
    m->data[size - 1 - sizeof(*m)] = 'm';
    g_assert_cmpuint(qht_call(h, HT_MSG_CLASS_REGISTER, m, size), ==,
                     HT_STATUS_OK);
    g_assert_cmpuint(ldl_le_p(&m->id), ==, 3);
    qht_quit(h);
}

static void test_list(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=1");
    g_autofree struct ht_msg_class *want = g_malloc0(HT_MESSAGE_MAX);
    uint32_t i;

    for (i = 0; i < 20; i++) {
        g_autofree char *name = g_strdup_printf("class.%u", i);

        g_assert_cmpuint(qht_register_number(h, name), ==, i + 1);
    }
    for (i = 0; i < 20; i++) {
        g_autofree char *name = g_strdup_printf("class.%u", i);
        g_autofree struct ht_msg_class *m =
            message(HT_MSG_CLASS_LIST, sizeof(*m));
        size_t size = qht_class_message(want, name);

        stl_le_p(&m->index, i);
        g_assert_cmpuint(qht_exchange(h, m, sizeof(*m)), ==, HT_STATUS_OK);
        assert_reply(&m->h, HT_MSG_CLASS_LIST);
        g_assert_cmpuint(ldl_le_p(&m->id), ==, i + 1);
        g_assert_cmpuint(ldl_le_p(&m->h.size), ==, size);
        g_assert_cmpuint(m->nr_fields, ==, 1);
        g_assert_cmpuint(m->loglevel, ==, 13);
        g_assert_cmpmem(m->data, size - sizeof(*m), want->data,
                        size - sizeof(*m));
    }
    for (i = 0; i < 3; i++) {
        static const uint32_t index[] = { 20, 0x80000000, UINT32_MAX };
        g_autofree struct ht_msg_class *m =
            message(HT_MSG_CLASS_LIST, sizeof(*m));

        stl_le_p(&m->index, index[i]);
        g_assert_cmpuint(qht_exchange(h, m, sizeof(*m)), ==, HT_STATUS_NOENT);
    }
    qht_quit(h);
}

static uint32_t open_status(QHt *h, uint32_t index, uint64_t instance,
                            const char *name)
{
    struct ht_msg_open m = {
        .stream = cpu_to_le32(index),
        .instance = cpu_to_le64(instance),
    };

    memcpy(m.name, name, MIN(strlen(name), HT_STREAM_NAME_MAX));
    return qht_call(h, HT_MSG_STREAM_OPEN, &m, sizeof(m));
}

/*
 * Promise: if HT_F_MEMORY is not negotiated, the device ignores every value of
 * `memory`.
 */
static void test_memory_ignored(const void *channel)
{
    static const uint64_t memory[] = { 1, 7, 0x1004, UINT64_MAX };
    QHt *h = boot(channel, "null", "streams=4");
    unsigned i;

    if (h->control) {
        h->declined = 1ull << HT_F_MEMORY;
        qht_restart(h);
    }
    for (i = 0; i < G_N_ELEMENTS(memory); i++) {
        struct ht_msg_open m = {
            .stream = cpu_to_le32(i),
            .memory = cpu_to_le64(memory[i]),
        };

        g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_OPEN, &m, sizeof(m)), ==,
                         HT_STATUS_OK);
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    /*
     * At a reset, the device must not read these invalid addresses, else it
     * would count errors.
     */
    qtest_system_reset(h->qts);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    qht_quit(h);
}

static uint8_t generation(QHt *h)
{
    return qpci_io_readb(h->pci->pdev, h->pci->bar,
                         h->pci->common_cfg_offset +
                         offsetof(struct virtio_pci_common_cfg,
                                  config_generation));
}

/*
 * Promise: a TAKEOVER, which changes `epoch` in the configuration, also changes
 * virtio's generation of the configuration.
 */
static void test_takeover_generation(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=1");
    uint8_t before = generation(h);
    struct ht_msg m = { };

    g_assert_cmpuint(qht_call(h, HT_MSG_TAKEOVER, &m, sizeof(m)), ==,
                     HT_STATUS_OK);
    g_assert_cmpuint(generation(h), !=, before);
    qht_quit(h);
}

static void test_open(const void *channel)
{
    QHt *h = boot(channel, "log", "streams=3");
    QHtStream s[3];
    unsigned i;

    g_assert_cmpuint(open_status(h, 3, 0, ""), ==, HT_STATUS_NOENT);
    g_assert_cmpuint(open_status(h, 0, 5, ""), ==, HT_STATUS_NOENT);
    g_assert_cmpuint(open_status(h, HT_STREAM_ANY, 5, ""), ==,
                     HT_STATUS_NOENT);
    g_assert_cmpuint(open_status(h, 0, 0, "a\nb"), ==, HT_STATUS_INVAL);
    g_assert_cmpuint(open_status(h, 0, 0, "a\x7f"), ==, HT_STATUS_INVAL);
    g_assert_cmpuint(open_status(h, 0, 0, "\xc3\xa4"), ==, HT_STATUS_INVAL);

    qht_stream_open(&s[1], h, 1);
    g_assert_cmpuint(open_status(h, 1, 0, ""), ==, HT_STATUS_EXIST);
    g_assert_cmpuint(open_status(h, 1, s[1].instance, ""), ==, HT_STATUS_OK);
    g_assert_cmpuint(open_status(h, 1, s[1].instance + 1, ""), ==,
                     HT_STATUS_NOENT);
    qht_stream_open(&s[0], h, HT_STREAM_ANY);
    qht_stream_open(&s[2], h, HT_STREAM_ANY);
    g_assert_cmpuint(open_status(h, HT_STREAM_ANY, 0, ""), ==,
                     HT_STATUS_LIMIT);
    for (i = 0; i < 3; i++) {
        qht_stream_close(&s[i]);
    }
    /* The log shows the whole name of a stream, even of maximum length. */
    g_assert_cmpuint(open_status(h, 2, 0, "!abcdefghijklmnopqrstuvwxyz0123~"),
                     ==, HT_STATUS_OK);
    g_assert_cmpuint(qht_log_count(h, "\"!abcdefghijklmnopqrstuvwxyz0123~\""),
                     ==, 1);
    qht_quit(h);
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

static void test_close(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=2");
    uint64_t instance;
    QHtStream s;
    unsigned i;

    /* instance 0 never exists, not even before the first opening */
    g_assert_cmpuint(stream_status(h, HT_MSG_STREAM_CLOSE, 0, 0), ==,
                     HT_STATUS_NOENT);
    qht_stream_open(&s, h, 0);
    instance = s.instance;
    for (i = 0; i < 2; i++) {
        uint16_t type = i ? HT_MSG_STREAM_CLOSE : HT_MSG_STREAM_FLUSH;

        g_assert_cmpuint(stream_status(h, type, 0, instance + 1), ==,
                         HT_STATUS_NOENT);
        g_assert_cmpuint(stream_status(h, type, 0, 0), ==, HT_STATUS_NOENT);
        g_assert_cmpuint(stream_status(h, type, 1, instance), ==,
                         HT_STATUS_NOENT);
        g_assert_cmpuint(stream_status(h, type, 2, instance), ==,
                         HT_STATUS_NOENT);
    }
    g_assert_true(qht_stream_flag(h, 0, "open"));
    qht_stream_close(&s);
    g_assert_false(qht_stream_flag(h, 0, "open"));
    /* a driver that missed the reply may close again */
    g_assert_cmpuint(stream_status(h, HT_MSG_STREAM_CLOSE, 0, instance), ==,
                     HT_STATUS_OK);
    g_assert_cmpuint(stream_status(h, HT_MSG_STREAM_FLUSH, 0, instance), ==,
                     HT_STATUS_NOENT);
    /* Each opening gets the next instance number. */
    for (i = 0; i < 300; i++) {
        qht_stream_open(&s, h, i & 1);
        g_assert_cmpuint(s.instance, ==, instance + i + 1);
        qht_stream_close(&s);
    }
    qht_quit(h);
}

static void test_flush_any(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=3,flush-ms=1000");
    uint32_t id = qht_register_number(h, "number");
    QHtStream s[3];
    unsigned i, n;

    for (i = 0; i < 3; i++) {
        qht_stream_open(&s[i], h, i);
    }
    for (n = 1; n < 50; n++) {
        for (i = 0; i < 3; i++) {
            qht_write_number(&s[i], id, n);
            if (h->control) {
                qht_commit(&s[i]);
            }
        }
        g_assert_cmpuint(stream_status(h, HT_MSG_STREAM_FLUSH, HT_STREAM_ANY,
                                       0), ==, HT_STATUS_OK);
        g_assert_cmpuint(qht_stat(h, "events"), ==, 3 * n);
    }
    for (i = 0; i < 3; i++) {
        qht_stream_close(&s[i]);
    }
    qht_quit(h);
}

static void test_stats(const void *channel)
{
    static const char *const names[] = {
        "events", "packets", "bytes", "lost", "dropped", "wakeups", "errors",
    };
    QHt *h = boot(channel, "null", "streams=2");
    uint32_t id = qht_register_number(h, "number"), i, j;
    QHtStream s;

    qht_stream_open(&s, h, 1);
    for (i = 0; i < 1000; i++) {
        qht_write_number(&s, id, i);
        if (i % 10 == 9) {
            qht_commit(&s);
        }
    }
    s.lost = 5;
    qht_stream_close(&s);
    for (i = 0; i < 2; i++) {
        struct ht_msg_stats m = {
            .stream = cpu_to_le32(i ? HT_STREAM_ANY : 1),
        };
        const uint64_t *v = (const uint64_t *)&m.stats;

        g_assert_cmpuint(qht_call(h, HT_MSG_STATS, &m, sizeof(m)), ==,
                         HT_STATUS_OK);
        g_assert_cmpuint(le64_to_cpu(m.stats.events), ==, 1000);
        g_assert_cmpuint(le64_to_cpu(m.stats.bytes), ==, 12000);
        g_assert_cmpuint(le64_to_cpu(m.stats.lost), ==, 5);
        for (j = 0; j < G_N_ELEMENTS(names); j++) {
            g_assert_cmpuint(le64_to_cpu(v[j]), ==,
                             i ? qht_stat(h, names[j]) :
                                 qht_stream_stat(h, 1, names[j]));
        }
    }
    /* The device's counters are sums over its streams. */
    qht_stream_open(&s, h, 0);
    qht_write_number(&s, id, 0);
    qht_commit(&s);
    qht_stream_close(&s);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 1001);
    g_assert_cmpuint(qht_stat(h, "lost"), ==, 5);

    struct ht_msg_stats none = { .stream = cpu_to_le32(2) };
    g_assert_cmpuint(qht_call(h, HT_MSG_STATS, &none, sizeof(none)), ==,
                     HT_STATUS_NOENT);
    qht_quit(h);
}

/*
 * Send random messages, many of which have a valid type and size. Each message
 * gets a reply, and stream 2, which is open, still delivers its events.
 */
static void test_random(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=3");
    uint32_t id = qht_register_number(h, "number"), events = 0, i, j;
    QHtStream s;

    qht_stream_open(&s, h, 2);
    for (i = 0; i < 1000; i++) {
        uint16_t type = g_test_rand_int_range(0, HT_MSG_SETTINGS + 2);
        size_t size = size_of(type) ?: g_test_rand_int_range(16, 200);
        g_autofree uint8_t *m = message(type, size);

        if (type == HT_MSG_TAKEOVER) {
            /* skip TAKEOVER, which would close the stream */
            continue;
        }
        if (g_test_rand_int_range(0, 8) == 0) {
            size = g_test_rand_int_range(16, 200);
            stl_le_p(m + 4, size);
        }
        for (j = 0; j < 8; j++) {
            uint32_t at = g_test_rand_int_range(sizeof(struct ht_msg),
                                                size + 1);

            /*
             * Change a byte of the message, in half of the cases to -2, -1, 0,
             * 1, 2 or 3, else to any value.
             */
            m[at] = g_test_rand_bit() ? g_test_rand_int_range(-2, 4) :
                                        g_test_rand_int_range(0, 256);
        }
        if (type == HT_MSG_STREAM_CLOSE && m[sizeof(struct ht_msg)] == 2) {
            /*
             * A STREAM_CLOSE with the right instance would close stream 2,
             * which must stay open: name stream 1 instead.
             */
            m[sizeof(struct ht_msg)] = 1;
        }
        qht_exchange(h, m, size);
        assert_reply((struct ht_msg *)m, type);
        if (i % 20 == 0) {
            qht_write_number(&s, id, i);
            qht_commit(&s);
            qht_stream_flush(&s);
            g_assert_cmpuint(qht_stream_stat(h, 2, "events"), ==, ++events);
        }
    }
    qht_stream_close(&s);
    qht_quit(h);
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "malformed", test_malformed, QHT_CHANNELS },
        { "wrong-size", test_wrong_size, QHT_CHANNELS },
        { "unknown-type", test_unknown_type, QHT_CHANNELS },
        { "register", test_register, QHT_CHANNELS },
        { "list", test_list, QHT_CHANNELS },
        { "open", test_open, QHT_CHANNELS },
        { "memory-ignored", test_memory_ignored, QHT_CHANNELS },
        { "takeover-generation", test_takeover_generation, QHT_VIRTIO },
        { "close", test_close, QHT_CHANNELS },
        { "flush-any", test_flush_any, QHT_CHANNELS },
        { "stats", test_stats, QHT_CHANNELS },
        { "random", test_random, QHT_CHANNELS },
    };

    g_test_init(&argc, &argv, NULL);
    qht_add_tests("control", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
