/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write invalid data, as a guest, into memory that the device reads
 *
 * The device ignores some invalid data in a ring. For other invalid data in a
 * ring it stops the stream and counts an error. Another stream still works, and
 * the stopped stream can be closed and opened again.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "libqos/hypertrace.h"

typedef struct Hostile {
    QHt *h;
    uint32_t id;
    /* stream 0, to which the test writes invalid data */
    QHtStream bad;
    /* stream 1, to which the test writes valid data */
    QHtStream good;
    uint64_t stopped;           /* number of times stream 0 was stopped */
} Hostile;

static void start(Hostile *t, const char *channel, const char *more)
{
    g_autofree char *props = g_strdup_printf("channel=%s,streams=2,"
                                             "packet-size=4096,packets=4,"
                                             "flush-ms=2%s", channel, more);

    memset(t, 0, sizeof(*t));
    t->h = qht_boot("pc", "null", props, NULL);
    t->id = qht_register_number(t->h, "number");
    qht_stream_open(&t->good, t->h, 1);
}

static void open_bad(Hostile *t, unsigned events)
{
    unsigned n;

    qht_stream_open(&t->bad, t->h, 0);
    for (n = 0; n < events; n++) {
        qht_write_number(&t->bad, t->id, n);
    }
    qht_commit(&t->bad);
    QHT_WAIT(qht_stream_stat(t->h, 0, "events") == events);
}

/*
 * Ring the doorbell, even if the stream's wake word does not ask for it, so
 * that the device looks at the stream
 */
static void look(QHtStream *s)
{
    qht_doorbell(s);
}

/* Check that the stream with valid data still works */
static void check_good(Hostile *t)
{
    uint64_t n = t->good.events;

    qht_write_number(&t->good, t->id, n);
    qht_commit(&t->good);
    QHT_WAIT(qht_stream_stat(t->h, 1, "events") == n + 1);
    g_assert_false(qht_stream_flag(t->h, 1, "stopped"));
}

static void assert_stopped(Hostile *t, uint64_t events)
{
    struct ht_msg_stream flush = {
        .instance = cpu_to_le64(t->bad.instance),
    };

    look(&t->bad);
    QHT_WAIT(qht_stream_flag(t->h, 0, "stopped"));
    g_assert_cmpuint(qht_stream_stat(t->h, 0, "events"), ==, events);
    g_assert_cmpuint(qht_stream_stat(t->h, 0, "errors"), ==, 1);
    t->stopped++;
    g_assert_cmpuint(qht_stat(t->h, "errors"), ==, t->stopped);
    if (!t->h->control) {
        QHT_WAIT(qht_ring_state(t->h, 0) == HT_STREAM_STOPPED);
    }
    g_assert_cmpuint(qht_call(t->h, HT_MSG_STREAM_FLUSH, &flush,
                              sizeof(flush)), ==, HT_STATUS_STOPPED);
    check_good(t);
    qht_stream_close(&t->bad);
    check_good(t);
}

static void end(Hostile *t)
{
    qht_stream_close(&t->good);
    g_assert_cmpuint(qht_stat(t->h, "errors"), ==, t->stopped);
    qht_quit(t->h);
}

/* Write invalid words to the guest's line of a ring */
static void test_guest_line(const void *channel)
{
    static const uint64_t heads[] = {
        0, 1, 63, 64 + 5, 64 + 13 * 12 + 1, 4096 + 1, 4096 * 5,
        UINT64_C(1) << 32, UINT64_C(1) << 62, UINT64_C(1) << 63, UINT64_MAX,
    };
    Hostile t;
    unsigned i;

    start(&t, channel, "");
    for (i = 0; i < G_N_ELEMENTS(heads); i++) {
        open_bad(&t, 10);
        qht_ring_writeq(t.h, 0, QHT_GUEST(head), heads[i]);
        assert_stopped(&t, 10);
    }
    /*
     * The device ignores words of the guest's line that are reserved or that
     * this mode does not use.
     */
    open_bad(&t, 10);
    for (i = QHT_GUEST(opening); i < sizeof(struct ht_guest_line); i += 8) {
        if (i != QHT_GUEST(lost)) {
            qht_ring_writeq(t.h, 0, i, UINT64_MAX);
        }
    }
    qht_write_number(&t.bad, t.id, 10);
    look(&t.bad);
    QHT_WAIT(qht_stream_stat(t.h, 0, "events") == 11);
    /* an impossible count of lost events is ignored */
    qht_ring_writeq(t.h, 0, QHT_GUEST(lost), UINT64_MAX);
    qht_write_number(&t.bad, t.id, 11);
    look(&t.bad);
    QHT_WAIT(qht_stream_stat(t.h, 0, "events") == 12);
    g_assert_cmpuint(qht_stream_stat(t.h, 0, "lost"), ==, 0);
    qht_stream_close(&t.bad);
    end(&t);
}

static void test_opening(const void *channel)
{
    static const uint64_t opening[] = {
        6, 1000, UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX,
    };
    Hostile t;
    unsigned i;

    start(&t, channel, ",mode=overwrite");
    for (i = 0; i < G_N_ELEMENTS(opening); i++) {
        open_bad(&t, 10);
        qht_ring_writeq(t.h, 0, QHT_GUEST(opening), opening[i]);
        qht_write_number(&t.bad, t.id, 10);
        assert_stopped(&t, 10);
    }
    end(&t);
}

/* A guest's writes to the host's line do no harm: the device ignores them. */
static void test_host_line(const void *channel)
{
    Hostile t;
    unsigned i, n = 10;

    start(&t, channel, "");
    open_bad(&t, n);
    for (i = 0; i < sizeof(struct ht_host_line); i += 8) {
        qht_ring_writeq(t.h, 0, HT_HOST_LINE_OFFSET + i, UINT64_MAX - i);
        qht_write_number(&t.bad, t.id, n++);
        look(&t.bad);
        QHT_WAIT(qht_stream_stat(t.h, 0, "events") == n);
    }
    check_good(&t);
    qht_stream_close(&t.bad);
    end(&t);
}

/*
 * Write a packet with one event, and close it if @closed.  Four bytes of the
 * packet's header, from the offset @nonsense on, are 0xdeadbeef.
 */
static void put_packet(Hostile *t, unsigned nonsense, bool closed)
{
    struct {
        struct ht_packet header;
        uint32_t event;
        uint32_t payload[2];
    } p = {
        .header = {
            .magic = cpu_to_le32(HT_PACKET_MAGIC),
            .instance = cpu_to_le64(t->bad.instance),
            .content = cpu_to_le32(closed ? 64 + 12 : 0),
        },
        .event = cpu_to_le32(t->id),
    };

    stl_le_p((uint8_t *)&p + nonsense, 0xdeadbeef);
    qht_ring_write(t->h, 0, HT_PACKETS_OFFSET, &p, 64 + 12);
    qht_ring_writeq(t->h, 0, QHT_GUEST(head), closed ? 4096 : 64 + 12);
}

static void test_packet_header(const void *channel)
{
    unsigned i, closed;
    Hostile t;

    start(&t, channel, "");
    for (closed = 0; closed < 2; closed++) {
        for (i = 0; i < sizeof(struct ht_packet); i += 4) {
            bool stops = i < offsetof(struct ht_packet, clock_begin) ||
                         (i >= offsetof(struct ht_packet, events) &&
                          i < offsetof(struct ht_packet, lost)) ||
                         (closed && i == offsetof(struct ht_packet, content));

            qht_stream_open(&t.bad, t.h, 0);
            put_packet(&t, i, closed);
            if (stops) {
                assert_stopped(&t, 0);
                continue;
            }
            look(&t.bad);
            QHT_WAIT(qht_stream_stat(t.h, 0, "events") == 1);
            check_good(&t);
            qht_stream_close(&t.bad);
        }
    }
    end(&t);
}

static void test_event(const void *channel)
{
    static const uint8_t events[][24] = {
        { 0 },                          /* no class has id 0 */
        { 77 },                         /* no class has this id */
        { 255, 0, 0, 0, 0 },
        { 255, 77, 0, 0, 0 },
        { 255, 1, 0x20, 0, 0 },         /* id 8193, above the maximum */
        { 254, 0, 0 },
        { 254, 77, 0 },
        { 254, 1, 0x20 },
        { 254, 255, 255 },
        { 255, 255, 255, 255, 255 },
        { 2, 0, 0, 0, 0xff, 0xff },     /* a text longer than the packet */
    };
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    Hostile t;
    unsigned i;

    start(&t, channel, "");
    memcpy(m->data, "text", 4);
    m->name_len = 4;
    m->nr_fields = 1;
    memcpy(m->data + 4, (uint8_t[]) { HT_FIELD_TEXT, 0, 0, 1, 0, 0, 't' }, 7);
    g_assert_cmpuint(qht_call(t.h, HT_MSG_CLASS_REGISTER, m, sizeof(*m) + 11),
                     ==, HT_STATUS_OK);
    g_assert_cmpuint(le32_to_cpu(m->id), ==, 2);
    for (i = 0; i < G_N_ELEMENTS(events); i++) {
        open_bad(&t, 10);
        qht_write(&t.bad, 1, events[i] + 4, 20);
        t.bad.offset -= 24;
        memcpy(t.bad.image + t.bad.offset, events[i], 24);
        qht_ring_write(t.h, 0, HT_PACKETS_OFFSET + t.bad.offset, events[i],
                       24);
        look(&t.bad);
        QHT_WAIT(qht_stream_flag(t.h, 0, "stopped"));
        t.stopped += 1;
        check_good(&t);
        qht_stream_close(&t.bad);
    }
    g_assert_cmpuint(qht_stat(t.h, "errors"), ==, t.stopped);
    end(&t);
}

/* After a stream's whole ring is overwritten, other streams still work. */
static void test_flood(const void *channel)
{
    static const uint8_t bytes[] = { 0, 1, 0x7f, 0x80, 0xff };
    g_autofree uint8_t *fill = NULL;
    uint64_t size;
    Hostile t;
    unsigned i;

    start(&t, channel, "");
    size = 2 * t.h->caps.ring_stride;
    fill = g_malloc(size);
    for (i = 0; i < G_N_ELEMENTS(bytes); i++) {
        open_bad(&t, 10);
        memset(fill, bytes[i], size);
        qht_ring_write(t.h, 0, 0, fill, t.h->caps.ring_stride);
        look(&t.bad);
        if (bytes[i]) {
            QHT_WAIT(qht_stream_flag(t.h, 0, "stopped"));
        }
        check_good(&t);
        qht_stream_close(&t.bad);
    }
    t.stopped = qht_stat(t.h, "errors");
    end(&t);
}

/* After random writes to ring, registers and mailbox the device still works. */
static void test_random(const void *channel)
{
    Hostile t;
    unsigned i, j;

    start(&t, channel, g_test_rand_bit() ? "" : ",mode=overwrite");
    qht_stream_close(&t.good);
    for (i = 0; i < 100; i++) {
        qht_stream_open(&t.bad, t.h, 0);
        qht_stream_open(&t.good, t.h, 1);
        /*
         * Open the packet of this round now: qht_write_number() waits for room
         * by `tail`, which later random writes may change.
         */
        qht_write_number(&t.bad, t.id, 0);
        for (j = 0; j < 30; j++) {
            uint64_t v = (uint64_t)g_test_rand_int() << 32 | g_test_rand_int();

            if (g_test_rand_bit()) {
                v >>= g_test_rand_int_range(0, 64);
            }
            switch (g_test_rand_int_range(0, 8)) {
            case 0:
                qht_ring_writeq(t.h, 0, g_test_rand_int_range(0, 64) * 8, v);
                break;
            case 1:
                qht_ring_writeq(t.h, 0, HT_PACKETS_OFFSET +
                                g_test_rand_int_range(0, 16) * 8, v);
                break;
            case 2:
                qpci_io_writeq(t.h->pci->pdev, t.h->ring,
                               t.h->caps.mailbox_offset +
                               g_test_rand_int_range(0, 8) * 8, v);
                break;
            case 3:
                qpci_io_writel(t.h->pci->pdev, t.h->regs, HT_REG_MAILBOX_GO,
                               g_test_rand_int_range(0, 128));
                break;
            case 4:
                qpci_io_writeq(t.h->pci->pdev, t.h->regs,
                               t.h->caps.doorbell_offset +
                               g_test_rand_int_range(0, 0x3000), v);
                break;
            default:
                qht_write_number(&t.bad, t.id, j);
                look(&t.bad);
                break;
            }
        }
        qpci_io_writel(t.h->pci->pdev, t.h->regs, HT_REG_TAKEOVER, HT_MAGIC);
        qht_stream_forget(&t.bad);
        qht_stream_forget(&t.good);
    }
    open_bad(&t, 10);
    qht_stream_open(&t.good, t.h, 1);
    check_good(&t);
    qht_stream_close(&t.bad);
    qht_stream_close(&t.good);
    qht_quit(t.h);
}

int main(int argc, char **argv)
{
    static const QHtTest tests[] = {
        { "guest-line", test_guest_line, QHT_RINGS },
        { "opening", test_opening, QHT_RINGS },
        { "host-line", test_host_line, QHT_RINGS },
        { "packet-header", test_packet_header, QHT_RINGS },
        { "event", test_event, QHT_RINGS },
        { "flood", test_flood, QHT_RINGS },
        { "random", test_random, QHT_RINGS },
    };

    g_test_init(&argc, &argv, NULL);
    qht_add_tests("hostile", tests, G_N_ELEMENTS(tests));
    return g_test_run();
}
