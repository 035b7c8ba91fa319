/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library: which classes, streams and capabilities of a device are
 * accepted, and which are refused
 */
#include "hypertrace/base.h"
#include "guest-testlib.h"
#include "guest-events.h"

static void ignore(void *opaque, const HtRun *run)
{
    uint64_t *events = opaque;

    *events += run->events;
}

static uint64_t events;

static struct ht_loopback *hurried(unsigned busy_replies, unsigned at_once)
{
    struct ht_loopback_config cfg = {
        .channel = HT_CHANNEL_HYPERCALL,
        .busy_replies = busy_replies,
        .at_once = at_once,
        .deliver = ignore,
        .opaque = &events,
    };

    events = 0;
    return ht_loopback_new(&cfg);
}

static struct ht_loopback *plain(unsigned busy_replies)
{
    return hurried(busy_replies, 0);
}

static struct ht_class make(const char *name, const struct ht_field *f,
                            unsigned n)
{
    return (struct ht_class) { .name = name, .fields = f, .nr_fields = n };
}

static void refuse(struct ht_device *dev, struct ht_class c)
{
    g_assert_cmpint(ht_register(dev, &c), ==, -EINVAL);
    g_assert_cmpuint(c.id, ==, 0);
}

static void refuse_field(struct ht_device *dev, struct ht_field f)
{
    refuse(dev, make("x", &f, 1));
}

static void accept_field(struct ht_device *dev, struct ht_field f)
{
    static unsigned nr;
    g_autofree char *name = g_strdup_printf("accepted-%u", nr++);
    struct ht_class c = make(name, &f, 1);

    g_assert_cmpint(ht_register(dev, &c), >, 0);
    g_assert_cmpuint(c.id, >, 0);
}

static void test_refused(void)
{
    g_autofree char *n64 = g_strnfill(64, 'n');
    g_autofree char *n127 = g_strnfill(127, 'n');
    g_autofree char *n128 = g_strnfill(128, 'n');
    struct ht_loopback *lb = plain(0);
    struct ht_device *dev = ht_loopback_device(lb);
    const struct ht_field twice[] = {
        { "a", HT_FIELD_U8, 0, 0, 0, NULL },
        { "b", HT_FIELD_U8, 0, 0, 0, NULL },
        { "a", HT_FIELD_U64, 0, 0, 0, NULL },
    };
    const char *const bad_class[] = {
        "", " ", "a b", "a/b", "a:b", "\xc3\xa4", "a\n", n128,
    };
    const char *const bad_field[] = {
        "", "0a", "a.b", "a-b", "a b", "\xc3\xa4", n64,
    };
    struct ht_class c;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad_class); i++) {
        refuse(dev, make(bad_class[i], NULL, 0));
    }
    refuse(dev, make(NULL, NULL, 0));
    refuse(dev, make("x", NULL, 1));
    refuse(dev, make("x", twice, 3));
    c = make("x", twice, HT_FIELDS_MAX + 1);
    refuse(dev, c);
    c = make("x", NULL, 0);
    c.loglevel = 15;
    refuse(dev, c);
    for (i = 0; i < G_N_ELEMENTS(bad_field); i++) {
        refuse_field(dev, (struct ht_field) { bad_field[i], HT_FIELD_U8, 0, 0,
                                              0, NULL });
    }
    refuse_field(dev, (struct ht_field) { NULL, HT_FIELD_U8, 0, 0, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", 0, 0, 0, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", 11, 0, 0, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", 19, 0, 0, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_U8, 0, 2, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_U8, 0, 16, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_ARRAY, HT_FIELD_U16,
                                          HT_FIELD_UTF8, 4, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_ARRAY, HT_FIELD_U8,
                                          HT_FIELD_UTF8 | HT_FIELD_HEX, 4,
                                          NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_U8, 1, 0, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_U8, 0, 0, 1, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_TEXT, 1, 0, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_SEQUENCE, 0, 0, 0,
                                          NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_SEQUENCE,
                                          HT_FIELD_F32, 0, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_SEQUENCE,
                                          HT_FIELD_U8, 0, 1, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_ARRAY, HT_FIELD_U8,
                                          0, 0, NULL });
    refuse_field(dev, (struct ht_field) { "f", HT_FIELD_ARRAY, HT_FIELD_U8,
                                          0, 4097, NULL });
    /* the library accepts a reserved name; the host refuses it */
    refuse_field(dev, (struct ht_field) { "guest_ns", HT_FIELD_U8, 0, 0, 0,
                                          NULL });
    g_assert_cmpuint(ht_class_table_count(ht_loopback_classes(lb)), ==, 0);

    c = make(n127, NULL, 0);
    g_assert_cmpint(ht_register(dev, &c), ==, 1);
    n64[63] = '\0';
    accept_field(dev, (struct ht_field) { n64, HT_FIELD_S64, 0, HT_FIELD_HEX,
                                          0, NULL });
    accept_field(dev, (struct ht_field) { "_0", HT_FIELD_ARRAY, HT_FIELD_S8,
                                          0, 4096, NULL });
    accept_field(dev, (struct ht_field) { "comm", HT_FIELD_ARRAY, HT_FIELD_U8,
                                          HT_FIELD_UTF8, 16, NULL });
    accept_field(dev, (struct ht_field) { "A9", HT_FIELD_SEQUENCE,
                                          HT_FIELD_U64, HT_FIELD_HEX, 0,
                                          NULL });
    ht_loopback_free(lb);
}

/* The largest class without labels fits into a message. */
static void test_largest(void)
{
    struct ht_loopback *lb = plain(0);
    struct ht_field f[HT_FIELDS_MAX];
    g_autofree char *name = g_strnfill(HT_CLASS_NAME_MAX, 'c');
    char names[HT_FIELDS_MAX][HT_FIELD_NAME_MAX + 1];
    struct ht_class c;
    HtClass *host;
    unsigned i;

    for (i = 0; i < HT_FIELDS_MAX; i++) {
        memset(names[i], 'f', HT_FIELD_NAME_MAX);
        names[i][HT_FIELD_NAME_MAX] = '\0';
        names[i][0] = 'A' + i % 26;
        names[i][1] = 'a' + i / 26;
        f[i] = (struct ht_field) { names[i], HT_FIELD_ARRAY, HT_FIELD_S16,
                                   HT_FIELD_HEX, 100 + i, NULL };
    }
    c = make(name, f, HT_FIELDS_MAX);
    c.loglevel = 3;
    g_assert_cmpint(ht_register(ht_loopback_device(lb), &c), ==, 1);
    host = ht_class_table_get(ht_loopback_classes(lb), 1);
    g_assert_cmpstr(host->name, ==, name);
    g_assert_cmpuint(host->loglevel, ==, 3);
    g_assert_cmpuint(host->nr_fields, ==, HT_FIELDS_MAX);
    for (i = 0; i < HT_FIELDS_MAX; i++) {
        g_assert_cmpstr(host->fields[i].name, ==, names[i]);
        g_assert_cmpuint(host->fields[i].kind, ==, HT_FIELD_ARRAY);
        g_assert_cmpuint(host->fields[i].elem, ==, HT_FIELD_S16);
        g_assert_cmpuint(host->fields[i].flags, ==, HT_FIELD_HEX);
        g_assert_cmpuint(host->fields[i].count, ==, 100 + i);
    }
    ht_loopback_free(lb);
}

/* Assert that the host gets names, levels and fields as HT_EVENT() has them. */
static void test_described(void)
{
    static const struct ht_field want[] = {
        { "a", HT_FIELD_U8, 0, 0, 0, NULL },
        { "b", HT_FIELD_S16, 0, 0, 0, NULL },
        { "c", HT_FIELD_U32, 0, HT_FIELD_HEX, 0, NULL },
        { "d", HT_FIELD_F64, 0, 0, 0, NULL },
        { "e", HT_FIELD_TEXT, HT_FIELD_U8, 0, 0, NULL },
        { "f", HT_FIELD_U16, 0, 0, 0, NULL },
        { "g", HT_FIELD_S8, 0, 0, 0, NULL },
        { "h", HT_FIELD_ARRAY, HT_FIELD_U16, 0, 3, NULL },
        { "i", HT_FIELD_F32, 0, 0, 0, NULL },
        { "j", HT_FIELD_S64, 0, 0, 0, NULL },
        { "k", HT_FIELD_TEXT, HT_FIELD_U8, 0, 0, NULL },
        { "l", HT_FIELD_S32, 0, 0, 0, NULL },
        { "m", HT_FIELD_U8, 0, HT_FIELD_HEX, 0, NULL },
        { "n", HT_FIELD_U16, 0, HT_FIELD_HEX, 0, NULL },
        { "o", HT_FIELD_U64, 0, HT_FIELD_HEX, 0, NULL },
        { "p", HT_FIELD_U32, 0, 0, 0, NULL },
        { "q", HT_FIELD_ARRAY, HT_FIELD_U8, HT_FIELD_UTF8, 5, NULL },
    };
    struct ht_loopback *lb = plain(0);
    struct ht_device *dev = ht_loopback_device(lb);
    HtClass *c;
    unsigned i;

    g_assert_cmpint(ht_register(dev, &ht_class_mixed), ==, 1);
    c = ht_class_table_get(ht_loopback_classes(lb), 1);
    g_assert_cmpstr(c->name, ==, "mixed");
    g_assert_cmpuint(c->loglevel, ==, HT_LEVEL_DEBUG);
    g_assert_cmpuint(c->nr_fields, ==, G_N_ELEMENTS(want));
    for (i = 0; i < G_N_ELEMENTS(want); i++) {
        g_assert_cmpstr(c->fields[i].name, ==, want[i].name);
        g_assert_cmpuint(c->fields[i].kind, ==, want[i].kind);
        g_assert_cmpuint(c->fields[i].elem, ==, want[i].elem);
        g_assert_cmpuint(c->fields[i].flags, ==, want[i].flags);
        g_assert_cmpuint(c->fields[i].count, ==, want[i].count);
    }
    g_assert_cmpint(ht_register(dev, &ht_class_blob), ==, 2);
    c = ht_class_table_get(ht_loopback_classes(lb), 2);
    g_assert_cmpstr(c->name, ==, "test.blob-v1");
    g_assert_cmpuint(c->loglevel, ==, 6);
    g_assert_cmpuint(c->fields[1].kind, ==, HT_FIELD_SEQUENCE);
    g_assert_cmpuint(c->fields[1].elem, ==, HT_FIELD_U32);
    g_assert_cmpuint(c->fields[2].elem, ==, HT_FIELD_U8);
    g_assert_cmpint(ht_register(dev, &ht_class_zero), ==, 3);
    g_assert_cmpuint(ht_class_zero.nr_fields, ==, 0);
    ht_loopback_free(lb);
}

/*
 * Each file that includes guest-events.h has its own class object of an event;
 * the host gives all class objects of one event the same id.
 */
static void test_shared(void)
{
    struct ht_loopback *lb = plain(0);
    struct ht_device *dev = ht_loopback_device(lb);

    g_assert_true(gt_class_tick != &ht_class_tick);
    g_assert_cmpint(ht_register(dev, &ht_class_tick), ==, 1);
    g_assert_cmpint(ht_register(dev, gt_class_tick), ==, 1);
    ht_loopback_free(lb);
}

static void test_busy(void)
{
    struct ht_loopback *lb = plain(50);
    struct ht_device *dev = ht_loopback_device(lb);
    struct ht_stream s;

    g_assert_cmpint(ht_register(dev, &ht_class_tick), ==, 1);
    g_assert_cmpint(ht_register(dev, &ht_class_four), ==, 2);
    g_assert_cmpint(ht_register(dev, &ht_class_tick), ==, 1);
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    g_assert_true(ht_emit_tick(&s, 1));
    g_assert_true(ht_emit_four(&s, 1, 2, 3, 4));
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    g_assert_cmpuint(events, ==, 2);
    ht_loopback_free(lb);

    /* each reply is BUSY: the class gets no id, and its events are lost */
    lb = plain(UINT32_MAX);
    dev = ht_loopback_device(lb);
    ht_class_tick.id = 0;
    g_assert_cmpint(ht_register(dev, &ht_class_tick), ==, -ETIMEDOUT);
    g_assert_cmpuint(ht_class_tick.id, ==, 0);
    g_assert_cmpint(ht_stream_open(dev, &s, NULL), ==, 0);
    g_assert_false(ht_emit_tick(&s, 1));
    g_assert_cmpuint(s.lost, ==, 1);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);
    ht_loopback_free(lb);
}

static void test_limit(void)
{
    struct ht_loopback *lb = plain(0);
    struct ht_device *dev = ht_loopback_device(lb);
    unsigned i;

    for (i = 1; i <= HT_CLASSES_MAX + 1; i++) {
        g_autofree char *name = g_strdup_printf("c%u", i);
        struct ht_class c = make(name, NULL, 0);

        g_assert_cmpint(ht_register(dev, &c), ==,
                        i <= HT_CLASSES_MAX ? (int)i : -ENOSPC);
    }
    ht_loopback_free(lb);
}

/*
 * One call registers many classes.  A class that the library or the host
 * refuses does not affect others.  The library sends a class again that gets
 * the reply BUSY.
 */
static void test_all(unsigned busy_replies, unsigned at_once)
{
    enum { MANY = 2000 };
    static const struct ht_field here = { "0", HT_FIELD_U8, 0, 0, 0, NULL };
    static const struct ht_field there = { "stream", HT_FIELD_U8, 0, 0, 0,
                                           NULL };
    struct ht_loopback *lb = hurried(busy_replies, at_once);
    struct ht_device *dev = ht_loopback_device(lb);
    g_autofree struct ht_class *c = g_new0(struct ht_class, MANY);
    g_autofree struct ht_class **all = g_new0(struct ht_class *, MANY + 1);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    unsigned i, n = 0;

    for (i = 0; i < MANY; i++) {
        char *name = g_strdup_printf("class-of-some-length-%u", i);

        g_ptr_array_add(names, name);
        c[i] = i % 100 == 50 ? make(name, &here, 1) :
               i % 100 == 60 ? make(name, &there, 1) : make(name, NULL, 0);
        c[i].id = 77;
        /* leave a NULL between the classes */
        all[i < 1000 ? i : i + 1] = &c[i];
    }
    g_assert_cmpint(ht_register_all(dev, all, MANY + 1), ==, -EINVAL);
    for (i = 0; i < MANY; i++) {
        bool good = i % 100 != 50 && i % 100 != 60;

        n += good;
        g_assert_cmpuint(c[i].id, ==, good ? n : 0);
    }
    g_assert_cmpuint(ht_class_table_count(ht_loopback_classes(lb)), ==, n);
    g_assert_cmpint(ht_register_all(dev, all, 40), ==, 0);
    g_assert_cmpint(ht_register_all(dev, all, 0), ==, 0);
    g_assert_cmpuint(ht_class_table_count(ht_loopback_classes(lb)), ==, n);
    ht_loopback_free(lb);
}

static void test_all_busy(void)
{
    test_all(1, 0);
}

static void test_all_hurried(void)
{
    static const unsigned at_once[] = { 1, 2, 3, 15, 16, 17 };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(at_once); i++) {
        test_all(0, at_once[i]);
    }
}

static void test_open(void)
{
    struct ht_loopback *lb = plain(0);
    struct ht_device *dev = ht_loopback_device(lb);
    struct ht_stream_params p = { 2, 0, "n", 0 };
    struct ht_stream s, other;
    struct ht_stats stats;

    g_assert_cmpint(ht_stream_open(dev, &s, &p), ==, 0);
    g_assert_cmpuint(s.index, ==, 2);
    g_assert_cmpint(ht_stream_open(dev, &other, &p), ==, -EBUSY);
    p.stream = dev->caps.streams;
    g_assert_cmpint(ht_stream_open(dev, &other, &p), ==, -EINVAL);
    p.stream = HT_STREAM_ANY;
    p.name = "a name of thirty-three characters";
    g_assert_cmpint(ht_stream_open(dev, &other, &p), ==, -EINVAL);
    p.name = "a name of thirty-two characters.";
    g_assert_cmpint(ht_stream_open(dev, &other, &p), ==, 0);
    g_assert_cmpint(ht_stream_close(&other), ==, 0);
    g_assert_cmpint(ht_get_stats(dev, dev->caps.streams, &stats), ==, -ENOENT);
    g_assert_cmpint(ht_stream_close(&s), ==, 0);

    /* a stream that was never open */
    memset(&s, 0, sizeof(s));
    g_assert_false(ht_emit_zero(&s));
    g_assert_cmpint(ht_stream_push(&s), ==, -EIO);
    g_assert_cmpint(ht_stream_flush(&s), ==, -EIO);
    g_assert_cmpint(ht_stream_close(&s), ==, -EIO);
    ht_loopback_free(lb);
}

static void test_time(void)
{
    struct ht_loopback *lb = plain(0);
    struct ht_device *dev = ht_loopback_device(lb);
    int bound;

    g_assert_cmpint(ht_time_sync(dev, 0), ==, -EINVAL);
    g_assert_cmpint(ht_time_sync(dev, 1001), ==, -EINVAL);
    bound = ht_time_sync(dev, 10);
    g_assert_cmpint(bound, >, 0);
    g_assert_cmpint(bound, <, 100000000);
    ht_loopback_free(lb);
}

static void test_capabilities(void)
{
    static const struct ht_port_ops ops;
    const struct ht_caps good = {
        .magic = HT_MAGIC, .version = HT_VERSION,
        .channel = HT_CHANNEL_SHM, .mode = HT_MODE_DISCARD,
        .streams = 4, .packet_size = 4096, .packets = 2, .batch = 1,
        .max_gap = 1 << 23, .ring_stride = 16384,
        .max_message = HT_MESSAGE_MAX, .mailbox_size = HT_MAILBOX_SIZE,
        .counter = HT_COUNTER,
    };
    struct ht_device dev = { .ops = &ops };

#define TRY(field, value, result)                                   \
    do {                                                            \
        dev.caps = good;                                            \
        dev.caps.field = value;                                     \
        g_assert_cmpint(ht_device_init(&dev), ==, result);          \
    } while (0)

    TRY(magic, HT_MAGIC, 0);
    TRY(magic, 0, -ENODEV);
    TRY(magic, 0xffffffff, -ENODEV);
    TRY(version, HT_VERSION + 1, -EPROTO);
    TRY(channel, HT_CHANNEL_MEMORY, 0);
    TRY(channel, HT_CHANNEL_MEMORY + 1, -EPROTO);
    TRY(mode, 2, -EPROTO);
    TRY(streams, 0, -EPROTO);
    TRY(streams, HT_STREAMS_MAX + 1, -EPROTO);
    TRY(packet_size, 2048, -EPROTO);
    TRY(packet_size, 5000, -EPROTO);
    TRY(packet_size, 1 << 21, -EPROTO);
    TRY(packets, 1, -EPROTO);
    TRY(packets, 3, -EPROTO);
    TRY(packets, 2048, -EPROTO);
    TRY(batch, 0, -EPROTO);
    TRY(batch, HT_BATCH_MAX + 1, -EPROTO);
    TRY(max_gap, 0, -EPROTO);
    TRY(max_gap, (1 << 23) + 1, -EPROTO);
    TRY(ring_stride, 4096 + 2 * 4096 - 1, -EPROTO);
    TRY(max_message, 16, -EPROTO);
    TRY(mailbox_size, HT_MESSAGE_MAX - 1, -EPROTO);
    TRY(counter, 0, -EPROTO);
    TRY(counter, HT_COUNTER_TSC + HT_COUNTER_CNTVCT - HT_COUNTER, -EPROTO);
#undef TRY
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/register/refused", test_refused);
    g_test_add_func("/guest/register/largest", test_largest);
    g_test_add_func("/guest/register/described", test_described);
    g_test_add_func("/guest/register/shared", test_shared);
    g_test_add_func("/guest/register/busy", test_busy);
    g_test_add_func("/guest/register/limit", test_limit);
    g_test_add_func("/guest/register/all", test_all_busy);
    g_test_add_func("/guest/register/all-hurried", test_all_hurried);
    g_test_add_func("/guest/register/open", test_open);
    g_test_add_func("/guest/register/time", test_time);
    g_test_add_func("/guest/register/capabilities", test_capabilities);
    return g_test_run();
}
