/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: recover the events in stream RAM after QEMU has ended
 *
 * Stream RAM holds packets and their fill levels.  The meaning of class ids,
 * the names of streams and the rates of counters are known to QEMU only, which
 * keeps them up to date in another file, the index.  Offsets in the index:
 *
 *   0                  HtDeadHead
 *   HT_DEAD_STREAMS    HtDeadStream of each stream, written when it is opened
 *   HT_DEAD_CLASSES    classes as ht_class_table_save() has them, appended
 *
 * Neither file is trusted: the process may have been killed at any time, and
 * the guest wrote stream RAM.
 */
#ifndef HYPERTRACE_DEAD_STREAMS_H
#define HYPERTRACE_DEAD_STREAMS_H

#include "hypertrace/consumer.h"

#define HT_DEAD_MAGIC           0x44525448u     /* "HTRD" */
#define HT_DEAD_VERSION         2u

#define HT_DEAD_STREAMS         4096u
#define HT_DEAD_CLASSES         65536u

/* Maximum size of an index in bytes */
#define HT_DEAD_INDEX_MAX       (HT_DEAD_CLASSES + HT_CLASSES_SAVED_MAX)

/**
 * HtDeadHead: description of a device, little-endian; texts are NUL-terminated
 * @magic: HT_DEAD_MAGIC
 * @version: HT_DEAD_VERSION
 * @streams: number of streams, as in struct ht_caps
 * @packet_size: as in struct ht_caps
 * @packets: as in struct ht_caps
 * @reserved: 0
 * @stride: ring_stride of struct ht_caps
 * @mult: approximate ns per tick of the guest's counter, times 2^32
 * @wall_offset: the host's CLOCK_REALTIME - CLOCK_MONOTONIC in ns
 * @trace: name of the device
 * @vm: name of the VM
 * @channel: "hypercall" or "shm"
 * @memory: path of the file with stream RAM
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
 * HtDeadStream: description of a stream, little-endian
 * @instance: as in its packets; 0 if the stream was never opened
 * @counter: a value of the guest's counter
 * @ns: host CLOCK_MONOTONIC in ns when the counter had this value
 * @mult: ns per tick after @counter, times 2^32; 0 if not known
 * @vcpu: see HtStreamInfo
 * @reserved: 0
 * @name: name of the stream, padded with 0
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
 * HtDead: a parsed index
 * @head: in the host's byte order; checked
 * @streams: @head.streams elements, in the host's byte order; checked
 * @classes: the classes that were written completely
 */
typedef struct HtDead {
    HtDeadHead head;
    HtDeadStream streams[HT_STREAMS_MAX];
    HtClassTable *classes;
} HtDead;

/*
 * Convert between the host's byte order and the file's, little-endian
 */
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
 * ht_dead_new: parse an index
 * @data: content of the index; not trusted
 * @size: size of @data in bytes
 * @error: set to the reason if it is not a valid index
 *
 * Returns: the index, for ht_dead_free(); or NULL
 */
HtDead *ht_dead_new(const void *data, size_t size, GError **error);
void ht_dead_free(HtDead *d);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtDead, ht_dead_free)

/* ht_dead_size: get the size of stream RAM that the rings need, in bytes */
uint64_t ht_dead_size(const HtDead *d);

/**
 * HtDeadResult: events found in a stream's ring
 * @events: number of events in the ring
 * @before: number of earlier events of the stream: delivered or overwritten
 * @lost: number of events that the producer discarded
 * @begin_ns: time of the first event; 0 without events
 * @end_ns: time of the last event
 * @why: reason why the rest of the ring could not be read; "" if all was read
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
 * ht_dead_read: deliver the events in a stream's ring, oldest first
 * @d: the index
 * @stream: index of the stream, less than @d->head.streams
 * @ram: stream RAM, ht_dead_size() bytes; modified
 * @open_ns: time of the stream's opening run, in ns
 * @deliver: takes the runs, with an opening and a closing one
 * @opaque: passed to @deliver
 * @r: filled in
 *
 * Times are converted by the clock of the stream that was opened last.  If no
 * clock is known, they are times of the stream's own counter, from @open_ns on.
 *
 * Returns: false if the stream was never opened
 */
bool ht_dead_read(const HtDead *d, uint32_t stream, uint8_t *ram,
                  uint64_t open_ns, HtDeliver *deliver, void *opaque,
                  HtDeadResult *r);

#endif /* HYPERTRACE_DEAD_STREAMS_H */
