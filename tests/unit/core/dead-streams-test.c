/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stream RAM after QEMU's end: the events in its rings are read, oldest first,
 * and every value in the files is checked
 */
#include "hypertrace/base.h"
#include "hypertrace/dead-streams.h"
#include "core-testlib.h"

#define SIZE    HT_PACKET_SIZE_MIN
#define PACKETS 4u
#define STRIDE  HT_ROUND_UP(HT_PACKETS_OFFSET + PACKETS * SIZE, HT_MAP_ALIGN)
#define STREAMS 2u

typedef struct Fixture {
    GByteArray *index;
    uint8_t *ram;
    CtSink sink;
    CtRing ring;
} Fixture;

static HtDeadHead *head(Fixture *f)
{
    return (HtDeadHead *)f->index->data;
}

static HtDeadStream *stream(Fixture *f, unsigned i)
{
    return (HtDeadStream *)(f->index->data + HT_DEAD_STREAMS) + i;
}

static void setup(Fixture *f, bool overwrite)
{
    GByteArray *classes;

    memset(f, 0, sizeof(*f));
    ct_sink_init(&f->sink);
    ct_ring_init(&f->ring, SIZE, PACKETS, overwrite);
    f->ram = g_malloc0(STREAMS * STRIDE);
    f->index = g_byte_array_new();
    g_byte_array_set_size(f->index, HT_DEAD_CLASSES);
    memset(f->index->data, 0, HT_DEAD_CLASSES);
    *head(f) = (HtDeadHead) {
        .magic = HT_DEAD_MAGIC,
        .version = HT_DEAD_VERSION,
        .streams = STREAMS,
        .packet_size = SIZE,
        .packets = PACKETS,
        .stride = STRIDE,
        .mult = UINT64_C(1) << HT_TIME_MULT_SHIFT,
        .trace = "ht0",
        .vm = "vm",
        .channel = "shm",
        .memory = "/none",
    };
    ht_dead_head_swap(head(f));
    *stream(f, 1) = (HtDeadStream) {
        .instance = f->ring.instance,
        .counter = 1000,
        .ns = 5000,
        .mult = UINT64_C(2) << HT_TIME_MULT_SHIFT,
        .vcpu = 3,
        .name = "main",
    };
    ht_dead_stream_swap(stream(f, 1));
    classes = ht_class_table_save(f->sink.classes);
    g_byte_array_append(f->index, classes->data, classes->len);
    g_byte_array_unref(classes);
}

static void teardown(Fixture *f)
{
    ct_ring_destroy(&f->ring);
    ct_sink_destroy(&f->sink);
    g_byte_array_unref(f->index);
    g_free(f->ram);
}

/* Simulate QEMU's end: copy the ring to stream 1's part of the stream RAM. */
static void die(Fixture *f)
{
    memcpy(f->ram + STRIDE, f->ring.control, sizeof(*f->ring.control));
    memcpy(f->ram + STRIDE + HT_PACKETS_OFFSET, f->ring.data, PACKETS * SIZE);
}

static void read_dead(Fixture *f, HtDeadResult *r)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(HtDead) d = ht_dead_new(f->index->data, f->index->len, &err);

    g_assert_no_error(err);
    g_assert_cmpuint(ht_dead_size(d), ==, STREAMS * STRIDE);
    g_assert_false(ht_dead_read(d, 0, f->ram, 0, ct_sink_deliver, &f->sink,
                                r));
    g_assert_true(ht_dead_read(d, 1, f->ram, 0, ct_sink_deliver, &f->sink,
                               r));
    g_assert_cmpuint(f->sink.opened, ==, 1);
    g_assert_cmpuint(f->sink.closed, ==, 1);
}

static void test_all(void)
{
    HtDeadResult r;
    Fixture f;
    unsigned i;

    setup(&f, true);
    f.ring.stream = 1;
    f.ring.clock = 2000;
    for (i = 0; i < 10; i++) {
        g_assert_true(ct_ring_emit(&f.ring, i));
    }
    die(&f);
    read_dead(&f, &r);
    g_assert_cmpstr(r.why, ==, "");
    g_assert_cmpuint(r.events, ==, 10);
    g_assert_cmpuint(r.before, ==, 0);
    g_assert_cmpuint(r.begin_ns, >=, 5000 + 2 * 1000);
    g_assert_cmpuint(r.end_ns, ==, 5000 + 2 * (f.ring.clock - 1000));
    for (i = 0; i < 10; i++) {
        g_assert_cmpuint(ct_sink_number(&f.sink, i), ==, i);
    }
    teardown(&f);
}

/*
 * Events that the ring has overwritten are counted; all later events are read.
 */
static void test_overwritten(void)
{
    uint64_t n, sent = 10000;
    HtDeadResult r;
    Fixture f;

    setup(&f, true);
    f.ring.stream = 1;
    for (n = 0; n < sent; n++) {
        g_assert_true(ct_ring_emit(&f.ring, n));
    }
    die(&f);
    read_dead(&f, &r);
    g_assert_cmpstr(r.why, ==, "");
    g_assert_cmpuint(r.events, >, (PACKETS - 1) * (SIZE / 12 - 20));
    g_assert_cmpuint(r.before + r.events, ==, sent);
    g_assert_cmpuint(ct_sink_number(&f.sink, r.events - 1), ==, sent - 1);
    teardown(&f);
}

/* Of a full ring that discards new events, the oldest events are read. */
static void test_discarding(void)
{
    uint64_t n, sent = 0;
    HtDeadResult r;
    Fixture f;

    setup(&f, false);
    f.ring.stream = 1;
    for (n = 0; n < 5000; n++) {
        sent += ct_ring_emit(&f.ring, sent);
    }
    die(&f);
    read_dead(&f, &r);
    g_assert_cmpstr(r.why, ==, "");
    g_assert_cmpuint(r.events, ==, sent);
    g_assert_cmpuint(r.lost, ==, 5000 - sent);
    teardown(&f);
}

/* From an index that is cut off, the complete classes are loaded. */
static void test_cut(void)
{
    HtDeadResult r;
    Fixture f;
    guint len;

    setup(&f, true);
    f.ring.stream = 1;
    g_assert_true(ct_ring_emit(&f.ring, 0));
    die(&f);
    for (len = 0; len < f.index->len; len += 61) {
        g_autoptr(HtDead) d = ht_dead_new(f.index->data, len, NULL);

        g_assert_true(!d == (len < HT_DEAD_CLASSES));
    }
    g_byte_array_set_size(f.index, HT_DEAD_CLASSES);
    read_dead(&f, &r);
    g_assert_cmpuint(r.events, ==, 0);
    g_assert_nonnull(strstr(r.why, "unknown class"));
    teardown(&f);
}

static void test_stale(void)
{
    HtDeadResult r;
    Fixture f;

    setup(&f, true);
    f.ring.stream = 1;
    g_assert_true(ct_ring_emit(&f.ring, 0));
    die(&f);
    stream(&f, 1)->instance = ht_le64(f.ring.instance + 1);
    read_dead(&f, &r);
    g_assert_cmpuint(r.events, ==, 0);
    g_assert_nonnull(strstr(r.why, "wrong header"));
    teardown(&f);
}

static void test_refused(void)
{
    g_autoptr(HtDead) d = NULL;
    Fixture f;
    guint i;

    setup(&f, true);
    /*
     * an index with a changed byte is refused, unless the byte is one that any
     * value may have
     */
    for (i = 0; i < HT_DEAD_STREAMS + STREAMS * sizeof(HtDeadStream);
         i += i < 64 ? 1 : 13) {
        g_autoptr(HtDead) changed = NULL;

        f.index->data[i] ^= 0xff;
        changed = ht_dead_new(f.index->data, f.index->len, NULL);
        /* 253 streams are valid, too */
        g_assert_true(!changed || i == offsetof(HtDeadHead, streams) ||
                      i >= offsetof(HtDeadHead, reserved));
        f.index->data[i] ^= 0xff;
    }
    memset(head(&f)->memory, 'x', sizeof(head(&f)->memory));
    g_assert_null(ht_dead_new(f.index->data, f.index->len, NULL));
    head(&f)->memory[0] = 0;
    memset(head(&f)->memory, 0, sizeof(head(&f)->memory));
    /* an opening later than the maximal date is refused */
    stream(&f, 1)->ns = ht_le64(HT_TIME_MAX_NS + 1);
    g_assert_null(ht_dead_new(f.index->data, f.index->len, NULL));
    stream(&f, 1)->ns = ht_le64(HT_TIME_MAX_NS);
    d = ht_dead_new(f.index->data, f.index->len, NULL);
    g_assert_true(d != NULL);
    strcpy(head(&f)->trace, "a/b");
    g_assert_null(ht_dead_new(f.index->data, f.index->len, NULL));
    teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/dead-streams/all", test_all);
    g_test_add_func("/dead-streams/overwritten", test_overwritten);
    g_test_add_func("/dead-streams/discarding", test_discarding);
    g_test_add_func("/dead-streams/cut", test_cut);
    g_test_add_func("/dead-streams/stale", test_stale);
    g_test_add_func("/dead-streams/refused", test_refused);
    return g_test_run();
}
