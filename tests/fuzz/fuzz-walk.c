/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target walk: compare ht_walk() with a simple second parser
 *
 * An accepted run has whole events of registered classes, and its times never
 * decrease; ht_walk() changes neither payloads nor the bytes after the run; it
 * stops where the second parser, plain_event(), stops, and for the same reason.
 */
#include "hypertrace/base.h"
#include "fuzz.h"

/* An event as plain_event() parses it, by the specification's rules */
typedef struct Plain {
    uint32_t id;
    size_t header;
    size_t size;
    uint64_t clock;
    uint64_t ns;
} Plain;

static HtWalkStop plain_event(const HtWalk *w, bool cut, const HtTimeMap *time,
                              const uint8_t *p, size_t avail, Plain *e)
{
    const HtClass *c;
    ssize_t payload;

    if (avail == 0) {
        return HT_WALK_END;
    }
    e->header = p[0] == 255 ? 13 : p[0] == 254 ? 6 : 4;
    if (avail < e->header) {
        return HT_WALK_BAD_LENGTH;
    }
    if (e->header != 13) {
        const uint8_t *stamp = p + (e->header == 4 ? 1 : 3);
        uint32_t low = stamp[0] | stamp[1] << 8 | stamp[2] << 16;
        /*
         * difference to the previous event's clock, sign-extended from 24 bits
         */
        int32_t step = (int32_t)((low - (uint32_t)w->clock) << 8) >> 8;

        e->id = e->header == 4 ? p[0] : p[1] | p[2] << 8;
        if (e->id > HT_CLASSES_MAX) {
            return HT_WALK_BAD_HEADER;
        }
        e->clock = w->clock + step;
    } else {
        e->id = ht_get_le32(p + 1);
        e->clock = ht_get_le64(p + 5);
        if (e->id > HT_CLASSES_MAX) {
            return HT_WALK_BAD_HEADER;
        }
    }
    c = ht_class_table_get(fuzz_classes(), e->id);
    if (!c) {
        return HT_WALK_BAD_ID;
    }
    payload = fuzz_payload(c, p + e->header, avail - e->header);
    if (payload < 0) {
        return HT_WALK_BAD_LENGTH;
    }
    e->size = e->header + payload;
    e->ns = MAX(w->ns, ht_time_map_to_ns(time, e->clock));
    if (e->header != 13 && e->ns - w->ns >= 1 << 24 && !cut) {
        return HT_WALK_CUT;
    }
    return HT_WALK_END;
}

/*
 * Iterate over a run as a backend does: each event must equal the event that
 * plain_event() parses from the original bytes. Then check the state @after of
 * the walk.
 */
static void check_run(const HtWalk *before, bool cut, const HtTimeMap *time,
                      const uint8_t *bytes, size_t len, const uint8_t *walked,
                      const HtWalkRun *w, HtWalkStop stop, HtWalk *after)
{
    HtRun run = {
        .events = w->events,
        .data = walked,
        .size = w->size,
        .begin_ns = w->begin_ns,
        .end_ns = w->end_ns,
    };
    HtWalk plain = *before;
    uint32_t events = 0;
    size_t pos = 0;
    HtRunIter it;
    HtEvent ev;
    Plain e;

    ht_run_iter_init(&it, &run, fuzz_classes());
    while (ht_run_next(&it, &ev)) {
        g_assert_cmpint(plain_event(&plain, cut, time, bytes + pos, len - pos,
                                    &e), ==, HT_WALK_END);
        g_assert_cmpuint(ev.cls->id, ==, e.id);
        g_assert_cmpuint(ev.ns, ==, e.ns);
        g_assert_true(ev.payload == walked + pos + e.header);
        g_assert_cmpuint(ev.size, ==, e.size - e.header);
        g_assert_cmpint(memcmp(ev.payload, bytes + pos + e.header, ev.size),
                        ==, 0);
        if (events++ == 0) {
            g_assert_cmpuint(w->begin_ns, ==, e.ns);
            g_assert_cmpuint(w->counter, ==, e.clock);
        }
        plain.backward += e.clock < plain.clock;
        plain.clock = e.clock;
        plain.ns = e.ns;
        cut = false;
        pos += e.size;
    }
    g_assert_cmpuint(events, ==, w->events);
    g_assert_cmpuint(pos, ==, w->size);
    g_assert_cmpuint(w->end_ns, ==, plain.ns);
    g_assert_cmpint(memcmp(walked + pos, bytes + pos, len - pos), ==, 0);
    g_assert_cmpint(plain_event(&plain, cut, time, bytes + pos, len - pos,
                                &e), ==, stop);
    g_assert_true((stop == HT_WALK_END) == (pos == len));
    g_assert_cmpuint(after->clock, ==, plain.clock);
    g_assert_cmpuint(after->ns, ==, plain.ns);
    g_assert_cmpuint(after->backward, ==, plain.backward);
    g_assert_true(after->cut == (stop == HT_WALK_CUT || cut));
}

/*
 * Call ht_walk() for the bytes. After HT_WALK_CUT call it again for the rest,
 * as a consumer does, until it stops for another reason.
 */
static void walk(HtWalk *w, const HtTimeMap *time, const uint8_t *bytes,
                 size_t len)
{
    g_autofree uint8_t *buf = fuzz_copy(bytes, len);
    g_autofree uint8_t *again = fuzz_copy(bytes, len);
    const uint8_t *rest = bytes ? bytes : buf;
    size_t done = 0;
    HtWalkStop stop;

    do {
        HtWalk before = *w, second = *w;
        HtWalkRun run, other;

        stop = ht_walk(w, fuzz_classes(), time, buf + done, len - done, &run);
        g_assert_cmpstr(ht_walk_stop_str(stop), !=, "?");
        check_run(&before, before.cut, time, rest + done, len - done,
                  buf + done, &run, stop, w);
        g_assert_true(run.events || !before.cut || stop != HT_WALK_CUT);

        /* a second call with the same arguments has the same result */
        g_assert_cmpint(ht_walk(&second, fuzz_classes(), time, again + done,
                                len - done, &other), ==, stop);
        g_assert_cmpint(memcmp(&run, &other, sizeof(run)), ==, 0);
        g_assert_cmpuint(second.backward, ==, w->backward);
        done += run.size;
    } while (stop == HT_WALK_CUT);
    if (len) {
        g_assert_cmpint(memcmp(buf, again, len), ==, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t hz[] = {
        1000, 1000000000, 2400000001, UINT64_C(100000000000),
    };
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    FuzzInput in = fuzz_input(data, size);
    HtWalk w = { .cut = true };
    uint64_t clock = 0;
    HtTimeMap time;

    ht_time_map_init(&time, hz[fuzz_u8(&in) % G_N_ELEMENTS(hz)]);
    while (fuzz_more(&in)) {
        uint8_t raw[13];
        unsigned i;

        switch (fuzz_u8(&in) % 8) {
        case 0:
            walk(&w, &time, bytes->data, bytes->len);
            g_byte_array_set_size(bytes, 0);
            break;
        case 1:
            fuzz_sample(&in, &time);
            break;
        case 2:
            clock = fuzz_number(&in);
            walk(&w, &time, bytes->data, bytes->len);
            g_byte_array_set_size(bytes, 0);
            w.clock = clock;
            break;
        case 3:
            clock = fuzz_number(&in);
            ct_put_compact(bytes, fuzz_u8(&in), clock, NULL, 0);
            break;
        case 4:
            clock = fuzz_number(&in);
            ct_put_extended(bytes, fuzz_number(&in), clock, NULL, 0);
            break;
        case 5:
            for (i = fuzz_u8(&in) % sizeof(raw); i; i--) {
                raw[0] = fuzz_u8(&in);
                g_byte_array_append(bytes, raw, 1);
            }
            break;
        default:
            fuzz_event(&in, bytes, &clock);
        }
    }
    walk(&w, &time, bytes->data, bytes->len);
    return 0;
}
