/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: what a consumer hands to the host backends
 */
#ifndef HYPERTRACE_RUN_H
#define HYPERTRACE_RUN_H

#include "hypertrace/class.h"

/**
 * HtStreamInfo: a stream as the backends see it; constant while it is open
 * @index: 0 to streams - 1
 * @vcpu: as the guest claims, -1 if unknown
 * @instance: unique for the life of the trace, from 1
 * @name: printable ASCII, maybe empty
 */
typedef struct HtStreamInfo {
    uint32_t index;
    int32_t vcpu;
    uint64_t instance;
    char name[HT_STREAM_NAME_MAX + 1];
} HtStreamInfo;

/**
 * HtRun.flags
 * @HT_RUN_OPEN: the stream was opened; no events
 * @HT_RUN_CLOSE: the stream was closed; no events, the final count discarded
 * @HT_RUN_CUT: the first event's 24-bit clock does not follow from the event
 *              before: begin a packet at begin_ns
 */
enum {
    HT_RUN_OPEN  = 1,
    HT_RUN_CLOSE = 2,
    HT_RUN_CUT   = 4,
};

/**
 * HtRun: consecutive events of one stream, checked and converted
 *
 * Without events, and neither an opening nor a closing, it says that
 * @discarded has grown.
 *
 * @stream: its stream
 * @flags: HT_RUN_*
 * @events: number of events in @data
 * @data: events as on the wire, byte-packed, with guest clocks replaced by
 *        host CLOCK_MONOTONIC ns (24 low bits in the compact header, all 64 in
 *        the extended one).  Every id and length in it has been checked.
 * @size: bytes at @data
 * @begin_ns: time of the first event (of opening or closing)
 * @end_ns: time of the last event
 * @counter: raw guest counter of the first event
 * @discarded: events of the stream discarded since it was opened, before this
 *             run (the host's count, never decreasing)
 * @classes: length of the class table that all ids in @data are from
 */
typedef struct HtRun {
    const HtStreamInfo *stream;
    unsigned flags;
    uint32_t events;
    const uint8_t *data;
    size_t size;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t counter;
    uint64_t discarded;
    uint32_t classes;
} HtRun;

/**
 * ht_event_header: write the header of an event, the shortest there is
 * @p: HT_EVENT_HEADER_EXT bytes of room
 * @id: of the event's class, 1 to HT_CLASSES_MAX
 * @clock: the guest's counter, or ns in a run
 * @gap: readers cannot tell @clock from its low 24 bits
 *
 * Returns: bytes written
 */
unsigned ht_event_header(uint8_t *p, uint32_t id, uint64_t clock, bool gap);

/**
 * ht_run_put_header: append the header of an event
 * @out: the events of a run
 * @id: of its class
 * @ns: its time
 * @last_ns: time of the event before it in the stream
 */
void ht_run_put_header(GByteArray *out, uint32_t id, uint64_t ns,
                       uint64_t last_ns);

/**
 * HtEvent: one event in a run
 * @cls: its class
 * @ns: host CLOCK_MONOTONIC
 * @payload: its fields, byte-packed little-endian
 * @size: bytes at @payload
 */
typedef struct HtEvent {
    const HtClass *cls;
    uint64_t ns;
    const uint8_t *payload;
    size_t size;
} HtEvent;

/**
 * HtRunIter: a position in a run
 */
typedef struct HtRunIter {
    const HtClassTable *classes;
    const uint8_t *p;
    const uint8_t *end;
    uint64_t ns;
} HtRunIter;

static inline void ht_run_iter_init(HtRunIter *it, const HtRun *run,
                                    const HtClassTable *classes)
{
    it->classes = classes;
    it->p = run->data;
    it->end = run->data + run->size;
    it->ns = run->begin_ns;
}

/**
 * ht_run_next: the next event of a run
 * @it: the position
 * @ev: filled in
 *
 * Returns: false at the end
 */
static inline bool ht_run_next(HtRunIter *it, HtEvent *ev)
{
    uint32_t id;

    if (it->p == it->end) {
        return false;
    }
    if (G_LIKELY(it->p[0] < HT_ID_WIDE)) {
        uint32_t header = ht_get_le32(it->p);

        id = header & 0xff;
        it->ns += ((header >> 8) - (uint32_t)it->ns) & HT_CLOCK_MASK;
        it->p += HT_EVENT_HEADER;
    } else if (it->p[0] == HT_ID_WIDE) {
        uint32_t stamp = ht_get_le32(it->p + 2) >> 8;

        id = ht_get_le16(it->p + 1);
        it->ns += (stamp - (uint32_t)it->ns) & HT_CLOCK_MASK;
        it->p += HT_EVENT_HEADER_WIDE;
    } else {
        id = ht_get_le32(it->p + 1);
        it->ns = ht_get_le64(it->p + 5);
        it->p += HT_EVENT_HEADER_EXT;
    }
    /* ht_walk() found both valid; the run is private to the host. */
    ev->cls = it->classes->by_id[id];
    ev->ns = it->ns;
    ev->payload = it->p;
    ev->size = ht_class_payload(ev->cls, it->p, it->end - it->p);
    it->p += ev->size;
    return true;
}

#endif /* HYPERTRACE_RUN_H */
