/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: test the limits on what a guest may use of the device
 *
 * Up to a limit a request succeeds.  Above most limits the guest gets an error,
 * a counter rises, and the device still works.  docs/reliability.md lists the
 * limits.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

/*
 * Maximum number of log lines a second for each of two kinds of errors, as in
 * virtio-hypertrace.c
 */
#define LOG_LINES       10

/*
 * Limits of how often streams can be opened, as in hypertrace/streams.h:
 * OPENINGS_BURST openings at once if the device has up to 64 streams, then one
 * per interval
 */
#define OPENINGS_BURST      256
#define OPENING_INTERVAL_US 10000

static QHt *boot(const void *channel, const char *backend, const char *more,
                 const char *extra)
{
    g_autofree char *props = g_strdup_printf("channel=%s,packet-size=4096,"
                                             "packets=2,%s",
                                             (const char *)channel, more);

    return qht_boot("pc", backend, props, extra);
}

/* Check that a stream works and all its events arrive */
static void check_works(QHt *h, uint32_t index)
{
    uint32_t id = qht_register_number(h, "number");
    uint64_t events = qht_stat(h, "events");
    QHtStream s;
    unsigned i;

    qht_stream_open(&s, h, index);
    for (i = 0; i < 100; i++) {
        qht_write_number(&s, id, i);
        if (i % 10 == 9) {
            qht_commit(&s);
        }
    }
    qht_stream_close(&s);
    g_assert_cmpuint(qht_stat(h, "events"), ==, events + 100);
}

/*
 * Write a CLASS_REGISTER message of a class with @count fields of type u64. The
 * names of the fields have @name_len bytes, the name of the class has
 * @class_len bytes. Returns the size of the message.
 */
static size_t class_message(struct ht_msg_class *m, unsigned count,
                            size_t name_len, size_t class_len)
{
    uint8_t *p = m->data;
    unsigned i;

    memset(m, 0, HT_MESSAGE_MAX);
    m->nr_fields = count;
    m->name_len = class_len;
    memset(p, 'c', class_len);
    p += class_len;
    for (i = 0; i < count; i++) {
        struct ht_msg_field f = { .kind = HT_FIELD_U64,
                                  .name_len = name_len };

        memcpy(p, &f, sizeof(f));
        p += sizeof(f);
        memset(p, 'f', name_len);
        p[0] = 'a' + i / 8;
        p[name_len - 1] = 'a' + i % 8;
        p += name_len;
    }
    return p - (uint8_t *)m;
}

static void test_class(const void *channel)
{
    static const struct {
        unsigned fields;
        size_t field_name, class_name;
        uint32_t status;
    } cases[] = {
        { HT_FIELDS_MAX, 2, 1, HT_STATUS_OK },
        { HT_FIELDS_MAX + 1, 2, 1, HT_STATUS_INVAL },
        { 255, 2, 1, HT_STATUS_INVAL },
        { 1, HT_FIELD_NAME_MAX, 2, HT_STATUS_OK },
        { 1, HT_FIELD_NAME_MAX + 1, 2, HT_STATUS_INVAL },
        { 1, 255, 2, HT_STATUS_INVAL },
        { 1, 2, HT_CLASS_NAME_MAX, HT_STATUS_OK },
        { 1, 2, HT_CLASS_NAME_MAX + 1, HT_STATUS_INVAL },
        { 1, 2, 255, HT_STATUS_INVAL },
        { HT_FIELDS_MAX, HT_FIELD_NAME_MAX, HT_CLASS_NAME_MAX - 1,
          HT_STATUS_OK },
    };
    QHt *h = boot(channel, "null", "streams=1", NULL);
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    uint64_t errors = 0;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t size = class_message(m, cases[i].fields, cases[i].field_name,
                                    cases[i].class_name);

        errors += cases[i].status == HT_STATUS_INVAL;
        g_assert_cmpuint(size, <=, HT_MESSAGE_MAX);
        g_assert_cmpuint(qht_call(h, HT_MSG_CLASS_REGISTER, m, size), ==,
                         cases[i].status);
        g_assert_cmpuint(qht_stat(h, "errors"), ==, errors);
    }
    check_works(h, 0);
    qht_quit(h);
}

/*
 * Append to @msgs, after @pos bytes, a message that registers { u64 n; } as
 * @name; returns the new number of bytes
 */
static size_t put_class(uint8_t *msgs, size_t pos, const char *name)
{
    size_t size;

    pos = ROUND_UP(pos, HT_MESSAGE_ALIGN);
    size = qht_class_message(msgs + pos, name);
    stl_le_p(&((struct ht_msg *)(msgs + pos))->status, 0x55);
    return pos + size;
}

static struct ht_msg_class *next_class(struct ht_msg_class *m)
{
    return (void *)m + ROUND_UP(ldl_le_p(&m->h.size), HT_MESSAGE_ALIGN);
}

/*
 * Promise: a device registers HT_CLASSES_MAX classes and refuses the next one;
 * registering a known class still succeeds.
 */
static void test_classes(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=1", NULL);
    g_autofree uint8_t *msgs = g_malloc0(HT_MAILBOX_SIZE);
    struct ht_msg_class *m;
    unsigned sent, id = 0, i;
    size_t size;

    for (sent = 0; sent < HT_CLASSES_MAX; ) {
        for (size = 0; sent < HT_CLASSES_MAX &&
             HT_MAILBOX_SIZE - ROUND_UP(size, HT_MESSAGE_ALIGN) >= 64; sent++) {
            /* classes 2 to 27 have one name, and fields of different names */
            bool alike = sent > 0 && sent < 27;
            g_autofree char *name = g_strdup_printf("y%u", sent);

            size = put_class(msgs, size, sent == 0 ? "number" :
                             alike ? "x" : name);
            if (alike) {
                msgs[size - 1] = 'a' + sent - 1;
            }
        }
        memset(msgs + size, 0, HT_MAILBOX_SIZE - size);
        qht_exchange_all(h, msgs, size);
        for (m = (void *)msgs; (uint8_t *)m < msgs + size; m = next_class(m)) {
            g_assert_cmpuint(ldl_le_p(&m->h.status), ==, HT_STATUS_OK);
            g_assert_cmpuint(ldl_le_p(&m->id), ==, ++id);
        }
    }
    g_assert_cmpuint(id, ==, HT_CLASSES_MAX);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    for (i = 1; i <= 3; i++) {
        size = qht_class_message(msgs, "one-more");
        g_assert_cmpuint(qht_call(h, HT_MSG_CLASS_REGISTER, msgs, size), ==,
                         HT_STATUS_LIMIT);
        g_assert_cmpuint(qht_stat(h, "errors"), ==, i);
    }
    g_assert_cmpuint(qht_register_number(h, "y8191"), ==, HT_CLASSES_MAX);
    check_works(h, 0);
    qht_quit(h);
}

/*
 * Promise: the property class-bytes limits the memory for classes, and so the
 * time that they add to a migration's downtime.
 */
static void test_class_bytes(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=1,class-bytes=64K", NULL);
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    size_t size, bytes = 4 + qht_class_message(m, "number");
    uint32_t status;
    unsigned i;

    g_assert_cmpuint(qht_register_number(h, "number"), ==, 1);
    for (i = 1;; i++) {
        g_autofree char *name = g_strdup_printf("c%u", i);

        size = qht_class_message(m, name);
        status = qht_call(h, HT_MSG_CLASS_REGISTER, m, size);
        if (status != HT_STATUS_OK) {
            break;
        }
        bytes += 4 + size;
    }
    g_assert_cmpuint(status, ==, HT_STATUS_LIMIT);
    g_assert_cmpuint(bytes, <=, 65536);
    g_assert_cmpuint(bytes + 4 + size, >, 65536);
    check_works(h, 0);
    qht_quit(h);
}

/*
 * Open and close a stream as fast as the device allows.  Promise: after
 * OPENINGS_BURST openings, a device opens at most one stream per interval
 * (HT_OPENING_NS in hypertrace/streams.h), since each opening makes a file of a
 * ctf backend.  If an opening comes too early, the reply is BUSY without an
 * instance, and a later retry succeeds.
 */
static void test_open_rate(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=2", NULL);
    gint64 begin = g_get_monotonic_time(), elapsed_us;
    unsigned opened = 0;
    QHtStream s;

    for (;;) {
        struct ht_msg_open m = { .stream = cpu_to_le32(1) };
        struct ht_msg_stream c = { .stream = cpu_to_le32(1) };

        stw_le_p(&m.h.type, HT_MSG_STREAM_OPEN);
        stl_le_p(&m.h.size, sizeof(m));
        {
            g_autofree uint8_t *buf = g_malloc0(HT_MESSAGE_MAX);

            memcpy(buf, &m, sizeof(m));
            g_assert_cmpuint(qht_exchange(h, buf, sizeof(m)), ==,
                             HT_STATUS_BUSY);
            memcpy(&m, buf, sizeof(m));
        }
        elapsed_us = g_get_monotonic_time() - begin;
        /*
         * The limit is reached, or this loop is too slow to reach it, as on a
         * busy machine.
         */
        if (!m.instance || opened > 8 * OPENINGS_BURST) {
            break;
        }
        opened++;
        g_assert_cmpuint(opened, <=, OPENINGS_BURST + 1 +
                         elapsed_us / OPENING_INTERVAL_US);
        g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_OPEN, &m, sizeof(m)), ==,
                         HT_STATUS_OK);
        c.instance = m.instance;
        g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_CLOSE, &c, sizeof(c)), ==,
                         HT_STATUS_OK);
    }
    g_assert_cmpuint(opened, >=, OPENINGS_BURST);
    qht_stream_open(&s, h, 1);
    qht_stream_close(&s);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    check_works(h, 0);
    qht_quit(h);
}

/* In a buffer of several messages, each gets a reply of its own. */
static void test_batch(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=1", NULL);
    g_autofree uint8_t *msgs = g_malloc0(HT_MAILBOX_SIZE);
    struct ht_msg_class *m = (struct ht_msg_class *)msgs;
    unsigned n = 0, i, exchanges;
    size_t size;

    size = put_class(msgs, 0, "first");
    size = put_class(msgs, size, "not a name");
    size = put_class(msgs, size, "second");
    size = put_class(msgs, size, "first");
    qht_exchange_all(h, msgs, size);
    g_assert_cmpuint(ldl_le_p(&m->h.status), ==, HT_STATUS_OK);
    g_assert_cmpuint(ldl_le_p(&m->id), ==, 1);
    m = next_class(m);
    g_assert_cmpuint(ldl_le_p(&m->h.status), ==, HT_STATUS_INVAL);
    m = next_class(m);
    g_assert_cmpuint(ldl_le_p(&m->h.status), ==, HT_STATUS_OK);
    g_assert_cmpuint(ldl_le_p(&m->id), ==, 2);
    m = next_class(m);
    g_assert_cmpuint(ldl_le_p(&m->h.status), ==, HT_STATUS_OK);
    g_assert_cmpuint(ldl_le_p(&m->id), ==, 1);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 1);

    size = 0;
    while (HT_MAILBOX_SIZE - ROUND_UP(size, HT_MESSAGE_ALIGN) >= 64) {
        g_autofree char *name = g_strdup_printf("c%05u", n++);

        size = put_class(msgs, size, name);
    }
    memset(msgs + size, 0, HT_MAILBOX_SIZE - size);
    exchanges = qht_exchange_all(h, msgs, size);
    m = (struct ht_msg_class *)msgs;
    for (i = 0; i < n; i++) {
        g_assert_cmpuint(ldl_le_p(&m->h.status), ==, HT_STATUS_OK);
        g_assert_cmpuint(ldl_le_p(&m->id), ==, 3 + i);
        m = next_class(m);
    }
    g_assert_cmpuint(n, >, 1000);
    /*
     * The device ends an exchange after 50 us, too short for 1,000 classes, so
     * qht_exchange_all() needed several exchanges.
     */
    g_assert_cmpuint(exchanges, >, 1);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 1);
    qht_quit(h);
}

/*
 * If a buffer has several messages, each must be a CLASS_REGISTER; a wrong
 * length or another type is an error.
 */
static void test_batch_hostile(const void *channel)
{
    static const uint32_t lengths[] = {
        0, 1, 15, 16, 31, 0x48, HT_MAILBOX_SIZE, INT32_MAX, UINT32_MAX,
    };
    QHt *h = boot(channel, "null", "streams=1", NULL);
    g_autofree uint8_t *msgs = g_malloc0(HT_MAILBOX_SIZE);
    struct ht_msg *second;
    uint64_t errors = 0;
    uint16_t type;
    size_t at, size;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(lengths); i++) {
        at = ROUND_UP(put_class(msgs, 0, "good"), HT_MESSAGE_ALIGN);
        size = put_class(msgs, at, "bad");
        second = (struct ht_msg *)(msgs + at);
        stl_le_p(&second->size, lengths[i]);
        qht_exchange_all(h, msgs, size);
        g_assert_cmpuint(ldl_le_p(&((struct ht_msg *)msgs)->status), ==,
                         HT_STATUS_OK);
        g_assert_cmpuint(ldl_le_p(&second->status), ==, HT_STATUS_INVAL);
        g_assert_cmpuint(qht_stat(h, "errors"), >, errors);
        errors = qht_stat(h, "errors");
    }
    for (type = 0; type < 20; type++) {
        if (type == HT_MSG_CLASS_REGISTER) {
            continue;
        }
        at = ROUND_UP(put_class(msgs, 0, "good"), HT_MESSAGE_ALIGN);
        put_class(msgs, at, "bad");
        second = (struct ht_msg *)(msgs + at);
        stw_le_p(&second->type, type);
        stl_le_p(&second->size, sizeof(*second));
        qht_exchange_all(h, msgs, at + sizeof(*second));
        g_assert_cmpuint(ldl_le_p(&second->status), ==, HT_STATUS_INVAL);
    }
    /*
     * First, the last message is shorter than a header. Then, the first message
     * ends 8 bytes before the end of the buffer.
     */
    for (size = 1; size < sizeof(*second); size++) {
        at = ROUND_UP(put_class(msgs, 0, "good"), HT_MESSAGE_ALIGN);
        qht_exchange_all(h, msgs, at + size);
    }
    for (size = HT_MAILBOX_SIZE - 40; size <= HT_MAILBOX_SIZE; size++) {
        at = ROUND_UP(put_class(msgs, 0, "good"), HT_MESSAGE_ALIGN);
        stl_le_p(&((struct ht_msg *)msgs)->size, size - 8);
        qht_exchange_all(h, msgs, size);
    }
    g_assert_cmpuint(qht_register_number(h, "good"), ==, 1);
    g_assert_cmpuint(qht_register_number(h, "next"), ==, 2);
    qht_quit(h);
}

static void test_streams(const void *channel)
{
    g_autofree char *props = g_strdup_printf("streams=%u", HT_STREAMS_MAX);
    QHt *h = boot(channel, "null", props, NULL);
    struct ht_msg_open m = { .stream = cpu_to_le32(HT_STREAM_ANY) };
    QHtStream s[HT_STREAMS_MAX];
    unsigned i;

    for (i = 0; i < HT_STREAMS_MAX; i++) {
        qht_stream_open(&s[i], h, HT_STREAM_ANY);
        g_assert_cmpuint(s[i].index, ==, i);
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_OPEN, &m, sizeof(m)), ==,
                     HT_STATUS_LIMIT);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 1);
    m.stream = cpu_to_le32(HT_STREAMS_MAX);
    g_assert_cmpuint(qht_call(h, HT_MSG_STREAM_OPEN, &m, sizeof(m)), ==,
                     HT_STATUS_NOENT);
    qht_stream_close(&s[17]);
    check_works(h, HT_STREAM_ANY);
    for (i = 0; i < HT_STREAMS_MAX; i++) {
        if (i != 17) {
            qht_stream_close(&s[i]);
        }
    }
    qht_quit(h);
}

/*
 * By default a device has so many streams that three quarters of them, which a
 * guest's kernel may use, suffice for one stream for each possible vCPU.
 */
static void test_streams_auto(const void *channel)
{
    static const struct {
        const char *smp;
        uint32_t vcpus;
        uint32_t streams;
    } cases[] = {
        { "-smp 1", 1, 16 },
        { "-smp 4", 4, 16 },
        { "-smp 1,maxcpus=12", 12, 16 },
        { "-smp 1,maxcpus=13", 13, 18 },
        { "-smp 1,maxcpus=255", 255, 340 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        QHt *h = boot(channel, "null", "batch=1", cases[i].smp);

        g_assert_cmpuint(h->caps.streams, ==, cases[i].streams);
        g_assert_cmpuint(h->caps.streams * 3 / 4, >=, cases[i].vcpus);
        check_works(h, h->caps.streams - 1);
        qht_quit(h);
    }
}

/*
 * If BAR4 or the memdev has no room for the default number of streams, the
 * device has as many streams as fit.
 */
static void test_streams_fit(const void *channel)
{
    static const struct {
        const char *device;
        const char *extra;
        uint64_t streams;
    } cases[] = {
        /* a ring takes 4 KiB + 32 MiB, rounded up to 64 KiB: 31 in 1 GiB */
        { "packets=32,packet-size=1M", "", 31 },
        /*
         * a ring takes 4 KiB + 512 KiB, rounded up to 64 KiB: 26 fit into
         * 16 MiB after the directory
         */
        { "memdev=m", "-object memory-backend-ram,id=m,size=16M", 26 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        QTestState *qts = qtest_initf(
            "-machine pc -nodefaults -smp 1,maxcpus=255"
            " -object hypertrace-backend-null,id=be %s"
            " -device hypertrace,id=ht,backend=be,channel=%s,%s",
            cases[i].extra, (const char *)channel, cases[i].device);
        QDict *rsp = qtest_qmp(qts, "{'execute': 'qom-get', 'arguments': {"
                               " 'path': '/machine/peripheral/ht',"
                               " 'property': 'streams'}}");

        g_assert_cmpuint(qdict_get_int(rsp, "return"), ==, cases[i].streams);
        qobject_unref(rsp);
        qtest_quit(qts);
    }
}

static void test_message(const void *channel)
{
    QHt *h = boot(channel, "null", "streams=1", NULL);
    g_autofree struct ht_msg *m = g_malloc0(2 * HT_MESSAGE_MAX);

    stw_le_p(&m->type, HT_MSG_STATS);
    stl_le_p(&m->size, HT_MESSAGE_MAX);
    /*
     * Send a message of the maximum size, which is wrong for its type; then say
     * in its header that it is a byte longer.
     */
    g_assert_cmpuint(qht_exchange(h, m, HT_MESSAGE_MAX), ==, HT_STATUS_INVAL);
    g_assert_cmpuint(ldl_le_p(&m->size), ==, HT_MESSAGE_MAX);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 1);
    stl_le_p(&m->size, HT_MESSAGE_MAX + 1);
    g_assert_cmpuint(qht_exchange(h, m, HT_MESSAGE_MAX), ==, HT_STATUS_INVAL);
    g_assert_cmpuint(ldl_le_p(&m->size), ==, sizeof(*m));
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 2);
    check_works(h, 0);
    qht_quit(h);
}

static unsigned count_lines(const char *file, const char *what)
{
    g_autofree char *text = NULL;
    unsigned n = 0;
    char *p;

    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    for (p = text; (p = strstr(p, what)); p++) {
        n++;
    }
    return n;
}

/*
 * If a guest causes thousands of errors, QEMU logs at most LOG_LINES lines a
 * second about malformed messages, and as many about streams that it stops.
 */
static void test_log(const void *channel)
{
    const unsigned messages = 2000, streams = 40;
    char *file = qht_temporary();
    g_autofree char *extra = g_strdup_printf("-d guest_errors -D %s", file);
    QHt *h = boot(channel, "null", "streams=1", extra);
    gint64 begin, seconds;
    uint64_t most;
    unsigned i;

    begin = g_get_monotonic_time();
    for (i = 0; i < messages; i++) {
        struct ht_msg m = {
            .type = cpu_to_le16(HT_MSG_STATS),
            .size = cpu_to_le32(sizeof(m)),
        };
        g_autofree uint8_t *buf = g_malloc0(HT_MESSAGE_MAX);

        memcpy(buf, &m, sizeof(m));
        g_assert_cmpuint(qht_exchange(h, buf, sizeof(m)), ==,
                         HT_STATUS_INVAL);
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, messages);
    for (i = 0; i < streams; i++) {
        const uint32_t nonsense = 0;
        QHtStream s;

        qht_stream_open(&s, h, 0);
        qht_write(&s, 200, &nonsense, sizeof(nonsense));
        qht_commit(&s);
        qht_stream_close(&s);
    }
    g_assert_cmpuint(qht_stat(h, "errors"), ==, messages + streams);
    seconds = (g_get_monotonic_time() - begin) / G_USEC_PER_SEC + 2;
    most = seconds * LOG_LINES;
    g_assert_cmpuint(count_lines(file, "malformed control message"), >=,
                     LOG_LINES);
    g_assert_cmpuint(count_lines(file, "malformed control message"), <=, most);
    g_assert_cmpuint(count_lines(file, " stopped: "), >=, LOG_LINES);
    g_assert_cmpuint(count_lines(file, " stopped: "), <=, most);
    check_works(h, 0);
    qht_quit(h);
    qht_unlink(file);
}

/*
 * Boot with a ctf backend, register the class "number", then remove the
 * backend's directory, so that the backend refuses further classes
 */
static QHt *boot_refusing(const void *channel, const char *extra)
{
    g_autofree char *dir = g_dir_make_tmp("hypertrace-gone-XXXXXX", NULL);
    g_autofree char *backend = g_strdup_printf("ctf,dir=%s/trace", dir);
    g_autofree char *rm = g_strdup_printf("rm -r %s", dir);
    QHt *h = boot(channel, backend, "streams=1", extra);

    qht_register_number(h, "number");
    qht_settle(h);
    g_assert_cmpint(system(rm), ==, 0);
    return h;
}

/*
 * If a backend refuses a class, the guest sees no error.  Events of that class
 * are counted as discarded by the backend.  QEMU warns at most once a second.
 */
static void test_refused(const void *channel)
{
    const unsigned classes = 20;
    char *file = qht_temporary();
    g_autofree char *extra = g_strdup_printf("2>%s", file);
    QHt *h = boot_refusing(channel, extra);
    uint32_t ids[20], known = qht_register_number(h, "number");
    gint64 begin = g_get_monotonic_time();
    unsigned i, lines;
    QHtStream s;

    for (i = 0; i < classes; i++) {
        g_autofree char *name = g_strdup_printf("refused%u", i);

        ids[i] = qht_register_number(h, name);
    }
    qht_stream_open(&s, h, 0);
    for (i = 0; i < 3 * classes; i++) {
        qht_write_number(&s, ids[i % classes], i);
        qht_write_number(&s, known, i);
        qht_commit(&s);
    }
    qht_stream_close(&s);
    qht_settle(h);
    g_assert_cmpuint(qht_stat(h, "events"), ==, 6 * classes);
    g_assert_cmpuint(qht_stat(h, "dropped"), ==, 0);
    g_assert_cmpuint(qht_stat(h, "errors"), ==, 0);
    g_assert_cmpuint(qht_backend_stat(h, 0, "events"), ==, 3 * classes);
    g_assert_cmpuint(qht_backend_stat(h, 0, "discarded"), ==, 3 * classes);
    lines = count_lines(file, "of class refused");
    g_assert_cmpuint(count_lines(file, "of class refused0 are"), ==, 1);
    g_assert_cmpuint(lines, <=, 1 + (g_get_monotonic_time() - begin) /
                                    G_USEC_PER_SEC);
    qht_quit(h);
    qht_unlink(file);
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "class", test_class, QHT_CHANNELS },
        { "classes", test_classes, QHT_CHANNELS },
        { "class-bytes", test_class_bytes, QHT_CHANNELS },
        { "open-rate", test_open_rate, QHT_CHANNELS },
        { "batch", test_batch, QHT_CHANNELS },
        { "batch-hostile", test_batch_hostile, QHT_CHANNELS },
        { "streams", test_streams, QHT_CHANNELS },
        { "streams-auto", test_streams_auto, QHT_CHANNELS },
        { "streams-fit", test_streams_fit, QHT_RINGS },
        { "message", test_message, QHT_CHANNELS },
        { "log", test_log, QHT_CHANNELS },
        { "refused", test_refused, QHT_CHANNELS },
    };

    g_test_init(&argc, &argv, NULL);
    qht_add_tests("limits", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
