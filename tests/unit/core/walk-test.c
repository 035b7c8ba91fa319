/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test which events ht_walk() accepts and refuses, and how it dates them
 */
#include "hypertrace/base.h"
#include "core-testlib.h"

/* host time in ns at which the guest's counter is 0 */
#define START 5000

static HtClassTable *classes;
static const uint8_t payload[64] = { 1, 2, 3, 4, 5, 6, 7, 8 };

/* Walk the first @len bytes of @a in a buffer of exactly this size. */
static HtWalkStop walk_copy(HtWalk *w, const HtTimeMap *time,
                            const GByteArray *a, size_t len, HtWalkRun *run,
                            uint8_t **walked)
{
    uint8_t *copy = g_malloc(len);      /* NULL if @len is 0 */
    HtWalkStop stop;

    if (len) {
        memcpy(copy, a->data, len);
    }
    stop = ht_walk(w, classes, time, copy, len, run);
    g_assert_cmpuint(run->size, <=, len);
    if (walked) {
        *walked = copy;
    } else {
        g_free(copy);
    }
    return stop;
}

/*
 * Assert that a walk of all of @a stops for the reason @stop, after @events
 * events of @size bytes.
 */
static void assert_walk(const GByteArray *a, HtWalkStop stop, unsigned events,
                        size_t size)
{
    HtTimeMap time = ct_time(START);
    HtWalk w = { .cut = true };
    HtWalkRun run;

    g_assert_cmpint(walk_copy(&w, &time, a, a->len, &run, NULL), ==, stop);
    g_assert_cmpuint(run.events, ==, events);
    g_assert_cmpuint(run.size, ==, size);
    g_assert_cmpstr(ht_walk_stop_str(stop), !=, "?");
}

static void test_clocks(void)
{
    static const struct {
        bool extended;
        uint64_t clock;
    } events[] = {
        { false, 100 }, { false, 100 }, { false, 8000000 },
        { true, 8000001 }, { true, UINT64_C(1) << 40 },
        { false, (UINT64_C(1) << 40) + 1 },
        /*
         * long gaps; the low 24 bits of the counter wrap before the last event
         */
        { false, (UINT64_C(1) << 40) + 0x7fffff },
        { false, (UINT64_C(1) << 40) + 0xfffffe },
        { false, (UINT64_C(1) << 40) + 0x1000001 },
    };
    g_autoptr(GByteArray) a = g_byte_array_new();
    HtTimeMap time = ct_time(START);
    HtWalk w = { .cut = true };
    HtStreamInfo info = { .index = 0 };
    HtWalkRun wr;
    uint8_t *walked;
    HtRunIter it;
    HtEvent ev = { };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(events); i++) {
        (events[i].extended ? ct_put_extended : ct_put_compact)
            (a, CT_NUMBER, events[i].clock, payload, 8);
    }
    g_assert_cmpint(walk_copy(&w, &time, a, a->len, &wr, &walked), ==,
                    HT_WALK_END);
    g_assert_cmpuint(wr.events, ==, G_N_ELEMENTS(events));
    g_assert_cmpuint(wr.counter, ==, events[0].clock);
    g_assert_cmpuint(wr.begin_ns, ==, START + events[0].clock);
    g_assert_cmpuint(wr.end_ns, ==, START + events[i - 1].clock);
    g_assert_cmpuint(w.clock, ==, events[i - 1].clock);
    g_assert_cmpuint(w.ns, ==, wr.end_ns);
    g_assert_cmpuint(w.backward, ==, 0);
    g_assert_false(w.cut);

    HtRun run = {
        .stream = &info,
        .data = walked,
        .size = wr.size,
        .begin_ns = wr.begin_ns,
    };
    ht_run_iter_init(&it, &run, classes);
    for (i = 0; i < G_N_ELEMENTS(events); i++) {
        g_assert_true(ht_run_next(&it, &ev));
        g_assert_cmpuint(ev.cls->id, ==, CT_NUMBER);
        g_assert_cmpuint(ev.ns, ==, START + events[i].clock);
        g_assert_cmpmem(ev.payload, ev.size, payload, 8);
    }
    g_assert_false(ht_run_next(&it, &ev));
    g_free(walked);
}

static void test_payloads(void)
{
    static const uint8_t text[] = { 9, 3, 0, 'a', 'b', 'c', 1, 0, 0, 0 };
    static const uint8_t none[] = { 9, 0, 0, 1, 0, 0, 0 };
    static const uint8_t sequence[] = { 2, 0, 1, 0, 2, 0 };
    g_autoptr(GByteArray) a = g_byte_array_new();

    ct_put_compact(a, CT_TEXT, 1, text, sizeof(text));
    ct_put_compact(a, CT_TEXT, 2, none, sizeof(none));
    ct_put_compact(a, CT_SEQUENCE, 3, sequence, sizeof(sequence));
    ct_put_compact(a, CT_EMPTY, 4, NULL, 0);
    ct_put_extended(a, CT_FAR, 5, payload, 8);
    ct_put_extended(a, CT_EMPTY, 6, NULL, 0);
    ct_put_compact(a, CT_FAR, 7, payload, 8);
    assert_walk(a, HT_WALK_END, 7, a->len);
}

/*
 * Promise: HT_FIELD_UTF8, which marks a text of fixed length, is accepted only
 * for an array of u8, and without other flags.
 */
static void test_fixed_text(void)
{
    static const struct {
        struct ht_msg_field f;
        enum ht_status status;
    } fields[] = {
        { { HT_FIELD_ARRAY, HT_FIELD_U8, HT_FIELD_UTF8, 1, 16 },
          HT_STATUS_OK },
        { { HT_FIELD_ARRAY, HT_FIELD_S8, HT_FIELD_UTF8, 1, 16 },
          HT_STATUS_INVAL },
        { { HT_FIELD_ARRAY, HT_FIELD_U16, HT_FIELD_UTF8, 1, 16 },
          HT_STATUS_INVAL },
        { { HT_FIELD_ARRAY, HT_FIELD_U8, HT_FIELD_UTF8 | HT_FIELD_HEX, 1, 16 },
          HT_STATUS_INVAL },
        { { HT_FIELD_ARRAY, HT_FIELD_U8, 4, 1, 16 }, HT_STATUS_INVAL },
        { { HT_FIELD_SEQUENCE, HT_FIELD_U8, HT_FIELD_UTF8, 1, 0 },
          HT_STATUS_INVAL },
        { { HT_FIELD_TEXT, 0, HT_FIELD_UTF8, 1, 0 }, HT_STATUS_INVAL },
        { { HT_FIELD_U8, 0, HT_FIELD_UTF8, 1, 0 }, HT_STATUS_INVAL },
    };
    HtClassTable *t = ht_class_table_new();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(fields); i++) {
        struct ht_msg_field f = fields[i].f;
        CtMessage m;
        HtClass *c;
        bool added;

        f.count = ht_le16(f.count);
        ct_class(&m, "c");
        ct_field_bytes(&m, &f, "f", 1);
        g_assert_cmpint(ct_add(t, &m, &added, &c), ==, fields[i].status);
        if (c) {
            g_assert_cmpuint(c->fixed, ==, 16);
            g_assert_cmpuint(c->fields[0].flags, ==, HT_FIELD_UTF8);
        }
    }
    ht_class_table_free(t);
}

static void test_nothing(void)
{
    HtTimeMap time = ct_time(START);
    HtWalk w = { .clock = 7, .ns = 9, .cut = true };
    HtWalkRun run;

    g_assert_cmpint(ht_walk(&w, classes, &time, NULL, 0, &run), ==,
                    HT_WALK_END);
    g_assert_cmpuint(run.size, ==, 0);
    g_assert_cmpuint(run.events, ==, 0);
    g_assert_cmpuint(w.clock, ==, 7);
    g_assert_cmpuint(w.ns, ==, 9);
    g_assert_true(w.cut);
}

static void test_bad_id(void)
{
    static const uint32_t compact[] = { 0, CT_FAR + 1, HT_CLASSES_MAX };
    static const uint32_t extended[] = {
        0, CT_FAR + 1, HT_CLASSES_MAX,
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(compact); i++) {
        g_autoptr(GByteArray) a = g_byte_array_new();

        ct_put_compact(a, CT_EMPTY, 1, NULL, 0);
        ct_put_compact(a, compact[i], 2, payload, 8);
        assert_walk(a, HT_WALK_BAD_ID, 1, HT_EVENT_HEADER);
    }
    for (i = 0; i < G_N_ELEMENTS(extended); i++) {
        g_autoptr(GByteArray) a = g_byte_array_new();

        ct_put_compact(a, CT_EMPTY, 1, NULL, 0);
        ct_put_extended(a, extended[i], 2, payload, 8);
        assert_walk(a, HT_WALK_BAD_ID, 1, HT_EVENT_HEADER);
    }
}

static void test_bad_header(void)
{
    static const uint32_t ids[] = { HT_CLASSES_MAX + 1, 65536, UINT32_MAX };
    static const uint32_t wide[] = { HT_CLASSES_MAX + 1, 65535 };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(wide); i++) {
        g_autoptr(GByteArray) a = g_byte_array_new();

        ct_put_compact(a, wide[i], 2, payload, 8);
        assert_walk(a, HT_WALK_BAD_HEADER, 0, 0);
    }

    for (i = 0; i < G_N_ELEMENTS(ids); i++) {
        g_autoptr(GByteArray) a = g_byte_array_new();

        ct_put_extended(a, ids[i], 2, payload, 8);
        assert_walk(a, HT_WALK_BAD_HEADER, 0, 0);
    }
}

static void test_bad_length(void)
{
    static const uint8_t sequence[] = { 0xff, 0xff, 1, 0, 2, 0 };
    g_autoptr(GByteArray) a = g_byte_array_new();

    ct_put_compact(a, CT_EMPTY, 1, NULL, 0);
    ct_put_compact(a, CT_SEQUENCE, 1, sequence, sizeof(sequence));
    assert_walk(a, HT_WALK_BAD_LENGTH, 1, HT_EVENT_HEADER);
}

/*
 * Promise: if a buffer is cut off anywhere, the walk accepts the whole events
 * before the cut; a cut within an event gives HT_WALK_BAD_LENGTH.
 */
static void test_truncated(void)
{
    static const uint8_t text[] = { 9, 3, 0, 'a', 'b', 'c', 1, 0, 0, 0 };
    g_autoptr(GByteArray) a = g_byte_array_new();
    size_t ends[7] = { 0 }, len;
    unsigned n = 0;

    ct_put_compact(a, CT_NUMBER, 1, payload, 8);
    ends[1] = a->len;
    ct_put_compact(a, CT_TEXT, 2, text, sizeof(text));
    ends[2] = a->len;
    ct_put_extended(a, CT_NUMBER, 3, payload, 8);
    ends[3] = a->len;
    ct_put_compact(a, CT_EMPTY, 4, NULL, 0);
    ends[4] = a->len;
    ct_put_compact(a, CT_TEXT, 5, text, sizeof(text));
    ends[5] = a->len;
    ct_put_compact(a, CT_FAR, 6, payload, 8);
    ends[6] = a->len;

    for (len = 0; len <= a->len; len++) {
        HtTimeMap time = ct_time(START);
        HtWalk w = { .cut = true };
        HtWalkRun run;

        if (n < 6 && len == ends[n + 1]) {
            n++;
        }
        g_assert_cmpint(walk_copy(&w, &time, a, len, &run, NULL), ==,
                        len == ends[n] ? HT_WALK_END : HT_WALK_BAD_LENGTH);
        g_assert_cmpuint(run.events, ==, n);
        g_assert_cmpuint(run.size, ==, ends[n]);
    }
}

static void test_backward(void)
{
    g_autoptr(GByteArray) a = g_byte_array_new();
    HtTimeMap time = ct_time(START);
    HtWalk w = { .clock = 1000000, .cut = true };
    HtWalkRun run;

    ct_put_compact(a, CT_EMPTY, 1000100, NULL, 0);
    ct_put_compact(a, CT_FAR, 1000050, payload, 8);
    ct_put_compact(a, CT_FAR, 1000080, payload, 8);
    /* the counter goes back by a lot */
    ct_put_extended(a, CT_EMPTY, 10, NULL, 0);
    ct_put_compact(a, CT_EMPTY, 20, NULL, 0);
    ct_put_extended(a, CT_EMPTY, 1000200, NULL, 0);
    g_assert_cmpint(walk_copy(&w, &time, a, a->len, &run, NULL), ==,
                    HT_WALK_END);
    g_assert_cmpuint(run.events, ==, 6);
    g_assert_cmpuint(w.backward, ==, 2);
    g_assert_cmpuint(run.begin_ns, ==, START + 1000100);
    g_assert_cmpuint(run.end_ns, ==, START + 1000200);
}

/*
 * Promise: an event with a compact header may be up to HT_CLOCK_MASK ns after
 * the previous event, so that a reader can compute its date from 24 bits. For a
 * larger gap, the run is cut.
 */
static void check_gap(uint64_t gap, bool cut)
{
    g_autoptr(GByteArray) a = g_byte_array_new();
    HtTimeMap time = ct_time(START);
    HtWalk w = { .cut = true };
    HtWalkRun run;
    uint8_t *walked;

    ct_put_compact(a, CT_EMPTY, 1000, NULL, 0);
    ct_put_compact(a, CT_EMPTY, 2000, NULL, 0);
    ct_put_compact(a, CT_EMPTY, 2100, NULL, 0);
    /*
     * the VM stood still between the first two events: their dates are @gap ns
     * apart
     */
    ht_time_map_sample(&time, 2000, START + 1000 + gap, 1);
    g_assert_cmpuint(time.count, ==, 2);
    g_assert_cmpint(walk_copy(&w, &time, a, a->len, &run, &walked), ==,
                    cut ? HT_WALK_CUT : HT_WALK_END);
    if (!cut) {
        g_assert_cmpuint(run.events, ==, 3);
        g_free(walked);
        return;
    }
    g_assert_true(w.cut);
    g_assert_cmpuint(run.events, ==, 1);
    g_assert_cmpuint(run.size, ==, HT_EVENT_HEADER);
    g_assert_cmpuint(run.end_ns, ==, START + 1000);
    g_assert_cmpint(ht_walk(&w, classes, &time, walked + run.size,
                            a->len - run.size, &run), ==, HT_WALK_END);
    g_assert_false(w.cut);
    g_assert_cmpuint(run.events, ==, 2);
    g_assert_cmpuint(run.begin_ns, ==, START + 1000 + gap);
    g_assert_cmpuint(run.end_ns, ==, START + 1100 + gap);
    g_assert_cmpuint(run.counter, ==, 2000);
    g_free(walked);
}

static void test_cut(void)
{
    check_gap(HT_CLOCK_MASK, false);
    check_gap(HT_CLOCK_MASK + 1, true);
    check_gap(UINT64_C(3600) * 1000000000, true);
}

/*
 * Promise: if an event has a lower counter than the previous event and is the
 * first of a new run, it counts once in HtWalk.backward.
 */
static void test_cut_backward(void)
{
    g_autoptr(GByteArray) a = g_byte_array_new();
    HtTimeMap time = ct_time(START);
    HtWalk w = { .clock = 2000, .ns = START, .cut = false };
    HtWalkRun run;
    uint8_t *walked;

    ct_put_compact(a, CT_EMPTY, 1000, NULL, 0);
    /*
     * the map gets a sample that dates counter 100 an hour later than the
     * previous event
     */
    ht_time_map_sample(&time, 100, START + UINT64_C(3600000000000), 1);
    g_assert_cmpint(walk_copy(&w, &time, a, a->len, &run, &walked), ==,
                    HT_WALK_CUT);
    g_assert_cmpuint(run.events, ==, 0);
    g_assert_cmpuint(w.backward, ==, 0);
    g_assert_cmpint(ht_walk(&w, classes, &time, walked, a->len, &run), ==,
                    HT_WALK_END);
    g_assert_cmpuint(run.events, ==, 1);
    g_assert_cmpuint(w.backward, ==, 1);
    g_free(walked);
}

/*
 * A slow counter: any two consecutive events are more than HT_CLOCK_MASK ns
 * apart. Each event gets a run of its own, and the walk still advances.
 */
static void test_cut_each(void)
{
    g_autoptr(GByteArray) a = g_byte_array_new();
    HtWalk w = { .cut = true };
    HtTimeMap time;
    HtWalkRun run;
    unsigned events = 0, cuts = 0, i;
    size_t pos = 0;
    HtWalkStop stop;

    for (i = 1; i <= 100; i++) {
        ct_put_compact(a, CT_EMPTY, i * 20000, NULL, 0);
    }
    ht_time_map_init(&time, 1000000);
    ht_time_map_sample(&time, 0, START, 1);
    do {
        stop = ht_walk(&w, classes, &time, a->data + pos, a->len - pos, &run);
        pos += run.size;
        events += run.events;
        cuts += stop == HT_WALK_CUT;
    } while (stop == HT_WALK_CUT);
    g_assert_cmpint(stop, ==, HT_WALK_END);
    g_assert_cmpuint(events, ==, 100);
    g_assert_cmpuint(cuts, ==, 99);
    g_assert_cmpuint(run.end_ns, ==, START + 100 * UINT64_C(20000000));
}

static unsigned looks;

static int64_t host_now(void)
{
    return START + 5000000 + looks++;
}

/*
 * The counter jumped by days and no sample shows that yet: an event after the
 * jump gets the time of the walk, not a date days later. Three events are later
 * than HtTimeMap.latest, but the walk reads the host's clock only once.
 */
static void test_not_later_than_now(void)
{
    g_autoptr(GByteArray) a = g_byte_array_new();
    HtTimeMap time = ct_time(START);
    HtWalk w = { .cut = true };
    HtWalkRun run;

    time.now = host_now;
    time.latest = START + 4000000;
    ct_put_extended(a, CT_EMPTY, 3999999, NULL, 0);
    ct_put_extended(a, CT_EMPTY, 4500000, NULL, 0);
    ct_put_extended(a, CT_EMPTY, UINT64_C(400000000000000), NULL, 0);
    ct_put_extended(a, CT_EMPTY, UINT64_C(400000000000001), NULL, 0);
    g_assert_cmpint(ht_walk(&w, classes, &time, a->data, a->len, &run), ==,
                    HT_WALK_END);
    g_assert_cmpuint(looks, ==, 1);
    g_assert_cmpuint(run.events, ==, 4);
    g_assert_cmpuint(run.begin_ns, ==, START + 3999999);
    g_assert_cmpuint(run.end_ns, ==, START + 5000000);
}

static void test_no_time(void)
{
    g_autoptr(GByteArray) a = g_byte_array_new();
    HtTimeMap time;
    HtWalk w = { .ns = 77, .cut = true };
    HtWalkRun run;

    ht_time_map_init(&time, 1000000000);
    ct_put_compact(a, CT_EMPTY, 1000, NULL, 0);
    g_assert_cmpint(walk_copy(&w, &time, a, a->len, &run, NULL), ==,
                    HT_WALK_END);
    g_assert_cmpuint(run.end_ns, ==, 77);
}

/*
 * Promise for any bytes @a: ht_walk() writes only to its buffer (guards check
 * this), and reads only this buffer (sanitizers check it). The dates of the
 * accepted events do not decrease, ht_run_next() finds each of these events,
 * and the same bytes give the same result.
 */
static void random_walk(GByteArray *a)
{
    uint8_t guard[64];
    HtTimeMap time = ct_time(START);
    HtWalk w1 = { .cut = true }, w2 = { .cut = true };
    HtWalkStop s1, s2;
    HtWalkRun r1, r2;
    HtStreamInfo info = { .index = 0 };
    size_t size = a->len + 2 * sizeof(guard);
    g_autofree uint8_t *guarded = g_malloc(size);
    uint8_t *walked;
    uint32_t events = 0;
    HtRunIter it;
    HtEvent ev;

    memset(guard, 0x5a, sizeof(guard));
    memset(guarded, 0x5a, size);
    if (a->len) {
        memcpy(guarded + sizeof(guard), a->data, a->len);
    }
    s1 = walk_copy(&w1, &time, a, a->len, &r1, &walked);
    s2 = ht_walk(&w2, classes, &time, guarded + sizeof(guard), a->len, &r2);
    g_assert_cmpint(s1, ==, s2);
    g_assert_cmpmem(&r1, sizeof(r1), &r2, sizeof(r2));
    g_assert_cmpmem(walked, a->len, guarded + sizeof(guard), a->len);
    g_assert_cmpmem(guarded, sizeof(guard), guard, sizeof(guard));
    g_assert_cmpmem(guarded + size - sizeof(guard), sizeof(guard), guard,
                    sizeof(guard));
    /* ht_walk() does not change the bytes after the accepted events */
    if (a->len > r1.size) {
        g_assert_cmpint(memcmp(walked + r1.size, a->data + r1.size,
                               a->len - r1.size), ==, 0);
    }

    HtRun run = {
        .stream = &info,
        .data = walked,
        .size = r1.size,
        .begin_ns = r1.begin_ns,
    };
    ht_run_iter_init(&it, &run, classes);
    while (ht_run_next(&it, &ev)) {
        g_assert_cmpuint(ev.ns, >=, events ? run.end_ns : r1.begin_ns);
        run.end_ns = ev.ns;
        events++;
    }
    g_assert_cmpuint(events, ==, r1.events);
    if (events) {
        g_assert_cmpuint(run.end_ns, ==, r1.end_ns);
    }
    g_free(walked);
}

static void test_random(void)
{
    unsigned i, j;

    for (i = 0; i < 100000; i++) {
        g_autoptr(GByteArray) a = g_byte_array_new();
        unsigned len = g_test_rand_int_range(0, 120);

        while (a->len < len) {
            uint32_t id = g_test_rand_int_range(0, 8);
            uint64_t clock = g_test_rand_int();
            uint8_t bytes[40];

            for (j = 0; j < sizeof(bytes); j++) {
                /* mostly values of at most 3, so that lengths often fit */
                bytes[j] = g_test_rand_int_range(0, 256) &
                           (g_test_rand_int_range(0, 8) ? 3 : 255);
            }
            if (g_test_rand_int_range(0, 4)) {
                ct_put_compact(a, id == 7 ? CT_FAR : id, clock, bytes,
                               g_test_rand_int_range(0, sizeof(bytes)));
            } else {
                ct_put_extended(a, id ? id : CT_FAR, clock << (clock & 32),
                                bytes,
                                g_test_rand_int_range(0, sizeof(bytes)));
            }
        }
        g_byte_array_set_size(a, len);
        random_walk(a);
    }
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    classes = ct_classes();
    g_test_add_func("/walk/clocks", test_clocks);
    g_test_add_func("/walk/payloads", test_payloads);
    g_test_add_func("/walk/fixed-text", test_fixed_text);
    g_test_add_func("/walk/nothing", test_nothing);
    g_test_add_func("/walk/bad-id", test_bad_id);
    g_test_add_func("/walk/bad-header", test_bad_header);
    g_test_add_func("/walk/bad-length", test_bad_length);
    g_test_add_func("/walk/truncated", test_truncated);
    g_test_add_func("/walk/backward", test_backward);
    g_test_add_func("/walk/cut", test_cut);
    g_test_add_func("/walk/cut-backward", test_cut_backward);
    g_test_add_func("/walk/cut-each", test_cut_each);
    g_test_add_func("/walk/no-time", test_no_time);
    g_test_add_func("/walk/not-later-than-now", test_not_later_than_now);
    g_test_add_func("/walk/random", test_random);
    ret = g_test_run();
    ht_class_table_free(classes);
    return ret;
}
