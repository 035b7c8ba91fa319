/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read stream RAM after QEMU has ended
 */
#include "hypertrace/base.h"
#include "hypertrace/dead-streams.h"

G_STATIC_ASSERT(sizeof(HtDeadHead) <= HT_DEAD_STREAMS);
G_STATIC_ASSERT(HT_DEAD_STREAMS + HT_STREAMS_MAX * sizeof(HtDeadStream) <=
                HT_DEAD_CLASSES);

static bool is_text(const char *s, size_t size)
{
    return memchr(s, 0, size);
}

static bool is_power(uint32_t v, uint32_t min, uint32_t max)
{
    return v >= min && v <= max && !(v & (v - 1));
}

static bool head_ok(const HtDeadHead *h)
{
    return h->streams >= 1 && h->streams <= HT_STREAMS_MAX &&
           is_power(h->packet_size, HT_PACKET_SIZE_MIN, HT_PACKET_SIZE_MAX) &&
           is_power(h->packets, HT_PACKETS_MIN, HT_PACKETS_MAX) &&
           h->stride == HT_ROUND_UP(HT_PACKETS_OFFSET + (uint64_t)h->packets *
                                    h->packet_size, HT_MAP_ALIGN) &&
           is_text(h->trace, sizeof(h->trace)) &&
           is_text(h->vm, sizeof(h->vm)) &&
           is_text(h->channel, sizeof(h->channel)) &&
           is_text(h->memory, sizeof(h->memory)) &&
           /* The name becomes that of a file. */
           h->trace[0] && h->trace[0] != '.' && !strchr(h->trace, '/');
}

static bool stream_ok(const HtDeadStream *s)
{
    size_t i;

    for (i = 0; i < sizeof(s->name) && s->name[i]; i++) {
        if (s->name[i] < ' ' || s->name[i] > '~') {
            return false;
        }
    }
    return s->vcpu >= -1 && s->ns <= HT_TIME_MAX_NS;
}

/* Return the size of all complete classes: the last may be incomplete */
static size_t whole_classes(const uint8_t *data, size_t size)
{
    size_t done = 0;

    while (size - done >= 4 && ht_get_le32(data + done) <= size - done - 4) {
        done += 4 + ht_get_le32(data + done);
    }
    return done;
}

HtDead *ht_dead_new(const void *data, size_t size, GError **error)
{
    g_autoptr(HtDead) d = g_new0(HtDead, 1);
    g_autofree char *why = NULL;
    const uint8_t *p = data;
    uint32_t i;

    d->classes = ht_class_table_new();
    if (size >= sizeof(d->head)) {
        memcpy(&d->head, p, sizeof(d->head));
        ht_dead_head_swap(&d->head);
    }
    if (d->head.magic != HT_DEAD_MAGIC || d->head.version != HT_DEAD_VERSION ||
        !head_ok(&d->head) || size < HT_DEAD_CLASSES) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "it is no index"
                    " of a device, or was not begun, or is of another"
                    " version");
        return NULL;
    }
    for (i = 0; i < d->head.streams; i++) {
        HtDeadStream *s = &d->streams[i];

        memcpy(s, p + HT_DEAD_STREAMS + i * sizeof(*s), sizeof(*s));
        ht_dead_stream_swap(s);
        if (!stream_ok(s)) {
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                        "what it says of stream %u cannot be", i);
            return NULL;
        }
    }
    p += HT_DEAD_CLASSES;
    if (!ht_class_table_load(d->classes, p, whole_classes(p, size -
                                                          HT_DEAD_CLASSES),
                             &why)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "its event classes cannot be read: %s", why);
        return NULL;
    }
    return g_steal_pointer(&d);
}

void ht_dead_free(HtDead *d)
{
    if (d) {
        ht_class_table_free(d->classes);
        g_free(d);
    }
}

uint64_t ht_dead_size(const HtDead *d)
{
    return d->head.streams * d->head.stride;
}

/*
 * Of the streams that share a counter with @own, return the one that was opened
 * last: its clock is the most precise.  All streams use the same clock, so that
 * their events stay in order.
 */
static const HtDeadStream *newest_clock(const HtDead *d,
                                        const HtDeadStream *own)
{
    const HtDeadStream *best = own;
    uint32_t i;

    for (i = 0; i < d->head.streams; i++) {
        const HtDeadStream *s = &d->streams[i];

        if (s->mult && s->ns > best->ns && s->counter > best->counter) {
            best = s;
        }
    }
    return best;
}

static HtTimeMap clock_of(const HtDead *d, const HtDeadStream *own)
{
    const HtDeadStream *s = newest_clock(d, own);
    HtTimeMap m;

    ht_time_map_init(&m, 1000000000);
    m.nominal = d->head.mult ? d->head.mult : m.nominal;
    if (s->mult) {
        m.seg[0] = (HtTimeSegment) {
            .counter = s->counter,
            .ns = s->ns,
            .mult = s->mult,
        };
        m.count = 1;
    }
    return m;
}

typedef struct Reader {
    HtDeliver *deliver;
    void *opaque;
    HtDeadResult *r;
} Reader;

/* HtDeliver */
static void count(void *opaque, const HtRun *run)
{
    Reader *reader = opaque;
    HtDeadResult *r = reader->r;

    if (run->events) {
        r->begin_ns = r->events ? r->begin_ns : run->begin_ns;
        r->end_ns = run->end_ns;
        r->events += run->events;
    }
    reader->deliver(reader->opaque, run);
}

bool ht_dead_read(const HtDead *d, uint32_t stream, uint8_t *ram,
                  uint64_t open_ns, HtDeliver *deliver, void *opaque,
                  HtDeadResult *r)
{
    uint8_t *at = ram + stream * d->head.stride;
    struct ht_ring_control *ring = (struct ht_ring_control *)at;
    Reader reader = { deliver, opaque, r };
    const HtConsumerConfig cfg = {
        .classes = d->classes,
        .packet_size = d->head.packet_size,
        .packets = d->head.packets,
        /* A producer that discards leaves read packets for one more round. */
        .overwrite = true,
        .deliver = count,
        .opaque = &reader,
    };
    const HtDeadStream *s = &d->streams[stream];
    HtStreamInfo info = {
        .index = stream,
        .vcpu = s->vcpu,
        .instance = s->instance,
    };
    HtConsumer c;

    memset(r, 0, sizeof(*r));
    if (!s->instance) {
        return false;
    }
    memcpy(info.name, s->name, sizeof(s->name));
    ht_consumer_init(&c, &cfg);
    ht_consumer_open(&c, &info, open_ns);
    c.time = clock_of(d, s);
    while (ht_consumer_ring(&c, ring, at + HT_PACKETS_OFFSET, SIZE_MAX)) {
        continue;
    }
    ht_consumer_close(&c, c.lost, c.walk.ns);
    r->before = c.dropped;
    r->lost = c.lost;
    memcpy(r->why, c.why, sizeof(r->why));
    ht_consumer_destroy(&c);
    return true;
}
