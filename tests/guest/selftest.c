/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's function selftest: check that the device behaves towards its
 * guest as the specification says
 *
 * Each check prints one line.  selftest-events.c emits known events; a test on
 * the host checks that the trace has these events.
 */
#include "cmdline.h"
#include "device.h"
#include "libc.h"
#include "mm.h"
#include "payload.h"
#include "selftest.h"

static unsigned checks;
static unsigned failed;

bool selftest_check(const char *what, int64_t got, int64_t want)
{
    bool ok = got == want;

    checks++;
    failed += !ok;
    json_begin(NULL);
    json_str("check", what);
    json_bool("ok", ok);
    if (!ok) {
        json_s64("got", got);
        json_s64("want", want);
    }
    json_end();
    return ok;
}

void selftest_sent(unsigned index, const char *stream, uint64_t instance,
                   uint64_t events, uint64_t lost)
{
    json_begin(NULL);
    json_u64("device", index);
    json_str("stream", stream);
    json_u64("instance", instance);
    json_u64("sent", events);
    json_u64("lost", lost);
    json_end();
}

static void device_done(const struct ht_bm_device *d, unsigned index)
{
    json_begin(NULL);
    json_str("function", "selftest");
    json_u64("device", index);
    json_str("channel", device_channel(d));
    json_u64("streams", d->dev.caps.streams);
    json_u64("ram", d->bar[HT_PCI_BAR_RING].base);
    json_u64("checks", checks);
    json_u64("failed", failed);
    json_end();
}

/* Messages of a careless guest --------------------------------------------- */

/*
 * Send a message, and again while the device replies that it is busy. Return
 * the status of the last reply, or a negative errno if there is no valid reply.
 */
static int64_t exchange(struct ht_bm_device *d, void *msg, uint16_t type,
                        uint32_t size)
{
    struct ht_msg *h = msg;
    int ret;

    for (unsigned tries = 0; ; tries++) {
        h->type = type;
        h->reserved = 0;
        h->size = size;
        h->status = 0;
        h->cookie = 0x5e1f0000 + tries;
        ret = d->dev.ops->control(&d->dev, h, type == HT_MSG_CLASS_REGISTER ?
                                  size : HT_MESSAGE_MAX);
        if (ret) {
            return ret;
        }
        if (h->cookie != 0x5e1f0000 + tries) {
            return -EPROTO;
        }
        if (h->status != HT_STATUS_BUSY) {
            return h->status;
        }
        ret = d->dev.ops->relax(&d->dev, tries);
        if (ret) {
            return ret;
        }
    }
}

struct bad_class {
    const char *what;
    const char *name;
    struct ht_msg_field field;
    /* NULL: the message contains no field */
    const char *field_name;
    uint8_t loglevel;
    uint8_t nr_fields;          /* number of fields that the message states */
    /* bytes that are missing at the message's end */
    int8_t cut;
};

#define U8_FIELD        { .kind = HT_FIELD_U8 }

static const struct bad_class bad_classes[] = {
    { "class without a name", "", U8_FIELD, NULL, 6, 0, 0 },
    { "class name with a space", "a b", U8_FIELD, NULL, 6, 0, 0 },
    { "class name with a colon", "a:b", U8_FIELD, NULL, 6, 0, 0 },
    { "class with log level 15", "bad.level", U8_FIELD, NULL, 15, 0, 0 },
    { "class with 33 fields", "bad.many", U8_FIELD, "f", 6, 33, 0 },
    { "class with fewer fields than it says", "bad.few", U8_FIELD, "f",
      6, 2, 0 },
    { "class cut short", "bad.cut", U8_FIELD, "f", 6, 1, 1 },
    { "field of an unknown kind", "bad.kind", { .kind = 99 }, "f", 6, 1, 0 },
    { "field name that begins with a digit", "bad.digit", U8_FIELD, "1f",
      6, 1, 0 },
    { "field name with a dash", "bad.dash", U8_FIELD, "f-g", 6, 1, 0 },
    { "array without elements", "bad.array",
      { .kind = HT_FIELD_ARRAY, .elem = HT_FIELD_U8 }, "f", 6, 1, 0 },
    { "array of texts", "bad.texts",
      { .kind = HT_FIELD_ARRAY, .elem = HT_FIELD_TEXT, .count = 2 }, "f",
      6, 1, 0 },
    { "integer with a count", "bad.count",
      { .kind = HT_FIELD_U32, .count = 2 }, "f", 6, 1, 0 },
};

static uint32_t append(uint8_t *to, uint32_t at, const void *from, size_t n)
{
    memcpy(to + at, from, n);
    return at + n;
}

static void check_bad_classes(struct ht_bm_device *d)
{
    struct ht_msg_class *m = mm_alloc(HT_MESSAGE_MAX, 8);

    for (unsigned i = 0; i < sizeof(bad_classes) / sizeof(*bad_classes); i++) {
        const struct bad_class *bad = &bad_classes[i];
        struct ht_msg_field f = bad->field;
        uint32_t len = 0;

        memset(m, 0, HT_MESSAGE_MAX);
        m->loglevel = bad->loglevel;
        m->name_len = strlen(bad->name);
        m->nr_fields = bad->nr_fields;
        len = append(m->data, len, bad->name, m->name_len);
        if (bad->field_name) {
            f.name_len = strlen(bad->field_name);
            len = append(m->data, len, &f, sizeof(f));
            len = append(m->data, len, bad->field_name, f.name_len);
        }
        selftest_check(bad->what,
                       exchange(d, m, HT_MSG_CLASS_REGISTER,
                                sizeof(*m) + len - bad->cut),
                       HT_STATUS_INVAL);
    }
}

static void check_bad_messages(struct ht_bm_device *d)
{
    union {
        struct ht_msg h;
        struct ht_msg_class class;
        struct ht_msg_open open;
        struct ht_msg_stream stream;
        struct ht_msg_stats stats;
    } *m = mm_alloc(HT_MESSAGE_MAX, 8);
    uint32_t streams = d->dev.caps.streams;

    selftest_check("message of type 0", exchange(d, m, 0, sizeof(m->h)),
                   HT_STATUS_NOENT);
    selftest_check("message of an unknown type",
                   exchange(d, m, 99, sizeof(m->h)), HT_STATUS_NOENT);
    memset(m, 0, HT_MESSAGE_MAX);
    selftest_check("open message cut short",
                   exchange(d, m, HT_MSG_STREAM_OPEN, sizeof(m->open) - 8),
                   HT_STATUS_INVAL);
    memset(m, 0, HT_MESSAGE_MAX);
    m->open.stream = streams;
    m->open.vcpu = -1;
    selftest_check("opening a stream that is not there",
                   exchange(d, m, HT_MSG_STREAM_OPEN, sizeof(m->open)),
                   HT_STATUS_NOENT);
    memset(m, 0, HT_MESSAGE_MAX);
    m->open.stream = HT_STREAM_ANY;
    m->open.vcpu = -1;
    m->open.name[0] = '\n';
    selftest_check("opening a stream with a name that cannot be printed",
                   exchange(d, m, HT_MSG_STREAM_OPEN, sizeof(m->open)),
                   HT_STATUS_INVAL);
    memset(m, 0, HT_MESSAGE_MAX);
    m->stream.stream = streams;
    selftest_check("closing a stream that is not there",
                   exchange(d, m, HT_MSG_STREAM_CLOSE, sizeof(m->stream)),
                   HT_STATUS_NOENT);
    memset(m, 0, HT_MESSAGE_MAX);
    m->stream.instance = 1;
    selftest_check("flushing a stream that is not open",
                   exchange(d, m, HT_MSG_STREAM_FLUSH, sizeof(m->stream)),
                   HT_STATUS_NOENT);
    memset(m, 0, HT_MESSAGE_MAX);
    m->stats.stream = streams;
    selftest_check("statistics of a stream that is not there",
                   exchange(d, m, HT_MSG_STATS, sizeof(m->stats)),
                   HT_STATUS_NOENT);
    memset(m, 0, HT_MESSAGE_MAX);
    m->class.index = HT_CLASSES_MAX;
    selftest_check("a class that is not there",
                   exchange(d, m, HT_MSG_CLASS_LIST, sizeof(m->class)),
                   HT_STATUS_NOENT);
}

static void check_streams(struct ht_bm_device *d)
{
    uint32_t n = d->dev.caps.streams;
    struct ht_stream *s = mm_alloc((n + 1) * sizeof(*s), 64);
    struct ht_stream_params wanted = { .stream = 0, .vcpu = -1 };
    uint64_t newest = 0;
    bool rising = true;

    for (uint32_t i = 0; i < n; i++) {
        if (!selftest_check("open a stream", ht_stream_open(&d->dev, &s[i],
                                                            NULL), 0)) {
            return;
        }
        rising = rising && s[i].instance > newest;
        newest = s[i].instance;
    }
    selftest_check("instances are numbered in order", rising, true);
    selftest_check("open more streams than there are",
                   ht_stream_open(&d->dev, &s[n], NULL), -EBUSY);
    selftest_check("open a stream twice",
                   ht_stream_open(&d->dev, &s[n], &wanted), -EBUSY);
    selftest_check("close a stream", ht_stream_close(&s[0]), 0);
    selftest_check("open it again",
                   ht_stream_open(&d->dev, &s[0], &wanted), 0);
    selftest_check("it has a new instance", s[0].instance > newest, true);
    for (uint32_t i = 0; i < n; i++) {
        selftest_check("close a stream", ht_stream_close(&s[i]), 0);
    }
    selftest_check("flush a closed stream", ht_stream_flush(&s[0]), -EIO);
}

static void check_time(struct ht_bm_device *d)
{
    int bound = ht_time_sync(&d->dev, 10);

    selftest_check("time synchronisation gives a bound", bound >= 0, true);
    selftest_check("the bound is below 10 ms", bound < 10000000, true);
}

static void selftest_device(unsigned index)
{
    struct ht_bm_device *d = device_open(index);

    check_bad_classes(d);
    check_bad_messages(d);
    check_streams(d);
    check_time(d);
    selftest_events(d, index);
    selftest_takeover(&d, index);
    selftest_stopped(d, index);
    device_done(d, index);
    ht_bm_close(d);
}

enum payload_exit payload_selftest(void)
{
    unsigned devices = device_count();

    cmdline_done();
    if (!devices) {
        payload_die(PAYLOAD_USAGE, "no hypertrace device", NULL);
    }
    for (unsigned i = 0; i < devices; i++) {
        selftest_device(i);
    }
    return failed ? PAYLOAD_FAILED : PAYLOAD_OK;
}
