/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: write and read the directory that a host keeps in stream memory
 * for its successor, a host that continues the streams
 */
#include "hypertrace/base.h"
#include "hypertrace/atomic.h"
#include "hypertrace/guest-clock.h"
#include "hypertrace/memory-directory.h"

/* The structures below are in stream memory; their words are little-endian. */
typedef struct Stream {
    uint64_t instance;
    uint64_t opened_ns;
    int32_t vcpu;
    uint32_t reserved;
    char name[HT_STREAM_NAME_MAX];
} Stream;

typedef struct Head {
    uint64_t class_bytes;
    /*
     * number of discarded events that no trace has reported yet; see
     * HtServerOps.unreported
     */
    uint64_t discarded;
    /* number of the newest clock, from 1; 0: there is no clock */
    uint64_t clocks;
    HtTimeSegment clock[2];     /* clock number n is clock[n % 2] */
    uint64_t wall_offset;       /* ht_wall_offset() at ht_directory_clear() */
    Stream streams[HT_STREAMS_MAX];
} Head;

G_STATIC_ASSERT(sizeof(Head) <= HT_DIRECTORY_HEAD);
G_STATIC_ASSERT(sizeof(HtTimeSegment) == 4 * sizeof(uint64_t));

/* Convert between the memory's byte order and the host's */
static HtTimeSegment swap(HtTimeSegment s)
{
    return (HtTimeSegment) {
        .counter = ht_le64(s.counter),
        .ns = ht_le64(s.ns),
        .mult = ht_le64(s.mult),
        .bound_ns = ht_le64(s.bound_ns),
    };
}

static Head *head(const HtDirectory *d)
{
    return (Head *)d->base;
}

/*
 * Publish earlier stores by a store to @word.  Pairs with the load-acquire in
 * load().
 */
static void publish(uint64_t *word, uint64_t v)
{
    ht_atomic_store_release(word, ht_le64(v));
}

/*
 * Load a word that the previous host has stored by publish(), or that the guest
 * has overwritten.  Pairs with the store-release in publish(), of another
 * process.
 */
static uint64_t load(const uint64_t *word)
{
    return ht_le64(ht_atomic_load_acquire(word));
}

void ht_directory_clear(HtDirectory *d, uint64_t discarded)
{
    uint32_t i;

    d->class_bytes = 0;
    d->clocks = 0;
    memset(&d->clock, 0, sizeof(d->clock));
    head(d)->wall_offset = ht_le64(ht_wall_offset());
    /*
     * Store the count first, then remove the streams, then the classes: if
     * this host is killed in between, its successor must not lose the count,
     * and must not continue a stream without the stream's classes.
     */
    publish(&head(d)->discarded, discarded);
    for (i = 0; i < HT_STREAMS_MAX; i++) {
        publish(&head(d)->streams[i].instance, 0);
    }
    publish(&head(d)->class_bytes, 0);
    publish(&head(d)->clocks, 0);
}

void ht_directory_add_class(HtDirectory *d, const HtClass *c)
{
    g_autofree struct ht_msg_class *m = g_malloc0(HT_MESSAGE_MAX);
    uint32_t size = ht_class_encode(c, m);
    uint8_t *to = d->base + HT_DIRECTORY_HEAD + d->class_bytes;

    if (d->class_bytes + 4 + size > HT_DIRECTORY_CLASSES) {
        return;
    }
    ht_put_le32(to, size);
    memcpy(to + 4, m, size);
    d->class_bytes += 4 + size;
    publish(&head(d)->class_bytes, d->class_bytes);
}

void ht_directory_set_stream(HtDirectory *d, const HtStreamInfo *info,
                             uint64_t opened_ns)
{
    Stream *s = &head(d)->streams[info->index];

    s->opened_ns = ht_le64(opened_ns);
    s->vcpu = (int32_t)ht_le32((uint32_t)info->vcpu);
    memcpy(s->name, info->name, sizeof(s->name));
    publish(&s->instance, info->instance);
}

void ht_directory_set_clock(HtDirectory *d, const HtTimeSegment *s)
{
    if (memcmp(s, &d->clock, sizeof(*s)) == 0) {
        return;
    }
    d->clock = *s;
    d->clocks++;
    head(d)->clock[d->clocks % 2] = swap(*s);
    publish(&head(d)->clocks, d->clocks);
}

void ht_directory_set_discarded(HtDirectory *d, uint64_t count)
{
    publish(&head(d)->discarded, count);
}

uint64_t ht_directory_discarded(const HtDirectory *d)
{
    return load(&head(d)->discarded);
}

int64_t ht_directory_wall_offset(const HtDirectory *d)
{
    return (int64_t)ht_le64(head(d)->wall_offset);
}

GByteArray *ht_directory_classes(HtDirectory *d)
{
    uint64_t size = load(&head(d)->class_bytes);
    GByteArray *out = g_byte_array_new();

    d->class_bytes = MIN(size, HT_DIRECTORY_CLASSES);
    g_byte_array_append(out, d->base + HT_DIRECTORY_HEAD, d->class_bytes);
    return out;
}

bool ht_directory_clock(HtDirectory *d, HtTimeSegment *seg)
{
    HtTimeSegment s;

    d->clocks = load(&head(d)->clocks);
    if (!d->clocks) {
        return false;
    }
    memcpy(&s, &head(d)->clock[d->clocks % 2], sizeof(s));
    *seg = swap(s);
    return true;
}

bool ht_directory_stream(const HtDirectory *d, uint32_t stream,
                         HtInherited *in)
{
    uint64_t instance = load(&head(d)->streams[stream].instance);
    Stream s;

    memcpy(&s, &head(d)->streams[stream], sizeof(s));
    memset(in, 0, sizeof(*in));
    in->info.index = stream;
    in->info.instance = instance;
    in->info.vcpu = (int32_t)ht_le32((uint32_t)s.vcpu);
    in->opened_ns = ht_le64(s.opened_ns);
    return ht_stream_name_copy(in->info.name, s.name) && instance >= 1 &&
           instance <= UINT64_MAX / 2 && in->info.vcpu >= -1 &&
           in->opened_ns <= HT_TIME_MAX_NS;
}
