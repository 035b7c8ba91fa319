/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the payload's self-test: emit known events, and print how many the host's
 * trace must have
 *
 * tests/e2e/test_baremetal.py, which checks the trace, has the same events:
 * change both.
 */
#include "hypertrace/event.h"
#include "libc.h"
#include "mm.h"
#include "console.h"
#include "selftest.h"

#define SEQUENCE        5000
/* number of events between two flushes; fewer than any ring holds */
#define FLUSH_EVERY     250
/* number of classes: more than a header's 8-bit id can name */
#define MANY_CLASSES    270
#define MANY_EVENTS     (40 * MANY_CLASSES)

HT_EVENT_NAMED(seq, "selftest.seq", (u64, n));
HT_EVENT_NAMED(ints, "selftest.ints", (u8, a), (u16, b), (u32, c), (u64, d),
               (s8, e), (s16, f), (s32, g), (s64, h), (x32, hex));
HT_EVENT_NAMED(floats, "selftest.floats", (f32, single), (f64, twice));
HT_EVENT_NAMED(texts, "selftest.texts", (text, first), (u8, between),
               (text, last));
HT_EVENT_NAMED(arrays, "selftest.arrays", (bytes, raw), (seq, u16, list),
               (array, s32, fixed, 3));
HT_EVENT_FULL(empty, "selftest.empty", 6);

static struct ht_class many[MANY_CLASSES];
static char many_names[MANY_CLASSES][16];

struct sender {
    struct ht_stream *s;
    uint64_t sent;
    /* number of events that were discarded so far: the host counts as many */
    uint64_t lost;
};

static void count(struct sender *t, const char *what, bool accepted)
{
    if (!accepted) {
        selftest_check(what, accepted, true);
    }
    t->sent += accepted;
    t->lost += !accepted;
}

static void emit_kinds(struct sender *t)
{
    static const uint8_t raw[] = { 0x00, 0x7f, 0x80, 0xff };
    static const uint16_t list[] = { 1, 256, 65535 };
    static const int32_t fixed[] = { -1, 0, INT32_MAX };

    count(t, "smallest integers",
          ht_emit_ints(t->s, 0, 0, 0, 0, INT8_MIN, INT16_MIN, INT32_MIN,
                       INT64_MIN, 0));
    count(t, "largest integers",
          ht_emit_ints(t->s, UINT8_MAX, UINT16_MAX, UINT32_MAX, UINT64_MAX,
                       INT8_MAX, INT16_MAX, INT32_MAX, INT64_MAX,
                       0xdeadbeef));
    count(t, "floats", ht_emit_floats(t->s, 1.5f, -0.015625));
    count(t, "texts", ht_emit_texts(t->s, "plain", 1, "gr\xc3\xbc\xc3\x9f"));
    count(t, "empty texts", ht_emit_texts(t->s, "", 2, NULL));
    count(t, "arrays", ht_emit_arrays(t->s, raw, sizeof(raw), list, 3, fixed));
    count(t, "empty arrays", ht_emit_arrays(t->s, NULL, 0, NULL, 0, fixed));
    count(t, "no fields", ht_emit_empty(t->s));
}

static void register_many(struct ht_device *dev)
{
    static struct ht_class *all[MANY_CLASSES];

    for (unsigned i = 0; i < MANY_CLASSES; i++) {
        memcpy(many_names[i], "selftest.id000", 15);
        many_names[i][11] += i / 100;
        many_names[i][12] += i / 10 % 10;
        many_names[i][13] += i % 10;
        many[i].name = many_names[i];
        many[i].loglevel = 14;
        all[i] = &many[i];
    }
    selftest_check("register many classes",
                   ht_register_all(dev, all, MANY_CLASSES), 0);
}

static void emit_class(struct sender *t, const struct ht_class *c)
{
    void *p = ht_get(t->s, c->id, 0);

    if (p) {
        ht_commit(t->s);
    }
    count(t, c->name, p != NULL);
}

static void emit_many(struct sender *t)
{
    int flushed = 0;

    for (unsigned n = 0; n < MANY_EVENTS; n++) {
        emit_class(t, &many[n % MANY_CLASSES]);
        if (n % FLUSH_EVERY == FLUSH_EVERY - 1 && !flushed) {
            flushed = ht_stream_flush(t->s);
        }
    }
    selftest_check("flush many", flushed, 0);
}

/*
 * Emit three events that must be discarded and counted as lost, and one that
 * must be accepted
 */
static void emit_lost(struct sender *t)
{
    struct ht_stream *s = t->s;

    selftest_check("an event larger than a packet",
                   ht_get(s, ht_class_seq.id,
                          s->dev->caps.packet_size) == NULL, true);
    t->lost++;
    selftest_check("an event of no class", ht_get(s, 0, 8) == NULL, true);
    t->lost++;
    if (selftest_check("an event to be interrupted",
                       ht_get(s, ht_class_empty.id, 0) != NULL, true)) {
        selftest_check("an event that interrupts it", ht_emit_empty(s), false);
        t->lost++;
        ht_commit(s);
        t->sent++;
    }
}

static void wait_ticks(uint64_t ticks)
{
    uint64_t start = ht_clock();

    while (ht_clock() - start < ticks) {
        asm volatile("pause");
    }
}

static void register_classes(struct ht_device *dev)
{
    static struct ht_class *const classes[] = {
        &ht_class_seq, &ht_class_ints, &ht_class_floats, &ht_class_texts,
        &ht_class_arrays, &ht_class_empty,
    };
    struct ht_class same = ht_class_seq;

    for (unsigned i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
        selftest_check(classes[i]->name, ht_register(dev, classes[i]) > 0,
                       true);
    }
    selftest_check("a class registered again has the same id",
                   ht_register(dev, &same), ht_class_seq.id);
    register_many(dev);
}

static void open_stream(struct ht_bm_device *d, struct ht_stream *s,
                        const char *name)
{
    struct ht_stream_params params = {
        .stream = HT_STREAM_ANY,
        .vcpu = 0,
        .name = name,
    };
    int ret = ht_stream_open(&d->dev, s, &params);

    if (ret) {
        payload_die(PAYLOAD_FAILED, "cannot open a stream", errno_name(ret));
    }
}

static struct ht_stream *new_stream(void)
{
    struct ht_stream *s = mm_alloc(sizeof(*s), 64);

    if (!s) {
        payload_die(PAYLOAD_USAGE, "not enough memory", NULL);
    }
    return s;
}

void selftest_events(struct ht_bm_device *d, unsigned index)
{
    struct sender t = { .s = new_stream() };
    struct ht_stats before, after;
    int flushed = 0;

    register_classes(&d->dev);
    open_stream(d, t.s, "events");
    selftest_check("statistics",
                   ht_get_stats(&d->dev, t.s->index, &before), 0);
    emit_kinds(&t);
    emit_many(&t);
    emit_lost(&t);
    /*
     * Wait until the 24 bits of the clock in a short header no longer suffice:
     * the next event, which does not begin a packet, gets an extended header.
     */
    wait_ticks(2ull * (HT_CLOCK_MASK + 1));
    for (uint64_t n = 0; n < SEQUENCE; n++) {
        count(&t, "sequence", ht_emit_seq(t.s, n));
        if (n % FLUSH_EVERY == FLUSH_EVERY - 1 && !flushed) {
            flushed = ht_stream_flush(t.s);
        }
    }
    selftest_check("flush", flushed, 0);
    selftest_check("more statistics",
                   ht_get_stats(&d->dev, t.s->index, &after), 0);
    selftest_check("events in the statistics", after.events - before.events,
                   t.sent);
    selftest_check("lost events in the statistics", after.lost - before.lost,
                   t.lost);
    selftest_check("errors in the statistics", after.errors - before.errors,
                   0);
    selftest_sent(index, "events", t.s->instance, t.sent, t.lost);
    selftest_check("close", ht_stream_close(t.s), 0);
}

void selftest_takeover(struct ht_bm_device **d, unsigned index)
{
    struct ht_bm_device *old = *d;
    struct ht_stream *s = new_stream();
    struct sender t = { .s = s };
    uint64_t instance;

    open_stream(old, s, "taken over");
    instance = s->instance;
    for (uint64_t n = 0; n < 3; n++) {
        count(&t, "left behind", ht_emit_seq(s, n));
    }
    /* With virtio, a takeover may lose events that were not flushed: flush. */
    if (old->dev.caps.channel == HT_CHANNEL_VIRTIO) {
        selftest_check("flush", ht_stream_flush(s), 0);
    }
    selftest_sent(index, "taken over", instance, t.sent, t.lost);

    *d = device_open(index);
    selftest_check("a takeover changes the epoch",
                   (*d)->dev.caps.epoch != old->dev.caps.epoch, true);
    open_stream(*d, s, "after it");
    selftest_check("a stream opened since has a newer instance",
                   s->instance > instance, true);
    selftest_check("class ids survive it", ht_register(&(*d)->dev,
                                                       &ht_class_seq),
                   ht_class_seq.id);
    t = (struct sender) { .s = s };
    count(&t, "after the takeover", ht_emit_seq(s, 0));
    selftest_sent(index, "after it", s->instance, t.sent, t.lost);
    selftest_check("close", ht_stream_close(s), 0);
}

void selftest_stopped(struct ht_bm_device *d, unsigned index)
{
    struct sender bad = { .s = new_stream() };
    struct sender good = { .s = new_stream() };
    struct ht_stats stats;
    bool two = d->dev.caps.streams > 1;
    uint8_t *p;

    if (two) {
        open_stream(d, good.s, "beside it");
    }
    open_stream(d, bad.s, "stopped");
    count(&bad, "before the mistake", ht_emit_seq(bad.s, 0));
    p = ht_get(bad.s, ht_class_seq.id, 8);
    if (!selftest_check("a second event", p != NULL, true)) {
        return;
    }
    ht_put64(p, 1);
    /*
     * Set the first 4 bytes of the event's header to 0, so that the host reads
     * the invalid class id 0. The header has 4 bytes, or 13 if the vCPU paused
     * for some ms since the previous event; both begin with the id.
     */
    ht_put32(bad.s->cur, 0);
    ht_commit(bad.s);
    selftest_check("flushing a stream with a bad event",
                   ht_stream_flush(bad.s), -EIO);
    if (d->regs) {
        selftest_check("its state", bad.s->ring->host.state,
                       HT_STREAM_STOPPED);
    }
    selftest_check("statistics",
                   ht_get_stats(&d->dev, bad.s->index, &stats), 0);
    selftest_check("errors in the statistics", stats.errors, 1);
    selftest_check("events before them", stats.events, 1);
    /* Ignore the result: a close of a stopped stream returns an error. */
    ht_stream_close(bad.s);
    selftest_sent(index, "stopped", bad.s->instance, bad.sent, 0);
    if (two) {
        count(&good, "on a stream beside it", ht_emit_seq(good.s, 0));
        selftest_check("flush", ht_stream_flush(good.s), 0);
        selftest_check("close", ht_stream_close(good.s), 0);
        selftest_sent(index, "beside it", good.s->instance, good.sent,
                      good.lost);
    }
    open_stream(d, bad.s, "as new");
    bad.sent = 0;
    count(&bad, "on the stream opened again", ht_emit_seq(bad.s, 0));
    selftest_check("close", ht_stream_close(bad.s), 0);
    selftest_sent(index, "as new", bad.s->instance, bad.sent, bad.lost);
}
