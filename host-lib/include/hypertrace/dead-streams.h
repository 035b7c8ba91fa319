/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: recover the events in stream memory after its host has ended
 *
 * The memory contains a description of its layout, classes and streams: see
 * memory-layout.h and memory-directory.h.  The description is not trusted,
 * because the guest could write to all of the memory.  The host may have been
 * killed at any time.
 */
#ifndef HYPERTRACE_DEAD_STREAMS_H
#define HYPERTRACE_DEAD_STREAMS_H

#include "hypertrace/consumer.h"

/**
 * HtDead: description of stream memory, from the memory itself
 * @caps: in the host's byte order; the layout is checked
 * @wall_offset: the host's CLOCK_REALTIME - CLOCK_MONOTONIC in ns; not checked
 * @clock: relation of the clocks that the host stored last; without segments if
 *         the host did not know it
 * @streams: the first @caps.streams elements are set; instance 0: the stream
 *           was not open, or its description is not valid
 * @invalid: number of open streams whose description is not valid
 * @classes: the classes that were written completely
 */
typedef struct HtDead {
    struct ht_caps caps;
    int64_t wall_offset;
    HtTimeMap clock;
    HtStreamInfo streams[HT_STREAMS_MAX];
    unsigned invalid;
    HtClassTable *classes;
} HtDead;

/**
 * ht_dead_new: parse the description of stream memory
 * @ram: stream memory; not trusted
 * @size: size of @ram in bytes
 * @error: set to the reason if the description is not valid
 *
 * Returns: the description, for ht_dead_free(); or NULL
 */
HtDead *ht_dead_new(const uint8_t *ram, size_t size, GError **error);
void ht_dead_free(HtDead *d);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HtDead, ht_dead_free)

/**
 * HtDeadResult: events found in a stream's ring
 * @events: number of events that were read from the ring and delivered
 * @before: number of earlier events of the stream, whose packets the producer
 *          has overwritten; the host may have recorded them
 * @lost: number of events that the producer discarded, by its own count
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
 * @d: the description of @ram
 * @stream: index of the stream, less than @d->caps.streams
 * @ram: private copy of the memory that ht_dead_new() has parsed; modified
 * @open_ns: time to use for the opening run, in ns
 * @deliver: called for an opening run, the runs with events, and a closing run
 * @opaque: passed to @deliver
 * @r: filled in
 *
 * Guest times are converted by @d->clock.  If it has no segments, the first
 * packet in the ring begins at @open_ns.
 *
 * Returns: false if the instance in @d->streams is 0
 */
bool ht_dead_read(const HtDead *d, uint32_t stream, uint8_t *ram,
                  uint64_t open_ns, HtDeliver *deliver, void *opaque,
                  HtDeadResult *r);

#endif /* HYPERTRACE_DEAD_STREAMS_H */
