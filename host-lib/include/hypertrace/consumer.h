/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: the host's end of one stream, whatever the channel
 *
 * Bytes come from a ring (ht_consumer_ring) or were handed over
 * (ht_consumer_feed); both end in the same copy, walk and delivery.  Plain C
 * over memory: the device, the loopback tests and the fuzzers share it.
 *
 * Context: one thread at a time; the caller serialises per stream.
 */
#ifndef HYPERTRACE_CONSUMER_H
#define HYPERTRACE_CONSUMER_H

#include "hypertrace/run.h"
#include "hypertrace/walk.h"

/* A producer that claims more lost events than this lies. */
#define HT_LOST_MAX (UINT64_C(1) << 56)

/**
 * HtDeliver: called with each run, in order
 */
typedef void HtDeliver(void *opaque, const HtRun *run);

/**
 * HtReserve: say where @size bytes of events, at most a packet, may be put
 *
 * Until the next call, or the end of the call of ht_consumer_ring(), they are
 * the consumer's; the runs delivered meanwhile refer to them.
 */
typedef uint8_t *HtReserve(void *opaque, size_t size);

/**
 * HtConsumerConfig:
 * @classes: what events may be of
 * @packet_size: bytes, a power of two
 * @packets: of a ring, a power of two
 * @overwrite: the producer overwrites what was not read
 * @piece: bytes of a ring to take at a time, fewer so that no event is split,
 *         more if a single event is larger; 0: a packet
 * @piece_events: events to take at a time; 0: no limit
 * @deliver: takes runs
 * @reserve: where to copy a ring's bytes; NULL: to memory of the consumer
 * @opaque: for both
 */
typedef struct HtConsumerConfig {
    const HtClassTable *classes;
    uint32_t packet_size;
    uint32_t packets;
    bool overwrite;
    uint32_t piece;
    uint32_t piece_events;
    HtDeliver *deliver;
    HtReserve *reserve;
    void *opaque;
} HtConsumerConfig;

typedef struct HtConsumer {
    HtConsumerConfig cfg;
    HtStreamInfo info;          /* as the trace knows the stream */
    uint64_t instance;          /* as its producer knows it */
    HtTimeMap time;             /* refreshed by the owner before a call */
    HtWalk walk;
    uint8_t *buf;               /* packet_size bytes; NULL: see reserve */
    uint64_t cursor;            /* position up to which all was delivered */
    uint64_t fed;               /* up to which all was handed over (virtio) */
    uint64_t events;            /* accepted since open */
    uint64_t expected;          /* as @events, and those overwritten */
    uint64_t skipped;           /* packets overwritten, their events unknown */
    uint64_t lost;              /* as the producer counts, clamped forward */
    uint64_t others;            /* likewise, of producers without a stream */
    uint64_t dropped;           /* by the host */
    uint64_t told;              /* of them, up to the last run delivered */
    uint64_t base;              /* of those, told by other hosts */
    uint64_t bytes;
    uint64_t packets;           /* runs delivered */
    uint64_t wakeups;           /* counted by the owner: looks */
    uint64_t errors;
    bool open;
    bool stopped;               /* malformed input: reads nothing any more */
    char why[80];               /* why it was stopped, for the log */
} HtConsumer;

/**
 * HtConsumerState: where a consumer stopped, for one elsewhere to go on
 *
 * The fields are those of HtConsumer, its HtStreamInfo and its HtWalk.  If the
 * stream is closed, they are its last instance's.
 *
 * @trace_instance: HtStreamInfo.instance
 * @clock, @ns, @backward: HtWalk
 */
typedef struct HtConsumerState {
    bool open;
    bool stopped;
    int32_t vcpu;
    uint8_t name[HT_STREAM_NAME_MAX + 1];
    uint64_t instance;
    uint64_t trace_instance;
    uint64_t cursor;
    uint64_t fed;
    uint64_t events;
    uint64_t expected;
    uint64_t skipped;
    uint64_t lost;
    uint64_t others;
    uint64_t dropped;
    uint64_t told;
    uint64_t bytes;
    uint64_t packets;
    uint64_t wakeups;
    uint64_t errors;
    uint64_t clock;
    uint64_t ns;
    uint64_t backward;
} HtConsumerState;

void ht_consumer_init(HtConsumer *c, const HtConsumerConfig *cfg);
void ht_consumer_destroy(HtConsumer *c);

/**
 * ht_consumer_open: begin a stream instance; delivers an HT_RUN_OPEN run
 * @c: closed consumer
 * @info: copied
 * @now_ns: host time
 */
void ht_consumer_open(HtConsumer *c, const HtStreamInfo *info,
                      uint64_t now_ns);

/**
 * ht_consumer_close: end it; delivers an HT_RUN_CLOSE run
 * @c: open consumer
 * @lost: the producer's final count; ignored if lower than what is known
 * @now_ns: host time
 */
void ht_consumer_close(HtConsumer *c, uint64_t lost, uint64_t now_ns);

/**
 * ht_consumer_save: describe where a consumer is
 * @c: a consumer, open or closed
 * @st: filled in
 */
void ht_consumer_save(const HtConsumer *c, HtConsumerState *st);

/**
 * ht_consumer_load: put a closed consumer where another one was
 * @c: closed consumer; as before if it fails
 * @index: its stream
 * @st: anything
 *
 * Nothing is delivered yet: see ht_consumer_resume().
 *
 * Returns: NULL, or what is wrong with @st
 */
const char *ht_consumer_load(HtConsumer *c, uint32_t index,
                             const HtConsumerState *st);

/**
 * ht_consumer_resume: go on; delivers an HT_RUN_OPEN run
 * @c: loaded consumer, open
 *
 * The run is dated as the last one the other consumer delivered.  Discarded
 * events that were told of there are not told again.
 */
void ht_consumer_resume(HtConsumer *c);

/**
 * ht_consumer_ring: consume what a ring's producer committed
 * @c: open consumer
 * @ring: the stream's control page, written by the guest at any time
 * @packets: its packets, likewise
 * @max_bytes: take no further piece after this many bytes; 1: take one piece,
 *             SIZE_MAX: all
 *
 * Returns: bytes consumed; 0 if there was nothing (or the stream is stopped)
 */
size_t ht_consumer_ring(HtConsumer *c, struct ht_ring_control *ring,
                        const uint8_t *packets, size_t max_bytes);

/**
 * ht_consumer_tell: have the trace know how many events were discarded
 * @c: open consumer
 * @lost: the producer's count; ignored if lower than what is known
 *
 * Delivers a run without events if that is more than the last run said.
 */
void ht_consumer_tell(HtConsumer *c, uint64_t lost);

/**
 * ht_consumer_discarded: have the trace count events that had no stream
 * @c: open consumer, of any stream
 * @count: how many; its next run says so, or the next ht_consumer_tell()
 */
void ht_consumer_discarded(HtConsumer *c, uint64_t count);

/**
 * ht_consumer_feed: consume bytes that were handed over (virtio)
 * @c: open consumer
 * @sub: the buffer's header, a private copy
 * @data: sub->to - sub->from bytes, private; changed in place
 * @size: bytes at @data
 *
 * Of what ht_consumer_fetched() had before, only the rest is taken.
 */
void ht_consumer_feed(HtConsumer *c, const struct ht_submit *sub,
                      uint8_t *data, size_t size);

/**
 * ht_consumer_fetched: consume bytes that were not handed over (virtio)
 *
 * As ht_consumer_feed(); they follow what was consumed.
 */
void ht_consumer_fetched(HtConsumer *c, const struct ht_submit *sub,
                         uint8_t *data, size_t size);

/**
 * ht_consumer_arm: publish when the producer is to ring, then look again
 * @c: open consumer
 * @ring: the stream's control page
 * @eager: ring at the next commit; otherwise once the next packet begins
 *
 * Returns: true if something was committed meanwhile (do not sleep)
 */
bool ht_consumer_arm(HtConsumer *c, struct ht_ring_control *ring, bool eager);

/**
 * ht_consumer_disarm: tell the producer not to ring
 */
void ht_consumer_disarm(HtConsumer *c, struct ht_ring_control *ring);

/**
 * ht_consumer_pending: whether a look at the ring would find something
 */
bool ht_consumer_pending(const HtConsumer *c,
                         const struct ht_ring_control *ring);

/**
 * ht_consumer_has_closed_packet: whether a look would find the end of a packet
 */
bool ht_consumer_has_closed_packet(const HtConsumer *c,
                                   const struct ht_ring_control *ring);

/**
 * ht_consumer_behind: whether it is worth to look again at once
 *
 * So it is as well if an open packet was not looked at yet: its producer may
 * have closed it by then, and whoever armed the wake word now would be rung.
 */
bool ht_consumer_behind(const HtConsumer *c,
                        const struct ht_ring_control *ring);

#endif /* HYPERTRACE_CONSUMER_H */
