/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target state: load migrated state that may be forged: classes, the time
 * map of a clock, or the state of a stream's consumer
 *
 * Refused state leaves the table of classes and the time map unchanged, and the
 * consumer closed.  After a load that succeeds, known classes keep their ids,
 * the map's dates stay in range, and the consumer counts the events that it
 * delivers.
 */
#include "hypertrace/base.h"
#include "fuzz.h"

/*
 * Make a table of up to 7 classes; the input chooses their names, n0 to n3, and
 * the kind of their field
 */
static HtClassTable *some_classes(FuzzInput *in)
{
    HtClassTable *t = ht_class_table_new();
    unsigned i, count = fuzz_u8(in) % 8;
    HtClass *c;
    bool added;
    CtMessage m;

    for (i = 0; i < count; i++) {
        char name[3] = { 'n', '0' + fuzz_u8(in) % 4 };

        ct_class(&m, name);
        ct_field(&m, "f", 1 + fuzz_u8(in) % 3, 0, 0);
        g_assert_cmpint(ct_add(t, &m, &added, &c), ==, HT_STATUS_OK);
    }
    return t;
}

static void load_classes(FuzzInput *in)
{
    HtClassTable *from = some_classes(in), *to = some_classes(in);
    g_autoptr(GByteArray) before = ht_class_table_save(to);
    g_autoptr(GByteArray) saved = ht_class_table_save(from);
    g_autoptr(GByteArray) after = NULL;
    g_autofree uint8_t *bytes = NULL;
    g_autofree char *why = NULL;
    unsigned changes = fuzz_u8(in) % 4;
    bool honest = !changes;
    uint32_t id;

    while (changes-- && saved->len) {
        uint16_t at = fuzz_bits(in, 2) % saved->len;

        if (fuzz_u8(in) & 1) {
            g_byte_array_set_size(saved, at);
        } else {
            saved->data[at] ^= fuzz_u8(in);
        }
    }
    bytes = fuzz_copy(saved->data, saved->len);
    if (ht_class_table_load(to, bytes, saved->len, &why)) {
        g_assert_null(why);
        after = ht_class_table_save(to);
        g_assert_cmpuint(after->len, ==, MAX(before->len, saved->len));
        if (honest && saved->len) {
            g_assert_cmpint(memcmp(after->data, saved->data, saved->len),
                            ==, 0);
        }
    } else {
        g_assert_nonnull(why);
        after = ht_class_table_save(to);
        g_assert_cmpuint(after->len, ==, before->len);
    }
    if (before->len) {
        g_assert_cmpint(memcmp(after->data, before->data, before->len), ==, 0);
    }
    for (id = 1; id <= ht_class_table_count(to); id++) {
        g_assert_cmpuint(ht_class_table_get(to, id)->id, ==, id);
    }
    ht_class_table_free(from);
    ht_class_table_free(to);
}

static void load_time(FuzzInput *in)
{
    HtTimeSegment seg[HT_TIME_SEGMENTS + 1] = { };
    unsigned count = fuzz_u8(in) % (G_N_ELEMENTS(seg) + 1), i;
    uint64_t now = fuzz_number(in) & HT_TIME_MAX_NS, last = 0;
    int64_t shift = fuzz_number(in);
    HtTimeMap m, fresh;

    ht_time_map_init(&m, 1000000000);
    fresh = m;
    for (i = 0; i < count; i++) {
        uint8_t how = fuzz_u8(in);

        seg[i].counter = fuzz_number(in);
        seg[i].ns = fuzz_number(in);
        seg[i].mult = how & 4 ? fuzz_number(in) : m.nominal;
        seg[i].bound_ns = fuzz_number(in);
        if (i && (how & 1)) {
            seg[i].counter += seg[i - 1].counter;
            seg[i].ns += seg[i - 1].ns;
        }
    }
    if (!ht_time_map_load(&m, seg, count, shift, now)) {
        g_assert_cmpint(memcmp(&m, &fresh, sizeof(m)), ==, 0);
        return;
    }
    g_assert_cmpuint(m.count, <=, MIN(count, HT_TIME_SEGMENTS));
    /*
     * A loaded map has no reading of this host's clock, so its bound is
     * unknown.
     */
    g_assert_cmpuint(ht_time_map_bound(&m, now), ==, UINT64_MAX);
    for (i = 0; i < m.count; i++) {
        g_assert_cmpuint(m.seg[i].ns, >=, last);
        g_assert_cmpuint(m.seg[i].ns, <=, now);
        last = m.seg[i].ns;
    }
    g_assert_cmpuint(ht_time_map_to_ns(&m, fuzz_number(in)), <=,
                     HT_TIME_MAX_NS);
    for (i = 0; i < 4; i++) {
        fuzz_sample(in, &m);
        g_assert_cmpuint(m.count, <=, HT_TIME_SEGMENTS);
        g_assert_cmpuint(ht_time_map_to_ns(&m, fuzz_number(in)), <=,
                         HT_TIME_MAX_NS);
        g_assert_cmpuint(ht_time_map_hz(&m), >, 0);
        ht_time_map_bound(&m, fuzz_number(in));
    }
}

static void any_state(FuzzInput *in, HtConsumerState *st)
{
    uint64_t *const words[] = {
        &st->instance, &st->trace_instance, &st->cursor, &st->fed, &st->events,
        &st->expected, &st->skipped, &st->lost, &st->dropped, &st->told,
        &st->clock, &st->ns,
    };
    unsigned changes = 1 + fuzz_u8(in) % 4;

    while (changes--) {
        uint8_t what = fuzz_u8(in);

        if (what < 0xc0) {
            *words[what % G_N_ELEMENTS(words)] = fuzz_number(in);
        } else if (what < 0xe0) {
            st->name[what % sizeof(st->name)] = fuzz_u8(in);
        } else if (what < 0xf0) {
            st->vcpu = fuzz_number(in);
        } else {
            st->open = what & 1;
            st->stopped = what & 2;
        }
    }
}

/*
 * Change 1 to 4 members of the saved state of a consumer of a ring with some
 * packets. If another consumer accepts the state, resume it.
 */
static void load_consumer(FuzzInput *in)
{
    CtSink first = fuzz_sink(), second = fuzz_sink();
    HtConsumer from, to;
    HtConsumerState st, again;
    unsigned i, count = fuzz_bits(in, 2) % 1500;
    const char *problem;
    CtRing ring;

    ct_ring_init(&ring, HT_PACKET_SIZE_MIN, 4, fuzz_u8(in) & 1);
    ct_consumer_open(&from, &first, &ring);
    ct_consumer_open(&to, &second, &ring);
    for (i = 0; i < count; i++) {
        ct_ring_emit(&ring, i);
        if (i == count / 2) {
            ht_consumer_ring(&from, ring.control, ring.data, SIZE_MAX);
        }
    }
    ht_consumer_save(&from, &st);
    any_state(in, &st);
    ht_consumer_close(&to, 0, 0);
    g_array_free(second.numbers, true);
    second = fuzz_sink();
    second.closed = 1;

    problem = ht_consumer_load(&to, ring.stream, &st);
    if (!problem) {
        ht_consumer_save(&to, &again);
        g_assert_cmpuint(again.cursor, ==, st.cursor);
        g_assert_cmpuint(again.instance, ==, st.instance);
        g_assert_cmpuint(again.expected, ==, st.expected);
        g_assert_cmpint(memcmp(again.name, st.name, sizeof(st.name)), ==, 0);
    } else {
        g_assert_false(to.open);
    }
    if (to.open) {
        uint64_t events = to.events;

        to.time = from.time;
        ht_consumer_resume(&to);
        g_assert_cmpuint(second.ns, ==, st.ns);
        g_assert_cmpuint(second.discarded, ==, 0);
        for (i = 0; i < 4; i++) {
            ht_consumer_ring(&to, ring.control, ring.data, SIZE_MAX);
            ht_consumer_arm(&to, ring.control, i & 1);
            ct_ring_emit(&ring, count + i);
        }
        g_assert_cmpuint(to.events - events, ==,
                         second.numbers->len + second.other);
        ht_consumer_close(&to, 0, 0);
        g_assert_cmpuint(second.closed, ==, 2);
    }
    ht_consumer_destroy(&from);
    ht_consumer_destroy(&to);
    ct_ring_destroy(&ring);
    g_array_free(first.numbers, true);
    g_array_free(second.numbers, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = fuzz_input(data, size);

    switch (fuzz_u8(&in) % 3) {
    case 0:
        load_classes(&in);
        break;
    case 1:
        load_time(&in);
        break;
    default:
        load_consumer(&in);
    }
    return 0;
}
