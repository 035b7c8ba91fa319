/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "core-testlib.h"

struct ht_msg_class *ct_message(CtMessage *m)
{
    return (struct ht_msg_class *)m->data;
}

void ct_class_bytes(CtMessage *m, const void *name, size_t len)
{
    memset(m, 0, sizeof(*m));
    ht_put_le16(&ct_message(m)->h.type, HT_MSG_CLASS_REGISTER);
    ct_message(m)->name_len = len;
    ct_message(m)->loglevel = 14;
    m->size = sizeof(struct ht_msg_class);
    memcpy(m->data + m->size, name, len);
    m->size += len;
}

void ct_class(CtMessage *m, const char *name)
{
    ct_class_bytes(m, name, strlen(name));
}

void ct_field_bytes(CtMessage *m, const struct ht_msg_field *f,
                    const void *name, size_t len)
{
    g_assert_cmpuint(m->size + sizeof(*f) + len, <=, sizeof(m->data));
    ct_message(m)->nr_fields++;
    memcpy(m->data + m->size, f, sizeof(*f));
    m->size += sizeof(*f);
    memcpy(m->data + m->size, name, len);
    m->size += len;
}

void ct_field(CtMessage *m, const char *name, unsigned kind, unsigned elem,
              unsigned count)
{
    struct ht_msg_field f = {
        .kind = kind,
        .elem = elem,
        .name_len = strlen(name),
        .count = ht_le16(count),
    };

    ct_field_bytes(m, &f, name, strlen(name));
}

enum ht_status ct_add(HtClassTable *t, const CtMessage *m, bool *added,
                      HtClass **cls)
{
    void *exact = g_memdup2(m->data, m->size);
    enum ht_status status = ht_class_table_add(t, exact, m->size, added, cls);

    g_free(exact);
    return status;
}

uint32_t ct_register(HtClassTable *t, const CtMessage *m)
{
    HtClass *c;
    bool added;

    g_assert_cmpint(ct_add(t, m, &added, &c), ==, HT_STATUS_OK);
    return c->id;
}

HtClassTable *ct_classes(void)
{
    HtClassTable *t = ht_class_table_new();
    CtMessage m;
    uint32_t id = 0;

    ct_class(&m, "number");
    ct_field(&m, "n", HT_FIELD_U64, 0, 0);
    g_assert_cmpuint(ct_register(t, &m), ==, CT_NUMBER);
    ct_class(&m, "text");
    ct_field(&m, "a", HT_FIELD_U8, 0, 0);
    ct_field(&m, "t", HT_FIELD_TEXT, 0, 0);
    ct_field(&m, "b", HT_FIELD_U32, 0, 0);
    g_assert_cmpuint(ct_register(t, &m), ==, CT_TEXT);
    ct_class(&m, "sequence");
    ct_field(&m, "s", HT_FIELD_SEQUENCE, HT_FIELD_U16, 0);
    g_assert_cmpuint(ct_register(t, &m), ==, CT_SEQUENCE);
    ct_class(&m, "empty");
    g_assert_cmpuint(ct_register(t, &m), ==, CT_EMPTY);
    while (id < CT_FAR) {
        g_autofree char *name = g_strdup_printf("class%u", id);

        ct_class(&m, name);
        ct_field(&m, "n", HT_FIELD_U64, 0, 0);
        id = ct_register(t, &m);
    }
    return t;
}

void ct_put_compact(GByteArray *a, uint32_t id, uint64_t clock,
                    const void *payload, size_t size)
{
    uint8_t header[HT_EVENT_HEADER_EXT];

    g_byte_array_append(a, header, ht_event_header(header, id, clock, false));
    g_byte_array_append(a, payload, size);
}

void ct_put_extended(GByteArray *a, uint32_t id, uint64_t clock,
                     const void *payload, size_t size)
{
    uint8_t header[HT_EVENT_HEADER_EXT];

    g_byte_array_append(a, header, ht_event_header(header, id, clock, true));
    g_byte_array_append(a, payload, size);
}

HtTimeMap ct_time(uint64_t offset)
{
    HtTimeMap m;

    ht_time_map_init(&m, 1000000000);
    ht_time_map_sample(&m, 0, offset, 1);
    return m;
}

void ct_ring_init(CtRing *r, uint32_t packet_size, uint32_t packets,
                  bool overwrite)
{
    memset(r, 0, sizeof(*r));
    r->packet_size = packet_size;
    r->packets = packets;
    r->overwrite = overwrite;
    r->stream = 3;
    r->instance = 77;
    r->control = g_new0(struct ht_ring_control, 1);
    r->control->host.wake = ht_le64(HT_WAKE_NEVER);
    r->control->host.instance = ht_le64(r->instance);
    r->control->host.state = ht_le32(HT_STREAM_OPENED);
    r->data = g_malloc((size_t)packet_size * packets);
    memset(r->data, 0xee, (size_t)packet_size * packets);
}

void ct_ring_destroy(CtRing *r)
{
    g_free(r->control);
    g_free(r->data);
}

struct ht_packet *ct_ring_packet(CtRing *r, uint64_t packet)
{
    return (struct ht_packet *)(r->data +
                                (packet & (r->packets - 1)) * r->packet_size);
}

static void publish(CtRing *r)
{
    /* Pairs with the load-acquire of head in load_head(), consumer.c. */
    ht_atomic_store_release(&r->control->guest.head,
                          ht_le64(r->packet * r->packet_size + r->offset));
}

void ct_ring_close_packet(CtRing *r)
{
    struct ht_packet *p = ct_ring_packet(r, r->packet);

    if (r->offset == 0) {
        return;
    }
    p->clock_end = ht_le64(r->clock);
    ht_atomic_set(&p->content, ht_le32(r->offset));
    r->packet++;
    r->offset = 0;
    publish(r);
}

static bool open_packet(CtRing *r)
{
    struct ht_packet *p = ct_ring_packet(r, r->packet);
    uint64_t tail;

    if (r->overwrite) {
        ht_atomic_set(&r->control->guest.opening, ht_le64(r->packet));
        /*
         * Write the opening before the packet; pairs with ht_fence_acquire()
         * in ht_consumer_ring().
         */
        ht_fence_release();
    } else {
        /* Pairs with the store-release of tail in ht_consumer_ring(). */
        tail = ht_le64(ht_atomic_load_acquire(&r->control->host.tail));
        if (r->packet - tail >= r->packets) {
            return false;
        }
    }
    p->magic = ht_le32(HT_PACKET_MAGIC);
    p->stream = ht_le32(r->stream);
    p->instance = ht_le64(r->instance);
    p->seq = ht_le64(r->packet);
    p->clock_begin = ht_le64(r->clock);
    p->events = ht_le64(r->events);
    p->lost = ht_le64(r->lost);
    p->clock_end = 0;
    p->content = 0;
    p->reserved = 0;
    r->offset = sizeof(*p);
    return true;
}

bool ct_ring_put(CtRing *r, const void *event, uint32_t size)
{
    if (r->offset && r->packet_size - r->offset < size) {
        ct_ring_close_packet(r);
    }
    if (r->offset == 0 && !open_packet(r)) {
        r->lost++;
        ht_atomic_set(&r->control->guest.lost, ht_le64(r->lost));
        return false;
    }
    memcpy((uint8_t *)ct_ring_packet(r, r->packet) + r->offset, event, size);
    r->offset += size;
    r->events++;
    if (r->offset == r->packet_size) {
        /*
         * the packet is full: close it, so that head is the next packet's
         * start
         */
        ct_ring_close_packet(r);
    } else {
        publish(r);
    }
    return true;
}

bool ct_ring_emit(CtRing *r, uint64_t n)
{
    uint8_t event[HT_EVENT_HEADER + sizeof(n)];

    r->clock += 10;
    ht_put_le32(event, CT_NUMBER | (uint32_t)r->clock << 8);
    ht_put_le64(event + HT_EVENT_HEADER, n);
    return ct_ring_put(r, event, sizeof(event));
}

void ct_sink_init(CtSink *s)
{
    memset(s, 0, sizeof(*s));
    s->classes = ct_classes();
    s->numbers = g_array_new(false, false, sizeof(uint64_t));
}

void ct_sink_destroy(CtSink *s)
{
    ht_class_table_free(s->classes);
    g_array_free(s->numbers, true);
}

uint64_t ct_sink_number(const CtSink *s, unsigned i)
{
    g_assert_cmpuint(i, <, s->numbers->len);
    return g_array_index(s->numbers, uint64_t, i);
}

void ct_sink_deliver(void *opaque, const HtRun *run)
{
    CtSink *s = opaque;
    uint64_t last = run->begin_ns;
    uint32_t events = 0;
    HtRunIter it;
    HtEvent ev;

    g_assert_cmpuint(run->discarded, >=, s->discarded);
    g_assert_cmpuint(run->begin_ns, >=, s->ns);
    s->discarded = run->discarded;
    if (run->flags & (HT_RUN_OPEN | HT_RUN_CLOSE)) {
        g_assert_cmpuint(run->events, ==, 0);
        g_assert_cmpuint(run->size, ==, 0);
        s->opened += !!(run->flags & HT_RUN_OPEN);
        s->closed += !!(run->flags & HT_RUN_CLOSE);
        s->ns = run->end_ns;
        return;
    }
    s->runs++;
    s->bytes += run->size;
    g_assert_cmpuint(run->events, >, 0);
    ht_run_iter_init(&it, run, s->classes);
    while (ht_run_next(&it, &ev)) {
        g_assert_cmpuint(ev.ns, >=, last);
        g_assert_cmpuint(ev.cls->id, <=, run->classes);
        last = ev.ns;
        events++;
        if (ev.cls->id == CT_NUMBER) {
            uint64_t n = ht_get_le64(ev.payload);

            g_array_append_val(s->numbers, n);
        } else {
            s->other++;
        }
    }
    g_assert_cmpuint(events, ==, run->events);
    g_assert_cmpuint(last, ==, run->end_ns);
    s->ns = run->end_ns;
}

void ct_consumer_init(HtConsumer *c, CtSink *s, const CtRing *r)
{
    HtConsumerConfig cfg = {
        .classes = s->classes,
        .packet_size = r->packet_size,
        .packets = r->packets,
        .overwrite = r->overwrite,
        .deliver = ct_sink_deliver,
        .opaque = s,
    };

    ht_consumer_init(c, &cfg);
}

void ct_consumer_open(HtConsumer *c, CtSink *s, const CtRing *r)
{
    HtStreamInfo info = {
        .index = r->stream,
        .vcpu = -1,
        .instance = r->instance,
    };

    ct_consumer_init(c, s, r);
    ht_consumer_open(c, &info, 500);
    c->time = ct_time(1000);
    g_assert_cmpuint(s->opened, ==, 1);
}

void ct_check_loadable(const HtConsumer *c)
{
    HtConsumerState st;
    HtConsumer other;

    ht_consumer_save(c, &st);
    ht_consumer_init(&other, &c->cfg);
    g_assert_cmpstr(ht_consumer_load(&other, c->info.index, &st), ==, NULL);
    ht_consumer_destroy(&other);
}
