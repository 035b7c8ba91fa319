/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: read stream memory after its host has ended
 */
#include "hypertrace/base.h"
#include "hypertrace/control.h"
#include "hypertrace/dead-streams.h"
#include "hypertrace/memory-directory.h"
#include "hypertrace/memory-layout.h"

static bool fail(GError **error, const char *why)
{
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s", why);
    return false;
}

static bool read_classes(HtDead *d, HtDirectory *dir, GError **error)
{
    g_autoptr(GByteArray) classes = ht_directory_classes(dir);
    g_autofree char *why = NULL;

    if (!ht_class_table_load(d->classes, classes->data, classes->len, &why)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "its event classes cannot be read: %s", why);
        return false;
    }
    return true;
}

static bool read_clock(HtDead *d, HtDirectory *dir, GError **error)
{
    uint64_t hz = d->caps.clock_hz;
    HtTimeSegment clock;

    ht_time_map_init(&d->clock, hz >= HT_TIME_HZ_MIN && hz <= HT_TIME_HZ_MAX ?
                                hz : 1000000000);
    return !ht_directory_clock(dir, &clock) ||
           ht_time_map_load(&d->clock, &clock, 1, 0, HT_TIME_MAX_NS) ||
           fail(error, "its clock is not valid");
}

static void read_streams(HtDead *d, const HtDirectory *dir, const uint8_t *ram)
{
    HtInherited in;
    uint32_t i;

    for (i = 0; i < d->caps.streams; i++) {
        uint32_t state = ht_le32(ht_layout_ring(&d->caps, ram, i)->host.state);

        if (state != HT_STREAM_OPENED && state != HT_STREAM_STOPPED) {
            /* a host normally consumes a ring before it closes the stream */
            continue;
        }
        if (ht_directory_stream(dir, i, &in)) {
            d->streams[i] = in.info;
        } else {
            d->invalid++;
        }
    }
}

HtDead *ht_dead_new(const uint8_t *ram, size_t size, GError **error)
{
    g_autoptr(HtDead) d = g_new0(HtDead, 1);
    HtDirectory dir = { };
    struct ht_caps le = { };
    const char *why;

    d->classes = ht_class_table_new();
    memcpy(&le, ram, MIN(size, sizeof(le)));
    ht_caps_swap(&d->caps, &le);
    why = ht_layout_check(&d->caps, size);
    if (why) {
        fail(error, why);
        return NULL;
    }
    /* The cast drops const, but the directory is only read here. */
    dir.base = (uint8_t *)ram + ht_layout_directory(&d->caps);
    d->wall_offset = ht_directory_wall_offset(&dir);
    if (!read_classes(d, &dir, error) || !read_clock(d, &dir, error)) {
        return NULL;
    }
    read_streams(d, &dir, ram);
    return g_steal_pointer(&d);
}

void ht_dead_free(HtDead *d)
{
    if (d) {
        ht_class_table_free(d->classes);
        g_free(d);
    }
}

typedef struct Reader {
    HtDeliver *deliver;
    void *opaque;
    HtDeadResult *r;
} Reader;

/*
 * HtDeliver: count a run's events, note the times of the first and the last
 * event of the stream, and pass the run on
 */
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
    struct ht_ring_control *ring = ht_layout_ring(&d->caps, ram, stream);
    Reader reader = { deliver, opaque, r };
    const HtConsumerConfig cfg = {
        .classes = d->classes,
        .packet_size = d->caps.packet_size,
        .packets = d->caps.packets,
        /*
         * Also read packets that the host has consumed, as far as the producer
         * has not overwritten them.
         */
        .overwrite = true,
        .deliver = count,
        .opaque = &reader,
    };
    HtConsumer c;

    memset(r, 0, sizeof(*r));
    if (!d->streams[stream].instance) {
        return false;
    }
    ht_consumer_init(&c, &cfg);
    ht_consumer_open(&c, &d->streams[stream], open_ns);
    c.time = d->clock;
    while (ht_consumer_ring(&c, ring, (uint8_t *)ring + HT_PACKETS_OFFSET,
                            SIZE_MAX)) {
        continue;
    }
    ht_consumer_close(&c, c.lost, c.walk.ns);
    r->before = c.dropped;
    r->lost = c.lost;
    memcpy(r->why, c.why, sizeof(r->why));
    ht_consumer_destroy(&c);
    return true;
}
