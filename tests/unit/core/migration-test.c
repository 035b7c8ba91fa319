/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test the state that moves to another host: streams, classes, time.  The hosts
 * together deliver each event or count it as discarded, and a state with
 * impossible values is refused.
 */
#include "hypertrace/base.h"
#include "core-testlib.h"

#define SIZE HT_PACKET_SIZE_MIN
#define SECOND UINT64_C(1000000000)

/*
 * Move a consumer to a new host 60 times, each time after its producer has
 * emitted a random number of events.  Check that the events of all hosts form
 * one sequence, and that missing events were counted.  Returns the number of
 * overwritten events or, without @overwrite, of events that the producer
 * discarded.
 */
static uint64_t hand_over(uint32_t packets, bool overwrite)
{
    CtRing r;
    CtSink s;
    HtConsumer c;
    uint64_t n = 0, next = 0, missing = 0, told = 0;
    unsigned host, i;

    ct_ring_init(&r, SIZE, packets, overwrite);
    ct_sink_init(&s);
    ct_consumer_open(&c, &s, &r);
    for (host = 0; host < 60; host++) {
        HtConsumerState st;

        for (i = g_test_rand_int_range(0, 6); i; i--) {
            unsigned count = g_test_rand_int_range(0, 900);

            while (count--) {
                n += ct_ring_emit(&r, n);
            }
            ht_consumer_ring(&c, r.control, r.data,
                             g_test_rand_bit() ? SIZE_MAX : 1);
            g_assert_cmpstr(c.why, ==, "");
        }
        for (i = 0; i < s.numbers->len; i++) {
            g_assert_cmpuint(ct_sink_number(&s, i), >=, next);
            missing += ct_sink_number(&s, i) - next;
            next = ct_sink_number(&s, i) + 1;
        }
        /*
         * HtConsumerState.told is the number of discarded events that all hosts
         * together have reported
         */
        told += s.discarded;
        ht_consumer_save(&c, &st);
        g_assert_cmpuint(st.told, ==, told);
        ht_consumer_destroy(&c);
        ct_sink_destroy(&s);

        ct_sink_init(&s);
        s.ns = st.ns;
        ct_consumer_init(&c, &s, &r);
        g_assert_null(ht_consumer_load(&c, r.stream, &st));
        g_assert_cmpuint(s.opened, ==, 0);
        c.time = ct_time(1000);
        ht_consumer_resume(&c);
        g_assert_cmpuint(s.opened, ==, 1);
        g_assert_cmpuint(s.discarded, ==, 0);
    }
    while (ht_consumer_ring(&c, r.control, r.data, SIZE_MAX)) {
        /* repeat until all events are read */
    }
    for (i = 0; i < s.numbers->len; i++) {
        missing += ct_sink_number(&s, i) - next;
        next = ct_sink_number(&s, i) + 1;
    }
    ht_consumer_close(&c, r.lost, 0);
    g_assert_cmpuint(next, ==, n);
    g_assert_cmpuint(c.events + missing, ==, n);
    /*
     * The loop above uses the number of an event that the producer discards
     * for the next event, so @missing does not include these events.
     */
    g_assert_cmpuint(told + s.discarded, ==, missing + r.lost);
    missing = overwrite ? missing : r.lost;
    ht_consumer_destroy(&c);
    ct_sink_destroy(&s);
    ct_ring_destroy(&r);
    return missing;
}

/*
 * Run hand_over() 20 times, because the producer may by chance discard no event
 * in a single run.
 */
static void test_discard(void)
{
    uint64_t lost = 0;
    unsigned i;

    for (i = 0; i < 20; i++) {
        lost += hand_over(2, false);
    }
    g_assert_cmpuint(lost, >, 0);
}

static void test_overwrite(void)
{
    uint64_t lost = 0;
    unsigned i;

    for (i = 0; i < 20; i++) {
        lost += hand_over(4, true);
    }
    g_assert_cmpuint(lost, >, 0);
}

/*
 * A stream's instance number in the trace may differ from the producer's. A
 * saved state has both numbers, and the loaded stream keeps the number in the
 * trace.
 */
static void test_renamed(void)
{
    CtRing r;
    CtSink s, t;
    HtConsumer c, d;
    HtConsumerState st;
    uint64_t n;

    ct_ring_init(&r, SIZE, 4, false);
    ct_sink_init(&s);
    ct_sink_init(&t);
    ct_consumer_open(&c, &s, &r);
    for (n = 0; n < 10; n++) {
        ct_ring_emit(&r, n);
    }
    ht_consumer_ring(&c, r.control, r.data, SIZE_MAX);
    ht_consumer_save(&c, &st);
    st.trace_instance = 4711;
    ct_consumer_init(&d, &t, &r);
    g_assert_null(ht_consumer_load(&d, r.stream, &st));
    ht_consumer_resume(&d);
    g_assert_cmpuint(d.info.instance, ==, 4711);
    for (; n < 1000; n++) {
        ct_ring_emit(&r, n);
    }
    ht_consumer_ring(&d, r.control, r.data, SIZE_MAX);
    g_assert_cmpstr(d.why, ==, "");
    g_assert_cmpuint(d.events, ==, 1000);
    g_assert_cmpuint(t.numbers->len, ==, 990);
    ht_consumer_save(&d, &st);
    g_assert_cmpuint(st.instance, ==, r.instance);
    g_assert_cmpuint(st.trace_instance, ==, 4711);
    ht_consumer_destroy(&c);
    ht_consumer_destroy(&d);
    ct_sink_destroy(&s);
    ct_sink_destroy(&t);
    ct_ring_destroy(&r);
}

static void test_forged_stream(void)
{
    static const struct {
        const char *what;
        size_t offset;
        uint64_t value;
        bool good;
    } forged[] = {
#define BAD(f, v) { #f, offsetof(HtConsumerState, f), v, false }
#define GOOD(f, v) { #f, offsetof(HtConsumerState, f), v, true }
        BAD(instance, 0),
        BAD(trace_instance, 0),
        BAD(cursor, UINT64_MAX),
        BAD(cursor, UINT64_MAX / 2 + 1),
        BAD(cursor, SIZE + 1),
        BAD(cursor, SIZE + sizeof(struct ht_packet) - 1),
        GOOD(cursor, SIZE + sizeof(struct ht_packet)),
        GOOD(cursor, SIZE),
        BAD(fed, 1),
        BAD(fed, UINT64_MAX),
        BAD(skipped, UINT64_MAX),
        BAD(lost, UINT64_MAX),
        BAD(lost, UINT64_C(1) << 56),
        BAD(dropped, UINT64_MAX),
        BAD(told, 1),
        BAD(told, UINT64_MAX),
        BAD(ns, HT_TIME_MAX_NS + 1),
        BAD(ns, UINT64_MAX),
        GOOD(ns, HT_TIME_MAX_NS),
        GOOD(events, UINT64_MAX),
        GOOD(expected, UINT64_MAX),
        GOOD(clock, UINT64_MAX),
        BAD(name, UINT64_C(0x0101010101010101)),
        BAD(name, UINT64_C(0xffffffffffffffff)),
        BAD(name, UINT64_C(0x0000000000007f41)),
        GOOD(name, UINT64_C(0x0000000000414141)),
#undef BAD
#undef GOOD
    };
    HtConsumerState honest, st;
    HtConsumer c, d;
    CtRing r;
    CtSink s, t;
    unsigned i;

    ct_ring_init(&r, SIZE, 4, false);
    ct_sink_init(&s);
    ct_consumer_open(&c, &s, &r);
    ht_consumer_save(&c, &honest);
    for (i = 0; i < G_N_ELEMENTS(forged); i++) {
        const char *problem;

        ct_sink_init(&t);
        ct_consumer_init(&d, &t, &r);
        st = honest;
        memcpy((char *)&st + forged[i].offset, &forged[i].value, 8);
        problem = ht_consumer_load(&d, r.stream, &st);
        g_test_message("%s = 0x%" PRIx64 ": %s", forged[i].what,
                       forged[i].value, problem ? problem : "accepted");
        g_assert_true(!problem == forged[i].good);
        g_assert_cmpint(d.open, ==, forged[i].good);
        if (forged[i].good) {
            ht_consumer_resume(&d);
            ct_ring_emit(&r, i);
            ht_consumer_ring(&d, r.control, r.data, SIZE_MAX);
        }
        ht_consumer_destroy(&d);
        ct_sink_destroy(&t);
    }
    st = honest;
    st.vcpu = -2;
    ct_sink_init(&t);
    ct_consumer_init(&d, &t, &r);
    g_assert_nonnull(ht_consumer_load(&d, r.stream, &st));
    st = honest;
    memset(st.name, 'a', sizeof(st.name));
    g_assert_nonnull(ht_consumer_load(&d, r.stream, &st));
    ht_consumer_destroy(&d);
    ct_sink_destroy(&t);
    ht_consumer_destroy(&c);
    ct_sink_destroy(&s);
    ct_ring_destroy(&r);
}

static HtClassTable *some_classes(unsigned count)
{
    HtClassTable *t = ht_class_table_new();
    unsigned i;

    for (i = 0; i < count; i++) {
        /*
         * if @i is odd, the class is the second version of the class before
         * it
         */
        g_autofree char *name = g_strdup_printf("c%u", i / 2);
        HtClass *c;
        CtMessage m;
        bool added;

        ct_class(&m, name);
        ct_field(&m, "number", HT_FIELD_U8 + i % 8, 0, 0);
        if (i & 1) {
            ct_field(&m, "text", HT_FIELD_TEXT, 0, 0);
            ct_field(&m, "array", HT_FIELD_ARRAY, HT_FIELD_S16, 1 + i % 4096);
            ct_field(&m, "sequence", HT_FIELD_SEQUENCE, HT_FIELD_U32, 0);
        }
        g_assert_cmpint(ct_add(t, &m, &added, &c), ==, HT_STATUS_OK);
        g_assert_true(added);
    }
    return t;
}

static void assert_same(HtClassTable *a, HtClassTable *b, uint32_t count)
{
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    g_autofree struct ht_msg_class *n = g_malloc0(HT_MESSAGE_MAX);
    uint32_t id;

    for (id = 1; id <= count; id++) {
        size_t size = ht_class_encode(ht_class_table_get(a, id), m);

        g_assert_cmpuint(ht_class_encode(ht_class_table_get(b, id), n), ==,
                         size);
        g_assert_cmpmem(m, size, n, size);
        g_assert_cmpuint(ht_class_table_get(a, id)->fixed, ==,
                         ht_class_table_get(b, id)->fixed);
    }
}

/*
 * Promise: saved classes can be loaded into a table that is empty, or that
 * begins with some or all of them; each class keeps its id.
 */
static void test_classes(void)
{
    static const unsigned sizes[] = { 0, 1, 2, 7, 40, HT_CLASSES_MAX };
    unsigned i, j;

    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (j = 0; j < G_N_ELEMENTS(sizes); j++) {
            HtClassTable *from = some_classes(sizes[i]);
            HtClassTable *to = some_classes(sizes[j]);
            g_autoptr(GByteArray) saved = ht_class_table_save(from);
            char *why = NULL;

            g_assert_cmpuint(saved->len, <=, HT_CLASSES_SAVED_MAX);
            g_assert_true(ht_class_table_load(to, saved->data, saved->len,
                                              &why));
            g_assert_null(why);
            g_assert_cmpuint(ht_class_table_count(to), ==,
                             MAX(sizes[i], sizes[j]));
            assert_same(from, to, sizes[i]);
            ht_class_table_free(from);
            ht_class_table_free(to);
        }
    }
}

/*
 * Promise: if a guest registers a class again after a migration, the class
 * keeps its id.
 */
static void test_classes_again(void)
{
    HtClassTable *from = some_classes(20), *to = ht_class_table_new();
    g_autoptr(GByteArray) saved = ht_class_table_save(from);
    char *why = NULL;
    HtClass *c;
    CtMessage m;
    bool added;

    g_assert_true(ht_class_table_load(to, saved->data, saved->len, &why));
    ct_class(&m, "c4");
    ct_field(&m, "number", HT_FIELD_U8 + 9 % 8, 0, 0);
    ct_field(&m, "text", HT_FIELD_TEXT, 0, 0);
    ct_field(&m, "array", HT_FIELD_ARRAY, HT_FIELD_S16, 10);
    ct_field(&m, "sequence", HT_FIELD_SEQUENCE, HT_FIELD_U32, 0);
    g_assert_cmpint(ct_add(to, &m, &added, &c), ==, HT_STATUS_OK);
    g_assert_false(added);
    g_assert_cmpuint(c->id, ==, 10);
    g_assert_cmpstr(c->name, ==, "c4.v2");
    ht_class_table_free(from);
    ht_class_table_free(to);
}

static void assert_refused(HtClassTable *t, const void *data, size_t size)
{
    uint32_t before = ht_class_table_count(t);
    g_autofree uint8_t *copy = g_memdup2(data, size);
    char *why = NULL;

    g_assert_false(ht_class_table_load(t, copy, size, &why));
    g_assert_nonnull(why);
    g_free(why);
    g_assert_cmpuint(ht_class_table_count(t), ==, before);
}

static void test_classes_differ(void)
{
    HtClassTable *from = some_classes(8), *to = ht_class_table_new();
    g_autoptr(GByteArray) saved = ht_class_table_save(from);
    CtMessage m;

    ct_class(&m, "c0");
    ct_field(&m, "number", HT_FIELD_S64, 0, 0);
    ct_register(to, &m);
    assert_refused(to, saved->data, saved->len);
    ht_class_table_free(to);

    to = ht_class_table_new();
    ct_class(&m, "other");
    ct_register(to, &m);
    assert_refused(to, saved->data, saved->len);
    ht_class_table_free(to);
    ht_class_table_free(from);
}

static void test_forged_classes(void)
{
    HtClassTable *from = some_classes(HT_CLASSES_MAX);
    HtClassTable *few = some_classes(6), *to = some_classes(3);
    g_autoptr(GByteArray) all = ht_class_table_save(from);
    g_autoptr(GByteArray) saved = ht_class_table_save(few);
    g_autoptr(GByteArray) more = g_byte_array_new();
    unsigned i, good = 0;

    /* cut the state anywhere: only a cut between two classes is accepted */
    for (i = 1; i < saved->len; i++) {
        g_autofree uint8_t *copy = g_memdup2(saved->data, i);
        HtClassTable *t = ht_class_table_new();
        char *why = NULL;

        good += ht_class_table_load(t, copy, i, &why);
        g_assert_true((why == NULL) == (ht_class_table_count(t) > 0));
        g_free(why);
        ht_class_table_free(t);
    }
    g_assert_cmpuint(good, ==, 5);
    /* more classes than the limit, and some of them twice */
    g_byte_array_append(more, all->data, all->len);
    g_byte_array_append(more, saved->data, saved->len);
    assert_refused(to, more->data, more->len);
    /* a saved table that has each class twice */
    g_byte_array_set_size(more, 0);
    g_byte_array_append(more, saved->data, saved->len);
    g_byte_array_append(more, saved->data, saved->len);
    assert_refused(to, more->data, more->len);
    for (i = 0; i < 20000; i++) {
        g_autofree uint8_t *copy = g_memdup2(saved->data, saved->len);
        HtClassTable *t = ht_class_table_new();
        unsigned flips = g_test_rand_int_range(1, 4);
        char *why = NULL;

        while (flips--) {
            copy[g_test_rand_int_range(0, saved->len)] = g_test_rand_int();
        }
        if (ht_class_table_load(t, copy, saved->len, &why)) {
            g_autoptr(GByteArray) again = ht_class_table_save(t);

            g_assert_null(why);
            g_assert_cmpuint(again->len, ==, saved->len);
        } else {
            g_assert_nonnull(why);
            g_assert_cmpuint(ht_class_table_count(t), ==, 0);
        }
        g_free(why);
        ht_class_table_free(t);
    }
    ht_class_table_free(from);
    ht_class_table_free(few);
    ht_class_table_free(to);
}

/*
 * A migration takes a second, in which the guest's counter stands still. The
 * new host's clock shows the old host's time plus @shift. Promise: events from
 * before the migration get dates on the new host's clock.
 */
static void test_time(void)
{
    HtTimeMap a, b;
    const int64_t shift = -5 * (int64_t)SECOND;
    uint64_t stop = 20 * SECOND, go = 16 * SECOND;

    ht_time_map_init(&a, SECOND);
    ht_time_map_sample(&a, 1000, 10 * SECOND, 1);
    ht_time_map_sample(&a, 10 * SECOND + 1000, stop, 1);

    ht_time_map_init(&b, SECOND / 2);
    g_assert_true(ht_time_map_load(&b, a.seg, a.count, shift, go));
    g_assert_cmpuint(ht_time_map_bound(&b, 0), ==, UINT64_MAX);
    g_assert_cmpuint(ht_time_map_to_ns(&b, 1000), ==, 5 * SECOND);
    g_assert_cmpuint(ht_time_map_to_ns(&b, 10 * SECOND + 1000), ==,
                     15 * SECOND);

    /* the counter runs at half of the rate that it had on the old host */
    ht_time_map_sample(&b, 10 * SECOND + 1000, go, 7);
    g_assert_cmpuint(ht_time_map_bound(&b, 0), ==, 7);
    g_assert_cmpuint(ht_time_map_to_ns(&b, 5 * SECOND + 1000), ==,
                     10 * SECOND);
    g_assert_cmpuint(ht_time_map_to_ns(&b, 10 * SECOND + 1000), ==, go);
    g_assert_cmpuint(ht_time_map_to_ns(&b, 11 * SECOND + 1000), ==,
                     go + 2 * SECOND);
    ht_time_map_sample(&b, 11 * SECOND + 1000, go + 2 * SECOND, 7);
    g_assert_cmpuint(ht_time_map_hz(&b), ==, SECOND / 2);

    /* the counter restarted, so the loaded segments do not apply */
    g_assert_true(ht_time_map_load(&b, a.seg, a.count, shift, go));
    ht_time_map_sample(&b, 17, go, 7);
    g_assert_cmpuint(b.count, ==, 1);
    g_assert_cmpuint(ht_time_map_to_ns(&b, 17), ==, go);
}

/*
 * Promise: of the loaded segments, those that begin at time 0 of the new host's
 * clock or before are dropped. Those that begin later than its present time get
 * the present time.
 */
static void test_time_far(void)
{
    HtTimeMap a, b;

    ht_time_map_init(&a, SECOND);
    ht_time_map_sample(&a, 1000, 10 * SECOND, 1);
    ht_time_map_sample(&a, 10 * SECOND + 1000, 20 * SECOND, 1);
    ht_time_map_init(&b, SECOND);
    g_assert_true(ht_time_map_load(&b, a.seg, a.count,
                                   -100 * (int64_t)SECOND, 3 * SECOND));
    g_assert_cmpuint(b.count, ==, 0);
    g_assert_true(ht_time_map_load(&b, a.seg, a.count,
                                   -15 * (int64_t)SECOND, 3 * SECOND));
    g_assert_cmpuint(b.count, ==, 1);
    g_assert_cmpuint(b.seg[0].ns, ==, 3 * SECOND);
    g_assert_true(ht_time_map_load(&b, a.seg, a.count, INT64_MAX, SECOND));
    g_assert_cmpuint(b.seg[1].ns, ==, SECOND);
    g_assert_true(ht_time_map_load(&b, a.seg, a.count, INT64_MIN, SECOND));
    g_assert_cmpuint(b.count, ==, 0);
    g_assert_cmpuint(ht_time_shift(5, INT64_MIN, 10), ==, 0);
    g_assert_cmpuint(ht_time_shift(5, 4, 10), ==, 9);
    g_assert_cmpuint(ht_time_shift(5, 6, 10), ==, 10);
    g_assert_cmpuint(ht_time_shift(50, -6, 10), ==, 10);
}

static void test_forged_time(void)
{
    HtTimeSegment good[] = {
        { 1000, SECOND, UINT64_C(1) << 32, 1 },
        { 2000, SECOND + 1000, UINT64_C(1) << 32, 1 },
    };
    HtTimeSegment seg[2];
    HtTimeMap m;
    unsigned i;

    ht_time_map_init(&m, SECOND);
    g_assert_true(ht_time_map_load(&m, good, 2, 0, 5 * SECOND));
    g_assert_false(ht_time_map_load(&m, good, HT_TIME_SEGMENTS + 1, 0,
                                    SECOND));
    for (i = 0; i < 5; i++) {
        memcpy(seg, good, sizeof(seg));
        switch (i) {
        case 0:
            seg[1].counter = 999;
            break;
        case 1:
            seg[1].ns = SECOND - 1;
            break;
        case 2:
            seg[0].mult = 0;
            break;
        case 3:
            seg[1].mult = UINT64_MAX;
            break;
        case 4:
            seg[1].ns = UINT64_MAX;
            break;
        }
        g_assert_false(ht_time_map_load(&m, seg, 2, 0, 5 * SECOND));
    }
    /* a forged map is refused, or dates from seg[1] on do not decrease */
    for (i = 0; i < 10000; i++) {
        uint64_t last = 0, counter, step;
        unsigned j;

        for (j = 0; j < 2; j++) {
            seg[j].counter = (uint64_t)g_test_rand_int() << 32;
            seg[j].ns = (uint64_t)g_test_rand_int() <<
                        g_test_rand_int_range(0, 31);
            seg[j].mult = (uint64_t)g_test_rand_int() <<
                          g_test_rand_int_range(0, 31);
        }
        if (!ht_time_map_load(&m, seg, 2, g_test_rand_int(), 5 * SECOND)) {
            continue;
        }
        ht_time_map_sample(&m, seg[1].counter, 5 * SECOND, 1);
        step = seg[1].counter / 50 + 1;
        for (counter = 0; counter < UINT64_MAX - step; counter += step) {
            uint64_t ns = ht_time_map_to_ns(&m, counter);

            g_assert_cmpuint(ns, <=, HT_TIME_MAX_NS);
            if (counter >= seg[1].counter) {
                g_assert_cmpuint(ns, >=, last);
                last = ns;
            }
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/migration/discard", test_discard);
    g_test_add_func("/migration/overwrite", test_overwrite);
    g_test_add_func("/migration/renamed", test_renamed);
    g_test_add_func("/migration/forged-stream", test_forged_stream);
    g_test_add_func("/migration/classes", test_classes);
    g_test_add_func("/migration/classes-again", test_classes_again);
    g_test_add_func("/migration/classes-differ", test_classes_differ);
    g_test_add_func("/migration/forged-classes", test_forged_classes);
    g_test_add_func("/migration/time", test_time);
    g_test_add_func("/migration/time-far", test_time_far);
    g_test_add_func("/migration/forged-time", test_forged_time);
    return g_test_run();
}
