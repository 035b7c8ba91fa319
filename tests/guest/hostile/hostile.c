/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's function hostile: break the rules of the protocol, while honest
 * streams keep them
 *
 * Options: what=registers|streams|virtqueues|takeovers|chance|emits, seed,
 * rounds, step, device.  tests/e2e/test_hostile.py and test_properties.py
 * compare what honest streams sent with what arrived.
 */
#include "hypertrace/event.h"
#include "cmdline.h"
#include "hostile.h"
#include "libc.h"
#include "mm.h"
#include "payload.h"

HT_EVENT_NAMED(hostile_seq, "hostile.seq", (u64, n));

static uint64_t state;
static unsigned rounds;
static unsigned step;
static unsigned checks;
static unsigned failed;

uint64_t hostile_random(void)
{
    /* The generator splitmix64, which has no bad seeds */
    uint64_t z = state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t hostile_below(uint64_t n)
{
    return hostile_random() % n;
}

void hostile_fill(void *to, size_t len)
{
    uint8_t *p = to;

    for (size_t i = 0; i < len; i++) {
        p[i] = hostile_random();
    }
}

bool hostile_check(const char *what, int64_t got, int64_t want)
{
    bool ok = got == want;

    checks++;
    if (!ok) {
        failed++;
        json_begin(NULL);
        json_str("check", what);
        json_bool("ok", false);
        json_s64("got", got);
        json_s64("want", want);
        json_end();
    }
    return ok;
}

struct ht_bm_device *hostile_open(unsigned index)
{
    struct ht_bm_device *d = device_open(index);

    ht_class_hostile_seq.id = 0;
    hostile_check("register a class",
                  ht_register(&d->dev, &ht_class_hostile_seq) > 0,
                  true);
    return d;
}

uint32_t hostile_class(void)
{
    return ht_class_hostile_seq.id;
}

void hostile_stream(struct ht_bm_device *d, struct ht_stream *s,
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

struct honest *honest_new(void)
{
    struct honest *h = mm_alloc(sizeof(*h), 64);

    if (!h) {
        payload_die(PAYLOAD_USAGE, "not enough memory", NULL);
    }
    return h;
}

void honest_open(struct honest *h, struct ht_bm_device *d)
{
    hostile_stream(d, &h->s, "honest");
    h->sent = 0;
}

void honest_emit(struct honest *h, unsigned n)
{
    unsigned ok = 0;

    for (unsigned i = 0; i < n; i++) {
        bool sent = ht_emit_hostile_seq(&h->s, h->sent);

        h->sent += sent;
        ok += sent;
    }
    hostile_check("honest events", ok, n);
}

void honest_flush(struct honest *h)
{
    hostile_check("flush of an honest stream", ht_stream_flush(&h->s), 0);
}

void honest_report(struct honest *h, unsigned index, uint64_t flushed)
{
    json_begin(NULL);
    json_u64("device", index);
    json_str("stream", "honest");
    json_u64("instance", h->s.instance);
    json_u64("flushed", flushed);
    json_u64("sent", h->sent);
    json_end();
}

void honest_close(struct honest *h, unsigned index)
{
    hostile_check("close of an honest stream", ht_stream_close(&h->s), 0);
    honest_report(h, index, h->sent);
}

unsigned hostile_rounds(unsigned otherwise)
{
    return rounds ? rounds : otherwise;
}

unsigned hostile_step(void)
{
    return step;
}

static const struct subject {
    const char *name;
    void (*run)(unsigned index);
} subjects[] = {
    { "registers", hostile_registers },
    { "streams", hostile_streams },
    { "virtqueues", hostile_virtqueues },
    { "takeovers", hostile_takeovers },
    { "chance", hostile_chance },
    { "emits", hostile_emits },
};

enum payload_exit payload_hostile(void)
{
    const char *what = cmdline_str("what", "");
    const struct subject *subject = NULL;
    unsigned index;

    state = cmdline_u64("seed", 1, 0, UINT64_MAX);
    rounds = cmdline_u64("rounds", 0, 0, 1000000);
    step = cmdline_u64("step", 1, 1, HT_PAGE);
    index = cmdline_u64("device", 0, 0, 31);
    cmdline_done();
    for (unsigned i = 0; i < sizeof(subjects) / sizeof(*subjects); i++) {
        if (!strcmp(what, subjects[i].name)) {
            subject = &subjects[i];
        }
    }
    if (!subject) {
        payload_die(PAYLOAD_USAGE, "no such subject", what);
    }
    subject->run(index);
    json_begin(NULL);
    json_str("function", "hostile");
    json_str("what", what);
    json_u64("checks", checks);
    json_u64("failed", failed);
    json_end();
    return failed ? PAYLOAD_FAILED : PAYLOAD_OK;
}
