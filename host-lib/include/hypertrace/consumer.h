/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: consume the events of one stream, of any channel
 *
 * ht_consumer_ring() copies the bytes of the events from a ring.
 * ht_consumer_feed() and ht_consumer_fetched() get bytes that the caller has
 * copied.  All three functions check the events and deliver them.
 *
 * Context: the caller serializes all calls for a stream.
 */
#ifndef HYPERTRACE_CONSUMER_H
#define HYPERTRACE_CONSUMER_H

#include "hypertrace/run.h"
#include "hypertrace/walk.h"

/*
 * Limit of a consumer's counts of discarded events.  A count of a producer that
 * is this or more is ignored.
 */
#define HT_LOST_MAX (UINT64_C(1) << 56)

/**
 * HtDeliver: callback for each run, in order
 */
typedef void HtDeliver(void *opaque, const HtRun *run);

/**
 * HtReserve: callback that returns memory for @size bytes, at most a packet
 *
 * The consumer uses the memory until its next call of this callback, or until
 * ht_consumer_ring() returns.  The runs that it delivers meanwhile refer to the
 * memory.
 */
typedef uint8_t *HtReserve(void *opaque, size_t size);

/**
 * HtConsumerConfig: configuration of a consumer
 * @classes: table of the event classes
 * @packet_size: size of a packet in bytes, a power of two
 * @packets: number of packets in a ring, a power of two
 * @overwrite: the producer may overwrite packets that were not consumed
 * @piece: number of bytes of a ring to take at a time; 0 for a packet.  A piece
 *         ends between two events: it may be shorter, and it is longer if a
 *         single event is longer than @piece
 * @piece_events: maximum number of events in a piece; 0 for no limit
 * @deliver: called for each run
 * @reserve: returns memory for a ring's bytes; NULL: the consumer has its own
 * @opaque: passed to the callbacks
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
    HtStreamInfo info;
    /* number of the instance, as the producer knows it */
    uint64_t instance;
    /* map from guest to host time, which the owner updates before each call */
    HtTimeMap time;
    HtWalk walk;
    /* private copy of a packet; NULL if cfg.reserve is set */
    uint8_t *buf;
    /* position in the stream of the next byte to consume */
    uint64_t cursor;
    /* virtio: position after the last buffer that was fed */
    uint64_t fed;
    /* number of events delivered since the instance was opened */
    uint64_t events;
    /*
     * number of events before @cursor, as the producer counts them, or
     * HT_RUN_UNKNOWN
     */
    uint64_t expected;
    /*
     * number of the instance's events that an earlier host has recorded, or
     * HT_RUN_UNKNOWN; 0 unless the instance is inherited
     */
    uint64_t recorded;
    /*
     * number of overwritten packets whose events @expected does not include yet
     */
    uint64_t skipped;
    /* number of events that the producer has discarded; never decreases */
    uint64_t lost;
    /* number of discarded events of producers without a stream */
    uint64_t others;
    /*
     * number of events that were overwritten before a host read them, or that
     * an earlier host released without recording them
     */
    uint64_t dropped;
    /*
     * number of discarded events that the last delivered run reported, plus
     * @base
     */
    uint64_t told;
    /* number of discarded events that earlier hosts have reported */
    uint64_t base;
    uint64_t bytes;
    uint64_t packets;           /* number of runs with events */
    /*
     * number of polls that found something in the ring, or of virtio buffers;
     * the owner counts them
     */
    uint64_t wakeups;
    uint64_t errors;
    bool open;
    /* the input was malformed: no more of it is read */
    bool stopped;
    /* ht_consumer_inherit() was called, and no packet was read since */
    bool inherited;
    char why[80];               /* reason for @stopped, for the log */
} HtConsumer;

/**
 * HtRecorded: how far an earlier host has recorded an instance of a stream
 * @events: number of events, as HtRun.total; HT_RUN_UNKNOWN if that host's
 *          recording was not found
 * @lost: as HtRun.lost
 * @end_ns: time of the last recorded event; 0: unknown
 */
typedef struct HtRecorded {
    uint64_t events;
    uint64_t lost;
    uint64_t end_ns;
} HtRecorded;

/**
 * HtConsumerState: state of a consumer, to continue it on another host
 *
 * The fields are those of HtConsumer, its HtStreamInfo and its HtWalk.  If the
 * stream is closed, they are those of its last instance.
 *
 * @trace_instance: HtStreamInfo.instance
 * @clock, @ns, @backward: of HtWalk
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
 * ht_consumer_open: start a stream instance; delivers an HT_RUN_OPEN run
 * @c: closed consumer
 * @info: description of the stream; copied
 * @now_ns: host time in ns
 */
void ht_consumer_open(HtConsumer *c, const HtStreamInfo *info,
                      uint64_t now_ns);

/**
 * ht_consumer_inherit: continue an instance of a host that has ended; delivers
 * an HT_RUN_OPEN run
 * @c: closed consumer
 * @info: description of the stream; copied
 * @tail: number of the oldest packet in the ring that the earlier host has not
 *        released, at most UINT64_MAX / 2 / packet_size
 * @r: how far that host has recorded the instance: events and discards up to
 *     there are not delivered again
 * @now_ns: host time of the instance's opening in ns, at most the present time
 *
 * If that host has released packets that it did not record, their events count
 * as dropped.
 */
void ht_consumer_inherit(HtConsumer *c, const HtStreamInfo *info,
                         uint64_t tail, const HtRecorded *r, uint64_t now_ns);

/**
 * ht_consumer_close: end a stream instance; delivers an HT_RUN_CLOSE run
 * @c: open consumer
 * @lost: the producer's final count; ignored if lower than before
 * @now_ns: host time in ns
 */
void ht_consumer_close(HtConsumer *c, uint64_t lost, uint64_t now_ns);

/**
 * ht_consumer_save: save the state of a consumer
 * @c: a consumer, open or closed
 * @st: filled in
 */
void ht_consumer_save(const HtConsumer *c, HtConsumerState *st);

/**
 * ht_consumer_load: restore a saved state
 * @c: closed consumer; unchanged on failure
 * @index: index of its stream
 * @st: the state; not trusted
 *
 * Delivers nothing: see ht_consumer_resume().
 *
 * Returns: NULL, or the reason why @st is invalid
 */
const char *ht_consumer_load(HtConsumer *c, uint32_t index,
                             const HtConsumerState *st);

/**
 * ht_consumer_resume: continue a stream; delivers an HT_RUN_OPEN run
 * @c: loaded consumer, open
 *
 * The run has the end time of the last run that the saved consumer delivered;
 * ht_streams_load() has converted this time to the host's clock.  Discarded
 * events that the saved consumer reported are not reported again.
 */
void ht_consumer_resume(HtConsumer *c);

/**
 * ht_consumer_ring: consume what the producer has committed to a ring
 * @c: open consumer
 * @ring: the stream's control page; the guest may write it at any time
 * @packets: the ring's packets; the guest may write them at any time
 * @max_bytes: start no further piece once this many bytes were consumed; 1:
 *             consume one piece; SIZE_MAX: consume everything up to the head
 *
 * Returns: bytes consumed; 0 if there was nothing, if the stream is stopped, or
 * if the producer overwrote the packet during each attempt to copy it
 */
size_t ht_consumer_ring(HtConsumer *c, struct ht_ring_control *ring,
                        const uint8_t *packets, size_t max_bytes);

/**
 * ht_consumer_tell: report discarded events to the trace
 * @c: open consumer
 * @lost: the producer's count; ignored if lower than before
 *
 * If the number of discarded events has grown since the last run, delivers a
 * run without events.
 */
void ht_consumer_tell(HtConsumer *c, uint64_t lost);

/**
 * ht_consumer_discarded: count discarded events that had no stream
 * @c: open consumer, of any stream
 * @count: number of events; reported by the stream's next run, or by the next
 *         ht_consumer_tell()
 */
void ht_consumer_discarded(HtConsumer *c, uint64_t count);

/**
 * ht_consumer_feed: consume bytes that were handed over (virtio)
 * @c: open consumer
 * @sub: header of the buffer, a private copy
 * @data: sub->to - sub->from bytes, private memory; modified
 * @size: size of @data in bytes
 *
 * If ht_consumer_fetched() has consumed some of the bytes before, they are
 * skipped.
 */
void ht_consumer_feed(HtConsumer *c, const struct ht_submit *sub,
                      uint8_t *data, size_t size);

/**
 * ht_consumer_fetched: consume bytes that the host fetched itself (virtio)
 * @c: open consumer
 * @sub: as for ht_consumer_feed()
 * @data: as for ht_consumer_feed(); the bytes follow those consumed before
 * @size: as for ht_consumer_feed()
 */
void ht_consumer_fetched(HtConsumer *c, const struct ht_submit *sub,
                         uint8_t *data, size_t size);

/**
 * ht_consumer_arm: ask the producer for a kick, then check the ring again
 * @c: open consumer
 * @ring: the stream's control page
 * @eager: kick at the next commit; otherwise at the start of the next packet
 *
 * A caller that sleeps must bound its sleep: a producer can miss the request if
 * it commits within a packet at the same time.
 *
 * Returns: true if head has already reached the wake position: consume instead
 * of sleeping
 */
bool ht_consumer_arm(HtConsumer *c, struct ht_ring_control *ring, bool eager);

/**
 * ht_consumer_disarm: tell the producer not to kick
 * @c: the consumer
 * @ring: the stream's control page
 */
void ht_consumer_disarm(HtConsumer *c, struct ht_ring_control *ring);

/**
 * ht_consumer_pending: test whether the ring has something to consume
 * @c: the consumer
 * @ring: the stream's control page
 */
bool ht_consumer_pending(const HtConsumer *c,
                         const struct ht_ring_control *ring);

/**
 * ht_consumer_has_closed_packet: test whether the bytes that are pending
 * include the end of a packet
 * @c: the consumer
 * @ring: the stream's control page
 */
bool ht_consumer_has_closed_packet(const HtConsumer *c,
                                   const struct ht_ring_control *ring);

/**
 * ht_consumer_behind: test whether to poll the ring again at once
 * @c: the consumer
 * @ring: the stream's control page
 *
 * Returns: true if the bytes to consume include the end of a packet, or begin
 * at the start of a packet.  In the second case the producer is likely to close
 * this packet soon: if the caller calls ht_consumer_arm() now instead of
 * polling again, the producer will soon kick.
 */
bool ht_consumer_behind(const HtConsumer *c,
                        const struct ht_ring_control *ring);

#endif /* HYPERTRACE_CONSUMER_H */
