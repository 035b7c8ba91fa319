/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what a device's stream RAM needs besides it to be read when
 * there is no QEMU any more
 *
 * Stream RAM has packets and how far they were filled.  Which class an id is,
 * what a stream is called and what its counter's ticks are, only QEMU knows:
 * it writes that to a file of its own, the index, as it happens.  The file:
 *
 *   0                  HtDeadHead
 *   HT_DEAD_STREAMS    HtDeadStream of each stream, written when it is opened
 *   HT_DEAD_CLASSES    classes as ht_class_table_save() has them, appended
 *
 * Both files are what a process left that was killed, and the memory is a
 * guest's: neither is trusted.
 */
#ifndef HYPERTRACE_DEAD_STREAMS_H
#define HYPERTRACE_DEAD_STREAMS_H

#include "hypertrace/consumer.h"

#define HT_DEAD_MAGIC           0x44525448u     /* "HTRD" */
#define HT_DEAD_VERSION         2u

#define HT_DEAD_STREAMS         4096u
#define HT_DEAD_CLASSES         65536u

/* No index is larger. */
#define HT_DEAD_INDEX_MAX       (HT_DEAD_CLASSES + HT_CLASSES_SAVED_MAX)

/**
 * HtDeadHead: a device, little-endian; texts end with a NUL
 * @magic: HT_DEAD_MAGIC
 * @version: HT_DEAD_VERSION
 * @streams: as ht_caps has it
 * @packet_size: likewise
 * @packets: likewise
 * @reserved: 0
 * @stride: likewise, ring_stride
 * @mult: ns of a tick of the guest's counter, times 2^32, about
 * @wall_offset: CLOCK_REALTIME - CLOCK_MONOTONIC in ns, of the host
 * @trace: the device's name
 * @vm: the VM's
 * @channel: "hypercall" or "shm"
 * @memory: the file that is stream RAM
 */
typedef struct HtDeadHead {
    uint32_t magic;
    uint32_t version;
    uint32_t streams;
    uint32_t packet_size;
    uint32_t packets;
    uint32_t reserved;
    uint64_t stride;
    uint64_t mult;
    uint64_t wall_offset;
    char trace[64];
    char vm[128];
    char channel[16];
    char memory[2048];
} HtDeadHead;

/**
 * HtDeadStream: a stream, little-endian
 * @instance: as in its packets; 0: it was never opened
 * @counter: of the guest...
 * @ns: ...when the host's CLOCK_MONOTONIC was that...
 * @mult: ...and ns of a tick from there, times 2^32; 0: nothing is known
 * @vcpu: as HtStreamInfo has it
 * @reserved: 0
 * @name: padded with 0
 */
typedef struct HtDeadStream {
    uint64_t instance;
    uint64_t counter;
    uint64_t ns;
    uint64_t mult;
    int32_t vcpu;
    uint32_t reserved;
    char name[HT_STREAM_NAME_MAX];
} HtDeadStream;

/**
 * HtDead: an index that was read
 * @head: in the host's byte order, and possible
 * @streams: of @head.streams, likewise
 * @classes: that were written as a whole
 */
typedef struct HtDead {
    HtDeadHead head;
    HtDeadStream streams[HT_STREAMS_MAX];
    HtClassTable *classes;
} HtDead;

/* Put between the host's byte order and the file's */
static inline void ht_dead_head_swap(HtDeadHead *h)
{
    h->magic = ht_le32(h->magic);
    h->version = ht_le32(h->version);
    h->streams = ht_le32(h->streams);
    h->packet_size = ht_le32(h->packet_size);
    h->packets = ht_le32(h->packets);
    h->stride = ht_le64(h->stride);
    h->mult = ht_le64(h->mult);
    h->wall_offset = ht_le64(h->wall_offset);
}

static inline void ht_dead_stream_swap(HtDeadStream *s)
{
    s->instance = ht_le64(s->instance);
    s->counter = ht_le64(s->counter);
    s->ns = ht_le64(s->ns);
    s->mult = ht_le64(s->mult);
    s->vcpu = (int32_t)ht_le32((uint32_t)s->vcpu);
}

/**
 * ht_dead_new: read an index
 * @data: anything
 * @size: bytes at @data
 * @error: why it is none
 *
 * Returns: for ht_dead_free(), or NULL
 */
HtDead *ht_dead_new(const void *data, size_t size, GError **error);
void ht_dead_free(HtDead *d);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtDead, ht_dead_free)

/* ht_dead_size: bytes of stream RAM that rings need */
uint64_t ht_dead_size(const HtDead *d);

/**
 * HtDeadResult: what a stream's ring had
 * @events: that are there
 * @before: of the stream, before these: delivered by then, or overwritten
 * @lost: that the producer discarded
 * @begin_ns: time of the first; 0: there is none
 * @end_ns: and of the last
 * @why: that nothing behind that could be read; "": all was
 */
typedef struct HtDeadResult {
    uint64_t events;
    uint64_t before;
    uint64_t lost;
    uint64_t begin_ns;
    uint64_t end_ns;
    char why[80];
} HtDeadResult;

/**
 * ht_dead_read: deliver the events that a stream's ring has, oldest first
 * @d: the index
 * @stream: below @d->head.streams
 * @ram: stream RAM, ht_dead_size() bytes that may be written to
 * @open_ns: when to say that the stream was opened
 * @deliver: takes its runs, begin and end included
 * @opaque: for @deliver
 * @r: filled in
 *
 * Times are of the clock as it was when a stream was opened last; without any
 * they are of the stream's own counter, from @open_ns on.
 *
 * Returns: false if the stream was never opened
 */
bool ht_dead_read(const HtDead *d, uint32_t stream, uint8_t *ram,
                  uint64_t open_ns, HtDeliver *deliver, void *opaque,
                  HtDeadResult *r);

#endif /* HYPERTRACE_DEAD_STREAMS_H */
