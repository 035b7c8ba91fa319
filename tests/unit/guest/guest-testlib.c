/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: emit a stream of known events, and check what arrives
 *
 * expect() computes the expected bytes without the library's macros.
 */
#include "hypertrace/base.h"
#include "guest-testlib.h"
#include "guest-events.h"

struct ht_class *gt_class_tick = &ht_class_tick;

#define TEXT_MAX 40
#define WORDS_MAX 20

/* Pseudo-random values from which all contents of an event are computed */
typedef struct Draw {
    uint64_t n;
    /* hash of the event's number @n and of its stream */
    uint64_t r;
    char text[TEXT_MAX + 1];
    uint32_t words[WORDS_MAX];
    unsigned nr_words;
} Draw;

static uint64_t hash(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void draw(Draw *d, uint32_t stream, uint64_t n)
{
    unsigned i, len;

    d->n = n;
    d->r = hash(n ^ (uint64_t)stream << 56);
    len = d->r >> 8 & 0xff;
    len = len > TEXT_MAX ? 0 : len;
    memset(d->text, 0, sizeof(d->text));
    for (i = 0; i < len; i++) {
        d->text[i] = 'a' + (d->r + i) % 26;
    }
    d->text[len] = '\0';
    d->nr_words = (d->r >> 16 & 0xff) % (WORDS_MAX + 1);
    for (i = 0; i < d->nr_words; i++) {
        d->words[i] = d->r * (i + 1);
    }
}

enum { ZERO, TICK, FOUR, NOTE, BLOB, MIXED };

static unsigned pick(GtKind kind, const Draw *d)
{
    static const uint8_t numbered[] = { TICK, TICK, NOTE, BLOB };
    static const uint8_t mixed[] = {
        TICK, FOUR, FOUR, ZERO, NOTE, BLOB, MIXED, TICK
    };

    return kind == GT_NUMBERED ? numbered[d->r & 3] : mixed[d->r & 7];
}

bool gt_emit(GtKind kind, struct ht_stream *s, uint64_t n)
{
    Draw d;
    uint16_t three[3];
    uint64_t r;

    draw(&d, s->index, n);
    r = d.r;
    switch (pick(kind, &d)) {
    case ZERO:
        return ht_emit_zero(s);
    case TICK:
        return ht_emit_tick(s, n);
    case FOUR:
        return ht_emit_four(s, n, r, ~r, r * 3);
    case NOTE:
        return ht_emit_note(s, n, d.text[0] ? d.text : NULL);
    case BLOB:
        return ht_emit_blob(s, n, d.words, d.nr_words, &d.words[0],
                            d.nr_words);
    default:
        three[0] = r;
        three[1] = r >> 16;
        three[2] = r >> 32;
        return ht_emit_mixed(s, r, r >> 3, r >> 5, (double)(r >> 12), d.text,
                             r >> 7, r >> 9, three, (float)(r & 0xffff),
                             r ^ 0x55, "constant", r >> 11, r >> 13, r >> 15,
                             r >> 17, r >> 19, d.text);
    }
}

static uint8_t *put(uint8_t *p, uint64_t v, unsigned bytes)
{
    while (bytes--) {
        *p++ = v;
        v >>= 8;
    }
    return p;
}

static uint8_t *put_text(uint8_t *p, const char *s)
{
    p = put(p, strlen(s), 2);
    return (uint8_t *)stpcpy((char *)p, s);
}

static uint8_t *put_float(uint8_t *p, float f)
{
    uint32_t v;

    memcpy(&v, &f, sizeof(v));
    return put(p, v, 4);
}

static uint8_t *put_double(uint8_t *p, double f)
{
    uint64_t v;

    memcpy(&v, &f, sizeof(v));
    return put(p, v, 8);
}

static uint8_t *expect_mixed(uint8_t *p, const Draw *d)
{
    const uint64_t r = d->r;

    p = put(p, r, 1);
    p = put(p, r >> 3, 2);
    p = put(p, r >> 5, 4);
    p = put_double(p, r >> 12);
    p = put_text(p, d->text);
    p = put(p, r >> 7, 2);
    p = put(p, r >> 9, 1);
    p = put(p, r, 2);
    p = put(p, r >> 16, 2);
    p = put(p, r >> 32, 2);
    p = put_float(p, r & 0xffff);
    p = put(p, r ^ 0x55, 8);
    p = put_text(p, "constant");
    p = put(p, r >> 11, 4);
    p = put(p, r >> 13, 1);
    p = put(p, r >> 15, 2);
    p = put(p, r >> 17, 8);
    p = put(p, r >> 19, 4);
    memset(p, 0, 5);
    memcpy(p, d->text, strnlen(d->text, 5));
    return p + 5;
}

static size_t expect(GtKind kind, uint32_t stream, uint64_t n, uint8_t *buf,
                     const char **name)
{
    uint8_t *p = buf;
    unsigned i;
    Draw d;

    draw(&d, stream, n);
    switch (pick(kind, &d)) {
    case ZERO:
        *name = "zero";
        break;
    case TICK:
        *name = "tick";
        p = put(p, n, 8);
        break;
    case FOUR:
        *name = "four";
        p = put(p, n, 8);
        p = put(p, d.r, 8);
        p = put(p, ~d.r, 8);
        p = put(p, d.r * 3, 8);
        break;
    case NOTE:
        *name = "test.note";
        p = put(p, n, 8);
        p = put_text(p, d.text);
        break;
    case BLOB:
        *name = "test.blob-v1";
        p = put(p, n, 8);
        p = put(p, d.nr_words, 2);
        for (i = 0; i < d.nr_words; i++) {
            p = put(p, d.words[i], 4);
        }
        p = put(p, d.nr_words, 2);
        for (i = 0; i < d.nr_words; i++) {
            p = put(p, d.words[i / 4] >> i % 4 * 8, 1);
        }
        break;
    default:
        *name = "mixed";
        p = expect_mixed(p, &d);
        break;
    }
    return p - buf;
}

static void check_event(GtSink *sink, GtReceived *st, uint32_t stream,
                        const HtEvent *ev)
{
    uint64_t n = st->next;
    const char *name;
    uint8_t want[256];
    size_t size;

    if (sink->kind == GT_NUMBERED) {
        g_assert_cmpuint(ev->size, >=, 8);
        n = ht_get_le64(ev->payload);
        g_assert_cmpuint(n, >=, st->next);
        st->gaps += n - st->next;
    }
    size = expect(sink->kind, stream, n, want, &name);
    g_assert_cmpstr(ev->cls->name, ==, name);
    g_assert_cmpmem(ev->payload, ev->size, want, size);
    g_assert_cmpuint(ev->ns, >=, st->last_ns);
    st->last_ns = ev->ns;
    st->next = n + 1;
    st->events++;
}

static void deliver(void *opaque, const HtRun *run)
{
    GtSink *sink = opaque;
    GtReceived *st = &sink->stream[run->stream->index];
    uint64_t events;
    HtRunIter it;
    HtEvent ev;

    if (run->flags & HT_RUN_OPEN) {
        g_assert_cmpuint(st->opened, ==, st->closed);
        *st = (GtReceived) {
            .opened = st->opened + 1,
            .closed = st->closed,
            .last_ns = run->begin_ns,
            .instance = run->stream->instance,
            .vcpu = run->stream->vcpu,
        };
        g_strlcpy(st->name, run->stream->name, sizeof(st->name));
    }
    g_assert_cmpuint(run->stream->instance, ==, st->instance);
    g_assert_cmpuint(run->begin_ns, >=, st->last_ns);
    g_assert_cmpuint(run->discarded, >=, st->discarded);
    st->discarded = run->discarded;
    events = st->events;
    ht_run_iter_init(&it, run, ht_loopback_classes(sink->lb));
    while (ht_run_next(&it, &ev)) {
        check_event(sink, st, run->stream->index, &ev);
    }
    g_assert_cmpuint(st->events - events, ==, run->events);
    if (run->flags & HT_RUN_CLOSE) {
        st->closed++;
    }
}

struct ht_device *gt_new(GtSink *sink, GtKind kind,
                         struct ht_loopback_config cfg)
{
    static struct ht_class *const classes[] = {
        &ht_class_zero, &ht_class_tick, &ht_class_four, &ht_class_note,
        &ht_class_blob, &ht_class_mixed,
    };
    struct ht_device *dev;
    unsigned i;

    memset(sink, 0, sizeof(*sink));
    sink->kind = kind;
    cfg.deliver = deliver;
    cfg.opaque = sink;
    sink->lb = ht_loopback_new(&cfg);
    g_assert_nonnull(sink->lb);
    dev = ht_loopback_device(sink->lb);
    for (i = 0; i < G_N_ELEMENTS(classes); i++) {
        g_assert_cmpint(ht_register(dev, classes[i]), ==, i + 1);
    }
    return dev;
}

void gt_free(GtSink *sink)
{
    ht_loopback_free(sink->lb);
}

uint64_t gt_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}
