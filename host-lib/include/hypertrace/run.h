/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: runs of events, which a consumer delivers to the host backends
 */
#ifndef HYPERTRACE_RUN_H
#define HYPERTRACE_RUN_H

#include "hypertrace/class.h"

/**
 * HtStreamInfo: a stream as backends see it; constant while the stream is open
 * @index: 0 to the number of streams - 1
 * @vcpu: vCPU according to the guest, -1 if unknown
 * @instance: unique for the life of the trace, from 1
 * @name: printable ASCII, may be empty
 */
typedef struct HtStreamInfo {
    uint32_t index;
    int32_t vcpu;
    uint64_t instance;
    char name[HT_STREAM_NAME_MAX + 1];
} HtStreamInfo;

/**
 * ht_stream_name_copy: copy the name of a stream, which the guest has chosen
 * @dst: HtStreamInfo.name
 * @src: private copy of HT_STREAM_NAME_MAX bytes; a NUL ends it earlier
 *
 * Returns: false if the name has other characters than printable ASCII
 */
bool ht_stream_name_copy(char *dst, const void *src);

/**
 * HtRun.flags: kinds of a run
 * @HT_RUN_OPEN: the stream was opened, or a saved or inherited instance is
 *               continued; there are no events
 * @HT_RUN_CLOSE: the stream was closed; there are no events, and @discarded is
 *                final
 * @HT_RUN_CUT: there is no previous event, or the 24-bit clock of the first
 *              event cannot be compared with that of the previous event: a
 *              backend that writes packets must start a packet, at begin_ns
 */
enum {
    HT_RUN_OPEN  = 1,
    HT_RUN_CLOSE = 2,
    HT_RUN_CUT   = 4,
};

/**
 * HtRun: consecutive events of one stream, checked and converted
 * @stream: the stream
 * @flags: HT_RUN_*
 * @events: number of events in @data
 * @data: events as on the wire, byte-packed, with guest clocks replaced by
 *        host CLOCK_MONOTONIC ns (24 low bits in the compact and the wide
 *        header, all 64 in the extended one).  Every id and length in it has
 *        been checked.  An export with the guest's clock keeps the times of
 *        that clock, also in @begin_ns and @end_ns
 * @size: size of @data in bytes
 * @begin_ns: time of the first event, or of the opening or closing
 * @end_ns: time of the last event; @begin_ns without events
 * @counter: raw guest counter of the first event; without events, an earlier
 *           counter of the stream, or 0
 * @discarded: number of events that were discarded before this run and since
 *             the stream was opened, without those that an earlier host has
 *             reported; a stream's runs may also count events of producers
 *             that have no stream.  Never decreases within an instance
 * @total: number of the instance's events up to the end of this run, by the
 *         producer's count; HT_RUN_UNKNOWN if it is not known; 0: none, the
 *         same as in the previous run, or the source of the runs (a stock
 *         kernel's ring, an export) does not count them
 * @lost: the producer's count of discarded events, of which an earlier host may
 *        have reported a part; 0: none, or the same as in the previous run
 * @classes: length of the class table when the run was made; the ids in @data
 *           are at most this
 *
 * A run that has no events, and neither HT_RUN_OPEN nor HT_RUN_CLOSE, reports
 * that @discarded has grown.
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
    uint64_t total;
    uint64_t lost;
    uint32_t classes;
} HtRun;

#define HT_RUN_UNKNOWN  UINT64_MAX

/**
 * ht_event_header: write the header of an event, as short as @id and @gap allow
 * @p: buffer of HT_EVENT_HEADER_EXT bytes
 * @id: id of the event's class, 1 to HT_CLASSES_MAX
 * @clock: the guest's counter, or ns in a run
 * @gap: the low 24 bits of @clock are ambiguous: write all of it
 *
 * Returns: the number of bytes written
 */
unsigned ht_event_header(uint8_t *p, uint32_t id, uint64_t clock, bool gap);

/**
 * ht_run_put_header: append the header of an event to a run
 * @out: the events of the run
 * @id: id of the event's class
 * @ns: time of the event
 * @last_ns: time of the previous event of the stream
 */
void ht_run_put_header(GByteArray *out, uint32_t id, uint64_t ns,
                       uint64_t last_ns);

/**
 * HtEvent: one event in a run
 * @cls: class of the event
 * @ns: time by the host's CLOCK_MONOTONIC, in ns
 * @payload: its fields, byte-packed little-endian
 * @size: size of @payload in bytes
 */
typedef struct HtEvent {
    const HtClass *cls;
    uint64_t ns;
    const uint8_t *payload;
    size_t size;
} HtEvent;

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
 * ht_run_next: get the next event of a run
 * @it: the iterator
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
    /* ht_walk() has checked id and length, and the run is private memory. */
    ev->cls = it->classes->by_id[id];
    ev->ns = it->ns;
    ev->payload = it->p;
    ev->size = ht_class_payload(ev->cls, it->p, it->end - it->p);
    it->p += ev->size;
    return true;
}

#endif /* HYPERTRACE_RUN_H */
