/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile guest (what=chance): send random classes, events and bytes, next to
 * an honest stream with known events that have many kinds of fields
 *
 * tests/e2e/test_properties.py, which checks the honest stream's trace, has the
 * same events: change both.
 */
#include "hypertrace/event.h"
#include "hostile.h"
#include "libc.h"
#include "mm.h"

/*
 * number of classes that the guest remembers; each further registration, also
 * one that fails, makes it forget the oldest
 */
#define CLASSES     48
#define FIELDS      6
#define PAYLOAD     256u

HT_EVENT_NAMED(fields, "hostile.fields", (u64, n), (s32, minus), (text, word),
               (seq, u16, list), (f64, half), (array, u8, four, 4), (x16, hex));

/* Names that a trace generator or reader may mishandle */
static const char *const names[] = {
    "n", "word", "x", "_x", "_x_length", "x_length", "__x", "int", "struct",
    "variant", "event", "enum", "string", "trace", "stream", "stream_id",
    "id", "timestamp", "packet_size", "content_size", "cpu_id", "vcpu",
    "guest_ns", "v", "len", "clock", "integer", "floating_point", "true",
};

struct random_class {
    /* id under which the class is registered; 0: the entry is free */
    uint32_t id;
    unsigned nr_fields;
    struct ht_msg_field fields[FIELDS];
};

struct chaos {
    struct ht_bm_device *d;
    struct ht_stream s;
    struct random_class classes[CLASSES];
    unsigned registered;
};

static uint32_t kind_bytes(uint8_t kind)
{
    switch (kind) {
    case HT_FIELD_F32:
        return 4;
    case HT_FIELD_F64:
        return 8;
    default:
        /* kinds 1 to 8 are integers of 1, 2, 4 and 8 bytes */
        return 1 << (kind - 1) % 4;
    }
}

static void random_field(struct ht_msg_field *f)
{
    static const uint8_t kinds[] = {
        1, 2, 3, 4, 5, 6, 7, 8, HT_FIELD_F32, HT_FIELD_F64, HT_FIELD_TEXT,
        HT_FIELD_SEQUENCE, HT_FIELD_ARRAY,
    };

    *f = (struct ht_msg_field) {
        .kind = kinds[hostile_below(sizeof(kinds))],
        .flags = hostile_below(2),
    };
    if (f->kind == HT_FIELD_SEQUENCE || f->kind == HT_FIELD_ARRAY) {
        f->elem = 1 + hostile_below(8);
    }
    if (f->kind == HT_FIELD_ARRAY) {
        f->count = 1 + hostile_below(5);
    }
}

static uint8_t *put_name(uint8_t *p, uint8_t *len)
{
    const char *name = names[hostile_below(sizeof(names) / sizeof(*names))];

    *len = strlen(name);
    memcpy(p, name, *len);
    return p + *len;
}

/*
 * Register a class with random fields and names. A name may already be in use
 * or not allowed. In about one of four cases, change a bit of the message.
 */
static void register_class(struct chaos *c)
{
    struct random_class *r = &c->classes[c->registered % CLASSES];
    uint8_t message[HT_MESSAGE_MAX / 4] = { 0 };
    struct ht_msg_class *m = (struct ht_msg_class *)message, *buffer;
    uint8_t *p = m->data;
    uint32_t size;

    r->id = 0;
    r->nr_fields = m->nr_fields = hostile_below(FIELDS + 1);
    m->loglevel = hostile_below(15);
    p = put_name(p, &m->name_len);
    for (unsigned i = 0; i < r->nr_fields; i++) {
        struct ht_msg_field *f = &r->fields[i];
        uint8_t *at = p;

        random_field(f);
        p = put_name(p + sizeof(*f), &f->name_len);
        memcpy(at, f, sizeof(*f));
    }
    if (hostile_below(4) == 0) {
        message[sizeof(m->h) + hostile_below(p - message - sizeof(m->h))] ^=
            1 << hostile_below(8);
    }
    size = p - message;
    buffer = (struct ht_msg_class *)
        ht_control_begin(&c->d->dev, HT_MSG_CLASS_REGISTER, size);
    memcpy((uint8_t *)buffer + sizeof(buffer->h), message + sizeof(m->h),
           size - sizeof(m->h));
    if (!ht_control(&c->d->dev, &buffer->h)) {
        r->id = buffer->id;
        c->registered++;
    }
    ht_control_end(&c->d->dev);
}

/*
 * Write a random value to one random word of 8 bytes. If the device has a ring,
 * about one call in four chooses one of the first three words of the guest's
 * line. About half of the other calls choose a word of the @size bytes from
 * position @at of the stream, the rest a word anywhere in the packets.
 */
static void corrupt(struct chaos *c, uint64_t at, uint64_t size)
{
    uint64_t ring = (uint64_t)c->d->dev.caps.packets *
                    c->d->dev.caps.packet_size;
    uint64_t v = hostile_random() >> hostile_below(64);

    if (c->d->regs && hostile_below(4) == 0) {
        uint64_t *line = &c->s.ring->guest.head;

        ht_store_relaxed(line + hostile_below(3), v);
    } else {
        at = hostile_below(2) ? at + hostile_below(size) : hostile_random();
        ht_store_relaxed((uint64_t *)(c->s.packets + at % ring / 8 * 8), v);
    }
}

static uint64_t head(const struct chaos *c)
{
    return c->s.base + (uintptr_t)c->s.cur;
}

/* Emit an event of a class with random bits in all fields */
static void emit(struct chaos *c)
{
    struct random_class *r = &c->classes[hostile_below(CLASSES)];
    uint8_t bytes[PAYLOAD];
    uint32_t size = 0;
    uint8_t *p;

    if (!r->id) {
        return;
    }
    for (unsigned i = 0; i < r->nr_fields; i++) {
        const struct ht_msg_field *f = &r->fields[i];
        uint32_t n = kind_bytes(f->kind);
        uint16_t count;

        switch (f->kind) {
        case HT_FIELD_TEXT:
        case HT_FIELD_SEQUENCE:
            count = hostile_below(4);
            memcpy(bytes + size, &count, sizeof(count));
            size += sizeof(count);
            n = count * (f->elem ? kind_bytes(f->elem) : 1);
            break;
        case HT_FIELD_ARRAY:
            n = f->count * kind_bytes(f->elem);
            break;
        }
        hostile_fill(bytes + size, n);
        size += n;
    }
    p = ht_get(&c->s, r->id, size);
    if (p) {
        memcpy(p, bytes, size);
        if (hostile_below(8) == 0) {
            /*
             * In about one of eight cases, change a word before the commit:
             * then the host has not read this event yet.
             */
            corrupt(c, head(c), HT_EVENT_HEADER + size);
        }
        ht_commit(&c->s);
    }
}

static void emit_honest(struct honest *h)
{
    char word[32];
    uint16_t list[5];
    uint8_t four[4];
    uint64_t n = h->sent;
    bool ok;

    memset(word, 'a' + n % 26, sizeof(word));
    /*
     * The text is never empty: babeltrace2 2.0 would show the text of an
     * earlier event.
     */
    word[1 + n % 31] = '\0';
    for (unsigned i = 0; i < 5; i++) {
        list[i] = n * 7 + i;
    }
    for (unsigned i = 0; i < 4; i++) {
        four[i] = n >> i;
    }
    ok = ht_emit_fields(&h->s, n, -(int32_t)n, word, list, n % 6,
                        n / 2.0, four, ~n);
    h->sent += ok;
    hostile_check("an honest event", ok, true);
}

/* Run random actions next to an honest stream, which must not be disturbed. */
void hostile_chance(unsigned index)
{
    struct ht_bm_device *d = hostile_open(index);
    struct honest *h = honest_new();
    struct chaos *c = mm_alloc(sizeof(*c), 64);
    unsigned rounds = hostile_rounds(400), stopped = 0;

    hostile_check("register a class",
                  ht_register(&d->dev, &ht_class_fields) > 0, true);
    c->d = d;
    honest_open(h, d);
    hostile_stream(d, &c->s, "chance");
    for (unsigned i = 0; i < rounds; i++) {
        if (i % 8 == 0) {
            register_class(c);
        }
        for (unsigned k = hostile_below(8); k; k--) {
            emit(c);
            if (hostile_below(16) == 0) {
                corrupt(c, head(c) - 64, 64);
            }
        }
        emit_honest(h);
        if (hostile_below(4) == 0) {
            honest_flush(h);
        }
        /* The host no longer reads a stopped stream: open it again. */
        if (hostile_below(8) == 0 && ht_stream_flush(&c->s)) {
            stopped++;
            ht_stream_close(&c->s);
            hostile_stream(d, &c->s, "chance");
        }
    }
    hostile_check("streams were stopped", stopped > 0, true);
    hostile_check("classes were registered", c->registered > 0, true);
    ht_stream_close(&c->s);
    honest_close(h, index);
    ht_bm_close(d);
}
